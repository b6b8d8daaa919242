"""Another basis of what follows the nodes of an automaton, in which cuts through few nodes are easier to see.

Nodes on one space (and copy) may be replaced by any other basis of what they span. A wide edge should then lead to as
few nodes as possible: what the widest edges into the nodes of a space lead to becomes the basis there. Paths spell the
same polynomial before and after.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache
from typing import Any

from flint import fmpq
from sympy.polys.matrices import DomainMatrix

from freeattn.model.terms import Factor
from freeattn.theory.automaton import START, Automaton, Edge, Node
from freeattn.theory.field import CoefficientField

__all__ = ["thin_basis"]


def thin_basis(automaton: Automaton, width: Callable[[Edge], fmpq], size: Callable[[Node], fmpq]) -> Automaton:
    """The automaton in the basis that its widest edges lead to; `width` and `size` are the ranks of edges and nodes."""
    if len(automaton.nodes) == len(automaton.ends):
        return automaton
    reached = _widths(automaton, width, size)
    widths = [min(width(edges[0]), reached[edges[0].source]) for edges in _bundles(automaton)]
    return _based(automaton, _leading(automaton, sorted(range(len(widths)), key=lambda k: -widths[k])))


@lru_cache(maxsize=256)
def _bundles(automaton: Automaton) -> list[list[Edge]]:
    """Bundles: edges of one letter that leave a node together for inner nodes on one space."""
    found: dict[tuple[int, Factor | None, Node], list[Edge]] = {}
    for edge in automaton.edges:
        if edge.target < len(automaton.nodes) - len(automaton.ends):
            found.setdefault((edge.source, edge.factor, automaton.nodes[edge.target]), []).append(edge)
    return list(found.values())


@lru_cache(maxsize=256)
def _rows(automaton: Automaton) -> tuple[CoefficientField, list[list[Any]]]:
    """What each bundle leads to, in the nodes as they are, and the field of its entries."""
    inner = len(automaton.nodes) - len(automaton.ends)
    field = CoefficientField([edge.coefficient for edge in automaton.edges])
    rows = [[field.domain.zero] * inner for _ in _bundles(automaton)]
    for row, edges in zip(rows, _bundles(automaton), strict=True):
        for edge in edges:
            row[edge.target] = field.element(edge.coefficient)
    return field, rows


def _leading(automaton: Automaton, order: list[int]) -> tuple[int, ...]:
    """The first bundles in this order whose rows are independent on each space."""
    rows, found = _rows(automaton)[1], list[int]()
    reduced: dict[Node, list[tuple[int, list[Any]]]] = {}
    for number in order:
        row, known = rows[number], reduced.setdefault(automaton.nodes[_bundles(automaton)[number][0].target], [])
        for pivot, other in known:
            if factor := row[pivot]:
                row = [a - factor * b for a, b in zip(row, other, strict=True)]
        place = next((k for k, entry in enumerate(row) if entry), None)
        if place is not None:
            known.append((place, [entry / row[place] for entry in row]))
            found.append(number)
    return tuple(sorted(found))  # their order changes the order of nodes only


@lru_cache(maxsize=256)
def _based(automaton: Automaton, chosen: tuple[int, ...]) -> Automaton:
    """The automaton in the basis that the given bundles lead to."""
    inner, starts = len(automaton.nodes) - len(automaton.ends), len(automaton.starts)
    field, basis = _rows(automaton)[0], _basis(automaton, inner, chosen)
    inverse = basis.inv()
    before = _padded(DomainMatrix.eye(starts, field.domain), basis)
    after = _padded(inverse, DomainMatrix.eye(len(automaton.ends), field.domain))
    edges = []
    for factor in dict.fromkeys(edge.factor for edge in automaton.edges):
        changed = before * _matrix(automaton, factor, field) * after
        for i, row in enumerate(changed.to_list()):
            source = START - i if i < starts else i - starts
            edges += [Edge(source, j, factor, field.expression(value)) for j, value in enumerate(row) if value]
    return replace(automaton, edges=tuple(edges))


def _widths(
    automaton: Automaton, width: Callable[[Edge], fmpq], size: Callable[[Node], fmpq]
) -> dict[int, fmpq]:
    """The widest path from a start to each node (edges go forward, so one pass in order is enough)."""
    found = {START - k: size(start) for k, start in enumerate(automaton.starts)}
    for edge in sorted(automaton.edges, key=lambda edge: edge.source):
        if edge.source in found:
            through = min(found[edge.source], width(edge), size(automaton.nodes[edge.target]))
            found[edge.target] = max(through, found.get(edge.target, through))
    return found


def _basis(automaton: Automaton, inner: int, chosen: tuple[int, ...]) -> DomainMatrix:
    """Rows: the new basis in the old one, the same number of nodes on each space."""
    field, rows = _rows(automaton)
    found: dict[Node, list[list[Any]]] = {}
    for number in chosen:
        found.setdefault(automaton.nodes[_bundles(automaton)[number][0].target], []).append(rows[number])
    left = {node: iter(own) for node, own in found.items()}
    return DomainMatrix([list(next(left[node])) for node in automaton.nodes[:inner]], (inner, inner), field.domain)


def _matrix(automaton: Automaton, factor: Factor | None, field: CoefficientField) -> DomainMatrix:
    """The edges of one letter: rows starts and inner nodes, columns inner nodes and ends."""
    starts, width = len(automaton.starts), len(automaton.nodes)
    rows = [[field.domain.zero] * width for _ in range(starts + width - len(automaton.ends))]
    for edge in automaton.edges:
        if edge.factor == factor:
            rows[START - edge.source if edge.source < 0 else starts + edge.source][edge.target] = field.element(
                edge.coefficient
            )
    return DomainMatrix(rows, (len(rows), width), field.domain)


def _padded(first: DomainMatrix, second: DomainMatrix) -> DomainMatrix:
    """The block diagonal matrix of two."""
    a, b, zero = first.to_list(), second.to_list(), first.domain.zero
    rows = [[*row, *[zero] * len(b)] for row in a] + [[*[zero] * len(a), *row] for row in b]
    return DomainMatrix(rows, (len(rows), len(rows)), first.domain)
