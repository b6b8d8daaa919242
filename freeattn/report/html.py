"""A report as one HTML page that needs nothing else: no network, no files, and no scripts to be read."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape
from importlib import resources
from pathlib import Path
from typing import Any, NamedTuple

from freeattn.errors import InputError
from freeattn.report.data import Curve, Derived, Fact, Formula, LayerData, Piece, ReportData
from freeattn.report.extra import PageLibraries, page_libraries
from freeattn.report.mathml import display_formula, inline_formula
from freeattn.report.page_figures import Figure, Series, bars_outline, figures_of
from freeattn.report.still import svg_of
from freeattn.report.tables import estimate_text
from freeattn.report.writing import write_file

__all__ = ["HtmlReport", "check_html_libraries", "check_page_file", "html_of"]

_ENDINGS = (".html", ".htm")
_TABLE_ROWS = 33  # of the numbers of a curve
_DIGITS = 6  # of the numbers in tables of curves
_VERDICTS = {True: "passed", False: "failed", None: "not judged"}


@dataclass(frozen=True, repr=False)
class HtmlReport:
    """A page and the values in it.

    Attributes:
        data: what the page says.
        html: the page.
    """

    data: ReportData
    html: str

    def __repr__(self) -> str:
        return f"<HtmlReport of {self.data.title}: {len(self.html) / 1e6:.1f} MB>"

    def _repr_html_(self) -> str:
        """The page in a frame of its own, so that its style and scripts and those of a notebook stay apart."""
        return (
            f'<iframe title="{escape(self.data.title)}" srcdoc="{escape(self.html)}" '
            'style="width: 100%; height: 80vh; border: 1px solid"></iframe>'
        )

    def save(self, path: str | os.PathLike[str], *, force: bool = False) -> None:
        """Write the page to a file; one that exists is overwritten with `force` only.

        Raises:
            InputError: the name is taken or does not end in .html, or its folder does not exist.
        """
        check_page_file(path)
        write_file(path, self.html.encode("utf-8"), force)


def check_page_file(path: str | os.PathLike[str], field: str = "path") -> None:
    """Refuse a name that would hide what the file is.

    Raises:
        InputError: for another ending than .html or .htm; `field` names it.
    """
    if Path(path).suffix.lower() not in _ENDINGS:
        raise InputError(field, os.fspath(path), f"a file name that ends in {' or '.join(_ENDINGS)}")


def check_html_libraries() -> None:
    """Refuse, before anything is computed, a page that could not be written.

    Raises:
        MissingExtraError: without the extra "report".
    """
    page_libraries()


def html_of(data: ReportData) -> str:
    """The page of a report.

    Raises:
        MissingExtraError: without the extra "report".
    """
    libraries = page_libraries()
    figures = figures_of(data)
    template = libraries.environment.get_template("report.html")
    page: str = template.render(
        data=data, layers=data.layers, figures=[_drawn(figure, data) for figure in figures],
        compared=[
            ("architecture", _compared([layer.architecture for layer in data.layers])),
            ("law", _compared([layer.law for layer in data.layers])),
            ("predictions", _compared([layer.predictions for layer in data.layers])),
        ],
        evidence=[_evidence_rows(layer) for layer in data.layers],
        derivations=[_derivation(layer.derivation, k, libraries) for k, layer in enumerate(data.layers)],
        records=[json.dumps(layer.record, indent=1, ensure_ascii=False) for layer in data.layers],
        script=libraries.script, figure_data=_embedded([_figure_record(figure) for figure in figures]),
        style=_asset("report.css"), behaviour=_asset("report.js"),
    )
    return page


def _asset(name: str) -> str:
    return (resources.files("freeattn.report") / "templates" / name).read_text(encoding="utf-8")


# Tables -----------------------------------------------------------------------------------------------------


class ComparedRow(NamedTuple):
    """One fact of all layers; None where a layer does not have it."""

    name: str
    facts: tuple[Fact | None, ...]


def _compared(columns: Sequence[Sequence[Fact]]) -> list[ComparedRow]:
    """Facts side by side, each name in the place that it has in the first column with it."""
    names: list[str] = []
    for column in columns:
        place = 0
        for fact in column:
            if fact.name in names:
                place = names.index(fact.name) + 1
            else:
                names.insert(place, fact.name)
                place += 1
    found = [{fact.name: fact for fact in column} for column in columns]
    return [ComparedRow(name, tuple(one.get(name) for one in found)) for name in names]


def _evidence_rows(layer: LayerData) -> list[tuple[str, ...]]:
    """(statistic, softmax, equivalent, allowed, verdict) of each row."""
    return [
        (
            row["statistic"], estimate_text(row, "softmax"), estimate_text(row, "equivalent"),
            "" if row["allowance"] is None else f"{row['allowance']:.3g}", _VERDICTS[row["passed"]],
        )
        for row in layer.evidence.rows
    ]


class NumbersTable(NamedTuple):
    """The numbers of a figure, or of one layer in it."""

    caption: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


def _numbers(figure: Figure, data: ReportData) -> Iterator[NumbersTable]:
    if figure.key == "density":
        for layer in data.layers:
            yield _curve_table(f"{layer.name}: density of the law", ("x", "ρ(x)"), [layer.densities[0].curve])
            yield _bins_table(layer)
        return
    curves = [one for one in figure.views[0].series if one.kind == "curve"]
    columns = (figure.argument, *(one.label for one in curves))
    yield _curve_table(figure.title, columns, [Curve(one.x, one.y, one.pieces) for one in curves])


def _curve_table(caption: str, columns: tuple[str, ...], curves: Sequence[Curve]) -> NumbersTable:
    """Curves over the same points, thinned to a table that can be read."""
    count = len(curves[0].x)
    steps = max(min(_TABLE_ROWS, count) - 1, 1)
    chosen = dict.fromkeys(round(k * (count - 1) / steps) for k in range(steps + 1))
    rows = (tuple(_text(value) for value in (curves[0].x[k], *(one.y[k] for one in curves))) for k in chosen)
    return NumbersTable(caption, columns, tuple(rows))


def _bins_table(layer: LayerData) -> NumbersTable:
    means, sample = layer.densities[0].means, layer.densities[0].sample
    heights = [means.heights] if sample is None else [means.heights, sample.heights]
    rows = zip(means.edges[:-1], means.edges[1:], *heights, strict=True)
    columns = ("from", "to", "law, averaged", *(() if sample is None else ("simulated",)))
    return NumbersTable(f"{layer.name}: histogram", columns, tuple(tuple(map(_text, row)) for row in rows))


def _text(value: float) -> str:
    return f"{value:.{_DIGITS}g}"


# Figures ----------------------------------------------------------------------------------------------------


class DrawnFigure(NamedTuple):
    """A figure with its still pictures, one for each view, and the tables of its numbers."""

    figure: Figure
    stills: tuple[tuple[str, str], ...]
    tables: tuple[NumbersTable, ...]


def _drawn(figure: Figure, data: ReportData) -> DrawnFigure:
    stills = tuple((view.name, svg_of(figure, view, k)) for k, view in enumerate(figure.views))
    return DrawnFigure(figure, stills, tuple(_numbers(figure, data)))


def _figure_record(figure: Figure) -> dict[str, Any]:
    """What the script of the page draws."""
    return {
        "key": figure.key,
        "views": [
            {
                "name": view.name, "series": [_series_record(one) for one in view.series],
                **{name: {"label": axis.label, "ends": [axis.low, axis.high], "log": axis.log}
                   for name, axis in (("x", view.x), ("y", view.y))},
            }
            for view in figure.views
        ],
    }


def _series_record(one: Series) -> dict[str, Any]:
    points: list[tuple[float | None, float | None]] = []
    if one.kind == "bars":
        points += bars_outline(one)
    for first, last in one.pieces:
        points += [*zip(one.x[first:last], one.y[first:last], strict=True), (None, None)]  # a gap
    x = list(one.x) if one.kind in ("line", "band") else [_short(x) for x, _ in points]
    y = [_short(y) for _, y in points]
    return {"kind": one.kind, "label": one.label, "layer": one.layer, "note": one.note, "x": x, "y": y}


def _short(value: float | None) -> float | None:
    return None if value is None else float(_text(value))


def _embedded(value: Any) -> str:
    """JSON that can stand inside a script element."""
    return json.dumps(value, allow_nan=False, separators=(",", ":")).replace("<", "\\u003c")


# Derivations ------------------------------------------------------------------------------------------------


def _derivation(derivation: Derived, layer: int, libraries: PageLibraries) -> list[dict[str, Any]]:
    """Steps with sentences as parts (kind, content, target) and formulas as (anchor, number, MathML)."""
    numbers = {one.name: one.number for step in derivation.steps for one in step.formulas if one.number}

    def part(piece: Piece) -> tuple[str, str, str]:
        if piece.latex:
            return "formula", inline_formula(libraries.convert, piece.latex, piece.text), ""
        if piece.names:
            shown = "–".join(f"({numbers[name]})" for name in piece.names)
            return "link", shown, f"formula-{layer}-{numbers[piece.names[0]]}"
        return "words", piece.text, ""

    def formula(one: Formula) -> tuple[str, int | None, str]:
        anchor = f"formula-{layer}-{one.number}" if one.number else ""
        return anchor, one.number, display_formula(libraries.convert, one)

    return [
        {
            "title": step.title, "sentence": [part(piece) for piece in step.sentence],
            "formulas": [formula(one) for one in step.formulas],
        }
        for step in derivation.steps
    ]
