"""Linear readouts of the features: effective degrees of freedom, and the error of ridge regression.

With ν the law of mean one, F = M/√m the features of n tokens and γ = γ_O their number over tokens:

    w(λ) = ∫ x/(x + λ) dν = 1 − λ m(−λ)        w'(λ) = −∫ x/(x + λ)² dν

Ridge regression minimizes (1/n)‖y − √n F v‖² + λ‖v‖² where y = √n F ϑ + ε, ϑ ~ N(0, I/d_O), ε ~ N(0, σ² I); the error
of its coefficients is

    E_λ = E‖v̂ − ϑ‖² = 1 − 1/γ + ∫ (λ²/γ + σ²x)/(x + λ)² dν = 1 − w/γ + (λ/γ − σ²) w'(λ).

Since dE_λ/dλ = (λ/γ − σ²) w''(λ) and w'' = 2 ∫ x/(x + λ)³ dν > 0, the best penalty is γσ² whatever the law, and the
error is 1 − w(γσ²)/γ there. Source: arXiv 2610.10033, section 5 and appendix C.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from freeattn.errors import InputError
from freeattn.model.precision import own_context
from freeattn.numerics.given_numbers import DOUBLE_DIGITS, rounded
from freeattn.numerics.law import SpectralLaw
from freeattn.numerics.precise_integrals import as_number
from freeattn.predict.inputs import (
    atom_at_zero,
    checked_digits,
    exact_number,
    mean_one_integrals,
    numbers,
    out_ratio,
    positive_number,
    spectral_law,
)

__all__ = ["best_penalty", "degrees_of_freedom", "ridge_error"]

Array = NDArray[np.float64]

_GUARD_DIGITS = 10


def degrees_of_freedom(
    law: SpectralLaw, penalty: ArrayLike = 1e-4, *, derivative: int = 0, digits: int = DOUBLE_DIGITS
) -> Any:
    """w(λ) = ∫ x/(x + λ) dν: effective degrees of freedom per token of ridge regression on the mean-one law.

    Args:
        law: any law on [0, ∞); it is divided by its mean.
        penalty: λ ≥ 0, any shape; w(0) is 1 less the atom at 0.
        derivative: 0 for w, 1 for w'(λ) (−inf at λ = 0 for a law whose density starts at 0).
        digits: beyond 15, the answer is one mpmath number, for one λ > 0.

    Raises:
        InputError: for values that are not allowed.
    """
    if derivative not in (0, 1) or isinstance(derivative, bool):
        raise InputError("derivative", derivative, "0 or 1")
    law = spectral_law(law)
    if checked_digits(digits) > DOUBLE_DIGITS:
        point = positive_number("penalty", penalty, 2 * digits + _GUARD_DIGITS)
        return rounded((_precise_slope if derivative else _precise)(law, point, digits), digits)
    points = numbers("penalty", penalty)
    values = -_variance(law, points.ravel()) if derivative else mean_one_integrals(law)(_share, points.ravel())
    return _shaped(values, points)


def ridge_error(
    law: SpectralLaw, penalty: ArrayLike = 1e-4, noise: ArrayLike = 0.1, *, gamma_out: Any = None,
    digits: int = DOUBLE_DIGITS,
) -> Any:
    """E_λ = E‖v̂ − ϑ‖² of ridge regression on the features, relative to E‖ϑ‖² = 1.

    Args:
        law: any law on [0, ∞); it is divided by its mean.
        penalty: λ ≥ 0 in the unit of the mean-one law; shapes of `penalty` and `noise` are broadcast.
        noise: σ² ≥ 0, the variance of the noise.
        gamma_out: d_out/n_tokens, for a law that has no output map.
        digits: beyond 15, the answer is one mpmath number, for one λ > 0 and one σ² > 0.

    Raises:
        InputError: for values that are not allowed.
    """
    law = spectral_law(law)
    gamma = out_ratio(law, gamma_out)
    if checked_digits(digits) > DOUBLE_DIGITS:
        return _precise_error(law, penalty, noise, gamma, digits)
    penalties, noises = np.broadcast_arrays(numbers("penalty", penalty), numbers("noise", noise))
    points, variances = penalties.ravel(), noises.ravel()
    unread = max(float(1 - (1 - atom_at_zero(law)) / gamma), 0.0)  # directions of ϑ that F does not see
    bias = unread + mean_one_integrals(law)(_shrinkage, points) / float(gamma)
    noisy = variances > 0
    bias[noisy] += variances[noisy] * _variance(law, points[noisy])
    return _shaped(bias, penalties)


def best_penalty(law: SpectralLaw, noise: Any = 0.1, *, gamma_out: Any = None) -> Any:
    """The penalty λ* = γ_O σ² with the least `ridge_error`, which is 1 − w(λ*)/γ_O: it does not depend on the law.

    Exact where `noise` and the ratio are.

    Raises:
        InputError: for values that are not allowed.
    """
    gamma = out_ratio(spectral_law(law), gamma_out)
    if isinstance(noise, (int, Fraction)) and noise == 0:
        return Fraction(0)
    return gamma * exact_number("noise", noise)


def _share(x: Array, penalty: Array) -> Array:
    """x/(x + λ); 0 at x = 0."""
    return np.where(x > 0, x, 0.0) / np.where(x > 0, x + penalty, 1.0)


def _shrinkage(x: Array, penalty: Array) -> Array:
    """(λ/(x + λ))² where x > 0."""
    return np.where(x > 0, penalty / np.where(x > 0, x + penalty, 1.0), 0.0) ** 2


def _sensitivity(x: Array, penalty: Array) -> Array:
    """x/(x + λ)²; 0 at x = 0."""
    return np.where(x > 0, x, 0.0) / np.where(x > 0, x + penalty, 1.0) ** 2


def _variance(law: SpectralLaw, penalty: Array) -> Array:
    """∫ x/(x + λ)² dν = −w'(λ); infinite at λ = 0 when the density starts at 0."""
    endless = (penalty == 0) & bool(law.edges and law.edges[0][0] == 0)
    result = np.full(penalty.shape, np.inf)
    result[~endless] = mean_one_integrals(law)(_sensitivity, penalty[~endless])
    return result


