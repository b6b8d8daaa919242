"""How pictures look and how they are written: sizes, colours, files. The only place of matplotlib (extra "plot").

Only its object interface is used: no pyplot, no display, no style sheet. A figure that is made here has the widths and
letters of a journal; Axes that a caller gives keep theirs. Files are the same for the same picture, byte by byte.
"""

from __future__ import annotations

import io
import os
import threading
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from numbers import Integral, Real
from pathlib import Path
from typing import Any, Final

from freeattn.errors import InputError, MissingExtraError
from freeattn.report.lettering import all_letters, plain_text
from freeattn.report.writing import write_file

__all__ = [
    "COLOURS", "LINES", "LINE_WIDTH", "MUTED", "ONE_COLUMN", "TWO_COLUMNS", "axes_of", "check_plot_file",
    "draw_intervals", "legend", "new_figure", "save_figure", "set_title", "small_text",
]

_MOST_PANELS = 20  # in a row or column
ONE_COLUMN, TWO_COLUMNS = 3.4, 7.0  # inches: widths of figures in journals of two columns
_HEIGHT = 2.4  # inches of one row of panels
_LEAST = {"width": 1.4, "height": 1.0}  # inches of a panel: below, its numbers and names leave no room for curves
_TEXT = 8.0  # points, of the names of axes
_SMALL = 0.875  # numbers and legends, relative to the names of axes
_FRAME = 0.6  # points
LINE_WIDTH = 1.3  # points
_DOTS_PER_INCH = 300
_ROUNDING = 1e-9
_NO_ROOM = "sizes collapsed to zero"  # of the panels of a figure, in the words of matplotlib's warning

# Okabe and Ito's colours, which colour-blind readers tell apart; without yellow, which is lost on white. Line styles
# tell curves apart in print without colours.
COLOURS: Final = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
LINES: Final[tuple[Any, ...]] = ("-", (0, (5, 1.5)), (0, (1.2, 1.2)), (0, (5, 1.5, 1.2, 1.5)), (0, (8, 2)))
MUTED: Final = {"sample": "#b9c4ce", "steps": "#a3b0bc", "band": "#fbeee6", "atom": "#4d4d4d", "missing": "#e6e6e6"}

_SUFFIXES = (".png", ".pdf", ".svg")
_WITHOUT_DATE = {".png": None, ".pdf": {"CreationDate": None}, ".svg": {"Date": None}}
# What matplotlib takes from its global settings only, and only while it writes: embedded TrueType fonts, letters of
# SVG as paths (the same with any fonts installed), and names inside SVG that do not change from run to run.
_WRITING = {"pdf.fonttype": 42, "svg.fonttype": "path", "svg.hashsalt": "freeattn"}
_one_at_a_time = threading.Lock()


def new_figure(
    rows: int = 1, columns: int = 1, *, width: float | None = None, height: float | None = None
) -> Any:
    """A matplotlib Figure with rows × columns panels (`figure.axes`) at the sizes of journals.

    Args:
        rows, columns: of panels.
        width: inches; by default one column of a journal (3.4) for one column of panels, else both (7.0).
        height: inches; by default 2.4 a row.

    Raises:
        InputError: for numbers that are not positive, and for panels less than 1.4 inches wide or 1 inch high.
        MissingExtraError: when matplotlib is not installed.
    """
    for name, count in (("rows", rows), ("columns", columns)):
        if not _is_number(count, Integral) or not 1 <= count <= _MOST_PANELS:
            raise InputError(name, count, f"an integer from 1 to {_MOST_PANELS}")
    size: tuple[Any, Any] = (
        (ONE_COLUMN if columns == 1 else TWO_COLUMNS) if width is None else width,
        _HEIGHT * rows if height is None else height,
    )
    for name, inches in zip(("width", "height"), size, strict=True):
        if not _is_number(inches, Real) or not 0 < inches < float("inf"):
            raise InputError(name, inches, "a positive number of inches")
    for name, inches, panels in zip(("width", "height"), size, (columns, rows), strict=True):
        least = panels * _LEAST[name]
        if inches < least * (1 - _ROUNDING):
            raise InputError(name, inches, f"at least {least:g} inches for {panels} panel{'s' * (panels > 1)} in line")
    figure = _matplotlib_figure()(figsize=size, layout="constrained")
    for ax in figure.subplots(rows, columns, squeeze=False).flat:
        _style(ax)
    return figure


def axes_of(ax: Any) -> Any:
    """The Axes that a caller gave, or those of a new figure.

    Raises:
        InputError: for anything but Axes of x and y.
    """
    if ax is None:
        return new_figure().axes[0]
    if getattr(ax, "name", None) != "rectilinear":
        raise InputError("ax", ax, "Axes of matplotlib with x and y, such as fa.new_figure().axes[0]")
    return ax


