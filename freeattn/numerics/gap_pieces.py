"""The gaps of a law, cut into pieces on which the solution is smooth in one coordinate."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from freeattn.numerics.bands import BandMap

__all__ = ["End", "Piece", "SharedEnd", "pieces_of"]

Real = NDArray[np.float64]

_INNERMOST = 1e-25  # of the smallest end of a band: what is left out of a trace there is below rounding
_HARD = 1e-6  # to the power k, the same at a hard edge of order k: nearer, rounding hides the traces
_BESIDE_ATOM = 1e-9  # of an atom's location: nearer points have no accurate distance
_REACH = 1e7  # times the largest end: beyond, the series at infinity gives m
_ROOTS = 3.0  # a step in the log of the distance from an edge beside one in log t: the solution goes like its root
_LEAST_RATIO = 0.01  # of t in one step beside an edge
_NEAR_EDGE = 0.3  # of t: distance from an edge within which traces go like its root


class End(NamedTuple):
    """An end of a band: x, whether it is a square-root edge, and the order of a hard edge otherwise."""

    x: float
    fold: bool
    order: float = 1.0


class SharedEnd(NamedTuple):
    """One point (0, an atom, infinity or a cut) as the t of two pieces; whether they lie on opposite sides of it."""

    ours: float
    theirs: float
    opposite: bool


@dataclass(frozen=True)
class Piece:
    """x = origin + sign·t with low ≤ t ≤ high.

    Attributes:
        folds: which of the two ends in t are square-root edges; others are the origin (or so near it that only leading
            powers of t are left), infinity, or a cut.
        endless: whether `high` stands for infinity.
    """

    origin: float
    sign: int
    low: float
    high: float
    folds: tuple[bool, bool]
    endless: bool

    @property
    def map(self) -> BandMap:
        """θ ↦ t, resolving both ends."""
        return BandMap(self.low, self.high)

    @property
    def starts_at_zero(self) -> bool:
        """Whether its least t stands for x = 0."""
        return self.origin == 0 and not self.folds[0]

    @property
    def edges(self) -> list[float]:
        """The ends in t that are square-root edges."""
        return [end for end, fold in zip((self.low, self.high), self.folds, strict=True) if fold]

    def point(self, t: Real) -> Real:
        """x."""
        return self.origin + self.sign * t

    def distance(self, x: Real) -> Real:
        """t."""
        return self.sign * (x - self.origin)

    def targets(self, t: float, starts: int) -> list[float]:
        """Where a start at t is followed to: the ends that are no edges, or the middle where two starts meet."""
        if starts > 1:
            return [float(np.sqrt(self.low * self.high))]
        ends = zip((self.low, self.high), self.folds, strict=True)
        return [end for end, fold in ends if not fold and end != t]

    def stepped(self, t: float, end: float, step: float) -> float:
        """The next t towards `end`: a step in log t, or in the log of the distance from an edge that is near."""
        near = [t - edge for edge in self.edges if abs(t - edge) < _NEAR_EDGE * t]
        moved = t + near[0] * float(np.expm1(_ROOTS * step)) if near else t * float(np.exp(step if end > t else -step))
        return min(moved, end) if end > t else max(moved, end, _LEAST_RATIO * t if near else 0.0)

    def shared_with(self, other: Piece) -> SharedEnd | None:
        """An end that two pieces have in common; None when there is none."""
        if self.folds[0] is other.folds[0] is False and self.origin == other.origin and self.sign != other.sign:
            return SharedEnd(self.low, other.low, True)
        if self.folds[1] or other.folds[1] or self.sign == other.sign:
            return None
        ends = [float(piece.point(np.array(piece.high))) for piece in (self, other)]
        if ends[0] == ends[1]:
            return SharedEnd(self.high, other.high, False)
        return SharedEnd(self.high, other.high, True) if self.endless and other.endless else None

    def root_step(self, t: Real, there: Real) -> tuple[Real, NDArray[np.bool_]]:
        """dt = ±2r·dr for a step in r, the root of the distance from the nearest edge, and where that edge is near."""
        if not self.edges:
            return there - t, np.zeros(t.shape, dtype=bool)
        ends = np.array(self.edges)
        edge = ends[np.argmin(np.abs(t[:, None] - ends), axis=1)]
        root, beyond = np.sqrt(np.abs(t - edge)), np.sqrt(np.abs(there - edge))
        near = np.minimum(np.abs(t - edge), np.abs(there - edge)) < _NEAR_EDGE * t
        return 2 * np.where(t > edge, root, -root) * (beyond - root), near


def pieces_of(ends: Sequence[End], atoms: Sequence[float]) -> list[Piece]:
    """All pieces of the complement of the bands, ascending.

    Args:
        ends: the left and right end of each band, ascending.
        atoms: points where traces may have poles; 0 is always one.
    """
    if not ends:
        return []  # nothing to start from
    known = [abs(x) for x in (*(end.x for end in ends), *atoms) if x]
    order = max(end.order for end in ends)
    scales = (max(_INNERMOST, _HARD**order if order > 1 else 0.0) * min(known), _REACH * max(known))
    bounds = [End(-np.inf, False), *ends, End(np.inf, False)]
    found: list[Piece] = []
    for low, high in zip(bounds[::2], bounds[1::2], strict=True):
        cuts = sorted({x for x in (0.0, *atoms) if low.x < x < high.x})
        points = [low, *(End(x, False) for x in cuts), high]
        for left, right in pairwise(points):
            if left.x < right.x:
                found += _pieces_between(left, right, scales)
    return found


def _pieces_between(left: End, right: End, scales: tuple[float, float]) -> list[Piece]:
    """One piece, or two that meet halfway between two origins; `scales` are the least and the largest t."""
    (low, low_fold, _), (high, high_fold, _) = left, right
    low_origin, high_origin = np.isfinite(low) and not low_fold, np.isfinite(high) and not high_fold
    if low_origin and high_origin:
        middle = (low + high) / 2
        return [
            Piece(low, 1, _innermost(low, scales), middle - low, (False, False), False),
            Piece(high, -1, _innermost(high, scales), high - middle, (False, False), False),
        ]
    if low_origin or (low >= 0 and not high_origin):
        origin = low if low_origin else 0.0
        near = _innermost(low, scales) if low_origin else low
        return [Piece(origin, 1, near, min(high - origin, scales[1]), (low_fold, high_fold), high == np.inf)]
    origin = high if high_origin else 0.0
    near = _innermost(high, scales) if high_origin else -high
    return [Piece(origin, -1, near, min(origin - low, scales[1]), (high_fold, low_fold), low == -np.inf)]


def _innermost(origin: float, scales: tuple[float, float]) -> float:
    """The least t about an origin."""
    return _BESIDE_ATOM * abs(origin) if origin else scales[0]
