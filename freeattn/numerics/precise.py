"""A rational curve to any number of digits, in an mpmath context of its own (no global precision is touched)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from freeattn.errors import BranchError, ConvergenceError, InputError
from freeattn.model.precision import own_context
from freeattn.numerics.curve import ExactCurve
from freeattn.numerics.polynomials import to_context
from freeattn.numerics.precise_integrals import PreciseIntegrals, as_number
from freeattn.numerics.support import Band, Edge, Gap

__all__ = ["PreciseCurve", "as_number"]

_GUARD_DIGITS = 15
_STEPS = 60
_BISECTIONS = 80  # to well below double accuracy; Newton squares what is left
_NEAR_EDGE = 1e-8  # relative distance to an edge below which Newton starts from the square-root expansion there
_NEAR_START = 1e-3  # Newton may not leave its start by more than this share: it would be another root


class PreciseCurve:
    """m and integrals of one curve at a fixed number of digits.

    Args:
        curve: the curve with parameters to these digits.
        bands, gaps: its support to these digits.
        start: z ↦ q in doubles on the physical branch, for z off the real axis or inside a band.
    """

    def __init__(
        self, curve: ExactCurve, bands: Sequence[Band], gaps: Sequence[Gap], digits: int,
        start: Callable[[complex], complex],
    ) -> None:
        self._curve, self._bands, self._gaps, self._start = curve, bands, gaps, start
        self.context = own_context(digits + _GUARD_DIGITS)
        self._tolerance = self.context.mpf(10) ** (-digits)
        self._integrals = PreciseIntegrals(self.context, bands, self.density, self._tolerance)

    def stieltjes(self, z: Any) -> Any:
        """m(z); at real z the boundary value from the upper half-plane."""
        number = as_number(self.context, z)
        if self.context.im(number) == 0:
            return self._on_axis(self.context.re(number))
        if complex(number).imag == 0:
            raise InputError("z", str(z), "a real z, or an imaginary part that a double can hold")
        lower = number if self.context.im(number) < 0 else self.context.conj(number)
        q = self._newton(self.context.mpc(self._start(complex(number))), lower)
        m = self._curve.stieltjes_at(q, self.context)
        return m if self.context.im(number) < 0 else self.context.conj(m)

    def density(self, x: Any) -> Any:
        """ρ(x) = Im m(x + i0)/π, 0 outside the bands."""
        return self.context.im(self._on_axis(as_number(self.context, x))) / self.context.pi

    def _on_axis(self, x: Any) -> Any:
        for band in self._bands:
            if band.left.exponent < 0 and x == band.left.x:
                raise InputError("z", float(x), "a point off the hard edge, where the Stieltjes transform is infinite")
            if band.left.x < x < band.right.x:
                return self.context.conj(self._curve.stieltjes_at(self._in_band(band, x), self.context))
        gap = next(gap for gap in self._gaps if gap.low <= x <= gap.high)
        q = self._in_gap(gap, x)
        if self.context.isinf(q):
            return to_context(self._curve.stieltjes_at_infinity, self.context)
        return self._curve.stieltjes_at(q, self.context)

    def _in_band(self, band: Band, x: Any) -> Any:
        for edge in (band.left, band.right):
            if edge.x != 0 and abs(x - edge.x) < _NEAR_EDGE * abs(edge.x):
                start = self._expansion(edge, x)
                start = self.context.mpc(start.real, abs(start.imag))
                return self._upper(self._newton(start, x))
        return self._upper(self._newton(self.context.mpc(self._start(complex(x))), x))

    def _upper(self, q: Any) -> Any:
        if not q.imag > 0:
            raise BranchError("Newton left the physical branch inside a band")
        return q

    def _expansion(self, edge: Edge, x: Any) -> Any:
        """q_c + √(2(x − x_c)/x''), from x'' = x·(x'/x)' by a central difference."""
        context = self.context
        step = abs(edge.q) * context.mpf(10) ** (-context.dps // 3)
        curvature = (
            self._curve.log_slope_at(edge.q + step, context) - self._curve.log_slope_at(edge.q - step, context)
        ) / (2 * step)
        return edge.q + context.sqrt(context.mpc(2 * (x - edge.x) / (edge.x * curvature)))

    def _in_gap(self, gap: Gap, x: Any) -> Any:
        """Bisection of arctan q on the monotone interval, then Newton to the last digit."""
        context = self.context
        if x in (gap.low, gap.high):
            return gap.q_low if x == gap.low else gap.q_high
        low, high = context.atan(context.mpf(gap.q_low)), context.atan(context.mpf(gap.q_high))
        for _ in range(_BISECTIONS):
            middle = (low + high) / 2
            value = self._curve.point_at(context.tan(middle), context)
            low, high = (middle, high) if value < x else (low, middle)
        return self._newton(context.tan((low + high) / 2), x)

    def _newton(self, q: Any, x: Any) -> Any:
        """Newton for log x(q) = log x until the residual is at rounding, or stops shrinking below the tolerance."""
        context, start, residual = self.context, q, self.context.inf
        for _ in range(_STEPS):
            quotient = x / self._curve.point_at(q, context)
            log = context.log(quotient) if quotient.imag or quotient.real > 0 else quotient - 1
            previous, residual = residual, abs(log)
            if residual <= 10 * context.eps or (residual >= previous and residual <= self._tolerance):
                if abs(q - start) > _NEAR_START * abs(start):
                    raise BranchError(f"Newton at {context.nstr(x, 10)} moved from its start to another root")
                return q
            q += log / self._curve.log_slope_at(q, context)
        raise ConvergenceError(
            f"Newton at {context.nstr(x, 10)}", float(residual), float(self._tolerance), "ask for more digits"
        )

    def integrate(
        self, function: Callable[[Any], Any], breaks: Sequence[NDArray[np.float64]], upper: Any = None
    ) -> Any:
        """∫ f ρ dx over the bands below `upper`."""
        return self._integrals.integrate(function, breaks, upper)
