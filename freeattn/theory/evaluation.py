"""Expressions at rational values of their symbols, exactly.

Weights of an equation are rational functions of sizes, counts and θ's. Their values are computed term by term in
rational arithmetic, each part once: much faster than substituting, which builds every expression anew.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import sympy as sp
from flint import fmpq

from freeattn.theory.field import as_expression

__all__ = ["Evaluation"]


class Evaluation:
    """Numbers for symbols.

    Args:
        values: symbols (or other expressions) ↦ what stands for them, rational or not.
    """

    def __init__(self, values: Mapping[Any, Any] | None = None) -> None:
        self.values: dict[sp.Expr, sp.Expr] = {
            sp.sympify(symbol): as_expression(value) for symbol, value in (values or {}).items()
        }
        self._known: dict[sp.Expr, fmpq | None] = {
            symbol: fmpq(int(value.p), int(value.q)) if value.is_Rational else None
            for symbol, value in self.values.items()
        }

    def __call__(self, expression: sp.Expr) -> sp.Expr:
        """The expression at the values: a rational number, or what is left where it is none."""
        if expression.is_Rational:
            return expression
        found = self.exact(expression)
        return expression.xreplace(self.values) if found is None else sp.Rational(int(found.p), int(found.q))

    def exact(self, expression: sp.Expr) -> fmpq | None:
        """The expression at the values, None where it is no rational function of rational numbers."""
        if expression not in self._known:
            self._known[expression] = self._computed(expression)
        return self._known[expression]

    def _computed(self, expression: sp.Expr) -> fmpq | None:
        if expression.is_Rational:
            return fmpq(int(expression.p), int(expression.q))
        if expression.is_Pow and expression.exp.is_Integer:
            base, power = self.exact(expression.base), int(expression.exp)
            return None if base is None or (base == 0 and power < 0) else base**power
        if not (expression.is_Add or expression.is_Mul):
            return None
        total: fmpq | None = None
        for part in expression.args:
            value = self.exact(part)
            if value is None:
                return None
            total = value if total is None else total + value if expression.is_Add else total * value
        return total
