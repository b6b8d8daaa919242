"""The same layer at other numbers of tokens: every width in its ratio to n_tokens, heads and β as they are."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from typing import Any

from freeattn.errors import InputError
from freeattn.evidence.weights import check_sizes
from freeattn.model.attention import Attention

__all__ = ["scaled"]

_WIDTHS = ("d_model", "d_key", "d_value", "d_out", "position_width")
_LATENTS = ("latent", "query_latent")


def scaled(spec: Attention, n_tokens: int) -> Attention:
    """The layer with n_tokens tokens and all its ratios.

    Raises:
        InputError: when a width does not come out an integer; it names the step of n_tokens at which all do.
    """
    if spec.ratios is not None:
        return spec.with_sizes(n_tokens)
    check_sizes(spec)
    factor = Fraction(n_tokens, spec.n_tokens)
    for name, width in _widths(spec):
        if (width * factor).denominator != 1:
            step = math.lcm(*(Fraction(w, spec.n_tokens).denominator for _, w in _widths(spec)))
            allowed = f"a multiple of {step}, so that every width is an integer ({name} would be {width * factor})"
            raise InputError("sizes", n_tokens, allowed)

    def at(width: int | None) -> int | None:
        return None if width is None else int(width * factor)

    changes: dict[str, Any] = {name: getattr(spec, name) for name in _WIDTHS}
    if spec.heads is not None:
        changes["heads"] = tuple(replace(one, d_key=at(one.d_key), d_value=at(one.d_value)) for one in spec.heads)
        del changes["d_key"], changes["d_value"]
    sized = {name: at(width) for name, width in changes.items() if name != "heads"}
    latents = {name: getattr(spec, name) for name in _LATENTS if getattr(spec, name) is not None}
    ranks = {name: replace(latent, rank=at(latent.rank)) for name, latent in latents.items()}
    return spec.replace(**{**changes, **sized, **ranks, "n_tokens": n_tokens})


def _widths(spec: Attention) -> Iterator[tuple[str, int]]:
    """Every width of a layer with sizes, by the name of its field."""
    for name in _WIDTHS:
        if getattr(spec, name) is not None:
            yield name, getattr(spec, name)
    for family in spec.heads or ():
        yield "heads.d_key", family.d_key
        if family.d_value is not None:
            yield "heads.d_value", family.d_value
    for name in _LATENTS:
        if getattr(spec, name) is not None:
            yield f"{name}.rank", getattr(spec, name).rank
