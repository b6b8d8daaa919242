"""Truncated power series with exact fractions, written for the tests: nothing of the package is used."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import pairwise

import sympy as sp

Series = list[Fraction]  # coefficients of 1, z, z², …


def fraction(value: sp.Expr | int) -> Fraction:
    number = sp.Rational(value)
    return Fraction(int(number.p), int(number.q))


def multiply(a: Series, b: Series) -> Series:
    order = len(a)
    return [sum((a[i] * b[n - i] for i in range(n + 1)), Fraction(0)) for n in range(order)]


def divide(a: Series, b: Series) -> Series:
    quotient: Series = []
    for n in range(len(a)):
        quotient.append((a[n] - sum((quotient[i] * b[n - i] for i in range(n)), Fraction(0))) / b[0])
    return quotient


def expand(expression: sp.Expr, variable: sp.Symbol, order: int) -> Series:
    """The series of a rational function that is finite at 0."""
    top, bottom = (sp.Poly(part, variable) for part in sp.fraction(sp.cancel(sp.together(expression))))
    lists = [[fraction(part.coeff_monomial(variable**k)) for k in range(order)] for part in (top, bottom)]
    return divide(*lists)


def compose(outer: Sequence[Fraction], inner: Series) -> Series:
    """Σ outer[k] inner^k for a series without constant term (Horner)."""
    assert inner[0] == 0
    total = [Fraction(0)] * len(inner)
    for coefficient in reversed(outer):
        total = multiply(total, inner)
        total[0] += coefficient
    return total


def invert(series: Series) -> Series:
    """Compositional inverse, coefficient by coefficient."""
    order = len(series)
    inverse = [Fraction(0)] * order
    inverse[1] = 1 / series[1]
    for n in range(2, order):
        inverse[n] = -compose(series, inverse)[n] / series[1]
    return inverse


def s_series(moments: Sequence[Fraction]) -> Series:
    """S(w) = (1 + w) χ(w)/w from its definition."""
    chi = invert([Fraction(0), *moments])
    quotient = chi[1:]
    return [quotient[0], *(quotient[k] + quotient[k - 1] for k in range(1, len(quotient)))]


def noncrossing_partitions(points: tuple[int, ...]) -> Iterator[list[int]]:
    """Block sizes of every noncrossing partition of an ordered set: the first block splits the rest."""
    if not points:
        yield []
        return
    rest = points[1:]
    for chosen in range(1 << len(rest)):
        block = [i for i in range(len(rest)) if chosen >> i & 1]
        cuts = [-1, *block, len(rest)]
        pieces = [rest[a + 1 : b] for a, b in pairwise(cuts)]
        for sizes in _products([list(noncrossing_partitions(piece)) for piece in pieces]):
            yield [len(block) + 1, *sizes]


def _products(groups: list[list[list[int]]]) -> Iterator[list[int]]:
    if not groups:
        yield []
        return
    for head in groups[0]:
        for tail in _products(groups[1:]):
            yield head + tail


def moment_from_cumulants(order: int, cumulants: Sequence[Fraction]) -> Fraction:
    """m_n = Σ over noncrossing partitions of ∏ κ_{block size} (Nica-Speicher, lecture 11)."""
    total = Fraction(0)
    for sizes in noncrossing_partitions(tuple(range(order))):
        term = Fraction(1)
        for size in sizes:
            term *= cumulants[size - 1]
        total += term
    return total
