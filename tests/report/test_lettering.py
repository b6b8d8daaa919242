"""Names in pictures: drawn letter for letter, whatever characters they have."""

import io
import warnings
from dataclasses import replace

import matplotlib
import numpy as np
import pytest
from matplotlib.font_manager import FontProperties, findfont, fontManager
from matplotlib.text import Text

from freeattn.errors import InputError
from freeattn.model.architectures import architecture
from freeattn.report.curves import plot_curves
from freeattn.report.lettering import MissingGlyphWarning, plain_text
from freeattn.report.plot import law_title, plot_law, plot_laws
from freeattn.report.style import new_figure, save_figure
from freeattn.report.sweep_maps import plot_sweep

NAMES = ["$5", "$x$", "a$b$c", r"$\frac$", r"\$", r"a\b", "_x", "__", "50 %", "R&D", "<b>", "{^#~'", "β₁ ≤ 2"]


def shown(ax):
    """What readers see in the legend."""
    return [as_drawn(text) for text in ax.get_legend().get_texts()]


def as_drawn(text):
    """The letters of a text, and that they are no formula."""
    letters, formula = text._preprocess_math(text.get_text())
    assert not formula
    return letters.lstrip(" ")


@pytest.mark.parametrize("name", NAMES)
def test_names_are_drawn_letter_for_letter(law, tmp_path, name):
    spec = replace(architecture("bert-base", n_tokens=512), name=name)
    ax = plot_law(law, label=name, title=law_title(spec))
    assert shown(ax)[0] == name
    assert as_drawn(ax.title) == f"{name}, mha, n = 512, β = 1"
    several = plot_laws({name: replace(law, atom=0), "other": replace(law, atom=0)})
    assert shown(several) == [name, "other"]
    curves = plot_curves({name: ([1, 2], [1, 2])}, None, name, name)
    rows = [{name: x, "y": y, "q": x + i} for x in (1, 2) for i, y in enumerate((name, "z"))]
    sweep = plot_sweep(rows, "q", name, "y")
    line = plot_sweep([{"x": 1, name: 2.0}, {"x": 2, name: 3.0}], name, "x")
    assert as_drawn(curves.xaxis.label) == as_drawn(sweep.xaxis.label) == as_drawn(line.yaxis.label) == name
    assert as_drawn(sweep.get_yticklabels()[0]) == name
    save_figure(ax, tmp_path / "law.svg")


def test_a_formula_of_the_user_is_set_and_a_broken_one_refused(law, tmp_path):
    ax = plot_law(law)
    ax.set_title(r"$\rho$")
    save_figure(ax, tmp_path / "a.png")
    ax.set_title(r"$\frac{$")
    with pytest.raises(InputError, match="a dollar sign"):
        save_figure(ax, tmp_path / "b.png")
    assert [file.name for file in tmp_path.iterdir()] == ["a.png"]


@pytest.fixture
def without_other_fonts(monkeypatch):
    monkeypatch.setattr(fontManager, "ttflist", [one for one in fontManager.ttflist if one.name.startswith("DejaVu")])


@pytest.mark.usefixtures("without_other_fonts")
@pytest.mark.parametrize(("name", "drawn"), [("中文", "[U+4E2D][U+6587]"), ("a\x07\nx", "a[U+0007]\nx")])
def test_a_character_of_no_font_is_its_number_with_a_warning_of_that_name(law, tmp_path, name, drawn):
    with pytest.warns(MissingGlyphWarning, match=r"no font has U\+.*rcParams") as told:
        ax = plot_law(law, label=name)
    assert len(told) == 1
    assert told[0].filename == __file__
    assert shown(ax)[0] == drawn
    save_figure(ax, tmp_path / "law.pdf")  # and no warning of matplotlib


def test_names_may_have_letters_of_another_installed_font(law, tmp_path, monkeypatch):
    """Computer Modern lacks Greek letters in its text font; DejaVu, which comes with matplotlib, has them."""
    monkeypatch.setitem(matplotlib.rcParams, "font.family", ["cmr10"])
    monkeypatch.setitem(matplotlib.rcParams, "axes.formatter.use_mathtext", True)
    assert plain_text("Жук") == "Жук"
    ax = plot_law(law, label="Жук", title="θ")
    families = ax.title.get_fontfamily()
    for name in ("law.pdf", "law.svg", "law.png"):
        save_figure(ax, tmp_path / name)  # warnings are errors here
    assert ax.title.get_fontfamily() == families == ["cmr10"]
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        ax.figure.savefig(io.BytesIO(), format="png")
    assert any("missing from font" in str(one.message) for one in told)  # what a reader is spared


def test_a_font_that_is_not_installed_is_no_error(law, tmp_path, monkeypatch):
    monkeypatch.setitem(matplotlib.rcParams, "font.family", ["no such font", "DejaVu Sans"])
    save_figure(plot_law(law, label="β"), tmp_path / "law.png")


def test_usual_names_ask_no_font_and_stay_as_they_are(monkeypatch):
    monkeypatch.setattr("freeattn.report.lettering._files_of", lambda _: 1 / 0)
    assert plain_text("llama-2-7b:n_tokens=512, 100 %") == "llama-2-7b:n_tokens=512, 100 %"
    assert plain_text("") == ""


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ((1, 6), r"width = 7.0 .* at least 8.4 inches for 6 panels in line"),
        ((1, 20), r"width = 7.0 .* at least 28 inches"),
        ((4, 1, 3.4, 2), r"height = 2 .* at least 4 inches for 4 panels"),
        ((1, 1, 0.5), r"width = 0.5 .* at least 1.4 inches for 1 panel in line"),
    ],
)
def test_panels_without_room_are_refused_when_they_are_asked_for(given, told):
    rows, columns, *size = given
    with pytest.raises(InputError, match=told):
        new_figure(rows, columns, **dict(zip(("width", "height"), size, strict=False)))


@pytest.mark.parametrize(("rows", "columns"), [(1, 5), (6, 1)])
def test_as_many_panels_as_are_allowed_have_room(law, tmp_path, rows, columns):
    figure = new_figure(rows, columns)
    for ax in figure.axes:
        plot_law(law, ax, title="law")
    save_figure(figure, tmp_path / "panels.png")
    inches = [figure.get_size_inches() * ax.get_position().size for ax in figure.axes]
    assert np.min(inches) > 0.25


def test_a_figure_of_the_user_without_room_is_refused_and_other_warnings_are_handed_on(law, tmp_path):
    from matplotlib.figure import Figure

    figure = Figure(figsize=(1, 1), layout="constrained")
    plot_law(law, figure.add_subplot())
    with pytest.raises(InputError, match=r"picture = 'a figure whose panels have no room'.*larger width"):
        save_figure(figure, tmp_path / "law.png")
    assert not (tmp_path / "law.png").exists()

    class Loud(Text):
        def draw(self, renderer):
            del renderer
            warnings.warn("mine", FutureWarning, stacklevel=2)

    ax = plot_law(law)
    ax.add_artist(Loud(0, 0, "x"))
    with pytest.warns(FutureWarning, match="mine"):
        save_figure(ax, tmp_path / "law.png")


def test_the_fonts_of_these_tests_are_as_they_say():
    assert "cmr10" in findfont(FontProperties(family=["cmr10"]))
