"""The bands of a law that is given by a Dyson equation.

Each half of the real axis is scanned, outwards and inwards; between a point in a band and one in a gap there is an
edge, found as a fold. A band may reach 0 without a fold: then ρ ~ |x|^{1/k − 1} there, a hard edge for k ≥ 2.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from freeattn.errors import BranchError, ConvergenceError, NotCoveredError
from freeattn.numerics.folds import Fold, find_fold
from freeattn.numerics.real_axis import BAND, GAP, UNKNOWN, Axis

__all__ = ["Stretch", "Tail", "find_stretches"]

Real = NDArray[np.float64]
Complex = NDArray[np.complex128]
Points = tuple[Real, NDArray[np.int_], Complex]  # places, BAND or GAP or UNKNOWN, solutions

_FINE, _COARSE = 5, 3  # points a decade: near the size of the law, and along a band towards 0
_NEAR_DECADES = (-3.0, 1.5)  # of the size of the law: the part of the axis where most laws live
_FAR_DECADES = (-40.0, 8.0)
_INNERMOST = -15.0  # decades, for laws on both sides of 0: rounding of doubles
_INWARDS = 7  # decades that a finer grid adds below
_HIGHEST_ORDER = 64  # of a hard edge: as many factors have to vanish at one point
_VANISHING = 1e-9  # a factor that goes like x^{1/k} is known to rounding only: smaller ones are zero for all we know
_ROOT_OF_SINGULAR_VALUES = Fraction(4, 3)  # ρ ~ √s in s = √x
_ROOT = Fraction(2, 3)  # ρ ~ √|x|
_BESIDE_ROOT = 1e-9  # of the size of the law: where its power is measured, as ρ ~ √|x| is lost in rounding nearer to 0
_WEAKEST = -0.22  # power of x that counts as a hard edge while a band is followed towards 0
_DIVERGES = -0.02  # power of |x| below which ρ is taken to diverge at 0
_STEADY = 1e-5  # change of the power of x from point to point; one that passes to another changes by 0.02 and more
_POWER_TOLERANCE = 0.02  # of the power of x near 0, where corrections are of relative order x^{1/k}
_UNSEEN = 1e-14  # of mass: below the rounding of the whole
_NO_FOLD = 1e-8  # relative: Newton's method finds a square-root edge from much farther away
_AMBIGUOUS = 1e-7  # relative distance from an edge within which rounding decides on which side a point seems to lie
_NOWHERE: Real = np.zeros(0)
_HALVINGS = 60  # of an interval that holds an edge


class Tail(NamedTuple):
    """ρ = innermost·|x/beneath|^power for |x| < beneath, where doubles do not resolve the equation."""

    beneath: float
    innermost: float
    power: float

    def density(self, x: Real) -> Real:
        """ρ; 0 where the law does not hold."""
        share = np.abs(x) / self.beneath if self.beneath else np.ones(x.shape)
        return np.where(share < 1, self.innermost * share**self.power, 0.0)


@dataclass(frozen=True)
class Stretch:
    """One band: its edges (None for an end at 0 where the density meets no fold), solutions at points inside, and the
    order k of ρ ~ |x|^{1/k − 1} at an end that is 0 (1 without one; half of an odd number at a cusp of singular values,
    4/3 where they start like √s, 2/3 at a square-root edge at 0 itself)."""

    left: Fold | None
    right: Fold | None
    x: Real
    traces: Complex
    order: Fraction = Fraction(1)

    @property
    def map_order(self) -> float:
        """k for which the traces are smooth in the root x^{1/(2k)}; 0 without a hard edge."""
        if self.order <= 1:
            return 0.0
        return float(self.order) if self.order.denominator <= 2 else self.order.numerator / 2

    @property
    def ends(self) -> tuple[float, float]:
        """(left, right)."""
        return (self.left.x if self.left else 0.0), (self.right.x if self.right else 0.0)

    @property
    def sharp(self) -> bool:
        """Whether both edges are good to a few ulps."""
        return all(fold is None or fold.sharp for fold in (self.left, self.right))

    def nearest(self, x: Real) -> tuple[Real, Complex]:
        """The points inside that are nearest to the given ones on a logarithmic scale, and the solutions there."""
        with np.errstate(divide="ignore", invalid="ignore"):
            distance = np.abs(np.log(np.abs(x[:, None] / self.x)))
        index = np.argmin(np.where(x[:, None] * self.x > 0, distance, np.inf), axis=1)
        return self.x[index], self.traces[index]

    def beside_edge(self, x: Real, start: Complex) -> Complex:
        """Starts at points between an edge and the known point next to it: u − u_e ~ i·√|x − x_e|; others as given."""
        found = start.copy()
        for fold, inside in ((self.left, x < self.x.min()), (self.right, x > self.x.max())):
            if fold is None or not inside.any():
                continue
            known = np.argmin(np.abs(self.x - fold.x))
            share = np.maximum((x[inside] - fold.x) / (self.x[known] - fold.x), 0)[:, None]  # a point may round past
            change = self.traces[known] - fold.traces
            found[inside] = fold.traces + change.real * share + 1j * change.imag * np.sqrt(share)
        return found

    def tail(self, axis: Axis) -> Tail:
        """The power law below the innermost known point of a hard edge; nothing where its error would be seen.

        That error is the mass there times how far the power still is from its limit.
        """
        if self.order <= 1:
            return Tail(0.0, 0.0, 0.0)
        innermost, order = int(np.argmin(np.abs(self.x))), float(self.order)
        x, u = float(self.x[innermost]), self.traces[innermost]
        density = float(axis.equation.output(axis.equation.matrices(u[None], np.array([x + 0j])))[0].imag / np.pi)
        error = order * abs(x) * density * abs(axis.power(u, x) + 1 - 1 / order)
        return Tail(abs(x) if error <= _UNSEEN else 0.0, density, 1 / order - 1)


def find_stretches(
    axis: Axis, size: float, signed: bool, refine: int = 1, extra: Real = _NOWHERE
) -> tuple[Stretch, ...]:
    """All bands that a grid sees, ascending.

    Args:
        axis: solutions on the real axis.
        size: order of magnitude of the law.
        signed: whether the law may have support below 0.
        refine: how many times finer than usual the grid is.
        extra: points to look at besides those of the grid.

    Raises:
        ConvergenceError: when an edge is not found between a point in a band and one in a gap.
        NotCoveredError: when a band ends away from 0 and not like a square root.
        BranchError: when no band is found, or the grid ends inside one.
    """
    halves = [_half(axis, sign * size, signed, refine, extra) for sign in ((-1, 1) if signed else (1,))]
    found = [stretch for half in halves for stretch in half]
    if not found:
        raise BranchError("no band was found on the real axis")
    touching = [stretch for stretch in found if None in (stretch.left, stretch.right)]
    if len(touching) == 2 and max(stretch.order for stretch in touching) <= 1:
        below, above = touching
        whole = replace(
            below, right=above.right, order=Fraction(1), x=np.concatenate([below.x, above.x]),
            traces=np.concatenate([below.traces, above.traces]),
        )
        found = [stretch for stretch in found if stretch not in touching] + [whole]
    return tuple(sorted(found, key=lambda stretch: stretch.ends))


def _half(axis: Axis, size: float, signed: bool, refine: int, extra: Real) -> list[Stretch]:
    """The bands on one side of 0, that of `size`."""
    x, status, u = _scanned(axis, size, _INNERMOST if signed else _FAR_DECADES[0], refine, extra[extra * size > 0])
    known = np.flatnonzero(status != UNKNOWN)
    known = known[np.argsort(np.abs(x[known]))]
    x, status, u = x[known], status[known], u[known]
    found: list[Stretch] = []
    inside = np.flatnonzero(status == BAND)
    for group in np.split(inside, np.flatnonzero(np.diff(inside) > 1) + 1) if inside.size else []:
        first, last = group[0], group[-1]
        if last == x.size - 1:
            raise BranchError(f"the grid ends inside a band, at x = {x[last]:.6g}")
        outer = _edge(axis, (x[last], u[last]), x[last + 1])
        inner, order = (
            (_edge(axis, (x[first], u[first]), x[first - 1]), Fraction(1)) if first
            else _innermost_end(axis, x[0], u[0], signed)
        )
        if signed and inner is None and order == 1:
            near = group[np.argmin(np.abs(np.log(x[group] / size / _BESIDE_ROOT)))]
            order = _ROOT if abs(axis.power(u[near], x[near]) - 0.5) < _POWER_TOLERANCE else order
        left, right = (inner, outer) if size > 0 else (outer, inner)
        found.append(Stretch(left, right, x[group], u[group], order))
    return found


def _scanned(axis: Axis, size: float, innermost: float, refine: int, extra: Real) -> Points:
    """Points of one half of the axis: near the size of the law, and on outwards and inwards while still in a band.

    A finer grid looks further inwards too: a band may hide below a gap there.
    """
    low, high = _NEAR_DECADES
    decades = np.arange(low - (_INWARDS if refine > 1 else 0), high, 1 / (refine * _FINE))
    x = np.concatenate([size * 10.0**decades, extra])
    x = x[np.argsort(np.abs(x))]
    status, u = axis.classify(x)
    found, known = [(x, status, u)], np.flatnonzero(status != UNKNOWN)
    for place, factor, end in ((0, 10.0 ** (-1 / _COARSE), innermost), (-1, 10.0, _FAR_DECADES[1])):
        if known.size and status[known[place]] == BAND:
            start = known[place]
            found.append(_tracked(axis, x[start], u[start], factor, (size * 10.0**end, size)))
    return tuple(np.concatenate([part[k] for part in found]) for k in range(3))  # type: ignore[return-value]


def _tracked(axis: Axis, x: float, u: Complex, factor: float, scale: tuple[float, float]) -> Points:
    """From a point in a band by equal factors to where the band ends, or to the end of the grid.

    The last point is outside the band, if one was found. `scale` is (end of the grid, size of the law).
    """
    points: list[float] = []
    solutions: list[Complex] = []
    (end, size), status, before, power = scale, BAND, np.nan, axis.power(u, x)
    while abs(np.log(x / end)) > abs(np.log(factor)) and status == BAND and not _is_power_law(power, before, x / size):
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
        before, power = power, axis.power(u, x)
        points.append(x)
        solutions.append(following[0])
    kinds = np.full(len(points), BAND)
    kinds[-1:] = status
    return np.array(points), kinds, np.array(solutions).reshape(len(points), -1)


def _is_power_law(power: float, before: float, share: float) -> bool:
    """Whether ρ ~ x^{1/k − 1} has held so far towards 0 that doubles would not see it end.

    Args:
        power: of x at a point.
        before: the same at the point before: a power that still changes is on its way to another.
        share: |x| over the size of the law.
    """
    if not -1 < power < _WEAKEST or not abs(power - before) < _STEADY:
        return False
    order = _nearest_order(power)
    return abs(float(1 / order) - 1 - power) < _POWER_TOLERANCE and abs(share) ** float(1 / order) < _VANISHING


def _nearest_order(power: float) -> Fraction:
    """k of the power 1/k − 1: a multiple of 1/2, or that of a square root of singular values, ρ ~ x^{−1/4}."""
    found = Fraction(max(round(2 / (1 + power)), 1), 2)
    return min(found, _ROOT_OF_SINGULAR_VALUES, key=lambda order: abs(float(1 / order) - 1 - power))


def _innermost_end(axis: Axis, x: float, u: Complex, signed: bool) -> tuple[Fold | None, Fraction]:
    """The end of a band below which no gap was seen: its order at 0, or a fold where rounding hides the gap.

    Raises:
        BranchError: when it is neither.
    """
    try:
        return None, _order(axis, x, u, signed)
    except BranchError:
        fold = _followed(axis, x, u)
        if fold is None:
            raise
        return fold, Fraction(1)


def _followed(axis: Axis, x: float, u: Complex) -> Fold | None:
    """The fold a step inwards from a point in a band, by smaller and smaller steps; None when there is none."""
    factor = 10.0 ** (-1 / _COARSE)
    for _ in range(_HALVINGS):
        fold = _from_band(axis, x, u)
        if fold is not None and factor < fold.x / x < 1:
            return fold
        here, there = np.array([x]), np.array([x * factor])
        following, good = axis.in_band(axis.predicted(u[None], here, there), there)
        if good[0]:
            x, u = float(there[0]), following[0]
        else:
            factor = float(np.sqrt(factor))
    return None


def _order(axis: Axis, x: float, u: Complex, signed: bool) -> Fraction:
    """k of ρ ~ |x|^{1/k − 1}, from the slope at the innermost point; 1 where ρ does not diverge.

    Raises:
        BranchError: when ρ does not behave like such a power.
    """
    power = axis.power(u, x)
    if signed and power > _DIVERGES:
        return Fraction(1)
    order = _nearest_order(power) if -1 < power < 0.5 else Fraction(0)
    if not 1 <= order <= _HIGHEST_ORDER or abs(float(1 / order) - 1 - power) > _POWER_TOLERANCE:
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
        slack = _AMBIGUOUS * abs(inside)
        if fold is not None and min(inside, gap) - slack <= fold.x <= max(inside, gap) + slack:
            return fold
        middle = _between(inside, gap, share)
        status, solution = axis.classify(np.array([middle]))
        if status[0] == BAND:
            inside, u = middle, solution[0]
        elif status[0] == GAP:
            gap = middle
        share = 0.5 if status[0] else share / 2  # too near the edge to tell: nearer to the band
        if abs(inside - gap) <= _NO_FOLD * abs(inside):
            raise NotCoveredError(
                f"the law has an end of a band about {inside:.10g} (before scaling) that is no square-root edge, such "
                "as a density that diverges there; other ends are available at 0 only"
            )
    raise ConvergenceError("an edge", abs(inside - gap), None, f"it lies between {inside!r} and {gap!r}")


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
