"""A Dyson equation whose loops over points are compiled: the same results as `TraceEquation`, to rounding."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from freeattn.numerics.bands import PanelBand
from freeattn.numerics.compiled.chords import Chords
from freeattn.numerics.compiled.gaps import gap_values
from freeattn.numerics.compiled.packed import BLOCKS, packed
from freeattn.numerics.compiled.points import averages, bilinears, borders, derivatives, descents, errors, roots
from freeattn.numerics.dyson_tables import DysonTables
from freeattn.numerics.trace_equation import NEWTON_STEPS, TOLERANCE, GapValues, Roots, TraceEquation, Value

__all__ = ["CompiledEquation"]

Real = NDArray[np.float64]
Numbers = NDArray[Any]  # float64 on a real branch, complex128 elsewhere
Mask = NDArray[np.bool_]


class _Roots(NamedTuple):
    """What `roots` leaves, real on a real branch; the matrices of all sectors as vectors."""

    traces: Numbers
    residual: Real
    matrices: Numbers
    phi: Numbers
    cone: Mask


class _Derivatives(NamedTuple):
    """What `derivatives` leaves, real on a real branch."""

    sizes: Real
    tangents: Numbers
    changes: Numbers
    rising: Mask


class CompiledEquation(TraceEquation):
    """`TraceEquation` with compiled kernels; one compilation serves all equations."""

    def __init__(self, tables: DysonTables) -> None:
        super().__init__(tables)
        self.packed = packed(tables)
        sections, terms = self.packed.sections, self.packed.terms
        self._places = [(int(row[0]), int(row[1])) for row in terms[sections[BLOCKS] : sections[BLOCKS + 1]]]

    def matrices(self, u: Numbers, z: Numbers) -> list[Numbers]:
        return self.evaluate(u, z).matrices

    def evaluate(self, u: Numbers, z: Numbers) -> Value:
        found = self._solved(u, z, 1)
        return Value(self._listed(found.matrices), found.phi, found.residual)

    def newton(self, u: Numbers, z: Numbers) -> tuple[Numbers, Mask]:
        found = self._solved(u, z, NEWTON_STEPS)
        return found.traces, found.residual <= TOLERANCE

    def roots(self, u: Numbers, z: Numbers) -> Roots:
        found = self._solved(u, z, NEWTON_STEPS)
        return Roots(found.traces, found.residual <= TOLERANCE, self._listed(found.matrices), found.cone)

    def gap_values(self, u: Real, x: Real) -> GapValues:
        count = len(x)
        found = GapValues(np.empty(count), np.empty(count), np.empty(count, dtype=np.bool_))
        gap_values(self.packed, _contiguous(u), np.ascontiguousarray(x, dtype=np.float64), *found)
        return found

    def in_cone(self, u: Numbers, z: Numbers) -> Mask:
        return self._solved(u, z, 1).cone

    def _solved(self, u: Numbers, z: Numbers, steps: int) -> _Roots:
        count, points = len(z), _contiguous(z)
        found = _Roots(
            np.empty((count, self.count), dtype=np.complex128), np.empty(count),
            np.empty((count, self.packed.fixed.shape[1]), dtype=np.complex128),
            np.empty((count, self.count), dtype=np.complex128), np.empty(count, dtype=np.bool_),
        )
        roots(self.packed, _contiguous(u), points, steps, *found)
        if np.iscomplexobj(u) or np.iscomplexobj(z):
            return found
        return found._replace(traces=found.traces.real, matrices=found.matrices.real, phi=found.phi.real)

    def tangent(self, matrices: list[Numbers]) -> Numbers:
        return self._derivatives(matrices).tangents

    def rates(self, matrices: list[Numbers]) -> list[Numbers]:
        return self._listed(self._derivatives(matrices).changes)

    def sizes(self, matrices: list[Numbers]) -> Real:
        return self._derivatives(matrices).sizes

    def increasing(self, u: Real, z: Real) -> Mask:
        return self._derivatives(self.matrices(u, z)).rising

    def _derivatives(self, matrices: list[Numbers]) -> _Derivatives:
        flat = _flat(matrices)
        count = len(flat)
        found = _Derivatives(
            np.empty((count, self.count)), np.empty((count, self.count), dtype=np.complex128),
            np.empty(flat.shape, dtype=np.complex128), np.empty(count, dtype=np.bool_),
        )
        derivatives(self.packed, _contiguous(flat), *found)
        if np.iscomplexobj(flat):
            return found
        return found._replace(tangents=found.tangents.real, changes=found.changes.real)

    def bilinear(self, left: list[Numbers], right: list[Numbers]) -> Numbers:
        first, second = _flat(left), _flat(right)
        found = np.empty((len(first), self.count, self.count), dtype=np.complex128)
        bilinears(self.packed, _contiguous(first), _contiguous(second), found)
        return found if np.iscomplexobj(first) or np.iscomplexobj(second) else found.real

    def bordered(self, u: Real, x: float, phi: Real, gauge: Real) -> tuple[Real, Real]:
        size = 2 * self.count + 1
        residual, matrix = np.empty(size), np.zeros((size, size))
        borders(
            self.packed, _contiguous(u), float(x), np.ascontiguousarray(phi), np.ascontiguousarray(gauge), residual,
            matrix,
        )
        return residual, matrix

    def output_error(self, u: Numbers, z: Numbers, matrices: list[Numbers]) -> Real:
        found = np.empty(len(z))
        errors(self.packed, _contiguous(u), _contiguous(z), found)
        lost = ~np.isfinite(found)
        if lost.any():  # singular Jacobians, as at an edge, are the reference's business
            found[lost] = super().output_error(u[lost], z[lost], [g[lost] for g in matrices])
        return found

    def averaged(self, z: Numbers, steps: int) -> Numbers:
        found = np.empty((len(z), self.count), dtype=np.complex128)
        averages(self.packed, _contiguous(z), steps, found)
        return found

    def follow(self, start: Numbers, points: Numbers, u: Numbers) -> tuple[Numbers, Mask]:
        found, reached = np.array(u, dtype=np.complex128), np.empty(len(points), dtype=np.bool_)
        descents(self.packed, _contiguous(start), _contiguous(points), found, reached)
        return found, reached

    def chords(self, band: PanelBand) -> Chords:
        return Chords(self.packed, band)

    def _listed(self, flat: Numbers) -> list[Numbers]:
        """The matrices of each sector, views of the vectors of all."""
        return [
            flat[:, start : start + size * size].reshape(len(flat), size, size) for start, size in self._places
        ]


def _flat(matrices: list[Numbers]) -> Numbers:
    return np.concatenate([g.reshape(len(g), -1) for g in matrices], axis=1)


def _contiguous(array: Numbers) -> Numbers:
    return np.ascontiguousarray(array, dtype=np.complex128)
