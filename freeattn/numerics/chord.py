"""One step of the chord method in doubles: from residuals of a Dyson equation to corrections, at a fixed point.

The equations of `lifting`, linear in the corrections (δG, δu, δa, δz) of (G, u, a, z), are

    a·δG + δa·G = R,      δu − reads(δG) = r,      δa + E(δu) + δz·P = s.

With Y = G·(R − s·G) they leave J·δu = r + reads(Y), J the Jacobian, for the unknowns alone.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from freeattn.numerics.lifting_layout import Layout
from freeattn.numerics.sparse_equation import Balanced, summed

__all__ = ["Chord"]

Real = NDArray[np.float64]


class Chord:
    """A preconditioner.

    Args:
        layout: where numbers stand.
        system: the equation at the point, in balanced units.
        column: G there as the dense column [x; y].
        solver: the inverse of the Jacobian in all components of u, the first ones before the second ones, and of z at
            the end when it is an unknown; columns are equations.
        unit: exponent of two of the unit of z when it is an unknown.
    """

    def __init__(self, layout: Layout, system: Balanced, column: Real, solver: Real, unit: int | None = None) -> None:
        equation = layout.equation
        self._layout, self._system, self._column, self._solver = layout, system, column, solver
        self._left = layout.left_of_column(column)
        self._point = None if unit is None else np.ldexp(
            equation.point.doubles, system.units.of_matrix(equation.point) + unit)

    def start(self, traces: Real, point: float = 0.0) -> Real:
        """The vector of G, the given traces and z."""
        layout = self._layout
        vector = np.zeros(layout.length)
        vector[layout.entries], vector[layout.traces] = layout.of_column(self._column), traces.reshape(-1)
        vector[-1] = point
        return vector

    def step(self, residual: Real) -> Real:
        """The vector of corrections, in the unit of the residuals."""
        layout, system, equation = self._layout, self._system, self._layout.equation
        column = layout.column(residual[layout.entries])
        known = self._left @ (column - layout.left(residual[layout.places]) @ self._column)
        read = summed(system.reads * known.reshape(-1)[layout.dense_reads], equation.read_starts)
        right = residual[layout.traces] + read.reshape(-1)
        found = self._solver @ (right if self._point is None else np.append(right, residual[-1]))
        step = residual.copy()
        step[layout.traces] = found[: right.size]
        traces = found[: right.size].reshape(layout.algebra.components, -1)
        places = step[layout.places].reshape(layout.algebra.components, -1)  # a view
        places[:, : equation.energetic] -= summed(system.energy * traces[:, equation.sources], equation.energy_starts)
        if self._point is not None:
            step[-1] = found[-1]
            places[0, equation.point.owner] -= self._point * found[-1]
        change = self._left @ (column - layout.left(step[layout.places]) @ self._column)
        step[layout.entries] = layout.of_column(change)
        return step

    @cached_property
    def _norms(self) -> tuple[float, float]:
        """Of the maps from entries of G to u, and from u (and z) to a."""
        equation, system = self._layout.equation, self._system
        reads = float(summed(np.abs(system.reads), equation.read_starts).max(initial=0.0))
        energy = float(summed(np.abs(system.energy), equation.energy_starts).max(initial=0.0))
        return reads, energy if self._point is None else energy + float(np.abs(self._point).max(initial=0.0))

    @property
    def spread(self) -> int:
        """Bits below the largest entry of G at which entries still matter."""
        return sum(max(int(np.log2(norm)) + 1, 0) for norm in self._norms if norm > 0)

    @cached_property
    def magnification(self) -> float:
        """How many times the largest residual a correction of G, of u or of z may be: a product of norms."""
        left, right = (float(np.abs(part).sum(axis=axis).max()) for part, axis in ((self._left, 1), (self._column, 0)))
        reads, energy = self._norms
        solver = float(np.abs(self._solver).sum(axis=1).max(initial=0.0))
        traces = solver * (1 + reads * left * (1 + right))
        return max(traces, left * (1 + right * (1 + energy * traces)))
