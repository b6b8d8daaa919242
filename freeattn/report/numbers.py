"""How a number is written, to any number of digits."""

from __future__ import annotations

from decimal import Decimal, localcontext
from fractions import Fraction
from typing import Any

__all__ = ["DOUBLE_DIGITS", "number_text"]

DOUBLE_DIGITS = 15  # beyond them a double cannot carry what was asked
_REPR_DIGITS = 17  # enough for every double to read back the same


def number_text(value: Any, digits: int) -> str:
    """A number to `digits` significant digits; fractions and mpmath numbers without a double in between."""
    if isinstance(value, (int, Fraction)):
        with localcontext() as context:
            context.prec = digits
            return str(Decimal(value.numerator) / Decimal(value.denominator))
    if hasattr(value, "context"):  # an mpmath number prints itself
        return str(value.context.nstr(value, digits, min_fixed=-5, max_fixed=max(digits, 16)))
    return f"{float(value):.{min(digits, _REPR_DIGITS)}g}"
