"""Transforms of a law in numbers: ψ, η, R, S and free cumulants; and its algebraic curve, from exact moments.

With m(z) = ∫ ν(dx)/(x − z), F = −1/m and H(z) = z − F(z):

    ψ(z) = −1 − m(1/z)/z        η = ψ/(1 + ψ)
    R(g) = H(z) where F(z) = 1/g        S(w) = 1/H(z) where ψ(1/z) = w

H is computed without cancellation (`CauchySums`), so that R and S keep their digits at g = 0 and w = 0, where R is the
mean and S its inverse. Inverses are taken where they are unique: on the real line beyond the support, where F and
ψ(1/z) are monotone, and for complex g where F is one to one, |z − c| > 4r with [c − r, c + r] the hull of the support,
whose image holds 0 < |g| < 1/(6r) (Mingo, Speicher, Free Probability and Random Matrices, section 3.4).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from freeattn.errors import ConvergenceError, InputError, NotCoveredError
from freeattn.model.precision import context_for_results
from freeattn.model.quantities import as_integer
from freeattn.numerics.cauchy_sums import CauchySums
from freeattn.numerics.exact_convolution import cumulants_of
from freeattn.numerics.given_numbers import DOUBLE_DIGITS
from freeattn.theory.algebraic_curve import AlgebraicCurve
from freeattn.theory.minimal_polynomial import minimal_polynomial
from freeattn.theory.moment_series import MomentSeries

__all__ = ["curve", "eta_transform", "free_cumulants", "hull", "psi", "r_transform", "s_transform"]

Array = NDArray[np.float64]
Complex = NDArray[np.complex128]

_STEPS = 200
_TOLERANCE = 1e-13  # of the value that is inverted
_NEAREST, _FARTHEST = 1e-15, 1e16  # distances from the support in sizes of the law
_NEAREST_ULPS = 16  # of the end of the support: closer points are rounded onto it
_HALVINGS = 64  # of a range of 72 on the scale of logarithms, to the last bit
_UNIVALENT = 6  # times the radius of the support: 1/|g| from which F has one inverse


def psi(law: Any, z: ArrayLike) -> Any:
    """ψ(z) = ∫ zx/(1 − zx) ν(dx) = −1 − m(1/z)/z, ψ(0) = 0.

    Raises:
        InputError: where 1/z is an atom or a hard edge, and for numbers that are not finite.
    """
    def found(upper: Complex) -> Complex:
        law._refuse_atoms(upper)
        value = CauchySums(law)(upper)
        return -value.m * value.h  # 1 + z·m = m·H

    return _shaped(z, _off_poles("ψ", z, lambda points: _at_inverses(points, found)))


def eta_transform(law: Any, z: ArrayLike) -> Any:
    """η(z) = ψ(z)/(1 + ψ(z)) = z·H(1/z), η(0) = 0.

    Raises:
        InputError: for numbers that are not finite, and at a pole of η.
    """
    sums = CauchySums(law)
    return _shaped(z, _off_poles("η", z, lambda points: points * _at_inverses(points, lambda upper: sums(upper).h)))


def _at_inverses(points: Complex, function: Callable[[Complex], Complex]) -> Complex:
    """A function that is given in the upper half-plane, with f(z̄) = f(z)‾, at 1/points; 0 at 0."""
    result, some = np.zeros(points.shape, dtype=complex), points != 0
    inverse = 1 / points[some]
    found = function(np.where(inverse.imag < 0, np.conj(inverse), inverse))
    result[some] = np.where(inverse.imag < 0, np.conj(found), found)
    return result


def _off_poles(name: str, z: ArrayLike, function: Callable[[Complex], Complex]) -> Complex:
    points = _points("z", z)
    result = function(points)
    if not np.isfinite(result).all():
        raise InputError("z", complex(points[~np.isfinite(result)][0]), f"a point off the poles of {name}")
    return result


def r_transform(law: Any, g: ArrayLike) -> Any:
    """R(g) = K(g) − 1/g with K the inverse of −m near infinity; R(0) is the mean.

    Raises:
        InputError: for real g beyond the values that −m takes outside the support's hull, and complex |g| ≥ 1/(6r).
        ConvergenceError: when the inverse is not found.
    """
    points, sums, (low, high) = _points("g", g), CauchySums(law), hull(law)
    result = np.full(points.shape, law.mean, dtype=complex)
    real, plane = (points.imag == 0) & (points != 0), points.imag != 0
    if real.any():
        result[real] = _real_r(sums, points.real[real], low, high)
    if plane.any():
        radius = (high - low) / 2
        if (large := plane & (np.abs(points) * _UNIVALENT * radius >= 1)).any():
            raise InputError("g", complex(points[large][0]), f"a real number, or |g| < {1 / (_UNIVALENT * radius):.6g}")
        upper = np.where(points.imag > 0, np.conj(points), points)[plane]  # Im g < 0 belongs to Im z > 0
        found = _plane_r(sums, upper, law.mean)
        result[plane] = np.where(points.imag[plane] > 0, np.conj(found), found)
    return _shaped(g, result)


def s_transform(law: Any, w: ArrayLike) -> Any:
    """S(w) = (1 + w)χ(w)/w with χ the inverse of ψ, for real w from −1 + ν({0}) to ψ(1/b), b the support's right end.

    Raises:
        InputError: for a law with support below 0 or that is δ_0, and for w outside this range.
        ConvergenceError: when the inverse is not found.
    """
    low, high = hull(law)
    if low < 0 or high == 0:
        raise InputError("law", repr(law), "a law on [0, ∞) other than δ_0 for the S-transform")
    points = _points("w", w)
    if (points.imag != 0).any():
        raise InputError("w", complex(points[points.imag != 0][0]), "real numbers")
    sums, values = CauchySums(law), points.real
    result = np.full(points.shape, 1 / law.mean)
    bottom = -1 + sum(float(atom.weight) for atom in law.atoms if atom.location == 0)
    if (values <= bottom).any():
        raise InputError("w", float(values[values <= bottom][0]), f"w > {bottom:.6g}, the mass at 0 less one")

    def level(z: Array) -> Array:
        value = sums(z.astype(complex))
        return -(value.m * value.h).real

    for sign in (-1, 1):
        chosen = values < 0 if sign < 0 else values > 0
        if chosen.any():
            edge = 0.0 if sign < 0 else high
            z = _monotone("w", level, values[chosen], edge, sign, high)
            result[chosen] = 1 / sums(z.astype(complex)).h.real
    return float(result[0]) if np.ndim(w) == 0 else result.reshape(np.shape(w))


def free_cumulants(law: Any, order: int, digits: int = DOUBLE_DIGITS) -> tuple[Any, ...]:
    """κ_1 … κ_order, R(g) = Σ κ_n g^{n−1}, from the exact moments; mpmath numbers when digits > 15.

    Raises:
        InputError: for an order that is not a positive integer.
    """
    order = as_integer("order", order, "a positive integer", 1)
    context = context_for_results(max(digits, DOUBLE_DIGITS))
    exact = cumulants_of(law, order, max(digits, DOUBLE_DIGITS))
    values = [context.mpf(int(k.numerator)) / int(k.denominator) for k in exact]
    return tuple(float(value) if digits <= DOUBLE_DIGITS else value for value in values)


def curve(law: Any) -> AlgebraicCurve:
    """P(z, m) = 0 over Q for the Stieltjes transform, found from exact moments modulo primes and verified with more.

    Raises:
        NotCoveredError: when moments are irrational, or no polynomial of the shapes that are tried fits.
    """
    def rational(order: int) -> Any:
        moments = law.moments(order, exact=True)
        if not all(moment.is_Rational for moment in moments):
            raise NotCoveredError(
                "a curve over Q of a law with irrational moments: derive(…).curve(values=…) takes rational θ₁ and θ₂"
            )
        return moments

    rational(2)
    return AlgebraicCurve.from_coefficients(minimal_polynomial(MomentSeries(rational)))


def _real_r(sums: CauchySums, g: Array, low: float, high: float) -> Array:
    """H at the point beyond the hull where −m = g; −m falls from the edge to 0 on each side."""
    result = np.empty(g.shape)
    for sign, edge in ((1, high), (-1, low)):
        chosen = g * sign > 0
        if chosen.any():
            z = _monotone("g", lambda at: -sums(at.astype(complex)).m.real, g[chosen], edge, sign, high - low)
            result[chosen] = sums(z.astype(complex)).h.real
    return result


def _monotone(
    name: str, function: Callable[[Array], Array], wanted: Array, edge: float, sign: int, size: float
) -> Array:
    """z beyond `edge` (above it for sign 1, below for −1) with f(z) = wanted, |f| falling from the edge to infinity.

    By halving log |z − edge|: no step can leave the range, and the end of the range is the domain.
    """
    size = size or abs(edge) or 1.0
    nearest = max(_NEAREST * size, _NEAREST_ULPS * float(np.spacing(abs(edge))))
    near, far = np.full(wanted.shape, np.log(nearest)), np.full(wanted.shape, np.log(_FARTHEST * size))
    limit = np.abs(function(edge + sign * np.exp(near)))
    beyond = np.abs(wanted) > limit
    if beyond.any():
        allowed = f"|{name}| at most {limit[0]:.6g} on this side of 0, which it takes at the end of the support"
        raise InputError(name, float(wanted[beyond][0]), allowed)
    for _ in range(_HALVINGS):
        middle = (near + far) / 2
        above = np.abs(function(edge + sign * np.exp(middle))) > np.abs(wanted)
        near, far = np.where(above, middle, near), np.where(above, far, middle)
    return edge + sign * np.exp((near + far) / 2)


def _plane_r(sums: CauchySums, g: Complex, mean: float) -> Complex:
    """Newton's method for F(z) = z − H(z) = 1/g from z = 1/g + mean, where F is one to one."""
    z = 1 / g + mean
    for _ in range(_STEPS):
        value = sums(z)
        residual = z - value.h - 1 / g
        if (np.abs(residual * g) <= _TOLERANCE).all():
            return value.h
        z = z - residual / (1 - value.slope)
    worst = float(np.abs(residual * g).max())
    raise ConvergenceError("the inverse of the Stieltjes transform", worst, _TOLERANCE, "take |g| smaller")


def hull(law: Any) -> tuple[float, float]:
    """The smallest interval that holds bands and atoms."""
    ends = [x for band in law.edges for x in band] + [atom.location for atom in law.atoms]
    return min(ends), max(ends)


def _points(name: str, value: ArrayLike) -> Complex:
    try:
        points = np.asarray(value, dtype=complex).ravel()
    except (TypeError, ValueError):
        raise InputError(name, value, "numbers") from None
    if not np.isfinite(points).all():
        raise InputError(name, complex(points[~np.isfinite(points)][0]), "finite numbers")
    return points


def _shaped(given: ArrayLike, values: Complex) -> Any:
    """In the shape that was given; real for real arguments with real values."""
    real = not np.iscomplexobj(given) and not values.imag.any()
    result = values.real if real else values
    return result[0].item() if np.ndim(given) == 0 else result.reshape(np.shape(given))
