"""What is measured when attention is verified, and how much deviation is allowed: a `Criterion` for each statistic.

A criterion fails when softmax is further from the law than its Gaussian equivalent by more than `allowance`, or when
the equivalent itself is further from the law than `floor`: it has only the noise of its size, so then the law is at
fault. Both numbers carry their reason. With n tokens, m₂ the second moment of the mean-one law, and the effects of
`finite_size`, each at most 10 %: δ = loss + gain, s = spread/m₂,

- the mean of one sample of random Gaussian matrices has standard deviation about σ = √(2m₂(m₂−1)·h/h_kv)/n;
- a moment of order k deviates by kδ + k(k−1)s/2, its noise grows like k^{3/2}, its bias like k²/n;
- W1 deviates by δ + s/2, the distribution function by δ + s, a quantile by twice δ + 3s/2 of itself;
- a count of eigenvalues is off by 3: its fluctuations are O(√log n).

The constants come from simulation of softmax and of the equivalent for 20 layers, n = 128, …, 1024, β = 0.1, …, 1.25.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias, final

import numpy as np

from freeattn.evidence import compare
from freeattn.evidence.compare import LawTable, Spectrum
from freeattn.evidence.finite_size import FiniteSize
from freeattn.evidence.published import PublishedAgreement, published_agreement, upper_limit
from freeattn.model.attention import Attention

__all__ = ["MOST", "Allowance", "Criterion", "criteria", "criteria_against_law", "expected_effects"]

MOST = 0.1  # a finite-size effect above a tenth is not called agreement
_SIGMAS = 3.0  # standard deviations of noise that pass
_COUNT = 3.0  # eigenvalues by which a counting function may be off
_FEW = 2.0  # eigenvalues that noise may put beyond an edge


class Spectra(Protocol):
    """Squared singular values of one draw: of softmax and of its equivalent; `sampling.Sample` has them."""

    @property
    def softmax(self) -> Spectrum: ...
    @property
    def equivalent(self) -> Spectrum: ...


Evaluation: TypeAlias = Callable[[Spectra, LawTable], tuple[float, float | None]]


@final
@dataclass(frozen=True)
class Allowance:
    """A number and where it comes from."""

    value: float
    reason: str

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready form."""
        return {"value": self.value, "reason": self.reason}


@final
@dataclass(frozen=True)
class Criterion:
    """One statistic.

    Attributes:
        name, meaning, relative_to: identifier, definition, and the unit of the values.
        law: the value of the law that deviations refer to, None for distances.
        evaluate: of a sample, (softmax, equivalent); the second is None for distances between the two.
        allowance: how much further from the law than the equivalent softmax may be; None for what is reported only.
        floor: how far the equivalent may be; None for distances between the two.
    """

    name: str
    meaning: str
    relative_to: str
    law: float | None
    evaluate: Evaluation
    allowance: Allowance | None
    floor: Allowance | None


def criteria(spec: Attention, table: LawTable, size: FiniteSize, draws: int) -> tuple[Criterion, ...]:
    """All statistics for a layer, its law and a number of draws."""
    return _criteria(_Scales.of(spec, table, size, draws), table, published_agreement(spec))


def criteria_against_law(
    table: LawTable, n: int, draws: int, layer: tuple[Attention, FiniteSize] | None = None
) -> tuple[Criterion, ...]:
    """The statistics of spectra without their equivalent: `allowance` bounds the deviation from the law itself.

    Without a layer only the noise of Gaussian matrices with n rows is allowed for. Published rows do not enter: they
    measure the distance between softmax and its equivalent.
    """
    scale = _Scales.of_law(table, n, draws) if layer is None else _Scales.of(layer[0], table, layer[1], draws)
    return tuple(found for found in _criteria(scale, table, None) if not found.name.endswith("_to_equivalent"))


def _criteria(scale: _Scales, table: LawTable, published: PublishedAgreement | None) -> tuple[Criterion, ...]:
    return (
        *_distances(scale, published),
        *(_moment(order, table, scale) for order in range(1, compare.N_MOMENTS + 1)),
        *(_raw_moment(order, table) for order in range(2, compare.N_MOMENTS + 1)),
        _mass_at_zero(table, scale),
        *(_bulk_quantile(index, table, scale) for index in range(len(compare.BULK))),
        _outliers(table, scale),
    )


