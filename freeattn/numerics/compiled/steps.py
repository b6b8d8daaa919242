"""One step of the chord method in doubles, compiled: the rules of `chord`, for numbers with one or two components.

Vectors are those of `lifts`; t is the equation entry by entry (`lifts.Long`).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from freeattn.numerics.compiled.scalars import kernel

__all__ = ["Chord", "correction", "largest", "magnification"]


class Chord(NamedTuple):
    """The equation at one point in doubles, in balanced units: G, coefficients (those of z in the unit of z), and the
    inverse of the Jacobian in all components of u, and of z where that is an unknown."""

    column: Any
    energy: Any
    reads: Any
    constant: Any
    point: Any
    solver: Any


@kernel
def largest(values: Any, low: int) -> float:
    """The largest modulus from `low` on; not-a-number counts as infinite."""
    found = 0.0
    for i in range(low, len(values)):
        size = abs(values[i])
        found = max(found, size) if size < np.inf else np.inf
    return found


@kernel
def magnification(t: Any, chord: Any, bordered: bool) -> Any:
    """(how many times the largest residual a correction may be, bits below the largest entry at which entries matter).

    A product of norms: of G from both sides, of the reads, of E (and of z), of the solver.
    """
    column = chord.column
    left = right = reads = energy = solver = 0.0
    for i in range(len(t.blocks)):
        start, size = t.blocks[i, 0], t.blocks[i, 1]
        for p in range(size):
            row = across = 0.0
            for q in range(size):
                for part in range(len(column)):
                    row += abs(column[part, start + p * size + q])
                    across += abs(column[part, start + q * size + p])
            left, right = max(left, row), max(right, across)
    reads, energy = _run(t.reads[:, 0], chord.reads), _run(t.energy[:, 0], chord.energy)
    if bordered:
        energy += largest(chord.point, 0)
    for i in range(len(chord.solver)):
        total = 0.0
        for j in range(len(chord.solver)):
            total += abs(chord.solver[i, j])
        solver = max(solver, total)
    traces = solver * (1 + reads * left * (1 + right))
    spread = 0
    for norm in (reads, energy):
        if norm > 0:
            spread += max(int(np.log2(norm)) + 1, 0)
    return max(traces, left * (1 + right * (1 + energy * traces))), spread


@kernel
def _run(owners: Any, values: Any) -> float:
    """The largest sum of moduli over a run of one owner."""
    found = total = 0.0
    for i in range(len(values)):
        total = abs(values[i]) + (total if i and owners[i] == owners[i - 1] else 0.0)
        found = max(found, total)
    return found


@kernel
def correction(t: Any, chord: Any, square: int, residual: Any, step: Any) -> None:
    """step ← one step of the chord method, as in `chord`."""
    components, entries = chord.column.shape
    traces, count = components * entries, (len(residual) - 1) // components - entries - t.moving
    changes = traces + components * count
    rest, known = np.empty((components, entries)), np.empty((components, entries))
    _without(t, chord, square, residual, residual, rest)
    _times(t, chord, square, rest, known)
    right = np.zeros(len(chord.solver))
    for part in range(components):
        for e in range(count):
            right[part * count + e] = residual[traces + part * count + e]
        for i in range(len(t.reads)):
            right[part * count + t.reads[i, 0]] += chord.reads[i] * known[part, t.reads[i, 1]]
    if len(right) > components * count:
        right[components * count] = residual[len(residual) - 1]
    for i in range(len(residual)):
        step[i] = residual[i]
    for i in range(len(right)):
        total = 0.0
        for j in range(len(right)):
            total += chord.solver[i, j] * right[j]
        step[traces + i if i < components * count else len(step) - 1] = total
    for part in range(components):
        for i in range(len(t.energy)):
            step[changes + part * t.moving + t.energy[i, 0]] -= (
                chord.energy[i] * step[traces + part * count + t.energy[i, 1]])
    if len(right) > components * count:
        for i in range(len(t.point)):
            step[changes + t.point[i]] -= chord.point[i] * step[len(step) - 1]
    _without(t, chord, square, residual, step, rest)
    _times(t, chord, square, rest, known)
    for part in range(components):
        for m in range(entries):
            step[part * entries + m] = known[part, m]


@kernel
def _without(t: Any, chord: Any, square: int, residual: Any, changes: Any, rest: Any) -> None:
    """rest ← R − δa·G."""
    components, entries = chord.column.shape
    first = len(changes) - 1 - components * t.moving
    for part in range(components):
        for m in range(entries):
            rest[part, m] = residual[part * entries + m]
    for left in range(components):
        for right in range(components):
            sign = -square if left and right else -1
            for i in range(t.moving):
                change = sign * changes[first + left * t.moving + i]
                for j in range(t.places[i, 2]):
                    rest[left ^ right, t.places[i, 0] + j] += change * chord.column[right, t.places[i, 1] + j]


@kernel
def _times(t: Any, chord: Any, square: int, rest: Any, found: Any) -> None:
    """found ← G·rest."""
    components, column = len(rest), chord.column
    found[:] = 0.0
    for left in range(components):
        for right in range(components):
            sign = square if left and right else 1
            for i in range(len(t.blocks)):
                start, size = t.blocks[i, 0], t.blocks[i, 1]
                for p in range(size):
                    for q in range(size):
                        factor = sign * column[left, start + p * size + q]
                        for j in range(size):
                            found[left ^ right, start + p * size + j] += factor * rest[right, start + q * size + j]
