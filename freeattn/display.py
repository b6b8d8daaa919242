"""Values that notebooks show as tables and formulas.

A shell that can show HTML or LaTeX asks a value for `_repr_html_` or `_repr_latex_`. The classes here answer with what
`freeattn.findings` makes of the value, loaded when it is first asked; nothing is needed of the shell or of an extra.
"""

from __future__ import annotations

from importlib import import_module
from typing import ClassVar

__all__ = ["ShownAsFormulas", "ShownAsTables"]


class ShownAsTables:
    """A value that is shown as tables; `shown_as` is the kind by which `findings.shown_tables` knows it."""

    shown_as: ClassVar[str]

    def _repr_html_(self) -> str:
        return str(import_module("freeattn.findings.shown_tables").html_of(self))


class ShownAsFormulas:
    """A value that is shown as formulas, by `findings.shown_formulas`, which tells what it is by its class."""

    def _repr_html_(self) -> str:
        return str(import_module("freeattn.findings.shown_formulas").html_of(self))

    def _repr_latex_(self) -> str | None:
        latex: str | None = import_module("freeattn.findings.shown_formulas").latex_of(self)
        return latex
