"""How many weights a layer has, exactly, and the width that a given number of weights allows."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from typing import Any

from freeattn.errors import InputError
from freeattn.model.attention import Attention
from freeattn.model.quantities import Quantity, is_infinite, is_known, ratio
from freeattn.model.ratios import Ratios

__all__ = ["SIZE_WIDTHS", "parameter_count", "width_at", "with_value", "with_widths"]

SIZE_WIDTHS = ("d_key", "d_value", "d_out")
_RATIO_WIDTHS = ("gamma_key", "gamma_value", "gamma_out")
_FOLLOWS_KEY = {"d_value": "d_key", "gamma_value": "gamma_key"}  # where values are tied to keys


def parameter_count(spec: Attention) -> Quantity:
    """The number of weights in the matrices that the output of a layer contains; biases and norms are not counted.

    Queries, keys and values of width w from the tokens take d_model·w each, keys and values once for each of the
    n_kv_heads; W^O takes d_value·d_out for each head. Tied weights count once: W^V = W^K adds nothing, nor does
    W^O = W^Kᵀ; correlated values are weights of their own. A latent takes d_model·rank, once or for each head, and
    what is built from it rank·w; coordinates of the keys that carry positions take d_model·position_width once.
    An output without values has queries and keys only, "values" has no W^O.

    Returns:
        An int; for a specification by ratios the count divided by n_tokens², a Fraction; an expression where the
        specification has symbols.

    Raises:
        InputError: when the number of heads is infinite.
    """
    if is_infinite(spec.n_heads):
        raise InputError("n_heads", spec.n_heads, "finite to count weights")
    total = _query_count(spec) + _key_count(spec)
    if spec.has_values and spec.tie.value != "key":
        total += _rows(spec, spec.latent) * _total(spec, "d_value", spec.n_kv_heads)
    if spec.has_output_map and spec.tie.output != "key":
        total += _total(spec, "d_value", spec.n_heads) * (spec.d_out if spec.ratios is None else spec.gamma_out)
    return total


def _query_count(spec: Attention) -> Quantity:
    down = _down(spec, spec.query_latent, spec.n_heads)
    return down + _rows(spec, spec.query_latent) * _total(spec, "d_key", spec.n_heads)


def _key_count(spec: Attention) -> Quantity:
    """With the latent, which values share, and the coordinates that carry positions."""
    content = _total(spec, "d_key", spec.n_kv_heads) - spec.n_kv_heads * spec.position_width
    down = _down(spec, spec.latent, spec.n_kv_heads)
    return down + _rows(spec, spec.latent) * content + _model_width(spec) * spec.position_width


def _model_width(spec: Attention) -> Quantity:
    return spec.d_model if spec.ratios is None else ratio(1, spec.tokens_per_width)


def _rows(spec: Attention, latent: Any) -> Quantity:
    """The width of what a matrix acts on: the tokens, or a latent."""
    return _model_width(spec) if latent is None else latent.rank


def _down(spec: Attention, latent: Any, heads: Quantity) -> Quantity:
    if latent is None:
        return 0
    return _model_width(spec) * latent.rank * (1 if latent.shared else heads)


def _total(spec: Attention, width: str, heads: Quantity) -> Quantity:
    """The width of so many heads together, in units of n_tokens for a specification by ratios."""
    if spec.ratios is not None:
        return ratio((spec.gamma_key if width == "d_key" else spec.gamma_value) * heads, spec.n_heads)
    if spec.heads is not None:
        return sum(family.count * getattr(family, width) for family in spec.heads)
    return heads * getattr(spec, width)


# Widths and weights -----------------------------------------------------------------------------------------------


def with_value(spec: Attention, field: str, value: Any) -> Attention:
    """The specification with one field changed: a field of `Attention`, or a ratio where it is given by ratios."""
    names = [f.name for f in dataclasses.fields(Ratios)]
    if spec.ratios is None or field not in names:
        return spec.replace(**{field: value})
    return spec.replace(ratios=dataclasses.replace(spec.ratios, **{field: value}))


def with_widths(spec: Attention, widths: dict[str, Any]) -> Attention:
    """The specification with some widths changed; values tied to keys follow them.

    Raises:
        InputError: for a name that is no width of this specification.
    """
    allowed = SIZE_WIDTHS if spec.ratios is None else _RATIO_WIDTHS
    for name in widths:
        if name not in allowed or spec.heads is not None:
            raise InputError("over", name, f"widths among {', '.join(allowed)} of a layer with like heads")
        if getattr(spec, name) is None:
            raise InputError("over", name, f'widths that output="{spec.output}" has')
    if spec.tie.equal_widths:
        follow = {v: widths[k] for v, k in _FOLLOWS_KEY.items() if k in widths and getattr(spec, v) is not None}
        widths = {**follow, **widths}
    if spec.ratios is None:
        return spec.replace(**widths)
    return spec.replace(ratios=dataclasses.replace(spec.ratios, **widths))


def width_at(spec: Attention, budget: Quantity, over: str | Sequence[str]) -> Quantity:
    """The width that makes the number of weights equal to a budget, all other widths kept; exact.

    With several names in `over` they are all given the same width. The result is a Fraction or int; a layer of sizes
    takes the integer below.

    Raises:
        InputError: when no positive width does it, or the budget does not depend on it.
    """
    names = (over,) if isinstance(over, str) else tuple(over)
    if not names:
        raise InputError("over", over, "at least one width")
    start = _smallest(spec)
    first, second, third = (parameter_count(with_widths(spec, dict.fromkeys(names, start + k))) for k in range(3))
    slope = second - first
    if not is_known(slope) or slope == 0 or third - second != slope:
        raise InputError("over", ", ".join(names), "widths that the number of weights is linear in, without symbols")
    fixed = first - start * slope
    if not budget > fixed:
        raise InputError("budget", budget, f"more than {fixed}, which the other matrices take")
    return ratio(budget - fixed, slope)


def _smallest(spec: Attention) -> int:
    """A width that is allowed: above the coordinates that carry positions."""
    return 1 + math.ceil(spec.position_width * (1 if spec.ratios is None else spec.n_heads))
