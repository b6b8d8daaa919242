"""The physical solution in the upper half-plane: from z = ∞ down vertical lines, vectorized over points.

Averaged iteration u ← (u + Φ(u))/2 from C⁻¹ finds the solution far above the support; Euler's predictor and Newton's
method with the exact Jacobian follow it down. A step is accepted when the residual is at rounding and the imaginary
part of every matrix of traces is positive definite; nothing else is ever returned.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from freeattn.errors import BranchError, ConvergenceError
from freeattn.numerics.trace_equation import TOLERANCE, TraceEquation

__all__ = ["Descent"]

Complex = NDArray[np.complex128]
Real = NDArray[np.float64]

_AVERAGED_STEPS = 200  # far above the support the error halves at each step at worst
_NEWTON_BASIN = 1e-6  # relative change of an averaged step from which Newton takes over
_START = 30.0  # first height over |z| and the size of the law: any value works that is well above the support
_RAISES = 12  # times that the start is doubled before giving up
_ROUNDS = 120  # continuation rounds; about 30 are typical
_HOPELESS = 0.97  # ratio of heights in one step: continuation has met a singular point
_FIRST_RATIO, _LEAST_RATIO = 0.3, 0.05  # of heights in one step


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
            u = np.zeros((points.size, equation.count), dtype=np.complex128)
            for _ in range(_AVERAGED_STEPS):
                value = equation.evaluate(u, there)
                close = np.abs(value.phi - u) <= _NEWTON_BASIN * equation.sizes(value.matrices)
                u = (u + value.phi) / 2
                if close.all():
                    break
            u, good = equation.newton(u, there)
            if np.all(good & equation.in_cone(u, there)):
                return there, u
            worst = float(np.max(equation.evaluate(u, there).residual, initial=0.0))
        if worst < TOLERANCE:
            raise BranchError("no physical solution of the Dyson equation was found far above the support")
        raise ConvergenceError("the Dyson equation far above the support", worst, TOLERANCE, "check the sizes given")

    def follow(self, start: Complex, points: Complex, u: Complex) -> tuple[Complex, NDArray[np.bool_]]:
        """Down from `start` (same real parts, solution u) to `points`: (unknowns, which were reached)."""
        target, height, u = points.imag, start.imag.copy(), u.copy()
        ratio = np.full(points.shape, _FIRST_RATIO)
        for _ in range(_ROUNDS):
            index = np.flatnonzero((height > target) & (ratio < _HOPELESS))
            if not index.size:
                break
            following = np.maximum(height[index] * ratio[index], target[index])
            here, there = (points.real[index] + 1j * h for h in (height[index], following))
            moved, good = self.step(here, there, u[index])
            u[index] = np.where(good[:, None], moved, u[index])
            height[index] = np.where(good, following, height[index])
            ratio[index] = np.where(good, np.maximum(ratio[index] ** 1.5, _LEAST_RATIO), np.sqrt(ratio[index]))
        return u, height <= target

    def step(self, here: Complex, there: Complex, u: Complex) -> tuple[Complex, NDArray[Any]]:
        """Predictor and Newton from `here` to `there`: (unknowns, physical)."""
        equation = self._equation
        tangent = equation.tangent(equation.matrices(u, here))
        moved, good = equation.newton(u + tangent * (there - here)[:, None], there)
        return moved, good & equation.in_cone(moved, there)
