"""Residuals of a Dyson equation in pairs of doubles, for proofs: u − Φ(u), m, and their errors.

Products of doubles are split exactly, sums keep what rounding takes away in the second double. A sum of n such products
is off by less than n²·2^-107 of the sum of their moduli: 2^-93 for n = 130, twice `MOST_TERMS` terms and more. With the
errors of pairs that are its terms, below 2^-91 in all, `_ROUNDING` has room.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from freeattn.numerics.array_balls import TINY
from freeattn.numerics.compiled.kernels import LARGE, TERMS, G
from freeattn.numerics.compiled.packed import BLOCKS, ENERGY, OUTPUT, READS
from freeattn.numerics.compiled.scalars import kernel, modulus, scaled

__all__ = ["MOST_TERMS", "UNIT", "relative", "residual_in_pairs", "times_exactly"]

UNIT = 2.0**-52
MOST_TERMS = 64
_ROUNDING = 2.0**-88
_SPLIT = 134217729.0  # 2^27 + 1


@kernel
def relative(terms: int) -> float:
    """`array_balls.slack`."""
    return 8.0 * (terms + 8) * UNIT


@kernel
def times_exactly(a: float, b: float) -> Any:
    """(product rounded, what is left), exactly where nothing underflows (Dekker)."""
    product = a * b
    high = a * _SPLIT
    left = high - (high - a)
    high = b * _SPLIT
    right = high - (high - b)
    a_low, b_low = a - left, b - right
    return product, ((left * right - product) + left * b_low + a_low * right) + a_low * b_low


@kernel
def _plus(high: float, low: float, a: float, b: float) -> Any:
    """The pair high + low with a·b added."""
    product, rest = times_exactly(a, b)
    total = high + product
    back = total - high
    return total, low + (((high - (total - back)) + (product - back)) + rest)


@kernel
def _accumulate(pairs: Any, m: int, a: complex, b: complex, sign: float) -> None:
    """pairs[:, m] += sign·a·b: the two doubles of the real part, and of the imaginary part."""
    high, low = _plus(pairs[0, m], pairs[1, m], sign * a.real, b.real)
    pairs[0, m], pairs[1, m] = _plus(high, low, -sign * a.imag, b.imag)
    high, low = _plus(pairs[2, m], pairs[3, m], sign * a.real, b.imag)
    pairs[2, m], pairs[3, m] = _plus(high, low, sign * a.imag, b.real)


@kernel
def _matrices(t: Any, x: Any, u: Any, z: complex, z_low: complex) -> Any:
    """A as pairs of doubles."""
    a = np.zeros((4, t.fixed.shape[1]))
    for m in range(a.shape[1]):
        a[0, m], a[1, m] = t.fixed[0, m], x.fixed[m]
        if t.fixed[1, m] != 0:
            _accumulate(a, m, complex(t.fixed[1, m], 0.0), z, -1.0)
            a[1, m] -= t.fixed[1, m] * z_low.real
            a[3, m] -= t.fixed[1, m] * z_low.imag
    for i in range(t.sections[ENERGY], t.sections[ENERGY + 1]):
        m, e, low = t.terms[i, 0], t.terms[i, 1], x.energy[i - t.sections[ENERGY]]
        _accumulate(a, m, complex(t.values[i], 0.0), u[e], -1.0)
        a[1, m] -= low * u[e].real
        a[3, m] -= low * u[e].imag
    return a


@kernel
def residual_in_pairs(
    t: Any, x: Any, w: Any, u: Any, z: complex, z_low: complex, radius: Any, values: Any, errors: Any, found: Any
) -> None:
    """values, errors ← u − Φ(u); found ← m as pairs, what corrects it, and the error; from A⁻¹ = Ĝ + A⁻¹(1 − AĜ)."""
    g, large, sums, a = w.entries[G], w.moduli[LARGE], w.moduli[TERMS], _matrices(t, x, u, z, z_low)
    correction, around = np.empty(len(g), np.complex128), np.empty(len(g))
    for i in range(t.sections[BLOCKS], t.sections[BLOCKS + 1]):
        start, size = t.terms[i, 0], t.terms[i, 1]
        _corrections(a, g, large, sums, radius, start, size, correction, around)
    pairs, change = np.zeros((4, len(u) + 1)), np.zeros(len(u) + 1, np.complex128)
    bounds, moduli = np.zeros(len(u) + 1), np.zeros(len(u) + 1)
    for e in range(len(u)):
        pairs[0, e], pairs[2, e], moduli[e] = u[e].real, u[e].imag, modulus(u[e])
    first = t.sections[READS]
    for i in range(first, t.sections[OUTPUT + 1]):
        output = i >= t.sections[OUTPUT]
        e, m, sign = len(u) if output else t.terms[i, 0], t.terms[i, 1], 1.0 if output else -1.0
        low = x.output[i - t.sections[OUTPUT]] if output else x.reads[i - first]
        _accumulate(pairs, e, complex(t.values[i], 0.0), g[m], sign)
        pairs[1, e] += sign * low * g[m].real
        pairs[3, e] += sign * low * g[m].imag
        change[e] += scaled(correction[m], t.values[i])
        bounds[e] += abs(t.values[i]) * (around[m] + x.slacks[1] * modulus(correction[m]))
        moduli[e] += abs(t.values[i]) * large[m]
    for e in range(len(u) + 1):
        bounds[e] = bounds[e] * (1 + x.slacks[1]) + _ROUNDING * moduli[e] + TINY
    for e in range(len(u)):
        values[e] = complex(pairs[0, e] + pairs[1, e], pairs[2, e] + pairs[3, e]) - change[e]
        errors[e] = bounds[e]
    found[:4] = pairs[:, len(u)]
    found[4], found[5], found[6] = change[len(u)].real, change[len(u)].imag, bounds[len(u)]


@kernel
def _corrections(
    a: Any, g: Any, large: Any, sums: Any, radius: Any, start: int, size: int, correction: Any, around: Any
) -> None:
    """correction, around ← A⁻¹(1 − AĜ) of one sector, and its radius."""
    h, spread, terms = np.empty((size, size), np.complex128), np.empty((size, size)), relative(size)
    pair = np.zeros((4, 1))
    for p in range(size):
        for q in range(size):
            pair[:] = 0.0
            pair[0, 0] = moduli = 1.0 if p == q else 0.0
            for j in range(size):
                left, m = start + p * size + j, start + j * size + q
                _accumulate(pair, 0, complex(a[0, left], a[2, left]), g[m], -1.0)
                pair[1, 0] -= a[1, left] * g[m].real - a[3, left] * g[m].imag
                pair[3, 0] -= a[1, left] * g[m].imag + a[3, left] * g[m].real
                moduli += sums[left] * large[m]
            h[p, q] = complex(pair[0, 0] + pair[1, 0], pair[2, 0] + pair[3, 0])
            spread[p, q] = modulus(h[p, q]) * 2 * UNIT + _ROUNDING * moduli + TINY
    for p in range(size):
        for q in range(size):
            total, bound = 0.0j, 0.0
            for j in range(size):
                left = start + p * size + j
                total += g[left] * h[j, q]
                bound += large[left] * (spread[j, q] + terms * modulus(h[j, q]))
                bound += radius[left] * (modulus(h[j, q]) + spread[j, q])
            correction[start + p * size + q], around[start + p * size + q] = total, bound * (1 + terms) + TINY
