"""How expressions are written, in LaTeX and in plain text, with one notation for both.

Sums start with the term of lowest order: 1 − cw/γ_K, θ₁ − θ₂ + θ₂x.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import sympy as sp
from sympy.printing.latex import LatexPrinter
from sympy.printing.str import StrPrinter

from freeattn.theory import symbols as sym
from freeattn.theory.latex_words import latex_words

__all__ = ["PSI", "X_0", "Notation", "latex_of", "ordered_terms", "rank_of", "text_of"]

PSI, X_0 = sp.Symbol("psi"), sp.Symbol("x_0")  # ψ(q) and x₀(q) along a rational curve

_LATEX_NAMES = {
    sym.PI_FACTOR: r"\Pi(-w)", sym.PI_REST: r"\Pi_1(-w)", PSI: r"\psi(q)", X_0: "x_0(q)",
}
_TEXT_NAMES = {sym.PI_FACTOR: "Π(−w)", sym.PI_REST: "Π₁(−w)", PSI: "ψ(q)", X_0: "x₀(q)"}
_RANK = {s: k for k, s in enumerate((sym.HEADS, sym.GAMMA_KEY, sym.GAMMA_KV, sym.GAMMA_VALUE, sym.GAMMA_OUT))}
_GREEK = {
    "beta": "β", "gamma": "γ", "theta": "θ", "lambda": "λ", "rho": "ρ", "mu": "μ", "nu": "ν", "psi": "ψ", "phi": "φ",
    "chi": "χ", "pi": "π", "eta": "η", "zeta": "ζ", "sigma": "σ", "alpha": "α", "delta": "δ", "kappa": "κ",
    "omega": "ω",
}
_SPECIAL = re.compile(r"[%&#$]")  # in a name of a user: comments and commands of LaTeX
_SUPERSCRIPT = str.maketrans("0123456789-", "⁰¹²³⁴⁵⁶⁷⁸⁹⁻")
_SUBSCRIPT = str.maketrans("0123456789", "₀₁₂₃₄₅₆₇₈₉")
_MAIN = {sym.LAMBDA, sym.W, sym.Z, sym.M, sym.Q, sym.S}


@dataclass(frozen=True)
class Notation:
    """Something written by hand: the same formula in LaTeX (math mode) and in plain text.

    `pieces` is the LaTeX in parts that may stand on different lines; without them it stays on one.
    """

    latex: str
    text: str
    pieces: tuple[str, ...] = ()


def rank_of(expression: sp.Expr) -> list[int]:
    """Where an expression stands among its equals: h before γ_K, γ_V, γ_O, and then the rest."""
    return sorted(_RANK.get(symbol, len(_RANK)) for symbol in expression.free_symbols)


def _term_key(term: sp.Expr) -> tuple[int, int, bool, list[int], str]:
    """Degree in the main variables, total degree, sign, rank."""
    powers = [(b, abs(int(e)) if e.is_Integer else 1) for b, e in term.as_powers_dict().items() if not b.is_number]
    main = sum(e for b, e in powers if b.free_symbols & _MAIN)
    return main, sum(e for _, e in powers), term.could_extract_minus_sign(), rank_of(term), str(term)


class _LowestFirst:
    """Order of the terms of a sum: lowest first, but never a minus sign at the head when there is a positive term."""

    def _as_ordered_terms(self, expr: sp.Expr, order: object = None) -> list[sp.Expr]:
        del order
        return ordered_terms(expr)


def ordered_terms(expression: sp.Expr) -> list[sp.Expr]:
    """The terms of a sum in the order in which they are written."""
    terms = sorted(sp.Add.make_args(expression), key=_term_key)
    head = next((k for k, term in enumerate(terms) if not term.could_extract_minus_sign()), 0)
    return [terms[head], *terms[:head], *terms[head + 1 :]]


# ruff: noqa: N802 - the printers are called by the names of sympy's classes


class _Latex(_LowestFirst, LatexPrinter):  # type: ignore[misc]
    def _print_Symbol(self, expr: sp.Symbol, style: str = "plain") -> str:
        del style
        if expr in _LATEX_NAMES:
            return _LATEX_NAMES[expr]
        head, line, index = _SPECIAL.sub(r"\\\g<0>", expr.name).partition("_")
        name = rf"\{head}" if head in _GREEK else rf"\mathrm{{{head}}}" if len(head) > 1 and head.isalpha() else head
        name = name or "{}"
        index = "".join(c if c.isascii() else latex_words(c).strip("$") + " " for c in index).replace("_", ",")
        if not index:
            return rf"{name}\_" if line else name
        return f"{name}_{index}" if len(index) == 1 else rf"{name}_{{\mathrm{{{index}}}}}"

    def _print_Min(self, expr: sp.Min, exp: object = None) -> str:
        del exp
        inner = ", ".join(self._print(a) for a in _ordered_arguments(expr))
        return rf"\min\{{{inner}\}}"


class _Text(_LowestFirst, StrPrinter):  # type: ignore[misc]
    def _print_Symbol(self, expr: sp.Symbol) -> str:
        if expr in _TEXT_NAMES:
            return _TEXT_NAMES[expr]
        head, _, index = expr.name.partition("_")
        name = _GREEK.get(head, head)
        if not index:
            return name
        return name + index.translate(_SUBSCRIPT) if index.isdigit() else f"{name}_{index}"

    def _print_Pow(self, expr: sp.Pow, rational: bool = False) -> str:
        if expr.exp.is_Integer and expr.exp > 1:
            base = self.parenthesize(expr.base, sp.printing.precedence.PRECEDENCE["Pow"])
            return base + str(expr.exp).translate(_SUPERSCRIPT)
        if expr.exp.is_Integer and expr.exp < -1:
            return "1/" + self._print(expr.base**-expr.exp)
        return str(super()._print_Pow(expr, rational=rational)).replace("sqrt(", "√(")

    def _print_Exp1(self, expr: object) -> str:
        del expr
        return "e"

    def _print_Pi(self, expr: object) -> str:
        del expr
        return "π"

    def _print_exp(self, expr: sp.Expr) -> str:
        return f"exp({self._print(expr.args[0])})"

    def _print_Min(self, expr: sp.Min) -> str:
        return f"min{{{', '.join(self._print(a) for a in _ordered_arguments(expr))}}}"


def _ordered_arguments(expression: sp.Expr) -> list[sp.Expr]:
    return sorted(expression.args, key=lambda a: (not a.is_number, rank_of(a), str(a)))


_LATEX = _Latex({"fold_short_frac": False, "mul_symbol": None})
_TEXT = _Text()


def latex_of(value: Any) -> str:
    """LaTeX (math mode) of an expression or a notation."""
    return value.latex if isinstance(value, Notation) else str(_LATEX.doprint(value))


def text_of(value: Any) -> str:
    """Plain text of an expression or a notation."""
    if isinstance(value, Notation):
        return value.text
    text = re.sub(r"(?<=\S)\*(?=\S)", "·", _TEXT.doprint(value).replace("**", "^"))
    return text.replace("-", "−")
