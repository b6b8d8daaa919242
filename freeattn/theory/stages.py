"""Every stage of a derivation as a value, and what follows from them: polynomial and moments."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import sympy as sp

from freeattn.errors import NotCoveredError
from freeattn.model.attention import Attention
from freeattn.model.quantities import is_symbolic
from freeattn.theory import symbols as sym
from freeattn.theory.algebraic_curve import TELLING_MOMENTS, AlgebraicCurve, curve_of_series
from freeattn.theory.assumptions import Assumption, Rule
from freeattn.theory.attention_laws import LawExpression
from freeattn.theory.branch import BranchCondition
from freeattn.theory.derivation import Derivation
from freeattn.theory.equivalent import GaussianEquivalent
from freeattn.theory.forms import expanded, primitive
from freeattn.theory.given_values import GivenValues, given_values, positive_integer, with_ratio, with_thetas
from freeattn.theory.homogeneous import homogeneous_moments
from freeattn.theory.mean_one import ScalarEquation
from freeattn.theory.system import ScalarSystem
from freeattn.theory.transforms import Dilation, Law
from freeattn.theory.transforms.law import eliminate
from freeattn.theory.transforms.series import from_domain, to_domain

__all__ = ["Stages", "Transform"]

_NUMERIC_DIGITS = 20


@dataclass(frozen=True)
class Transform:
    """What is known of one node: S(w) and R(z) where rational, else a polynomial in (S, w) where it is its own."""

    law: Law
    s: sp.Expr | None
    r: sp.Expr | None
    relation: sp.Expr | None
    rule: Rule


@dataclass(frozen=True)
class Stages(Derivation):
    """Every stage from a specification (or a law expression) to the polynomial of its law.

    Fields are in the standard symbols. Methods put in the values that are rational numbers for this source, unless
    `general=True`; θ₁, θ₂ and c stay symbols (c = 1 is put in). `values` says what every symbol is worth.

    Attributes:
        source: what was derived.
        expression: the law in the algebra, with the rule it comes from.
        equivalent: the Gaussian equivalent (None for a law expression).
        assumptions, rules: what the derivation rests on, each with its source.
        transforms: S- and R-transforms of the nodes, leaves first.
        mean: first moment of the law.
        scalar: the equation in (λ, w) of the law divided by its mean, and Π; None when the mean is not positive.
        system: the scalar equations of the law itself, with the rational parametrization when there is one.
        branch: which root is the law.
        atoms: (location, weight) of the possible atoms.
        values: (symbol, exact value or expression in the user's symbols).
    """

    source: Attention | Law
    expression: LawExpression
    equivalent: GaussianEquivalent | None
    assumptions: tuple[Assumption, ...]
    rules: tuple[Rule, ...]
    transforms: tuple[Transform, ...]
    mean: sp.Expr
    scalar: ScalarEquation | None
    system: ScalarSystem
    branch: BranchCondition
    atoms: tuple[tuple[sp.Expr, sp.Expr], ...]
    values: tuple[tuple[sp.Symbol, sp.Expr], ...]

    # Stages --------------------------------------------------------------------------------------------------------

    @property
    def law(self) -> Law:
        """The law expression in the standard symbols."""
        return self.expression.law

    @property
    def mean_one(self) -> Law:
        """The law divided by its mean, with θ₂ = cθ₁."""
        return Dilation(self.law, 1 / self.mean).substitute({sym.THETA_2: sym.C * sym.THETA_1})

    @property
    def atom_at_zero(self) -> sp.Expr:
        """ν({0})."""
        return 1 - self.law.mass_off_zero

    def approximate(self, symbol: sp.Symbol) -> sp.Expr | None:
        """The value of a symbol to 20 digits, also where only quadrature gives θ₁ and θ₂; None when still symbolic."""
        value = self.value_of(symbol)
        if value.is_number:
            return sp.N(value, _NUMERIC_DIGITS)
        if self.equivalent is None or is_symbolic(self.equivalent.spec.beta):
            return None
        first, second = (sp.Float(x, _NUMERIC_DIGITS) for x in self.equivalent.numeric(_NUMERIC_DIGITS))
        return {sym.THETA_1: first, sym.THETA_2: second, sym.C: second / first}.get(symbol)

    def specialized(self, general: bool = False) -> ScalarEquation | None:
        """The scalar equation with numbers put in (or not, with general=True)."""
        if self.scalar is None or general:
            return self.scalar
        return self.scalar.substitute(self.numbers)

    # Results -------------------------------------------------------------------------------------------------------

    def polynomial(
        self, normalized: bool = True, general: bool = False, values: GivenValues | None = None
    ) -> sp.Expr:
        """P(z, m) = 0 for the Stieltjes transform m(z) = ∫ ν(dx)/(x − z), expanded, integer coefficients.

        Args:
            normalized: for the law divided by its mean (in γ's, h, c), or for the law itself (θ₁ as well).
            general: keep the standard symbols even where the source has numbers.
            values: rational numbers for some of these symbols; θ₁ and θ₂ together give c.

        Raises:
            NotCoveredError: normalized=True for a law whose mean is not positive.
        """
        found = _polynomial(self, normalized, general)
        if values is None:
            return found
        numbers = with_ratio(given_values(values, {*found.free_symbols, sym.THETA_1, sym.THETA_2, sym.C}))
        return primitive(expanded([(sp.Integer(1), found.subs(numbers))], (sym.Z, sym.M))).as_expr()

    def curve(self, normalized: bool = True, values: GivenValues | None = None) -> AlgebraicCurve:
        """The algebraic curve over Q: the irreducible factor of `polynomial` that the law obeys.

        Raises:
            InputError: when a symbol is left that has no rational value.
            NotCoveredError: normalized=True for a law whose mean is not positive.
        """
        curve = AlgebraicCurve.from_expression(self.polynomial(normalized, values={} if values is None else values))
        if curve.irreducible:
            return curve
        law = self.mean_one if normalized else self.law
        symbols = {*_parameters(self.law), sym.THETA_1, sym.THETA_2, sym.C}
        numbers = {**self.numbers, **with_thetas(with_ratio(given_values(values, symbols)))}
        return curve_of_series(curve, law.substitute(numbers).moments(TELLING_MOMENTS))

    def moments(self, order: int, general: bool = False) -> tuple[sp.Expr, ...]:
        """m_1 … m_order of the law, exact, in θ₁, θ₂ (and the standard symbols)."""
        return self._expanded(lambda law: law.moments(order), order, general)

    def free_cumulants(self, order: int, general: bool = False) -> tuple[sp.Expr, ...]:
        """κ_1 … κ_order of the law, exact, in θ₁, θ₂ (and the standard symbols)."""
        return self._expanded(lambda law: law.free_cumulants(order), order, general)

    def _expanded(
        self, series: Callable[[Law], tuple[sp.Expr, ...]], order: int, general: bool
    ) -> tuple[sp.Expr, ...]:
        """A series of the law; for a layer in numbers interpolated in θ₁ and θ₂, to spare fractions of polynomials."""
        order = positive_integer("order", order)
        law = self.law if general else self.law.substitute(self.numbers)
        thetas = {sym.THETA_1, sym.THETA_2}
        if self.equivalent is None or not _parameters(law) <= thetas:
            return series(law)
        return homogeneous_moments(lambda c: series(law.substitute({sym.THETA_1: 1, sym.THETA_2: c})), order)

    def normalized_moments(self, order: int, general: bool = False) -> tuple[sp.Expr, ...]:
        """m_1 … m_order of the law divided by its mean, exact, in c (and the standard symbols)."""
        self._require_mean()
        domain, [moments] = to_domain([self.mean_one.moments(order)])
        return self._put(tuple(_spread(m) for m in from_domain(domain, moments)), general)

    def _put(self, expressions: tuple[sp.Expr, ...], general: bool) -> tuple[sp.Expr, ...]:
        return expressions if general else tuple(e.subs(self.numbers) for e in expressions)

    def _require_mean(self) -> None:
        if self.scalar is None:
            raise NotCoveredError(
                f"a law of mean {self.mean} has no mean-one form; ask for the law itself (normalized=False, moments)"
            )


def _parameters(law: Law) -> set[sp.Symbol]:
    """The symbols of a law."""
    found: set[sp.Symbol] = set()
    law.map_parameters(lambda parameter: found.update(parameter.free_symbols) or parameter)  # type: ignore[func-returns-value]
    return found


@lru_cache(maxsize=64)
def _polynomial(stages: Stages, normalized: bool, general: bool) -> sp.Expr:
    if normalized:
        stages._require_mean()
    scalar = stages.specialized(general)
    numbers = {} if general else stages.numbers
    if scalar is None:
        return _eliminated(stages.system).subs(numbers)
    if normalized:
        return scalar.stieltjes_polynomial()
    mean = stages.mean.subs(sym.THETA_2, sym.C * sym.THETA_1).subs(numbers)
    return scalar.stieltjes_polynomial(mean)


def _eliminated(system: ScalarSystem) -> sp.Expr:
    """The polynomial in (z, m) of a rational curve: its parameter eliminated."""
    top, bottom = sp.fraction(sp.together(system.output))
    found = eliminate(system.equations[0], sym.M * bottom - top, system.unknowns[0], keep=(sym.Z, sym.M))
    return sp.expand(found)


def _spread(expression: sp.Expr) -> sp.Expr:
    """A sum of terms when the denominator is a monomial, else the fraction with its denominator in factors."""
    top, bottom = sp.fraction(expression)
    bottom = sp.factor(bottom)
    return top / bottom if any(part.is_Add for part in sp.preorder_traversal(bottom)) else sp.expand(expression)
