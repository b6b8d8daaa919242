"""Random matrices of an expression against its law: statistics over draws, with intervals, allowances and a verdict.

A statistic fails when it deviates by more than chance and size explain: |mean| − half-width of its 95 % interval above
its allowance. The allowances are of the order 1/N, the rate at which moments of Gaussian matrices converge, N being the
smallest space; their constants cover what words of one to nine letters showed in simulation with N = 30, …, 240.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Protocol, final

import numpy as np

from freeattn.display import ShownAsTables
from freeattn.errors import InputError
from freeattn.evidence.compare import Spectrum
from freeattn.evidence.criteria import Allowance
from freeattn.evidence.draws import number_of_draws, word_draws
from freeattn.evidence.verify import CONFIDENCE, Estimate
from freeattn.evidence.weights import named_seed
from freeattn.evidence.words import Numbers
from freeattn.evidence.written import as_text, verdict
from freeattn.model.expression import Expression
from freeattn.model.word_sizes import checked_sizes
from freeattn.numerics.limiting import law as limiting_law
from freeattn.runs import Progress, Store

__all__ = ["WordStatistic", "WordVerification", "WordsLaw", "verify_words"]

N_MOMENTS = 4
_LEAST_SIZE = 64  # of the smallest space: allowances go like 1/N, and at N = 64 none is so wide that it cannot fail
_POINTS = (-1 + 1j, 1j, 1 + 1j)  # of the resolvent, in units of the standard size of the law around its mean


class WordsLaw(Protocol):
    """What a comparison needs of a law on the real line."""

    @property
    def edges(self) -> Sequence[tuple[float, float]]: ...
    def moments(self, k: int) -> Sequence[Any]: ...
    def cdf(self, x: Any) -> Any: ...
    def quantile(self, p: Any) -> Any: ...
    def stieltjes(self, z: Any) -> Any: ...


@final
@dataclass(frozen=True)
class WordStatistic:
    """One statistic with its verdict.

    Attributes:
        name, meaning, relative_to: identifier, definition, and the unit of the values.
        law: the value of the law that deviations refer to, None for distances.
        simulated: deviation from the law, or distance to it, over the draws.
        allowance: what size explains.
    """

    name: str
    meaning: str
    relative_to: str
    law: float | None
    simulated: Estimate
    allowance: Allowance

    @property
    def excess(self) -> float:
        """What chance does not explain: |mean| less the half-width of its interval, at least 0."""
        return max(abs(self.simulated.mean) - (self.simulated.half_width or 0.0), 0.0)

    @property
    def passed(self) -> bool:
        """Excess within the allowance; a NaN does not pass."""
        return self.excess <= self.allowance.value and not math.isnan(self.simulated.mean)

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready form."""
        return {
            "name": self.name, "meaning": self.meaning, "relative_to": self.relative_to, "law": self.law,
            "simulated": self.simulated.to_dict(), "excess": self.excess, "passed": self.passed,
            "allowance": self.allowance.to_dict(),
        }


