"""Subordination: free convolutions as fixed points of analytic maps of the upper half-plane.

With H_j(ω) = ω + 1/m_j(ω), which maps the upper half-plane into the closed lower one,

    μ₁ ⊞ μ₂:    ω₁ = z − H₂(ω₂),   ω₂ = z − H₁(ω₁),   m(z) = m₁(ω₁)
    μ₁ ⊠ μ₂:    ω₁ = z/H₂(ω₂),     ω₂ = z/H₁(ω₁),     z·m(z) = ω₁·m₁(ω₁)
    μ^{⊞t}:     ω = z − (t − 1)·H(ω),                 m(z) = m_μ(ω)

Eliminating ω₂ leaves ω₁ = Φ_z(ω₁), Φ_z a self-map of the upper half-plane, for real z (positive for ⊠) too. It has at
most one fixed point there unless it is the identity (Denjoy-Wolff), so a root with Im ω₁ > 0 is the physical one at any
z. Where there is none, the value is the one real fixed point with Φ_z' < 1 (Julia-Carathéodory); at an edge Φ_z' = 1.
Φ_z is the identity at single points of sums and products of laws with two atoms each, where values are limits.

Real ω₁ pass through infinity where m = 0 (for ⊠, where 1 + zm = 0). There ω₂ = z − H₁(∞) or z/H₁(∞) is finite, since
H₁(∞) is the mean: the equation with the laws exchanged is regular.

Sources: Belinschi, Bercovici, A new approach to subordination results in free probability (2007); Nica-Speicher,
lecture 14, for ⊞t.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from freeattn.numerics.cauchy_sums import CauchySums

__all__ = ["Evaluation", "FreePowerEquation", "FreeProductEquation", "FreeSumEquation", "Subordination"]

Array = NDArray[np.float64]
Complex = NDArray[np.complex128]


class Evaluation(NamedTuple):
    """At (z, ω): Φ_z(ω), its derivatives in ω and z, and the Stieltjes transform m that belongs to ω."""

    image: Complex
    slope: Complex
    rate: Complex
    output: Complex


class Subordination(ABC):
    """The map Φ of one convolution; `reach` is the interval that holds its support, `positive` bounds x by 0.

    z and ω are measured from the origins of the sums: z = a + b + … for ⊞, ab + … for ⊠, ta + … for ⊞t.
    """

    reach: tuple[float, float]
    positive: ClassVar[bool] = False

    @abstractmethod
    def __call__(self, z: Complex, omega: Complex) -> Evaluation:
        """Φ_z(ω) and what belongs to it."""

    @abstractmethod
    def about(self, origins: tuple[float, ...]) -> Subordination:
        """The same equation with other origins, one for each law: at atoms, to resolve what happens beside them."""

    def exchanged(self) -> Subordination | None:
        """The equation of the other subordination function; None when there is only one, which is finite."""
        return None

    def partner(self, z: Complex, omega: Complex) -> Complex:
        """The unknown of `exchanged` that belongs to ω."""
        del z
        return omega


@dataclass(frozen=True)
class FreeSumEquation(Subordination):
    """μ₁ ⊞ μ₂."""

    first: CauchySums
    second: CauchySums
    reach: tuple[float, float]

    def __call__(self, z: Complex, omega: Complex) -> Evaluation:
        one = self.first(omega)
        two = self.second(z - one.h)
        return Evaluation(z - two.h, one.slope * two.slope, 1 - two.slope, one.m)

    def about(self, origins: tuple[float, ...]) -> FreeSumEquation:
        return FreeSumEquation(self.first.about(origins[0]), self.second.about(origins[1]), self.reach)

    def exchanged(self) -> FreeSumEquation:
        return FreeSumEquation(self.second, self.first, self.reach)

    def partner(self, z: Complex, omega: Complex) -> Complex:
        return z - self.first(omega).h


@dataclass(frozen=True)
class FreeProductEquation(Subordination):
    """μ₁ ⊠ μ₂ on [0, ∞)."""

    positive: ClassVar[bool] = True

    first: CauchySums
    second: CauchySums
    reach: tuple[float, float]

    def __call__(self, z: Complex, omega: Complex) -> Evaluation:
        a, b = self.first.origin, self.second.origin
        one = self.first(omega)
        moved = self._quotient(z, one.h)
        two = self.second(moved)
        point, h = z + a * b, b + two.h
        image = (z - a * two.h) / h
        log_slope = (b + moved) * two.slope / h
        slope = point / h * log_slope * one.slope / (a + one.h)
        output = np.where(np.isinf(omega), -1, (a + omega) * one.m) / point
        return Evaluation(image, slope, (1 - log_slope) / h, output)

    def _quotient(self, z: Complex, h: Complex) -> Complex:
        """z/H₁, measured from b."""
        return (z - self.second.origin * h) / (self.first.origin + h)

    def about(self, origins: tuple[float, ...]) -> FreeProductEquation:
        return FreeProductEquation(self.first.about(origins[0]), self.second.about(origins[1]), self.reach)

    def exchanged(self) -> FreeProductEquation:
        return FreeProductEquation(self.second, self.first, self.reach)

    def partner(self, z: Complex, omega: Complex) -> Complex:
        return self._quotient(z, self.first(omega).h)


@dataclass(frozen=True)
class FreePowerEquation(Subordination):
    """μ^{⊞t}, t ≥ 1."""

    law: CauchySums
    exponent: float
    reach: tuple[float, float]

    def __call__(self, z: Complex, omega: Complex) -> Evaluation:
        one, extra = self.law(omega), self.exponent - 1
        return Evaluation(z - extra * one.h, -extra * one.slope, np.ones_like(z), one.m)

    def about(self, origins: tuple[float, ...]) -> FreePowerEquation:
        return FreePowerEquation(self.law.about(origins[0]), self.exponent, self.reach)