def _is_number(value: object, kind: type) -> bool:
    return isinstance(value, kind) and not isinstance(value, bool)


def _style(ax: Any) -> None:
    ax.tick_params(which="both", labelsize=_SMALL * _TEXT, width=_FRAME)
    ax.tick_params(which="major", length=3)
    ax.tick_params(which="minor", length=1.5)
    for spine in ax.spines.values():
        spine.set_linewidth(_FRAME)
    for text in (ax.xaxis.label, ax.yaxis.label):
        text.set_fontsize(_TEXT)
    for axis in (ax.xaxis, ax.yaxis):
        axis.get_offset_text().set_fontsize(_SMALL * _TEXT)


def small_text(ax: Any) -> float:
    """Points of legends and remarks on Axes, from those of the names of its axes."""
    return float(_SMALL * ax.xaxis.label.get_fontsize())


def set_title(ax: Any, text: str) -> None:
    """A title in the letters of the names of axes; matplotlib's own choice is half as large again. No formula in it."""
    ax.set_title(plain_text(text), fontsize=ax.xaxis.label.get_fontsize())


def legend(ax: Any, place: str = "best") -> None:
    """The legend of Axes, without a frame; none where nothing has a name."""
    if ax.get_legend_handles_labels()[1]:
        ax.legend(frameon=False, loc=place, fontsize=small_text(ax), handlelength=2.2, labelspacing=0.35)


def draw_intervals(ax: Any, x: Any, y: Any, halves: Any, *, fmt: str = "o", **look: Any) -> None:
    """Points with their intervals, of half-widths; `look` is what else matplotlib takes."""
    ax.errorbar(x, y, yerr=halves, fmt=fmt, markersize=3, capsize=1.5, linewidth=0.8, **look)


def check_plot_file(path: str | os.PathLike[str], field: str = "plot") -> None:
    """Refuse, before anything is computed, a picture that could not be written.

    Raises:
        InputError: for a suffix other than .png, .pdf, .svg; `field` names it.
        MissingExtraError: when matplotlib is not installed.
    """
    if Path(path).suffix.lower() not in _SUFFIXES:
        raise InputError(field, os.fspath(path), f"a file name that ends in {', '.join(_SUFFIXES)}")
    _matplotlib_figure()


def save_figure(picture: Any, path: str | os.PathLike[str], *, force: bool = False) -> None:
    """Write a picture to a .pdf, .svg or .png file: by the ending of the name.

    Fonts are embedded as TrueType in PDF and drawn as paths in SVG; PNG has 300 dots per inch. No date is written: the
    same picture gives the same bytes.

    Args:
        picture: a matplotlib Figure, or Axes, whose figure is written.
        path: the file.
        force: overwrite a file that exists.

    Raises:
        InputError: for another ending, a file that exists, a folder that does not, and panels without room.
        MissingExtraError: when matplotlib is not installed.
    """
    check_plot_file(path, "path")
    figure: Any = picture.get_figure(root=True) if hasattr(type(picture), "get_figure") else None
    if figure is None:
        raise InputError("picture", picture, "a Figure or Axes of matplotlib")
    suffix, content = Path(path).suffix.lower(), io.BytesIO()
    with _settings_of_files(), all_letters(figure), warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        try:
            figure.savefig(content, format=suffix[1:], dpi=_DOTS_PER_INCH, metadata=_WITHOUT_DATE[suffix])
        except ValueError as error:
            reason = str(error).strip().splitlines()[-1]
            raise InputError("picture", reason, r"labels that matplotlib can set; a dollar sign is \$") from None
    _tell(told)
    write_file(path, content.getvalue(), force)


def _tell(told: Sequence[warnings.WarningMessage]) -> None:
    """Hand warnings on; the one of a figure that could not be laid out is an error.

    Raises:
        InputError: when the panels have no room.
    """
    for one in told:
        if _NO_ROOM in str(one.message):
            allowed = "panels with room for their numbers and names: a larger width or height, or fewer panels"
            raise InputError("picture", "a figure whose panels have no room", allowed)
        warnings.warn_explicit(one.message, one.category, one.filename, one.lineno)


@contextmanager
def _settings_of_files() -> Iterator[None]:
    """`_WRITING` while a file is written, and what was there before afterwards, whatever happens."""
    from matplotlib import rcParams

    with _one_at_a_time:
        before = {name: rcParams[name] for name in _WRITING}
        rcParams.update(_WRITING)
        try:
            yield
        finally:
            rcParams.update(before)


def _matplotlib_figure() -> Any:
    """matplotlib's Figure.

    Raises:
        MissingExtraError: when matplotlib is not installed.
    """
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise MissingExtraError("plotting", "plot") from None
    return Figure
