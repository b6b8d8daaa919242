"""Presets whose keys and values come from a latent, and presets changed into layers beyond the closed laws."""

from __future__ import annotations

import json
from fractions import Fraction
from typing import Any

import pytest

from freeattn.errors import InputError
from freeattn.model.architectures import architecture
from freeattn.model.attention import Attention
from freeattn.model.heads import Heads
from freeattn.model.latent import Latent
from freeattn.model.ties import KeyValueCorrelation


@pytest.mark.parametrize(("name", "q_rank"), [("deepseek-v2-lite", None), ("deepseek-v2", 1536), ("deepseek-v3", 1536)])
def test_latent_attention_has_its_published_parts(name: str, q_rank: int | None) -> None:
    spec = architecture(name, n_tokens=1024)
    assert spec.latent == Latent(512, shared=True, normalized=True)
    assert spec.query_latent == (None if q_rank is None else Latent(q_rank, shared=True, normalized=True))
    assert (spec.position_width, spec.d_key, spec.d_value, spec.n_kv_heads) == (64, 192, 128, spec.n_heads)
    assert not spec.covered_by_transforms
    assert Attention.from_dict(json.loads(json.dumps(spec.to_dict()))) == spec


def test_the_plain_heads_of_a_latent_preset_have_another_specification() -> None:
    plain = architecture("deepseek-v3", n_tokens=1024, latent=None, query_latent=None, position_width=0)
    assert plain.covered_by_transforms
    assert plain != architecture("deepseek-v3", n_tokens=1024)


def test_a_latent_preset_at_its_published_length_needs_gaussian_tokens() -> None:
    with pytest.raises(InputError, match='try n_tokens=4096, its pre-training length, or inputs="gaussian"'):
        architecture("deepseek-v3")
    spec = architecture("deepseek-v3", inputs="gaussian")
    assert spec.n_tokens == 163840
    assert spec.beyond_transforms == ("inputs", "latent", "query_latent", "position_width")


def test_unequal_heads_take_the_place_of_the_published_ones() -> None:
    spec = architecture("bert-base", heads=[Heads(8, 64, 64), Heads(4, 32, 64)])
    assert (spec.n_heads, spec.n_kv_heads, spec.gamma_key) == (12, 12, Fraction(640, 512))


@pytest.mark.parametrize("changes", [
    {"latent": Latent(64)}, {"query_latent": Latent(64)}, {"heads": [Heads(12, 64, 64)]},
])
def test_beta_init_is_for_the_published_layer(changes: dict[str, Any]) -> None:
    with pytest.raises(InputError, match=r"(is not the published one|are not the published ones):") as caught:
        architecture("bert-base", beta="init", **changes)
    assert caught.value.field == "beta"


@pytest.mark.parametrize(("name", "changes", "reason"), [
    ("deepseek-v2-lite", {}, None),  # the rotated part comes straight from orthogonal tokens
    ("deepseek-v3", {}, "queries come from a latent"),
    ("llama-2-7b", {"latent": Latent(512)}, "keys come from a latent"),
    ("llama-2-7b", {"inputs": "gaussian"}, "tokens are not orthogonal"),
    ("llama-2-7b", {"tie": "output-key"}, "the output map is tied to the keys"),
    ("llama-2-7b", {"tie": KeyValueCorrelation(0.5)}, "keys and values are tied"),
    ("bert-base", {"tie": "key-value", "inputs": "gaussian"}, None),  # no rotary positions
])
def test_rotary_positions_count_where_rows_are_not_independent(
    name: str, changes: dict[str, Any], reason: str | None
) -> None:
    phrases = architecture(name, n_tokens=512, **changes).not_modelled
    rotary = [phrase for phrase in phrases if "rotary" in phrase]
    assert rotary == ([] if reason is None else [f"rotary positions ({reason})"])
