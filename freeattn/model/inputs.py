"""Inputs: the law of the token matrix X (n_tokens × d_model)."""

from __future__ import annotations

from dataclasses import dataclass

from freeattn.errors import InputError

__all__ = ["OrthogonalInput", "as_inputs"]


@dataclass(frozen=True)
class OrthogonalInput:
    """Orthogonal tokens: X Xᵀ / d_model = I, which needs n_tokens ≤ d_model.

    Queries, keys and values X W with iid N(0, 1/d_model) weights then have iid N(0, 1) entries (arXiv 2610.10033,
    section 2).
    """

    name: str = "orthogonal"


def as_inputs(value: object) -> OrthogonalInput:
    """Resolve the string "orthogonal"; an input value passes through."""
    if isinstance(value, OrthogonalInput):
        return value
    if isinstance(value, str) and value == "orthogonal":
        return OrthogonalInput()
    raise InputError("inputs", value, '"orthogonal" (Gaussian and covariant inputs are not available yet)')
