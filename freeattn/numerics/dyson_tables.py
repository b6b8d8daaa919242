"""A Dyson system as arrays: small matrices that are linear in the unknown traces, with numbers for all weights."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from freeattn.numerics.compile import rational_value
from freeattn.theory.dyson import DysonSystem, Sector
from freeattn.theory.evaluation import Evaluation
from freeattn.theory.self_energy import Trace

__all__ = ["DysonTables", "Read", "SectorTable", "copy_roots", "mapped", "number_of", "tables_of"]

Real = NDArray[Any]  # of doubles, or of mpmath numbers
_DIGITS = 17  # of weights that are not rational: below the rounding of doubles


@dataclass(frozen=True)
class SectorTable:
    """The matrix of one sector at one node, b × b: constant − z·point − Σ_i u_e·energy[i], e = sources[i].

    `weight` is the number of copies of each block that the sector sums over; see `copy_roots`.
    """

    constant: Real
    point: Real
    sources: NDArray[np.intp]
    energy: Real
    weight: Real

    @property
    def moves(self) -> bool:
        """Whether the matrix depends on z or on unknowns."""
        return bool(self.point.any() or self.sources.size)


def copy_roots(weight: Any) -> Real:
    """√(weight_p/weight_q), by which entries of a sector are multiplied to be symmetric (b × b)."""
    root = np.sqrt(np.asarray(weight, dtype=float))
    return np.asarray(root[:, None] / root)


class Read(NamedTuple):
    """coefficient × the entry (row, column) of the inverse of the matrix of `sector`."""

    sector: int
    row: int
    column: int
    coefficient: float


@dataclass(frozen=True)
class DysonTables:
    """Sectors, and the sums of entries of their inverses that are the unknowns u_e (`reads`) and m (`output`).

    A sector in which diagonal letters act has one table for each joint eigenvalue; the matrix of traces is the average
    of their inverses. `averages` has (table, weight) of each such matrix.
    """

    sectors: tuple[SectorTable, ...]
    reads: tuple[tuple[Read, ...], ...]
    output: tuple[Read, ...]
    averages: tuple[tuple[tuple[int, float], ...], ...]


def tables_of(
    system: DysonSystem, values: Mapping[Any, Any] | None = None, number: Callable[[Any], Any] | None = None
) -> DysonTables:
    """The arrays of a Dyson system, with a number for each symbol.

    Args:
        system: the equation.
        values: a number for each symbol.
        number: what makes a number of an expression without symbols; a double unless something else is given.

    Raises:
        InputError: when a symbol has no value.
    """
    known, make = Evaluation(values), number or _double

    def convert(expression: Any) -> Any:
        return make(known(expression))

    return _assembled(_layout_of(system), lru_cache(maxsize=None)(convert))


Entry = tuple[int, int, Any]  # row, column, an expression for what is there


@dataclass(frozen=True)
class _SectorLayout:
    """`SectorTable` with expressions for numbers; `energy` has (unknown, row, column, expression), to be added up.

    `pairs` are the entries of −C, `fixed` those of fixed letters for each node, `nodes` the weights of nodes.
    """

    corners: tuple[bool, ...]
    copies: tuple[Any, ...]
    energy: tuple[tuple[int, int, int, Any], ...]
    pairs: tuple[Entry, ...]
    fixed: tuple[tuple[Entry, ...], ...]
    nodes: tuple[Any, ...]


class _ReadLayout(NamedTuple):
    """`Read` with coefficient sign · weight / copies."""

    sector: int
    row: int
    column: int
    sign: int
    copies: Any
    weight: Any


class _Layout(NamedTuple):
    """`DysonTables` with expressions for numbers; outputs have a factor in front of their reads."""

    sectors: tuple[_SectorLayout, ...]
    reads: tuple[tuple[_ReadLayout, ...], ...]
    outputs: tuple[tuple[Any, tuple[_ReadLayout, ...]], ...]


@lru_cache(maxsize=64)
def _layout_of(system: DysonSystem) -> _Layout:
    """Where the weights of an equation stand: the same for all values of its symbols."""
    first = np.cumsum([0, *(len(sector.nodes) for sector in system.sectors)])
    return _Layout(
        tuple(_sector_layout(system, sector) for sector in system.sectors),
        tuple(_reads(system, trace, first) for trace in system.entering),
        tuple((share, _reads(system, trace, first)) for share, trace in system.outputs),
    )


def _assembled(layout: _Layout, number: Callable[[Any], Any]) -> DysonTables:
    first = np.cumsum([0, *(len(sector.nodes) for sector in layout.sectors)])

    def reads(found: tuple[_ReadLayout, ...], factor: Any = 1) -> tuple[Read, ...]:
        return tuple(
            Read(r.sector, r.row, r.column, factor * (r.sign * (1 / number(r.copies)) * number(r.weight)))
            for r in found
        )

    return DysonTables(
        tuple(table for sector in layout.sectors for table in _tables(sector, len(layout.reads), number)),
        tuple(map(reads, layout.reads)),
        tuple(read for share, found in layout.outputs for read in reads(found, number(share))),
        tuple(
            tuple((int(start) + i, number(weight)) for i, weight in enumerate(sector.nodes))
            for start, sector in zip(first[:-1], layout.sectors, strict=True)
        ),
    )


def mapped(tables: DysonTables, number: Callable[[Any], Any]) -> DysonTables:
    """The same equation with another number for every number."""
    def array(values: Real) -> Real:
        return np.array([number(value) for value in values.ravel()]).reshape(values.shape)

    def read(old: Read) -> Read:
        return old._replace(coefficient=number(old.coefficient))

    return DysonTables(
        tuple(SectorTable(array(s.constant), array(s.point), s.sources, array(s.energy), array(s.weight))
              for s in tables.sectors),
        tuple(tuple(map(read, sums)) for sums in tables.reads), tuple(map(read, tables.output)),
        tuple(tuple((k, number(weight)) for k, weight in average) for average in tables.averages),
    )


def number_of(expression: Any, values: Mapping[Any, Any] | None = None) -> float:
    """An expression in sizes, counts, variances and coefficients as a number.

    Raises:
        InputError: when a symbol has no value.
    """
    return _double(expression.subs(dict(values or {})))


def _double(expression: Any) -> float:
    value = rational_value(expression, _DIGITS)
    return int(value.p) / int(value.q)


def _sector_layout(system: DysonSystem, sector: Sector) -> _SectorLayout:
    blocks, index = sector.blocks, {trace: e for e, trace in enumerate(system.entering)}
    place, partners = {p: i for i, p in enumerate(blocks)}, system.pencil.partners
    energy = [
        (index[source], place[p], place[q], weight * system.copies_below(q, target.level))
        for target, weight, source in system.terms
        if target.level >= sector.depth and target.row in place and target.column in place
        for p, q in {(target.row, target.column), (target.column, target.row)}
    ]
    pairs = [(place[p], place[partners[p]], system.pencil.scales[p]) for p in blocks if partners[p] in place]
    entries = [(place[p], place[q], system.fixed(sector, p, q)) for p in blocks for q in blocks]
    return _SectorLayout(
        tuple(p < system.pencil.corners for p in blocks),
        tuple(system.copies_below(p, sector.depth) for p in blocks),
        tuple(energy), tuple(pairs),
        tuple(tuple((i, j, entry.xreplace(dict(node.values))) for i, j, entry in entries if entry)
              for node in sector.nodes),
        tuple(node.weight for node in sector.nodes),
    )


def _tables(layout: _SectorLayout, count: int, number: Callable[[Any], Any]) -> list[SectorTable]:
    """One table for each node of a sector of an equation with so many unknowns."""
    copies = np.array([number(value) for value in layout.copies])
    blocks, point = len(copies), np.diag(np.array(layout.corners, dtype=float))
    energy = np.zeros((count, blocks, blocks), dtype=copies.dtype)
    for e, i, j, weight in layout.energy:
        energy[e, i, j] += number(weight)
    sources = np.flatnonzero(np.any(energy != 0, axis=(1, 2)))
    pairs = _filled(layout.pairs, blocks, copies.dtype, number)
    return [
        SectorTable(_filled(fixed, blocks, copies.dtype, number) - (pairs - point), point, sources, energy[sources],
                    copies)
        for fixed in layout.fixed
    ]


def _filled(entries: tuple[Entry, ...], blocks: int, dtype: Any, number: Callable[[Any], Any]) -> Real:
    matrix = np.zeros((blocks, blocks), dtype=dtype)
    for i, j, value in entries:
        matrix[i, j] = number(value)
    return matrix


def _reads(system: DysonSystem, trace: Trace, first: NDArray[np.intp]) -> tuple[_ReadLayout, ...]:
    """A trace: the entry in the sector of its depth, minus the one where more indices agree (if any), by copies.

    `first` is the number of the first table of each sector; entries are averaged over the nodes of a sector.
    """
    copies = system.copies_below(trace.column, trace.level)
    deeper = min((t.level for t in system.traces if t[:2] == trace[:2] and t.level > trace.level), default=None)
    found = []
    for depth, sign in ((trace.level, 1), (deeper, -1)):
        if depth is not None:
            k = _sector_of(system, trace, depth)
            row, column = map(system.sectors[k].blocks.index, trace[:2])
            found += [_ReadLayout(int(first[k]) + i, row, column, sign, copies, node.weight)
                      for i, node in enumerate(system.sectors[k].nodes)]
    return tuple(found)


def _sector_of(system: DysonSystem, trace: Trace, depth: int) -> int:
    scope = system.pencil.blocks[trace.row].scope[:depth]
    for k, sector in enumerate(system.sectors):
        if sector.scope == scope and trace.row in sector.blocks and trace.column in sector.blocks:
            return k
    raise LookupError(f"{trace} is in no sector of depth {depth}")
