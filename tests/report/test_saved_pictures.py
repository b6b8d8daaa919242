"""Files of pictures: which endings, what may be overwritten, the same bytes each time, and nothing left behind."""

import re
import sys
import zlib

import matplotlib
import numpy as np
import pytest
from matplotlib.colors import to_rgb

from freeattn.errors import InputError, MissingExtraError
from freeattn.report.curves import line_of
from freeattn.report.plot import plot_law
from freeattn.report.style import COLOURS, ONE_COLUMN, TWO_COLUMNS, check_plot_file, new_figure, save_figure
from freeattn.report.writing import write_file


def picture(law):
    return plot_law(law, sample=np.linspace(1, 3, 50), title="β = 1")


@pytest.mark.parametrize(("suffix", "start"), [("png", b"\x89PNG"), ("pdf", b"%PDF"), ("svg", b"<?xml")])
def test_the_same_picture_gives_the_same_bytes(law, tmp_path, suffix, start):
    for name in "ab":
        save_figure(picture(law), tmp_path / f"{name}.{suffix}")
    content = (tmp_path / f"a.{suffix}").read_bytes()
    assert content == (tmp_path / f"b.{suffix}").read_bytes()
    assert content.startswith(start)
    assert not re.search(rb"CreationDate|<dc:date>", content)


def test_settings_of_matplotlib_are_as_before(law, tmp_path, monkeypatch):
    monkeypatch.setitem(matplotlib.rcParams, "pdf.fonttype", 3)
    monkeypatch.setitem(matplotlib.rcParams, "svg.hashsalt", "mine")
    before = dict(matplotlib.rcParams)
    drawn = picture(law)
    save_figure(drawn, tmp_path / "law.pdf")
    monkeypatch.setattr(drawn.figure, "savefig", lambda *_, **__: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        save_figure(drawn, tmp_path / "law.svg")
    assert dict(matplotlib.rcParams) == before
    assert not (tmp_path / "law.svg").exists()


def test_fonts_in_pdf_are_truetype_and_embedded_and_letters_in_svg_are_paths(law, tmp_path, monkeypatch):
    monkeypatch.setitem(matplotlib.rcParams, "pdf.fonttype", 3)
    monkeypatch.setitem(matplotlib.rcParams, "svg.fonttype", "none")
    save_figure(picture(law), tmp_path / "law.pdf")
    save_figure(picture(law), tmp_path / "law.svg")
    content = (tmp_path / "law.pdf").read_bytes()
    assert b"/FontFile2" in content
    assert b"/Type3" not in content
    streams = re.findall(rb"stream\r?\n(.*?)\r?\nendstream", content, flags=re.DOTALL)
    assert any(b"BT" in zlib.decompress(one) for one in streams if one.startswith(b"x"))  # letters are letters
    assert "<text" not in (tmp_path / "law.svg").read_text(encoding="utf-8")


def test_a_file_that_exists_is_overwritten_on_demand_only(law, tmp_path):
    path = tmp_path / "law.svg"
    path.write_text("mine")
    with pytest.raises(InputError, match=r"path = .*does not exist yet \(or force=True\)"):
        save_figure(picture(law), path)
    assert path.read_text() == "mine"
    save_figure(picture(law).figure, path, force=True)  # a figure, as well as Axes
    assert path.read_text(encoding="utf-8").endswith("</svg>\n")


def test_no_file_where_there_is_no_folder_and_none_in_place_of_one(tmp_path):
    with pytest.raises(InputError, match="a folder that exists"):
        write_file(tmp_path / "nowhere" / "law.svg", b"")
    with pytest.raises(InputError, match="not a folder"):
        write_file(tmp_path, b"", force=True)


@pytest.fixture
def little_room():
    """Files of this process may have 4096 bytes, as on a disk that is nearly full."""
    resource = pytest.importorskip("resource")
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, hard))
    yield
    resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@pytest.mark.usefixtures("little_room")
