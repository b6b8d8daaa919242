"""Figures 3(a) and 3(b) of arXiv 2610.10033: what shared and tied keys and values buy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from freeattn.evidence.published import FIGURE_3A_MEASURED, FIGURE_3A_TIMES, FIGURE_3B_SIGNS
from freeattn.evidence.reproduce_draws import FEATURES
from freeattn.evidence.reproduce_parts import Case, Draw, Figure, Found, Line, Panel, Reproduced
from freeattn.evidence.reproduce_readouts import loss_points, measured_ridge, theory_ridge
from freeattn.model.attention import Attention
from freeattn.numerics.limiting import law as limiting_law
from freeattn.predict.flow import arrival_time, flow_loss
from freeattn.predict.parameters import parameter_count, width_at

__all__ = ["figure_3a", "figure_3b"]

# Figure 3(a) ------------------------------------------------------------------------------------------------------

_TOKENS = 4096
_LEVEL = 0.1
_TIMES = np.geomspace(0.05, 200, 121)
_SHOWN = _TIMES[::8]
_KV_HEADS = (1, 2, 4, 8, 16, 32, 64)


def figure_3a() -> Figure:
    """Time to a loss of 0.1 when heads share keys and values, and their weights go into wider heads."""
    base = Attention(n_tokens=_TOKENS, d_model=_TOKENS, n_heads=64, d_key=64, d_value=64, d_out=2 * _TOKENS)
    width = round(_shared_width(base))
    shared = base.replace(n_kv_heads=1, d_key=width, d_value=width)
    cases = {"fixed widths": Case(base, FEATURES, 2), "rounded": Case(shared, FEATURES, 2)}
    return Figure(
        name="fig-3a", title="Figure 3(a): time to loss 0.1 when heads share keys and values",
        setting="h = 64, n = d_model = 4096, d_out = 2n, beta = 1; fixed widths d_key = d_value = 64, or the width "
        f"that keeps the number of weights when n_kv_heads = 1 (rounded: {width})",
        draws=4, quantities=_arrival_rows(base, cases, width), panels=lambda found: _arrival_panels(found, base, cases),
        note="Sharing alone changes no law: at fixed widths the time is the same for every n_kv_heads.",
    )


def _shared_width(base: Attention, kv_heads: int = 1) -> Any:
    """The common width of keys and values that keeps the number of weights of the layer without sharing."""
    return width_at(base.replace(n_kv_heads=kv_heads), parameter_count(base), ("d_key", "d_value"))


def _by_ratios(base: Attention, kv_heads: int) -> Attention:
    gamma = _shared_width(base, kv_heads) * base.n_heads / base.n_tokens
    return Attention.from_ratios(gamma, gamma, base.gamma_out, n_heads=base.n_heads, n_kv_heads=kv_heads)


def _arrival_rows(base: Attention, cases: Mapping[str, Case], width: int) -> tuple[Reproduced, ...]:
    labels = {"fixed widths": "fixed widths", "rounded": f"n_kv_heads = 1, width {width}"}
    rows = [
        Reproduced(
            label=labels[name], name="time to loss 0.1", cases=(case,), measure=_arrival,
            theory=lambda laws: float(arrival_time(laws[0], _LEVEL)), printed_theory=FIGURE_3A_TIMES[name],
            printed=FIGURE_3A_MEASURED[name],
        )
        for name, case in cases.items()
    ]
    exact = Reproduced(
        label="n_kv_heads = 1, exact width", name="time to loss 0.1", cases=(),
        theory=lambda _: float(arrival_time(limiting_law(_by_ratios(base, 1)), _LEVEL)),
        printed_theory=FIGURE_3A_TIMES["fixed parameters"],
    )
    return rows[0], exact, rows[1]


def _arrival(draws: Sequence[Draw]) -> float:
    return float(draws[0].read.arrival_time(draws[0].unit, _LEVEL))


def _arrival_panels(found: Found, base: Attention, cases: Mapping[str, Case]) -> tuple[Panel, ...]:
    laws = {name: found.law(case) for name, case in cases.items()}
    shown = {"fixed widths": "fixed widths", "rounded": "same number of weights"}
    lines = tuple(Line(shown[name], _TIMES, flow_loss(law, _TIMES)) for name, law in laws.items())
    points = tuple(loss_points(found, shown[name], case, _SHOWN) for name, case in cases.items())
    losses = Panel("training loss", "time t", "L(t)", lines, points, log="xy")
    fixed = float(arrival_time(laws["fixed widths"], _LEVEL))
    shared = [float(arrival_time(limiting_law(_by_ratios(base, kv)), _LEVEL)) for kv in _KV_HEADS]
    fixed_times = [fixed] * len(_KV_HEADS)
    times = (Line(shown["fixed widths"], _KV_HEADS, fixed_times), Line(shown["rounded"], _KV_HEADS, shared))
    measured = (
        found.points(shown["fixed widths"], _arrival, {_KV_HEADS[-1]: cases["fixed widths"]}),
        found.points(shown["rounded"], _arrival, {1: cases["rounded"]}),
    )
    return losses, Panel("time to loss 0.1", "n_kv_heads", "time", times, measured, log="xy")


# Figure 3(b) ------------------------------------------------------------------------------------------------------

_HEADS = (2, 4, 8, 16, 32)


def figure_3b() -> Figure:
    """K = V within each head against keys and values shared by two heads: the same number of weights."""
    pairs = {heads: tuple(Case(spec, FEATURES, 4) for spec in _tied_and_shared(heads)) for heads in _HEADS}
    rows = []
    for heads, pair in pairs.items():
        rows.append(Reproduced(
            label=f"h = {heads}", name="ridge error, K = V minus GQA", cases=pair, measure=_measured_difference,
            theory=lambda laws: theory_ridge(laws[0]) - theory_ridge(laws[1]), printed_theory=FIGURE_3B_SIGNS[heads],
        ))
    return Figure(
        name="fig-3b", title="Figure 3(b): keys equal to values, or shared by two heads",
        setting="n = 4096, d_model = 2n, h d_key = h d_value = d_out = n/2, beta = 1; K = V against n_kv_heads = h/2",
        draws=6, quantities=tuple(rows), panels=lambda found: _difference_panels(found, pairs),
    )


def _tied_and_shared(heads: int) -> tuple[Attention, Attention]:
    """K = V in each head, and one key and value matrix for two heads."""
    width = _TOKENS // 2 // heads
    base = Attention(
        n_tokens=_TOKENS, d_model=2 * _TOKENS, n_heads=heads, d_key=width, d_value=width, d_out=_TOKENS // 2
    )
    return base.replace(tie="key-value"), base.replace(n_kv_heads=heads // 2)


def _measured_difference(draws: Sequence[Draw]) -> float:
    return measured_ridge(draws[0]) - measured_ridge(draws[1])


def _difference_panels(found: Found, pairs: Mapping[int, Sequence[Case]]) -> tuple[Panel, ...]:
    lines, points = [], []
    for number, label in enumerate(("K = V", "GQA, n_kv_heads = h/2")):
        cases = {heads: pair[number] for heads, pair in pairs.items()}
        lines.append(Line(label, _HEADS, [theory_ridge(found.law(case)) for case in cases.values()]))
        points.append(found.points(label, lambda draws: measured_ridge(draws[0]), cases))
    return (Panel("ridge error", "heads h", "ridge error", tuple(lines), tuple(points), log="x"),)
