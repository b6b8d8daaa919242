"""Weights of a module as arrays: their size, and whether they look like independent Gaussian entries.

A random matrix with independent entries of variance σ² (rows × columns) has the effective rank
(Σ s²)²/Σ s⁴ → rows·columns/(rows + columns), by the first two moments of the Marchenko–Pastur law, whatever the law of
its entries. Training adds few large singular values, which lower it, and tails to the entries, which show in the
excess kurtosis (0 for Gaussian, −1.2 for uniform entries).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

__all__ = ["Array", "as_array", "departures", "gain", "is_nonzero", "root_mean_square"]

Array: TypeAlias = NDArray[np.float64]

_LEAST_RANK = 0.85  # of the effective rank of independent entries
_MOST_KURTOSIS = 0.5
_SIGMAS = 5.0  # standard deviations of the kurtosis of independent Gaussian entries
_MOST_SPREAD = 1.25  # largest over smallest size of the blocks of the heads
_FEWEST = 256  # entries below which nothing can be told


def as_array(tensor: Any) -> Array:
    """A parameter as doubles (from any device and precision)."""
    return np.asarray(tensor.detach().cpu().double().numpy(), dtype=np.float64)


def root_mean_square(weights: Array) -> float:
    """The standard deviation of entries of mean zero: √(mean of squares)."""
    return float(np.sqrt(np.mean(weights**2)))


def gain(weights: Array) -> float:
    """Standard deviation of what a matrix (features × columns) makes of entries of mean square one: σ√features."""
    return root_mean_square(weights) * math.sqrt(len(weights))


def is_nonzero(tensor: Any) -> bool:
    """Whether a bias is there, with an entry that is not 0."""
    return tensor is not None and bool(np.any(as_array(tensor)))


def departures(name: str, weights: Array, n_heads: int) -> Iterator[str]:
    """How a matrix (features × n_heads blocks of columns) differs from independent Gaussian entries of one variance."""
    size, total = weights.size, float(np.sum(weights**2))
    if size < _FEWEST or not total:
        return
    kurtosis = float(np.mean(weights**4)) / (total / size) ** 2 - 3
    if kurtosis > max(_MOST_KURTOSIS, _SIGMAS * math.sqrt(24 / size)):
        yield f"{name} has heavy-tailed entries (excess kurtosis {kurtosis:.2g})"
    small, large = sorted(weights.shape)
    gram = weights @ weights.T if weights.shape[0] == small else weights.T @ weights
    share = total**2 / float(np.sum(gram**2)) / (small * large / (small + large))
    if share < _LEAST_RANK:
        yield f"{name} has {share:.0%} of the effective rank of independent entries"
    sizes = np.sqrt(np.mean(weights.reshape(len(weights), n_heads, -1) ** 2, axis=(0, 2)))
    noise = 1 + _SIGMAS * math.sqrt(2 * n_heads / size)
    if sizes.min() == 0 or sizes.max() / sizes.min() > max(_MOST_SPREAD, noise):
        yield f"{name} differs in size between heads ({sizes.min():.3g} to {sizes.max():.3g})"
