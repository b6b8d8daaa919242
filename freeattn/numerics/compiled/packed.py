"""The tables of a Dyson equation as flat arrays, the same types for every law: kernels are compiled once for all.

The matrices of all sectors at one point are one vector of Σ b² entries, sector after sector, row by row. Everything
that is linear or bilinear in it is a list of terms: some indices, and a coefficient.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from freeattn.numerics.dyson_tables import DysonTables, Read

__all__ = ["BLOCKS", "ENERGY", "MEANS", "OUTPUT", "PRODUCTS", "READS", "SHARES", "SLOPES", "Packed", "packed",
           "products_of"]

Real = NDArray[np.float64]
Index = NDArray[np.int64]
Term = tuple[tuple[int, ...], float]

BLOCKS, ENERGY, READS, OUTPUT, SLOPES, PRODUCTS, MEANS, SHARES = range(8)
_INDICES = 7  # of the longest terms


class Packed(NamedTuple):
    """Arrays of one equation. Few and large ones: every array that a kernel is given costs time to compile.

    Attributes:
        fixed: C and P at each entry (2 × entries).
        sections: where the terms of each kind start in `terms`, and the end of the last.
        terms: indices, by kind; "entry" is one into the vector of all matrices, "unknown" one into u.
            BLOCKS: (first entry, b) of each sector, no coefficient.
            ENERGY: (entry, unknown), A has −value·u[unknown] there.
            READS: (unknown, place), Φ[unknown] has value·G[entry]. A place of (p, q) is (entry, first entry of row p,
            first entry of column q, b, entry of (p, p), entry of (q, q)).
            OUTPUT: (0, place), m has value·G[entry].
            SLOPES: (unknown, left, right), ∂Φ[unknown]/∂z has value·G[left]·G[right].
            PRODUCTS: (row, column, left, right), ∂Φ[row]/∂u[column] has value·G[left]·G[right].
            MEANS: (first own entry, b) of each matrix of traces that is not constant, no coefficient.
            SHARES: (own entry, entry), the matrices of traces have value·G[entry] there.
        values: the coefficients.
    """

    fixed: Real
    sections: Index
    terms: Index
    values: Real


def packed(tables: DysonTables) -> Packed:
    """The flat arrays of one equation."""
    sizes = [len(sector.weight) for sector in tables.sectors]
    first = np.cumsum([0, *(size * size for size in sizes)])

    def place(read: Read) -> tuple[int, ...]:
        start, size = int(first[read.sector]), sizes[read.sector]
        row, column = start + read.row * size, start + read.column
        return row + read.column, row, column, size, row + read.row, column + read.column * size

    means, shares = _traces(tables, first)
    kinds: tuple[list[Term], ...] = (
        [((int(start), size), 0.0) for start, size in zip(first[:-1], sizes, strict=True)],
        list(_energies(tables, first)),
        [((e, *place(read)), read.coefficient) for e, sums in enumerate(tables.reads) for read in sums],
        [((0, *place(read)), read.coefficient) for read in tables.output],
        list(_slopes(tables, first)),
        [((e, *places), value) for e, sums in enumerate(tables.reads)
         for places, value in products_of(sums, tables, first)],
        means,
        shares,
    )
    every = [term for kind in kinds for term in kind]
    terms = np.zeros((len(every), _INDICES), dtype=np.int64)
    for row, (indices, _) in zip(terms, every, strict=True):
        row[: len(indices)] = indices
    fixed = [[getattr(sector, name).ravel() for sector in tables.sectors] for name in ("constant", "point")]
    return Packed(
        np.array([np.concatenate(part) for part in fixed], dtype=np.float64),
        np.cumsum([0, *(len(kind) for kind in kinds)], dtype=np.int64),
        terms, np.array([value for _, value in every], dtype=np.float64),
    )


def _energies(tables: DysonTables, first: Index) -> Iterable[Term]:
    for start, sector in zip(first, tables.sectors, strict=False):
        flat = sector.energy.reshape(len(sector.sources), len(sector.weight) ** 2)
        for i, entry in zip(*np.nonzero(flat), strict=True):
            yield (int(start + entry), int(sector.sources[i])), flat[i, entry]


def _slopes(tables: DysonTables, first: Index) -> Iterable[Term]:
    for e, sums in enumerate(tables.reads):
        for read in sums:
            point = tables.sectors[read.sector].point
            for row, column in zip(*np.nonzero(point), strict=True):
                yield (e, *_around(read, row, column, first, len(point))), read.coefficient * point[row, column]


def products_of(reads: Iterable[Read], tables: DysonTables, first: Index) -> Iterator[Term]:
    """Derivatives of a sum of traces, terms (unknown, left, right): ∂/∂u[unknown] has value·G[left]·G[right]."""
    for read in reads:
        sector = tables.sectors[read.sector]
        for i, row, column in zip(*np.nonzero(sector.energy), strict=True):
            places = _around(read, row, column, first, len(sector.weight))
            yield (int(sector.sources[i]), *places), read.coefficient * sector.energy[i, row, column]


def _around(read: Read, row: int, column: int, first: Index, size: int) -> tuple[int, int]:
    """The entries (p, row) and (column, q) whose product the entry (p, q) of G·E·G has from E at (row, column)."""
    start = int(first[read.sector])
    return start + read.row * size + int(row), start + int(column) * size + read.column


def _traces(tables: DysonTables, first: Index) -> tuple[list[Term], list[Term]]:
    """The terms of `MEANS` and `SHARES`."""
    means: list[Term] = []
    shares: list[Term] = []
    start = 0
    for average in tables.averages:
        sectors = [tables.sectors[k] for k, _ in average]
        size, weight = len(sectors[0].weight), sectors[0].weight
        root = (np.sqrt(weight)[:, None] / np.sqrt(weight)).ravel()
        if any(sector.point.any() or sector.sources.size for sector in sectors):
            means.append(((start, size), 0.0))
        for k, share in average:
            shares += [((start + i, int(first[k]) + i), share * root[i]) for i in range(size * size)]
        start += size * size
    return means, shares
