"""θ₁ and θ₂ of a score function, in numbers to any number of digits.

Exact formulas are used where the score function has them; otherwise the Gaussian integrals of `scores` are computed by
Gauss-Legendre quadrature on panels split at the kinks. Precision lives in a context of its own: no global state.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import mpmath

from freeattn.errors import ConvergenceError, InputError
from freeattn.model.scores import ScoreFunction

__all__ = ["Thetas", "thetas"]

_GUARD_DIGITS = 10  # cancellation in E g² − (E g)² and rounding of some hundred quadrature terms
_PANELS_PER_SIDE = 8


@dataclass(frozen=True)
class Thetas:
    """θ₁, θ₂ and a bound on the estimated absolute error of either (mpmath numbers)."""

    theta_1: Any
    theta_2: Any
    error: Any


@lru_cache(maxsize=256)
def thetas(scores: ScoreFunction, beta: Any, digits: int = 15) -> Thetas:
    """θ₁ = Var g and θ₂ = (E χ g)² of a score function at inverse temperature β (definitions in `scores`).

    Args:
        beta: exact number (int, Fraction or an expression that mpmath can convert).
        digits: decimal digits wanted; the error is at most 10^{−digits} relative to max(θ₁, 1).

    Raises:
        ConvergenceError: when the quadrature cannot reach the digits (an undeclared kink is the usual cause).
        InputError: when g has no finite variance or is constant.
    """
    context = mpmath.MPContext()
    context.dps = digits + _GUARD_DIGITS
    numeric_beta = _to_context(beta, context)
    exact = scores.exact_thetas(numeric_beta, context)
    if exact is not None:
        return Thetas(exact[0], exact[1], context.mpf(10) ** (-digits) * max(exact[0], 1))
    return _by_quadrature(scores, numeric_beta, context, digits)


def _to_context(value: Any, context: Any) -> Any:
    if hasattr(value, "numerator") and hasattr(value, "denominator"):
        return context.mpf(int(value.numerator)) / int(value.denominator)
    return context.mpf(value._to_mpmath(context.prec)) if hasattr(value, "_to_mpmath") else context.mpf(value)


def _by_quadrature(scores: ScoreFunction, beta: Any, context: Any, digits: int) -> Thetas:
    reach = context.sqrt(2 * context.log(10) * (digits + _GUARD_DIGITS)) + beta  # φ(reach − β) below the precision
    points = {reach * k / _PANELS_PER_SIDE for k in range(-_PANELS_PER_SIDE, _PANELS_PER_SIDE + 1)}
    points |= {context.mpf(kink) / beta for kink in scores.kinks if abs(context.mpf(kink) / beta) < reach}
    nodes = sorted(points)

    def expectation(weight: Any) -> tuple[Any, Any]:
        return context.quad(  # type: ignore[no-any-return]
            lambda x: weight(x, scores.value(beta * x, context)) * context.npdf(x), nodes, error=True,
            method="gauss-legendre",
        )

    mean, error_0 = expectation(lambda x, f: f)
    slope, error_1 = expectation(lambda x, f: x * f)
    square, error_2 = expectation(lambda x, f: f * f)
    scale = mean if scores.normalized else context.one
    if scores.normalized and mean <= 0:
        raise InputError("scores", scores.name, "a positive function when rows are normalized")
    theta_1 = (square - mean**2) / scale**2
    theta_2 = (slope / scale) ** 2
    if not (context.isfinite(theta_1) and theta_1 > 0):
        raise InputError("scores", scores.name, "a function with finite, positive variance at this beta")
    error = 4 * (error_0 + error_1 + error_2) * (1 + abs(mean) + abs(slope)) / scale**2
    tolerance = context.mpf(10) ** (-digits) * max(theta_1, 1)
    if error > tolerance:
        raise ConvergenceError(
            f"quadrature of the score function {scores.name!r}", float(error), float(tolerance),
            "declare every point where the function is not smooth in kinks=…, or ask for fewer digits",
        )
    return Thetas(theta_1, theta_2, error)
