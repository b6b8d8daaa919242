"""The exact side of a law in numbers: units, curve, moments and atoms at any number of digits.

Laws of attention are homogeneous in (θ₁, θ₂): numbers are computed with θ₁ = 1, θ₂ = c = θ₂/θ₁ and then dilated by
θ₁, so that a large e^{β²} costs no accuracy.
"""

from __future__ import annotations

import importlib
from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import Any

import sympy as sp
from flint import fmpq

from freeattn.errors import InputError
from freeattn.model.attention import Attention
from freeattn.model.precision import own_context
from freeattn.model.quadrature import check_digits, thetas
from freeattn.model.scores import ScoreFunction
from freeattn.numerics.compile import CompiledCurve, compile_curve, fraction_of, rational_value
from freeattn.numerics.polynomials import to_context
from freeattn.theory import symbols as sym
from freeattn.theory.attention_laws import law_of
from freeattn.theory.system import system_of
from freeattn.theory.transforms import Law
from freeattn.theory.weights import as_fmpq

__all__ = ["Atom", "ExactLaw", "ExactSide", "exact_context", "exact_law"]

_GUARD_DIGITS = 10
_THETA_GUARD = 15  # as `compile.rational_value` has
_DOUBLE_DIGITS = 17


@dataclass(frozen=True)
class Atom:
    """A point mass: location and weight. Weights are exact (Fraction) when the ratios are rational."""

    location: float
    weight: Fraction | float


class ExactSide(ABC):
    """What a `SpectralLaw` must know exactly, whichever route derived it; the engine has the rest."""

    source: Any

    @abstractmethod
    def unit(self, digits: int) -> Any:
        """What one unit of the engine is worth (an mpmath number)."""

    @abstractmethod
    def moments(self, order: int, digits: int) -> tuple[Any, ...]:
        """m_1 … m_order as mpmath numbers, units included."""

    @property
    @abstractmethod
    def atoms(self) -> tuple[Atom, ...]:
        """Point masses in the unit of the engine, ascending."""

    @abstractmethod
    def atoms_to(self, digits: int) -> tuple[tuple[Any, Any], ...]:
        """(location, weight) as mpmath numbers, units included, ascending."""

    @abstractmethod
    def exact_moments(self, order: int) -> tuple[sp.Expr, ...]:
        """m_1 … m_order without rounding, in θ₁ and θ₂ (or c) where these are irrational."""

    @abstractmethod
    def normalized(self) -> ExactSide:
        """The same in the unit that makes the mean one."""


@dataclass(frozen=True)
class ExactLaw(ExactSide):
    """A law expression with values for its symbols, in the unit θ₁ (attention) or 1.

    Attributes:
        source: the specification or law expression.
        expression: the law in symbols.
        values: symbols other than θ's ↦ numbers.
        mean_one: True when the unit is 1/mean instead.
    """

    source: Attention | Law
    expression: Law
    values: tuple[tuple[sp.Symbol, sp.Expr], ...]
    mean_one: bool = False

    def normalized(self) -> ExactLaw:
        """The same law in the unit that makes its mean one."""
        return replace(self, mean_one=True)

    def numbers(self, digits: int) -> dict[sp.Symbol, fmpq]:
        """Every symbol as a rational number: exact, or to `digits` and a guard."""
        numbers = {symbol: rational_value(value, digits) for symbol, value in self.values}
        if isinstance(self.source, Attention):
            numbers[sym.THETA_1] = fmpq(1)
            numbers[sym.THETA_2] = _ratio_of_thetas(self.source.scores, self.source.beta, digits)
        return numbers

    def curve(self, digits: int) -> CompiledCurve:
        """The compiled curve of the law in its own unit."""
        parametrization = system_of(self.expression).parametrization
        assert parametrization is not None  # every system of this route has one
        return compile_curve(parametrization, self.numbers(digits))

    def unit(self, digits: int) -> Any:
        """What one unit of the curve is worth: θ₁, or 1/mean (an mpmath number)."""
        context = exact_context(digits)
        if isinstance(self.source, Attention):
            check_digits(self.source.scores, digits)
        if self.mean_one:
            return 1 / to_context(_mean(self._numeric(digits)), context)
        if not isinstance(self.source, Attention):
            return context.one
        return context.mpf(thetas(self.source.scores, self.source.beta, digits + _THETA_GUARD).theta_1)

    def moments(self, order: int, digits: int) -> tuple[Any, ...]:
        """m_1 … m_order as mpmath numbers, from the exact series."""
        context, unit = exact_context(digits), self.unit(digits)
        return tuple(
            to_context(as_fmpq(m), context) * unit**k for k, m in enumerate(self._moments(order, digits), 1)
        )

    def exact_moments(self, order: int) -> tuple[sp.Expr, ...]:
        """m_1 … m_order without rounding, in θ₁ and θ₂ (or c) where these are irrational."""
        exact: Any = importlib.import_module("freeattn.theory.exact_moments")  # with the words of layers
        if isinstance(self.source, Attention):
            found: tuple[sp.Expr, ...] = exact.layer_moments(self.source, order, self.mean_one)
            return found
        found = self.source.moments(order)
        return exact.mean_one_moments(found) if self.mean_one else found

    def _moments(self, order: int, digits: int) -> tuple[sp.Rational, ...]:
        return self._numeric(digits).moments(order)

    def _numeric(self, digits: int) -> Law:
        numbers = self.numbers(max(digits, _DOUBLE_DIGITS))
        return _substituted(self.expression, tuple(sorted(numbers.items(), key=str)))

    def atoms_to(self, digits: int) -> tuple[tuple[Any, Any], ...]:
        """(location, weight) of each point mass as mpmath numbers, units included, ascending."""
        context, unit = exact_context(digits), self.unit(digits)
        found = [
            (to_context(as_fmpq(location), context) * unit, to_context(rational_value(weight, digits), context))
            for location, weight in self._numeric(digits).atoms() if weight > 0
        ]
        return tuple(sorted(found))

    @cached_property
    def atoms(self) -> tuple[Atom, ...]:
        """Point masses of positive weight in the unit of the curve, ascending."""
        found = self._numeric(_DOUBLE_DIGITS).atoms()
        atoms = [Atom(float(location), _weight(weight)) for location, weight in found if weight > 0]
        return tuple(sorted(atoms, key=lambda atom: atom.location))


