"""Letters: matrices between named spaces, and families of exchangeable copies of them.

A *space* is a name with a size, the number of rows or columns of every matrix that acts on it; two spaces of equal
size stay different. A space may be the direct sum of others, its *parts*. A *letter* is a random matrix with
independent Gaussian entries, or a symmetric (Wigner) one. Deterministic letters are diagonal matrices with a discrete
spectrum, and inclusions of a part into a direct sum. A family of *copies* is an index r = 1 … count; a letter that is
declared per family is one independent matrix for each r.
Sizes, counts and variances are quantities: integers, fractions or symbols. A count is only ever a number in an
equation: nothing is built once per copy.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, NamedTuple, Protocol, TypeAlias, TypeVar

from freeattn.errors import InputError
from freeattn.model.quantities import Quantity, as_positive, as_quantity, as_size, is_infinite, is_symbolic, ratio

__all__ = ["AnyLetter", "Copies", "Diagonal", "Inclusion", "Letter", "Part", "Space", "copies", "space"]

_ROUNDING = Fraction(1, 10**12)  # by which weights given as decimal fractions may miss the sum 1


class Summable(Protocol):
    """What can be summed over copies: an expression."""

    def summed(self: AnySummable, family: Copies) -> AnySummable:
        """Σ over the copies of a family."""

    def concatenated(self: AnySummable, family: Copies, name: str | None = None) -> AnySummable:
        """All copies side by side."""


AnySummable = TypeVar("AnySummable", bound=Summable)


@dataclass(frozen=True)
class Space:
    """A named space; `size` None stands for a symbol of the same name, or for the size of all `parts` together.

    A direct sum has parts, which are spaces or copies of one; numbers of parts are its own, equal parts are apart.
    """

    name: str
    size: Quantity = None
    parts: tuple[Part, ...] = ()

    def __post_init__(self) -> None:
        _check_name("space", self.name)
        if self.size is not None:
            object.__setattr__(self, "size", as_size(f"space {self.name}", self.size))

    def __str__(self) -> str:
        return self.name


class Part(NamedTuple):
    """A part of a direct sum: a space, once for each copy of `per`."""

    space: Space
    per: Copies | None = None


@dataclass(frozen=True)
class Copies:
    """A family of `count` exchangeable copies; with `within`, `count` copies inside each copy of that family."""

    name: str
    count: Quantity
    within: Copies | None = None

    def __post_init__(self) -> None:
        _check_name("copies", self.name)
        if is_infinite(self.count):
            finite = "a symbol (then take limits), or a large number such as 10**15, with widths divided by it"
            raise InputError(f"copies {self.name}", self.count, finite)
        object.__setattr__(self, "count", as_size(f"copies {self.name}", self.count))
        if self.within is not None and not isinstance(self.within, Copies):
            raise InputError("within", self.within, "a family made by copies(…)")

    @property
    def chain(self) -> tuple[Copies, ...]:
        """The families that this one lies in, outermost first, itself last."""
        return (self,) if self.within is None else (*self.within.chain, self)

    def sum(self, expression: AnySummable) -> AnySummable:
        """Σ_r expression_r, where each letter that is declared per this family stands for its copy r."""
        _check_expression(f"{self}.sum", expression)
        return expression.summed(self)

    def concatenate(self, expression: AnySummable, name: str | None = None) -> AnySummable:
        """[expression_1, expression_2, …], all copies side by side (of all families that this one lies within).

        The columns are a direct sum, a space with the given name.
        """
        return expression.concatenated(self, name)

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True)
class Letter:
    """A random matrix, rows × columns, with Gaussian entries of the given variance.

    Entries are independent; with `symmetric`, A = Aᵀ and the entries on and above the diagonal are independent (the
    variance on the diagonal has no influence in the limit). Different letters are independent, and so are the copies
    of one letter when `per` is given.
    """

    name: str
    rows: Space
    columns: Space
    variance: Quantity = 1
    symmetric: bool = False
    per: Copies | None = None

    def __post_init__(self) -> None:
        _check_name("letter", self.name)
        for field in ("rows", "columns"):
            if not isinstance(getattr(self, field), Space):
                raise InputError(f"{field} of {self.name}", getattr(self, field), "a space made by space(…)")
        if self.per is not None and not isinstance(self.per, Copies):
            raise InputError(f"per of {self.name}", self.per, "a family made by copies(…)")
        object.__setattr__(self, "variance", as_positive(f"variance of {self.name}", self.variance))

    @property
    def chain(self) -> tuple[Copies, ...]:
        """The families that index this letter, outermost first."""
        return () if self.per is None else self.per.chain

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True)
class Diagonal:
    """A deterministic diagonal matrix on a space: eigenvalue number k on a fraction weights[k] of the coordinates.

    Diagonal letters on one space have the same weights, and eigenvalues of one number belong together.
    """

    name: str
    space: Space
    eigenvalues: tuple[Quantity, ...]
    weights: tuple[Quantity, ...]

    symmetric: ClassVar[bool] = True
    chain: ClassVar[tuple[Copies, ...]] = ()

    def __post_init__(self) -> None:
        _check_name("letter", self.name)
        if not isinstance(self.space, Space):
            raise InputError(f"space of {self.name}", self.space, "a space made by space(…)")
        field = f"eigenvalues of {self.name}"
        values = tuple(as_quantity(field, value, "real numbers or symbols") for value in self.eigenvalues)
        if not values or len(values) != len(self.weights):
            raise InputError(field, self.eigenvalues, "at least one, and one weight for each")
        object.__setattr__(self, "eigenvalues", values)
        object.__setattr__(self, "weights", _normalized(f"weights of {self.name}", self.weights))

    @property
    def rows(self) -> Space:
        return self.space

    @property
    def columns(self) -> Space:
        return self.space

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True)
class Inclusion:
    """J, the inclusion of part number `number` into the direct sum `whole`: JᵀJ = 1, and JᵀJ′ = 0 for another part."""

    whole: Space
    number: int

    symmetric: ClassVar[bool] = False

    @property
    def name(self) -> str:
        return f"J[{self.whole}, {self.number + 1}]"

    @property
    def part(self) -> Part:
        return self.whole.parts[self.number]

    @property
    def rows(self) -> Space:
        return self.whole

    @property
    def columns(self) -> Space:
        return self.part.space

    @property
    def chain(self) -> tuple[Copies, ...]:
        return () if self.part.per is None else self.part.per.chain

    def __str__(self) -> str:
        return self.name


AnyLetter: TypeAlias = "Letter | Diagonal | Inclusion"


def space(name: str, size: Quantity = None) -> Space:
    """A named space. Without a size, it is the symbol of that name."""
    return Space(name, size)


def copies(name: str, count: Quantity, within: Copies | None = None) -> Copies:
    """A family of exchangeable copies, such as the heads of a layer, or the heads inside each group of heads.

    Args:
        name: of the family.
        count: number of copies (in each copy of `within`): a positive integer of any size, or a symbol.
        within: the family that this one is nested in.
    """
    return Copies(name, count, within)


def _normalized(field: str, weights: Sequence[Quantity]) -> tuple[Quantity, ...]:
    """Positive weights of sum 1; whole numbers are counts."""
    allowed = "positive numbers of sum 1, or counts"
    found = tuple(as_positive(field, weight, allowed) for weight in weights)
    total = sum(found)
    if is_symbolic(total):
        total = total.expand()
    counts = all(isinstance(weight, int) for weight in found)
    if total != 1 and not counts and (is_symbolic(total) or abs(total - 1) > _ROUNDING):
        raise InputError(field, weights, allowed)
    return found if total == 1 else tuple(ratio(weight, total) for weight in found)


def _check_expression(field: str, value: object) -> None:
    if not hasattr(value, "summed"):
        raise InputError(field, value, "an expression in letters")


def _check_name(kind: str, name: object) -> None:
    if not isinstance(name, str) or not name.strip():
        raise InputError(kind, name, "a name: a string that is not empty")
