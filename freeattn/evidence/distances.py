"""Distances between softmax, its Gaussian equivalent and the law at several sizes, and how they fall with n."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, final

from freeattn.evidence import compare
from freeattn.evidence.compare import LawTable, Spectrum
from freeattn.evidence.rates import Rate, fitted_rate
from freeattn.evidence.verify import Estimate
from freeattn.runs import Result

__all__ = ["PAIRS", "Distance", "distances"]

PAIRS = ("softmax-law", "equivalent-law", "softmax-equivalent")

Comparison: TypeAlias = Callable[[Spectrum, Spectrum, LawTable], tuple[float, float, float]]  # in the order of PAIRS


@final
@dataclass(frozen=True)
class Distance:
    """One distance between two of softmax, equivalent and law, at every size.

    Attributes:
        statistic: "relative_w1", "ks", or a moment: its absolute deviation over the moment of the law.
        between: "softmax-law", "equivalent-law" or "softmax-equivalent".
        estimates: mean over draws with interval, for each size.
        rate: the power of n fitted to all draws; None where a distance is exactly 0.
    """

    statistic: str
    between: str
    estimates: tuple[Estimate, ...]
    rate: Rate | None

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready form."""
        rate = None if self.rate is None else self.rate.to_dict()
        values = [one.to_dict() for one in self.estimates]
        return {"statistic": self.statistic, "between": self.between, "values": values, "rate": rate}

    def rows(self, sizes: Sequence[int]) -> Iterator[dict[str, Any]]:
        """One flat row for each size."""
        low, high = (self.rate.interval if self.rate is not None else None) or (None, None)
        exponent = None if self.rate is None else self.rate.exponent
        for n, one in zip(sizes, self.estimates, strict=True):
            ends = one.interval or (None, None)
            yield {
                "statistic": self.statistic, "between": self.between, "n_tokens": n, "mean": one.mean, "low": ends[0],
                "high": ends[1], "rate": exponent, "rate_low": low, "rate_high": high,
            }


def _w1(softmax: Spectrum, equivalent: Spectrum, table: LawTable) -> tuple[float, float, float]:
    between = compare.relative_w1_between(softmax, equivalent, table.mean)
    return compare.relative_w1(softmax, table), compare.relative_w1(equivalent, table), between


def _ks(softmax: Spectrum, equivalent: Spectrum, table: LawTable) -> tuple[float, float, float]:
    between = compare.ks_between(softmax, equivalent)
    return compare.ks_distance(softmax, table), compare.ks_distance(equivalent, table), between


def _moment(order: int) -> Comparison:
    def deviations(softmax: Spectrum, equivalent: Spectrum, table: LawTable) -> tuple[float, float, float]:
        of = compare.moment_deviations if order == 1 else compare.bulk_moment_deviations
        one, two = (float(of(values, table)[order - 1]) for values in (softmax, equivalent))
        return abs(one), abs(two), abs(one - two)

    return deviations


_STATISTICS: dict[str, Comparison] = {
    "relative_w1": _w1, "ks": _ks, "moment_1": _moment(1),
    **{f"bulk_moment_{order}": _moment(order) for order in range(2, compare.N_MOMENTS + 1)},
}


def distances(
    sizes: Sequence[int], measured: Mapping[int, Sequence[Result]], tables: Mapping[int, LawTable]
) -> Iterator[Distance]:
    """Every statistic between every two, from the draws at each size (`convergence.draw_at_size`)."""
    for name, of in _STATISTICS.items():
        found = [[of(one["softmax"], one["equivalent"], tables[n]) for one in measured[n]] for n in sizes]
        for k, between in enumerate(PAIRS):
            values = [[triple[k] for triple in row] for row in found]
            yield Distance(name, between, tuple(Estimate.of(row) for row in values), fitted_rate(sizes, values))
