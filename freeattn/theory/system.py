"""ScalarSystem: the few scalar equations that a law obeys, whichever route derived them.

Everything downstream (numbers, exports) speaks this type. A system has unknowns u, polynomial equations
F(u, z; parameters) = 0 and an output m(u, z). Equations may speak of other quantities that are defined one after the
other in terms of the unknowns. A system may carry an explicit parametrization: then z is a rational function of one
unknown, ends of the support are among its critical values, and a local test tells the physical branch.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

import sympy as sp

from freeattn.theory.assumptions import Assumption
from freeattn.theory.symbols import Q, Z

if TYPE_CHECKING:  # both routes speak this type: importing it must not load either of them
    from freeattn.theory.transforms import Law
    from freeattn.theory.transforms.uniformization import Branch, Factored

__all__ = ["Parametrization", "ScalarSystem", "system_of"]


@dataclass(frozen=True)
class Parametrization:
    """z = point(u) along the curve, m = stieltjes(u), ψ = psi(u); u → 0 with z·u → 1/mean-scale at z → ∞."""

    unknown: sp.Symbol
    point: Factored
    stieltjes: Factored
    psi: sp.Expr
    branch: Branch | None


@dataclass(frozen=True)
class ScalarSystem:
    """Unknowns, polynomial equations (each = 0), output m, parameters, assumptions; see the module.

    `definitions` are pairs (symbol, rational expression in unknowns, z, parameters and earlier symbols); equations may
    hold their symbols. `meanings` says in words what unknowns and defined symbols are.
    """

    unknowns: tuple[sp.Symbol, ...]
    equations: tuple[sp.Expr, ...]
    output: sp.Expr
    parameters: tuple[sp.Symbol, ...]
    assumptions: tuple[Assumption, ...]
    parametrization: Parametrization | None = None
    definitions: tuple[tuple[sp.Symbol, sp.Expr], ...] = ()
    meanings: tuple[tuple[sp.Symbol, str], ...] = ()

    def meaning(self, symbol: sp.Symbol) -> str:
        """What an unknown or a defined symbol is, in words; its name where nothing is known."""
        return dict(self.meanings).get(symbol, str(symbol))


@lru_cache(maxsize=128)
def system_of(law: Law) -> ScalarSystem:
    """The scalar system of a law expression, in its own symbols."""
    curve = law.uniformization()
    point, stieltjes = curve.point, curve.stieltjes
    equation = _side(point, 1) - Z * _side(point, -1)
    parameters = tuple(sorted((equation.free_symbols - {Q, Z}), key=str))
    assumed = {a: None for rule in law.rules for a in rule.assumptions}
    return ScalarSystem(
        unknowns=(Q,),
        equations=(equation,),
        output=sp.Mul(*(base**power for base, power in stieltjes)),
        parameters=parameters,
        assumptions=tuple(assumed),
        parametrization=Parametrization(Q, point, stieltjes, curve.psi, curve.branch),
    )


def _side(factors: Factored, sign: int) -> sp.Expr:
    """Numerator (sign = 1) or denominator (sign = −1) of a factored rational function."""
    return sp.Mul(*(base ** (sign * power) for base, power in factors if sign * power > 0))
