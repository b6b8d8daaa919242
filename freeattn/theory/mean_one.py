"""The law of mean one as a product of known factors, and the scalar equation that follows.

For a law on [0, ∞) with ψ = ∫ zx/(1−zx) dν and spectral point −λ, the quantity w = ∫ x/(x+λ) dν is −ψ(−1/λ), hence

    λ w S(−w) = 1 − w        (definition of S; w = 1 + z m at z = −λ).

S of the mean-one law is a product over the nodes of the law expression. Its rational factors are collected in
Π(z) = (1 + z) ∏ 1/S_i(z); what is left, the *base*, enters by its polynomial relation in (S, w):

    λ w S_base(−w) = Π(−w).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import sympy as sp

from freeattn.theory.assumptions import Rule
from freeattn.theory.forms import expanded, primitive, split_free, tidy
from freeattn.theory.symbols import LAMBDA, PI_FACTOR, PI_REST, THETA_1, THETA_2, C, M, S, W, Z
from freeattn.theory.transforms import (
    CompoundFreePoisson,
    Dilation,
    FreePoisson,
    FreeProduct,
    Image,
    Law,
    MarchenkoPastur,
    PointMass,
)
from freeattn.theory.transforms.law import eliminate

__all__ = ["SCALAR_RULE", "Factor", "ScalarEquation", "factors_of", "relation_of", "scalar_equation"]

_ONE = sp.Integer(1)

SCALAR_RULE = Rule(
    "scalar equation", "λ w S(−w) = 1 − w for w = ∫ x/(x+λ) dν = 1 + z m at z = −λ",
    "Nica-Speicher, lecture 18 (definition of the S-transform at −w)",
)


@dataclass(frozen=True)
class Factor:
    """One factor S_law(w/scale) of the S-transform of a mean-one law; `law` is `origin` divided by its mean."""

    law: Law
    scale: sp.Expr
    origin: Law

    def s_transform(self, w: sp.Expr) -> sp.Expr | None:
        """S_law(w/scale) when it is rational, else None."""
        return self.law.s_transform(w / self.scale)


def factors_of(law: Law, scale: sp.Expr = _ONE) -> tuple[Factor, ...]:
    """The factors of S of the law divided by its mean, by the rules of the nodes.

    D_s drops out; ⊠ concatenates; π(μ, t) gives MP_{1/t} and the factors of μ at w/t; the image under φ is divided by
    its mean inside φ, so that a common unit θ₁ of the coefficients cancels.
    """
    if isinstance(law, Dilation):
        return factors_of(law.law, scale)
    if isinstance(law, FreeProduct):
        return tuple(factor for part in law.factors for factor in factors_of(part, scale))
    if isinstance(law, CompoundFreePoisson):
        return (*factors_of(law.law, scale * law.rate), Factor(MarchenkoPastur(1 / law.rate), scale, law))
    if isinstance(law, PointMass):
        return ()
    return (Factor(_mean_one(law), scale, law),)


def _mean_one(law: Law) -> Law:
    if isinstance(law, MarchenkoPastur):
        return law
    if isinstance(law, FreePoisson):
        return MarchenkoPastur(1 / law.rate)
    if isinstance(law, Image):
        unit = law.substitute({THETA_2: C * THETA_1})
        assert isinstance(unit, Image)
        mean = unit.mean
        return replace(unit, coefficients=tuple(tidy(a / mean, W) for a in unit.coefficients))
    return law if law.mean == 1 else Dilation(law, 1 / law.mean)


@lru_cache(maxsize=256)
def relation_of(law: Law) -> sp.Expr:
    """`law.s_relation()`; where it needs elimination, done once for symbols in place of the parameters."""
    if law.s_transform(W) is not None or law.r_transform(W) is not None or not isinstance(law, Image):
        return law.s_relation()
    values: dict[sp.Symbol, sp.Expr] = {}
    relation = _eliminated_relation(_generic(law, values))
    return sp.fraction(sp.together(relation.subs(values, simultaneous=True)))[0]


@lru_cache(maxsize=32)
def _eliminated_relation(law: Law) -> sp.Expr:
    return law.s_relation()


def _generic(law: Law, values: dict[sp.Symbol, sp.Expr]) -> Law:
    """The law with a fresh positive symbol for each parameter that is not 0; `values` collects what each stands for."""
    if not isinstance(law, (Image, FreePoisson, MarchenkoPastur)):
        return law

    def stand_in(value: sp.Expr) -> sp.Expr:
        if value == 0:
            return value
        symbol = sp.Symbol(f"p_{len(values)}", positive=True)
        values[symbol] = value
        return symbol

    if isinstance(law, Image):
        return Image(_generic(law.law, values), tuple(stand_in(a) for a in law.coefficients))
    return type(law)(stand_in(law.rate if isinstance(law, FreePoisson) else law.ratio))


@dataclass(frozen=True)
class ScalarEquation:
    """Σ coefficient(w)·λ^i·Π(−w)^j = 0 for the law of mean one, and Π(z) as a product.

    Attributes:
        base: the factors whose S-transform is not rational.
        relation: polynomial in (S, w), zero at S = S_base(w).
        terms: (i, j, coefficient in w), descending in i; the first has no factor free of w.
        product: Π(z), a rational function of z with Π(0) = 1.
    """

    base: tuple[Factor, ...]
    relation: sp.Expr
    terms: tuple[tuple[int, int, sp.Expr], ...]
    product: sp.Expr

    @property
    def compact(self) -> sp.Expr:
        """The left side in λ, w and the symbol Π for Π(−w)."""
        return sp.Add(*(a * LAMBDA**i * PI_FACTOR**j for i, j, a in self.terms))

    @property
    def rest(self) -> sp.Expr:
        """Π₁(z) = Π(z)/(1 + z)."""
        return tidy(self.product / (1 + Z), Z)

    @property
    def stieltjes_terms(self) -> tuple[tuple[int, int, sp.Expr], ...]:
        """(k, j, coefficient in w) of Σ coefficient·z^k·(m Π₁(−w))^j = 0, w = 1 + z m.

        It is the same equation: λ = −z and Π(−w) = −z m Π₁(−w).
        """
        least = min(i + j for i, j, _ in self.terms)
        sign = (-1) ** least
        return tuple((i + j - least, j, sign * (-1) ** (i + j) * a) for i, j, a in self.terms)

    @property
    def stieltjes_compact(self) -> sp.Expr:
        """The left side in z, m, w = 1 + z m and the symbol Π₁ for Π₁(−w)."""
        return sp.Add(*(a * Z**k * (M * PI_REST) ** j for k, j, a in self.stieltjes_terms))

    def polynomial(self) -> sp.Expr:
        """The polynomial in (λ, w), expanded, integer coefficients without common factor."""
        value = self.product.subs(Z, -W)
        terms = [(a, LAMBDA**i * value**j) for i, j, a in self.terms]
        return primitive(expanded(terms, (LAMBDA, W))).as_expr()

    def stieltjes_polynomial(self, mean: sp.Expr = _ONE) -> sp.Expr:
        """The polynomial in (z, m) of the law dilated by `mean`, expanded; integers without common factor."""
        w = 1 + Z * M
        value = M * self.rest.subs(Z, -w)
        terms = [(a.subs(W, w), Z**k * value**j) for k, j, a in self.stieltjes_terms]
        element = primitive(expanded(terms, (Z, M)))
        if mean == 1:
            return element.as_expr()
        return _dilated(element, mean)

    def substitute(self, values: Mapping[Any, Any]) -> ScalarEquation:
        """The same equation with values for its parameters, in standard form again."""
        if not values:
            return self

        def put(expression: sp.Expr) -> sp.Expr:
            return expression.subs(values, simultaneous=True)

        base = tuple(Factor(f.law.substitute(values), put(f.scale), f.origin.substitute(values)) for f in self.base)
        terms = [(i, j, put(a)) for i, j, a in self.terms]
        return ScalarEquation(base, put(self.relation), _standard(terms), tidy(put(self.product), Z))


def _dilated(element: Any, mean: sp.Expr) -> sp.Expr:
    """z ↦ z/mean, m ↦ m·mean in a polynomial whose first generators are z and m."""
    shift = max(a - b for a, b, *_ in element.itermonoms())
    by_power: dict[int, Any] = {}
    for monomial, coefficient in element.iterterms():
        power = monomial[1] - monomial[0] + shift
        by_power[power] = by_power.get(power, element.ring.zero) + element.ring.term_new(monomial, coefficient)
    terms = [(part.as_expr(), mean**power) for power, part in by_power.items()]
    return primitive(expanded(terms, (Z, M))).as_expr()


@lru_cache(maxsize=128)
def scalar_equation(law: Law) -> ScalarEquation:
    """The scalar equation of the law divided by its mean, from the transforms of its nodes."""
    factors = factors_of(law)
    base = tuple(factor for factor in factors if factor.s_transform(W) is None)
    rational = [factor.s_transform(Z) for factor in factors if factor not in base]
    product = tidy((1 + Z) / sp.Mul(*rational), Z)
    relation = _joint_relation(base)
    return ScalarEquation(base, relation, _terms(relation), product)


def _joint_relation(base: tuple[Factor, ...]) -> sp.Expr:
    """The relation of the product of the base factors, each at its own scale."""
    if not base:
        return S - 1
    relations = [_cleared(relation_of(factor.law).subs(W, W / factor.scale)) for factor in base]
    joint = relations[0]
    for other in relations[1:]:
        part = sp.Dummy("S")
        joint = eliminate(joint.subs(S, part), _cleared(other.subs(S, S / part)), part, keep=(S, W))
    return joint


def _cleared(expression: sp.Expr) -> sp.Expr:
    return sp.fraction(sp.together(expression))[0]


def _terms(relation: sp.Expr) -> tuple[tuple[int, int, sp.Expr], ...]:
    """S = Π/(λw) and w ↦ −w in the relation, times (λw)^degree."""
    polynomial = sp.Poly(relation.subs(W, -W), S)
    degree = polynomial.degree()
    return _standard([(degree - j, j, a * W ** (degree - j)) for (j,), a in polynomial.terms()])


def _standard(terms: list[tuple[int, int, sp.Expr]]) -> tuple[tuple[int, int, sp.Expr], ...]:
    """Descending in λ; without common powers of λ and w; the first coefficient without factors free of w."""
    tidied = [(i, j, tidy(a, W)) for i, j, a in terms]
    ordered = sorted((term for term in tidied if term[2] != 0), key=lambda term: -term[0])
    common = min(i for i, _, _ in ordered)
    power = min(_order_in_w(a) for _, _, a in ordered)
    unit = split_free(ordered[0][2], W)[0] * W**power
    return tuple((i - common, j, tidy(a / unit, W)) for i, j, a in ordered)


def _order_in_w(coefficient: sp.Expr) -> int:
    return int(coefficient.as_powers_dict().get(W, 0))
