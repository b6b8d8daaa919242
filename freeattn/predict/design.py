"""The inverse temperature that suits a purpose best, and where two layers are equally good."""

from __future__ import annotations

import inspect
import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, final

import numpy as np
from scipy import optimize

from freeattn.errors import ConvergenceError, InputError
from freeattn.model.attention import Attention
from freeattn.model.precision import context_for_results, own_context
from freeattn.model.quantities import as_integer, as_positive
from freeattn.numerics.limiting import law as limiting_law
from freeattn.predict.parameters import with_value

__all__ = ["BestBeta", "Crossing", "LawCriterion", "best_beta", "criterion_at", "crossover"]

LawCriterion: TypeAlias = Callable[..., Any]  # law → number; also called with digits=… when many are asked for

_LEAST_POINTS = 5
_RESOLVED = 1e-12  # relative size below which two values of a criterion in doubles are not told apart
_BESIDE = 1e-3  # of the spacing of a scan: where the slope at an end is looked at
_LOCATION = 1e-8  # in log β, where the search for a minimum stops; rounding of the criterion blurs it at about 1e-8
_DOUBLE_DIGITS = 12  # of a crossing: a change of sign this close is seen in doubles
_GUARD_DIGITS = 10
_MOST_STEPS = 60


@final
@dataclass(frozen=True)
class BestBeta:
    """The minimum of a criterion over an interval of inverse temperatures.

    Attributes:
        beta, value: where it is (to about 1e-7 of itself; the criterion is flat there), and the criterion there.
        boundary: "low" or "high" when the criterion is smallest at that end of the interval, None inside.
        scanned: (β, criterion) at the points of the scan, to be drawn or distrusted.
    """

    beta: float
    value: float
    boundary: Literal["low", "high"] | None
    scanned: tuple[tuple[float, float], ...]


@final
@dataclass(frozen=True)
class Crossing:
    """A value of the variable at which two layers are equally good.

    Attributes:
        value: where; a float, or an mpmath number when more than 12 digits were asked for.
        criterion: what the criterion is there, for both.
        better_below, better_above: "a" or "b", the layer with the smaller criterion on either side.
        digits: to how many digits a change of sign encloses the value.
    """

    value: Any
    criterion: Any
    better_below: str
    better_above: str
    digits: int


def criterion_at(spec: Attention, criterion: LawCriterion, digits: int | None = None) -> Any:
    """The criterion of the law of a layer: a finite real number.

    Raises:
        InputError: when the criterion gives anything else.
    """
    law = limiting_law(spec)
    value = criterion(law) if digits is None else criterion(law, digits=digits)
    try:
        finite = math.isfinite(value)
    except TypeError:
        finite = False
    if not finite:
        raise InputError("criterion", value, "a function of a law that gives a finite real number")
    return value


def best_beta(
    spec: Attention, criterion: LawCriterion, low: float, high: float, points: int = 33
) -> BestBeta:
    """The inverse temperature in [low, high] at which a criterion of the law is smallest.

    The criterion is taken at `points` inverse temperatures with equal ratios; every point that is lower than its
    neighbours is refined by Brent's method, and the lowest result wins. A dip narrower than the spacing of the scan can
    be missed: ask for more points then.

    Args:
        spec: a layer with numbers; its own β does not matter.
        criterion: a function of a law, minimized, such as `lambda law: fa.predict.ridge_error(law, 1e-4, 0.1)`.
        low, high: ends of the interval, 0 < low < high.
        points: of the scan, at least 5.

    Raises:
        InputError: for an interval or a number of points that is not allowed, and when the criterion does not depend
            on β.
    """
    grid = _grid(low, high, points)

    def value(beta: float) -> float:
        return float(criterion_at(with_value(spec, "beta", beta), criterion))

    found = [value(beta) for beta in grid]
    if max(found) - min(found) <= _RESOLVED * max(abs(v) for v in found):
        raise InputError("criterion", found[0], "one that depends on beta")
    candidates = list(zip(found, grid, strict=True))
    for k in range(1, len(grid) - 1):
        if found[k] <= min(found[k - 1], found[k + 1]):
            candidates.append(_minimum(value, grid[k - 1], grid[k + 1]))
    for end, inner in ((0, 1), (-1, -2)):  # falling from the end inwards, although the next point is higher
        beside = grid[end] + _BESIDE * (grid[inner] - grid[end])
        if found[end] <= found[inner] and value(beside) < found[end]:
            candidates.append(_minimum(value, *sorted((grid[end], grid[inner]))))
    best, beta = min(candidates)
    ends = {grid[0]: "low", grid[-1]: "high"}
    boundary: Any = ends.get(beta)
    return BestBeta(beta, best, boundary, tuple(zip(grid, found, strict=True)))


def _minimum(value: Callable[[float], float], left: float, right: float) -> tuple[float, float]:
    """(value, place) of a minimum inside an interval, in log β."""
    found = optimize.minimize_scalar(
        lambda log: value(math.exp(log)), bounds=(math.log(left), math.log(right)), method="bounded",
        options={"xatol": _LOCATION},
    )
    return float(found.fun), math.exp(float(found.x))


