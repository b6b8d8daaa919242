"""The fewest unknowns from which all other variables of some polynomial relations follow one by one.

Given the values of some variables, a relation that is linear in the one variable it still leaves open gives that
variable as a quotient, if its coefficient is not identically zero. A set of variables whose closure under this is
everything is a set of unknowns (a smallest feedback set of the relations): found by exhaustive search when one to
three are enough, by greedy choice beyond. As many of the relations that were not used as there are unknowns, chosen
independent at a generic point, are the equations that remain.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import combinations
from typing import Any, NamedTuple

from freeattn.errors import NotCoveredError
from freeattn.theory.generic import GenericPoint, Gradient

__all__ = ["Elimination", "eliminate_variables"]

_EXHAUSTIVE = 2  # unknowns that are searched through together; three would be 10⁴ sets already
_MANY = 32  # candidates beyond which the later unknowns are chosen one by one


class Elimination(NamedTuple):
    """Numbers of the unknowns; (variable, relation that defines it) in order; relations that remain as equations."""

    unknowns: tuple[int, ...]
    steps: tuple[tuple[int, int], ...]
    equations: tuple[int, ...]


class _Relation(NamedTuple):
    """As bit masks: the variables of a relation, and those it can be solved for."""

    number: int
    variables: int
    solvable: int


def eliminate_variables(point: GenericPoint, outputs: Sequence[int], preferred: Sequence[int]) -> Elimination:
    """The elimination with the fewest unknowns: the outputs, and others among the preferred ones if these suffice.

    Raises:
        NotCoveredError: when the relations do not determine all variables.
    """
    gradients = [point.gradient(polynomial) for polynomial in point.relations.polynomials]
    relations = [r for number, gradient in enumerate(gradients) if (r := _relation(point, number, gradient))]
    goal = sum(1 << i for i in range(len(point.relations.variables)) if point.numbers[i] is not None)
    unknowns = _unknowns(relations, outputs, _enough(relations, preferred, goal), goal)
    steps = _steps(relations, _mask(unknowns))
    used = {number for _, number in steps}
    remaining = [r.number for r in relations if r.number not in used]
    slopes = _slopes(point, unknowns, [(variable, gradients[number] or {}) for variable, number in steps])
    equations = _independent(point, slopes, [(number, gradients[number] or {}) for number in remaining])
    if len(equations) < len(unknowns):
        raise NotCoveredError(f"the relations leave {len(unknowns) - len(equations)} unknowns undetermined")
    return Elimination(unknowns, steps, tuple(equations))


def _relation(point: GenericPoint, number: int, gradient: Gradient | None) -> _Relation | None:
    if gradient is None:
        return None
    polynomial, count = point.relations.polynomials[number], len(point.relations.variables)
    degrees = polynomial.degrees()[:count]
    variables = _mask(i for i, degree in enumerate(degrees) if degree > 0)
    solvable = (i for i in gradient if degrees[i] == 1 and _divides(point, polynomial, i))
    return _Relation(number, variables, _mask(solvable))


def _divides(point: GenericPoint, polynomial: Any, variable: int) -> bool:
    """Whether to divide by the coefficient of a variable: a sum, or a product of factors that cannot be zero."""
    slope = [monomial for monomial in polynomial.itermonoms() if monomial[variable]]
    if len(slope) > 1:
        return True
    inside = {symbol for symbol, power in zip(polynomial.ring.symbols, slope[0], strict=True) if power}
    return inside & point.relations.coefficients.keys() <= point.relations.nonzero


def _mask(variables: Iterable[int]) -> int:
    return sum(1 << i for i in variables)


def _closure(relations: list[_Relation], known: int) -> int:
    pending, grown = relations, True
    while grown:
        grown, waiting = False, []
        for relation in pending:
            open_ = relation.variables & ~known
            if not open_:
                continue
            if open_ & (open_ - 1) or not open_ & relation.solvable:
                waiting.append(relation)
                continue
            known |= open_
            grown = True
        pending = waiting
    return known


def _enough(relations: list[_Relation], first: Sequence[int], goal: int) -> Sequence[int]:
    """The preferred candidates if everything follows from them, else all variables."""
    if _closure(relations, _mask(first)) & goal == goal:
        return first
    return [*first, *(i for i in range(goal.bit_length()) if goal >> i & 1 and i not in first)]


def _unknowns(
    relations: list[_Relation], outputs: Sequence[int], candidates: Sequence[int], goal: int
) -> tuple[int, ...]:
    chosen = tuple(outputs)
    while True:
        start = _closure(relations, _mask(chosen))
        if start & goal == goal:
            return _pruned(relations, chosen, goal)
        useful = [i for i in candidates if not start >> i & 1]
        best: tuple[int, tuple[int, ...]] = (-1, ())
        together = _EXHAUSTIVE if len(chosen) == len(outputs) or len(useful) <= _MANY else 1
        for size in range(1, together + 1):
            for more in combinations(useful, size):
                reached = _closure(relations, start | _mask(more)) & goal
                if reached == goal:
                    return _pruned(relations, (*chosen, *more), goal)
                if reached.bit_count() > best[0]:
                    best = (reached.bit_count(), more)
        chosen = (*chosen, *best[1])


def _pruned(relations: list[_Relation], chosen: tuple[int, ...], goal: int) -> tuple[int, ...]:
    """Without unknowns that follow from the others (the first output is kept)."""
    for variable in reversed(chosen[1:]):
        fewer = tuple(i for i in chosen if i != variable)
        if _closure(relations, _mask(fewer)) & goal == goal:
            return _pruned(relations, fewer, goal)
    return chosen


def _steps(relations: list[_Relation], known: int) -> tuple[tuple[int, int], ...]:
    """(variable, relation) in order; at each round the first, simplest, relation that is ready is taken."""
    steps: list[tuple[int, int]] = []
    while True:
        for relation in relations:
            open_ = relation.variables & ~known
            if open_ and not open_ & (open_ - 1) and open_ & relation.solvable:
                known |= open_
                steps.append((open_.bit_length() - 1, relation.number))
                break
        else:
            return tuple(steps)


Slope = dict[int, Any]  # derivative by the unknowns; zero where absent


def _combined(point: GenericPoint, gradient: Gradient, slopes: dict[int, Slope]) -> Slope:
    """The derivative of a relation by the unknowns, all other variables being functions of them."""
    parts: dict[int, list[Any]] = {}
    for variable, factor in gradient.items():
        for unknown, slope in slopes[variable].items():
            parts.setdefault(unknown, []).append(factor * slope)
    totals = ((unknown, sum(terms), terms) for unknown, terms in parts.items())
    return {unknown: total for unknown, total, terms in totals if point.is_nonzero(total, terms)}


def _slopes(
    point: GenericPoint, unknowns: tuple[int, ...], steps: Iterable[tuple[int, Gradient]]
) -> dict[int, Slope]:
    """The derivatives of all variables by the unknowns."""
    slopes: dict[int, Slope] = {unknown: {unknown: point.context.one} for unknown in unknowns}
    for variable, gradient in steps:
        rest = {i: value for i, value in gradient.items() if i != variable}
        slopes[variable] = {u: -v / gradient[variable] for u, v in _combined(point, rest, slopes).items()}
    return slopes


def _independent(
    point: GenericPoint, slopes: dict[int, Slope], relations: Iterable[tuple[int, Gradient]]
) -> list[int]:
    """Relations, simple ones first, until their derivatives by the unknowns have full rank."""
    rows: dict[int, Slope] = {}
    found: list[int] = []
    for number, gradient in relations:
        row = _combined(point, gradient, slopes)
        for pivot, other in rows.items():
            if pivot in row:
                row = _without(point, row, pivot, other)
        if row:
            pivot = max(row, key=lambda i: abs(row[i]))
            rows[pivot] = row
            found.append(number)
    return found


def _without(point: GenericPoint, row: Slope, pivot: int, other: Slope) -> Slope:
    factor = row[pivot] / other[pivot]
    kept = {}
    for i in {*row, *other} - {pivot}:
        parts = [row.get(i, point.context.zero), -factor * other.get(i, point.context.zero)]
        if point.is_nonzero(sum(parts), parts):
            kept[i] = sum(parts)
    return kept
