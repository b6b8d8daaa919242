"""Pictures of sweeps: a quantity over a grid of two fields as a map, over one field as a line."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from freeattn.errors import InputError
from freeattn.report.curves import plot_curves
from freeattn.report.lettering import plain_text
from freeattn.report.style import MUTED, axes_of, small_text

__all__ = ["plot_sweep"]

_MAP = "viridis"  # of even lightness steps: for colour-blind readers, and in grey
_EVEN = 1e-6  # relative: steps or factors of a grid that count as equal
_DECADES = 100.0  # largest over smallest value above which colours are logarithmic
_MOST_TICKS = 9

Row = Mapping[str, Any]


class _Axis(NamedTuple):
    """The values of a field along an axis, where they stand, and the borders of their cells.

    kind: "linear" for equal steps, "log" for equal factors, "named" for anything else, in cells of one width.
    """

    name: str
    values: tuple[Any, ...]
    kind: str
    places: NDArray[np.float64]
    borders: NDArray[np.float64]


def plot_sweep(
    table: Any, quantity: str, x: str, y: str | None = None, ax: Any = None, *, log: bool | None = None
) -> Any:
    """A quantity of a sweep over one field (a line) or a grid of two (a map with its colour bar).

    An axis is logarithmic where the values of its field go by equal factors; values that go neither by equal steps nor
    by equal factors, and names, stand in cells of one width. Cells without a value (combinations that are not allowed,
    infinite values) are grey.

    Args:
        table: a result of `fa.sweep`, or its rows, such as those of a CSV file by `csv.DictReader`.
        quantity: the column that is shown.
        x, y: columns of the fields along the axes; every combination may occur once.
        ax: matplotlib Axes to draw on; a new figure of the width of a column when None.
        log: logarithmic colours, or vertical axis of a line; None takes them for positive values over more than two
            decades.

    Returns:
        The Axes.

    Raises:
        InputError: for a name that is not a column, a column that is not of numbers, combinations that occur twice,
            and when there is nothing to show.
        MissingExtraError: when matplotlib is not installed.
    """
    rows = _rows(table, quantity, x, y)
    across, along = _axis(rows, x), None if y is None else _axis(rows, y)
    cells = _cells(rows, quantity, across, along)
    shown = cells[np.isfinite(cells)]
    if not shown.size:
        raise InputError("quantity", quantity, "a column with a finite number in some row")
    log = bool(shown.min() > 0 and shown.max() > _DECADES * shown.min()) if log is None else log
    if log and shown.min() <= 0:
        raise InputError("log", log, f"False where {quantity} is not positive")
    if along is None:
        ax = plot_curves({"": (across.places, cells[0])}, ax, x, quantity, log="y" if log else "", marker="o")
        _ticks(ax.xaxis, across)
        return ax
    ax = axes_of(ax)
    _draw_map(ax, quantity, across, along, cells, log)
    return ax


def _draw_map(ax: Any, quantity: str, across: _Axis, along: _Axis, cells: NDArray[np.float64], log: bool) -> None:
    ax.set_facecolor(MUTED["missing"])
    for axis, field in ((ax.xaxis, across), (ax.yaxis, along)):
        _ticks(axis, field)
    mesh = ax.pcolormesh(
        across.borders, along.borders, np.ma.masked_invalid(cells), cmap=_MAP, norm="log" if log else None,
        rasterized=cells.size > 10_000,
    )
    names = {"xlabel": plain_text(across.name), "ylabel": plain_text(along.name)}
    ax.set(**names, xlim=across.borders[[0, -1]], ylim=along.borders[[0, -1]])
    bar = ax.figure.colorbar(mesh, ax=ax)
    bar.set_label(plain_text(quantity), fontsize=ax.xaxis.label.get_fontsize())
    bar.ax.tick_params(which="both", labelsize=small_text(ax))
    bar.ax.yaxis.get_offset_text().set_fontsize(small_text(ax))


# Rows -------------------------------------------------------------------------------------------------------


def _rows(table: Any, quantity: str, x: str, y: str | None) -> list[Row]:
    rows = list(getattr(table, "rows", table))
    if not rows or not all(isinstance(row, Mapping) for row in rows):
        raise InputError("table", table, "a sweep with at least one row")
    for field, name in (("quantity", quantity), ("x", x), ("y", y)):
        if name is not None and any(name not in row for row in rows):
            raise InputError(field, name, f"one of {', '.join(map(str, rows[0]))}")
    if y == x:
        raise InputError("y", y, f"another column than x = {x}")
    return rows


def _number(value: Any) -> float | None:
    """A number, also from a text; None for anything else, and for truth values."""
    try:
        return None if isinstance(value, bool) else float(value)
    except (TypeError, ValueError):
        return None


def _axis(rows: Sequence[Row], name: str) -> _Axis:
    given = tuple(dict.fromkeys(row[name] for row in rows))
    numbers = [number for value in given if (number := _number(value)) is not None and np.isfinite(number)]
    values = np.unique(np.array(numbers, dtype=np.float64))
    if len(numbers) < len(given) or len(values) == 1:
        return _in_cells(name, given)
    if _even(np.diff(values)):
        return _Axis(name, tuple(values), "linear", values, _borders(values))
    if values[0] > 0 and _even(np.diff(np.log(values))):
        return _Axis(name, tuple(values), "log", values, np.exp(_borders(np.log(values))))
    return _in_cells(name, tuple(values))


def _in_cells(name: str, values: tuple[Any, ...]) -> _Axis:
    places = np.arange(len(values), dtype=float)
    return _Axis(name, values, "named", places, np.arange(-0.5, len(values)))


def _even(steps: NDArray[np.float64]) -> bool:
    return bool(np.ptp(steps) <= _EVEN * steps.max())


def _borders(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Half way between the values, and as far beyond the first and the last."""
    step = np.diff(values)[0] / 2
    return np.append(values - step, values[-1] + step)


def _cells(rows: Sequence[Row], quantity: str, across: _Axis, along: _Axis | None) -> NDArray[np.float64]:
    """The quantity by position along y and x; NaN where there is none."""
    cells = np.full((1 if along is None else len(along.values), len(across.values)), np.nan)
    taken = np.zeros(cells.shape, dtype=bool)
    for row in rows:
        place = (0 if along is None else _position(along, row), _position(across, row))
        if taken[place]:
            at = ", ".join(f"{axis.name} = {row[axis.name]}" for axis in (across, along) if axis is not None)
            raise InputError("table", f"several rows with {at}", "one row for each combination of x and y")
        taken[place] = True
        value = row[quantity]
        number = _number(value)
        if number is None and value not in (None, ""):
            raise InputError("quantity", quantity, f"a column of numbers; one value is {value!r}")
        cells[place] = number if number is not None and np.isfinite(number) else np.nan
    return cells


def _position(axis: _Axis, row: Row) -> int:
    value = row[axis.name]
    return axis.values.index(value if value in axis.values else _number(value))


def _ticks(axis: Any, field: _Axis) -> None:
    """Scale and ticks: at the values themselves where these are few, or have no other place."""
    if field.kind == "log":
        axis.axes.set(**{f"{axis.axis_name}scale": "log"})
    if field.kind == "named" or len(field.values) <= _MOST_TICKS:
        every = -(-len(field.values) // _MOST_TICKS)
        names = [f"{value:.6g}" if isinstance(value, float) else str(value) for value in field.values[::every]]
        axis.set_ticks(field.places[::every], [plain_text(name) for name in names])
        axis.minorticks_off()
