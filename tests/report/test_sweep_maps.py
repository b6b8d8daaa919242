"""Maps of sweeps: every cell is its row, and axes follow the values."""

import itertools

import numpy as np
import pytest

from freeattn.errors import InputError
from freeattn.report.sweep_maps import plot_sweep

KEYS, VALUES = (8, 16, 32, 64), (0.5, 1.0, 1.5)


def rows(keys=KEYS, values=VALUES, told=lambda key, value: key + value):
    return [{"d_key": key, "beta": value, "mean": told(key, value)} for key, value in itertools.product(keys, values)]


def mesh(ax):
    (found,) = (one for one in ax.collections if type(one).__name__ == "QuadMesh")
    return found


def ticks(axis):
    return [text.get_text() for text in axis.get_ticklabels()]


def test_every_cell_is_its_row():
    ax = plot_sweep(rows()[::-1], "mean", "d_key", "beta")
    cells = mesh(ax).get_array()
    borders = np.asarray(mesh(ax).get_coordinates())
    for i, j in itertools.product(range(3), range(4)):
        assert cells[i, j] == KEYS[j] + VALUES[i]
        (left, low), (right, high) = borders[i, j], borders[i + 1, j + 1]
        assert left < KEYS[j] < right
        assert low < VALUES[i] < high
    assert (ax.get_xscale(), ax.get_yscale()) == ("log", "linear")
    assert borders[0, :, 0] == pytest.approx(8 * 2.0 ** (np.arange(5) - 0.5))
    assert borders[:, 0, 1] == pytest.approx([0.25, 0.75, 1.25, 1.75])
    assert ticks(ax.xaxis) == ["8", "16", "32", "64"]
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("d_key", "beta")
    assert ax.figure.axes[1].get_ylabel() == "mean"


def test_texts_of_a_csv_file_are_numbers():
    texts = [{name: str(value) for name, value in row.items()} for row in rows()]
    ax = plot_sweep(texts, "mean", "d_key", "beta")
    assert (mesh(ax).get_array() == mesh(plot_sweep(rows(), "mean", "d_key", "beta")).get_array()).all()
    assert ax.get_xscale() == "log"


@pytest.mark.parametrize("nothing", [None, "", float("inf")])
def test_cells_without_a_value_are_masked(nothing):
    ax = plot_sweep(rows(told=lambda key, value: nothing if key == 16 else value), "mean", "d_key", "beta")
    mask = np.ma.getmaskarray(mesh(ax).get_array())
    assert mask[:, 1].all()
    assert mask.sum() == 3


def test_combinations_that_are_not_there_are_masked():
    ax = plot_sweep(rows()[1:], "mean", "d_key", "beta")
    assert np.argwhere(np.ma.getmaskarray(mesh(ax).get_array())).tolist() == [[0, 0]]


@pytest.mark.parametrize("values", [("mha", "values"), (1, 2, 5), ("none", 8, 16), (3,), (False, True)])
def test_names_and_uneven_values_stand_in_cells_of_one_width(values):
    ax = plot_sweep(rows(values=values, told=lambda key, _: key), "mean", "d_key", "beta")
    assert np.asarray(mesh(ax).get_coordinates())[:, 0, 1] == pytest.approx(np.arange(len(values) + 1) - 0.5)
    assert ticks(ax.yaxis) == [str(value) for value in values]


def test_colours_are_logarithmic_over_many_decades():
    wide = rows(told=lambda key, value: 10.0 ** (key / 16) * value)
    scales = [mesh(plot_sweep(wide, "mean", "d_key", "beta", log=log)).norm for log in (None, False)]
    assert [type(norm).__name__ for norm in scales] == ["LogNorm", "Normalize"]
    with pytest.raises(InputError, match="log = True"):
        plot_sweep(rows(told=lambda key, _: key - 8), "mean", "d_key", "beta", log=True)


def test_one_field_is_a_line():
    ax = plot_sweep(rows(values=(1,), told=lambda key, _: 1000.0**key), "mean", "d_key")
    (line,) = ax.get_lines()
    assert line.get_xydata().tolist() == [[key, 1000.0**key] for key in KEYS]
    assert (ax.get_xscale(), ax.get_yscale()) == ("log", "log")
    (low, high), shown = ax.get_ylim(), line.get_ydata()
    assert low < min(shown) < max(shown) < high
    assert ax.get_legend() is None


def test_given_axes_are_drawn_on():
    from matplotlib.figure import Figure

    axes = Figure().subplots(1, 2)
    assert plot_sweep(rows(), "mean", "d_key", "beta", axes[0]) is axes[0]
    assert plot_sweep(rows(values=(1,)), "mean", "d_key", ax=axes[1]) is axes[1]


@pytest.mark.parametrize(
    ("table", "names", "field"),
    [
        (rows(), ("nothing", "d_key", "beta"), "quantity"),
        (rows(), ("mean", "nothing", "beta"), "x"),
        (rows(), ("mean", "d_key", "d_key"), "y"),
        (rows(), ("mean", "d_key"), "table"),  # three rows for each d_key
        (rows(told=lambda *_: "text"), ("mean", "d_key", "beta"), "quantity"),
        (rows(told=lambda *_: None), ("mean", "d_key", "beta"), "quantity"),
        ([], ("mean", "d_key", "beta"), "table"),
        ([1], ("mean", "d_key", "beta"), "table"),
    ],
)
def test_what_cannot_be_drawn_is_named(table, names, field):
    with pytest.raises(InputError, match=f"^{field} = "):
        plot_sweep(table, *names)
