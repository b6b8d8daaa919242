"""The local test of the physical branch, in doubles (off the support's complement) and exactly (in gaps).

`freeattn.theory.transforms.uniformization` states the test. It is used at every point that is returned: a root that
fails it is never a number. All arrays live at the complex conjugate of the spectral point, where ψ and q are in the
upper half-plane.
"""

from __future__ import annotations

import cmath
from typing import Any

import numpy as np
from flint import fmpq

from freeattn.numerics.compile import CompiledBranch, CompiledPair, RationalFunction
from freeattn.numerics.polynomials import horner, shifted, to_doubles

__all__ = ["BranchTest", "centered", "physical_on_real_interval"]

Numbers = Any  # arrays of complex numbers, or one of them
Mask = Any  # arrays of truth values, or one of them

# A value that is real up to rounding may show an imaginary part of the wrong sign of this size relative to its distance
# from the (real) value at the origin: some dozens of rounding errors of 1.1e-16 in the Horner schemes below, whose real
# constant terms do not touch the imaginary part.
_NOISE = 1e-13
_CLEAR = 1e-6  # of an imaginary part: far more than roots are off by that are eigenvalues
_TINY = float(np.finfo(float).tiny)


class _Quotient:
    def __init__(self, function: RationalFunction, origin: fmpq) -> None:
        self._top = to_doubles(shifted(function.numerator, origin)).tolist()
        self._bottom = to_doubles(shifted(function.denominator, origin)).tolist()
        self._at_origin = self._top[0] / self._bottom[0] if self._bottom[0] else 0.0
        self.constant = len(self._top) == 1 and len(self._bottom) == 1

    def __call__(self, delta: Numbers) -> Numbers:
        return horner(self._top, delta) / horner(self._bottom, delta)

    def above(self, delta: Numbers, value: Numbers, floor: float) -> Mask:
        """Im value > floor, relative to the distance from the value at the origin and to the argument of δ."""
        share = abs(delta.imag) / (abs(delta) + _TINY)
        return value.imag > floor * share * abs(value - self._at_origin)


class _Pair:
    """Both roots of p² − total·p + product lie in |p|² < t: Im x = Im p·(1 − t/|p|²) has the other sign than Im p.

    With a = total/√t and b = product/t that is the Schur-Cohn condition |a − ā b| < 1 − |b|². It is evaluated in the
    distances of a and b from their values at the origin, because at a hard edge b → ±1.
    """

    def __init__(self, pair: CompiledPair, origin: fmpq) -> None:
        self._root = (int(pair.rate.p) / int(pair.rate.q)) ** 0.5
        total, self._total = centered(pair.total, fmpq(1), origin)
        product, self._product = centered(pair.product, pair.rate, origin)
        self._a = int(total.p) / int(total.q) / self._root
        self._b = int(product.p) / int(product.q)
        gap, room = 1 - product, 1 - product * product
        self._gap, self._room = int(gap.p) / int(gap.q), int(room.p) / int(room.q)
        self.constant = pair.product.numerator.degree() < 1 and pair.product.denominator.degree() < 1

    def inside(self, delta: Numbers, floor: float) -> Mask:
        """The condition, with 1 − |b|² above `floor` relative to the size of its terms."""
        da, db = self._total(delta) / self._root, self._product(delta)
        room = self._room - 2 * self._b * db.real - abs(db) ** 2
        left = abs(self._a * (self._gap - db) + da - da.conjugate() * (self._b + db))
        size = abs(self._room) + abs(db) * (1 + abs(db))
        return (room > floor * size) & (left <= room + _NOISE * (size + abs(da)))


def centered(function: RationalFunction, unit: fmpq, origin: fmpq) -> tuple[fmpq, _Quotient]:
    """(f(origin)/unit, f/unit − f(origin)/unit), the difference with an exactly vanishing constant term."""
    value = function.numerator(origin) / function.denominator(origin) / unit
    difference = function.numerator / unit - function.denominator * value
    return value, _Quotient(RationalFunction(difference, function.denominator), origin)


