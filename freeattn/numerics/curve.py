"""A rational curve in doubles, expanded about one rational origin so that nothing cancels near it."""

from __future__ import annotations

import cmath
from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np
from flint import fmpq, fmpq_poly
from numpy.typing import NDArray

from freeattn.errors import NotCoveredError
from freeattn.numerics.branch import BranchTest, centered
from freeattn.numerics.compile import CompiledCurve, RationalFunction
from freeattn.numerics.polynomials import coprime_powers, horner, shifted, to_doubles
from freeattn.numerics.roots import AllRoots
from freeattn.numerics.wide import WideProduct

__all__ = ["Chart", "ExactCurve"]

Complex = NDArray[np.complex128]
Numbers = Any  # arrays, real or complex: real q stay real; or one complex number
Factors = tuple[tuple[fmpq_poly, int], ...]

_EXACT_ZERO = fmpq(1, 10**35)  # a constant term this far below the polynomial's size is the origin's rounding: a root


class ExactCurve:
    """x(q) and m(q) as constants times products of powers of coprime squarefree polynomials over Q."""

    def __init__(self, compiled: CompiledCurve) -> None:
        self.constant, self.point = coprime_powers(compiled.point)
        self.stieltjes_constant, self.stieltjes = coprime_powers(compiled.stieltjes)
        self.psi: RationalFunction = compiled.psi
        self.branch = compiled.branch

    @cached_property
    def wide_point(self) -> WideProduct:
        """x(q) to any number of bits."""
        return WideProduct(self.constant, self.point)

    @cached_property
    def wide_stieltjes(self) -> WideProduct:
        """m(q) to any number of bits."""
        return WideProduct(self.stieltjes_constant, self.stieltjes)

    @property
    def residue(self) -> fmpq:
        """lim q·x(q) at q → 0, where x = ∞."""
        total = self.constant
        for polynomial, power in self.point:
            lowest = next(k for k, c in enumerate(polynomial.coeffs()) if c != 0)
            total *= polynomial.coeffs()[lowest] ** power
        return total

    @property
    def point_at_infinity(self) -> fmpq:
        """lim x(q) at q → ∞, when it is finite."""
        return _limit(self.constant, self.point)

    @property
    def stieltjes_at_infinity(self) -> fmpq:
        """lim m(q) at q → ∞, when it is finite."""
        return _limit(self.stieltjes_constant, self.stieltjes)

    def point_exactly(self, q: fmpq) -> tuple[fmpq, fmpq]:
        """(x, x') at a rational q that is neither a zero nor a pole."""
        x, log_slope = self.constant, fmpq(0)
        for polynomial, power in self.point:
            value = polynomial(q)
            x *= value**power
            log_slope += power * polynomial.derivative()(q) / value
        return x, x * log_slope


def _limit(constant: fmpq, factors: Factors) -> fmpq:
    degree = sum(polynomial.degree() * power for polynomial, power in factors)
    if degree > 0:
        raise NotCoveredError("the curve is infinite at an infinite parameter; write the law in another order")
    total = constant if degree == 0 else fmpq(0)
    for polynomial, power in factors:
        total *= polynomial.leading_coefficient() ** power
    return total


class Chart:
    """The curve as a function of δ = q − origin, in doubles.

    The coefficients are shifted exactly and rounded once. When the origin is a root of x(q), taken to many more digits
    than a double has, x keeps full relative accuracy down to the smallest |δ|.
    """

    def __init__(self, curve: ExactCurve, origin: fmpq) -> None:
        self.origin = origin
        self.origin_double = int(origin.p) / int(origin.q)
        self._constant = int(curve.constant.p) / int(curve.constant.q)
        self._point = _doubles(curve.point, origin)
        self._m_constant = int(curve.stieltjes_constant.p) / int(curve.stieltjes_constant.q)
        self._stieltjes = _doubles(curve.stieltjes, origin)
        self._psi = centered(curve.psi, fmpq(1), origin)[1]
        self.test = None if curve.branch is None else BranchTest(curve.branch, curve.psi, origin)
        self.roots = AllRoots(curve.constant, curve.point, origin)

    def point(self, delta: Numbers) -> tuple[Numbers, Numbers]:
        """(x, x'/x) at δ."""
        values: list[tuple[Numbers, int]] = []
        slope: Any = 0.0
        for coefficients, derivative, power in self._point:
            value = horner(coefficients, delta)
            values.append((value, power))
            slope = slope + (power * horner(derivative, delta)) / value
        return _powers(values, self._constant), slope

    def stieltjes(self, delta: Numbers) -> Numbers:
        """m at δ (at the conjugate of the spectral point: Im m < 0 becomes Im m > 0 after conjugation)."""
        return _powers([(horner(c, delta), power) for c, _, power in self._stieltjes], self._m_constant)

    def density(self, delta: Complex, x: NDArray[np.float64]) -> NDArray[np.float64]:
        """ρ(x) = Im m/π at real x inside a band, from m = −(1 + ψ)/x: next to an atom at 0 the real part of m towers
        over Im m, but Im ψ keeps its accuracy."""
        return self._psi(delta).imag / (np.pi * x)

    def newton_step(self, delta: Numbers, x: Numbers) -> tuple[Numbers, Any]:
        """(step, relative residual) of Newton's method for log x(δ) = log x."""
        value, slope = self.point(delta)
        quotient = x / value
        log = cmath.log(quotient) if isinstance(quotient, complex) else np.log(quotient)
        return log / slope, abs(quotient - 1)


def _powers(values: Sequence[tuple[Numbers, int]], constant: float) -> Numbers:
    """constant · ∏ value^power by multiplications and one division."""
    top: Any = constant
    bottom: Any = 1.0
    for value, power in values:
        for _ in range(abs(power)):
            top, bottom = (top * value, bottom) if power > 0 else (top, bottom * value)
    result: Numbers = top / bottom
    return result


def _doubles(factors: Factors, origin: fmpq) -> tuple[tuple[list[float], list[float], int], ...]:
    """(coefficients, those of the derivative, power) of each factor, as polynomials in δ."""
    converted = []
    for polynomial, power in factors:
        coefficients = shifted(polynomial, origin).coeffs()
        if coefficients and abs(coefficients[0]) < _EXACT_ZERO * max(abs(c) for c in coefficients):
            coefficients[0] = fmpq(0)
        moved = fmpq_poly(coefficients)
        converted.append((to_doubles(moved).tolist(), to_doubles(moved.derivative()).tolist(), power))
    return tuple(converted)
