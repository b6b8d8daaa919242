"""Reproduced tables and figures: theory as printed, small simulated runs, and runs that were interrupted."""

import json
import math
import signal
import subprocess
import sys
import time
from fractions import Fraction
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import freeattn as fa
from freeattn.errors import InputError
from freeattn.evidence import reproduce_draws
from freeattn.evidence.published import FIGURE_2C_PEAKS, TABLE_D2, Printed
from freeattn.evidence.reproduce import FIGURES, Row, _row
from freeattn.evidence.reproduce_parts import Draw, Reproduced, reduced
from freeattn.evidence.reproduce_readouts import _by_ratios, _measured_beta, theory_ridge
from freeattn.report.tables import _simulated

ROOT = Path(__file__).resolve().parents[2]


def theory(figure, *names):
    """(label, quantity, theory, printed) of a figure's rows of these names."""
    for row in FIGURES[figure]().quantities:
        if row.theory is not None and (not names or row.name in names):
            yield row.label, float(row.theory([fa.law(case.spec) for case in row.cases])), row.printed_theory


# What is printed --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "number", "agrees"),
    [
        ("7.55e-5", 7.5549e-5, True), ("7.55e-5", 7.556e-5, False), ("41.22", 41.2249, True), ("41.22", 41.23, False),
        ("7.80", 7.804, True), ("7.80", 7.806, False), ("0.5", 0.5, True), ("32", 32.4, True), ("32", 33.0, False),
        ("+", 0.1, True), ("+", -0.1, False), ("-", -1e-9, True), ("-", 0.0, False),
    ],
)
def test_printed_numbers_agree_to_their_digits(text, number, agrees):
    assert Printed(text).agrees(number) is agrees


def test_signs_have_no_value():
    assert Printed("+").value is None
    assert Printed("7.80").value == 7.8


# Theory -----------------------------------------------------------------------------------------------------------


def test_theory_of_table_d2():
    found = {label: (value, printed) for label, value, printed in theory("table-d2", "mean")}
    assert set(found) == {row.architecture for row in TABLE_D2}
    for row in TABLE_D2:
        value, printed = found[row.architecture]
        assert value == pytest.approx(row.limit_mean, rel=5e-10)
        assert printed.agrees(value)


def test_theory_of_figure_2a():
    (first, plateau, _), = (row for row in theory("fig-2a", "plateau of the loss"))
    assert (first, plateau) == ("h = 32", 0.5)
    losses = {label: value for label, value, _ in theory("fig-2a", "loss at t = 100")}
    assert losses["h = 128"] == pytest.approx(7.552672026e-5, rel=1e-9)
    assert losses["h = 64"] == pytest.approx(0.065126188476, rel=1e-9)


@pytest.mark.parametrize("name", FIGURE_2C_PEAKS)
def test_peaks_of_figure_2c(name):
    """The ridge error falls on both sides of h d_value = d_out, n, and d_out = n."""
    for heads in FIGURE_2C_PEAKS[name]:
        below, here, above = (theory_ridge(fa.law(_by_ratios(name, h))) for h in (heads - 1, heads, heads + 1))
        assert here > max(below, above)


def test_the_budget_of_figure_2c():
    """γ_O = 6/γ_V − 3."""
    for heads in (16, 64, 100):
        spec = _by_ratios("budget", heads)
        assert spec.gamma_out == 6 / Fraction(heads, 64) - 3
        assert fa.predict.parameter_count(spec) == 6


@pytest.mark.slow
@pytest.mark.parametrize("figure", ["fig-2c", "fig-2d"])
def test_theory_of_figures_that_search(figure):
    rows = list(theory(figure))
    assert all(printed.agrees(value) for _, value, printed in rows if printed)
    assert sum(printed is not None for _, _, printed in rows) == {"fig-2c": 5, "fig-2d": 1}[figure]


