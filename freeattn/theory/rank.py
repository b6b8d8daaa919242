"""The generic rank of a polynomial in letters, and the atoms that it gives the law.

M factors through any set of nodes that cuts its automaton, so its rank is at most the dimension of the thinnest cut:
spaces count with their sizes, once for each copy, and a letter of one copy counts once where it stands for many. The
thinnest cut is the largest flow. Cuts through other bases of what follows the nodes count as well: of several (see
`theory.thin_basis`, and the automaton of Mᵀ) the smallest bound is taken. It is attained for all that has been tried.

With the constant part c of M (the identity and diagonal letters, block by block over parts and eigenspaces), atoms of
the law of M are looked for at the eigenvalues a of c, with mass 1 − rank(M − a)/size, and atoms of the law of M Mᵀ at
those of c cᵀ. As ranks are upper bounds, masses are lower bounds; the numerical law refuses masses that do not add up.

Source: Ford-Fulkerson; Mai-Speicher-Yin, The free field: realization via unbounded operators and Atiyah property,
arXiv 1905.08187 (atoms from the inner rank).
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from functools import lru_cache, partial
from typing import Any, NamedTuple, TypeAlias

import sympy as sp
from flint import fmpq

from freeattn.errors import NotCoveredError
from freeattn.model.expression import Expression, identity
from freeattn.model.letters import Copies, Diagonal, Inclusion, Space
from freeattn.model.terms import Factor
from freeattn.theory.automaton import START, Automaton, Edge, Node, automaton_of
from freeattn.theory.evaluation import Evaluation
from freeattn.theory.field import as_expression
from freeattn.theory.pencil import Product, check_product, size_of
from freeattn.theory.splitting import exact_values, number_in, split
from freeattn.theory.thin_basis import thin_basis

__all__ = ["atoms_of", "generic_rank"]

Network: TypeAlias = "list[dict[int, fmpq]]"  # what can still flow from each vertex to each other
_SOURCE, _SINK = 0, 1
_NOTHING = fmpq(0)


def generic_rank(expression: Expression, values: Mapping[Any, Any] | Evaluation | None = None) -> Fraction:
    """The rank of M for almost all values of its Gaussian letters, in the units of the sizes of spaces.

    Args:
        expression: M.
        values: a number for each symbol of sizes, counts, eigenvalues and weights.

    Raises:
        InputError: when a size or count is not a rational number.
    """
    known = exact_values(values)
    written = split(expression, known, rank_only=True)
    if not written.expression.terms:
        return Fraction(0)
    if written.sizes:
        known = exact_values({**known.values, **written.sizes})
    found = []
    capacities = _Capacities(known)
    for automaton in _automata(written.expression):
        thin = thin_basis(automaton, partial(capacities.edge, automaton), capacities.node)
        found += [_flow(_network(a, capacities)) for a in dict.fromkeys((automaton, thin))]
    rank = min(found)
    return Fraction(int(rank.p), int(rank.q))


@lru_cache(maxsize=64)
def _automata(matrix: Expression) -> tuple[Automaton, Automaton]:
    """Of M and of Mᵀ. Layers of one kind have one expression."""
    return automaton_of(matrix), automaton_of(matrix.T)


def atoms_of(
    expression: Expression, of: Product = "gram", values: Mapping[Any, Any] | Evaluation | None = None
) -> tuple[tuple[sp.Expr, Fraction], ...]:
    """The atoms (location, mass) of the law of M Mᵀ ("gram"), MᵀM ("cogram") or M = Mᵀ ("self-adjoint"), sorted.

    Raises:
        InputError: when a size or count is not a rational number, or M is not self-adjoint where it should be.
        NotCoveredError: when the constant part of M tells copies of the rows apart.
    """
    values = exact_values(values)
    check_product(expression, of)
    matrix = expression.T if of == "cogram" else expression
    size = number_in(f"size of {matrix.rows}", size_of(matrix.rows), values)
    atoms = []
    for location in sorted(_constants(matrix, of, values) | {sp.Integer(0)}):
        mass = 1 - generic_rank(matrix if location == 0 else _shifted(matrix, of, location), values) / size
        if mass > 0:
            atoms.append((location, mass))
    return tuple(atoms)


def _shifted(matrix: Expression, of: Product, location: sp.Expr) -> Expression:
    """M − a, or M Mᵀ − a."""
    return (matrix if of == "self-adjoint" else matrix @ matrix.T) - location * identity(matrix.rows)


def _constants(matrix: Expression, of: Product, values: Evaluation) -> set[sp.Expr]:
    """Where atoms may be: the eigenvalues of c cᵀ, or of c for the law of M itself.

    c is the constant part of M, block by block over parts of direct sums and eigenspaces of diagonal letters.

    Raises:
        NotCoveredError: when the constant part tells copies of the rows apart.
    """
    fixed = (Inclusion, Diagonal)
    if not any(all(isinstance(factor.letter, fixed) for factor in term.word) for term in matrix.terms):
        return set()
    entries: dict[tuple[Any, Any], sp.Expr] = {}
    for term in split(matrix, values).expression.terms:
        if all(isinstance(factor.letter, Inclusion) for factor in term.word):
            row = tuple(factor.letter for factor in term.word if not factor.transposed)
            column = tuple(factor.letter for factor in term.word if factor.transposed)
            if any(letter.chain for letter in row):
                raise NotCoveredError(f"atoms of a law whose constant part {term} is on the rows of several copies")
            entries[row, column] = entries.get((row, column), sp.Integer(0)) + as_expression(term.coefficient)
    rows, columns = (list(dict.fromkeys(key[k] for key in entries)) for k in range(2))
    if of == "self-adjoint":
        constant = sp.Matrix([[entries.get((p, q), sp.Integer(0)) for q in rows] for p in rows])
    else:
        counts = _Capacities(values)
        copies = {q: counts.copies(tuple(f for letter in q for f in letter.chain)) for q in columns}
        constant = sp.Matrix([[_paired(entries, p, q, copies) for q in rows] for p in rows])
    return set(constant.eigenvals()) if rows else set()


def _paired(entries: dict[tuple[Any, Any], sp.Expr], first: Any, second: Any, copies: dict[Any, fmpq]) -> sp.Expr:
    """An entry of c cᵀ."""
    parts = (
        entries[first, q] * entries[second, q] * sp.Rational(int(count.p), int(count.q))
        for q, count in copies.items() if (first, q) in entries and (second, q) in entries
    )
    return sp.Add(*parts)


class _Pipe(NamedTuple):
    """An arrow of the network, as wide as a node, as an edge, or as the letter of an edge wherever it leads."""

    tail: int
    head: int
    width: Node | Edge
    letter: bool = False


@lru_cache(maxsize=256)
def _pipes(automaton: Automaton) -> tuple[int, tuple[_Pipe, ...]]:
    """(number of vertices, arrows): source → starts, nodes from entry to exit, ends → sink; edges of one letter that
    leave a node together pass through one vertex, as they carry no more than the letter does."""
    numbers: dict[Any, int] = {"source": _SOURCE, "sink": _SINK}
    found: list[_Pipe] = []

    def pipe(tail: Any, head: Any, width: Node | Edge, letter: bool = False) -> None:
        first, last = (numbers.setdefault(end, len(numbers)) for end in (tail, head))
        found.append(_Pipe(first, last, width, letter))

    for k, start in enumerate(automaton.starts):
        pipe("source", ("exit", START - k), start)
    first_end = len(automaton.nodes) - len(automaton.ends)
    for j, node in enumerate(automaton.nodes):
        pipe(("entry", j), ("exit", j) if j < first_end else "sink", node)
    for leaving in _leaving_by_letter(automaton):
        source, factor = leaving[0].source, leaving[0].factor
        pipe(("exit", source), (factor, source), leaving[0], letter=True)
        for scope in dict.fromkeys(automaton.nodes[edge.target].scope for edge in leaving):
            edges = [edge for edge in leaving if automaton.nodes[edge.target].scope == scope]
            pipe((factor, source), (factor, source, scope), edges[0])
            for edge in edges:
                pipe((factor, source, scope), ("entry", edge.target), edges[0])
    return len(numbers), tuple(found)


def _network(automaton: Automaton, capacities: _Capacities) -> Network:
    """The pipes with their capacities; parallel ones add up."""
    count, pipes = _pipes(automaton)
    network: Network = [{} for _ in range(count)]
    for tail, head, width, letter in pipes:
        capacity = (
            capacities.node(width) if isinstance(width, Node) else
            capacities.letter(automaton, width) if letter else capacities.edge(automaton, width)
        )
        network[tail][head] = network[tail].get(head, _NOTHING) + capacity
        network[head].setdefault(tail, _NOTHING)
    return network


def _leaving_by_letter(automaton: Automaton) -> list[list[Edge]]:
    """Edges of one letter that leave a node together, wherever to."""
    found: dict[tuple[int, Factor | None], list[Edge]] = {}
    for edge in automaton.edges:
        found.setdefault((edge.source, edge.factor), []).append(edge)
    return list(found.values())


class _Capacities:
    """Dimensions of nodes and ranks of letters in numbers, each computed once."""

    def __init__(self, values: Evaluation) -> None:
        self._values = values
        self._sizes: dict[Space, fmpq] = {}
        self._counts: dict[tuple[Copies, ...], fmpq] = {(): fmpq(1)}

    def _size(self, space: Space) -> fmpq:
        if space not in self._sizes:
            self._sizes[space] = _rational(number_in(f"size of {space}", size_of(space), self._values))
        return self._sizes[space]

    def copies(self, families: tuple[Copies, ...]) -> fmpq:
        """The number of copies in all of the families."""
        if families not in self._counts:
            last = _rational(number_in(f"copies {families[-1]}", families[-1].count, self._values))
            self._counts[families] = self.copies(families[:-1]) * last
        return self._counts[families]

    def node(self, node: Node) -> fmpq:
        """The dimension of all copies of a node."""
        return self._size(node.space) * self.copies(node.scope)

    def edge(self, automaton: Automaton, edge: Edge) -> fmpq:
        """The rank of one letter between all copies of two nodes: copies that it does not tell apart count once."""
        ends = _source(automaton, edge), automaton.nodes[edge.target]
        chain = () if edge.factor is None else edge.factor.letter.chain
        shared = tuple(family for family in ends[0].scope if family in ends[1].scope)
        sides = (
            self._size(end.space) * self.copies(tuple(f for f in end.scope if f in chain and f not in shared))
            for end in ends
        )
        return self.copies(shared) * min(sides)

    def letter(self, automaton: Automaton, edge: Edge) -> fmpq:
        """The rank of a letter that leaves a node, wherever to: of one matrix for each copy of the node, or of one."""
        node = _source(automaton, edge)
        if edge.factor is None or not set(edge.factor.letter.chain) <= set(node.scope):
            return self.node(node)
        return min(self.node(node), self._size(edge.factor.columns) * self.copies(node.scope))


def _rational(value: Fraction) -> fmpq:
    return fmpq(value.numerator, value.denominator)


def _source(automaton: Automaton, edge: Edge) -> Node:
    return automaton.starts[START - edge.source] if edge.source < 0 else automaton.nodes[edge.source]


def _flow(network: Network) -> fmpq:
    """The largest flow from source to sink, by shortest augmenting paths; `network` is left with what remains."""
    total = _NOTHING
    while path := _path(network):
        amount = min(network[a][b] for a, b in path)
        for a, b in path:
            network[a][b] -= amount
            network[b][a] += amount
        total += amount
    return total


def _path(network: Network) -> list[tuple[int, int]]:
    """A shortest path with capacity left, as steps; empty when there is none."""
    before: dict[int, int] = {_SOURCE: _SOURCE}
    pending = [_SOURCE]
    for tail in pending:
        for head, capacity in network[tail].items():
            if capacity > 0 and head not in before:
                before[head] = tail
                pending.append(head)
    if _SINK not in before:
        return []
    path: list[tuple[int, int]] = []
    here = _SINK
    while here != _SOURCE:
        path.append((before[here], here))
        here = before[here]
    return path
