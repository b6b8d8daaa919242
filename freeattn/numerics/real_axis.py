"""The physical solution on the real axis itself, and the support of the law.

A point of the axis lies in a band (a complex solution in the cone), in a gap (a real solution whose traces increase),
or too near an edge to tell. Points of a grid are sorted so; between a point in a band and one in a gap there is an
edge, found as a fold.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from freeattn.errors import BranchError, ConvergenceError
from freeattn.numerics.descent import Descent
from freeattn.numerics.folds import Fold, find_fold
from freeattn.numerics.trace_equation import TraceEquation

__all__ = ["Axis", "Stretch", "find_stretches"]

Real = NDArray[np.float64]
Complex = NDArray[np.complex128]
Mask = NDArray[np.bool_]

UNKNOWN, BAND, GAP = 0, 1, 2
_HEIGHTS = (1e-2, 1e-4, 1e-7, 1e-10)  # Im z over |x| from which the axis is tried
_AROUND = 0.3  # Im z over |x| on the way around an edge
_VISIBLE = 1e-12  # Im m over |m| below which a solution counts as real
_FINE, _COARSE = 10, 3  # points a decade: near the size of the law, and along a band towards 0
_NEAR_DECADES = (-3.0, 1.5)  # of the size of the law: the part of the axis where most laws live
_FAR_DECADES = (-40.0, 8.0)
_INWARDS = 7  # decades that a finer grid adds below
_STEEPEST = 3.0  # power of x beyond which a trace is not continued as one
_HIGHEST_ORDER = 64  # of a hard edge: as many factors have to vanish at one point
_VANISHING = 1e-9  # a factor that goes like x^{1/k} is known to rounding only: smaller ones are zero for all we know
_POWER_TOLERANCE = 0.02  # of the power of x near 0, where corrections are of relative order x^{1/k}
_HALVINGS = 60  # of an interval that holds an edge


@dataclass(frozen=True)
class Stretch:
    """One band: its edges (None for the end 0 where the density meets no fold), solutions at points inside, and the
    order k of a hard edge at 0, where ρ ~ x^{1/k − 1} (0 or 1 without one)."""

    left: Fold | None
    right: Fold | None
    x: Real
    traces: Complex
    order: int = 0

    @property
    def ends(self) -> tuple[float, float]:
        """(left, right)."""
        return (self.left.x if self.left else 0.0), (self.right.x if self.right else 0.0)

    def nearest(self, x: Real) -> tuple[Real, Complex]:
        """The points inside that are nearest to the given ones on a logarithmic scale, and the solutions there."""
        with np.errstate(divide="ignore"):
            distance = np.abs(np.log(np.abs(x[:, None] / self.x)))
        index = np.argmin(np.where(x[:, None] * self.x > 0, distance, np.inf), axis=1)
        return self.x[index], self.traces[index]


class Axis:
    """Solutions at real points."""

    def __init__(self, equation: TraceEquation, descent: Descent) -> None:
        self.equation, self._descent = equation, descent

    def classify(self, x: Real) -> tuple[NDArray[np.int_], Complex]:
        """(BAND, GAP or UNKNOWN, solution on the axis) at each point, by continuation from above."""
        above = x + 1j * _HEIGHTS[0] * np.abs(x)
        return self._lowered(x, above, *self._descent.attempt(above))

    def beyond(self, x: Real, u: Complex, there: Real) -> tuple[NDArray[np.int_], Complex]:
        """The same at points beyond given ones of a band, whose solutions are known: around whatever lies between."""
        above = there + 1j * _AROUND * np.abs(there)
        start, alive = self.equation.newton(self.predicted(u, x, above), above)
        if alive.any():
            alive[alive] = self.equation.in_cone(start[alive], above[alive])
        lower = there + 1j * _HEIGHTS[0] * np.abs(there)
        below, reached = self._descent.follow(above, lower, start)
        return self._lowered(there, lower, below, alive & reached)

    def _lowered(self, x: Real, above: Complex, u: Complex, alive: Mask) -> tuple[NDArray[np.int_], Complex]:
        """Sort points, from solutions a little above them (where `alive`)."""
        status, solution = np.zeros(x.shape, dtype=int), np.full((x.size, self.equation.count), np.nan + 0j)
        for lower in (*_HEIGHTS[1:], 0.0):
            todo = np.flatnonzero((status == UNKNOWN) & alive)
            if not todo.size:
                break
            status[todo], solution[todo] = self._touch(x[todo], above[todo], u[todo])
            todo = np.flatnonzero((status == UNKNOWN) & alive)
            if lower and todo.size:
                following = x[todo] + 1j * lower * np.abs(x[todo])
                u[todo], alive[todo] = self._descent.follow(above[todo], following, u[todo])
                above[todo] = following
        return status, solution

    def _touch(self, x: Real, above: Complex, u: Complex) -> tuple[NDArray[np.int_], Complex]:
        """The axis itself, from the solution a little above it."""
        equation = self.equation
        tangent = equation.tangent(equation.matrices(u, above))
        start = np.where(np.isfinite(tangent), u - 1j * above.imag[:, None] * tangent, u)
        solution, band = self.in_band(start, x)
        gap = np.zeros(x.shape, dtype=bool)
        rest = np.flatnonzero(~band)
        if rest.size:
            real, good = self.in_gap(start[rest].real, x[rest])
            solution[rest], gap[rest] = real, good
        return np.where(band, BAND, np.where(gap, GAP, UNKNOWN)), solution

    def in_band(self, start: Complex, x: Real) -> tuple[Complex, Mask]:
        """Newton on the axis: (solution, whether it is the physical one of a band)."""
        u, good = self.equation.newton(start, x.astype(complex))
        m = self.equation.output(self.equation.matrices(u, x.astype(complex)))
        with np.errstate(all="ignore"):
            good &= m.imag > _VISIBLE * np.abs(m)
        if good.any():
            good[good] = self.equation.in_cone(u[good], x[good].astype(complex))
        return u, good

    def in_gap(self, start: Real, x: Real) -> tuple[Real, Mask]:
        """Newton among real numbers: (solution, whether it is the physical one of a gap)."""
        u, good = self.equation.newton(start, x)
        if good.any():
            good[good] = self.equation.increasing(u[good], x[good])
        return u, good

    def predicted(self, u: Complex, x: Real, there: Real | Complex) -> Complex:
        """The solution at other points of the band, or above it: every trace continued as a power of x."""
        tangent = self.equation.tangent(self.equation.matrices(u, x.astype(complex)))
        with np.errstate(all="ignore"):
            power = x[:, None] * tangent / u
            moved = u * np.exp(power * np.log(there / x)[:, None])
        usable = np.isfinite(moved) & (np.abs(power) < _STEEPEST)
        return np.where(usable, moved, u)

    def slope(self, u: Complex, x: float) -> Complex:
        """du/dx at one point."""
        return self.equation.tangent(self.equation.matrices(u[None], np.array([x + 0j])))[0]

    def power(self, u: Complex, x: float) -> float:
        """d log ρ / d log x at one point of a band."""
        matrices = self.equation.matrices(u[None], np.array([x + 0j]))
        change = self.equation.energy(self.equation.tangent(matrices))
        rates = [g @ (s.point + e) @ g
                 for g, s, e in zip(matrices, self.equation.tables.sectors, change, strict=True)]
        m, rate = (self.equation.output(values)[0] for values in (matrices, rates))
        return float(x * rate.imag / m.imag)


def find_stretches(axis: Axis, size: float, signed: bool, refine: int = 1) -> tuple[Stretch, ...]:
    """All bands that a grid sees, ascending.

    Args:
        axis: solutions on the real axis.
        size: order of magnitude of the law.
        signed: whether the law may have support below 0.
        refine: how many times finer than usual the grid is.

    Raises:
        ConvergenceError: when an edge is not found between a point in a band and one in a gap.
        BranchError: when the grid ends inside a band.
    """
    sides = [_scanned(axis, sign * size, refine) for sign in ((-1, 1) if signed else (1,))]
    x, status, u = (np.concatenate([side[k] for side in sides]) for k in range(3))
    known = np.flatnonzero(status != UNKNOWN)
    known = known[np.argsort(x[known])]
    if not (status[known] == BAND).any():
        raise BranchError("no band was found on the real axis")
    return tuple(_stretches(axis, x[known], status[known], u[known], signed))


def _scanned(axis: Axis, size: float, refine: int) -> tuple[Real, NDArray[np.int_], Complex]:
    """Points of one half of the axis: near the size of the law, and on outwards and inwards while still in a band.

    A finer grid also looks further inwards where the near part ends in a gap.
    """
    x = size * 10.0 ** np.arange(*_NEAR_DECADES, 1 / (refine * _FINE))
    found = [(x, *axis.classify(x))]
    status, u = found[0][1:]
    if refine > 1 and status[0] == GAP:
        x = size * 10.0 ** np.arange(_NEAR_DECADES[0] - _INWARDS, _NEAR_DECADES[0], 1 / _FINE)
        found.append((x, *axis.classify(x)))
    for place, factor, end in ((0, 10.0 ** (-1 / _COARSE), _FAR_DECADES[0]), (-1, 10.0, _FAR_DECADES[1])):
        if status[place] == BAND:
            found.append(_tracked(axis, found[0][0][place], u[place], factor, size * 10.0**end, size))
    return tuple(np.concatenate([part[k] for part in found]) for k in range(3))  # type: ignore[return-value]


def _tracked(
    axis: Axis, x: float, u: Complex, factor: float, end: float, size: float
) -> tuple[Real, NDArray[np.int_], Complex]:
    """From a point in a band by equal factors to where the band ends: the last point is outside, if one was found."""
    points: list[float] = []
    solutions: list[Complex] = []
    status = BAND
    while abs(np.log(x / end)) > abs(np.log(factor)) and status == BAND and not _is_power_law(axis, x, u, size):
        here, there = np.array([x]), np.array([x * factor])
        following, good = axis.in_band(axis.predicted(u[None], here, there), there)
        if good[0]:
            u = following[0]
        else:
            kinds, following = axis.beyond(here, u[None], there)
            if kinds[0] == UNKNOWN:
                kinds, following = axis.classify(there)
            status, u = int(kinds[0]), following[0]
        x = float(there[0])
        points.append(x)
        solutions.append(following[0])
    kinds = np.full(len(points), BAND)
    kinds[-1:] = status
    return np.array(points), kinds, np.array(solutions).reshape(len(points), -1)


def _stretches(axis: Axis, x: Real, status: NDArray[np.int_], u: Complex, signed: bool) -> list[Stretch]:
    found: list[Stretch] = []
    inside = np.flatnonzero(status == BAND)
    groups = np.split(inside, np.flatnonzero(np.diff(inside) > 1) + 1)
    for group in groups:
        first, last = group[0], group[-1]
        if last == x.size - 1 or (signed and first == 0):
            raise BranchError(f"the grid ends inside a band, at x = {x[last]:.6g}")
        right = _edge(axis, (x[last], u[last]), x[last + 1])
        if first == 0:
            found.append(Stretch(None, right, x[group], u[group], _order(axis, x[0], u[0])))
        else:
            left = _edge(axis, (x[first], u[first]), x[first - 1])
            found.append(Stretch(left, right, x[group], u[group]))
    return found


def _is_power_law(axis: Axis, x: float, u: Complex, size: float) -> bool:
    """Whether ρ ~ x^{1/k − 1} has held so far towards 0 that doubles would not see it end."""
    power = axis.power(u, x)
    if not -1 < power < -0.3:
        return False
    order = round(1 / (1 + power))
    return abs(1 / order - 1 - power) < _POWER_TOLERANCE and abs(x / size) ** (1 / order) < _VANISHING


def _order(axis: Axis, x: float, u: Complex) -> int:
    """k of ρ ~ x^{1/k − 1}, from the slope at the lowest point.

    Raises:
        BranchError: when ρ does not grow like such a power.
    """
    power = axis.power(u, x)
    order = round(1 / (1 + power)) if -1 < power < 0.5 else 0
    if not 1 <= order <= _HIGHEST_ORDER or abs(1 / order - 1 - power) > _POWER_TOLERANCE:
        raise BranchError(f"the density at {x:.6g} goes like the power {power:.6g} of x: no edge and no hard edge at 0")
    return order


def _edge(axis: Axis, band: tuple[float, Complex], gap: float) -> Fold:
    """The fold between a point in a band (x, solution) and a point in a gap.

    Raises:
        ConvergenceError: when none is found.
    """
    inside, u = band
    share = 0.5
    for _ in range(_HALVINGS):
        fold = _from_band(axis, inside, u)
        if fold is not None and min(inside, gap) <= fold.x <= max(inside, gap):
            return fold
        middle = _between(inside, gap, share)
        status, solution = axis.classify(np.array([middle]))
        if status[0] == BAND:
            inside, u = middle, solution[0]
        elif status[0] == GAP:
            gap = middle
        share = 0.5 if status[0] else share / 2  # too near the edge to tell: nearer to the band
    raise ConvergenceError("an edge", abs(inside - gap), 0.0, f"it lies between {inside!r} and {gap!r}")


def _between(inside: float, gap: float, share: float) -> float:
    """A point between, on a logarithmic scale where both lie on one side of 0."""
    if inside * gap > 0:
        return float(inside * (gap / inside) ** share)
    return inside + share * (gap - inside)


def _from_band(axis: Axis, x: float, u: Complex) -> Fold | None:
    """Newton from a point in a band: (Im u)² is linear in x near an edge."""
    slope = axis.slope(u, x)
    m = int(np.argmax(np.abs(u.imag)))
    if not np.isfinite(slope).all() or slope[m].imag == 0:
        return None
    distance = float(-u[m].imag / (2 * slope[m].imag))
    return find_fold(axis.equation, x + distance, u.real + slope.real * distance, u.imag)
