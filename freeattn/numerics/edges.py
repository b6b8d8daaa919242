"""Bands of the support, from the critical points of x(q): all of them, gaps included, to any number of digits.

Between two neighbouring special points (critical points, zeros and poles of x) a real q moves x monotonically. Such an
interval either lies on the physical branch as a whole, then its image is free of spectrum, or not at all: the physical
q continues analytically along the real axis until x' = 0. The bands are what the physical images leave of the line.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import Any

import mpmath
from flint import fmpq, fmpq_poly

from freeattn.errors import BranchError, ConvergenceError, NotCoveredError
from freeattn.model.precision import own_context
from freeattn.numerics.branch import physical_on_real_interval
from freeattn.numerics.compile import fraction_of
from freeattn.numerics.curve import ExactCurve
from freeattn.numerics.polynomials import derivative_of_logarithm, real_roots, to_context
from freeattn.numerics.support import Band, Edge, Gap

__all__ = ["find_support"]

PhysicalTest = Callable[[fmpq], bool]

_DOUBLINGS = 8  # of the working digits of a critical point
_SHARE = fmpq(377, 987)  # where an interval is probed: off the round numbers at which ψ may have a pole


@dataclass(frozen=True)
class _Special:
    q: Any
    x: Any  # None at a pole
    order: int  # of x − x(q) at a zero or critical point


def find_support(
    curve: ExactCurve, digits: int, physical: PhysicalTest | None = None
) -> tuple[tuple[Band, ...], tuple[Gap, ...]]:
    """(bands, gaps), ascending, to the given digits.

    Args:
        physical: decides whether a rational q inside a monotone interval is on the physical branch; by default the
            exact local test of the curve.

    Raises:
        BranchError: when the physical intervals do not fit together to the complement of a bounded support.
    """
    special = _special_points(curve, digits)
    test = physical or _local_test(curve)
    gaps = sorted(
        (gap for left, right in _intervals(special) if (gap := _gap(curve, left, right, test, digits)) is not None),
        key=lambda gap: gap.low,
    )
    if len(gaps) < 2 or gaps[0].low != -mpmath.inf or gaps[-1].high != mpmath.inf:
        raise BranchError("the physical branch at infinity was not found among the real intervals of the parameter")
    exponents = _Exponents(curve, special, digits)
    bands = []
    for before, after in pairwise(gaps):
        if after.low < before.high:
            raise BranchError(f"two physical intervals overlap near x = {mpmath.nstr(after.low, 10)}")
        if after.low != before.high or (exponents.knows(after.q_low) and after.q_low != before.q_high):
            ends = ((before.high, before.q_high), (after.low, after.q_low))
            bands.append(Band(*(Edge(x, q, exponents.at(q)) for x, q in ends)))
    return tuple(bands), tuple(gaps)


class _Exponents:
    """Power of the density at an edge, from the orders of x − x_c and of m at the parameter q_c of the edge.

    With x − x_c ~ δ^k and m ~ δ^j the density starts with the first power δ^i, i ≥ j, that is not a power of x − x_c:
    exponent i/k. A soft edge has j ≥ 0, k = 2; a hard edge has a pole of m.
    """

    def __init__(self, curve: ExactCurve, special: Sequence[_Special], digits: int) -> None:
        self._orders = {point.q: point.order for point in special}
        self._poles = [
            (q, power) for polynomial, power in curve.stieltjes if power < 0 for q in real_roots(polynomial, digits)
        ]
        self._close = mpmath.mpf(10) ** (-digits)

    def knows(self, q: Any) -> bool:
        """True for a finite special point."""
        return q in self._orders

    def at(self, q: Any) -> Fraction:
        """The exponent at a special point."""
        if not self.knows(q):
            raise NotCoveredError(
                "an edge of this law lies at an infinite parameter; write the law with its factors in another order"
            )
        order = self._orders[q]
        pole = sum(power for root, power in self._poles if abs(root - q) <= self._close * abs(q))
        power = pole if pole < 0 and pole % order else pole + 1
        return Fraction(power, order)


def _special_points(curve: ExactCurve, digits: int) -> list[_Special]:
    context = own_context(digits + 10)
    points = []
    for polynomial, power in curve.point:
        value = context.zero if power > 0 else None
        points += [_Special(q, value, abs(power)) for q in real_roots(polynomial, digits)]
    slope = derivative_of_logarithm(curve.point)
    if slope.degree() > 0:
        for part, multiplicity in slope.factor_squarefree()[1]:
            points += [_Special(q, x, multiplicity + 1) for q, x in _critical_values(curve, part, digits)]
    return sorted(points, key=lambda point: point.q)


def _critical_values(curve: ExactCurve, polynomial: fmpq_poly, digits: int) -> list[tuple[Any, Any]]:
    """(q, x(q)) at the real roots, x to `digits` relative: next to a zero of x this takes more digits of q."""
    previous: list[Any] = []
    for doubling in range(_DOUBLINGS):
        working = digits * 2**doubling
        context = own_context(working + 10)
        roots = real_roots(polynomial, working)
        values = [curve.point_at(q, context) for q in roots]
        tolerance = context.mpf(10) ** (-digits - 2)
        if previous and all(abs(a - b) <= tolerance * abs(b) for a, b in zip(previous, values, strict=True)):
            return list(zip(roots, values, strict=True))
        previous = values
    raise ConvergenceError("the critical values of x(q)", 1.0, 10.0**-digits, "two ratios are too close; separate them")


def _intervals(special: Sequence[_Special]) -> list[tuple[_Special | None, _Special | None]]:
    ends: list[_Special | None] = [None, *special, None]
    return list(pairwise(ends))


def _local_test(curve: ExactCurve) -> PhysicalTest:
    branch = curve.branch
    if branch is None:
        raise BranchError("no local test of the physical branch is known for this law")

    def test(q: fmpq) -> bool:
        x, slope = curve.point_exactly(q)
        return physical_on_real_interval(branch, curve.psi, q, slope, x)

    return test


def _between(left: _Special | None, right: _Special | None) -> fmpq:
    if left is None and right is None:
        return _SHARE
    if left is None:
        assert right is not None
        return fraction_of(right.q) - _SHARE * (1 + abs(fraction_of(right.q)))
    if right is None:
        return fraction_of(left.q) + _SHARE * (1 + abs(fraction_of(left.q)))
    return fraction_of(left.q) + _SHARE * (fraction_of(right.q) - fraction_of(left.q))


def _gap(
    curve: ExactCurve, left: _Special | None, right: _Special | None, test: PhysicalTest, digits: int
) -> Gap | None:
    middle = _between(left, right)
    if left is not None and right is not None and left.q == right.q:
        return None
    if not test(middle):
        return None
    _, slope = curve.point_exactly(middle)
    leftmost, rightmost = (left, -mpmath.inf), (right, mpmath.inf)
    below, above = (leftmost, rightmost) if slope > 0 else (rightmost, leftmost)
    low, q_low = _image(curve, *below, sign=-1, digits=digits)
    high, q_high = _image(curve, *above, sign=1, digits=digits)
    return Gap(low, high, q_low, q_high)


def _image(curve: ExactCurve, end: _Special | None, infinity: Any, sign: int, digits: int) -> tuple[Any, Any]:
    """(x, q) at an end of a monotone interval, q = ±∞ without an end; x rises (sign = 1) or falls (−1) towards it."""
    if end is not None:
        return (sign * mpmath.inf if end.x is None else end.x), end.q
    degree = sum(polynomial.degree() * power for polynomial, power in curve.point)
    if degree > 0:
        return sign * mpmath.inf, infinity
    context = own_context(digits + 10)
    return to_context(curve.point_at_infinity, context), infinity
