"""Presets: the data, the look-up, and the specifications made from them."""

from __future__ import annotations

import dataclasses
import json
import subprocess
import sys
from fractions import Fraction
from importlib import resources
from typing import Any

import numpy as np
import pytest
import sympy

import freeattn as fa
from freeattn.errors import InputError
from freeattn.model.architectures import Preset, architecture, architectures
from freeattn.model.attention import Attention
from freeattn.model.initialization import squared

DATA = json.loads(resources.files("freeattn.model").joinpath("data", "architectures.json").read_text("utf-8"))
RECORDS: list[dict[str, Any]] = DATA["architectures"]
PRESETS = {preset.name: preset for preset in architectures()}
LATENT = ("deepseek-v2-lite", "deepseek-v2", "deepseek-v3")

every_record = pytest.mark.parametrize("record", RECORDS, ids=lambda record: record["name"])
every_preset = pytest.mark.parametrize("preset", PRESETS.values(), ids=lambda preset: preset.name)


# The data -------------------------------------------------------------------------------------------------

OPTIONAL = {
    "n_tokens_pretrain", "rotary_width", "window", "logit_softcap", "beyond", "mla", "unconfirmed", "note",
}
WIDTHS = ("d_model", "n_heads", "n_kv_heads", "d_key", "d_value", "d_out", "layers", "n_tokens")
ABOUT = [key for key in DATA["_about"] if "." not in key]


def about(group: str) -> list[str]:
    return [key.removeprefix(f"{group}.") for key in DATA["_about"] if key.startswith(f"{group}.")]


def test_number_and_names() -> None:
    assert len(RECORDS) == len(PRESETS) == 104
    assert len({record["name"] for record in RECORDS}) == 104


@every_record
def test_keys_are_documented_complete_and_in_order(record: dict[str, Any]) -> None:
    assert list(record) == [key for key in ABOUT if key in record]
    assert set(ABOUT) - set(record) <= OPTIONAL
    for group in ("init", "mla"):
        keys = list(record.get(group, {}))
        assert keys == [key for key in about(group) if key in keys]


def test_every_documented_key_is_used() -> None:
    for key in ABOUT:
        assert any(key in record for record in RECORDS), key
    for group in ("init", "mla"):
        for key in about(group):
            assert any(key in record.get(group, {}) for record in RECORDS), key


@every_record
def test_sizes(record: dict[str, Any]) -> None:
    sizes = [record[key] for key in WIDTHS]
    sizes += [record[key] for key in ("n_tokens_pretrain", "rotary_width", "window") if key in record]
    assert all(type(size) is int and size > 0 for size in sizes)
    assert record["n_heads"] % record["n_kv_heads"] == 0
    assert record["d_out"] == record["d_model"]
    assert record.get("n_tokens_pretrain", 1) <= record["n_tokens"]
    assert record.get("rotary_width", 1) < record["d_key"]
    assert record["tie"] == "none" or record["d_key"] == record["d_value"]


@every_record
def test_words(record: dict[str, Any]) -> None:
    assert record["tie"] in ("none", "key-value")
    assert record["positional"] in ("learned", "sinusoidal", "rope", "relative")
    assert type(record["causal"]) is type(record["qk_norm"]) is type(record["confirmed"]) is bool
    init = record["init"]
    assert init["scheme"] in (
        "normal", "truncated-normal", "xavier-uniform", "from-base-model", "mean-pooled-from-mha",
        "not-stated",
    )
    assert init["basis"] in ("paper", "code", "inherited", "library-default", "not-stated")
    assert record["source"]
    assert all(len(phrase) < 60 for phrase in record.get("beyond", ()))


@every_record
def test_unconfirmed_keys_exist_and_are_explained(record: dict[str, Any]) -> None:
    assert record["confirmed"] == ("unconfirmed" not in record)
    assert set(record.get("unconfirmed", ())) <= set(record)
    assert record["confirmed"] or record["note"]


@every_record
def test_latent_widths(record: dict[str, Any]) -> None:
    assert ("mla" in record) == (record["name"] in LATENT)
    if "mla" in record:
        assert record["d_key"] == record["mla"]["rope_width"] + record["mla"]["nope_width"]