def crossover(
    first: Attention, second: Attention, criterion: LawCriterion, variable: str = "beta", low: float = 0.1,
    high: float = 2.0, digits: int = 10, points: int = 33,
) -> tuple[Crossing, ...]:
    """All values of a variable in [low, high] at which a criterion is equal for two layers, ascending.

    The difference is scanned at `points` values with equal ratios; where its size has a minimum without a change of
    sign, the minimum is searched for two crossings close together. Each crossing is enclosed by a change of sign to
    `digits` digits. The two touching without crossing is not reported.

    Args:
        first, second: "a" and "b", two layers with numbers.
        criterion: a function of a law; smaller is better. For more than 12 digits it must take `digits=`, as the
            functions of `fa.predict` do.
        variable: the field of both that varies: "beta", a scale, or a ratio (such as "gamma_key") of layers by ratios.
        low, high: ends of the interval, 0 < low < high.
        digits: of the crossing.
        points: of the scan, at least 5.

    Raises:
        InputError: for arguments that are not allowed, and when the criterion is the same for both throughout.
        ConvergenceError: when rounding hides the change of sign at the digits asked for.
    """
    grid = _grid(low, high, points)
    digits = as_integer("digits", digits, "a positive integer", 1)
    if digits > _DOUBLE_DIGITS and not _takes_digits(criterion):
        raise InputError("criterion", criterion, f"a function of a law that takes digits=…, to give {digits} digits")
    between = _Difference(first, second, criterion, variable)
    found = [between(x) for x in grid]
    if all(abs(f) <= _RESOLVED * between.size for f in found):
        raise InputError("criterion", criterion, "one that tells the two layers apart")
    return tuple(between.crossing(*bracket, digits) for bracket in _brackets(between, grid, found))


@final
class _Difference:
    """criterion(first) − criterion(second) as a function of the variable."""

    def __init__(self, first: Attention, second: Attention, criterion: LawCriterion, variable: str) -> None:
        self._specs = (first, second)
        self._criterion, self._variable = criterion, variable
        self.size = 0.0  # the largest value of the criterion so far

    def _values(self, x: Any, digits: int | None) -> tuple[Any, Any]:
        first, second = (
            criterion_at(with_value(spec, self._variable, x), self._criterion, digits) for spec in self._specs
        )
        self.size = max(self.size, abs(float(first)), abs(float(second)))
        return first, second

    def __call__(self, x: Any, digits: int | None = None) -> Any:
        first, second = self._values(x, digits)
        return first - second

    def crossing(self, low: float, high: float, digits: int) -> Crossing:
        """The one between two values of opposite sign."""
        sign_below = self(low)
        root = float(optimize.brentq(self, low, high, xtol=1e-300, rtol=4 * np.finfo(float).eps))
        many = digits > _DOUBLE_DIGITS
        work = digits + _GUARD_DIGITS if many else None
        if work is not None:
            root = self._refined(root, low, high, digits, work)
        width = abs(root) * (own_context(work).mpf(10) ** -digits if work else 10.0**-digits) / 2
        before, after = (self(root + side * width, work) for side in (-1, 1))
        if not before * after < 0:
            raise ConvergenceError(
                f"the crossing at {self._variable} = {float(root):.12g}", None, 10.0**-digits,
                "no change of sign is seen there; ask for fewer digits, or more than 12 to leave doubles",
            )
        below, above = ("a", "b") if sign_below < 0 else ("b", "a")
        value = self._values(root, work)[0]
        if many:
            root, value = (+context_for_results(digits).convert(one) for one in (root, value))
        return Crossing(root, value, below, above, digits)

    def _refined(self, start: float, low: float, high: float, digits: int, work: int) -> Any:
        """Secant steps at many digits from a root in doubles."""
        context = own_context(work)
        x, step = context.mpf(start), context.mpf(start) * 2**-40
        previous, current = self(x + step, work), self(x, work)
        for _ in range(_MOST_STEPS):
            if current == previous:
                break
            step = -current * step / (previous - current)  # previous is the value at x + step
            x, previous, step = x + step, current, -step
            if not low <= x <= high:
                break
            if abs(step) <= abs(x) * context.mpf(10) ** -(digits + 2):
                return x
            current = self(x, work)
        raise ConvergenceError(
            f"the crossing at {self._variable} = {start:.12g}", float(abs(step / x)), 10.0**-digits,
            "ask for fewer digits",
        )


def _brackets(between: _Difference, grid: Sequence[float], found: list[float]) -> list[tuple[float, float]]:
    """Intervals whose ends have values of opposite sign."""
    places, values = list(grid), list(found)
    for k in range(1, len(grid) - 1):
        same = found[k - 1] * found[k] > 0 and found[k] * found[k + 1] > 0
        if same and abs(found[k]) < min(abs(found[k - 1]), abs(found[k + 1])):
            sign = math.copysign(1, found[k])
            _, place = _minimum(lambda x, sign=sign: sign * between(x), grid[k - 1], grid[k + 1])  # type: ignore[misc]
            places.append(place)
            values.append(between(place))
    ordered = [(x, f) for x, f in sorted(zip(places, values, strict=True)) if f != 0]
    return [(x, y) for (x, f), (y, g) in itertools.pairwise(ordered) if f * g < 0]


def _grid(low: float, high: float, points: int) -> list[float]:
    ends = []
    for name, value in (("low", low), ("high", high)):
        ends.append(float(as_positive(name, value, "a positive number")))
    if not ends[0] < ends[1]:
        raise InputError("high", high, f"more than low = {low}")
    points = as_integer("points", points, f"an integer of at least {_LEAST_POINTS}", _LEAST_POINTS)
    inner = [float(x) for x in np.geomspace(ends[0], ends[1], points)[1:-1]]
    return [ends[0], *inner, ends[1]]


def _takes_digits(criterion: LawCriterion) -> bool:
    parameters = inspect.signature(criterion).parameters.values()
    return any(p.name == "digits" or p.kind is inspect.Parameter.VAR_KEYWORD for p in parameters)
