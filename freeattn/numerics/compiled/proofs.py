"""A proof of one value in doubles, compiled: the statements of `root_proofs` for complex unknowns.

The same statements are proved with the same bounds. Only the residual is another: F(ũ) and H = 1 − AĜ are sums of
products in pairs of doubles instead of integers. Everything is in units of the natural sizes of the unknowns. A value
that is not finite makes every comparison fail.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from freeattn.numerics.array_balls import TINY
from freeattn.numerics.compiled.algebra import decomposed, inverted
from freeattn.numerics.compiled.balls import contraction, derivatives, in_cone, inverses, room, size_of, spread_of
from freeattn.numerics.compiled.kernels import PHI, SIZES, TERMS, G, evaluate, jacobian, workspace
from freeattn.numerics.compiled.packed import BLOCKS, OUTPUT, READS
from freeattn.numerics.compiled.pairs import relative, residual_in_pairs
from freeattn.numerics.compiled.scalars import kernel, modulus, scaled
from freeattn.numerics.root_proofs import NARROWEST, NOT_A_ROOT, ROUNDING, WIDER, WIDTHS
from freeattn.numerics.trace_balls import LARGEST_DEFECT

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


class _Residual(NamedTuple):
    """F(ũ) and its errors; how far Φ and m (last) of true weights are from those of pairs of doubles."""

    values: Any
    errors: Any
    disturbed: Any


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
    inverted(w.matrix, w.order, inverse)
    first, rounding = _first_correction(w, u, sizes, inverse)
    if not first < NOT_A_ROOT:
        return False
    b = room(len(w.entries[G]), count)
    r = _Residual(np.empty(count, np.complex128), np.empty(count), np.empty(count + 1))
    for share in WIDTHS:
        wide = share * (WIDER * (first + ROUNDING * rounding) + NARROWEST)
        spread = spread_of(t, x, sizes, wide * (1 + relative(1)), z)
        if not inverses(t, x, w, spread, b.inverse):
            return False
        derivatives(t, x, w, sizes, b)
        contracted = contraction(inverse, b)
        if not contracted < LARGEST_DEFECT:
            return False
        _disturbance(t, x, w, spread, b.inverse, r.disturbed)
        residual_in_pairs(t, x, w, u, z, z_low, b.inverse, r.values, r.errors, found)
        _in_natural_units(sizes, r)
        omega = _correction(inverse, r)
        if omega <= (1 - contracted) * wide * (1 - relative(1)):
            _value(inverse, b, r, omega / (1 - contracted), found)
            found[7] = contracted
            return in_cone(x, w, b.inverse)
    return False


@kernel
def _first_correction(w: Any, u: Any, sizes: Any, inverse: Any) -> Any:
    """(|RF(u)| in doubles, what rounding of F by the sizes of unknowns makes of it)."""
    largest = rounding = 0.0
    for e in range(len(u)):
        step, row = 0.0j, 0.0
        for i in range(len(u)):
            step += inverse[e, i] * scaled(u[i] - w.unknowns[PHI, i], 1 / sizes[i])
            row += modulus(inverse[e, i])
        largest, rounding = max(largest, modulus(step)), max(rounding, row)
    return largest, rounding


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
                    half[p, q] += size_of(w, radius, start + p * size + j) * (sums[m] + spread[m])
        for p in range(size):
            for q in range(size):
                total = size_of(w, radius, start + p * size + q)
                for j in range(size):
                    total += half[p, j] * size_of(w, radius, start + j * size + q)
                moved[start + p * size + q] = total
    disturbed[:] = 0.0
    for i in range(t.sections[READS], t.sections[OUTPUT + 1]):
        e = t.terms[i, 0] if i < t.sections[OUTPUT] else len(disturbed) - 1
        disturbed[e] += abs(t.values[i]) * moved[t.terms[i, 1]]
    for e in range(len(disturbed)):
        disturbed[e] = disturbed[e] * 4 * x.width * (1 + relative(99)) + TINY


@kernel
def _in_natural_units(sizes: Any, r: Any) -> None:
    """Values and errors in units of the sizes of unknowns; errors take in those of true weights."""
    for e in range(len(sizes)):
        r.values[e] = scaled(r.values[e], 1 / sizes[e])
        r.errors[e] = (r.errors[e] + r.disturbed[e]) / sizes[e] * (1 + relative(1))


@kernel
def _correction(inverse: Any, r: Any) -> float:
    """ω: a bound of |RF|."""
    count, worst = len(r.values), 0.0
    terms = relative(count)
    for e in range(count):
        total, bound = 0.0j, 0.0
        for i in range(count):
            total += inverse[e, i] * r.values[i]
            bound += modulus(inverse[e, i]) * (terms * modulus(r.values[i]) + r.errors[i])
        size = modulus(total) + bound
        worst = max(worst, size) if size < np.inf else np.inf
    return worst * (1 + terms)


@kernel
def _value(inverse: Any, b: Any, r: Any, reach: float, found: Any) -> None:
    """What is added to m(ũ), and the radius; found[6] has the error of m(ũ)."""
    count, change, radius = len(r.values), 0.0j, 0.0
    terms = relative(count)
    for e in range(count):
        step, error = 0.0j, 0.0
        for i in range(count):
            step -= inverse[e, i] * r.values[i]
            error += modulus(inverse[e, i]) * (terms * modulus(r.values[i]) + r.errors[i]) + b.defect[e, i] * reach
        change += b.slope[e] * step
        size = (modulus(b.slope[e]) + b.slope_radius[e]) * (1 + relative(1))
        radius += size * error + (b.slope_radius[e] + terms * modulus(b.slope[e])) * modulus(step)
    found[4] += change.real
    found[5] += change.imag
    found[6] = (radius + r.disturbed[count] + found[6] + relative(1) * (abs(found[4]) + abs(found[5]))) * (1 + terms)
