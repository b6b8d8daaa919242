"""The tables of a Dyson equation as flat arrays, the same types for every law: kernels are compiled once for all.

The matrices of all sectors at one point are one vector of Σ b² entries, sector after sector, row by row. Everything
that is linear or bilinear in it is a list of terms (indices, coefficient).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from freeattn.numerics.dyson_tables import DysonTables, Read

__all__ = ["Packed", "packed"]

Real = NDArray[np.float64]
Index = NDArray[np.int64]


class Packed(NamedTuple):
    """Arrays of one equation; `entry` is an index into the vector of all matrices, `unknown` one into u.

    Attributes:
        blocks: (first entry, b) of each sector.
        constant, point: C and P at each entry.
        energy, energy_value: A has −value·u[unknown] at (entry, unknown).
        reads, reads_value: Φ[unknown] has value·G[entry], (unknown, then a place).
        output, output_value: m has value·G[entry], (place); a place of (p, q) is (entry, first entry of row p, first
            entry of column q, b, entry of (p, p), entry of (q, q)).
        slopes, slopes_value: ∂Φ[unknown]/∂z has value·G[left]·G[right], (unknown, left, right).
        products, products_value: ∂Φ[row]/∂u[column] has value·G[left]·G[right], (row, column, left, right).
        means: (first entry, b, 0 where z and the unknowns do not enter) of each matrix of traces.
        shares, shares_value: the matrices of traces have value·G[entry] at their own entry, (own entry, entry).
    """

    blocks: Index
    constant: Real
    point: Real
    energy: Index
    energy_value: Real
    reads: Index
    reads_value: Real
    output: Index
    output_value: Real
    slopes: Index
    slopes_value: Real
    products: Index
    products_value: Real
    means: Index
    shares: Index
    shares_value: Real


def packed(tables: DysonTables) -> Packed:
    """The flat arrays of one equation."""
    sizes = [len(sector.weight) for sector in tables.sectors]
    first = np.cumsum([0, *(size * size for size in sizes)])

    def place(read: Read) -> tuple[int, ...]:
        start, size = int(first[read.sector]), sizes[read.sector]
        row, column = start + read.row * size, start + read.column
        return row + read.column, row, column, size, row + read.row, column + read.column * size

    reads = [(e, *place(read), read.coefficient) for e, sums in enumerate(tables.reads) for read in sums]
    return Packed(
        np.array([(start, size) for start, size in zip(first[:-1], sizes, strict=True)], dtype=np.int64).reshape(-1, 2),
        np.concatenate([sector.constant.ravel() for sector in tables.sectors]),
        np.concatenate([sector.point.ravel() for sector in tables.sectors]),
        *_terms(2, _energies(tables, first)),
        *_terms(7, reads),
        *_terms(6, [(*place(read), read.coefficient) for read in tables.output]),
        *_terms(3, _slopes(tables, first)),
        *_terms(4, _products(tables, first)),
        *_traces(tables, first),
    )


def _terms(indices: int, rows: Iterable[tuple[float, ...]]) -> tuple[Index, Real]:
    """(indices of each term, their coefficients)."""
    listed = list(rows)
    return (
        np.array([row[:-1] for row in listed], dtype=np.int64).reshape(-1, indices),
        np.array([row[-1] for row in listed], dtype=np.float64),
    )


def _energies(tables: DysonTables, first: Index) -> Iterable[tuple[float, ...]]:
    for start, sector in zip(first, tables.sectors, strict=False):
        flat = sector.energy.reshape(len(sector.sources), -1)
        for i, entry in zip(*np.nonzero(flat), strict=True):
            yield int(start + entry), int(sector.sources[i]), flat[i, entry]


def _slopes(tables: DysonTables, first: Index) -> Iterable[tuple[float, ...]]:
    for e, sums in enumerate(tables.reads):
        for read in sums:
            point = tables.sectors[read.sector].point
            for row, column in zip(*np.nonzero(point), strict=True):
                yield e, *_around(read, row, column, first, len(point)), read.coefficient * point[row, column]


def _products(tables: DysonTables, first: Index) -> Iterable[tuple[float, ...]]:
    for e, sums in enumerate(tables.reads):
        for read in sums:
            sector = tables.sectors[read.sector]
            for i, row, column in zip(*np.nonzero(sector.energy), strict=True):
                places = _around(read, row, column, first, len(sector.weight))
                yield e, int(sector.sources[i]), *places, read.coefficient * sector.energy[i, row, column]


def _around(read: Read, row: int, column: int, first: Index, size: int) -> tuple[int, int]:
    """The entries (p, row) and (column, q) whose product the entry (p, q) of G·E·G has from E at (row, column)."""
    start = int(first[read.sector])
    return start + read.row * size + int(row), start + int(column) * size + read.column


def _traces(tables: DysonTables, first: Index) -> tuple[Index, Index, Real]:
    """`means`, `shares` and `shares_value`."""
    means, shares, start = [], [], 0
    for average in tables.averages:
        sectors = [tables.sectors[k] for k, _ in average]
        size, weight = len(sectors[0].weight), sectors[0].weight
        root = (np.sqrt(weight)[:, None] / np.sqrt(weight)).ravel()
        varying = any(sector.point.any() or sector.sources.size for sector in sectors)
        means.append((start, size, int(varying)))
        for k, share in average:
            shares += [(start + i, int(first[k]) + i, share * root[i]) for i in range(size * size)]
        start += size * size
    return np.array(means, dtype=np.int64).reshape(-1, 3), *_terms(2, shares)
