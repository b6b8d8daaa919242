"""The minimal polynomial of m(z) over Q(z), from its power series at infinity modulo primes.

The products z^i m^j are power series in u = 1/z once they are multiplied by a power of u. Those with i ≤ A and
−L ≤ j − i ≤ B are compared, because z m stays bounded at infinity and curves of laws are narrow in j − i. If more
coefficients are compared than there are products, their linear relations modulo a prime are the multiples of the
minimal polynomial P that fit. In the order of columns by j, then by i, the first column that depends on those before it
gives P itself: every multiple of P has a later leading term.

The support of P is taken from two primes. Then primes are collected until Chinese remainders and rational
reconstruction give one polynomial that the next prime confirms. It is verified with a prime of its own and further
terms of the series.

Source: the method of algebraic guessing, e.g. Bostan-Kauers, FPSAC 2009, section 2; rational reconstruction after
Wang, SYMSAC 1981.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import gcd, isqrt
from typing import Any, Protocol

from flint import fmpz, nmod_mat, nmod_poly

from freeattn.errors import ConvergenceError, NotCoveredError
from freeattn.theory.modular_series import BadPrimeError

__all__ = ["Coefficients", "annihilates", "minimal_polynomial"]

Monomial = tuple[int, int]  # powers of z and of m
Coefficients = dict[Monomial, int]

_SHAPES = (  # (A, L, B) that are tried
    (2, 1, 2), (4, 1, 3), (8, 1, 3), (8, 2, 6), (16, 1, 4), (16, 2, 8), (24, 2, 8), (24, 4, 12), (36, 2, 10),
    (36, 6, 18), (48, 4, 14), (64, 4, 16), (48, 8, 24),
)
_SPARE_ROWS = 12  # coefficients compared beyond the number of unknowns: a chance relation has probability p^−12
_FURTHER = 1.25  # the verification sees so many times the coefficients that the polynomial was found from
_FIRST_PRIME = 2**62
_MOST_PRIMES = 4000


class Series(Protocol):
    """m as a power series in u = 1/z, modulo any prime but a few."""

    def output(self, order: int, prime: int) -> Any:
        """m modulo u^{order + 1} and the prime, an `nmod_poly`; BadPrimeError for a prime that does not do."""


def minimal_polynomial(series: Series) -> Coefficients:
    """The coefficients of P, integers without common factor, P(z, m(z)) = 0.

    Raises:
        NotCoveredError: when no polynomial fits the shapes that are tried.
        ConvergenceError: when the coefficients do not settle, or the verification fails.
    """
    primes = _primes()
    support = _support(series, _found(series, primes), primes)
    found, used = _lifted(series, support, primes)
    order = int(_FURTHER * _rows(support)[1])
    if not annihilates(series, found, order, next(primes)):
        raise ConvergenceError(
            "verification of the algebraic curve", None, None,
            f"report the model: {used} primes agreed on a wrong curve",
        )
    return found


def annihilates(series: Series, coefficients: Coefficients, order: int, prime: int) -> bool:
    """Whether u^A P(1/u, m) vanishes modulo u^order and a prime, A the degree in z."""
    top = max(i for i, _ in coefficients)
    powers = _powers(series.output(order, prime), max(j for _, j in coefficients), order, prime)
    total = nmod_poly([], prime)
    for (i, j), value in coefficients.items():
        total += powers[j].left_shift(top - i) * (value % prime)
    return total.truncate(order) == 0


def _primes() -> Iterator[int]:
    """Primes from 2^62 on, which a machine word holds."""
    candidate = _FIRST_PRIME + 1
    while True:
        if fmpz(candidate).is_prime():
            yield candidate
        candidate += 2


def _columns(width: int, low: int, high: int) -> list[Monomial]:
    """z^i m^j with i ≤ width and low ≤ j − i ≤ high, in the order of columns."""
    strip = ((i, i + k) for i in range(width + 1) for k in range(low, high + 1) if i + k >= 0)
    return sorted(strip, key=lambda powers: (powers[1], powers[0]))


def _found(series: Series, primes: Iterator[int]) -> set[Monomial]:
    """The monomials that occur modulo a prime."""
    for width, low, high in _SHAPES:
        relation = _relation(series, _columns(width, -low, high), primes)
        if relation is not None:
            return {monomial for monomial, value in relation.items() if value}
    raise NotCoveredError(f"an algebraic curve of degree above {max(_SHAPES)[0]} in z, or one that is too wide")


def _support(series: Series, first: set[Monomial], primes: Iterator[int]) -> tuple[Monomial, ...]:
    """The monomials that occur modulo one of two primes, in the order of columns."""
    differences = [j - i for i, j in first]
    columns = _columns(max(i for i, _ in first), min(differences), max(differences))
    second = _relation(series, columns, primes)
    used = first | {monomial for monomial, value in (second or {}).items() if value}
    return tuple(monomial for monomial in columns if monomial in used)


def _rows(columns: Sequence[Monomial]) -> tuple[int, int]:
    """The orders in u that are compared: from the lowest that occurs, as many as there are columns and some."""
    top = max(i for i, _ in columns)
    start = min(top - i + j for i, j in columns)
    return start, start + len(columns) + _SPARE_ROWS


def _relation(series: Series, columns: Sequence[Monomial], primes: Iterator[int]) -> Coefficients | None:
    """The first linear relation between the columns z^i m^j modulo the next good prime; None if there is none."""
    for prime in primes:
        try:
            return _relation_modulo(series, columns, prime)
        except BadPrimeError:
            continue
    raise AssertionError("there are infinitely many primes")


def _relation_modulo(series: Series, columns: Sequence[Monomial], prime: int) -> Coefficients | None:
    """The first column that depends on those before it, with coefficient one, and the others in terms of it."""
    start, stop = _rows(columns)
    top = max(i for i, _ in columns)
    powers = _powers(series.output(stop, prime), max(j for _, j in columns), stop, prime)
    padded = [[0] * top + [int(c) for c in power.coeffs()] + [0] * stop for power in powers]
    flat = [c for i, j in columns for c in padded[j][start + i : stop + i]]  # [u^k] of u^{top−i} m^j
    reduced, rank = nmod_mat(len(columns), stop - start, flat, prime).transpose().rref()
    pivot = 0
    for column in range(len(columns)):
        if pivot < rank and reduced[pivot, column] != 0:
            pivot += 1
            continue
        relation = {columns[k]: -int(reduced[k, column]) % prime for k in range(pivot)}
        return {**relation, columns[column]: 1}
    return None


def _powers(m: nmod_poly, degree: int, order: int, prime: int) -> list[nmod_poly]:
    """1, m, …, m^degree modulo u^order."""
    found = [nmod_poly([1], prime)]
    for _ in range(degree):
        found.append(found[-1].mul_low(m, order))
    return found


# From primes to integers -------------------------------------------------------------------------------------------


def _lifted(
    series: Series, support: tuple[Monomial, ...], primes: Iterator[int]
) -> tuple[Coefficients, int]:
    """The integer coefficients, and the number of primes that gave them."""
    modulus, residues, guess = 1, [0] * len(support), None
    for used in range(1, _MOST_PRIMES):
        prime = next(primes)
        try:
            relation = _relation_modulo(series, support, prime)
        except BadPrimeError:
            continue
        if relation is None or len(relation) < len(support):
            continue  # a prime that divides the leading coefficient, or an order of the curve
        found = [relation[monomial] for monomial in support]
        if guess is not None and _agrees(guess, found, prime):
            return dict(zip(support, guess, strict=True)), used
        inverse = pow(modulus, -1, prime)
        residues = [r + modulus * ((f - r) * inverse % prime) for r, f in zip(residues, found, strict=True)]
        modulus *= prime
        guess = _reconstructed(residues, modulus)
    raise ConvergenceError(
        "the coefficients of the algebraic curve", None, None, "give rational values with smaller denominators"
    )


def _agrees(guess: Sequence[int], found: Sequence[int], prime: int) -> bool:
    last = guess[-1] % prime
    return all((value - residue * last) % prime == 0 for value, residue in zip(guess, found, strict=True))


def _reconstructed(residues: Sequence[int], modulus: int) -> list[int] | None:
    """Integers proportional to the residues, the last of which is one; None while the modulus is too small.

    The common denominator is collected along the way, so that most residues need no division.
    """
    bound = isqrt(modulus // 2)
    common = 1
    for residue in residues:
        value = residue * common % modulus
        if min(value, modulus - value) > bound:
            denominator = _denominator(value, modulus, bound)
            if denominator is None or common * denominator > bound:
                return None
            common *= denominator
    numbers = [residue * common % modulus for residue in residues]
    signed = [value if 2 * value < modulus else value - modulus for value in numbers]
    if any(abs(value) > bound for value in signed):
        return None
    divisor = gcd(*signed)
    return [value // divisor for value in signed]


def _denominator(value: int, modulus: int, bound: int) -> int | None:
    """The denominator d ≤ bound with |d·value mod modulus| ≤ bound, by Euclid's algorithm."""
    (r0, t0), (r1, t1) = (modulus, 0), (value, 1)
    while r1 > bound:
        quotient = r0 // r1
        (r0, t0), (r1, t1) = (r1, t1), (r0 - quotient * r1, t0 - quotient * t1)
    return abs(t1) if 0 < abs(t1) <= bound and gcd(r1, t1) == 1 else None
