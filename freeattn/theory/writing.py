"""One equation as LaTeX pieces that may break between them, or as a line of plain text."""

from __future__ import annotations

from collections.abc import Iterator

import sympy as sp

from freeattn.theory.breaking import width_of
from freeattn.theory.notation import Notation, latex_of, ordered_terms, text_of
from freeattn.theory.steps import Equation, Term, Vanishing
from freeattn.theory.symbols import M

__all__ = ["latex_equation", "latex_tokens", "text_equation"]


def latex_tokens(equation: Equation | Vanishing, line: float) -> tuple[str, list[str]]:
    """The left side (empty for Σ terms = 0) and the pieces of the rest, each with its sign."""
    if isinstance(equation, Vanishing):
        pieces = [piece for k, term in enumerate(equation.terms) for piece in _term_pieces(term, k == 0, line)]
        return "", [*pieces, "= 0"]
    left = latex_of(equation.left)
    sign = equation.sign.latex
    if isinstance(equation.right, Notation):
        pieces = list(equation.right.pieces) or [equation.right.latex]
    else:
        pieces = list(_pieces(equation.right, line - width_of(left)))
    if equation.numeric is not None:
        pieces.append(rf"\approx {latex_of(equation.numeric)}")
    return f"{left}", [f"{sign} {pieces[0]}", *pieces[1:]]


def latex_equation(equation: Equation | Vanishing) -> str:
    """The equation on one line of LaTeX."""
    left, pieces = latex_tokens(equation, float("inf"))
    return " ".join([left, *pieces]).strip()


def text_equation(equation: Equation | Vanishing) -> str:
    """The equation in plain text."""
    if isinstance(equation, Vanishing):
        return " ".join(_text_term(term, k == 0) for k, term in enumerate(equation.terms)) + " = 0"
    sign = equation.sign.text
    numeric = "" if equation.numeric is None else f" ≈ {text_of(equation.numeric)}"
    return f"{text_of(equation.left)} {sign} {text_of(equation.right)}{numeric}"


def _oriented(coefficient: sp.Expr) -> tuple[str, sp.Expr]:
    """Sign and magnitude: a sum whose lowest term is negative is written with the sign in front."""
    if coefficient.is_Add:
        lowest = min(sp.Add.make_args(coefficient), key=lambda t: len(t.free_symbols))
        return ("-", sp.expand(-coefficient)) if lowest.could_extract_minus_sign() else ("+", coefficient)
    return ("-", -coefficient) if coefficient.could_extract_minus_sign() else ("+", coefficient)


def _term_pieces(term: Term, first: bool, line: float) -> Iterator[str]:
    sign, size = _oriented(term.coefficient)
    lead = "" if first and sign == "+" else f"{sign} "
    before = "" if term.before == 1 else latex_of(term.before)
    if size.is_Add and term.before == M:
        before += r" \cdot"  # m (1 - c) would be a value of the function m
    after = "" if term.after == 1 else latex_of(term.after)
    if size == 1:
        yield lead + (_side_by_side(before, after) or "1")
        return
    parenthesize = bool(size.is_Add and (before or after or sign == "-"))
    middle = latex_of(size)
    if parenthesize:
        middle = rf"\left({middle}\right)"
    if width_of(before + middle + after) <= line:
        first_two = (middle, before) if size.is_number else (before, middle)
        yield lead + _side_by_side(*first_two, after)
        return
    pieces = list(_pieces(size, line, parenthesize=parenthesize))
    pieces[0] = lead + _side_by_side(before, pieces[0])
    pieces[-1] = _side_by_side(pieces[-1], after)
    yield from pieces


def _side_by_side(*parts: str) -> str:
    return " ".join(part for part in parts if part)


def _pieces(expression: sp.Expr, line: float, parenthesize: bool = False) -> Iterator[str]:
    """An expression as pieces that may break between them; a long numerator or factor is written in parentheses."""
    whole = latex_of(expression)
    if width_of(whole) <= line and not (parenthesize and expression.is_Add):
        yield whole
        return
    if expression.is_Add:
        pieces = [piece for k, term in enumerate(ordered_terms(expression)) for piece in _signed(term, k == 0, line)]
    else:
        pieces = list(_product_pieces(expression, line))
    if parenthesize and expression.is_Add:
        pieces[0] = rf"\bigl({pieces[0]}"
        pieces[-1] = rf"{pieces[-1]}\bigr)"
    yield from pieces


def _signed(term: sp.Expr, first: bool, line: float) -> Iterator[str]:
    sign, size = ("-", -term) if term.could_extract_minus_sign() else ("+", term)
    pieces = list(_pieces(size, line))
    pieces[0] = pieces[0] if first and sign == "+" else f"{sign} {pieces[0]}"
    yield from pieces


def _product_pieces(expression: sp.Expr, line: float) -> Iterator[str]:
    """Factors one by one, the denominator as a fraction in front."""
    top, bottom = sp.fraction(expression)
    factors = sorted(sp.Mul.make_args(top), key=lambda factor: (factor.is_Add or factor.is_Pow, str(factor)))
    simple = sp.Mul(*(f for f in factors if not _long(f)))
    pieces = []
    if bottom != 1:
        pieces.append(rf"\frac{{{latex_of(simple)}}}{{{latex_of(bottom)}}}")
    elif simple != 1:
        pieces.append(latex_of(simple))
    for factor in (f for f in factors if _long(f)):
        base, power = factor.as_base_exp()
        inner = list(_pieces(base, line, parenthesize=True))
        if power != 1:
            inner[-1] += f"^{{{latex_of(power)}}}"
        pieces += inner
    yield from pieces or [latex_of(expression)]


def _long(factor: sp.Expr) -> bool:
    return bool(factor.as_base_exp()[0].is_Add)


def _text_term(term: Term, first: bool) -> str:
    sign, size = _oriented(term.coefficient)
    lead = ("" if sign == "+" else "−") if first else ("+ " if sign == "+" else "− ")
    factors = [term.before, size, term.after] if not size.is_number else [size, term.before, term.after]
    kept = [factor for factor in factors if factor != 1] or [sp.Integer(1)]
    open_sum = len(kept) == 1 and sign == "+"
    return lead + "·".join(f"({text_of(f)})" if f.is_Add and not open_sum else text_of(f) for f in kept)
