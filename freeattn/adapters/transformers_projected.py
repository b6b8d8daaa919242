"""Attention of transformers with one linear layer each for queries, keys, values and output, keys shared in groups."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar, NamedTuple, final

import numpy as np

from freeattn.adapters.module_kind import Behaviour, ModuleKind, bias_phrases, linear_weights
from freeattn.adapters.module_reading import Gains, ModuleReading
from freeattn.adapters.transformers_library import attend, initialize, refuse_cross_attention, window_of
from freeattn.adapters.weight_matrices import as_array, gain

__all__ = ["TransformersProjected"]


class _Parts(NamedTuple):
    """The linear layers; output is None where the module ends with the values of its heads."""

    query: Any
    key: Any
    value: Any
    output: Any


@final
class TransformersProjected(ModuleKind):
    """BERT and its relatives, ViT, and the decoders with grouped keys; Qwen3 normalizes queries and keys per head.

    `BertAttention` adds its input and normalizes; what is read and run of it ends with the output map.
    """

    library: ClassVar[str] = "transformers"
    classes: ClassVar[tuple[str, ...]] = (
        "BertAttention", "BertSelfAttention", "RobertaAttention", "RobertaSelfAttention", "ViTAttention",
        "LlamaAttention", "MistralAttention", "MixtralAttention", "Qwen2Attention", "Qwen3Attention",
    )

    def read(self, module: Any) -> ModuleReading:
        refuse_cross_attention(module)
        inner, parts = _inner(module), _parts(module)
        weights = {f"W_{name}": as_array(linear_weights(part)) for name, part in _named(parts)}
        d_model, width = weights["W_Q"].shape
        heads = int(getattr(inner, "num_attention_heads", 0) or inner.config.num_attention_heads)
        head = width // heads
        kv_heads = weights["W_K"].shape[1] // head
        sizes = {"d_model": d_model, "n_heads": heads, "n_kv_heads": kv_heads, "d_key": head, "d_value": head}
        output = weights.get("W_O")
        if output is not None:
            sizes["d_out"] = output.shape[1]
            weights["W_O"] = output.T
        score, degree = _scores(inner, weights, head)
        return ModuleReading(
            kind=type(module).__name__, sizes=sizes,
            gains=Gains(
                score=score, value=gain(weights["W_V"]), output=None if output is None else gain(output),
                score_degree=degree,
            ),
            matrices=tuple(
                (name, part, kv_heads if name in ("W_K", "W_V") else heads) for name, part in weights.items()
            ),
            not_modelled=tuple(_phrases(module, inner, parts)), causal=bool(inner.is_causal), rotary=_rotates(inner),
            token_widths=(d_model,) * 3,
        )

    def run(self, torch: Any, module: Any, tokens: tuple[Any, Any, Any], behaviour: Behaviour) -> Any:
        inner = _inner(module)
        found = attend(torch, inner, tokens[0], behaviour, _rotates(inner))
        return found if inner is module else module.output.dense(found)

    def reset(self, torch: Any, module: Any) -> None:
        del torch
        initialize(module, _inner(module).config)


def _inner(module: Any) -> Any:
    """The module that forms the scores: `BertAttention` holds it."""
    return getattr(module, "self", module)


def _parts(module: Any) -> _Parts:
    inner = _inner(module)
    if hasattr(inner, "q_proj"):
        return _Parts(inner.q_proj, inner.k_proj, inner.v_proj, inner.o_proj)
    return _Parts(inner.query, inner.key, inner.value, None if inner is module else module.output.dense)


def _named(parts: _Parts) -> Iterator[tuple[str, Any]]:
    return ((name, part) for name, part in zip("QKVO", parts, strict=True) if part is not None)


def _rotates(inner: Any) -> bool:
    return hasattr(inner, "num_key_value_groups")  # the decoders: BERT and ViT have neither groups nor rotations


def _scores(inner: Any, weights: dict[str, Any], head: int) -> tuple[float, int]:
    """Standard deviation of the scores, and whether it grows with the tokens."""
    if hasattr(inner, "q_norm"):  # rows of mean square one times the weights of the norms
        query, key = as_array(inner.q_norm.weight), as_array(inner.k_norm.weight)
        return float(np.sqrt(np.sum((query * key) ** 2))) * float(inner.scaling), 0
    return gain(weights["W_Q"]) * gain(weights["W_K"]) * float(inner.scaling) * head**0.5, 2


def _phrases(module: Any, inner: Any, parts: _Parts) -> Iterator[str]:
    biases = [None if part is None else part.bias for part in parts]
    yield from bias_phrases(biases[0], tuple(biases[1:]))
    if inner.is_causal:
        yield "causal mask"
    if window_of(inner) is not None:
        yield f"window of {window_of(inner)} tokens"
    if hasattr(inner, "q_norm"):
        yield "norms of queries and keys per head"
    if getattr(inner, "attention_dropout", 0) or getattr(getattr(inner, "dropout", None), "p", 0):
        yield "dropout"
    if inner is not module:
        yield "residual connection and norm after the output map"
