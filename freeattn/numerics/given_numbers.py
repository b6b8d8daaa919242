"""Numbers as users give them: how many digits, arrays of doubles, one number of many digits; and numbers given back."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from freeattn.errors import InputError
from freeattn.model.precision import context_for_results, own_context
from freeattn.model.quantities import as_integer
from freeattn.numerics.precise_integrals import as_number

__all__ = ["DOUBLE_DIGITS", "digits_up_to", "one_number", "real_array", "rounded"]

DOUBLE_DIGITS = 15


def digits_up_to(most: int, digits: int) -> int:
    """The decimal digits asked for, at least those of a double.

    Raises:
        InputError: unless they are an integer from 1 to `most`.
    """
    return max(as_integer("digits", digits, f"an integer from 1 to {most}", 1, most), DOUBLE_DIGITS)


def rounded(value: Any, digits: int) -> Any:
    """An mpmath number rounded to the digits that were asked for."""
    return +context_for_results(digits).convert(value)


def one_number(name: str, value: Any, digits: int) -> Any:
    """One number to so many digits: int, Fraction, float, complex, decimal string, sympy or mpmath number.

    Raises:
        InputError: for anything else.
    """
    try:
        return as_number(own_context(digits), value)
    except (TypeError, ValueError, ZeroDivisionError):
        raise InputError(name, value, "one number when digits > 15") from None


def real_array(name: str, values: ArrayLike) -> NDArray[np.float64]:
    """Real numbers of any shape in doubles; infinities and NaN are left to the caller.

    Raises:
        InputError: for anything else.
    """
    try:
        if np.iscomplexobj(values):
            raise TypeError("complex")
        return np.asarray(values, dtype=float)
    except (TypeError, ValueError, OverflowError):
        raise InputError(name, values, "real numbers in the range of doubles") from None