def expected_effects(table: LawTable, size: FiniteSize) -> tuple[float, float]:
    """δ = loss + gain on the mean and s = spread/m₂ on the second moment, both relative, not yet limited to MOST."""
    return size.loss + size.gain, size.spread * table.mean**2 / float(table.moments[1])


@final
@dataclass(frozen=True)
class _Scales:
    """δ, s and σ of the module, with n, h and draws."""

    delta: float
    spread: float
    sigma: float
    n: int
    heads: int
    draws: int

    @classmethod
    def of(cls, spec: Attention, table: LawTable, size: FiniteSize, draws: int) -> _Scales:
        shared = spec.n_heads / spec.n_kv_heads
        sigma = math.sqrt(shared) * _noise(table, spec.n_tokens)
        delta, spread = (min(effect, MOST) for effect in expected_effects(table, size))
        return cls(delta, spread, sigma, spec.n_tokens, spec.n_heads, draws)

    @classmethod
    def of_law(cls, table: LawTable, n: int, draws: int) -> _Scales:
        """Noise alone, for a law that is not that of a layer."""
        return cls(0.0, 0.0, _noise(table, n), n, 1, draws)

    @property
    def noise(self) -> float:
        """Allowed deviation of the mean over all draws."""
        return _SIGMAS * self.sigma / math.sqrt(self.draws)

    @property
    def expected(self) -> str:
        return f"expected at n = {self.n}: δ = {self.delta:.2g} of the mean, s = {self.spread:.2g} of the second moment"


def _noise(table: LawTable, n: int) -> float:
    """σ of the module for unshared keys."""
    second = float(table.moments[1]) / table.mean**2
    return math.sqrt(2 * second * (second - 1)) / n


def _against_law(statistic: Callable[[Spectrum, LawTable], float]) -> Evaluation:
    return lambda sample, table: (statistic(sample.softmax, table), statistic(sample.equivalent, table))


def _w1_between(sample: Spectra, table: LawTable) -> tuple[float, None]:
    return compare.relative_w1_between(sample.softmax, sample.equivalent, table.mean), None


def _ks_between(sample: Spectra, table: LawTable) -> tuple[float, None]:
    del table
    return compare.ks_between(sample.softmax, sample.equivalent), None


def _distances(scale: _Scales, published: PublishedAgreement | None) -> tuple[Criterion, ...]:
    noise = f"noise of one sample, σ = {scale.sigma:.2g}"
    w1_floor = Allowance(2.5 * scale.sigma + 2 / scale.n, f"2.5σ + 2/n: {noise}")
    ks_floor = Allowance(scale.sigma + 4 / scale.n, f"σ + 4/n: {noise}")
    w1 = Allowance(scale.delta + scale.spread / 2 + w1_floor.value, f"δ + s/2 and noise; {scale.expected}")
    ks = Allowance(scale.delta + scale.spread + ks_floor.value, f"δ + s and noise; {scale.expected}")
    if published is not None:
        row = f"arXiv 2610.10033, Table D.2, {published.architecture}: mean and twice the half-width of a difference"
        w1 = Allowance(upper_limit(published.relative_w1, published.relative_w1_half_width, scale.draws), row)
        ks = Allowance(upper_limit(published.ks, published.ks_half_width, scale.draws), row)
    mean, one = "the mean of the law", "one"
    ordered = "mean absolute difference of ordered values and "
    functions = "largest difference of distribution functions, "
    w1_law, ks_law = _against_law(compare.relative_w1), _against_law(compare.ks_distance)
    return (
        Criterion("relative_w1_to_law", f"{ordered}quantiles of the law", mean, None, w1_law, w1, w1_floor),
        Criterion("relative_w1_to_equivalent", f"{ordered}those of the equivalent", mean, None, _w1_between, w1, None),
        Criterion("ks_to_law", f"{functions}sample and law", one, None, ks_law, ks, ks_floor),
        Criterion("ks_to_equivalent", f"{functions}softmax and equivalent", one, None, _ks_between, ks, None),
    )


