"""The Dyson equation as power series at infinity: sums of products that determine one coefficient after the other.

With u = 1/z, C the constant part of the pencil, F its fixed letters and Σ the self-energy,

    G = C⁻¹ + C⁻¹ (Σ[G] − F) G,

C⁻¹ is −u at the corners and constant elsewhere. At u = 0 the corners are cut off, the pencil is a set of paths, and G
is a finite sum: every order in u follows from the lower ones by finitely many products, nothing is inverted, whatever
ring the weights live in. Where diagonal letters act, G is kept for each of their joint eigenvalues and averaged in
Σ[G].

Source: Helton-Rashidi Far-Speicher, IMRN 2007, rnm086, section 2 (the power series at infinity).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import sympy as sp

from freeattn.model.letters import Space
from freeattn.theory.dyson import DysonSystem, Node
from freeattn.theory.self_energy import Trace

__all__ = ["Expansion", "Product", "Start", "Term", "expansion_of"]


class Start(NamedTuple):
    """An entry of C⁻¹: unknown += weight · u^power."""

    unknown: int
    weight: int
    power: int


class Term(NamedTuple):
    """weight · unknown."""

    weight: int
    unknown: int


class Product(NamedTuple):
    """unknown `target` += weight · u^power · (entry of Σ) · unknown; no entry: a fixed letter in its place."""

    target: int
    weight: int
    power: int
    entry: int | None
    unknown: int


@dataclass(frozen=True)
class Expansion:
    """The equation with numbered unknowns (traces at joint eigenvalues), entries of Σ and weights.

    Attributes:
        weights: the distinct weights, in the symbols of sizes, counts, variances and coefficients.
        size: the number of unknowns.
        starts: C⁻¹.
        entries: the entries of Σ, each as a sum over unknowns.
        products: what (Σ − F)G adds.
        outputs: m(z) as a sum over unknowns.
    """

    weights: tuple[sp.Expr, ...]
    size: int
    starts: tuple[Start, ...]
    entries: tuple[tuple[Term, ...], ...]
    products: tuple[Product, ...]
    outputs: tuple[Term, ...]


@lru_cache(maxsize=64)
def expansion_of(system: DysonSystem) -> Expansion:
    """The expansion at infinity of a Dyson equation."""
    return _Builder(system).build()


class _Builder:
    """Numbers for unknowns, entries and weights while the sums are collected."""

    def __init__(self, system: DysonSystem) -> None:
        self._system = system
        self._weights: dict[sp.Expr, int] = {}
        blocks = system.pencil.blocks
        self._nodes = {space: system.nodes(space) for space in system.spaces}
        keys = [(t, k) for t in system.traces for k in range(len(self._nodes[blocks[t.row].space]))]
        self._unknowns = {key: number for number, key in enumerate(keys)}
        self._entries = {t: i for i, t in enumerate(dict.fromkeys(term.target for term in system.terms))}

    def build(self) -> Expansion:
        starts, entries = tuple(self._starts()), self._sums()
        products, outputs = tuple(self._products()), tuple(self._outputs())
        return Expansion(tuple(self._weights), len(self._unknowns), starts, entries, products, outputs)

    def _weight(self, value: sp.Expr) -> int:
        return self._weights.setdefault(sp.sympify(value), len(self._weights))

    def _space(self, trace: Trace) -> Space:
        return self._system.pencil.blocks[trace.row].space

    def _averaged(self, weight: sp.Expr, trace: Trace) -> Iterator[Term]:
        for k, node in enumerate(self._nodes[self._space(trace)]):
            yield Term(self._weight(weight * node.weight), self._unknowns[trace, k])

    def _starts(self) -> Iterator[Start]:
        pencil = self._system.pencil
        for trace, k in self._unknowns:
            diagonal = trace.level == len(pencil.blocks[trace.row].scope)  # C⁻¹ does not couple copies
            if diagonal and pencil.partners[trace.row] == trace.column:
                corner = trace.row < pencil.corners
                weight = -sp.Integer(1) if corner else -1 / pencil.scales[trace.row]
                yield Start(self._unknowns[trace, k], self._weight(weight), int(corner))

    def _sums(self) -> tuple[tuple[Term, ...], ...]:
        sums: list[list[Term]] = [[] for _ in self._entries]
        for target, weight, source in self._system.terms:
            sums[self._entries[target]] += self._averaged(weight, source)
        return tuple(map(tuple, sums))

    def _outputs(self) -> Iterator[Term]:
        for share, trace in self._system.outputs:
            yield from self._averaged(share, trace)

    def _products(self) -> Iterator[Product]:
        """Blocks (p, q), p ≤ q, of C⁻¹(Σ − F)G: an entry (s, r) of Σ − F, p the partner of s, and a trace (r, q)."""
        system, pencil = self._system, self._system.pencil
        wanted = set(system.traces)
        for entry in dict.fromkeys([*self._entries, *system.fixed_letters]):
            for s, r in {(entry.row, entry.column), (entry.column, entry.row)}:
                p = pencil.partners[s]
                for trace in system.traces:
                    for left, q in {(trace.row, trace.column), (trace.column, trace.row)}:
                        target = Trace(p, q, min(entry.level, trace.level))
                        if left == r and target in wanted:
                            copies = system.copies_below(r, max(entry.level, trace.level))
                            yield from self._at_nodes(target, copies / pencil.scales[p], entry, trace)

    def _at_nodes(self, target: Trace, factor: sp.Expr, entry: Trace, trace: Trace) -> Iterator[Product]:
        power = int(target.row < self._system.pencil.corners)
        for k, node in enumerate(self._nodes[self._space(target)]):
            into, unknown = self._unknowns[target, k], self._unknowns[trace, k]
            if entry in self._entries:
                yield Product(into, self._weight(-factor), power, self._entries[entry], unknown)
            fixed = self._fixed(entry, node)
            if fixed != 0:
                yield Product(into, self._weight(factor * fixed), power, None, unknown)

    def _fixed(self, entry: Trace, node: Node) -> sp.Expr:
        return sp.sympify(self._system.fixed_letters.get(entry, 0)).xreplace(dict(node.values))
