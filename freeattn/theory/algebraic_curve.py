"""The algebraic curve of a law: P(z, m) = 0 with integer coefficients, its discriminant and its real branch points."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, reduce
from math import gcd, lcm
from typing import Any

import sympy as sp
from flint import Ordering, fmpz_mpoly, fmpz_mpoly_ctx, fmpz_poly

from freeattn.display import ShownAsFormulas
from freeattn.errors import InputError, NotCoveredError
from freeattn.theory.given_values import finite_number, rational_number
from freeattn.theory.real_roots import AlgebraicNumber, real_roots
from freeattn.theory.symbols import M, Z

__all__ = ["TELLING_MOMENTS", "AlgebraicCurve", "curve_of_series"]

TELLING_MOMENTS = 12  # enough to tell the factors of a reducible polynomial apart

_EDGE_DIGITS = 12  # an edge is told from other branch points by so many digits
_PAIRS = "pairs (left, right) of real numbers"


@dataclass(frozen=True)
class AlgebraicCurve(ShownAsFormulas):
    """P(z, m) = Σ c_ij z^i m^j = 0 for the Stieltjes transform m(z) = ∫ ν(dx)/(x − z).

    Attributes:
        terms: (i, j, c_ij), c_ij ≠ 0 integers without common factor; descending in j, then in i, the first c_ij > 0.
    """

    terms: tuple[tuple[int, int, int], ...]

    def __repr__(self) -> str:
        return f"<AlgebraicCurve of degree {self.degree_z} in z and {self.degree_m} in m, {len(self.terms)} terms>"

    @classmethod
    def from_coefficients(cls, coefficients: Mapping[tuple[int, int], Any]) -> AlgebraicCurve:
        """The curve of rational coefficients, by the powers (i, j) of z and m; factors z^k and m^k are left out.

        Raises:
            InputError: when all coefficients vanish, or m does not occur.
        """
        values = {powers: Fraction(int(c.numerator), int(c.denominator)) for powers, c in coefficients.items() if c}
        if not values or len({j for _, j in values}) == 1:
            raise InputError("coefficients", dict(coefficients), "a polynomial in which m occurs")
        low = [min(powers[k] for powers in values) for k in (0, 1)]
        denominator = lcm(*(c.denominator for c in values.values()))
        numbers = {(i - low[0], j - low[1]): int(c * denominator) for (i, j), c in values.items()}
        ordered = sorted(numbers, key=lambda powers: (-powers[1], -powers[0]))
        unit = gcd(*numbers.values()) * (1 if numbers[ordered[0]] > 0 else -1)
        return cls(tuple((i, j, numbers[i, j] // unit) for i, j in ordered))

    @classmethod
    def from_expression(cls, expression: sp.Expr) -> AlgebraicCurve:
        """The curve of a polynomial in z and m with rational coefficients.

        Raises:
            InputError: when other symbols are left.
        """
        polynomial = sp.Poly(expression, Z, M)
        if polynomial.free_symbols_in_domain:
            left = ", ".join(sorted(map(str, polynomial.free_symbols_in_domain)))
            raise InputError("values", None, f"a rational number for each of {left}, in values={{…}}")
        return cls.from_coefficients({powers: sp.Rational(c) for powers, c in polynomial.terms()})

    # The polynomial ------------------------------------------------------------------------------------------------

    @property
    def degree_z(self) -> int:
        """Degree in z (and in 1/z)."""
        return max(i for i, _, _ in self.terms)

    @property
    def degree_m(self) -> int:
        """Degree in m: the number of sheets."""
        return max(j for _, j, _ in self.terms)

    @cached_property
    def expression(self) -> sp.Expr:
        """P as an expression in z and m."""
        return sp.Add(*(c * Z**i * M**j for i, j, c in self.terms))

    def evaluate(self, z: Any, m: Any) -> Any:
        """P(z, m) in the arithmetic of z and m: Fractions, mpmath numbers, arrays, symbols.

        Raises:
            InputError: for what is not a finite number, and where a double overflows.
        """
        return reduce(lambda total, term: total + term, self._summands(z, m))

    def residual(self, z: Any, m: Any) -> Any:
        """|P(z, m)| over the sum of the moduli of its terms: rounding where (z, m) lies on the curve.

        Zero where all terms vanish; errors as for `evaluate`.
        """
        summands = self._summands(z, m)
        size = sum(map(abs, summands))
        return abs(sum(summands[1:], summands[0])) / (size + 1 * (size == 0))

    def _summands(self, z: Any, m: Any) -> list[Any]:
        z, m = finite_number("z", z), finite_number("m", m)
        try:
            return [c * z**i * m**j for i, j, c in self.terms]
        except OverflowError:
            raise InputError("z, m", (z, m), "numbers whose powers do not overflow, such as those of mpmath") from None

    def dilated(self, factor: Fraction | int | sp.Rational) -> AlgebraicCurve:
        """The curve of the law dilated by a positive rational factor: z ↦ z/factor, m ↦ m·factor.

        Raises:
            InputError: for a factor that is not a positive rational number.
        """
        allowed = "a positive rational number"
        number = rational_number("factor", factor, allowed)
        if not number > 0:
            raise InputError("factor", factor, allowed)
        scale = Fraction(int(number.p), int(number.q))
        return self.from_coefficients({(i, j): c * scale ** (j - i) for i, j, c in self.terms})

    @cached_property
    def factors(self) -> tuple[tuple[AlgebraicCurve, int], ...]:
        """The irreducible factors over Q in which m occurs, and their multiplicities."""
        found = []
        for factor, multiplicity in self._polynomial.factor()[1]:
            if factor.degrees()[1] > 0:
                terms = {tuple(map(int, powers)): Fraction(int(c)) for powers, c in factor.terms()}
                found.append((_curve(terms), int(multiplicity)))
        return tuple(found)

    @property
    def irreducible(self) -> bool:
        """Whether P is irreducible over Q."""
        return [power for _, power in self._polynomial.factor()[1]] == [1]

    @cached_property
    def _polynomial(self) -> fmpz_mpoly:
        context = fmpz_mpoly_ctx.get(["z", "m"], Ordering.lex)
        return context.from_dict({(i, j): c for i, j, c in self.terms})

    # Branch points -------------------------------------------------------------------------------------------------

    @cached_property
    def discriminant(self) -> tuple[tuple[tuple[int, ...], int], ...]:
        """The discriminant of P in m, a polynomial in z: its irreducible factors (coefficients from the constant on)
        with multiplicities, constants left out. Branch points of m(z), finite ones, are among its roots.

        Raises:
            NotCoveredError: for a curve that is not squarefree: its discriminant vanishes.
        """
        factors = self._discriminant.factor()[1]
        return tuple((tuple(map(int, factor.coeffs())), int(power)) for factor, power in factors)

    @cached_property
    def _discriminant(self) -> fmpz_poly:
        if self.degree_m == 1:
            return fmpz_poly([1])
        found = self._polynomial.discriminant("m")
        if found == 0:
            raise NotCoveredError("the discriminant of a curve with a multiple factor: take one of curve.factors")
        coefficients = [0] * (int(found.degrees()[0]) + 1)
        for powers, value in found.terms():
            coefficients[int(powers[0])] = value
        return fmpz_poly(coefficients)

    @cached_property
    def branch_points(self) -> tuple[AlgebraicNumber, ...]:
        """The real roots of the discriminant, ascending, isolated; ends of the support of the law are among them."""
        return real_roots(self._discriminant)

    def edges(self, edges: Sequence[tuple[Any, Any]]) -> tuple[tuple[AlgebraicNumber, AlgebraicNumber], ...]:
        """The branch points that are the given edges of bands, as from `law.edges_to(30)`.

        Raises:
            InputError: for what are not pairs of finite numbers, and when one of them is not a branch point of this
                curve, to 12 digits.
        """
        try:
            pairs = [(left, right) for left, right in edges]
        except (TypeError, ValueError):
            raise InputError("edges", edges, _PAIRS) from None
        return tuple((self._branch_point(left), self._branch_point(right)) for left, right in pairs)

    def _branch_point(self, edge: Any) -> AlgebraicNumber:
        number = finite_number("edges", edge)
        points = [(point, point.value(2 * _EDGE_DIGITS)) for point in self.branch_points]
        try:
            near = [point for point, value in points if abs(value - number) <= abs(value) * 10.0**-_EDGE_DIGITS]
        except (TypeError, ValueError):
            raise InputError("edges", edge, _PAIRS) from None
        if len(near) != 1:
            raise InputError("edges", str(edge), "branch points of this curve: is it the curve of this law?")
        return near[0]

    # Written forms -------------------------------------------------------------------------------------------------

    def latex(self) -> str:
        """P = 0 in LaTeX, by descending powers of m."""
        sides = []
        for power in sorted({j for _, j, _ in self.terms}, reverse=True):
            part = sp.latex(sp.Add(*(c * Z**i for i, j, c in self.terms if j == power)))
            sides.append(rf"\left({part}\right) {sp.latex(M**power)}" if power else part)
        return " + ".join(sides).replace("+ -", "- ") + " = 0"

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready: terms (integers as decimal strings), degrees, discriminant and isolated branch points."""
        return {
            "degree_z": self.degree_z,
            "degree_m": self.degree_m,
            "terms": [[i, j, str(c)] for i, j, c in self.terms],
            "discriminant": [[list(map(str, factor)), power] for factor, power in self.discriminant],
            "branch_points": [
                {"polynomial": list(map(str, point.polynomial)), "lower": str(point.lower), "upper": str(point.upper)}
                for point in self.branch_points
            ],
        }


