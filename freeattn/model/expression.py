"""Expressions: polynomials in letters, with shapes checked when they are built.

An expression is kept in normal form, a tuple of terms: coefficient × word, a word being a tuple of letters, each
transposed or not. A word may be summed over the copies of a family; then the term keeps one representative and the
stretch of the word, from the first to the last letter of the copy, that the sum binds:

    Σ_r Q_r K_rᵀ V   is   Q Kᵀ V with the sum over r on the stretch [0, 2).

A product of two sums is a double sum: its word has two stretches, side by side. The identity is the empty word.

A direct sum of spaces occurs at the ends of words only: [A, B] is A J₁ᵀ + B J₂ᵀ with the inclusions J₁, J₂ of the two
parts; a letter on a direct sum is written with its blocks, Σ_k J_k A_k, and J_kᵀJ_l is 1 or 0 in every product.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from freeattn.display import ShownAsFormulas
from freeattn.errors import InputError, NotCoveredError
from freeattn.model.letters import AnyLetter, Copies, Diagonal, Inclusion, Letter, Part, Space
from freeattn.model.quantities import Quantity, as_integer, as_quantity, ratio
from freeattn.model.terms import Factor, Stretch, Term

__all__ = ["Expression", "concatenate", "diagonal", "gaussian", "identity", "wigner"]

_SCALAR = "a real number or a symbol"


@dataclass(frozen=True, repr=False)
class Expression(ShownAsFormulas):
    """A polynomial in letters, rows × columns; terms are sorted out: no word twice, no coefficient zero.

    Written with `+`, `-`, `@`, `*` and `/` by scalars, `.T` and `**` (positive integer powers of square expressions).

    Raises:
        InputError: for shapes that do not fit (both are shown), and for one name used for two different things.
    """

    rows: Space
    columns: Space
    terms: tuple[Term, ...] = field(compare=False)
    content: frozenset[Term] = field(init=False, repr=False)  # equality does not look at the order of terms

    __array_ufunc__ = None  # numpy scalars leave the product to this class

    def __post_init__(self) -> None:
        merged: dict[tuple[tuple[Factor, ...], tuple[Stretch, ...]], Quantity] = {}
        for term in self.terms:
            key = (term.word, term.sums)
            merged[key] = merged[key] + term.coefficient if key in merged else term.coefficient
        kept = tuple(Term(value, word, sums) for (word, sums), value in merged.items() if value != 0)
        object.__setattr__(self, "terms", kept)
        object.__setattr__(self, "content", frozenset(kept))
        _check_names(self)

    @property
    def shape(self) -> tuple[Space, Space]:
        """(space of the rows, space of the columns)."""
        return self.rows, self.columns

    @property
    def letters(self) -> tuple[AnyLetter, ...]:
        """The letters, in order of appearance."""
        return tuple(dict.fromkeys(factor.letter for term in self.terms for factor in term.word))

    @property
    def T(self) -> Expression:  # noqa: N802  (the name of the transpose everywhere)
        """The transpose."""
        return Expression(self.columns, self.rows, tuple(term.mirrored for term in self.terms))

    def summed(self, family: Copies) -> Expression:
        """Σ over the copies of a family; see `Copies.sum`."""
        return Expression(self.rows, self.columns, tuple(term.summed(family) for term in self.terms))

    def concatenated(self, family: Copies, name: str | None = None) -> Expression:
        """All copies side by side; see `Copies.concatenate`."""
        whole = Space(name or f"{family}×{self.columns}", parts=(Part(self.columns, family),))
        return _total(self @ _inclusion(whole, 0).T, family.chain)

    def __add__(self, other: object) -> Expression:
        if not isinstance(other, Expression):
            return NotImplemented
        if self.shape != other.shape:
            raise InputError("sum", f"{_shape(self)} + {_shape(other)}", "two expressions of the same shape")
        return Expression(self.rows, self.columns, self.terms + other.terms)

    def __neg__(self) -> Expression:
        return self * -1

    def __sub__(self, other: object) -> Expression:
        return self + (-other) if isinstance(other, Expression) else NotImplemented

    def __matmul__(self, other: object) -> Expression:
        if not isinstance(other, Expression):
            return NotImplemented
        if self.columns != other.rows:
            raise InputError(
                "product", f"{_shape(self)} @ {_shape(other)}",
                f"the rows of the right factor on {self.columns}, the columns of the left",
            )
        products = (a.times(b) for a in self.terms for b in other.terms)
        return Expression(self.rows, other.columns, tuple(term for term in products if term is not None))

    def __mul__(self, scalar: object) -> Expression:
        if isinstance(scalar, Expression):
            raise InputError("product", f"{_shape(self)} * {_shape(scalar)}", "the product of matrices written with @")
        factor = as_quantity("coefficient", scalar, _SCALAR)
        return Expression(self.rows, self.columns, tuple(Term(factor * t.coefficient, t.word, t.sums)
                                                         for t in self.terms))

    __rmul__ = __mul__

    def __truediv__(self, scalar: object) -> Expression:
        divisor = as_quantity("divisor", scalar, "a number or a symbol that is not zero")
        if divisor == 0:
            raise InputError("divisor", scalar, "a number or a symbol that is not zero")
        return self * ratio(1, divisor)

    def __pow__(self, power: object) -> Expression:
        power = as_integer("power", power, "a positive integer", 1)
        if self.rows != self.columns:
            allowed = "an expression whose rows and columns are one space"
            raise InputError("power", f"({_shape(self)})**{power}", allowed)
        result = self
        for _ in range(power - 1):
            result = result @ self
        return result

    def __repr__(self) -> str:
        return f"<Expression {self.rows} × {self.columns}: {self}>"

    def __str__(self) -> str:
        return " + ".join(f"{t.coefficient}·{t}" if t.coefficient != 1 else str(t) for t in self.terms) or "0"


def gaussian(name: str, rows: Space, columns: Space, variance: Quantity = 1, per: Copies | None = None) -> Expression:
    """The letter `name`: a rows × columns matrix of independent N(0, variance) entries; `per`: one for each copy.

    On a direct sum it is written with one letter for each part.

    Raises:
        NotCoveredError: for a block that would belong to copies of two families at once.
    """
    if isinstance(rows, Space) and rows.parts:
        blocks = (
            _inclusion(rows, k) @ gaussian(f"{name}[{k + 1}]", part.space, columns, variance, _one(name, part.per, per))
            for k, part in enumerate(rows.parts)
        )
        return _sum_over_parts(rows, blocks)
    if isinstance(columns, Space) and columns.parts:
        return gaussian(name, columns, rows, variance, per).T
    return _single(Letter(name, rows, columns, variance, per=per))


def wigner(name: str, space: Space, variance: Quantity = 1, per: Copies | None = None) -> Expression:
    """The letter `name`: a symmetric matrix on `space` with N(0, variance) entries, independent up to symmetry."""
    _whole(name, space)
    return _single(Letter(name, space, space, variance, symmetric=True, per=per))


def diagonal(
    name: str, space: Space, eigenvalues: Iterable[Quantity], weights: Iterable[Quantity] | None = None
) -> Expression:
    """The letter `name`: a deterministic diagonal matrix with a discrete spectrum.

    Args:
        name: of the letter.
        space: it acts on. Several diagonal letters on one space have the same weights: their eigenvalues of one number
            stand at the same places.
        eigenvalues: real numbers or symbols.
        weights: the fraction of the space that each eigenvalue has: positive, of sum 1, or counts. Equal by default.
    """
    _whole(name, space)
    try:
        values = tuple(eigenvalues)
        shares = (1,) * len(values) if weights is None else tuple(weights)
    except TypeError:
        raise InputError(f"eigenvalues or weights of {name}", (eigenvalues, weights), "sequences of numbers") from None
    return _single(Diagonal(name, space, values, shares))


def identity(space: Space) -> Expression:
    """The identity matrix on a space."""
    if not isinstance(space, Space):
        raise InputError("identity", space, "a space made by space(…)")
    if space.parts:
        blocks = (_inclusion(space, k) @ _inclusion(space, k).T for k in range(len(space.parts)))
        return _sum_over_parts(space, blocks)
    return Expression(space, space, (Term(1, ()),))


def concatenate(*expressions: Expression, name: str | None = None) -> Expression:
    """[A, B, …]: expressions with the same rows side by side. The columns are a direct sum, with the given name."""
    if not expressions or not all(isinstance(e, Expression) for e in expressions):
        raise InputError("concatenate", expressions, "one or more expressions")
    if len({e.rows for e in expressions}) != 1:
        raise InputError("concatenate", f"[{', '.join(map(_shape, expressions))}]", "expressions with the same rows")
    parts = tuple(Part(e.columns) for e in expressions)
    whole = Space(name or "⊕".join(part.space.name for part in parts), parts=parts)
    first, *others = (e @ _inclusion(whole, k).T for k, e in enumerate(expressions))
    return sum(others, first)


def _single(letter: AnyLetter) -> Expression:
    return Expression(letter.rows, letter.columns, (Term(1, (Factor(letter, False),)),))


def _inclusion(whole: Space, number: int) -> Expression:
    return _single(Inclusion(whole, number))


def _total(expression: Expression, chain: Sequence[Copies]) -> Expression:
    """Summed over the families of a chain, the innermost first."""
    for family in reversed(chain):
        expression = expression.summed(family)
    return expression


def _sum_over_parts(whole: Space, blocks: Iterable[Expression]) -> Expression:
    chains = (() if part.per is None else part.per.chain for part in whole.parts)
    first, *others = (_total(block, chain) for block, chain in zip(blocks, chains, strict=True))
    return sum(others, first)


def _one(name: str, part: Copies | None, per: Copies | None) -> Copies | None:
    if part is not None and per is not None:
        raise NotCoveredError(f"{name}: its blocks would belong to copies of both {part} and {per}; take a letter that "
                              "is the same for all copies, or write the blocks out")
    return part or per


def _whole(name: str, space: Space) -> None:
    if isinstance(space, Space) and space.parts:
        raise NotCoveredError(f"{name} acts on the direct sum {space}: write its blocks on the parts of {space}")


def _check_names(expression: Expression) -> None:
    letters = expression.letters
    spaces = [expression.rows, expression.columns, *(s for a in letters for s in (a.rows, a.columns))]
    families = [family for letter in letters for family in letter.chain]
    for kind, values in (("letter", letters), ("space", spaces), ("copies", families)):
        _check_one_each(kind, values)
    weights: dict[Space, Diagonal] = {}
    for letter in letters:
        if isinstance(letter, Diagonal) and weights.setdefault(letter.space, letter).weights != letter.weights:
            raise NotCoveredError(
                f"{weights[letter.space]} and {letter} on {letter.space} have different weights, so it is not known "
                "which eigenvalues stand together; letters on one space that are not jointly diagonal have no closed "
                "equation: give both the same weights, eigenvalues listed in the same order"
            )


def _check_one_each(kind: str, values: Sequence[Any]) -> None:
    known: dict[str, Any] = {}
    for value in values:
        if known.setdefault(value.name, value) != value:
            raise InputError(f"{kind} {value.name}", f"{known[value.name]!r} and {value!r}", f"one {kind} for one name")


def _shape(expression: Expression) -> str:
    return f"({expression.rows} × {expression.columns})"
