"""Numbers of many bits, all roots in doubles, and law expressions that are special in one way or another."""

from __future__ import annotations

from fractions import Fraction

import mpmath
import numpy as np
import pytest
from flint import fmpq, fmpq_poly

import freeattn as fa
from freeattn.errors import NotCoveredError
from freeattn.model.precision import own_context
from freeattn.numerics.curve import ExactCurve
from freeattn.numerics.edges import find_support, refined_support
from freeattn.numerics.exact import exact_law
from freeattn.numerics.polynomials import real_roots
from freeattn.numerics.rational import RationalEngine
from freeattn.numerics.wide import WideProduct, bits_of, from_number, to_number
from freeattn.theory.transforms import (
    CompoundFreePoisson,
    Dilation,
    Discrete,
    FreePoisson,
    FreeSum,
    Image,
    MarchenkoPastur,
    PointMass,
    Semicircle,
)

HALF = Fraction(1, 2)


@pytest.mark.parametrize("digits", [20, 80, 300])
@pytest.mark.parametrize("q", [complex(0.3, 1e-9), complex(-7e20, 3e12), complex(1e-200, 0)])
def test_products_of_powers_agree_with_mpmath(digits: int, q: complex) -> None:
    factors = (
        (fmpq_poly([fmpq(1, 3), -2, 5]), 2), (fmpq_poly([0, 1]), -1), (fmpq_poly([fmpq(1, 10**25), fmpq(7, 9)]), -4),
    )
    bits = bits_of(digits + 10)
    product, number = WideProduct(fmpq(-5, 7), factors), from_number(q, bits)
    context = own_context(digits + 10)
    value, slope = context.mpf(-5) / 7, context.zero
    for polynomial, power in factors:
        coefficients = [context.mpf(int(c.p)) / int(c.q) for c in reversed(polynomial.coeffs())]
        at, derivative = context.polyval(coefficients, context.mpmathify(q), derivative=1)
        value, slope = value * at**power, slope + power * derivative / at
    for found, expected in ((product(number, bits), value), (product.log_slope(number, bits), slope)):
        assert abs(to_number(found, context) - expected) <= context.mpf(10) ** (-digits) * abs(expected)


def test_real_roots_that_nearly_coincide_are_told_apart() -> None:
    gap = fmpq(1, 10**45)
    roots = [fmpq(-3), fmpq(0), fmpq(2, 7), fmpq(2, 7) + gap, fmpq(10**20)]
    polynomial = fmpq_poly([1])
    for root in roots:
        polynomial *= fmpq_poly([-root, 1])
    found = real_roots(polynomial * fmpq_poly([1, 0, 1]), 60)
    context = own_context(100)
    for value, root in zip(found, roots, strict=True):
        exact = context.mpf(int(root.p)) / int(root.q)
        assert abs(value - exact) <= context.mpf(10) ** -60 * abs(exact)


def test_edges_refined_are_the_edges_found_from_nothing() -> None:
    spec = fa.Attention.from_ratios(Fraction(1, 4), output="attention", n_heads=16)
    compiled = exact_law(spec).curve
    known = find_support(ExactCurve(compiled(40)), 40)
    curve = ExactCurve(compiled(120))
    refined, found = refined_support(curve, known, 120), find_support(curve, 120)
    assert refined is not None
    assert len(found[0]) == 2
    for one, other in zip(refined[0], found[0], strict=True):
        for a, b in ((one.left, other.left), (one.right, other.right)):
            assert a.exponent == b.exponent
            assert abs(a.x - b.x) <= mpmath.mpf(10) ** -119 * abs(b.x)


