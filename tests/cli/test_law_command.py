"""`freeattn law`, with the numbers of published architectures."""

import csv
import math
import os
import subprocess
import sys

import numpy as np
import pytest

import freeattn
from freeattn.errors import BranchError, ConvergenceError

BERT = ("law", "bert-base", "--n-tokens", 512)
SMALL = ["--n-tokens", "64", "--d-model", "64", "--n-heads", "4", "--d-key", "16", "--d-value", "16"]


def test_json_has_the_published_numbers(run):
    outcome = run(*BERT, "--json")
    assert (outcome.code, outcome.err) == (0, "")
    record = outcome.json
    mean = (math.e - 1) * 1.5
    assert record["mean"] == pytest.approx(mean, rel=1e-14)
    assert record["normalized"]["mean"] == 1
    ((left, right),) = record["normalized"]["edges"]
    assert left == pytest.approx(0.0050735441926354, rel=1e-10)
    assert right == pytest.approx(6.2311775512601, rel=1e-10)
    assert record["edges"] == [pytest.approx([mean * left, mean * right], rel=1e-13)]
    assert record["edge_exponents"] == [[0.5, 0.5]]
    assert record["band_masses"] == [pytest.approx(1)]
    assert record["atoms"] == []
    assert len(record["moments"]) == 4
    assert record["moments"][0] == record["mean"]
    assert record["gamma"]["exact"] == {"key": "3/2", "value": "3/2", "out": "3/2"}
    assert freeattn.Attention.from_dict(record["spec"]) == freeattn.architecture("bert-base", n_tokens=512)
    assert record["preset"] == "bert-base"
    assert record["version"] == freeattn.__version__
    assert record["not_modelled"] == list(freeattn.architecture("bert-base").not_modelled)


def test_digits_beyond_double_are_strings_that_agree(run):
    plain = run(*BERT, "--json").json
    record = run(*BERT, "--json", "--digits", 30).json
    assert all(isinstance(value, str) for value in (record["mean"], *record["moments"], *record["edges"][0]))
    assert len(record["edges"][0][1].replace(".", "")) >= 29
    assert [float(value) for value in record["edges"][0]] == pytest.approx(plain["edges"][0], rel=1e-15)
    assert [float(value) for value in record["normalized"]["moments"]] == pytest.approx(
        plain["normalized"]["moments"], rel=1e-14
    )


def test_sharing_keys_and_values_across_heads_changes_nothing(run):
    shared = run("law", "falcon-7b", "--n-tokens", 2048, "--json").json
    apart = run("law", "falcon-7b", "--n-tokens", 2048, "--n-kv-heads", 71, "--json").json
    assert shared.pop("spec") != apart.pop("spec")
    assert shared == apart


def test_flags_alone_give_the_preset(run):
    sizes = ["--n-tokens", "512", "--d-model", "768", "--n-heads", "12", "--d-key", "64", "--d-value", "64"]
    record, preset = run("law", *sizes, "--json").json, run(*BERT, "--json").json
    assert record["preset"] is None
    for key in ("spec", "mean", "edges", "moments"):
        assert record[key] == preset[key]


def test_beta_is_the_decimal_that_was_typed(run):
    assert run(*BERT, "--beta", "0.1", "--json").json["spec"]["beta"] == "1/10"


def test_beta_of_the_published_initialization(run):
    outcome = run(*BERT, "--beta", "init", "--json")
    assert outcome.code == 0
    assert outcome.json["spec"] == freeattn.architecture("bert-base", n_tokens=512, beta="init").to_dict()


def test_an_atom_has_its_exact_weight(run):
    record = run("law", *SMALL, "--d-out", 16, "--json").json
    assert record["atoms"] == [{"location": 0.0, "weight": 0.75, "weight_exact": "3/4"}]


def test_tables_show_two_bands_with_their_masses(run):
    sizes = ["--n-tokens", "4096", "--d-model", "4096", "--n-heads", "16", "--d-key", "64"]
    outcome = run("law", *sizes, "--output", "attention")
    assert outcome.code == 0
    rows = [line.split() for line in outcome.out.splitlines()]
    masses = [float(row[-1]) for row in rows if row[1:2] == ["left"]]
    assert masses == pytest.approx([0.75, 0.25], abs=1e-9)


def test_tables_name_a_hard_edge_and_what_is_not_modelled(run):
    out = run("law", "bert-base", "--n-tokens", 768).out
    assert "hard, x^(-2/3)" in out
    assert "Not modelled: " in out


