"""Free convolutions of any two laws: ⊞, ⊠, powers ⊞t and compressions, as `SpectralLaw`."""

from __future__ import annotations

from fractions import Fraction
from functools import reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray

from freeattn.errors import BranchError, ConvergenceError, InputError, NotCoveredError
from freeattn.model.attention import Attention
from freeattn.model.expression import Expression
from freeattn.numerics.cauchy_sums import CauchySums
from freeattn.numerics.convolution_engine import ConvolutionEngine
from freeattn.numerics.exact import ExactLaw
from freeattn.numerics.exact_convolution import (
    COMPRESSION,
    POWER,
    PRODUCT,
    SUM,
    ExactConvolution,
    FreeConvolution,
    remainder,
)
from freeattn.numerics.law import SpectralLaw
from freeattn.numerics.limiting import law as law_of
from freeattn.numerics.subordination import (
    FreePowerEquation,
    FreeProductEquation,
    FreeSumEquation,
    Subordination,
)
from freeattn.numerics.transforms_of_laws import hull
from freeattn.theory.transforms import FreeProduct, FreeSum, Law

__all__ = ["free_compression", "free_power", "free_product", "free_sum"]

Array = NDArray[np.float64]

_LAW = "a SpectralLaw, or what fa.law takes: an Attention, an expression in letters, or a law of freeattn.theory"
_LEVELS = (np.arange(12) + 0.5) / 12  # quantiles near which a convolution is likely to have its bands


def free_sum(*laws: Any) -> SpectralLaw:
    """μ ⊞ ν (⊞ …): the law of a + b for free self-adjoint a and b with the given laws.

    Each argument is a `SpectralLaw`, or anything that `law` takes. Law expressions whose sum has a rational curve are
    answered by it, others by subordination.

    Raises:
        InputError: for fewer than two laws, or what is none; for a point mass, unless the sum has a rational curve.
        NotCoveredError: when an argument has no numbers.
        BranchError, ConvergenceError: when the numbers fail their own checks.
    """
    return _convolved(FreeSum, _sum, laws)


def free_product(*laws: Any) -> SpectralLaw:
    """μ ⊠ ν (⊠ …): the law of √a·b·√a for free a, b ≥ 0 with the given laws on [0, ∞).

    Raises:
        InputError: for a law with support below 0, or a point mass; otherwise as `free_sum`.
    """
    return _convolved(FreeProduct, _product, laws)


def free_power(law: Any, exponent: Any) -> SpectralLaw:
    """μ^{⊞t}, t ≥ 1: free cumulants t·κ_n.

    Raises:
        InputError: for t < 1, where μ^{⊞t} need not exist, and for a point mass.
    """
    t = _fraction("exponent", exponent)
    if t < 1:
        raise InputError("exponent", exponent, "a number t ≥ 1")
    base = _as_law(law)
    return base if t == 1 else _of_one(base, t, FreeConvolution(POWER, (base,), t))


def free_compression(law: Any, t: Any) -> SpectralLaw:
    """The law of p·a·p in the corner of a free projection p of trace t, 0 < t ≤ 1: free cumulants t^{n−1}·κ_n.

    It is what is left of a large unitarily invariant matrix when all but a share t of its rows and the same columns
    are crossed out.

    Raises:
        InputError: for t outside (0, 1], and for a point mass.
    """
    share = _fraction("t", t)
    if not 0 < share <= 1:
        raise InputError("t", t, "a number in (0, 1]")
    base = _as_law(law)
    return base if share == 1 else _of_one(base, 1 / share, FreeConvolution(COMPRESSION, (base,), share))


def _convolved(node: Any, pair: Any, arguments: tuple[Any, ...]) -> SpectralLaw:
    if len(arguments) < 2:
        raise InputError("laws", arguments, f"two laws or more, each {_LAW}")
    expressions = [_expression(argument) for argument in arguments]
    if all(expression is not None for expression in expressions):
        try:
            return law_of(node(tuple(expressions)))
        except (NotCoveredError, ConvergenceError, BranchError):
            pass  # no rational curve, or one whose numbers doubles do not resolve: by subordination
    return reduce(pair, (_as_law(argument, "laws") for argument in arguments))


def _expression(argument: Any) -> Law | None:
    if isinstance(argument, SpectralLaw):
        exact = argument._exact
        plain = isinstance(exact, ExactLaw) and not exact.mean_one
        argument = exact.source if plain else None
    return argument if isinstance(argument, Law) else None


def _as_law(argument: Any, field: str = "law") -> SpectralLaw:
    if isinstance(argument, SpectralLaw):
        return argument
    if not isinstance(argument, (Attention, Expression, Law)):
        raise InputError(field, argument, _LAW)
    try:
        return law_of(argument)
    except NotCoveredError:
        if isinstance(argument, FreeSum):
            return reduce(_sum, (_as_law(term) for term in argument.terms))
        if isinstance(argument, FreeProduct):
            return reduce(_product, (_as_law(factor) for factor in argument.factors))
        raise


