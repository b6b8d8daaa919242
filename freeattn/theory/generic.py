"""A generic point of a Dyson equation, to many digits: which quantities vanish identically, which are independent.

At an arbitrary choice of all parameters and a real z far to the left of the support, the equation is solved by plain
iteration from z = ∞. What is zero there to almost all digits is zero identically; the point decides nothing else, and
no number of it enters a result.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any, NamedTuple

import sympy as sp

from freeattn.errors import ConvergenceError
from freeattn.model.precision import own_context
from freeattn.theory import symbols as sym
from freeattn.theory.dyson import DysonSystem, Sector
from freeattn.theory.inversion import inverted
from freeattn.theory.relations import Relations, constants_of
from freeattn.theory.self_energy import Trace

__all__ = ["GenericPoint", "Gradient", "generic_point"]

_DIGITS = 80
_ZERO = 1e-40  # relative to the terms that cancel; a true cancellation leaves about 1e-80
_FAR = -1_000_003  # z: an iteration gains up to as many digits as z has
_ITERATIONS = 400
_SETTLED = 1e-75

Gradient = dict[int, Any]  # derivative by the number of a variable; zero where absent


class GenericPoint:
    """Numbers for the generators of a ring of relations; None for a variable that no relation determines."""

    def __init__(self, context: Any, relations: Relations, numbers: Mapping[sp.Symbol, Any]) -> None:
        self.context, self.relations = context, relations
        self.numbers: list[Any] = [numbers.get(symbol) for symbol in relations.ring.symbols]
        self._complete()

    def _complete(self) -> None:
        """Sums, determinants and flows from the traces: relations that are linear in the one variable they leave."""
        pending, left = list(self.relations.polynomials), -1
        while len(pending) != left:
            left, waiting = len(pending), []
            for polynomial in pending:
                unknown = {i for monomial in polynomial.itermonoms() for i, e in enumerate(monomial) if e
                           and self.numbers[i] is None}
                if len(unknown) == 1:
                    self._solve(polynomial, unknown.pop())
                elif unknown:
                    waiting.append(polynomial)
            pending = waiting

    def _solve(self, polynomial: Any, unknown: int) -> None:
        parts: dict[int, list[Any]] = {0: [], 1: []}
        for monomial, coefficient in polynomial.iterterms():
            if monomial[unknown] > 1:
                return
            rest = [(i, e) for i, e in enumerate(monomial) if e and i != unknown]
            parts[monomial[unknown]].append(self._term(coefficient, rest))
        slope = self.context.fsum(parts[1])
        if self.is_nonzero(slope, parts[1]):
            self.numbers[unknown] = -self.context.fsum(parts[0]) / slope

    def _term(self, coefficient: Any, powers: Iterable[tuple[int, int]]) -> Any:
        value = self.context.mpf(int(coefficient.numerator)) / int(coefficient.denominator)
        for i, e in powers:
            value = value * self.numbers[i] ** e
        return value

    def gradient(self, polynomial: Any) -> Gradient | None:
        """The derivatives by all variables that do not vanish; None when some variable has no number."""
        sums: dict[int, list[Any]] = {}
        count = len(self.relations.variables)
        for monomial, coefficient in polynomial.iterterms():
            inside = [(i, e) for i, e in enumerate(monomial) if e]
            if any(self.numbers[i] is None for i, _ in inside):
                return None
            for i, exponent in inside:
                if i < count:
                    powers = [(j, e - (i == j)) for j, e in inside]
                    sums.setdefault(i, []).append(exponent * self._term(coefficient, powers))
        totals = ((i, self.context.fsum(parts), parts) for i, parts in sums.items())
        return {i: total for i, total, parts in totals if self.is_nonzero(total, parts)}

    def value(self, polynomial: Any) -> tuple[Any, list[Any]]:
        """The value of a polynomial, and its terms."""
        terms = [self._term(c, [(i, e) for i, e in enumerate(m) if e]) for m, c in polynomial.iterterms()]
        return self.context.fsum(terms), terms

    def is_nonzero(self, total: Any, parts: Iterable[Any]) -> bool:
        """Whether a sum is more than the rounding of its parts."""
        return bool(abs(total) > _ZERO * max(map(abs, parts)))


def generic_point(system: DysonSystem, relations: Relations) -> GenericPoint:
    """A generic point at which the relations of a system vanish.

    Raises:
        ConvergenceError: when the iteration does not settle.
    """
    context = own_context(_DIGITS)
    symbols = set().union(*(term.weight.free_symbols for term in system.terms),
                          *(value.free_symbols for value in relations.coefficients.values())) - {sym.Z}
    chosen = {s: 1 + sp.Rational(7 * k * k + 3 * k + 5, 2003) for k, s in enumerate(sorted(symbols, key=str))}

    far = {sym.Z: sp.Integer(_FAR)}

    @cache
    def number(value: sp.Expr) -> Any:
        value = value.xreplace(far)
        if value.is_Rational:
            return context.mpf(int(value.p)) / int(value.q)
        real, imaginary = sp.N(value.subs(chosen), _DIGITS).as_real_imag()
        parts = [context.make_mpf(sp.Float(part, _DIGITS)._mpf_) for part in (real, imaginary)]
        return context.mpc(*parts) if imaginary else parts[0]

    known = {symbol: number(value) for symbol, value in relations.coefficients.items()}
    known[sym.Z] = context.mpf(_FAR)
    known |= _solved(system, context, number)
    return GenericPoint(context, relations, known)


class _Table(NamedTuple):
    """A sector in numbers: constant parts with weights, terms (i, j, coefficient, source), traces to read off."""

    nodes: list[tuple[Any, Any]]
    energy: list[tuple[int, int, Any, Trace]]
    traces: list[tuple[Trace, int, int, Any, list[tuple[Trace, Any]]]]


def _solved(system: DysonSystem, context: Any, number: Any) -> dict[sp.Symbol, Any]:
    """All traces, by iteration g ← block traces of (C − Σ[g])⁻¹ from nothing."""
    tables = [_table(system, sector, number) for sector in system.sectors]
    tables.sort(key=lambda table: -max((t[0].level for t in table.traces), default=0))
    traces = dict.fromkeys(system.traces, context.zero)
    for _ in range(_ITERATIONS):
        fresh: dict[Trace, Any] = {}
        for table in tables:
            inverse = _inverse(table, traces, context)
            for trace, i, j, copies, deeper in table.traces:
                fresh[trace] = (inverse[i][j] - sum(c * fresh[t] for t, c in deeper)) / copies
        change = max(abs(fresh[t] - traces[t]) / (abs(fresh[t]) + context.mpf(10) ** -_DIGITS) for t in traces)
        traces = fresh
        if change < _SETTLED:
            return {system.symbol(trace): value for trace, value in traces.items()}
    raise ConvergenceError("the Dyson equation at a generic point", float(change), _SETTLED, "report this model")


def _table(system: DysonSystem, sector: Sector, number: Any) -> _Table:
    place = {p: i for i, p in enumerate(sector.blocks)}
    nodes = [(number(weight), [[number(c) for c in row] for row in matrix.tolist()])
             for weight, matrix in constants_of(system, sector)]
    energy = []
    for target, weight, source in system.terms:
        for p, q in {(target.row, target.column), (target.column, target.row)}:
            if target.level >= sector.depth and p in place and q in place:
                copies = number(system.copies_below(q, target.level))
                energy.append((place[p], place[q], number(weight) * copies, source))
    traces = []
    for trace in system.traces:
        scope = system.pencil.blocks[trace.row].scope[: trace.level]
        if trace.level == sector.depth and scope == sector.scope and trace.row in place and trace.column in place:
            shares = {t: number(system.copies_below(t.column, t.level)) for t in system.traces
                      if t[:2] == trace[:2] and t.level >= trace.level}
            deeper = [(t, c) for t, c in shares.items() if t != trace]
            traces.append((trace, place[trace.row], place[trace.column], shares[trace], deeper))
    return _Table(nodes, energy, traces)


def _inverse(table: _Table, traces: dict[Trace, Any], context: Any) -> list[list[Any]]:
    """Σ_k w_k (C(t_k) − Σ)⁻¹ of a sector."""
    size = len(table.nodes[0][1])
    total = [[context.zero] * size for _ in range(size)]
    for weight, constant in table.nodes:
        matrix = [list(row) for row in constant]
        for i, j, coefficient, source in table.energy:
            matrix[i][j] -= coefficient * traces[source]
        inverse = inverted(matrix, context)
        total = [[a + weight * b for a, b in zip(*rows, strict=True)] for rows in zip(total, inverse, strict=True)]
    return total
