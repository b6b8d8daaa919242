"""θ₁ and θ₂ of a score function, in numbers to any number of digits.

Exact formulas are used where the score function has them; otherwise the Gaussian integrals of `scores` are computed by
the trapezoidal rule on the line, which converges geometrically where the function is analytic, else by Gauss-Legendre
quadrature on panels split at the kinks. Precision lives in a context of its own: no global state.

θ's of rows of finite length (`scores.FiniteRows`) come from `rows`, to 23 digits whatever is asked for, because more
take seconds; laws made of them have at most 20 digits (`check_digits`).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any

from freeattn.errors import ConvergenceError, InputError
from freeattn.model.precision import own_context
from freeattn.model.quantities import is_symbolic
from freeattn.model.rows import row_moment
from freeattn.model.scores import ScoreFunction

__all__ = ["Thetas", "check_digits", "theta_slopes", "thetas"]

_GUARD_DIGITS = 10  # cancellation in E g² − (E g)² and rounding of some hundred quadrature terms
_PANELS_PER_SIDE = 8
_EXTRA_DIGITS = (0, 15, 40)  # when E g² − (E g)² cancels, as it does at small β
_FEW, _RUNG = 20, 60  # θ's of a law in doubles take 55 digits at most
_FIRST_STEP = 4  # steps of the trapezoidal rule in one unit of χ
_HALVINGS = 6  # of its step; a function with poles near the real axis needs more, and is left to Gauss-Legendre
_SUMS_SPARE = 1000  # two steps differ by this share of the digits asked for: what is left is far below
_MOST_PANELS = 80  # ten times the range that a bounded function needs
_ROW_DIGITS = 23  # of the θ's of finite rows: a fifth of a second
_MOST_ROW_DIGITS = 20  # of laws made of them


@dataclass(frozen=True)
class Thetas:
    """θ₁, θ₂ and a bound on the estimated absolute error of either (mpmath numbers)."""

    theta_1: Any
    theta_2: Any
    error: Any


@lru_cache(maxsize=256)
def thetas(scores: ScoreFunction, beta: Any, digits: int = 15) -> Thetas:
    """θ₁ = Var g and θ₂ = (E χ g)² of a score function at inverse temperature β (definitions in `scores`).

    Args:
        beta: exact number (int, Fraction or an expression that mpmath can convert).
        digits: decimal digits wanted; the error is at most 10^{−digits} relative to θ₁ (`FiniteRows`: 10^{−23}).

    Raises:
        ConvergenceError: when the quadrature cannot reach the digits (an undeclared kink is the usual cause).
        InputError: when g has no finite variance or is constant.
    """
    if scores.n_tokens is not None:
        return _of_rows(scores, beta)
    context = own_context(digits + _GUARD_DIGITS)
    exact = scores.exact_thetas(_to_context(beta, context), context)
    if exact is not None:
        return Thetas(exact[0], exact[1], context.mpf(10) ** (-digits) * exact[0])
    return _integrated(scores, beta, _FEW if digits <= _FEW else -(-digits // _RUNG) * _RUNG)


def check_digits(scores: ScoreFunction, digits: int) -> None:
    """Refuse digits of a law beyond those that the θ's of its score function have.

    Raises:
        InputError: for more than 20 digits with `FiniteRows` scores.
    """
    if scores.n_tokens is not None and digits > _MOST_ROW_DIGITS:
        allowed = f"at most {_MOST_ROW_DIGITS} at finite size (in the limit, finite_size=False, there is no such bound)"
        raise InputError("digits", digits, allowed)


@lru_cache(maxsize=256)
def _of_rows(scores: ScoreFunction, beta: Any) -> Thetas:
    """θ₁ = n I_n − 1 and θ₂ = (E χ₁ n A₁)² of rows of n tokens."""
    n = scores.n_tokens
    assert n is not None
    context = own_context(3 * _ROW_DIGITS)
    number, tiny = _to_context(beta, context), context.mpf(10) ** (-_ROW_DIGITS)
    digits = _ROW_DIGITS + math.ceil(math.log10(n)) + max(0, math.ceil(-2 * math.log10(number)))  # θ₁ ~ β² cancels
    for extra in _EXTRA_DIGITS:
        share = row_moment(scores, number, n, power=2, digits=digits + extra)
        theta_1 = n * context.mpf(share.value) - 1
        if theta_1 > 0 and n * share.error <= tiny * theta_1:
            break
    else:
        raise InputError("scores", scores.name, "a function that is not constant")
    slope = scores.row_coefficient(number, context.mpf(share.value))
    if slope is None:
        slope = context.mpf(row_moment(scores, number, n, power=1, degree=1, digits=digits).value)
    return Thetas(theta_1, slope**2, 2 * tiny * theta_1)


@lru_cache(maxsize=256)
def _integrated(scores: ScoreFunction, beta: Any, digits: int) -> Thetas:
    """By quadrature, to digits of which there are few choices: a law asks for several numbers of digits."""
    for extra in _EXTRA_DIGITS:
        context = own_context(digits + extra + _GUARD_DIGITS)
        found, settled = _by_quadrature(scores, _to_context(beta, context), context, digits + extra)
        if found.error <= context.mpf(10) ** (-digits) * found.theta_1:
            return found
        if not settled:
            break  # more digits help against cancellation only
    raise ConvergenceError(
        f"quadrature of the score function {scores.name!r}", float(found.error / found.theta_1), 10.0**-digits,
        "declare every point where the function is not smooth in kinks=…, or ask for fewer digits",
    )


def _to_context(value: Any, context: Any) -> Any:
    if is_symbolic(value):
        raise InputError("beta", str(value), "a number where a number is asked for")
    if hasattr(value, "numerator") and hasattr(value, "denominator"):
        return context.mpf(int(value.numerator)) / int(value.denominator)
    return context.mpf(value._to_mpmath(context.prec)) if hasattr(value, "_to_mpmath") else context.mpf(value)


def _by_quadrature(scores: ScoreFunction, beta: Any, context: Any, digits: int) -> tuple[Thetas, bool]:
    """θ₁ and θ₂, and whether the integrals themselves have at least half of the digits."""
    tiny = context.mpf(10) ** (-digits)
    (mean, slope, square), errors = _expectations(scores, beta, context, digits, _MOMENTS)
    scale = mean if scores.normalized else context.one
    if abs(slope) <= tiny * context.sqrt(square):
        slope = context.zero  # an even function: θ₂ = 0 exactly, not a rounding error squared
    theta_1 = (square - mean**2) / scale**2
    theta_2 = (slope / scale) ** 2
    if theta_1 <= tiny * square / scale**2:
        raise InputError("scores", scores.name, "a function that is not constant")
    error = 4 * sum(errors) * (1 + abs(mean) + abs(slope)) / scale**2
    settled = sum(errors) <= context.sqrt(tiny) * square
    return Thetas(theta_1, theta_2, error + 100 * context.eps * square / scale**2), bool(settled)


Sums = tuple[tuple[Any, ...], tuple[Any, ...]]
Weights = tuple[Callable[[Any, Any], Any], ...]  # of χ and f(βχ)

_MOMENTS: Weights = (lambda _, f: f, lambda x, f: x * f, lambda _, f: f * f)
_SLOPES: Weights = (
    *_MOMENTS, lambda x, f: (x * x - 1) * f, lambda x, f: (x**3 - 2 * x) * f, lambda x, f: (x * x - 1) * f * f
)


def theta_slopes(scores: ScoreFunction, beta: Any, digits: int) -> tuple[Any, Any]:
    """∂θ₁/∂β and ∂θ₂/∂β by quadrature, about `digits` of them.

    For y = βχ the density φ(y/β)/β is differentiated, so that f may have kinks and jumps:

        β ∂_β E F(βχ) = E (χ² − 1) F(βχ),        β ∂_β E χ f(βχ) = E (χ³ − 2χ) f(βχ).

    Raises:
        ConvergenceError, InputError: as `thetas`.
    """
    working = digits + _EXTRA_DIGITS[1]
    context = own_context(working + _GUARD_DIGITS)
    point = _to_context(beta, context)
    sums, errors = _expectations(scores, point, context, working, _SLOPES)
    mean, slope, square, *changes = sums
    mean_change, slope_change, square_change = (change / point for change in changes)
    limit = context.mpf(10) ** (-digits)
    if not sum(errors) <= limit * square:
        raise ConvergenceError(
            f"quadrature of the score function {scores.name!r}", float(sum(errors) / square), float(limit),
            "declare every point where the function is not smooth in kinks=…, or ask for fewer digits",
        )
    theta_1, theta_2 = square - mean**2, slope**2
    first, second = square_change - 2 * mean * mean_change, 2 * slope * slope_change
    if not scores.normalized:
        return first, second
    return tuple((d - 2 * t * mean_change / mean) / mean**2 for d, t in ((first, theta_1), (second, theta_2)))


def _expectations(scores: ScoreFunction, beta: Any, context: Any, digits: int, weights: Weights) -> Sums:
    """Expectations of weights and estimates of their errors.

    Raises:
        InputError: where rows cannot be normalized.
    """
    nodes = _nodes(scores, beta, context, digits)
    if scores.normalized and any(scores.value(beta * x, context) < 0 for x in nodes):
        raise InputError("scores", scores.name, "a positive function when rows are normalized")
    tiny = context.mpf(10) ** (-digits)
    sums = None if scores.kinks else _trapezoidal(scores, beta, context, nodes[-1], tiny, weights)
    found = sums or _gauss_legendre(scores, beta, context, nodes, weights)
    if scores.normalized and not found[0][0] > 0:
        raise InputError("scores", scores.name, "a positive function when rows are normalized")
    return found


def _trapezoidal(
    scores: ScoreFunction, beta: Any, context: Any, reach: Any, tiny: Any, weights: Weights
) -> Sums | None:
    """Expectations and the last changes of them, by steps halved until they settle; None when they do not."""
    step = context.one / _FIRST_STEP
    last = int(reach / step) + 1
    points = [k * step for k in range(-last, last + 1)]
    before = None
    for _ in range(_HALVINGS):
        values = [(scores.value(beta * x, context), context.npdf(x), x) for x in points]
        terms = [[weight(x, f) * p for weight in weights] for f, p, x in values]
        sums = [step * context.fsum(part) for part in zip(*terms, strict=True)]
        if before is not None:
            sums = [old / 2 + new for old, new in zip(before, sums, strict=True)]
            changes = [abs(new - old) for old, new in zip(before, sums, strict=True)]
            if sum(changes) * _SUMS_SPARE <= tiny * sums[2]:
                return tuple(sums), tuple(changes)
        before = sums
        step, last = step / 2, 2 * last
        points = [k * step for k in range(1 - last, last, 2)]  # between the points so far
    return None


def _gauss_legendre(scores: ScoreFunction, beta: Any, context: Any, nodes: list[Any], weights: Weights) -> Sums:
    """The same with estimates of the errors, on panels."""

    @cache
    def at(x: Any) -> tuple[Any, Any]:
        return scores.value(beta * x, context), context.npdf(x)

    def expectation(weight: Any) -> tuple[Any, Any]:
        return context.quad(lambda x: weight(x, at(x)[0]) * at(x)[1], nodes, error=True, method="gauss-legendre")

    found = [expectation(weight) for weight in weights]
    return tuple(value for value, _ in found), tuple(error for _, error in found)


def _nodes(scores: ScoreFunction, beta: Any, context: Any, digits: int) -> list[Any]:
    """Panels over a range beyond which x²f(βx)²·φ(x) is below the precision; split at the kinks.

    Raises:
        InputError: when no such range is found: f(βχ) has no finite variance.
    """
    tail = context.mpf(10) ** (-(digits + _GUARD_DIGITS))
    unit = context.sqrt(2 * context.log(10) * (digits + _GUARD_DIGITS))

    def weight(x: Any) -> Any:
        return (1 + x * x) * (1 + scores.value(beta * x, context) ** 2) * context.npdf(x)

    for count in range(_PANELS_PER_SIDE, _MOST_PANELS + 1, _PANELS_PER_SIDE // 2):
        reach = unit * count / _PANELS_PER_SIDE
        grid = [reach * k / count for k in range(-count, count + 1)]
        largest = max(weight(x) for x in grid)
        if all(weight(end * k / 8) < tail * largest for end in (-reach, reach) for k in (8, 9, 10)):
            break
    else:
        raise InputError("scores", scores.name, "a function with finite variance at this beta")
    kinks = {context.mpf(kink) / beta for kink in scores.kinks}
    return sorted({*grid, *(kink for kink in kinks if abs(kink) < reach)})
