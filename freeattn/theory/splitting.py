"""Diagonal letters written out: a space becomes the direct sum of the eigenspaces, and the letters become numbers.

On the eigenspaces of number k, of dimension w_k × size, every diagonal letter D is t_k; a Gaussian letter on the space
falls apart into independent blocks. The result is the same polynomial, in Gaussian letters only. For its rank, unless
two words become equal when their diagonal letters are left out, it matters only which eigenvalues are zero.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from typing import Any

import sympy as sp

from freeattn.errors import InputError
from freeattn.model.expression import Expression
from freeattn.model.letters import Diagonal, Inclusion, Letter, Part, Space
from freeattn.model.quantities import as_quantity
from freeattn.model.terms import Factor, Stretch, Term
from freeattn.theory.evaluation import Evaluation
from freeattn.theory.field import as_expression
from freeattn.theory.pencil import size_of

__all__ = ["Split", "alive", "exact_values", "number_in", "split"]


@dataclass(frozen=True)
class Split:
    """An expression without diagonal letters, and numbers for the sizes of the spaces that it brings."""

    expression: Expression
    sizes: dict[sp.Symbol, Fraction]


def exact_values(values: Mapping[Any, Any] | Evaluation | None) -> Evaluation:
    """Numbers for symbols, exact: floats are what they are in binary.

    Raises:
        InputError: for what is no number.
    """
    if isinstance(values, Evaluation):
        return values
    return Evaluation({sp.sympify(symbol): as_expression(as_quantity(f"value of {symbol}", value, "a number"))
                       for symbol, value in (values or {}).items()})


def number_in(field: str, value: Any, values: Evaluation) -> Fraction:
    """A quantity as a fraction.

    Raises:
        InputError: when it is not rational with the given values.
    """
    found = values(as_expression(value))
    if not found.is_Rational:
        raise InputError(field, str(found), "a rational number; give a value for each symbol of sizes and counts")
    return Fraction(int(found.p), int(found.q))


def split(
    expression: Expression, values: Mapping[Any, Any] | Evaluation | None = None, rank_only: bool = False
) -> Split:
    """An expression with numbers for its coefficients, and numbers in place of its diagonal letters.

    Args:
        expression: M.
        values: a number for each symbol of sizes, eigenvalues and weights.
        rank_only: whether eigenvalues may be put together, and changed, as long as the generic rank stays.
    """
    values = exact_values(values)
    present = alive(expression, values)
    terms, letters = present.terms, [a for a in expression.letters if isinstance(a, Diagonal)]
    if not letters and all(as_expression(term.coefficient).is_Rational for term in terms):
        return Split(present, {})
    apart = not rank_only or _told_apart(terms)
    classes = {a.space: _classes([b for b in letters if b.space == a.space], apart, values) for a in letters}
    spaces = _Spaces(classes, values)
    written = tuple(found for term in terms for found in spaces.terms(term, expression.rows))
    renewed = Expression(spaces.image(expression.rows), spaces.image(expression.columns), written)
    return Split(renewed, spaces.sizes)


def alive(expression: Expression, values: Evaluation) -> Expression:
    """The expression without the words that are zero at the given values."""
    kept = tuple(term for term in expression.terms if not _vanishes(term, values))
    return expression if len(kept) == len(expression.terms) else Expression(expression.rows, expression.columns, kept)


def _vanishes(term: Term, values: Evaluation) -> bool:
    """Whether a coefficient, or the variance of a letter, is zero at the given values."""
    letters = (factor.letter for factor in term.word)
    scales = [term.coefficient, *(a.variance for a in letters if isinstance(a, Letter))]
    return any(values(as_expression(scale)) == 0 for scale in scales)


def _told_apart(terms: tuple[Term, ...]) -> bool:
    bare = [tuple(f for f in term.word if not isinstance(f.letter, Diagonal)) for term in terms]
    return len(set(bare)) < len(bare) or () in bare


Class = tuple[Fraction, dict[Diagonal, sp.Expr]]


def _classes(letters: list[Diagonal], apart: bool, values: Evaluation) -> list[Class]:
    """Weights and values of the joint eigenvalues of letters on one space; without `apart`, 1 for any but zero."""
    found: dict[tuple[sp.Expr, ...], Fraction] = {}
    for k, weight in enumerate(letters[0].weights):
        joint = tuple(values(as_expression(a.eigenvalues[k])) for a in letters)
        key = joint if apart else tuple(sp.Integer(value != 0) for value in joint)
        found[key] = found.get(key, Fraction(0)) + number_in(f"weights of {letters[0]}", weight, values)
    return [(weight, dict(zip(letters, key, strict=True))) for key, weight in found.items()]


class _Spaces:
    """Spaces, letters and words after the split."""

    def __init__(self, classes: dict[Space, list[Class]], values: Evaluation) -> None:
        self._classes, self._values = classes, values
        self.sizes: dict[sp.Symbol, Fraction] = {}
        for space, found in classes.items():
            for k, (weight, _) in enumerate(found):
                size = number_in(f"space {space}", size_of(space), values)
                self.sizes[size_of(self._eigenspace(space, k))] = weight * size

    def _eigenspace(self, space: Space, number: int) -> Space:
        return Space(f"{space}({number + 1})")

    def image(self, space: Space) -> Space:
        """What becomes of a space."""
        if space in self._classes:
            parts = tuple(Part(self._eigenspace(space, k)) for k in range(len(self._classes[space])))
            return Space(space.name, parts=parts)
        parts = tuple(Part(self.image(part.space), part.per) for part in space.parts)
        return Space(space.name, space.size, parts)

    def terms(self, term: Term, rows: Space) -> Iterator[Term]:
        """A term with a choice of eigenspace wherever its word passes through a space that is split."""
        runs = _runs(term.word, rows)
        for choice in product(*(range(len(self._classes.get(space, [None]))) for space, _ in runs)):
            coefficient = self._values(as_expression(term.coefficient))
            for (space, letters), k in zip(runs, choice, strict=True):
                coefficient *= sp.Mul(*(self._classes[space][k][1][letter] for letter in letters))
            if coefficient != 0:
                yield self._chosen(term, [space for space, _ in runs], choice, coefficient)

    def _chosen(self, term: Term, spaces: list[Space], choice: tuple[int, ...], coefficient: sp.Expr) -> Term:
        word = list(self._into(spaces[0], choice[0]))
        places: dict[int, int] = {}
        bare = (k for k, factor in enumerate(term.word) if not isinstance(factor.letter, Diagonal))
        for number, place in enumerate(bare):
            factor = term.word[place]
            left, right = (spaces[number], choice[number]), (spaces[number + 1], choice[number + 1])
            whole = isinstance(factor.letter, Inclusion)
            if whole and factor.transposed:
                word += (inside.mirrored for inside in self._into(*left))
            places[place] = len(word)
            word.append(self._block(factor, left[1], right[1]))
            if whole and not factor.transposed:
                word += self._into(*right)
        word += (inside.mirrored for inside in self._into(spaces[-1], choice[-1]))
        sums = (Stretch(s.family, places[s.start], places[s.stop - 1] + 1) for s in term.sums)
        return Term(coefficient, tuple(word), tuple(sums))

    def _into(self, space: Space, number: int) -> tuple[Factor, ...]:
        """The inclusion of an eigenspace, where the space is split."""
        return (Factor(Inclusion(self.image(space), number), False),) if space in self._classes else ()

    def _block(self, factor: Factor, left: int, right: int) -> Factor:
        """The block of a letter between two eigenspaces."""
        letter = factor.letter
        if isinstance(letter, Inclusion):
            return Factor(Inclusion(self.image(letter.whole), letter.number), factor.transposed)
        if not isinstance(letter, Letter):
            raise TypeError(f"{letter} is diagonal: it has a number on each eigenspace")
        transposed = left > right if letter.symmetric else factor.transposed
        row, column = (right, left) if transposed else (left, right)
        rows, columns = self._part(letter.rows, row), self._part(letter.columns, column)
        if (rows, columns) == (letter.rows, letter.columns):
            return factor
        symmetric = letter.symmetric and row == column
        name = f"{letter.name}({row + 1}, {column + 1})"
        return Factor(Letter(name, rows, columns, letter.variance, symmetric, letter.per), transposed)

    def _part(self, space: Space, number: int) -> Space:
        return self._eigenspace(space, number) if space in self._classes else space


def _runs(word: tuple[Factor, ...], rows: Space) -> list[tuple[Space, list[Diagonal]]]:
    """The spaces between the letters that are not diagonal, each with the diagonal letters that stand there."""
    runs: list[tuple[Space, list[Diagonal]]] = [(rows, [])]
    for factor in word:
        if isinstance(factor.letter, Diagonal):
            runs[-1][1].append(factor.letter)
        else:
            runs.append((factor.columns, []))
    return runs
