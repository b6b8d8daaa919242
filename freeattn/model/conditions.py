"""What symbols leave open: the quantities that a law depends on, and the conditions that numbers would decide."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from freeattn.model.quantities import Quantity, is_symbolic, ratio
from freeattn.model.sizes import key_widths
from freeattn.model.ties import KeyValueCorrelation

__all__ = ["law_quantities", "open_conditions"]


def law_quantities(spec: Any) -> Iterator[Quantity]:
    """Every quantity of an `Attention` that its law depends on."""
    yield from (spec.gamma_key, spec.n_heads, spec.n_kv_heads, spec.beta, spec.value_scale, spec.output_scale)
    yield from (spec.gamma_value, spec.gamma_out, spec.position_width, spec.residual)
    if spec.inputs.max_tokens_per_width is None:
        yield spec.tokens_per_width
    if isinstance(spec.tie.value, KeyValueCorrelation):
        yield spec.tie.value.rho
    for latent in (spec.latent, spec.query_latent):
        if latent is not None:
            yield latent.rank if spec.ratios else ratio(latent.rank, spec.n_tokens)
    for family in spec.heads or ():
        yield from (family.count, family.beta, ratio(family.d_key, spec.n_tokens))
        if spec.has_values:
            yield ratio(family.d_value, spec.n_tokens)


def open_conditions(spec: Any) -> tuple[str, ...]:
    """Conditions that the theory needs and that symbols leave undecided."""
    conditions = {
        "n_tokens ≤ d_model (orthogonal input)":
            spec.inputs.max_tokens_per_width is not None and is_symbolic(spec.tokens_per_width),
        f"d_key = d_value ({_tie_reason(spec)})": spec.tie.equal_widths and _unequal_widths(spec),
        f"d_out = d_model ({_square_reason(spec)})":
            bool(_square_reason(spec)) and _unequal_ends(spec),
        "-1 < rho < 1": isinstance(spec.tie.value, KeyValueCorrelation) and is_symbolic(spec.tie.value.rho),
        "n_heads and n_kv_heads are positive integers and n_kv_heads divides n_heads":
            is_symbolic(spec.n_heads) or is_symbolic(spec.n_kv_heads),
        "position_width < d_key": any(is_symbolic(ratio(spec.position_width, width)) for width in _widths(spec)),
        "beta > 0": any(is_symbolic(beta) for beta in (spec.beta, *(family.beta for family in spec.heads or ()))),
        "residual > 0": is_symbolic(spec.residual),
    }
    return tuple(condition for condition, is_open in conditions.items() if is_open)


def _tie_reason(spec: Any) -> str:
    if spec.tie.value == "none":
        return "the output map is tied to the keys"
    return "keys and values are tied" if spec.tie.value == "key" else "keys and values are correlated"


def _square_reason(spec: Any) -> str:
    if spec.tie.output == "key":
        return "the output map is tied to the keys"
    return "residual connection" if spec.residual is not None else ""


def _unequal_widths(spec: Any) -> bool:
    """In ratios, γ_V ≠ γ_K where symbols hide whether they are equal."""
    if spec.ratios:
        return spec.gamma_value is not None and bool(spec.gamma_value != spec.gamma_key)
    return any(family.d_key != family.d_value for family in spec.heads or (spec,))


def _unequal_ends(spec: Any) -> bool:
    return bool(spec.gamma_out * spec.tokens_per_width != 1 if spec.ratios else spec.d_out != spec.d_model)


def _widths(spec: Any) -> tuple[Quantity, ...]:
    return key_widths(spec) if spec.position_width != 0 else ()
