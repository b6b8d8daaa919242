"""Losses of gradient flow as a picture."""

import numpy as np
import pytest

import freeattn as fa
from freeattn.errors import InputError


@pytest.fixture(scope="module")
def laws():
    layer = fa.Attention.from_ratios(gamma_key=1, gamma_value=2, gamma_out=2, n_heads=4, tokens_per_width=1)
    return {"β = 1": fa.law(layer), "β = 2": fa.law(layer.replace(beta=2))}


def test_curves_are_the_losses_of_the_laws(laws):
    times = [1, 10, 100]
    ax = fa.plot_losses(laws, times=times)
    assert (ax.get_xscale(), ax.get_yscale()) == ("log", "log")
    assert [text.get_text() for text in ax.get_legend().get_texts()] == list(laws)
    for line, law in zip(ax.get_lines(), laws.values(), strict=True):
        assert line.get_xdata().tolist() == times
        assert line.get_ydata().tolist() == fa.predict.flow_loss(law, times).tolist()


def test_the_axis_ends_after_six_decades(laws):
    low, high = fa.plot_losses(laws).get_ylim()
    assert 1e-7 < low < 1e-6
    assert 0.5 < high < 2


def test_what_is_no_law_and_no_time(laws):
    with pytest.raises(InputError, match="laws"):
        fa.plot_losses([])
    with pytest.raises(InputError, match="times"):
        fa.plot_losses(laws, times=np.array([0.0, 1.0]))
