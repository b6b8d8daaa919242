"""A law as a package of the Wolfram language: equations, parameter rules, `stieltjes` and `density`."""

from __future__ import annotations

import sympy as sp

from freeattn.theory import symbols as sym
from freeattn.theory.exports.code import Mathematica
from freeattn.theory.exports.heading import heading_text
from freeattn.theory.exports.program import CurveProgram, DysonProgram, Read, SectorProgram
from freeattn.theory.exports.source import defined_in, filled

__all__ = ["mathematica_source"]


def mathematica_source(program: CurveProgram | DysonProgram) -> str:
    """The source of a package; parameters are rules in the second argument of its functions."""
    kind = "mathematica_curve" if isinstance(program, CurveProgram) else "mathematica_dyson"
    language = Mathematica(taken=defined_in("mathematica_head", kind, "mathematica_follow"))
    names = [language.name(symbol) for symbol in program.inputs.parameters]
    rules = [f"  {language.code(s)} -> {language.code(v)}" for s, v in program.inputs.exact]
    listed = f"{{{', '.join(names)}}}"
    head = filled(
        "mathematica_head", HEADING=heading_text(program.heading, "").replace("*)", "* )").replace("(*", "( *"),
        KEYWORDS=", ".join(names) or "nothing", PARAMETERS=",\n".join(rules),
        PUBLIC=f"{listed}; (* parameters, numbers for which are rules such as {names[0]} -> 1 *)\n" if names else "",
    )
    body = _curve(program, language) if isinstance(program, CurveProgram) else _dyson(program, language)
    return head + body + filled("mathematica_follow")


def _curve(program: CurveProgram, language: Mathematica) -> str:
    language.names[program.unknown] = "q"

    def lists(*rows: tuple[sp.Expr, ...]) -> str:
        return ", ".join(f"{{{', '.join(map(language.code, row))}}}" for row in rows)

    return filled(
        "mathematica_curve", LOCAL=str(program.tested),
        POINT=language.code(sp.Mul(*(base**power for base, power in program.point))),
        STIELTJES=language.code(program.stieltjes), RESIDUE=language.code(program.residue),
        PSI=language.code(program.psi), START=language.code(program.start), LEAVES=lists(*program.leaves),
        PAIRS=lists(*((pair.total, pair.product, pair.rate) for pair in program.pairs)),
        SHARES=", ".join(map(language.code, program.factors)),
    )


def _dyson(program: DysonProgram, language: Mathematica) -> str:
    language.names[sym.Z] = "spectral"

    def reads(found: tuple[Read, ...]) -> str:
        return ", ".join(
            f"{{{r.sector + 1}, {r.row + 1}, {r.column + 1}, {language.code(r.coefficient)}}}" for r in found
        )

    averages = [
        "{" + ", ".join(f"{{{number + 1}, {language.code(share)}}}" for number, share in group) + "}"
        for group in program.averages
    ]
    return filled(
        "mathematica_dyson", UNKNOWNS=", ".join(map(language.code, program.unknowns)),
        SECTORS=",\n".join(f"  {_matrix(sector, program.unknowns, language)}" for sector in program.sectors),
        WEIGHTS=", ".join(f"{{{', '.join(map(language.code, sector.weights))}}}" for sector in program.sectors),
        READS=",\n".join(f"  {{{reads(found)}}}" for found in program.reads), OUTPUT=reads(program.output),
        AVERAGES=",\n".join(f"  {group}" for group in averages),
    )


def _matrix(sector: SectorProgram, unknowns: tuple[sp.Symbol, ...], language: Mathematica) -> str:
    """The small matrix itself, in z and the traces."""
    matrix = sp.zeros(sector.size)
    for entry in sector.constant:
        matrix[entry.row, entry.column] += entry.value
    for entry in sector.point:
        matrix[entry.row, entry.column] += entry.value * sym.Z
    for energy in sector.energy:
        matrix[energy.row, energy.column] += energy.value * unknowns[energy.unknown]
    rows = (", ".join(language.code(matrix[i, j]) for j in range(sector.size)) for i in range(sector.size))
    return f"{{{', '.join(f'{{{row}}}' for row in rows)}}}"
