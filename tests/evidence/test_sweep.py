"""Sweeps: every combination is a row, with the numbers of its own law, wherever it is computed."""

from __future__ import annotations

import json
import math
from concurrent.futures import Executor, ThreadPoolExecutor
from fractions import Fraction

import numpy as np
import pytest

import freeattn as fa
from freeattn.errors import InputError, TaskError
from freeattn.evidence.quantities import NAMES, quantity

BASE = fa.Attention(n_tokens=96, d_model=128, n_heads=4, d_key=24, d_value=16, d_out=128)
GRID = {"beta": [0.5, 1], "d_key": [24, 48, 96]}


class Refusing(Executor):
    """Fails the test when anything is computed."""

    def submit(self, fn, /, *args, **kwargs):
        raise AssertionError(f"computed {fn}{args}{kwargs}")


@pytest.fixture(scope="module")
def table():
    return fa.sweep(BASE, GRID, ["mean", "edges", "atom", "moments", "bands"])


def test_rows_are_all_combinations_the_last_field_fastest(table):
    assert list(zip(table.column("beta"), table.column("d_key"), strict=True)) == [
        (beta, width) for beta in GRID["beta"] for width in GRID["d_key"]
    ]
    assert table.columns == (
        "beta", "d_key", "mean", "left_edge", "right_edge", "n_bands", "atom", "moment_1", "moment_2", "moment_3",
        "moment_4", "bands", "error",
    )
    assert table.errors == ()


def test_each_row_has_the_numbers_of_its_law(table):
    for row in table.rows:
        law = fa.law(BASE.replace(beta=row["beta"], d_key=row["d_key"]))
        assert row["mean"] == law.mean == pytest.approx(128 / 96 * math.expm1(row["beta"] ** 2))
        assert (row["left_edge"], row["right_edge"]) == (law.edges[0][0], law.edges[-1][1])
        assert row["bands"] == [list(band) for band in law.edges]
        assert row["n_bands"] == len(law.edges)
        assert [row[f"moment_{k}"] for k in range(1, 5)] == [float(moment) for moment in law.moments(4)]
        assert row["atom"] == pytest.approx(1 - 64 / 96)


def test_predictions_are_those_of_the_package():
    names = ["ridge_error:penalty=0.01,noise=1/10", "flow_loss:t=2", "degrees_of_freedom:penalty=1", "stable_rank",
             "rank_fraction", "parameter_count", "condition_number"]
    (row,) = fa.sweep(BASE, {"beta": [1]}, names).rows
    law = fa.law(BASE)
    assert row["ridge_error:penalty=0.01,noise=0.1"] == fa.predict.ridge_error(law, 0.01, 0.1)
    assert row["flow_loss:t=2"] == fa.predict.flow_loss(law, 2)
    assert row["degrees_of_freedom:penalty=1"] == fa.predict.degrees_of_freedom(law, 1)
    assert row["stable_rank"] == fa.predict.stable_rank(law)
    assert row["rank_fraction"] == pytest.approx(64 / 96)
    assert row["parameter_count"] == 128 * 4 * (24 + 24 + 16) + 64 * 128
    assert row["condition_number"] == fa.predict.condition_number(law)


def test_every_name_is_a_quantity():
    arguments = {"flow_loss": ":t=1", "arrival_time": ":level=0.5"}
    for name in NAMES:
        assert quantity(name + arguments.get(name, "")).name == name


def test_combinations_that_are_not_allowed_are_rows_with_their_error():
    table = fa.sweep(BASE, {"n_tokens": [64, 96, 256], "beta": [1, -1]}, ["mean", "arrival_time:level=0.01"])
    assert len(table.rows) == 6
    for row in table.rows:
        bad = row["n_tokens"] == 256 or row["beta"] == -1
        assert (row["mean"] is None) == bad
        if row["beta"] == -1:
            assert "beta = -1 is not allowed" in row["error"]
        elif row["n_tokens"] == 256:
            assert "n_tokens = 256 is not allowed" in row["error"]
    (row,) = [row for row in table.rows if (row["n_tokens"], row["beta"]) == (96, 1)]
    assert row["mean"] is not None  # one quantity that fails leaves the others
    assert row["error"].startswith("arrival_time:level=0.01: level = 0.01 is not allowed")
    assert len(table.errors) == 5


def test_a_layer_without_a_law_is_a_row_with_its_error():
    (row,) = fa.sweep(BASE, {"tie": ["query-key"]}).rows
    assert "query-key" in row["error"]
    assert (row["tie"], row["mean"]) == ("query-key", None)


def test_lists_of_combinations_and_values_of_every_kind():
    correlated = fa.Ties(value=fa.KeyValueCorrelation(0.5))
    records = [{"n_heads": np.int64(4), "tie": "none"}, {"n_heads": 8, "tie": correlated}]
    table = fa.sweep(BASE.replace(d_value=24), records)
    assert table.column("n_heads") == [4, 8]
    assert json.loads(table.rows[1]["tie"])["value"] == {"key-value-correlation": "1/2"}
    assert table.errors == ()
    assert fa.sweep(BASE, {"beta": np.linspace(0.5, 1, 2)}).column("beta") == [0.5, 1.0]
    assert fa.sweep(BASE, {"beta": [Fraction(1, 4)]}).column("beta") == [0.25]


def test_points_are_layers_of_any_kind():
    points = [fa.SweepPoint.of({"name": name}, lambda name=name: fa.architecture(name, n_tokens=64))
              for name in ("bert-base", "no-such-layer")]
    table = fa.sweep(points, quantities=["mean"])
    assert table.rows[0]["mean"] == pytest.approx(768 / 64 * math.expm1(1))
    assert "no-such-layer" in table.rows[1]["error"]


