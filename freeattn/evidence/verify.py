"""Simulated attention against its law: statistics over draws, with intervals, allowances and a verdict."""

from __future__ import annotations

import math
from collections.abc import Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, final

import numpy as np
from scipy import stats

from freeattn.display import ShownAsTables
from freeattn.evidence.compare import ComparableLaw, LawTable
from freeattn.evidence.criteria import MOST, Allowance, Criterion, criteria, expected_effects
from freeattn.evidence.draws import layer_draws, number_of_draws
from freeattn.evidence.finite_size import FiniteSize
from freeattn.evidence.finite_size import finite_size as size_effects
from freeattn.evidence.sampling import Sample
from freeattn.evidence.weights import check_sizes, named_seed
from freeattn.evidence.written import as_text, verdict
from freeattn.model.attention import Attention
from freeattn.numerics.limiting import law as limiting_law
from freeattn.runs import Progress, Store

__all__ = ["Estimate", "Statistic", "Verification", "verify"]

CONFIDENCE = 0.95


@final
@dataclass(frozen=True)
class Estimate:
    """Mean over draws with the half-width of its 95 % Student-t interval; None when there is one draw only."""

    mean: float
    half_width: float | None

    @classmethod
    def of(cls, values: Sequence[float]) -> Estimate:
        """From one value for each draw, taken as independent."""
        n = len(values)
        if n == 1:
            return cls(float(values[0]), None)
        quantile = stats.t.ppf((1 + CONFIDENCE) / 2, n - 1)
        return cls(float(np.mean(values)), float(quantile * np.std(values, ddof=1) / math.sqrt(n)))

    @property
    def interval(self) -> tuple[float, float] | None:
        """(low, high), or None when one draw gives no interval."""
        return None if self.half_width is None else (self.mean - self.half_width, self.mean + self.half_width)

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready form: mean and interval, None in place of what is not finite."""
        interval = self.interval
        ends = None if interval is None else [_finite(end) for end in interval]
        return {"mean": _finite(self.mean), "interval": ends}


@final
@dataclass(frozen=True)
class Statistic:
    """One statistic with its verdict; values are deviations from the law, or distances, relative to `relative_to`.

    Attributes:
        name, meaning, relative_to, law, allowance, floor: see `criteria.Criterion`.
        n_tokens, draws: what it was measured at.
        softmax, equivalent: estimates; `equivalent` is the noise floor, None for distances between the two.
        limit: at finite size, softmax against the law of the limit, which is not judged; None otherwise.
    """

    name: str
    meaning: str
    relative_to: str
    law: float | None
    n_tokens: int
    draws: int
    softmax: Estimate
    equivalent: Estimate | None
    allowance: Allowance | None
    floor: Allowance | None
    limit: Estimate | None = None

    @property
    def excess(self) -> float:
        """How much further from the law softmax is than its equivalent (or how far from the equivalent)."""
        return abs(self.softmax.mean) - (0.0 if self.equivalent is None else abs(self.equivalent.mean))

    @property
    def passed(self) -> bool | None:
        """Excess within the allowance, and the equivalent within the floor; a NaN does not pass.

        None for a statistic without an allowance, which is reported only.
        """
        if self.allowance is None:
            return None
        quiet = self.equivalent is None or self.floor is None or abs(self.equivalent.mean) <= self.floor.value
        return quiet and self.excess <= self.allowance.value

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready form."""
        limit = {} if self.limit is None else {"softmax_to_limit": self.limit.to_dict()}
        return {
            "name": self.name, "meaning": self.meaning, "relative_to": self.relative_to, "law": self.law,
            "n_tokens": self.n_tokens, "draws": self.draws, "softmax": self.softmax.to_dict(),
            "equivalent": None if self.equivalent is None else self.equivalent.to_dict(),
            "excess": _finite(self.excess),
            "allowance": None if self.allowance is None else self.allowance.to_dict(),
            "floor": None if self.floor is None else self.floor.to_dict(),
            "passed": self.passed, **limit,
        }