@every_record
def test_standard_deviations_follow_their_rule(record: dict[str, Any]) -> None:
    init, rule = record["init"], record["init"].get("rule", "")
    for key in ("std", "q_std", "out_proj_std"):
        assert key not in init or squared(key, init[key]) > 0
    fan_in, fan_out = record["d_model"], record["n_heads"] * record["d_key"]
    if rule == "sqrt(2/(fan_in+fan_out))":
        assert squared("std", init["std"]) == Fraction(2, fan_in + fan_out)
    if rule.startswith("std = 1/sqrt(fan_in)"):
        assert squared("std", init["std"]) == Fraction(1, fan_in)
        value_width = record["n_heads"] * record["d_value"]
        assert squared("out_proj_std", init["out_proj_std"]) == Fraction(1, value_width)
    if "W_Q additionally divided by sqrt(d_key)" in rule:
        assert squared("q_std", init["q_std"]) * record["d_key"] == squared("std", init["std"])
    if "out_proj_std = std/sqrt(2*layers)" in rule:
        expected = float(init["std"]) / (2 * record["layers"]) ** 0.5
        assert float(init["out_proj_std"]) == pytest.approx(expected, rel=5e-6)  # published to six digits


def test_some_published_numbers() -> None:
    bert = PRESETS["bert-base"]
    assert (bert.d_model, bert.n_heads, bert.d_key, bert.n_tokens, bert.layers) == (768, 12, 64, 512, 12)
    falcon = PRESETS["falcon-7b"]
    assert (falcon.d_model, falcon.n_heads, falcon.n_kv_heads, falcon.d_key) == (4544, 71, 1, 64)
    assert PRESETS["modernbert-large"].n_tokens_pretrain == 1024
    assert PRESETS["gemma-2-27b"].score_scale == "1/sqrt(144)"
    assert PRESETS["gpt3-13b"].unconfirmed == ("d_model", "d_out")
    assert PRESETS["deepseek-v3"].mla is not None
    assert PRESETS["deepseek-v3"].mla.kv_rank == 512


# The records as values ------------------------------------------------------------------------------------


@every_preset
def test_a_preset_is_its_record(preset: Preset) -> None:
    record = next(record for record in RECORDS if record["name"] == preset.name)
    for key, value in record.items():
        if key not in ("init", "mla"):
            held = getattr(preset, key)
            assert (list(held) if isinstance(held, tuple) else held) == value
    assert {k: v for k, v in dataclasses.asdict(preset.init).items() if v is not None} == record["init"]
    assert (preset.mla and dataclasses.asdict(preset.mla)) == record.get("mla")
    assert hash(preset) == hash(dataclasses.replace(preset))


def test_ratios_at_the_published_length() -> None:
    preset = PRESETS["transformer-base-dk16"]
    ratios = (preset.gamma_key, preset.gamma_value, preset.gamma_out)
    assert ratios == (Fraction(1, 2), Fraction(2), Fraction(2))
    assert all(type(ratio) is Fraction for ratio in ratios)


@every_preset
def test_covered_says_whether_the_defaults_build(preset: Preset) -> None:
    if preset.covered:
        assert preset.why_not == ""
        spec = architecture(preset.name)
        assert (spec.gamma_key, spec.gamma_value, spec.gamma_out) == (
            preset.gamma_key, preset.gamma_value, preset.gamma_out,
        )
    else:
        assert "orthogonal input needs n_tokens ≤ d_model" in preset.why_not
        with pytest.raises(InputError) as caught:
            architecture(preset.name)
        assert caught.value.field == "n_tokens"


@every_preset
def test_every_preset_builds_at_some_length(preset: Preset) -> None:
    spec = architecture(preset.name, n_tokens=min(preset.n_tokens, preset.d_model))
    assert (spec.n_heads, spec.n_kv_heads, spec.d_key, spec.d_value) == (
        preset.n_heads, preset.n_kv_heads, preset.d_key, preset.d_value,
    )
    assert (spec.name, spec.beta, spec.tie.shorthand) == (preset.name, 1, preset.tie)
    assert spec.not_modelled == preset.not_modelled


