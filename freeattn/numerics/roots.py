"""All roots of x(q) = x in doubles: eigenvalues of companion matrices, one matrix for each point."""

from __future__ import annotations

from typing import Any

import numpy as np
from flint import fmpq, fmpq_poly
from numpy.typing import NDArray

from freeattn.numerics.polynomials import shifted, to_doubles

__all__ = ["AllRoots"]

Complex = NDArray[np.complex128]


class AllRoots:
    """Roots δ = q − origin of c·∏ f_i(q)^{e_i} = x.

    They are the roots of top(δ) − x·bottom(δ). The coefficients of both are exact and rounded once, so the roots are as
    good as eigenvalues in doubles are: starts for Newton's method.
    """

    def __init__(self, constant: fmpq, factors: Any, origin: fmpq) -> None:
        top, bottom = fmpq_poly([constant]), fmpq_poly([1])
        for polynomial, power in factors:
            part = shifted(polynomial, origin) ** abs(power)
            top, bottom = (top * part, bottom) if power > 0 else (top, bottom * part)
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
        matrices[:, np.arange(1, degree), np.arange(degree - 1)] = 1
        matrices[found, :, -1] = last[found]
        roots: Complex = np.linalg.eigvals(matrices).astype(complex)
        roots[~found] = np.nan
        return roots


def _padded(coefficients: NDArray[np.float64], size: int) -> NDArray[np.float64]:
    return np.concatenate([coefficients, np.zeros(size - coefficients.size)])
