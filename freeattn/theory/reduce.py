"""From the Dyson equation to a scalar system: polynomial equations for the traces that enter the self-energy.

A small matrix A = C − Σ[g] of at most `CLOSED` blocks is inverted in closed form, and a trace g_pq that enters Σ obeys

    g_pq · det A − adj(A)_pq = 0;

traces that do not enter Σ are no unknowns, unless m needs them. With diagonal letters, A depends on the node k, of
weight w_k, and the equation is g_pq = Σ_k w_k adj(A_k)_pq / det A_k, multiplied by all determinants. Of a larger matrix
all traces are kept, with the quadratic equations A-by-A⁻¹ in the form that is regular at z = ∞ (p′ is the partner of
p in the constant part, c = −z at x, else −1):

    c·g_pq − Σ_r Σ_{p′r} g_rq − δ_{p′q} = 0.

Source: Helton-Rashidi Far-Speicher, IMRN 2007, rnm086, equation (1.5).
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import Any

import sympy as sp
from sympy.polys.matrices import DomainMatrix

from freeattn.theory import symbols as sym
from freeattn.theory.dyson import DysonSystem, Node, Sector
from freeattn.theory.self_energy import Trace
from freeattn.theory.system import ScalarSystem

__all__ = ["scalar_system"]

CLOSED = 4  # blocks: a determinant of 4 × 4 entries has 24 terms, one of 6 × 6 already 720


@lru_cache(maxsize=64)
def scalar_system(system: DysonSystem) -> ScalarSystem:
    """The scalar system of a Dyson equation; its output m is the Stieltjes transform of the law."""
    unknowns, equations = [], []
    for sector in system.sectors:
        wanted = _wanted(system, sector)
        unknowns += [system.symbol(trace) for trace in wanted]
        equations += list((_closed if _is_small(sector) else _quadratic)(system, sector, wanted))
    parameters = {s for equation in equations for s in equation.free_symbols} - {*unknowns, sym.Z}
    return ScalarSystem(
        unknowns=tuple(unknowns), equations=tuple(equations), output=system.output,
        parameters=tuple(sorted(parameters, key=str)), assumptions=system.assumptions,
    )


def _wanted(system: DysonSystem, sector: Sector) -> list[Trace]:
    """The unknowns that belong to a sector: of its own level, and needed by Σ, by m or by an equation.

    An equation at some level holds all parts of the trace that ask for more agreement.
    """
    own = (t for t in system.traces if t.level == sector.depth and t.row in sector.blocks
           and system.pencil.blocks[t.row].scope[: t.level] == sector.scope)
    needed = {*system.entering, *(trace for _, trace in system.outputs)}
    large = [other for other in system.sectors if not _is_small(other) and other.depth <= sector.depth
             and other.scope == sector.scope[: other.depth]]
    return [
        t for t in own
        if any(e[:2] == t[:2] and e.level <= t.level for e in needed)
        or any(t.row in other.blocks and t.column in other.blocks for other in large)
    ]


def _is_small(sector: Sector) -> bool:
    return len(sector.blocks) <= CLOSED or len(sector.nodes) > 1


def _closed(system: DysonSystem, sector: Sector, wanted: list[Trace]) -> Iterator[sp.Expr]:
    if not wanted:
        return
    solved = [_solved(system, sector, node) for node in sector.nodes]
    inverse, place = system.inverse(sector), {p: i for i, p in enumerate(sector.blocks)}
    determinants = [determinant for determinant, _ in solved]
    for trace in wanted:
        i, j = place[trace.row], place[trace.column]
        averaged = (
            node.weight * adjugate[i, j] * sp.Mul(*determinants[:k], *determinants[k + 1 :])
            for k, (node, (_, adjugate)) in enumerate(zip(sector.nodes, solved, strict=True))
        )
        yield inverse[i, j] * sp.Mul(*determinants) - sp.Add(*averaged)


def _solved(system: DysonSystem, sector: Sector, node: Node) -> tuple[sp.Expr, sp.Matrix]:
    """Determinant and adjugate of the matrix at one node."""
    matrix, opaque = _opaque(system, sector, node)
    domain = DomainMatrix.from_Matrix(matrix).convert_to(_ring(matrix))
    adjugate, determinant = domain.adj_det()
    return domain.domain.to_sympy(determinant).xreplace(opaque), adjugate.to_Matrix().xreplace(opaque)


def _opaque(system: DysonSystem, sector: Sector, node: Node) -> tuple[sp.Matrix, dict[sp.Symbol, sp.Expr]]:
    """The matrix of a sector with a symbol for each coefficient of a trace, and what the symbols stand for."""
    names: dict[sp.Expr, sp.Symbol] = {}

    def hide(entry: sp.Expr) -> sp.Expr:
        terms = []
        for term in sp.Add.make_args(entry):
            coefficient, rest = term.as_independent(*system.unknowns, sym.Z, as_Add=False)
            if not coefficient.is_Rational:
                coefficient = names.setdefault(coefficient, sp.Dummy(f"k{len(names)}"))
            terms.append(coefficient * rest)
        return sp.Add(*terms)

    return system.matrix(sector, node).applyfunc(hide), {symbol: value for value, symbol in names.items()}


def _ring(matrix: sp.Matrix) -> Any:
    symbols = sorted(matrix.free_symbols, key=str)
    return sp.QQ[tuple(symbols)] if symbols else sp.QQ


def _quadratic(system: DysonSystem, sector: Sector, wanted: list[Trace]) -> Iterator[sp.Expr]:
    matrix, inverse = system.matrix(sector, *sector.nodes), system.inverse(sector)
    place = {p: i for i, p in enumerate(sector.blocks)}
    product = matrix * inverse
    for trace in wanted:
        partner = place[system.pencil.partners[trace.row]]
        column = place[trace.column]
        yield product[partner, column] - (1 if partner == column else 0)
