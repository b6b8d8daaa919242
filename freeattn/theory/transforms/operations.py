"""Operations on one law: dilation, polynomial image, compound free Poisson."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import sympy as sp

from freeattn.errors import InputError, NotCoveredError
from freeattn.theory.assumptions import FREENESS, Rule
from freeattn.theory.symbols import Q, S, W
from freeattn.theory.transforms.law import Law, as_number
from freeattn.theory.transforms.nodes import Discrete, FreePoisson, MarchenkoPastur, PointMass
from freeattn.theory.transforms.series import from_domain, to_domain
from freeattn.theory.transforms.uniformization import Branch, Leaf, LeafPair, Uniformization

__all__ = ["CompoundFreePoisson", "Dilation", "Image", "poisson_rate"]

Atoms = tuple[tuple[sp.Expr, sp.Expr], ...]


@dataclass(frozen=True)
class Dilation(Law):
    """D_s μ: the law of s·x, s > 0; S ↦ S/s, R(z) ↦ s·R(sz)."""

    law: Law
    factor: sp.Expr
    rule: ClassVar[Rule] = Rule("dilation", "D_s: S(w) ↦ S(w)/s, R(z) ↦ s R(sz)", "Nica-Speicher, lecture 12")

    def __post_init__(self) -> None:
        factor = as_number("factor", self.factor)
        if factor.is_nonpositive:
            raise InputError("factor", self.factor, "positive")
        object.__setattr__(self, "factor", factor)

    @property
    def children(self) -> tuple[Law, ...]:
        return (self.law,)

    def atoms(self) -> Atoms:
        return tuple((self.factor * location, weight) for location, weight in self.law.atoms())

    @property
    def mass_off_zero(self) -> sp.Expr:
        return self.law.mass_off_zero

    @property
    def mean(self) -> sp.Expr:
        return self.factor * self.law.mean

    def _series(self, order: int) -> tuple[sp.Expr, ...]:
        return tuple(self.factor**k * m for k, m in enumerate(self.law.moments(order), 1))

    def r_transform(self, g: sp.Expr) -> sp.Expr | None:
        inner = self.law.r_transform(self.factor * g)
        return None if inner is None else self.factor * inner

    def s_transform(self, w: sp.Expr) -> sp.Expr | None:
        inner = self.law.s_transform(w)
        return None if inner is None else inner / self.factor

    def s_relation(self) -> sp.Expr:
        return sp.fraction(sp.together(self.law.s_relation().subs(S, self.factor * S)))[0]

    def uniformization(self) -> Uniformization:
        inner = self.law.uniformization()
        return Uniformization(inner.psi, inner.chi / self.factor, inner.branch)


@dataclass(frozen=True)
class Image(Law):
    """The law of φ(x) = Σ coefficients[k] x^k, x distributed as `law`.

    Moments follow for every φ. Degree 1 keeps R rational (R ↦ a + bR(bz)) and rational curves; degree 2 without
    constant term keeps the curve rational over the free Poisson law, where with p_i = ψ_π(1/x_i) at the two roots of
    zφ(x) = 1, s = p₁ + p₂ and q = p₁p₂,

        1 + ψ = t(1 + s + q)/(t − q),   z = −q/(a₂(1 + s + q)(t² + ts + q)),   s(q + t) = −(a₁/a₂ + 2(1 + t)) q,

    which follows from 1 + ψ = −(m_π(x₁) − m_π(x₂))/(z a₂(x₁ − x₂)). Images that may reach below 0 are computed by
    continuation from infinity. Where φ turns inside the support the density diverges: no numbers, unless at 0.
    """

    law: Law
    coefficients: tuple[sp.Expr, ...]
    rule: ClassVar[Rule] = Rule(
        "image under a polynomial", "ψ of φ(x) by partial fractions of 1/(1 − zφ(x)) over the roots of zφ = 1",
        "partial fractions; definition of ψ",
    )

    def __post_init__(self) -> None:
        coefficients = tuple(as_number("coefficients", a) for a in self.coefficients)
        if len(coefficients) < 2 or coefficients[-1].is_negative:
            allowed = "(a_0, a_1, …) with at least a_1, the last not negative"
            raise InputError("coefficients", self.coefficients, allowed)
        object.__setattr__(self, "coefficients", coefficients)

    @property
    def children(self) -> tuple[Law, ...]:
        return (self.law,)

    def _at(self, x: sp.Expr) -> sp.Expr:
        return sp.Add(*(a * x**k for k, a in enumerate(self.coefficients)))

    def atoms(self) -> Atoms:
        if all(a == 0 for a in self.coefficients[1:]):
            return ((self.coefficients[0], sp.Integer(1)),)
        weights: dict[sp.Expr, sp.Expr] = {}
        for location, weight in self.law.atoms():  # two may meet
            image = self._at(location)
            weights[image] = weights.get(image, sp.Integer(0)) + weight
        return tuple(weights.items())

    @property
    def mean(self) -> sp.Expr:
        known = (sp.Integer(1), *self.law.moments(len(self.coefficients) - 1))
        return sp.expand(sp.Add(*(a * m for a, m in zip(self.coefficients, known, strict=True))))

    def _series(self, order: int) -> tuple[sp.Expr, ...]:
        x = sp.Dummy("x")
        known = (sp.Integer(1), *self.law.moments(order * (len(self.coefficients) - 1)))
        polynomial, moments = sp.Poly(self._at(x), x), []
        power = sp.Poly(1, x)
        for _ in range(order):
            power = power * polynomial
            moments.append(sp.Add(*(c * known[k] for (k,), c in power.terms())))
        domain, [elements] = to_domain([moments])
        return from_domain(domain, elements)

    def r_transform(self, g: sp.Expr) -> sp.Expr | None:
        if len(self.coefficients) != 2:
            return None
        a, b = self.coefficients
        inner = self.law.r_transform(b * g)
        return None if inner is None else a + b * inner

    def uniformization(self) -> Uniformization:
        degree = max((k for k, a in enumerate(self.coefficients) if a != 0), default=0)
        if degree == 0:
            return PointMass(self.coefficients[0]).uniformization()
        if degree == 1:
            return self._affine(*self.coefficients[:2])
        if isinstance(self.law, (Discrete, PointMass)):
            return Discrete(*zip(*self.atoms(), strict=True)).uniformization()
        if degree == 2 and self.coefficients[0] == 0 and (rate := poisson_rate(self.law)) is not None:
            return self._quadratic(rate, *self.coefficients[1:3])
        form = f"degree {degree}{'' if self.coefficients[0] == 0 else ' with a constant term'}"
        raise NotCoveredError(
            f"no rational parametrization is known for an image under a polynomial of {form} ({self.law.rule.name}): "
            "degree 1, and degree 2 without constant term of Marchenko-Pastur and free Poisson laws, have one"
        )

    def _affine(self, a: sp.Expr, b: sp.Expr) -> Uniformization:
        """ζ = zb/(1 − za), 1 + ψ = (1 + p)(1 + aζ/b), p = ψ_law(ζ); q is rescaled so that b = 0 is regular."""
        inner = self.law.uniformization()
        p, zeta = inner.psi.subs(Q, b * Q), inner.chi.subs(Q, b * Q)
        psi = sp.cancel(sp.together((1 + p) * (1 + a * zeta / b) - 1))
        chi = sp.factor(sp.cancel(sp.together(zeta / (b + a * zeta))))
        if inner.branch is None or inner.branch.factors or a.is_negative:
            return Uniformization(psi, chi, None)  # the test of the branch is for laws on [0, ∞)
        leaves = tuple(_rescaled(leaf, b) for leaf in inner.branch.leaves)
        return Uniformization(psi, chi, Branch(leaves, chi))

    def _quadratic(self, t: sp.Expr, a1: sp.Expr, a2: sp.Expr) -> Uniformization:
        """The curve of the class docstring in q = −a₂t²·(parameter), regular at a₂ = 0."""
        scale = self.law.ratio if isinstance(self.law, MarchenkoPastur) else sp.Integer(1)  # MP_y = D_y π_{1/y}
        a1, a2 = a1 * scale, a2 * scale**2
        denominator = 1 - a2 * t * Q
        slope = a1 + 2 * a2 * (1 + t)
        product = -a2 * t**2 * Q
        total = t * Q * slope / denominator
        first = sp.together(1 + total + product)
        second = sp.together(1 + total / t - a2 * Q)
        psi = sp.cancel(sp.together(first / (1 + a2 * t * Q) - 1))
        chi = Q / (first * second)
        if a1.is_negative:
            return Uniformization(psi, chi, None)
        return Uniformization(psi, chi, Branch((LeafPair(total, product, t),), chi))


def poisson_rate(law: Law) -> sp.Expr | None:
    """t of a law that is π_t up to a dilation."""
    if isinstance(law, FreePoisson):
        return law.rate
    return 1 / law.ratio if isinstance(law, MarchenkoPastur) else None


def _rescaled(leaf: Leaf | LeafPair, b: sp.Expr) -> Leaf | LeafPair:
    if isinstance(leaf, Leaf):
        return Leaf(leaf.point.subs(Q, b * Q), leaf.value.subs(Q, b * Q))
    return LeafPair(leaf.total.subs(Q, b * Q), leaf.product.subs(Q, b * Q), leaf.rate)


@dataclass(frozen=True)
class CompoundFreePoisson(Law):
    """π(μ, t): free cumulants t·m_q(μ), S(w) = S_μ(w/t)/(t + w)."""

    law: Law
    rate: sp.Expr
    rule: ClassVar[Rule] = Rule(
        "compound free Poisson", "π(μ, t) has free cumulants t·m_q(μ) and S(w) = S_μ(w/t)/(t + w)",
        "Nica-Speicher, lecture 12", (FREENESS,),
    )
    _series_kind: ClassVar[str] = "cumulants"

    def __post_init__(self) -> None:
        rate = as_number("rate", self.rate)
        if rate.is_nonpositive:
            raise InputError("rate", self.rate, "positive")
        object.__setattr__(self, "rate", rate)

    @property
    def children(self) -> tuple[Law, ...]:
        return (self.law,)

    def atoms(self) -> Atoms:
        return ((sp.Integer(0), 1 - self.mass_off_zero),)

    @property
    def mass_off_zero(self) -> sp.Expr:
        inner = self.law.mass_off_zero
        choices = inner.args if isinstance(inner, sp.Min) else (inner,)
        return sp.Min(1, *(self.rate * choice for choice in choices))

    @property
    def mean(self) -> sp.Expr:
        return self.rate * self.law.mean

    def _series(self, order: int) -> tuple[sp.Expr, ...]:
        return tuple(self.rate * m for m in self.law.moments(order))

    def s_transform(self, w: sp.Expr) -> sp.Expr | None:
        inner = self.law.s_transform(w / self.rate)
        return None if inner is None else sp.cancel(sp.together(inner / (self.rate + w)))

    def s_relation(self) -> sp.Expr:
        inner = self.law.s_relation()
        moved = inner.subs({S: S * (self.rate + W), W: W / self.rate}, simultaneous=True)
        return sp.fraction(sp.together(moved))[0]

    def uniformization(self) -> Uniformization:
        inner = self.law.uniformization()
        psi = sp.cancel(self.rate * inner.psi)
        branch = inner.branch
        if branch is not None:
            branch = Branch(branch.leaves, branch.start, (*branch.factors, 1 + psi))
        return Uniformization(psi, inner.chi / sp.together(1 + psi), branch)
