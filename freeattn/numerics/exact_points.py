"""Points as users give them, as pairs of rational numbers: exactly, whatever way they are written."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from flint import fmpq

from freeattn.errors import InputError
from freeattn.model.quantities import binary_of
from freeattn.numerics.exact_traces import Pair

__all__ = ["exact_pair"]

_SMALLEST = fmpq(1, 10**300)  # of a part of z that is not 0: the middle of a ball is also a double
_LARGEST_EXPONENT = 10_000  # of a number as it is written: larger ones take memory before they are seen to be too large


def exact_pair(value: Any) -> Pair:
    """Real and imaginary part, exactly: int, Fraction, double, complex, decimal string, mpmath or sympy rational."""
    found = _parts(value)
    if any(part and not _SMALLEST <= abs(part) <= 1 / _SMALLEST for part in found):
        raise InputError("z", value, "a number whose parts are 0 or between 10^-300 and 10^300")
    return found


def _parts(value: Any) -> Pair:
    try:
        if isinstance(value, (str, Fraction)) or hasattr(value, "numerator"):
            return _rational(value), fmpq(0)
        if hasattr(value, "is_Rational") and value.is_Rational:
            return fmpq(int(value.p), int(value.q)), fmpq(0)
        return _rational(value.real), _rational(value.imag)
    except (TypeError, ValueError, OverflowError, AttributeError, ZeroDivisionError):
        in_text = "a real number where it is a text; complex numbers as complex, mpmath or sympy numbers"
        allowed = in_text if isinstance(value, str) else "one finite number"
        raise InputError("z", value, allowed) from None


def _rational(value: Any) -> fmpq:
    if hasattr(value, "_mpf_"):
        mantissa, exponent = binary_of(value)
        if (not mantissa and exponent) or abs(exponent) > _LARGEST_EXPONENT:
            raise ValueError("not finite, or out of range")
        exact = Fraction(mantissa) * Fraction(2) ** exponent
    else:
        power = value.lower().partition("e")[2] if isinstance(value, str) else ""
        if abs(int(power or 0)) > _LARGEST_EXPONENT:
            raise ValueError("out of range")
        exact = Fraction(value) if isinstance(value, (str, int, Fraction, float)) else Fraction(float(value))
    return fmpq(exact.numerator, exact.denominator)
