"""The self-adjoint linear pencil of a polynomial M in letters: a block matrix, linear in the letters, that contains it.

Blocks are x on the rows of M, a pair (y_j, w_j) for each node j of the minimal automaton of M, and y_end on its
columns. The constant part has −z at (x, x), −1 at (y_j, w_j), (w_j, y_j) and (y_end, y_end). An edge of the automaton
from node i to node j with c·A puts c·A at (w_i, y_j), where w_i = x for the start, and its transpose at the mirrored
place. Solving the block equations from y_end backwards, y_j = (what follows node j)·y_end, w_j = (what precedes it)ᵀ·x,
so that for any matrices whatsoever

    (pencil⁻¹)_{xx} = (M Mᵀ − z)⁻¹.

For M = Mᵀ itself there is no y_end: what would stand there stands at x, with the factor ½ on edges that leave the
start. Then y_j = (what follows)·x, w_j = ½ (what precedes)ᵀ·x, the row of x reads (½M + ½Mᵀ − z) x, and

    (pencil⁻¹)_{xx} = (M − z)⁻¹.

Rows and columns that are direct sums have one block x_k, and one block y_end, for each part.

Source: Mingo-Speicher, Free Probability and Random Matrices, chapter 10; Helton-Mai-Speicher, arXiv 1511.05330.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Literal, NamedTuple, TypeAlias

import sympy as sp

from freeattn.errors import InputError
from freeattn.model.expression import Expression
from freeattn.model.letters import Copies, Diagonal, Letter, Space
from freeattn.model.quantities import Quantity
from freeattn.theory.assumptions import Rule
from freeattn.theory.automaton import START, Automaton, Edge, automaton_of
from freeattn.theory.field import CoefficientField, as_expression

__all__ = ["LINEARIZATION", "Block", "Fixed", "Pencil", "Position", "Product", "count_of", "pencil_of", "size_of"]

Product: TypeAlias = Literal["gram", "cogram", "self-adjoint"]  # the law of M Mᵀ, of MᵀM, of M = Mᵀ

LINEARIZATION = Rule(
    "linearization", "(M Mᵀ − z)⁻¹, or (M − z)⁻¹ for self-adjoint M, is the (x, x) block of the inverse of a "
    "pencil that is linear in the letters",
    "Mingo-Speicher, Free Probability and Random Matrices, chapter 10; arXiv 1511.05330",
)


@dataclass(frozen=True)
class Block:
    """One block of the pencil: a name, its space, and the families of which it has one per copy."""

    name: str
    space: Space
    scope: tuple[Copies, ...] = ()


class Position(NamedTuple):
    """coefficient·A at (row, column), A itself and not its transpose; Aᵀ stands at (column, row)."""

    letter: Letter
    row: int
    column: int
    coefficient: sp.Expr


class Fixed(NamedTuple):
    """coefficient × a diagonal letter (None: the identity) at (row, column), and the transpose at (column, row)."""

    letter: Diagonal | None
    row: int
    column: int
    coefficient: sp.Expr


@dataclass(frozen=True)
class Pencil:
    """Blocks (x first, y_end last), positions of the letters, and for each block its partner in the constant part.

    The constant part is −z at (x, x) and −1 at (p, partner of p) for every other block p. Deterministic letters and
    the identity are `fixed`. The first `corners` blocks are x, one for each part of the rows.
    """

    expression: Expression
    blocks: tuple[Block, ...]
    positions: tuple[Position, ...]
    partners: tuple[int, ...]
    fixed: tuple[Fixed, ...] = ()
    corners: int = 1
    of: Product = "gram"

    @cached_property
    def letters(self) -> dict[Letter, tuple[Position, ...]]:
        """The positions of each letter."""
        found: dict[Letter, list[Position]] = {}
        for position in self.positions:
            found.setdefault(position.letter, []).append(position)
        return {letter: tuple(places) for letter, places in found.items()}


def pencil_of(expression: Expression, of: Product = "gram") -> Pencil:
    """The pencil of an expression, with as few blocks as the automaton allows.

    Args:
        expression: M.
        of: what the (x, x) block of the inverse is the resolvent of: "gram" M Mᵀ, "cogram" MᵀM, "self-adjoint" M.

    Raises:
        InputError: for an expression without terms, or with letters of a copy that no sum binds; for another `of`; for
            "self-adjoint" when M is not its own transpose.
    """
    if of not in ("gram", "cogram", "self-adjoint"):
        raise InputError("of", of, '"gram" (M Mᵀ), "cogram" (MᵀM) or "self-adjoint" (M itself)')
    if of == "self-adjoint":
        _check_symmetric(expression)
    automaton = automaton_of(expression.T if of == "cogram" else expression)
    layout = _Layout(automaton, of == "self-adjoint")
    positions, fixed = [], []
    for edge in automaton.edges:
        row, column, coefficient = layout.place(edge)
        letter = None if edge.factor is None else edge.factor.letter
        if isinstance(letter, Letter):
            positions.append(Position(letter, row, column, coefficient))
        elif letter is None or isinstance(letter, Diagonal):
            fixed.append(Fixed(letter, row, column, coefficient))
    return Pencil(
        expression, layout.blocks(), tuple(positions), layout.partners(), tuple(fixed), len(automaton.starts), of
    )


def _check_symmetric(expression: Expression) -> None:
    if expression.rows == expression.columns:
        difference = [as_expression(term.coefficient) for term in (expression - expression.T).terms]
        field = CoefficientField(difference)
        if not any(field.element(value) for value in difference):
            return
    found = f"({expression.rows} × {expression.columns}) {expression}"
    raise InputError("self-adjoint expression", found, 'M = Mᵀ (or of="gram" for the law of M Mᵀ)')


def size_of(place: Space) -> sp.Expr:
    """The size of a space as an expression; the symbol of its name where none was given."""
    if place.parts:
        chains = ((() if part.per is None else part.per.chain) for part in place.parts)
        return sp.Add(*(size_of(part.space) * sp.Mul(*map(count_of, chain))
                        for part, chain in zip(place.parts, chains, strict=True)))
    return sp.Symbol(place.name, positive=True) if place.size is None else as_expression(place.size)


def count_of(family: Copies) -> sp.Expr:
    """The number of copies as an expression."""
    count: Quantity = family.count
    return as_expression(count)


@dataclass(frozen=True)
class _Layout:
    """The numbers of the blocks: x for each start, (y, w) for each inner node, y for each end unless it is x again."""

    automaton: Automaton
    closed: bool  # ends are starts

    @property
    def inner(self) -> int:
        return len(self.automaton.nodes) - len(self.automaton.ends)

    def place(self, edge: Edge) -> tuple[int, int, sp.Expr]:
        """(row, column, coefficient) of the letter of an edge, not transposed."""
        ends = self.w(edge.source), self.y(edge.target)
        row, column = reversed(ends) if edge.factor is not None and edge.factor.transposed else ends
        halved = self.closed and edge.source < 0
        return row, column, edge.coefficient / 2 if halved else edge.coefficient

    def y(self, node: int) -> int:
        starts = len(self.automaton.starts)
        if node < self.inner:
            return starts + 2 * node
        number = node - self.inner
        return self.automaton.ends[number] if self.closed else starts + 2 * self.inner + number

    def w(self, node: int) -> int:
        return START - node if node < 0 else len(self.automaton.starts) + 2 * node + 1

    def blocks(self) -> tuple[Block, ...]:
        starts, nodes = self.automaton.starts, self.automaton.nodes
        several = len(starts) > 1
        corners = (Block(f"x{k}" if several else "x", start.space, start.scope) for k, start in enumerate(starts, 1))
        pairs = (
            Block(f"{kind}{j}", node.space, node.scope)
            for j, node in enumerate(nodes[: self.inner], 1) for kind in ("y", "w")
        )
        ends = [] if self.closed else [
            Block(f"y{j}", end.space, end.scope) for j, end in enumerate(nodes[self.inner :], self.inner + 1)
        ]
        return (*corners, *pairs, *ends)

    def partners(self) -> tuple[int, ...]:
        corners = range(len(self.automaton.starts))
        pairs = (block for j in range(self.inner) for block in (self.w(j), self.y(j)))
        ends = [] if self.closed else [self.y(j) for j in range(self.inner, len(self.automaton.nodes))]
        return (*corners, *pairs, *ends)
