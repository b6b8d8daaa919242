"""Exact tools for polynomials over Q: products of powers, common roots, Taylor shifts, roots to many digits."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from flint import fmpq, fmpq_poly
from numpy.typing import NDArray

from freeattn.errors import ConvergenceError
from freeattn.model.precision import own_context
from freeattn.numerics.isolation import positive_roots, sizes_of_roots
from freeattn.numerics.wide import (
    ZERO,
    Wide,
    WidePolynomial,
    bits_of,
    difference,
    divided,
    from_number,
    power_of_two,
    to_number,
)

__all__ = [
    "Start",
    "coprime_powers",
    "derivative_of_logarithm",
    "horner",
    "isolated",
    "real_roots",
    "refined",
    "shifted",
    "to_context",
    "to_doubles",
]

Factors = tuple[tuple[fmpq_poly, int], ...]
_GUARD_DIGITS = 10
_GUARD_BITS = 64
_DOUBLINGS = 7  # up to 128 times the digits asked for
_LEEWAY = 2  # bits: Newton may overshoot
_MOST_SPREAD = 300  # bits between the sizes of roots up to which flint isolates all of them quickly
_START_BITS = 106  # two doubles: the first step from a double


def coprime_powers(factors: Factors) -> tuple[fmpq, Factors]:
    """(constant, ((f_i, e_i), …)), f_i squarefree, no common roots, largest coefficient ±1: the same product.

    Multiplicities are then exact: the order of a root of the product is the exponent of the one factor that has it.
    """
    constant = fmpq(1)
    pending: list[tuple[fmpq_poly, int]] = []
    basis: list[tuple[fmpq_poly, int]] = []
    for polynomial, power in factors:
        leading = polynomial.leading_coefficient()
        constant *= leading**power
        if polynomial.degree() > 0:
            pending += [(part, power * multiplicity) for part, multiplicity in _squarefree(polynomial / leading)]
    while pending:
        polynomial, power = pending.pop()
        for index, (other, exponent) in enumerate(basis):
            common = polynomial.gcd(other)
            if common.degree() > 0:
                common = common / common.leading_coefficient()
                del basis[index]
                parts = [(common, power + exponent), (polynomial // common, power), (other // common, exponent)]
                pending += [(f, e) for f, e in parts if f.degree() > 0 and e != 0]
                break
        else:
            basis.append((polynomial, power))
    scaled = []
    for polynomial, power in basis:
        size = max(abs(c) for c in polynomial.coeffs())
        constant *= size**power
        scaled.append((polynomial / size, power))
    return constant, tuple(scaled)


def _squarefree(polynomial: fmpq_poly) -> list[tuple[fmpq_poly, int]]:
    _, parts = polynomial.factor_squarefree()
    monic = [(fmpq_poly(part.coeffs()), multiplicity) for part, multiplicity in parts]
    return [(part / part.leading_coefficient(), multiplicity) for part, multiplicity in monic]


def derivative_of_logarithm(factors: Factors) -> fmpq_poly:
    """Numerator Σ_i e_i f_i' ∏_{j≠i} f_j of (log ∏ f_i^{e_i})'."""
    total = fmpq_poly([0])
    for i, (polynomial, power) in enumerate(factors):
        term = polynomial.derivative() * power
        for j, (other, _) in enumerate(factors):
            if j != i:
                term = term * other
        total = total + term
    return total


def shifted(polynomial: fmpq_poly, origin: fmpq) -> fmpq_poly:
    """p(origin + δ) as a polynomial in δ."""
    return polynomial(fmpq_poly([origin, 1]))


def to_doubles(polynomial: fmpq_poly) -> NDArray[np.float64]:
    """Coefficients from the constant on, each rounded once."""
    return np.array([int(c.p) / int(c.q) for c in polynomial.coeffs()] or [0.0])


def horner(coefficients: Sequence[float], q: Any) -> Any:
    """Σ coefficients[k] q^k, for arrays and for single numbers."""
    if len(coefficients) == 1:
        only = coefficients[0]
        return np.full(q.shape, only, dtype=q.dtype) if isinstance(q, np.ndarray) else q * 0 + only
    total = q * coefficients[-1]
    for coefficient in coefficients[-2:0:-1]:
        total = (total + coefficient) * q
    return total + coefficients[0]


def to_context(value: fmpq, context: Any) -> Any:
    """A rational as a number of an mpmath context."""
    return context.mpf(int(value.p)) / int(value.q)


def real_roots(polynomial: fmpq_poly, digits: int) -> list[Any]:
    """The real roots, ascending, as mpmath numbers, each to `digits` and a few more.

    Raises:
        ConvergenceError: when Newton does not settle at the largest working precision.
    """
    return [refined(part, start, digits) for part, start in isolated(polynomial)]


class Start(NamedTuple):
    """A number next to a root, and the power of two within which the root is the only one."""

    number: Wide
    within: int


def isolated(polynomial: fmpq_poly) -> list[tuple[WidePolynomial, Start]]:
    """(squarefree factor, start) of each real root, ascending; disks with one root each, proved by flint.

    The search for all complex roots in flint takes seconds when their sizes are hundreds of bits apart; signs of
    coefficients isolate the real ones then.
    """
    if polynomial.degree() < 1:
        return []
    found = []
    for part, _ in _squarefree(polynomial):
        wide = WidePolynomial(part)
        found += [(wide, start) for start in (_by_signs(part) if _is_spread(part) else _by_disks(part))]
    return sorted(found, key=lambda pair: fmpq(pair[1].number.real) * fmpq(2) ** pair[1].number.exponent)


def _is_spread(polynomial: fmpq_poly) -> bool:
    if polynomial.degree() < 3 or polynomial[0] == 0:
        return False
    least, most = sizes_of_roots(polynomial)
    return most - least > _MOST_SPREAD


def _by_disks(polynomial: fmpq_poly) -> list[Start]:
    # exact real roots come with an imaginary part that is exactly zero
    balls = [root.real for root, _ in polynomial.complex_roots() if root.imag == 0]
    return [Start(_exact(ball.mid()), _exact(ball.rad()).top) for ball in balls]


def _by_signs(polynomial: fmpq_poly) -> list[Start]:
    starts = []
    for sign in (-1, 1):
        for low, high in positive_roots(polynomial(fmpq_poly([0, sign]))):
            middle, bits = sign * (low + high) / 2, max(int(low.p).bit_length(), int(high.p).bit_length()) + 2
            starts.append(Start(from_number(middle, bits), from_number(high - low, bits).top))
    return starts


def _exact(ball: Any) -> Wide:
    mantissa, exponent = ball.man_exp()
    return Wide(int(mantissa), 0, int(exponent))


def refined(polynomial: WidePolynomial, start: Start, digits: int) -> Any:
    """A real root from its start, as an mpmath number of `digits` and a few more, by Newton's method.

    The precision doubles from step to step; a step that leads away from the start is rounding and is not taken. Close
    or very unequal roots cost digits: the precision doubles further until a step changes nothing that was asked for.

    Raises:
        ConvergenceError: when no step does up to the largest working precision.
    """
    context, wanted = own_context(digits + 2 * _GUARD_DIGITS), bits_of(digits + _GUARD_DIGITS)
    if start.number == ZERO:
        return context.zero
    full = wanted + _GUARD_BITS
    root, bits, size = start.number, min(_START_BITS, full), 0
    while bits <= full << _DOUBLINGS:
        slope = polynomial.slope(root, bits)
        if slope.is_zero:  # nothing is left of it at this precision; a root of a squarefree polynomial is simple
            bits *= 2
            continue
        step = divided(polynomial(root, bits), slope, bits)
        before, size = size, step.top - root.top
        moved = difference(root, step, bits)
        if difference(moved, start.number, bits).top <= start.within + _LEEWAY:
            root = moved
        if bits >= full and size <= -wanted:
            return to_number(root, context)
        if bits < full:
            bits = min(2 * bits, full)
        elif size >= before:
            bits *= 2
    raise ConvergenceError(
        "refinement of a real root", power_of_two(size), 10.0**-digits, "report the specification"
    )