@pytest.mark.parametrize("force", [False, True])
def test_a_write_that_fails_in_the_middle_leaves_what_was_there(tmp_path, force):
    path = tmp_path / "law.svg"
    if force:
        path.write_text("mine")
    with pytest.raises(InputError, match=r"path = .*law\.svg' is not allowed; .* can be written"):
        write_file(path, b"x" * 8192, force)
    assert [one.read_text() for one in tmp_path.iterdir()] == ["mine"] * force


def test_a_name_of_the_greatest_length(tmp_path):
    path = tmp_path / f"{'a' * 251}.svg"
    write_file(path, b"x")
    assert path.read_bytes() == b"x"


@pytest.mark.parametrize("name", ["law.gif", "law", "law.png.txt", ""])
def test_unknown_ending(law, tmp_path, name):
    with pytest.raises(InputError, match=r"plot = .*\.png, \.pdf, \.svg"):
        check_plot_file(name)
    with pytest.raises(InputError, match=r"path = .*\.png, \.pdf, \.svg"):
        save_figure(plot_law(law), tmp_path / name if name else name)


def test_a_panel_of_a_part_of_a_figure_is_saved_as_all_of_it(law, tmp_path):
    from matplotlib.figure import Figure

    figure = Figure()
    part, _ = figure.subfigures(1, 2)
    plot_law(law, ax=part.subplots())
    for name, picture in (("panel", part.axes[0]), ("part", part), ("all", figure)):
        save_figure(picture, tmp_path / f"{name}.svg")
    assert len({(tmp_path / f"{name}.svg").read_bytes() for name in ("panel", "part", "all")}) == 1


def test_what_is_no_picture(law, tmp_path):
    with pytest.raises(InputError, match="picture"):
        save_figure(law, tmp_path / "law.svg")


def test_without_matplotlib(law, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    for attempt in (lambda: check_plot_file("law.png"), lambda: plot_law(law), new_figure):
        with pytest.raises(MissingExtraError, match=r"freeattn\[plot\]"):
            attempt()


def test_widths_are_those_of_journals():
    assert new_figure().get_size_inches()[0] == ONE_COLUMN == 3.4
    wide = new_figure(2, 3, height=4)
    assert list(wide.get_size_inches()) == [TWO_COLUMNS, 4]
    assert TWO_COLUMNS == 7
    assert len(wide.axes) == 6
    assert {ax.xaxis.label.get_fontsize() for ax in wide.axes} == {8}
    ax = new_figure().axes[0]
    ax.set(xlabel="x")
    assert ax.xaxis.label.get_fontsize() == 8


@pytest.mark.parametrize(
    ("given", "field"), [({"rows": 0}, "rows"), ({"width": -1}, "width"), ({"height": 0}, "height")]
)
def test_sizes_that_are_none(given, field):
    with pytest.raises(InputError, match=f"^{field} = "):
        new_figure(**given)


def test_colours_differ_for_readers_who_do_not_see_red_or_green():
    """In linear sRGB seen by protanopes and deuteranopes (Machado, Oliveira and Fernandes 2009, severity 1)."""
    kinds = {
        "protan": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
        "deutan": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]],
    }
    rgb = np.array([[int(colour[k:k + 2], 16) / 255 for k in (1, 3, 5)] for colour in COLOURS])
    linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    for matrix in kinds.values():
        seen = np.clip(linear @ np.array(matrix).T, 0, 1)
        shown = np.where(seen <= 0.0031308, 12.92 * seen, 1.055 * seen ** (1 / 2.4) - 0.055)
        distances = np.linalg.norm(shown[:, None] - shown[None], axis=2)[np.triu_indices(len(shown), 1)]
        assert distances.min() > 0.15


def test_a_law_is_told_from_its_sample_in_print_without_colours(law):
    """The sample is wider and clearly lighter, by the relative luminance that greyscale printing keeps."""
    steps, curve = plot_law(law, sample=np.linspace(1, 3, 50), cdf=True).get_lines()[:2]

    def lightness(line):
        return np.dot(to_rgb(line.get_color()), [0.299, 0.587, 0.114])

    assert lightness(steps) > lightness(curve) + 0.2
    assert steps.get_linewidth() > 1.5 * curve.get_linewidth()
    assert len({str(line_of(number)["linestyle"]) for number in range(5)}) == 5
