"""A field of exact coefficients: rational functions of symbols, with everything else held as an opaque generator.

Coefficients of expressions may hold roots, √(d_K n), or other functions of symbols. They are replaced by generators of
their own, so that arithmetic is that of one field Q(generators), without any simplification. An identity that needs
the defining relation of a generator (√2·√2 = 2) is not seen by the field; it holds again in the expressions.
"""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from typing import Any

import sympy as sp

__all__ = ["CoefficientField", "as_expression"]


def as_expression(value: Any) -> sp.Expr:
    """A quantity (int, Fraction or symbolic) as a sympy expression."""
    return sp.Rational(value.numerator, value.denominator) if isinstance(value, Fraction) else sp.sympify(value)


class CoefficientField:
    """The field Q(generators) in which all the given expressions live."""

    def __init__(self, expressions: Iterable[sp.Expr]) -> None:
        self._opaque: dict[sp.Expr, sp.Symbol] = {}
        rational = [self._rational(expression) for expression in expressions]
        symbols = sorted({s for r in rational for s in r.free_symbols}, key=str)
        self.domain: Any = sp.QQ.frac_field(*symbols) if symbols else sp.QQ
        self._back = {symbol: expression for expression, symbol in self._opaque.items()}

    def element(self, expression: sp.Expr) -> Any:
        """The element of the field that an expression stands for (one of those given, or made of their parts)."""
        return self.domain.convert(self._rational(expression))

    def expression(self, element: Any) -> sp.Expr:
        """An element as an expression, roots written as roots again."""
        return self.domain.to_sympy(element).xreplace(self._back)

    def _rational(self, expression: sp.Expr) -> sp.Expr:
        if expression.is_Rational or expression.is_Symbol:
            return expression
        if expression.is_Add or expression.is_Mul:
            return expression.func(*map(self._rational, expression.args))
        if expression.is_Pow and expression.exp.is_Integer:
            return self._rational(expression.base) ** expression.exp
        if expression.is_Pow and expression.exp.is_Rational:
            return self._generator(expression.base ** sp.Rational(1, expression.exp.q)) ** expression.exp.p
        return self._generator(expression)

    def _generator(self, expression: sp.Expr) -> sp.Symbol:
        return self._opaque.setdefault(expression, sp.Dummy(f"r{len(self._opaque)}"))


