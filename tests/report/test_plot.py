"""The grid of a law, and what a picture of it shows."""

import sys
from dataclasses import replace
from fractions import Fraction
from types import SimpleNamespace

import numpy as np
import pytest

from freeattn.errors import InputError
from freeattn.model.architectures import architecture
from freeattn.model.attention import Attention
from freeattn.model.expression import gaussian, identity, wigner
from freeattn.model.heads import Heads
from freeattn.model.letters import space
from freeattn.numerics.free_convolutions import free_sum
from freeattn.numerics.limiting import law as spectral_law
from freeattn.report.grid import density_rows, law_grid
from freeattn.report.plot import law_title, plot_law, plot_laws


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


def curves(ax):
    """The lines that are curves: not atoms, not bars at the bottom."""
    return [line for line in ax.get_lines() if line.get_marker() == "None" and line.get_transform() == ax.transData]


def bars(ax):
    """Heights and ends of the histogram."""
    (patch,) = (patch for patch in ax.patches if type(patch).__name__ == "StepPatch")
    heights, edges, _ = patch.get_data()
    return heights, edges


def labels(ax):
    return [text.get_text() for text in ax.get_legend().get_texts()]


def test_title_says_the_beta_of_the_heads_and_leaves_out_what_a_layer_does_not_have(spec):
    assert law_title(spec) == "mha, n = 512, β = 0.5"
    assert [law_title(spec, draws).rpartition(", ")[2] for draws in (1, 2)] == ["1 draw", "2 draws"]
    heads = [Heads(2, 16, 16, beta=2), Heads(1, 32, 16, beta=3)]
    unequal = Attention(n_tokens=64, d_model=64, heads=heads, beta=Fraction(1, 2), name="two kinds")
    assert law_title(unequal) == "two kinds, mha, n = 64, β = 2, 3"  # spec.beta is that of no head
    assert "n = " not in law_title(Attention.from_ratios(gamma_key=1, n_heads=4, output="attention"))


def test_plot_shows_density_bands_and_atom(law):
    ax = plot_law(law)
    (curve,) = curves(ax)
    x, height = curve.get_data()
    assert height == pytest.approx(law.density(x))
    assert (x.min(), x.max()) == law.edges[0]
    (span,) = (patch for patch in ax.patches if type(patch).__name__ == "Rectangle")
    assert (span.get_x(), span.get_x() + span.get_width()) == law.edges[0]
    (atom,) = (line for line in ax.get_lines() if line.get_marker() == "^")
    assert list(atom.get_xdata()) == [0, 0]
    assert labels(ax) == ["limiting law", "atom 0.25 at 0"]
    assert ax.get_ylim()[1] > 0.75 * 2 / np.pi
    assert ax.get_xlabel() == "squared singular value"
    assert ax.get_title() == ""


def test_area_of_the_histogram_and_share_at_the_atom_are_one(law):
    sample = np.concatenate([np.zeros(30), np.full(3, 1e-17), np.linspace(1.1, 2.9, 67)])
    ax = plot_law(law, sample=sample)
    heights, edges = bars(ax)
    assert (heights * np.diff(edges)).sum() + 33 / 100 == pytest.approx(1)
    assert labels(ax)[-1] == "atom 0.25 at 0 (sample: 0.33)"


def test_rough_zeros_of_single_precision_are_zeros(law):
    values = np.array([3e-7, -2e-7, 2.0, 2.5])
    assert labels(plot_law(law, sample=values.astype(np.float32)))[-1] == "atom 0.25 at 0 (sample: 0.5)"
    assert labels(plot_law(law, sample=abs(values)))[-1] == "atom 0.25 at 0 (sample: 0)"
    with pytest.raises(InputError, match="1 of 4 values below 0, the first of them -2e-07 at position 1"):
        plot_law(law, sample=values)


