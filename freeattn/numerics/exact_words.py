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
from typing import Any, cast

import sympy as sp

from freeattn.errors import InputError, NotCoveredError
from freeattn.model.attention import Attention
from freeattn.model.expression import Expression
from freeattn.model.quadrature import check_digits, thetas
from freeattn.model.word_sizes import checked_sizes, families_of, quantities_of, spaces_of, symbols_of
from freeattn.numerics.compile import rational_value
from freeattn.numerics.dyson_tables import DysonTables, tables_of
from freeattn.numerics.exact import Atom, ExactSide, exact_context
from freeattn.numerics.network import NetworkEngine
from freeattn.numerics.polynomials import to_context
from freeattn.theory.attention_words import Thetas, words_of
from freeattn.theory.dyson import DysonSystem, dyson_of
from freeattn.theory.exact_moments import layer_moments, mean_one_moments
from freeattn.theory.field import as_expression
from freeattn.theory.moments import moments
from freeattn.theory.pencil import Product, check_product, count_of, size_of
from freeattn.theory.rank import atoms_of
from freeattn.theory.splitting import alive, exact_values
from freeattn.theory.weights import as_fmpq

__all__ = ["ExactWords", "engine_of", "symbols_held", "words_law"]

_DOUBLE_DIGITS = 17
_ENDLESS = 40  # h = 10^40 stands for infinitely many heads
_ALWAYS_MOMENTS = 2  # mean and second moment are needed for every law: computed once
_DIVERGED = 1e20  # a mean that grows like h
_RANGE = (1e-280, 1e280)  # of a second moment
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
        context = exact_context(digits)
        return tables_of(self.system, numbers, lambda value: to_context(rational_value(value, digits), context))

    def unit(self, digits: int) -> Any:
        if self.endless and digits > _MOST_ENDLESS_DIGITS:
            limit = f"at most {_MOST_ENDLESS_DIGITS} for infinitely many heads by the pencil route"
            raise InputError("digits", digits, limit)
        for pair in self.pairs:
            check_digits(pair.scores, digits)
        context = exact_context(digits)
        if self.mean_one:
            return 1 / to_context(as_fmpq(self._moments(1, digits)[0]), context)
        if not self.homogeneous:
            return context.one
        return context.mpf(thetas(self.pairs[0].scores, self.pairs[0].beta, digits + 15).theta_1)

    def moments(self, order: int, digits: int) -> tuple[Any, ...]:
        context, unit = exact_context(digits), self.unit(digits)
        found = enumerate(self._moments(order, digits), 1)
        return tuple(to_context(as_fmpq(m), context) * unit**k for k, m in found)

    def exact_moments(self, order: int) -> tuple[sp.Expr, ...]:
        if isinstance(self.source, Attention):
            return layer_moments(self.source, order, self.mean_one)
        found = moments(self.system, order, dict(self.values))
        return mean_one_moments(found) if self.mean_one else found

    def _moments(self, order: int, digits: int) -> tuple[sp.Rational, ...]:
        digits = max(digits, _DOUBLE_DIGITS)
        numbers = tuple(sorted(self.numbers(digits).items(), key=str))
        return _exact_moments(self.system, max(order, _ALWAYS_MOMENTS), numbers, digits)[:order]

    @cached_property
    def atoms(self) -> tuple[Atom, ...]:
        return tuple(Atom(float(sp.N(location, _DOUBLE_DIGITS)), weight) for location, weight in self._atoms)

    @cached_property
    def _atoms(self) -> tuple[tuple[sp.Expr, Fraction], ...]:
        return atoms_of(self.system.expression, self.system.pencil.of, self.numbers(_DOUBLE_DIGITS))

    def atoms_to(self, digits: int) -> tuple[tuple[Any, Any], ...]:
        context, unit = exact_context(digits), self.unit(digits)
        return tuple(
            (
                to_context(rational_value(location, digits), context) * unit,
                context.mpf(weight.numerator) / weight.denominator,
            )
            for location, weight in self._atoms
        )


