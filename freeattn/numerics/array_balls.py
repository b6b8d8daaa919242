"""Arrays of balls: a midpoint and a radius for every entry, with all rounding of doubles inside the radius.

A matrix product of n terms in doubles, summed in any order, is off by at most γ_n|A|·|B| entry by entry, with
γ_n = nu/(1 − nu) for real numbers and less than three times γ_{n+1} for complex ones (u = 2⁻⁵³; Higham, Accuracy and
Stability, section 3). `slack(n)` is more than four times as much, so that it also covers the rounding of moduli, of the
radii themselves and of the tables.
Products that underflow are covered by a tiny absolute term. A value that is not finite makes every comparison fail.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = ["Ball", "about", "combination", "positive_definite", "product", "slack"]

Numbers = NDArray[Any]
Real = NDArray[np.float64]

_UNIT = 2.0**-52
_TINY = 1e-290  # of every product: more than what underflow loses


class Ball(NamedTuple):
    """Entries within `radius` of `middle`."""

    middle: Numbers
    radius: Real

    @property
    def size(self) -> Real:
        """A bound of the modulus."""
        return (np.abs(self.middle) + self.radius) * (1 + slack(1))


def slack(terms: int) -> float:
    """Relative rounding of sums of that many products."""
    return 8.0 * (terms + 8) * _UNIT


def about(values: Numbers) -> Ball:
    """Numbers that these doubles are the rounded values of."""
    return Ball(values, np.abs(values) * (2 * _UNIT))


def product(left: Ball, right: Ball) -> Ball:
    """The matrix product."""
    terms = slack(left.middle.shape[-1])
    a, b = np.abs(left.middle), np.abs(right.middle)
    radius = a @ (right.radius + terms * b) + left.radius @ (b + right.radius)
    return Ball(left.middle @ right.middle, radius * (1 + terms) + _TINY)


def combination(coefficients: Real, values: Ball) -> Ball:
    """Coefficients (sums × entries), rounded ones, times a vector of balls or columns of them."""
    terms, size = slack(coefficients.shape[1]), np.abs(coefficients)
    radius = size @ (values.radius + terms * np.abs(values.middle))
    return Ball(coefficients @ values.middle, radius * (1 + terms) + _TINY)


def positive_definite(matrix: Ball) -> bool:
    """Whether every real symmetric matrix in the ball is positive definite, proved.

    X N Xᵀ is near 1 for X = L⁻¹, N ≈ L Lᵀ. When all row sums of |1 − X N Xᵀ| are below 1, X N Xᵀ is positive definite
    and X is regular, so N is positive definite too.
    """
    diagonal = np.diagonal(matrix.middle)
    if not (np.isfinite(matrix.middle).all() and np.isfinite(matrix.radius).all() and (diagonal > 0).all()):
        return False
    scale = 1 / np.sqrt(diagonal)
    try:
        lower = np.linalg.cholesky(scale[:, None] * matrix.middle * scale)
        turn = np.linalg.inv(lower) * scale
    except np.linalg.LinAlgError:
        return False
    exact = Ball(turn, np.zeros_like(turn))
    near = product(product(exact, matrix), Ball(turn.T, exact.radius))
    defect = (np.abs(np.eye(len(turn)) - near.middle) + near.radius).sum(axis=1)
    return bool((defect * (1 + slack(len(turn))) + slack(1) < 1).all())
