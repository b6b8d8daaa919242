"""The one bridge from symbols to numbers: a parametrized scalar system becomes polynomials with rational coefficients.

Parameters that are rational stay exact; θ's and other irrational values are replaced by rational numbers close to the
digits asked for. All polynomial algebra (common roots, multiplicities, critical points) is then exact, whatever the
precision of what is computed from it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import sympy as sp
from flint import fmpq, fmpq_poly

from freeattn.errors import InputError
from freeattn.model.quantities import binary_of
from freeattn.theory.symbols import Q
from freeattn.theory.system import Parametrization
from freeattn.theory.transforms.uniformization import Factored, Leaf, LeafPair

__all__ = [
    "CompiledBranch",
    "CompiledCurve",
    "CompiledPair",
    "Factors",
    "RationalFunction",
    "compile_curve",
    "evaluate",
    "expanded",
    "fraction_of",
    "rational_value",
]

_MOST_BITS = 100_000  # sympy's evaluation may go this far to make up for cancellation
_GUARD_DIGITS = 15  # beyond the digits asked: losses in a few dozen exact operations on approximated θ's

_ONE = fmpq_poly([1])

Factors = tuple[tuple[fmpq_poly, int], ...]


@dataclass(frozen=True)
class RationalFunction:
    """numerator(q)/denominator(q) over Q."""

    numerator: fmpq_poly
    denominator: fmpq_poly


@dataclass(frozen=True)
class CompiledPair:
    """A `LeafPair` with numbers."""

    total: RationalFunction
    product: RationalFunction
    rate: fmpq


@dataclass(frozen=True)
class CompiledBranch:
    """A `Branch` with numbers: leaves are (point, value) pairs or `CompiledPair`."""

    leaves: tuple[tuple[RationalFunction, RationalFunction] | CompiledPair, ...]
    start: RationalFunction
    factors: tuple[RationalFunction, ...]


@dataclass(frozen=True)
class CompiledCurve:
    """x(q), m(q) as products of powers of polynomials over Q, and ψ(q); see `Parametrization`."""

    point: Factors
    stieltjes: Factors
    psi: RationalFunction
    branch: CompiledBranch | None

    def translated(self, shift: fmpq) -> CompiledCurve:
        """The curve of the law of x + shift: m stays, ψ = −1 − x·m does not; without a test of the branch."""
        top, bottom = expanded(self.point)
        moved = top + shift * bottom
        above, below = expanded(self.stieltjes)
        psi = _reduced(-(moved * above) - bottom * below, bottom * below)
        poles = tuple((base, power) for base, power in self.point if power < 0)
        return CompiledCurve(((moved, 1), *poles), self.stieltjes, psi, None)


def expanded(factors: Factors) -> tuple[fmpq_poly, fmpq_poly]:
    """(numerator, denominator) of a product of powers."""
    top, bottom = fmpq_poly([1]), fmpq_poly([1])
    for base, power in factors:
        part = base ** abs(power)
        top, bottom = (top * part, bottom) if power > 0 else (top, bottom * part)
    return top, bottom


def _reduced(top: fmpq_poly, bottom: fmpq_poly) -> RationalFunction:
    common = top.gcd(bottom)
    return RationalFunction(top // common, bottom // common) if common.degree() > 0 else RationalFunction(top, bottom)


def fraction_of(value: Any) -> fmpq:
    """An int, Fraction, sympy Rational or mpmath number as an exact rational."""
    if hasattr(value, "_mpf_"):
        mantissa, exponent = binary_of(value)
        return fmpq(mantissa << exponent) if exponent >= 0 else fmpq(mantissa, 1 << -exponent)
    if isinstance(value, sp.Rational):
        return fmpq(int(value.p), int(value.q))
    return fmpq(int(value.numerator), int(value.denominator))


def rational_value(value: sp.Expr, digits: int) -> fmpq:
    """A number as a rational: exact when it is rational, else to `digits` and a guard."""
    value = sp.sympify(value)
    if value.free_symbols:
        names = ", ".join(sorted(str(s) for s in value.free_symbols))
        raise InputError("specification", str(value), f"numbers where a number is asked for; still symbolic: {names}")
    if value.is_Rational:
        return fraction_of(value)
    return fraction_of(sp.N(value, digits + _GUARD_DIGITS, maxn=_MOST_BITS))


def evaluate(expression: sp.Expr, values: Mapping[sp.Symbol, fmpq]) -> fmpq:
    """A rational function of the parameters, at rational values, exactly."""
    top, bottom = _quotient(expression, values)
    return top[0] / bottom[0]


def _quotient(expression: sp.Expr, values: Mapping[sp.Symbol, fmpq]) -> tuple[fmpq_poly, fmpq_poly]:
    """(numerator, denominator) in q: sums, products and powers one by one, in exact arithmetic, nothing cancelled."""
    if expression == Q:
        return fmpq_poly([0, 1]), _ONE
    if isinstance(expression, sp.Symbol):
        return fmpq_poly([values[expression]]), _ONE
    if isinstance(expression, sp.Rational):
        return fmpq_poly([fraction_of(expression)]), _ONE
    if isinstance(expression, sp.Pow) and expression.exp.is_Integer:
        top, bottom = _quotient(expression.base, values)
        power = int(expression.exp)
        return (top**power, bottom**power) if power > 0 else (bottom**-power, top**-power)
    if not isinstance(expression, (sp.Add, sp.Mul)):
        raise InputError("law", str(expression), "rational functions of numbers and symbols")
    parts = [_quotient(argument, values) for argument in expression.args]
    top, bottom = parts[0]
    for over, under in parts[1:]:
        if isinstance(expression, sp.Mul):
            top, bottom = top * over, bottom * under
        elif bottom == under:
            top = top + over
        else:
            top, bottom = top * under + over * bottom, bottom * under
    return top, bottom


def _polynomial(expression: sp.Expr, values: Mapping[sp.Symbol, fmpq]) -> fmpq_poly:
    top, bottom = _quotient(expression, values)
    return top / bottom[0] if bottom.degree() == 0 else top // bottom


def _rational_function(expression: sp.Expr, values: Mapping[sp.Symbol, fmpq]) -> RationalFunction:
    return _reduced(*_quotient(expression, values))  # at special values, such as θ₁ = θ₂, more cancels than in symbols


def _factors(factors: Factored, values: Mapping[sp.Symbol, fmpq]) -> Factors:
    return tuple((_polynomial(base, values), power) for base, power in factors)


def compile_curve(curve: Parametrization, values: Mapping[sp.Symbol, fmpq]) -> CompiledCurve:
    """The curve with numbers for its parameters."""
    branch = None
    if curve.branch is not None:
        branch = CompiledBranch(
            leaves=tuple(_leaf(leaf, values) for leaf in curve.branch.leaves),
            start=_rational_function(curve.branch.start, values),
            factors=tuple(_rational_function(factor, values) for factor in curve.branch.factors),
        )
    return CompiledCurve(
        point=_factors(curve.point, values),
        stieltjes=_factors(curve.stieltjes, values),
        psi=_rational_function(curve.psi, values),
        branch=branch,
    )


def _leaf(
    leaf: Leaf | LeafPair, values: Mapping[sp.Symbol, fmpq]
) -> tuple[RationalFunction, RationalFunction] | CompiledPair:
    if isinstance(leaf, Leaf):
        return _rational_function(leaf.point, values), _rational_function(leaf.value, values)
    return CompiledPair(
        _rational_function(leaf.total, values), _rational_function(leaf.product, values), evaluate(leaf.rate, values)
    )
