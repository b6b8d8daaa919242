"""Sizes and ratios of a specification: what is needed, what follows from what, and what must be equal."""

from __future__ import annotations

import dataclasses
import math
from types import SimpleNamespace
from typing import Any

from freeattn.errors import InputError
from freeattn.model.heads import Heads
from freeattn.model.quantities import Quantity, as_size, is_known, ratio

__all__ = ["check_ratios", "check_sizes", "key_widths"]

_ORDER = ("n_tokens", "d_model", "n_heads", "d_key", "d_value", "d_out", "n_kv_heads")
_FROM_HEADS = ("d_key", "d_value")
_HAVE_VALUES = ("mha", "values")


def key_widths(layer: Any) -> tuple[Quantity, ...]:
    """The key width of each family of heads; in a specification by ratios in units of tokens."""
    if layer.heads is not None:
        return tuple(family.d_key for family in layer.heads)
    return (layer.d_key if layer.ratios is None else ratio(layer.ratios.gamma_key, layer.n_heads),)


# Sizes ----------------------------------------------------------------------------------------------------


def check_sizes(layer: SimpleNamespace) -> None:
    """Check and complete the sizes of a layer, in place."""
    if layer.heads is not None:
        _check_heads(layer)
    defaults = _defaults(layer)
    needed = _needed(layer)
    missing = [name for name in _ORDER if name in needed - set(defaults) and getattr(layer, name) is None]
    if missing:
        raise InputError(missing[0], None, f"a positive integer or a symbol; missing: {', '.join(missing)}")
    for name in _ORDER:
        value = getattr(layer, name)
        value = defaults.get(name) if value is None else value
        if value is not None or name in needed:
            setattr(layer, name, as_size(name, value))
    if layer.tie.equal_widths and layer.heads is None:
        _check_equal("d_value", layer.d_value, "d_key", layer.d_key, f'tie="{layer.tie.shorthand}"')
    reason = _square_reason(layer)
    if reason:
        _check_equal("d_out", layer.d_out, "d_model", layer.d_model, reason)
    _check_tokens(layer)


def _defaults(layer: SimpleNamespace) -> dict[str, Any]:
    defaults = {"n_kv_heads": layer.n_heads}
    if layer.output == "mha":
        defaults["d_out"] = layer.d_model
    if layer.tie.equal_widths:
        defaults["d_value"] = layer.d_key
    return defaults


def _needed(layer: SimpleNamespace) -> set[str]:
    needed = {"n_tokens", "d_model", "n_heads", "d_key", "n_kv_heads"}
    needed |= {"d_value"} if layer.output in _HAVE_VALUES else set()
    needed |= {"d_out"} if layer.output == "mha" else set()
    return needed if layer.heads is None else needed - set(_FROM_HEADS)


def _check_heads(layer: SimpleNamespace) -> None:
    """Unequal heads bring their own widths and, with them, the number of heads."""
    for name in _FROM_HEADS:
        if getattr(layer, name) is not None:
            raise InputError(name, getattr(layer, name), f"nothing next to heads: each family has its own {name}")
    count = sum(family.count for family in layer.heads)
    for name in ("n_heads", "n_kv_heads"):
        given = getattr(layer, name)
        if given is not None and given != count:
            raise InputError(name, given, f"nothing next to heads, whose counts add up to {count}")
        setattr(layer, name, count)
    layer.heads = tuple(_family(layer, family) for family in layer.heads)


def _family(layer: SimpleNamespace, family: Heads) -> Heads:
    if layer.tie.equal_widths:
        if family.d_value is None:
            return dataclasses.replace(family, d_value=family.d_key)
        _check_equal("heads.d_value", family.d_value, "d_key", family.d_key, f'tie="{layer.tie.shorthand}"')
    if family.d_value is None and layer.output in _HAVE_VALUES:
        raise InputError("heads.d_value", None, f'a positive integer or a symbol for output="{layer.output}"')
    return family


def _check_equal(field: str, value: Quantity, other: str, needed: Quantity, reason: str) -> None:
    """Two sizes are equal, as far as symbols let one see."""
    if value != needed and is_known(ratio(value, needed)):
        raise InputError(field, value, f"equal to {other} = {needed} when {reason}")


def _square_reason(layer: SimpleNamespace) -> str:
    """Why d_out must be d_model; "" when it need not."""
    if layer.tie.output == "key":
        return f'tie="{layer.tie.shorthand}"'
    return "residual is given" if layer.residual is not None else ""


def _check_tokens(layer: SimpleNamespace) -> None:
    tokens_per_width, most = ratio(layer.n_tokens, layer.d_model), layer.inputs.max_tokens_per_width
    if most is not None and is_known(tokens_per_width) and tokens_per_width > most:
        raise InputError(
            "n_tokens", layer.n_tokens,
            f"at most d_model = {layer.d_model} for {layer.inputs.name} input: choose n_tokens up to "
            f'{layer.d_model}, or inputs="gaussian"',
        )


# Ratios ---------------------------------------------------------------------------------------------------


def check_ratios(layer: SimpleNamespace) -> None:
    """Check and complete the ratios of a layer without sizes, in place."""
    for name in ("n_tokens", "d_model", "d_key", "d_value", "d_out"):
        if getattr(layer, name) is not None:
            raise InputError(name, getattr(layer, name), "nothing in a specification by ratios; use spec.with_sizes")
    if layer.heads is not None:
        raise InputError("heads", layer.heads, "None in a specification by ratios: unequal heads need sizes")
    endless = layer.n_heads == math.inf
    layer.n_heads = math.inf if endless else as_size("n_heads", layer.n_heads)
    if layer.n_kv_heads is None or layer.n_kv_heads == math.inf:
        layer.n_kv_heads = layer.n_heads
    else:
        layer.n_kv_heads = as_size("n_kv_heads", layer.n_kv_heads)
    _follow_ties(layer)
    ratios = layer.ratios
    if layer.output in _HAVE_VALUES and ratios.gamma_value is None:
        raise InputError("gamma_value", None, f'a positive number or a symbol for output="{layer.output}"')
    if layer.output == "mha" and ratios.gamma_out is None:
        raise InputError("gamma_out", None, 'a positive number or a symbol for output="mha"')
    most = layer.inputs.max_tokens_per_width
    if most is not None and is_known(ratios.tokens_per_width) and ratios.tokens_per_width > most:
        allowed = f'at most {most} for {layer.inputs.name} input, or inputs="gaussian"'
        raise InputError("tokens_per_width", ratios.tokens_per_width, allowed)


def _follow_ties(layer: SimpleNamespace) -> None:
    """γ_V = γ_K for tied values, γ_O = d_model/n_tokens where the output must be as wide as the tokens."""
    if layer.tie.equal_widths:
        _follow(layer, "gamma_value", layer.ratios.gamma_key, "gamma_key", f'tie="{layer.tie.shorthand}"')
    reason = _square_reason(layer)
    if reason:
        _follow(layer, "gamma_out", ratio(1, layer.ratios.tokens_per_width), "1/tokens_per_width", reason)


def _follow(layer: SimpleNamespace, name: str, needed: Quantity, text: str, reason: str) -> None:
    value = getattr(layer.ratios, name)
    if value is None:
        layer.ratios = dataclasses.replace(layer.ratios, **{name: needed})
    elif value != needed and is_known(ratio(value, needed)):
        raise InputError(name, value, f"equal to {text} when {reason}")
