"""The law of a layer as values: facts of the law of mean one, its density on two axes, and the spike above it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from freeattn.errors import NotCoveredError
from freeattn.model.attention import Attention
from freeattn.numerics.law import SpectralLaw
from freeattn.predict.shape import leading_singular_value
from freeattn.report.data import Curve, DensityData, Fact, Histogram
from freeattn.report.grid import DensityView, law_grid
from freeattn.report.tables import edge_kind

__all__ = ["density_data", "law_facts", "spike_of"]

_CURVE_POINTS = 400
_DIGITS = 6  # of coordinates in a picture
_N_MOMENTS = 4


def law_facts(law: SpectralLaw, spike: float | None) -> tuple[Fact, ...]:
    """Mean, atoms, bands, moments and spike; all but the mean are those of the law divided by it."""
    unit = law.normalized()
    facts = [Fact("mean of the law", float(law.mean))]
    for atom in unit.atoms:
        facts.append(Fact(f"weight of the atom at {float(atom.location):g}", atom.weight))
    if not unit.atoms:
        facts.append(Fact("atoms", None))
    facts.append(Fact("bands", len(unit.edges)))
    bands = zip(unit.edges, unit.edge_exponents, unit.band_masses, strict=True)
    for number, (ends, exponents, mass) in enumerate(bands, start=1):
        of = f" of band {number}" if len(unit.edges) > 1 else ""
        for side, end, exponent in zip(("left", "right"), ends, exponents, strict=True):
            facts.append(Fact(f"{side} edge{of}", float(end), f"density there: {edge_kind(float(exponent))}"))
        facts.append(Fact(f"mass{of or ' of the band'}", float(mass)))
    moments = unit.moments(_N_MOMENTS)
    facts += [Fact(f"moment {order}", float(moments[order - 1])) for order in range(2, _N_MOMENTS + 1)]
    why = "" if spike is not None else "not covered for this layer"
    facts.append(Fact("leading value s₁² over the mean, not centered", spike, why))
    return tuple(facts)


def spike_of(law: SpectralLaw, spec: Attention) -> float | None:
    """s₁²/mean of the output that is not centered, where `predict.leading_singular_value` covers it."""
    try:
        return leading_singular_value(spec) ** 2 / float(law.mean)
    except NotCoveredError:
        return None


def density_data(law: SpectralLaw, draws: Sequence[NDArray[np.float64]]) -> tuple[DensityData, ...]:
    """The law of mean one on a linear and on a logarithmic axis, with the histogram of draws (of the layer itself)."""
    unit = law.normalized()
    sample = np.concatenate(draws) / float(law.mean) if draws else None
    return tuple(_density(unit, DensityView.of(unit, log), sample) for log in (False, True))


def _density(unit: SpectralLaw, view: DensityView, sample: NDArray[np.float64] | None) -> DensityData:
    grid = law_grid(unit, _CURVE_POINTS)
    grid = grid[grid >= view.bins[0]]
    ends = np.searchsorted(grid, [float(right) for _, right in unit.edges], side="right")
    pieces = tuple(zip((0, *ends[:-1].tolist()), ends.tolist(), strict=True))
    curve = Curve(_rounded(grid), _rounded(view.height(grid)), pieces)
    return DensityData(view.log, curve, _histogram(view.bins, view.law_bars()), _sampled(view, sample))


def _sampled(view: DensityView, sample: NDArray[np.float64] | None) -> Histogram | None:
    if sample is None:
        return None
    heights, beyond = view.sample_bars(sample)
    return _histogram(view.bins, heights, beyond)


def _histogram(bins: Any, heights: Any, beyond: int = 0) -> Histogram:
    return Histogram(_rounded(bins), _rounded(heights), beyond)


def _rounded(values: Any) -> tuple[float, ...]:
    return tuple(float(f"{value:.{_DIGITS}g}") for value in values)
