"""A rational curve to any number of digits: Newton's method from a double, its precision doubling from step to step."""

from __future__ import annotations

import cmath
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from freeattn.errors import BranchError, ConvergenceError, InputError
from freeattn.model.precision import own_context
from freeattn.numerics.curve import ExactCurve
from freeattn.numerics.edges import Support
from freeattn.numerics.polynomials import to_context
from freeattn.numerics.precise_integrals import PreciseIntegrals, as_number
from freeattn.numerics.support import Band, Edge, Gap
from freeattn.numerics.wide import Wide, bits_of, difference, divided, from_number, plus, to_number

__all__ = ["PreciseCurve", "as_number"]

_GUARD_DIGITS = 15
_START_BITS = 128  # the first step from a double is good to two doubles
_SPARE_BITS = 24
_STEPS = 60
_LOG_BITS = 20  # a residual e below 2^-20 stands for log(1 + e): Newton's method squares what is left
_NEAR_EDGE = 1e-8  # relative distance to an edge below which Newton starts from the square-root expansion there
_NEAR_START = 10  # bits: Newton may not leave its start by more than this share, or it would be at another root
_CLOSE_DIGITS = 25  # this near an end of a band it takes the ends to all digits to tell on which side a point lies
_ONE = Wide(1, 0, 0)


