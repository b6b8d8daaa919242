"""--plot of the commands: what the pictures show, and what is refused."""

import numpy as np
import pytest

from freeattn import report

LAYER = ["--n-tokens", 64, "--d-model", 64, "--n-heads", 4, "--d-value", 16]


@pytest.fixture
def drawn(monkeypatch):
    """What the commands write, as it is written."""
    pictures, save = [], report.save_figure

    def recording(picture, path):
        pictures.append(picture)
        save(picture, path)

    monkeypatch.setitem(vars(report), "save_figure", recording)
    return pictures


def test_law_has_a_title_and_the_unit_that_was_asked_for(run, tmp_path, drawn):
    given = [*LAYER, "--d-key", 16, "--normalized", "--plot"]
    assert run("law", *given, tmp_path / "law.pdf").code == 0
    (ax,) = drawn
    assert ax.get_title() == "mha, n = 64, β = 1"
    assert ax.get_xlabel().endswith("/ mean")
    assert (tmp_path / "law.pdf").read_bytes().startswith(b"%PDF")


def test_unequal_heads_are_titled_with_their_own_beta(run, tmp_path, drawn):
    given = ["--n-tokens", 64, "--d-model", 64, "--heads", "2:16:8:1,1:32:8:2"]
    assert run("law", *given, "--plot", tmp_path / "law.svg").code == 0
    assert drawn[0].get_title() == "mha, n = 64, β = 1, 2"


def test_verify_pools_its_draws(run, tmp_path, drawn):
    run("verify", *LAYER, "--d-key", 16, "--draws", 3, "--plot", tmp_path / "law.png")
    (ax,) = drawn
    assert ax.get_title().endswith(", 3 draws")
    assert any("sample of 192" in text.get_text() for text in ax.get_legend().get_texts())


def test_compare_draws_laws_of_mean_one_with_the_names_given(run, tmp_path, drawn):
    names = ["bert-base", "bert-base:n_heads=6"]
    given = ["compare", *names, "--n-tokens", 512, "--plot", tmp_path / "both.svg"]
    outcome = run(*given, "--linear", "--json")
    assert outcome.code == 0
    assert [layer["layer"] for layer in outcome.json["layers"]] == names
    (ax,) = drawn
    assert [text.get_text() for text in ax.get_legend().get_texts()] == [names[0], f"{names[1]}, atom 0.25 at 0"]
    assert (ax.get_xscale(), ax.get_xlabel()) == ("linear", "squared singular value / mean")
    assert "--force" in run(*given).line
    assert run(*given, "--force").code == 0
    assert drawn[1].get_xscale() == "log"


def test_sweep_over_two_fields_is_a_map_of_its_rows(run, tmp_path, drawn):
    given = ["--over", "beta=0.5,1,1.5", "--over", "d_key=8,16,32", "--quantity", "edges", "--quantity", "mean"]
    outcome = run("sweep", *LAYER, *given, "--plot", tmp_path / "map.svg", "--plot-column", "mean", "--json")
    assert outcome.code == 0
    (ax,) = drawn
    cells = ax.collections[0].get_array()
    assert np.asarray(cells).T.ravel().tolist() == [row["mean"] for row in outcome.json["rows"]]
    assert (ax.get_xlabel(), ax.get_ylabel(), ax.get_yscale()) == ("beta", "d_key", "log")
    assert run("sweep", *LAYER, *given[2:], "--beta", 1, "--plot", tmp_path / "line.svg").code == 0
    assert drawn[1].get_ylabel() == "left_edge"  # the first column of the first quantity


@pytest.mark.usefixtures("computing_is_an_error")
@pytest.mark.parametrize(("given", "told"), [
    (["--plot-column", "right_egde"], "plot_column = right_egde is not allowed; expected one of mean, left_edge, "
     "right_edge, n_bands, atom (did you mean right_edge?)"),
    (["--plot-column", "d_key"], "plot_column = d_key is not allowed; expected one of mean, left_edge, "),
    (["--plot-column", "error"], "plot_column = error is not allowed; expected one of mean, left_edge, "),
    (["--plot-column", "softmax_outliers"], "plot_column = softmax_outliers is not allowed; "),
    (["--quantity", "bands"], "is not allowed; expected a quantity of numbers; bands has none"),
    (["--quantity", "meen"], "quantity = meen is not allowed; "),
])
def test_a_column_that_cannot_be_drawn_is_refused_before_computing(run, tmp_path, given, told):
    outcome = run("sweep", *LAYER, "--over", "d_key=8,16", "--plot", tmp_path / "line.svg", *given)
    assert outcome.code == 2
    assert told in outcome.line
    assert list(tmp_path.iterdir()) == []


@pytest.mark.usefixtures("computing_is_an_error")
def test_a_column_without_a_picture_is_refused(run):
    outcome = run("sweep", *LAYER, "--over", "d_key=8,16", "--plot-column", "mean")
    assert outcome.code == 2
    assert "plot_column = mean is not allowed; expected nothing without --plot FILE" in outcome.line


def test_columns_of_draws_are_drawn(run, tmp_path, drawn):
    given = ["--over", "d_key=8,16", "--draws", 1, "--plot-column", "softmax_moment_1"]
    assert run("sweep", *LAYER, *given, "--plot", tmp_path / "line.svg").code == 0
    assert drawn[0].get_ylabel() == "softmax_moment_1"


@pytest.mark.usefixtures("computing_is_an_error")
def test_three_fields_have_no_picture(run, tmp_path):
    fields = [text for field in ("d_key=8,16", "beta=1,2", "d_out=8,16") for text in ("--over", field)]
    outcome = run("sweep", *LAYER, *fields, "--plot", tmp_path / "map.svg")
    assert outcome.code == 2
    assert "a sweep over one field or two" in outcome.line


@pytest.mark.usefixtures("computing_is_an_error")
@pytest.mark.parametrize(
    "command", [["compare", "bert-base", "bert-large"], ["sweep", "bert-base", "--over", "beta=1"]]
)
def test_another_ending_is_refused_before_computing(run, tmp_path, command):
    outcome = run(*command, "--plot", tmp_path / "picture.gif")
    assert outcome.code == 2
    assert "plot = " in outcome.line
    assert ".png, .pdf, .svg" in outcome.line


def test_a_sweep_of_errors_has_no_picture(run, tmp_path):
    assert run("sweep", *LAYER, "--d-key", 8, "--over", "beta=-1,-2", "--plot", tmp_path / "line.svg").code == 1
    assert list(tmp_path.iterdir()) == []
