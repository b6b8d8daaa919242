"""One point of a Dyson equation: matrices, Φ and its rounding, derivatives, Newton's method, which root it is.

The formulas of `TraceEquation`, which has them for arrays of points. Two versions are unavoidable: an array language is
slow for few points, and the reference does without a compiler. `tests/numerics/test_compiled.py` compares them.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from freeattn.numerics.compiled.algebra import decomposed, definite, invert, substituted
from freeattn.numerics.compiled.packed import BLOCKS, ENERGY, MEANS, OUTPUT, PRODUCTS, READS, SHARES, SLOPES
from freeattn.numerics.compiled.scalars import kernel, modulus, scaled
from freeattn.numerics.trace_equation import CONE, EPSILON, GOOD_ENOUGH, TOLERANCE

__all__ = [
    "ABSOLUTE",
    "BOUND",
    "CHANGE",
    "CURRENT",
    "LARGE",
    "PHI",
    "RIGHT",
    "SIZES",
    "TERMS",
    "A",
    "G",
    "Work",
    "changed",
    "evaluate",
    "in_cone",
    "increasing",
    "jacobian",
    "newton",
    "output",
    "output_bound",
    "rates",
    "sandwiched",
    "slope",
    "tangent",
    "workspace",
]

A, G, CHANGE, PRODUCT, MEAN = range(5)  # rows of `entries`: A, G, a change of A and of G, half of it, traces
LARGE, TERMS, HALF = range(3)  # rows of `moduli`: |G|, |A| (moduli of its terms), |G|·|A|
PHI, RIGHT, CURRENT = range(3)  # rows of `unknowns`: Φ, right-hand side and solution, iterate
ABSOLUTE, BOUND, SIZES = range(3)  # rows of `sizes`: |u| or errors of u, B, natural sizes


class Work(NamedTuple):
    """Arrays of one point: rows of entries, of unknowns; the Jacobian, and the order of its rows."""

    entries: Any
    moduli: Any
    unknowns: Any
    sizes: Any
    matrix: Any
    order: Any


@kernel
def workspace(t: Any, count: int) -> Any:
    """Arrays for points with so many unknowns."""
    entries = t.fixed.shape[1]
    return Work(
        np.empty((5, entries), np.complex128), np.empty((3, entries)), np.empty((3, count), np.complex128),
        np.empty((3, count)), np.empty((count, count), np.complex128), np.empty(count, np.int64),
    )


@kernel
def evaluate(t: Any, u: Any, z: complex, w: Any) -> float:
    """A, G, |G|, Φ and B at u; returns |Φ − u|/B, the largest, or inf."""
    fixed, sections, terms, values = t.fixed, t.sections, t.terms, t.values
    a, g, large, sums = w.entries[A], w.entries[G], w.moduli[LARGE], w.moduli[TERMS]
    phi, absolute, bound = w.unknowns[PHI], w.sizes[ABSOLUTE], w.sizes[BOUND]
    height = modulus(z)
    for m in range(len(a)):
        a[m] = fixed[0, m] - scaled(z, fixed[1, m])
        sums[m] = abs(fixed[0, m]) + height * abs(fixed[1, m])
    for e in range(len(u)):
        phi[e], bound[e], absolute[e] = 0.0, 0.0, modulus(u[e])
    for i in range(sections[ENERGY], sections[ENERGY + 1]):
        entry, e = terms[i, 0], terms[i, 1]
        a[entry] -= scaled(u[e], values[i])
        sums[entry] += absolute[e] * abs(values[i])
    for i in range(sections[BLOCKS], sections[BLOCKS + 1]):
        start, size = terms[i, 0], terms[i, 1]
        invert(a[start : start + size * size], g[start : start + size * size], size)
    for m in range(len(a)):
        large[m] = modulus(g[m])
    _left_product(t, w)
    for i in range(sections[READS], sections[READS + 1]):
        e = terms[i, 0]
        phi[e] += scaled(g[terms[i, 1]], values[i])
        bound[e] += abs(values[i]) * _right_entry(w, terms[i, 2], terms[i, 3], terms[i, 4])
    worst = 0.0
    for e in range(len(u)):
        distance = modulus(phi[e] - u[e])
        if distance != 0:
            worst = max(worst, distance / bound[e] if distance / bound[e] < np.inf else np.inf)
    return worst


@kernel
def _left_product(t: Any, w: Any) -> None:
    """HALF ← |G|·TERMS."""
    large, sums, half = w.moduli[LARGE], w.moduli[TERMS], w.moduli[HALF]
    for i in range(t.sections[BLOCKS], t.sections[BLOCKS + 1]):
        start, size = t.terms[i, 0], t.terms[i, 1]
        for p in range(size):
            for q in range(size):
                total = 0.0
                for j in range(size):
                    total += large[start + p * size + j] * sums[start + j * size + q]
                half[start + p * size + q] = total


@kernel
def _right_entry(w: Any, row: int, column: int, size: int) -> float:
    """The entry of |G|·TERMS·|G| at a place."""
    half, large = w.moduli[HALF], w.moduli[LARGE]
    total = 0.0
    for j in range(size):
        total += half[row + j] * large[column + j * size]
    return total


@kernel
def jacobian(t: Any, w: Any) -> None:
    """matrix ← 1 − ∂Φ/∂u in natural units, SIZES ← the units; from G."""
    sections, terms, values = t.sections, t.terms, t.values
    g, large, sizes, matrix = w.entries[G], w.moduli[LARGE], w.sizes[SIZES], w.matrix
    count = len(sizes)
    for e in range(count):
        sizes[e] = 0.0
        for i in range(count):
            matrix[e, i] = 1.0 if i == e else 0.0
    for i in range(sections[READS], sections[READS + 1]):
        geometric = np.sqrt(large[terms[i, 5]]) * np.sqrt(large[terms[i, 6]])
        sizes[terms[i, 0]] += abs(values[i]) * max(large[terms[i, 1]], geometric)
    for e in range(count):
        sizes[e] = sizes[e] if sizes[e] != 0 else 1.0
    for i in range(sections[PRODUCTS], sections[PRODUCTS + 1]):
        row, column = terms[i, 0], terms[i, 1]
        matrix[row, column] -= scaled(g[terms[i, 2]] * g[terms[i, 3]], values[i])
    for e in range(count):
        for i in range(count):
            matrix[e, i] = scaled(matrix[e, i], sizes[i] / sizes[e])


@kernel
def _solve(w: Any) -> None:
    """RIGHT ← the solution of Jacobian·solution = RIGHT; not-a-number where singular."""
    right, sizes = w.unknowns[RIGHT], w.sizes[SIZES]
    for e in range(len(sizes)):
        right[e] = scaled(right[e], 1 / sizes[e])
    regular = decomposed(w.matrix, w.order)
    substituted(w.matrix, w.order, right)
    for e in range(len(sizes)):
        right[e] = scaled(right[e], sizes[e] if regular else np.nan)


@kernel
def tangent(t: Any, w: Any) -> None:
    """RIGHT ← du/dz along the branch, from G."""
    jacobian(t, w)
    slope(t, w)
    _solve(w)


@kernel
def slope(t: Any, w: Any) -> None:
    """RIGHT ← ∂Φ/∂z, from G."""
    g, right = w.entries[G], w.unknowns[RIGHT]
    for e in range(len(right)):
        right[e] = 0.0
    for i in range(t.sections[SLOPES], t.sections[SLOPES + 1]):
        right[t.terms[i, 0]] += scaled(g[t.terms[i, 1]] * g[t.terms[i, 2]], t.values[i])


@kernel
def newton(t: Any, start: Any, z: complex, steps: int, w: Any, kept: Any) -> float:
    """Newton's method from the given start: the best iterate in `kept`, with its G in w; returns its residual.

    One step evaluates only.
    """
    phi, right, current = w.unknowns[PHI], w.unknowns[RIGHT], w.unknowns[CURRENT]
    best, step, going = np.inf, 0, True
    for e in range(len(start)):
        current[e] = kept[e] = start[e]
    while True:
        residual = evaluate(t, current, z, w)
        if not going:
            return best
        step += 1
        better = residual < best
        if better:
            best = residual
            kept[:] = current
        going = not (best <= GOOD_ENOUGH or (best <= TOLERANCE and not better)) and residual < np.inf and step < steps
        if going:
            jacobian(t, w)
            for e in range(len(right)):
                right[e] = phi[e] - current[e]
            _solve(w)
            for e in range(len(right)):
                current[e] += right[e]
        elif better:
            return best
        else:
            current[:] = kept


@kernel
def rates(t: Any, w: Any) -> None:
    """CHANGE ← dG/dz along the branch, from G."""
    tangent(t, w)
    changed(t, w)


@kernel
def changed(t: Any, w: Any) -> None:
    """CHANGE ← dG/dz, from G and du/dz in RIGHT."""
    change, right = w.entries[CHANGE], w.unknowns[RIGHT]
    for m in range(len(change)):
        change[m] = t.fixed[1, m]
    for i in range(t.sections[ENERGY], t.sections[ENERGY + 1]):
        change[t.terms[i, 0]] += scaled(right[t.terms[i, 1]], t.values[i])
    sandwiched(t, w)


@kernel
def sandwiched(t: Any, w: Any) -> None:
    """CHANGE ← G·CHANGE·G."""
    g, change, product = w.entries[G], w.entries[CHANGE], w.entries[PRODUCT]
    for half in range(2):
        left, inner, found = (product, g, change) if half else (g, change, product)
        for i in range(t.sections[BLOCKS], t.sections[BLOCKS + 1]):
            start, size = t.terms[i, 0], t.terms[i, 1]
            for p in range(size):
                for q in range(size):
                    total = 0.0j
                    for j in range(size):
                        total += left[start + p * size + j] * inner[start + j * size + q]
                    found[start + p * size + q] = total


@kernel
def _traces_definite(t: Any, entries: Any, turn: complex, noise: float, w: Any) -> bool:
    """Whether all matrices of traces of the given entries are definite, real parts after multiplication by `turn`."""
    sections, terms, mean, half = t.sections, t.terms, w.entries[MEAN], w.moduli[HALF]
    for m in range(len(mean)):
        mean[m] = 0.0
    for i in range(sections[SHARES], sections[SHARES + 1]):
        mean[terms[i, 0]] += scaled(entries[terms[i, 1]], t.values[i])
    for i in range(sections[MEANS], sections[MEANS + 1]):
        start, size = terms[i, 0], terms[i, 1]
        for m in range(size * size):
            half[m] = mean[start + m].real * turn.real - mean[start + m].imag * turn.imag
        slack = 0.0
        for p in range(size):
            slack = max(slack, noise * modulus(mean[start + p * (size + 1)]) / half[p * (size + 1)])
        if not definite(half[: size * size].reshape((size, size)), CONE + 100 * slack):
            return False
    return True


@kernel
def in_cone(t: Any, w: Any) -> bool:
    """Whether every matrix of traces has a positive definite imaginary part (to rounding), from G."""
    return _traces_definite(t, w.entries[G], -1j, EPSILON, w)


@kernel
def increasing(t: Any, w: Any) -> bool:
    """Whether every matrix of traces of a real solution has a positive definite derivative, from `rates`."""
    return _traces_definite(t, w.entries[CHANGE], 1.0 + 0.0j, 0.0, w)


@kernel
def output(t: Any, w: Any) -> complex:
    """m, from G."""
    total = 0.0j
    for i in range(t.sections[OUTPUT], t.sections[OUTPUT + 1]):
        total += scaled(w.entries[G, t.terms[i, 1]], t.values[i])
    return total


@kernel
def output_bound(t: Any, w: Any) -> float:
    """How far off m is when the unknowns are off by ABSOLUTE and the terms of A by ε; TERMS are overwritten."""
    sums, shift = w.moduli[TERMS], w.sizes[ABSOLUTE]
    for m in range(len(sums)):
        sums[m] *= EPSILON
    for i in range(t.sections[ENERGY], t.sections[ENERGY + 1]):
        sums[t.terms[i, 0]] += shift[t.terms[i, 1]] * abs(t.values[i])
    _left_product(t, w)
    total = 0.0
    for i in range(t.sections[OUTPUT], t.sections[OUTPUT + 1]):
        total += abs(t.values[i]) * _right_entry(w, t.terms[i, 2], t.terms[i, 3], t.terms[i, 4])
    return total if total < np.inf else np.inf
