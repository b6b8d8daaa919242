"""Long fixed-point numbers for kernels: limbs of 26 bits with signs, and products with short numbers.

A number is Σ_k limb_k·2^(26·(unit − k)), limbs between −2^25 and 2^25: thousands of products of two of them add up in
64 bits. Many numbers of one length stand after one another in one vector. A short number is a few limbs of which the
first stands at some place k. What falls below the last limb is left out.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from freeattn.numerics.compiled.scalars import kernel

__all__ = ["LIMB", "accumulate", "carry", "cut", "leading", "place"]

LIMB = 26
_HALF = 1 << LIMB - 1
_ONE = 2.0**LIMB


@kernel
def carry(numbers: Any, row: int, length: int, low: int, high: int) -> None:
    """Limbs of a number brought to size: those from `low` on and before `high`, and on upwards while one is carried."""
    base, over, k = row * length, np.int64(0), min(high, length) - 1
    while k > 0 and (k >= low or over != 0):
        value = np.int64(numbers[base + k]) + over
        over = (value + _HALF) >> LIMB
        numbers[base + k] = value - (over << LIMB)
        k -= 1
    numbers[base + k] += over


@kernel
def accumulate(
    sums: Any, target: int, longs: Any, source: int, length: int, unit: int, shorts: Any, short: int, first: int,
    sign: int,
) -> None:
    """sums[target] += sign·longs[source]·shorts[short], without carrying.

    Indices are unsigned: signed ones are checked for counting from the end, and such loops do not become vector code.
    """
    for i in range(shorts.shape[1]):
        factor = np.int64(np.int32(sign * shorts[short, i]))
        shift = first + i - unit
        low, high = max(0, -shift), min(length, length - shift)
        if factor == 0 or high <= low:
            continue
        into, out = np.uintp(target * length + low + shift), np.uintp(source * length + low)
        for j in range(np.uintp(high - low)):
            sums[into + j] += np.int64(longs[out + j]) * factor


@kernel
def cut(values: Any, shorts: Any, scale: float) -> None:
    """values·scale as limbs; the first one has the nearest integer."""
    for row in range(len(values)):
        rest = values[row] * scale
        for i in range(shorts.shape[1]):
            limb = np.rint(rest)
            shorts[row, i] = np.int32(limb)
            rest = (rest - limb) * _ONE


@kernel
def leading(numbers: Any, row: int, length: int, top: int, window: int) -> float:
    """The number from the limb `top` on, in its unit, to so many limbs."""
    base, total = row * length, 0.0
    for k in range(min(top + window, length) - 1, top - 1, -1):
        total = total / _ONE + float(numbers[base + k])
    return total


@kernel
def place(numbers: Any, row: int, length: int, unit: int, mantissas: Any, source: int, exponent: int) -> None:
    """numbers[row] += mantissas[source]·2^exponent, without carrying; the first limb of a mantissa has the unit 1."""
    whole, rest = exponent // LIMB, exponent % LIMB
    for k in range(mantissas.shape[1]):
        at = unit - whole + k
        if 0 <= at < length:
            numbers[row * length + at] += np.int64(mantissas[source, k]) << rest
