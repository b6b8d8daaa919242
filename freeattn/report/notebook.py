"""Tables, sentences and formulas as a piece of HTML for notebooks.

Nothing has a colour of its own, so that light and dark themes both show it, and no script or style sheet is needed.
Formulas are MathML where latex2mathml is installed (the extra "report"), else LaTeX between dollars, which Jupyter
typesets. All other text is escaped, and marked as none of the notebook's own mathematics.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from html import escape
from typing import Any, NamedTuple, TypeAlias

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from freeattn.report.data import Formula
from freeattn.report.extra import mathml_converter
from freeattn.report.mathml import display_formula, display_latex

__all__ = ["Folded", "Part", "html_of_parts"]

_PLAIN = 'class="tex2jax_ignore mathjax_ignore"'  # a dollar in a name starts no formula
_CAPTION = "text-align: left; color: inherit; white-space: nowrap"
_TAGS = {"bold": "strong", "dim": "small", "italic": "em"}  # of styles of terminals, what is left without colours


class Folded(NamedTuple):
    """Text in lines of its own, folded away under a summary."""

    summary: str
    text: str


Part: TypeAlias = "RenderableType | Formula | Folded"


def html_of_parts(parts: Iterable[Part]) -> str:
    """The parts one below the other: tables, formulas, folded text, and sentences."""
    convert = mathml_converter()
    return "<div>\n" + "\n".join(_html(part, convert) for part in parts) + "\n</div>"


def _html(part: Part, convert: Callable[..., str] | None) -> str:
    if isinstance(part, Table):
        return "\n".join(_table(part))
    if isinstance(part, Folded):
        summary, text = escape(part.summary), escape(part.text)
        return f"<details {_PLAIN}><summary>{summary}</summary><pre>{text}</pre></details>"
    if isinstance(part, Formula):
        return _formula(part, convert)
    return f"<p {_PLAIN}>{_words(part)}</p>"


def _formula(formula: Formula, convert: Callable[..., str] | None) -> str:
    try:
        written = escape(f"$${display_latex(formula)}$$") if convert is None else display_formula(convert, formula)
    except Exception:  # latex2mathml's errors have no common class: a name such as "x^" is no LaTeX
        return f"<p {_PLAIN}>{escape(formula.text)}</p>"
    return f'<div style="overflow: auto hidden; margin: 0.5em 0">{written}</div>'


def _table(table: Table) -> Iterator[str]:
    yield f"<table {_PLAIN}>"
    if table.title:
        yield f'<caption style="{_CAPTION}"><strong>{_words(table.title)}</strong></caption>'
    sides = [column.justify for column in table.columns]
    if any(str(column.header) for column in table.columns):
        yield "<thead>" + _row("th", [column.header for column in table.columns], sides) + "</thead>"
    yield "<tbody>"
    for cells in zip(*(column.cells for column in table.columns), strict=True):
        yield _row("td", list(cells), sides)
    yield "</tbody></table>"


def _row(tag: str, cells: list[RenderableType], sides: list[Any]) -> str:
    written = (
        f'<{tag} style="text-align: {side}; padding: 0.1em 0.6em">{_words(cell)}</{tag}>'
        for cell, side in zip(cells, sides, strict=True)
    )
    return f"<tr>{''.join(written)}</tr>"


def _words(cell: RenderableType) -> str:
    """Escaped text; of the style of a terminal, what has no colour."""
    text = escape(cell.plain if isinstance(cell, Text) else str(cell))
    style = str(cell.style) if isinstance(cell, Text) else ""
    for name, tag in _TAGS.items():
        if name in style.split():
            text = f"<{tag}>{text}</{tag}>"
    return text
