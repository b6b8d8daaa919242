"""What the predictions take: a law in the unit of mean one, the width of the output over tokens, arrays of numbers."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from freeattn.errors import InputError
from freeattn.model.precision import own_context
from freeattn.numerics.given_numbers import digits_up_to, one_number, real_array
from freeattn.numerics.law import SpectralLaw
from freeattn.numerics.law_integrals import LawIntegrals

__all__ = [
    "atom_at_zero", "checked_digits", "exact_number", "mean_one_integrals", "numbers", "out_ratio", "positive_number",
    "spectral_law",
]

Array = NDArray[np.float64]

_MOST_DIGITS = 500
_RANK_ROUNDING = 1e-12  # of a ratio that is given as a float


def spectral_law(law: Any) -> SpectralLaw:
    """The law, if it is one on [0, ∞) with positive mean.

    Raises:
        InputError: otherwise.
    """
    if not isinstance(law, SpectralLaw):
        raise InputError("law", law, "a SpectralLaw, as fa.law makes it of an Attention or an expression")
    if not law.mean > 0 or any(a < 0 for a, _ in law.edges) or any(atom.location < 0 for atom in law.atoms):
        raise InputError("law", law, "a law on [0, ∞) with positive mean: one of squared singular values")
    return law


def mean_one_integrals(law: SpectralLaw) -> LawIntegrals:
    """Integrals against the law divided by its mean."""
    return LawIntegrals(law, law.mean)


def atom_at_zero(law: SpectralLaw) -> Fraction | float:
    """ν({0})."""
    return next((atom.weight for atom in law.atoms if atom.location == 0), Fraction(0))


def out_ratio(law: SpectralLaw, gamma_out: Any) -> Fraction | float:
    """γ_O = output width over tokens: of the layer, or as given for a law without one.

    Raises:
        InputError: when it is neither known nor given, given although known otherwise, or below the rank of the law.
    """
    known = getattr(law.spec, "gamma_out", None)
    if gamma_out is None and known is None:
        raise InputError("gamma_out", None, "the output width over the number of tokens: this law has no output map")
    if gamma_out is None:
        return exact_number("gamma_out", known)
    value = exact_number("gamma_out", gamma_out)
    if known is not None and abs(float(value) - float(known)) > _RANK_ROUNDING * float(value):
        raise InputError("gamma_out", gamma_out, f"nothing, or {known}, which is that of the layer")
    rank = float(1 - atom_at_zero(law))
    if float(value) < rank * (1 - _RANK_ROUNDING):
        raise InputError("gamma_out", gamma_out, f"at least {rank:.6g}: the rank of the law over tokens")
    return value


def exact_number(name: str, value: Any) -> Fraction | float:
    """A positive number: an exact one stays exact, whatever its type."""
    number: Fraction | float
    try:
        number = value if isinstance(value, float) else Fraction(int(value.numerator), int(value.denominator))
    except (AttributeError, TypeError, ValueError):
        number = _as_float(name, value)
    if not 0 < number < math.inf:
        raise InputError(name, value, "a positive number")
    return number


def _as_float(name: str, value: Any) -> float:
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        raise InputError(name, value, "a positive number") from None


def numbers(name: str, values: ArrayLike, positive: bool = False) -> Array:
    """Numbers ≥ 0, or > 0, of any shape, in doubles."""
    array = real_array(name, values)
    bad = ~np.isfinite(array) | (array < 0) | (positive & (array == 0))
    if bad.any():
        raise InputError(name, float(array[bad].flat[0]), f"finite numbers {'>' if positive else '>='} 0")
    return array


def positive_number(name: str, value: Any, digits: int) -> Any:
    """One number > 0 with the given digits."""
    number, context = one_number(name, value, digits), own_context(digits)
    if not context.isfinite(number) or context.im(number) != 0 or not context.re(number) > 0:
        raise InputError(name, value, "a finite number > 0 when digits > 15")
    return context.re(number)


def checked_digits(digits: int) -> int:
    """The digits asked for, at least those of a double."""
    return digits_up_to(_MOST_DIGITS, digits)