def test_draws_stand_next_to_the_law():
    table = fa.sweep(BASE, {"beta": [0.5]}, ["mean"], draws=3, seed=2)
    (row,) = table.rows
    verification = fa.verify(BASE.replace(beta=0.5), draws=3, seed=2)
    (first,) = (one for one in verification.statistics if one.name == "moment_1")
    assert row["softmax_moment_1"] == first.softmax.mean
    assert row["softmax_moment_1_half_width"] == first.softmax.half_width
    assert row["equivalent_moment_1"] == first.equivalent.mean
    assert row["passed"] is verification.passed
    assert "equivalent_relative_w1_to_equivalent" not in table.columns
    assert set(table.columns) == set(row)


def test_executors_and_stores_do_not_change_a_number(tmp_path):
    given = {"over": {"beta": [0.5, 1, -1]}, "quantities": ["edges"], "draws": 2}
    serial = fa.sweep(BASE, **given)
    with ThreadPoolExecutor(2) as threads:
        assert fa.sweep(BASE, **given, executor=threads, store=tmp_path / "s.db").rows == serial.rows
    assert fa.sweep(BASE, **given, executor=Refusing(), store=tmp_path / "s.db").rows == serial.rows
    calls = []
    more = {**given, "over": {"beta": [0.5, 1, 0.75]}}
    fa.sweep(BASE, **more, store=tmp_path / "s.db", progress=lambda *call: calls.append(call))
    assert calls == [(2, 3), (3, 3)]


@pytest.mark.slow
def test_workers_do_not_change_a_number():
    given = {"over": {"beta": [0.5, 1], "inputs": ["orthogonal", "gaussian"]}, "draws": 2}
    assert fa.sweep(BASE, **given, workers=2).rows == fa.sweep(BASE, **given).rows


def test_json_form_and_repr(table):
    form = json.loads(json.dumps(table.to_dict()))
    assert form["columns"] == list(table.columns)
    assert form["rows"][0]["mean"] == table.rows[0]["mean"]
    assert repr(table).startswith("<Sweep of 6 layers, 0 with an error: beta, d_key, mean")
    with pytest.raises(InputError, match="column"):
        table.column("nothing")


@pytest.mark.parametrize(
    ("over", "field"),
    [
        ({"betta": [1]}, "betta"), ({}, "over"), (None, "over"), ({"beta": []}, "beta"), ({"beta": 1}, "beta"),
        ({"tie": "none"}, "tie"), ([], "over"), ("beta", "over"), ([{"beta": 1}, {"d_key": 2}], "over"),
        ([{"widths": 1}], "widths"), ([1], "over"), ({"beta": range(1001), "d_key": range(1000)}, "over"),
    ],
)
def test_what_is_swept_must_be_fields_with_values(over, field):
    with pytest.raises(InputError, match=field):
        fa.sweep(BASE, over)


@pytest.mark.parametrize(
    ("wanted", "message"),
    [
        (["moan"], "did you mean mean"), (["mean:order=2"], "without arguments"), (["moments:order=0"], "order from 1"),
        (["moments:order=1/2"], "order from 1"), (["flow_loss"], "flow_loss:t="), (["flow_loss:t=x"], "NAME=NUMBER"),
        (["ridge_error:t=1"], "penalty, noise"), (["moments", "moments:order=2"], "once"), ("mean", "a list of names"),
        ([1], "quantity"), (["flow_loss:t=1/0"], "NAME=NUMBER"), (["ridge_error:digits=50"], "penalty, noise"),
    ],
)
def test_quantities_must_be_known(wanted, message):
    with pytest.raises(InputError, match=message):
        fa.sweep(BASE, {"beta": [1]}, wanted)


@pytest.mark.parametrize("given", [{"draws": -1}, {"draws": 1.0}, {"draws": True}, {"seed": -1},
                                   {"seed": np.random.SeedSequence(1)}])
def test_draws_and_seeds_must_be_integers(given):
    with pytest.raises(InputError, match="|".join(given)):
        fa.sweep(BASE, {"beta": [1]}, **given)


@pytest.mark.parametrize("names", [({"a": 1}, {"b": 1}), ({"mean": 1},), ({"error": 1},)])
def test_points_have_names_of_their_own(names):
    with pytest.raises(InputError, match="the same names for every point"):
        fa.sweep([fa.SweepPoint(values, BASE) for values in names])


@pytest.mark.parametrize("spec", [None, "bert-base", [], [BASE]])
def test_a_sweep_needs_a_layer_or_points(spec):
    with pytest.raises(InputError, match="spec"):
        fa.sweep(spec, None)


def test_what_follows_from_the_layer_alone_needs_no_law(monkeypatch):
    def refuse(spec):
        raise AssertionError(f"computed the law of {spec}")

    monkeypatch.setattr("freeattn.evidence.sweep.limiting_law", refuse)
    wanted = ["leading_singular_value", "attention_stable_rank", "parameter_count"]
    attention = BASE.replace(output="attention", d_value=None, d_out=None)
    table = fa.sweep(attention, GRID, wanted)
    assert (table.of_laws, table.errors) == (False, ())
    assert table.column("parameter_count") == [
        fa.predict.parameter_count(attention.replace(d_key=width)) for _ in GRID["beta"] for width in GRID["d_key"]
    ]
    needed = {"flow_loss": ":t=1", "arrival_time": ":level=0.5"}
    assert [name for name in NAMES if not quantity(name + needed.get(name, "")).needs_law] == wanted
    with pytest.raises(TaskError, match="computed the law"):
        fa.sweep(BASE, GRID, [*wanted, "mean"])
