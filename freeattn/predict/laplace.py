"""The loss of gradient flow to many digits, by inverting its Laplace transform.

Atoms are exact. Of the continuous part with left edge a,

    ∫ e^{−2tx} dν_c = e^{−2ta} · (1/2πi) ∫ e^{st} F(s) ds,        F(s) = ∫ dν_c/(s + 2(x − a)) = ½ m_c(a − s/2),

whose singularities lie on the negative real axis, right up to 0. The contour is that of Talbot,
s(θ) = r θ (cot θ + i), r = 2M/(5t), with M points: about 0.6 M digits in arithmetic of M digits (Abate, Valkó, Int. J.
Numer. Meth. Engng. 60, 2004).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from freeattn.errors import ConvergenceError
from freeattn.model.precision import own_context
from freeattn.numerics.law import SpectralLaw
from freeattn.numerics.precise_integrals import as_number

__all__ = ["PreciseLoss", "talbot"]

_POINTS_PER_DIGIT = 1.7  # 1/0.6
_MORE_POINTS = 8
_GROWTH = 8  # the number of points grows by an eighth until two agree
_MOST_SUMS = 10


def talbot(transform: Callable[[Any, int], Any], t: Any, digits: int) -> Any:
    """f(t) to `digits` from F(s) = ∫ f(t) e^{−st} dt, for f with real values; `transform` takes s and working digits.

    Raises:
        ConvergenceError: when no two numbers of points agree.
    """
    points = int(_POINTS_PER_DIGIT * digits) + _MORE_POINTS
    tolerance, last = 10.0**-digits, None
    for _ in range(_MOST_SUMS):
        found = _sum(transform, t, points, points + digits // 4)
        if last is not None and (error := abs(found - last)) <= tolerance * abs(found):
            return found
        last, points = found, points + points // _GROWTH
    raise ConvergenceError(
        "the inverse Laplace transform", float(error / abs(found)) if found else None, tolerance, "ask for fewer digits"
    )


def _sum(transform: Callable[[Any, int], Any], t: Any, points: int, digits: int) -> Any:
    context = own_context(digits)
    t = as_number(context, t)
    r = context.mpf(2 * points) / (5 * t)
    total = context.exp(r * t) * context.re(transform(context.mpc(r), digits)) / 2
    for k in range(1, points):
        theta = k * context.pi / points
        cotangent = context.cot(theta)
        s = r * theta * context.mpc(cotangent, 1)
        slope = theta + (theta * cotangent - 1) * cotangent
        total += context.re(context.exp(s * t) * transform(s, digits) * context.mpc(1, slope))
    return total * r / points


class PreciseLoss:
    """L(t) and L'(t) of one law of mean one, each of its atoms and its continuous part to `digits`."""

    def __init__(self, law: SpectralLaw, digits: int) -> None:
        self._law, self._digits = law, digits
        self._ends: dict[int, tuple[Any, list[tuple[Any, Any]]]] = {}  # by digits: every point of a contour needs them

    def __call__(self, t: Any, derivative: int = 0) -> Any:
        """L(t), or L'(t)."""
        context = own_context(self._digits)
        t = as_number(context, t)
        total = context.zero
        for x, weight in self._law._exact.atoms_to(self._digits):
            x, weight = as_number(context, x), as_number(context, weight)
            total += (-2 * x) ** derivative * weight * context.exp(-2 * t * x)
        edges = self._law.edges_to(self._digits)
        if not edges:
            return total
        part = talbot(lambda s, digits: self._transform(s, derivative, digits), t, self._digits)
        return total + context.exp(-2 * t * as_number(context, edges[0][0])) * part

    def _transform(self, s: Any, derivative: int, digits: int) -> Any:
        """∫ (−2x)^k dν_c/(s + 2(x − a))."""
        context = own_context(digits)
        left, atoms = self._left_and_atoms(digits)
        z = left - s / 2
        m = as_number(context, self._law.stieltjes(z, digits=digits))
        m -= sum(weight / (x - z) for x, weight in atoms)
        if not derivative:
            return m / 2
        mass = 1 - sum(weight for _, weight in atoms)
        return -(mass + z * m)  # ∫ x/(x − z) dν_c = mass + z m_c

    def _left_and_atoms(self, digits: int) -> tuple[Any, list[tuple[Any, Any]]]:
        """The left edge of the continuous part, and (location, weight) of each atom."""
        if digits not in self._ends:
            context = own_context(digits)
            atoms = [(as_number(context, x), as_number(context, w)) for x, w in self._law._exact.atoms_to(digits)]
            self._ends[digits] = as_number(context, self._law.edges_to(digits)[0][0]), atoms
        return self._ends[digits]
