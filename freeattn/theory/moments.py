"""Exact moments and free cumulants of a Dyson equation: its power series at infinity, coefficient by coefficient.

G_xx = −Σ_k m_k u^{k+1} with u = 1/z. At order u^k the unknown coefficients enter linearly, each by those before it in
a fixed order (the paths of the pencil at u = 0), so that one pass gives them; see `theory.expansion`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from graphlib import TopologicalSorter
from operator import mul
from typing import Any

import sympy as sp

from freeattn.theory.cumulants import moments_to_cumulants
from freeattn.theory.dyson import DysonSystem
from freeattn.theory.evaluation import Evaluation
from freeattn.theory.expansion import Expansion, Product, expansion_of
from freeattn.theory.given_values import positive_integer
from freeattn.theory.square_roots import without_roots
from freeattn.theory.weights import WeightRing

__all__ = ["free_cumulants", "moments", "series_at_infinity", "series_of_unknowns"]

Values = Mapping[sp.Symbol, sp.Expr]


def moments(system: DysonSystem, order: int, values: Values | None = None) -> tuple[sp.Expr, ...]:
    """m_1 … m_order of the law, exact, in the symbols of sizes, counts, variances and coefficients.

    Args:
        system: the equation.
        order: the last moment.
        values: numbers to put in for symbols from the start, which is much faster than doing so at the end.

    Raises:
        InputError: for an order that is not a positive integer.
    """
    ring, found = _moments(system, order, values)
    return tuple(map(ring.expression, found))


def free_cumulants(system: DysonSystem, order: int, values: Values | None = None) -> tuple[sp.Expr, ...]:
    """κ_1 … κ_order of the law, R(z) = Σ κ_n z^{n−1}; arguments and errors as for `moments`."""
    ring, found = _moments(system, order, values)
    return tuple(map(ring.expression, moments_to_cumulants(found, ring.zero, ring.one)))


def _moments(system: DysonSystem, order: int, values: Values | None) -> tuple[WeightRing, list[Any]]:
    order = positive_integer("order", order)
    expansion = expansion_of(system)
    weights = list(map(Evaluation(values), expansion.weights)) if values else list(expansion.weights)
    expansion, reduced = without_roots(expansion, weights)
    ring = WeightRing(reduced)
    series = series_at_infinity(expansion, ring.elements, ring.zero, order + 1)
    return ring, [-coefficient for coefficient in series[2:]]


def series_at_infinity(expansion: Expansion, weights: Sequence[Any], zero: Any, order: int) -> list[Any]:
    """The coefficients of u⁰ … u^order of m, u = 1/z, over any commutative ring that holds the weights."""
    unknowns = series_of_unknowns(expansion, weights, zero, order)
    return [
        sum((weights[term.weight] * unknowns[term.unknown][k] for term in expansion.outputs), zero)
        for k in range(order + 1)
    ]


def series_of_unknowns(expansion: Expansion, weights: Sequence[Any], zero: Any, order: int) -> list[list[Any]]:
    """The same coefficients of every unknown of the expansion."""
    return _Series(expansion, weights, zero).unknowns(order)


class _Series:
    """All unknowns and entries of Σ as growing lists of coefficients."""

    def __init__(self, expansion: Expansion, weights: Sequence[Any], zero: Any) -> None:
        self._expansion, self._weights, self._zero = expansion, weights, zero
        self._unknowns = [[zero] for _ in range(expansion.size)]
        self._entries = [[zero] for _ in expansion.entries]
        self._starts = {start.unknown: start for start in expansion.starts}
        self._products: list[list[Product]] = [[] for _ in range(expansion.size)]
        for product in expansion.products:
            self._products[product.target].append(product)
        while self._changed_constants():
            pass
        self._order = self._dependencies()

    def unknowns(self, order: int) -> list[list[Any]]:
        """All unknowns to the given order."""
        for k in range(1, order + 1):
            self._advance(k)
        return self._unknowns

    def _changed_constants(self) -> bool:
        """One step of G ← C⁻¹ + C⁻¹(Σ − F)G at u = 0, where G is a finite sum."""
        for number in range(len(self._entries)):
            self._entries[number][0] = self._entry(number, 0)
        found = [self._unknown(number, 0) for number in range(len(self._unknowns))]
        changed = any(old[0] != new for old, new in zip(self._unknowns, found, strict=True))
        self._unknowns = [[value] for value in found]
        return changed

    def _dependencies(self) -> list[int]:
        """Unknowns (numbers ≥ 0) and entries (−1 − number), each after all that it needs at the same order."""
        graph: TopologicalSorter[int] = TopologicalSorter()
        for target, products in enumerate(self._products):
            graph.add(target)
            for product in (p for p in products if p.power == 0):
                if product.entry is None or self._entries[product.entry][0] != self._zero:
                    graph.add(target, product.unknown)
                if product.entry is not None and self._unknowns[product.unknown][0] != self._zero:
                    graph.add(target, -1 - product.entry)
        for number, terms in enumerate(self._expansion.entries):
            graph.add(-1 - number, *(term.unknown for term in terms))
        return list(graph.static_order())

    def _advance(self, k: int) -> None:
        for row in (*self._unknowns, *self._entries):
            row.append(self._zero)
        for number in self._order:
            if number < 0:
                self._entries[-1 - number][k] = self._entry(-1 - number, k)
            else:
                self._unknowns[number][k] = self._unknown(number, k)

    def _entry(self, number: int, k: int) -> Any:
        """[u^k] of one entry of Σ."""
        total = self._zero
        for term in self._expansion.entries[number]:
            if self._unknowns[term.unknown][k]:
                total = total + self._weights[term.weight] * self._unknowns[term.unknown][k]
        return total

    def _unknown(self, number: int, k: int) -> Any:
        """[u^k] of C⁻¹ + C⁻¹(Σ − F)G."""
        start = self._starts.get(number)
        total = self._weights[start.weight] if start is not None and start.power == k else self._zero
        for product in self._products[number]:
            top = k - product.power
            if top < 0:
                continue
            row = self._unknowns[product.unknown]
            if product.entry is None:
                value = row[top]
            else:
                value = sum(map(mul, self._entries[product.entry][: top + 1], row[top::-1]), self._zero)
            if value:
                total = total + self._weights[product.weight] * value
        return total
