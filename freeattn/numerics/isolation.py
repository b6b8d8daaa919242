"""Isolation of real roots by Descartes' rule of signs, exact, for roots whose sizes are hundreds of bits apart.

The number of sign changes in the coefficients of (1 + y)^n p((a + b y)/(1 + y)) is the number of roots of p in (a, b),
or more by an even number; it is 0 or 1 once the interval is small enough (Vincent's theorem, as bisection by Collins
and Akritas). The first halvings are of exponents: as many as the logarithm of the spread of the roots.
"""

from __future__ import annotations

from itertools import pairwise

from flint import fmpq, fmpq_poly

__all__ = ["positive_roots", "sizes_of_roots"]

_CLOSER = 64  # bits by which an interval is cut beyond isolation: Newton's method starts from its middle


def sizes_of_roots(polynomial: fmpq_poly) -> tuple[int, int]:
    """(a, b) with 2^a < |root| < 2^b for every root (Fujiwara's bound, also of the inverses); p(0) ≠ 0."""
    numbers = [int(c) for c in polynomial.numer().coeffs()]
    return -_bound(numbers[::-1]), _bound(numbers)


def _bound(numbers: list[int]) -> int:
    degree, leading = len(numbers) - 1, abs(numbers[-1]).bit_length() - 1
    shares = [
        -((leading - abs(c).bit_length()) // (degree - k)) for k, c in enumerate(numbers[:-1]) if c
    ]
    return 1 + max(shares, default=0)


def positive_roots(polynomial: fmpq_poly) -> list[tuple[fmpq, fmpq]]:
    """(low, high) around each positive root, ascending and disjoint; a squarefree polynomial with p(0) ≠ 0.

    An interval is 2^-64 of one that has no other root, or (root, root).
    """
    least, most = sizes_of_roots(polynomial)
    waiting, found = [(fmpq(2) ** least, fmpq(2) ** most)], []
    while waiting:
        low, high = waiting.pop()
        changes = _sign_changes(polynomial, low, high)
        if changes == 1:
            found.append(_closer(polynomial, low, high))
        elif changes > 1:
            middle = _between(low, high)
            if polynomial(middle) == 0:
                found.append((middle, middle))
            waiting += [(low, middle), (middle, high)]
    return sorted(found, key=lambda interval: interval[0])


def _between(low: fmpq, high: fmpq) -> fmpq:
    """A power of two near the geometric mean of ends far apart, else the middle."""
    spread = _exponent(high) - _exponent(low)
    return fmpq(2) ** (_exponent(low) + spread // 2) if spread > 2 else (low + high) / 2


def _exponent(value: fmpq) -> int:
    return int(value.p).bit_length() - int(value.q).bit_length()


def _sign_changes(polynomial: fmpq_poly, low: fmpq, high: fmpq) -> int:
    degree = polynomial.degree()
    moved = polynomial(fmpq_poly([low, high - low])).numer().coeffs()
    moved += [0] * (degree + 1 - len(moved))
    signs = [c > 0 for c in fmpq_poly(moved[::-1])(fmpq_poly([1, 1])).numer().coeffs() if c != 0]
    return sum(one != other for one, other in pairwise(signs))


def _closer(polynomial: fmpq_poly, low: fmpq, high: fmpq) -> tuple[fmpq, fmpq]:
    """The one root strictly between two ends, to many bits of itself and of the distance of the ends."""
    rising = polynomial(high) > 0 or polynomial(low) < 0
    narrow = (high - low) / 2**_CLOSER
    while high - low > min(narrow, abs(low) / 2**_CLOSER):
        middle = _between(low, high)
        value = polynomial(middle)
        if value == 0:
            return middle, middle
        low, high = (low, middle) if (value > 0) == rising else (middle, high)
    return low, high
