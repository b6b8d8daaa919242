"""The bands of a free convolution: a grid of fixed points on the real axis, refined to folds."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from freeattn.errors import BranchError, ConvergenceError
from freeattn.numerics.fixed_points import BAND, GAP, FixedPoints, Fold

__all__ = ["ConvolutionBand", "Divergences", "bands_on"]

Array = NDArray[np.float64]
Divergences = tuple[tuple[float, tuple[float, ...]], ...]

_HALVINGS = 100
_FIRST_TRY = 4  # halvings before Newton's method for a fold is tried, and between tries
_SLACK = 1e-9  # of an edge against the bracket that it was started from
_SAME = 1e-6  # of the size of the law: an edge where m is infinite is found to √rounding, its exact place is known


@dataclass(frozen=True)
class ConvolutionBand:
    """A band between two folds; `left` is None at a hard edge at 0 whose density starts like x^{1/order − 1}."""

    left: Fold | None
    right: Fold
    order: Fraction

    @property
    def ends(self) -> tuple[float, float]:
        """Left and right end."""
        return (0.0 if self.left is None else self.left.x), self.right.x

    @property
    def resolved_from_ends(self) -> bool:
        """Whether points must be measured from an end, beside which the density diverges."""
        return any(fold is not None and fold.origins is not None for fold in (self.left, self.right))


def bands_on(points: FixedPoints, grid: Array, order: Fraction, infinite: Divergences) -> tuple[ConvolutionBand, ...]:
    """The bands that show on an ascending grid, whose first and last points lie outside them.

    Args:
        order: of a hard edge at 0, at which the first band then starts; 1 when there is none.
        infinite: places where weights of atoms add up to one, with the atoms.

    Raises:
        BranchError: when an end of a band lies outside the grid.
        ConvergenceError: when an edge is not found, as at a cusp.
    """
    status, omega = points.classify(grid)
    known = status != 0
    grid, status, omega = grid[known], status[known], omega[known]
    inside = np.flatnonzero(status == BAND)
    if not inside.size:
        return ()
    cuts = np.flatnonzero(np.diff(inside) > 1)
    runs = zip(inside[np.concatenate([[0], cuts + 1])], inside[np.concatenate([cuts, [inside.size - 1]])], strict=True)
    bands: list[ConvolutionBand] = []
    for first, last in runs:
        hard = order > 1 and not bands
        if last + 1 >= grid.size or (first == 0 and not hard):
            raise BranchError(f"the law has support beyond {grid[0]:.6g} … {grid[-1]:.6g}, where none can be")
        left = None if hard else _edge(points, infinite, grid[first], omega[first], grid[first - 1])
        bands.append(ConvolutionBand(left, _edge(points, infinite, grid[last], omega[last], grid[last + 1]), order))
        order = Fraction(1)
    return tuple(bands)


def _edge(points: FixedPoints, infinite: Divergences, inside: float, omega: complex, outside: float) -> Fold:
    """The fold between a point of a band and one of a gap."""
    last: ConvergenceError | None = None
    for halving in range(1, _HALVINGS):
        middle = _between(inside, outside)
        if middle in (inside, outside):
            break
        status, found = points.classify(np.array([middle]))
        if status[0] == BAND:
            inside, omega = middle, complex(found[0])
        elif status[0] == GAP:
            outside = middle
        else:
            break
        if halving % _FIRST_TRY:
            continue
        width = abs(inside - outside)
        try:
            fold = points.fold(float(inside), complex(omega), width)
        except ConvergenceError as error:
            last = error
            continue
        slack = _SLACK * width + 1e-14 * points.size
        if min(inside, outside) - slack <= fold.x <= max(inside, outside) + slack:
            return _placed(fold, infinite, _SAME * points.size)
    raise last or ConvergenceError(f"an edge near {inside:.6g}", None, _SLACK, "a cusp is not covered")


def _placed(fold: Fold, infinite: Divergences, most: float) -> Fold:
    """The fold itself, or at the place where m is infinite that it stands for."""
    if not fold.singular or not infinite:
        return fold
    x, origins = min(infinite, key=lambda place: abs(place[0] - fold.x))
    return Fold(x, origins[0], True, origins) if abs(x - fold.x) <= most else fold


def _between(a: float, b: float) -> float:
    if a * b > 0 and not 0.25 < a / b < 4:
        return float(np.sign(a) * np.sqrt(a * b))
    return (a + b) / 2
