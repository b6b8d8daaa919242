"""Weights of an equation as elements of a polynomial ring over Q, and elements of the ring as expressions.

A weight is a rational number times a product of powers of *bases*: symbols, roots, sums such as θ₁ − θ₂, opaque
functions; exponents are rational and may be negative. Each distinct product is one generator of a polynomial ring, so
that arithmetic never divides and never simplifies. On the way back exponents of bases are added up; half powers that
meet become whole ones.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import reduce
from math import lcm
from operator import mul
from typing import Any

import sympy as sp
from flint import Ordering, fmpq, fmpq_mpoly_ctx

__all__ = ["WeightRing", "as_fmpq"]

Powers = tuple[tuple[sp.Expr, sp.Rational], ...]


def as_fmpq(value: sp.Rational) -> fmpq:
    """A rational number of sympy as one of python-flint."""
    return fmpq(int(value.p), int(value.q))


def _rational(value: Any) -> sp.Rational:
    return sp.Rational(int(value.p), int(value.q))


class WeightRing:
    """The ring Q[products of powers] in which the given weights live.

    Attributes:
        elements: the weights, in order, as elements.
        zero, one: of the ring.
    """

    def __init__(self, weights: Sequence[sp.Expr]) -> None:
        split = [_split(weight) for weight in weights]
        self._products = list(dict.fromkeys(powers for _, powers in split if powers))
        if not self._products:
            self.zero, self.one = fmpq(0), fmpq(1)
            self.elements: tuple[Any, ...] = tuple(constant for constant, _ in split)
            return
        context = fmpq_mpoly_ctx.get([f"k{i}" for i in range(len(self._products))], Ordering.lex)
        generators = dict(zip(self._products, context.gens(), strict=True))
        self.zero, self.one = context.constant(0), context.constant(1)
        self.elements = tuple(c * generators[powers] if powers else context.constant(c) for c, powers in split)

    def expression(self, element: Any) -> sp.Expr:
        """An element as one fraction, numerator expanded."""
        if not self._products:
            return _rational(element)
        if not element:
            return sp.Integer(0)
        bases = list(dict.fromkeys(base for powers in self._products for base, _ in powers))
        table = [[dict(powers).get(base, sp.Integer(0)) for base in bases] for powers in self._products]
        scales = [lcm(*(int(row[k].q) for row in table)) for k in range(len(bases))]
        rows = [[int(row[k] * scales[k]) for k in range(len(bases))] for row in table]
        collected: dict[tuple[int, ...], Any] = {}
        for exponents, coefficient in element.terms():
            used = [(int(e), row) for e, row in zip(exponents, rows, strict=True) if e]
            key = tuple(sum(e * row[k] for e, row in used) for k in range(len(bases)))
            collected[key] = collected.get(key, 0) + coefficient
        roots = [(base, sp.Rational(1, scale)) for base, scale in zip(bases, scales, strict=True)]
        return _fraction(roots, {key: value for key, value in collected.items() if value != 0})


def _split(weight: sp.Expr) -> tuple[fmpq, Powers]:
    """(constant, powers of bases) of one weight."""
    if weight.is_Rational:
        return as_fmpq(weight), ()
    constant, powers = sp.Integer(1), dict[sp.Expr, sp.Rational]()
    for factor in sp.Mul.make_args(sp.factor(weight) if weight.has(sp.Add) else weight):
        base, exponent = factor.as_base_exp()
        if not exponent.is_Rational or (base.is_Rational and exponent.is_Integer):
            base, exponent = factor, sp.Integer(1)
        if base.is_Rational and exponent.is_Integer:
            constant *= base**exponent
        else:
            powers[base] = powers.get(base, sp.Integer(0)) + exponent
    return as_fmpq(constant), tuple(sorted(powers.items(), key=str))


def _fraction(roots: Sequence[tuple[sp.Expr, sp.Rational]], terms: dict[tuple[int, ...], Any]) -> sp.Expr:
    """Σ coefficient · ∏ (base^root)^exponent as one fraction in which sums are multiplied out."""
    if not terms:
        return sp.Integer(0)
    least = [min(0, *(key[k] for key in terms)) for k in range(len(roots))]
    atoms = _Atoms(roots)
    numerator = sum(
        (coefficient * atoms.product([e - low for e, low in zip(key, least, strict=True)])
         for key, coefficient in terms.items()), atoms.zero,
    )
    denominator = atoms.product([-low for low in least])
    common = numerator.gcd(denominator)
    return atoms.expression(numerator / common, denominator / common)


class _Atoms:
    """Polynomials in the symbols and roots that the bases are made of."""

    def __init__(self, roots: Sequence[tuple[sp.Expr, sp.Rational]]) -> None:
        sums = [(base, exponent) for base, exponent in roots if base.is_Add and exponent == 1]
        expanded = {base: [_split(term) for term in sp.Add.make_args(sp.expand(base))] for base, _ in sums}
        own = [(base, exponent) for base, exponent in roots if base not in expanded]
        inner = [pair for parts in expanded.values() for _, powers in parts for pair in powers]
        finest: dict[sp.Expr, int] = {}
        for base, exponent in (*own, *inner):
            finest[base] = lcm(finest.get(base, 1), int(exponent.q))
        self._atoms = sorted(finest.items(), key=lambda item: str(item[0]))
        context = fmpq_mpoly_ctx.get([f"a{i}" for i in range(len(self._atoms))] or ["a"], Ordering.lex)
        self._generators = {base: g for (base, _), g in zip(self._atoms, context.gens(), strict=False)}
        self._finest = finest
        self.zero, self._one = context.constant(0), context.constant(1)
        self._bases = [
            self._sum(expanded[base]) if base in expanded else self._power(base, exponent) for base, exponent in roots
        ]

    def _power(self, base: sp.Expr, exponent: sp.Rational) -> Any:
        return self._generators[base] ** int(exponent * self._finest[base])

    def _sum(self, parts: Iterable[tuple[fmpq, Powers]]) -> Any:
        total = self.zero
        for constant, powers in parts:
            total += constant * reduce(mul, (self._power(b, e) for b, e in powers), self._one)
        return total

    def product(self, exponents: Sequence[int]) -> Any:
        """∏ base^exponent, exponents not negative."""
        return reduce(mul, (base**e for base, e in zip(self._bases, exponents, strict=True) if e), self._one)

    def expression(self, numerator: Any, denominator: Any) -> sp.Expr:
        """The quotient, integer coefficients without common factor above and below."""
        unit = _content(numerator) / _content(denominator)
        above, below = numerator / _content(numerator), denominator / _content(denominator)
        top, bottom = self._written(above * int(unit.p)), self._written(below * int(unit.q))
        return top / bottom

    def _written(self, polynomial: Any) -> sp.Expr:
        parts = []
        roots = [base ** sp.Rational(1, q) for base, q in self._atoms]
        for exponents, coefficient in polynomial.terms():
            powers = (root ** int(e) for root, e in zip(roots, exponents, strict=False) if e)
            parts.append(sp.Mul(_rational(coefficient), *powers))
        return sp.Add(*parts)


def _content(polynomial: Any) -> fmpq:
    """The rational c that leaves integers without common factor, the first positive, in polynomial/c."""
    coefficients = [fmpq(c) for c in polynomial.coeffs()]
    top = reduce(lambda a, c: a.gcd(c.p), coefficients[1:], coefficients[0].p)
    bottom = reduce(lambda a, c: a * c.q / a.gcd(c.q), coefficients[1:], coefficients[0].q)
    return fmpq(abs(top), 1) / fmpq(int(bottom), 1) * (1 if coefficients[0] > 0 else -1)
