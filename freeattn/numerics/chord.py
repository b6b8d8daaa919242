"""One step of the chord method in doubles: from residuals of a Dyson equation to corrections, at a fixed point.

The equations of `lifting`, linear in the corrections (δG, δu, δa, δz) of (G, u, a, z), are

    a·δG + δa·G = R,      δu − reads(δG) = r,      δa + E(δu) + δz·P = s.

With Y = G·(R − s·G) they leave J·δu = r + reads(Y), J the Jacobian, in the unknowns only.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from freeattn.numerics.lifting import Layout, Residual, Step
from freeattn.numerics.sparse_equation import Balanced

__all__ = ["Chord"]

Real = NDArray[np.float64]


class Chord:
    """A preconditioner.

    Args:
        layout: where numbers stand.
        system: the equation at the point, in balanced units.
        column: G there as the dense column [x; y].
        solver: inverse of the Jacobian in all components of the unknowns (the first ones, then the second ones, then z
            when it is one); columns are equations.
        unit: exponent of two of the unit of z when it is an unknown.
    """

    def __init__(self, layout: Layout, system: Balanced, column: Real, solver: Real, unit: int | None = None) -> None:
        equation = layout.equation
        self._layout, self._system, self._column, self._solver = layout, system, column, solver
        self._wide = layout.wide_of(column)
        self._point = None if unit is None else np.ldexp(
            equation.point.doubles, system.units.of_matrix(equation.point) + unit)

    def start(self) -> Real:
        """The entries of G as a vector."""
        return self._layout.vector(self._column)

    def step(self, residual: Residual) -> Step:
        """Corrections, in the unit of the residuals."""
        layout, system, equation = self._layout, self._system, self._layout.equation
        column = layout.column(residual.inverse)
        known = self._wide @ (column - layout.left(residual.places) @ self._column)
        read = system.reads * known.reshape(-1)[layout.dense_reads]
        right = (residual.traces + np.add.reduceat(read, equation.read_starts, axis=1)).reshape(-1)
        if self._point is not None:
            right = np.append(right, residual.scalar)
        found = self._solver @ right
        traces = found[: residual.traces.size].reshape(residual.traces.shape)
        places = residual.places.copy()
        places[:, : equation.varying] -= np.add.reduceat(
            system.energy * traces[:, equation.sources], equation.energy_starts, axis=1)
        point = 0.0
        if self._point is not None:
            point = float(found[-1])
            places[0, equation.point.owner] -= self._point * point
        inverse = self._wide @ (column - layout.left(places) @ self._column)
        return Step(layout.vector(inverse), traces, places, point)

    def magnification(self) -> float:
        """How many times larger than the largest residual a correction of G, of u or of z may be: a product of norms."""
        equation, system = self._layout.equation, self._system
        left, right = (float(np.max(np.sum(np.abs(part), axis=axis))) for part, axis in (
            (self._wide, 1), (self._column, 0)))
        reads = float(np.max(np.add.reduceat(np.abs(system.reads), equation.read_starts), initial=0.0))
        energy = float(np.max(np.add.reduceat(np.abs(system.energy), equation.energy_starts), initial=0.0))
        if self._point is not None:
            energy += float(np.max(np.abs(self._point), initial=0.0))
        solver = float(np.max(np.sum(np.abs(self._solver), axis=1), initial=0.0))
        traces = solver * (1 + reads * left * (1 + right))
        return max(traces, left * (1 + right * (1 + energy * traces)))
