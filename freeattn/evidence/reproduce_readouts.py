"""Figures 2(a), 2(c) and 2(d) of arXiv 2610.10033: what is read from the features, by number of heads and by β."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from functools import cache, partial
from itertools import pairwise
from typing import Any

import numpy as np

from freeattn.evidence.published import (
    FIGURE_2A_LOSS,
    FIGURE_2A_MEASURED,
    FIGURE_2A_PLATEAU,
    FIGURE_2C_PEAKS,
    FIGURE_2D_BETA,
    Printed,
)
from freeattn.evidence.reproduce_draws import FEATURES
from freeattn.evidence.reproduce_parts import Case, Draw, Figure, Found, Line, Panel, Points, Reproduced
from freeattn.model.attention import Attention
from freeattn.numerics.limiting import law as limiting_law
from freeattn.predict.design import crossover
from freeattn.predict.flow import flow_loss
from freeattn.predict.parameters import width_at
from freeattn.predict.readouts import ridge_error

__all__ = ["NOISE", "PENALTY", "figure_2a", "figure_2c", "figure_2d", "measured_ridge", "theory_ridge"]

PENALTY: Any = Fraction(1, 10_000)  # λ of every figure, exact for what is computed to many digits
NOISE: Any = Fraction(1, 10)  # σ²


def theory_ridge(law: Any) -> float:
    """The ridge error of the law."""
    return float(ridge_error(law, float(PENALTY), float(NOISE)))


def measured_ridge(draw: Draw) -> float:
    """The ridge error of the features of one draw."""
    return float(draw.read.ridge_error(draw.unit, float(PENALTY), float(NOISE)))


# Figure 2(a) ------------------------------------------------------------------------------------------------------

_TOKENS = 4096
_LATE = 100.0
_TIMES = np.geomspace(0.01, 1000, 121)
_SHOWN = _TIMES[::6]  # where measured losses are shown


def figure_2a() -> Figure:
    """Training loss of gradient flow by number of heads."""
    base = Attention(n_tokens=_TOKENS, d_model=_TOKENS, n_heads=32, d_key=64, d_value=64, d_out=2 * _TOKENS)
    cases = {heads: Case(base.replace(n_heads=heads), FEATURES, 4) for heads in (32, 64, 128)}
    return Figure(
        name="fig-2a", title="Figure 2(a): training loss by number of heads",
        setting="n = d_model = 4096, d_key = d_value = 64, d_out = 2n, beta = 1; h = 32, 64, 128",
        draws=5, quantities=tuple(_loss_rows(cases)), panels=lambda found: _loss_panels(found, cases),
    )


def _loss_rows(cases: Mapping[int, Case]) -> list[Reproduced]:
    plateaus, losses = {32: FIGURE_2A_PLATEAU}, {128: (FIGURE_2A_LOSS, FIGURE_2A_MEASURED)}
    rows = []
    for heads, case in cases.items():
        printed = losses.get(heads, (None, None))
        rows.append(Reproduced(
            label=f"h = {heads}", name="loss at t = 100", cases=(case,), measure=_late_loss, printed_theory=printed[0],
            printed=printed[1], theory=lambda laws: float(flow_loss(laws[0], _LATE)),
        ))
    rows.append(Reproduced(
        label="h = 32", name="plateau of the loss", cases=(cases[32],), measure=lambda draws: draws[0].read.plateau,
        printed_theory=plateaus[32], theory=lambda laws: float(sum(a.weight for a in laws[0].atoms)),
    ))
    return rows


def _late_loss(draws: Sequence[Draw]) -> float:
    return float(draws[0].read.loss(draws[0].unit, _LATE))


def _loss_panels(found: Found, cases: Mapping[int, Case]) -> tuple[Panel, ...]:
    lines, points = [], []
    for heads, case in cases.items():
        label = f"h = {heads}"
        lines.append(Line(label, _TIMES, flow_loss(found.law(case), _TIMES)))
        points.append(loss_points(found, label, case, _SHOWN))
    return (Panel("training loss", "time t", "L(t)", tuple(lines), tuple(points), log="xy"),)


def loss_points(found: Found, label: str, case: Case, times: Any) -> Points:
    """The measured loss at some times."""
    measures = {t: partial(_loss_at, t) for t in times.tolist()}
    each = [found.points(label, measure, {t: case}) for t, measure in measures.items()]
    return Points(label, times, [p.y[0] for p in each], [p.half_widths[0] for p in each])


def _loss_at(t: float, draws: Sequence[Draw]) -> float:
    return float(draws[0].read.loss(draws[0].unit, t))


# Figure 2(c) ------------------------------------------------------------------------------------------------------

_BUDGET = 6  # weights over n²
_MOST_HEADS = 128  # where gamma_value = 2 uses up the budget
_DRAWN_HEADS = (16, 24, 32, 48, 64, 96)  # at which every width is an integer


def figure_2c() -> Figure:
    """Ridge error by number of heads at a fixed output width, and at a fixed number of weights."""
    cases = {name: {h: Case(_sized(name, h), FEATURES, 4) for h in _DRAWN_HEADS} for name in FIGURE_2C_PEAKS}
    return Figure(
        name="fig-2c", title="Figure 2(c): ridge error by number of heads",
        setting="gamma_key = gamma_value = h/64, beta = 1; gamma_out = 1/2, or 6/gamma_value - 3, which keeps the "
        "number of weights at 6 n^2; drawn at n = d_model = 4096, d_key = d_value = 64",
        draws=4, quantities=tuple(row for name in cases for row in _peak_rows(name, cases[name])),
        panels=lambda found: _peak_panels(found, cases),
        note="The number of tokens is that of figure 2(a).",
    )


def _by_ratios(name: str, heads: int) -> Attention:
    gamma = Fraction(heads, 64)
    spec = Attention.from_ratios(gamma, gamma, Fraction(1, 2), n_heads=heads)
    if name == "output":
        return spec
    return Attention.from_ratios(gamma, gamma, width_at(spec, _BUDGET, "gamma_out"), n_heads=heads)


def _sized(name: str, heads: int) -> Attention:
    return _by_ratios(name, heads).with_sizes(_TOKENS)


def _peak_rows(name: str, cases: Mapping[int, Case]) -> list[Reproduced]:
    expected = FIGURE_2C_PEAKS[name]
    label = {"output": "gamma_out = 1/2", "budget": "6 n^2 weights"}[name]
    rows = [Reproduced(
        label=label, name="number of peaks", cases=(), theory=lambda _: len(_peaks(name)),
        printed_theory=Printed(str(len(expected))),
    )]
    for number, heads in enumerate(expected):
        rows.append(Reproduced(
            label=label, name=f"h at peak {number + 1}", cases=(), theory=partial(_peak, name, number),
            printed_theory=Printed(str(heads)),
        ))
    for heads, case in cases.items():
        rows.append(Reproduced(
            label=f"{label}, h = {heads}", name="ridge error", cases=(case,), theory=lambda laws: theory_ridge(laws[0]),
            measure=lambda draws: measured_ridge(draws[0]),
        ))
    return rows


@cache
def _by_heads(name: str) -> dict[int, float]:
    """The ridge error of the law for even numbers of heads, and for odd ones beside its peaks."""
    def error(heads: int) -> float:
        return theory_ridge(limiting_law(_by_ratios(name, heads)))

    found = {heads: error(heads) for heads in range(4, _MOST_HEADS, 2)}
    for heads in _maxima(found):
        found |= {beside: error(beside) for beside in (heads - 1, heads + 1)}
    return dict(sorted(found.items()))


def _maxima(values: Mapping[int, float]) -> list[int]:
    """Where values are larger than on both sides."""
    places = list(values)
    between = zip(places, places[1:], places[2:], strict=False)
    return [b for a, b, c in between if values[b] > max(values[a], values[c])]


def _peaks(name: str) -> list[int]:
    return _maxima(_by_heads(name))


def _peak(name: str, number: int, laws: Sequence[Any]) -> int:
    del laws  # of no layer in particular
    return _peaks(name)[number]


def _peak_panels(found: Found, cases: Mapping[str, Mapping[int, Case]]) -> tuple[Panel, ...]:
    panels = []
    marks = {"output": ((32, "h d_value = d_out"),), "budget": ((64, "h d_value = n"), (96, "d_out = n"))}
    for name, title in (("output", "gamma_out = 1/2"), ("budget", "fixed number of weights")):
        curve = _by_heads(name)
        line = Line("ridge error", list(curve), list(curve.values()))
        points = found.points("ridge error", lambda draws: measured_ridge(draws[0]), cases[name])
        panels.append(Panel(title, "heads h", "ridge error", (line,), (points,), log="y", marks=marks[name]))
    return tuple(panels)


# Figure 2(d) ------------------------------------------------------------------------------------------------------

_WIDTHS = ((64, 192), (128, 128))  # (d_key, d_value), the same number of weights
_DRAWN_BETAS = (Fraction(3, 10), Fraction(56, 100), Fraction(9, 10))
_BETAS = np.linspace(0.2, 1.2, 21)
_CROSSING_DIGITS = 20


def figure_2d() -> Figure:
    """Ridge errors of narrow and wide keys by β, and where they are equal."""
    cases = {beta: tuple(Case(_widths(*pair, beta), FEATURES, 8) for pair in _WIDTHS) for beta in _DRAWN_BETAS}
    rows = [Reproduced(
        label="(64, 192) to (128, 128)", name="beta of equal ridge errors",
        cases=tuple(case for pair in cases.values() for case in pair), theory=lambda _: _equal_beta(),
        measure=_measured_beta, printed_theory=FIGURE_2D_BETA,
    )]
    for beta, pair in cases.items():
        rows.append(Reproduced(
            label=f"beta = {float(beta):g}", name="ratio of ridge errors", cases=pair, measure=_measured_ratio,
            theory=lambda laws: theory_ridge(laws[0]) / theory_ridge(laws[1]),
        ))
    return Figure(
        name="fig-2d", title="Figure 2(d): narrow or wide keys by beta",
        setting="h = 96, n = 8192, d_model = d_out = 3n/2; (d_key, d_value) = (64, 192) against (128, 128), the same "
        "number of weights",
        draws=4, quantities=tuple(rows), panels=lambda found: _ratio_panels(found, cases),
        note="Keys of few coordinates deviate: 8 and 16 of them (sizes divided by 8) by a few per cent.",
    )


def _widths(d_key: int, d_value: int, beta: Any) -> Attention:
    return Attention(
        n_tokens=8192, d_model=12288, n_heads=96, d_key=d_key, d_value=d_value, d_out=12288, beta=beta
    )


def _equal_beta() -> float:
    """To 20 digits, in arithmetic of many digits, then rounded."""
    def error(law: Any, digits: int = 15) -> Any:
        return ridge_error(law, PENALTY, NOISE, digits=digits)

    narrow, wide = (_widths(*pair, 1) for pair in _WIDTHS)
    (crossing,) = crossover(narrow, wide, error, low=0.2, high=1.2, digits=_CROSSING_DIGITS, points=9)
    return float(crossing.value)


def _measured_ratio(draws: Sequence[Draw]) -> float:
    return measured_ridge(draws[0]) / measured_ridge(draws[1])


def _measured_beta(draws: Sequence[Draw]) -> float:
    """Where the logarithm of the ratio of one draw, taken as linear between the β that were drawn, is 0.

    NaN when it changes its sign nowhere between them, or more than once.
    """
    pairs = zip(draws[::2], draws[1::2], strict=True)
    logs = [float(np.log(_measured_ratio(pair))) for pair in pairs]
    points = list(zip(map(float, _DRAWN_BETAS), logs, strict=True))
    crossings = [(left, right) for left, right in pairwise(points) if (left[1] > 0) != (right[1] > 0)]
    if len(crossings) != 1:
        return math.nan
    (low, at_low), (high, at_high) = crossings[0]
    return low + (high - low) * at_low / (at_low - at_high)


def _ratio_panels(found: Found, cases: Mapping[Any, tuple[Case, ...]]) -> tuple[Panel, ...]:
    errors = [[theory_ridge(limiting_law(_widths(*pair, float(beta)))) for beta in _BETAS] for pair in _WIDTHS]
    line = Line("(64, 192) / (128, 128)", _BETAS, np.divide(errors[0], errors[1]))
    where = {float(beta): pair for beta, pair in cases.items()}
    points = found.points(line.label, _measured_ratio, where)
    marks = ((_equal_beta(), "equal"),)
    return (Panel("ratio of ridge errors", "beta", "ratio", (line,), (points,), log="y", marks=marks),)
