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
from freeattn.numerics.polynomials import Start, derivative_of_logarithm, isolated, real_roots, refined, to_context
from freeattn.numerics.support import Band, Edge, Gap
from freeattn.numerics.wide import ZERO, Wide, WidePolynomial, bits_of, difference, divided, from_number, to_number

__all__ = ["Support", "find_support", "refined_support", "zero_near"]

PhysicalTest = Callable[[fmpq], bool]

_MORE_DIGITS = 16  # of a critical point, when its value asks for them
_DOUBLINGS = 8  # of these
_GRID_BITS = 8  # an interval is probed at a multiple of 2^-8 of its length, or less
_SAME = 60  # bits to which a point known to 40 digits is found again among the roots of the curve to more digits
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
    for part, multiplicity in _slope_factors(curve):
        for wide, start in isolated(part):
            points.append(_Special(*_critical_value(curve, wide, start, digits), multiplicity + 1))
    return sorted(points, key=lambda point: point.q)


def _slope_factors(curve: ExactCurve) -> list[tuple[fmpq_poly, int]]:
    """The squarefree factors of the numerator of x'/x, with multiplicities."""
    slope = derivative_of_logarithm(curve.point)
    return slope.factor_squarefree()[1] if slope.degree() > 0 else []


def _critical_value(curve: ExactCurve, polynomial: WidePolynomial, start: Start, digits: int) -> tuple[Any, Any]:
    """(q, x(q)) at a root, x to `digits` relative: next to a zero of x this takes more digits of q."""
    previous = None
    for doubling in range(_DOUBLINGS):
        working = digits + _MORE_DIGITS * (2**doubling - 1)
        bits = bits_of(working + _MORE_DIGITS)
        q = refined(polynomial, start, working)
        x = curve.wide_point(from_number(q, bits), bits)
        if previous is not None and difference(x, previous, bits).top < x.top - bits_of(digits + 2):
            return q, to_number(x, own_context(digits + 10))
        previous = x
    raise ConvergenceError(
        "the critical values of x(q)", None, 10.0**-digits, "two ratios are too close; separate them"
    )


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
    """A rational number inside, with few digits: exact arithmetic follows."""
    if left is None and right is None:
        return _SHARE
    ends = [fraction_of(end.q) for end in (left, right) if end is not None]
    beyond = 2 * (1 + abs(ends[0]))
    low = ends[0] - beyond if left is None else ends[0]
    high = ends[0] + beyond if right is None else ends[-1]
    grid = fmpq(2) ** (_GRID_BITS - _exponent(high - low))
    return fmpq(((low + _SHARE * (high - low)) * grid).floor()) / grid


def _exponent(value: fmpq) -> int:
    return int(value.p).bit_length() - int(value.q).bit_length()


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


Support = tuple[tuple[Band, ...], tuple[Gap, ...]]


def refined_support(curve: ExactCurve, known: Support, digits: int) -> Support | None:
    """A known support to more digits; None when its ends are not found again.

    Args:
        curve: the curve with parameters to these digits.
        known: its support, to at least 40 digits.
    """
    candidates = [(WidePolynomial(polynomial), 1 if power > 0 else -1) for polynomial, power in curve.point]
    candidates += [(WidePolynomial(part), 0) for part, _ in _slope_factors(curve)]
    bands, gaps = known
    moved: dict[Any, tuple[Any, Any]] = {}
    for gap in gaps:
        for q, x in ((gap.q_low, gap.low), (gap.q_high, gap.high)):
            found = _found_again(curve, candidates, q, x, digits)
            if found is None:
                return None
            moved[q, x] = found
    new_bands = []
    for band in bands:
        ends = [(*moved[edge.q, edge.x], edge.exponent) for edge in (band.left, band.right)]
        new_bands.append(Band(*(Edge(x, q, exponent) for q, x, exponent in ends)))
    new_gaps = []
    for gap in gaps:
        (q_low, low), (q_high, high) = moved[gap.q_low, gap.low], moved[gap.q_high, gap.high]
        new_gaps.append(Gap(low, high, q_low, q_high))
    return tuple(new_bands), tuple(new_gaps)


def _found_again(
    curve: ExactCurve, candidates: Sequence[tuple[WidePolynomial, int]], q: Any, x: Any, digits: int
) -> tuple[Any, Any] | None:
    """(q, x) to `digits`: the root next to q of the polynomial that has one there, of the kind that x asks for."""
    context = own_context(digits + 10)
    if mpmath.isinf(q):
        return q, (x if mpmath.isinf(x) else to_context(curve.point_at_infinity, context))
    kind = 1 if x == 0 else -1 if mpmath.isinf(x) else 0
    start = from_number(q, 4 * _SAME)
    for polynomial, of_kind in candidates:
        if of_kind == kind and _has_root_at(polynomial, start):
            here = Start(start, start.top - _SAME)
            try:
                return _critical_value(curve, polynomial, here, digits) if kind == 0 else (
                    refined(polynomial, here, digits), x
                )
            except ConvergenceError:  # a cluster of roots: they are isolated again
                return None
    return None


def _has_root_at(polynomial: WidePolynomial, q: Wide) -> bool:
    """Whether a root is next to q, to 60 bits."""
    if q == ZERO:
        return polynomial.vanishes_at_zero
    bits = 4 * _SAME
    slope = polynomial.slope(q, bits)
    return slope != ZERO and divided(polynomial(q, bits), slope, bits).top < q.top - _SAME


def zero_near(curve: ExactCurve, q: Wide, digits: int) -> Any:
    """The zero of x(q) next to q, to `digits`.

    Raises:
        BranchError: when there is none.
    """
    for polynomial, power in curve.point:
        if power > 0 and _has_root_at(wide := WidePolynomial(polynomial), q):
            return refined(wide, Start(q, q.top - _SAME), digits)
    raise BranchError("the parameter at which x = 0 was not found again")
