"""The Stieltjes transform beside a hard edge at 0, where doubles no longer tell the roots of the equation apart.

For a law on one side of 0 with ρ ~ |x|^{1/k − 1} there is f, analytic and real at 0, with

    m(z) = (−z)^{1/k − 1} · f((−z)^{1/(2k)}),      −π ≤ arg(−z) ≤ 0 in the upper half-plane, support above 0,

and the mirror image m(z) → −m(−z) for support below 0. The equation loses as many digits as |z|^{1/k} is small, f does
not: it is fitted where the equation is accurate still, with its errors as weights.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = ["HardEdge", "fitted"]

Real = NDArray[np.float64]
Complex = NDArray[np.complex128]

_DEGREE, _POINTS = 6, 24
_LEAST, _LARGEST = 1e-3, (0.05, 0.02, 0.01)  # of |z|^{1/(2k)} over the size of the law: where f is fitted
_MISFIT = 1e-10  # of f at the fitted points: beyond, the law has other scales so near 0


class HardEdge(NamedTuple):
    """f as a polynomial in (t/scale)^{1/(2k)}, for |z| < radius; `above` says on which side of 0 the support is."""

    order: Fraction
    scale: float
    radius: float
    above: bool
    coefficients: Real

    def stieltjes(self, z: Complex) -> Complex:
        """m at points of the upper half-plane or the real axis other than 0."""
        angle = np.angle(z) - np.pi if self.above else np.angle(z)
        log = np.log(np.abs(z) / self.scale) + 1j * angle  # of −z or z
        k = float(self.order)
        sigma = np.exp(log / (2 * k))
        f = np.polynomial.polynomial.polyval(sigma, self.coefficients)
        m = np.exp(log * (1 / k - 1)) * f
        return np.asarray(m if self.above else -m)


def fitted(transform: Callable[[Real], Real], order: Fraction, size: float, above: bool) -> HardEdge | None:
    """The series beside a hard edge of the given order; None when the law is no such series there.

    Args:
        transform: m at real points on the empty side of 0; may be not-a-number.
        size: the scale of the law nearest to 0.
    """
    k = float(order)
    for largest in _LARGEST:
        sigma = np.geomspace(_LEAST, largest, _POINTS)
        t = size * sigma ** (2 * k)
        f = transform(-t if above else t) * (1 if above else -1) * sigma ** (2 * k - 2)
        powers, weights = (sigma[:, None] / largest) ** np.arange(_DEGREE + 1), sigma**2
        if not np.isfinite(f).all():
            continue
        found = np.linalg.lstsq(powers * weights[:, None], f * weights, rcond=None)[0]
        if np.max(np.abs(powers @ found - f)) <= _MISFIT * np.max(np.abs(f)):
            return HardEdge(order, size, float(t[0]), above, found / largest ** np.arange(_DEGREE + 1))
    return None