def test_theory_of_figure_3a():
    found = {label: value for label, value, _ in theory("fig-3a")}
    assert found["fixed widths"] == pytest.approx(41.223577280, rel=1e-9)
    assert found["n_kv_heads = 1, exact width"] == pytest.approx(7.8039830527, rel=1e-9)
    assert found["n_kv_heads = 1, width 106"] == pytest.approx(7.7554501824, rel=1e-9)


def test_theory_of_figure_3b():
    found = [(value, printed) for _, value, printed in theory("fig-3b")]
    expected = [0.5048756497, 0.06021588181, -0.1593291951, -0.2673065565, -0.3207003485]
    assert [value for value, _ in found] == pytest.approx(expected, abs=1e-10)
    assert all(printed.agrees(value) for value, printed in found)


# Sizes ------------------------------------------------------------------------------------------------------------


def test_reduced_layers_have_the_same_ratios():
    spec = TABLE_D2[0].spec()
    small, scale = reduced(spec, 4)
    assert (scale, small.n_tokens, small.d_key, small.n_heads) == (4, 128, 16, 12)
    ratios = [(one.gamma_key, one.gamma_value, one.gamma_out, one.tokens_per_width) for one in (spec, small)]
    assert ratios[0] == ratios[1]


def test_sizes_are_divided_as_far_as_they_can_be():
    spec = fa.Attention(n_tokens=4096, d_model=4096, n_heads=64, d_key=106, d_value=106, d_out=8192)
    assert reduced(spec, 16) == (spec.replace(n_tokens=2048, d_model=2048, d_key=53, d_value=53, d_out=4096), 2)
    assert reduced(spec, 3) == (spec, 1)
    attention = fa.Attention(n_tokens=256, d_model=256, n_heads=4, d_key=1024, output="attention")
    assert reduced(attention, 4)[0].d_key == 256


def test_published_sizes_are_those_of_the_publication():
    """Every layer of every figure, as its setting says."""
    specs = {name: [case.spec for case in make().cases] for name, make in FIGURES.items()}
    assert {(s.n_tokens, s.d_key, s.d_out) for s in specs["fig-2a"]} == {(4096, 64, 8192)}
    assert {(s.n_tokens, s.d_model, s.d_out) for s in specs["fig-2d"]} == {(8192, 12288, 12288)}
    assert {(s.d_key, s.d_value) for s in specs["fig-2d"]} == {(64, 192), (128, 128)}
    assert {(s.gamma_key, s.gamma_value, s.gamma_out) for s in specs["fig-3b"]} == {(Fraction(1, 2),) * 3}
    assert {s.n_tokens for s in specs["fig-d1"]} == {256}
    assert [case.scale for case in FIGURES["fig-d1"]().cases] == [1] * 10
    for pair in zip(specs["fig-3b"][::2], specs["fig-3b"][1::2], strict=True):
        assert len({fa.predict.parameter_count(spec) for spec in pair}) == 1


# Runs -------------------------------------------------------------------------------------------------------------


def test_small_run_and_its_store(tmp_path, monkeypatch):
    """Rows hold theory, simulation and print; with a store nothing is drawn again."""
    store, calls = tmp_path / "draws.sqlite", []
    (first,) = fa.reproduce("fig-3b", draws=3, scale=32, store=store, progress=lambda *count: calls.append(count))
    assert calls[-1] == (30, 30)
    row = first.found[0]
    assert (row.label, row.quantity, row.n_tokens, row.scale, row.draws) == (
        "h = 2", "ridge error, K = V minus GQA", 128, 32, 3,
    )
    assert (row.printed_theory, row.theory_agrees, row.passed) == ("+", True, True)
    assert row.from_theory == pytest.approx((row.simulated - row.theory) / row.half_width)
    assert row.from_printed is None
    assert first.passed
    assert first.reduced
    monkeypatch.setattr(reproduce_draws, "draw_features", lambda *_: pytest.fail("drawn again"))
    (again,) = fa.reproduce("fig-3b", draws=3, scale=32, store=store)
    assert again.to_dict() == first.to_dict()
    assert json.loads(json.dumps(first.to_dict()))["rows"][0]["n_tokens"] == 128


