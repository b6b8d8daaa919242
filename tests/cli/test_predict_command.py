"""`freeattn predict` and `freeattn compare`: the numbers of the library, and refusals in one line."""

from fractions import Fraction

import pytest

import freeattn

BERT = ("bert-base", "--n-tokens", 512)


@pytest.fixture(scope="module")
def law():
    return freeattn.law(freeattn.architecture("bert-base", n_tokens=512))


def test_ridge(run, law):
    record = run("predict", "ridge", *BERT, "--penalty", "1e-4,1/100", "--noise", "0.1,0.2", "--json").json
    rows = record["ridge"]
    assert [(row["penalty"], row["noise"], row["best"]) for row in rows] == [
        (1e-4, 0.1, False), (0.01, 0.1, False), (1e-4, 0.2, False), (0.01, 0.2, False),
        (pytest.approx(0.15), 0.1, True), (pytest.approx(0.3), 0.2, True),
    ]
    for row in rows:
        expected = freeattn.predict.ridge_error(law, row["penalty"], row["noise"])
        assert row["ridge_error"] == pytest.approx(expected, rel=1e-13)
        dof = freeattn.predict.degrees_of_freedom(law, row["penalty"])
        assert row["degrees_of_freedom"] == pytest.approx(dof, rel=1e-13)
    assert record["gamma_out"] == 1.5
    assert freeattn.Attention.from_dict(record["spec"]) == law.spec


def test_ridge_without_an_output_map(run):
    record = run("predict", "ridge", *BERT, "--output", "attention", "--gamma-out", "3/2", "--json").json
    law = freeattn.law(freeattn.architecture("bert-base", n_tokens=512, output="attention"))
    assert record["gamma_out"] == 1.5
    first, best = record["ridge"]
    assert first["ridge_error"] == pytest.approx(freeattn.predict.ridge_error(law, 1e-4, 0.1, gamma_out=1.5), rel=1e-13)
    assert best["penalty"] == pytest.approx(0.15)


def test_flow(run, law):
    record = run("predict", "flow", *BERT, "--t", "1,100", "--level", "1/2", "--json").json
    losses = freeattn.predict.flow_loss(law, [1, 100])
    assert [row["loss"] for row in record["loss"]] == pytest.approx(losses, rel=1e-13)
    assert record["arrival"] == [{"level": 0.5, "t": pytest.approx(freeattn.predict.arrival_time(law, 0.5))}]
    assert record["plateau"] == 0


def test_default_level_only_above_the_plateau(run):
    plateau = run("predict", "flow", *BERT, "--d-out", 256, "--json").json
    assert (plateau["plateau"], plateau["arrival"]) == (0.5, [])
    assert "plateau" in run("predict", "flow", *BERT, "--d-out", 256).out


def test_shape(run, law):
    record = run("predict", "shape", *BERT, "--json").json
    for name, value in freeattn.predict.shape_numbers(law).items():
        assert Fraction(record[name]) == pytest.approx(float(value)), name
    assert "condition_number" in run("predict", "shape", *BERT).out


def test_compare(run, law):
    other = "bert-base:n_heads=6,d_key=128,d_value=128"
    record = run("compare", "bert-base", other, "--n-tokens", 512, "--level", "0.2", "--json").json
    first, second = record["layers"]
    assert (first["layer"], second["layer"]) == ("bert-base", other)
    assert first["parameters"] == second["parameters"] == 4 * 768 * 768
    assert first["arrival_time"] == pytest.approx(freeattn.predict.arrival_time(law, 0.2), rel=1e-12)
    assert second["ridge_error"] > first["ridge_error"]
    table = run("compare", "bert-base", other, "--n-tokens", 512).out.splitlines()
    assert table[1].split() == ["bert-base", other]
    assert ["gamma_key", "3/2", "3/2"] in [line.split() for line in table]


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (("predict", "ridge", *BERT, "--penalty", "x"), "penalty = x is not allowed; expected a number such as"),
        (("predict", "ridge", *BERT, "--penalty", "-1"), "penalty = -1.0 is not allowed; expected finite numbers"),
        (("predict", "ridge", "bert-base", "--output", "attention", "--n-tokens", 512), "gamma_out = (not given)"),
        (("predict", "ridge", *BERT, "--gamma-out", "x"), "gamma_out = x is not allowed"),
        (("predict", "ridge", *BERT, "--gamma-out", "2"), "expected nothing, or 3/2, which is that of the layer"),
        (("predict", "bert-base"), "command = bert-base is not allowed; expected ridge, flow, shape"),
        (("predict",), "command = (not given) is not allowed; expected ridge, flow, shape"),
        (("predict", "flow", *BERT, "--level", "0"), "level = 0.0 is not allowed; expected a number above"),
        (("predict", "flow", *BERT, "--t", "1,,2"), "t = '' is not allowed"),
        (("predict", "shape"), "preset = (not given)"),
        (("compare", "bert-base"), "layers = bert-base is not allowed; expected two layers or more"),
        (("compare", "bert-base", "bert-base:foo=1"), "spec = foo=1 is not allowed; expected FIELD=VALUE"),
        (("compare", "bert-base", "bart"), "architecture = bart"),
        (("compare", "bert-base", "bert-base:n_heads=6.5"), "n_heads = 6.5"),
    ],
)
def test_refusals(run, arguments, text):
    outcome = run(*arguments)
    assert outcome.code == 2
    assert text in outcome.line


def test_predict_and_compare_write_numbers_alike(run):
    assert "beta 1/3; law" in run("predict", "shape", *BERT, "--beta", "1/3").out
    table = run("compare", *BERT, "bert-large", "--beta", "1/3").out
    assert ["beta", "1/3", "1/3"] in [line.split() for line in table.splitlines()]
