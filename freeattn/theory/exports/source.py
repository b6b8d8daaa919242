"""What printers of all languages share: templates, and the lines in which values are computed."""

from __future__ import annotations

import re
from importlib.resources import files
from string import Template

import sympy as sp

from freeattn.theory.exports.code import Language
from freeattn.theory.exports.program import Inputs, Read

__all__ = ["assigned", "defined_in", "filled", "joined", "needed", "read_entry"]

_DEFINED = re.compile(r"^(\w+)(?:\[| =)", re.MULTILINE)
_TEMPLATES = files("freeattn.theory.exports").joinpath("templates")


def filled(name: str, **parts: str) -> str:
    """A template with its $PLACES filled in."""
    text = _TEMPLATES.joinpath(f"{name}.txt").read_text(encoding="utf-8")
    return Template(text).substitute(parts)


def defined_in(*templates: str) -> set[str]:
    """The names that templates define at the start of a line."""
    texts = (_TEMPLATES.joinpath(f"{name}.txt").read_text(encoding="utf-8") for name in templates)
    return {name for text in texts for name in _DEFINED.findall(text)}


def assigned(inputs: Inputs, language: Language, indent: str) -> str:
    """The lines that compute values from parameters; at once, where a name changes its meaning."""
    pairs = [(language.code(symbol), language.code(value)) for symbol, value in inputs.assignments]
    if {symbol for symbol, _ in inputs.assignments} & set(inputs.parameters):
        left, right = (", ".join(side) for side in zip(*pairs, strict=True))
        return f"{indent}{left} = {right}"
    return "\n".join(f"{indent}{left} = {right}" for left, right in pairs)


def needed(inputs: Inputs) -> tuple[sp.Symbol, ...]:
    """The symbols that equations may hold, in order."""
    symbols = {*(symbol for symbol, _ in inputs.assignments), *inputs.parameters}
    return tuple(sorted(symbols, key=str))


def joined(lines: list[str], indent: str) -> str:
    """One line for each item, with a comma behind it."""
    return "\n".join(f"{indent}{line}," for line in lines)


def read_entry(read: Read, language: Language, first: int) -> str:
    """(sector, row, column, coefficient), counted from `first`."""
    numbers = ", ".join(str(k + first) for k in (read.sector, read.row, read.column))
    return f"({numbers}, {language.code(read.coefficient)})"
