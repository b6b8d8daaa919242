"""A simulated spectrum against a law, and two spectra against each other: pure functions.

A *spectrum* is an ascending array of n squared singular values with exact zeros, as `sampling.sample` returns it;
`as_spectrum` makes one from other arrays. A law enters through a `LawTable`, its numbers for n values, computed once.
Everything is relative to the mean of the law unless said otherwise.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias, final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from freeattn.errors import InputError

__all__ = [
    "BULK",
    "ComparableLaw",
    "LawTable",
    "as_spectrum",
    "bulk_deviations",
    "bulk_moment_deviations",
    "ks_between",
    "ks_distance",
    "mass_at_zero",
    "moment_deviations",
    "outlier_margin",
    "outliers",
    "relative_w1",
    "relative_w1_between",
]

Spectrum: TypeAlias = NDArray[np.float64]

N_MOMENTS = 4
BULK = (0.01, 0.99)  # quantiles of the nonzero part that stand for the edges of the bulk
_ZERO_BELOW = 1e-10  # relative to the largest value; the rounding of a Gram matrix is below it


class ComparableLaw(Protocol):
    """What a comparison needs of a law with nonnegative support; `SpectralLaw` has it."""

    @property
    def mean(self) -> float: ...
    @property
    def atoms(self) -> Sequence[Any]: ...
    @property
    def edges(self) -> Sequence[tuple[float, float]]: ...
    def moments(self, k: int) -> Sequence[Any]: ...
    def cdf(self, x: Any) -> Any: ...
    def quantile(self, p: Any) -> Any: ...


@final
@dataclass(frozen=True, eq=False)
class LawTable:
    """The numbers of a law that a spectrum of n values is compared with.

    Attributes:
        mean, moments: ∫ x dν and ∫ x^k dν for k = 1, …, 4.
        midpoints: quantiles of ν at (i − 1/2)/n, i = 1, …, n.
        zero_weight: mass of the atom at zero.
        bulk: 1 % and 99 % quantiles of the law of the nonzero part.
        right_edge: end of the rightmost band.
    """

    law: ComparableLaw
    mean: float
    moments: Spectrum
    midpoints: Spectrum
    zero_weight: float
    bulk: Spectrum
    right_edge: float

    @classmethod
    def of(cls, law: ComparableLaw, n: int) -> LawTable:
        """Evaluate a law for spectra of n values."""
        zero = sum((float(atom.weight) for atom in law.atoms if float(atom.location) == 0), 0.0)
        return cls(
            law=law,
            mean=float(law.mean),
            moments=np.array([float(moment) for moment in law.moments(N_MOMENTS)]),
            midpoints=np.asarray(law.quantile((np.arange(n) + 0.5) / n), dtype=float),
            zero_weight=zero,
            bulk=np.asarray(law.quantile(zero + (1 - zero) * np.array(BULK)), dtype=float),
            right_edge=float(law.edges[-1][1]),
        )


def as_spectrum(values: ArrayLike, zero_below: float = _ZERO_BELOW) -> Spectrum:
    """Ascending values with everything below zero_below·largest set to 0.

    Raises:
        InputError: when there are no values, or one is not finite or is negative beyond rounding.
    """
    array = np.sort(np.ravel(np.asarray(values, dtype=float)))
    if not array.size or not np.isfinite(array).all() or array[0] < -zero_below * abs(array[-1]):
        allowed = "a non-empty array of finite, nonnegative numbers (squared singular values)"
        raise InputError("values", f"an array of shape {np.shape(values)}", allowed)
    return np.where(array < zero_below * array[-1], 0.0, array)


def relative_w1(values: Spectrum, table: LawTable) -> float:
    """Relative W1 of spectrum and law: mean of |x_(i) − quantile((i − 1/2)/n)| over the mean of the law."""
    return relative_w1_between(values, table.midpoints, table.mean)


def relative_w1_between(first: Spectrum, second: Spectrum, mean: float) -> float:
    """Relative W1 of two spectra of equal size: mean |x_(i) − y_(i)| over the mean of the law.

    Source: arXiv 2610.10033, Table D.2.
    """
    return float(np.abs(first - second).mean() / mean)


def ks_distance(values: Spectrum, table: LawTable) -> float:
    """Kolmogorov-Smirnov distance sup_x |F_n(x) − F(x)| of a spectrum and a law with atoms.

    Between two points of the spectrum F_n is constant and F monotone, so the supremum is a one-sided limit at one of
    them. F is right-continuous: its left limit is F(x) minus the atom at x, which counts for exact zeros.
    """
    points, counts = np.unique(values, return_counts=True)
    empirical = np.cumsum(counts) / len(values)
    right = np.asarray(table.law.cdf(points), dtype=float)
    left = right - np.where(points == 0, table.zero_weight, 0.0)
    below = np.concatenate([[0.0], empirical[:-1]])
    return float(max(np.abs(empirical - right).max(), np.abs(below - left).max()))


def ks_between(first: Spectrum, second: Spectrum) -> float:
    """Kolmogorov-Smirnov distance of two empirical distributions."""
    points = np.concatenate([first, second])
    one = np.searchsorted(first, points, side="right") / len(first)
    two = np.searchsorted(second, points, side="right") / len(second)
    return float(np.abs(one - two).max())


def moment_deviations(values: Spectrum, table: LawTable) -> Spectrum:
    """Moments of a spectrum over those of the law, minus one, for orders 1 to 4."""
    powers = np.arange(1, N_MOMENTS + 1)
    ratios: Spectrum = (values[:, None] ** powers).mean(axis=0) / table.moments - 1
    return ratios


def bulk_moment_deviations(values: Spectrum, table: LawTable) -> Spectrum:
    """The same with outliers moved down to where they start (`outlier_margin`).

    One row that attends to one token gives an outlier of order n, rare but enough to double a third or fourth moment.
    The clipped moments have the same limit: they are averages of functions that are bounded.
    """
    return moment_deviations(np.minimum(values, outlier_margin(table, len(values))), table)


def mass_at_zero(values: Spectrum) -> float:
    """Fraction of values that are exactly zero."""
    return float(np.mean(values == 0))


def bulk_deviations(values: Spectrum, table: LawTable) -> Spectrum:
    """1 % and 99 % quantiles of the nonzero values minus those of the law, over the mean of the law.

    They stand for the ends of the bulk; single outliers do not move them. The sample's quantiles put x_(i) at
    (i − 1/2)/m, m the number of nonzero values. NaN when there are none.
    """
    nonzero = values[values > 0]
    if not nonzero.size:
        return np.full(len(BULK), np.nan)
    found: Spectrum = (np.quantile(nonzero, BULK, method="hazen") - table.bulk) / table.mean
    return found


def outlier_margin(table: LawTable, n: int) -> float:
    """right_edge·(1 + n^{−2/3}), where outliers start: a soft edge fluctuates on the relative scale n^{−2/3}."""
    return table.right_edge * (1 + float(n) ** (-2 / 3))


def outliers(values: Spectrum, table: LawTable) -> int:
    """Number of values above the outlier margin."""
    return int(np.count_nonzero(values > outlier_margin(table, len(values))))
