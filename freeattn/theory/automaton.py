"""The smallest automaton that reads the words of an expression with their coefficients.

What may follow a prefix u of a polynomial M is its residual u⁻¹M, the polynomial of all w with uw in M. The residuals
of all prefixes span a space with a basis b_1 … b_s, and for each letter a

    a⁻¹ M = Σ_j μ_j(a) b_j,      a⁻¹ b_i = Σ_j μ_ij(a) b_j :

a graph whose paths from M to the end spell M, with the product of the μ along a path as coefficient. The number of
basis elements is the rank of the Hankel matrix (coefficient of uw), so no graph with weights has fewer nodes. Words
with a common prefix share nodes, so do words with a common suffix, and proportional or dependent residuals merge.

Source: Schützenberger; Berstel-Reutenauer, Noncommutative Rational Series with Applications, chapter 2.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

import sympy as sp

from freeattn.errors import InputError
from freeattn.model.expression import Expression, Factor, Stretch, Term
from freeattn.model.letters import Copies, Space
from freeattn.theory.field import CoefficientField, as_expression

__all__ = ["START", "Automaton", "Edge", "Node", "automaton_of"]

START = -1  # the source of edges from M itself


class Suffix(NamedTuple):
    """The rest of a word; a stretch that is under way starts at −1."""

    word: tuple[Factor, ...]
    sums: tuple[Stretch, ...]

    @property
    def scope(self) -> tuple[Copies, ...]:
        return tuple(s.family for s in self.sums if s.start < 0)

    def after_first(self) -> Suffix:
        moved = (Stretch(s.family, s.start - 1 if s.start > 0 else -1, s.stop - 1) for s in self.sums)
        return Suffix(self.word[1:], tuple(s for s in moved if s.stop > 0))


Residual: TypeAlias = "dict[Suffix, Any]"


@dataclass(frozen=True)
class Node:
    """A state between two letters: the space it lives on, and the families whose copy it belongs to."""

    space: Space
    scope: tuple[Copies, ...]


class Edge(NamedTuple):
    """`coefficient` × `factor` from node `source` (START for the rows of M) to node `target`."""

    source: int
    target: int
    factor: Factor
    coefficient: sp.Expr


@dataclass(frozen=True)
class Automaton:
    """Nodes in an order in which every edge goes forward (the last node is the end), and the edges."""

    rows: Space
    nodes: tuple[Node, ...]
    edges: tuple[Edge, ...]


def automaton_of(expression: Expression) -> Automaton:
    """The minimal weighted automaton of an expression.

    Raises:
        InputError: for an expression without terms, or with letters of a copy that no sum binds.
    """
    _check(expression)
    values = [as_expression(term.coefficient) for term in expression.terms]
    field = CoefficientField(values)
    start = {Suffix(t.word, t.sums): field.element(v) for t, v in zip(expression.terms, values, strict=True)}
    basis = _basis(_residuals(start))
    order = sorted(range(len(basis)), key=lambda i: (-_degree(basis[i][1]), i))
    ranked = [basis[i] for i in order]
    nodes = tuple(_node(row, expression.columns) for _, row in ranked)
    sources = [(START, start), *enumerate(row for _, row in ranked)]
    edges = (
        Edge(source, target, factor, field.expression(derivative[pivot]))
        for source, row in sources
        for (factor, _), derivative in _derivatives(row).items()
        for target, (pivot, _) in enumerate(ranked)
        if pivot in derivative
    )
    return Automaton(expression.rows, nodes, tuple(edges))


def _check(expression: Expression) -> None:
    if not expression.terms:
        raise InputError("expression", str(expression), "an expression with at least one word (M = 0 has no law)")
    for term in expression.terms:
        _check_bound(term)


def _check_bound(term: Term) -> None:
    for letter in term.unbound:
        allowed = f"a sum {letter.per}.sum(…): {letter.name} is one matrix for each copy of {letter.per}"
        raise InputError("expression", str(term), allowed)


def _derivatives(residual: Residual) -> dict[tuple[Factor, tuple[Copies, ...]], Residual]:
    """a⁻¹ residual for each first letter a, apart for each set of copies in which the rest goes on."""
    found: dict[tuple[Factor, tuple[Copies, ...]], Residual] = {}
    for suffix, value in residual.items():
        if suffix.word:
            rest = suffix.after_first()
            found.setdefault((suffix.word[0], rest.scope), {})[rest] = value
    return found


def _residuals(start: Residual) -> list[Residual]:
    """Residuals of all prefixes but the empty one, each once."""
    found: dict[frozenset[tuple[Suffix, Any]], Residual] = {}
    pending = [start]
    while pending:
        for derivative in _derivatives(pending.pop()).values():
            key = frozenset(derivative.items())
            if key not in found:
                found[key] = derivative
                pending.append(derivative)
    return list(found.values())


def _degree(residual: Residual) -> int:
    return max(len(suffix.word) for suffix in residual)


def _basis(residuals: list[Residual]) -> list[tuple[Suffix, Residual]]:
    """Reduced rows (pivot, row) that span the residuals, built up by degree so that edges never go back."""
    rows: list[tuple[Suffix, Residual]] = []
    for residual in sorted(residuals, key=_degree):
        rest = residual
        for pivot, row in rows:
            rest = _eliminate(rest, pivot, row)
        if rest:
            pivot = max(rest, key=lambda suffix: len(suffix.word))
            scaled = {suffix: value / rest[pivot] for suffix, value in rest.items()}
            rows = [(other, _eliminate(row, pivot, scaled)) for other, row in rows]
            rows.append((pivot, scaled))
    return rows


def _eliminate(residual: Residual, pivot: Suffix, row: Residual) -> Residual:
    """residual − residual[pivot]·row, zeros dropped; `row` has 1 at the pivot."""
    if pivot not in residual:
        return residual
    factor, result = residual[pivot], dict(residual)
    for suffix, value in row.items():
        left = result[suffix] - factor * value if suffix in result else -factor * value
        if left:
            result[suffix] = left
        else:
            del result[suffix]
    return result


def _node(row: Residual, columns: Space) -> Node:
    suffix = next(iter(row))
    return Node(suffix.word[0].rows if suffix.word else columns, suffix.scope)
