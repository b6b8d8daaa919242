"""The Dyson equation at infinity modulo a prime: m to hundreds of orders of u = 1/z, by Newton's method.

The equation is quadratic (`theory.expansion`): with r its residual at a solution modulo u^n, the correction u^n δ
obeys the linear equation of its derivative modulo u^n, and the solution is then known modulo u^{2n}. Unknowns and
entries of Σ are unknowns of this linear system side by side, which keeps it sparse; it is eliminated in an order that
creates few new coefficients. At u = 0 it is triangular with ones on the diagonal in some order, hence every pivot is a
unit.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

from flint import fmpq, nmod, nmod_poly

from freeattn.theory.expansion import Expansion
from freeattn.theory.moments import series_of_unknowns

__all__ = ["BadPrimeError", "ModularSeries"]

_FIRST_ORDERS = 7  # coefficient by coefficient; Newton from there on

Row = dict[int, Any]


class BadPrimeError(ArithmeticError):
    """A prime divides a denominator or a pivot: take another."""


class ModularSeries:
    """m(1/u) modulo primes, for an expansion with rational weights."""

    def __init__(self, expansion: Expansion, weights: Sequence[fmpq]) -> None:
        self._expansion, self._weights = expansion, tuple(weights)

    def output(self, order: int, prime: int) -> Any:
        """m modulo u^{order + 1} and the prime, an `nmod_poly` in u.

        Raises:
            BadPrimeError: when the prime divides a denominator or a pivot.
        """
        if any(int(weight.q) % prime == 0 for weight in self._weights):
            raise BadPrimeError
        weights = [int(weight.p) * pow(int(weight.q), -1, prime) % prime for weight in self._weights]
        lengths = [order + 1]
        while lengths[-1] > _FIRST_ORDERS + 1:
            lengths.append((lengths[-1] + 1) // 2)
        start = series_of_unknowns(self._expansion, [nmod(w, prime) for w in weights], nmod(0, prime), lengths[-1] - 1)
        state = [nmod_poly([int(c) for c in row], prime) for row in start]
        for known, wanted in zip(lengths[:0:-1], lengths[-2::-1], strict=True):
            state = _Step(self._expansion, weights, prime, known, wanted, self._pivots).improved(state)
        return sum((state[t.unknown] * weights[t.weight] for t in self._expansion.outputs), nmod_poly([], prime))

    @cached_property
    def _pivots(self) -> tuple[int, ...]:
        """Variables in the order of elimination: each time the one with the fewest new coefficients."""
        expansion = self._expansion
        rows = [{number} for number in range(expansion.size + len(expansion.entries))]
        for product in expansion.products:
            rows[product.target].add(product.unknown)
            if product.entry is not None:
                rows[product.target].add(expansion.size + product.entry)
        for number, terms in enumerate(expansion.entries, expansion.size):
            rows[number].update(term.unknown for term in terms)
        left, found = dict(enumerate(rows)), list[int]()
        while left:
            users = {number: [k for k, row in left.items() if k != number and number in row] for number in left}
            pivot = min(left, key=lambda number: ((len(left[number]) - 1) * len(users[number]), number))
            row = left.pop(pivot)
            for other in users[pivot]:
                left[other] |= row
                left[other].discard(pivot)
            found.append(pivot)
        return tuple(found)


class _Step:
    """One step of Newton's method, from u^known to u^wanted."""

    def __init__(
        self, expansion: Expansion, weights: Sequence[int], prime: int, known: int, wanted: int, pivots: Sequence[int]
    ) -> None:
        self._expansion, self._weights, self._prime = expansion, weights, prime
        self._known, self._wanted, self._pivots = known, wanted, pivots

    def improved(self, state: Sequence[Any]) -> list[Any]:
        """All unknowns modulo u^wanted."""
        zero = nmod_poly([], self._prime)
        entries = [
            sum((state[t.unknown] * self._weights[t.weight] for t in terms), zero) for terms in self._expansion.entries
        ]
        residual, rows = self._linearized(state, entries)
        corrections = self._solved(rows, residual)
        return [value + corrections[number].left_shift(self._known) for number, value in enumerate(state)]

    def _linearized(self, state: Sequence[Any], entries: Sequence[Any]) -> tuple[list[Any], list[Row]]:
        """The residual over u^known, and the rows of one minus the derivative modulo u^{wanted − known}."""
        expansion, length, prime = self._expansion, self._wanted - self._known, self._prime
        values = [-value for value in state]
        rows: list[Row] = [{number: nmod_poly([1], prime)} for number in range(expansion.size + len(entries))]
        for start in expansion.starts:
            values[start.unknown] += nmod_poly([0] * start.power + [self._weights[start.weight]], prime)
        for target, number, power, entry, unknown in expansion.products:
            weight, row = self._weights[number], rows[target]
            if entry is None:
                values[target] += (state[unknown] * weight).left_shift(power)
                _subtract(row, unknown, nmod_poly([0] * power + [weight], prime))
                continue
            values[target] += (entries[entry].mul_low(state[unknown], self._wanted) * weight).left_shift(power)
            _subtract(row, unknown, (entries[entry].truncate(length) * weight).left_shift(power))
            _subtract(row, expansion.size + entry, (state[unknown].truncate(length) * weight).left_shift(power))
        for number, terms in enumerate(expansion.entries, expansion.size):
            for term in terms:
                _subtract(rows[number], term.unknown, nmod_poly([self._weights[term.weight]], prime))
        residual = [value.truncate(self._wanted).right_shift(self._known) for value in values]
        return residual + [nmod_poly([], prime)] * len(entries), rows

    def _solved(self, rows: list[Row], right: list[Any]) -> list[Any]:
        """The solution modulo u^{wanted − known} of a sparse linear system whose pivots are units."""
        length = self._wanted - self._known
        users: list[set[int]] = [set() for _ in rows]
        for number, row in enumerate(rows):
            for column in row:
                users[column].add(number)
        done: set[int] = set()
        for pivot in self._pivots:
            row = rows[pivot]
            if row[pivot][0] == 0:
                raise BadPrimeError
            inverse = row.pop(pivot).inverse_series_trunc(length)
            for column in row:
                row[column] = row[column].mul_low(inverse, length)
            right[pivot] = right[pivot].mul_low(inverse, length)
            done.add(pivot)
            for other in users[pivot] - done:
                factor = rows[other].pop(pivot)
                right[other] -= factor.mul_low(right[pivot], length)
                for column, value in row.items():
                    _subtract(rows[other], column, factor.mul_low(value, length))
                    users[column].add(other)
        for pivot in reversed(self._pivots):
            for column, value in rows[pivot].items():
                right[pivot] -= value.mul_low(right[column], length)
        return right


def _subtract(row: Row, column: int, value: Any) -> None:
    row[column] = row[column] - value if column in row else -value
