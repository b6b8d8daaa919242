"""Fields of a layer that take several options together, or a list: inputs, ties, latents, unequal heads."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

import freeattn
from freeattn.errors import InputError
from freeattn.model.written_numbers import exact_number, exact_numbers

__all__ = ["COMPOUND", "composed_fields", "option_of"]

_LATENTS = ("latent", "query_latent")
_LATENT_PARTS = ("rank", "per_head", "normalized")
COMPOUND = (
    "inputs", "feature_eigenvalues", "feature_weights", "tie", "key_value_correlation", "heads",
    *(f"{latent}_{part}" for latent in _LATENTS for part in _LATENT_PARTS),
)
_HEADS = "families COUNT:D_KEY[:D_VALUE[:BETA]] between commas, such as 8:64:64,4:128:64"
_OPTIONS = {"eigenvalues": "feature_eigenvalues", "weights": "feature_weights", "rho": "key_value_correlation"}


def composed_fields(typed: Mapping[str, str], latents: Mapping[str, Any]) -> dict[str, Any]:
    """The fields that the given options of `COMPOUND` make up.

    Args:
        typed: the texts of the options that were given.
        latents: the latents of the layer that the options change, by field.

    Raises:
        InputError: for texts that cannot be read, and options that contradict each other.
    """
    parts = {"inputs": _inputs(typed), "tie": _tie(typed)}
    fields = {name: value for name, value in parts.items() if value is not None}
    for name in _LATENTS:
        if any(f"{name}_{part}" in typed for part in _LATENT_PARTS):
            fields[name] = _latent(name, typed, latents.get(name))
    if "heads" in typed:
        fields["heads"] = _heads(typed["heads"])
    return fields


def option_of(field: str) -> tuple[str, str]:
    """The option that sets a field of the model, and what part of it is meant: "heads.beta" is part beta of heads."""
    name, _, part = field.partition(".")
    if name in _LATENTS and part:
        return f"{name}_{part}", ""
    return _OPTIONS.get(field, name), part


def _inputs(typed: Mapping[str, str]) -> Any:
    if "feature_eigenvalues" not in typed:
        if "feature_weights" in typed:
            raise InputError("feature_weights", typed["feature_weights"], "nothing without --feature-eigenvalues")
        return typed.get("inputs")
    if "inputs" in typed:
        raise InputError("inputs", typed["inputs"], "nothing next to --feature-eigenvalues: that is Gaussian input")
    lists: dict[str, Any] = {  # any rational numbers: made exact there
        name: exact_numbers(f"feature_{name}", typed[f"feature_{name}"])
        for name in ("eigenvalues", "weights") if f"feature_{name}" in typed
    }
    return freeattn.FeatureCovariance(**lists)


def _tie(typed: Mapping[str, str]) -> Any:
    if "key_value_correlation" not in typed:
        return typed.get("tie")
    ties = {None: "none", "none": "none", "output-key": "key"}
    if typed.get("tie") not in ties:
        raise InputError("tie", typed["tie"], "none or output-key next to --key-value-correlation")
    rho = exact_number("key_value_correlation", typed["key_value_correlation"])
    return freeattn.Ties(value=freeattn.KeyValueCorrelation(rho), output=ties[typed.get("tie")])


def _latent(name: str, typed: Mapping[str, str], latent: Any) -> Any:
    rank = typed.get(f"{name}_rank")
    if rank == "none":
        latent = None
    elif rank is not None:
        number = exact_number(f"{name}_rank", rank)
        try:
            latent = freeattn.Latent(number) if latent is None else dataclasses.replace(latent, rank=number)
        except InputError as error:
            raise InputError(f"{name}_rank", rank, error.allowed) from None
    changes = {"per_head": {"shared": False}, "normalized": {"normalized": True}}
    for part, change in changes.items():
        if f"{name}_{part}" in typed:
            if latent is None:
                raise InputError(f"{name}_{part}", "on", f"nothing without a latent; --{name}_rank".replace("_", "-"))
            latent = dataclasses.replace(latent, **change)
    return latent


def _heads(text: str) -> tuple[Any, ...]:
    return tuple(_family(text, part.split(":")) for part in text.split(","))


def _family(text: str, parts: list[str]) -> Any:
    if not 2 <= len(parts) <= 4:
        raise InputError("heads", text, _HEADS)
    try:
        return freeattn.Heads(*(exact_number("heads", part) if part.strip() else None for part in parts))
    except InputError as error:
        if error.field == "heads":
            raise InputError("heads", text, _HEADS) from None
        raise InputError("heads", text, f"{_HEADS}, with {error.field} {error.allowed}") from None
