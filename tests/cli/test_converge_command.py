"""`freeattn converge`, and --finite-size of the other commands."""

from __future__ import annotations

import csv
import json

import pytest

SMALL = ("--n-tokens", "64", "--d-model", "64", "--n-heads", "2", "--d-key", "16", "--output", "attention")


def test_json_csv_and_picture(run, tmp_path):
    table, picture = tmp_path / "distances.csv", tmp_path / "distances.svg"
    result = run(
        "converge", *SMALL, "--sizes", "32,64", "--draws", "2", "--betas", "1,3/2", "--json", "--csv", str(table),
        "--plot", str(picture),
    )
    assert result.code == 0, result.err
    record = json.loads(result.out)
    assert record["sizes"] == [32, 64]
    assert record["passed"] is True
    assert {one["between"] for one in record["distances"]} == {"softmax-law", "equivalent-law", "softmax-equivalent"}
    assert [one["beta"] for one in record["losses"]] == [1, 1, 1.5, 1.5]
    rows = list(csv.DictReader(table.read_text(encoding="utf-8").splitlines()))
    assert len(rows) == 2 * len(record["distances"])
    assert float(rows[0]["mean"]) == record["distances"][0]["values"][0]["mean"]
    assert picture.read_text(encoding="utf-8").count("</svg>") == 1


def test_text(run):
    result = run("converge", *SMALL, "--sizes", "32,64", "--draws", "2", "--betas", "1", "--inputs", "gaussian")
    assert result.code == 0, result.err
    assert "softmax-equivalent" in result.out
    assert "Mean of softmax below that of the law" in result.out
    assert "Self-test" not in result.out
    assert "Note: rates from two sizes and two draws are not meaningful" in result.out
    assert "Note: the mean of e^(beta S) is not tested" in result.out


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--sizes", "32,x"), "sizes = x is not allowed; expected a number such as"),
        (("--sizes", "32,50"), "sizes = 50 is not allowed; expected a multiple of 4"),
        (("--sizes", "32,1/2"), "sizes = "),
        (("--draws", "1"), "draws = 1 is not allowed; expected an integer from 2"),
        (("--betas", "0"), "betas = 0 is not allowed; expected positive numbers"),
    ],
)
def test_bad_input(run, options, message):
    result = run("converge", *SMALL, *options)
    assert result.code == 2
    assert message in result.err
    assert not result.out


def test_law_at_finite_size_next_to_the_limit(run):
    record = json.loads(run("law", *SMALL, "--finite-size", "--json").out)
    limit = json.loads(run("law", *SMALL, "--json").out)
    assert record["spec"]["scores"] == {"finite-size": "softmax"}
    assert record["finite_size"] is True
    assert record["mean"] < limit["mean"]
    for name in ("mean", "edges", "moments", "atoms"):
        assert record["limit"][name] == limit[name]
    assert "limit" not in limit
    shown = run("law", *SMALL, "--finite-size").out
    assert "softmax, rows of 64 tokens" in shown
    assert "Bands of the limit" in shown


def test_verification_at_finite_size(run):
    result = run("verify", *SMALL, "--finite-size", "--draws", "2")
    assert "softmax, from the limit" in result.out.splitlines()[1]
    record = json.loads(run("verify", *SMALL, "--finite-size", "--draws", "2", "--json").out)
    assert "softmax_to_limit" in record["statistics"][0]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("law", *SMALL, "--scores", "relu"), "have none"),
        (("law", *SMALL, "--digits", "30"), "digits = 30 is not allowed; expected at most 20 at finite size"),
        (("derive", "--symbolic"), "n_tokens = n_tokens is not allowed; expected a number of at least 2"),
    ],
)
def test_where_finite_size_is_refused(run, options, message):
    result = run(*options, "--finite-size")
    assert result.code == 2
    assert message in result.err
