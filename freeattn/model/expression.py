"""Expressions: polynomials in letters, with shapes checked when they are built.

An expression is kept in normal form, a tuple of terms: coefficient × word, a word being a tuple of letters, each
transposed or not. A word may be summed over the copies of a family; then the term keeps one representative and the
stretch of the word, from the first to the last letter of the copy, that the sum binds:

    Σ_r Q_r K_rᵀ V   is   Q Kᵀ V with the sum over r on the stretch [0, 2).

A product of two sums is a double sum: its word has two stretches, side by side.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from freeattn.errors import InputError, NotCoveredError
from freeattn.model.letters import Copies, Letter, Space
from freeattn.model.quantities import Quantity, as_quantity, ratio

__all__ = ["Expression", "Factor", "Stretch", "Term", "gaussian", "wigner"]

_SCALAR = "a real number or a symbol"


class Factor(NamedTuple):
    """A letter of a word, transposed or not."""

    letter: Letter
    transposed: bool

    @property
    def rows(self) -> Space:
        return self.letter.columns if self.transposed else self.letter.rows

    @property
    def columns(self) -> Space:
        return self.letter.rows if self.transposed else self.letter.columns

    @property
    def mirrored(self) -> Factor:
        """The transpose; a symmetric letter is its own."""
        return self if self.letter.symmetric else Factor(self.letter, not self.transposed)

    def __str__(self) -> str:
        return f"{self.letter}ᵀ" if self.transposed else str(self.letter)


class Stretch(NamedTuple):
    """The factors start … stop − 1 of a word share one copy of `family`, and the word is summed over the copies."""

    family: Copies
    start: int
    stop: int


@dataclass(frozen=True)
class Term:
    """coefficient × word, summed over the copies that its stretches bind (outer stretches first)."""

    coefficient: Quantity
    word: tuple[Factor, ...]
    sums: tuple[Stretch, ...] = ()

    @property
    def unbound(self) -> tuple[Letter, ...]:
        """Letters of a copy that no sum binds."""
        return tuple(f.letter for k, f in enumerate(self.word) if any(not self.binds(g, k) for g in f.letter.chain))

    def binds(self, family: Copies, position: int) -> bool:
        """Whether factor number `position` stands inside a sum over `family`."""
        return any(s.family == family and s.start <= position < s.stop for s in self.sums)

    def times(self, other: Term) -> Term:
        """The product of two terms."""
        shift = len(self.word)
        moved = tuple(Stretch(s.family, s.start + shift, s.stop + shift) for s in other.sums)
        return Term(self.coefficient * other.coefficient, self.word + other.word, self.sums + moved)

    @property
    def mirrored(self) -> Term:
        """The transpose."""
        length = len(self.word)
        turned = (Stretch(s.family, length - s.stop, length - s.start) for s in self.sums)
        return Term(self.coefficient, tuple(f.mirrored for f in reversed(self.word)), _ordered(turned))

    def summed(self, family: Copies) -> Term:
        """Σ over the copies of `family` of this term; a word without a letter of the copy is counted.

        Raises:
            InputError: when a sum over a family inside this one is still to be done, or this sum is done already.
            NotCoveredError: when the sum encloses or cuts a sum over another family.
        """
        for place, factor in enumerate(self.word):
            chain = factor.letter.chain
            for inner in chain[chain.index(family) + 1 :] if family in chain else ():
                if not self.binds(inner, place):
                    done_first = f"the sum over {inner}, which lies within {family}, done first"
                    raise InputError(f"{family}.sum", str(self), done_first)
        places = [k for k, f in enumerate(self.word) if family in f.letter.chain and not self.binds(family, k)]
        if not places:
            return Term(family.count * self.coefficient, self.word, self.sums)
        new = Stretch(family, places[0], places[-1] + 1)
        for old in self.sums:
            if old.start < new.stop and new.start < old.stop:
                _check_nested(old, new, self)
        return Term(self.coefficient, self.word, _ordered((*self.sums, new)))

    def __str__(self) -> str:
        return " ".join(str(f) for f in self.word)


@dataclass(frozen=True)
class Expression:
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
    def letters(self) -> tuple[Letter, ...]:
        """The letters, in order of appearance."""
        return tuple(dict.fromkeys(factor.letter for term in self.terms for factor in term.word))

    @property
    def T(self) -> Expression:  # noqa: N802  (the name of the transpose everywhere)
        """The transpose."""
        return Expression(self.columns, self.rows, tuple(term.mirrored for term in self.terms))

    def summed(self, family: Copies) -> Expression:
        """Σ over the copies of a family; see `Copies.sum`."""
        return Expression(self.rows, self.columns, tuple(term.summed(family) for term in self.terms))

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
        return Expression(self.rows, other.columns, tuple(a.times(b) for a in self.terms for b in other.terms))

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
        if isinstance(power, bool) or not isinstance(power, int) or power < 1:
            raise InputError("power", power, "a positive integer")
        if self.rows != self.columns:
            allowed = "an expression whose rows and columns are one space"
            raise InputError("power", f"({_shape(self)})**{power}", allowed)
        result = self
        for _ in range(power - 1):
            result = result @ self
        return result

    def __str__(self) -> str:
        return " + ".join(f"{t.coefficient}·{t}" if t.coefficient != 1 else str(t) for t in self.terms) or "0"


def gaussian(name: str, rows: Space, columns: Space, variance: Quantity = 1, per: Copies | None = None) -> Expression:
    """The letter `name`: a rows × columns matrix of independent N(0, variance) entries; `per`: one for each copy."""
    return _single(Letter(name, rows, columns, variance, per=per))


def wigner(name: str, space: Space, variance: Quantity = 1, per: Copies | None = None) -> Expression:
    """The letter `name`: a symmetric matrix on `space` with N(0, variance) entries, independent up to symmetry."""
    return _single(Letter(name, space, space, variance, symmetric=True, per=per))


def _single(letter: Letter) -> Expression:
    return Expression(letter.rows, letter.columns, (Term(1, (Factor(letter, False),)),))


def _ordered(sums: Iterable[Stretch]) -> tuple[Stretch, ...]:
    return tuple(sorted(sums, key=lambda s: (s.start, -s.stop, len(s.family.chain), s.family.name)))


def _check_nested(old: Stretch, new: Stretch, term: Term) -> None:
    """Sums on overlapping stretches must be over nested families, the inner one done first."""
    if old.family == new.family:
        raise InputError(f"{new.family}.sum", str(term), f"a word in which no letter is summed over {new.family} twice")
    inside = new.family in old.family.chain and new.start <= old.start and old.stop <= new.stop
    if not inside:
        raise NotCoveredError(
            f"{term}: the sum over {new.family} meets the sum over {old.family}; sums may overlap only when one family "
            f"lies within the other: copies(…, within={new.family.name})"
        )


def _check_names(expression: Expression) -> None:
    letters = expression.letters
    spaces = [expression.rows, expression.columns, *(s for a in letters for s in (a.rows, a.columns))]
    families = [family for letter in letters for family in letter.chain]
    for kind, values in (("letter", letters), ("space", spaces), ("copies", families)):
        _check_one_each(kind, values)


def _check_one_each(kind: str, values: Sequence[Any]) -> None:
    known: dict[str, Any] = {}
    for value in values:
        if known.setdefault(value.name, value) != value:
            raise InputError(f"{kind} {value.name}", f"{known[value.name]!r} and {value!r}", f"one {kind} for one name")


def _shape(expression: Expression) -> str:
    return f"({expression.rows} × {expression.columns})"