def _moment(order: int, table: LawTable, scale: _Scales) -> Criterion:
    """The mean as it is, higher moments without the weight of single outliers."""
    pairs = order * (order - 1) // 2
    noise = order**1.5 * scale.noise + order**2 / scale.n
    allowed = order * scale.delta + pairs * scale.spread + noise
    plain = order == 1
    moments = compare.moment_deviations if plain else compare.bulk_moment_deviations
    clipped = "" if plain else ", outliers moved to where they start,"
    return Criterion(
        name=f"{'' if plain else 'bulk_'}moment_{order}",
        meaning=f"moment of order {order}{clipped} over that of the law, minus one",
        relative_to=f"moment {order} of the law",
        law=float(table.moments[order - 1]),
        evaluate=_against_law(lambda values, law: float(moments(values, law)[order - 1])),
        allowance=Allowance(allowed, f"{order}δ + {pairs}s and noise; {scale.expected}"),
        floor=Allowance(noise, f"{order}²/n and three standard deviations over {scale.draws} draws"),
    )


def _raw_moment(order: int, table: LawTable) -> Criterion:
    """A moment with all outliers in it, reported without a verdict: one row on one token can double it."""
    return Criterion(
        name=f"moment_{order}",
        meaning=f"moment of order {order} over that of the law, minus one; not judged, single outliers dominate it",
        relative_to=f"moment {order} of the law",
        law=float(table.moments[order - 1]),
        evaluate=_against_law(lambda values, law: float(compare.moment_deviations(values, law)[order - 1])),
        allowance=None,
        floor=None,
    )


def _mass_at_zero(table: LawTable, scale: _Scales) -> Criterion:
    return Criterion(
        name="mass_at_zero",
        meaning="fraction of exact zeros minus the atom of the law",
        relative_to="all n values",
        law=table.zero_weight,
        evaluate=_against_law(lambda values, law: compare.mass_at_zero(values) - law.zero_weight),
        allowance=Allowance(1.5 / scale.n, "centering takes at most one dimension from the rank"),
        floor=Allowance(0.5 / scale.n, "the rank of Gaussian matrices is exact: less than one eigenvalue"),
    )


def _bulk_quantile(index: int, table: LawTable, scale: _Scales) -> Criterion:
    level, place = compare.BULK[index], float(table.bulk[index]) / table.mean
    noise = _quantile_spacing(level, table, scale.n) + place * scale.noise
    allowed = 2 * place * (scale.delta + 1.5 * scale.spread) + noise
    return Criterion(
        name=f"quantile_{round(100 * level):02d}",
        meaning=f"{level:.0%} quantile of the nonzero values minus that of the law",
        relative_to="the mean of the law",
        law=float(table.bulk[index]),
        evaluate=_against_law(lambda values, law: float(compare.bulk_deviations(values, law)[index])),
        allowance=Allowance(allowed, f"(2δ + 3s)·quantile and noise; {scale.expected}"),
        floor=Allowance(noise, f"its move when {_COUNT:g} values more or fewer lie below it, and 3σ"),
    )


def _quantile_spacing(level: float, table: LawTable, n: int) -> float:
    """How far the quantile of the nonzero part moves when _COUNT eigenvalues more or fewer lie below it."""
    nonzero = (1 - table.zero_weight) * n
    levels = np.clip(level + _COUNT / nonzero * np.array([-1, 1]), 1 / (4 * nonzero), 1 - 1 / (4 * nonzero))
    ends = np.asarray(table.law.quantile(table.zero_weight + (1 - table.zero_weight) * levels), dtype=float)
    return float(np.abs(ends - table.bulk[0 if level < 0.5 else -1]).max() / table.mean)


def _outliers(table: LawTable, scale: _Scales) -> Criterion:
    bound = scale.heads + scale.n ** (1 / 3)
    return Criterion(
        name="outliers",
        meaning="number of values above right edge·(1 + n^(−2/3))",
        relative_to="a count",
        law=table.right_edge,
        evaluate=_against_law(lambda values, law: float(compare.outliers(values, law))),
        allowance=Allowance(bound, "h + n^(1/3): one per head and a vanishing fraction; the limit is about the bulk"),
        floor=Allowance(_FEW, "a soft edge fluctuates by n^(−2/3): noise puts few values beyond it"),
    )