def test_measured_numbers_are_means_over_draws_of_features():
    """Of the difference of ridge errors of two layers with the same seed, in the unit of each law's mean."""
    (found,) = fa.reproduce("fig-3b", draws=2, scale=64, seed=7)
    pair = [reduced(case.spec, 64)[0] for case in FIGURES["fig-3b"]().quantities[2].cases]
    units = [fa.law(spec).mean for spec in pair]
    errors = np.array([
        [
            reproduce_draws.draw_features(spec, np.random.SeedSequence(7).spawn(2)[draw]).ridge_error(unit, 1e-4, 0.1)
            for spec, unit in zip(pair, units, strict=True)
        ]
        for draw in range(2)
    ])
    assert found.found[2].simulated == pytest.approx((errors[:, 0] - errors[:, 1]).mean(), rel=1e-12)


def test_differences_from_printed_measurements_at_full_size_only():
    (found,) = fa.reproduce("table-d2", draws=2, scale=64)
    for row in found.found:
        full = row.scale == 1
        assert (row.from_printed is not None) == (full and row.printed is not None)
    assert {row.label for row in found.found if row.scale == 1} == {"dinov3-l16"}  # 261 tokens: nothing divides them


SEARCH = ("fig-2c", "fig-2d")  # their theory takes seconds


@pytest.mark.parametrize("figure", [pytest.param(f, marks=[pytest.mark.slow] if f in SEARCH else []) for f in FIGURES])
def test_panels_of_every_figure(figure):
    """Curves and points have the same length in x and y, and each figure has a picture."""
    (found,) = fa.reproduce(figure, draws=1, scale=32)
    panels = found.panels()
    assert panels
    for panel in panels:
        assert panel.lines or panel.points or panel.histogram
        for line in panel.lines:
            assert len(line.x) == len(line.y)
        for points in panel.points:
            assert len(points.x) == len(points.y) == len(points.half_widths)


@pytest.mark.parametrize(
    ("arguments", "field"),
    [
        ({"names": "fig-9"}, "figure"), ({"draws": 0}, "draws"), ({"draws": True}, "draws"), ({"scale": 0}, "scale"),
        ({"seed": -1}, "seed"), ({"scale": 1.5}, "scale"),
    ],
)
def test_bad_arguments(arguments, field):
    with pytest.raises(InputError) as caught:
        fa.reproduce(**{"names": "fig-d1", **arguments})
    assert caught.value.field == field


