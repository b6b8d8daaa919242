"""What a derivation is written in: numbered steps of one sentence and some equations, independent of how they print."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import sympy as sp

from freeattn.theory.notation import Notation

__all__ = ["EQUALS", "Equation", "Piece", "Reference", "Step", "Term", "Vanishing", "reference"]

Piece: TypeAlias = "str | sp.Expr | Notation"
EQUALS = Notation("=", "=")


@dataclass(frozen=True)
class Reference(Notation):
    """A reference to main equations by their names: their numbers in LaTeX, `text` in plain text."""

    names: tuple[str, ...] = ()


def reference(text: str, *names: str) -> Reference:
    """A reference to one equation, or to the first to last of several."""
    return Reference("", text, names=names)


@dataclass(frozen=True)
class Equation:
    """left = right; main equations are numbered and have a label.

    `numeric` is printed after ≈; `exact` is the right side as an expression where `right` is written by hand; `sign`
    is written in place of =.
    """

    name: str
    left: sp.Expr | Notation
    right: sp.Expr | Notation
    main: bool = False
    numeric: sp.Expr | None = None
    exact: sp.Expr | None = None
    sign: Notation = EQUALS


@dataclass(frozen=True)
class Term:
    """before · coefficient · after, written in this order."""

    before: sp.Expr
    coefficient: sp.Expr
    after: sp.Expr


@dataclass(frozen=True)
class Vanishing:
    """Σ terms = 0, the terms in their given order."""

    name: str
    terms: tuple[Term, ...]
    main: bool = True

    @property
    def expression(self) -> sp.Expr:
        """The left side."""
        return sp.Add(*(t.before * t.coefficient * t.after for t in self.terms))


@dataclass(frozen=True)
class Step:
    """One step: a title, a sentence with formulas in it, and equations."""

    name: str
    title: str
    sentence: tuple[Piece, ...]
    equations: tuple[Equation | Vanishing, ...] = ()
