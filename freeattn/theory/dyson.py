"""The matrix Dyson equation of a pencil: which block traces there are, and the equations they obey.

With C the constant part of the pencil and Σ its self-energy, in the limit

    g = block traces of (C − Σ[g])⁻¹,      m(z) = g_xx,

and g is the continuation of C⁻¹ from z = ∞ through the upper half-plane. Blocks on different spaces do not mix, so the
matrix falls apart into small ones. With copies, the matrix over their indices is Σ_l b_l·[at least l agree], which is
diagonal in the sectors of functions that are constant in all indices (sector of depth 0), or sum to zero over index
number k and are constant in later ones (depth k): there it acts as the number

    Σ_{l ≥ k} b_l × (number of copies of the column block once l indices are given).

Deterministic letters, diagonal with eigenvalues t_k on fractions w_k of a space, stand in C; then the equation
decouples by eigenvalue, and the small matrices of that space obey

    g = Σ_k w_k · block traces of (C(t_k) − Σ[g])⁻¹.

Source: Helton-Rashidi Far-Speicher, IMRN 2007, rnm086; Mingo-Speicher, chapter 9 and 10.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import NamedTuple

import sympy as sp

from freeattn.model.expression import Expression
from freeattn.model.letters import Copies, Diagonal, Space
from freeattn.theory import assumptions as given
from freeattn.theory import symbols as sym
from freeattn.theory.assumptions import Assumption, Rule
from freeattn.theory.field import as_expression
from freeattn.theory.pencil import LINEARIZATION, Pencil, Product, count_of, pencil_of, size_of
from freeattn.theory.self_energy import Pairing, Trace, closure, common, fixed_entries, pairings

__all__ = ["DYSON_EQUATION", "DysonSystem", "Node", "Sector", "diagonal_symbol", "dyson_of"]

DYSON_EQUATION = Rule(
    "matrix Dyson equation", "g = block traces of (C − Σ[g])⁻¹", "Helton-Rashidi Far-Speicher, IMRN 2007, rnm086",
    (given.GAUSSIAN_LETTERS, given.GROWING_SPACES),
)


class Node(NamedTuple):
    """A fraction `weight` of a space, where the diagonal letters (their symbols) have the given eigenvalues."""

    weight: sp.Expr
    values: tuple[tuple[sp.Symbol, sp.Expr], ...] = ()


@dataclass(frozen=True)
class Sector:
    """Blocks that one small matrix couples, in the sector of functions of the indices of `scope`; see the module.

    `nodes` are the joint eigenvalues of the diagonal letters in the matrix; one of weight 1 where there are none.
    """

    scope: tuple[Copies, ...]
    blocks: tuple[int, ...]
    nodes: tuple[Node, ...] = (Node(sp.Integer(1)),)

    @property
    def depth(self) -> int:
        """The number of indices that the functions of this sector depend on."""
        return len(self.scope)


@dataclass(frozen=True)
class DysonSystem:
    """The Dyson equation of one expression.

    Attributes:
        pencil: the linear pencil of the expression.
        terms: the self-energy, restricted to traces that are not zero.
        traces: the traces (or parts of traces) that are not zero, in the order of blocks.
        sectors: the small matrices that `matrix` and `inverse` give.
        rules: what the equation rests on.
    """

    pencil: Pencil
    terms: tuple[Pairing, ...]
    traces: tuple[Trace, ...]
    sectors: tuple[Sector, ...]
    rules: tuple[Rule, ...] = (LINEARIZATION, DYSON_EQUATION)

    @property
    def expression(self) -> Expression:
        """M; the law is that of M Mᵀ, MᵀM or M, see `pencil.of`."""
        return self.pencil.expression

    @cached_property
    def outputs(self) -> tuple[tuple[sp.Expr, Trace], ...]:
        """m(z) as a combination of traces: that of block x, or of all parts of the rows by their shares."""
        corners = self.pencil.blocks[: self.pencil.corners]
        dimensions = [size_of(x.space) * self.copies_below(p, 0) for p, x in enumerate(corners)]
        total = sp.Add(*dimensions)
        traces = (t for t in self.traces if t.row == t.column < len(corners))
        return tuple((dimensions[t.row] / total, t) for t in traces)

    @property
    def output(self) -> sp.Expr:
        """m(z), the Stieltjes transform, in the traces."""
        return sp.Add(*(share * self.symbol(trace) for share, trace in self.outputs))

    @property
    def spaces(self) -> tuple[Space, ...]:
        """The spaces of the blocks, each once."""
        return tuple(dict.fromkeys(block.space for block in self.pencil.blocks))

    @cached_property
    def entering(self) -> tuple[Trace, ...]:
        """The traces that enter the self-energy; all others follow from them."""
        sources = {term.source for term in self.terms}
        return tuple(trace for trace in self.traces if trace in sources)

    @property
    def assumptions(self) -> tuple[Assumption, ...]:
        """What all rules assume."""
        return tuple(dict.fromkeys(assumed for rule in self.rules for assumed in rule.assumptions))

    def symbol(self, trace: Trace) -> sp.Symbol:
        """g with the names of the two blocks; `across` marks the part that different copies share."""
        first, second = self.pencil.blocks[trace.row], self.pencil.blocks[trace.column]
        name = f"g_{first.name}_{second.name}"
        if trace.level < common(first.scope, second.scope):
            name += f"_across_{first.scope[trace.level].name}"
        return sp.Symbol(name)

    @property
    def unknowns(self) -> tuple[sp.Symbol, ...]:
        """The symbols of all traces that are not zero."""
        return tuple(self.symbol(trace) for trace in self.traces)

    @cached_property
    def self_energy(self) -> dict[Trace, sp.Expr]:
        """Σ entry by entry, linear in the traces."""
        parts: dict[Trace, list[sp.Expr]] = {}
        for target, weight, source in self.terms:
            parts.setdefault(target, []).append(weight * self.symbol(source))
        return {target: sp.Add(*summands) for target, summands in parts.items()}

    def copies_below(self, block: int, level: int) -> sp.Expr:
        """The number of copies of a block once its first `level` indices are given."""
        return sp.Mul(*map(count_of, self.pencil.blocks[block].scope[level:]))

    def levels(self, sector: Sector, row: int, column: int) -> tuple[Trace, ...]:
        """The parts of the trace of two blocks that act in a sector."""
        first, second = self.pencil.blocks[row], self.pencil.blocks[column]
        depths = range(sector.depth, common(first.scope, second.scope) + 1)
        return tuple(Trace(min(row, column), max(row, column), level) for level in depths)

    def matrix(self, sector: Sector, node: Node | None = None) -> sp.Matrix:
        """C − Σ[g] in a sector, at one node; without a node, the symbols of diagonal letters are left as they are."""
        values = dict(node.values) if node else {}

        def entry(p: int, q: int) -> sp.Expr:
            energy = (self.self_energy.get(t, 0) * self.copies_below(q, t.level) for t in self.levels(sector, p, q))
            fixed = self.fixed(sector, p, q).xreplace(values)
            return self.constant(p, q) + fixed - sp.Add(*energy)

        return sp.Matrix([[entry(p, q) for q in sector.blocks] for p in sector.blocks])

    def inverse(self, sector: Sector) -> sp.Matrix:
        """(C − Σ[g])⁻¹ in a sector, averaged over its nodes, in terms of the traces."""
        def entry(p: int, q: int) -> sp.Expr:
            present = (t for t in self.levels(sector, p, q) if t in self._present)
            return sp.Add(*(self.symbol(t) * self.copies_below(q, t.level) for t in present))

        return sp.Matrix([[entry(p, q) for q in sector.blocks] for p in sector.blocks])

    def constant(self, row: int, column: int) -> sp.Expr:
        """The constant part of the pencil, without fixed letters."""
        if self.pencil.partners[row] != column:
            return sp.Integer(0)
        return -sym.Z if row < self.pencil.corners else -self.pencil.scales[row]

    def fixed(self, sector: Sector, row: int, column: int) -> sp.Expr:
        """The fixed letters of the pencil in a sector, a symbol for each diagonal letter."""
        return sp.Add(*(self.fixed_letters[t] * self.copies_below(column, t.level)
                        for t in self.levels(sector, row, column) if t in self.fixed_letters))

    @cached_property
    def fixed_letters(self) -> dict[Trace, sp.Expr]:
        """The fixed letters entry by entry, a symbol for each diagonal letter."""
        return {
            trace: sp.Add(*(entry.coefficient * diagonal_symbol(entry.letter) for entry in entries))
            * (2 if trace.row == trace.column else 1)  # a letter and its transpose at one place
            for trace, entries in fixed_entries(self.pencil).items()
        }

    def nodes(self, space: Space) -> tuple[Node, ...]:
        """The joint eigenvalues of the diagonal letters on a space; one without values where there are none."""
        return _nodes(self.pencil, space)

    @property
    def equations(self) -> tuple[tuple[sp.Matrix, sp.Matrix], ...]:
        """Pairs (C − Σ[g], its inverse in terms of g), one for each sector: the product is the identity.

        Where a sector has nodes, the second is the average of inverses of the first over the nodes.
        """
        return tuple((self.matrix(sector), self.inverse(sector)) for sector in self.sectors)

    @cached_property
    def _present(self) -> frozenset[Trace]:
        return frozenset(self.traces)


def diagonal_symbol(letter: Diagonal | None) -> sp.Expr:
    """The symbol that stands for the eigenvalues of a diagonal letter; 1 for the identity."""
    return sp.Integer(1) if letter is None else sp.Symbol(f"t_{letter.name}", real=True)


@lru_cache(maxsize=64)
def dyson_of(expression: Expression, of: Product = "gram") -> DysonSystem:
    """The Dyson equation of the law of M Mᵀ ("gram"), of MᵀM ("cogram"), or of M itself ("self-adjoint").

    Raises:
        InputError: for an expression without terms, or with letters of a copy that no sum binds; for "self-adjoint"
            when M is not its own transpose.
    """
    pencil = pencil_of(expression, of)
    terms = pairings(pencil)
    traces, entries = closure(pencil, terms)
    alive = tuple(term for term in terms if term.source in traces)
    return DysonSystem(pencil, alive, tuple(sorted(traces)), _sectors(pencil, traces | entries))


def _sectors(pencil: Pencil, pattern: frozenset[Trace]) -> tuple[Sector, ...]:
    """All small matrices; one whose parts all ask for more agreement is the same matrix as in a deeper sector."""
    scopes = dict.fromkeys(block.scope[:k] for block in pencil.blocks for k in range(len(block.scope) + 1))
    found = []
    for scope in scopes:
        depth = len(scope)
        inside = [p for p, block in enumerate(pencil.blocks) if block.scope[:depth] == scope]
        links = {t for t in pattern if t.level >= depth and t.row in inside and t.column in inside}
        for component in _components(inside, links):
            if any(t.level == depth and t.row in component for t in links):
                found.append(Sector(scope, component, _nodes_between(pencil, component)))
    return tuple(sorted(found, key=lambda sector: (sector.blocks, sector.depth)))


def _components(blocks: Iterable[int], links: Iterable[Trace]) -> list[tuple[int, ...]]:
    """Connected components of the graph of links."""
    group = {p: {p} for p in blocks}
    for row, column, _ in links:
        if group[row] is not group[column]:
            merged = group[row] | group[column]
            group.update(dict.fromkeys(merged, merged))
    return [tuple(sorted(members)) for members in {id(g): g for g in group.values()}.values()]


def _nodes_between(pencil: Pencil, blocks: tuple[int, ...]) -> tuple[Node, ...]:
    acts = any(f.letter is not None and f.row in blocks and f.column in blocks for f in pencil.fixed)
    return _nodes(pencil, pencil.blocks[blocks[0]].space) if acts else (Node(sp.Integer(1)),)


def _nodes(pencil: Pencil, space: Space) -> tuple[Node, ...]:
    """The joint eigenvalues of the diagonal letters on a space."""
    letters = tuple(dict.fromkeys(f.letter for f in pencil.fixed if f.letter is not None and f.letter.space == space))
    if not letters:
        return (Node(sp.Integer(1)),)
    return tuple(
        Node(as_expression(weight), tuple((diagonal_symbol(a), as_expression(a.eigenvalues[k])) for a in letters))
        for k, weight in enumerate(letters[0].weights)
    )
