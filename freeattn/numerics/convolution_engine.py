"""Numbers of a free convolution: the engine of laws that subordination gives."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import Any

import mpmath
import numpy as np
from numpy.typing import NDArray

from freeattn.errors import ConvergenceError, InputError, NotCoveredError
from freeattn.numerics.bands import BandMap, LinearMap, OffsetMap, PanelBand, build_panels
from freeattn.numerics.convolution_bands import ConvolutionBand, Divergences, bands_on
from freeattn.numerics.fixed_points import BAND, GAP, FixedPoints, Fold
from freeattn.numerics.given_numbers import DOUBLE_DIGITS
from freeattn.numerics.panel_engine import GapInsideError, PanelEngine, near_edge
from freeattn.numerics.subordination import Subordination
from freeattn.numerics.support import Band, Edge
from freeattn.numerics.whole_bands import whole_bands

__all__ = ["ConvolutionEngine"]

Array = NDArray[np.float64]
Complex = NDArray[np.complex128]

_DOUBLE_EDGES = 20  # digits up to which an edge is rounded to a double afterwards
_RESOLVED = 2e-12  # of panels: the sums over nodes have this accuracy for laws given by words
_REFINEMENTS = (1, 4)
_POINTS = 60  # of a grid, uniform and logarithmic
_MARGIN = 0.01  # of the width of the reach, beyond its ends
_BESIDE_ATOMS = 1e-13  # of the largest point
_SMALLEST = 1e-12  # of the largest point: how far down a product is searched


class ConvolutionEngine(PanelEngine):
    """Engine of one subordination equation, in doubles.

    Args:
        equation: the map whose fixed points are wanted.
        likely: points near which bands lie, such as sums of quantiles.
        atoms: locations of atoms.
        infinite: places where weights of atoms add up to one, with the atoms.
        mass: mass of the continuous part.
        order: of a hard edge at 0, where the density starts like x^{1/order − 1}; 1 when there is none.

    Raises:
        BranchError: when the bands that are found do not add up to the mass.
    """

    def __init__(
        self, equation: Subordination, likely: Array, atoms: tuple[float, ...], infinite: Divergences, mass: float,
        order: Fraction,
    ) -> None:
        self._points = FixedPoints(equation)
        self._beside = {origins: FixedPoints(equation.about(origins)) for _, origins in infinite}
        self._bands, self._panels = self._resolved(likely, atoms, infinite, mass, order)

    def _resolved(
        self, likely: Array, atoms: tuple[float, ...], infinite: Divergences, mass: float, order: Fraction
    ) -> tuple[tuple[ConvolutionBand, ...], tuple[PanelBand, ...]]:
        forbidden = np.array([*atoms, *(x for x, _ in infinite)])

        def found(refine: int, near: Array) -> tuple[tuple[ConvolutionBand, ...], tuple[PanelBand, ...]]:
            grid = _grid(self._points.equation, near, refine)
            grid = grid[(np.abs(grid[:, None] - forbidden) > _BESIDE_ATOMS * np.abs(grid).max()).all(axis=1)]
            bands = bands_on(self._points, grid, order, infinite)
            return bands, tuple(self._panels_of(band) for band in bands)

        return whole_bands(found, mass, _REFINEMENTS, likely, ConvergenceError)

    def _panels_of(self, band: ConvolutionBand) -> PanelBand:
        order = float(band.order) if band.left is None else 0.0

        def solve(x: Array, start: Complex | None) -> tuple[Complex, Array]:
            omega, m = self._solve_from_ends(band, x, start) if band.resolved_from_ends else self._solve(x, start)
            return omega, m.imag / np.pi

        if not band.resolved_from_ends:
            return build_panels(BandMap(*band.ends, order), solve, _RESOLVED)
        panels = build_panels(OffsetMap(*band.ends, order), solve, _RESOLVED)
        return replace(panels, map=LinearMap(*band.ends, order))

    def _solve_in(self, band: ConvolutionBand, panel: PanelBand, x: Array) -> tuple[Complex, Complex]:
        """(ω, m) strictly inside a band."""
        start, (left, right) = panel.guess(panel.map.angle(x)), band.ends
        if not band.resolved_from_ends:
            return self._solve(x, start)
        return self._solve_from_ends(band, np.where(x - left < right - x, x - left, x - right), start)

    def _solve_from_ends(self, band: ConvolutionBand, offset: Array, start: Complex | None) -> tuple[Complex, Complex]:
        """(ω, m) at the left end plus a positive offset, or at the right end plus a negative one."""
        omega, m = np.empty(offset.shape, dtype=complex), np.empty(offset.shape, dtype=complex)
        for fold, end, chosen in zip((band.left, band.right), band.ends, (offset > 0, offset <= 0), strict=True):
            at, begin = offset[chosen], None if start is None else start[chosen]
            if fold is None or fold.origins is None:
                omega[chosen], m[chosen] = self._solve(end + at, begin)
                continue
            origin, points = fold.origins[0], self._beside[fold.origins]
            found, done = points.solve(at.astype(complex), None if begin is None else begin - origin)
            if not (done & (found.imag > 0)).all():
                raise ConvergenceError(
                    f"subordination beside x = {end:.17g}, where the density diverges", None, None,
                    "two edges are too close: change a weight slightly"
                )
            omega[chosen], m[chosen] = found + origin, points.output(at.astype(complex), found)
        return omega, m

    def _solve(self, x: Array, start: Complex | None) -> tuple[Complex, Complex]:
        omega, done = self._points.solve(x.astype(complex), start)
        bad = ~done | ~(omega.imag > 0)
        if bad.any():
            status, omega[bad] = self._points.classify(x[bad])
            if (status == GAP).any():
                raise GapInsideError(x[bad][status == GAP])
            if (status != BAND).any():
                raise ConvergenceError(
                    f"subordination at x = {x[bad][status != BAND][0]:.17g}", None, None, "a singular point is near"
                )
        return omega, self._points.output(x.astype(complex), omega)

    @property
    def panels(self) -> tuple[PanelBand, ...]:
        return self._panels

    def bands(self, digits: int) -> tuple[Band, ...]:
        if digits > _DOUBLE_EDGES:
            raise _too_many(digits)
        half = Fraction(1, 2)

        def edge(fold: Fold) -> Edge:
            return Edge(mpmath.mpf(fold.x), fold.omega, -half if fold.singular else half)

        hard = [Edge(mpmath.mpf(0), None, 1 / band.order - 1) for band in self._bands]
        return tuple(
            Band(edge(band.left) if band.left else start, edge(band.right))
            for band, start in zip(self._bands, hard, strict=True)
        )

    def density(self, x: Array) -> Array:
        result = np.zeros(x.shape)
        ends = self.bands(DOUBLE_DIGITS)
        for panel, band, (left, right) in zip(self.panels, self._bands, ((b.left, b.right) for b in ends), strict=True):
            inside = panel.map.inside(x)
            if inside.any():
                result[inside] = self._density_in(x[inside], band, panel)
            for edge in (left, right):
                if edge.exponent < 0:
                    result[x == float(edge.x)] = np.inf
        return result

    def _density_in(self, x: Array, band: ConvolutionBand, panel: PanelBand) -> Array:
        rho = panel.density_series(x)
        inner = ~(near_edge(panel, x) | panel.beside_hard_end(x))
        if inner.any():
            rho[inner] = self._solve_in(band, panel, x[inner])[1].imag / np.pi
        return rho

    def stieltjes(self, z: Complex) -> Complex:
        result = np.empty(z.shape, dtype=complex)
        real = z.imag == 0
        if (~real).any():
            upper = np.where(z.imag > 0, z, np.conj(z))[~real]
            omega, done = self._points.solve(upper)
            if not done.all():
                raise ConvergenceError(f"subordination at {upper[~done][0]:.6g}", None, None, "take another point")
            m = self._points.output(upper, omega)
            result[~real] = np.where(z.imag[~real] > 0, m, np.conj(m))
        if real.any():
            result[real] = self._on_axis(z.real[real])
        return result

    def _on_axis(self, x: Array) -> Complex:
        m = np.full(x.shape, np.nan + 0j)
        for panel, band in zip(self.panels, self._bands, strict=True):
            inside = panel.map.inside(x)
            if inside.any():
                m[inside] = self._solve_in(band, panel, x[inside])[1]
            for fold in (band.left, band.right):
                if fold is not None and not fold.singular:
                    m[x == fold.x] = self._points.output(np.array([fold.x + 0j]), np.array([fold.omega + 0j]))
            hard = (band.left is None or band.left.singular, band.right.singular)
            for end, infinite in zip(band.ends, hard, strict=True):
                if infinite and (x == end).any():
                    raise InputError("z", end, "a point off the hard edge, where the Stieltjes transform is infinite")
        outside = np.isnan(m)
        if outside.any():
            status, omega = self._points.classify(x[outside])
            if (status != GAP).any():
                raise ConvergenceError(
                    f"the Stieltjes transform at {x[outside][status != GAP][0]!r}", None, None,
                    "the point is too near an edge, or m vanishes there: take another point, or Im z > 0",
                )
            m[outside] = self._points.output(x[outside].astype(complex), omega)
        return m

    def stieltjes_to(self, z: Any, digits: int) -> Any:
        del z
        raise _too_many(digits)

    def density_to(self, x: Any, digits: int) -> Any:
        del x
        raise _too_many(digits)

    def integrate_to(
        self, function: Callable[[Any], Any], digits: int, lower: Any = None, upper: Any = None
    ) -> Any:
        del function, lower, upper
        raise _too_many(digits)


def _too_many(digits: int) -> NotCoveredError:
    return NotCoveredError(
        f"{digits} digits are not available for a law by subordination, whose numbers are doubles; its moments are"
    )


def _grid(equation: Subordination, likely: Array, refine: int) -> Array:
    """Points over the reach of the support and where the law is likely to be; the ends lie outside the support."""
    low, high = equation.reach
    margin = _MARGIN * (high - low)
    parts = [likely, np.linspace(low, high, _POINTS * refine + 1)]
    below = low - margin
    if equation.positive:
        parts.append(np.geomspace(max(low, _SMALLEST * high), high, _POINTS * refine + 1))
        below = low / 2 if low else _SMALLEST / 2 * high
    grid = np.unique(np.concatenate([*parts, [below, high + margin]]))
    return grid[grid >= below]
