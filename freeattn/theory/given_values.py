"""Numbers that a caller gives: rational ones for symbols, by symbol or by name; orders and digits; points."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from operator import index
from typing import Any

import sympy as sp

from freeattn.errors import InputError
from freeattn.theory.symbols import THETA_1, THETA_2, C

__all__ = [
    "GivenValues",
    "finite_number",
    "given_values",
    "positive_integer",
    "rational_number",
    "with_ratio",
    "with_thetas",
]

GivenValues = Mapping[Any, Any]  # symbol or name ↦ int, Fraction, sympy number, decimal or fraction as text
Numbers = dict[sp.Symbol, sp.Rational]


def given_values(values: GivenValues | None, symbols: Iterable[sp.Symbol]) -> Numbers:
    """The given numbers for those symbols.

    Raises:
        InputError: for what is no mapping, a name that is none of them, or a value that is not rational.
    """
    if values is None:
        return {}
    if not isinstance(values, Mapping):
        raise InputError("values", values, "a mapping of symbols, or their names, to rational numbers")
    known = {str(symbol): symbol for symbol in symbols}
    found = {}
    for name, value in values.items():
        if str(name) not in known:
            raise InputError("values", str(name), f"one of {', '.join(sorted(known)) or 'nothing: no symbol is left'}")
        found[known[str(name)]] = rational_number(f"values[{name}]", value)
    return found


def rational_number(field: str, value: Any, allowed: str = "a rational number") -> sp.Rational:
    """A rational number, floats by their exact binary value.

    Raises:
        InputError: for what is not one.
    """
    try:
        exact = value.as_integer_ratio() if hasattr(value, "as_integer_ratio") else (value,)  # raises for nan and inf
        number = sp.nan if isinstance(value, bool) else sp.Rational(*exact)
    except (TypeError, ValueError, ArithmeticError):
        raise InputError(field, value, allowed) from None
    if not number.is_Rational:
        raise InputError(field, value, allowed)
    return number


def positive_integer(field: str, value: Any) -> int:
    """An order of a series, or a number of digits.

    Raises:
        InputError: for what is not a positive integer.
    """
    try:
        number = 0 if isinstance(value, bool) else index(value)
    except TypeError:
        number = 0
    if number < 1:
        raise InputError(field, value, "a positive integer")
    return number


def finite_number(field: str, value: Any) -> Any:
    """The number, array of numbers or symbolic expression itself, of any kind that has a modulus.

    Raises:
        InputError: for what is not one, or not finite.
    """
    try:
        size = abs(value)
        bad = (size != size) | (size == float("inf"))
    except (TypeError, ArithmeticError):
        raise InputError(field, value, "a finite number") from None
    infinite = isinstance(value, sp.Basic) and value.has(sp.nan, sp.oo, sp.zoo)
    if infinite or isinstance(value, bool) or (bad.any() if hasattr(bad, "any") else bad):
        raise InputError(field, value, "a finite number")
    return value


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
