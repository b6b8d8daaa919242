"""Random matrices for a polynomial in letters: every letter drawn once for each copy, and the eigenvalues of M Mᵀ.

Nothing here knows how the law of an expression is derived: letters become arrays, words products of arrays.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from itertools import product
from typing import Any, final

import numpy as np

from freeattn.errors import InputError
from freeattn.evidence.weights import Matrix, blas_threads, seed_sequence, shares
from freeattn.model.expression import Expression
from freeattn.model.letters import AnyLetter, Copies, Diagonal, Inclusion, Letter, Part, Space
from freeattn.model.quantities import is_symbolic
from freeattn.model.terms import Factor, Term
from freeattn.model.word_sizes import checked_sizes

__all__ = ["LAWS", "Numbers", "sample_words"]

LAWS = ("gram", "cogram", "self-adjoint")
_EPSILON = float(np.finfo(np.float64).eps)
_ASYMMETRY = 1e-10  # of M over its largest entry: rounding is far below


def sample_words(
    expression: Expression, sizes: Mapping[Any, Any] | None = None, seed: int | np.random.SeedSequence = 0,
    of: str = "gram",
) -> Matrix:
    """Eigenvalues, ascending, of M Mᵀ ("gram"), MᵀM ("cogram") or of M itself ("self-adjoint") for one draw.

    Args:
        expression: M.
        sizes: a number for every space, family of copies and symbol of the expression, by the object or by its name;
            spaces and families that have numbers already need none.
        seed: the same seed gives the same numbers on the same machine.
        of: which matrix.

    Raises:
        InputError: for a missing or impossible size, for an unknown `of`, or when M is to be self-adjoint and is not.
    """
    if of not in LAWS:
        raise InputError("of", of, ", ".join(f'"{name}"' for name in LAWS))
    draw = _Draw(expression, Numbers(checked_sizes(expression, sizes)), seed_sequence(seed))
    rows = draw.numbers.size(expression.rows)
    with blas_threads(rows):
        matrix = draw.matrix()
        if of == "self-adjoint":
            _check_symmetric(matrix)
            return _eigenvalues(matrix)
        return _eigenvalues(matrix @ matrix.T if of == "gram" else matrix.T @ matrix)


@final
class Numbers:
    """Numbers for spaces, families and symbols, looked up by the object or by its name."""

    def __init__(self, sizes: Mapping[Any, Any]) -> None:
        if not isinstance(sizes, Mapping):
            raise InputError("sizes", sizes, "a mapping from spaces, copies and symbols, or their names, to numbers")
        self._given = dict(sizes)
        self._by_name = {str(key): value for key, value in sizes.items()}

    def size(self, place: Space) -> int:
        """The number of rows or columns that a space stands for; a direct sum has those of its parts."""
        if place.parts:
            return sum(self.part(part) for part in place.parts)
        return self._whole(f"size of space {place}", self._found(place, place.size))

    def part(self, part: Part) -> int:
        """The size of a part of a direct sum, all copies together."""
        families = () if part.per is None else part.per.chain
        return self.size(part.space) * math.prod(self.count(family) for family in families)

    def count(self, family: Copies) -> int:
        """The number of copies of a family (in each copy of the family that it lies within)."""
        return self._whole(f"count of copies {family}", self._found(family, family.count))

    def value(self, field: str, quantity: Any) -> float:
        """A variance or a coefficient."""
        return float(self._number(field, quantity))

    def _found(self, thing: Space | Copies, own: Any) -> Any:
        """What was given for a space or family, or its own size; a symbol of its name where it has none."""
        if thing in self._given or thing.name in self._by_name:
            return self._given.get(thing, self._by_name.get(thing.name))
        if own is None:
            raise InputError("sizes", sorted(self._by_name), f"a size for space {thing}: sizes={{{thing.name!r}: …}}")
        return own

    def _whole(self, field: str, quantity: Any) -> int:
        number = self._number(field, quantity)
        if isinstance(number, bool) or number != int(number) or number < 1:
            raise InputError(field, number, "a positive integer to draw matrices")
        return int(number)

    def _number(self, field: str, quantity: Any) -> Any:
        if not is_symbolic(quantity):
            return quantity
        if str(quantity) in self._by_name:
            return self._by_name[str(quantity)]
        known = {}
        for symbol in quantity.free_symbols:
            if symbol not in self._given and str(symbol) not in self._by_name:
                allowed = f"a number for {symbol} to draw matrices: sizes={{{str(symbol)!r}: …}}"
                raise InputError(field, quantity, allowed)
            known[symbol] = self._given.get(symbol, self._by_name.get(str(symbol)))
        return quantity.subs(known)


@final
class _Draw:
    """One draw of all letters of an expression; a letter is drawn when first used."""

    def __init__(self, expression: Expression, numbers: Numbers, root: np.random.SeedSequence) -> None:
        self.numbers = numbers
        self._expression, self._root = expression, root
        self._place = {letter: k for k, letter in enumerate(expression.letters)}
        self._drawn: dict[tuple[AnyLetter, tuple[int, ...]], Matrix] = {}

    def matrix(self) -> Matrix:
        """M."""
        total = np.zeros([self.numbers.size(place) for place in self._expression.shape])
        for term in self._expression.terms:
            coefficient = self.numbers.value(f"coefficient of {term}", term.coefficient)
            for choice in product(*(range(self.numbers.count(s.family)) for s in term.sums)):
                factors = [(f, _copy(term, place, choice)) for place, f in enumerate(term.word)]
                self._add(total, coefficient, factors)
        return total

    def _add(self, total: Matrix, coefficient: float, factors: list[tuple[Factor, tuple[int, ...]]]) -> None:
        """Add a word to `total`; inclusions at its ends choose the block that it goes to."""
        while factors and isinstance(first := factors[0][0].letter, Inclusion) and not factors[0][0].transposed:
            total = self._block(total, first, factors.pop(0)[1])
        while factors and isinstance(last := factors[-1][0].letter, Inclusion):
            total = self._block(total.T, last, factors.pop()[1]).T
        matrices = [self._factor(factor, copy) for factor, copy in factors]
        if not matrices:
            total += coefficient * np.eye(len(total))
        else:
            total += coefficient * (matrices[0] if len(matrices) == 1 else np.linalg.multi_dot(matrices))

    def _block(self, total: Matrix, inclusion: Inclusion, copy: tuple[int, ...]) -> Matrix:
        """The rows of one copy of the part that an inclusion includes; a view."""
        index = 0
        for family, which in zip(inclusion.chain, copy, strict=True):
            index = index * self.numbers.count(family) + which
        size = self.numbers.size(inclusion.part.space)
        start = sum(self.numbers.part(part) for part in inclusion.whole.parts[: inclusion.number]) + index * size
        return total[start : start + size]

    def _factor(self, factor: Factor, copy: tuple[int, ...]) -> Matrix:
        letter = factor.letter
        if (letter, copy) not in self._drawn:
            self._drawn[letter, copy] = self._letter(letter, copy)
        matrix = self._drawn[letter, copy]
        return matrix.T if factor.transposed else matrix

    def _letter(self, letter: AnyLetter, copy: tuple[int, ...]) -> Matrix:
        shape = (self.numbers.size(letter.rows), self.numbers.size(letter.columns))
        if isinstance(letter, Diagonal):
            values = [self.numbers.value(f"an eigenvalue of {letter}", value) for value in letter.eigenvalues]
            weights = [self.numbers.value(f"a weight of {letter}", weight) for weight in letter.weights]
            return np.diag(np.asarray(values)[shares(weights, shape[0])])
        if not isinstance(letter, Letter):
            raise InputError("expression", letter, "inclusions at the ends of words only")
        key = (*self._root.spawn_key, self._place[letter], *copy)
        stream = np.random.SeedSequence(self._root.entropy, spawn_key=key, pool_size=self._root.pool_size)
        spread = math.sqrt(self.numbers.value(f"variance of {letter}", letter.variance))
        entries = spread * np.random.default_rng(stream).standard_normal(shape)
        return np.triu(entries) + np.triu(entries, 1).T if letter.symmetric else entries


def _copy(term: Term, place: int, choice: tuple[int, ...]) -> tuple[int, ...]:
    """Which copy of factor number `place` of a word is meant, when the sums stand at the chosen copies."""
    bound = {s.family: c for s, c in zip(term.sums, choice, strict=True) if s.start <= place < s.stop}
    letter = term.word[place].letter
    if any(family not in bound for family in letter.chain):
        allowed = f"a sum {letter.chain[-1]}.sum(…): {letter} is one matrix for each copy"
        raise InputError("expression", str(term), allowed)
    return tuple(bound[family] for family in letter.chain)


def _eigenvalues(matrix: Matrix) -> Matrix:
    """Ascending; what double precision cannot tell from zero is 0, so that an atom there can be counted."""
    found = np.asarray(np.linalg.eigvalsh(matrix), dtype=np.float64)
    return np.where(np.abs(found) < len(found) * _EPSILON * np.abs(found).max(), 0.0, found)


def _check_symmetric(matrix: Matrix) -> None:
    rows, columns = matrix.shape
    if rows != columns or np.abs(matrix - matrix.T).max() > _ASYMMETRY * np.abs(matrix).max():
        raise InputError("of", "self-adjoint", 'an expression with M = Mᵀ; of="gram" takes any')