def test_csv_resolves_the_law(run, tmp_path):
    path = tmp_path / "law.csv"
    assert run(*BERT, "--csv", path, "--points", 500, "--normalized").code == 0
    with path.open(newline="") as handle:
        names, *rows = csv.reader(handle)
    assert names == ["x", "density", "cdf"]
    assert len(rows) == 500
    x, density, cdf = np.array(rows, dtype=float).T
    assert (np.diff(x) > 0).all()
    assert (np.diff(cdf) >= 0).all()
    assert x[[0, -1]] == pytest.approx([0.0050735441926354, 6.2311775512601], rel=1e-9)
    assert np.trapezoid(density, x) == pytest.approx(1, abs=1e-3)
    assert np.trapezoid(x * density, x) == pytest.approx(1, abs=1e-3)


@pytest.mark.parametrize("log", [[], ["--log"]])
def test_plot_writes_a_picture(run, tmp_path, log):
    path = tmp_path / "law.svg"
    assert run(*BERT, "--plot", path, *log).code == 0
    assert "<svg" in path.read_text()
    assert [entry.name for entry in tmp_path.iterdir()] == ["law.svg"]


def test_force_overwrites(run, tmp_path):
    path = tmp_path / "law.csv"
    path.write_text("old")
    assert run("law", *SMALL, "--csv", path, "--force").code == 0
    assert path.read_text().startswith("x,density,cdf\n")


@pytest.mark.parametrize(
    ("error", "code"),
    [(ConvergenceError("the solver", 1e-3, 1e-12, "ask for fewer digits"), 1), (BranchError("wrong root"), 1)],
)
def test_a_solver_that_fails_is_one_line_and_code_1(run, monkeypatch, error, code):
    def fail(_, **options):
        del options
        raise error

    monkeypatch.setitem(vars(freeattn), "law", fail)
    outcome = run("law", *SMALL)
    assert outcome.code == code
    assert str(error) in outcome.line


@pytest.mark.parametrize(
    ("error", "code"), [(KeyboardInterrupt(), 130), (MemoryError("1 TiB"), 2), (OSError(28, "full"), 2)]
)
def test_interrupts_and_the_machine_are_one_line(run, monkeypatch, error, code):
    def fail(_, **options):
        del options
        raise error

    monkeypatch.setitem(vars(freeattn), "law", fail)
    outcome = run("law", *SMALL)
    assert outcome.code == code
    assert outcome.line


# As a process --------------------------------------------------------------------------------------------------------


def _process(*arguments, **keywords):
    return subprocess.run(
        [sys.executable, "-m", "freeattn", *arguments], stderr=subprocess.PIPE, text=True, timeout=120, check=False,
        **keywords,
    )


def test_a_closed_pipe_is_silent():
    reader, writer = os.pipe()
    os.close(reader)
    try:
        outcome = _process("architectures", stdout=writer)
    finally:
        os.close(writer)
    assert (outcome.returncode, outcome.stderr) == (141, "")


def test_closed_messages_and_input_change_no_result():
    arguments = ["law", "bert-base", "--n-tokens", "128"]
    closed = subprocess.run(
        ["bash", "-c", '"$0" -m freeattn "$@" 2>&- <&-', sys.executable, *arguments],
        stdout=subprocess.PIPE, text=True, timeout=120, check=False,
    )
    assert closed.returncode == 0
    assert closed.stdout == _process(*arguments, stdout=subprocess.PIPE).stdout


def test_a_full_disk_is_one_line():
    if not os.path.exists("/dev/full"):
        pytest.skip("no /dev/full")
    with open("/dev/full", "w") as full:
        outcome = _process("architectures", stdout=full)
    assert outcome.returncode == 2
    assert len(outcome.stderr.splitlines()) == 1


def test_data_goes_to_stdout_and_messages_to_stderr():
    outcome = _process("law", *SMALL, "--json", stdout=subprocess.PIPE)
    assert (outcome.returncode, outcome.stderr) == (0, "")
    assert outcome.stdout.startswith("{")
    outcome = _process("law", "bert-bse", stdout=subprocess.PIPE)
    assert (outcome.returncode, outcome.stdout) == (2, "")
    assert "Traceback" not in outcome.stderr
    assert len(outcome.stderr.splitlines()) == 1


def test_an_ascii_stream_gets_escapes_instead_of_an_error():
    environment = {**os.environ, "PYTHONIOENCODING": "ascii"}
    outcome = _process("derive", "--symbolic", stdout=subprocess.PIPE, env=environment)
    assert (outcome.returncode, outcome.stderr) == (0, "")
