"""How widths are best shared out between keys, values and output at a given number of weights."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, TypeAlias, final

from freeattn.errors import InputError
from freeattn.model.attention import Attention
from freeattn.model.quantities import Quantity, as_integer, as_positive
from freeattn.predict.design import LawCriterion, criterion_at
from freeattn.predict.parameters import parameter_count, width_at, with_widths

__all__ = ["Allocation", "allocate"]

_Point: TypeAlias = tuple[Any, ...]

_SMALLEST_RATIO = Fraction(1, 64)  # of a width that varies, to its greatest or to that of the given layer
_RATIO_STEP = 1e-4  # relative, where the search over ratios stops
_MOST_ROUNDS = 400


@final
@dataclass(frozen=True)
class Allocation:
    """Widths at a given number of weights for which a criterion is smallest.

    Attributes:
        spec: the layer with these widths.
        widths: by name: exact integers, or ratios.
        parameters: the exact number of weights of `spec` (over n_tokens² for ratios).
        unused: budget − parameters, at least 0; 0 for ratios. One more in the last width would exceed the budget.
        value: the criterion.
        boundary: names of the widths that are as small as the search lets them be, 1 or 1/64 of what they were for
            ratios: towards smaller ones the criterion may still fall.
        evaluated: how many layers were looked at.
    """

    spec: Attention
    widths: dict[str, Quantity]
    parameters: Quantity
    unused: Quantity
    value: float
    boundary: tuple[str, ...]
    evaluated: int


def allocate(
    spec: Attention, budget: Quantity, criterion: LawCriterion, over: Sequence[str] = ("d_key", "d_value"),
    points: int = 9,
) -> Allocation:
    """The widths at a fixed number of weights for which a criterion of the law is smallest.

    All names in `over` but the last vary; the last width is the largest integer that keeps the exact number of weights
    within the budget. For a layer by ratios (`over=("gamma_key", "gamma_value")`) the budget is in units of n_tokens²,
    and is met exactly. The search takes a coarse grid of widths with equal ratios, then compares with neighbours at
    steps that halve: at the end no integer width moved by one, alone or two against each other, does better.

    Args:
        spec: a layer with numbers; widths not named in `over` stay as they are, tied values follow the keys.
        budget: number of weights, see `parameter_count`.
        criterion: a function of a law, minimized.
        over: two or three of "d_key", "d_value", "d_out", or of "gamma_key", "gamma_value", "gamma_out".
        points: of the coarse grid, for each width that varies, at least 3.

    Raises:
        InputError: when arguments are not allowed, or the budget is too small for every width.
    """
    search = _Search(spec, as_positive("budget", budget, "a positive number"), criterion, tuple(over))
    points = as_integer("points", points, "an integer of at least 3", 3)
    return search.result(search.refined(search.coarse(points)))


@final
class _Search:
    """The criterion as a function of all widths but the last."""

    def __init__(self, spec: Attention, budget: Quantity, criterion: LawCriterion, over: tuple[str, ...]) -> None:
        if len(over) < 2 or len(set(over)) != len(over):
            raise InputError("over", ", ".join(over), "two or three different widths")
        self._spec, self._budget, self._criterion = spec, budget, criterion
        self._free, self._last = over[:-1], over[-1]
        self._whole = spec.ratios is None
        self._seen: dict[_Point, float] = {}
        with_widths(spec, {name: getattr(spec, name, None) for name in over})  # refuses names that are no widths

    def coarse(self, points: int) -> _Point:
        """The best point of a grid with equal ratios."""
        axes = [self._axis(name, points) for name in self._free]
        best = min(itertools.product(*axes), key=self.value)
        if not math.isfinite(self.value(best)):
            raise InputError("budget", self._budget, f"enough weights for some {', '.join(self._free)}")
        return best

    def refined(self, start: _Point) -> _Point:
        """From there to a point that no neighbour beats, with steps that halve."""
        best = start
        steps = [max(x // 2, 1) if self._whole else x / 2 for x in start]
        for _ in range(_MOST_ROUNDS):
            nearest = min(self._neighbours(best, steps), key=self.value)
            if self.value(nearest) < self.value(best):
                best = nearest
            elif all(self._finest(step, x) for step, x in zip(steps, best, strict=True)):
                break
            else:
                steps = [max(step // 2, 1) if self._whole else step / 2 for step in steps]
        return best

    def value(self, point: _Point) -> float:
        """The criterion, infinite where the budget leaves nothing for the last width."""
        if point not in self._seen:
            spec = self._at(point)
            self._seen[point] = math.inf if spec is None else float(criterion_at(spec, self._criterion))
        return self._seen[point]

    def result(self, point: _Point) -> Allocation:
        """What is known about a point."""
        spec = self._at(point)
        assert spec is not None
        count = parameter_count(spec)
        widths = {name: getattr(spec, name) for name in (*self._free, self._last)}
        evaluated = sum(math.isfinite(value) for value in self._seen.values())
        return Allocation(
            spec, widths, count, self._budget - count, self.value(point), self._boundary(widths), evaluated
        )

    def _boundary(self, widths: dict[str, Quantity]) -> tuple[str, ...]:
        """Names of the widths that one more step would bring below the least."""
        step = 1 if self._whole else 1 + 2 * _RATIO_STEP
        least = {name: self._least(name) for name in widths}
        return tuple(
            name for name, x in widths.items() if (x - step < least[name] if self._whole else x <= step * least[name])
        )

    def _at(self, point: _Point) -> Attention | None:
        changed = with_widths(self._spec, dict(zip(self._free, point, strict=True)))
        try:
            last = width_at(changed, self._budget, self._last)
        except InputError as error:
            if error.field != "budget":
                raise
            return None
        if self._whole:
            last = math.floor(last)
        return with_widths(changed, {self._last: last}) if last >= self._least(self._last) else None

    def _axis(self, name: str, points: int) -> list[Any]:
        """Values from the smallest width to the largest that the budget allows, other widths at their smallest."""
        others = {other: self._least(other) for other in (*self._free, self._last) if other != name}
        greatest = width_at(with_widths(self._spec, others), self._budget, name)
        least = self._least(name) if self._whole else greatest * _SMALLEST_RATIO
        factor = float(greatest / least) ** (1 / (points - 1))
        values = [float(least) * factor**k for k in range(points)]
        return sorted({max(math.floor(v), least) for v in values}) if self._whole else [Fraction(v) for v in values]

    def _least(self, name: str) -> Any:
        """A small width that is allowed."""
        position = self._spec.position_width if name in ("d_key", "gamma_key") else 0  # keys are wider than that
        if self._whole:
            return 1 + position
        return position * self._spec.n_heads + _SMALLEST_RATIO * getattr(self._spec, name)

    def _neighbours(self, point: _Point, steps: list[Any]) -> Iterator[_Point]:
        """One or more coordinates moved by their step."""
        for signs in itertools.product((-1, 0, 1), repeat=len(point)):
            moved = tuple(x + sign * step for x, sign, step in zip(point, signs, steps, strict=True))
            if any(signs) and all(x >= self._least(name) for x, name in zip(moved, self._free, strict=True)):
                yield moved

    def _finest(self, step: Any, x: Any) -> bool:
        return step == 1 if self._whole else step <= _RATIO_STEP * x
