"""`freeattn verify --spectrum`: values of a file against the law."""

import csv
import io

import numpy as np
import pytest

import freeattn

SMALL = ["--n-tokens", "64", "--d-model", "64", "--n-heads", "4", "--d-key", "32", "--d-value", "32", "--beta", "1/2"]


@pytest.fixture(scope="module")
def values():
    spec = freeattn.Attention(n_tokens=64, d_model=64, n_heads=4, d_key=32, d_value=32, beta=0.5)
    return freeattn.sample(spec, seed=2).softmax


def law_of_values():
    return freeattn.law(freeattn.Attention(n_tokens=64, d_model=64, n_heads=4, d_key=32, d_value=32, beta=0.5))


@pytest.fixture
def spectrum(tmp_path, values):
    np.save(tmp_path / "values.npy", values)
    return tmp_path / "values.npy"


def test_the_verdict_is_the_code(run, spectrum, tmp_path, values):
    outcome = run("verify", *SMALL, "--spectrum", spectrum)
    assert outcome.code == 0
    assert "64 eigenvalues against the law" in outcome.out
    assert "All 10 checks passed." in outcome.out
    assert "Mean over that of the law: " in outcome.out
    (row,) = (line.split() for line in outcome.out.splitlines() if line.startswith("outliers"))
    (below,) = (line for line in outcome.out.splitlines() if line.startswith("Values outside the bands ("))
    assert "the row outliers counts values above right edge*(1 + n^(-2/3)))" in below
    assert int(row[1]) == np.count_nonzero(values > (1 + 64 ** (-2 / 3)) * law_of_values().edges[-1][1])
    np.savetxt(tmp_path / "scaled.csv", 4 * values)
    failed = run("verify", *SMALL, "--spectrum", tmp_path / "scaled.csv")
    assert failed.code == 1
    assert "FAILED" in failed.out
    assert "other units" in failed.err
    assert run("verify", *SMALL, "--spectrum", tmp_path / "scaled.csv", "--normalized").code == 0


def test_singular_values(run, tmp_path, values):
    np.savetxt(tmp_path / "singular.txt", np.sqrt(values), header="singular values")
    assert run("verify", *SMALL, "--spectrum", tmp_path / "singular.txt", "--singular-values").code == 0
    assert run("verify", *SMALL, "--spectrum", tmp_path / "singular.txt").code == 1


def test_json_csv_and_plot(run, spectrum, tmp_path):
    table, picture = tmp_path / "statistics.csv", tmp_path / "law.svg"
    outcome = run("verify", *SMALL, "--spectrum", spectrum, "--json", "--csv", table, "--plot", picture, "--normalized")
    assert outcome.json["passed"] is True
    assert outcome.json["normalized"] is True
    assert outcome.json["n_tokens"] == 64
    names = {row["statistic"] for row in csv.DictReader(io.StringIO(table.read_text()))}
    assert names == {one["name"] for one in outcome.json["statistics"]}
    assert "<svg" in picture.read_text()


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["--spectrum", "none.npy"], "spectrum = none.npy is not allowed; expected a regular file that exists"),
        (["--spectrum", "values.xlsx"], "spectrum = values.xlsx is not allowed; expected a file that ends in .npy"),
        (["--normalized"], "normalized = on is not allowed; expected nothing without --spectrum"),
        (["--singular-values"], "singular_values = on is not allowed; expected nothing without --spectrum"),
    ],
)
@pytest.mark.usefixtures("computing_is_an_error")
def test_bad_options(run, arguments, text):
    outcome = run("verify", *SMALL, *arguments)
    assert outcome.code == 2
    assert text in outcome.line


@pytest.mark.usefixtures("computing_is_an_error")
def test_nothing_is_drawn_next_to_a_spectrum(run, spectrum):
    for option in ("--draws", "--seed"):
        outcome = run("verify", *SMALL, "--spectrum", spectrum, option, 3)
        assert outcome.code == 2
        assert f"{option[2:]} = 3 is not allowed" in outcome.line


def test_bad_values(run, tmp_path):
    np.save(tmp_path / "long.npy", np.ones(65))
    outcome = run("verify", *SMALL, "--spectrum", tmp_path / "long.npy")
    assert outcome.code == 2
    assert "at most n_tokens = 64" in outcome.line
    np.save(tmp_path / "table.npy", np.ones((8, 8)))
    assert "one dimension" in run("verify", *SMALL, "--spectrum", tmp_path / "table.npy").line
