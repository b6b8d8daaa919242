"""Reproduced figures as pictures: curves of the theory, measured points with intervals, laws over histograms."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from freeattn.report.curves import limit_decades
from freeattn.report.lettering import plain_text
from freeattn.report.plot import plot_law
from freeattn.report.style import COLOURS, LINE_WIDTH, draw_intervals, legend, new_figure, set_title, small_text

__all__ = ["plot_panels"]

_WIDTH, _HEIGHT = 3.4, 2.6  # inches of one panel
_MOST_COLUMNS = 3
_MARK = "#8a8a8a"


def plot_panels(panels: Sequence[Any], title: str = "") -> Any:
    """A Figure of panels (see `evidence.reproduce_parts.Panel`).

    Curves are the theory, points means over draws with 95 % intervals; a point has the colour of the curve with its
    label.

    Raises:
        MissingExtraError: when matplotlib is not installed.
    """
    columns = min(len(panels), _MOST_COLUMNS)
    rows = math.ceil(len(panels) / columns)
    figure = new_figure(rows, columns, width=_WIDTH * columns, height=_HEIGHT * rows)
    for ax, panel in zip(figure.axes, panels, strict=False):
        _draw(ax, panel)
    for ax in figure.axes[len(panels):]:
        ax.remove()
    if title:
        figure.suptitle(plain_text(title), fontsize=figure.axes[0].xaxis.label.get_fontsize())
    return figure


def _draw(ax: Any, panel: Any) -> None:
    if panel.histogram is not None:
        plot_law(panel.histogram.law, ax, sample=panel.histogram.values, title=panel.title)
        return
    colours = _colours(panel)
    for line in panel.lines:
        ax.plot(line.x, line.y, color=colours[line.label], linewidth=LINE_WIDTH, label=plain_text(line.label), zorder=2)
    named = {line.label for line in panel.lines}
    for points in panel.points:
        label = None if points.label in named else plain_text(points.label)
        draw_intervals(ax, points.x, points.y, points.half_widths, color=colours[points.label], label=label, zorder=3)
    for axis in panel.log:
        getattr(ax, f"set_{axis}scale")("log")
    if "y" in panel.log:
        limit_decades(ax, [y for one in (*panel.lines, *panel.points) for y in one.y])
    for place, text in panel.marks:
        ax.axvline(place, color=_MARK, linewidth=0.8, linestyle=":", zorder=1)
        ax.annotate(
            plain_text(text), xy=(place, 0.02), xycoords=("data", "axes fraction"), rotation=90, color=_MARK,
            fontsize=small_text(ax), ha="right", va="bottom",
        )
    if panel.names:
        names = [plain_text(name) for name in panel.names]
        ax.set_xticks(range(len(names)), names, rotation=35, ha="right", fontsize=small_text(ax))
    ax.set(xlabel=plain_text(panel.x_name), ylabel=plain_text(panel.y_name))
    set_title(ax, panel.title)
    legend(ax)


def _colours(panel: Any) -> dict[str, str]:
    labels = dict.fromkeys(one.label for one in (*panel.lines, *panel.points))
    return {label: COLOURS[number % len(COLOURS)] for number, label in enumerate(labels)}