class PreciseCurve:
    """m and integrals of one curve at a fixed number of digits.

    Args:
        curve: the curve with parameters to these digits.
        known: its support to 40 digits.
        support: gives its support to these digits; asked only where it matters.
        start: z ↦ q from doubles on the physical branch, at real z the limit from the upper half-plane of q.
    """

    def __init__(
        self, curve: ExactCurve, known: Support, support: Callable[[], Support], digits: int,
        start: Callable[[complex], Wide],
    ) -> None:
        self._curve, self._known, self._support, self._start = curve, known, support, start
        self.context = own_context(digits + _GUARD_DIGITS)
        self._bits, self._wanted = bits_of(digits + _GUARD_DIGITS), bits_of(digits)
        self._close = self.context.mpf(10) ** (-_CLOSE_DIGITS)
        self._integrals: PreciseIntegrals | None = None

    def stieltjes(self, z: Any) -> Any:
        """m(z); at real z the boundary value from the upper half-plane."""
        number = as_number(self.context, z)
        if self.context.im(number) == 0:
            return self._on_axis(self.context.re(number))
        double = complex(number)
        if double.imag == 0:
            raise InputError("z", str(z), "a real z, or an imaginary part that a double can hold")
        x = from_number(number, self._bits)
        lower = x if x.imag < 0 else Wide(x.real, -x.imag, x.exponent)
        m = self._stieltjes(self._newton(self._start(complex(double.real, -abs(double.imag))), lower))
        return m if x.imag < 0 else self.context.conj(m)

    def density(self, x: Any) -> Any:
        """ρ(x) = Im m(x + i0)/π, 0 outside the bands."""
        return self.context.im(self._on_axis(as_number(self.context, x))) / self.context.pi

    def _stieltjes(self, q: Wide) -> Any:
        return to_number(self._curve.wide_stieltjes(q, self._bits), self.context)

    def _on_axis(self, x: Any) -> Any:
        bands, gaps = self._support() if self._at_an_end(x) else self._known
        for band in bands:
            if band.left.exponent < 0 and x == band.left.x:
                raise InputError("z", float(x), "a point off the hard edge, where the Stieltjes transform is infinite")
            if band.left.x < x < band.right.x:
                return self.context.conj(self._stieltjes(self._in_band(band, x)))
        q = self._in_gap(next(gap for gap in gaps if gap.low <= x <= gap.high), x)
        return to_context(self._curve.stieltjes_at_infinity, self.context) if q is None else self._stieltjes(q)

    def _at_an_end(self, x: Any) -> bool:
        ends = (edge.x for band in self._known[0] for edge in (band.left, band.right))
        return any(abs(x - end) <= self._close * abs(end) for end in ends)

    def _in_band(self, band: Band, x: Any) -> Wide:
        target = from_number(x, self._bits)
        for edge in (band.left, band.right):
            if _near(x, edge.x):
                start = self._expansion(edge, x)
                q = self._newton(Wide(start.real, abs(start.imag), start.exponent), target)
                break
        else:
            q = self._newton(self._start(complex(x)), target)
        if not q.imag > 0:
            raise BranchError("Newton left the physical branch inside a band")
        return q

    def _in_gap(self, gap: Gap, x: Any) -> Wide | None:
        """q at real x in a gap; None for q = ∞."""
        for end, q in ((gap.low, gap.q_low), (gap.high, gap.q_high)):
            if x == end:
                return None if self.context.isinf(q) else from_number(q, self._bits)
        edges = {edge.x: edge for band in self._support()[0] for edge in (band.left, band.right)} if (
            _near(x, gap.low) or _near(x, gap.high)
        ) else {}
        target = from_number(x, self._bits)
        for end, other in ((gap.low, gap.q_high), (gap.high, gap.q_low)):
            if _near(x, end) and end in edges:
                start, q = self._expansion(edges[end], x), from_number(edges[end].q, self._bits)
                way = difference(start, q, self._bits)
                towards = 1 if other > edges[end].q else -1
                return self._newton(plus(q, Wide(towards * abs(way.real), 0, way.exponent), self._bits), target)
        return self._newton(self._start(complex(x)), target)

    def _expansion(self, edge: Edge, x: Any) -> Wide:
        """q_c + √(2(x − x_c)/x''), from x'' = x·(x'/x)' by a central difference."""
        context, bits = self.context, self._bits
        step = from_number(abs(edge.q) * context.mpf(10) ** (-context.dps // 3), bits)
        q = from_number(edge.q, bits)
        above, below = (
            to_number(self._curve.wide_point.log_slope(point, bits), context)
            for point in (plus(q, step, bits), difference(q, step, bits))
        )
        curvature = (above - below) / (2 * to_number(step, context))
        root = context.sqrt(context.mpc(2 * (x - edge.x) / (edge.x * curvature)))
        return plus(q, from_number(root, bits), bits)

    def _newton(self, start: Wide, x: Wide) -> Wide:
        """Newton for log x(q) = log x; the last step starts from a residual below the tolerance, taken at full precision."""
        q, bits, size = start, min(_START_BITS, self._bits), 0
        for _ in range(_STEPS):
            excess = difference(divided(x, self._curve.wide_point(q, bits), bits), _ONE, bits)  # x/x(q) − 1
            before, size = size, excess.top
            done = bits == self._bits and (size <= -self._wanted - _SPARE_BITS or before <= size <= -self._wanted)
            log = excess if size < -_LOG_BITS else from_number(cmath.log(1 + complex(excess)), bits)
            slope = self._curve.wide_point.log_slope(q, min(max(-size, 0), bits) + _SPARE_BITS)
            bits = min(2 * bits, self._bits)
            q = plus(q, divided(log, slope, bits), bits)
            if done:
                if difference(q, start, bits).top > start.top - _NEAR_START:
                    raise BranchError(f"Newton at {complex(x)} moved from its start to another root")
                return q
        raise ConvergenceError(
            f"Newton at {complex(x)}", 2.0**size, 2.0**-self._wanted, "ask for more digits"
        )

    def integrate(
        self, function: Callable[[Any], Any], breaks: Sequence[NDArray[np.float64]], upper: Any = None
    ) -> Any:
        """∫ f ρ dx over the bands below `upper`."""
        if self._integrals is None:
            tolerance = self.context.ldexp(1, -self._wanted)
            self._integrals = PreciseIntegrals(self.context, self._support()[0], self.density, tolerance)
        return self._integrals.integrate(function, breaks, upper)


def _near(x: Any, end: Any) -> bool:
    return bool(end != 0 and abs(x - end) < _NEAR_EDGE * abs(end))
