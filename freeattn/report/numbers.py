"""How a number is written, to any number of digits."""

from __future__ import annotations

from decimal import Decimal, localcontext
from fractions import Fraction
from typing import Any

__all__ = ["DOUBLE_DIGITS", "number_text", "value_text"]

DOUBLE_DIGITS = 15  # beyond them a double cannot carry what was asked
_SHOWN_DIGITS = 8
_LONGEST_EXACT = 12  # characters of a fraction that is still worth reading
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


def value_text(value: Any) -> str:
    """A value in a table of key numbers: exact where that is short, else 8 digits; names and lists as they are."""
    if value is None:
        return "none"
    if isinstance(value, (tuple, list)):
        return ", ".join(value_text(one) for one in value)
    if isinstance(value, Fraction) and len(str(value)) <= _LONGEST_EXACT:
        return str(value)
    if isinstance(value, (str, int)) or bool(getattr(value, "free_symbols", None)):
        return str(value)
    return number_text(value, _SHOWN_DIGITS)
