"""Table D.2 and Figure D.1 of arXiv 2610.10033: spectra of softmax attention, its Gaussian equivalent and its law."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from freeattn.evidence.compare import ks_between, relative_w1, relative_w1_between
from freeattn.evidence.published import TABLE_D2, Printed, PublishedAgreement
from freeattn.evidence.reproduce_draws import SPECTRA
from freeattn.evidence.reproduce_parts import (
    Case,
    Draw,
    Figure,
    Found,
    Histogram,
    Panel,
    Points,
    Reproduced,
)
from freeattn.model.attention import Attention

__all__ = ["figure_d1", "table_d2"]


def _mean_of_law(laws: Sequence[Any]) -> float:
    return float(laws[0].mean)


def _mean(draws: Sequence[Draw]) -> float:
    return float(draws[0].read.softmax.mean())


def _w1_to_equivalent(draws: Sequence[Draw]) -> float:
    (draw,) = draws
    return relative_w1_between(draw.read.softmax, draw.read.equivalent, draw.unit)


def _ks_to_equivalent(draws: Sequence[Draw]) -> float:
    return ks_between(draws[0].read.softmax, draws[0].read.equivalent)


def _w1_to_law(draws: Sequence[Draw]) -> float:
    return relative_w1(draws[0].read.softmax, draws[0].table)


# Table D.2 --------------------------------------------------------------------------------------------------------

# A draw at full size takes minutes: sizes are divided unless asked otherwise.
_TABLE_SCALES = {"llada-8b": 4, "gpt3-175b": 4, "falcon-7b": 4, "kayyam-1.2b-kv": 2}


def table_d2() -> Figure:
    """Relative W1 and KS distance between softmax and its Gaussian equivalent, with the same Q, K, V and W^O."""
    rows = [(row, Case(row.spec(), SPECTRA, _TABLE_SCALES.get(row.architecture, 1))) for row in TABLE_D2]
    return Figure(
        name="table-d2", title="Table D.2: softmax against its Gaussian equivalent",
        setting="published architectures, beta = 1, orthogonal tokens, d_out = d_model; ten draws with the same "
        "queries, keys, values and output map",
        draws=10, quantities=tuple(quantity for row, case in rows for quantity in _agreement(row, case)),
        panels=lambda found: _agreement_panels(found, rows),
        note="The distances fall with the size of the layer: printed ones compare with those at full size only.",
    )


def _agreement(row: PublishedAgreement, case: Case) -> tuple[Reproduced, ...]:
    name = row.architecture
    w1 = Printed(f"{row.relative_w1:.4f}", row.relative_w1_half_width)
    ks = Printed(f"{row.ks:.4f}", row.ks_half_width)
    return (
        Reproduced(
            label=name, name="mean", cases=(case,), theory=_mean_of_law, measure=_mean,
            printed_theory=row.printed_mean,
        ),
        Reproduced(label=name, name="relative W1 to equivalent", cases=(case,), measure=_w1_to_equivalent, printed=w1),
        Reproduced(label=name, name="KS to equivalent", cases=(case,), measure=_ks_to_equivalent, printed=ks),
    )


def _agreement_panels(found: Found, rows: Sequence[tuple[PublishedAgreement, Case]]) -> tuple[Panel, ...]:
    names = tuple(
        row.architecture + (f" (1/{found.drawn[case].scale})" if found.drawn[case].scale > 1 else "")
        for row, case in rows
    )
    places = dict(enumerate(case for _, case in rows))
    printed = {
        "relative W1": [(row.relative_w1, row.relative_w1_half_width) for row, _ in rows],
        "KS distance": [(row.ks, row.ks_half_width) for row, _ in rows],
    }
    measures = {"relative W1": _w1_to_equivalent, "KS distance": _ks_to_equivalent}
    panels = []
    for name, values in printed.items():
        shifted = [place + 0.15 for place in places]
        paper = Points("printed, full size", shifted, [v for v, _ in values], [h for _, h in values])
        here = found.points("here", measures[name], places)
        panels.append(Panel(f"softmax to equivalent: {name}", "", name, points=(here, paper), names=names, log="y"))
    return tuple(panels)


# Figure D.1 -------------------------------------------------------------------------------------------------------

_TOKENS = 256
_ATTENTION = {"h = 4, d_key = 1024": (4, 1024), "h = 16, d_key = 256": (16, 256)}
_OUTPUTS = (4096, 256)


def figure_d1() -> Figure:
    """Densities of attention and of MHA with independent, shared and tied keys and values over softmax histograms."""
    cases = _density_cases()
    return Figure(
        name="fig-d1", title="Figure D.1: densities over histograms of softmax attention",
        setting="n = 256, beta = 1, orthogonal tokens; attention alone and MHA with h = 16, d_key = d_value = 256; "
        "keys and values independent, shared by all heads, or equal within each head",
        draws=10,
        quantities=tuple(quantity for label, case in cases.items() for quantity in _density_rows(label, case)),
        panels=lambda found: _density_panels(found, cases),
        note="Sharing across heads does not change these laws. The tokens are as wide as there are tokens here; the "
        "spectrum does not depend on that for orthogonal ones.",
    )


def _density_cases() -> Mapping[str, Case]:
    cases = {}
    for label, (heads, d_key) in _ATTENTION.items():
        base = Attention(n_tokens=_TOKENS, d_model=_TOKENS, n_heads=heads, d_key=d_key, output="attention")
        cases[f"attention, {label}, independent"] = Case(base, SPECTRA)
        cases[f"attention, {label}, shared"] = Case(base.replace(n_kv_heads=1), SPECTRA)
    for d_out in _OUTPUTS:
        base = Attention(n_tokens=_TOKENS, d_model=_TOKENS, n_heads=16, d_key=256, d_value=256, d_out=d_out)
        cases[f"MHA, d_out = {d_out}, independent"] = Case(base, SPECTRA)
        cases[f"MHA, d_out = {d_out}, shared"] = Case(base.replace(n_kv_heads=1), SPECTRA)
        cases[f"MHA, d_out = {d_out}, K = V"] = Case(base.replace(tie="key-value"), SPECTRA)
    return cases


def _density_rows(label: str, case: Case) -> tuple[Reproduced, ...]:
    return (
        Reproduced(label=label, name="mean", cases=(case,), theory=_mean_of_law, measure=_mean),
        Reproduced(label=label, name="relative W1 to law", cases=(case,), measure=_w1_to_law),
    )


def _density_panels(found: Found, cases: Mapping[str, Case]) -> tuple[Panel, ...]:
    panels = []
    for label, case in cases.items():
        drawn = found.drawn[case]
        values = np.concatenate([read.softmax for read in drawn.reads])
        panels.append(Panel(label, "squared singular value", "density", histogram=Histogram(drawn.law, values)))
    return tuple(panels)
