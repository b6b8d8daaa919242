"""Real solutions of a Dyson equation outside the bands, known once along each gap.

Every piece of a gap (`gap_pieces`) is followed from an edge, where u_e + i·c·√d in the band continues to u_e ± c·√d, or
across 0, an atom or infinity from the next piece. Panels of Chebyshev series in the angle of the piece are made of it,
powers of t taken out; from there Newton's method needs a step or two anywhere, and every point is tested anew.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.polynomial import chebyshev
from numpy.typing import NDArray

from freeattn.numerics.bands import NODES, POINTS, TO_COEFFICIENTS
from freeattn.numerics.gap_pieces import End, Piece, pieces_of
from freeattn.numerics.real_axis import Axis
from freeattn.numerics.trace_equation import GapValues

__all__ = ["GapSolutions"]

Real = NDArray[np.float64]
Complex = NDArray[np.complex128]
Mask = NDArray[np.bool_]
Points = list[tuple[float, Real]]  # (t, solution), ascending

_BESIDE = 1e-3  # of the smallest length around an edge: how far beside it a piece is entered
_STEEPEST = 4.0  # power of t beyond which a trace is not taken as one
_INTEGER = 1e-6  # distance of a power from an integer that rounding and higher orders make
_ROUNDS = 60  # of following: about 15 are typical
_FIRST_STEP, _LEAST_STEP = 0.5, 1e-3  # of log t
_GROWTH, _SHRINKING = 1.7, 0.3  # of the step when it succeeds, and when not
_RESOLVED = 1e-13  # last coefficients over the size of a trace: Newton's method then starts at rounding
_SMALL = 1e-3  # share of a panel's largest value to which a trace that crosses zero is resolved
_DEPTH = 7  # halvings of a panel: what is still rough then is left to Newton's method
_SMOOTH, _GAIN = 4, 0.1  # from this depth on, what halving improves by less is rounding
_FIRST_PANELS = 4


class GapSolutions:
    """The solution at real points outside the bands.

    Args:
        axis: solutions on the real axis.
        ends: the left and right end of each band, ascending.
        atoms: where atoms are.
        inside: x ↦ the solutions at points in bands.
    """

    @np.errstate(all="ignore")  # numbers that are not finite are no solutions
    def __init__(
        self, axis: Axis, ends: Sequence[End], atoms: Sequence[float], inside: Callable[[Real], Complex]
    ) -> None:
        self._axis = axis
        self._pieces = pieces_of(ends, atoms)
        known = self._skeletons(self._edge_starts(ends, inside))
        self._panels = self._panels_of(known)

    @np.errstate(all="ignore")
    def solve(self, x: Real) -> tuple[Real, Mask]:
        """(solution, whether it is the physical one) at points outside the bands.

        Nearer to 0 than `innermost` the solution is its leading terms, which rounding does not tell from it.
        """
        u, leading = self._starts(x)
        good: Mask = np.asarray(np.isfinite(u).all(axis=1))
        todo = good & ~leading
        if todo.any():
            u[todo], good[todo] = self._axis.in_gap(u[todo], x[todo])
        return u, good

    @np.errstate(all="ignore")
    def values(self, x: Real) -> GapValues:
        """m at points outside the bands, not nearer to 0 than `innermost`."""
        return self._axis.equation.gap_values(self._starts(x)[0], x)

    def _starts(self, x: Real) -> tuple[Real, Mask]:
        """The solution by interpolation, and where it is its leading terms at 0; not-a-number where none is known."""
        u, leading = np.full((x.size, self._axis.equation.count), np.nan), np.zeros(x.shape, dtype=bool)
        for piece, panels in zip(self._pieces, self._panels, strict=True):
            t = piece.distance(x)
            here = (t >= piece.low) & (t <= piece.high)
            if piece.starts_at_zero:
                inner = (t >= 0) & (t < piece.low)
                leading |= inner & panels.meromorphic
                here |= inner
            if here.any():
                u[here] = panels.guess(piece.map.angle(t[here]), t[here])
        return u, leading

    def innermost(self, x: Real) -> Real:
        """The points, those that only leading terms in x reach moved away from 0 to where these begin."""
        result = x.copy()
        for piece, panels in zip(self._pieces, self._panels, strict=True):
            t = piece.distance(x)
            if piece.starts_at_zero and panels.meromorphic:
                inner = (t >= 0) & (t < piece.low)
                result[inner] = piece.point(np.full(inner.sum(), piece.low))
        return result

    # Following -----------------------------------------------------------------------------------------------------

    def _edge_starts(self, ends: Sequence[End], inside: Callable[[Real], Complex]) -> list[Points]:
        """A guess beside each edge of each piece: Re u ± Im u as far on the other side."""
        result = []
        for piece in self._pieces:
            starts: Points = []
            for edge in piece.edges:
                x = float(piece.point(np.array(edge)))
                others = [abs(x - end.x) for end in ends if end.x != x]
                distance = _BESIDE * min(*others, abs(x) or np.inf, piece.high - piece.low)
                outwards = 1 if edge == piece.low else -1
                u = inside(np.array([x - piece.sign * outwards * distance]))[0]
                starts.append((edge + outwards * distance, u.real + piece.sign * outwards * u.imag))
            result.append(starts)
        return result

    def _skeletons(self, starts: list[Points]) -> list[Points]:
        """Points of each piece: from its edges first, then across 0, atoms and infinity into the others."""
        found: list[Points] = [[] for _ in self._pieces]
        while any(starts):
            fresh = [self._corrected(*pair) for pair in zip(self._pieces, starts, strict=True)]
            tasks = [
                _Task(piece, points, t, u, end)
                for piece, known, points in zip(self._pieces, fresh, found, strict=True)
                for t, u in known for end in piece.targets(t, len(known))
            ]
            for known, points in zip(fresh, found, strict=True):
                points += known
            self._follow(tasks)
            for points in found:
                points.sort(key=lambda point: point[0])
            starts = self._crossed(found) if any(fresh) else []
        return found

    def _corrected(self, piece: Piece, starts: Points) -> Points:
        """The starts that Newton's method confirms."""
        if not starts:
            return []
        t = np.array([t for t, _ in starts])
        u, good = self._axis.in_gap(np.array([u for _, u in starts]), piece.point(t))
        return [(float(here), values) for here, values, right in zip(t, u, good, strict=True) if right]

    def _follow(self, tasks: list[_Task]) -> None:
        """All tasks at once, by steps that adapt; the points reached are added to the points of each."""
        step = [_FIRST_STEP] * len(tasks)
        for _ in range(_ROUNDS):
            active = [j for j, task in enumerate(tasks) if task.t != task.end and step[j] > _LEAST_STEP]
            if not active:
                return
            there = np.array([tasks[j].piece.stepped(tasks[j].t, tasks[j].end, step[j]) for j in active])
            starts = [
                self._predicted(tasks[j].piece, np.array([tasks[j].t]), tasks[j].u[None], there[n : n + 1])
                for n, j in enumerate(active)
            ]
            x = np.array([tasks[j].piece.point(there[n]) for n, j in enumerate(active)])
            moved, good = self._axis.in_gap(np.concatenate(starts), x)
            for n, j in enumerate(active):
                step[j] *= _GROWTH if good[n] else _SHRINKING
                if good[n]:
                    tasks[j] = tasks[j]._replace(t=float(there[n]), u=moved[n])
                    tasks[j].points.append((float(there[n]), moved[n]))

    def _predicted(self, piece: Piece, t: Real, u: Real, there: Real) -> Real:
        """The solution at other points of a piece: linear in the root of the distance near an edge, else by powers."""
        matrices = self._axis.equation.matrices(u, piece.point(t))
        tangent = piece.sign * self._axis.equation.tangent(matrices)
        step, near = piece.root_step(t, there)
        power = t[:, None] * tangent / u
        moved = u * (there / t)[:, None] ** power
        moved = np.where(np.isfinite(moved) & (np.abs(power) < _STEEPEST), moved, u)
        moved = np.where(near[:, None], u + tangent * step[:, None], moved)
        return np.where(np.isfinite(moved), moved, u)

    def _crossed(self, found: list[Points]) -> list[Points]:
        """Starts of pieces without any points, at ends that they share with pieces followed so far."""
        result: list[Points] = [[] for _ in found]
        for k, (piece, points) in enumerate(zip(self._pieces, found, strict=True)):
            for j in ((k - 1) % len(found), (k + 1) % len(found)):
                end = piece.shared_with(self._pieces[j])
                if points or not found[j] or end is None or result[k]:
                    continue
                place = 0 if found[j][0][0] == end.theirs else -1
                t, u = found[j][place]
                if t == end.theirs and len(found[j]) > 1:
                    beyond, other = found[j][place + (1 if place == 0 else -1)]
                    power = np.log(other / u) / np.log(beyond / t)
                    odd = np.isfinite(power) & (np.round(power) % 2 == 1) & end.opposite
                    result[k] = [(end.ours, np.where(odd, -u, u))]
        return result

    # Panels --------------------------------------------------------------------------------------------------------

    def _panels_of(self, known: list[Points]) -> list[_Panels]:
        """Panels of every piece, halved until the traces are resolved."""
        angles = np.linspace(0, np.pi / 2, _FIRST_PANELS + 1)
        todo = [(k, *pair, np.inf) for k in range(len(known)) if known[k] for pair in pairwise(angles)]
        finished: list[list[_Panel]] = [[] for _ in known]
        for depth in range(_DEPTH + 1):
            if not todo:
                break
            maps = [self._pieces[k].map for k, *_ in todo]
            t = [x.point((a + b) / 2 + (b - a) / 2 * POINTS) for x, (_, a, b, _) in zip(maps, todo, strict=True)]
            starts = [
                self._from_nearest(self._pieces[k], known[k], here) for here, (k, *_) in zip(t, todo, strict=True)
            ]
            x = [self._pieces[k].point(here) for here, (k, *_) in zip(t, todo, strict=True)]
            u, good = self._axis.in_gap(np.concatenate(starts), np.concatenate(x))
            u[~good] = np.nan
            children = []
            for (k, low, high, before), here, values in zip(todo, t, u.reshape(len(todo), NODES, -1), strict=True):
                known[k] += [(float(at), u) for at, u in zip(here, values, strict=True) if np.isfinite(u[0])]
                panel, rough = _panel(low, here, values)
                noise = depth >= _SMOOTH and np.isfinite(rough) and rough > _GAIN * before
                if rough <= _RESOLVED or noise or depth == _DEPTH:
                    finished[k].append(panel)
                else:
                    children += [(k, low, (low + high) / 2, rough), (k, (low + high) / 2, high, rough)]
            todo = children
        return [_Panels(sorted(panels, key=lambda panel: panel.low), self._axis.equation.count) for panels in finished]

    def _from_nearest(self, piece: Piece, known: Points, t: Real) -> Real:
        places = np.array([t for t, _ in known])
        index = np.argmin(np.abs(np.log(t[:, None] / places)), axis=1)
        return self._predicted(piece, places[index], np.array([u for _, u in known])[index], t)


