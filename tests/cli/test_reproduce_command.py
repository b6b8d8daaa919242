"""`freeattn reproduce`, on layers small enough to draw in a moment."""

import csv
import io
from types import SimpleNamespace

import pytest

import freeattn
from freeattn.cli import reproduce as command
from freeattn.evidence.reproduce import FIGURES


@pytest.fixture(autouse=True)
def own_folder(tmp_path, monkeypatch):
    """The default store is a file of the current folder."""
    monkeypatch.chdir(tmp_path)


def test_figures_are_those_of_the_package():
    assert tuple(FIGURES) == command.FIGURES


def test_json_csv_and_the_store(run, tmp_path):
    arguments = ("reproduce", "fig-3b", "--scale", 64, "--draws", 2, "--workers", 1)
    outcome = run(*arguments, "--json", "--csv", tmp_path / "rows.csv")
    assert outcome.code == 0
    (figure,) = outcome.json["figures"]
    assert (figure["figure"], figure["seed"], figure["passed"], figure["reduced"]) == ("fig-3b", 0, True, True)
    assert outcome.err == "freeattn: note: finished draws are kept in freeattn-reproduce.sqlite\n"
    assert len(freeattn.Store(tmp_path / "freeattn-reproduce.sqlite")) == 20
    rows = list(csv.DictReader(io.StringIO((tmp_path / "rows.csv").read_text())))
    assert [row["label"] for row in rows] == ["h = 2", "h = 4", "h = 8", "h = 16", "h = 32"]
    assert float(rows[0]["simulated"]) == figure["rows"][0]["simulated"]
    table = run(*arguments).out
    (line,) = (line.split() for line in table.splitlines() if line.startswith("h = 16"))
    assert line[-1] == "passed"
    assert "64 = 4096/64" in table
    assert "Setting: n = 4096" in table


def test_a_scale_that_does_not_divide_the_sizes_is_said_first(run, monkeypatch):
    monkeypatch.setitem(vars(freeattn), "reproduce", lambda *_, **__: ())
    lines = run("reproduce", "fig-3b", "--scale", 100, "--json").err.splitlines()
    assert lines[1] == (
        "freeattn: note: scale = 100 does not divide all sizes; sizes are divided by 4 for fig-3b"
    )
    assert "4 for fig-3a (fixed widths); 2 for fig-3a (n_kv" in run("reproduce", "fig-3a", "--scale", 100, "--json").err
    assert len(run("reproduce", "fig-3b", "--scale", 64, "--json").err.splitlines()) == 1


def test_a_number_that_is_not_the_printed_one_gives_code_1(run, monkeypatch):
    failed = SimpleNamespace(name="fig-2a", passed=False, to_dict=lambda: {"passed": False})
    monkeypatch.setitem(vars(freeattn), "reproduce", lambda *_, **__: (failed,))
    outcome = run("reproduce", "fig-2a", "--json")
    assert outcome.code == 1
    assert outcome.json["figures"] == [{"passed": False}]


def test_the_choice_of_the_figure_is_passed_on_as_none(run, monkeypatch):
    seen = []
    monkeypatch.setitem(vars(freeattn), "reproduce", lambda names, **given: seen.append((names, given)) or ())
    run("reproduce", "all", "--json")
    ((names, given),) = seen
    assert names == command.FIGURES
    assert (given["draws"], given["scale"], given["workers"], given["seed"]) == (None, None, None, 0)


def test_pictures(run, tmp_path):
    picture = tmp_path / "figure.svg"
    assert run("reproduce", "fig-2a", "--scale", 4096, "--draws", 2, "--workers", 1, "--plot", picture).code == 0
    assert "<svg" in picture.read_text()


def test_all_figures_have_a_file_each():
    assert command._plot_files("a/paper.png", ("fig-2a", "fig-d1")) == {
        "plot fig-2a": "a/paper-fig-2a.png", "plot fig-d1": "a/paper-fig-d1.png",
    }
    assert command._plot_files("paper.png", ("fig-2a",)) == {"plot fig-2a": "paper.png"}


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], "figure = (not given) is not allowed; expected one of table-d2, fig-2a"),
        (["fig-2b"], "figure = fig-2b is not allowed; expected one of table-d2, fig-2a"),
        (["fig-2a", "--scale", "1/2"], "scale = 1/2"),
        (["fig-2a", "--draws", "-1"], "draws = -1"),
        (["fig-2a", "--workers", "0"], "workers = 0"),
        (["fig-2a", "--plot", "figure.gif"], "plot = figure.gif"),
        (["fig-2a", "--store", "nowhere/draws.db"], "store = nowhere/draws.db"),
    ],
)
def test_bad_input_is_refused_before_anything_is_drawn(run, monkeypatch, arguments, words):
    monkeypatch.setitem(vars(freeattn), "reproduce", lambda *_, **__: pytest.fail("computed"))
    outcome = run("reproduce", *arguments)
    assert outcome.code == 2
    assert words in outcome.line or words in outcome.err
