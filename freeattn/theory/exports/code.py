"""Expressions in the syntax of other languages, and names that are words there."""

from __future__ import annotations

import keyword
import re
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import ClassVar

import sympy as sp
from sympy.codegen.rewriting import expm1_opt, optimize
from sympy.printing.precedence import PRECEDENCE
from sympy.printing.str import StrPrinter

__all__ = ["Julia", "Language", "Mathematica", "Python"]

_FLOAT_DIGITS = 17  # a double is known by 17 digits


class _Printer(StrPrinter):  # type: ignore[misc]
    """Arithmetic as every one of the languages writes it, with names by a table."""

    def __init__(self, language: Language) -> None:
        super().__init__()
        self._language = language

    # ruff: noqa: N802 - printers are called by the names of sympy's classes

    def _print_Symbol(self, expr: sp.Symbol) -> str:
        return self._language.name(expr)

    def _print_Dummy(self, expr: sp.Symbol) -> str:
        return self._language.name(expr)

    def _print_Integer(self, expr: sp.Integer) -> str:
        return self._language.integer(int(expr.p))

    def _print_Rational(self, expr: sp.Rational) -> str:
        return f"{self._language.integer(int(expr.p))}/{self._language.integer(int(expr.q))}"

    def _print_Float(self, expr: sp.Float) -> str:
        return self._language.float(expr)

    def _print_Pow(self, expr: sp.Pow, rational: bool = False) -> str:
        del rational
        base, exponent = expr.as_base_exp()
        if exponent == sp.S.Half:
            return self._language.call("sqrt", [self._print(base)])
        if exponent.could_extract_minus_sign():
            below = self.parenthesize(base**-exponent, PRECEDENCE["Mul"], strict=False)
            return f"{self._language.integer(1)}/{below}"
        inner = self.parenthesize(base, PRECEDENCE["Pow"], strict=False)
        power = str(exponent) if exponent.is_Integer else self.parenthesize(exponent, PRECEDENCE["Pow"], strict=False)
        return f"{inner}{self._language.power}{power}"

    def _print_Exp1(self, expr: object) -> str:
        del expr
        return self._language.call("exp", [self._language.integer(1)])

    def _print_Pi(self, expr: object) -> str:
        del expr
        return self._language.pi

    def _print_Function(self, expr: sp.Function) -> str:
        return self._language.call(type(expr).__name__.lower(), [self._print(a) for a in expr.args])

    def _print_exp(self, expr: sp.Expr) -> str:
        return self._language.call("exp", [self._print(expr.args[0])])

    def _print_Min(self, expr: sp.Min) -> str:
        return self._language.call("min", [self._print(a) for a in expr.args])


@dataclass
class Language:
    """How one language writes expressions; `taken` are names that already mean something."""

    power: ClassVar[str] = "**"
    pi: ClassVar[str] = "pi"
    functions: ClassVar[dict[str, str]] = {}
    brackets: ClassVar[tuple[str, str]] = ("(", ")")
    reserved: ClassVar[frozenset[str]] = frozenset()
    taken: set[str] = field(default_factory=set)
    names: dict[sp.Symbol, str] = field(default_factory=dict)

    def code(self, expression: sp.Expr) -> str:
        """The expression as source code."""
        return str(_Printer(self).doprint(self.prepared(sp.sympify(expression))))

    def prepared(self, expression: sp.Expr) -> sp.Expr:
        """The expression in functions that the language has; exp(x) − 1 without cancellation."""
        return optimize(expression, [expm1_opt]) if expression.has(sp.exp) else expression

    def name(self, symbol: sp.Symbol) -> str:
        """A name for a symbol: the same for equal symbols, different for different ones."""
        if symbol not in self.names:
            plain = self.word(symbol.name)
            while plain in self.reserved or plain in self.taken or plain in self.names.values():
                plain += self.suffix
            self.names[symbol] = plain
        return self.names[symbol]

    suffix: ClassVar[str] = "_"

    @staticmethod
    def word(name: str) -> str:
        """A name of letters, digits and underscores."""
        plain = unicodedata.normalize("NFKD", name.replace("√", "root_").replace("°", "_o"))
        plain = re.sub(r"\W", "_", "".join(c if c.isascii() else unicodedata.name(c, "_").split()[-1].lower()
                                           for c in plain))
        return plain if plain[:1].isalpha() else f"v{plain}"

    def integer(self, value: int) -> str:
        """An integer."""
        return str(value)

    def float(self, value: sp.Float) -> str:
        """A number to the precision of doubles."""
        return repr(float(value))

    def call(self, function: str, arguments: Iterable[str]) -> str:
        """function(arguments)."""
        left, right = self.brackets
        return f"{self.functions.get(function, function)}{left}{', '.join(arguments)}{right}"


@dataclass
class Python(Language):
    """Python with the modules math and cmath."""

    functions: ClassVar[dict[str, str]] = {
        "sqrt": "math.sqrt", "exp": "math.exp", "expm1": "math.expm1", "log": "math.log", "abs": "abs",
        "erf": "math.erf",
    }
    pi: ClassVar[str] = "math.pi"
    reserved: ClassVar[frozenset[str]] = frozenset((
        *keyword.kwlist, "abs", "cmath", "enumerate", "math", "np", "q", "reads", "sectors", "self", "x", "z",
    ))


@dataclass
class Julia(Language):
    """Julia; integers are written as floating-point numbers, which never overflow."""

    power: ClassVar[str] = "^"
    reserved: ClassVar[frozenset[str]] = frozenset((
        "begin", "do", "else", "elseif", "end", "export", "for", "function", "global", "if", "import", "in", "isa",
        "let", "local", "module", "quote", "return", "struct", "try", "using", "where", "while", "im", "pi", "sqrt",
        "exp", "expm1", "curve", "system", "equations", "q", "x", "z", "tables", "entries", "shown", "averages",
        "factors", "output", "shares", "leaves", "pairs", "psi", "origin", "complex", "real", "imag", "isfinite",
        "throw", "descend", "on_axis", "law", "point", "density", "stieltjes", "ArgumentError", "ComplexF64",
        "Float64",
    ))

    def integer(self, value: int) -> str:
        """An integer as a floating-point number."""
        return f"{value}.0"


@dataclass
class Mathematica(Language):
    """The Wolfram language; names begin with a small letter, as all built-in ones do not."""

    power: ClassVar[str] = "^"
    pi: ClassVar[str] = "Pi"
    functions: ClassVar[dict[str, str]] = {
        "sqrt": "Sqrt", "exp": "Exp", "log": "Log", "abs": "Abs", "min": "Min", "max": "Max", "erf": "Erf",
    }
    brackets: ClassVar[tuple[str, str]] = ("[", "]")
    suffix: ClassVar[str] = "x"
    reserved: ClassVar[frozenset[str]] = frozenset(("q", "spectral", "height"))

    def prepared(self, expression: sp.Expr) -> sp.Expr:
        """Precision is arbitrary here: exp(x) − 1 stays as it is."""
        return expression

    @staticmethod
    def word(name: str) -> str:
        """Parts of the name in one word, as an underscore is a pattern: gamma_K is gammaK."""
        first, *others = [part for part in Language.word(name).split("_") if part]
        word = first + "".join(part[0].upper() + part[1:] for part in others)
        return word if word[0].islower() else f"v{word}"

    def float(self, value: sp.Float) -> str:
        """A number, its exponent as *^."""
        return str(value.n(_FLOAT_DIGITS)).replace("e", "*^")