def test_the_root_picked_among_all_is_the_one_that_continuation_reaches() -> None:
    for tie in ("none", "key-value"):
        spec = fa.Attention.from_ratios(Fraction(3, 2), None if tie != "none" else 3, 2, n_heads=4, tie=tie)
        tracker = RationalEngine(exact_law(spec).curve)._tracker
        x = np.array([0.3 - 1e-6j, 1 - 0.1j, 5 - 3j, -2 - 1e-3j, 40 - 1e-9j])
        picked, one = tracker.picked(x)
        assert one.all()
        np.testing.assert_allclose(picked, tracker._continued(x), rtol=1e-10)
        alone = [tracker.picked_at(point) for point in x.tolist()]
        np.testing.assert_allclose(alone, picked, rtol=1e-13)


def test_a_single_point_gets_the_root_of_arrays() -> None:
    """Tiny and huge points, points beside the axis and in a band, and points where arrays hold what is not finite."""
    for tie in ("none", "key-value"):
        spec = fa.Attention.from_ratios(1, None if tie != "none" else 1, 1, n_heads=1, tie=tie)
        tracker = RationalEngine(exact_law(spec).curve)._tracker
        x = np.array([1e-12 - 1e-13j, 1e-3 - 1e-9j, 1e-30 - 1e-31j, 1e9 - 1e8j, 2 - 1e-15j, 1.5 - 0j, 0j])
        with np.errstate(all="ignore"):
            picked, one = tracker.picked(x)
        for point, expected, good in zip(x.tolist(), picked, one, strict=True):
            found = tracker.picked_at(point)
            assert (found is not None) == good
            assert found is None or abs(found - expected) <= 1e-12 * abs(expected)


@pytest.mark.parametrize("scale", [Fraction(1, 10**6), 1, 10**4])
def test_zero_inside_a_band(scale: Fraction) -> None:
    law = fa.law(Dilation(Semicircle(1), scale))
    size = float(scale)
    np.testing.assert_allclose(law.density(0.0) * size, 1 / np.pi, rtol=1e-13)
    np.testing.assert_allclose(law.density(np.array([1e-18, -1e-9]) * size) * size, 1 / np.pi, rtol=1e-13)
    assert abs(law.stieltjes(0.0) * size - 1j) < 1e-13
    assert abs(law.density(0, digits=40) * law.moments(2, digits=40)[1] ** 0.5 - 1 / own_context(40).pi) < 1e-35
    np.testing.assert_allclose(law.edges, [(-2 * size, 2 * size)], rtol=1e-15)


def test_zero_inside_a_band_of_a_free_sum() -> None:
    """m solves m = ½/(−1 − x − m) + ½/(2 − x − m) at x = 0."""
    law = fa.law(FreeSum((Semicircle(1), Discrete((-1, 2), (HALF, HALF)))))
    m = law.stieltjes(0.0)
    assert m.imag > 0
    assert abs(m - 0.5 / (-1 - m) - 0.5 / (2 - m)) < 1e-13


@pytest.mark.parametrize("law", [
    PointMass(0), Dilation(PointMass(0), 2), CompoundFreePoisson(PointMass(0), 2), Image(FreePoisson(2), (0, 0)),
])
def test_the_point_mass_at_zero(law: object) -> None:
    found = fa.law(law)
    assert found.edges == ()
    assert [(atom.location, atom.weight) for atom in found.atoms] == [(0, 1)]
    assert abs(found.stieltjes(2 + 1j) + 1 / (2 + 1j)) < 1e-15


def test_an_image_written_with_more_coefficients_than_its_degree() -> None:
    longer, plain = (fa.law(Image(MarchenkoPastur(HALF), a)) for a in ((1, 2, 0), (1, 2)))
    assert longer.edges == plain.edges
    assert fa.law(Image(MarchenkoPastur(HALF), (3, 0))).atoms[0].location == 3


def test_an_image_without_a_curve_is_refused_by_its_degree() -> None:
    for coefficients, text in (((0, 2, 1, 1), r"degree 3 \(Marchenko"), ((1, 2, 1), "degree 2 with a constant term")):
        with pytest.raises(NotCoveredError, match=text) as caught:
            fa.law(Image(MarchenkoPastur(HALF), coefficients))
        assert "Image(" not in str(caught.value)