def test_search() -> None:
    assert [preset.name for preset in architectures("BERT-")] == [
        "bert-base", "bert-large", "modernbert-base", "modernbert-large",
    ]
    assert {preset.family for preset in architectures("qwen2.5")} == {"qwen2.5"}
    assert {preset.family for preset in architectures("metaseq")} == {"opt"}  # found in the source
    assert architectures("no such model") == ()
    assert architectures() == architectures("")
    with pytest.raises(InputError, match="search = 3"):
        architectures(3)  # type: ignore[arg-type]


def test_the_package_hands_the_names_on() -> None:
    assert fa.architecture is architecture
    assert fa.architectures is architectures


def test_presets_load_neither_numpy_nor_sympy() -> None:
    code = (
        "import sys, freeattn as fa; fa.architecture('bert-base', beta='init'); "
        "print(sorted({'numpy', 'sympy', 'scipy', 'matplotlib'} & set(sys.modules)))"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"


# Names ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "nearest"), [
    ("bert", "bert-base"), ("BERT_base", "bert-base"), ("Bert Base", "bert-base"), ("gpt2", "gpt2-small"),
    ("lama-3-8b", "llama-3-8b"), ("qwen3", "qwen3-8b"), ("llama3-8b", "llama-3-8b"),
    ("mixtral", "mixtral-8x7b"),
])
def test_unknown_names_get_the_nearest(name: str, nearest: str) -> None:
    with pytest.raises(InputError) as caught:
        architecture(name)
    assert caught.value.field == "architecture"
    assert caught.value.value == name
    assert nearest in caught.value.allowed
    assert "architectures() lists all 104" in caught.value.allowed
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", ["zzz", "", 3, None, ["bert-base"]])
def test_hopeless_names(name: object) -> None:
    with pytest.raises(InputError) as caught:
        architecture(name)  # type: ignore[arg-type]
    assert caught.value.allowed == "the name of a preset (architectures() lists all 104)"


# Overrides ------------------------------------------------------------------------------------------------


def test_defaults_are_published() -> None:
    assert architecture("bert-base") == Attention(
        n_tokens=512, d_model=768, n_heads=12, d_key=64, d_value=64, d_out=768, beta=1,
    )


def test_sizes_follow_where_they_were_equal() -> None:
    spec = architecture("bert-base", n_heads=6, d_model=1024)
    assert (spec.n_kv_heads, spec.d_out) == (6, 1024)
    spec = architecture("bert-base", n_heads=6, n_kv_heads=2, d_model=1024, d_out=768)
    assert (spec.n_kv_heads, spec.d_out) == (2, 768)
    assert architecture("falcon-7b", n_heads=8).n_kv_heads == 1
    assert architecture("llama-2-70b", n_heads=16).n_kv_heads == 8


def test_grouped_heads_that_no_longer_divide() -> None:
    with pytest.raises(InputError, match="n_kv_heads = 8 is not allowed; expected a divisor of n_heads = 12"):
        architecture("llama-2-70b", n_heads=12)


def test_other_fields() -> None:
    spec = architecture(
        "bert-base", n_tokens=np.int64(256), beta=0.5, output="attention", tie="key-value", n_kv_heads=4,
        scores="relu",
    )
    assert (spec.gamma_key, spec.gamma_kv, spec.beta) == (3, 1, Fraction(1, 2))
    assert (spec.output, spec.tie.shorthand, spec.scores.name) == ("attention", "key-value", "relu")
    assert architecture("bert-base", value_scale=2, output_scale=3).output_scale == 3
    assert architecture("bert-base", n_kv_heads=None).n_kv_heads == 12


def test_symbols() -> None:
    n, heads, beta = sympy.symbols("n h beta", positive=True)
    spec = architecture("bert-base", n_tokens=n, n_heads=heads, beta=beta)
    assert sympy.expand(spec.gamma_key - 64 * heads / n) == 0
    assert spec.n_kv_heads == heads
    assert spec.symbolic


