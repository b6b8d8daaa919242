"""Pictures of reproduced figures."""

import pytest

from freeattn.errors import InputError
from freeattn.evidence.reproduce_parts import Histogram, Line, Panel, Points
from freeattn.report import figures
from freeattn.report.figures import save_figure

CURVES = Panel(
    "curves", "x", "y", (Line("a", [1, 10], [1.0, 1e-9]), Line("b", [1, 10], [2.0, 3.0])),
    (Points("a", [1, 10], [1.1, 0.0], [0.2, 0.1]), Points("measured", [5], [2.0], [0.1])), log="xy",
    marks=((3.0, "here"),),
)


def recorded(monkeypatch):
    """A list that gets the figures that save_figure makes."""
    made = []
    original = figures.figure_class

    def recording():
        return lambda **options: made.append(original()(**options)) or made[-1]

    monkeypatch.setattr(figures, "figure_class", recording)
    return made


def test_points_take_the_colour_of_their_curve_and_one_entry_in_the_legend(tmp_path, monkeypatch):
    made = recorded(monkeypatch)
    save_figure([CURVES], tmp_path / "one.png", "title")
    (figure,) = made
    (ax,) = figure.axes
    assert (ax.get_xscale(), ax.get_yscale()) == ("log", "log")
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["a", "b", "measured"]
    colours = {line.get_label(): line.get_color() for line in ax.get_lines() if not line.get_label().startswith("_")}
    first, second = (container.lines[0].get_color() for container in ax.containers)
    assert first == colours["a"]
    assert second not in (colours["a"], colours["b"])
    low, high = ax.get_ylim()
    assert 3 < high < 6
    assert low > 1e-7  # six decades
    assert (tmp_path / "one.png").read_bytes().startswith(b"\x89PNG")


def test_panels_in_rows_of_three_with_histograms_and_names(tmp_path, monkeypatch, law):
    histogram = Panel("law", histogram=Histogram(law, [0.0, 1.5, 2.0, 2.5]))
    named = Panel("names", "", "y", points=(Points("p", [0, 1], [1.0, 2.0], [0.1, 0.1]),), names=("one", "two"))
    made = recorded(monkeypatch)
    save_figure([CURVES, histogram, named, named], tmp_path / "four.svg")
    assert len(made[0].axes) == 4
    assert [text.get_text() for text in made[0].axes[2].get_xticklabels()] == ["one", "two"]
    assert made[0].axes[1].get_title() == "law"


def test_unknown_suffix(tmp_path):
    with pytest.raises(InputError, match="plot"):
        save_figure([CURVES], tmp_path / "figure.gif")