def _precise(law: SpectralLaw, penalty: Any, digits: int) -> Any:
    """1 − λ m(−λ), with the digits that cancel at large λ."""
    lost = _digits_below(1 / (1 + penalty))
    working = digits + lost + _GUARD_DIGITS
    point = as_number(own_context(working), penalty)
    return 1 - point * law.normalized().stieltjes(-point, digits=working).real


def _precise_slope(law: SpectralLaw, penalty: Any, digits: int) -> Any:
    """A central difference of w with a step so small, and so many digits, that its error is below the last one.

    At small λ w changes by λw' only.
    """
    working = 2 * digits + _digits_below(penalty)
    context = own_context(working + _GUARD_DIGITS)
    step = as_number(context, penalty) * context.mpf(10) ** -(digits // 2 + _GUARD_DIGITS // 2)
    above, below = (_precise(law, as_number(context, penalty) + sign * step, working) for sign in (1, -1))
    return (context.convert(above) - context.convert(below)) / (2 * step)


def _digits_below(value: Any) -> int:
    """Decimal digits that are lost when a number of this size is what is left of numbers of size 1."""
    return max(0, -math.floor(float(own_context(DOUBLE_DIGITS).log10(value))))


def _precise_error(law: SpectralLaw, penalty: Any, noise: Any, gamma: Fraction | float, digits: int) -> Any:
    """1 − w/γ + (λ/γ − σ²) w'(λ), with the digits that cancel when both σ² and the bias, of order λ², are small."""
    working = 2 * digits + _GUARD_DIGITS
    point, variance = (positive_number(name, v, working) for name, v in (("penalty", penalty), ("noise", noise)))
    working = digits + _digits_below(max(variance, point**2)) + _GUARD_DIGITS
    context = own_context(working)
    ratio = as_number(context, gamma)
    dof = context.convert(degrees_of_freedom(law, point, digits=working))
    slope = context.convert(degrees_of_freedom(law, point, derivative=1, digits=working))
    return rounded(1 - dof / ratio + (point / ratio - variance) * slope, digits)


def _shaped(values: Array, like: Array) -> Any:
    return float(values[0]) if like.ndim == 0 else values.reshape(like.shape)
