"""Numbers in texts that users write, read exactly: "1/2" and "0.1" are the fractions that they look like."""

from __future__ import annotations

import re
from fractions import Fraction

from freeattn.errors import InputError

__all__ = ["exact_number", "exact_numbers"]

_LONGEST = 1000  # characters; the conversion of longer texts can take long
_NUMBER = re.compile(r"[+-]?(\d+/\d+|(\d+(\.\d*)?|\.\d+)([eE][+-]?\d{1,3})?)")  # 3 digits reach every double


def exact_number(field: str, text: str) -> int | Fraction:
    """The number that a text denotes, exactly: "12", "1/2", "0.559", "1e-3".

    Raises:
        InputError: for anything else (nan and inf included), naming the field.
    """
    stripped = text.strip()
    allowed = "a number such as 12, 0.5, 1e-3 or 1/2"
    if not (stripped.isascii() and len(stripped) <= _LONGEST and _NUMBER.fullmatch(stripped)):
        raise InputError(field, text, allowed)
    try:
        number = Fraction(stripped)
    except ZeroDivisionError:
        raise InputError(field, text, allowed) from None
    return number.numerator if number.denominator == 1 else number


def exact_numbers(field: str, text: str) -> tuple[int | Fraction, ...]:
    """The numbers between the commas of a text.

    Raises:
        InputError: as `exact_number`.
    """
    return tuple(exact_number(field, part) for part in text.split(","))
