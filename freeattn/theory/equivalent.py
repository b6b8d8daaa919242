"""The Gaussian equivalent of an attention matrix: where θ₁ and θ₂ come from.

√n A_r^⊥ ↔ (√θ₂ S_r + √(θ₁−θ₂) W_r)/√n (arXiv 2610.10033, section 3). An entrywise score function enters every law
through these two numbers only; `freeattn.model.scores` defines them and `freeattn.model.quadrature` computes them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import sympy as sp

from freeattn.model.attention import Attention
from freeattn.model.quadrature import thetas
from freeattn.model.quantities import is_symbolic
from freeattn.theory import symbols as sym
from freeattn.theory.assumptions import CONDITIONAL_INDEPENDENCE, FINITE_ROWS, Rule

__all__ = ["EQUIVALENCE", "GaussianEquivalent", "equivalence_of", "equivalent_of"]

EQUIVALENCE = Rule(
    "Gaussian equivalence", "√n A_r^⊥ ↔ (√θ₂ S_r + √(θ₁−θ₂) W_r)/√n", "arXiv 2610.10033, Theorem 3.1",
    (CONDITIONAL_INDEPENDENCE,),
)
_FINITE_EQUIVALENCE = replace(EQUIVALENCE, assumptions=(CONDITIONAL_INDEPENDENCE, FINITE_ROWS))


def equivalence_of(spec: Attention) -> Rule:
    """The rule of the Gaussian equivalent, with what it assumes of θ₁ and θ₂."""
    return _FINITE_EQUIVALENCE if spec.finite_size else EQUIVALENCE


@dataclass(frozen=True)
class GaussianEquivalent:
    """θ₁ and θ₂ of one specification.

    `theta_1`, `theta_2` are exact expressions in β where the score function has them, else the symbols themselves;
    `numeric(digits)` is always available when β is a number.
    """

    spec: Attention
    theta_1: sp.Expr
    theta_2: sp.Expr
    rule: Rule = EQUIVALENCE

    @property
    def exact(self) -> bool:
        """True when θ₁ and θ₂ are closed expressions."""
        return self.theta_1 != sym.THETA_1

    def numeric(self, digits: int) -> tuple[Any, Any]:
        """(θ₁, θ₂) as mpmath numbers with the given decimal digits."""
        values = thetas(self.spec.scores, self.spec.beta, digits)
        return values.theta_1, values.theta_2


@lru_cache(maxsize=256)
def equivalent_of(spec: Attention) -> GaussianEquivalent:
    """The Gaussian equivalent of the attention matrices of `spec`."""
    beta = spec.beta if is_symbolic(spec.beta) else sp.sympify(spec.beta)
    exact = spec.scores.exact_thetas(beta, sp)
    if exact is None:
        return GaussianEquivalent(spec, sym.THETA_1, sym.THETA_2, equivalence_of(spec))
    return GaussianEquivalent(spec, sp.sympify(exact[0]), sp.sympify(exact[1]))
