"""Flows through a pencil: relations between traces of different small matrices, by Kirchhoff's rule.

Every position α of a letter, A at (p, q), carries a flow f_α: what its pairings with all positions of A add to
N_p(Σg)_pp / n, with n the size of x, summed over copies. It is the same at its other end, in N_q(Σg)_qq / n, because
each pair of positions enters both ends with one product c c′ v N_p N_q g_pp′ g_qq′. The diagonal of (C − Σ)g = 1 says
C_pp′ g_p′p − (Σg)_pp = 1 for p′ the partner of p, hence with C_p the number of copies of block p

    Σ_{α at p} f_α = (C_p N_p/n)(C_pp′ g_p′p − 1) = Σ_{α at p′} f_α,      Σ_{α at x} f_α = −(1 + zm):

flows are conserved at every node of the automaton, and only as many are free as it has cycles.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TypeAlias

import sympy as sp
from sympy.polys.matrices import DomainMatrix

from freeattn.theory import symbols as sym
from freeattn.theory.dyson import DysonSystem
from freeattn.theory.pencil import size_of
from freeattn.theory.self_energy import CORNER, Trace, pairings

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
        self.at: dict[int, list[int]] = {p: [] for p in range(len(self.pencil.blocks))}
        for number, position in enumerate(self.pencil.positions):
            self.at[position.row].append(number)
            self.at[position.column].append(number)
        spectral = {p for sector in system.sectors if getattr(sector, "nodes", ()) for p in sector.blocks}
        self.conserving = [p for p in self.at if p not in spectral]
        self.meanings, self.values = self._solved()

    def found(self) -> Flows:
        relations = [*self._blocks(), *self._letters()]
        return Flows(self.meanings, tuple(relation for relation in relations if relation))

    def _solved(self) -> tuple[dict[sp.Symbol, str], list[Products]]:
        """Free flows, and every flow as a combination of them and of −1 − zm."""
        count = len(self.pencil.positions)
        rows = []
        for p in self.conserving:
            partner = self.pencil.partners[p]
            if p == 0 or (p < partner and partner in self.conserving):
                row = [self.at[p].count(a) - (self.at[partner].count(a) if p else 0) for a in range(count)]
                rows.append([*row, int(p == 0)])
        matrix = DomainMatrix([[sp.QQ(entry) for entry in row] for row in rows], (len(rows), count + 1), sp.QQ)
        reduced, pivots = matrix.rref()
        names = {a: self._name(a) for a in range(count) if a not in pivots}
        flows: list[Products] = [[(sp.S.One, (name,))] if (name := names.get(a)) else [] for a in range(count)]
        for row, pivot in zip(reduced.to_list(), pivots, strict=False):
            *ahead, total = (sp.QQ.to_sympy(entry) for entry in row)
            flows[pivot] = [(-ahead[a], (name,)) for a, name in names.items() if ahead[a]]
            if total:
                m = self.system.symbol(CORNER)
                flows[pivot] += [(-total, ()), (-total, (sym.Z, m))]
        return {name: self._meaning(a) for a, name in names.items()}, flows

    def _name(self, number: int) -> sp.Symbol:
        letter, row, column, _ = self.pencil.positions[number]
        return sp.Symbol(f"f_{letter.name}_{self.pencil.blocks[row].name}_{self.pencil.blocks[column].name}")

    def _meaning(self, number: int) -> str:
        letter, row, column, _ = self.pencil.positions[number]
        blocks = self.pencil.blocks
        return f"flow through the letter {letter.name} at ({blocks[row].name}, {blocks[column].name})"

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
        """Σ_{α at p} f_α − (C_p N_p/n)(C_pp′ g_p′p − 1) = 0."""
        for p in self.conserving:
            if p and self.at[p]:
                weight, traces = self._weight(p), self._diagonal(p, self.pencil.partners[p])
                yield [*self._through(self.at[p]), (weight, ()), *((weight, (trace,)) for trace in traces)]

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
                own = [a for a in self.at[p] if positions[a].letter == letter]
                yield [*products, *((-c, symbols) for c, symbols in self._through(own))]

    def _product(self, p: int, q: int, level: int, weight: sp.Expr, source: Trace) -> Iterator[tuple[sp.Expr, tuple[sp.Symbol, ...]]]:
        for trace in self.system.traces:
            if (trace.row, trace.column) == (min(p, q), max(p, q)):
                copies = self.system.copies_below(q, max(level, trace.level))
                yield self._weight(p) * weight * copies, (self.system.symbol(source), self.system.symbol(trace))