def _fraction(field: str, value: Any) -> Fraction:
    try:
        return Fraction(value)
    except (TypeError, ValueError, OverflowError):
        raise InputError(field, value, "a finite real number: int, float or Fraction") from None


def _sum(first: SpectralLaw, second: SpectralLaw) -> SpectralLaw:
    _refuse_points("free_sum", first, second)
    (a, b), (c, d) = hull(first), hull(second)
    equation = FreeSumEquation(CauchySums(first), CauchySums(second), (a + c, b + d))
    likely = np.add.outer(first.quantile(_LEVELS), second.quantile(_LEVELS)).ravel()
    return _made(equation, likely, FreeConvolution(SUM, (first, second)), _order_of_sum(first, second))


def _product(first: SpectralLaw, second: SpectralLaw) -> SpectralLaw:
    for law in (first, second):
        if hull(law)[0] < 0:
            raise InputError("law", repr(law), "laws on [0, ∞) for ⊠; ⊞ takes any law")
    _refuse_points("free_product", first, second)
    (a, b), (c, d) = hull(first), hull(second)
    equation = FreeProductEquation(CauchySums(first), CauchySums(second), (a * c, b * d))
    likely = np.multiply.outer(first.quantile(_LEVELS), second.quantile(_LEVELS)).ravel()
    return _made(equation, likely, FreeConvolution(PRODUCT, (first, second)), _order_of_product(first, second))


def _of_one(law: SpectralLaw, t: Fraction, source: FreeConvolution) -> SpectralLaw:
    _refuse_points(source.operation.replace(" ", "_"), law)
    low, high = hull(law)
    equation = FreePowerEquation(CauchySums(law), float(t), (float(t) * low, float(t) * high))
    spread = law.quantile(_LEVELS) - law.mean
    likely = float(t) * law.mean + np.outer([float(t), float(t) ** 0.5, 1.0], spread).ravel()
    weight, k = _end_at_zero(law)  # F is singular at an atom 0 as it was, as long as the atom is left
    order = _order_beside(remainder(t * weight - (t - 1)), k) if low == 0 else Fraction(1)
    return _made(equation, likely, source, order)


def _made(equation: Subordination, likely: Array, source: FreeConvolution, order: Fraction) -> SpectralLaw:
    exact = ExactConvolution(source)
    for x, origins in exact.divergences:
        hard = any(at == 0 and _end_at_zero(law)[1] > 1 for at, law in zip(origins, source.laws, strict=True))
        if hard and not (x == 0 and order > 1):
            raise NotCoveredError(
                f"a {source.operation} in which the weights of two atoms add up to one at {x:.6g}, one of them at a "
                "hard edge: change a ratio slightly"
            )
    mass = float(1 - sum(atom.weight for atom in exact.atoms))
    atoms = tuple(atom.location for atom in exact.atoms)
    return SpectralLaw(ConvolutionEngine(equation, likely, atoms, exact.divergences, mass, order), exact)


def _refuse_points(name: str, *laws: SpectralLaw) -> None:
    for law in laws:
        if not law.edges and len(law.atoms) == 1:
            allowed = f"laws that are no point masses in {name}; a shift or a dilation is an Image or a Dilation"
            raise InputError("law", repr(law), allowed)


def _order_of_sum(first: SpectralLaw, second: SpectralLaw) -> Fraction:
    """k of the hard edge x^{1/k − 1} of μ ⊞ ν at 0, which needs an atom of both there, at the lower end.

    Near F = 0 the inverse of F₁ is μ({0})·F + O(F^{1 + 1/k}); inverses add, less F. Where an atom is left the singular
    term is kept; where the weights add up to one it is the first one.
    """
    (a, k), (b, j) = _end_at_zero(first), _end_at_zero(second)
    if not hull(first)[0] == hull(second)[0] == 0:
        return Fraction(1)
    return _order_beside(remainder(a + b - 1), max(k, j))


def _order_beside(rest: Any, k: Fraction) -> Fraction:
    if rest > 0:
        return k
    return k + 1 if rest == 0 and k > 1 else Fraction(1)  # k = 1: a fold


def _order_of_product(first: SpectralLaw, second: SpectralLaw) -> Fraction:
    """k of the hard edge x^{1/k − 1} of μ ⊠ ν at 0, 1 when there is none.

    Near the atom's end of its range, −1/χ ~ (1 + w − a)^k, a the mass at 0; S-transforms multiply, and only the law
    with the larger a has its end there. With a = 0 a factor 1/(1 + w) is counted once too often.
    """
    (a, k), (b, j) = _end_at_zero(first), _end_at_zero(second)
    if a == b:
        return k + j - (1 if a == 0 else 0)
    return k if a > b else j


def _end_at_zero(law: SpectralLaw) -> tuple[Any, Fraction]:
    weight: Any = next((atom.weight for atom in law.atoms if atom.location == 0), 0)
    for (left, _), (exponent, _) in zip(law.edges, law.edge_exponents, strict=True):
        if left == 0 and exponent < 0:
            return weight, 1 / (1 + exponent)
    return weight, Fraction(1)
