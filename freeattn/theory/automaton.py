"""The smallest automaton that reads the words of an expression with their coefficients.

What may follow a prefix u of a polynomial M is its residual u⁻¹M, the polynomial of all w with uw in M. The residuals
of all prefixes span a space with a basis b_1 … b_s, and for each letter a

    a⁻¹ M = Σ_j μ_j(a) b_j,      a⁻¹ b_i = Σ_j μ_ij(a) b_j :

a graph whose paths from M to the end spell M, with the product of the μ along a path as coefficient. The number of
basis elements is the rank of the Hankel matrix (coefficient of uw), so no graph with weights has fewer nodes. Words
with a common prefix share nodes, so do words with a common suffix, and proportional or dependent residuals merge.

Where the rows of M are a direct sum, M = Σ_k J_k M_k, there is one start for each part, with M_k to read; columns that
are a direct sum have one end for each part. The identity is an edge without a letter, from a start to an end.

Source: Schützenberger; Berstel-Reutenauer, Noncommutative Rational Series with Applications, chapter 2.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

import sympy as sp

from freeattn.errors import InputError, NotCoveredError
from freeattn.model.expression import Expression
from freeattn.model.letters import Copies, Inclusion, Space
from freeattn.model.terms import Factor, Stretch, Term
from freeattn.theory.field import CoefficientField, as_expression

__all__ = ["START", "Automaton", "Edge", "Leaf", "Node", "Suffix", "automaton_of", "leaves"]

START = -1  # the source of edges from M itself; −1 − k for part number k of its rows


class Suffix(NamedTuple):
    """The rest of a word; a stretch that is under way starts at −1."""

    word: tuple[Factor, ...]
    sums: tuple[Stretch, ...]

    @property
    def scope(self) -> tuple[Copies, ...]:
        return tuple(s.family for s in self.sums if s.start < 0)

    @property
    def letters(self) -> int:
        """The number of letters other than inclusions; 0 at an end."""
        return sum(not isinstance(factor.letter, Inclusion) for factor in self.word)

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
    """`coefficient` × `factor` from node `source` (START − k for part k of the rows of M) to node `target`.

    Without a factor it is the identity.
    """

    source: int
    target: int
    factor: Factor | None
    coefficient: sp.Expr


@dataclass(frozen=True, eq=False)
class Automaton:
    """Starts, one for each part of the rows; nodes in an order in which every edge goes forward; and the edges.

    One is equal to itself only, so that what is found out about it can be kept by it.

    The last nodes are ends; `ends` gives for each the number of its part of the columns. `pivots` are words: of what
    follows the nodes, each holds its own with coefficient 1 and no other's.
    """

    starts: tuple[Node, ...]
    nodes: tuple[Node, ...]
    ends: tuple[int, ...]
    edges: tuple[Edge, ...]
    pivots: tuple[Suffix, ...]


class Leaf(NamedTuple):
    """A part of a direct sum that is none itself, the inclusions that lead to it, and the copies that it belongs to."""

    path: tuple[Inclusion, ...]
    space: Space
    scope: tuple[Copies, ...]


def leaves(space: Space) -> tuple[Leaf, ...]:
    """The parts of the parts of a space, down to spaces that are no direct sums.

    Raises:
        NotCoveredError: for copies of one family in copies of an unrelated one.
    """
    found = []
    for number, part in enumerate(space.parts):
        inclusion = Inclusion(space, number)
        for leaf in leaves(part.space):
            outer, inner = sorted((inclusion.chain, leaf.scope), key=len)
            if inner[: len(outer)] != outer:
                raise NotCoveredError(f"copies of {outer[-1]} and of {inner[-1]} in {space}: nest one in the other")
            found.append(Leaf((inclusion, *leaf.path), leaf.space, inner))
    return tuple(found) if space.parts else (Leaf((), space, ()),)


def automaton_of(expression: Expression) -> Automaton:
    """The minimal weighted automaton of an expression.

    Raises:
        InputError: for an expression without terms, or with letters of a copy that no sum binds.
        NotCoveredError: for direct sums of copies in copies of an unrelated family.
    """
    _check(expression)
    values = [as_expression(term.coefficient) for term in expression.terms]
    field = CoefficientField(values)
    rows, columns = leaves(expression.rows), leaves(expression.columns)
    starts: list[Residual] = [{} for _ in rows]
    for term, value in zip(expression.terms, values, strict=True):
        number, suffix = _opened(Suffix(term.word, term.sums), rows)
        starts[number][suffix] = field.element(value)
    ends = [end for end in map(_end, columns) if any(end.word == _tail(t.word) for t in expression.terms)]
    basis = _basis([{end: field.domain.one} for end in ends] + _residuals(starts))
    order = sorted(range(len(basis)), key=lambda i: (-_degree(basis[i][1]), i))
    ranked = [basis[i] for i in order]
    sources = [*((START - k, start) for k, start in enumerate(starts)), *enumerate(row for _, row in ranked)]
    return Automaton(
        tuple(Node(leaf.space, leaf.scope) for leaf in rows),
        tuple(_node(row, expression.columns) for _, row in ranked),
        tuple(next(k for k, leaf in enumerate(columns) if _end(leaf) == pivot) for pivot, _ in ranked[-len(ends):]),
        tuple(edge for source, row in sources for edge in _edges(source, row, ranked, field)),
        tuple(pivot for pivot, _ in ranked),
    )


def _edges(source: int, row: Residual, ranked: list[tuple[Suffix, Residual]], field: CoefficientField) -> list[Edge]:
    """The edges that leave a node; those of the identity leave starts only."""
    found = [
        Edge(source, target, factor, field.expression(derivative[pivot]))
        for (factor, _), derivative in _derivatives(row).items()
        for target, (pivot, _) in enumerate(ranked)
        if pivot in derivative
    ]
    ends = ((target, pivot) for target, (pivot, _) in enumerate(ranked) if not pivot.letters)
    plain = [Edge(source, target, None, field.expression(row[pivot])) for target, pivot in ends if pivot in row]
    return found + plain if source < 0 else found


def _opened(word: Suffix, rows: tuple[Leaf, ...]) -> tuple[int, Suffix]:
    """The part of the rows that a word begins with, and the word without it."""
    path = []
    while word.word and word.word[0].includes:
        path.append(word.word[0].letter)
        word = word.after_first()
    return next(k for k, leaf in enumerate(rows) if leaf.path == tuple(path)), _settled(word)


def _tail(word: tuple[Factor, ...]) -> tuple[Factor, ...]:
    """The transposed inclusions that a word ends with."""
    return tuple(factor for factor in word if isinstance(factor.letter, Inclusion) and factor.transposed)


def _end(leaf: Leaf) -> Suffix:
    """What is left to read at an end: the inclusions, in the copy that the part belongs to."""
    return _settled(Suffix(tuple(Factor(inclusion, True) for inclusion in reversed(leaf.path)), ()))


def _settled(suffix: Suffix) -> Suffix:
    """The same; at an end, the copies of its part count as entered."""
    if suffix.letters:
        return suffix
    chain = max((factor.letter.chain for factor in suffix.word), key=len, default=())
    return Suffix(suffix.word, tuple(Stretch(family, -1, len(suffix.word)) for family in chain))


def _check(expression: Expression) -> None:
    if not expression.terms:
        raise InputError("expression", str(expression), "an expression with at least one word (M = 0 has no law)")
    for term in expression.terms:
        _check_bound(term)


def _check_bound(term: Term) -> None:
    for letter in term.unbound:
        family = letter.chain[-1]
        allowed = f"a sum {family}.sum(…): {letter.name} is one matrix for each copy of {family}"
        raise InputError("expression", str(term), allowed)


def _derivatives(residual: Residual) -> dict[tuple[Factor, tuple[Copies, ...]], Residual]:
    """a⁻¹ residual for each first letter a, apart for each set of copies in which the rest goes on."""
    found: dict[tuple[Factor, tuple[Copies, ...]], Residual] = {}
    for suffix, value in residual.items():
        if suffix.letters:
            rest = _settled(suffix.after_first())
            found.setdefault((suffix.word[0], rest.scope), {})[rest] = value
    return found


def _residuals(starts: list[Residual]) -> list[Residual]:
    """Residuals of all prefixes but the empty one, each once."""
    found: dict[frozenset[tuple[Suffix, Any]], Residual] = {}
    pending = list(starts)
    while pending:
        for derivative in _derivatives(pending.pop()).values():
            key = frozenset(derivative.items())
            if key not in found:
                found[key] = derivative
                pending.append(derivative)
    return list(found.values())


def _degree(residual: Residual) -> int:
    return max(suffix.letters for suffix in residual)


def _basis(residuals: list[Residual]) -> list[tuple[Suffix, Residual]]:
    """Reduced rows (pivot, row) that span the residuals, built up by degree so that edges never go back."""
    rows: list[tuple[Suffix, Residual]] = []
    for residual in sorted(residuals, key=_degree):
        rest = residual
        for pivot, row in rows:
            rest = _eliminate(rest, pivot, row)
        if rest:
            pivot = max(rest, key=lambda suffix: suffix.letters)
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
