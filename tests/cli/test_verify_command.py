"""`freeattn verify`, on layers small enough to draw in a moment."""

import csv
import io
import sys
from types import SimpleNamespace

import pytest

from freeattn import report
from freeattn.cli.progress import progress_of

SMALL = ["--n-tokens", "64", "--d-model", "64", "--n-heads", "4", "--d-key", "32", "--d-value", "32", "--beta", "1/2"]
DRAWS = ("--draws", 3, "--seed", 5)


def test_json_is_the_verification_and_the_code_its_verdict(run):
    outcome = run("verify", *SMALL, *DRAWS, "--json")
    record = outcome.json
    assert record["passed"] is True
    assert outcome.code == 0
    assert (record["draws"], record["seed"], record["preset"]) == (3, 5, None)
    assert record["spec"]["beta"] == "1/2"
    assert {"relative_w1_to_law", "moment_1", "outliers"} <= {one["name"] for one in record["statistics"]}


def test_the_seed_decides_the_result(run):
    first, again = (run("verify", *SMALL, *DRAWS, "--json").out for _ in range(2))
    assert first == again
    assert run("verify", *SMALL, "--draws", 3, "--seed", 6, "--json").out != first


def test_a_failed_check_gives_code_1_and_warnings_go_to_stderr(run):
    outcome = run("verify", *SMALL[:-1], 3, *DRAWS, "--json")
    assert outcome.code == 1
    assert outcome.json["passed"] is False
    assert all(line.startswith("freeattn: warning: ") for line in outcome.err.splitlines())
    assert "beta = 3" in outcome.err


def test_tables_show_each_statistic_with_its_verdict(run):
    outcome = run("verify", *SMALL, *DRAWS)
    lines = [line.split() for line in outcome.out.splitlines()]
    (row,) = (line for line in lines if line[:1] == ["moment_1"])
    assert row[-1] == "passed"
    assert row.count("±") == 2
    assert "All 12 checks passed." in outcome.out


def test_one_draw_has_no_interval(run):
    outcome = run("verify", *SMALL, "--draws", 1)
    assert "±" not in outcome.out
    assert "no confidence interval" in outcome.err


def test_csv_and_plot(run, tmp_path):
    table, picture = tmp_path / "statistics.csv", tmp_path / "law.svg"
    assert run("verify", *SMALL, *DRAWS, "--csv", table, "--plot", picture, "--log").code == 0
    rows = list(csv.DictReader(io.StringIO(table.read_text())))
    assert {row["statistic"] for row in rows} >= {"moment_1", "outliers"}
    assert all(row["draws"] == "3" for row in rows)
    assert "<svg" in picture.read_text()


@pytest.mark.parametrize("terminal", [False, True])
def test_progress_is_shown_on_a_terminal_only(monkeypatch, terminal):
    monkeypatch.setattr(sys, "stderr", SimpleNamespace(isatty=lambda: terminal, write=str, flush=lambda: None))
    with progress_of("drawing", 3) as progress:
        assert (progress is not None) is terminal


def test_progress_bar_counts_and_disappears(capsys):
    with report.progress_on_stderr(4) as progress:
        progress(1, 4)
        progress(4, 4)
    assert capsys.readouterr().out == ""


@pytest.mark.slow
def test_published_agreement_of_bert_base(run):
    outcome = run("verify", "bert-base", "--n-tokens", 512, "--draws", 10, "--seed", 0, "--json")
    assert outcome.code == 0
    (row,) = (one for one in outcome.json["statistics"] if one["name"] == "relative_w1_to_equivalent")
    assert row["softmax"]["mean"] == pytest.approx(0.0166, abs=0.004)  # Table D.2: 1.66 ± 0.23 %
