"""Gradient flow on the features: the training loss as a Laplace transform of the law, and times of arrival.

Gradient flow of ½‖Fv − y‖² from v = 0, with F = M/√m of mean one and a target y independent of F, centered, ‖y‖² = n,
has the relative loss

    L(t) = ∫ e^{−2tx} dν,        ∫₀^∞ L(t) e^{−st} dt = (1 − w(s/2))/s,        L(∞) = ν({0}).

Source: arXiv 2610.10033, section 5 and appendix C.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from freeattn.errors import ConvergenceError, InputError
from freeattn.model.precision import own_context
from freeattn.numerics.given_numbers import DOUBLE_DIGITS, rounded
from freeattn.numerics.law import SpectralLaw
from freeattn.numerics.law_integrals import LawIntegrals
from freeattn.numerics.precise_integrals import as_number
from freeattn.predict.inputs import (
    atom_at_zero,
    checked_digits,
    mean_one_integrals,
    numbers,
    positive_number,
    spectral_law,
)
from freeattn.predict.laplace import PreciseLoss

__all__ = ["arrival_time", "flow_loss"]

Array = NDArray[np.float64]

_GUARD_DIGITS = 5
_STEPS = 200
_TOLERANCE = 2e-14  # of log t: what rounding of the loss allows
_LATEST = 1e30  # the pieces of the integrals start at 1e-36 of the support, or nearer to 0


def flow_loss(law: SpectralLaw, t: ArrayLike, *, digits: int = DOUBLE_DIGITS) -> Any:
    """L(t) = ∫ e^{−2tx} dν: training loss at time t of gradient flow, relative to that at t = 0.

    Args:
        law: any law on [0, ∞); it is divided by its mean.
        t: times from 0 to 1e30, any shape. The loss tends to the atom at 0, and like a power of t from a hard edge.
        digits: beyond 15, the answer is one mpmath number, for one t > 0.

    Raises:
        InputError: for values that are not allowed.
        ConvergenceError: when the digits are not reached.
    """
    law = spectral_law(law)
    if checked_digits(digits) > DOUBLE_DIGITS:
        working = digits + _GUARD_DIGITS
        return rounded(PreciseLoss(law.normalized(), working)(positive_number("t", t, working)), digits)
    times = numbers("t", t)
    if (times > _LATEST).any():
        raise InputError("t", float(times.max()), f"times up to {_LATEST:g}")
    values = mean_one_integrals(law)(_decay, times.ravel())
    return float(values[0]) if times.ndim == 0 else values.reshape(times.shape)


def arrival_time(law: SpectralLaw, level: Any, *, digits: int = DOUBLE_DIGITS) -> Any:
    """The time t at which L(t) = level.

    Args:
        law: any law on [0, ∞); it is divided by its mean.
        level: above the plateau, which is the atom at 0, and at most 1.
        digits: beyond 15, the answer is an mpmath number.

    Raises:
        InputError: for a level that the loss never has.
        ConvergenceError: when the time is beyond 1e30, or the digits are not reached.
    """
    law = spectral_law(law)
    digits = checked_digits(digits)
    wanted = positive_number("level", level, 2 * digits) if digits > DOUBLE_DIGITS else _level(level)
    context, plateau = own_context(2 * digits + DOUBLE_DIGITS), atom_at_zero(law)
    excess, deficit = (context.convert(wanted) - as_number(context, plateau)), 1 - context.convert(wanted)
    if not (excess > 0 and deficit >= 0):
        raise InputError("level", level, f"a number above the plateau {float(plateau):.6g} of the loss, and at most 1")
    if deficit == 0:
        return 0.0 if digits == DOUBLE_DIGITS else rounded(0, digits)
    time = _arrival(mean_one_integrals(law), float(excess), float(deficit))
    if digits == DOUBLE_DIGITS:
        return time
    lost = max(0, -math.floor(float(context.log10(min(excess, deficit)))))
    return rounded(_precise_arrival(law, wanted, time, digits, digits + lost + _GUARD_DIGITS), digits)


def _level(level: Any) -> float:
    value = numbers("level", level)
    if value.ndim:
        raise InputError("level", level, "one number")
    return float(value)


def _decay(x: Array, t: Array) -> Array:
    return np.exp(-2 * t * x)


def _above_plateau(integrals: LawIntegrals, log_t: Array) -> Array:
    """L − L(∞) at t = e^u."""
    return integrals(lambda x, t: np.where(x > 0, _decay(x, t), 0.0), np.exp(log_t))


def _below_one(integrals: LawIntegrals, log_t: Array) -> Array:
    """1 − L at t = e^u, to its own relative accuracy."""
    return integrals(lambda x, t: -np.expm1(-2 * t * x), np.exp(log_t))


def _arrival(integrals: LawIntegrals, excess: float, deficit: float) -> float:
    """Newton for the logarithm of L − L(∞) or of 1 − L, the smaller one, in log t, kept inside a bracket."""
    side, sign, target = (_below_one, -1, deficit) if deficit < excess else (_above_plateau, 1, excess)
    high = np.log(_LATEST)
    if sign * (side(integrals, np.array([high]))[0] - target) > 0:
        raise ConvergenceError("the time of arrival", None, None, f"it is beyond {_LATEST:g}: take a higher level")
    low = u = np.log(deficit) - 1  # 1 − L ≤ 2t, as the mean is one
    for _ in range(_STEPS):
        value = float(side(integrals, np.array([u]))[0])
        slope = -sign * float(integrals(lambda x, t: 2 * t * x * _decay(x, t), np.exp(np.array([u])))[0])
        low, high = (u, high) if sign * (value - target) > 0 else (low, u)
        step = -value * np.log(value / target) / slope if value > 0 and slope else np.inf
        if min(abs(step), high - low) <= _TOLERANCE:
            return float(np.exp(min(max(u + step, low), high)))
        u = u + step if low < u + step < high else (low + high) / 2
    raise ConvergenceError("the time of arrival", abs(step), _TOLERANCE, "take a level further from the plateau")


def _precise_arrival(law: SpectralLaw, level: Any, start: float, digits: int, working: int) -> Any:
    """Newton for L(t) = level from the double, the loss to `working` digits."""
    loss, context = PreciseLoss(law.normalized(), working), own_context(working)
    t = context.mpf(start)
    for _ in range(_STEPS):
        step = (loss(t) - level) / loss(t, derivative=1)
        t = t - step
        if abs(step) <= t * context.mpf(10) ** -digits:
            return t
    raise ConvergenceError("the time of arrival", float(abs(step / t)), 10.0**-digits, "ask for fewer digits")