def engine_of(exact: ExactWords) -> NetworkEngine:
    """The engine of a law given by words.

    Raises:
        InputError: when squares of its values leave the range of doubles.
        NotCoveredError: when the law has no limit for infinitely many heads.
        BranchError, ConvergenceError: when its bands are not found.
    """
    moments = exact._moments(2, _DOUBLE_DIGITS)
    first, second = map(float, moments)
    if moments[1] and not _RANGE[0] <= second <= _RANGE[1]:
        allowed = "{:g} to {:g}, which doubles hold; other variances change the unit (M times c: the law times c²)"
        raise InputError("second moment of the law", second, allowed.format(*_RANGE))
    if exact.endless and first > _DIVERGED:
        raise NotCoveredError("the mean of this law grows with the number of heads: no limit for infinitely many")
    mass = float(1 - sum((Fraction(atom.weight) for atom in exact.atoms), Fraction(0)))
    centre = (0.0, 0.0)
    if mass > 0:
        mean = (first - sum(float(atom.weight) * atom.location for atom in exact.atoms)) / mass
        square = (second - sum(float(atom.weight) * atom.location**2 for atom in exact.atoms)) / mass
        centre = (mean, max(square - mean**2, 0.0) ** 0.5)
    cancelling = 2 * _ENDLESS if exact.endless else 0
    atoms = tuple(atom.location for atom in exact.atoms)
    return NetworkEngine(exact.tables, second**0.5, mass, exact.signed, atoms, centre, cancelling)


def words_law(source: Attention | Expression, of: str, sizes: Mapping[Any, Any] | None) -> ExactWords:
    """The exact data of a specification, or of an expression with sizes for its symbols.

    Raises:
        InputError: when symbols are left, or a size is given for something that does not occur.
    """
    if isinstance(source, Expression):
        check_product(source, cast(Product, of))
        values = _values(source, of, sizes)
        return ExactWords(source, dyson_of(_alive(source, dict(values)), of), values)
    if source.symbolic:
        raise InputError("specification", "symbolic", "numbers for every field; derive() takes symbols")
    words = words_of(source)
    numbers = _numbers(words.values, words.thetas, words.homogeneous, _DOUBLE_DIGITS)
    system = dyson_of(_alive(words.expression, numbers), words.of)
    return ExactWords(source, system, words.values, words.thetas, words.homogeneous)


def _values(
    expression: Expression, of: str, sizes: Mapping[Any, Any] | None
) -> tuple[tuple[sp.Symbol, sp.Expr], ...]:
    """A number for every symbol of an expression; one that the equation does not hold may be left out."""
    given, kinds = checked_sizes(expression, sizes), symbols_of(expression)
    left_out = set(kinds) - set(given)
    if left_out:
        needed = {str(symbol) for symbol in symbols_held(dyson_of(expression, of))}
        if missing := sorted(left_out & needed):
            raise InputError("sizes", None, f"a number for each of {', '.join(missing)}")
        given |= dict.fromkeys(left_out, 1)
    quantities = [as_expression(quantity) for quantity, _ in quantities_of(expression)]
    quantities += [count_of(family) for family in families_of(expression)]
    quantities += [size_of(place) for place in spaces_of(expression)]
    symbols = {symbol for quantity in quantities for symbol in quantity.free_symbols}
    return tuple((s, as_expression(given[str(s)])) for s in sorted(symbols, key=str))


def symbols_held(system: DysonSystem) -> set[sp.Symbol]:
    """The symbols that the equation holds."""
    values = [term.weight for term in system.terms] + [share for share, _ in system.outputs]
    values += [system.copies_below(p, 0) for p in range(len(system.pencil.blocks))]
    values += [system.fixed(sector, p, q) for sector in system.sectors for p in sector.blocks for q in sector.blocks]
    nodes = [node for sector in system.sectors for node in sector.nodes]
    values += [value for node in nodes for value in (node.weight, *dict(node.values).values())]
    return {symbol for value in values for symbol in sp.sympify(value).free_symbols}


def _alive(expression: Expression, numbers: Mapping[Any, Any]) -> Expression:
    """Without words that are zero: traces that only they create have no equation.

    Raises:
        InputError: when nothing is left.
    """
    left = alive(expression, exact_values(numbers))
    if not left.terms:
        raise InputError("expression", str(expression), "an expression that is not zero at the given numbers")
    return left


@lru_cache(maxsize=256)
def _numbers(
    values: tuple[tuple[sp.Symbol, sp.Expr], ...], pairs: tuple[Thetas, ...], homogeneous: bool, digits: int
) -> dict[sp.Symbol, sp.Rational]:
    endless = {symbol: sp.Integer(10) ** _ENDLESS for symbol, value in values if value is sp.oo}
    found = {symbol: _rational(value.subs(endless), digits) for symbol, value in values if symbol not in endless}
    for pair in pairs:
        both = thetas(pair.scores, pair.beta, digits + 15)
        context = exact_context(digits + 5)
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
