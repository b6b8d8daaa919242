"""The grid of a law, and what a picture of it shows."""

import sys
from types import SimpleNamespace

import numpy as np
import pytest

from freeattn.errors import InputError, MissingExtraError
from freeattn.model.attention import Attention
from freeattn.numerics.limiting import law as spectral_law
from freeattn.report.plot import _title, check_plot_file, density_rows, law_grid, plot_law, save_law_plot


def test_grid_is_increasing_contains_soft_edges_and_has_the_size_asked_for(two_bands):
    grid = law_grid(two_bands, 200)
    assert len(grid) == 200
    assert (np.diff(grid) > 0).all()
    assert {1.0, 3.0, 5.0, 7.0} <= set(grid.tolist())
    assert not ((grid > 3) & (grid < 5)).any()


def test_grid_is_denser_near_the_edges(law):
    gaps = np.diff(law_grid(law, 100))
    middle = gaps[len(gaps) // 2]
    assert gaps[0] < middle / 10
    assert gaps[-1] < middle / 10


def test_grid_integrates_the_density(law):
    rows = np.array(list(density_rows(law, 400)))
    assert np.trapezoid(rows[:, 1], rows[:, 0]) == pytest.approx(0.75, abs=1e-4)
    assert rows[0, 2] == pytest.approx(0.25, abs=1e-15)
    assert rows[-1, 2] == pytest.approx(1.0, abs=1e-15)


@pytest.mark.parametrize("k", [2, 3, 4])
def test_grid_resolves_a_hard_edge_and_leaves_it_out(k):
    class HardEdge:  # density x^{1/k − 1}/k on [0, 1], cdf x^{1/k}
        edges = ((0.0, 1.0),)
        edge_exponents = ((1 / k - 1, 0.5),)

    grid = law_grid(HardEdge(), 500)
    assert grid[0] > 0
    mass = np.diff(grid ** (1 / k))
    assert mass.max() < 0.02  # no step of the grid holds more than 2 % of the law
    assert grid[0] ** (1 / k) < 0.02


def test_grid_follows_a_band_over_many_decades():
    class Wide:
        edges = ((1e-8, 1.0),)
        edge_exponents = ((0.5, 0.5),)

    grid = law_grid(Wide(), 300)
    assert (np.diff(np.log10(grid)) < 0.15).all()


def test_law_without_bands_has_an_empty_grid():
    class Point:
        edges = ()
        edge_exponents = ()

    assert law_grid(Point(), 100).size == 0


def test_one_draw_is_no_plural():
    spec = SimpleNamespace(name="x", output="mha", n_tokens=8, beta=1)
    assert [_title(spec, draws).rpartition(", ")[2] for draws in (0, 1, 2)] == ["β = 1", "1 draw", "2 draws"]


def test_plot_shows_density_bands_and_atom(law):
    ax = plot_law(law)
    (curve,) = ax.get_lines()
    assert curve.get_xdata().min() == 1.0
    assert max(curve.get_ydata()) == pytest.approx(0.75 * 2 / np.pi, rel=1e-3)
    assert any("atom 0.25 at 0" in text.get_text() for text in ax.texts)
    assert ax.get_ylim()[1] > 0.75 * 2 / np.pi
    assert ax.get_xlabel() == "squared singular value"


def test_plot_normalized_divides_law_and_sample_by_the_mean(law):
    ax = plot_law(law, sample=[0.0, 1.5, 1.5, 3.0], normalized=True)
    (curve,) = ax.get_lines()
    assert curve.get_xdata().min() == pytest.approx(1 / 1.5)
    (bars,) = (patch for patch in ax.patches if type(patch).__name__ == "StepPatch")
    heights, edges, _ = bars.get_data()
    assert heights[np.searchsorted(edges, 1.0, side="right") - 1] > 0
    assert (heights * np.diff(edges)).sum() == pytest.approx(0.75)  # the zero is at the atom


def test_logarithmic_axis_shows_the_density_of_the_logarithm(law):
    ax = plot_law(law, sample=[0.0, 2.0, 2.0, 2.5], log=True)
    assert ax.get_xscale() == "log"
    (curve,) = ax.get_lines()
    x, height = curve.get_data()
    assert height == pytest.approx(x * law.density(x))
    (bars,) = (patch for patch in ax.patches if type(patch).__name__ == "StepPatch")
    heights, edges, _ = bars.get_data()
    assert (heights * np.diff(np.log(edges))).sum() == pytest.approx(0.75)
    assert any("atom 0.25 at 0" in text.get_text() for text in ax.texts)


def test_values_beyond_the_axis_are_counted_not_dropped_silently(law):
    ax = plot_law(law, sample=[2.0, 2.5, 40.0])
    labels = [text.get_text() for text in ax.get_legend().get_texts()]
    assert "sample of 3 (1 beyond the axis)" in labels


def test_two_bands_give_two_curves_and_one_legend_entry(two_bands):
    ax = plot_law(two_bands)
    assert len(ax.get_lines()) == 2
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["limiting law"]


@pytest.mark.parametrize("log", [False, True])
def test_a_hard_edge_does_not_hide_the_rest_of_the_law(log):
    spec = Attention(n_tokens=64, d_model=64, n_heads=1, d_key=64, d_value=64)  # density ~ x^(-3/4)
    ax = plot_law(spectral_law(spec), log=log)
    assert np.isfinite(ax.get_ylim()).all()
    assert ax.get_ylim()[1] < 30 if not log else ax.get_ylim()[1] < 1


def test_plot_draws_on_given_axes_and_never_loads_pyplot(law):
    from matplotlib.figure import Figure

    before = "matplotlib.pyplot" in sys.modules
    ax = Figure().add_subplot()
    assert plot_law(law, ax=ax) is ax
    assert ("matplotlib.pyplot" in sys.modules) == before


@pytest.mark.parametrize("sample", [[], [1.0, float("nan")]])
def test_bad_sample(law, sample):
    with pytest.raises(InputError, match="sample"):
        plot_law(law, sample=sample)


@pytest.mark.parametrize(("suffix", "start"), [("png", b"\x89PNG"), ("pdf", b"%PDF"), ("svg", b"<?xml")])
def test_save(law, tmp_path, suffix, start):
    path = tmp_path / f"law.{suffix}"
    save_law_plot(law, path, samples=[np.full(50, 2.0), np.zeros(20)])
    assert path.read_bytes().startswith(start)


@pytest.mark.parametrize("name", ["law.gif", "law", "law.png.txt"])
def test_unknown_suffix(name):
    with pytest.raises(InputError, match=r"plot = .*\.png, \.pdf, \.svg"):
        check_plot_file(name)


def test_without_matplotlib(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(MissingExtraError, match=r"freeattn\[plot\]"):
        check_plot_file("law.png")
