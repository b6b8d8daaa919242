"""What printers of all languages share: templates, and the lines in which values are computed."""

from __future__ import annotations

import re
from collections.abc import Sequence
from importlib.resources import files
from string import Template

import sympy as sp

from freeattn.theory.exports.code import Language
from freeattn.theory.exports.program import CurveProgram, DysonProgram, EnergyEntry, Entry, Inputs, Read, SectorProgram

__all__ = ["assigned", "curve_parts", "defined_in", "dyson_parts", "filled", "joined", "needed"]

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


def curve_parts(program: CurveProgram, language: Language) -> dict[str, list[str]]:
    """The tables of a rational curve in q as tuples: factors with derivative and power, leaves, pairs."""
    q, code = program.unknown, language.code
    language.names[q] = "q"
    return {
        "factors": [f"({code(base)}, {code(sp.diff(base, q))}, {power})" for base, power in program.point],
        "leaves": [f"({code(point)}, {code(value)})" for point, value in program.leaves],
        "pairs": [f"({', '.join(map(code, (pair.total, pair.product, pair.rate)))})" for pair in program.pairs],
        "shares": [code(factor) for factor in program.factors],
    }


def dyson_parts(program: DysonProgram, language: Language, indent: str, first: int) -> dict[str, str]:
    """The tables of a Dyson equation as lists of tuples; places are counted from `first`."""
    averages = [
        "[" + ", ".join(f"({number + first}, {language.code(share)})" for number, share in group) + "]"
        for group in program.averages
    ]
    reads = ["[" + ", ".join(_read_entry(r, language, first) for r in reads) + "]" for reads in program.reads]
    return {
        "SECTORS": joined([_sector(sector, language, first) for sector in program.sectors], indent),
        "READS": joined(reads, indent),
        "OUTPUT": ", ".join(_read_entry(read, language, first) for read in program.output),
        "AVERAGES": joined(averages, indent),
    }


def _sector(sector: SectorProgram, language: Language, first: int) -> str:
    parts = (_listed(entries, language, first) for entries in (sector.constant, sector.point, sector.energy))
    return f"({sector.size}, {', '.join(parts)}, [{', '.join(map(language.code, sector.weights))}])"


def _listed(entries: Sequence[Entry | EnergyEntry], language: Language, first: int) -> str:
    rows = []
    for entry in entries:
        front = f"{entry.unknown + first}, " if isinstance(entry, EnergyEntry) else ""
        rows.append(f"({front}{entry.row + first}, {entry.column + first}, {language.code(entry.value)})")
    return f"[{', '.join(rows)}]"


def _read_entry(read: Read, language: Language, first: int) -> str:
    """(sector, row, column, coefficient), counted from `first`."""
    numbers = ", ".join(str(k + first) for k in (read.sector, read.row, read.column))
    return f"({numbers}, {language.code(read.coefficient)})"
