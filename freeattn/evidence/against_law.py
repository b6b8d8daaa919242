"""Spectra that come without a Gaussian equivalent of their own, against a law: findings with allowances and a verdict.

What a module of another library gives, or what a user computed, is compared with the law directly: a finding fails when
its mean over the draws deviates by more than its allowance (see `criteria.criteria_against_law`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, final

from freeattn.evidence.compare import LawTable, Spectrum
from freeattn.evidence.criteria import Allowance, Criterion
from freeattn.evidence.verify import Estimate
from freeattn.evidence.written import as_text

__all__ = ["AgainstLaw", "Finding", "finding"]


@final
@dataclass(frozen=True)
class Finding:
    """One statistic of spectra against a law.

    Attributes:
        name, meaning, relative_to, law: see `criteria.Criterion`.
        measured: the deviation, or distance, over the draws.
        allowance: how large it may be; None for what is reported only.
    """

    name: str
    meaning: str
    relative_to: str
    law: float | None
    measured: Estimate
    allowance: Allowance | None

    @property
    def passed(self) -> bool | None:
        """Within the allowance (a NaN is not); None where nothing is judged."""
        return None if self.allowance is None else abs(self.measured.mean) <= self.allowance.value

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready form."""
        allowed = None if self.allowance is None else self.allowance.to_dict()
        return {
            "name": self.name, "meaning": self.meaning, "relative_to": self.relative_to, "law": self.law,
            "measured": self.measured.to_dict(), "allowance": allowed, "passed": self.passed,
        }


def finding(criterion: Criterion, spectra: Sequence[Spectrum], table: LawTable) -> Finding:
    """A criterion evaluated on the spectra of all draws."""
    values = [criterion.evaluate(_Alone(one), table)[0] for one in spectra]
    return Finding(
        criterion.name, criterion.meaning, criterion.relative_to, criterion.law, Estimate.of(values),
        criterion.allowance,
    )


@final
@dataclass(frozen=True, eq=False)
class _Alone:
    """A spectrum where a draw of softmax is expected: it stands in for its equivalent too, which nothing here reads."""

    softmax: Spectrum

    @property
    def equivalent(self) -> Spectrum:
        return self.softmax


class AgainstLaw:
    """What reports made of findings have in common."""

    findings: tuple[Finding, ...]

    def __str__(self) -> str:
        return as_text(self.rows(), ("measured",))

    @property
    def passed(self) -> bool:
        """True when no statistic failed."""
        return all(found.passed is not False for found in self.findings)

    def rows(self) -> list[dict[str, Any]]:
        """One flat row for each statistic, for tables."""
        return [_row(found) for found in self.findings]


def _row(found: Finding) -> dict[str, Any]:
    low, high = found.measured.interval or (None, None)
    return {
        "statistic": found.name, "relative_to": found.relative_to, "law": found.law, "measured": found.measured.mean,
        "measured_low": low, "measured_high": high,
        "allowance": None if found.allowance is None else found.allowance.value, "passed": found.passed,
    }
