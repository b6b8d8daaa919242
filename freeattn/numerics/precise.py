"""A rational curve to any number of digits: Newton's method from a double, its precision doubling from step to step."""

from __future__ import annotations

import cmath
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from flint import fmpq
from numpy.typing import NDArray

from freeattn.errors import BranchError, ConvergenceError, InputError
from freeattn.model.precision import new_context
from freeattn.numerics.curve import ExactCurve
from freeattn.numerics.edges import Support, zero_near
from freeattn.numerics.polynomials import to_context
from freeattn.numerics.precise_integrals import PreciseIntegrals, as_number
from freeattn.numerics.support import Band, Edge, Gap
from freeattn.numerics.wide import Wide, bits_of, difference, divided, from_number, plus, power_of_two, to_number

__all__ = ["Place", "PreciseCurve", "as_number"]

_GUARD_DIGITS = 15
_START_BITS = 128  # the first step from a double is good to two doubles
_SPARE_BITS = 24  # beyond what is asked for
_STEPS = 60
_LOG_BITS = 20  # a residual e below 2^-20 stands for log(1 + e): Newton's method squares what is left
_NEAR_EDGE = 1e-8  # relative distance to an edge below which Newton starts from the square-root expansion there
_NEAR_START = 10  # bits: Newton may not leave its start by more than this share, or it would be at another root
_CLOSE_DIGITS = 25  # this near an end of a band it takes the ends to all digits to tell on which side a point lies
_LOST_BITS = 60  # from here on the origin is taken to more digits
_ONE = Wide(1, 0, 0)


class Place(NamedTuple):
    """q = origin + δ: an origin at which x = 0 keeps small δ apart from it."""

    origin: fmpq
    delta: complex


