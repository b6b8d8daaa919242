"""The self-adjoint linear pencil of a polynomial M in letters: a block matrix, linear in the letters, that contains it.

Blocks are x on the rows of M, a pair (y_j, w_j) for each node j of the minimal automaton of M, and y_end on its
columns. The constant part has −z at (x, x), −1 at (y_j, w_j), (w_j, y_j) and (y_end, y_end). An edge of the automaton
from node i to node j with c·A puts c·A at (w_i, y_j), where w_i = x for the start, and its transpose at the mirrored
place. Solving the block equations from y_end backwards, y_j = (what follows node j)·y_end, w_j = (what precedes it)ᵀ·x,
so that for any matrices whatsoever

    (pencil⁻¹)_{xx} = (M Mᵀ − z)⁻¹.

For M = Mᵀ itself there are x and one block y_j = (what follows node j)·x for each inner node, see `theory.symmetric`:
the constant part has −z at (x, x) and −τ_j at (y_j, partner of y_j), and

    (pencil⁻¹)_{xx} = (M − z)⁻¹.

Rows and columns that are direct sums have one block x_k, and one block y_end, for each part.

Source: Mingo-Speicher, Free Probability and Random Matrices, chapter 10; Helton-Mai-Speicher, arXiv 1511.05330.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, NamedTuple, TypeAlias

import sympy as sp

from freeattn.errors import InputError
from freeattn.model.expression import Expression
from freeattn.model.letters import Copies, Diagonal, Letter, Space
from freeattn.model.quantities import Quantity
from freeattn.model.terms import Factor
from freeattn.theory.assumptions import Rule
from freeattn.theory.automaton import START, Automaton, automaton_of, leaves
from freeattn.theory.field import CoefficientField, as_expression
from freeattn.theory.symmetric import symmetric_form

__all__ = [
    "LINEARIZATION",
    "Block",
    "Fixed",
    "Pencil",
    "Position",
    "Product",
    "check_product",
    "count_of",
    "pencil_of",
    "size_of",
]

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

    The constant part is −z at (x, x) and −scale at (p, partner of p) for every other block p; `scales` other than 1
    occur for self-adjoint M only. Deterministic letters and the identity are `fixed`. The first `corners` blocks are x,
    one for each part of the rows.
    """

    expression: Expression
    blocks: tuple[Block, ...]
    positions: tuple[Position, ...]
    partners: tuple[int, ...]
    scales: tuple[sp.Expr, ...]
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
    check_product(expression, of)
    if of == "self-adjoint":
        return _self_adjoint(expression)
    automaton = automaton_of(expression.T if of == "cogram" else expression)
    starts, inner = len(automaton.starts), len(automaton.nodes) - len(automaton.ends)

    def y(node: int) -> int:
        return starts + 2 * node if node < inner else starts + inner + node

    def w(node: int) -> int:
        return START - node if node < 0 else starts + 2 * node + 1

    positions, fixed = _placed((w(source), y(target), factor, c) for source, target, factor, c in automaton.edges)
    pairs = (block for j in range(inner) for block in (w(j), y(j)))
    partners = (*range(starts), *pairs, *map(y, range(inner, len(automaton.nodes))))
    others = (Block(f"{kind}{j}", node.space, node.scope)
              for j, node in enumerate(automaton.nodes, 1) for kind in ("yw" if j <= inner else "y"))
    blocks = (*_corners(automaton), *others)
    return Pencil(expression, blocks, positions, partners, (sp.Integer(1),) * len(blocks), fixed, starts, of)


def _self_adjoint(expression: Expression) -> Pencil:
    automaton = automaton_of(expression)
    form, starts = symmetric_form(automaton, leaves(expression.columns)), len(automaton.starts)

    def y(node: int) -> int:
        return START - node if node < 0 else starts + node

    positions, fixed = _placed((y(row), y(column), factor, c) for row, column, factor, c in form.entries)
    inner = automaton.nodes[: len(form.partners)]
    blocks = (*_corners(automaton), *(Block(f"y{j}", node.space, node.scope) for j, node in enumerate(inner, 1)))
    scales = (*(sp.Integer(1) for _ in range(starts)), *form.scales)
    partners = (*range(starts), *map(y, form.partners))
    return Pencil(expression, blocks, positions, partners, scales, fixed, starts, "self-adjoint")


def _corners(automaton: Automaton) -> tuple[Block, ...]:
    several = len(automaton.starts) > 1
    return tuple(Block(f"x{k}" if several else "x", start.space, start.scope)
                 for k, start in enumerate(automaton.starts, 1))


def _placed(
    entries: Iterable[tuple[int, int, Factor | None, sp.Expr]],
) -> tuple[tuple[Position, ...], tuple[Fixed, ...]]:
    """Random and fixed letters at their places; a transposed letter stands, untransposed, at the mirrored place."""
    positions, fixed = [], []
    for row, column, factor, coefficient in entries:
        letter, transposed = (None, False) if factor is None else factor
        ends = (column, row) if transposed else (row, column)
        if isinstance(letter, Letter):
            positions.append(Position(letter, *ends, coefficient))
        elif letter is None or isinstance(letter, Diagonal):
            fixed.append(Fixed(letter, *ends, coefficient))
    return tuple(positions), tuple(fixed)


def check_product(expression: Expression, of: Product) -> None:
    """Refuses a product that there is not, and "self-adjoint" for M that is not its own transpose.

    Raises:
        InputError: then.
    """
    if of not in ("gram", "cogram", "self-adjoint"):
        raise InputError("of", of, '"gram" (M Mᵀ), "cogram" (MᵀM) or "self-adjoint" (M itself)')
    if of == "self-adjoint":
        _check_symmetric(expression)


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
