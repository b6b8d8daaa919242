"""Numbers as users give them: how many digits, arrays of doubles, one number of many digits; and numbers given back."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from freeattn.errors import InputError
from freeattn.model.precision import context_for_results, own_context
from freeattn.model.quantities import as_integer
from freeattn.numerics.precise_integrals import as_number

__all__ = ["DOUBLE_DIGITS", "complex_array", "digits_up_to", "one_number", "real_array", "rounded"]

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
        if isinstance(value, (bool, np.bool_)):
            raise TypeError
        return as_number(own_context(digits), value)
    except (TypeError, ValueError, ZeroDivisionError):
        raise InputError(name, value, "one number when digits > 15") from None


def real_array(name: str, values: ArrayLike) -> NDArray[np.float64]:
    """Real numbers of any shape in doubles; infinities and NaN are left to the caller.

    Raises:
        InputError: for anything else.
    """
    return _numbers(name, values, "real", "iuf").astype(float)


def complex_array(name: str, values: ArrayLike) -> NDArray[np.complex128]:
    """Complex numbers of any shape in doubles; infinities and NaN are left to the caller.

    Raises:
        InputError: for anything else.
    """
    return _numbers(name, values, "complex", "iufc").astype(complex)


def _numbers(name: str, values: ArrayLike, what: str, kinds: str) -> NDArray[Any]:
    """The array of what is a number by type: numpy would take a text for one, and None for NaN."""
    try:
        array = np.asarray(values)
        if array.dtype.kind == "O" and not any(map(_is_no_number, array.flat)):
            array = array.astype(float if what == "real" else complex)
        if array.dtype.kind in kinds:
            return array
    except (TypeError, ValueError, OverflowError):
        pass
    raise InputError(name, values, f"{what} numbers in the range of doubles")


def _is_no_number(item: object) -> bool:
    return item is None or isinstance(item, (str, bytes, bool, np.bool_))
