"""What every derivation offers, whichever route it took: numbered steps, their written forms, and the scalar system."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import sympy as sp

from freeattn.display import ShownAsFormulas
from freeattn.theory.algebraic_curve import AlgebraicCurve
from freeattn.theory.assumptions import Assumption, Rule
from freeattn.theory.exports.julia import julia_source
from freeattn.theory.exports.mathematica import mathematica_source
from freeattn.theory.exports.program import CurveProgram, DysonProgram
from freeattn.theory.exports.python_source import python_source
from freeattn.theory.given_values import GivenValues
from freeattn.theory.rendering import LatexOptions, latex_body, latex_document, latex_fragment, to_text
from freeattn.theory.steps import Step
from freeattn.theory.symbols import THETA_1, THETA_2
from freeattn.theory.system import ScalarSystem

__all__ = ["Derivation"]


class Derivation(ShownAsFormulas, ABC):
    """The way from a model to the equations of its law.

    Attributes:
        source: what was derived.
        system: the scalar equations of the law.
        assumptions, rules: what the derivation rests on, each with its source.
        values: (symbol, exact value or expression in the user's symbols).
    """

    source: Any
    system: ScalarSystem
    assumptions: tuple[Assumption, ...]
    rules: tuple[Rule, ...]
    values: tuple[tuple[sp.Symbol, sp.Expr], ...]

    @property
    @abstractmethod
    def steps(self) -> tuple[Step, ...]:
        """The derivation as numbered steps: a sentence and equations each."""

    @abstractmethod
    def moments(self, order: int, general: bool = False) -> tuple[sp.Expr, ...]:
        """m_1 … m_order of the law, exact; with general=True no values are put in.

        Raises:
            InputError: for an order that is not a positive integer.
        """

    @abstractmethod
    def free_cumulants(self, order: int, general: bool = False) -> tuple[sp.Expr, ...]:
        """κ_1 … κ_order of the law, R(z) = Σ κ_n z^{n−1}, exact; arguments and errors as for `moments`."""

    @abstractmethod
    def polynomial(
        self, normalized: bool = True, general: bool = False, values: GivenValues | None = None
    ) -> sp.Expr:
        """P(z, m) = 0 for the Stieltjes transform m(z) = ∫ ν(dx)/(x − z), expanded, integer coefficients.

        Args:
            normalized: for the law divided by its mean, or for the law itself.
            general: keep the standard symbols even where the source has numbers.
            values: rational numbers for symbols, by symbol or name: c, or theta_1 and theta_2, and sizes that are open.
        """

    @abstractmethod
    def curve(self, normalized: bool = True, values: GivenValues | None = None) -> AlgebraicCurve:
        """The same polynomial as a curve over Q: irreducible, with discriminant and branch points.

        Raises:
            InputError: when a symbol is left that has no rational value.
            NotCoveredError: normalized=True for a law whose mean is not positive; for degrees beyond reach.
        """

    @abstractmethod
    def to_dict(self) -> dict[str, Any]:
        """JSON-ready: every equation as srepr, LaTeX and text, the assumptions, rules and values."""

    @property
    @abstractmethod
    def program(self) -> CurveProgram | DysonProgram:
        """The equations with what is needed to solve them, for exports to other languages.

        Raises:
            NotCoveredError: for a law whose equations have no numbers, or a parameter that is infinite.
        """

    def to_python(self) -> str:
        """Source of a module that needs numpy only: stieltjes(z) and density(x), symbols as keyword arguments.

        Raises:
            NotCoveredError: as `program`.
        """
        return python_source(self.program)

    def to_julia(self) -> str:
        """The same as a module of Julia that needs the standard library only.

        Raises:
            NotCoveredError: as `program`.
        """
        return julia_source(self.program)

    def to_mathematica(self) -> str:
        """The same as a package of the Wolfram language, with exact parameters and the equations as expressions.

        Raises:
            NotCoveredError: as `program`.
        """
        return mathematica_source(self.program)

    @property
    def unknowns(self) -> tuple[sp.Symbol, ...]:
        """Unknowns of the scalar system."""
        return self.system.unknowns

    @property
    def equations(self) -> tuple[sp.Expr, ...]:
        """Equations (each = 0) of the scalar system."""
        return self.system.equations

    @property
    def numbers(self) -> dict[sp.Symbol, sp.Expr]:
        """The values that are put in: those that are rational numbers, θ₁ and θ₂ left out."""
        return {s: v for s, v in self.values if v.is_Rational and s not in (THETA_1, THETA_2)}

    def value_of(self, symbol: sp.Symbol) -> sp.Expr:
        """The exact value of a symbol, or the symbol itself when it has none."""
        return dict(self.values).get(symbol, symbol)

    def latex(self, standalone: bool = False, macros: bool = False, prefix: str = "freeattn") -> str:
        """A fragment for article with amsmath, or a whole document.

        Args:
            standalone: a document with its references in it. A fragment names its sources in words.
            macros: write with the macros of freeattn.sty and cite keys of references.bib, which lie in the folder
                freeattn/theory/data of the package.
            prefix: equations have labels eq:prefix-name.
        """
        options = LatexOptions(prefix, macros, citations=standalone or macros)
        parts = (self.steps, self.assumptions, self.rules, options)
        return latex_document([("", latex_body(*parts))], options) if standalone else latex_fragment(*parts)

    def text(self) -> str:
        """The same steps in plain text."""
        return to_text(self.steps, self.assumptions, self.rules)
