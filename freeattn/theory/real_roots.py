"""Real roots of integer polynomials as algebraic numbers: an irreducible polynomial and an isolating interval."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from flint import fmpq, fmpz_poly

from freeattn.errors import ConvergenceError
from freeattn.model.precision import own_context
from freeattn.model.quantities import binary_of
from freeattn.theory.given_values import positive_integer

__all__ = ["AlgebraicNumber", "real_roots"]

_GUARD_DIGITS = 10
_DOUBLINGS = 6  # of the working precision, for roots that are close to one another
_NEWTON_STEPS = 60


@dataclass(frozen=True)
class AlgebraicNumber:
    """The only root of an irreducible integer polynomial in an interval; both ends are the root when it is rational.

    Attributes:
        polynomial: coefficients from the constant on.
        lower, upper: the interval.
        multiplicity: how often it is a root of the polynomial that was asked about.
    """

    polynomial: tuple[int, ...]
    lower: Fraction
    upper: Fraction
    multiplicity: int = 1

    def enclosed(self, digits: int) -> AlgebraicNumber:
        """The same number in an interval no wider than 10^−digits of its size; the signs at its ends are exact.

        Raises:
            InputError: for digits that are not a positive integer.
            ConvergenceError: when Newton's method does not reach it.
        """
        digits = positive_integer("digits", digits)
        if self.lower == self.upper or self.upper - self.lower <= abs(self.lower) * Fraction(1, 10**digits):
            return self
        for doubling in range(_DOUBLINGS):
            middle = self._newton((digits + _GUARD_DIGITS) * 2**doubling)
            radius = abs(middle) * Fraction(1, 3 * 10**digits)
            lower, upper = max(self.lower, middle - radius), min(self.upper, middle + radius)
            if lower < upper and _value(self.polynomial, lower) * _value(self.polynomial, upper) < 0:
                return replace(self, lower=lower, upper=upper)
        raise ConvergenceError("refinement of a branch point", None, 10.0**-digits, "ask for fewer digits")

    def value(self, digits: int) -> Any:
        """The number as an mpmath number of the given digits; errors as for `enclosed`."""
        digits = positive_integer("digits", digits)
        inside, context = self.enclosed(digits + 1), own_context(digits)
        middle = (inside.lower + inside.upper) / 2
        return context.mpf(middle.numerator) / middle.denominator

    def _newton(self, digits: int) -> Fraction:
        context = own_context(digits)
        coefficients = [context.mpf(c) for c in reversed(self.polynomial)]
        middle = (self.lower + self.upper) / 2
        root = context.mpf(middle.numerator) / middle.denominator
        for _ in range(_NEWTON_STEPS):
            value, slope = context.polyval(coefficients, root, derivative=1)
            if value == 0 or slope == 0 or abs(step := value / slope) <= abs(root) * context.eps:
                break
            root -= step
        mantissa, exponent = binary_of(root)
        return mantissa * Fraction(2) ** exponent


def real_roots(polynomial: fmpz_poly) -> tuple[AlgebraicNumber, ...]:
    """The distinct real roots, ascending; isolation is certified by python-flint."""
    found = []
    for factor, multiplicity in polynomial.factor()[1]:
        coefficients = tuple(int(c) for c in factor.coeffs())
        if factor.degree() == 1:
            root = Fraction(-coefficients[0], coefficients[1])
            found.append(AlgebraicNumber(coefficients, root, root, multiplicity))
        elif factor.degree() > 1:
            balls = (ball.real for ball, _ in factor.complex_roots() if ball.imag == 0)  # exactly zero for real roots
            found += [AlgebraicNumber(coefficients, *_ends(ball), multiplicity) for ball in balls]
    return tuple(sorted(found, key=lambda root: root.lower))


def _ends(ball: Any) -> tuple[Fraction, Fraction]:
    middle, radius = _dyadic(ball.mid()), _dyadic(ball.rad())
    return middle - radius, middle + radius


def _dyadic(number: Any) -> Fraction:
    mantissa, exponent = number.man_exp()
    return int(mantissa) * Fraction(2) ** int(exponent)


def _value(polynomial: tuple[int, ...], point: Fraction) -> fmpq:
    """The exact value at a rational point."""
    total, x = fmpq(0), fmpq(point.numerator, point.denominator)
    for coefficient in reversed(polynomial):
        total = total * x + coefficient
    return total
