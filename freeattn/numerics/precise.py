"""A rational curve to any number of digits, in an mpmath context of its own (no global precision is touched)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import mpmath
import numpy as np
from numpy.typing import NDArray

from freeattn.errors import BranchError, ConvergenceError, InputError
from freeattn.numerics.curve import ExactCurve
from freeattn.numerics.polynomials import to_context
from freeattn.numerics.support import Band, Edge, Gap

__all__ = ["PreciseCurve", "as_number"]

_GUARD_DIGITS = 15
_STEPS = 60
_BISECTIONS = 80  # to well below double accuracy; Newton squares what is left
_NEAR_EDGE = 1e-8  # relative distance to an edge below which Newton starts from the square-root expansion there
_NODES_PER_DIGIT = 1.0  # panels are resolved to 1e-13 by 16 nodes: 1.2 nodes a digit, with the guard digits to spare
_DOUBLINGS = 6  # of the number of nodes, by a quarter each time
_NEAR_START = 1e-3  # Newton may not leave its start by more than this share: it would be another root


def as_number(context: Any, value: Any) -> Any:
    """A number of the context from an int, float, complex, Fraction, sympy number, decimal string or mpmath number."""
    if hasattr(value, "numerator") and hasattr(value, "denominator") and not isinstance(value, (float, np.floating)):
        return context.mpf(int(value.numerator)) / int(value.denominator)
    return context.mpmathify(value)


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
        self.context = mpmath.MPContext()
        self.context.dps = digits + _GUARD_DIGITS
        self._tolerance = self.context.mpf(10) ** (-digits)
        self._rules: dict[int, list[tuple[Any, Any]]] = {}
        self._cached: dict[Any, list[tuple[Any, Any]]] = {}

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

    # Integrals -----------------------------------------------------------------------------------------------------

    def integrate(
        self, function: Callable[[Any], Any], breaks: Sequence[NDArray[np.float64]], upper: Any = None
    ) -> Any:
        """∫ f ρ dx over the bands below `upper`: Fejér's first rule on the given panels of each band's angle."""
        context = self.context
        total = context.zero
        limit = None if upper is None else as_number(context, upper)
        for band, cuts in zip(self._bands, breaks, strict=True):
            if limit is not None and limit <= band.left.x:
                continue
            mapping = _PreciseMap(context, band)
            nodes = [context.mpf(float(cut)) for cut in cuts[:-1]] + [context.pi / 2]
            if limit is not None and limit < band.right.x:
                end = mapping.angle(limit)
                nodes = [node for node in nodes if node < end] + [end]
            for low, high in pairwise(nodes):
                total += self._panel(function, mapping, low, high)
        return total

    def _panel(self, function: Callable[[Any], Any], mapping: _PreciseMap, low: Any, high: Any) -> Any:
        """One panel; the order grows until two orders agree."""
        context = self.context
        order = int(_NODES_PER_DIGIT * context.dps) + 4
        values = [self._fejer(function, mapping, low, high, order)]
        for _ in range(_DOUBLINGS):
            order = order * 5 // 4
            values.append(self._fejer(function, mapping, low, high, order))
            error = abs(values[-1] - values[-2])
            if error <= self._tolerance * max(abs(values[-1]), 1):
                return values[-1]
        raise ConvergenceError(
            "integration against the law", float(error), float(self._tolerance), "ask for fewer digits"
        )

    def _fejer(self, function: Callable[[Any], Any], mapping: _PreciseMap, low: Any, high: Any, order: int) -> Any:
        points = self._points(mapping, low, high, order)
        return self.context.fsum(function(x) * weight for x, weight in points)

    def _points(self, mapping: _PreciseMap, low: Any, high: Any, order: int) -> list[tuple[Any, Any]]:
        """(x, weight·ρ·dx/dθ) at the Chebyshev points of a panel, computed once."""
        key = (mapping.key, low, high, order)
        if key not in self._cached:
            half, middle = (high - low) / 2, (high + low) / 2
            points = []
            for node, weight in self._rule(order):
                x, slope = mapping(middle + half * node)
                points.append((x, weight * half * slope * self.density(x)))
            self._cached[key] = points
        return self._cached[key]

    def _rule(self, order: int) -> list[tuple[Any, Any]]:
        """Nodes cos θ_k and weights (2/n)(1 − 2 Σ_j cos(2jθ_k)/(4j² − 1)) of Fejér's first rule."""
        if order not in self._rules:
            context = self.context
            rule = []
            for k in range(order):
                angle = (2 * k + 1) * context.pi / (2 * order)
                tail = context.fsum(context.cos(2 * j * angle) / (4 * j * j - 1) for j in range(1, order // 2 + 1))
                rule.append((context.cos(angle), (1 - 2 * tail) * 2 / order))
            self._rules[order] = rule
        return self._rules[order]


class _PreciseMap:
    """x(θ) and dx/dθ of `bands.BandMap`, to many digits."""

    def __init__(self, context: Any, band: Band) -> None:
        self._context = context
        self.key = (band.left.x, band.right.x)
        self._left, self._right = context.mpf(band.left.x), context.mpf(band.right.x)
        self._order = band.left.exponent.denominator if band.left.exponent < 0 else 0
        self._logarithmic = not self._order and 0 < self._left < self._right / 20

    def __call__(self, theta: Any) -> tuple[Any, Any]:
        context = self._context
        sine, twice = context.sin(theta) ** 2, context.sin(2 * theta)
        if self._order:
            width = self._right - self._left
            return self._left + width * sine**self._order, self._order * twice * width * sine ** (self._order - 1)
        if self._logarithmic:
            width = context.log(self._right / self._left)
            x = self._left * context.exp(width * sine)
            return x, width * twice * x
        width = self._right - self._left
        return self._left + width * sine, width * twice

    def angle(self, x: Any) -> Any:
        context = self._context
        if self._order:
            share = (x - self._left) / (self._right - self._left)
            return context.asin(share ** (context.one / (2 * self._order)))
        if self._logarithmic:
            share = context.log(x / self._left) / context.log(self._right / self._left)
        else:
            share = (x - self._left) / (self._right - self._left)
        return context.asin(context.sqrt(share))
