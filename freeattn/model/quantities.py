"""Exact quantities: integers, fractions and symbols, checked once at the border.

A *quantity* is an `int`, a `Fraction` or a symbolic expression (anything with `free_symbols`, such as a sympy
symbol). Floats stand for their exact binary value; booleans, NaN and infinities are refused. The module does not
import sympy: it only recognizes its objects.
"""

from __future__ import annotations

import math
import numbers
import operator
from fractions import Fraction
from typing import Any, TypeAlias

from freeattn.errors import InputError

__all__ = [
    "Quantity",
    "as_integer",
    "as_nonnegative",
    "as_positive",
    "as_quantity",
    "as_size",
    "binary_of",
    "decode",
    "encode",
    "is_infinite",
    "is_known",
    "is_symbolic",
    "ratio",
]

Quantity: TypeAlias = Any  # int | Fraction | symbolic expression | math.inf where a field allows it


def is_symbolic(value: object) -> bool:
    """True for an expression with at least one free symbol."""
    return bool(getattr(value, "free_symbols", ()))


def is_known(value: object) -> bool:
    """True for a value that is a number (not None, not symbolic)."""
    return value is not None and not is_symbolic(value)


def is_infinite(value: object) -> bool:
    """True for `math.inf`, the value of a head count that has gone to its limit."""
    return isinstance(value, float) and math.isinf(value)


def binary_of(number: Any) -> tuple[int, int]:
    """(mantissa, exponent of two) of a real mpmath or sympy float; (0, not 0) for infinities and NaN."""
    sign, mantissa, exponent, _ = number._mpf_
    return (-int(mantissa) if sign else int(mantissa)), int(exponent)


def as_integer(field: str, value: object, allowed: str, least: int, most: int | None = None) -> int:
    """An integer of any type, numpy's as well as Python's.

    Raises:
        InputError: for booleans, other objects, and integers below `least` or above `most`.
    """
    try:
        number = least - 1 if isinstance(value, bool) else operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        number = least - 1
    if number < least or (most is not None and number > most):
        raise InputError(field, value, allowed)
    return number


def as_quantity(field: str, value: object, allowed: str) -> Quantity:
    """The exact form of a number or symbol: int where integral, Fraction otherwise, symbols as they are.

    Raises:
        InputError: for booleans, NaN, infinities, strings and other objects.
    """
    if isinstance(value, bool) or type(value).__name__ == "bool" or value is None:
        raise InputError(field, value, allowed)
    if is_symbolic(value):
        return value
    if getattr(value, "is_Rational", False):  # sympy Integer and Rational
        return _integral(Fraction(int(value.p), int(value.q)))  # type: ignore[attr-defined]
    if isinstance(value, numbers.Integral):
        return operator.index(value)
    if isinstance(value, numbers.Rational):
        return _integral(Fraction(int(value.numerator), int(value.denominator)))
    if hasattr(value, "_mpf_"):  # mpmath and sympy floats of any precision: their exact binary value
        return _integral(_binary(field, value, allowed))
    if isinstance(value, numbers.Real):
        number = float(value)
        if not math.isfinite(number):
            raise InputError(field, value, allowed)
        return _integral(Fraction(number))
    if getattr(value, "is_number", False) and getattr(value, "is_finite", False) and value.is_real:  # type: ignore[attr-defined]
        return value  # an exact irrational number such as sqrt(2)
    raise InputError(field, value, allowed)


def _binary(field: str, value: Any, allowed: str) -> Fraction:
    mantissa, exponent = binary_of(value)
    if not mantissa and exponent:  # infinities and NaN
        raise InputError(field, value, allowed)
    return Fraction(mantissa) * Fraction(2) ** exponent


def _integral(value: Fraction) -> int | Fraction:
    return value.numerator if value.denominator == 1 else value


def as_positive(field: str, value: object, allowed: str = "a positive number or a symbol") -> Quantity:
    """A positive quantity. A symbol passes unless its own assumptions say that it is not positive."""
    quantity = as_quantity(field, value, allowed)
    if is_symbolic(quantity):
        if quantity.is_positive is False or quantity.is_nonpositive:
            raise InputError(field, value, allowed)
    elif not quantity > 0:
        raise InputError(field, value, allowed)
    return quantity


def as_nonnegative(field: str, value: object, allowed: str = "a number of at least 0 or a symbol") -> Quantity:
    """A quantity of at least 0. A symbol passes unless its own assumptions say that it is negative."""
    quantity = as_quantity(field, value, allowed)
    if is_symbolic(quantity):
        if quantity.is_negative:
            raise InputError(field, value, allowed)
    elif not quantity >= 0:
        raise InputError(field, value, allowed)
    return quantity


def as_size(field: str, value: object) -> Quantity:
    """A positive integer or a symbol: the number of rows, columns or heads."""
    allowed = "a positive integer or a symbol"
    quantity = as_positive(field, value, allowed)
    if is_symbolic(quantity):
        if quantity.is_integer is False:
            raise InputError(field, value, allowed)
    elif not isinstance(quantity, int):
        raise InputError(field, value, allowed)
    return quantity


def ratio(numerator: Quantity, denominator: Quantity) -> Quantity:
    """numerator / denominator, exact: int or Fraction for numbers, an expression otherwise."""
    if isinstance(numerator, (int, Fraction)) and isinstance(denominator, (int, Fraction)):
        return _integral(Fraction(numerator) / Fraction(denominator))
    return numerator / denominator


def encode(value: Quantity) -> object:
    """JSON form of a quantity: int, "p/q", "inf", {"symbol": text} or None."""
    if value is None or isinstance(value, int):
        return value
    if isinstance(value, Fraction):
        return f"{value.numerator}/{value.denominator}"
    if is_infinite(value):
        return "inf"
    return {"symbol": str(value)}


def decode(field: str, value: object, symbols: dict[str, Any]) -> Quantity:
    """Inverse of `encode`; `symbols` maps the text of each symbol to the object that stands for it."""
    if isinstance(value, dict):
        text = value.get("symbol")
        if text not in symbols:
            raise InputError(field, text, f"a symbol given in symbols=…, which has {sorted(symbols)}")
        return symbols[text]
    if value == "inf":
        return math.inf
    if isinstance(value, str):
        try:
            return _integral(Fraction(value))
        except (ValueError, ZeroDivisionError):
            raise InputError(field, value, 'an integer or a fraction written "p/q"') from None
    return value
