"""Arrays of balls: a midpoint and a radius for every entry, with all rounding of doubles inside the radius.

A matrix product of n terms in doubles, summed in any order, is off by at most γ_n|A|·|B| entry by entry, with
γ_n = nu/(1 − nu) for real numbers and less than three times γ_{n+1} for complex ones (u = 2⁻⁵³; Higham, Accuracy and
Stability, section 3). `slack(n)` is more than four times as much, so that it also covers the rounding of moduli, of the
radii themselves and of the tables. Terms that are zero do not count.
Products that underflow are covered by a tiny absolute term. A value that is not finite makes every comparison fail.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = ["TINY", "Ball", "about", "negative", "positive_definite", "product", "slack", "total"]

Numbers = NDArray[Any]
Real = NDArray[np.float64]

_UNIT = 2.0**-52
TINY = 1e-290  # of every product: more than what underflow loses


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
    return Ball(values, np.abs(values) * (2 * _UNIT) + TINY)


def negative(ball: Ball) -> Ball:
    """The ball of −x."""
    return Ball(-ball.middle, ball.radius)


def total(left: Ball, right: Ball) -> Ball:
    """The sum."""
    middle = left.middle + right.middle
    return Ball(middle, (left.radius + right.radius + slack(1) * np.abs(middle)) * (1 + slack(1)))


def product(left: Ball, right: Ball) -> Ball:
    """The matrix product, over the two last axes."""
    terms = slack(left.middle.shape[-1])
    a, b = np.abs(left.middle), np.abs(right.middle)
    radius = a @ (right.radius + terms * b) + left.radius @ (b + right.radius)
    return Ball(left.middle @ right.middle, radius * (1 + terms) + TINY)


def positive_definite(matrices: Ball) -> bool:
    """Whether every real symmetric matrix in the ball, or balls of a stack, is positive definite, proved.

    X N Xᵀ is near 1 for X = L⁻¹, N ≈ L Lᵀ. When all row sums of |1 − X N Xᵀ| are below 1, X N Xᵀ is positive definite
    and X is regular, so N is positive definite too; what is not finite fails this comparison. The product
    of three matrices is off by twice the rounding of one.
    """
    middle, radius = matrices
    diagonal = np.einsum("...pp->...p", middle)
    if not (diagonal > 0).all():
        return False
    scale = 1 / np.sqrt(diagonal)
    try:
        turn = np.linalg.inv(np.linalg.cholesky(scale[..., :, None] * middle * scale[..., None, :]))
    except np.linalg.LinAlgError:
        return False
    turn *= scale[..., None, :]
    back, size, terms = np.swapaxes(turn, -1, -2), np.abs(turn), slack(middle.shape[-1])
    bound = size @ (radius + 2 * terms * np.abs(middle) + TINY) @ np.swapaxes(size, -1, -2)
    defect = np.abs(np.eye(middle.shape[-1]) - turn @ middle @ back).sum(axis=-1) + bound.sum(axis=-1)
    return bool((defect * (1 + terms) + terms < 1).all())
