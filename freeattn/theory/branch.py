"""Which root of the scalar equation is the law: interval, behaviour at infinity, sign, local test.

The local test is the one of `freeattn.theory.transforms.uniformization`.
"""

from __future__ import annotations

from dataclasses import dataclass

import sympy as sp

from freeattn.theory.assumptions import Rule
from freeattn.theory.symbols import THETA_1, THETA_2
from freeattn.theory.system import Parametrization, ScalarSystem
from freeattn.theory.transforms import Discrete, Image, Law, PointMass, Semicircle
from freeattn.theory.transforms.uniformization import Branch

__all__ = ["BRANCH_RULE", "BranchCondition", "ProductForm", "branch_of", "product_form"]

_CHECK_DIGITS, _NEGLIGIBLE = 30, 1e-20  # an identity of rational functions at one generic point

BRANCH_RULE = Rule(
    "physical branch",
    "Im m > 0 for Im z > 0 and m ~ −1/z at infinity; subordination functions map the upper half-plane into itself",
    "Belinschi-Bercovici, J. Anal. Math. 101 (2007), theorem 3.2",
)


@dataclass(frozen=True)
class BranchCondition:
    """The conditions that single out one root.

    Attributes:
        upper: the root has 0 < w < upper for λ > 0 (1 minus the atom at 0), where the law lives on [0, ∞); else None.
        local: what the local test evaluates, where one is known.
    """

    upper: sp.Expr | None
    local: Branch | None

    @property
    def statements(self) -> tuple[str, ...]:
        """The conditions in words."""
        lines = ["w ~ 1/λ as λ → ∞ for the law of mean one, that is m ~ −1/z at infinity"]
        if self.upper is not None:
            lines.insert(0, f"0 < w < {self.upper} for λ > 0")
        lines.append("Im m > 0 for Im z > 0; on the real axis, the limit from the upper half-plane")
        if self.local is not None:
            lines.append(
                "at Im z < 0, where Im 1/z > 0, every leaf has Im ψ_leaf(ζ) of the sign of Im ζ, Im ψ > 0, and "
                "arg(1/z) = arg χ_0 − Σ arg(1 + y_k ψ), not reduced by 2π"
            )
        return tuple(lines)


def branch_of(law: Law, system: ScalarSystem) -> BranchCondition:
    """The branch condition of a law."""
    curve = system.parametrization
    return BranchCondition(law.mass_off_zero if _positive(law) else None, curve.branch if curve else None)


def _positive(law: Law) -> bool:
    """True when the law is known to live on [0, ∞); uses θ₂ ≤ θ₁."""
    if isinstance(law, Semicircle):
        return False
    if isinstance(law, (PointMass, Discrete)):
        return all(location.is_nonnegative for location, _ in law.atoms())
    if isinstance(law, Image):
        excess = sp.Dummy(nonnegative=True)
        if not all(a.subs(THETA_1, THETA_2 + excess).is_nonnegative for a in law.coefficients):
            return False
    return all(_positive(child) for child in law.children)


@dataclass(frozen=True)
class ProductForm:
    """x(q) = unit · ∏ (1 + y_k ψ(q)) / χ_0(q): the curve as its branch test sees it."""

    unit: sp.Expr
    rates: tuple[sp.Expr, ...]
    start: sp.Expr


def product_form(curve: Parametrization, mean: sp.Expr) -> ProductForm | None:
    """The product form of a curve, from its first order at q = 0; None when the curve has no branch data or no mean.

    The identity is checked exactly at one generic point.
    """
    if curve.branch is None or mean == 0:
        return None
    q = curve.unknown

    def slope(function: sp.Expr) -> sp.Expr:
        return sp.cancel(sp.together(function / q)).subs(q, 0)

    psi, start = slope(curve.psi), slope(curve.branch.start)
    rates = tuple(sp.factor(slope(factor - 1) / psi) for factor in curve.branch.factors)
    form = ProductForm(sp.factor(mean * start / psi), rates, curve.branch.start)
    point = sp.Mul(*(base**power for base, power in curve.point))
    claimed = form.unit * sp.Mul(*(1 + y * curve.psi for y in rates)) / form.start
    symbols = sorted((point.free_symbols | claimed.free_symbols), key=str)
    at = {symbol: sp.Rational(2 * k + 3, 7 * k + 11) for k, symbol in enumerate(symbols)}
    gap = sp.N(point.subs(at) / claimed.subs(at) - 1, _CHECK_DIGITS)
    return form if abs(gap) < _NEGLIGIBLE else None
