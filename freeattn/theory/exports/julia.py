"""A law as a module of Julia that needs the standard library only: `stieltjes(z)` and `density(x)`."""

from __future__ import annotations

from collections.abc import Iterable

from freeattn.theory.exports.code import Julia
from freeattn.theory.exports.heading import heading_text
from freeattn.theory.exports.program import CurveProgram, DysonProgram
from freeattn.theory.exports.source import assigned, curve_parts, dyson_parts, filled, joined

__all__ = ["julia_source"]


def julia_source(program: CurveProgram | DysonProgram) -> str:
    """The source of a module: Newton's method and continuation from infinity, every root tested."""
    language = Julia()
    names = [language.name(symbol) for symbol in program.inputs.parameters]
    keywords = f"; {', '.join(names)}" if names else ""
    plain = ", ".join(names)
    units = f"Keyword arguments are numbers: {plain}." if names else ""
    text = heading_text(program.heading, units).replace("\\", "\\\\").replace("$", r"\$").replace('"', r"\"")
    body = _curve(program, language, plain) if isinstance(program, CurveProgram) else _dyson(program, language, plain)
    return "\n".join([
        f'"""\n{text}\n"""\nmodule Law\n\nexport density, stieltjes\n\nusing LinearAlgebra\n', body,
        filled("julia_follow", HEAD=keywords, KEYWORDS=keywords, ARGUMENTS=plain),
    ])


def _curve(program: CurveProgram, language: Julia, plain: str) -> str:
    parts = curve_parts(program, language)
    return filled(
        "julia_curve", LOCAL=str(program.tested).lower(), PLAIN=plain,
        ASSIGNMENTS=assigned(program.inputs, language, " " * 4), FACTORS=joined(parts["factors"], " " * 8),
        STIELTJES=language.code(program.stieltjes), RESIDUE=language.code(program.residue),
        PSI=language.code(program.psi), START=language.code(program.start),
        LEAVES=_tuple(parts["leaves"]), PAIRS=_tuple(parts["pairs"]), SHARES=_tuple(parts["shares"]),
    )


def _tuple(items: Iterable[str]) -> str:
    """What stands in the brackets of a tuple: a comma behind each."""
    return " ".join(f"{item}," for item in items)


def _dyson(program: DysonProgram, language: Julia, plain: str) -> str:
    return filled(
        "julia_dyson", PLAIN=plain, ASSIGNMENTS=assigned(program.inputs, language, " " * 4),
        **dyson_parts(program, language, " " * 8, 1),
    )
