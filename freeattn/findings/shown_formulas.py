"""Derivations, expressions, laws of the algebra and curves as formulas for notebooks."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import singledispatch
from typing import Any

from freeattn.findings.derivations import formula_of
from freeattn.model.expression import Expression
from freeattn.model.letters import Diagonal, Inclusion, Letter
from freeattn.report.data import Formula
from freeattn.report.mathml import display_latex
from freeattn.report.notebook import Folded, Part, html_of_parts
from freeattn.report.tables import rows_table
from freeattn.theory.algebraic_curve import AlgebraicCurve
from freeattn.theory.derivation import Derivation
from freeattn.theory.formulas import law_equations
from freeattn.theory.law_names import LawNames
from freeattn.theory.notation import Notation, text_of
from freeattn.theory.pencil_writing import diagonal_row, letter_row, words
from freeattn.theory.steps import Equation
from freeattn.theory.system import ScalarSystem
from freeattn.theory.telling import telling_equations
from freeattn.theory.transforms import Law

__all__ = ["formulas_of", "html_of", "latex_of", "parts_beside"]

_DERIVATION = "Of a derivation: text(), latex(), equations, unknowns, moments(k), polynomial(), curve(), to_python()"
_LAW = "Of a law of the algebra: fa.law(μ) for its numbers, fa.derive(μ) for its equation, moments(k)"
_MATRIX = "Of a matrix: fa.law(M), fa.derive(M), fa.sample(M), fa.verify(M); of= says which law of M"
_CURVE = "Of a curve: discriminant, branch_points, evaluate(z, m), residual(z, m), latex()"
_LONGEST = 4000  # characters of LaTeX that a notebook should draw
_NEW_LINE = r" \\ "
_GATHERED = r"\begin{{gathered}} {} \end{{gathered}}"
# A sign of a script with nothing behind it, or with a second one.
_NO_SCRIPT = re.compile(r"[\^_]\s*(?:[\^_&})+=-]|$)|\^[^{}\\\s]\s*\^")
_NOT_IN_NAMES = set('\\$%#&<>"`')  # in a name of a user these would be commands or tags


def html_of(value: Any) -> str:
    """Formulas, and what belongs to them, as HTML; in plain text where they cannot be set."""
    formulas = tuple(formulas_of(value))
    shown: tuple[Part, ...] = formulas if _can_be_set(formulas) else tuple(_shortened(one.text) for one in formulas)
    return html_of_parts((*shown, *parts_beside(value)))


def latex_of(value: Any) -> str | None:
    """The formulas as one displayed equation, each on a line of its own; None where they cannot be set."""
    formulas = tuple(formulas_of(value))
    if not _can_be_set(formulas):
        return None
    lines = [display_latex(formula) for formula in formulas]
    return f"$${lines[0] if len(lines) == 1 else _GATHERED.format(_NEW_LINE.join(lines))}$$"


def _can_be_set(formulas: tuple[Formula, ...]) -> bool:
    """Not too long, and without names that are no names in LaTeX."""
    whole = "".join(display_latex(formula) for formula in formulas)
    named = set().union(*(formula.text for formula in formulas))
    broken = whole.count("{") != whole.count("}") or _NO_SCRIPT.search(whole)
    return len(whole) <= _LONGEST and not named & _NOT_IN_NAMES and not broken


def _shortened(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"


@singledispatch
def formulas_of(value: Any) -> Iterator[Formula]:
    """The formulas of a value, by its class."""
    raise TypeError(f"no formulas are known of {type(value).__name__}")


@singledispatch
def parts_beside(value: Any) -> Iterator[Part]:
    """What stands below the formulas of a value, by its class."""
    raise TypeError(f"nothing is known to stand beside the formulas of {type(value).__name__}")


@formulas_of.register(Derivation)
def _(derivation: Derivation) -> Iterator[Formula]:
    return map(formula_of, telling_equations(derivation))


@formulas_of.register(Law)
def _(law: Law) -> Iterator[Formula]:
    return map(formula_of, law_equations(LawNames(law)))


@formulas_of.register(Expression)
def _(matrix: Expression) -> Iterator[Formula]:
    yield formula_of(Equation("matrix", Notation("M", "M"), words(matrix)))


@formulas_of.register(AlgebraicCurve)
def _(curve: AlgebraicCurve) -> Iterator[Formula]:
    yield Formula("curve", "", (curve.latex(),), f"{text_of(curve.expression)} = 0")


@parts_beside.register(Law)
def _(law: Law) -> Iterator[Part]:
    del law
    yield _LAW


@parts_beside.register(Expression)
def _(matrix: Expression) -> Iterator[Part]:
    letters = [letter for letter in matrix.letters if not isinstance(letter, Inclusion)]
    rows = [(str(letter), _letter_text(letter)) for letter in letters]
    yield rows_table(f"M: {matrix.rows} × {matrix.columns}", ("letter", "what it is"), rows, left=2)
    yield _MATRIX


@parts_beside.register(AlgebraicCurve)
def _(curve: AlgebraicCurve) -> Iterator[Part]:
    yield f"Degree {curve.degree_z} in z and {curve.degree_m} in m, {len(curve.terms)} terms"
    yield _CURVE


def _letter_text(letter: Letter | Diagonal) -> str:
    return (diagonal_row(letter) if isinstance(letter, Diagonal) else letter_row(letter)).text


@parts_beside.register(Derivation)
def _(derivation: Derivation) -> Iterator[Part]:
    unknowns = ", ".join(text_of(symbol) for symbol in derivation.unknowns)
    yield rows_table(f"Unknowns: {unknowns}", ("symbol", "what it is"), list(_meanings(derivation.system)), left=2)
    if derivation.values:
        rows = [(text_of(symbol), text_of(value), "" if value.is_Integer else _decimal(value))
                for symbol, value in derivation.values]
        yield rows_table("Values", ("symbol", "exact", "value"), rows)
    yield Folded(f"all {len(derivation.steps)} steps, assumptions and sources", derivation.text())
    yield _DERIVATION


def _meanings(system: ScalarSystem) -> Iterator[tuple[str, str]]:
    """The unknowns, and what else is in the equations and has a meaning in words."""
    if system.parametrization is not None:
        yield text_of(system.parametrization.unknown), "parameter of the rational curve, z = x(q)"
        return
    if not system.meanings:
        yield from ((text_of(symbol), "1 + z·m(z)") for symbol in system.unknowns)
    occurring = {symbol for equation in system.equations for symbol in equation.free_symbols} | {*system.unknowns}
    yield from ((text_of(symbol), meaning) for symbol, meaning in system.meanings if symbol in occurring)


def _decimal(value: Any) -> str:
    return f"{float(value):.10g}" if value.is_number else ""
