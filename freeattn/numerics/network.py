"""Numbers of a law that is given by a Dyson equation: the engine of every model that is a word in Gaussian letters."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from freeattn.errors import BranchError, ConvergenceError, InputError
from freeattn.numerics.backends import precise_traces, trace_equation
from freeattn.numerics.band_chords import NEAR_ENDS, BandChords
from freeattn.numerics.bands import BandMap, PanelBand, build_panels
from freeattn.numerics.descent import Descent
from freeattn.numerics.dyson_tables import DysonTables
from freeattn.numerics.folds import Fold
from freeattn.numerics.gap_pieces import End
from freeattn.numerics.gap_solutions import GapSolutions
from freeattn.numerics.hard_edge import HardEdge, fitted
from freeattn.numerics.panel_engine import GapInsideError, PanelEngine, near_edge
from freeattn.numerics.precise_integrals import PreciseIntegrals, as_number
from freeattn.numerics.precise_traces import PreciseTraces
from freeattn.numerics.real_axis import BAND, GAP, Axis
from freeattn.numerics.refinement import refined_density, sharpened
from freeattn.numerics.stretches import Stretch, find_stretches
from freeattn.numerics.support import Band, Edge
from freeattn.numerics.trace_equation import TraceEquation
from freeattn.numerics.whole_bands import whole_bands

__all__ = ["NetworkEngine"]

Array = NDArray[np.float64]
Complex = NDArray[np.complex128]

_GUARD_DIGITS = 15
_REFINEMENTS = (1, 2, 6, 18)  # of the grid, until the masses of the bands add up
_DEVIATIONS = np.linspace(-3.03, 2.97, 19)  # where most of a law lies, however narrow; not on edges such as ±2
_RELIABLE = 1e-6  # relative error by rounding beyond which no number is returned
_ZERO = 1e-12  # of ∫ν(dt)/|t − z| ≥ 1/(|z| + reach): what rounding may leave of an m that vanishes in a gap
_HARD_EDGE = 1e-4  # of the support: nearer to 0 there may be a series
_DOUBLE_EDGES = 20  # digits up to which an edge is rounded to a double afterwards
_EDGE_ULPS = 4  # of x: an edge given as a double
_RESOLVED = 1e-11  # of panels: near x = 0 terms cancel and ρ keeps fewer digits than elsewhere


class NetworkEngine(PanelEngine):
    """Engine of a Dyson equation.

    Args:
        tables: digits ↦ the equation with numbers to that many digits; 0 asks for doubles.
        size: order of magnitude of the law: the root of its second moment.
        mass: mass of the continuous part.
        signed: whether the law may have support below 0.
        atoms: where atoms are.
        centre: mean and standard deviation of the continuous part, near which a narrow law lives.
        cancelling: decimal digits that terms of very unequal size, such as 1 and 1/h, cost at most.

    Raises:
        BranchError: when the bands that are found do not add up to the mass.
    """

    def __init__(
        self, tables: Callable[[int], DysonTables], size: float, mass: float, signed: bool = False,
        atoms: tuple[float, ...] = (), centre: tuple[float, float] = (0.0, 0.0), cancelling: int = 0,
    ) -> None:
        self._atoms = atoms
        self._cancelling = cancelling
        self._tables = tables
        self._equation = trace_equation(tables(0))
        self._descent = Descent(self._equation, size)
        self._axis = Axis(self._equation, self._descent)
        self._precise: dict[int, PreciseTraces] = {}
        self._bands: dict[int, tuple[Band, ...]] = {}
        self._chords = BandChords(self._equation)
        self._integrals: dict[int, PreciseIntegrals] = {}
        self._stretches, self._panels = self._resolved(size, mass, signed, centre[0] + centre[1] * _DEVIATIONS)

    @np.errstate(all="ignore")
    def _resolved(
        self, size: float, mass: float, signed: bool, near: Array
    ) -> tuple[tuple[Stretch, ...], tuple[PanelBand, ...]]:
        def found(refine: int, near: Array) -> tuple[tuple[Stretch, ...], tuple[PanelBand, ...]]:
            try:
                stretches = find_stretches(self._axis, size, signed, refine, near)
                if not all(stretch.sharp for stretch in stretches):
                    stretches = tuple(sharpened(s, self.traces_to(_DOUBLE_EDGES)) for s in stretches)
                return stretches, tuple(self._panels_of(stretch) for stretch in stretches)
            except ConvergenceError as error:
                raise BranchError(str(error)) from None

        return whole_bands(found, mass, _REFINEMENTS, near, BranchError)

    def _panels_of(self, stretch: Stretch) -> PanelBand:
        left, right = stretch.ends
        order = stretch.map_order
        hard_right = bool(order) and stretch.right is None

        band_map, tail = BandMap(left, right, order, hard_right), stretch.tail(self._axis)

        def solved(x: Array, start: Complex | None, precise: PreciseTraces | None = None) -> tuple[Complex, Array]:
            u, rho, known = self._from_nearest(stretch, x), tail.density(x), np.abs(x) >= tail.beneath
            u[known], rho[known] = self._solve_band(x[known], (u if start is None else start)[known], stretch)
            if precise is not None:
                rho[known] = refined_density(self._equation, precise, u[known], x[known], _RESOLVED)
            return u, rho

        try:
            return build_panels(band_map, solved, _RESOLVED)
        except ConvergenceError:  # panels do not resolve rounding: more digits where doubles keep few
            precise = self.traces_to(_DOUBLE_EDGES)
            return build_panels(band_map, lambda x, start: solved(x, start, precise), _RESOLVED)

    @property
    def equation(self) -> TraceEquation:
        return self._equation

    @property
    def panels(self) -> tuple[PanelBand, ...]:
        return self._panels

    @property
    def folds(self) -> tuple[tuple[Fold | None, Fold | None], ...]:
        """The ends of the bands that are folds, in doubles."""
        return tuple((stretch.left, stretch.right) for stretch in self._stretches)

    def _from_nearest(self, stretch: Stretch, x: Array) -> Complex:
        near, u = stretch.nearest(x)
        return self._axis.predicted(u, near, x)

    def _solve_band(self, x: Array, start: Complex, stretch: Stretch) -> tuple[Complex, Array]:
        """(unknowns, ρ) strictly inside a band: Newton from the start where it passes the branch test, else from the
        nearest known point (traces that vary by decades do not interpolate), else from above."""
        u, good = self._axis.in_band(start, x)
        if not good.all():
            u[~good], good[~good] = self._axis.in_band(self._from_nearest(stretch, x[~good]), x[~good])
        if not good.all():
            u[~good], good[~good] = self._axis.in_band(stretch.beside_edge(x[~good], u[~good]), x[~good])
        if not good.all():
            status, u[~good] = self._axis.classify(x[~good])
            if (status == GAP).any():
                raise GapInsideError(x[~good][status == GAP])
            if not (status == BAND).all():
                raise BranchError(f"no physical root at x = {x[~good][status != BAND][0]:.17g} inside a band")
        return u, self._output(u, x.astype(complex)).imag / np.pi

    def _solved_in(self, x: Array, panel: PanelBand, stretch: Stretch) -> Complex:
        return self._solve_band(x, panel.guess(panel.map.angle(x)), stretch)[0]

    # Bands -----------------------------------------------------------------------------------------------------

    def bands(self, digits: int) -> tuple[Band, ...]:
        if digits not in self._bands:
            self._bands[digits] = self._bands_to(digits)
        return self._bands[digits]

    def _bands_to(self, digits: int) -> tuple[Band, ...]:
        zero, half = self.traces_to(digits).context.zero, Fraction(1, 2)

        def edge(fold: Fold | None, order: Fraction) -> Edge:
            if fold is not None:
                return Edge(self._edge_to(fold, digits), None, half)
            return Edge(zero, None, 1 / order - 1)

        return tuple(Band(edge(s.left, s.order), edge(s.right, s.order)) for s in self._stretches)

    def _edge_to(self, fold: Fold, digits: int) -> Any:
        precise = self.traces_to(digits)
        try:
            return precise.fold(fold)
        except ConvergenceError:
            if digits > _DOUBLE_EDGES:
                raise
            return precise.context.mpf(fold.x)  # the fold of the double solver, good to a few ulps

    @np.errstate(all="ignore")  # a number that is not finite is refused
    def density(self, x: Array) -> Array:
        result = np.zeros(x.shape)
        for panel, stretch in zip(self.panels, self._stretches, strict=True):
            inside = panel.map.inside(x)
            if inside.any():
                result[inside] = self._density_in(x[inside], panel, stretch)
            if panel.map.order:
                result[x == panel.map.hard_end] = np.inf
        return result

    def _density_in(self, x: Array, panel: PanelBand, stretch: Stretch) -> Array:
        theta, rho = panel.map.angle(x), np.full(x.shape, np.nan)
        near_ends = np.minimum(theta, np.pi / 2 - theta) < NEAR_ENDS
        rest = np.flatnonzero(~(near_edge(panel, x) | panel.beside_hard_end(x)))
        rho[rest] = self._chords.stieltjes(x[rest], theta[rest], panel, _RELIABLE).imag / np.pi
        rest = rest[np.isnan(rho[rest])]
        missing = np.isnan(rho)
        rho[missing] = panel.density_series(x[missing])
        if rest.size:
            points = x[rest].astype(complex)
            u, found = self._solve_band(x[rest], panel.guess(theta[rest]), stretch)
            error = self._equation.output_error(u, points, self._equation.matrices(u, points))
            good = error <= _RELIABLE * np.pi * found
            self._refuse_singular(x[rest], good | near_ends[rest])  # near ends the series stays
            rho[rest[good]] = found[good]
        return rho

    def _refuse_singular(self, points: Array | Complex, good: NDArray[np.bool_]) -> None:
        if not good.all():
            raise BranchError(
                f"at {points[~good][0]:.17g} (before scaling) the law is singular, as at a cusp or beside an atom, and "
                "doubles do not resolve it: take a point farther away"
            )

    # The Stieltjes transform -------------------------------------------------------------------------------------

    @np.errstate(all="ignore")
    def stieltjes(self, z: Complex) -> Complex:
        result = np.empty(z.shape, dtype=complex)
        real, edge = z.imag == 0, self._beside_hard_edge(z)
        upper = z.real + 1j * np.abs(z.imag)
        if self._hard_edge is not None and edge.any():
            result[edge] = self._hard_edge.stieltjes(upper[edge])
        above, axis = ~edge & ~real, ~edge & real
        if above.any():
            result[above] = self._checked_output(self._descent.solve(upper[above]), upper[above])
        if axis.any():
            result[axis] = self._boundary_value(z.real[axis])
        return np.where(z.imag >= 0, result, np.conj(result))

    def _beside_hard_edge(self, z: Complex) -> NDArray[np.bool_]:
        small = (np.abs(z) < _HARD_EDGE * self._reach) & (z != 0)
        if not small.any() or self._hard_edge is None:
            return np.zeros(z.shape, dtype=bool)
        return small & (np.abs(z) < self._hard_edge.radius)

    @cached_property
    def _hard_edge(self) -> HardEdge | None:
        """The series at a hard edge at 0, where the law lies on one side of it."""
        hard = [stretch for stretch in self._stretches if stretch.order > 1]
        if len(hard) != 1 or any(min(s.ends) < 0 < max(s.ends) for s in self._stretches):
            return None
        above = hard[0].left is None
        size = min(abs(end) for stretch in self._stretches for end in stretch.ends if end)

        def transform(x: Array) -> Array:
            found = self._gaps.values(x)
            return np.where(found.good, found.m, np.nan)

        return fitted(transform, hard[0].order, size, above)

    def _checked_output(self, u: Complex, z: Complex) -> Complex:
        matrices = self._equation.matrices(u, z)
        m = self._equation.output(matrices)
        self._refuse_singular(z, self._equation.output_error(u, z, matrices) <= self._tolerated(m, z))
        return m

    def _tolerated(self, m: Complex | Array, z: Complex | Array) -> Array:
        """The largest error by rounding of an m that is returned."""
        return np.maximum(_RELIABLE * np.abs(m), _ZERO / (np.abs(z) + self._reach))

    def _boundary_value(self, x: Array) -> Complex:
        """m at real points; at an edge that of the fold, whose distance from the point is rounding."""
        near = self._gaps.innermost(x)
        edges: NDArray[np.bool_] = np.asarray(np.isfinite(self._at_edge(x)).all(axis=1))
        m, outside = np.full(x.shape, np.nan + 0j), ~edges
        for panel in self.panels:
            inside = panel.map.inside(x) & ~edges
            m[inside] = self._chords.stieltjes(x[inside], panel.map.angle(x[inside]), panel, _RELIABLE)
            outside &= (x < panel.map.left) | (x > panel.map.right)
        if outside.any():
            m[outside] = self._between_bands(near[outside])
        for chosen, output in ((edges, self._output), (np.isnan(m) & ~edges, self._checked_output)):
            if chosen.any():
                m[chosen] = output(self._on_axis(near[chosen]), near[chosen].astype(complex))
        return m * np.where(near == x, 1.0, near / x) if 0.0 in self._atoms else m

    def _between_bands(self, x: Array) -> Complex:
        """m in gaps where it passes every test at once; not-a-number elsewhere."""
        found = self._gaps.values(x)
        good = found.good & (found.error <= self._tolerated(found.m, x))
        return np.where(good, found.m, np.nan).astype(complex)

    def _output(self, u: Complex, z: Complex) -> Complex:
        return self._equation.output(self._equation.matrices(u, z))

    @cached_property
    def _reach(self) -> float:
        """The largest modulus of a point of the support."""
        ends = [abs(end) for stretch in self._stretches for end in stretch.ends]
        return max([*ends, *(abs(atom) for atom in self._atoms)])

    def _on_axis(self, x: Array) -> Complex:
        """The solution at real points, boundary values from the upper half-plane."""
        u = self._at_edge(x)
        for panel, stretch in zip(self.panels, self._stretches, strict=True):
            if panel.map.order and (x == panel.map.hard_end).any():
                raise InputError(
                    "z", panel.map.hard_end, "a point off the hard edge, where the Stieltjes transform is infinite"
                )
            inside = panel.map.inside(x) & np.isnan(u).any(axis=1)
            if inside.any():
                u[inside] = self._solved_in(x[inside], panel, stretch)
        outside = np.flatnonzero(np.isnan(u).any(axis=1))
        if outside.size:
            u[outside] = self._in_gaps(x[outside])
        return u

    def _in_gaps(self, x: Array) -> Array:
        u, good = self._gaps.solve(x)
        if not good.all():
            status, found = self._axis.classify(x[~good])
            if not (status == GAP).all():
                raise ConvergenceError(
                    f"the Stieltjes transform at {x[~good][status != GAP][0]!r}", None, None,
                    "the point is too near an edge, or 0: take another point, or Im z > 0",
                )
            u[~good] = found.real
        return u

    @cached_property
    def _gaps(self) -> GapSolutions:
        ends = [
            End(end, fold is not None, 1.0 if fold else float(stretch.order)) for stretch in self._stretches
            for end, fold in zip(stretch.ends, (stretch.left, stretch.right), strict=True)
        ]
        return GapSolutions(self._axis, ends, self._atoms, self._inside)

    def _inside(self, x: Array) -> Complex:
        """The solution at points in bands."""
        u = np.empty((x.size, self._equation.count), dtype=complex)
        for panel, stretch in zip(self.panels, self._stretches, strict=True):
            here = panel.map.inside(x)
            if here.any():
                u[here] = self._solved_in(x[here], panel, stretch)
        return u

    def _at_edge(self, x: Array) -> Complex:
        """The solution at points that are an edge to rounding; not-a-number elsewhere."""
        u = np.full((x.size, self._equation.count), np.nan + 0j)
        for stretch in self._stretches:
            for fold in (stretch.left, stretch.right):
                if fold is not None:
                    u[np.abs(x - fold.x) <= _EDGE_ULPS * np.spacing(np.abs(fold.x))] = fold.traces
        return u

    # Any precision -------------------------------------------------------------------------------------------------

    def traces_to(self, digits: int) -> PreciseTraces:
        """Solutions to some digits from those in doubles."""
        if digits not in self._precise:
            guard = _GUARD_DIGITS + digits + self._cancelling
            self._precise[digits] = precise_traces(self._tables(digits + guard), self._equation, digits, guard)
        return self._precise[digits]

    @np.errstate(all="ignore")  # as above
    def start_at(self, z: Any, digits: int) -> tuple[PreciseTraces, Complex | Array, Any]:
        """What finds the solution at z, or at its conjugate above the axis: to digits, from doubles, at that point."""
        precise = self.traces_to(digits)
        number = as_number(precise.context, z)
        rounded = complex(number)
        if precise.context.im(number) == 0:
            u = self._on_axis(np.array([rounded.real]))[0]
            return precise, u if np.any(u.imag) else u.real, precise.context.re(number)
        if rounded.imag == 0:
            raise InputError("z", str(z), "a real z, or an imaginary part that a double can hold")
        upper = number if rounded.imag > 0 else precise.context.conj(number)
        return precise, self._descent.solve(np.array([complex(upper)]))[0], upper

    def stieltjes_to(self, z: Any, digits: int) -> Any:
        precise, start, point = self.start_at(z, digits)
        m = precise.stieltjes(start, point)
        return m if precise.context.im(as_number(precise.context, z)) >= 0 else precise.context.conj(m)

    def density_to(self, x: Any, digits: int) -> Any:
        precise = self.traces_to(digits)
        point = as_number(precise.context, x)
        for panel, stretch, band in zip(self.panels, self._stretches, self.bands(digits), strict=True):
            if band.left.x < point < band.right.x:
                u = self._solved_in(np.array([float(point)]), panel, stretch)[0]
                return precise.context.im(precise.stieltjes(u, point)) / precise.context.pi
        return precise.context.zero

    def integrate_to(
        self, function: Callable[[Any], Any], digits: int, lower: Any = None, upper: Any = None
    ) -> Any:
        if digits not in self._integrals:
            context = self.traces_to(digits).context
            self._integrals[digits] = PreciseIntegrals(
                context, self.bands(digits), lambda x: self.density_to(x, digits), context.mpf(10) ** (-digits)
            )
        return self._integrals[digits].integrate(function, [panel.breaks for panel in self.panels], lower, upper)
