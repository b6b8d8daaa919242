"""The Dyson equation of one expression at points of the upper half-plane."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from freeattn.errors import InputError
from freeattn.numerics.descent import Descent
from freeattn.numerics.dyson_tables import number_of, tables_of
from freeattn.numerics.trace_equation import TraceEquation
from freeattn.theory.dyson import DysonSystem
from freeattn.theory.moments import moments

__all__ = ["DysonSolution", "DysonSolver"]

Complex = NDArray[np.complex128]
Real = NDArray[np.float64]


@dataclass(frozen=True)
class DysonSolution:
    """At each z: m(z), the traces that enter the self-energy (last axis), and the residual in units of rounding."""

    stieltjes: Complex
    traces: Complex
    residual: Real


class DysonSolver:
    """Solves the Dyson equation of one expression.

    Args:
        system: the equation.
        values: a number for each symbol of sizes, counts, variances and coefficients.

    Raises:
        InputError: when a symbol has no value.
    """

    def __init__(self, system: DysonSystem, values: Mapping[Any, Any] | None = None) -> None:
        self._equation = TraceEquation(tables_of(system, values))
        self._descent = Descent(self._equation, number_of(moments(system, 2)[1], values) ** 0.5)

    def stieltjes(self, z: ArrayLike) -> Complex:
        """m(z) = ∫ ν(dx)/(x − z) at points with Im z > 0, same shape as z; see `solve`."""
        return self.solve(z).stieltjes

    def solve(self, z: ArrayLike) -> DysonSolution:
        """The physical solution at points of the upper half-plane.

        Raises:
            InputError: for a point with Im z ≤ 0 or that is not finite.
            ConvergenceError: when some point is not reached.
            BranchError: when the start far above the support is not physical.
        """
        points = np.asarray(z, dtype=np.complex128)
        if not np.all(np.isfinite(points) & (points.imag > 0)):
            raise InputError("z", z, "finite points with a positive imaginary part")
        flat = points.ravel()
        traces = self._descent.solve(flat)
        value = self._equation.evaluate(traces, flat)
        return DysonSolution(
            self._equation.output(value.matrices).reshape(points.shape),
            traces.reshape(*points.shape, -1), value.residual.reshape(points.shape),
        )