@pytest.mark.parametrize("changes", [
    {"n_tokens": 0}, {"n_tokens": -4}, {"n_tokens": 1.5}, {"n_tokens": True}, {"n_tokens": None},
    {"d_model": 0}, {"n_heads": 0}, {"d_key": "64"}, {"beta": 0}, {"beta": float("nan")}, {"output": "all"},
    {"tie": "key-key"}, {"scores": "sotfmax"}, {"inputs": "gauss"}, {"n_kv_heads": 5}, {"latent": 64},
    {"heads": 4}, {"position_width": 8}, {"residual": 0},
])
def test_bad_values_name_their_field(changes: dict[str, Any]) -> None:
    with pytest.raises(InputError) as caught:
        architecture("bert-base", **changes)
    assert caught.value.field == next(iter(changes))


def test_unknown_fields_get_the_nearest() -> None:
    with pytest.raises(InputError, match=r"n_token = 256 is not allowed; .*n_tokens"):
        architecture("bert-base", n_token=256)


def test_a_tie_needs_equal_widths() -> None:
    with pytest.raises(InputError, match="d_value = 64 is not allowed; expected equal to d_key = 16"):
        architecture("transformer-base-dk16", tie="key-value")


@pytest.mark.parametrize(("name", "changes", "advice"), [
    ("modernbert-large", {}, "try n_tokens=1024, its pre-training length"),
    ("llama-3.1-405b", {}, "try n_tokens=8192, its pre-training length"),
    ("modernbert-base", {}, "choose n_tokens up to 768"),  # the pre-training length 1024 is too long as well
    ("llama-3-8b", {}, "choose n_tokens up to 4096"),
    ("bert-base", {"n_tokens": 1000}, "choose n_tokens up to 768"),
    ("bert-base", {"d_model": 256}, "choose n_tokens up to 256"),
    ("bert-base", {"n_tokens": np.int64(1000)}, "choose n_tokens up to 768"),
    ("bert-base", {"n_tokens": sympy.Integer(1000)}, "choose n_tokens up to 768"),
])
def test_too_many_tokens(name: str, changes: dict[str, Any], advice: str) -> None:
    with pytest.raises(InputError) as caught:
        architecture(name, **changes)
    preset, text = PRESETS[name], str(caught.value)
    assert caught.value.field == "n_tokens"
    assert f"{name} is published with n_tokens = {preset.n_tokens} and d_model = {preset.d_model}" in text
    assert text.endswith(f'{advice}, or inputs="gaussian"')
    assert architecture(name, **changes, inputs="gaussian").tokens_per_width > 1
    assert caught.value.__suppress_context__


# What the theory does not contain -------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "phrases"), [
    ("bert-base", ("learned positions added to the tokens",)),
    ("llada-8b", ()),  # rotary positions do not change the law, and there is no mask
    ("llama-2-7b", ("causal mask",)),
    ("dinov3-l16", ()),
    ("t5-xxl", ("causal mask", "relative position bias on the scores")),
    ("transformer-base", ("causal mask", "sinusoidal positions added to the tokens")),
    ("modernbert-base", ("sliding window of 128 tokens",)),
    ("modernbert-large", ("sliding window of 128 tokens", "initial weights taken from another model")),
    ("gemma-2-9b", ("causal mask", "sliding window of 4096 tokens", "logit softcap 50")),
    ("gemma-3-1b", ("causal mask", "sliding window of 512 tokens", "query and key normalization")),
    ("qwen2.5-7b", ("causal mask", "biases on queries, keys and values")),
    ("gpt3-175b", (
        "causal mask", "learned positions added to the tokens",
        "locally banded sparse attention in alternate layers",
    )),
])
def test_not_modelled(name: str, phrases: tuple[str, ...]) -> None:
    assert PRESETS[name].not_modelled == phrases
    assert architecture(name, n_tokens=128).not_modelled == phrases


def test_rotary_positions_count_when_keys_and_values_are_tied() -> None:
    phrase = "rotary positions (keys and values are tied)"
    assert architecture("llama-2-7b", tie="key-value").not_modelled == ("causal mask", phrase)
    learned = architecture("kayyam-1.2b-kv")
    assert learned.not_modelled == ("causal mask", "learned positions added to the tokens")
    assert phrase not in architecture("llama-2-7b", tie="none").not_modelled


def test_not_modelled_does_not_distinguish_specifications() -> None:
    spec = architecture("llama-2-7b")
    assert spec == spec.replace(name=None, not_modelled=())
    assert architecture("llama-2-7b", not_modelled=("mine",)).not_modelled == ("mine",)
