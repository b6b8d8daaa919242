"""Linear algebra of one point: inverses of small matrices, linear systems, positive definiteness.

The same formulas as `small_inverse` and `TraceEquation` have for arrays of points; tests compare them.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from freeattn.numerics.compiled.scalars import kernel, modulus, reciprocal, scaled
from freeattn.numerics.small_inverse import BALANCING

__all__ = ["decomposed", "definite", "invert", "inverted", "real_inverse", "substituted"]


@kernel
def invert(a: Any, g: Any, size: int) -> None:
    """g ← a⁻¹ (vectors of b² entries, row by row); not-a-number where it is singular or not finite."""
    if size == 1:
        g[0] = reciprocal(a[0])
    elif size == 2:
        unit = reciprocal(a[0] * a[3] - a[1] * a[2])
        g[0], g[1], g[2], g[3] = a[3] * unit, -a[1] * unit, -a[2] * unit, a[0] * unit
    elif size == 3:
        _invert_three(a, g)
    elif size == 4:
        _invert_four(a, g)
    else:
        _invert_balanced(a, g, size)
    finite = True
    for i in range(size * size):
        finite &= np.isfinite(g[i])
    if not finite:
        for i in range(size * size):
            g[i] = np.nan


@kernel
def _invert_three(a: Any, g: Any) -> None:
    """As the upper block of a matrix of four rows whose last one is that of 1: the same sums of products."""
    larger = np.zeros((2, 16), np.complex128)
    for m in range(9):
        larger[0, m + m // 3] = a[m]
    larger[0, 15] = 1.0
    _invert_four(larger[0], larger[1])
    for m in range(9):
        g[m] = larger[1, m + m // 3]


@kernel
def _invert_four(a: Any, g: Any) -> None:
    """Cofactors from the minors of the two upper rows (s) and of the two lower ones (c)."""
    s01, s02, s03 = a[0] * a[5] - a[1] * a[4], a[0] * a[6] - a[2] * a[4], a[0] * a[7] - a[3] * a[4]
    s12, s13, s23 = a[1] * a[6] - a[2] * a[5], a[1] * a[7] - a[3] * a[5], a[2] * a[7] - a[3] * a[6]
    c01, c02, c03 = a[8] * a[13] - a[9] * a[12], a[8] * a[14] - a[10] * a[12], a[8] * a[15] - a[11] * a[12]
    c12, c13, c23 = a[9] * a[14] - a[10] * a[13], a[9] * a[15] - a[11] * a[13], a[10] * a[15] - a[11] * a[14]
    g[0] = a[5] * c23 - a[6] * c13 + a[7] * c12
    g[4] = a[6] * c03 - a[4] * c23 - a[7] * c02
    g[8] = a[4] * c13 - a[5] * c03 + a[7] * c01
    g[12] = a[5] * c02 - a[4] * c12 - a[6] * c01
    unit = reciprocal(a[0] * g[0] + a[1] * g[4] + a[2] * g[8] + a[3] * g[12])
    g[0], g[4], g[8], g[12] = g[0] * unit, g[4] * unit, g[8] * unit, g[12] * unit
    g[1] = (a[2] * c13 - a[1] * c23 - a[3] * c12) * unit
    g[5] = (a[0] * c23 - a[2] * c03 + a[3] * c02) * unit
    g[9] = (a[1] * c03 - a[0] * c13 - a[3] * c01) * unit
    g[13] = (a[0] * c12 - a[1] * c02 + a[2] * c01) * unit
    g[2] = (a[13] * s23 - a[14] * s13 + a[15] * s12) * unit
    g[6] = (a[14] * s03 - a[12] * s23 - a[15] * s02) * unit
    g[10] = (a[12] * s13 - a[13] * s03 + a[15] * s01) * unit
    g[14] = (a[13] * s02 - a[12] * s12 - a[14] * s01) * unit
    g[3] = (a[10] * s13 - a[9] * s23 - a[11] * s12) * unit
    g[7] = (a[8] * s23 - a[10] * s03 + a[11] * s02) * unit
    g[11] = (a[9] * s03 - a[8] * s13 - a[11] * s01) * unit
    g[15] = (a[8] * s12 - a[9] * s02 + a[10] * s01) * unit


@kernel
def _invert_balanced(a: Any, g: Any, size: int) -> None:
    """By LU after rows and columns have been brought to one size, and corrected once."""
    balance, order = np.empty((4, size)), np.empty(size, np.int64)
    left, right, rows, columns = balance[0], balance[1], balance[2], balance[3]
    room = np.empty((size * 3 + 1, size), np.complex128)
    factors, inverse, rest, column = room[:size], room[size : 2 * size], room[2 * size : 3 * size], room[3 * size]
    for p in range(size):
        left[p] = right[p] = 1.0
    for _ in range(BALANCING):
        for p in range(size):
            rows[p] = columns[p] = 0.0
        for m in range(size * size):
            p, q = m // size, m % size
            entry = left[p] * modulus(a[m]) * right[q]
            rows[p], columns[q] = max(rows[p], entry), max(columns[q], entry)
        for p in range(size):
            left[p] /= np.sqrt(rows[p]) if rows[p] > 0 else 1.0
            right[p] /= np.sqrt(columns[p]) if columns[p] > 0 else 1.0
    for m in range(size * size):
        factors[m // size, m % size] = scaled(a[m], left[m // size] * right[m % size])
    if not decomposed(factors, order):
        g[0] = np.nan
        return
    for q in range(size):
        for p in range(size):
            column[p] = 1.0 if p == q else 0.0
        substituted(factors, order, column)
        for p in range(size):
            inverse[p, q] = column[p]
    for m in range(size * size):
        p, q = m // size, m % size
        rest[p, q] = 1.0 if p == q else 0.0
        for k in range(size):
            rest[p, q] -= scaled(a[p * size + k], left[p] * right[k]) * inverse[k, q]
    for m in range(size * size):
        p, q = m // size, m % size
        entry = inverse[p, q]
        for k in range(size):
            entry += inverse[p, k] * rest[k, q]
        g[m] = scaled(entry, right[p] * left[q])


@kernel
def decomposed(matrix: Any, order: Any) -> bool:
    """L U in place of the matrix, rows exchanged as `order` says, with 1/U_kk on the diagonal.

    False where singular or not finite; `order` names rows of the matrix all the same: nothing checks an index here.
    """
    size = len(order)
    for k in range(size):
        order[k] = k
    for k in range(size):
        best, place = -1.0, k
        for i in range(k, size):
            entry = abs(matrix[i, k].real) + abs(matrix[i, k].imag)
            if entry > best:
                best, place = entry, i
        order[k] = place
        if not best > 0:
            return False
        if place != k:
            for j in range(size):
                matrix[k, j], matrix[place, j] = matrix[place, j], matrix[k, j]
        matrix[k, k] = reciprocal(matrix[k, k])
        for i in range(k + 1, size):
            if matrix[i, k] != 0:
                factor = matrix[i, k] * matrix[k, k]
                matrix[i, k] = factor
                for j in range(k + 1, size):
                    matrix[i, j] -= factor * matrix[k, j]
    return True


@kernel
def substituted(factors: Any, order: Any, right: Any) -> None:
    """The solution in place of the right-hand side, from what `decomposed` leaves."""
    size = len(order)
    for k in range(size):
        place = order[k]
        if place != k:
            right[k], right[place] = right[place], right[k]
    for k in range(size):
        total = right[k]
        for j in range(k):
            total -= factors[k, j] * right[j]
        right[k] = total
    for k in range(size - 1, -1, -1):
        total = right[k]
        for j in range(k + 1, size):
            total -= factors[k, j] * right[j]
        right[k] = total * factors[k, k]


@kernel
def inverted(factors: Any, order: Any, inverse: Any) -> None:
    """inverse ← the inverse, from what `decomposed` leaves: `substituted` for all unit vectors at once."""
    size = len(order)
    for i in range(size):
        for j in range(size):
            inverse[i, j] = 1.0 if i == j else 0.0
    for k in range(size):
        place = order[k]
        if place != k:
            for j in range(size):
                inverse[k, j], inverse[place, j] = inverse[place, j], inverse[k, j]
    for k in range(size):
        for i in range(k):
            factor = factors[k, i]
            if factor != 0:
                for j in range(size):
                    inverse[k, j] -= factor * inverse[i, j]
    for k in range(size - 1, -1, -1):
        for i in range(k + 1, size):
            factor = factors[k, i]
            if factor != 0:
                for j in range(size):
                    inverse[k, j] -= factor * inverse[i, j]
        for j in range(size):
            inverse[k, j] = inverse[k, j] * factors[k, k]


@kernel
def real_inverse(matrix: Any, inverse: Any) -> bool:
    """inverse ← the inverse of a real matrix, which is overwritten; False where it is singular or not finite."""
    size = len(matrix)
    for i in range(size):
        for j in range(size):
            inverse[i, j] = 1.0 if i == j else 0.0
    for k in range(size):
        best, place = -1.0, k
        for i in range(k, size):
            if abs(matrix[i, k]) > best:
                best, place = abs(matrix[i, k]), i
        if not 0 < best < np.inf:
            return False
        if place != k:
            for j in range(size):
                matrix[k, j], matrix[place, j] = matrix[place, j], matrix[k, j]
                inverse[k, j], inverse[place, j] = inverse[place, j], inverse[k, j]
        unit = 1 / matrix[k, k]
        for j in range(size):
            matrix[k, j] *= unit
            inverse[k, j] *= unit
        for i in range(size):
            factor = matrix[i, k]
            if i != k and factor != 0:
                for j in range(size):
                    matrix[i, j] -= factor * matrix[k, j]
                    inverse[i, j] -= factor * inverse[k, j]
    return True


@kernel
def cholesky(matrix: Any) -> bool:
    """The lower triangle becomes L with L·Lᵀ the symmetric matrix; False where a pivot is not positive."""
    size = len(matrix)
    for p in range(size):
        for q in range(p + 1):
            total = matrix[p, q]
            for k in range(q):
                total -= matrix[p, k] * matrix[q, k]
            if p > q:
                matrix[p, q] = total / matrix[q, q]
            elif total > 0:
                matrix[p, p] = np.sqrt(total)
            else:
                return False
    return True


@kernel
def definite(matrix: Any, slack: float) -> bool:
    """Whether the least eigenvalue of the normalized symmetric matrix is above −slack: Cholesky, in place.

    The diagonal has to be positive.
    """
    size = len(matrix)
    for p in range(size):
        if not 0 < matrix[p, p] < np.inf:
            return False
    if size == 1:
        return True
    for p in range(size):
        unit = 1 / np.sqrt(matrix[p, p])
        for q in range(p):
            matrix[p, q] = (matrix[p, q] + matrix[q, p]) / 2 * unit * matrix[q, q]
            if not np.isfinite(matrix[p, q]):
                return False
        matrix[p, p] = unit
    for p in range(size):
        matrix[p, p] = 1.0 + slack
    return cholesky(matrix)
