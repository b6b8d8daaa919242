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
from typing import Any, TypeAlias

import sympy as sp

from freeattn.errors import NotCoveredError
from freeattn.model.expression import Expression, Factor, identity
from freeattn.model.letters import Copies, Inclusion
from freeattn.theory.automaton import START, Automaton, Edge, Node, automaton_of
from freeattn.theory.evaluation import Evaluation
from freeattn.theory.field import as_expression
from freeattn.theory.pencil import Product, check_product, size_of
from freeattn.theory.splitting import exact_values, number_in, split
from freeattn.theory.thin_basis import thin_basis

__all__ = ["atoms_of", "generic_rank"]

Vertex: TypeAlias = "tuple[Any, ...]"
Network: TypeAlias = "dict[Vertex, dict[Vertex, Fraction]]"
_SOURCE, _SINK = ("source",), ("sink",)


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
    for automaton in _automata(written.expression):
        thin = thin_basis(automaton, partial(_edge_capacity, automaton, known), partial(_capacity, known))
        found += [_flow(_network(a, known)) for a in (automaton, thin)]
    return min(found)


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
        square = matrix if of == "self-adjoint" else matrix @ matrix.T
        shifted = matrix if location == 0 else square - location * identity(matrix.rows)
        mass = 1 - generic_rank(shifted, values) / size
        if mass > 0:
            atoms.append((location, mass))
    return tuple(atoms)


def _constants(matrix: Expression, of: Product, values: Evaluation) -> set[sp.Expr]:
    """Where atoms may be: the eigenvalues of c cᵀ, or of c for the law of M itself.

    c is the constant part of M, block by block over parts of direct sums and eigenspaces of diagonal letters.

    Raises:
        NotCoveredError: when the constant part tells copies of the rows apart.
    """
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
        copies = {q: _copies(tuple(f for letter in q for f in letter.chain), values) for q in columns}
        constant = sp.Matrix([[_paired(entries, p, q, copies) for q in rows] for p in rows])
    return set(constant.eigenvals()) if rows else set()


def _paired(entries: dict[tuple[Any, Any], sp.Expr], first: Any, second: Any, copies: dict[Any, Fraction]) -> sp.Expr:
    """An entry of c cᵀ."""
    parts = (
        entries[first, q] * entries[second, q] * sp.Rational(count.numerator, count.denominator)
        for q, count in copies.items() if (first, q) in entries and (second, q) in entries
    )
    return sp.Add(*parts)


def _network(automaton: Automaton, values: Evaluation) -> Network:
    """Source → starts, nodes with their capacity from entry to exit, ends → sink; edges of one letter that leave a node
    together pass through one vertex, as they carry no more than the letter does."""
    network: Network = {}
    for k, start in enumerate(automaton.starts):
        _add(network, _SOURCE, ("exit", START - k), _capacity(values, start))
    first_end = len(automaton.nodes) - len(automaton.ends)
    for j, node in enumerate(automaton.nodes):
        _add(network, ("entry", j), ("exit", j) if j < first_end else _SINK, _capacity(values, node))
    for bundle in _bundles(automaton):
        source, factor = bundle[0].source, bundle[0].factor
        _add(network, ("exit", source), (factor, source), _letter_capacity(automaton, values, bundle[0]))
        for scope in dict.fromkeys(automaton.nodes[edge.target].scope for edge in bundle):
            edges = [edge for edge in bundle if automaton.nodes[edge.target].scope == scope]
            capacity = _edge_capacity(automaton, values, edges[0])
            _add(network, (factor, source), (factor, source, scope), capacity)
            for edge in edges:
                _add(network, (factor, source, scope), ("entry", edge.target), capacity)
    return network


def _bundles(automaton: Automaton) -> list[list[Edge]]:
    """Edges of one letter that leave a node together."""
    found: dict[tuple[int, Factor | None], list[Edge]] = {}
    for edge in automaton.edges:
        found.setdefault((edge.source, edge.factor), []).append(edge)
    return list(found.values())


def _add(network: Network, tail: Vertex, head: Vertex, capacity: Fraction) -> None:
    forward = network.setdefault(tail, {})
    forward[head] = forward.get(head, Fraction(0)) + capacity
    network.setdefault(head, {}).setdefault(tail, Fraction(0))


def _capacity(values: Evaluation, node: Node) -> Fraction:
    return number_in(f"size of {node.space}", size_of(node.space), values) * _copies(node.scope, values)


def _copies(families: tuple[Copies, ...], values: Evaluation) -> Fraction:
    total = Fraction(1)
    for family in families:
        total *= number_in(f"copies {family}", family.count, values)
    return total


def _edge_capacity(automaton: Automaton, values: Evaluation, edge: Edge) -> Fraction:
    """The rank of one letter between all copies of two nodes: copies that it does not tell apart count once."""
    ends = _source(automaton, edge), automaton.nodes[edge.target]
    chain = () if edge.factor is None else edge.factor.letter.chain
    shared = tuple(family for family in ends[0].scope if family in ends[1].scope)
    sides = (
        number_in(f"size of {end.space}", size_of(end.space), values)
        * _copies(tuple(f for f in end.scope if f in chain and f not in shared), values)
        for end in ends
    )
    return _copies(shared, values) * min(sides)


def _letter_capacity(automaton: Automaton, values: Evaluation, edge: Edge) -> Fraction:
    """The rank of a letter that leaves a node, wherever to: of one matrix for each copy of the node, if it is one."""
    node = _source(automaton, edge)
    if edge.factor is None or not set(edge.factor.letter.chain) <= set(node.scope):
        return _capacity(values, node)
    width = number_in(f"size of {edge.factor.columns}", size_of(edge.factor.columns), values)
    return min(_capacity(values, node), width * _copies(node.scope, values))


def _source(automaton: Automaton, edge: Edge) -> Node:
    return automaton.starts[START - edge.source] if edge.source < 0 else automaton.nodes[edge.source]


def _flow(network: Network) -> Fraction:
    """The largest flow from source to sink, by shortest augmenting paths; `network` is left with what remains."""
    total = Fraction(0)
    while path := _path(network):
        amount = min(network[a][b] for a, b in path)
        for a, b in path:
            network[a][b] -= amount
            network[b][a] += amount
        total += amount
    return total


def _path(network: Network) -> list[tuple[Vertex, Vertex]]:
    """A shortest path with capacity left, as steps; empty when there is none."""
    before: dict[Vertex, Vertex] = {_SOURCE: _SOURCE}
    pending: list[Vertex] = [_SOURCE]
    for tail in pending:
        for head, capacity in network[tail].items():
            if capacity > 0 and head not in before:
                before[head] = tail
                pending.append(head)
    if _SINK not in before:
        return []
    path: list[tuple[Vertex, Vertex]] = []
    here: Vertex = _SINK
    while here != _SOURCE:
        path.append((before[here], here))
        here = before[here]
    return path
