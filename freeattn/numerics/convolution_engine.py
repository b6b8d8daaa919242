"""Numbers of a free convolution: the engine of laws that subordination gives."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import mpmath
import numpy as np
from numpy.typing import NDArray

from freeattn.errors import BranchError, ConvergenceError, InputError, NotCoveredError
from freeattn.numerics.bands import BandMap, PanelBand, build_panels
from freeattn.numerics.convolution_bands import ConvolutionBand, bands_on
from freeattn.numerics.fixed_points import BAND, GAP, FixedPoints, Fold
from freeattn.numerics.panel_engine import PanelEngine, near_edge
from freeattn.numerics.subordination import Subordination
from freeattn.numerics.support import Band, Edge

__all__ = ["ConvolutionEngine"]

Array = NDArray[np.float64]
Complex = NDArray[np.complex128]

_DOUBLE_DIGITS = 15
_DOUBLE_EDGES = 20  # digits up to which an edge is rounded to a double afterwards
_MASS_TOLERANCE = 1e-9
_ROUNDS = 12  # of grids, each with the points at which the last one failed
_RESOLVED = 2e-12  # of panels: the sums over nodes have this accuracy for laws given by words
_REFINEMENTS = (1, 4)
_POINTS = 60  # of a grid, uniform and logarithmic
_MARGIN = 0.01  # of the width of the reach, beyond its ends
_BESIDE_ATOMS = 1e-13  # of the largest point
_SMALLEST = 1e-12  # of the largest point: how far down a product is searched


class _GapInsideError(BranchError):
    """Points in a gap that the grid has not seen."""

    def __init__(self, points: Array) -> None:
        self.points = points
        super().__init__(f"x = {points[0]:.17g} lies in a gap inside a band")


class ConvolutionEngine(PanelEngine):
    """Engine of one subordination equation, in doubles.

    Args:
        equation: the map whose fixed points are wanted.
        likely: points near which bands lie, such as sums of quantiles.
        atoms: locations of atoms, which no point of a grid may hit.
        mass: mass of the continuous part.
        order: of a hard edge at 0, where the density starts like x^{1/order − 1}; 1 when there is none.

    Raises:
        BranchError: when the bands that are found do not add up to the mass.
    """

    def __init__(self, equation: Subordination, likely: Array, atoms: Array, mass: float, order: Fraction) -> None:
        self._points = FixedPoints(equation)
        self._bands, self._panels = self._resolved(likely, atoms, mass, order)

    def _resolved(
        self, likely: Array, atoms: Array, mass: float, order: Fraction
    ) -> tuple[tuple[ConvolutionBand, ...], tuple[PanelBand, ...]]:
        if mass <= _MASS_TOLERANCE:
            return (), ()
        last: Exception = BranchError("no band was found")
        for refine in _REFINEMENTS:
            for _ in range(_ROUNDS):
                grid = _grid(self._points.equation, likely, refine)
                grid = grid[(np.abs(grid[:, None] - atoms) > _BESIDE_ATOMS * np.abs(grid).max()).all(axis=1)]
                try:
                    bands = bands_on(self._points, grid, order)
                    panels = tuple(self._panels_of(band) for band in bands)
                except _GapInsideError as gap:
                    likely, last = np.concatenate([likely, gap.points]), gap
                    continue
                except ConvergenceError as error:
                    last = error
                    break
                found = sum(panel.mass for panel in panels)
                if abs(found - mass) <= _MASS_TOLERANCE:
                    return bands, panels
                last = BranchError(f"the bands found hold mass {found:.12g} instead of {mass:.12g}")
                break
        raise last

    def _panels_of(self, band: ConvolutionBand) -> PanelBand:
        order = float(band.order) if band.left is None else 0.0
        return build_panels(BandMap(*band.ends, order), self._solve_band, _RESOLVED)

    def _solve_band(self, x: Array, start: Complex | None) -> tuple[Complex, Array]:
        """(ω, ρ) strictly inside a band."""
        omega, done = self._points.solve(x.astype(complex), start)
        bad = ~done | ~(omega.imag > 0)
        if bad.any():
            status, omega[bad] = self._points.classify(x[bad])
            if (status == GAP).any():
                raise _GapInsideError(x[bad][status == GAP])
            if (status != BAND).any():
                raise ConvergenceError(
                    f"subordination at x = {x[bad][status != BAND][0]:.17g}", None, None, "a singular point is near"
                )
        return omega, self._output(x.astype(complex), omega).imag / np.pi

    @np.errstate(all="ignore")
    def _output(self, z: Complex, omega: Complex) -> Complex:
        return self._points.equation(z, omega).output

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
        for panel, band in zip(self.panels, self.bands(_DOUBLE_DIGITS), strict=True):
            inside = (x > panel.map.left) & (x < panel.map.right)
            if inside.any():
                result[inside] = self._density_in(x[inside], panel)
            for edge in (band.left, band.right):
                if edge.exponent < 0:
                    result[x == float(edge.x)] = np.inf
        return result

    def _density_in(self, x: Array, panel: PanelBand) -> Array:
        theta = panel.map.angle(x)
        rho = panel.density_series(theta)
        inner = ~near_edge(panel, x)
        if inner.any():
            rho[inner] = self._solve_band(x[inner], panel.guess(theta[inner]))[1]
        return rho

    def stieltjes(self, z: Complex) -> Complex:
        result = np.empty(z.shape, dtype=complex)
        real = z.imag == 0
        if (~real).any():
            upper = np.where(z.imag > 0, z, np.conj(z))[~real]
            omega, done = self._points.solve(upper)
            if not done.all():
                raise ConvergenceError(f"subordination at {upper[~done][0]:.6g}", None, None, "take another point")
            m = self._output(upper, omega)
            result[~real] = np.where(z.imag[~real] > 0, m, np.conj(m))
        if real.any():
            result[real] = self._on_axis(z.real[real])
        return result

    def _on_axis(self, x: Array) -> Complex:
        omega = np.full(x.shape, np.nan + 0j)
        for panel, band in zip(self.panels, self._bands, strict=True):
            inside = (x > panel.map.left) & (x < panel.map.right)
            if inside.any():
                omega[inside] = self._solve_band(x[inside], panel.guess(panel.map.angle(x[inside])))[0]
            for fold in (band.left, band.right):
                if fold is not None and not fold.singular:
                    omega[x == fold.x] = fold.omega
            hard = (band.left is None or band.left.singular, band.right.singular)
            for end, infinite in zip(band.ends, hard, strict=True):
                if infinite and (x == end).any():
                    raise InputError("z", end, "a point off the hard edge, where the Stieltjes transform is infinite")
        outside = np.isnan(omega)
        if outside.any():
            status, omega[outside] = self._points.classify(x[outside])
            if (status != GAP).any():
                raise ConvergenceError(
                    f"the Stieltjes transform at {x[outside][status != GAP][0]!r}", None, None,
                    "the point is too near an edge, or m vanishes there: take another point, or Im z > 0",
                )
        return self._output(x.astype(complex), omega)

    def stieltjes_to(self, z: Any, digits: int) -> Any:
        del z
        raise _too_many(digits)

    def density_to(self, x: Any, digits: int) -> Any:
        del x
        raise _too_many(digits)

    def integrate_to(self, function: Callable[[Any], Any], digits: int, upper: Any = None) -> Any:
        del function, upper
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
