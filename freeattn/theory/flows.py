"""Flows through a pencil: relations between traces of different small matrices, by Kirchhoff's rule.

Every position α of a letter, A at (p, q), carries a flow f_α: what its pairings with all positions of A add to
N_p(Σg)_pp / n, with n the size of x, summed over copies. It is the same at its other end, in N_q(Σg)_qq / n, because
each pair of positions enters both ends with one product c c′ v N_p N_q g_pp′ g_qq′. The diagonal of (C − Σ)g = 1 says
C_pp′ g_p′p − (Σg)_pp = 1 for p′ the partner of p, hence with C_p the number of copies of block p

    Σ_{α at p} f_α = −(C_p N_p/n)(1 + s_p g_p′p) = Σ_{α at p′} f_α,      Σ_{α at x} f_α = −(1 + zm):

where −s_p is what C has at (p, p′), mostly −1: flows are conserved at every node of the automaton, and only as many
are free as it has cycles. What stands in C beside −z and −s_p, a diagonal letter or the identity, carries a flow too,
the same at both ends; for c times the identity at (p, q) it is −c (C_p N_p/n) g_pq.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TypeAlias

import sympy as sp
from sympy.polys.matrices import DomainMatrix

from freeattn.theory import symbols as sym
from freeattn.theory.dyson import DysonSystem
from freeattn.theory.pencil import Fixed, Position, size_of
from freeattn.theory.self_energy import Trace, pairings

__all__ = ["Flows", "Products", "flows_of"]

Products: TypeAlias = "list[tuple[sp.Expr, tuple[sp.Symbol, ...]]]"  # Σ coefficient × product of symbols


@dataclass(frozen=True)
class Flows:
    """The free flows with their meaning, and relations that vanish."""

    meanings: dict[sp.Symbol, str]
    relations: tuple[Products, ...]


def flows_of(system: DysonSystem) -> Flows:
    """The flows of a Dyson equation, conservation put in."""
    return _Flows(system).found()


class _Flows:
    def __init__(self, system: DysonSystem) -> None:
        self.system, self.pencil = system, system.pencil
        self.present = frozenset(system.traces)
        places: list[Position | Fixed] = [*self.pencil.positions, *self.pencil.fixed]
        self.ends = [(place.row, place.column) for place in places]
        self.at: dict[int, list[int]] = {p: [] for p in range(len(self.pencil.blocks))}
        for number, ends in enumerate(self.ends):
            for p in ends:
                self.at[p].append(number)
        self.names = [place.letter.name if place.letter else "identity" for place in places]
        self.meanings, self.values = self._solved()

    def found(self) -> Flows:
        relations = [*self._blocks(), *self._letters(), *self._identities()]
        return Flows(self.meanings, tuple(relation for relation in relations if relation))

    def _solved(self) -> tuple[dict[sp.Symbol, str], list[Products]]:
        """Free flows, and every flow as a combination of them and of what leaves the corners."""
        count, corners = len(self.ends), range(self.pencil.corners)
        rows = [[*(self.at[p].count(a) for a in range(count)), *(int(p == x) for x in corners)] for p in corners]
        for p, partner in enumerate(self.pencil.partners):
            if p < partner:
                row = [self.at[p].count(a) - self.at[partner].count(a) for a in range(count)]
                rows.append([*row, *(0 for _ in corners)])
        shape = len(rows), count + len(corners)
        matrix = DomainMatrix([[sp.QQ(entry) for entry in row] for row in rows], shape, sp.QQ)
        reduced, pivots = matrix.rref()
        free = {a: self._name(a) for a in range(count) if a not in pivots}
        flows: list[Products] = [[(sp.S.One, (free[a],))] if a in free else [] for a in range(count)]
        for row, pivot in zip(reduced.to_list(), pivots, strict=False):
            values = [sp.QQ.to_sympy(entry) for entry in row]
            if pivot < count:
                flows[pivot] = [(-values[a], (name,)) for a, name in free.items() if values[a]]
                flows[pivot] += [term for x in corners for term in self._leaving(x, values[count + x])]
        return {name: self._meaning(a) for a, name in free.items()}, flows

    def _leaving(self, x: int, factor: sp.Expr) -> Products:
        """−factor·(C_x N_x/n)(1 + z g_xx)."""
        weight = -factor * self._weight(x)
        if not weight:
            return []
        return [(weight, ()), *((weight, (sym.Z, trace)) for trace in self._diagonal(x, x))]

    def _name(self, number: int) -> sp.Symbol:
        row, column = (self.pencil.blocks[p].name for p in self.ends[number])
        return sp.Symbol(f"f_{self.names[number]}_{row}_{column}")

    def _meaning(self, number: int) -> str:
        row, column = (self.pencil.blocks[p].name for p in self.ends[number])
        return f"flow through {self.names[number]} at ({row}, {column})"

    def _weight(self, p: int) -> sp.Expr:
        """C_p N_p / n."""
        blocks = self.pencil.blocks
        return self.system.copies_below(p, 0) * size_of(blocks[p].space) / size_of(blocks[0].space)

    def _through(self, positions: list[int]) -> Products:
        return [term for a in positions for term in self.values[a]]

    def _diagonal(self, p: int, q: int) -> list[sp.Symbol]:
        """The parts that add up to the trace of block (p, q) at equal indices."""
        row, column = min(p, q), max(p, q)
        return [self.system.symbol(t) for t in self.system.traces if (t.row, t.column) == (row, column)]

    def _blocks(self) -> Iterator[Products]:
        """Σ_{α at p} f_α + (C_p N_p/n)(1 + s_p g_p′p) = 0 away from the corners, whose flows are put in already."""
        for p in range(self.pencil.corners, len(self.pencil.blocks)):
            weight, traces = self._weight(p), self._diagonal(p, self.pencil.partners[p])
            scale = weight * self.pencil.scales[p]
            yield [*self._through(self.at[p]), (weight, ()), *((scale, (trace,)) for trace in traces)]

    def _identities(self) -> Iterator[Products]:
        """f_α + c (C_p N_p/n) g_pq = 0 for the identity at (p, q)."""
        for number, entry in enumerate(self.pencil.fixed, len(self.pencil.positions)):
            scopes = {self.pencil.blocks[p].scope for p in (entry.row, entry.column)}
            if entry.letter is None and len(scopes) == 1:
                weight, traces = entry.coefficient * self._weight(entry.row), self._diagonal(entry.row, entry.column)
                yield [*self._through([number]), *((weight, (trace,)) for trace in traces)]

    def _letters(self) -> Iterator[Products]:
        """(C_p N_p/n)(Σ^A g)_pp − Σ_{α of A at p} f_α = 0."""
        positions = self.pencil.positions
        for letter, places in self.pencil.letters.items():
            energy: dict[int, Products] = {}
            for target, weight, source in pairings(replace(self.pencil, positions=places)):
                for p, q in {(target.row, target.column), (target.column, target.row)}:
                    if source in self.present:
                        energy.setdefault(p, []).extend(self._product(p, q, target.level, weight, source))
            for p, products in energy.items():
                own = [a for a in self.at[p] if a < len(positions) and positions[a].letter == letter]
                yield [*products, *((-c, symbols) for c, symbols in self._through(own))]

    def _product(self, p: int, q: int, level: int, weight: sp.Expr, source: Trace) -> Products:
        weight = self._weight(p) * weight
        return [
            (weight * self.system.copies_below(q, max(level, trace.level)),
             (self.system.symbol(source), self.system.symbol(trace)))
            for trace in self.system.traces if (trace.row, trace.column) == (min(p, q), max(p, q))
        ]
