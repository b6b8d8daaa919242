"""Balls around one point, compiled: the bounds of `trace_balls` for complex unknowns, sector by sector.

Everything is in units of the natural sizes of the unknowns. A value that is not finite makes every comparison fail.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from freeattn.numerics.array_balls import TINY
from freeattn.numerics.compiled.algebra import cholesky
from freeattn.numerics.compiled.kernels import LARGE, TERMS, A, G
from freeattn.numerics.compiled.packed import BLOCKS, ENERGY, PRODUCTS
from freeattn.numerics.compiled.pairs import UNIT, relative
from freeattn.numerics.compiled.scalars import kernel, modulus, scaled
from freeattn.numerics.trace_balls import GOOD_DEFECT, LARGEST_DEFECT, MOST_BALANCING

__all__ = ["Bounds", "contraction", "derivatives", "in_cone", "inverses", "room", "size_of", "spread_of"]


class Bounds(NamedTuple):
    """Over the polydisc: radii of inverses and of Jacobian entries, the entries, those of m, and K."""

    inverse: Any
    middle: Any
    radius: Any
    slope: Any
    slope_radius: Any
    defect: Any


@kernel
def room(entries: int, count: int) -> Any:
    """Arrays for the bounds of one point."""
    return Bounds(np.empty(entries), np.empty((count, count), np.complex128), np.empty((count, count)),
                  np.empty(count, np.complex128), np.empty(count), np.empty((count, count)))


@kernel
def spread_of(t: Any, x: Any, sizes: Any, wide: float, z: complex) -> Any:
    """How far entries of A move over the polydisc and by rounding of z."""
    spread, around = np.zeros(t.fixed.shape[1]), modulus(z) * 2 * UNIT + TINY
    for m in range(len(spread)):
        spread[m] = around * t.fixed[1, m]
    for i in range(t.sections[ENERGY], t.sections[ENERGY + 1]):
        spread[t.terms[i, 0]] += abs(t.values[i]) * sizes[t.terms[i, 1]] * wide
    for m in range(len(spread)):
        spread[m] *= 1 + x.slacks[0]
    return spread


@kernel
def inverses(t: Any, x: Any, w: Any, spread: Any, radius: Any) -> bool:
    """radius ← of the inverses of all matrices of the polydisc around G; false where one may be singular."""
    large = w.moduli[LARGE]
    for i in range(t.sections[BLOCKS], t.sections[BLOCKS + 1]):
        start, size = t.terms[i, 0], t.terms[i, 1]
        defect, d = np.empty((size, size)), np.empty(size)
        _defect(x, w, spread, start, defect)
        share = _balanced(large, start, defect, d)
        if not share < LARGEST_DEFECT:
            return False
        _radii(large, start, defect, d, share, radius)
    return True


@kernel
def _defect(x: Any, w: Any, spread: Any, start: int, defect: Any) -> None:
    """T ≥ |1 − GA| for all A of the polydisc."""
    a, g, large, sums = w.entries[A], w.entries[G], w.moduli[LARGE], w.moduli[TERMS]
    size = len(defect)
    terms = relative(size)
    for p in range(size):
        for q in range(size):
            total, bound = (1.0 if p == q else 0.0) + 0.0j, 0.0
            for j in range(size):
                m = start + j * size + q
                left = start + p * size + j
                total -= g[left] * a[m]
                bound += large[left] * (
                    terms * modulus(a[m]) + (spread[m] + x.slacks[0] * sums[m]) * (1 + x.slacks[0]) + TINY)
            defect[p, q] = modulus(total) + (terms if p == q else 0.0) + TINY + bound * (1 + terms)


@kernel
def _balanced(large: Any, start: int, defect: Any, d: Any) -> float:
    """d ← units of rows, by the sizes of entries of G, in which α with T·d ≤ α·d is small; returns α."""
    size = len(d)
    for p in range(size):
        most = 0.0
        for q in range(size):
            most = max(most, large[start + p * size + q])
        d[p] = np.sqrt(most)
    share, following = _share(defect, d), np.empty(size)
    for _ in range(MOST_BALANCING):
        if share < GOOD_DEFECT:
            break
        for p in range(size):
            most = 0.0
            for q in range(size):
                most = max(most, large[start + p * size + q] / d[q])
            following[p] = np.sqrt(d[p] * most)
        d[:] = following
        share = _share(defect, d)
    return share


@kernel
def _radii(large: Any, start: int, defect: Any, d: Any, share: float, radius: Any) -> None:
    """radius ← |A⁻¹ − G| ≤ T|G| + α/(1 − α)·d·max(T|G|/d), column by column."""
    size = len(d)
    terms = relative(size)
    for q in range(size):
        worst = 0.0
        for p in range(size):
            total = 0.0
            for j in range(size):
                total += defect[p, j] * large[start + j * size + q]
            radius[start + p * size + q] = total
            worst = max(worst, total / d[p])
        for p in range(size):
            m = start + p * size + q
            radius[m] = (radius[m] + share / (1 - share) * d[p] * worst) * (1 + terms) + TINY


@kernel
def _share(defect: Any, d: Any) -> float:
    """α with T·d ≤ α·d; infinite where that is not finite."""
    worst = 0.0
    for p in range(len(d)):
        total = 0.0
        for q in range(len(d)):
            total += defect[p, q] * d[q]
        share = total / d[p]
        worst = max(worst, share) if share < np.inf else np.inf
    return worst * (1 + relative(len(d)))


@kernel
def size_of(w: Any, radius: Any, m: int) -> float:
    return (w.moduli[LARGE, m] + radius[m]) * (1 + relative(1))


@kernel
def derivatives(t: Any, x: Any, w: Any, sizes: Any, b: Any) -> None:
    """The Jacobian 1 − ∂Φ/∂u and ∂m/∂u over the polydisc."""
    g, count = w.entries[G], len(sizes)
    upper, lower = np.zeros((count + 1, count)), np.zeros((count + 1, count))
    middle = np.zeros((count + 1, count), np.complex128)
    for kind in range(2):
        first, last = (0, len(x.values)) if kind else (t.sections[PRODUCTS], t.sections[PRODUCTS + 1])
        for i in range(first, last):
            if kind:
                e, f, left, right = count, x.derivatives[i, 0], x.derivatives[i, 1], x.derivatives[i, 2]
                coefficient = x.values[i]
            else:
                e, f, left, right = t.terms[i, 0], t.terms[i, 1], t.terms[i, 2], t.terms[i, 3]
                coefficient = t.values[i]
            value = scaled(g[left] * g[right], coefficient)
            middle[e, f] += value
            lower[e, f] += modulus(value)
            upper[e, f] += abs(coefficient) * size_of(w, b.inverse, left) * size_of(w, b.inverse, right)
    one = relative(1)
    for f in range(count):
        for e in range(count):
            radius = upper[e, f] - lower[e, f] + x.slacks[2] * upper[e, f] + TINY
            unit, same = sizes[f] / sizes[e], 1.0 if e == f else 0.0
            b.middle[e, f] = scaled(same - middle[e, f], unit)
            b.radius[e, f] = (radius + one * (same + modulus(middle[e, f]))) * unit * (1 + one)
        radius = upper[count, f] - lower[count, f] + x.slacks[2] * upper[count, f] + TINY
        b.slope[f] = scaled(middle[count, f], sizes[f])
        b.slope_radius[f] = (radius + one * modulus(middle[count, f])) * sizes[f] * (1 + one)


@kernel
def contraction(inverse: Any, b: Any) -> float:
    """K ≥ |1 − RJ| in `defect`; returns its norm."""
    count = len(inverse)
    terms, worst = relative(count), 0.0
    for e in range(count):
        row = 0.0
        for f in range(count):
            total, bound = (1.0 if e == f else 0.0) + 0.0j, terms if e == f else 0.0
            for i in range(count):
                total -= inverse[e, i] * b.middle[i, f]
                bound += modulus(inverse[e, i]) * (b.radius[i, f] + terms * modulus(b.middle[i, f]))
            b.defect[e, f] = (modulus(total) + bound * (1 + terms)) * (1 + terms)
            row += b.defect[e, f]
        worst = max(worst, row) if row < np.inf else np.inf
    return worst * (1 + terms)


@kernel
def in_cone(x: Any, w: Any, radius: Any) -> bool:
    """Whether all matrices of traces have a positive definite imaginary part, proved."""
    g, middle, around = w.entries[G], np.zeros(len(x.roots)), np.zeros(len(x.roots))
    for i in range(len(x.shares)):
        own, m, weight = x.shares[i, 0], x.shares[i, 1], x.weights[i]
        middle[own] += weight * g[m].imag
        around[own] += weight * (radius[m] + x.slacks[3] * abs(g[m].imag))
    one = relative(1)
    for i in range(len(x.means)):
        start, size = x.means[i, 0], x.means[i, 1]
        n, r = np.empty((size, size)), np.empty((size, size))
        for p in range(size):
            for q in range(size):
                m = start + p * size + q
                n[p, q] = middle[m] * x.roots[m]
                r[p, q] = around[m] * (1 + x.slacks[3]) * x.roots[m] * (1 + one) + one * abs(n[p, q])
        if not _positive_definite(n, r):
            return False
    return True


@kernel
def _positive_definite(n: Any, radius: Any) -> bool:
    """`array_balls.positive_definite` of one matrix: row sums of |1 − X N Xᵀ| below 1 for X = L⁻¹, N ≈ L Lᵀ."""
    size = len(n)
    scale, low, turn = np.empty(size), np.zeros((size, size)), np.zeros((size, size))
    for p in range(size):
        if not n[p, p] > 0:
            return False
        scale[p] = 1 / np.sqrt(n[p, p])
    for p in range(size):
        for q in range(p + 1):
            low[p, q] = n[p, q] * scale[p] * scale[q]
    if not cholesky(low):
        return False
    for q in range(size):
        for p in range(q, size):
            total = 1.0 if p == q else 0.0
            for k in range(q, p):
                total -= low[p, k] * turn[k, q]
            turn[p, q] = total / low[p, p]
    for p in range(size):
        for q in range(size):
            turn[p, q] *= scale[q]
    terms = relative(size)
    for p in range(size):
        row = 0.0
        for q in range(size):
            total, bound = 1.0 if p == q else 0.0, 0.0
            for j in range(size):
                for k in range(size):
                    total -= turn[p, j] * n[j, k] * turn[q, k]
                    bound += abs(turn[p, j]) * (radius[j, k] + 2 * terms * abs(n[j, k]) + TINY) * abs(turn[q, k])
            row += abs(total) + bound
        if not row * (1 + terms) + terms < 1:
            return False
    return True
