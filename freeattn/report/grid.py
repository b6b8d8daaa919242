"""The curve of a law on a grid that resolves its edges, and what of a law or a sample is seen on an axis."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["BINS", "DensityView", "cdf_curve", "density_rows", "law_grid"]

_WIDE_BAND = 20.0  # right/left end above which half of a band's points are spaced by factors
BINS = 80
_SHOWN_BEYOND = 1.12  # the axis ends here, relative to the outermost edge
_HIDDEN_BELOW = 2e-3  # share of a band at a hard edge that a logarithmic axis leaves out, at most
_ROUNDING = 1e-9  # relative to the axis: values this close to an atom are at it
_ROUNDINGS = 8  # of the type of the values, where that is coarser


def _half_to_edge(count: int, exponent: float) -> NDArray[np.float64]:
    """Distances from an edge in (0, 1/2], as u^p/2 with u equispaced and p = max(2, 2/(1 + exponent)).

    With ρ ~ t^e at distance t, ρ dt/du ~ u^{p(1 + e) − 1} then vanishes at least like u; p = 2 at a
    square-root edge, where ρ itself is linear in u.
    """
    power = max(2.0, 2.0 / (1.0 + exponent))
    return 0.5 * (np.arange(1, count + 1) / count) ** power


def _band_grid(
    left: float, right: float, exponents: tuple[float, float], count: int
) -> NDArray[np.float64]:
    """`count` increasing points, dense at the ends, which are among them unless ρ diverges there."""
    ends = [end for end, exponent in zip((left, right), exponents, strict=True) if exponent > 0]
    inner = max(count - len(ends), 1)
    spread = inner // 3 if left > 0 and right > _WIDE_BAND * left else 0
    lower = (inner - spread + 1) // 2
    low = left + (right - left) * _half_to_edge(lower, exponents[0])
    high = right - (right - left) * _half_to_edge(inner - spread - lower + 1, exponents[1])[:-1]
    factors = left * (right / left) ** (np.arange(1, spread + 1) / (spread + 1)) if spread else np.empty(0)
    return np.unique(np.concatenate([ends, low, high, factors]))


def law_grid(law: Any, points: int = 1000) -> NDArray[np.float64]:
    """Increasing points that resolve every band of a law: about `points` in all, at most that many.

    Each band gets an equal share. Near an edge of exponent e the distance to it goes like u^{2/(1+e)} with u
    equispaced (u² at square-root edges); a band whose ends differ by a large factor also gets points spaced
    by equal factors. Edges belong to the grid unless the density diverges there.
    """
    bands = [(float(left), float(right)) for left, right in law.edges]
    if not bands:
        return np.empty(0)
    shares = [len(part) for part in np.array_split(np.arange(points), len(bands))]
    parts = [
        _band_grid(left, right, (float(soft[0]), float(soft[1])), share)
        for (left, right), soft, share in zip(bands, law.edge_exponents, shares, strict=True)
        if share
    ]
    return np.concatenate(parts)


def density_rows(law: Any, points: int = 1000) -> Iterator[tuple[float, float, float]]:
    """(x, density, cdf) on `law_grid`; atoms are steps of the cdf and no part of the density."""
    x = law_grid(law, points)
    density = np.asarray(law.density(x), dtype=float)
    cdf = np.asarray(law.cdf(x), dtype=float)
    yield from zip(x.tolist(), density.tolist(), cdf.tolist(), strict=True)


def cdf_curve(
    law: Any, low: float, high: float, points: int = 1000
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """x and cdf from `low` to `high`, with two points where an atom makes it jump."""
    ends = [float(end) for band in law.edges for end in band]
    atoms = [atom for atom in law.atoms if low <= float(atom.location) <= high and float(atom.weight) > 0]
    places = np.array([float(atom.location) for atom in atoms])
    x = np.unique(np.concatenate([[low, high], ends, places, law_grid(law, points)]))
    x = x[(low <= x) & (x <= high)]
    cdf = np.asarray(law.cdf(x), dtype=float)
    at = np.searchsorted(x, places)
    before = cdf[at] - np.array([float(atom.weight) for atom in atoms])
    return np.insert(x, at, places), np.insert(cdf, at, before)


@dataclass(frozen=True)
class DensityView:
    """What of a law is drawn: bins along the axis, and density per unit of x, or of log x."""

    law: Any
    bins: NDArray[np.float64]
    log: bool

    @classmethod
    def of(cls, law: Any, log: bool, count: int = BINS) -> DensityView:
        """What shows the whole law, but the last part of a hard edge on a logarithmic axis; `count` bins."""
        ends = [float(end) for band in law.edges for end in band]
        ends += [float(atom.location) for atom in law.atoms if not (log and float(atom.location) <= 0)]
        if not log:
            ends.append(0.0)
            limit = _SHOWN_BEYOND * max(ends) if max(ends) > 0 else 1.0
            return cls(law, np.linspace(min(ends), limit, count + 1), log)
        zero = sum(float(atom.weight) for atom in law.atoms if float(atom.location) <= 0)
        low = max(float(law.quantile(zero + _HIDDEN_BELOW * (1 - zero))) / 2, min(ends) / _SHOWN_BEYOND)
        return cls(law, np.geomspace(low, _SHOWN_BEYOND**2 * max(ends), count + 1), log)

    @property
    def widths(self) -> NDArray[np.float64]:
        """Widths of the bins, in x or log x."""
        return np.diff(np.log(self.bins) if self.log else self.bins)

    def height(self, x: NDArray[np.float64]) -> NDArray[np.float64]:
        """ρ(x), or x ρ(x) on a logarithmic axis."""
        density = np.asarray(self.law.density(x), dtype=float)
        return density * x if self.log else density

    def law_bars(self) -> NDArray[np.float64]:
        """Mean height of the law in each bin, atoms left out."""
        mass = np.diff(np.asarray(self.law.cdf(self.bins), dtype=float))
        for atom in self.law.atoms:
            place = float(atom.location)
            mass[(self.bins[:-1] < place) & (place <= self.bins[1:])] -= float(atom.weight)
        return mass / self.widths

    def at_atoms(self, sample: NDArray[np.floating[Any]]) -> tuple[NDArray[np.bool_], ...]:
        """For each atom which values are at it, as closely as their type and the axis tell."""
        rounding = max(_ROUNDING, _ROUNDINGS * float(np.finfo(sample.dtype).eps)) * float(self.bins[-1])
        return tuple(np.abs(sample - float(atom.location)) <= rounding for atom in self.law.atoms)

    def sample_bars(self, sample: NDArray[np.floating[Any]]) -> tuple[NDArray[np.float64], int]:
        """Heights of the histogram without the values at atoms, and how many values no bin holds."""
        continuous = sample[~np.any([np.zeros(sample.shape, dtype=bool), *self.at_atoms(sample)], axis=0)]
        counts = np.histogram(continuous, self.bins)[0]
        return counts / (sample.size * self.widths), int(continuous.size - counts.sum())