def test_draws_are_pooled(law):
    draw = SimpleNamespace(softmax=np.array([0.0, 2.0]))
    assert "sample of 5" in labels(plot_law(law, sample=[draw, np.array([2.0, 1.5, 2.5])]))
    assert "sample of 2" in labels(plot_law(law, sample=draw))
    assert "sample of 2" in labels(plot_law(law, sample=[1.5, 2.0]))


def test_plot_normalized_divides_law_and_sample_by_the_mean(law):
    ax = plot_law(law, sample=[0.0, 1.5, 1.5, 3.0], normalized=True)
    (curve,) = curves(ax)
    assert curve.get_xdata().min() == pytest.approx(1 / 1.5)
    heights, edges = bars(ax)
    assert heights[np.searchsorted(edges, 1.0, side="right") - 1] > 0
    assert (heights * np.diff(edges)).sum() == pytest.approx(0.75)  # the zero is at the atom
    assert ax.get_xlabel() == "squared singular value / mean"


def test_logarithmic_axis_shows_the_density_of_the_logarithm(law):
    ax = plot_law(law, sample=[0.0, 2.0, 2.0, 2.5], log=True)
    assert ax.get_xscale() == "log"
    (curve,) = curves(ax)
    x, height = curve.get_data()
    assert height == pytest.approx(x * law.density(x))
    heights, edges = bars(ax)
    assert (heights * np.diff(np.log(edges))).sum() == pytest.approx(0.75)
    assert labels(ax)[-1] == "atom 0.25 at 0 (sample: 0.25)"


def test_the_axis_is_logarithmic_where_a_band_needs_it(two_bands):
    wide = replace(two_bands, centers=(1.0,), radius=0.999)
    assert [plot_law(one).get_xscale() for one in (two_bands, wide)] == ["linear", "log"]


@pytest.mark.parametrize("log", [False, True])
def test_distribution_function_jumps_at_the_atom(law, log):
    ax = plot_law(law, sample=[0.0, 2.0, 2.0, 2.5], cdf=True, log=log)
    steps, curve = curves(ax)
    x, height = curve.get_data()
    assert height[x != 0] == pytest.approx(law.cdf(x[x != 0]))
    if log:
        assert height[0] == 0.25  # the zeros have no place on the axis
        assert steps.get_ydata()[1] == 0.25
    else:
        assert list(height[x == 0]) == [0, 0.25]
    assert height[-1] == pytest.approx(1)
    assert set(steps.get_ydata()) == {0, 0.25, 0.5, 0.75, 1}
    assert (ax.get_ylabel(), ax.get_xscale()) == ("distribution function", "log" if log else "linear")


def test_values_beyond_the_axis_are_counted_not_dropped_silently(law):
    ax = plot_law(law, sample=[2.0, 2.5, 40.0])
    assert "sample of 3 (1 beyond the axis)" in labels(ax)


def test_two_bands_give_two_curves_and_one_legend_entry(two_bands):
    ax = plot_law(two_bands, label="mine")
    assert len(curves(ax)) == 2
    assert labels(ax) == ["mine"]


def test_several_laws_have_their_names_colours_and_line_styles(law, two_bands):
    ax = plot_laws({"one": law, "two": two_bands})
    assert labels(ax) == ["one, atom 0.25 at 0", "two"]
    drawn = curves(ax)
    assert len(drawn) == 3
    for line, which in zip(drawn, (law, two_bands, two_bands), strict=True):
        assert line.get_ydata() == pytest.approx(which.density(line.get_xdata()))
    first, second = ((line.get_color(), line.get_linestyle()) for line in drawn[:2])
    assert first[0] != second[0]
    assert first[1] != second[1]
    band = [line for line in ax.get_lines() if line.get_transform() != ax.transData]
    assert [tuple(line.get_xdata()) for line in band] == [*law.edges, *two_bands.edges]


def test_laws_without_names_are_called_as_their_layers(law):
    bert = replace(law, spec=architecture("bert-base", n_tokens=512))
    assert [text.split(",")[0] for text in labels(plot_laws([bert, law, bert]))] == [
        "bert-base", "law 2", "bert-base (3)",
    ]
    for wrong in ([], {}, law, [law, 1]):
        with pytest.raises(InputError, match="laws"):
            plot_laws(wrong)


