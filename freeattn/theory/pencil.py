"""The self-adjoint linear pencil of a polynomial M in letters: a block matrix, linear in the letters, that contains it.

Blocks are x on the rows of M, a pair (y_j, w_j) for each node j of the minimal automaton of M, and y_end on its
columns. The constant part has −z at (x, x), −1 at (y_j, w_j), (w_j, y_j) and (y_end, y_end). An edge of the automaton
from node i to node j with c·A puts c·A at (w_i, y_j), where w_i = x for the start, and its transpose at the mirrored
place. Solving the block equations from y_end backwards, y_j = (what follows node j)·y_end, w_j = (what precedes it)ᵀ·x,
so that for any matrices whatsoever

    (pencil⁻¹)_{xx} = (M Mᵀ − z)⁻¹.

Source: Mingo-Speicher, Free Probability and Random Matrices, chapter 10; Helton-Mai-Speicher, arXiv 1511.05330.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import sympy as sp

from freeattn.model.expression import Expression
from freeattn.model.letters import Copies, Letter, Space
from freeattn.model.quantities import Quantity
from freeattn.theory.assumptions import Rule
from freeattn.theory.automaton import START, Automaton, automaton_of
from freeattn.theory.field import as_expression

__all__ = ["LINEARIZATION", "Block", "Pencil", "Position", "count_of", "pencil_of", "size_of"]

LINEARIZATION = Rule(
    "linearization", "(M Mᵀ − z)⁻¹ is the (x, x) block of the inverse of a pencil that is linear in the letters",
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


@dataclass(frozen=True)
class Pencil:
    """Blocks (x first, y_end last), positions of the letters, and for each block its partner in the constant part.

    The constant part is −z at (x, x) and −1 at (p, partner of p) for every other block p.
    """

    expression: Expression
    blocks: tuple[Block, ...]
    positions: tuple[Position, ...]
    partners: tuple[int, ...]

    @cached_property
    def letters(self) -> dict[Letter, tuple[Position, ...]]:
        """The positions of each letter."""
        found: dict[Letter, list[Position]] = {}
        for position in self.positions:
            found.setdefault(position.letter, []).append(position)
        return {letter: tuple(places) for letter, places in found.items()}


def pencil_of(expression: Expression) -> Pencil:
    """The pencil of an expression, with as few blocks as any pencil of this form can have.

    Raises:
        InputError: for an expression without terms, or with letters of a copy that no sum binds.
    """
    automaton = automaton_of(expression)
    positions = []
    for source, target, factor, coefficient in automaton.edges:
        ends = (_w(source), _y(target))
        row, column = reversed(ends) if factor.transposed else ends
        positions.append(Position(factor.letter, row, column, coefficient))
    inner = range(1, 2 * len(automaton.nodes) - 1)
    partners = (0, *(p + 1 if p % 2 else p - 1 for p in inner), 2 * len(automaton.nodes) - 1)
    return Pencil(expression, _blocks(automaton), tuple(positions), partners)


def size_of(place: Space) -> sp.Expr:
    """The size of a space as an expression; the symbol of its name where none was given."""
    return sp.Symbol(place.name, positive=True) if place.size is None else as_expression(place.size)


def count_of(family: Copies) -> sp.Expr:
    """The number of copies as an expression."""
    count: Quantity = family.count
    return as_expression(count)


def _y(node: int) -> int:
    return 2 * node + 1


def _w(node: int) -> int:
    return 0 if node == START else 2 * node + 2


def _blocks(automaton: Automaton) -> tuple[Block, ...]:
    *inner, end = automaton.nodes
    pairs = (
        Block(f"{kind}{j}", node.space, node.scope) for j, node in enumerate(inner, 1) for kind in ("y", "w")
    )
    return (Block("x", automaton.rows), *pairs, Block(f"y{len(inner) + 1}", end.space, end.scope))
