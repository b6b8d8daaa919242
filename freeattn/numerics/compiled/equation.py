"""A Dyson equation whose loops over points are compiled: the same results as `TraceEquation`, to rounding."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from freeattn.numerics.compiled.descending import averages, descents
from freeattn.numerics.compiled.packed import packed
from freeattn.numerics.compiled.points import (
    bilinears, cones, errors, increases, inverted, newtons, outputs, rated, residuals, sized, tangents,
)
from freeattn.numerics.dyson_tables import DysonTables
from freeattn.numerics.trace_equation import TOLERANCE, TraceEquation, Value

__all__ = ["CompiledEquation"]

Real = NDArray[np.float64]
Numbers = NDArray[Any]  # float64 on a real branch, complex128 elsewhere
Mask = NDArray[np.bool_]


class CompiledEquation(TraceEquation):
    """`TraceEquation` with compiled kernels; one compilation serves all equations."""

    def __init__(self, tables: DysonTables) -> None:
        super().__init__(tables)
        self._packed = packed(tables)

    def matrices(self, u: Numbers, z: Numbers) -> list[Numbers]:
        u, z = _alike(u, z)
        found = np.empty((len(z), self._packed.constant.size), dtype=u.dtype)
        inverted(self._packed, u, z, found)
        return self._listed(found)

    def evaluate(self, u: Numbers, z: Numbers) -> Value:
        u, z = _alike(u, z)
        found = np.empty((len(z), self._packed.constant.size), dtype=u.dtype)
        phi, residual = np.empty_like(u), np.empty(len(z))
        residuals(self._packed, u, z, found, phi, residual)
        return Value(self._listed(found), phi, residual)

    def output(self, matrices: list[Numbers]) -> Numbers:
        flat = _flat(matrices)
        found = np.empty(len(flat), dtype=flat.dtype)
        outputs(self._packed, flat, self._like(flat), found)
        return found

    def bilinear(self, left: list[Numbers], right: list[Numbers]) -> Numbers:
        first, second = _alike(_flat(left), _flat(right))
        found = np.empty((len(first), self.count, self.count), dtype=first.dtype)
        bilinears(self._packed, first, second, found)
        return found

    def tangent(self, matrices: list[Numbers]) -> Numbers:
        flat = _flat(matrices)
        found = self._like(flat)
        tangents(self._packed, flat, found)
        return found

    def rates(self, matrices: list[Numbers]) -> list[Numbers]:
        flat = _flat(matrices)
        found = np.empty_like(flat)
        rated(self._packed, flat, self._like(flat), found)
        return self._listed(found)

    def sizes(self, matrices: list[Numbers]) -> Real:
        flat = _flat(matrices)
        found = np.empty((len(flat), self.count))
        sized(self._packed, flat, self._like(flat), found)
        return found

    def output_error(self, u: Numbers, z: Numbers, matrices: list[Numbers]) -> Real:  # noqa: ARG002
        u, z = _alike(u, z)
        found = np.empty(len(z))
        errors(self._packed, u, z, found)
        return found

    def newton(self, u: Numbers, z: Numbers) -> tuple[Numbers, Mask]:
        u, z = _alike(u, z)
        found, residual = np.empty_like(u), np.empty(len(z))
        newtons(self._packed, u, z, found, residual)
        return found, residual <= TOLERANCE

    def in_cone(self, u: Numbers, z: Numbers) -> Mask:
        u, z = _alike(u, z)
        good = np.empty(len(z), dtype=bool)
        cones(self._packed, u, z, good)
        return good

    def increasing(self, u: Real, z: Real) -> Mask:
        u, z = _alike(u, z)
        good = np.empty(len(z), dtype=bool)
        increases(self._packed, u, z, good)
        return good

    def averaged(self, z: Numbers) -> Numbers:
        found = np.empty((z.size, self.count), dtype=np.complex128)
        averages(self._packed, np.ascontiguousarray(z, dtype=np.complex128), found)
        return found

    def follow(self, start: Numbers, points: Numbers, u: Numbers) -> tuple[Numbers, Mask]:
        start, points = _alike(start, points)
        found, reached = np.array(u, dtype=np.complex128), np.empty(len(points), dtype=bool)
        descents(self._packed, start, points, found, reached)
        return found, reached

    def _like(self, flat: Numbers) -> Numbers:
        return np.empty((len(flat), self.count), dtype=flat.dtype)

    def _listed(self, flat: Numbers) -> list[Numbers]:
        """The matrices of each sector, views of the vectors of all."""
        return [
            flat[:, start : start + size * size].reshape(len(flat), size, size) for start, size in self._packed.blocks
        ]


def _flat(matrices: list[Numbers]) -> Numbers:
    return np.concatenate([g.reshape(len(g), -1) for g in matrices], axis=1)


def _alike(first: Numbers, second: Numbers) -> tuple[Numbers, Numbers]:
    """Both as contiguous arrays of one type: the two for which kernels are compiled."""
    kind = np.complex128 if np.iscomplexobj(first) or np.iscomplexobj(second) else np.float64
    return np.ascontiguousarray(first, dtype=kind), np.ascontiguousarray(second, dtype=kind)