class BranchTest:
    """Test at q = origin + δ: `test(delta, x)` is True where q is the physical root at spectral point x̄.

    For arrays, and for single numbers.
    """

    def __init__(self, branch: CompiledBranch, psi: RationalFunction, origin: fmpq) -> None:
        self._leaves = tuple(self._leaf(leaf, origin) for leaf in branch.leaves)
        self._start = _Quotient(branch.start, origin)
        self._factors = tuple(_Quotient(factor, origin) for factor in branch.factors)
        self._psi = _Quotient(psi, origin)

    @staticmethod
    def _leaf(leaf: Any, origin: fmpq) -> Any:
        if isinstance(leaf, CompiledPair):
            return _Pair(leaf, origin)
        return _Quotient(leaf[0], origin), _Quotient(leaf[1], origin)

    def __call__(self, delta: Numbers, x: Numbers, strict: bool) -> Mask:
        """True where q is physical at x; `strict` asks for imaginary parts above rounding (x inside a band)."""
        floor = _NOISE if strict else -_NOISE
        good: Mask = True
        if not self._psi.constant:  # ψ = 0: the point mass at 0
            good = self._psi.above(delta, self._psi(delta), floor)
            if good is False:  # one number
                return False
        if strict:  # a real root with rounding in it is not the complex root of a band
            good &= abs(delta.imag) > _NOISE * abs(delta)
        for leaf in self._leaves:
            good &= self._pair(leaf, delta, floor) if isinstance(leaf, _Pair) else self._single(leaf, delta, floor)
        start = self._start(delta)
        good &= self._start.above(delta, start, -_NOISE)
        excess = _angle(start) - _angle(1 / x)
        for factor in self._factors:
            excess = excess - _angle(factor(delta))
        return good & (abs(excess) < 1.0)  # a multiple of 2π by construction: 0 on the physical branch

    def excludes(self, delta: complex) -> bool:
        """Whether q is so far from where Im ψ > 0 that rounding of δ changes nothing."""
        return not (self._psi.constant or self._psi.above(delta, self._psi(delta), -_CLEAR))

    @staticmethod
    def _single(leaf: tuple[_Quotient, _Quotient], delta: Numbers, floor: float) -> Mask:
        if leaf[1].constant:  # θ₂ = 0: the leaf is absent
            return True
        point, value = leaf
        return value.above(delta, value(delta), floor) & point.above(delta, point(delta), -_NOISE)

    @staticmethod
    def _pair(pair: _Pair, delta: Numbers, floor: float) -> Mask:
        if pair.constant:  # θ₂ = 0: one root of zφ = 1 is at infinity, the other is tested by the arguments
            return True
        return pair.inside(delta, floor)


def _angle(value: Numbers) -> Any:
    return cmath.phase(value) if isinstance(value, complex) else np.angle(value)


def physical_on_real_interval(branch: CompiledBranch, psi: RationalFunction, q: fmpq, slope: fmpq, x: fmpq) -> bool:
    """The same test at a real q inside a monotone interval of x(q), exactly: signs of rational numbers.

    The limit from z = 1/x in the upper half-plane: imaginary parts become derivatives along the direction in which
    Im z > 0, arguments become 0 or π. `slope` is x'(q).
    """
    direction = -1 if slope > 0 else 1  # Im z > 0 means Im x < 0

    def rising(function: RationalFunction) -> bool:
        return _derivative(function, q) * direction > 0

    point_mass_at_zero = psi.numerator.degree() < 0
    if not (point_mass_at_zero or rising(psi)) or not rising(branch.start):
        return False
    for leaf in branch.leaves:
        if isinstance(leaf, CompiledPair):
            if not _pair_physical(leaf, q):
                return False
        elif not (leaf[1].numerator.degree() < 1 or (rising(leaf[0]) and rising(leaf[1]))):
            return False
    turns = (1 if _value(branch.start, q) < 0 else 0) - (1 if x < 0 else 0)
    turns -= sum(1 for factor in branch.factors if _value(factor, q) < 0)
    return turns == 0


def _value(function: RationalFunction, q: fmpq) -> fmpq:
    return function.numerator(q) / function.denominator(q)


def _derivative(function: RationalFunction, q: fmpq) -> fmpq:
    top, bottom = function.numerator, function.denominator
    return (top.derivative()(q) * bottom(q) - top(q) * bottom.derivative()(q)) / bottom(q) ** 2


def _pair_physical(pair: CompiledPair, q: fmpq) -> bool:
    """Both p with |p|² < t: that is where x = p + 1 + t + t/p turns the other way than p."""
    total, product, rate = _value(pair.total, q), _value(pair.product, q), pair.rate
    if product == 0:
        return True
    if total * total < 4 * product:  # complex pair, |p|² = product
        return product < rate
    inside = rate + product
    return inside > 0 and inside * inside > total * total * rate and total * total < 4 * rate
