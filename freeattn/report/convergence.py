"""Distances against n with their rates, and losses against β: tables and a picture."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from freeattn.report.plot import check_plot_file, figure_class
from freeattn.report.tables import rows_table

__all__ = ["convergence_tables", "save_convergence_plot"]

_NOTE = (
    "Means over draws with 95 % Student-t intervals; moments: absolute deviation over the moment of the law. Rates: "
    "distance ~ n^-a by least squares over all draws, with the 95 % interval of a."
)
_PASSED, _FAILED = Text("passed", style="green"), Text("FAILED", style="bold red")
_DRAWN = {"relative_w1": "relative W1", "ks": "Kolmogorov-Smirnov"}
_RGB = {"softmax-law": "#b2182b", "equivalent-law": "#4d4d4d", "softmax-equivalent": "#2166ac"}


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


def save_convergence_plot(found: Any, path: str | os.PathLike[str]) -> None:
    """Relative W1 and KS against n, with their fitted powers, and the loss against β/√log n where it was measured.

    Raises:
        InputError, MissingExtraError: as `check_plot_file`.
    """
    check_plot_file(path)
    panels = len(_DRAWN) + bool(found.losses)
    figure = figure_class()(figsize=(4.6 * panels, 4.0), layout="constrained")
    axes = list(figure.subplots(1, panels))
    for ax, (statistic, name) in zip(axes, _DRAWN.items(), strict=False):
        for one in (one for one in found.distances if one.statistic == statistic):
            _draw_distance(ax, one, found.sizes)
        ax.set(xscale="log", yscale="log", xlabel="n_tokens", ylabel=name)
        ax.set_xticks(found.sizes, [str(n) for n in found.sizes])
        ax.minorticks_off()
        ax.legend(frameon=False, fontsize="small")
    if found.losses:
        _draw_losses(axes[-1], found)
    figure.savefig(path, format=Path(path).suffix[1:].lower(), dpi=160)


def _draw_distance(ax: Any, distance: Any, sizes: Any) -> None:
    color, means = _RGB[distance.between], [one.mean for one in distance.estimates]
    halves = [one.half_width or 0.0 for one in distance.estimates]
    label = distance.between.replace("-", " to ")
    if distance.rate is not None:
        ax.plot(sizes, [distance.rate.at(n) for n in sizes], color=color, linewidth=1)
        label += f", a = {distance.rate.exponent:.2f}"
    ax.errorbar(sizes, means, yerr=halves, color=color, fmt="o", markersize=4, capsize=2, label=label)


def _draw_losses(ax: Any, found: Any) -> None:
    for n, losses in _by_size(found):
        scaled = [one.scaled_beta for one in losses]
        (line,) = ax.plot(scaled, [one.expected for one in losses], linewidth=1)
        halves = [one.loss.half_width or 0.0 for one in losses]
        ax.errorbar(
            scaled, [one.loss.mean for one in losses], yerr=halves, color=line.get_color(), fmt="o", markersize=4,
            capsize=2, label=f"n = {n}",
        )
    ax.set(xlabel="β/√log n", ylabel="loss of the mean (lines: expected)")
    ax.legend(frameon=False, fontsize="small")


def _by_size(found: Any) -> Iterator[tuple[int, list[Any]]]:
    for n in found.sizes:
        yield n, sorted((one for one in found.losses if one.n_tokens == n), key=lambda one: one.beta)