@final
@dataclass(frozen=True, eq=False, repr=False)
class WordVerification(ShownAsTables):
    """Simulated words against their law.

    Attributes:
        expression, of, sizes, seed, draws: what was simulated; draw i uses SeedSequence(seed).spawn(draws)[i].
        statistics: each with its verdict.
        samples: the eigenvalues of every draw.
    """

    shown_as: ClassVar[str] = "word-verification"

    expression: Expression
    of: str
    sizes: Mapping[Any, Any]
    seed: int
    draws: int
    statistics: tuple[WordStatistic, ...]
    samples: tuple[Spectrum, ...]

    def __repr__(self) -> str:
        return f"<WordVerification of {self.expression}, {self.draws} draws: {verdict(self.rows())}>"

    def __str__(self) -> str:
        return as_text(self.rows(), ("simulated",))

    @property
    def passed(self) -> bool:
        """True when no statistic failed."""
        return all(statistic.passed for statistic in self.statistics)

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready form: plain numbers and texts; without the samples."""
        return {
            "expression": str(self.expression), "of": self.of, "seed": self.seed, "draws": self.draws,
            "sizes": {str(key): float(value) for key, value in self.sizes.items()}, "confidence": CONFIDENCE,
            "passed": self.passed, "statistics": [statistic.to_dict() for statistic in self.statistics],
        }

    def rows(self) -> list[dict[str, Any]]:
        """One flat row for each statistic, for tables."""
        return [_row(statistic) for statistic in self.statistics]


def verify_words(
    expression: Expression, sizes: Mapping[Any, Any] | None = None, draws: int = 10, seed: int = 0, of: str = "gram",
    law: WordsLaw | None = None, progress: Progress | None = None, *, executor: Executor | None = None,
    workers: int | None = 1, store: Store | str | Path | None = None,
) -> WordVerification:
    """Draw the letters of an expression and compare eigenvalues with the law, statistic by statistic.

    Args:
        expression: M.
        sizes: a number for every space, family of copies and symbol that has none yet.
        draws: number of independent draws, at least 2: chance is measured by their spread.
        seed: the same seed gives the same result on the same machine.
        of: "gram", "cogram" or "self-adjoint".
        law: what to compare with (default: the law of the expression at these sizes).
        progress: called as progress(done, draws) after each draw.
        executor, workers, store: where draws are made and kept, as in `runs.run`; by default in this process.

    Raises:
        InputError: for sizes, draws or a seed that are not allowed.
    """
    count, root = number_of_draws(draws, 2), named_seed(seed)
    checked_sizes(expression, sizes)
    given = dict(sizes or {})
    smallest = _smallest(expression, given)
    if smallest < _LEAST_SIZE:
        allowed = f"sizes in the same ratios with at least {_LEAST_SIZE} in every space: fewer say nothing of a limit"
        raise InputError("sizes", f"a space of {smallest}", allowed)
    found = _law_of(expression, of, given) if law is None else law  # before the draws: a refusal costs nothing
    samples = word_draws(
        expression, given, count, root, of, executor=executor, workers=workers, store=store, progress=progress
    )
    statistics = _Comparison(found, samples, smallest).statistics()
    return WordVerification(expression, of, given, root, count, statistics, samples)


def _law_of(expression: Expression, of: str, sizes: Mapping[Any, Any]) -> WordsLaw:
    make: Callable[..., Any] = limiting_law
    return make(expression, of=of, sizes=sizes)


def _smallest(expression: Expression, sizes: Mapping[Any, Any]) -> int:
    numbers = Numbers(checked_sizes(expression, sizes))
    places = {place for letter in expression.letters for place in (letter.rows, letter.columns)}
    return min(numbers.size(place) for place in places | set(expression.shape))


@final
class _Comparison:
    """A law, evaluated once, and the spectra that are compared with it."""

    def __init__(self, law: WordsLaw, samples: Sequence[Spectrum], smallest: int) -> None:
        self._law, self._samples, self._smallest = law, samples, smallest
        self._moments = [float(moment) for moment in law.moments(N_MOMENTS)]
        self._size = math.sqrt(self._moments[1])  # the natural unit of a law that may be symmetric about 0
        count = len(samples[0])
        self._quantiles = np.asarray(law.quantile((np.arange(count) + 0.5) / count), dtype=float)
        ends = (law.edges[0][0], law.edges[-1][1]) if law.edges else law.quantile(np.array([0.0, 1.0]))
        low, high = (float(end) for end in ends)
        margin = (high - low) * count ** (-2 / 3)  # a soft edge fluctuates on the relative scale n^{−2/3}
        self._reach = (low - margin, high + margin)

    def statistics(self) -> tuple[WordStatistic, ...]:
        """All of them."""
        unit = "root of the second moment of the law"
        distances = (
            self._made(
                "relative_w1", "mean absolute difference of ordered eigenvalues and quantiles of the law", unit, None,
                self._w1, 3,
            ),
            self._made(
                "ks", "largest difference of distribution functions, sample and law", "one", None, self._ks, 5
            ),
        )
        orders, points = range(1, N_MOMENTS + 1), self._points()
        return (
            *distances,
            *(self._moment(order) for order in orders),
            *(self._resolvent(number, z) for number, z in enumerate(points, start=1)),
        )

    def _moment(self, order: int) -> WordStatistic:
        value = self._moments[order - 1]
        unit = value if order % 2 == 0 else max(abs(value), self._size**order)
        return self._made(
            f"bulk_moment_{order}", f"moment of order {order}, eigenvalues outside the law's support moved to its ends",
            f"moment {order} of the law" if unit == value else f"root of the second moment, to the power {order}",
            value, lambda values: float(np.mean(np.clip(values, *self._reach) ** order) - value) / unit, 1.5 * order**2,
        )

    def _resolvent(self, number: int, z: complex) -> WordStatistic:
        value = complex(self._law.stieltjes(z))
        return self._made(
            f"resolvent_{number}", f"distance of tr(M − z)⁻¹ to m(z) at z = {z:.4g}", "|m(z)|", abs(value),
            lambda values: float(abs(np.mean(1 / (values - z)) / value - 1)), 2,
        )

    def _points(self) -> list[complex]:
        return [self._moments[0] + self._size * point for point in _POINTS]

    def _w1(self, values: Spectrum) -> float:
        return float(np.abs(np.clip(values, *self._reach) - self._quantiles).mean() / self._size)

    def _ks(self, values: Spectrum) -> float:
        """Kolmogorov-Smirnov distance, jumps of the law at the eigenvalues counted on their right side only."""
        at = np.asarray(self._law.cdf(np.append(values, self._quantiles)), dtype=float)
        there = np.searchsorted(values, np.append(values, self._quantiles), side="right") / len(values)
        return float(np.abs(at - there).max())

    def _made(
        self, name: str, meaning: str, relative_to: str, law: float | None, evaluate: Callable[[Spectrum], float],
        constant: float,
    ) -> WordStatistic:
        allowed = Allowance(constant / self._smallest, f"{constant:g}/N: the smallest space has N = {self._smallest}")
        values = [evaluate(values) for values in self._samples]
        return WordStatistic(name, meaning, relative_to, law, Estimate.of(values), allowed)


def _row(statistic: WordStatistic) -> dict[str, Any]:
    low, high = statistic.simulated.interval or (None, None)
    return {
        "statistic": statistic.name, "relative_to": statistic.relative_to, "law": statistic.law,
        "simulated": statistic.simulated.mean, "simulated_low": low, "simulated_high": high,
        "excess": statistic.excess, "allowance": statistic.allowance.value, "passed": statistic.passed,
    }
