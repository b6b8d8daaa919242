"""Where the numbers of a lifting stand: one vector for all unknowns, small matrices for products.

Numbers are real, complex, or dual (x + yε, ε² = 0: the equation and its derivative in one direction, as a fold needs).
With two components, matrices multiply as real ones: a left factor is [[x, σy], [y, x]] with σ the square of the second
unit, a right one the column [x; y].
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from freeattn.numerics.sparse_equation import SparseEquation

__all__ = ["COMPLEX", "DUAL", "REAL", "Algebra", "Layout"]

Index = NDArray[np.intp]
Real = NDArray[np.float64]
Integers = NDArray[Any]  # Python integers


class Algebra(NamedTuple):
    """Numbers with one or two components; the square of the second unit."""

    components: int
    square: int


REAL, COMPLEX, DUAL = Algebra(1, 0), Algebra(2, -1), Algebra(2, 0)


class _Group(NamedTuple):
    """Sectors of one size: their parts of the vector and of left factors, and the shapes of both."""

    inside: slice
    wide: slice
    left: tuple[int, int, int]
    right: tuple[int, int, int]


class Layout:
    """The vector (entries of all G's, traces u, moving entries of a, z) and what is made of it.

    Each part has its components after one another. Integers are multiplied sector by sector, those of one size at once;
    doubles as one block-diagonal matrix.

    Attributes:
        entries, traces, places: the parts; z is last.
        length: of the vector.
        diagonal: where the identity is 1.
        reads, output: component by component, the entries of G that the reads take; `dense_reads` in a dense column.
    """

    def __init__(self, equation: SparseEquation, algebra: Algebra) -> None:
        self.equation, self.algebra = equation, algebra
        count = algebra.components
        self._rows = sum(equation.sizes)
        where, wide = self._arranged()
        self.entries = slice(0, self._dense.size)
        self.traces = slice(self.entries.stop, self.entries.stop + count * equation.count)
        self.places = slice(self.traces.stop, self.traces.stop + count * equation.moving)
        self.length = self.places.stop + 1
        self.reads = where[:, equation.reads.rows, equation.reads.columns]
        self.dense_reads = self._dense[self.reads]
        self.output = where[:, equation.output.rows, equation.output.columns]
        self.diagonal = where[0].diagonal()
        self._all = _Spread(wide, equation.places, algebra)
        self._moving = _Spread(wide, equation.places[:, : equation.moving], algebra)
        at = np.arange((count * self._rows) ** 2).reshape(count, self._rows, count, self._rows).transpose(0, 2, 1, 3)
        self._moving_dense = _Spread(at, equation.places[:, : equation.moving], algebra)

    def _arranged(self) -> tuple[Index, Index]:
        """Places in the vector (component, row, column) and in left factors (two components first)."""
        count, total, sizes = self.algebra.components, self._rows, self.equation.sizes
        where = np.zeros((count, total, total), dtype=np.intp)
        wide = np.zeros((count, count, total, total), dtype=np.intp)
        dense: list[Index] = []
        self._groups: list[_Group] = []
        at = wide_at = 0
        for size in sorted(set(sizes)):
            members = [int(first) for first, b in zip(self.equation.first, sizes, strict=True) if b == size]
            start, wide_start, width = at, wide_at, count * size
            for first in members:
                inside = slice(first, first + size)
                where[:, inside, inside] = at + np.arange(width * size).reshape(count, size, size)
                square = np.arange(width**2).reshape(count, size, count, size)
                wide[:, :, inside, inside] = wide_at + square.transpose(0, 2, 1, 3)
                rows = np.arange(count)[:, None, None] * total + np.arange(first, first + size)[:, None]
                dense.append((rows * total + np.arange(first, first + size)).reshape(-1))
                at, wide_at = at + width * size, wide_at + width**2
            self._groups.append(_Group(slice(start, at), slice(wide_start, wide_at), (len(members), width, width),
                                       (len(members), width, size)))
        self._dense, self._wide_size = np.concatenate(dense), wide_at
        return where, wide

    # Integers ----------------------------------------------------------------------------------------------------

    def factor(self, places: Integers) -> Integers:
        """Left factors of all sectors after one another, from all entries of a."""
        return self._all.into(np.zeros(self._wide_size, dtype=object), places.reshape(-1))

    def left_integers(self, places: Integers) -> Integers:
        """Left factors from the moving entries of a."""
        return self._moving.into(np.zeros(self._wide_size, dtype=object), places)

    def product(self, left: Integers, entries: Integers) -> Integers:
        """a·G, sector by sector, as the entries of G."""
        return np.concatenate([
            (left[group.wide].reshape(group.left) @ entries[group.inside].reshape(group.right)).reshape(-1)
            for group in self._groups
        ])

    # Doubles -----------------------------------------------------------------------------------------------------

    def column(self, entries: Real) -> Real:
        """The dense column [x; y]."""
        column = np.zeros((self.algebra.components * self._rows, self._rows))
        column.reshape(-1)[self._dense] = entries
        return column

    def of_column(self, column: Real) -> Real:
        """The entries of a dense column."""
        return column.reshape(-1)[self._dense]

    def left(self, places: Real) -> Real:
        """The dense left factor from the moving entries of a."""
        width = self.algebra.components * self._rows
        return self._moving_dense.into(np.zeros(width**2), places).reshape(width, width)

    def left_of_column(self, column: Real) -> Real:
        """The dense left factor of a column."""
        total, square = self._rows, self.algebra.square
        if self.algebra.components == 1:
            return column
        wide = np.zeros((2 * total, 2 * total))
        wide[:, :total], wide[total:, total:] = column, column[:total]
        if square:
            wide[:total, total:] = square * column[total:]
        return wide


class _Spread:
    """How entries of a, component by component, fill left factors."""

    def __init__(self, where: Index, places: Index, algebra: Algebra) -> None:
        rows, columns = places
        parts = [(k, k, 0) for k in range(algebra.components)]
        parts += [(1, 0, 1)] if algebra.components == 2 else []
        parts += [(0, 1, 1)] if algebra.square else []
        self._from = np.concatenate([part * rows.size + np.arange(rows.size) for _, _, part in parts])
        self._to = np.concatenate([where[i, j, rows, columns] for i, j, _ in parts])
        self._negative = slice(rows.size * 3, None) if algebra.square < 0 else slice(0, 0)

    def into(self, factors: NDArray[Any], entries: NDArray[Any]) -> NDArray[Any]:
        spread = entries[self._from]
        spread[self._negative] = -spread[self._negative]
        factors[self._to] = spread
        return factors
