"""A Dyson system as arrays: small matrices that are linear in the unknown traces, with numbers for all weights."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from freeattn.numerics.compile import rational_value
from freeattn.theory.dyson import DysonSystem, Node, Sector
from freeattn.theory.self_energy import Trace

__all__ = ["DysonTables", "Read", "SectorTable", "mapped", "number_of", "tables_of"]

Real = NDArray[Any]  # of doubles, or of mpmath numbers
_DIGITS = 17  # of weights that are not rational: below the rounding of doubles


@dataclass(frozen=True)
class SectorTable:
    """The matrix of one sector at one node, b × b: constant − z·point − Σ_i u_e·energy[i], e = sources[i].

    `weight` is the number of copies of each block that the sector sums over: √(weight_p/weight_q) × (entry p, q) is
    symmetric.
    """

    constant: Real
    point: Real
    sources: NDArray[np.intp]
    energy: Real
    weight: Real


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
    known, make = dict(values or {}), number or _double

    def convert(expression: Any) -> Any:
        return make(expression.subs(known))

    return _assembled(system, lru_cache(maxsize=None)(convert))


def _assembled(system: DysonSystem, number: Callable[[Any], Any]) -> DysonTables:
    first = np.cumsum([0, *(len(sector.nodes) for sector in system.sectors)])
    return DysonTables(
        tuple(table for sector in system.sectors for table in _tables(system, sector, number)),
        tuple(_reads(system, trace, first, number) for trace in system.entering),
        tuple(
            Read(table, row, column, number(share) * coefficient)
            for share, trace in system.outputs
            for table, row, column, coefficient in _reads(system, trace, first, number)
        ),
        tuple(
            tuple((int(start) + i, number(node.weight)) for i, node in enumerate(sector.nodes))
            for start, sector in zip(first[:-1], system.sectors, strict=True)
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


def _tables(system: DysonSystem, sector: Sector, number: Any) -> list[SectorTable]:
    """One table for each node of a sector."""
    blocks, index = sector.blocks, {trace: e for e, trace in enumerate(system.entering)}
    place = {p: i for i, p in enumerate(blocks)}
    copies = np.array([number(system.copies_below(p, sector.depth)) for p in blocks])
    energy = np.zeros((len(index), len(blocks), len(blocks)), dtype=copies.dtype)
    for target, weight, source in system.terms:
        if target.level >= sector.depth and target.row in place and target.column in place:
            for p, q in {(target.row, target.column), (target.column, target.row)}:
                energy[index[source], place[p], place[q]] += number(weight * system.copies_below(q, target.level))
    corner = [p < system.pencil.corners for p in blocks]
    scales = [number(system.pencil.scales[p]) for p in blocks]
    pairs = np.array([[scale * (system.pencil.partners[p] == q) for q in blocks]
                      for p, scale in zip(blocks, scales, strict=True)])
    point = np.diag(np.array(corner, dtype=float))
    sources = np.flatnonzero(np.any(energy != 0, axis=(1, 2)))
    return [
        SectorTable(_fixed(system, sector, node, number) - (pairs - point), point, sources, energy[sources], copies)
        for node in sector.nodes
    ]


def _fixed(system: DysonSystem, sector: Sector, node: Node, number: Any) -> Real:
    values = dict(node.values)
    entries = ([system.fixed(sector, p, q) for q in sector.blocks] for p in sector.blocks)
    return np.array([[number(entry.xreplace(values)) if entry else 0.0 for entry in row] for row in entries])


def _reads(system: DysonSystem, trace: Trace, first: NDArray[np.intp], number: Any) -> tuple[Read, ...]:
    """A trace: the entry in the sector of its depth, minus the one where more indices agree (if any), by copies.

    `first` is the number of the first table of each sector; entries are averaged over the nodes of a sector.
    """
    share = 1 / number(system.copies_below(trace.column, trace.level))
    deeper = min((t.level for t in system.traces if t[:2] == trace[:2] and t.level > trace.level), default=None)
    depths = [(trace.level, share)] if deeper is None else [(trace.level, share), (deeper, -share)]
    found = []
    for depth, coefficient in depths:
        k = _sector_of(system, trace, depth)
        row, column = map(system.sectors[k].blocks.index, trace[:2])
        found += [
            Read(int(first[k]) + i, row, column, coefficient * number(node.weight))
            for i, node in enumerate(system.sectors[k].nodes)
        ]
    return tuple(found)


def _sector_of(system: DysonSystem, trace: Trace, depth: int) -> int:
    scope = system.pencil.blocks[trace.row].scope[:depth]
    for k, sector in enumerate(system.sectors):
        if sector.scope == scope and trace.row in sector.blocks and trace.column in sector.blocks:
            return k
    raise LookupError(f"{trace} is in no sector of depth {depth}")
