"""A proof of one value in doubles, compiled: the bounds of `trace_balls` and `root_proofs` for complex unknowns.

The same statements are proved with the same bounds. Only the residual is another: F(ũ) and H = 1 − AĜ are sums of
products in pairs of doubles instead of integers. Everything is in units of the natural sizes of the unknowns. A value
that is not finite makes every comparison fail.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from freeattn.numerics.array_balls import TINY
from freeattn.numerics.compiled.algebra import cholesky, decomposed, substituted
from freeattn.numerics.compiled.kernels import LARGE, PHI, SIZES, TERMS, A, G, evaluate, jacobian, workspace
from freeattn.numerics.compiled.packed import BLOCKS, ENERGY, OUTPUT, PRODUCTS, READS
from freeattn.numerics.compiled.pairs import UNIT, relative, residual_in_pairs
from freeattn.numerics.compiled.scalars import kernel, modulus, scaled
from freeattn.numerics.root_proofs import NARROWEST, NOT_A_ROOT, ROUNDING, WIDER, WIDTHS
from freeattn.numerics.trace_balls import GOOD_DEFECT, LARGEST_DEFECT, MOST_BALANCING

__all__ = ["Lower", "prove_value"]


class Lower(NamedTuple):
    """What the flat tables of an equation lack for a proof.

    Attributes:
        fixed, energy, reads, output: second doubles of C and of coefficients, in the order of the tables.
        derivatives: (unknown, left, right), ∂m/∂u[unknown] has value·G[left]·G[right]; `values` those.
        means: (first own entry, b) of each matrix of traces; `shares`: (own entry, entry), `weights`, and `roots` that
            share out the copies of blocks at each own entry.
        slacks: relative rounding of sums over energies, reads, products, shares.
        width: how far true weights are from pairs of doubles, relative.
    """

    fixed: Any
    energy: Any
    reads: Any
    output: Any
    derivatives: Any
    values: Any
    means: Any
    shares: Any
    weights: Any
    roots: Any
    slacks: Any
    width: float


class _Bounds(NamedTuple):
    """Over the polydisc: radii of inverses and of Jacobian entries, the entries, those of m, and K."""

    inverse: Any
    middle: Any
    radius: Any
    slope: Any
    slope_radius: Any
    defect: Any


@kernel
def prove_value(t: Any, x: Any, u: Any, z: complex, z_low: complex, found: Any) -> bool:
    """Whether a root at u, unique and strictly in the cone, is proved; z + z_low is the point.

    found ← m as pairs of doubles (real part, imaginary part), what is added to it (two parts), its radius, and the
    share of the contraction.
    """
    count, w = len(u), workspace(t, len(u))
    evaluate(t, u, z, w)
    jacobian(t, w)
    sizes, inverse = w.sizes[SIZES].copy(), np.empty((count, count), np.complex128)
    if not decomposed(w.matrix, w.order):
        return False
    first = rounding = 0.0
    for e in range(count):
        column = np.zeros(count, np.complex128)
        column[e] = 1.0
        substituted(w.matrix, w.order, column)
        inverse[:, e] = column
    for e in range(count):
        step, row = 0.0j, 0.0
        for i in range(count):
            step += inverse[e, i] * scaled(u[i] - w.unknowns[PHI, i], 1 / sizes[i])
            row += modulus(inverse[e, i])
        first, rounding = max(first, modulus(step)), max(rounding, row)
    if not first < NOT_A_ROOT:
        return False
    first += ROUNDING * rounding
    entries = len(w.entries[G])
    b = _Bounds(np.empty(entries), inverse.copy(), np.empty((count, count)), np.empty(count, np.complex128),
                np.empty(count), np.empty((count, count)))
    values, errors, disturbed = np.empty(count, np.complex128), np.empty(count), np.empty(count + 1)
    for share in WIDTHS:
        wide = share * (WIDER * first + NARROWEST)
        spread = _spread(t, x, sizes, wide * (1 + relative(1)), z)
        if not _inverses(t, x, w, spread, b.inverse):
            return False
        _derivatives(t, x, w, sizes, b)
        contracted = _contraction(inverse, b)
        if not contracted < LARGEST_DEFECT:
            return False
        _disturbance(t, x, w, spread, b.inverse, disturbed)
        residual_in_pairs(t, x, w, u, z, z_low, b.inverse, values, errors, found)
        for e in range(count):
            values[e] = scaled(values[e], 1 / sizes[e])
            errors[e] = (errors[e] + disturbed[e]) / sizes[e] * (1 + relative(1))
        omega = _correction(inverse, values, errors)
        if omega <= (1 - contracted) * wide * (1 - relative(1)):
            _value(inverse, b, values, errors, disturbed[count], omega / (1 - contracted), found)
            found[7] = contracted
            return _in_cone(x, w, b.inverse)
    return False


@kernel
def _spread(t: Any, x: Any, sizes: Any, wide: float, z: complex) -> Any:
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
def _inverses(t: Any, x: Any, w: Any, spread: Any, radius: Any) -> bool:
    """radius ← of the inverses of all matrices of the polydisc around G; false where one may be singular."""
    a, g, large, sums = w.entries[A], w.entries[G], w.moduli[LARGE], w.moduli[TERMS]
    for i in range(t.sections[BLOCKS], t.sections[BLOCKS + 1]):
        start, size = t.terms[i, 0], t.terms[i, 1]
        terms, defect, d = relative(size), np.empty((size, size)), np.empty(size)
        for p in range(size):
            d[p] = 0.0
            for q in range(size):
                total, bound = (1.0 if p == q else 0.0) + 0.0j, 0.0
                d[p] = max(d[p], large[start + p * size + q])
                for j in range(size):
                    m = start + j * size + q
                    left = start + p * size + j
                    total -= g[left] * a[m]
                    bound += large[left] * (
                        terms * modulus(a[m]) + (spread[m] + x.slacks[0] * sums[m]) * (1 + x.slacks[0]) + TINY)
                defect[p, q] = modulus(total) + (terms if p == q else 0.0) + TINY + bound * (1 + terms)
            d[p] = np.sqrt(d[p])
        share = _share(defect, d)
        for _ in range(MOST_BALANCING):
            if share < GOOD_DEFECT:
                break
            following = np.empty(size)
            for p in range(size):
                most = 0.0
                for q in range(size):
                    most = max(most, large[start + p * size + q] / d[q])
                following[p] = np.sqrt(d[p] * most)
            d = following
            share = _share(defect, d)
        if not share < LARGEST_DEFECT:
            return False
        for q in range(size):
            worst = 0.0
            for p in range(size):
                total_bound = 0.0
                for j in range(size):
                    total_bound += defect[p, j] * large[start + j * size + q]
                radius[start + p * size + q] = total_bound
                worst = max(worst, total_bound / d[p])
            for p in range(size):
                m = start + p * size + q
                radius[m] = (radius[m] + share / (1 - share) * d[p] * worst) * (1 + terms) + TINY
    return True


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
def _size(w: Any, radius: Any, m: int) -> float:
    return (w.moduli[LARGE, m] + radius[m]) * (1 + relative(1))


@kernel
def _derivatives(t: Any, x: Any, w: Any, sizes: Any, b: Any) -> None:
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
            upper[e, f] += abs(coefficient) * _size(w, b.inverse, left) * _size(w, b.inverse, right)
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
def _contraction(inverse: Any, b: Any) -> float:
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
def _disturbance(t: Any, x: Any, w: Any, spread: Any, radius: Any, disturbed: Any) -> None:
    """How far Φ and m (last) of true weights may be from those of the pairs of doubles."""
    sums, moved = w.moduli[TERMS], np.empty(len(spread))
    for i in range(t.sections[BLOCKS], t.sections[BLOCKS + 1]):
        start, size = t.terms[i, 0], t.terms[i, 1]
        half = np.empty((size, size))
        for p in range(size):
            for q in range(size):
                half[p, q] = 0.0
                for j in range(size):
                    m = start + j * size + q
                    half[p, q] += _size(w, radius, start + p * size + j) * (sums[m] + spread[m])
        for p in range(size):
            for q in range(size):
                total = _size(w, radius, start + p * size + q)
                for j in range(size):
                    total += half[p, j] * _size(w, radius, start + j * size + q)
                moved[start + p * size + q] = total
    disturbed[:] = 0.0
    for i in range(t.sections[READS], t.sections[OUTPUT + 1]):
        e = t.terms[i, 0] if i < t.sections[OUTPUT] else len(disturbed) - 1
        disturbed[e] += abs(t.values[i]) * moved[t.terms[i, 1]]
    for e in range(len(disturbed)):
        disturbed[e] = disturbed[e] * 4 * x.width * (1 + relative(99)) + TINY


@kernel
def _correction(inverse: Any, values: Any, errors: Any) -> float:
    """ω: a bound of |RF|."""
    count, worst = len(values), 0.0
    terms = relative(count)
    for e in range(count):
        total, bound = 0.0j, 0.0
        for i in range(count):
            total += inverse[e, i] * values[i]
            bound += modulus(inverse[e, i]) * (terms * modulus(values[i]) + errors[i])
        size = modulus(total) + bound
        worst = max(worst, size) if size < np.inf else np.inf
    return worst * (1 + terms)


@kernel
def _value(inverse: Any, b: Any, values: Any, errors: Any, disturbed: float, reach: float, found: Any) -> None:
    """What is added to m(ũ), and the radius; found[6] has the error of m(ũ)."""
    count, change, radius = len(values), 0.0j, 0.0
    terms = relative(count)
    for e in range(count):
        step, error = 0.0j, 0.0
        for i in range(count):
            step -= inverse[e, i] * values[i]
            error += modulus(inverse[e, i]) * (terms * modulus(values[i]) + errors[i]) + b.defect[e, i] * reach
        change += b.slope[e] * step
        size = (modulus(b.slope[e]) + b.slope_radius[e]) * (1 + relative(1))
        radius += size * error + (b.slope_radius[e] + terms * modulus(b.slope[e])) * modulus(step)
    found[4] += change.real
    found[5] += change.imag
    found[6] = (radius + disturbed + found[6] + relative(1) * (abs(found[4]) + abs(found[5]))) * (1 + terms)


# The branch ----------------------------------------------------------------------------------------------------------


@kernel
def _in_cone(x: Any, w: Any, radius: Any) -> bool:
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
