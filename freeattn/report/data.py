"""What a report is made of: plain values of one layer or several, collected elsewhere (`freeattn.findings`)."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, TypeAlias

from freeattn.report.numbers import number_text

__all__ = [
    "Curve", "DensityData", "Derived", "Evidence", "Fact", "Formula", "Histogram", "LayerData", "Piece", "ReportData",
    "StepData", "Value",
]

Value: TypeAlias = "int | float | Fraction | str | None"
SHOWN_DIGITS = 8
_LONGEST_EXACT = 12  # characters of a fraction that is still worth reading


@dataclass(frozen=True)
class Fact:
    """A named value; `note` says more where a number is not enough, or why there is none."""

    name: str
    value: Value
    note: str = ""

    @property
    def text(self) -> str:
        """The value as it is printed: exact where that is short, else 8 digits."""
        value = self.value
        if value is None:
            return "none"
        if isinstance(value, (str, int)):
            return str(value)
        if isinstance(value, Fraction):
            exact, digits = str(value), number_text(value, SHOWN_DIGITS)
            return digits if len(exact) > _LONGEST_EXACT else exact if exact == digits else f"{exact} = {digits}"
        return "infinite" if math.isinf(value) else number_text(value, SHOWN_DIGITS)


@dataclass(frozen=True)
class Curve:
    """Points of a function; `pieces` are the (first, last + 1) indices of parts that are not joined."""

    x: tuple[float, ...]
    y: tuple[float, ...]
    pieces: tuple[tuple[int, int], ...]

    @classmethod
    def of(cls, x: Any, y: Any) -> Curve:
        """One piece from two arrays."""
        xs, ys = tuple(map(float, x)), tuple(map(float, y))
        return cls(xs, ys, ((0, len(xs)),))


@dataclass(frozen=True)
class Histogram:
    """Heights over bins: of a sample, or of the law averaged over the same bins."""

    edges: tuple[float, ...]
    heights: tuple[float, ...]
    beyond: int = 0


@dataclass(frozen=True)
class DensityData:
    """The density of a law of mean one on one axis: ρ(x), or the density x ρ(x) of log x where `log` holds.

    Attributes:
        curve: the density, one piece for each band.
        means: the law averaged over the bins of its histogram, which stay finite at hard edges.
        sample: the histogram of simulated draws, None without them.
    """

    log: bool
    curve: Curve
    means: Histogram
    sample: Histogram | None


@dataclass(frozen=True)
class Formula:
    """A formula: LaTeX (math mode) in lines, the same in words of plain text, and its number where it has one."""

    name: str
    left: str
    lines: tuple[str, ...]
    text: str
    number: int | None = None


@dataclass(frozen=True)
class Piece:
    """A part of a sentence: words (`text` alone), a formula (with `latex`), or a link to formulas by their names."""

    text: str
    latex: str = ""
    names: tuple[str, ...] = ()


@dataclass(frozen=True)
class StepData:
    """One step of a derivation."""

    title: str
    sentence: tuple[Piece, ...]
    formulas: tuple[Formula, ...]


@dataclass(frozen=True)
class Derived:
    """A derivation: its steps, and what it rests on as (name, statement, source)."""

    route: str
    steps: tuple[StepData, ...]
    assumptions: tuple[tuple[str, str, str], ...]
    sources: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Evidence:
    """Simulated draws against the law.

    Attributes:
        rows: those of a verification; empty when nothing was drawn.
        sentences: at which size, and what limits the comparison.
        passed: None when nothing was drawn.
    """

    rows: tuple[dict[str, Any], ...]
    sentences: tuple[str, ...]
    passed: bool | None


@dataclass(frozen=True)
class LayerData:
    """Everything that a report says about one layer; laws are of mean one unless said otherwise.

    Attributes:
        name: what its columns and curves are called; unique in a report.
        architecture, law, predictions: tables, compared by the names of the facts.
        not_modelled: what the layer has and the theory has not.
        notes: sentences on where the layer comes from.
        warnings: sentences on what its law, and predictions from it, do not hold for.
        spike: s₁²/mean of the output that is not centered, None where it is not covered.
        atoms: (location, weight) of the law of mean one.
        densities: on a linear and on a logarithmic axis.
        ridge, freedom, loss: predictions as curves; None where they are not covered.
        record: the specification in JSON-ready form.
    """

    name: str
    architecture: tuple[Fact, ...]
    not_modelled: tuple[str, ...]
    notes: tuple[str, ...]
    warnings: tuple[str, ...]
    law: tuple[Fact, ...]
    spike: float | None
    atoms: tuple[tuple[float, float], ...]
    densities: tuple[DensityData, ...]
    predictions: tuple[Fact, ...]
    ridge: Curve | None
    freedom: Curve | None
    loss: Curve | None
    evidence: Evidence
    derivation: Derived
    record: dict[str, Any]


@dataclass(frozen=True)
class ReportData:
    """A report: its layers and how to make it again.

    Attributes:
        command: the line of a shell or of Python that makes it.
        noise: variance of the noise of ridge regression.
        versions: (package, version).
        date: None unless it was given, so that the same command gives the same file.
    """

    layers: tuple[LayerData, ...]
    version: str
    command: str
    draws: int
    seed: int
    noise: float
    versions: tuple[tuple[str, str], ...]
    date: str | None = None

    @property
    def title(self) -> str:
        """The names of its layers."""
        return ", ".join(layer.name for layer in self.layers)

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready: facts, evidence and specifications; without curves and derivations."""
        return {
            "version": self.version, "draws": self.draws, "seed": self.seed, "noise": self.noise,
            "versions": dict(self.versions), "layers": [_layer_record(layer) for layer in self.layers],
        }


def _layer_record(layer: LayerData) -> dict[str, Any]:
    tables = {
        name: {fact.name: _plain(fact.value) for fact in getattr(layer, name)}
        for name in ("architecture", "law", "predictions")
    }
    return {
        "name": layer.name, "spec": layer.record, **tables, "spike": layer.spike,
        "not_modelled": list(layer.not_modelled), "notes": list(layer.notes),
        "warnings": list(layer.warnings),
        "evidence": dataclasses.asdict(layer.evidence),
    }


def _plain(value: Value) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return float(value) if isinstance(value, Fraction) else value
