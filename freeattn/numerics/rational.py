"""Numbers of a law that is a rational curve: the engine of all closed laws."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property, partial
from typing import Any

import mpmath
import numpy as np
from flint import fmpq
from numpy.typing import NDArray

from freeattn.errors import BranchError, InputError, NotCoveredError
from freeattn.numerics.bands import BandMap, PanelBand, build_panels
from freeattn.numerics.compile import CompiledCurve, fraction_of
from freeattn.numerics.continuation import Tracker, newton
from freeattn.numerics.curve import Chart, ExactCurve
from freeattn.numerics.edges import Support, find_support, refined_support
from freeattn.numerics.gaps import GapSolver, physical_by_continuation
from freeattn.numerics.panel_engine import PanelEngine, near_edge
from freeattn.numerics.precise import Place, PreciseCurve
from freeattn.numerics.support import Band, Gap

__all__ = ["RationalEngine"]

Array = NDArray[np.float64]
Complex = NDArray[np.complex128]

_DOUBLE_DIGITS = 40  # exact work behind double results: coefficients, origins and edges are then rounded once
_FAR = 2.0  # beyond this multiple of the support q is small
_NEARER = 8.0  # how much nearer to q = 0 than to the origin a band lies when the chart about 0 is the better one
_PURE_POWER = 1e-100  # below this share of the right edge a hard edge is its leading power: corrections are x^{1/k}


class RationalEngine(PanelEngine):
    """Engine of a curve x(q), m(q).

    Args:
        compiled: digits ↦ the curve with parameters to that many digits.
        moved: by how much this law was moved, for messages.
    """

    def __init__(self, compiled: Callable[[int], CompiledCurve], moved: float = 0.0) -> None:
        self._compiled, self._moved = compiled, moved
        self._curve = self._exact(_DOUBLE_DIGITS)
        bands, self._gaps = self._support(_DOUBLE_DIGITS)
        self._bands = bands
        self._edges = [(float(band.left.x), float(band.right.x)) for band in bands]
        self._chart = Chart(self._curve, self._origin(self._gaps))
        reach = _reach(self._gaps)
        residue = float(self._curve.residue.p) / float(self._curve.residue.q)
        self._tracker = Tracker(self._chart, reach, residue)
        self._far = Tracker(Chart(self._curve, fmpq(0)), reach, residue)  # q → 0 keeps its accuracy at large z
        self._far_from = _FAR * reach
        self._supports: dict[int, Support] = {}
        self._gap_solvers: dict[tuple[bool, Gap], GapSolver] = {}
        self._precise: dict[int, PreciseCurve] = {}

    def _exact(self, digits: int) -> ExactCurve:
        return ExactCurve(self._compiled(digits))

    def _support(self, digits: int) -> Support:
        curve = self._curve if digits == _DOUBLE_DIGITS else self._exact(digits)
        if digits > _DOUBLE_DIGITS and (found := refined_support(curve, (self._bands, self._gaps), digits)) is not None:
            return found
        if curve.branch is not None:
            return find_support(curve, digits)
        return find_support(curve, digits, physical_by_continuation(curve))

    @staticmethod
    def _origin(gaps: tuple[Gap, ...]) -> Any:
        """The q at which x = 0 is reached from below, so that small x keep their accuracy; 0 without one."""
        at_zero = [gap.q_high for gap in gaps if gap.high == 0 and mpmath.isfinite(gap.q_high)]
        return fraction_of(at_zero[0]) if at_zero else fraction_of(0)

    def bands(self, digits: int) -> tuple[Band, ...]:
        return self._support_to(digits)[0]

    def _support_to(self, digits: int) -> Support:
        if digits <= _DOUBLE_DIGITS:
            return self._bands, self._gaps
        if digits not in self._supports:
            self._supports[digits] = self._support(digits)
        return self._supports[digits]

    # The continuous part -----------------------------------------------------------------------------------------

    @cached_property
    def panels(self) -> tuple[PanelBand, ...]:
        panels = []
        for band, (left, right), tracker in zip(self._bands, self._edges, self._trackers, strict=True):
            if band.right.exponent < 0 or (band.left.exponent < 0 and left != 0):
                place = (right if band.right.exponent < 0 else left) - self._moved
                raise NotCoveredError(
                    f"the density of this law diverges at an edge away from 0 ({place:.6g} before scaling); hard edges "
                    "are available at 0 only: change a ratio slightly, or shift the law so that this edge is 0"
                )
            order = band.left.exponent.denominator if band.left.exponent < 0 else 0
            panels.append(build_panels(BandMap(left, right, order), partial(self._solve_band, tracker)))
        return tuple(panels)

    @cached_property
    def _trackers(self) -> tuple[Tracker, ...]:
        """One for each band: small imaginary parts of q lose least about an origin that is not far away."""
        def far(band: Band, origin: float) -> float:
            return max(abs(float(edge.q) - origin) for edge in (band.left, band.right))

        return tuple(
            self._far if _NEARER * far(band, 0.0) < far(band, self._chart.origin_double) else self._tracker
            for band in self._bands
        )

    def _solve_band(self, tracker: Tracker, x: Array, start: Complex | None) -> tuple[Complex, Array]:
        """(δ, ρ) strictly inside a band: Newton from the start where it passes the branch test, else from infinity."""
        target = x.astype(complex)
        if start is None:
            delta = tracker.solve(target)
        else:
            delta, good = newton(tracker.chart, start, target)
            good &= tracker.accept(delta, target, strict=True)
            if not good.all():
                delta[~good] = tracker.solve(target[~good])
        good = tracker.accept(delta, target, strict=True)
        rho = tracker.chart.density(delta, x)
        if not np.all(good & (rho > 0)):
            raise BranchError(f"no physical root at x = {float(x[~(good & (rho > 0))][0])!r} inside a band")
        return delta, rho

    def density(self, x: Array) -> Array:
        result = np.zeros(x.shape)
        for (left, right), panel, tracker in zip(self._edges, self.panels, self._trackers, strict=True):
            inside = (x > left) & (x < right)
            if inside.any():
                result[inside] = self._density_in(tracker, x[inside], left, right, panel)
            if panel.map.order:
                result[x == left] = np.inf
        return result

    def _density_in(self, tracker: Tracker, x: Array, left: float, right: float, panel: PanelBand) -> Array:
        if panel.map.order and left == 0:
            start = _PURE_POWER * right
            power = 1 / panel.map.order - 1
            if (x < start).any():
                base = self._density_in(tracker, np.array([start]), left, right, panel)
                above = self._density_in(tracker, np.maximum(x, start), left, right, panel)
                return np.where(x < start, base * (np.minimum(x, start) / start) ** power, above)
        theta = panel.map.angle(x)
        close = near_edge(panel, x)
        rho = np.empty(x.shape)
        if close.any():
            rho[close] = panel.density_series(x[close])
        if not close.all():
            rho[~close] = self._solve_band(tracker, x[~close], panel.guess(theta[~close]))[1]
        return rho

    # The Stieltjes transform ---------------------------------------------------------------------------------------

    def stieltjes(self, z: Complex) -> Complex:
        result = np.empty(z.shape, dtype=complex)
        real = z.imag == 0
        if (~real).any():
            lower = np.where(z.imag > 0, np.conj(z), z)[~real]
            m = np.empty(lower.shape, dtype=complex)
            far = np.abs(lower) > self._far_from
            for tracker, chosen in ((self._far, far), (self._tracker, ~far)):
                if chosen.any():
                    m[chosen] = tracker.chart.stieltjes(tracker.solve(lower[chosen]))
            result[~real] = np.where(z.imag[~real] > 0, np.conj(m), m)
        if real.any():
            result[real] = self._boundary(z.real[real])
        return result

    def _boundary(self, x: Array) -> Complex:
        result = np.full(x.shape, np.nan, dtype=complex)
        for (left, right), panel, tracker in zip(self._edges, self.panels, self._trackers, strict=True):
            if panel.map.order and (x == left).any():
                raise InputError("z", left, "a point off the hard edge, where the Stieltjes transform is infinite")
            inside = (x > left) & (x < right)
            if inside.any():
                delta, _ = self._solve_band(tracker, x[inside], panel.guess(panel.map.angle(x[inside])))
                result[inside] = np.conj(tracker.chart.stieltjes(delta))
        if (np.isnan(result) & (x == 0)).any():
            result[x == 0] = complex(self._precise_curve(_DOUBLE_DIGITS).stieltjes(0))
        far = np.abs(x) > self._far_from
        for gap in self._gaps:
            outside = np.isnan(result) & (x >= float(gap.low)) & (x <= float(gap.high))
            for tracker, chosen in ((self._far, outside & far), (self._tracker, outside & ~far)):
                if chosen.any():
                    result[chosen] = tracker.chart.stieltjes(self._gap_solver(tracker, gap)(x[chosen]))
        if np.isnan(result).any():
            raise BranchError(f"no value at x = {float(x[np.isnan(result)][0])!r}: it is in no band and in no gap")
        return result

    def _gap_solver(self, tracker: Tracker, gap: Gap) -> GapSolver:
        key = tracker is self._far, gap
        if key not in self._gap_solvers:
            self._gap_solvers[key] = GapSolver(tracker.chart, gap)
        return self._gap_solvers[key]

    # Any precision -------------------------------------------------------------------------------------------------

    def _precise_curve(self, digits: int) -> PreciseCurve:
        if digits not in self._precise:
            known = (self._bands, self._gaps)
            support = partial(self._support_to, digits)
            self._precise[digits] = PreciseCurve(self._exact(digits), known, support, digits, self._start)
        return self._precise[digits]

    def _start(self, z: complex) -> Place:
        """q in doubles at z: off the real axis or inside a band in the upper half-plane of q, real in a gap."""
        tracker = self._far if abs(z) > self._far_from else self._tracker
        if z.imag:
            lower = complex(z.real, -abs(z.imag))
            picked = None if tracker.chart.test is None else tracker.picked_at(lower)
            if picked is not None:
                return Place(tracker.chart.origin, picked)
            return Place(tracker.chart.origin, complex(tracker.solve(np.array([lower]))[0]))
        x = np.array([z.real])
        for (left, right), panel, nearest in zip(self._edges, self.panels, self._trackers, strict=True):
            if left < z.real < right:
                delta = self._solve_band(nearest, x, panel.guess(panel.map.angle(x)))[0]
                return Place(nearest.chart.origin, complex(delta[0]))
        for gap in self._gaps:
            if z.real != 0 and gap.low <= z.real <= gap.high:
                return Place(tracker.chart.origin, complex(self._gap_solver(tracker, gap)(x)[0]))
        raise BranchError(f"x = {z.real!r} rounds to an edge: no start in doubles for Newton there")

    def stieltjes_to(self, z: Any, digits: int) -> Any:
        return self._precise_curve(digits).stieltjes(z)

    def density_to(self, x: Any, digits: int) -> Any:
        return self._precise_curve(digits).density(x)

    def integrate_to(
        self, function: Callable[[Any], Any], digits: int, lower: Any = None, upper: Any = None
    ) -> Any:
        breaks = [panel.breaks for panel in self.panels]
        return self._precise_curve(digits).integrate(function, breaks, lower, upper)


def _reach(gaps: tuple[Gap, ...]) -> float:
    """The largest |x| of the support."""
    return max(max(abs(float(gap.low)) for gap in gaps[1:]), max(abs(float(gap.high)) for gap in gaps[:-1]))