class _Guess(NamedTuple):
    """A start of Newton's method; `size` is the power of two of its distance from the origin it was found about."""

    q: Wide
    size: int


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
        start: Callable[[complex], Place],
    ) -> None:
        self._curve, self._known, self._support, self._start = curve, known, support, start
        self.context = new_context(digits + _GUARD_DIGITS)
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
        m = self._newton(self._guess(double), lower, number)
        return m if x.imag < 0 else self.context.conj(m)

    def density(self, x: Any) -> Any:
        """ρ(x) = Im m(x + i0)/π, 0 outside the bands."""
        return self.context.im(self._on_axis(as_number(self.context, x))) / self.context.pi

    def _guess(self, z: complex) -> _Guess:
        """The place in doubles, its origin to as many digits as its distance from there is small."""
        origin, delta = self._start(z)
        way = from_number(delta, self._bits)
        if not origin:
            return _Guess(way, way.top)
        q = from_number(origin, self._bits)
        lost = max(q.top - way.top, 0)
        if lost > _LOST_BITS:
            digits = int((self._bits + lost) / bits_of(1)) + _GUARD_DIGITS
            q = from_number(zero_near(self._curve, q, digits), self._bits + lost)
        return _Guess(plus(q, way, self._bits + lost), way.top)

    def _on_axis(self, x: Any) -> Any:
        bands, gaps = self._support() if self._at_an_end(x) else self._known
        for band in bands:
            if band.left.exponent < 0 and x == band.left.x:
                raise InputError("z", float(x), "a point off the hard edge, where the Stieltjes transform is infinite")
            if band.left.x < x < band.right.x:
                return self.context.conj(self._in_band(band, x))
        return self._in_gap(next(gap for gap in gaps if gap.low <= x <= gap.high), x)

    def _at_an_end(self, x: Any) -> bool:
        ends = (edge.x for band in self._known[0] for edge in (band.left, band.right))
        return any(abs(x - end) <= self._close * abs(end) for end in ends)

    def _in_band(self, band: Band, x: Any) -> Any:
        target = from_number(x, self._bits)
        for edge in (band.left, band.right):
            if _near(x, edge.x):
                q = self._expansion(edge, x)
                m = self._newton(_Guess(Wide(q.real, abs(q.imag), q.exponent), q.top), target, x)
                break
        else:
            m = self._newton(self._guess(complex(x)), target, x)
        if not m.imag < 0:
            raise BranchError("Newton left the physical branch inside a band")
        return m

    def _in_gap(self, gap: Gap, x: Any) -> Any:
        for end, q in ((gap.low, gap.q_low), (gap.high, gap.q_high)):
            if x == end:
                return self._at_end(q)
        target = from_number(x, self._bits)
        if _near(x, gap.low) or _near(x, gap.high):
            edges = {edge.x: edge for band in self._support()[0] for edge in (band.left, band.right)}
            for end, other in ((gap.low, gap.q_high), (gap.high, gap.q_low)):
                if _near(x, end) and end in edges:
                    q = self._beside(edges[end], x, rising=other > edges[end].q)
                    return self._newton(_Guess(q, q.top), target, x)
        return self._newton(self._guess(complex(x)), target, x)

    def _at_end(self, q: Any) -> Any:
        if self.context.isinf(q):
            return to_context(self._curve.stieltjes_at_infinity, self.context)
        return to_number(self._curve.wide_stieltjes(from_number(q, self._bits), self._bits), self.context)

    def _beside(self, edge: Edge, x: Any, rising: bool) -> Wide:
        """The real q next to an edge, above or below that of the edge."""
        q = from_number(edge.q, self._bits)
        way = difference(self._expansion(edge, x), q, self._bits)
        return plus(q, Wide(abs(way.real) if rising else -abs(way.real), 0, way.exponent), self._bits)

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

    def _newton(self, start: _Guess, x: Wide, z: Any) -> Any:
        """m from Newton for log x(q) = log x; its last step starts from a residual below the tolerance.

        `z` is the point that was asked for, of which x is the conjugate or the same; errors name it.
        Next to a zero of x the value loses as many bits as q − origin is smaller than q: all is done with more.
        """
        q, lost = start.q, max(start.q.top - start.size, 0)
        full = self._bits + lost
        bits, size, wanted = min(_START_BITS + lost, full), 0, self._wanted
        for _ in range(_STEPS):
            factors = self._curve.wide_point.values(q, bits)
            value = self._curve.wide_point.product(factors, bits)
            excess = difference(divided(x, value, bits), _ONE, bits)  # x/x(q) − 1
            before, size = size, excess.top
            done = bits == full and (size <= -wanted - _SPARE_BITS or before <= size <= -wanted)
            slope = self._curve.wide_point.log_slope(q, min(max(-size, 0) + lost, bits) + _SPARE_BITS, factors)
            bits = min(2 * bits - lost, full)
            log = excess if size < -_LOG_BITS else from_number(cmath.log(1 + complex(excess)), bits)
            q = plus(q, divided(log, slope, bits), bits)
            if done:
                if difference(q, start.q, bits).top > start.size - _NEAR_START:
                    raise BranchError(f"Newton at {self._shown(z)} moved from its start to another root")
                return to_number(self._curve.wide_stieltjes(q, full), self.context)
        raise ConvergenceError(
            f"Newton at {self._shown(z)}", power_of_two(size), power_of_two(-wanted), "ask for more digits"
        )

    def _shown(self, z: Any) -> str:
        return str(self.context.nstr(z, 15))

    def integrate(
        self, function: Callable[[Any], Any], breaks: Sequence[NDArray[np.float64]], lower: Any = None,
        upper: Any = None,
    ) -> Any:
        """∫ f ρ dx over the bands between `lower` and `upper`."""
        if self._integrals is None:
            tolerance = self.context.ldexp(1, -self._wanted)
            self._integrals = PreciseIntegrals(self.context, self._support()[0], self.density, tolerance)
        return self._integrals.integrate(function, breaks, lower, upper)


def _near(x: Any, end: Any) -> bool:
    return bool(end != 0 and abs(x - end) < _NEAR_EDGE * abs(end))
