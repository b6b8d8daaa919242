"""Rational numbers that a caller gives for symbols, by symbol or by name."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import sympy as sp

from freeattn.errors import InputError
from freeattn.theory.symbols import THETA_1, THETA_2, C

__all__ = ["GivenValues", "given_values", "with_ratio", "with_thetas"]

GivenValues = Mapping[Any, Any]  # symbol or name ↦ int, Fraction, sympy number, decimal or fraction as text
Numbers = dict[sp.Symbol, sp.Rational]


def given_values(values: GivenValues | None, symbols: Iterable[sp.Symbol]) -> Numbers:
    """The given numbers for those symbols.

    Raises:
        InputError: for a name that is none of them, or a value that is not rational.
    """
    known = {str(symbol): symbol for symbol in symbols}
    found = {}
    for name, value in (values or {}).items():
        if str(name) not in known:
            raise InputError("values", str(name), f"one of {', '.join(sorted(known)) or 'nothing: no symbol is left'}")
        found[known[str(name)]] = _rational(str(name), value)
    return found


def _rational(name: str, value: Any) -> sp.Rational:
    allowed = "a rational number"
    try:
        number = sp.Rational(value) if not isinstance(value, bool) else sp.nan
    except (TypeError, ValueError):
        raise InputError(f"values[{name}]", value, allowed) from None
    if not number.is_Rational:
        raise InputError(f"values[{name}]", value, allowed)
    return number


def with_thetas(numbers: Numbers) -> Numbers:
    """θ₁ and θ₂ from c where they are not given: θ₁ = 1, θ₂ = cθ₁."""
    if C not in numbers or THETA_2 in numbers:
        return numbers
    first = numbers.get(THETA_1, sp.Integer(1))
    return {**numbers, THETA_1: first, THETA_2: numbers[C] * first}


def with_ratio(numbers: Numbers) -> Numbers:
    """c from θ₁ and θ₂ where it is not given."""
    if C in numbers or not {THETA_1, THETA_2} <= set(numbers) or numbers[THETA_1] == 0:
        return numbers
    return {**numbers, C: numbers[THETA_2] / numbers[THETA_1]}
