"""Reproduced figures as pictures: curves of the theory, measured points with intervals, laws over histograms."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from freeattn.report.plot import check_plot_file, figure_class, plot_law

__all__ = ["save_figure"]

_PANEL = (4.6, 3.6)  # inches
_MOST_COLUMNS = 3
_COLOURS = ("#b2182b", "#2166ac", "#4d9221", "#8c510a")
_MARK = "#8a8a8a"
_DOTS_PER_INCH = 160


def save_figure(panels: Sequence[Any], path: str | os.PathLike[str], title: str = "") -> None:
    """Write panels (see `evidence.reproduce_parts.Panel`) to one .png, .pdf or .svg file.

    Curves are the theory, points means over draws with 95 % intervals; a point has the colour of the curve with its
    label.

    Raises:
        InputError, MissingExtraError: as `report.check_plot_file`.
    """
    check_plot_file(path)
    columns = min(len(panels), _MOST_COLUMNS)
    rows = math.ceil(len(panels) / columns)
    figure = figure_class()(figsize=(_PANEL[0] * columns, _PANEL[1] * rows), layout="constrained")
    for number, panel in enumerate(panels, start=1):
        _draw(figure.add_subplot(rows, columns, number), panel)
    if title:
        figure.suptitle(title)
    figure.savefig(path, format=Path(path).suffix[1:].lower(), dpi=_DOTS_PER_INCH)


def _draw(ax: Any, panel: Any) -> None:
    if panel.histogram is not None:
        plot_law(panel.histogram.law, ax, sample=panel.histogram.values)
        ax.set_title(panel.title, fontsize="medium")
        return
    colours = _colours(panel)
    for line in panel.lines:
        ax.plot(line.x, line.y, color=colours[line.label], linewidth=1.8, label=line.label, zorder=2)
    named = {line.label for line in panel.lines}
    for points in panel.points:
        label = None if points.label in named else points.label
        ax.errorbar(
            points.x, points.y, yerr=points.half_widths, fmt="o", markersize=4, capsize=2, linewidth=1,
            color=colours[points.label], label=label, zorder=3,
        )
    for axis in panel.log:
        getattr(ax, f"set_{axis}scale")("log")
    if "y" in panel.log:
        _limit_decades(ax, panel)
    for place, text in panel.marks:
        ax.axvline(place, color=_MARK, linewidth=1, linestyle=":", zorder=1)
        ax.annotate(
            text, xy=(place, 0.02), xycoords=("data", "axes fraction"), rotation=90, color=_MARK, fontsize="small",
            ha="right", va="bottom",
        )
    if panel.names:
        ax.set_xticks(range(len(panel.names)), panel.names, rotation=35, ha="right", fontsize="small")
    ax.set(xlabel=panel.x_name, ylabel=panel.y_name)
    ax.set_title(panel.title, fontsize="medium")
    ax.legend(frameon=False, fontsize="small")


def _colours(panel: Any) -> dict[str, str]:
    labels = dict.fromkeys(one.label for one in (*panel.lines, *panel.points))
    return {label: _COLOURS[number % len(_COLOURS)] for number, label in enumerate(labels)}


def _limit_decades(ax: Any, panel: Any) -> None:
    """The axis ends where the curves do, or after six decades: losses fall below any number."""
    values = [float(y) for one in (*panel.lines, *panel.points) for y in one.y]
    top = max(values)
    low = max(min(y for y in values if y > 0), top * 1e-6)
    ax.set_ylim(low / 1.5, top * 1.5)
