"""The weights of an equation of words as rational enclosures, with what they rest on."""

from __future__ import annotations

from functools import cached_property

import mpmath
import sympy as sp

from freeattn.errors import CertificationError, NotCoveredError
from freeattn.model.quadrature import thetas
from freeattn.numerics.compile import fraction_of
from freeattn.numerics.dyson_tables import DysonTables, tables_of
from freeattn.numerics.enclosures import Enclosure, enclosed, exactly
from freeattn.numerics.exact_words import ExactWords
from freeattn.theory.assumptions import Assumption
from freeattn.theory.attention_words import Thetas
from freeattn.theory.moments import moments

__all__ = ["QUADRATURE", "EnclosedWeights"]

QUADRATURE = Assumption(
    "numerical θ's", "θ₁ and θ₂ of the score function are within the error that their quadrature estimates",
    "freeattn.model.quadrature",
)


class EnclosedWeights:
    """Enclosures of everything in an equation that is not an unknown.

    Args:
        exact: the system with its values.
        mean_one: whether the law is in the unit that makes its mean one.
        digits: to which irrational numbers are enclosed.

    Raises:
        NotCoveredError: for infinitely many heads.
        CertificationError: when a weight has no enclosure.
    """

    def __init__(self, exact: ExactWords, mean_one: bool, digits: int) -> None:
        if exact.endless:
            raise NotCoveredError("certificates are for finitely many heads: take n_heads large, such as 10**12")
        self._exact, self._mean_one, self._digits = exact, mean_one, digits
        self.assumptions: tuple[Assumption, ...] = ()
        self._known = {symbol: value for symbol, value in exact.values if value.is_Rational}
        self._values = {
            symbol: enclosed(value, {}, digits) for symbol, value in exact.values if not value.is_Rational
        }
        self._scale = exactly(1)
        for pair in exact.pairs:
            first, second = self._thetas(pair)
            if exact.homogeneous:
                self._scale, first, second = first, exactly(1), second / first
            self._values |= {pair.theta_1: first, pair.theta_2: second}

    def tables(self) -> DysonTables:
        """The equation with an `Enclosure` for every number."""
        return self._tables

    @cached_property
    def _tables(self) -> DysonTables:
        return tables_of(self._exact.system, self._known, self._enclosed)

    def unit(self) -> Enclosure:
        """What one unit of the equation is worth."""
        if not self._mean_one:
            return self._scale
        known = {symbol: sp.Rational(value) for symbol, value in self._known.items()}
        mean = self._enclosed(sp.sympify(moments(self._exact.system, 1, known)[0]))
        return mean.inverse()

    def _enclosed(self, expression: sp.Expr) -> Enclosure:
        return enclosed(sp.sympify(expression), self._values, self._digits)

    def _thetas(self, pair: Thetas) -> tuple[Enclosure, Enclosure]:
        """θ₁, θ₂: enclosed where the score function has formulas for them."""
        digits = self._digits + 20  # e^{β²} − 1 cancels at small β
        formulas = pair.scores.exact_thetas(sp.sympify(pair.beta), sp)
        if formulas is not None:
            try:
                first, second = (enclosed(sp.sympify(formula), {}, digits) for formula in formulas)
                return first, second
            except CertificationError:  # a function without enclosure here: quadrature then
                pass
        self.assumptions = (QUADRATURE,)
        found = thetas(pair.scores, pair.beta, digits)
        return _within(found.theta_1, found.error), _within(found.theta_2, found.error)


def _within(value: mpmath.mpf, error: mpmath.mpf) -> Enclosure:
    middle, radius = (fraction_of(number) for number in (value, error))
    return Enclosure(middle - radius, middle + radius)
