"""Letters: independent Gaussian matrices between named spaces, and families of exchangeable copies of them.

A *space* is a name with a size, the number of rows or columns of every matrix that acts on it; two spaces of equal
size stay different. A *letter* is a random matrix with independent Gaussian entries, or a symmetric (Wigner) one. A
family of *copies* is an index r = 1 … count; a letter that is declared per family is one independent matrix for each r.
Sizes, counts and variances are quantities: integers, fractions or symbols. A count is only ever a number in an
equation: nothing is built once per copy.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, TypeVar

from freeattn.errors import InputError
from freeattn.model.quantities import Quantity, as_positive, as_size, is_infinite

__all__ = ["Copies", "Letter", "Space", "copies", "space"]


class Summable(Protocol):
    """What can be summed over copies: an expression."""

    def summed(self: AnySummable, family: Copies) -> AnySummable:
        """Σ over the copies of a family."""


AnySummable = TypeVar("AnySummable", bound=Summable)


@dataclass(frozen=True)
class Space:
    """A named space; `size` None stands for a symbol of the same name."""

    name: str
    size: Quantity = None

    def __post_init__(self) -> None:
        _check_name("space", self.name)
        if self.size is not None:
            object.__setattr__(self, "size", as_size(f"space {self.name}", self.size))

    def __str__(self) -> str:
        return self.name


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
        return expression.summed(self)

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


def _check_name(kind: str, name: object) -> None:
    if not isinstance(name, str) or not name.strip():
        raise InputError(kind, name, "a name: a string that is not empty")
