"""Leaves of the algebra: point masses, finite discrete laws, Marchenko-Pastur, free Poisson, semicircle."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import sympy as sp

from freeattn.errors import InputError
from freeattn.theory.assumptions import Rule
from freeattn.theory.symbols import Q
from freeattn.theory.transforms.law import Law, as_number
from freeattn.theory.transforms.uniformization import Branch, Leaf, Uniformization

__all__ = ["Discrete", "FreePoisson", "MarchenkoPastur", "PointMass", "Semicircle"]


def _positive(field: str, value: object) -> sp.Expr:
    number = as_number(field, value)
    if number.is_positive is False or number.is_nonpositive:
        raise InputError(field, value, "positive")
    return number


@dataclass(frozen=True)
class Discrete(Law):
    """Σ_k w_k δ_{a_k} with finitely many atoms; weights are positive and sum to one."""

    locations: tuple[sp.Expr, ...]
    weights: tuple[sp.Expr, ...]
    rule: ClassVar[Rule] = Rule("discrete law", "m_q = Σ w_k a_k^q, ψ(z) = Σ w_k z a_k/(1 − z a_k)", "definition")

    def __post_init__(self) -> None:
        locations = tuple(as_number("locations", a) for a in self.locations)
        weights = tuple(_positive("weights", w) for w in self.weights)
        if len(locations) != len(weights) or len(set(locations)) != len(locations) or not locations:
            raise InputError("locations", self.locations, "distinct numbers, one weight each")
        if sp.expand(sp.Add(*weights)) != 1 and not sp.Add(*weights).free_symbols:
            allowed = "numbers that sum to one exactly (numbers of a law ask for rational weights)"
            raise InputError("weights", self.weights, allowed)
        object.__setattr__(self, "locations", locations)
        object.__setattr__(self, "weights", weights)

    @property
    def children(self) -> tuple[Law, ...]:
        return ()

    def atoms(self) -> tuple[tuple[sp.Expr, sp.Expr], ...]:
        return tuple(zip(self.locations, self.weights, strict=True))

    def _series(self, order: int) -> tuple[sp.Expr, ...]:
        return tuple(sp.Add(*(w * a**q for a, w in self.atoms())) for q in range(1, order + 1))

    def s_transform(self, w: sp.Expr) -> sp.Expr | None:
        nonzero = [(a, p) for a, p in self.atoms() if a != 0]
        if len(nonzero) != 1:
            return None
        (location, weight), = nonzero  # a projection: S = (1+w)/(t+w), dilated
        return (1 + w) / (location * (weight + w)) if weight != 1 else 1 / location

    def uniformization(self) -> Uniformization:
        psi = sp.Add(*(w * a * Q / (1 - a * Q) for a, w in self.atoms()))
        negative = any(a.is_negative for a in self.locations)
        return Uniformization(sp.together(psi), Q, None if negative else Branch((Leaf(Q, psi),), Q))


@dataclass(frozen=True)
class PointMass(Law):
    """δ_a."""

    location: sp.Expr
    rule: ClassVar[Rule] = Rule("point mass", "R(z) = a, S(w) = 1/a", "definition")

    def __post_init__(self) -> None:
        object.__setattr__(self, "location", as_number("location", self.location))

    @property
    def children(self) -> tuple[Law, ...]:
        return ()

    def atoms(self) -> tuple[tuple[sp.Expr, sp.Expr], ...]:
        return ((self.location, sp.Integer(1)),)

    def _series(self, order: int) -> tuple[sp.Expr, ...]:
        return tuple(self.location**q for q in range(1, order + 1))

    def r_transform(self, g: sp.Expr) -> sp.Expr:
        del g
        return self.location

    def s_transform(self, w: sp.Expr) -> sp.Expr | None:
        del w
        return None if self.location == 0 else 1 / self.location

    def uniformization(self) -> Uniformization:
        psi = self.location * Q / (1 - self.location * Q)
        return Uniformization(psi, Q, None if self.location.is_negative else Branch((Leaf(Q, psi),), Q))


@dataclass(frozen=True)
class MarchenkoPastur(Law):
    """MP_y: law of G Gᵀ/columns for a Gaussian matrix with rows/columns = y; mean one, κ_n = y^{n−1}, S = 1/(1+yw)."""

    ratio: sp.Expr
    rule: ClassVar[Rule] = Rule(
        "Marchenko-Pastur", "MP_y has free cumulants y^{n−1} and S(w) = 1/(1 + yw)", "Nica-Speicher, lecture 12"
    )
    _series_kind: ClassVar[str] = "cumulants"

    def __post_init__(self) -> None:
        object.__setattr__(self, "ratio", _positive("ratio", self.ratio))

    @property
    def children(self) -> tuple[Law, ...]:
        return ()

    def atoms(self) -> tuple[tuple[sp.Expr, sp.Expr], ...]:
        return ((sp.Integer(0), 1 - self.mass_off_zero),)

    @property
    def mass_off_zero(self) -> sp.Expr:
        return sp.Min(1, 1 / self.ratio)

    def _series(self, order: int) -> tuple[sp.Expr, ...]:
        return tuple(self.ratio ** (n - 1) for n in range(1, order + 1))

    def r_transform(self, g: sp.Expr) -> sp.Expr:
        return 1 / (1 - self.ratio * g)

    def s_transform(self, w: sp.Expr) -> sp.Expr:
        return 1 / (1 + self.ratio * w)

    def uniformization(self) -> Uniformization:
        chi = Q / ((1 + Q) * (1 + self.ratio * Q))
        return Uniformization(Q, chi, Branch((Leaf(chi, Q),), chi))


@dataclass(frozen=True)
class FreePoisson(Law):
    """π_t: free Poisson law of rate t and jump 1; κ_n = t, mean t, S = 1/(t+w)."""

    rate: sp.Expr
    rule: ClassVar[Rule] = Rule(
        "free Poisson", "π_t has free cumulants t and S(w) = 1/(t + w)", "Nica-Speicher, lecture 12"
    )
    _series_kind: ClassVar[str] = "cumulants"

    def __post_init__(self) -> None:
        object.__setattr__(self, "rate", _positive("rate", self.rate))

    @property
    def children(self) -> tuple[Law, ...]:
        return ()

    def atoms(self) -> tuple[tuple[sp.Expr, sp.Expr], ...]:
        return ((sp.Integer(0), 1 - self.mass_off_zero),)

    @property
    def mass_off_zero(self) -> sp.Expr:
        return sp.Min(1, self.rate)

    def _series(self, order: int) -> tuple[sp.Expr, ...]:
        return (self.rate,) * order

    def r_transform(self, g: sp.Expr) -> sp.Expr:
        return self.rate / (1 - g)

    def s_transform(self, w: sp.Expr) -> sp.Expr:
        return 1 / (self.rate + w)

    def uniformization(self) -> Uniformization:
        psi = self.rate * Q
        chi = Q / ((1 + psi) * (1 + Q))
        return Uniformization(psi, chi, Branch((Leaf(chi, psi),), chi))


@dataclass(frozen=True)
class Semicircle(Law):
    """Wigner's semicircle law of mean 0 and the given variance; κ_2 = variance, all others 0."""

    variance: sp.Expr
    rule: ClassVar[Rule] = Rule("semicircle", "R(z) = σ² z", "Nica-Speicher, lecture 8")
    _series_kind: ClassVar[str] = "cumulants"

    def __post_init__(self) -> None:
        object.__setattr__(self, "variance", _positive("variance", self.variance))

    @property
    def children(self) -> tuple[Law, ...]:
        return ()

    def atoms(self) -> tuple[tuple[sp.Expr, sp.Expr], ...]:
        return ()

    def _series(self, order: int) -> tuple[sp.Expr, ...]:
        return tuple(self.variance if n == 2 else sp.Integer(0) for n in range(1, order + 1))

    def r_transform(self, g: sp.Expr) -> sp.Expr:
        return self.variance * g

    def uniformization(self) -> Uniformization:
        return Uniformization(self.variance * Q**2, Q / (1 + self.variance * Q**2), None)
