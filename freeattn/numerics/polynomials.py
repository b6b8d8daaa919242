"""Exact tools for polynomials over Q: products of powers, common roots, Taylor shifts, roots to many digits."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from flint import fmpq, fmpq_poly
from numpy.typing import NDArray

from freeattn.errors import ConvergenceError
from freeattn.model.precision import own_context

__all__ = [
    "as_fmpq",
    "coprime_powers",
    "derivative_of_logarithm",
    "real_roots",
    "shifted",
    "to_context",
    "to_doubles",
]

Factors = tuple[tuple[fmpq_poly, int], ...]
_NEWTON_STEPS = 60
_GUARD_DIGITS = 10
_DOUBLINGS = 7  # up to 128 times the digits asked for


def as_fmpq(value: Any) -> fmpq:
    """A rational number of another library that has p and q."""
    return fmpq(int(value.p), int(value.q))


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


def to_context(value: fmpq, context: Any) -> Any:
    """A rational as a number of an mpmath context."""
    return context.mpf(int(value.p)) / int(value.q)


def real_roots(polynomial: fmpq_poly, digits: int) -> list[Any]:
    """The real roots, ascending, as mpmath numbers, each to `digits` and a few more.

    Isolation is certified (python-flint); refinement is Newton on the squarefree part, in the precision that it needs.

    Raises:
        ConvergenceError: when Newton does not settle at the largest working precision.
    """
    if polynomial.degree() < 1:
        return []
    found: list[Any] = []
    for part, _ in _squarefree(polynomial):
        # exact real roots come with an imaginary part that is exactly zero
        starts = [root.real for root, _ in part.complex_roots() if root.imag == 0]
        found += [_refined(part, start, digits + _GUARD_DIGITS) for start in starts]
    return sorted(found)


def _refined(polynomial: fmpq_poly, start: Any, digits: int) -> Any:
    """Close or very unequal roots cost digits: the working precision doubles until Newton settles to `digits`."""
    for doubling in range(_DOUBLINGS):
        context = own_context((digits + _GUARD_DIGITS) * 2**doubling)
        root, step = _newton(polynomial, start, digits, context)
        if step <= context.mpf(10) ** (-digits) * abs(root):
            return root
    raise ConvergenceError(
        "refinement of a real root", float(step / abs(root)), 10.0**-digits, "report the specification"
    )


def _newton(polynomial: fmpq_poly, start: Any, digits: int, context: Any) -> tuple[Any, Any]:
    """(root, size of the last step) when the steps are small enough or stop shrinking."""
    coefficients: Sequence[Any] = [to_context(c, context) for c in reversed(polynomial.coeffs())]
    mantissa, exponent = start.mid().man_exp()
    root = context.mpf(int(mantissa)) * context.mpf(2) ** int(exponent)
    size = context.inf
    for _ in range(_NEWTON_STEPS):
        value, slope = context.polyval(coefficients, root, derivative=1)
        if value == 0:
            return root, context.zero
        step = value / slope
        root -= step
        if abs(step) >= size or abs(step) <= context.mpf(10) ** (-digits) * abs(root):
            return root, abs(step)
        size = abs(step)
    return root, size
