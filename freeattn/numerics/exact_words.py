"""The exact side of a law that is given by words: units, equation, moments and atoms at any number of digits.

Layers are computed with θ₁ = 1, θ₂ = c = θ₂/θ₁ and then dilated by θ₁ where their words are homogeneous in the θ's (not
beside the tokens of a residual connection, nor for heads of unlike β), so that a large e^{β²} costs no accuracy.
Infinitely many heads are the limit of finitely many at fixed total widths, which is approached like 1/h: h is taken so
large that the difference is below every number of digits that is allowed then.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import Any

import mpmath
import sympy as sp
from flint import fmpq

from freeattn.errors import InputError, NotCoveredError
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
from freeattn.theory.pencil import count_of, size_of
from freeattn.theory.rank import atoms_of

__all__ = ["ExactWords", "engine_of", "words_law"]

_DOUBLE_DIGITS = 17
_ENDLESS = 40  # h = 10^40 stands for infinitely many heads
_ALWAYS_MOMENTS = 2  # mean and second moment are needed for every law: computed once
_DIVERGED = 1e20  # a mean that grows like h
_MOST_ENDLESS_DIGITS = 35  # then


@dataclass(frozen=True)
class ExactWords(ExactSide):
    """A Dyson system with values for its symbols, in the unit θ₁ (words homogeneous in the θ's) or 1.

    Attributes:
        source: the specification or the expression.
        system: the equation in symbols.
        values: symbols other than θ's ↦ exact numbers.
        pairs: the θ's of the heads.
        homogeneous: whether θ₁ is a scale of the law.
        mean_one: True when the unit is 1/mean instead.
    """

    source: Attention | Expression
    system: DysonSystem
    values: tuple[tuple[sp.Symbol, sp.Expr], ...]
    pairs: tuple[Thetas, ...] = ()
    homogeneous: bool = False
    mean_one: bool = False

    def normalized(self) -> ExactWords:
        return replace(self, mean_one=True)

    @property
    def signed(self) -> bool:
        """Whether the law may have support below 0."""
        return self.system.pencil.of == "self-adjoint"

    @property
    def endless(self) -> bool:
        """Whether the number of heads is infinite."""
        return any(value is sp.oo for _, value in self.values)

    def numbers(self, digits: int) -> dict[sp.Symbol, sp.Rational]:
        """Every symbol as a rational number: exact, or to `digits` and a guard."""
        return _numbers(self.values, self.pairs, self.homogeneous, digits)

    def tables(self, digits: int) -> DysonTables:
        """The equation with mpmath numbers of the given digits; with doubles for 0 digits."""
        numbers = self.numbers(digits or _DOUBLE_DIGITS)
        if not digits:
            return tables_of(self.system, numbers)
        context = _context(digits)
        return tables_of(self.system, numbers, lambda value: to_context(rational_value(value, digits), context))

    def unit(self, digits: int) -> Any:
        if self.endless and digits > _MOST_ENDLESS_DIGITS:
            limit = f"at most {_MOST_ENDLESS_DIGITS} for infinitely many heads by the pencil route"
            raise InputError("digits", digits, limit)
        context = _context(digits)
        if self.mean_one:
            return 1 / to_context(_fmpq(self._moments(1, digits)[0]), context)
        if not self.homogeneous:
            return context.one
        return context.mpf(thetas(self.pairs[0].scores, self.pairs[0].beta, digits + 15).theta_1)

    def moments(self, order: int, digits: int) -> tuple[Any, ...]:
        context, unit = _context(digits), self.unit(digits)
        found = enumerate(self._moments(order, digits), 1)
        return tuple(to_context(_fmpq(m), context) * unit**k for k, m in found)

    def _moments(self, order: int, digits: int) -> tuple[sp.Rational, ...]:
        numbers = tuple(sorted(self.numbers(digits).items(), key=str))
        return _exact_moments(self.system, max(order, _ALWAYS_MOMENTS), numbers, digits)[:order]

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
        NotCoveredError: when the law has no limit for infinitely many heads.
        BranchError, ConvergenceError: when its bands are not found.
    """
    first, second = (float(m) for m in exact._moments(2, _DOUBLE_DIGITS))
    if exact.endless and first > _DIVERGED:
        raise NotCoveredError("the mean of this law grows with the number of heads: no limit for infinitely many")
    mass = float(1 - sum((Fraction(atom.weight) for atom in exact.atoms), Fraction(0)))
    centre = (0.0, 0.0)
    if mass > 0:
        mean = (first - sum(float(atom.weight) * atom.location for atom in exact.atoms)) / mass
        square = (second - sum(float(atom.weight) * atom.location**2 for atom in exact.atoms)) / mass
        centre = (mean, max(square - mean**2, 0.0) ** 0.5)
    cancelling = 2 * _ENDLESS if exact.endless else 0
    return NetworkEngine(exact.tables, second**0.5, mass, exact.signed, centre, cancelling)


def words_law(source: Attention | Expression, of: str, sizes: Mapping[Any, Any] | None) -> ExactWords:
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
    return ExactWords(source, dyson_of(words.expression, words.of), words.values, words.thetas, words.homogeneous)


def _sizes(system: DysonSystem, sizes: Mapping[Any, Any]) -> tuple[tuple[sp.Symbol, sp.Expr], ...]:
    """Values by symbol, from names, symbols or spaces; symbols of the expression that the law does not need may be
    left out."""
    needed = {str(symbol): symbol for symbol in _symbols(system)}
    known = {str(symbol): symbol for symbol in _all_symbols(system.expression)} | needed
    found = {}
    for key, value in sizes.items():
        if str(key) not in known:
            allowed = f"one of {', '.join(sorted(known))}" if known else "nothing: the expression has no symbols"
            raise InputError("sizes", str(key), allowed)
        number = sp.sympify(value)
        if not (number.is_number and number.is_extended_real and number.is_finite):
            raise InputError(f"sizes[{key}]", value, "a number")
        found[known[str(key)]] = sp.nsimplify(number, rational=True) if number.is_Float else number
    missing = sorted(set(needed) - {str(symbol) for symbol in found})
    if missing:
        raise InputError("sizes", None, f"a number for each of {', '.join(missing)}")
    found |= {symbol: sp.Integer(1) for symbol in known.values() if symbol not in found}  # no influence on the law
    return tuple(found.items())


def _all_symbols(expression: Expression) -> set[sp.Symbol]:
    letters = expression.letters
    spaces = {expression.rows, expression.columns, *(s for a in letters for s in (a.rows, a.columns))}
    values = [size_of(place) for place in spaces] + [term.coefficient for term in expression.terms]
    values += [getattr(letter, "variance", 1) for letter in letters]
    values += [count_of(family) for letter in letters for family in letter.chain]
    return {symbol for value in values for symbol in sp.sympify(value).free_symbols}


def _symbols(system: DysonSystem) -> set[sp.Symbol]:
    """The symbols that the equation holds."""
    values = [term.weight for term in system.terms]
    values += [system.copies_below(p, 0) for p in range(len(system.pencil.blocks))]
    values += [system.fixed(sector, p, q) for sector in system.sectors for p in sector.blocks for q in sector.blocks]
    values += [share for share, _ in system.outputs]
    nodes = [node for sector in system.sectors for node in sector.nodes]
    values += [value for node in nodes for value in (node.weight, *dict(node.values).values())]
    own = {symbol for node in nodes for symbol in dict(node.values)}
    return {symbol for value in values for symbol in sp.sympify(value).free_symbols} - own


@lru_cache(maxsize=256)
def _numbers(
    values: tuple[tuple[sp.Symbol, sp.Expr], ...], pairs: tuple[Thetas, ...], homogeneous: bool, digits: int
) -> dict[sp.Symbol, sp.Rational]:
    endless = {symbol: sp.Integer(10) ** _ENDLESS for symbol, value in values if value is sp.oo}
    found = {symbol: _rational(value.subs(endless), digits) for symbol, value in values if symbol not in endless}
    for pair in pairs:
        both = thetas(pair.scores, pair.beta, digits + 15)
        context = _context(digits + 5)
        first, second = context.mpf(both.theta_1), context.mpf(both.theta_2)
        if homogeneous:
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