class _Task(NamedTuple):
    """A solution to follow in one piece from t to the end, and where to keep the points on the way."""

    piece: Piece
    points: Points
    t: float
    u: Real
    end: float


class _Panel(NamedTuple):
    """One panel: u = t^powers × a Chebyshev series (nodes × unknowns) from the angle `low` on."""

    low: float
    coefficients: Real
    powers: Real


class _Panels:
    """All panels of one piece."""

    def __init__(self, panels: list[_Panel], count: int) -> None:
        self._breaks = np.array([panel.low for panel in panels] + [np.pi / 2])
        self._coefficients = np.array([panel.coefficients for panel in panels]).reshape(-1, NODES, count)
        self._powers = np.array([panel.powers for panel in panels]).reshape(-1, count)

    @property
    def meromorphic(self) -> bool:
        """Whether all traces go like whole powers of t at the least t: poles or regular, no hard edge."""
        return bool(len(self._powers)) and bool(np.all(self._powers[0] == np.round(self._powers[0])))

    def guess(self, theta: Real, t: Real) -> Real:
        """The solution by interpolation; not-a-number where none is known."""
        if not len(self._powers):
            return np.full((t.size, self._powers.shape[1]), np.nan)
        panel = np.clip(np.searchsorted(self._breaks, theta, side="right") - 1, 0, len(self._powers) - 1)
        low, high = self._breaks[panel], self._breaks[panel + 1]
        terms = chebyshev.chebvander((2 * theta - low - high) / (high - low), NODES - 1)
        found = np.empty((t.size, self._powers.shape[1]))
        for number in np.unique(panel):
            here, powers = panel == number, self._powers[number]
            found[here] = terms[here] @ self._coefficients[number]
            for power in np.unique(powers[powers != 0]):
                found[np.ix_(here, powers == power)] *= (t[here] ** power)[:, None]
        return found


def _panel(low: float, t: Real, values: Real) -> tuple[_Panel, float]:
    """A panel from its nodes, and its last coefficients over the size of the traces."""
    powers = np.log(values[-1] / values[0]) / np.log(t[-1] / t[0])
    powers = np.where(np.isfinite(powers) & (np.abs(powers) < _STEEPEST), powers, 0.0)
    powers = np.where(np.abs(powers - np.round(powers)) < _INTEGER, np.round(powers), powers)
    scaled = values * t[:, None] ** -powers
    coefficients = TO_COEFFICIENTS @ scaled
    size = np.maximum(np.abs(scaled).min(axis=0), _SMALL * np.abs(scaled).max(axis=0))
    if not np.isfinite(coefficients).all():
        return _Panel(low, coefficients, powers), np.inf
    rough = np.max(np.abs(coefficients[-2:]) / np.where(size > 0, size, np.inf))
    return _Panel(low, coefficients, powers), float(rough)
