"""Residuals of a Dyson equation in exact rational arithmetic, at Gaussian rational points.

The weights are rational centres of enclosures: `width` is the largest relative distance of a true weight from its
centre. Every matrix is inverted exactly, so a residual here has no rounding at all.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from flint import fmpq, fmpq_mat

from freeattn.errors import CertificationError
from freeattn.numerics.dyson_tables import DysonTables, Read
from freeattn.numerics.enclosures import double_of, exactly, rounded

__all__ = ["ExactTraces", "Pair"]

Pair = tuple[fmpq, fmpq]  # real and imaginary part
_ZERO = fmpq(0)
_MOST_WIDTH = 1e-18  # relative: far below the rounding of doubles, which the enclosures of matrices allow for


class ExactTraces:
    """u − Φ(u, z) and m exactly.

    Args:
        tables: the equation with an `Enclosure` for every number.
        digits: of the centres.

    Raises:
        CertificationError: when a weight is not known well enough.
    """

    def __init__(self, tables: DysonTables, digits: int) -> None:
        self._digits, self.width = digits, 0.0
        self._sectors = [self._sector(sector) for sector in tables.sectors]
        self._reads = [self._centred(reads) for reads in tables.reads]
        self._output = self._centred(tables.output)

    def _centre(self, value: Any) -> fmpq:
        centre, radius = rounded(exactly(value), self._digits)
        if radius:
            if not centre or double_of(abs(radius / centre)) > _MOST_WIDTH:
                raise CertificationError("a weight of the equation is not known to enough digits: ask for fewer")
            self.width = max(self.width, double_of(abs(radius / centre)) * 2)
        return centre

    def _centred(self, reads: tuple[Read, ...]) -> list[tuple[int, int, int, fmpq]]:
        return [(k, p, q, self._centre(coefficient)) for k, p, q, coefficient in reads]

    def _sector(self, sector: Any) -> tuple[int, list[Any], list[Any], list[Any]]:
        def nonzero(matrix: Any) -> list[Any]:
            return [(p, q, self._centre(matrix[p, q])) for p, q in np.ndindex(matrix.shape) if matrix[p, q] != 0]

        energy = [(int(e), p, q, v) for e, matrix in zip(sector.sources, sector.energy, strict=True)
                  for p, q, v in nonzero(matrix)]
        return len(sector.weight), nonzero(sector.constant), nonzero(sector.point), energy

    def inverses(self, u: Sequence[Pair], z: Pair, real: bool) -> list[fmpq_mat]:
        """(C − zP − Σ u E)⁻¹ of each sector; X + iY as [[X, −Y], [Y, X]] unless everything is real.

        Raises:
            CertificationError: when one is singular.
        """
        found = []
        for size, constant, point, energy in self._sectors:
            x, y = ([[_ZERO] * size for _ in range(size)] for _ in range(2))
            for p, q, value in constant:
                x[p][q] += value
            for p, q, value in point:
                x[p][q] -= value * z[0]
                y[p][q] -= value * z[1]
            for e, p, q, value in energy:
                x[p][q] -= value * u[e][0]
                if not real:
                    y[p][q] -= value * u[e][1]
            rows = x if real else [[*a, *(-v for v in b)] for a, b in zip(x, y, strict=True)] + [
                [*b, *a] for a, b in zip(x, y, strict=True)]
            try:
                found.append(fmpq_mat(rows).inv())
            except ZeroDivisionError:
                raise CertificationError("a matrix of the equation is singular at the point") from None
        return found

    def residual(self, u: Sequence[Pair], z: Pair, real: bool) -> tuple[list[Pair], Pair]:
        """(u − Φ(u, z), m)."""
        matrices = self.inverses(u, z, real)
        phi = [self._read(reads, matrices, real) for reads in self._reads]
        return [(a[0] - b[0], a[1] - b[1]) for a, b in zip(u, phi, strict=True)], self._read(
            self._output, matrices, real)

    def bordered(
        self, u: Sequence[fmpq], x: fmpq, phi: Sequence[fmpq], gauge: Sequence[fmpq]
    ) -> list[fmpq]:
        """(F, F_u φ, ℓ·φ − 1) at a real point."""
        matrices = self.inverses([(v, _ZERO) for v in u], (x, _ZERO), True)
        turned = []
        for inverse, (size, _, _, energy) in zip(matrices, self._sectors, strict=True):
            change = [[_ZERO] * size for _ in range(size)]
            for e, p, q, value in energy:
                change[p][q] += value * phi[e]
            turned.append(inverse * fmpq_mat(change) * inverse)
        first = [v - self._read(reads, matrices, True)[0] for v, reads in zip(u, self._reads, strict=True)]
        second = [v - self._read(reads, turned, True)[0] for v, reads in zip(phi, self._reads, strict=True)]
        return [*first, *second, sum((a * b for a, b in zip(gauge, phi, strict=True)), fmpq(-1))]

    def _read(self, reads: list[tuple[int, int, int, fmpq]], matrices: list[fmpq_mat], real: bool) -> Pair:
        x, y = _ZERO, _ZERO
        for k, p, q, coefficient in reads:
            x += coefficient * matrices[k][p, q]
            if not real:
                y += coefficient * matrices[k][p + self._sectors[k][0], q]
        return x, y
