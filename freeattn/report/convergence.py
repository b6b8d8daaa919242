"""Distances against n with their rates, and losses against β: tables and a picture."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from freeattn.report.curves import line_of
from freeattn.report.style import COLOURS, LINE_WIDTH, draw_intervals, legend, new_figure, small_text
from freeattn.report.tables import rows_table

__all__ = ["convergence_tables", "plot_convergence"]

_NOTE = (
    "Means over draws with 95 % Student-t intervals; moments: absolute deviation over the moment of the law. Rates: "
    "distance ~ n^-a by least squares over all draws, with the 95 % interval of a."
)
_PASSED, _FAILED = Text("passed", style="green"), Text("FAILED", style="bold red")
_DRAWN = {"relative_w1": "relative W1", "ks": "Kolmogorov-Smirnov"}
_LOOK = {  # colour, line, marker
    "softmax-law": (COLOURS[1], "-", "o"), "equivalent-law": (COLOURS[0], "--", "s"),
    "softmax-equivalent": (COLOURS[2], ":", "^"),
}


def convergence_tables(found: Any, preset: str | None = None) -> tuple[RenderableType, ...]:
    """One row for each distance with its rate, the test of the scores, and the losses at each β."""
    title = f"{preset or 'Attention'}: output {found.spec.output}, {found.draws} draws at each size, seed {found.seed}"
    columns = ("distance", "between", *(f"n = {n}" for n in found.sizes), "rate a", "95 %")
    rows = [
        (one.statistic, one.between, *(_value(estimate) for estimate in one.estimates), *_rate(one.rate))
        for one in found.distances
    ]
    identities = (_identity_table(found),) if found.identities else ()
    losses = (_loss_table(found),) if found.losses else ()
    notes = (Text(_NOTE), *(Text(f"Note: {note}") for note in found.notes))
    return (rows_table(title, columns, rows, left=2), *identities, *losses, *notes)


def _value(estimate: Any) -> str:
    half = estimate.half_width
    return f"{estimate.mean:.3g}" if half is None else f"{estimate.mean:.3g} ± {half:.1g}"


def _rate(rate: Any) -> tuple[str, str]:
    if rate is None:
        return "none", ""
    return f"{rate.exponent:.2f}", "" if rate.interval is None else "{:.2f} to {:.2f}".format(*rate.interval)


def _identity_table(found: Any) -> Table:
    columns = ("n_tokens", "d_key", "beta", "exact", "simulated", "verdict")
    rows = [
        (str(one.n_tokens), str(one.d_key), f"{one.beta:.6g}", f"{one.exact:.6g}", _value(one.simulated),
         _PASSED if one.passed else _FAILED)
        for one in found.identities
    ]
    return rows_table("Self-test: mean of exp(beta S - beta^2/2)", columns, rows, left=0)


def _loss_table(found: Any) -> Table:
    columns = ("beta", "n_tokens", "beta/sqrt(log n)", "loss", "expected", "W1 to equivalent")
    rows = [
        (f"{one.beta:.6g}", str(one.n_tokens), f"{one.scaled_beta:.3f}", _percent(one.loss), f"{one.expected:.1%}",
         _percent(one.relative_w1))
        for one in sorted(found.losses, key=lambda loss: loss.scaled_beta)
    ]
    return rows_table("Mean of softmax below that of the law", columns, rows, left=0)


def _percent(estimate: Any) -> str:
    half = estimate.half_width
    return f"{estimate.mean:.1%}" if half is None else f"{100 * estimate.mean:.1f} ± {100 * half:.1f} %"


def plot_convergence(found: Any) -> Any:
    """A Figure of what `fa.converge` found: relative W1 and KS against n with their fitted powers, and losses.

    A panel for the loss of the mean against β/√log n is there when losses were measured. Points are means over draws
    with 95 % intervals; a is the exponent of the fitted n^−a.

    Raises:
        MissingExtraError: when matplotlib is not installed.
    """
    panels = len(_DRAWN) + bool(found.losses)
    figure = new_figure(1, panels)
    for ax, (statistic, name) in zip(figure.axes, _DRAWN.items(), strict=False):
        for between in _LOOK:
            _draw_distance(ax, found.distance(statistic, between), found.sizes)
        ax.set(xscale="log", yscale="log", xlabel="n_tokens", ylabel=name)
        ax.set_xticks(found.sizes, [str(n) for n in found.sizes])
        ax.xaxis.minorticks_off()
        legend(ax)
    figure.legend(
        *_pairs(figure.axes[0]), loc="outside upper left", ncols=len(_LOOK), frameon=False,
        fontsize=small_text(figure.axes[0]),
    )
    if found.losses:
        _draw_losses(figure.axes[-1], found)
    return figure


def _draw_distance(ax: Any, distance: Any, sizes: Any) -> None:
    (color, line, marker), means = _LOOK[distance.between], [one.mean for one in distance.estimates]
    label = "no rate"
    if distance.rate is not None:
        ax.plot(sizes, [distance.rate.at(n) for n in sizes], color=color, linestyle=line, linewidth=LINE_WIDTH)
        label = f"a = {distance.rate.exponent:.2f}"
    _draw_points(ax, sizes, means, distance.estimates, color, marker, label)


def _pairs(ax: Any) -> tuple[list[Any], list[str]]:
    """Handles and names of what is compared: the same colours and markers in every panel, in the order of `_LOOK`."""
    return ax.get_legend_handles_labels()[0], [between.replace("-", " to ") for between in _LOOK]


def _draw_points(
    ax: Any, x: Sequence[Any], y: Sequence[float], estimates: Sequence[Any], color: str, marker: str, label: str
) -> None:
    """Means with their intervals, where these are known."""
    halves = [one.half_width or 0.0 for one in estimates]
    draw_intervals(ax, x, y, halves, color=color, fmt=marker, label=label)


def _draw_losses(ax: Any, found: Any) -> None:
    for number, (n, losses) in enumerate(_by_size(found)):
        scaled, look = [one.scaled_beta for one in losses], line_of(number)
        ax.plot(scaled, [one.expected for one in losses], linewidth=LINE_WIDTH, **look)
        estimates = [one.loss for one in losses]
        _draw_points(ax, scaled, [one.mean for one in estimates], estimates, look["color"], "o", f"n = {n}")
    ax.set(xlabel="β/√log n", ylabel="mean loss (lines: expected)")
    legend(ax)


def _by_size(found: Any) -> Iterator[tuple[int, list[Any]]]:
    for n in found.sizes:
        yield n, sorted((one for one in found.losses if one.n_tokens == n), key=lambda one: one.beta)