def _curve(terms: Mapping[tuple[int, ...], Fraction]) -> AlgebraicCurve:
    return AlgebraicCurve.from_coefficients({(powers[0], powers[1]): value for powers, value in terms.items()})


def curve_of_series(curve: AlgebraicCurve, moments: Sequence[sp.Rational]) -> AlgebraicCurve:
    """The irreducible factor that m = −Σ_k m_k/z^{k+1} obeys to the highest order; the curve itself if it is one."""
    factors = [factor for factor, _ in curve.factors]
    if len(factors) == 1:
        return factors[0]
    return max(factors, key=lambda factor: _order(factor, moments))


def _order(curve: AlgebraicCurve, moments: Sequence[sp.Rational]) -> int:
    """The order in u = 1/z to which a series obeys a curve, counted from the lowest order that its terms have."""
    length = len(moments) + 2
    m = [Fraction(0), Fraction(-1), *(-Fraction(int(k.p), int(k.q)) for k in moments)]
    powers = [[Fraction(1), *[Fraction(0)] * (length - 1)]]
    for _ in range(curve.degree_m):
        last = powers[-1]
        powers.append([sum((last[i] * m[k - i] for i in range(k + 1)), Fraction(0)) for k in range(length)])
    top = curve.degree_z
    total = [Fraction(0)] * length
    for i, j, c in curve.terms:
        for k in range(length - (top - i)):
            total[k + top - i] += c * powers[j][k]
    start = min(top - i + j for i, j, _ in curve.terms)
    return next((k for k, value in enumerate(total) if value), length) - start
