"""Real points outside the bands: the physical q is real there, inside a known monotone interval."""

from __future__ import annotations

import math
from typing import Any

import mpmath
import numpy as np
from flint import fmpq
from numpy.typing import NDArray

from freeattn.errors import ConvergenceError
from freeattn.model.precision import own_context
from freeattn.numerics.compile import fraction_of
from freeattn.numerics.continuation import Tracker
from freeattn.numerics.curve import Chart, ExactCurve
from freeattn.numerics.edges import PhysicalTest
from freeattn.numerics.polynomials import to_context
from freeattn.numerics.support import Gap

__all__ = ["GapSolver", "physical_by_continuation"]

Array = NDArray[np.float64]

_TOLERANCE = 1e-12  # relative residual in x; at x = 0 the root is the origin itself
_ROUNDING = 1e-15  # a residual below this is rounding
_STEPS = 80  # at most; four Newton steps are typical, halvings of an interval come in where it is short
_END_DIGITS = 20  # rounded once to a double
_HEIGHT = 1e-9  # relative height above the real axis at which continuation decides whether a point is in a gap

# Nodes of a table, as shares of an interval: closer and closer to an end, down to the rounding of a double there, or to
# the smallest doubles where the end is the origin of the chart.
_SHARES = np.geomspace(1e-17, 0.5, 128)
_SMALL_SHARES = np.concatenate([np.geomspace(1e-300, 1e-18, 142), _SHARES])


class GapSolver:
    """δ at real x ≠ 0 in one gap: the physical q is real there, in a known interval on which x(q) is monotone.

    A table of x at points of the interval brackets the root; Newton's method for log x(δ) = log x, kept in the bracket
    by halvings, ends at it.
    """

    def __init__(self, chart: Chart, gap: Gap) -> None:
        self._chart = chart
        low, high = (self._end(end) for end in (gap.q_low, gap.q_high))
        nodes = np.concatenate([_towards(low, high), _towards(high, low)[::-1]])
        with np.errstate(all="ignore"):
            values = chart.point(nodes)[0]
        known = np.isfinite(values)
        self._nodes = np.concatenate([[low], nodes[known], [high]])
        inner = np.maximum.accumulate(values[known])  # next to an edge x is flat, up to rounding
        self._values = np.concatenate([[-np.inf], inner, [np.inf]])

    def _end(self, q: Any) -> float:
        """δ at an end of the interval; ±∞ for a pole of the parameter."""
        if mpmath.isinf(q):
            return float(q)
        return float(to_context(fraction_of(q) - self._chart.origin, own_context(_END_DIGITS)))

    def __call__(self, x: Array) -> Array:
        """δ at each x.

        Raises:
            ConvergenceError: when the residual stays above its tolerance.
        """
        place = np.clip(np.searchsorted(self._values, x), 1, self._nodes.size - 1)
        a, b = self._nodes[place - 1], self._nodes[place]
        delta = _between(a, b)
        residual = np.full(x.shape, np.inf)
        active = np.arange(x.size)
        for _ in range(_STEPS):
            here, target = delta[active], x[active]
            with np.errstate(all="ignore"):
                value, slope = self._chart.point(here)
                residual[active] = np.abs(value - target) / np.abs(target)
                moved = here + np.log(target / value) / slope
            below = value < target
            a[active], b[active] = np.where(below, here, a[active]), np.where(below, b[active], here)
            left, right = a[active], b[active]
            inside = (moved - left) * (moved - right) < 0
            moved = np.where(inside, moved, _between(left, right))
            go = (residual[active] > _ROUNDING) & (moved != here) & (moved != left) & (moved != right)
            delta[active[go]] = moved[go]
            active = active[go]
            if not active.size:
                break
        if not np.all(residual <= _TOLERANCE):
            raise ConvergenceError(
                "the real root outside the support", float(np.max(residual)), _TOLERANCE, "ask for digits=…"
            )
        return delta


def _towards(end: float, other: float) -> Array:
    """Points of an interval from one end to its middle; what is at infinity is taken as 1/δ."""
    shares = _SMALL_SHARES if end == 0 else _SHARES
    if math.isinf(end):
        return math.copysign(max(abs(other), 1.0), end) / shares
    reach = math.copysign(max(abs(end), 1.0), other) if math.isinf(other) else other - end
    return end + reach * shares


def _between(a: Array, b: Array) -> Array:
    """A point of each interval: the geometric mean where the ends are of one sign and far apart, else the middle."""
    small, large = np.minimum(np.abs(a), np.abs(b)), np.maximum(np.abs(a), np.abs(b))
    far = (a * b > 0) & (large > 4 * small) & np.isfinite(large)
    with np.errstate(all="ignore"):
        middle = np.where(np.isinf(a), 2 * b, np.where(np.isinf(b), 2 * a, (a + b) / 2))
        return np.where(far, np.sign(a + b) * np.sqrt(small) * np.sqrt(large), middle)


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


