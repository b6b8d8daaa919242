"""Latent attention of transformers: `DeepseekV2Attention` and `DeepseekV3Attention`.

Keys and values of head r are D U_r with one latent D of rank `kv_lora_rank`, whose rows are normalized; further
coordinates of each key come straight from the tokens and are the same for all heads. Queries come from a normalized
latent of their own, or straight from the tokens. Both kinds of key coordinates must give scores of one size, because
one β describes them: at standard deviation 0.02 throughout they do not, at unit scale (1/rows of each matrix) they do.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, ClassVar, NamedTuple, final

import numpy as np

from freeattn.adapters.module_kind import Behaviour, ModuleKind, bias_phrases, linear_weights
from freeattn.adapters.module_reading import Gains, ModuleReading
from freeattn.adapters.transformers_library import attend, initialize
from freeattn.adapters.weight_matrices import Array, as_array, gain, is_nonzero
from freeattn.errors import NotCoveredError
from freeattn.model.latent import Latent

__all__ = ["TransformersLatent"]

_SAME = 0.05  # relative difference of the two kinds of scores that is put down to the draw of the weights


class _Weights(NamedTuple):
    """Matrices that act on tokens or latents, the weights of norms multiplied in; the parts that meet are in pairs."""

    query: Array
    query_position: Array
    key: Array
    key_position: Array
    value: Array
    output: Array


@final
class TransformersLatent(ModuleKind):
    """Rotary positions act on the key coordinates that come from the tokens, and on the queries that meet them."""

    library: ClassVar[str] = "transformers"
    classes: ClassVar[tuple[str, ...]] = ("DeepseekV2Attention", "DeepseekV3Attention")

    def read(self, module: Any) -> ModuleReading:
        weights, heads = _weights(module), int(module.num_heads)
        sizes = {
            "d_model": int(weights.key_position.shape[0]), "n_heads": heads, "d_key": int(module.qk_head_dim),
            "d_value": int(module.v_head_dim), "d_out": int(weights.output.shape[1]),
        }
        fields: dict[str, Any] = {
            "latent": Latent(int(module.kv_lora_rank), normalized=True), "position_width": int(module.qk_rope_head_dim),
        }
        if module.q_lora_rank is not None:
            fields["query_latent"] = Latent(int(module.q_lora_rank), normalized=True)
        named = {"U_Q": weights.query, "U_K": weights.key, "U_V": weights.value, "W_O": weights.output.T}
        return ModuleReading(
            kind=type(module).__name__, sizes=sizes, fields=fields,
            gains=Gains(
                score=_score(module, weights), value=gain(weights.value), output=gain(weights.output), score_degree=0,
                value_degree=0,
            ),
            matrices=tuple((name, part, heads) for name, part in named.items()),
            not_modelled=tuple(_phrases(module)), causal=bool(module.is_causal), rotary=True,
            token_widths=(sizes["d_model"],) * 3, mean_token=False,
        )

    def run(self, torch: Any, module: Any, tokens: tuple[Any, Any, Any], behaviour: Behaviour) -> Any:
        return attend(torch, module, tokens[0], behaviour, positions=True)

    def reset(self, torch: Any, module: Any) -> None:
        del torch
        initialize(module, module.config)


def _weights(module: Any) -> _Weights:
    heads, nope = int(module.num_heads), int(module.qk_nope_head_dim)
    direct = module.q_lora_rank is None
    queries = as_array(linear_weights(module.q_proj if direct else module.q_b_proj))
    if not direct:
        queries = _scaled(module.q_a_layernorm, queries)
    keys_values = _scaled(module.kv_a_layernorm, as_array(linear_weights(module.kv_b_proj)))
    position = as_array(linear_weights(module.kv_a_proj_with_mqa))[:, int(module.kv_lora_rank):]
    query, query_position = _split(queries, heads, nope)
    key, value = _split(keys_values, heads, nope)
    return _Weights(query, query_position, key, position, value, as_array(linear_weights(module.o_proj)))


def _scaled(norm: Any, weights: Array) -> Array:
    """The weights of a norm multiplied into the matrix behind it."""
    return as_array(norm.weight)[:, None] * weights


def _split(weights: Array, heads: int, first: int) -> tuple[Array, Array]:
    """The first columns of each head, and the others."""
    blocks = weights.reshape(len(weights), heads, -1)
    parts = (blocks[:, :, :first], blocks[:, :, first:])
    left, right = (part.reshape(len(weights), -1) for part in parts)
    return left, right


def _score(module: Any, weights: _Weights) -> float:
    """Standard deviation of the scores for tokens of mean square one.

    Raises:
        NotCoveredError: when the two kinds of key coordinates give scores of unequal size.
    """
    content = gain(weights.query) * gain(weights.key)
    position = gain(weights.query_position) * gain(weights.key_position)
    if not math.isclose(content, position, rel_tol=_SAME):
        raise NotCoveredError(
            f"{type(module).__name__}: a pair of coordinates from the latent gives scores of size {content:.4g}, one "
            f"from the tokens {position:.4g}, so that no one beta describes them (at unit scale, entries of variance "
            "1/rows, they are equal)"
        )
    widths = np.array([module.qk_nope_head_dim, module.qk_rope_head_dim], dtype=float)
    return float(module.scaling) * math.sqrt(float(widths @ np.square([content, position])))


def _phrases(module: Any) -> Iterator[str]:
    down = (module.kv_a_proj_with_mqa, None if module.q_lora_rank is None else module.q_a_proj)
    yield from bias_phrases(None if down[1] is None else down[1].bias, (module.o_proj.bias,))
    if is_nonzero(down[0].bias):
        yield "bias of the latent"
    yield "causal mask"
    if module.attention_dropout:
        yield "dropout"
