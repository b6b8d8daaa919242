"""The program of a law that is given by a matrix Dyson equation: its small matrices, and what is read off them."""

from __future__ import annotations

from collections.abc import Iterable

import sympy as sp

from freeattn.theory import symbols as sym
from freeattn.theory.dyson import DysonSystem, Sector
from freeattn.theory.exports.program import DysonProgram, EnergyEntry, Entry, Heading, Inputs, Read, SectorProgram

__all__ = ["dyson_program", "symbols_of"]

Readings = dict[sp.Symbol, dict[tuple[int, int, int], sp.Expr]]


def dyson_program(system: DysonSystem, heading: Heading, inputs: Inputs) -> DysonProgram:
    """The program of a Dyson equation; unknowns are the traces that enter its self-energy."""
    unknowns = tuple(system.symbol(trace) for trace in system.entering)
    tables = [(k, weight, values) for k, s in enumerate(system.sectors) for weight, values in s.nodes]
    numbers = {k: [n for n, (sector, _, _) in enumerate(tables) if sector == k] for k in range(len(system.sectors))}
    readings = _readings(system)

    def reads(symbol: sp.Symbol, share: sp.Expr = sp.S.One) -> tuple[Read, ...]:
        return tuple(
            Read(number, row, column, share * coefficient * tables[number][1])
            for (sector, row, column), coefficient in readings[symbol].items() for number in numbers[sector]
        )

    return DysonProgram(
        heading=heading, inputs=inputs, unknowns=unknowns,
        sectors=tuple(_sector(system, system.sectors[k], dict(values), unknowns) for k, _, values in tables),
        reads=tuple(reads(symbol) for symbol in unknowns),
        output=tuple(read for share, trace in system.outputs for read in reads(system.symbol(trace), share)),
        averages=tuple(tuple((number, tables[number][1]) for number in group) for group in numbers.values()),
    )


def symbols_of(system: DysonSystem) -> set[sp.Symbol]:
    """The symbols of sizes, counts, variances and coefficients that the program needs."""
    inner = {sym.Z, *system.unknowns}
    values: list[sp.Expr] = [share for share, _ in system.outputs]
    for sector in system.sectors:
        values += [system.copies_below(p, 0) for p in sector.blocks]
        for node in sector.nodes:
            values += [node.weight, *system.matrix(sector, node), *system.inverse(sector)]
    return {symbol for value in values for symbol in sp.sympify(value).free_symbols} - inner


def _sector(
    system: DysonSystem, sector: Sector, values: dict[sp.Symbol, sp.Expr], unknowns: tuple[sp.Symbol, ...]
) -> SectorProgram:
    """C − Σ[g], which is affine in z and in the traces, by its derivatives."""
    matrix = system.matrix(sector).xreplace(values)
    nothing = {sym.Z: sp.S.Zero, **dict.fromkeys(unknowns, sp.S.Zero)}
    size = len(sector.blocks)
    places = [(i, j, matrix[i, j]) for i in range(size) for j in range(size)]
    return SectorProgram(
        size=size,
        constant=_entries((i, j, entry.subs(nothing)) for i, j, entry in places),
        point=_entries((i, j, sp.diff(entry, sym.Z)) for i, j, entry in places),
        energy=tuple(
            EnergyEntry(e, i, j, rate) for i, j, entry in places for e, g in enumerate(unknowns)
            if (rate := sp.diff(entry, g)) != 0
        ),
        weights=tuple(system.copies_below(p, sector.depth) for p in sector.blocks),
    )


def _entries(found: Iterable[tuple[int, int, sp.Expr]]) -> tuple[Entry, ...]:
    return tuple(Entry(i, j, value) for i, j, value in found if value != 0)


def _readings(system: DysonSystem) -> Readings:
    """Each trace as a combination of entries (sector, row, column): matrices of inverses, solved trace by trace.

    An entry is a sum over the parts of a trace that its sector sees; deeper sectors see fewer, so that in some order
    each entry has one new part.
    """
    entries = [
        ((k, i, j), sp.sympify(inverse[i, j]))
        for k, inverse in enumerate(map(system.inverse, system.sectors))
        for i in range(inverse.rows) for j in range(i, inverse.cols)
    ]
    found: Readings = {}
    while True:
        before = len(found)
        for place, entry in entries:
            new = [symbol for symbol in system.unknowns if entry.has(symbol) and symbol not in found]
            if len(new) == 1:
                found[new[0]] = _solved(entry, new[0], place, found)
        if len(found) == before:
            return found


def _solved(entry: sp.Expr, symbol: sp.Symbol, place: tuple[int, int, int], found: Readings) -> dict[
    tuple[int, int, int], sp.Expr
]:
    """The new trace of an entry, from the entry and the traces that are known."""
    scale = sp.diff(entry, symbol)
    result = {place: 1 / scale}
    for other in entry.free_symbols & set(found):
        for where, coefficient in found[other].items():
            result[where] = result.get(where, sp.S.Zero) - sp.diff(entry, other) * coefficient / scale
    return result