def test_laws_divided_by_their_means_and_as_distribution_functions(law, two_bands):
    ax = plot_laws([law, two_bands], normalized=True, cdf=True)
    for line, which in zip(curves(ax), (law, two_bands), strict=True):
        x, height = line.get_data()
        assert height[x != 0] == pytest.approx(which.normalized().cdf(x[x != 0]))
    assert ax.get_xlabel() == "squared singular value / mean"


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
    size = ax.xaxis.label.get_fontsize()
    assert plot_law(law, ax) is ax
    assert plot_laws([law], ax) is ax
    assert ax.xaxis.label.get_fontsize() == size  # the letters are the caller's
    assert ("matplotlib.pyplot" in sys.modules) == before


def test_bands_far_apart_have_a_logarithmic_axis(two_bands):
    near, far = (
        replace(two_bands, centers=(centre, 400.0), radius=radius) for centre, radius in ((300.0, 5.0), (1.0, 0.5))
    )
    assert [plot_law(law).get_xscale() for law in (near, far)] == ["linear", "log"]


def test_a_logarithmic_axis_needs_positive_values(law, two_bands):
    negative = replace(two_bands, centers=(0.5, 1.5))
    with pytest.raises(InputError, match="log = True"):
        plot_law(negative, log=True)
    wide = replace(two_bands, centers=(1.0,), radius=0.999)
    assert [plot_laws(pair).get_xscale() for pair in ([law, wide], [negative, wide])] == ["log", "linear"]


@pytest.mark.parametrize(
    ("sample", "told"),
    [
        ([], "no values"),
        ([[], []], "no values"),
        ([1.0, float("nan"), float("inf")], "2 of 3 values not finite, the first of them nan at position 1"),
        ("eigenvalues", "an array of <U11"),
        (["1", "2"], "an array of <U1"),
        ([[1.0], ["x"]], "an array of <U1"),
        ([1j, 2.0], "complex numbers"),
        (np.array([True, False]), "an array of bool"),
        ([None, 1.0], "1 of 2 values not finite, the first of them nan at position 0"),
        ([object(), 1.0], "a value of type list"),
        (2.0, r"an array of shape \(\)"),
        (np.eye(3), r"an array of shape \(3, 3\).*of a matrix, its squared singular values"),
        ([[1.0, 2.0], 3.0], r"an array of shape \(\)"),
        ([2.0, -0.5, 1.0, -0.25], "2 of 4 values below 0, the first of them -0.5 at position 1'.*squared"),
        ([-1, 2], "1 of 2 values below 0, the first of them -1 at position 0"),
        ([-1.0, -2.0], "2 of 2 values below 0"),
        ([[1, [2, 3]], [1.0]], "a value of type list"),
        ([10**400], "a value of type list"),
        (np.array(["1", "2"], dtype=object), "a value of type ndarray"),
        (np.array([True, 2.0], dtype=object), "a value of type ndarray"),
    ],
)
def test_what_is_no_sample_is_refused_with_its_first_value(law, sample, told):
    for options in ({}, {"cdf": True}, {"log": True}, {"normalized": True}):
        with pytest.raises(InputError, match=f"^sample = .*{told}"):
            plot_law(law, sample=sample, **options)


class Tensor:
    """As of torch: an array with a method `softmax`."""

    ndim = 1

    def __init__(self, values):
        self.values = np.asarray(values)

    def __array__(self, dtype=None, copy=None):
        return self.values.astype(dtype or self.values.dtype)

    def softmax(self, dim):
        raise AssertionError(dim)


