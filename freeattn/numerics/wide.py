"""Complex numbers of any number of bits as integers with a common power of two, and polynomials at them.

Precision is an argument of every operation: a Newton iteration can double it from step to step, and there is no context
to make, to share or to change. Rounding is downwards, by one unit in the last place of the larger part.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

from flint import fmpq, fmpq_poly, fmpz
from mpmath import libmp

from freeattn.model.quantities import binary_of

__all__ = [
    "ZERO",
    "Wide",
    "WidePolynomial",
    "WideProduct",
    "bits_of",
    "difference",
    "divided",
    "from_number",
    "plus",
    "power_of_two",
    "to_number",
]

Coefficients = list[tuple[int, int]]
Factors = Sequence[tuple[fmpq_poly, int]]

_BITS_PER_DIGIT = 3.3219280948873626  # log2(10)
_NOTHING = -(1 << 40)
_DOUBLE_BITS = 53
_LONG_BITS = 500  # from here on flint multiplies faster than Python; its integers take the place of all they meet
_DOUBLE = 2.0**_DOUBLE_BITS


class Wide(NamedTuple):
    """(real + i·imag)·2^exponent."""

    real: int
    imag: int
    exponent: int

    @property
    def top(self) -> int:
        """The least k with both parts below 2^k; a very small number for 0."""
        length = max(self.real.bit_length(), self.imag.bit_length())
        return length + self.exponent if length else _NOTHING

    @property
    def is_zero(self) -> bool:
        """Whether both parts are 0, whatever the exponent."""
        return not (self.real or self.imag)

    def __complex__(self) -> complex:
        """The nearest double, 0 or infinite parts where doubles end."""
        real, imag, exponent = rounded(self, 64)
        return complex(_double(real, exponent), _double(imag, exponent))


ZERO = Wide(0, 0, 0)


def bits_of(digits: int) -> int:
    """Bits that hold the given decimal digits."""
    return int(digits * _BITS_PER_DIGIT) + 1


def power_of_two(exponent: int) -> float:
    """2^exponent as a double, 0 or infinite where doubles end."""
    return _double(1, exponent)


def _double(mantissa: int, exponent: int) -> float:
    return float(libmp.to_float(libmp.from_man_exp(int(mantissa), exponent)))


def rounded(a: Wide, bits: int) -> Wide:
    """The larger part cut to `bits` bits."""
    real, imag, exponent = a
    excess = max(real.bit_length(), imag.bit_length()) - bits
    return Wide(real >> excess, imag >> excess, exponent + excess) if excess > 0 else a


def times(a: Wide, b: Wide, bits: int) -> Wide:
    """a·b."""
    real, imag = a.real * b.real - a.imag * b.imag, a.real * b.imag + a.imag * b.real
    excess = max(real.bit_length(), imag.bit_length()) - bits
    if excess > 0:
        return Wide(real >> excess, imag >> excess, a.exponent + b.exponent + excess)
    return Wide(real, imag, a.exponent + b.exponent)


def plus(a: Wide, b: Wide, bits: int) -> Wide:
    """a + b; what lies `bits` below the larger one is left out."""
    if a.exponent < b.exponent:
        a, b = b, a
    gap = a.exponent - b.exponent
    if gap > 4 * bits and a.top - b.top > bits:
        return a
    return rounded(Wide((a.real << gap) + b.real, (a.imag << gap) + b.imag, b.exponent), bits)


def difference(a: Wide, b: Wide, bits: int) -> Wide:
    """a − b."""
    return plus(a, Wide(-b.real, -b.imag, b.exponent), bits)


def divided(a: Wide, b: Wide, bits: int) -> Wide:
    """a/b, b ≠ 0."""
    real, imag = a.real * b.real + a.imag * b.imag, a.imag * b.real - a.real * b.imag
    size = b.real * b.real + b.imag * b.imag
    shift = max(bits + size.bit_length() - max(real.bit_length(), imag.bit_length()), 0)
    return Wide((real << shift) // size, (imag << shift) // size, a.exponent - b.exponent - shift)


def power(a: Wide, exponent: int, bits: int) -> Wide:
    """a^exponent, exponent > 0."""
    result = a
    for _ in range(exponent - 1):
        result = times(result, a, bits)
    return result


def from_number(value: Any, bits: int) -> Wide:
    """A float, complex, rational or mpmath number, cut to `bits` bits."""
    if hasattr(value, "_mpc_"):
        real, imag = (from_number(part, bits) for part in (value.real, value.imag))
        return plus(real, Wide(0, imag.real, imag.exponent), bits)
    if hasattr(value, "_mpf_"):
        mantissa, exponent = binary_of(value)
        return rounded(Wide(mantissa, 0, exponent), bits)
    if isinstance(value, complex):
        return plus(from_number(value.real, bits), times(from_number(value.imag, bits), Wide(0, 1, 0), bits), bits)
    if isinstance(value, float):
        share, power = math.frexp(value)
        return Wide(int(share * _DOUBLE), 0, power - _DOUBLE_BITS)
    return divided(Wide(int(value.p), 0, 0), Wide(int(value.q), 0, 0), bits) if value else ZERO


def to_number(a: Wide, context: Any) -> Any:
    """As a number of an mpmath context, rounded to its precision; complex unless the imaginary part is 0."""
    real = context.make_mpf(libmp.from_man_exp(int(a.real), a.exponent, context.prec, "n"))
    if not a.imag:
        return real
    return context.mpc(real, context.make_mpf(libmp.from_man_exp(int(a.imag), a.exponent, context.prec, "n")))


class WidePolynomial:
    """A polynomial with rational coefficients, without its common denominator, to be evaluated at wide numbers."""

    def __init__(self, polynomial: fmpq_poly) -> None:
        self.denominator = int(polynomial.denom())
        self._exact = [int(c) for c in polynomial.numer().coeffs()]
        self._slope = [k * c for k, c in enumerate(self._exact)][1:]
        self._is_q = self._exact == [0, 1]
        self._cut: dict[int, tuple[Coefficients, Coefficients]] = {}

    def __call__(self, q: Wide, bits: int) -> Wide:
        """The value times the denominator."""
        if self._is_q:
            return q
        return _horner(self._at(bits)[0], rounded(q, bits), bits)

    @property
    def vanishes_at_zero(self) -> bool:
        """Whether 0 is a root, exactly."""
        return not self._exact[0]

    def slope(self, q: Wide, bits: int) -> Wide:
        """The derivative times the denominator."""
        return _horner(self._at(bits)[1], rounded(q, bits), bits)

    def _at(self, bits: int) -> tuple[Coefficients, Coefficients]:
        if bits not in self._cut:
            self._cut[bits] = _normalized(self._exact, bits), _normalized(self._slope, bits)
        return self._cut[bits]


def _normalized(coefficients: Sequence[int], bits: int) -> Coefficients:
    """(mantissa of exactly `bits` bits, exponent), so that the last bit is the rounding of each."""
    shifts = [c.bit_length() - bits for c in coefficients]
    number = fmpz if bits >= _LONG_BITS else int
    return [(number(c >> s if s > 0 else c << -s), s) for c, s in zip(coefficients, shifts, strict=True)]


def _horner(coefficients: Coefficients, q: Wide, bits: int) -> Wide:
    """The value at q of as many bits, a bit or two longer."""
    if not coefficients:
        return ZERO
    real, exponent = coefficients[-1]
    imag, (q_real, q_imag, q_exponent) = 0, q
    for mantissa, place in coefficients[-2::-1]:
        real, imag, exponent = real * q_real - imag * q_imag, real * q_imag + imag * q_real, exponent + q_exponent
        excess = max(real.bit_length(), imag.bit_length()) - bits
        if excess > 0:
            real, imag, exponent = real >> excess, imag >> excess, exponent + excess
        gap = place - exponent
        if not mantissa or gap < -bits:
            continue
        if gap > bits:  # all so far is below the last bit of this coefficient
            real, imag, exponent = mantissa, 0, place
        else:
            real += mantissa << gap if gap >= 0 else mantissa >> -gap
    return Wide(real, imag, exponent)


class WideProduct:
    """constant · ∏ f_i^{e_i} over Q, evaluated at wide numbers."""

    def __init__(self, constant: fmpq, factors: Factors) -> None:
        self._factors = [(WidePolynomial(polynomial), exponent) for polynomial, exponent in factors]
        for polynomial, exponent in self._factors:
            constant *= fmpq(polynomial.denominator) ** -exponent
        self._constant = constant

    def __call__(self, q: Wide, bits: int) -> Wide:
        """The value; `ZeroDivisionError` at a pole."""
        return self.product(self.values(q, bits), bits)

    def values(self, q: Wide, bits: int) -> list[Wide]:
        """The factors."""
        q = rounded(q, bits)
        return [polynomial(q, bits) for polynomial, _ in self._factors]

    def product(self, values: Sequence[Wide], bits: int) -> Wide:
        """The value from those of the factors; `ZeroDivisionError` at a pole."""
        top, bottom = Wide(int(self._constant.p), 0, 0), Wide(int(self._constant.q), 0, 0)
        for (_, exponent), factor in zip(self._factors, values, strict=True):
            value = power(factor, abs(exponent), bits)
            if exponent > 0:
                top = times(top, value, bits)
            else:
                bottom = times(bottom, value, bits)
        return divided(top, bottom, bits)

    def log_slope(self, q: Wide, bits: int, values: Sequence[Wide] | None = None) -> Wide:
        """The logarithmic derivative Σ e_i f_i'/f_i; values of the factors may be known."""
        total, q = ZERO, rounded(q, bits)
        for (polynomial, exponent), value in zip(self._factors, values or self.values(q, bits), strict=True):
            term = divided(polynomial.slope(q, bits), rounded(value, bits), bits)
            total = plus(total, Wide(term.real * exponent, term.imag * exponent, term.exponent), bits)
        return total
