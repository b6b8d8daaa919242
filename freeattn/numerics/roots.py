"""All roots of x(q) = x in doubles: eigenvalues of companion matrices, one matrix for each point."""

from __future__ import annotations

import numpy as np
from flint import fmpq
from numpy.typing import NDArray

from freeattn.numerics.compile import Factors, expanded
from freeattn.numerics.polynomials import shifted, to_doubles

__all__ = ["AllRoots"]

Complex = NDArray[np.complex128]


class AllRoots:
    """Roots δ = q − origin of c·∏ f_i(q)^{e_i} = x.

    They are the roots of top(δ) − x·bottom(δ). The coefficients of both are exact and rounded once, so the roots are as
    good as eigenvalues in doubles are: starts for Newton's method. The companion matrices have the highest coefficients
    on top: graded downwards, as the QR method wants it, they keep roots of order one beside others of any size.
    """

    def __init__(self, constant: fmpq, factors: Factors, origin: fmpq) -> None:
        top, bottom = expanded(tuple((shifted(polynomial, origin), power) for polynomial, power in factors))
        top = constant * top
        size = max(top.degree(), bottom.degree()) + 1
        self._top, self._bottom = (_padded(to_doubles(p), size) for p in (top, bottom))

    def __call__(self, x: Complex) -> Complex:
        """The roots at each x, points × degree; NaN where the polynomial has numbers that doubles do not hold."""
        with np.errstate(all="ignore"):
            coefficients = self._top - x[:, None] * self._bottom
            last = -coefficients[:, :-1] / coefficients[:, -1:]
        found = np.isfinite(last).all(axis=1)
        degree = last.shape[1]
        matrices = np.zeros((x.size, degree, degree), dtype=complex)
        matrices[:, np.arange(degree - 1), np.arange(1, degree)] = 1
        matrices[found, :, 0] = last[found, ::-1]
        roots: Complex = np.linalg.eigvals(matrices).astype(complex)
        roots[~found] = np.nan
        return roots


def _padded(coefficients: NDArray[np.float64], size: int) -> NDArray[np.float64]:
    return np.concatenate([coefficients, np.zeros(size - coefficients.size)])
