"""The physical solution in the upper half-plane: from z = ∞ down vertical lines, vectorized over points.

Averaged iteration u ← (u + Φ(u))/2 from C⁻¹ finds the solution far above the support; Euler's predictor and Newton's
method with the exact Jacobian follow it down. A step is accepted when the residual is at rounding and the imaginary
part of every matrix of traces is positive definite; nothing else is ever returned.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from freeattn.errors import BranchError, ConvergenceError
from freeattn.numerics.trace_equation import TOLERANCE, TraceEquation

__all__ = ["Descent"]

Complex = NDArray[np.complex128]
Real = NDArray[np.float64]

_AVERAGED_STEPS = (4, 200)  # few bring Newton's method near the solution; the error halves at each step at worst
_START = 30.0  # first height over |z| and the size of the law: any value works that is well above the support
_RAISES = 12  # times that the start is doubled before giving up


class Descent:
    """Continuation from far above.

    Args:
        equation: u = Φ(u, z).
        size: the order of magnitude of the law, such as the root of its second moment.
    """

    def __init__(self, equation: TraceEquation, size: float) -> None:
        self._equation, self._size = equation, size

    def solve(self, points: Complex) -> Complex:
        """The unknowns at points with Im z > 0.

        Raises:
            ConvergenceError: when some point is not reached.
            BranchError: when the start far above the support is not physical.
        """
        u, reached = self.attempt(points)
        if not reached.all():
            raise ConvergenceError(
                "continuation of the Dyson equation", float(np.min(points[~reached].imag)), TOLERANCE,
                f"it stopped above z = {points[~reached][0]:.6g}; take Im z larger",
            )
        return u

    def attempt(self, points: Complex) -> tuple[Complex, NDArray[np.bool_]]:
        """(unknowns, which points were reached)."""
        here, u = self._begin(points)
        return self.follow(here, points, u)

    def _begin(self, points: Complex) -> tuple[Complex, Complex]:
        """Points far above the given ones, and the solution there."""
        equation, worst = self._equation, np.inf
        for doubling in range(_RAISES):
            height = np.maximum(points.imag, 2.0**doubling * _START * (self._size + np.abs(points.real)))
            there = points.real + 1j * height
            for steps in _AVERAGED_STEPS:
                u, good = equation.newton(equation.averaged(there, steps), there)
                if np.all(good & equation.in_cone(u, there)):
                    return there, u
            worst = float(np.max(equation.evaluate(u, there).residual, initial=0.0))
        if worst < TOLERANCE:
            raise BranchError("no physical solution of the Dyson equation was found far above the support")
        raise ConvergenceError("the Dyson equation far above the support", worst, TOLERANCE, "check the sizes given")

    def follow(self, start: Complex, points: Complex, u: Complex) -> tuple[Complex, NDArray[np.bool_]]:
        """Down from `start` (same real parts, solution u) to `points`: (unknowns, which were reached)."""
        return self._equation.follow(start, points, u)
