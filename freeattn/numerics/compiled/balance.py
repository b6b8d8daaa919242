"""One solution of a Dyson equation in balanced units: what `SparseEquation.balanced` is, and the inverse Jacobian."""

from __future__ import annotations

from typing import Any

import numpy as np

from freeattn.numerics.compiled.algebra import decomposed, substituted
from freeattn.numerics.compiled.kernels import LARGE, G, evaluate, workspace
from freeattn.numerics.compiled.packed import BLOCKS, OUTPUT, PRODUCTS, READS
from freeattn.numerics.compiled.scalars import kernel, modulus, scaled
from freeattn.numerics.sparse_equation import BALANCING_ROUNDS, MOST_INVERSE

__all__ = ["REGULAR", "SINGULAR", "SINGULAR_JACOBIAN", "balance"]

REGULAR, SINGULAR, SINGULAR_JACOBIAN = range(3)


@kernel
def balance(
    t: Any, roots: Any, copies: Any, u: Any, z: complex, column: Any, rows: Any, columns: Any, traces: Any, solver: Any
) -> Any:
    """(status, share of m in the sum of moduli that it is read as, that of Im m).

    column ← real and imaginary part of G; rows, columns, traces ← exponents of units; solver ← the inverse Jacobian.
    `roots` has √(copies of the row / copies of the column) at each entry, `copies` half the logarithm of each row's.
    """
    w = workspace(t, len(u))
    evaluate(t, u, z, w)
    g, large = w.entries[G], w.moduli[LARGE]
    for m in range(len(g)):
        if not large[m] < np.inf:
            return SINGULAR, 0.0, 0.0
    _units(t, roots, copies, large, rows, columns)
    _trace_units(t, roots, large, traces)
    shift = np.empty(len(g), np.int64)
    base = 0
    for i in range(t.sections[BLOCKS], t.sections[BLOCKS + 1]):
        start, size = t.terms[i, 0], t.terms[i, 1]
        for p in range(size):
            for q in range(size):
                m = start + p * size + q
                shift[m] = rows[base + p] + columns[base + q]
                unit = 2.0 ** shift[m]
                column[0, m], column[1, m] = g[m].real * unit, g[m].imag * unit
        base += size
    value, total = 0.0j, 0.0
    for i in range(t.sections[OUTPUT], t.sections[OUTPUT + 1]):
        value += scaled(g[t.terms[i, 1]], t.values[i])
        total += abs(t.values[i]) * 2.0 ** -shift[t.terms[i, 1]]
    regular = _inverse_jacobian(t, g, traces, w, solver)
    return REGULAR if regular else SINGULAR_JACOBIAN, modulus(value) / total, abs(value.imag) / total


@kernel
def _units(t: Any, roots: Any, copies: Any, large: Any, rows: Any, columns: Any) -> None:
    """Powers of two that bring the diagonal of each G to one size and no entry above 1."""
    base = 0
    for i in range(t.sections[BLOCKS], t.sections[BLOCKS + 1]):
        start, size = t.terms[i, 0], t.terms[i, 1]
        scale, following = np.empty(size), np.empty(size)
        for p in range(size):
            most = large[start + p * (size + 1)]
            if not most > 0:
                for q in range(size):
                    most = max(most, large[start + p * size + q] * roots[start + p * size + q])
            scale[p] = 1 / np.sqrt(most)
        for _ in range(BALANCING_ROUNDS):
            for p in range(size):
                most = 0.0
                for q in range(size):
                    most = max(most, scale[p] * large[start + p * size + q] * roots[start + p * size + q] * scale[q])
                following[p] = scale[p] / np.sqrt(most)
            scale, following = following, scale
        for p in range(size):
            exponent = np.log2(scale[p])
            rows[base + p] = int(np.rint(exponent + copies[base + p]))
            columns[base + p] = int(np.rint(exponent - copies[base + p]))
        base += size


@kernel
def _trace_units(t: Any, roots: Any, large: Any, traces: Any) -> None:
    sizes = np.zeros(len(traces))
    for i in range(t.sections[READS], t.sections[READS + 1]):
        entry, geometric = t.terms[i, 1], np.sqrt(large[t.terms[i, 5]]) * np.sqrt(large[t.terms[i, 6]])
        sizes[t.terms[i, 0]] += abs(t.values[i]) * max(large[entry] * roots[entry], geometric) / roots[entry]
    for e in range(len(traces)):
        traces[e] = -int(np.rint(np.log2(sizes[e]))) if sizes[e] > 0 else 0


@kernel
def _inverse_jacobian(t: Any, g: Any, traces: Any, w: Any, solver: Any) -> bool:
    """solver ← (1 − ∂Φ/∂u)⁻¹ in the units of u; false where it is singular, or too nearly so for doubles to know it."""
    count, matrix = len(traces), w.matrix
    for e in range(count):
        for i in range(count):
            matrix[e, i] = 1.0 if i == e else 0.0
    for i in range(t.sections[PRODUCTS], t.sections[PRODUCTS + 1]):
        row, other = t.terms[i, 0], t.terms[i, 1]
        product = scaled(g[t.terms[i, 2]] * g[t.terms[i, 3]], t.values[i])
        matrix[row, other] -= scaled(product, 2.0 ** (traces[row] - traces[other]))
    regular = decomposed(matrix, w.order)
    right = np.empty(count, np.complex128)
    for e in range(count):
        for i in range(count):
            right[i] = 1.0 if i == e else 0.0
        substituted(matrix, w.order, right)
        for i in range(count):
            solver[i, e] = right[i]
    for e in range(count):
        total = 0.0
        for i in range(count):
            total += modulus(solver[e, i])
        regular = regular and total < MOST_INVERSE
    return regular