def test_tensors_masked_values_and_precisions_of_their_own(law):
    assert "sample of 2" in labels(plot_law(law, sample=Tensor([1.5, 2.0])))
    assert "sample of 4" in labels(plot_law(law, sample=[Tensor([1.5, 2.0]), Tensor([1.5, 2.0])]))
    masked = np.ma.MaskedArray([1.5, -5.0, 2.0], mask=[False, True, False])
    assert "sample of 2" in labels(plot_law(law, sample=masked))
    rough = np.array([-1e-8, 2.0], dtype=np.float32)
    assert labels(plot_law(law, sample=[rough, np.array([1.5, 2.0])]))[-1] == "atom 0.25 at 0 (sample: 0.25)"


def test_rounding_below_0_is_0(law):
    """eigvalsh of a matrix with zeros gives values such as -1e-16."""
    assert labels(plot_law(law, sample=[-2e-12, 2.0, 2.5, 2.5]))[-1] == "atom 0.25 at 0 (sample: 0.25)"
    with pytest.raises(InputError, match="1 of 4 values below 0"):
        plot_law(law, sample=[-1e-11, 2.0, 2.5, 2.5])
    factor = np.random.default_rng(0).normal(size=(40, 10))
    values = np.linalg.eigvalsh(factor @ factor.T) / 40
    assert values.min() < 0
    assert labels(plot_law(law, sample=values))[-1] == "atom 0.25 at 0 (sample: 0.75)"


def test_a_law_of_a_symmetric_matrix_has_values_below_0():
    n = space("n", 100)
    semicircle = spectral_law(wigner("S", n, Fraction(1, 100)), of="self-adjoint")
    above = spectral_law(3 * identity(n) + wigner("S", n, Fraction(1, 100)), of="self-adjoint")
    square = spectral_law(gaussian("G", n, n, Fraction(1, 100)))
    assert [law.signed for law in (semicircle, above, square)] == [True, True, False]
    assert "sample of 3" in labels(plot_law(semicircle, sample=[-1.0, 0.0, 1.0]))
    assert "sample of 2 (1 beyond the axis)" in labels(plot_law(above, sample=[-1.0, 3.0]))
    shifted = free_sum(semicircle, square)
    assert shifted.signed
    assert "sample of 2" in labels(plot_law(shifted, sample=[-1.0, 2.0]))
    for nonnegative in (square, free_sum(square, square)):
        with pytest.raises(InputError, match="1 of 2 values below 0"):
            plot_law(nonnegative, sample=[-1.0, 2.0])


@pytest.mark.parametrize("bad", [5, "figure", "polar"])
def test_what_is_no_axes_is_refused(bad):
    from freeattn.report.style import axes_of, new_figure

    made = {"figure": new_figure, "polar": lambda: new_figure().add_subplot(projection="polar")}.get(bad, lambda: bad)()
    with pytest.raises(InputError, match="ax"):
        axes_of(made)
    with pytest.raises(InputError, match="rows"):
        new_figure(100, 100)


def test_an_empty_label_is_not_in_the_legend(law):
    named, nameless = (plot_law(law, label=label).get_legend().get_texts() for label in ("law", ""))
    assert [one.get_text() for one in nameless] == [one.get_text() for one in named if one.get_text() != "law"]
    assert plot_law(replace(law, atom=0), label="").get_legend() is None  # no other name either
    assert len(curves(plot_laws({"": law}))) == 1


def test_axes_with_logarithmic_scales_of_their_own(law):
    """No warning of matplotlib, which the tests take for an error."""
    from matplotlib.figure import Figure

    up, across = Figure().subplots(2)
    up.set_yscale("log")
    across.set_xscale("log")
    plot_law(law, ax=up)
    plot_law(law, ax=across, log=False)
    assert up.get_yscale() == "log"
    assert 0 < up.get_ylim()[0] < up.get_ylim()[1]
    plot_law(replace(law, scale=1e6), ax=up)
    assert 0 < up.get_ylim()[0] < up.get_ylim()[1]
    plot_law(law, ax=up)
    assert 0 < up.get_ylim()[0] < up.get_ylim()[1]
    assert across.get_xscale() == "linear"
    assert across.get_xlim()[0] < law.edges[0][0]
