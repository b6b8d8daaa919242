"""The exact side of a law that is given by words: units, equation, moments and atoms at any number of digits.

Layers are computed with θ₁ = 1, θ₂ = c = θ₂/θ₁ and then dilated by θ₁ where all heads share one pair of θ's, so that a
large e^{β²} costs no accuracy. Infinitely many heads are the limit of finitely many at fixed total widths, which is
approached like 1/h: h is taken so large that the difference is below the digits asked for.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import Any

import mpmath
import sympy as sp
from flint import fmpq

from freeattn.errors import InputError
from freeattn.model.attention import Attention
from freeattn.model.expression import Expression
from freeattn.model.quadrature import thetas
from freeattn.numerics.compile import rational_value
from freeattn.numerics.dyson_tables import DysonTables, tables_of
from freeattn.numerics.exact import Atom, ExactSide
from freeattn.numerics.network import NetworkEngine
from freeattn.numerics.polynomials import to_context
from freeattn.theory.attention_words import Thetas, words_of
from freeattn.theory.dyson import DysonSystem, dyson_of
from freeattn.theory.moments import moments
from freeattn.theory.rank import atoms_of

__all__ = ["ExactWords", "engine_of", "words_law"]

_DOUBLE_DIGITS = 17
_MORE_HEADS = 3  # digits beyond those asked for by which 1/h is small


@dataclass(frozen=True)
class ExactWords(ExactSide):
    """A Dyson system with values for its symbols, in the unit θ₁ (heads that share their θ's) or 1.

    Attributes:
        source: the specification or the expression.
        system: the equation in symbols.
        values: symbols other than θ's ↦ exact numbers.
        pairs: the θ's of the heads.
        mean_one: True when the unit is 1/mean instead.
    """

    source: Attention | Expression
    system: DysonSystem
    values: tuple[tuple[sp.Symbol, sp.Expr], ...]
    pairs: tuple[Thetas, ...] = ()
    mean_one: bool = False

    def normalized(self) -> ExactWords:
        return replace(self, mean_one=True)

    @property
    def signed(self) -> bool:
        """Whether the law may have support below 0."""
        return self.system.pencil.of == "self-adjoint"

    def numbers(self, digits: int) -> dict[sp.Symbol, sp.Rational]:
        """Every symbol as a rational number: exact, or to `digits` and a guard."""
        return _numbers(self.values, self.pairs, digits)

    def tables(self, digits: int) -> DysonTables:
        """The equation with mpmath numbers of the given digits; with doubles for 0 digits."""
        numbers = self.numbers(digits or _DOUBLE_DIGITS)
        if not digits:
            return tables_of(self.system, numbers)
        context = _context(digits)
        return tables_of(self.system, numbers, lambda value: to_context(rational_value(value, digits), context))

    def unit(self, digits: int) -> Any:
        context = _context(digits)
        if self.mean_one:
            return 1 / to_context(_fmpq(self._moments(1, digits)[0]), context)
        if len(self.pairs) != 1:
            return context.one
        return context.mpf(thetas(self.pairs[0].scores, self.pairs[0].beta, digits + 15).theta_1)

    def moments(self, order: int, digits: int) -> tuple[Any, ...]:
        context, unit = _context(digits), self.unit(digits)
        found = enumerate(self._moments(order, digits), 1)
        return tuple(to_context(_fmpq(m), context) * unit**k for k, m in found)

    def _moments(self, order: int, digits: int) -> tuple[sp.Rational, ...]:
        numbers = tuple(sorted(self.numbers(digits).items(), key=str))
        return _exact_moments(self.system, order, numbers, digits)

    @cached_property
    def atoms(self) -> tuple[Atom, ...]:
        return tuple(Atom(float(location), weight) for location, weight in self._atoms)

    @cached_property
    def _atoms(self) -> tuple[tuple[sp.Rational, Fraction], ...]:
        found = atoms_of(self.system.expression, self.system.pencil.of, self.numbers(_DOUBLE_DIGITS))
        return tuple(sorted((sp.Rational(location), weight) for location, weight in found if weight > 0))

    def atoms_to(self, digits: int) -> tuple[tuple[Any, Any], ...]:
        context, unit = _context(digits), self.unit(digits)
        return tuple(
            (to_context(_fmpq(location), context) * unit, context.mpf(weight.numerator) / weight.denominator)
            for location, weight in self._atoms
        )


def engine_of(exact: ExactWords) -> NetworkEngine:
    """The engine of a law given by words.

    Raises:
        BranchError, ConvergenceError: when its bands are not found.
    """
    size = float(exact._moments(2, _DOUBLE_DIGITS)[1]) ** 0.5
    mass = 1 - sum((Fraction(atom.weight) for atom in exact.atoms), Fraction(0))
    return NetworkEngine(exact.tables, size, float(mass), exact.signed)


def words_law(source: Attention | Expression, of: str, sizes: dict[Any, Any] | None) -> ExactWords:
    """The exact data of a specification, or of an expression with sizes for its symbols.

    Raises:
        InputError: when symbols are left, or a size is given for something that does not occur.
    """
    if isinstance(source, Expression):
        system = dyson_of(source, of)
        return ExactWords(source, system, _sizes(system, sizes or {}))
    if source.symbolic:
        raise InputError("specification", "symbolic", "numbers for every field; derive() takes symbols")
    words = words_of(source)
    return ExactWords(source, dyson_of(words.expression, words.of), words.values, words.thetas)


def _sizes(system: DysonSystem, sizes: dict[Any, Any]) -> tuple[tuple[sp.Symbol, sp.Expr], ...]:
    """Values by symbol, from names, symbols or spaces."""
    known = {str(symbol): symbol for symbol in _symbols(system)}
    found = {}
    for key, value in sizes.items():
        if str(key) not in known:
            allowed = f"one of {', '.join(sorted(known))}" if known else "nothing: the expression has no symbols"
            raise InputError("sizes", str(key), allowed)
        number = sp.sympify(value)
        if not (number.is_number and number.is_extended_real and number.is_finite):
            raise InputError(f"sizes[{key}]", value, "a number")
        found[known[str(key)]] = sp.nsimplify(number, rational=True) if number.is_Float else number
    missing = sorted(set(known) - {str(symbol) for symbol in found})
    if missing:
        raise InputError("sizes", None, f"a number for each of {', '.join(missing)}")
    return tuple(found.items())


def _symbols(system: DysonSystem) -> set[sp.Symbol]:
    values = [term.weight for term in system.terms]
    values += [system.copies_below(p, 0) for p in range(len(system.pencil.blocks))]
    values += [system.fixed(sector, p, q) for sector in system.sectors for p in sector.blocks for q in sector.blocks]
    values += [share for share, _ in system.outputs]
    nodes = {symbol for sector in system.sectors for node in sector.nodes for symbol in dict(node.values)}
    return {symbol for value in values for symbol in sp.sympify(value).free_symbols} - nodes


@lru_cache(maxsize=256)
def _numbers(
    values: tuple[tuple[sp.Symbol, sp.Expr], ...], pairs: tuple[Thetas, ...], digits: int
) -> dict[sp.Symbol, sp.Rational]:
    endless = {symbol: sp.Integer(10) ** (digits + _MORE_HEADS) for symbol, value in values if value is sp.oo}
    found = {symbol: _rational(value.subs(endless), digits) for symbol, value in values if symbol not in endless}
    for pair in pairs:
        both = thetas(pair.scores, pair.beta, digits + 15)
        context = _context(digits + 5)
        first, second = context.mpf(both.theta_1), context.mpf(both.theta_2)
        if len(pairs) == 1:
            first, second = context.one, second / first
        for symbol, value in ((pair.theta_1, first), (pair.theta_2, second)):
            found[symbol] = _rational(sp.Float(value, digits + 15), digits)
    return {**endless, **found}


@lru_cache(maxsize=256)
def _exact_moments(
    system: DysonSystem, order: int, numbers: tuple[tuple[sp.Symbol, sp.Rational], ...], digits: int
) -> tuple[sp.Rational, ...]:
    return tuple(_rational(m, digits) for m in moments(system, order, dict(numbers)))


def _rational(value: sp.Expr, digits: int) -> sp.Rational:
    number = rational_value(value, digits)
    return sp.Rational(int(number.p), int(number.q))


def _context(digits: int) -> Any:
    context = mpmath.MPContext()
    context.dps = digits + 10
    return context


def _fmpq(value: sp.Rational) -> fmpq:
    return fmpq(int(value.p), int(value.q))
