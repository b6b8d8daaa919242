"""Traces to any number of digits, in an mpmath context of their own (no global precision is touched).

Residuals are computed to full precision and corrected with the Jacobian of doubles: each round gains the digits of a
double less those that the condition of the Jacobian costs. Only small matrices are ever inverted to many digits.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from freeattn.errors import BranchError, ConvergenceError
from freeattn.model.precision import own_context
from freeattn.numerics.dyson_tables import DysonTables, Read
from freeattn.numerics.folds import RANK_TOLERANCE, Fold, bordered_system, framed
from freeattn.numerics.trace_equation import TraceEquation
from freeattn.theory.inversion import inverted

__all__ = ["PreciseTraces"]

_LEAST_GAIN = 0.25  # each round must shrink the correction to this share
_NEAR_START = 1e-4  # relative distance from the double solution beyond which it is another root

Vector = list[Any]
Matrix = list[list[Any]]


class PreciseTraces:
    """Solutions of u = Φ(u, z) at a fixed number of digits.

    Args:
        tables: the equation with mpmath numbers.
        equation: the same in doubles.
        digits: decimal digits of results.
        guard: decimal digits that are carried beyond them.
    """

    def __init__(self, tables: DysonTables, equation: TraceEquation, digits: int, guard: int) -> None:
        self.context = own_context(digits + guard)
        self._tolerance = self.context.mpf(10) ** (-digits - 5)
        self._tables, self._equation = tables, equation
        self._entries = [_entries(self.context, sector) for sector in tables.sectors]

    def stieltjes(self, start: NDArray[np.complex128], z: Any) -> Any:
        """m(z) of the root next to a solution in doubles."""
        u = self.root(start, z)
        return self._read_one(self._tables.output, self._inverses(u, z))

    def root(self, start: NDArray[Any], z: Any) -> Vector:
        """The solution at z to full precision.

        Raises:
            ConvergenceError: when corrections stop shrinking.
            BranchError: when they lead away from the start.
        """
        number = complex(z) if np.iscomplexobj(start) else float(self.context.re(z))
        place = np.array([number])
        matrices = self._equation.matrices(start[None], place)
        sizes = self._equation.sizes(matrices)[0]
        inverse = np.linalg.inv(self._equation.jacobian(matrices)[0] * (sizes / sizes[:, None]))

        def correction(u: Vector) -> Vector:
            phi = self._read(self._inverses(u, z))
            scaled = _down([(p - v) / float(s) for p, v, s in zip(phi, u, sizes, strict=True)])
            return [self._up(step * s, scaled[1]) for step, s in zip(inverse @ scaled[0], sizes, strict=True)]

        u = self._corrected([self._up(v, self.context.one) for v in start], correction, sizes)
        drift = max((abs(complex(v) - w) / s for v, w, s in zip(u, start, sizes, strict=True)), default=0.0)
        if drift > _NEAR_START:
            raise BranchError(f"Newton at {self.context.nstr(z, 10)} moved from its start to another root")
        return u

    def fold(self, fold: Fold) -> Any:
        """The edge x to full precision."""
        equation, count = self._equation, self._equation.count
        frame = framed(np.maximum(np.abs(fold.traces), np.finfo(float).tiny), fold.x, fold.direction)
        _, matrix = bordered_system(equation, fold.traces, fold.x, frame.direction, frame.gauge)
        inverse = np.linalg.pinv(matrix * frame.scale / frame.weights[:, None], rcond=RANK_TOLERANCE)
        gauge = [self.context.mpf(v) for v in frame.gauge]

        def correction(unknowns: Vector) -> Vector:
            u, x, phi = unknowns[:count], unknowns[count], unknowns[count + 1 :]
            matrices = self._inverses(u, x)
            first = [a - b for a, b in zip(u, self._read(matrices), strict=True)]
            turned = [self._turned(k, g, phi) for k, g in enumerate(matrices)]
            second = [a - b for a, b in zip(phi, self._read(turned), strict=True)]
            third = self.context.fdot(gauge, phi) - 1
            residual = [r / float(w) for r, w in zip([*first, *second, third], frame.weights, strict=True)]
            scaled = _down(residual)
            return [self._up(-step * s, scaled[1]) for step, s in zip(inverse @ scaled[0], frame.scale, strict=True)]

        start = [self.context.mpf(v) for v in (*fold.traces, fold.x, *frame.direction)]
        return self._corrected(start, correction, frame.scale)[count]

    # Small steps -----------------------------------------------------------------------------------------------

    def _corrected(self, u: Vector, correction: Any, sizes: NDArray[np.float64]) -> Vector:
        last = self.context.inf
        while u:
            step = correction(u)
            u = [a + b for a, b in zip(u, step, strict=True)]
            change = max(abs(s) / float(size) for s, size in zip(step, sizes, strict=True))
            if change <= self._tolerance:
                return u
            if not change < last * _LEAST_GAIN:
                raise ConvergenceError(
                    "Newton to many digits", float(change), float(self._tolerance),
                    "the point is too near an edge or the branch is ill-conditioned: ask at another point",
                )
            last = change
        return u

    def _up(self, value: Any, factor: Any) -> Any:
        number = self.context.mpc(value) if isinstance(value, complex) else self.context.mpf(float(value))
        return number * factor

    def _inverses(self, u: Vector, z: Any) -> list[Matrix]:
        found = []
        for sector, (constant, point, terms) in zip(self._tables.sectors, self._entries, strict=True):
            matrix = self._zeros(len(sector.weight))
            for p, q, value in constant:
                matrix[p][q] += value
            for p, q, value in point:
                matrix[p][q] -= value * z
            for e, p, q, value in terms:
                matrix[p][q] -= value * u[e]
            found.append(inverted(matrix, self.context))
        return found

    def _turned(self, sector: int, inverse: Matrix, direction: Vector) -> Matrix:
        """G·(Σ_e E_e direction_e)·G."""
        size = len(inverse)
        energy = self._zeros(size)
        for e, p, q, value in self._entries[sector][2]:
            energy[p][q] += value * direction[e]
        return _product(_product(inverse, energy), inverse)

    def _zeros(self, size: int) -> Matrix:
        return [[self.context.zero] * size for _ in range(size)]

    def _read(self, matrices: Sequence[Any]) -> Vector:
        return [self._read_one(reads, matrices) for reads in self._tables.reads]

    def _read_one(self, reads: tuple[Read, ...], matrices: Sequence[Any]) -> Any:
        return self.context.fsum(c * matrices[k][p][q] for k, p, q, c in reads)


def _product(left: Matrix, right: Matrix) -> Matrix:
    columns = list(zip(*right, strict=True))
    return [[sum(a * b for a, b in zip(row, column, strict=True)) for column in columns] for row in left]


def _down(values: Vector) -> tuple[NDArray[Any], Any]:
    """Numbers as doubles times a common factor, so that small residuals do not underflow."""
    factor = max((abs(v) for v in values), default=0)
    if factor == 0:
        return np.zeros(len(values)), factor
    shares = [v / factor for v in values]
    return np.array([complex(s) if hasattr(s, "imag") and s.imag else float(s.real) for s in shares]), factor


def _entries(context: Any, sector: Any) -> tuple[list[Any], list[Any], list[Any]]:
    """Entries of a sector that are not zero: constant, point, and energy with its unknown."""
    def nonzero(matrix: Any) -> list[Any]:
        return [(p, q, context.convert(matrix[p, q])) for p, q in np.ndindex(matrix.shape) if matrix[p, q] != 0]

    energy = [(int(e), p, q, v) for e, matrix in zip(sector.sources, sector.energy, strict=True)
              for p, q, v in nonzero(matrix)]
    return nonzero(sector.constant), nonzero(sector.point), energy
