"""Polynomials that are homogeneous in θ₁ and θ₂, from their values at rational points."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import sympy as sp
from flint import fmpq, fmpq_mat

from freeattn.theory.symbols import THETA_1, THETA_2
from freeattn.theory.weights import as_fmpq

__all__ = ["homogeneous_moments"]


def homogeneous_moments(
    moments_at: Callable[[sp.Integer], Sequence[sp.Rational]], order: int
) -> tuple[sp.Expr, ...]:
    """m_1 … m_order, m_k homogeneous of degree k in θ₁ and θ₂, from their values at θ₁ = 1, θ₂ = 1, 2, …, order + 1."""
    points = range(1, order + 2)
    values = [moments_at(sp.Integer(point)) for point in points]
    powers = fmpq_mat(order + 1, order + 1, [fmpq(point**i) for point in points for i in range(order + 1)])
    table = powers.solve(fmpq_mat(order + 1, order, [as_fmpq(value) for row in values for value in row]))
    return tuple(
        sp.Add(*(
            sp.Rational(int(table[i, k - 1].p), int(table[i, k - 1].q)) * THETA_1 ** (k - i) * THETA_2**i
            for i in range(k + 1)
        ))
        for k in range(1, order + 1)
    )
