"""Words in letters with coefficients and sums over copies: the terms of expressions."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

from freeattn.errors import InputError, NotCoveredError
from freeattn.model.letters import AnyLetter, Copies, Inclusion, Space
from freeattn.model.quantities import Quantity

__all__ = ["Factor", "Stretch", "Term"]


class Factor(NamedTuple):
    """A letter of a word, transposed or not."""

    letter: AnyLetter
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

    @property
    def includes(self) -> bool:
        """Whether it is the inclusion of a part into a direct sum, not transposed."""
        return isinstance(self.letter, Inclusion) and not self.transposed

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
    def unbound(self) -> tuple[AnyLetter, ...]:
        """Letters of a copy that no sum binds."""
        return tuple(f.letter for k, f in enumerate(self.word) if any(not self.binds(g, k) for g in f.letter.chain))

    def binds(self, family: Copies, position: int) -> bool:
        """Whether factor number `position` stands inside a sum over `family`."""
        return any(s.family == family and s.start <= position < s.stop for s in self.sums)

    def times(self, other: Term) -> Term | None:
        """The product of two terms; None where it is zero, J_kᵀJ_l with k ≠ l."""
        coefficient, shift = self.coefficient * other.coefficient, len(self.word)
        moved = tuple(Stretch(s.family, s.start + shift, s.stop + shift) for s in other.sums)
        product = Term(coefficient, self.word + other.word, self.sums + moved)
        for place in range(shift - 1, -1, -1):
            if place + 1 >= len(product.word) or not product.word[place + 1].includes:
                return product
            if product.word[place].letter != product.word[place + 1].letter:
                return None
            product = product.contracted(place)
        return product

    def contracted(self, place: int) -> Term:
        """This term with the factors number `place` and `place` + 1, which are JᵀJ, left out: they share one copy."""
        families = self.word[place].letter.chain
        kept: list[Stretch] = []
        bound: list[Stretch] = []
        for stretch in self.sums:
            start, stop = stretch.start, stretch.stop
            at_join = stretch.family in families and start <= place + 1 and stop > place
            moved = Stretch(stretch.family, min(start, start - 2 if start > place + 1 else place),
                            max(stop - 2, place) if stop > place else stop)
            (bound if at_join else kept).append(moved)
        word, coefficient = self.word[:place] + self.word[place + 2 :], self.coefficient
        for family in families:
            inside = [s for s in bound if s.family == family]
            start, stop = min(s.start for s in inside), max(s.stop for s in inside)
            places = [k for k in range(start, stop) if family in word[k].letter.chain]
            if places:
                kept.append(Stretch(family, places[0], places[-1] + 1))
            else:
                coefficient = coefficient * family.count
        return Term(coefficient, word, _ordered(kept))

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
        return " ".join(str(f) for f in self.word) or "1"


def _ordered(sums: Iterable[Stretch]) -> tuple[Stretch, ...]:
    return tuple(sorted(sums, key=lambda s: (s.start, -s.stop, len(s.family.chain), s.family.name)))


def _check_nested(old: Stretch, new: Stretch, term: Term) -> None:
    """Sums on overlapping stretches must be over nested families, the inner one done first."""
    if old.family == new.family:
        raise InputError(f"{new.family}.sum", str(term), f"a word in which no letter is summed over {new.family} twice")
    if not (new.family in old.family.chain and new.start <= old.start and old.stop <= new.stop):
        raise NotCoveredError(
            f"{term}: the sum over {new.family} meets the sum over {old.family}; sums may overlap only when one family "
            f"lies within the other: copies(…, within={new.family.name})"
        )
