"""What a layer costs: its number of trainable parameters."""

from __future__ import annotations

from typing import Any

from freeattn.errors import InputError
from freeattn.model.attention import Attention

__all__ = ["parameter_count"]


def parameter_count(spec: Attention) -> Any:
    """Entries of W^Q, W^K, W^V and W^O, and of latent factors in their place; matrices that are tied count once.

    With d = d_model and like heads: d·h·d_key + d·h_kv·(d_key + d_value) + h·d_value·d_out. A latent of rank r costs
    d·r down, once or for each head of its kind, and r in place of d up; coordinates of keys that hold positions come
    straight from the tokens, once for all heads. No biases.

    Raises:
        InputError: for a layer without sizes.
    """
    if spec.ratios is not None:
        raise InputError("n_tokens", None, "a layer with sizes: spec.with_sizes(n_tokens)")
    sharing = 1 if spec.heads is not None else spec.n_heads // spec.n_kv_heads
    total = 0
    for family in spec.families:
        kv_heads = family.count // sharing
        total += _queries(spec, family.count, family.d_key)
        total += _up(spec.latent, spec.d_model) * kv_heads * (family.d_key - spec.position_width)
        if spec.has_values:
            free = spec.tie.value != "key"
            total += _up(spec.latent, spec.d_model) * kv_heads * family.d_value if free else 0
        if spec.has_output_map and spec.tie.output != "key":
            total += family.count * family.d_value * spec.d_out
    return total + spec.d_model * spec.position_width + _down(spec.latent, spec.d_model, spec.n_kv_heads) + _down(
        spec.query_latent, spec.d_model, spec.n_heads
    )


def _queries(spec: Attention, heads: Any, d_key: Any) -> Any:
    return _up(spec.query_latent, spec.d_model) * heads * d_key


def _up(latent: Any, width: Any) -> Any:
    """Rows of the matrix that makes keys, values or queries."""
    return width if latent is None else latent.rank


def _down(latent: Any, width: Any, heads: Any) -> Any:
    if latent is None:
        return 0
    return width * latent.rank * (1 if latent.shared else heads)
