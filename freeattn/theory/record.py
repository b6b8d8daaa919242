"""A derivation as JSON-ready data: every equation as srepr, LaTeX and plain text, and what it rests on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import sympy as sp

from freeattn.model.attention import Attention
from freeattn.theory import symbols as sym
from freeattn.theory.assumptions import Assumption, Rule
from freeattn.theory.notation import Notation, latex_of, text_of
from freeattn.theory.steps import Equation, Step, Vanishing
from freeattn.theory.writing import latex_equation, text_equation

if TYPE_CHECKING:  # records of the other route are made of the same parts
    from freeattn.theory.stages import Stages

__all__ = ["assumption_record", "expression_record", "rule_record", "step_record", "to_record"]

_MOMENTS = 4


def to_record(stages: Stages, steps: tuple[Step, ...]) -> dict[str, Any]:
    """The record of a derivation; expressions come as {"srepr", "latex", "text"}."""
    source = stages.source
    scalar = stages.specialized()
    return {
        "route": "transform",
        "source": source.to_dict() if isinstance(source, Attention) else {"law": str(source)},
        "steps": [step_record(step) for step in steps],
        "values": {str(symbol): _value(stages, symbol) for symbol in _symbols(stages)},
        "system": {
            "unknowns": [str(u) for u in stages.unknowns],
            "equations": [expression_record(e) for e in stages.equations],
            "output": expression_record(stages.system.output),
            "parameters": [str(p) for p in stages.system.parameters],
        },
        "polynomial": None if scalar is None else {
            "scalar": expression_record(scalar.compact), "Pi": expression_record(scalar.product),
            "stieltjes": expression_record(scalar.stieltjes_compact), "Pi_1": expression_record(scalar.rest),
            "expanded": sp.srepr(stages.polynomial()),
        },
        "branch": list(stages.branch.statements),
        "atoms": [{"location": expression_record(a), "weight": expression_record(w)} for a, w in stages.atoms],
        "mean": expression_record(stages.mean),
        "moments": [expression_record(m) for m in stages.moments(_MOMENTS)],
        "assumptions": [assumption_record(a) for a in stages.assumptions],
        "rules": [rule_record(rule) for rule in stages.rules],
        "not_modelled": list(source.not_modelled) if isinstance(source, Attention) else [],
    }


def expression_record(value: sp.Expr) -> dict[str, str]:
    """An expression as srepr, LaTeX and plain text."""
    return {"srepr": sp.srepr(value), "latex": latex_of(value), "text": text_of(value)}


def _symbols(stages: Stages) -> tuple[sp.Symbol, ...]:
    thetas = () if stages.equivalent is None else (sym.THETA_1, sym.THETA_2, sym.C)
    return tuple(dict.fromkeys([*(symbol for symbol, _ in stages.values), *thetas]))


def _value(stages: Stages, symbol: sp.Symbol) -> dict[str, Any]:
    """The exact value (the symbol itself where there is none) and a double (None while symbolic)."""
    number = stages.approximate(symbol)
    return {**expression_record(stages.value_of(symbol)), "number": None if number is None else float(number)}


def step_record(step: Step) -> dict[str, Any]:
    """One step with its equations."""
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


def assumption_record(assumption: Assumption) -> dict[str, str]:
    """Name, statement and source of an assumption."""
    return {"name": assumption.name, "statement": assumption.statement, "source": assumption.source}


def rule_record(rule: Rule) -> dict[str, str]:
    """Name, statement and source of a rule."""
    return {"name": rule.name, "statement": rule.statement, "source": rule.source}
