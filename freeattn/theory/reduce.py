"""From the Dyson equation to the smallest scalar system that its structure gives.

All relations between traces that are known (`theory.relations`) are solved one after the other for one variable each,
starting from as few unknowns as possible (`theory.elimination`). What remains is one equation for each unknown:

    unknowns u = (m, …),    definitions v_1 = r_1(u, z), v_2 = r_2(u, v_1, z), …,    equations F(u, v, z) = 0,

all rational. The definitions give every trace that enters the self-energy. Nothing is expanded: a definition that is
put into another would grow without bound, kept apart they are evaluated in microseconds.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import sympy as sp

from freeattn.theory import symbols as sym
from freeattn.theory.assumptions import Rule
from freeattn.theory.dyson import DysonSystem
from freeattn.theory.elimination import Elimination, eliminate_variables
from freeattn.theory.generic import generic_point
from freeattn.theory.relations import Relations, relations_of
from freeattn.theory.system import ScalarSystem

__all__ = ["ELIMINATION", "scalar_system"]

ELIMINATION = Rule(
    "elimination", "relations between traces (inverses of small matrices, conserved flows) are solved one by one, "
    "each for a variable in which it is linear", "the matrix Dyson equation, multiplied out",
)


@lru_cache(maxsize=64)
def scalar_system(system: DysonSystem) -> ScalarSystem:
    """The scalar system of a Dyson equation; its output m = g_xx is the Stieltjes transform of the law.

    Raises:
        ConvergenceError: when no generic point is found, so that zeros cannot be told.
        NotCoveredError: when the relations do not determine all traces.
    """
    relations = relations_of(system)
    number = {symbol: i for i, symbol in enumerate(relations.variables)}
    entering = [number[system.symbol(trace)] for trace in system.entering]
    output = system.output
    corners = [number[symbol] for symbol in relations.variables if symbol in output.free_symbols]
    found = eliminate_variables(generic_point(system, relations), corners, entering)
    definitions, equations = _written(relations, found, _needed(relations, found, entering))
    unknowns = tuple(relations.variables[i] for i in found.unknowns)
    inside = {s for e in (*equations, *(value for _, value in definitions)) for s in e.free_symbols}
    named = (*unknowns, *(symbol for symbol, _ in definitions))
    return ScalarSystem(
        unknowns=unknowns, equations=equations, output=output,
        parameters=tuple(sorted(inside - {*named, sym.Z}, key=str)), assumptions=system.assumptions,
        definitions=definitions, meanings=tuple((symbol, relations.meanings[symbol]) for symbol in named),
    )


def _written(
    relations: Relations, found: Elimination, needed: set[int]
) -> tuple[tuple[tuple[sp.Symbol, sp.Expr], ...], tuple[sp.Expr, ...]]:
    """Definitions and equations; a variable that is only another name is replaced by what it names."""
    names: dict[sp.Symbol, sp.Expr] = {}
    definitions = []
    for variable, number in found.steps:
        if variable in needed:
            symbol = relations.variables[variable]
            value = _definition(relations, relations.polynomials[number], variable).xreplace(names)
            if value.is_Symbol and not symbol.name.startswith("g_"):
                names[symbol] = value
            else:
                definitions.append((symbol, value))
    equations = (_expression(relations, relations.polynomials[number]).xreplace(names) for number in found.equations)
    return tuple(definitions), tuple(equations)


def _needed(relations: Relations, found: Elimination, entering: list[int]) -> set[int]:
    """The variables that the equations, the entering traces, and their definitions speak of."""
    needed = {*entering, *(i for r in found.equations for i in _variables(relations, r))}
    for variable, number in reversed(found.steps):
        if variable in needed:
            needed |= _variables(relations, number)
    return needed


def _variables(relations: Relations, number: int) -> set[int]:
    degrees = relations.polynomials[number].degrees()[: len(relations.variables)]
    return {i for i, degree in enumerate(degrees) if degree > 0}


def _definition(relations: Relations, polynomial: Any, variable: int) -> sp.Expr:
    """The value of a variable that a polynomial a + b·variable = 0 gives: −a/b."""
    parts: dict[int, dict[tuple[int, ...], Any]] = {0: {}, 1: {}}
    for monomial, coefficient in polynomial.iterterms():
        rest = (*monomial[:variable], 0, *monomial[variable + 1 :])
        parts[monomial[variable]][rest] = coefficient
    free, slope = (_expression(relations, polynomial.ring.from_dict(part)) for part in (parts[0], parts[1]))
    if slope.free_symbols & set(relations.variables):
        return -free / slope
    return sp.Add(*(-term / slope for term in sp.Add.make_args(free)))


def _expression(relations: Relations, polynomial: Any) -> sp.Expr:
    return polynomial.as_expr().xreplace(relations.coefficients)
