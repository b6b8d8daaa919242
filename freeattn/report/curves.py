"""Curves with names on the same axes: the palette, and the axes of loss curves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from freeattn.errors import InputError
from freeattn.report.lettering import plain_text
from freeattn.report.style import COLOURS, LINE_WIDTH, LINES, axes_of, legend

__all__ = ["limit_decades", "line_of", "named", "plot_curves"]

_MOST_DECADES = 1e-6  # of the highest value: losses fall below any number
_MARGIN = 1.3


def line_of(number: int) -> dict[str, Any]:
    """Colour and line style of a curve by its position; the first 35 pairs differ."""
    return {"color": COLOURS[number % len(COLOURS)], "linestyle": LINES[number % len(LINES)]}


def named(given: Mapping[str, Any] | Sequence[Any], field: str) -> dict[str, Any]:
    """Laws by their names: those given, else those of their layers, numbered where they are not different.

    Raises:
        InputError: when there is none, and for what is no law.
    """
    found: dict[str, Any] = {}
    if isinstance(given, Mapping):
        found = {str(name): law for name, law in given.items()}
    elif isinstance(given, Sequence):
        for number, law in enumerate(given, start=1):
            name = getattr(getattr(law, "spec", None), "name", None) or f"law {number}"
            found[name if name not in found else f"{name} ({number})"] = law
    if not found or not all(hasattr(law, "density") for law in found.values()):
        raise InputError(field, given, "a list of laws, or laws by their names, at least one")
    return found


def plot_curves(
    curves: Mapping[str, tuple[Any, Any]], ax: Any, x_name: str, y_name: str, *, log: str = "", marker: str = "",
    whole: bool = True,
) -> Any:
    """(x, y) by name on Axes, or on those of a new figure; `log` holds the letters of logarithmic axes.

    A logarithmic y axis shows all points, or, where `whole` is False, the first decades of curves that fall to 0.
    """
    ax = axes_of(ax)
    for number, (name, (x, y)) in enumerate(curves.items()):
        ax.plot(x, y, label=plain_text(name), linewidth=LINE_WIDTH, marker=marker, markersize=3, **line_of(number))
    for axis in log:
        getattr(ax, f"set_{axis}scale")("log")
    if "y" in log and not whole:
        limit_decades(ax, [value for _, y in curves.values() for value in y])
    ax.set(xlabel=plain_text(x_name), ylabel=plain_text(y_name))
    legend(ax)
    return ax


def limit_decades(ax: Any, values: Sequence[Any]) -> None:
    """The axis ends where the values do, or after six decades."""
    positive = [float(value) for value in values if value is not None and value > 0]
    if positive:
        top = max(positive)
        ax.set_ylim(max(min(positive), top * _MOST_DECADES) / _MARGIN, top * _MARGIN)
