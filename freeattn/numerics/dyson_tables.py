"""A Dyson system as arrays: small matrices that are linear in the unknown traces, with numbers for all weights."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from freeattn.numerics.compile import rational_value
from freeattn.theory.dyson import DysonSystem, Sector
from freeattn.theory.self_energy import Trace, common

__all__ = ["DysonTables", "SectorTable", "number_of", "tables_of"]

Real = NDArray[np.float64]
_DIGITS = 17  # of weights that are not rational: below the rounding of doubles


@dataclass(frozen=True)
class SectorTable:
    """C − Σ_i u_e·energy[i], e = sources[i], for one sector of b blocks; −z at the corner when `has_x`.

    `constant` and `energy[i]` are b × b; `sources` are the unknowns that act on this sector; `weight` is
    the number of copies of each block that the sector sums over: √(weight_p/weight_q) × (entry p, q) is symmetric.
    """

    constant: Real
    sources: NDArray[np.intp]
    energy: Real
    has_x: bool
    weight: Real


@dataclass(frozen=True)
class DysonTables:
    """Sectors, and where each unknown u_e is read off: from `row`, `column` of `sector`, minus the same pair of blocks
    in the deeper sector (if any), divided by `copies`."""

    sectors: tuple[SectorTable, ...]
    unknowns: tuple[tuple[_Place, _Place | None, float], ...]


@dataclass(frozen=True)
class _Place:
    sector: int
    row: int
    column: int


def tables_of(system: DysonSystem, values: Mapping[Any, Any] | None = None) -> DysonTables:
    """The arrays of a Dyson system, with a number for each symbol.

    Raises:
        InputError: when a symbol has no value.
    """
    def number(expression: Any) -> float:
        return number_of(expression, values)

    sectors = tuple(_table(system, sector, number) for sector in system.sectors)
    unknowns = tuple(
        (_place(system, t, t.level), _deeper(system, t), number(system.copies_below(t.column, t.level)))
        for t in system.entering
    )
    return DysonTables(sectors, unknowns)


def number_of(expression: Any, values: Mapping[Any, Any] | None = None) -> float:
    """An expression in sizes, counts, variances and coefficients as a number.

    Raises:
        InputError: when a symbol has no value.
    """
    value = rational_value(expression.subs(dict(values or {})), _DIGITS)
    return int(value.p) / int(value.q)


def _table(system: DysonSystem, sector: Sector, number: Any) -> SectorTable:
    blocks, index = sector.blocks, {trace: e for e, trace in enumerate(system.entering)}
    place = {p: i for i, p in enumerate(blocks)}
    energy = np.zeros((len(index), len(blocks), len(blocks)))
    for target, weight, source in system.terms:
        if target.level >= sector.depth and target.row in place and target.column in place:
            for p, q in {(target.row, target.column), (target.column, target.row)}:
                energy[index[source], place[p], place[q]] += number(weight * system.copies_below(q, target.level))
    constant = np.array([[float(system.pencil.partners[p] == q and p != 0) for q in blocks] for p in blocks])
    weight = np.array([number(system.copies_below(p, sector.depth)) for p in blocks])
    sources = np.flatnonzero(np.any(energy != 0, axis=(1, 2)))
    return SectorTable(-constant, sources, energy[sources], 0 in place, weight)


def _place(system: DysonSystem, trace: Trace, depth: int) -> _Place:
    scope = system.pencil.blocks[trace.row].scope[:depth]
    for number, sector in enumerate(system.sectors):
        if sector.scope == scope and trace.row in sector.blocks and trace.column in sector.blocks:
            return _Place(number, sector.blocks.index(trace.row), sector.blocks.index(trace.column))
    raise LookupError(f"{trace} is in no sector of depth {depth}")


def _deeper(system: DysonSystem, trace: Trace) -> _Place | None:
    """The sector that asks for more agreement of the indices of the two blocks, when they are coupled there."""
    levels = [t.level for t in system.traces if t[:2] == trace[:2] and t.level > trace.level]
    scopes = (system.pencil.blocks[p].scope for p in trace[:2])
    if trace.level >= common(*scopes) or not levels:
        return None
    return _place(system, trace, min(levels))
