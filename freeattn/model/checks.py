"""What a specification must satisfy, field by field, and the values that fields take when they are not given.

`resolved` takes the fields as they were given and returns them checked, exact and complete. Sizes are checked in
`freeattn.model.sizes`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

from freeattn.errors import InputError
from freeattn.model.heads import as_heads
from freeattn.model.inputs import as_inputs
from freeattn.model.latent import as_latent
from freeattn.model.quantities import as_nonnegative, as_positive, is_infinite, is_known, ratio
from freeattn.model.ratios import Ratios
from freeattn.model.scores import as_scores
from freeattn.model.sizes import check_ratios, check_sizes, key_widths
from freeattn.model.ties import as_ties

__all__ = ["OUTPUTS", "resolved"]

OUTPUTS = ("mha", "values", "attention", "head-sum")


def resolved(given: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of an `Attention`, checked and complete.

    Raises:
        InputError: for any value that is not allowed.
        NotCoveredError: for ties to the queries.
    """
    layer = SimpleNamespace(**given)
    _check_words(layer)
    _check_betas(layer)
    _check_absent_matrices(layer)
    if layer.ratios is None:
        check_sizes(layer)
    elif isinstance(layer.ratios, Ratios):
        check_ratios(layer)
    else:
        raise InputError("ratios", layer.ratios, "a Ratios value; use Attention.from_ratios")
    layer.scores = layer.scores.at_tokens(layer.n_tokens)
    _check_sharing(layer)
    _check_latents(layer)
    _check_position(layer)
    return vars(layer)


def _check_words(layer: SimpleNamespace) -> None:
    layer.tie = as_ties(layer.tie)
    layer.inputs = as_inputs(layer.inputs)
    layer.scores = as_scores(layer.scores)
    layer.heads = as_heads(layer.heads)
    layer.latent = as_latent("latent", layer.latent)
    layer.query_latent = as_latent("query_latent", layer.query_latent)
    if layer.output not in OUTPUTS:
        raise InputError("output", layer.output, ", ".join(f'"{name}"' for name in OUTPUTS))
    for name in ("value_scale", "output_scale"):
        setattr(layer, name, as_positive(name, getattr(layer, name)))
    if layer.residual is not None:
        layer.residual = as_positive("residual", layer.residual, "a positive number, a symbol, or None")


def _check_betas(layer: SimpleNamespace) -> None:
    """β of the layer, and of each family of heads that has its own."""
    layer.beta = _beta("beta", layer.beta, layer.scores.max_beta)
    for family in layer.heads or ():
        if family.beta is not None:
            _beta("heads.beta", family.beta, layer.scores.max_beta)


def _beta(field: str, given: Any, limit: float) -> Any:
    allowed = "a positive number or a symbol"
    if math.isfinite(limit):
        allowed = f"a number above 0 and at most {limit:g} (beyond it e^(beta^2) is not finite), or a symbol"
    value = as_positive(field, given, allowed)
    if is_known(value) and value > limit:
        raise InputError(field, given, allowed)
    return value


def _check_absent_matrices(layer: SimpleNamespace) -> None:
    """Nothing is said about a matrix that the output does not contain."""
    if layer.output not in ("mha", "values") and layer.value_scale != 1:
        raise InputError("value_scale", layer.value_scale, f'1, because output="{layer.output}" has no values')
    if layer.output == "mha":
        return
    if layer.output_scale != 1:
        raise InputError("output_scale", layer.output_scale, f'1, because output="{layer.output}" has no W^O')
    if layer.tie.output != "none":
        allowed = f'a tie of values alone, because output="{layer.output}" has no W^O'
        raise InputError("tie", layer.tie.shorthand, allowed)
    if layer.residual is not None:
        allowed = f'nothing, because output="{layer.output}" is not added to the tokens; output="mha" is'
        raise InputError("residual", layer.residual, allowed)


def _check_sharing(layer: SimpleNamespace) -> None:
    heads, kv_heads = layer.n_heads, layer.n_kv_heads
    if is_infinite(heads):
        if not is_infinite(kv_heads):
            raise InputError("n_kv_heads", kv_heads, "nothing when n_heads is infinite")
    elif is_known(heads) and is_known(kv_heads) and heads % kv_heads:
        raise InputError("n_kv_heads", kv_heads, f"a divisor of n_heads = {heads}")


def _check_latents(layer: SimpleNamespace) -> None:
    if layer.ratios is not None:
        return
    for name in ("latent", "query_latent"):
        latent = getattr(layer, name)
        if latent is not None and is_known(latent.rank) and not isinstance(latent.rank, int):
            allowed = "a positive integer or a symbol (rank/n_tokens only in a specification by ratios)"
            raise InputError(f"{name}.rank", latent.rank, allowed)


def _check_position(layer: SimpleNamespace) -> None:
    field, given = "position_width", layer.position_width
    width = layer.position_width = as_nonnegative(field, given)
    if layer.ratios is None and is_known(width) and not isinstance(width, int):
        raise InputError(field, given, "an integer of at least 0 or a symbol")
    if width == 0:
        return
    if layer.latent is None:
        allowed = "0 without a latent: every coordinate of a key then comes straight from the tokens"
        raise InputError(field, given, allowed)
    if is_infinite(layer.n_heads):
        raise InputError(field, given, "0 when n_heads is infinite: the width of each head is then none of the tokens")
    for d_key in key_widths(layer):
        part = ratio(width, d_key)
        if is_known(part) and part >= 1:
            unit = "" if layer.ratios is None else " (in units of tokens)"
            raise InputError(field, given, f"less than d_key = {d_key}{unit}, of which it is a part")
