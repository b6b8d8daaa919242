"""A derivation as values for a report: sentences in pieces, formulas in lines of LaTeX with their numbers."""

from __future__ import annotations

from collections.abc import Iterator

from freeattn.model.attention import Attention
from freeattn.report.data import Derived, Formula, Piece, StepData
from freeattn.theory import steps as written
from freeattn.theory.breaking import lines_of, width_of
from freeattn.theory.derive import derive
from freeattn.theory.notation import latex_of, text_of
from freeattn.theory.transform_route import TransformDerivation
from freeattn.theory.writing import latex_tokens, text_equation

__all__ = ["derived", "formula_of"]

_LINE = 60  # characters of a formula on one line, by `width_of`; narrower screens scroll
_INDENT = 2
_ROUTES = {True: "free convolutions", False: "matrix Dyson equation"}


def derived(spec: Attention) -> Derived:
    """The derivation of the law of a layer, by the route that `derive` takes."""
    derivation = derive(spec)
    count = iter(range(1, 1 + sum(len(step.equations) for step in derivation.steps)))
    return Derived(
        _ROUTES[isinstance(derivation, TransformDerivation)],
        tuple(_step(step, count) for step in derivation.steps),
        tuple((one.name, one.statement, one.source) for one in derivation.assumptions),
        tuple((rule.name, rule.source) for rule in derivation.rules),
    )


def _step(step: written.Step, count: Iterator[int]) -> StepData:
    formulas = tuple(formula_of(equation, next(count) if equation.main else None) for equation in step.equations)
    return StepData(step.title, tuple(_piece(piece) for piece in step.sentence), formulas)


def _piece(piece: written.Piece) -> Piece:
    if isinstance(piece, str):
        return Piece(piece)
    if isinstance(piece, written.Reference):
        return Piece(piece.text, names=tuple(dict.fromkeys((piece.names[0], piece.names[-1]))))
    return Piece(text_of(piece), latex=latex_of(piece))


def formula_of(equation: written.Equation | written.Vanishing, number: int | None = None) -> Formula:
    """An equation in lines that are as long as a page or a notebook has room for."""
    left, tokens = latex_tokens(equation, _LINE)
    room = _LINE - width_of(left)
    return Formula(equation.name, left, tuple(lines_of(tokens, room, room - _INDENT)), text_equation(equation), number)
