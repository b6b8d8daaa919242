"""Inverses of small matrices of mpmath numbers, by rows of lists."""

from __future__ import annotations

from typing import Any

__all__ = ["inverted"]


def inverted(matrix: list[list[Any]], context: Any) -> list[list[Any]]:
    """The inverse by Gauss and Jordan, with the largest pivots.

    Rows may be of any sizes: no pivot but 0 counts as too small.

    Raises:
        ZeroDivisionError: when the matrix is singular.
    """
    size = len(matrix)
    rows = [[*row, *(context.mpf(int(i == j)) for j in range(size))] for i, row in enumerate(matrix)]
    for k in range(size):
        best = max(range(k, size), key=lambda i: abs(rows[i][k]))
        rows[k], rows[best] = rows[best], rows[k]
        pivot = rows[k][k]
        rows[k] = [value / pivot for value in rows[k]]
        for i in range(size):
            if i != k and (factor := rows[i][k]):
                rows[i] = [a - factor * b for a, b in zip(rows[i], rows[k], strict=True)]
    return [row[size:] for row in rows]
