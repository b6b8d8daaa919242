"""Rational enclosures of numbers: every weight of an equation as an interval with rational ends.

Sums, products and quotients are exact; square roots and exponentials are rounded outwards. A rational number is
enclosed by itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import reduce
from math import isqrt
from typing import Any

import sympy as sp
from flint import fmpq
from mpmath.ctx_iv import MPIntervalContext

from freeattn.errors import CertificationError

__all__ = ["BITS_PER_DIGIT", "Enclosure", "double_of", "enclosed", "exactly", "exponential", "rounded"]

BITS_PER_DIGIT = 3.33  # log2(10), rounded up


@dataclass(frozen=True, eq=False)
class Enclosure:
    """[low, high]; equal only to a number that it holds alone."""

    low: fmpq
    high: fmpq

    def __add__(self, other: Any) -> Enclosure:
        other = exactly(other)
        return Enclosure(self.low + other.low, self.high + other.high)

    __radd__ = __add__

    def __neg__(self) -> Enclosure:
        return Enclosure(-self.high, -self.low)

    def __sub__(self, other: Any) -> Enclosure:
        return self + -exactly(other)

    def __rsub__(self, other: Any) -> Enclosure:
        return exactly(other) + -self

    def __mul__(self, other: Any) -> Enclosure:
        other = exactly(other)
        if self.exact and other.exact:
            return exactly(self.low * other.low)
        ends = [a * b for a in (self.low, self.high) for b in (other.low, other.high)]
        return Enclosure(min(ends), max(ends))

    __rmul__ = __mul__

    def inverse(self) -> Enclosure:
        if self.low <= 0 <= self.high:
            raise CertificationError("a weight is divided by a number that may be 0")
        return Enclosure(1 / self.high, 1 / self.low)

    def __truediv__(self, other: Any) -> Enclosure:
        return self * exactly(other).inverse()

    def __rtruediv__(self, other: Any) -> Enclosure:
        return exactly(other) * self.inverse()

    def __eq__(self, other: object) -> bool:
        return self.exact and bool(self.low == exactly(other).low)

    __hash__ = None  # type: ignore[assignment]

    @property
    def middle(self) -> fmpq:
        return (self.low + self.high) / 2

    @property
    def exact(self) -> bool:
        return bool(self.low == self.high)


def double_of(value: fmpq) -> float:
    """The nearest double."""
    return int(value.p) / int(value.q)


def exactly(value: Any) -> Enclosure:
    """A number as its own enclosure: Enclosure, fmpq, int, or a double as its binary value."""
    if isinstance(value, Enclosure):
        return value
    if not isinstance(value, fmpq):
        top, bottom = value.as_integer_ratio() if hasattr(value, "as_integer_ratio") else (int(value), 1)
        value = fmpq(int(top), int(bottom))
    return Enclosure(value, value)


def rounded(value: Enclosure, digits: int) -> tuple[fmpq, fmpq]:
    """(centre, radius): the middle, as a short number."""
    bits = int(digits * BITS_PER_DIGIT) + 10
    middle = (value.low + value.high) / 2
    if value.exact and max(int(middle.p).bit_length(), int(middle.q).bit_length()) <= bits:
        return middle, fmpq(0)
    shift = bits - int(middle.p).bit_length() + int(middle.q).bit_length()
    scale = fmpq(1 << shift) if shift >= 0 else 1 / fmpq(1 << -shift)
    scaled = middle * scale
    centre = fmpq(int(scaled.p) // int(scaled.q)) / scale
    return centre, max(value.high - centre, centre - value.low)


def enclosed(expression: sp.Expr, values: Mapping[sp.Symbol, Enclosure], digits: int) -> Enclosure:
    """An expression of rational numbers, symbols with enclosures, sums, products, rational powers and exponentials.

    Raises:
        CertificationError: when it holds anything else.
    """
    if expression.is_Rational:
        return exactly(fmpq(int(expression.p), int(expression.q)))
    if expression in values:
        return values[expression]
    if isinstance(expression, sp.Float):
        return exactly(fmpq(*(int(part) for part in sp.Rational(expression).as_numer_denom())))
    if isinstance(expression, (sp.Add, sp.Mul)):
        parts = [enclosed(part, values, digits) for part in expression.args]
        return reduce(lambda a, b: a + b if isinstance(expression, sp.Add) else a * b, parts)
    if expression is sp.pi:
        context = MPIntervalContext()
        context.dps = digits + 10
        return Enclosure(*(_dyadic(end) for end in context.mpf(context.pi)._mpi_))
    if expression is sp.E:
        return exponential(exactly(1), digits)
    if isinstance(expression, sp.exp):
        return exponential(enclosed(expression.args[0], values, digits), digits)
    if isinstance(expression, sp.Pow) and expression.exp.is_Rational:
        return _power(enclosed(expression.base, values, digits), expression.exp, digits)
    raise CertificationError(f"no enclosure of the weight {expression}")


def _power(base: Enclosure, power: sp.Rational, digits: int) -> Enclosure:
    if power.q not in (1, 2):
        raise CertificationError(f"no enclosure of a power {power}")
    root = base if power.q == 1 else Enclosure(_root(base.low, digits, 0), _root(base.high, digits, 1))
    result = reduce(lambda a, b: a * b, [root] * abs(int(power.p)), exactly(1))
    return result if power.p >= 0 else result.inverse()


def _root(value: fmpq, digits: int, up: int) -> fmpq:
    """√value rounded down, or up; exact where it is rational."""
    if value < 0:
        raise CertificationError("the square root of a negative weight")
    top, bottom = int(value.p), int(value.q)
    if isqrt(top) ** 2 == top and isqrt(bottom) ** 2 == bottom:
        return fmpq(isqrt(top), isqrt(bottom))
    shift = max(0, int(digits * BITS_PER_DIGIT) + 10 + (bottom.bit_length() - top.bit_length()) // 2)
    return fmpq(isqrt((top << (2 * shift)) // bottom) + up, 1 << shift)


def exponential(value: Enclosure, digits: int) -> Enclosure:
    """e^value, by an interval context of its own."""
    context = MPIntervalContext()
    context.dps = digits + 10
    low, high = (context.exp(context.mpf(int(end.p)) / context.mpf(int(end.q))) for end in (value.low, value.high))
    return Enclosure(_dyadic(low._mpi_[0]), _dyadic(high._mpi_[1]))


def _dyadic(raw: Any) -> fmpq:
    """The value of an mpmath tuple (sign, mantissa, exponent, bits)."""
    sign, mantissa, exponent, _ = raw
    size = fmpq(int(mantissa)) * (fmpq(1 << exponent) if exponent >= 0 else 1 / fmpq(1 << -exponent))
    return -size if sign else size
