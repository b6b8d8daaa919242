"""Collecting the blocks of an output head by head, and its squared singular values."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import final

import numpy as np

from freeattn.evidence.weights import Matrix, Weights
from freeattn.model.attention import Attention

__all__ = ["Accumulator", "accumulator"]

_EPSILON = float(np.finfo(np.float64).eps)


class Accumulator(ABC):
    """Collects the blocks of M head by head; `matrix` is M or M Mᵀ."""

    matrix: Matrix

    @abstractmethod
    def add(self, head: int, block: Matrix) -> None:
        """Take in the block of one head."""

    @abstractmethod
    def squared_singular_values(self) -> Matrix:
        """The eigenvalues of M Mᵀ, ascending, numerical zeros set to 0."""


@final
class _Whole(Accumulator):
    """Keeps M; the block of each head starts at a column of its own, or all at 0, which adds them up."""

    def __init__(self, rows: int, columns: int, starts: tuple[int, ...]) -> None:
        self.matrix = np.zeros((rows, columns))
        self._starts = starts

    def add(self, head: int, block: Matrix) -> None:
        start = self._starts[head]
        self.matrix[:, start : start + block.shape[1]] += block

    def squared_singular_values(self) -> Matrix:
        rows, columns = self.matrix.shape
        found = np.linalg.svd(self.matrix, compute_uv=False)[::-1] ** 2
        values = np.concatenate([np.zeros(rows - len(found)), found])
        # Singular values carry an absolute error of about max(shape)·ε·largest, as in numpy's matrix_rank.
        return _with_exact_zeros(values, (max(rows, columns) * _EPSILON) ** 2)


@final
class _Gram(Accumulator):
    """Keeps M Mᵀ only, for blocks side by side that are together wider than n_tokens."""

    def __init__(self, rows: int) -> None:
        self.matrix = np.zeros((rows, rows))

    def add(self, head: int, block: Matrix) -> None:
        del head
        self.matrix += block @ block.T

    def squared_singular_values(self) -> Matrix:
        # Eigenvalues carry an absolute error of about n·ε·largest.
        found = np.asarray(np.linalg.eigvalsh(self.matrix), dtype=np.float64)
        return _with_exact_zeros(found, len(self.matrix) * _EPSILON)


def accumulator(spec: Attention, weights: Weights) -> Accumulator:
    """An empty accumulator for the output of a layer."""
    n = weights.n_tokens
    if spec.output == "mha":
        return _Whole(n, weights.d_out, (0,) * weights.n_heads)
    if spec.output == "head-sum":
        return _Whole(n, n, (0,) * weights.n_heads)
    widths = [head.d_value if spec.output == "values" else n for head in weights.heads]
    if sum(widths) > n:
        return _Gram(n)
    return _Whole(n, sum(widths), tuple(np.cumsum([0, *widths[:-1]]).tolist()))


def _with_exact_zeros(values: Matrix, relative: float) -> Matrix:
    """Ascending values with everything below relative·largest set to 0, read-only."""
    cleaned = np.where(values < relative * values[-1], 0.0, values)
    cleaned.setflags(write=False)
    return cleaned