@lru_cache(maxsize=256)
def _mean(law: Law) -> fmpq:
    """Of a law in numbers; every value to many digits in the unit of mean one needs it."""
    return as_fmpq(law.moments(1)[0])


def exact_law(source: Attention | Law) -> ExactLaw:
    """The exact data of a specification or of a law expression without symbols.

    Raises:
        InputError: when symbols are left.
    """
    if isinstance(source, Law):
        left = sorted({str(s) for parameter in _parameters(source) for s in parameter.free_symbols})
        if left:
            raise InputError("law", str(source), f"a law without symbols; still symbolic: {', '.join(left)}")
        return ExactLaw(source, *_named_irrationals(source))
    if source.symbolic:
        raise InputError("specification", "symbolic", "numbers for every field; derive() takes symbols")
    expression = law_of(source)
    return ExactLaw(source, expression.law, expression.values)


def _parameters(law: Law) -> list[sp.Expr]:
    found: list[sp.Expr] = []
    law.map_parameters(lambda parameter: found.append(parameter) or parameter)  # type: ignore[func-returns-value]
    return found


def _named_irrationals(law: Law) -> tuple[Law, tuple[tuple[sp.Symbol, sp.Expr], ...]]:
    """The law with a symbol for each irrational parameter, so that all algebra stays over Q, and their values."""
    values: dict[sp.Expr, sp.Symbol] = {}

    def name(parameter: sp.Expr) -> sp.Expr:
        if parameter.is_Rational:
            return parameter
        sign = {"positive": True} if parameter.is_positive else {"negative": True}
        return values.setdefault(parameter, sp.Symbol(f"a_{len(values) + 1}", **sign))

    named = law.map_parameters(name)
    return named, tuple((symbol, value) for value, symbol in values.items())


@lru_cache(maxsize=256)
def _ratio_of_thetas(scores: ScoreFunction, beta: Any, digits: int) -> fmpq:
    """θ₂/θ₁ to `digits` and a guard; exactly 1 where there is no noise."""
    found = thetas(scores, beta, digits + _THETA_GUARD)
    context = own_context(digits + _THETA_GUARD)
    return fraction_of(context.mpf(found.theta_2) / context.mpf(found.theta_1))


@lru_cache(maxsize=64)
def _substituted(expression: Law, numbers: tuple[tuple[sp.Symbol, fmpq], ...]) -> Law:
    return expression.substitute({symbol: sp.Rational(int(v.p), int(v.q)) for symbol, v in numbers})


def exact_context(digits: int) -> Any:
    """A context with a few digits more than those asked for."""
    return own_context(digits + _GUARD_DIGITS)



def _weight(weight: sp.Expr) -> Fraction | float:
    return Fraction(int(weight.p), int(weight.q)) if weight.is_Rational else float(weight)
