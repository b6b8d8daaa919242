"""Rational curves: laws whose transforms are rational functions of one parameter.

A law is *uniformized* when ψ = ∫ zx/(1−zx) dν and z = χ(ψ) are rational functions ψ(q), χ(q) of one parameter, with
q → 0 at z → 0 (spectral point x = 1/z → ∞). Everything that the numbers need follows: the spectral point is
x(q) = 1/χ(q), the Stieltjes transform m = −(1 + ψ)/x, and the ends of the support are among the critical values of x.

The physical branch has a local test. For a law built as base ⊠ MP_{y_1} ⊠ … the subordination functions are
z_0 = χ_base and z_k = z_{k−1}/(1 + y_k ψ). For z in the upper half-plane the physical q is the only one at which

- every *leaf* transform is evaluated in its domain: Im ψ_leaf has the sign of Im ζ_leaf, and
- the arguments, not reduced by 2π, satisfy arg z = arg z_0 − Σ_k arg(1 + y_k ψ) in (0, π) with Im ψ > 0.

(Each pair (z_{k−1}, z_{k−1}z_k^{-1}…) lies in the sector {arg z ≤ arg ω < π}, on which the subordination map is a
holomorphic self-map, and such a map has at most one interior fixed point: Belinschi-Bercovici, J. Anal. Math. 101
(2007), theorem 3.2 and its proof.)
"""

from __future__ import annotations

from dataclasses import dataclass

import sympy as sp

from freeattn.theory.symbols import Q

__all__ = ["Branch", "Factored", "Leaf", "LeafPair", "Uniformization", "factored"]

Factored = tuple[tuple[sp.Expr, int], ...]


@dataclass(frozen=True)
class Leaf:
    """A leaf transform with a rational parameter: value = ψ_leaf(point)."""

    point: sp.Expr
    value: sp.Expr


@dataclass(frozen=True)
class LeafPair:
    """Two evaluations of the free Poisson transform π_t at the roots of a quadratic.

    p₁, p₂ = ψ_{π_t}(1/x₁), ψ_{π_t}(1/x₂) have the given sum and product (rational in q), and x = (1+p)(t+p)/p.
    """

    total: sp.Expr
    product: sp.Expr
    rate: sp.Expr


@dataclass(frozen=True)
class Branch:
    """What the local test of the physical branch evaluates: leaves, z_0 and the functions 1 + y_k ψ."""

    leaves: tuple[Leaf | LeafPair, ...]
    start: sp.Expr
    factors: tuple[sp.Expr, ...] = ()


@dataclass(frozen=True)
class Uniformization:
    """ψ(q) and χ(q) of a law; `branch` is None when no local test is known (then continuation alone decides)."""

    psi: sp.Expr
    chi: sp.Expr
    branch: Branch | None

    @property
    def point(self) -> Factored:
        """x(q) = 1/χ(q) as a product of powers of polynomials in q."""
        return factored(1 / self.chi)

    @property
    def stieltjes(self) -> Factored:
        """m(q) = −(1 + ψ)χ, equal factors cancelled."""
        return factored(-sp.together(1 + self.psi) * self.chi)


def factored(expression: sp.Expr) -> Factored:
    """A rational function of q as ((polynomial, exponent), …), equal polynomials merged."""
    powers: dict[sp.Expr, int] = {}
    for base, exponent in sp.powsimp(expression, force=False).as_powers_dict().items():
        if not exponent.is_Integer:
            base, exponent = base**exponent, sp.Integer(1)
        numerator, denominator = sp.fraction(sp.together(base))
        for part, sign in ((numerator, 1), (denominator, -1)):
            for factor, power in _split(part):
                powers[factor] = powers.get(factor, 0) + sign * power * int(exponent)
    return tuple((base, exponent) for base, exponent in powers.items() if exponent and base != 1)


def _split(part: sp.Expr) -> list[tuple[sp.Expr, int]]:
    pieces = []
    for base, exponent in part.as_powers_dict().items():
        if exponent.is_Integer and base.has(Q):
            pieces.append((sp.expand(base), int(exponent)))
        else:
            pieces.append((base**exponent, 1))
    return pieces
