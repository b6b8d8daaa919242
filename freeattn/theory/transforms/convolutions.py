"""Operations on several laws: free products and sums."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import sympy as sp

from freeattn.errors import InputError, NotCoveredError
from freeattn.theory.assumptions import FREENESS, POSITIVE_SUPPORT, Rule
from freeattn.theory.symbols import S, W
from freeattn.theory.transforms.law import Law, eliminate
from freeattn.theory.transforms.nodes import PointMass
from freeattn.theory.transforms.operations import Dilation, poisson_rate
from freeattn.theory.transforms.series import from_domain, moments_of_product, to_domain
from freeattn.theory.transforms.uniformization import Branch, Uniformization

__all__ = ["FreeProduct", "FreeSum"]

Atoms = tuple[tuple[sp.Expr, sp.Expr], ...]


@dataclass(frozen=True)
class FreeProduct(Law):
    """μ₁ ⊠ μ₂ ⊠ …: S-transforms multiply; laws on [0, ∞) with positive mean."""

    factors: tuple[Law, ...]
    rule: ClassVar[Rule] = Rule(
        "free multiplicative convolution", "S of μ ⊠ ν is S_μ·S_ν; (μ ⊠ ν)({0}) = max(μ({0}), ν({0}))",
        "Nica-Speicher, lecture 18; Belinschi, atoms of free multiplicative convolution", (FREENESS, POSITIVE_SUPPORT),
    )

    def __post_init__(self) -> None:
        if not self.factors:
            raise InputError("factors", self.factors, "at least one law")
        for factor in self.factors:
            if factor.mean.is_nonpositive:
                raise InputError("factors", str(factor), "laws on [0, ∞) with positive mean")

    @property
    def children(self) -> tuple[Law, ...]:
        return self.factors

    def atoms(self) -> Atoms:
        found = [(sp.Integer(0), 1 - self.mass_off_zero)]
        nonzero = [[(a, w) for a, w in factor.atoms() if a != 0] for factor in self.factors]
        if all(nonzero):
            found += _combine(nonzero, sp.Mul)
        return tuple(found)

    @property
    def mass_off_zero(self) -> sp.Expr:
        return sp.Min(*(factor.mass_off_zero for factor in self.factors))

    @property
    def mean(self) -> sp.Expr:
        return sp.Mul(*(factor.mean for factor in self.factors))

    def _series(self, order: int) -> tuple[sp.Expr, ...]:
        domain, groups = to_domain([factor.moments(order) for factor in self.factors])
        return from_domain(domain, moments_of_product(groups, domain))

    def _split(self) -> tuple[list[Law], list[Law]]:
        rational = [f for f in self.factors if f.s_transform(W) is not None]
        return [f for f in self.factors if f.s_transform(W) is None], rational

    def s_transform(self, w: sp.Expr) -> sp.Expr | None:
        curves, rational = self._split()
        return None if curves else sp.Mul(*(f.s_transform(w) for f in rational))

    def s_relation(self) -> sp.Expr:
        curves, rational = self._split()
        explicit = sp.Mul(*(_known(f.s_transform(W)) for f in rational))
        if not curves:
            return sp.fraction(sp.together(S - explicit))[0]
        relation = curves[0].s_relation()
        for factor in curves[1:]:
            part = sp.Dummy("S")
            other = sp.fraction(sp.together(factor.s_relation().subs(S, S / part)))[0]
            relation = eliminate(relation.subs(S, part), other, part, keep=(S, W))
        return sp.fraction(sp.together(relation.subs(S, S / explicit)))[0]

    def uniformization(self) -> Uniformization:
        curves, rational = self._split()
        if len(curves) > 1:
            raise NotCoveredError(_many(self, len(curves), "S"))
        base = curves[0] if curves else rational.pop(0)
        curve = base.uniformization()
        psi, chi, branch = curve.psi, curve.chi, curve.branch
        for factor in rational:
            reciprocal = sp.together(1 / _known(factor.s_transform(psi)))
            chi = chi / reciprocal
            branch = _with_factor(branch, factor, psi)
        return Uniformization(psi, chi, branch)


def _known(expression: sp.Expr | None) -> sp.Expr:
    assert expression is not None  # the caller has chosen factors with a rational S-transform
    return expression


def _with_factor(branch: Branch | None, factor: Law, psi: sp.Expr) -> Branch | None:
    """Multiplying by a Marchenko-Pastur or free Poisson law adds one function 1 + yψ to the branch test."""
    if isinstance(factor, (PointMass, Dilation)):
        inner = factor.law if isinstance(factor, Dilation) else None
        return branch if inner is None else _with_factor(branch, inner, psi)
    rate = poisson_rate(factor)
    if branch is None or rate is None:
        return None
    return Branch(branch.leaves, branch.start, (*branch.factors, 1 + psi / rate))


@dataclass(frozen=True)
class FreeSum(Law):
    """μ₁ ⊞ μ₂ ⊞ …: R-transforms (free cumulants) add."""

    terms: tuple[Law, ...]
    rule: ClassVar[Rule] = Rule(
        "free additive convolution", "R of μ ⊞ ν is R_μ + R_ν; an atom of μ ⊞ ν at c needs μ({a}) + ν({c−a}) > 1",
        "Nica-Speicher, lecture 12; Bercovici-Voiculescu (1998)", (FREENESS,),
    )
    _series_kind: ClassVar[str] = "cumulants"

    def __post_init__(self) -> None:
        if not self.terms:
            raise InputError("terms", self.terms, "at least one law")

    @property
    def children(self) -> tuple[Law, ...]:
        return self.terms

    def atoms(self) -> Atoms:
        groups = [list(term.atoms()) for term in self.terms]
        return tuple(_combine(groups, sp.Add)) if all(groups) else ()

    def _series(self, order: int) -> tuple[sp.Expr, ...]:
        groups = [term.free_cumulants(order) for term in self.terms]
        domain, [sums] = to_domain([[sp.Add(*column) for column in zip(*groups, strict=True)]])
        return from_domain(domain, sums)

    def r_transform(self, g: sp.Expr) -> sp.Expr | None:
        parts = [term.r_transform(g) for term in self.terms]
        return None if any(part is None for part in parts) else sp.Add(*parts)

    def uniformization(self) -> Uniformization:
        """x = 1/χ + R(g) along the curve of the one term whose R is not rational, g = (1 + ψ)χ."""
        curves = [term for term in self.terms if term.r_transform(W) is None]
        if len(curves) > 1:
            raise NotCoveredError(_many(self, len(curves), "R"))
        rational = [term for term in self.terms if term not in curves]
        base = curves[0] if curves else rational.pop(0)
        curve = base.uniformization()
        g = sp.cancel(sp.together((1 + curve.psi) * curve.chi))
        point = sp.factor(sp.together(1 / curve.chi + sp.Add(*(term.r_transform(g) for term in rational))))
        return Uniformization(sp.cancel(sp.together(g * point - 1)), 1 / point, None)


def _many(law: Law, count: int, transform: str) -> str:
    return (f"{law.rule.name} of {len(law.children)} laws, {count} of them without a rational {transform}-transform: "
            "numbers are available for at most one such law")


def _combine(groups: list[list[tuple[sp.Expr, sp.Expr]]], join: type) -> list[tuple[sp.Expr, sp.Expr]]:
    """Atoms of a free convolution: at each joined location the weights minus one, where that is positive."""
    current = groups[0]
    for group in groups[1:]:
        merged: dict[sp.Expr, sp.Expr] = {}
        for a, u in current:
            for b, v in group:
                location, weight = join(a, b), sp.Max(0, u + v - 1)
                merged[location] = sp.Max(merged.get(location, sp.Integer(0)), weight)
        current = [(location, weight) for location, weight in merged.items() if weight != 0]
    return current
