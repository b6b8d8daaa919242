"""Real points outside the bands: the physical q is real there, inside a known monotone interval."""

from __future__ import annotations

import numpy as np
from flint import fmpq
from numpy.typing import NDArray

from freeattn.errors import ConvergenceError
from freeattn.numerics.continuation import Tracker
from freeattn.numerics.curve import Chart, ExactCurve
from freeattn.numerics.edges import PhysicalTest
from freeattn.numerics.support import Gap

__all__ = ["physical_by_continuation", "solve_in_gap"]

Array = NDArray[np.float64]

_BISECTIONS = 60  # halvings of an angle interval of length at most π: to the last bit of a double
_POLISH = 6
_TOLERANCE = 1e-12  # relative residual in x; at x = 0 the root is the origin itself
_HEIGHT = 1e-9  # relative height above the real axis at which continuation decides whether a point is in a gap


def solve_in_gap(chart: Chart, gap: Gap, x: Array) -> Array:
    """δ at real x ≠ 0 in [gap.low, gap.high]: bisection in arctan q on the monotone interval, then Newton.

    Raises:
        ConvergenceError: when the residual stays above its tolerance.
    """
    low, high = (np.arctan(float(end)) for end in (gap.q_low, gap.q_high))
    a, b = np.full(x.shape, low), np.full(x.shape, high)
    with np.errstate(all="ignore"):
        for _ in range(_BISECTIONS):
            middle = (a + b) / 2
            below = chart.point(np.tan(middle) - chart.origin_double)[0] < x
            a, b = np.where(below, middle, a), np.where(below, b, middle)
        delta = np.tan((a + b) / 2) - chart.origin_double
        for _ in range(_POLISH):
            value, slope = chart.point(delta)
            step = np.where(value == 0, 0.0, (x / value - 1) / slope)
            delta = np.where(np.isfinite(step) & _inside(delta + step, low, high, chart), delta + step, delta)
        residual = np.abs(chart.point(delta)[0] - x) / np.maximum(np.abs(x), np.finfo(float).tiny)
    if not np.all(residual <= _TOLERANCE):
        raise ConvergenceError(
            "the real root outside the support", float(np.max(residual)), _TOLERANCE, "ask for digits=…"
        )
    return delta


def _inside(delta: Array, low: float, high: float, chart: Chart) -> NDArray[np.bool_]:
    angle = np.arctan(delta + chart.origin_double)
    slack = 1e-9
    result: NDArray[np.bool_] = (angle >= min(low, high) - slack) & (angle <= max(low, high) + slack)
    return result


def physical_by_continuation(curve: ExactCurve) -> PhysicalTest:
    """A test for laws without a local one: x(q) is outside the support and continuation from infinity ends at q."""
    chart = Chart(curve, fmpq(0))
    residue = int(curve.residue.p) / int(curve.residue.q)

    def test(q: fmpq) -> bool:
        x = curve.point_exactly(q)[0]
        value, target = int(x.p) / int(x.q), int(q.p) / int(q.q)
        height = _HEIGHT * max(abs(value), abs(residue))
        tracker = Tracker(chart, abs(value) + abs(residue), residue)
        found = complex(tracker.solve(np.array([value - 1j * height]))[0])
        slope = curve.point_exactly(q)[1]
        expected = height / abs(int(slope.p) / int(slope.q))
        return abs(found - target) <= 1e3 * expected + 1e-9 * abs(target)

    return test


