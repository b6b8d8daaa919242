"""Roots of a Dyson equation digit by digit: `lifting` and `chord` as one loop on limbs.

Unknowns, residuals and rounds are those described there. Numbers have two components, x + yε with ε² = `square`, or
one (`REAL_NUMBERS`). Vectors hold, component by component, the entries of G, the traces u, the moving
entries of a = C − zP − E(u), and z at the end.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from freeattn.numerics.compiled.balance import REGULAR, balance
from freeattn.numerics.compiled.limbs import LIMB, accumulate, carry, cut, leading, place
from freeattn.numerics.compiled.scalars import kernel
from freeattn.numerics.compiled.steps import Chord, correction, largest, magnification
from freeattn.numerics.lifting import LEADING_BITS, SHORT_BITS

__all__ = ["LEFT", "LIFTED", "REAL_NUMBERS", "STALLED", "TOO_FINE", "Long", "Point", "lift", "root"]

LIFTED, STALLED, LEFT, TOO_FINE = range(4)  # a root; corrections do not shrink, lead away, need more digits than known
REAL_NUMBERS = 1  # for the square of a second unit that is not there
_GUARD = 3  # limbs below the last bit: some thousand products are cut off there
_SMALL = 24  # bits of the first limb of a short number, at most


class Long(NamedTuple):
    """One equation with all digits, entry by entry; coefficients are those of E, of the reads, of C, of P.

    Attributes:
        blocks: first entry and size of each sector.
        places: of each entry of a: where its row of G and the row of G of its column begin, and the size.
        moving: how many places hold unknowns or z.
        mantissas, exponents: coefficients as limbs, the first one in units of 2^exponent.
        doubles: the same coefficients.
        units: of each coefficient four places in (units of rows, of columns, of traces, 0): two of which the exponents
            are taken away, one more of these, and one that is added, to bring it to balanced units.
        energy, reads: place and unknown; unknown and entry.
        constant, point: places.
    """

    blocks: Any
    places: Any
    moving: int
    mantissas: Any
    exponents: Any
    doubles: Any
    units: Any
    energy: Any
    reads: Any
    constant: Any
    point: Any


class _Numbers(NamedTuple):
    """Limbs of G, a, coefficients, ℓ, (u, z), residuals, and of corrections."""

    inverse: Any
    matrix: Any
    weights: Any
    gauge: Any
    traces: Any
    errors: Any
    shorts: Any


class Point(NamedTuple):
    """Where the root is: limbs of −z and their exponents, component by component; |z| in doubles. Where z is an unknown
    none, the exponent of its unit, and ℓ of ℓ·(second component of u) = 1, empty elsewhere."""

    minus_z: Any
    exponents: Any
    size: float
    unit: int
    gauge: Any


@kernel
def lift(t: Any, square: int, column: Any, solver: Any, units: Any, point: Any, start: Any, limits: Any) -> Any:
    """(status, size of the last correction, unit, limbs of G, limbs of u and z).

    `units` are the exponents of rows, columns and traces, and 0. `limits`: bits wanted, bits that weights have, those
    of rounding, least gain, largest first correction, bits of safety.
    """
    gauge, exponents = point.gauge, t.exponents.copy()
    doubles = np.empty(len(exponents))
    ends = np.array([len(t.energy), len(t.reads), len(t.constant), len(t.point)]).cumsum()
    for i in range(len(exponents)):
        shift = units[t.units[i, 3]] - units[t.units[i, 0]] - units[t.units[i, 1]] - units[t.units[i, 2]]
        shift += point.unit if i >= ends[2] else 0
        exponents[i] += shift
        doubles[i] = t.doubles[i] * 2.0**shift * (point.size if i >= ends[2] else 1.0)
    chord = Chord(column, doubles[: ends[0]], doubles[ends[0] : ends[1]], doubles[ends[1] : ends[2]],
                   doubles[ends[2] :], solver)
    magnified, spread = magnification(t, chord, len(gauge) > 0)
    lost = np.floor(np.log2(magnified)) if magnified < np.inf else limits[1]
    bits = int(limits[0] + limits[2] + lost)
    if bits > limits[1]:
        return TOO_FINE, magnified, 0, np.zeros(0, np.int32), np.zeros(0, np.int32)
    unit = _headroom(t, chord, start)
    length = unit + 1 + (bits + LIMB - 1) // LIMB + _GUARD
    n = _numbers(t, chord, len(start), len(gauge), length, 1 + (SHORT_BITS + spread + LIMB - 1) // LIMB)
    _begin(t, n, square, exponents, point, start, unit, length)
    residual, step = np.empty(len(start)), np.empty(len(start))
    window = 2 + (LEADING_BITS + spread) // LIMB
    enough, last, gain, top = -limits[0] - lost, np.inf, np.inf, 0
    while True:
        top = _first(n, length, top)
        most = _residual(n, residual, length, top, window)
        if most == 0 or np.log2(most) + LIMB * (unit - top) <= enough:
            return LIFTED, last, unit, n.inverse, n.traces
        exponent = LIMB * (unit - top)
        correction(t, chord, square, residual, step)
        every, size = largest(step, 0), largest(step, chord.column.size)
        every, size = np.log2(every) + exponent, (np.log2(size) if size > 0 else -np.inf) + exponent
        if not (size < last - limits[3] and every <= LIMB * (unit - 1)):
            return STALLED, size, unit, n.inverse, n.traces
        if size > limits[4]:
            return LEFT, size, unit, n.inverse, n.traces
        gain = min(gain, last - size)
        first = unit - int(np.ceil((every - _SMALL) / LIMB))
        cut(step, n.shorts, 2.0 ** (exponent - LIMB * (unit - first)))
        if gain < np.inf and every - gain < -limits[0] - limits[5]:
            _move(n, first, length)
            return LIFTED, size, unit, n.inverse, n.traces
        _add(t, n, square, first, unit, length)
        top, last = max(first - unit - 1, 0), size


@kernel
def root(
    packed: Any, copies: Any, t: Any, real: bool, u: Any, z: complex, point: Any, limits: Any, most_lost: float
) -> Any:
    """(status of the start, exponents of units, what `lift` returns) at a solution in doubles.

    `copies` are √(copies of the row / copies of the column) at each entry, and half the logarithm of each row's.
    Bits are added for how far m, or Im m off the real branch, is below what its reads of entries of size 1 add up to,
    `most_lost` at most.
    """
    count, rows = len(u), len(copies[1])
    column, units = np.empty((2, len(copies[0]))), np.zeros(2 * rows + count + 1, np.int64)
    inverse = np.empty((count, count), np.complex128)
    status, share, height = balance(packed, copies[0], copies[1], u, z, column, units[:rows], units[rows : 2 * rows],
                                    units[2 * rows : 2 * rows + count], inverse)
    parts = 1 if real else 2
    solver, start = np.empty((parts * count, parts * count)), np.zeros(parts * (column.shape[1] + count + t.moving) + 1)
    for part in range(parts):
        for m in range(column.shape[1]):
            start[part * column.shape[1] + m] = column[part, m]
    for e in range(count):
        unit = 2.0 ** units[2 * rows + e]
        for part in range(parts):
            start[parts * column.shape[1] + part * count + e] = (u[e].imag if part else u[e].real) * unit
        for i in range(count):
            for part in range(parts):
                solver[part * count + e, part * count + i] = inverse[e, i].real
            if parts == 2:
                solver[e, count + i], solver[count + e, i] = -inverse[e, i].imag, inverse[e, i].imag
    share = share if real else height
    limits[0] += min(max(np.floor(-np.log2(share)), 0.0), most_lost) if share > 0 else most_lost
    if status != REGULAR:
        return status, units, (STALLED, np.inf, 0, np.zeros(0, np.int32), np.zeros(0, np.int32))
    return status, units, lift(t, REAL_NUMBERS if real else -1, column[:parts], solver, units, point, start, limits)


@kernel
def _first(n: Any, length: int, low: int) -> int:
    """The first limb at which a residual is not 0."""
    rows = len(n.errors) // length
    for k in range(low, length):
        for row in range(rows):
            if n.errors[row * length + k] != 0:
                return k
    return length


@kernel
def _residual(n: Any, residual: Any, length: int, top: int, window: int) -> float:
    """residual ← the leading digits in the unit of the limb `top`; returns the largest modulus."""
    for row in range(len(residual)):
        residual[row] = leading(n.errors, row, length, top, window)
    return largest(residual, 0)


@kernel
def _headroom(t: Any, chord: Any, start: Any) -> int:
    """Limbs above 1 that hold all numbers and products of two of them."""
    matrix = np.zeros(len(t.places))
    for i in range(len(t.energy)):
        matrix[t.energy[i, 0]] += abs(chord.energy[i])
    size = 1.0
    for part in (matrix, chord.reads, chord.constant, chord.point):
        size += largest(part, 0)
    return 2 + int(np.ceil((np.log2(size) + 2 * np.log2(1 + largest(start, 0))) / LIMB))


@kernel
def _numbers(t: Any, chord: Any, rows: int, gauge: int, length: int, pieces: int) -> Any:
    components, entries = chord.column.shape
    traces = rows - components * (entries + t.moving)
    return _Numbers(
        np.zeros(components * entries * length, np.int32), np.zeros(components * len(t.places) * length, np.int32),
        np.zeros(len(t.mantissas) * length, np.int32), np.zeros(gauge * length, np.int32),
        np.zeros(traces * length, np.int32), np.zeros(rows * length, np.int64), np.zeros((rows, pieces), np.int32),
    )


# Limbs ---------------------------------------------------------------------------------------------------------------


@kernel
def _begin(t: Any, n: Any, square: int, exponents: Any, point: Any, start: Any, unit: int, length: int) -> None:
    """G and u (and z) as short numbers, a exactly what they give, and the residuals."""
    weights = np.zeros(len(n.weights), np.int64)
    for row in range(len(exponents)):
        place(weights, row, length, unit, t.mantissas, row, exponents[row])
        carry(weights, row, length, 0, length)
    n.weights[:] = weights
    components = 1 if square == REAL_NUMBERS else 2
    first = unit - int(np.ceil((np.log2(largest(start, 0)) - _SMALL) / LIMB))
    cut(start, n.shorts, 2.0 ** (LIMB * (first - unit)))
    _move(n, first, length)
    _matrix(t, n, exponents, point, components, first, unit, length)
    for i in range(len(t.blocks)):
        for p in range(t.blocks[i, 1]):
            n.errors[(t.blocks[i, 0] + p * (t.blocks[i, 1] + 1)) * length + unit] = 1
    if len(point.gauge):
        _gauge(n, point.gauge, unit, length)
        n.errors[len(n.errors) - length + unit] = 1
    _reads(t, n, first, unit, length, components)
    _left_product(t, n, square, first, unit, length)
    for row in range(len(start)):
        carry(n.errors, row, length, 0, length)


@kernel
def _matrix(
    t: Any, n: Any, exponents: Any, point: Any, components: int, first: int, unit: int, length: int
) -> None:
    """a = C − zP − E(u) from short numbers u (and z)."""
    entries, traces = len(n.inverse) // length, (len(n.traces) // length - 1) // components
    energies, reads, constants, places = len(t.energy), len(t.reads), len(t.constant), len(t.places)
    matrix = np.zeros(len(n.matrix), np.int64)
    for i in range(constants):
        for k in range(length):
            matrix[t.constant[i] * length + k] += n.weights[(energies + reads + i) * length + k]
    for i in range(len(t.point)):
        source = energies + reads + constants + i
        for part in range(len(point.minus_z)):
            place(matrix, part * places + t.point[i], length, unit, point.minus_z, part,
                  point.exponents[part] + exponents[source])
        if len(point.gauge):
            accumulate(matrix, t.point[i], n.weights, source, length, unit, n.shorts, len(n.shorts) - 1, first, -1)
    for part in range(components):
        for i in range(energies):
            accumulate(matrix, part * places + t.energy[i, 0], n.weights, i, length, unit, n.shorts,
                       entries + part * traces + t.energy[i, 1], first, -1)
    for row in range(components * places):
        carry(matrix, row, length, 0, length)
    n.matrix[:] = matrix


@kernel
def _gauge(n: Any, gauge: Any, unit: int, length: int) -> None:
    """ℓ as long numbers; what is below the last bit of a double of size 1 is cut off."""
    shorts = np.zeros((len(gauge), 3), np.int32)
    cut(gauge, shorts, 1.0)
    for e in range(len(gauge)):
        for i in range(3):
            n.gauge[e * length + unit + i] = shorts[e, i]
        carry(n.gauge, e, length, 0, length)


@kernel
def _move(n: Any, first: int, length: int) -> None:
    """G, u and z with the corrections added."""
    inverse, traces = len(n.inverse) // length, len(n.traces) // length - 1
    for row in range(inverse):
        _shift(n.inverse, row, n.shorts, row, first, length)
    for row in range(traces):
        _shift(n.traces, row, n.shorts, inverse + row, first, length)
    _shift(n.traces, traces, n.shorts, len(n.shorts) - 1, first, length)


@kernel
def _shift(longs: Any, row: int, shorts: Any, short: int, first: int, length: int) -> None:
    for i in range(shorts.shape[1]):
        if first + i < length:
            longs[row * length + first + i] += shorts[short, i]
    carry(longs, row, length, first, first + shorts.shape[1])


@kernel
def _reads(t: Any, n: Any, first: int, unit: int, length: int, components: int) -> None:
    """Residuals of the traces, and of the gauge, from corrections of G and u; without carrying."""
    entries, count = len(n.inverse) // (length * components), (len(n.traces) // length - 1) // components
    for part in range(components):
        traces = components * entries + part * count
        for i in range(len(t.reads)):
            accumulate(n.errors, traces + t.reads[i, 0], n.weights, len(t.energy) + i, length, unit, n.shorts,
                       part * entries + t.reads[i, 1], first, 1)
        for e in range(count):
            for i in range(n.shorts.shape[1]):
                if first + i < length:
                    n.errors[(traces + e) * length + first + i] -= n.shorts[traces + e, i]
    for e in range(len(n.gauge) // length):
        accumulate(n.errors, len(n.shorts) - 1, n.gauge, e, length, unit, n.shorts,
                   components * entries + count + e, first, -1)


@kernel
def _left_product(t: Any, n: Any, square: int, first: int, unit: int, length: int) -> None:
    """R loses a·δG; without carrying."""
    components = 1 if square == REAL_NUMBERS else 2
    entries, places = len(n.inverse) // (length * components), len(t.places)
    for left in range(components):
        for right in range(components):
            sign = -square if left and right else -1
            if sign == 0:
                continue
            for i in range(places):
                for j in range(t.places[i, 2]):
                    accumulate(n.errors, (left ^ right) * entries + t.places[i, 0] + j, n.matrix, left * places + i,
                               length, unit, n.shorts, right * entries + t.places[i, 1] + j, first, sign)


@kernel
def _right_product(t: Any, n: Any, square: int, first: int, unit: int, length: int) -> None:
    """R loses δa·G; without carrying."""
    components = 1 if square == REAL_NUMBERS else 2
    entries = len(n.inverse) // (length * components)
    changes = len(n.shorts) - 1 - components * t.moving
    for left in range(components):
        for right in range(components):
            sign = -square if left and right else -1
            if sign == 0:
                continue
            for i in range(t.moving):
                for j in range(t.places[i, 2]):
                    accumulate(n.errors, (left ^ right) * entries + t.places[i, 0] + j, n.inverse,
                               right * entries + t.places[i, 1] + j, length, unit, n.shorts,
                               changes + left * t.moving + i, first, sign)


@kernel
def _add(t: Any, n: Any, square: int, first: int, unit: int, length: int) -> None:
    """Corrections added to the unknowns, and what they change in the residuals."""
    components, rows = (1 if square == REAL_NUMBERS else 2), len(n.shorts)
    entries, count = len(n.inverse) // length, (len(n.traces) // length - 1) // components
    changes = rows - 1 - components * t.moving
    _right_product(t, n, square, first, unit, length)
    for part in range(components):
        for i in range(len(t.energy)):
            accumulate(n.errors, changes + part * t.moving + t.energy[i, 0], n.weights, i, length, unit, n.shorts,
                       entries + part * count + t.energy[i, 1], first, -1)
        for i in range(t.moving):
            _shift(n.matrix, part * len(t.places) + i, n.shorts, changes + part * t.moving + i, first, length)
            for k in range(n.shorts.shape[1]):
                if first + k < length:
                    n.errors[(changes + part * t.moving + i) * length + first + k] -= \
                        n.shorts[changes + part * t.moving + i, k]
    if len(n.gauge):
        for i in range(len(t.point)):
            source = len(t.energy) + len(t.reads) + len(t.constant) + i
            accumulate(n.errors, changes + t.point[i], n.weights, source, length, unit, n.shorts, rows - 1, first, -1)
    _reads(t, n, first, unit, length, components)
    _left_product(t, n, square, first, unit, length)
    _move(n, first, length)
    for row in range(rows):
        carry(n.errors, row, length, max(first - unit - 1, 0), length)