@pytest.mark.slow
def test_a_killed_run_goes_on_with_the_same_numbers(tmp_path):
    """Killed by a signal that cannot be caught, then started again: the numbers are those of a run in one piece."""
    def command(store):
        options = ["--draws", "8", "--scale", "16", "--workers", "2", "--json", "--store", str(tmp_path / store)]
        return [sys.executable, "-m", "freeattn", "reproduce", "fig-3b", *options]

    started = subprocess.Popen(command("killed"), cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    deadline = time.monotonic() + 300
    while time.monotonic() < deadline and not (tmp_path / "killed").exists():
        time.sleep(0.05)
    while time.monotonic() < deadline and len(fa.Store(tmp_path / "killed")) < 5:
        time.sleep(0.05)
    started.send_signal(signal.SIGKILL)
    started.wait()
    kept = len(fa.Store(tmp_path / "killed"))
    assert 5 <= kept < 80
    resumed, whole = (
        subprocess.run(command(store), cwd=ROOT, capture_output=True, text=True, check=True).stdout
        for store in ("killed", "whole")
    )
    assert resumed == whole
    assert len(fa.Store(tmp_path / "killed")) == 80


@pytest.mark.slow
def test_simulated_loss_of_figure_2a_tends_to_the_law():
    (found,) = fa.reproduce("fig-2a", draws=2, scale=8, workers=2)
    rows = {(row.label, row.quantity): row for row in found.found}
    plateau = rows["h = 32", "plateau of the loss"]
    assert plateau.simulated == pytest.approx(plateau.theory, rel=0.005)
    assert rows["h = 64", "loss at t = 100"].simulated == pytest.approx(0.0651, rel=0.1)
    assert rows["h = 128", "loss at t = 100"].simulated == pytest.approx(7.55e-5, rel=0.5)


def crossing(*ratios):
    """β of figure 2(d) where draws at β = 0.3, 0.56, 0.9 have these ratios of ridge errors."""
    errors = [error for ratio in ratios for error in (ratio, 1.0)]
    draws = [
        Draw(SimpleNamespace(mean=1.0), SimpleNamespace(ridge_error=lambda *_, value=value: value)) for value in errors
    ]
    return _measured_beta(draws)


def test_a_draw_without_a_crossing_has_no_beta():
    assert crossing(2, 1.5, 1.5**-1) == pytest.approx(0.73)
    assert crossing(4, 0.5, 0.4) == pytest.approx(0.3 + 0.26 * 2 / 3)
    assert math.isnan(crossing(2, 1.5, 1.1))
    assert math.isnan(crossing(0.9, 0.8, 0.7))
    assert math.isnan(crossing(2, 0.5, 2))


def test_a_row_with_such_a_draw_is_not_judged():
    values = {"a": [0.5, math.nan], "b": [0.5, 0.6]}
    rows = {}
    for name, found in values.items():
        drawn = SimpleNamespace(
            measured=lambda *_, found=found: found, law=lambda _: None,
            drawn={None: SimpleNamespace(spec=SimpleNamespace(n_tokens=8), scale=2, reads=found)},
        )
        quantity = Reproduced(
            label=name, name="beta", cases=(None,), theory=lambda _: 0.559, printed_theory=Printed("0.559"),
            measure=lambda _: 0.0,
        )
        rows[name] = _row(quantity, drawn)
    assert (rows["a"].simulated, rows["a"].without_value, rows["a"].passed) == (None, 1, None)
    assert (rows["b"].simulated, rows["b"].without_value, rows["b"].passed) == (pytest.approx(0.55), 0, True)
    assert _simulated(rows["a"].to_dict()) == "none in 1 of 2"
    assert (rows["a"].not_judged, rows["b"].not_judged) == ("draws without a value", None)


@pytest.mark.parametrize(("changes", "reason"), [
    ({"printed": None}, "nothing is printed"), ({"scale": 4}, "printed for another size"),
    ({"printed_half_width": None}, "printed without an interval"),
    ({"half_width": None, "from_printed": None}, "one draw has no interval"),
    ({"without_value": 1, "from_printed": None}, "draws without a value"),
    ({"theory_agrees": False}, None), ({}, None),
])
def test_a_row_says_why_it_has_no_verdict(changes, reason):
    fields = {
        "label": "a", "quantity": "b", "theory": 1.0, "printed_theory": None, "theory_agrees": None, "simulated": 1.0,
        "half_width": 0.1, "without_value": 0, "n_tokens": 8, "scale": 1, "draws": 2, "from_theory": 0.0,
        "printed": "1.0", "printed_half_width": 0.1, "from_printed": 0.0,
    }
    if changes.get("scale", 1) != 1 or changes.get("printed", "") is None:
        fields["from_printed"] = None
    row = Row(**{**fields, **changes})
    assert row.not_judged == reason
    assert (row.passed is None) == (reason is not None)
    assert row.to_dict()["not_judged"] == reason


def test_other_scales():
    assert fa.other_scales("fig-3b", 64) == {}
    assert fa.other_scales("fig-3b", 100) == {"fig-3b": {4: ("h = 2", "h = 4", "h = 8", "h = 16", "h = 32")}}
