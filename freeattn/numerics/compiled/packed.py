"""The tables of a Dyson equation as flat arrays, the same types for every law: kernels are compiled once for all.

The matrices of all sectors at one point are one vector of Σ b² entries, sector after sector, row by row. Everything
that is linear or bilinear in it is a list of terms: some indices, and a coefficient.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from freeattn.numerics.dyson_tables import DysonTables, Read, copy_roots

__all__ = ["BLOCKS", "ENERGY", "MEANS", "OUTPUT", "PRODUCTS", "READS", "SHARES", "SLOPES", "Packed", "TraceMatrix",
           "first_entries", "packed", "products_of", "trace_matrices"]

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
    sizes, first = [len(sector.weight) for sector in tables.sectors], first_entries(tables)

    def place(read: Read) -> tuple[int, ...]:
        start, size = int(first[read.sector]), sizes[read.sector]
        row, column = start + read.row * size, start + read.column
        return row + read.column, row, column, size, row + read.row, column + read.column * size

    traces = list(trace_matrices(tables, first))
    kinds: tuple[list[Term], ...] = (
        [((int(start), size), 0.0) for start, size in zip(first[:-1], sizes, strict=True)],
        list(_energies(tables, first)),
        [((e, *place(read)), read.coefficient) for e, sums in enumerate(tables.reads) for read in sums],
        [((0, *place(read)), read.coefficient) for read in tables.output],
        list(_slopes(tables, first)),
        [((e, *places), value) for e, sums in enumerate(tables.reads)
         for places, value in products_of(sums, tables, first)],
        [((matrix.start, matrix.size), 0.0) for matrix in traces if not matrix.constant],
        [((own, entry), share * root) for matrix in traces for own, entry, share, root in matrix.terms()],
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


def first_entries(tables: DysonTables) -> Index:
    """Where the matrices of the sectors start in the vector of all entries, and its length."""
    return np.cumsum([0, *(len(sector.weight) ** 2 for sector in tables.sectors)])


class TraceMatrix(NamedTuple):
    """One matrix of traces, row by row: the mean of the matrices of some sectors, in units of its copies.

    Attributes:
        start: its first own entry, in the vector of all matrices of traces.
        size: its rows.
        constant: whether it is the same at all points.
        roots: `copy_roots` at each own entry (size²).
        shares: (first entry of a sector, share) of each one; an own entry is root · Σ share · entry.
    """

    start: int
    size: int
    constant: bool
    roots: Real
    shares: tuple[tuple[int, float], ...]

    def terms(self) -> Iterator[tuple[int, int, float, float]]:
        """(own entry, entry, share, root) of every product of that sum."""
        for first, share in self.shares:
            for i, root in enumerate(self.roots.tolist()):
                yield self.start + i, first + i, share, root


def trace_matrices(tables: DysonTables, first: Index) -> Iterator[TraceMatrix]:
    """All matrices of traces, one after another."""
    start = 0
    for average in tables.averages:
        sectors = [tables.sectors[k] for k, _ in average]
        size = len(sectors[0].weight)
        yield TraceMatrix(
            start, size, not any(sector.moves for sector in sectors), copy_roots(sectors[0].weight).ravel(),
            tuple((int(first[k]), share) for k, share in average),
        )
        start += size**2
