"""Pictures of reproduced figures and of convergence."""

import freeattn as fa
from freeattn.evidence.reproduce_parts import Histogram, Line, Panel, Points
from freeattn.report.figures import plot_panels

CURVES = Panel(
    "curves", "x", "y", (Line("a", [1, 10], [1.0, 1e-9]), Line("b", [1, 10], [2.0, 3.0])),
    (Points("a", [1, 10], [1.1, 0.0], [0.2, 0.1]), Points("measured", [5], [2.0], [0.1])), log="xy",
    marks=((3.0, "here"),),
)


def test_points_take_the_colour_of_their_curve_and_one_entry_in_the_legend():
    figure = plot_panels([CURVES], "title")
    assert figure.get_suptitle() == "title"
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


def test_panels_in_rows_of_three_with_histograms_and_names(law):
    histogram = Panel("law", histogram=Histogram(law, [0.0, 1.5, 2.0, 2.5]))
    named = Panel("names", "", "y", points=(Points("p", [0, 1], [1.0, 2.0], [0.1, 0.1]),), names=("one", "two"))
    figure = plot_panels([CURVES, histogram, named, named])
    assert len(figure.axes) == 4
    assert [text.get_text() for text in figure.axes[2].get_xticklabels()] == ["one", "two"]
    assert figure.axes[1].get_title() == "law"


def test_distances_against_n_have_their_means_intervals_and_rates():
    layer = fa.Attention(n_tokens=32, d_model=32, n_heads=2, d_key=8, output="attention")
    found = fa.converge(layer, [16, 32], draws=2, betas=[1])
    figure = fa.plot_convergence(found)
    w1, ks, losses = figure.axes
    for ax, statistic in ((w1, "relative_w1"), (ks, "ks")):
        assert (ax.get_xscale(), ax.get_yscale()) == ("log", "log")
        assert [text.get_text() for text in ax.get_xticklabels()] == ["16", "32"]
        for number, between in enumerate(("softmax-law", "equivalent-law", "softmax-equivalent")):
            one = found.distance(statistic, between)
            points = ax.containers[number]
            assert list(points.lines[0].get_ydata()) == [estimate.mean for estimate in one.estimates]
            assert points.get_label() == f"a = {one.rate.exponent:.2f}"
    (names,) = figure.legends
    assert [text.get_text() for text in names.get_texts()] == [
        "softmax to law", "equivalent to law", "softmax to equivalent",
    ]
    assert [container.get_label() for container in losses.containers] == ["n = 16", "n = 32"]