@final
@dataclass(frozen=True, eq=False, repr=False)
class Verification(ShownAsTables):
    """Simulated attention against a law.

    Attributes:
        spec, seed, draws: what was simulated; draw i uses SeedSequence(seed).spawn(draws)[i].
        size: finite-size effects expected at these sizes.
        statistics: one for each criterion, with its verdict.
        warnings: sentences on what limits the comparison.
        samples: the spectra of every draw.
    """

    shown_as: ClassVar[str] = "verification"

    spec: Attention
    seed: int
    draws: int
    size: FiniteSize
    statistics: tuple[Statistic, ...]
    warnings: tuple[str, ...]
    samples: tuple[Sample, ...]

    def __repr__(self) -> str:
        return f"<Verification of {self.spec.name or self.spec.output}, {self.draws} draws: {verdict(self.rows())}>"

    def __str__(self) -> str:
        return as_text(self.rows(), ("softmax", "equivalent", *(("limit",) if self.spec.finite_size else ())))

    @property
    def passed(self) -> bool:
        """True when no statistic failed."""
        return all(statistic.passed is not False for statistic in self.statistics)

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready form: plain numbers, texts and None; without the samples."""
        size = {"loss": self.size.loss, "gain": self.size.gain, "spread": self.size.spread}
        return {
            "spec": self.spec.to_dict(), "not_modelled": list(self.spec.not_modelled), "seed": self.seed,
            "draws": self.draws, "confidence": CONFIDENCE, "passed": self.passed, "expected_finite_size": size,
            "warnings": list(self.warnings), "statistics": [statistic.to_dict() for statistic in self.statistics],
        }

    def rows(self) -> list[dict[str, Any]]:
        """One flat row for each statistic, for tables."""
        return [_row(statistic, self.spec.finite_size) for statistic in self.statistics]


def verify(
    spec: Attention, draws: int = 10, seed: int = 0, law: ComparableLaw | None = None,
    progress: Progress | None = None, *, executor: Executor | None = None, workers: int | None = 1,
    store: Store | str | Path | None = None, finite_size: bool = False,
) -> Verification:
    """Simulate attention and compare its squared singular values with the law, statistic by statistic.

    Next to softmax stands its Gaussian equivalent with the same weights, whose distance from the law is the noise floor
    at this size. A statistic fails when softmax is further from the law than the equivalent by more than its allowance,
    or the equivalent further than its floor (see `criteria`).

    Args:
        spec: a layer with sizes.
        draws: number of independent draws; with one there are no intervals.
        seed: the same seed gives the same result on the same machine.
        law: what to compare with (default: the law of the specification).
        progress: called as progress(done, draws) after each draw.
        executor, workers, store: where draws are made and kept, as in `runs.run`; by default in this process. The
            numbers do not depend on them.
        finite_size: compare with the law at finite size (`Attention.with_finite_size`), and next to it with the limit.

    Raises:
        InputError: for sizes, draws or a seed that are not allowed; see also `sampling.sample`.
    """
    count, root = number_of_draws(draws, 1), named_seed(seed)
    if finite_size:
        spec = spec.with_finite_size()
    check_sizes(spec)
    table = LawTable.of(limiting_law(spec) if law is None else law, spec.n_tokens)
    samples = layer_draws(spec, count, root, executor=executor, workers=workers, store=store, progress=progress)
    size = size_effects(spec)
    limits = _against_limit(spec, samples) if spec.finite_size else {}
    wanted = criteria(spec, table, size, count)
    found = tuple(_statistic(criterion, samples, table, limits.get(criterion.name)) for criterion in wanted)
    return Verification(spec, root, count, size, found, _warnings(spec, size, table, count), samples)


def _against_limit(spec: Attention, samples: Sequence[Sample]) -> dict[str, Estimate]:
    """Softmax against the law of the limit, by the name of the statistic; without distances to the equivalent."""
    limiting = spec.with_finite_size(False)
    table = LawTable.of(limiting_law(limiting), spec.n_tokens)
    wanted = criteria(limiting, table, size_effects(limiting), len(samples))
    pairs = {one.name: [one.evaluate(sample, table) for sample in samples] for one in wanted}
    return {name: Estimate.of([a for a, _ in both]) for name, both in pairs.items() if both[0][1] is not None}


def _statistic(
    criterion: Criterion, samples: Sequence[Sample], table: LawTable, limit: Estimate | None
) -> Statistic:
    pairs = [criterion.evaluate(one, table) for one in samples]
    equivalent = [second for _, second in pairs if second is not None]
    return Statistic(
        name=criterion.name, meaning=criterion.meaning, relative_to=criterion.relative_to, law=criterion.law,
        n_tokens=samples[0].spec.n_tokens, draws=len(samples), softmax=Estimate.of([first for first, _ in pairs]),
        equivalent=Estimate.of(equivalent) if equivalent else None, allowance=criterion.allowance,
        floor=criterion.floor, limit=limit,
    )


def _warnings(spec: Attention, size: FiniteSize, table: LawTable, draws: int) -> tuple[str, ...]:
    found = []
    delta, spread = expected_effects(table, size)
    narrowest = min(family.d_key for family in spec.families)
    if spec.dominated_rows is not None:
        found.append(spec.dominated_rows.warning)
    if max(delta, spread) > MOST:
        found.append(
            f"finite-size effects above {MOST:.0%} are expected at n_tokens = {spec.n_tokens}, d_key = {narrowest} "
            f"(few tokens take {size.loss:.1%} of the mean, few key dimensions change it by {size.gain:.1%}, the "
            f"second moment moves by {spread:.1%}); allowances stop at {MOST:.0%} each: a failure may only mean a "
            "layer too small"
        )
    if draws == 1:
        found.append("one draw gives no confidence interval")
    return tuple(found)


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _row(statistic: Statistic, at_finite_size: bool) -> dict[str, Any]:
    row: dict[str, Any] = {"statistic": statistic.name, "relative_to": statistic.relative_to, "law": statistic.law}
    for name, estimate in (("softmax", statistic.softmax), ("equivalent", statistic.equivalent)):
        low, high = (estimate.interval if estimate is not None else None) or (None, None)
        row |= {name: None if estimate is None else estimate.mean, f"{name}_low": low, f"{name}_high": high}
    if statistic.limit is not None:
        low, high = statistic.limit.interval or (None, None)
        row |= {"limit": statistic.limit.mean, "limit_low": low, "limit_high": high}
    elif at_finite_size:
        row |= dict.fromkeys(("limit", "limit_low", "limit_high"))
    floor = None if statistic.floor is None else statistic.floor.value
    allowance = None if statistic.allowance is None else statistic.allowance.value
    row |= {"excess": statistic.excess, "allowance": allowance, "floor": floor}
    row |= {"n_tokens": statistic.n_tokens, "draws": statistic.draws, "passed": statistic.passed}
    return row
