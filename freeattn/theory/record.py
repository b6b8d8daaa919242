"""A derivation as JSON-ready data: every equation as srepr, LaTeX and plain text, and what it rests on."""

from __future__ import annotations

from typing import Any

import sympy as sp

from freeattn.model.attention import Attention
from freeattn.theory import symbols as sym
from freeattn.theory.assumptions import Assumption, Rule
from freeattn.theory.notation import Notation, latex_of, text_of
from freeattn.theory.stages import Stages
from freeattn.theory.steps import Equation, Step, Vanishing
from freeattn.theory.writing import latex_equation, text_equation

__all__ = ["to_record"]

_MOMENTS = 4


def to_record(stages: Stages, steps: tuple[Step, ...]) -> dict[str, Any]:
    """The record of a derivation; expressions come as {"srepr", "latex", "text"}."""
    source = stages.source
    scalar = stages.specialized()
    return {
        "source": source.to_dict() if isinstance(source, Attention) else {"law": str(source)},
        "steps": [_step(step) for step in steps],
        "values": {str(symbol): _value(stages, symbol) for symbol in _symbols(stages)},
        "system": {
            "unknowns": [str(u) for u in stages.unknowns],
            "equations": [_expression(e) for e in stages.equations],
            "output": _expression(stages.system.output),
            "parameters": [str(p) for p in stages.system.parameters],
        },
        "polynomial": None if scalar is None else {
            "scalar": _expression(scalar.compact), "Pi": _expression(scalar.product),
            "stieltjes": _expression(scalar.stieltjes_compact), "Pi_1": _expression(scalar.rest),
            "expanded": sp.srepr(stages.polynomial()),
        },
        "branch": list(stages.branch.statements),
        "atoms": [{"location": _expression(a), "weight": _expression(w)} for a, w in stages.atoms],
        "mean": _expression(stages.mean),
        "moments": [_expression(m) for m in stages.moments(_MOMENTS)],
        "assumptions": [_assumption(a) for a in stages.assumptions],
        "rules": [_rule(rule) for rule in stages.rules],
        "not_modelled": list(source.not_modelled) if isinstance(source, Attention) else [],
    }


def _expression(value: sp.Expr) -> dict[str, str]:
    return {"srepr": sp.srepr(value), "latex": latex_of(value), "text": text_of(value)}


def _symbols(stages: Stages) -> tuple[sp.Symbol, ...]:
    thetas = () if stages.equivalent is None else (sym.THETA_1, sym.THETA_2, sym.C)
    return tuple(dict.fromkeys([*(symbol for symbol, _ in stages.values), *thetas]))


def _value(stages: Stages, symbol: sp.Symbol) -> dict[str, Any]:
    """The exact value (the symbol itself where there is none) and a double (None while symbolic)."""
    number = stages.approximate(symbol)
    return {**_expression(stages.value_of(symbol)), "number": None if number is None else float(number)}


def _step(step: Step) -> dict[str, Any]:
    sentence = "".join(piece if isinstance(piece, str) else text_of(piece) for piece in step.sentence)
    return {
        "name": step.name, "title": step.title, "sentence": sentence,
        "equations": [_equation(equation) for equation in step.equations],
    }


def _equation(equation: Equation | Vanishing) -> dict[str, Any]:
    """One equation; srepr holds the left side of … = 0, or the right side of name = …, or is null."""
    exact: sp.Expr | None
    if isinstance(equation, Vanishing):
        exact = equation.expression
    elif isinstance(equation.right, Notation):
        exact = equation.exact
    else:
        exact = equation.right
    return {
        "name": equation.name, "latex": latex_equation(equation), "text": text_equation(equation),
        "srepr": None if exact is None else sp.srepr(exact),
    }


def _assumption(assumption: Assumption) -> dict[str, str]:
    return {"name": assumption.name, "statement": assumption.statement, "source": assumption.source}


def _rule(rule: Rule) -> dict[str, str]:
    return {"name": rule.name, "statement": rule.statement, "source": rule.source}
