"""Inverses of many small matrices, accurate entry by entry.

Blocks of a pencil have natural sizes many decades apart, and an entry that is small beside its neighbours still has to
be right to full relative accuracy. Up to four rows the inverse is the adjugate over the determinant, both as sums of
products of entries: only cancellation that is in the problem itself costs digits. Larger matrices are inverted by LU
after rows and columns have been brought to one size, and corrected once: what is left of the error of an entry is its
own rounding, ε·(|G|·|A|·|G|).
"""

from __future__ import annotations

from functools import lru_cache
from itertools import permutations
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["BALANCING", "inverses"]

Numbers = NDArray[Any]  # float64 or complex128

_EXPLICIT = 4  # rows: a minor of size 3 is 6 products
BALANCING = 4  # rounds; each takes the square root of what is left of the spread of sizes


def inverses(matrices: Numbers) -> Numbers:
    """The inverses of K × b × b matrices; not-a-number where one is singular or not finite."""
    with np.errstate(all="ignore"):
        return _explicit(matrices) if matrices.shape[1] <= _EXPLICIT else _balanced(matrices)


def _explicit(matrices: Numbers) -> Numbers:
    size = matrices.shape[1]
    if size == 1:
        return _finite(1 / matrices)
    if size == 2:
        return _finite(_adjugate_of_two(matrices) / _determinants(matrices)[:, None, None])
    rows, columns, signs = _minors(size)
    cofactors = signs * _determinants(matrices[:, rows, columns])
    determinant = np.sum(matrices[:, 0] * cofactors[:, 0], axis=1)
    return _finite(np.swapaxes(cofactors, 1, 2) / determinant[:, None, None])


def _adjugate_of_two(matrices: Numbers) -> Numbers:
    adjugate = np.negative(matrices)
    adjugate[:, 0, 0], adjugate[:, 1, 1] = matrices[:, 1, 1], matrices[:, 0, 0]
    return adjugate


def _finite(values: Numbers) -> Numbers:
    bad = ~np.all(np.isfinite(values), axis=(1, 2))
    return np.where(bad[:, None, None], np.nan, values)


@lru_cache(maxsize=8)
def _minors(size: int) -> tuple[Any, Any, Any]:
    """Row and column indices of all minors (axes: row left out, column left out, minor), and their signs."""
    others = np.array([[j for j in range(size) if j != i] for i in range(size)])
    signs = (-1.0) ** np.add.outer(np.arange(size), np.arange(size))
    return others[:, None, :, None], others[None, :, None, :], signs


def _determinants(blocks: Numbers) -> Numbers:
    """Determinants over the two last axes, as sums over permutations."""
    size = blocks.shape[-1]
    if size == 2:
        return blocks[..., 0, 0] * blocks[..., 1, 1] - blocks[..., 0, 1] * blocks[..., 1, 0]
    total = np.zeros(blocks.shape[:-2], dtype=blocks.dtype)
    for order in permutations(range(size)):
        inversions = sum(order[i] > order[j] for i in range(size) for j in range(i + 1, size))
        product = np.ones_like(total)
        for row, column in enumerate(order):
            product = product * blocks[..., row, column]
        total += (-1) ** inversions * product
    return total


def _balanced(matrices: Numbers) -> Numbers:
    left, right = (np.ones(matrices.shape[:2]) for _ in range(2))
    for _ in range(BALANCING):
        size = np.abs(left[:, :, None] * matrices * right[:, None, :])
        rows, columns = np.sqrt(size.max(axis=2)), np.sqrt(size.max(axis=1))
        left, right = left / np.where(rows > 0, rows, 1), right / np.where(columns > 0, columns, 1)
    balanced = left[:, :, None] * matrices * right[:, None, :]
    usable = np.all(np.isfinite(balanced), axis=(1, 2))
    usable[usable] = np.linalg.det(balanced[usable]) != 0
    result = np.full_like(matrices, np.nan)
    inverse = np.linalg.inv(balanced[usable])
    inverse = inverse + inverse @ (np.eye(matrices.shape[1]) - balanced[usable] @ inverse)  # errors of each entry alone
    result[usable] = inverse * right[usable][:, :, None] * left[usable][:, None, :]
    return result
