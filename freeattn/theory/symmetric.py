"""The symmetric form of the automaton of a self-adjoint polynomial M = Mᵀ.

What precedes node j, transposed, is a combination of what follows the nodes: p_jᵀ = Σ_i T_ji b_i, because M read from
right to left is M again. T is symmetric and invertible, and with μ(a) the matrix of the edges that read the letter a,

    T μ(a) = μ(aᵀ)ᵀ T,      T × (edges into the end) = (edges from the start)ᵀ.

So y_j = b_j x solves the symmetric system T (1 − Σ_a μ(a) a) y = (edges from the start)ᵀ x: one block for each node.
A change of basis y → R y among nodes turns T into RᵀTR, with one entry in every row: a number at (i, i), or 1 at (i, j)
and (j, i).

Source: Helton-McCullough-Vinnikov, Noncommutative convexity arises from linear matrix inequalities, J. Funct. Anal. 240
(2006), 105-191 (symmetric minimal realizations).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

import sympy as sp

from freeattn.model.terms import Factor
from freeattn.theory.automaton import START, Automaton, Leaf, Suffix
from freeattn.theory.field import CoefficientField

__all__ = ["Entry", "SymmetricForm", "symmetric_form"]

Matrix: TypeAlias = "list[list[Any]]"
Steps: TypeAlias = "dict[tuple[int, Factor | None], list[tuple[int, Any]]]"  # targets of (source, letter)


class Entry(NamedTuple):
    """coefficient × factor (None: the identity) between two nodes, and its transpose at the mirrored place.

    Nodes below zero are parts of the rows, START − k.
    """

    row: int
    column: int
    factor: Factor | None
    coefficient: sp.Expr


@dataclass(frozen=True)
class SymmetricForm:
    """RᵀTR, `scales[i]` at (i, partners[i]); the entries of the starts and of RᵀTμR, of two mirrored ones one."""

    partners: tuple[int, ...]
    scales: tuple[sp.Expr, ...]
    entries: tuple[Entry, ...]


def symmetric_form(automaton: Automaton, columns: tuple[Leaf, ...]) -> SymmetricForm:
    """The symmetric form of the minimal automaton of M = Mᵀ; `columns` are the parts of its columns."""
    field = CoefficientField([edge.coefficient for edge in automaton.edges])
    steps: Steps = {}
    for source, target, factor, coefficient in automaton.edges:
        steps.setdefault((source, factor), []).append((target, field.element(coefficient)))
    inner = len(automaton.nodes) - len(automaton.ends)
    pivots = [automaton.pivots[i] for i in range(inner)]
    read = [_read(automaton, steps, pivot, columns) for pivot in pivots]
    zero, one = field.domain.zero, field.domain.one
    form = [[read[i].get(j, zero) for i in range(inner)] for j in range(inner)]
    basis = [[one if i == j else zero for j in range(inner)] for i in range(inner)]
    reduced = [row[:] for row in form]
    partners = _congruence(reduced, basis)
    entries = _entries(automaton, steps, form, basis, field)
    scales = tuple(field.expression(reduced[i][partner]) for i, partner in enumerate(partners))
    return SymmetricForm(tuple(partners), scales, tuple(entries))


def _read(automaton: Automaton, steps: Steps, pivot: Suffix, columns: tuple[Leaf, ...]) -> dict[int, Any]:
    """The nodes that a word read backwards, transposed, leads to, from its part of the columns; with coefficients."""
    letters = pivot.letters
    tail = tuple(factor.letter for factor in reversed(pivot.word[letters:]))
    number = next(k for k, leaf in enumerate(columns) if leaf.path == tail)
    here: dict[int, Any] = {START - number: None}
    for place in reversed(range(letters)):
        scope = frozenset(s.family for s in pivot.sums if s.start < place < s.stop)
        there: dict[int, Any] = {}
        for node, value in here.items():
            for target, weight in steps.get((node, pivot.word[place].mirrored), ()):
                if frozenset(automaton.nodes[target].scope) == scope:
                    product = weight if value is None else value * weight
                    there[target] = there[target] + product if target in there else product
        here = there
    return here


def _congruence(form: Matrix, basis: Matrix) -> list[int]:
    """Brings a symmetric matrix to one entry in every row by RᵀTR, in place; R is gathered in `basis`. Partners."""
    partners = [-1] * len(form)
    active = sorted(range(len(form)), key=lambda i: sum(map(bool, form[i])))
    while active:
        i = active.pop(0)
        if form[i][i]:
            for k in active:
                _add(form, basis, k, i, -form[i][k] / form[i][i])
            partners[i] = i
            continue
        j = min((k for k in active if form[i][k]), key=lambda k: sum(map(bool, form[k])))
        active.remove(j)
        _scale(form, basis, j, 1 / form[i][j])
        _add(form, basis, j, i, -form[j][j] / 2)
        for k in active:
            at_i, at_j = form[i][k], form[j][k]
            _add(form, basis, k, j, -at_i)
            _add(form, basis, k, i, -at_j)
        partners[i], partners[j] = j, i
    return partners


def _add(form: Matrix, basis: Matrix, column: int, other: int, factor: Any) -> None:
    if factor:
        for matrix in (basis, form):
            for row in matrix:
                row[column] = row[column] + factor * row[other]
        form[column] = [a + factor * b for a, b in zip(form[column], form[other], strict=True)]


def _scale(form: Matrix, basis: Matrix, column: int, factor: Any) -> None:
    for matrix in (basis, form):
        for row in matrix:
            row[column] = row[column] * factor
    form[column] = [factor * value for value in form[column]]


def _entries(automaton: Automaton, steps: Steps, form: Matrix, basis: Matrix, field: CoefficientField) -> list[Entry]:
    """What stands between x and x, x and nodes, nodes and nodes: α, αR and RᵀTμR, letter by letter."""
    inner, starts, found = len(form), [START - k for k in range(len(automaton.starts))], []
    turned = _product([list(column) for column in zip(*basis, strict=True)], form)
    for factor in dict.fromkeys(factor for _, factor in steps):
        def row(source: int, letter: Factor | None = factor) -> list[Any]:
            targets = dict(steps.get((source, letter), ()))
            return [targets.get(j, field.domain.zero) for j in range(len(automaton.nodes))]

        lines = {source: row(source) for source in starts}
        for source, line in lines.items():
            ends = zip((START - number for number in automaton.ends), line[inner:], strict=True)
            found += [_entry(source, end, factor, v, field) for end, v in ends if v and _first(source, end, factor)]
            changed = _product([line[:inner]], basis)[0] if inner else []
            found += [Entry(source, j, factor, field.expression(v)) for j, v in enumerate(changed) if v]
        between = _product(_product(turned, [row(i)[:inner] for i in range(inner)]), basis)
        found += [_entry(i, j, factor, v, field) for i, line in enumerate(between) for j, v in enumerate(line)
                  if v and _first(i, j, factor)]
    return found


def _product(left: Matrix, right: Matrix) -> Matrix:
    columns = list(zip(*right, strict=True))
    return [[sum((a * b for a, b in zip(row, column, strict=True) if a and b), row[0] * 0) for column in columns]
            for row in left]


def _first(row: int, column: int, factor: Factor | None) -> bool:
    """Whether this is the one of two mirrored entries that is kept: not transposed, or above the diagonal."""
    if factor is None or factor.letter.symmetric:
        return row <= column
    return not factor.transposed


def _entry(row: int, column: int, factor: Factor | None, value: Any, field: CoefficientField) -> Entry:
    both = row == column and (factor is None or factor.letter.symmetric)  # its own mirror image
    return Entry(row, column, factor, field.expression(value / 2 if both else value))
