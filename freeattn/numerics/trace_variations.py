"""Derivatives of the solution of a Dyson equation by the parameters of its coefficients, exactly.

With G = A⁻¹, A = C − z·P − Σ_e u_e E_e, sums of entries Φ_e(u, z; p) = tr(W_e G) and m = tr(W G), the function

    L = m(u, z; p) + Σ_e y_e (Φ_e − u_e),        y_e = tr(B E_e),        B = G (W + Σ_e y_e W_e) G,

does not change with u, so that its partial derivatives are those of m along the solution: one linear system with the
transposed Jacobian serves all parameters,

    ∂m/∂p = tr(∂_p(W + Σ y_e W_e) G) − tr(B ∂_pA),        m' = tr(B P).

Everything is carried to first order in z as well, which gives ∂m'/∂p and m''. At a fold, where y is the left null
vector of the Jacobian and W = 0, the edge moves by ∂x/∂p = −(y·∂Φ/∂p)/(y·∂Φ/∂z).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from freeattn.errors import ConvergenceError
from freeattn.numerics.dual_numbers import Dual
from freeattn.numerics.dyson_tables import DysonTables, SectorTable

__all__ = ["TraceVariations", "Variation"]

Numbers = NDArray[Any]  # of mpmath numbers
Matrices = list[Numbers]  # one for each sector

_ADVICE = "edges of two branches meet there, or the law is singular: ask at other parameters"


class Variation(NamedTuple):
    """m, m' and m'' at z, and the derivatives of m and m' by each parameter at fixed z."""

    m: Any
    slope: Any
    bend: Any
    changes: list[Any]
    changes_of_slope: list[Any]


class _Entry(NamedTuple):
    """`value` at (row, column) of a matrix that the unknown `owner` multiplies, or that makes it, and its slopes."""

    owner: int
    row: int
    column: int
    value: Any
    slopes: tuple[Any, ...]


class TraceVariations:
    """One equation whose coefficients are dual numbers.

    Args:
        tables: the equation; numbers are `Dual`, or constants.
        context: the mpmath context of their values.
        parameters: how many.
    """

    def __init__(self, tables: DysonTables, context: Any, parameters: int) -> None:
        self._context, self._count, self._parameters = context, len(tables.reads), parameters
        self._points = [self._plain(sector.point) for sector in tables.sectors]
        self._constants = [self._entries([(0, sector.constant)]) for sector in tables.sectors]
        self._energies = [self._entries(_energies(sector)) for sector in tables.sectors]
        self._reads: list[list[_Entry]] = [[] for _ in tables.sectors]
        for owner, reads in enumerate((*tables.reads, tables.output)):  # m is last
            for sector, row, column, coefficient in reads:
                self._reads[sector].append(self._entry(owner, row, column, coefficient))

    def _entry(self, owner: int, row: int, column: int, number: Any) -> _Entry:
        if isinstance(number, Dual):
            return _Entry(owner, row, column, number.value, number.slopes)
        return _Entry(owner, row, column, self._context.convert(number), (self._context.zero,) * self._parameters)

    def _entries(self, matrices: Sequence[tuple[int, Any]]) -> list[_Entry]:
        return [
            self._entry(owner, int(i), int(j), matrix[i, j])
            for owner, matrix in matrices for i, j in zip(*np.nonzero(matrix), strict=True)
        ]

    def _plain(self, matrix: Any) -> Numbers:
        return np.vectorize(self._context.convert, otypes=[object])(matrix)

    # Derivatives -------------------------------------------------------------------------------------------------

    def at(self, traces: Sequence[Any], z: Any) -> Variation:
        """Everything at a solution u(z).

        Raises:
            ConvergenceError: when the Jacobian is singular.
        """
        u, context = self._column(traces), self._context
        output = self._column([0] * self._count + [1])
        g = self._inverses(u, context.convert(z))
        jacobian = self._jacobian(g)
        u_1 = self._solved(jacobian, self._read([a @ p @ a for a, p in zip(g, self._points, strict=True)])[:-1])
        shift = [-p - e for p, e in zip(self._points, self._energy(u_1), strict=True)]
        g_1 = [-a @ s @ a for a, s in zip(g, shift, strict=True)]
        y = output.copy()
        y[:-1] = self._solved(jacobian.T, self._pulled(_turned(g, self._weights(output), g)))
        weights = self._weights(y)
        b = _turned(g, weights, g)
        b_1 = _sum(_turned(g_1, weights, g), _turned(g, weights, g_1))
        y_1 = self._column([0] * (self._count + 1))
        y_1[:-1] = self._solved(jacobian.T, self._pulled(b_1))
        b_1 = _sum(b_1, _turned(g, self._weights(y_1), g))
        first, mixed = (self._changes(y, g, b, u), _sum(self._changes(y, g_1, b_1, u), self._changes(y_1, g, b, None)))
        mixed = _sum(mixed, self._moved(b, u_1))
        return Variation(self._read(g)[-1], self._traced(b), self._traced(b_1), first, mixed)

    def edge(self, traces: Sequence[Any], x: Any, direction: Sequence[Any]) -> list[Any]:
        """∂x/∂p at the fold (u, x) whose right null vector is given.

        Raises:
            ConvergenceError: when the null space has more than one dimension.
        """
        u, found = self._column(traces), []
        g = self._inverses(u, self._context.convert(x))
        transposed = self._jacobian(g).T
        for gauge in (1, -1):  # y·(1, ±1, 1, …) = 1: two null vectors that agree, or there are several
            y = self._null_vector(transposed, self._column(direction), gauge)
            b = _turned(g, self._weights(y), g)
            rate = self._traced(b)
            found.append([-change / rate for change in self._changes(y, g, b, u)])
        error = max((abs(a - b) / (abs(a) + abs(b)) for a, b in zip(*found, strict=True) if a != b), default=0)
        tolerance = self._context.sqrt(self._context.sqrt(self._context.eps))
        if not error <= tolerance:
            raise ConvergenceError("the derivative of an edge", float(error), float(tolerance), _ADVICE)
        return found[0]

    # Small steps -------------------------------------------------------------------------------------------------

    def _column(self, values: Sequence[Any]) -> Numbers:
        found = np.empty(len(values), dtype=object)
        found[:] = [self._context.convert(value) for value in values]
        return found

    def _zeros(self, size: int) -> Numbers:
        return np.full((size, size), self._context.zero, dtype=object)

    def _inverses(self, u: Numbers, z: Any) -> Matrices:
        """G of each sector."""
        found = []
        for point, constant, energy in zip(self._points, self._constants, self._energy(u), strict=True):
            matrix = -z * point - energy
            for _, i, j, value, _ in constant:
                matrix[i, j] += value
            found.append(self._inverted(matrix))
        return found

    def _inverted(self, matrix: Numbers) -> Numbers:
        try:
            inverse = self._context.inverse(self._context.matrix(matrix.tolist()))
        except ZeroDivisionError:
            raise ConvergenceError("the inverse of a matrix of traces", None, None, _ADVICE) from None
        return np.array(inverse.tolist(), dtype=object)

    def _energy(self, u: Numbers) -> Matrices:
        """Σ_e u_e E_e."""
        found = [self._zeros(len(point)) for point in self._points]
        for matrix, entries in zip(found, self._energies, strict=True):
            for e, i, j, value, _ in entries:
                matrix[i, j] += u[e] * value
        return found

    def _weights(self, y: Numbers) -> Matrices:
        """Σ_e y_e W_e, the last of which is that of m."""
        found = [self._zeros(len(point)) for point in self._points]
        for matrix, reads in zip(found, self._reads, strict=True):
            for e, i, j, value, _ in reads:
                matrix[j, i] += y[e] * value
        return found

    def _read(self, g: Matrices) -> Numbers:
        """Φ and m."""
        found = self._column([0] * (self._count + 1))
        for matrix, reads in zip(g, self._reads, strict=True):
            for e, i, j, value, _ in reads:
                found[e] += value * matrix[i, j]
        return found

    def _pulled(self, b: Matrices) -> Numbers:
        """tr(B E_e) for each e."""
        found = self._column([0] * self._count)
        for matrix, entries in zip(b, self._energies, strict=True):
            for e, i, j, value, _ in entries:
                found[e] += value * matrix[j, i]
        return found

    def _jacobian(self, g: Matrices) -> Numbers:
        """1 − ∂Φ/∂u."""
        found = self._zeros(self._count)
        found[np.diag_indices(self._count)] += self._context.one
        for matrix, reads, entries in zip(g, self._reads, self._energies, strict=True):
            for a, row, column, c, _ in reads:
                if a == self._count:
                    continue
                for e, i, j, value, _ in entries:
                    found[a, e] -= c * value * matrix[row, i] * matrix[j, column]
        return found

    def _solved(self, matrix: Numbers, right: Numbers) -> Numbers:
        if not self._count:
            return right
        context = self._context
        try:
            found = context.lu_solve(context.matrix(matrix.tolist()), context.matrix(right.tolist()))
        except ZeroDivisionError:
            raise ConvergenceError("a derivative of traces", None, None, _ADVICE) from None
        return self._column(list(found))

    def _null_vector(self, transposed: Numbers, direction: Numbers, gauge: int) -> Numbers:
        """y with Jᵀy = 0, and 0 for m, from the system bordered by the right null vector."""
        size = self._count
        bordered = self._zeros(size + 1)
        bordered[:size, :size], bordered[:size, size] = transposed, direction
        bordered[size, :size] = self._column([gauge**k for k in range(size)])
        context, right = self._context, self._column([0] * size + [1])
        try:
            found = context.lu_solve(context.matrix(bordered.tolist()), context.matrix(right.tolist()))
        except ZeroDivisionError:
            raise ConvergenceError("the null vector at an edge", None, None, _ADVICE) from None
        return self._column([*list(found)[:size], 0])

    def _traced(self, b: Matrices) -> Any:
        """tr(B P)."""
        parts = [np.sum(m.T * p) for m, p in zip(b, self._points, strict=True)]
        return sum(parts, self._context.zero)

    def _changes(self, y: Numbers, g: Matrices, b: Matrices, u: Numbers | None) -> list[Any]:
        """tr(Σ_e y_e ∂_pW_e G) − tr(B ∂_pA), the second at given traces only."""
        totals = [self._context.zero] * self._parameters
        for matrix, reads in zip(g, self._reads, strict=True):
            for e, i, j, _, slopes in reads:
                _add(totals, y[e] * matrix[i, j], slopes)
        if u is None:
            return totals
        for matrix, constants in zip(b, self._constants, strict=True):
            for _, i, j, _, slopes in constants:
                _add(totals, -matrix[j, i], slopes)
        return _sum(totals, self._moved(b, u))

    def _moved(self, b: Matrices, u: Numbers) -> list[Any]:
        """Σ_e u_e tr(B ∂_pE_e)."""
        totals = [self._context.zero] * self._parameters
        for matrix, entries in zip(b, self._energies, strict=True):
            for e, i, j, _, slopes in entries:
                _add(totals, u[e] * matrix[j, i], slopes)
        return totals


def _energies(sector: SectorTable) -> list[tuple[int, Any]]:
    return [(int(e), matrix) for e, matrix in zip(sector.sources, sector.energy, strict=True)]


def _turned(left: Matrices, middle: Matrices, right: Matrices) -> Matrices:
    return [a @ w @ c for a, w, c in zip(left, middle, right, strict=True)]


def _sum(first: list[Any], second: list[Any]) -> list[Any]:
    return [a + b for a, b in zip(first, second, strict=True)]


def _add(totals: list[Any], factor: Any, slopes: tuple[Any, ...]) -> None:
    for k, slope in enumerate(slopes):
        if slope:
            totals[k] += factor * slope
