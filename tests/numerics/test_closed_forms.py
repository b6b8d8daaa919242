"""Densities, edges, atoms and distribution functions that are known in closed form or from one polynomial."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
import sympy as sp
from law_quadrature import band_integral, mass_and_moments, powers
from specimens import COIN, EVERYTHING, built

import freeattn as fa
from freeattn.theory.transforms import (
    Dilation,
    Discrete,
    FreePoisson,
    FreeProduct,
    FreeSum,
    Image,
    MarchenkoPastur,
    PointMass,
    Semicircle,
)

R = sp.Rational
ENDS = np.geomspace(1e-9, 0.05, 12)
INSIDE = np.concatenate([ENDS, np.linspace(0.08, 0.95, 31), 1 - ENDS[::-1]])


def between(left: float, right: float) -> Any:
    return left + (right - left) * INSIDE


# Marchenko-Pastur ----------------------------------------

RATIOS = [R(1, 100), R(1, 2), R(99, 100), 1, R(101, 100), R(5, 2), 40]


def marchenko_pastur_density(x: Any, y: float) -> Any:
    left, right = (1 - math.sqrt(y)) ** 2, (1 + math.sqrt(y)) ** 2
    return np.sqrt((x - left) * (right - x)) / (2 * np.pi * y * x)


def marchenko_pastur_mass(x: float, y: float) -> float:
    """∫_a^x of the density by its antiderivative in an angle (a = left edge)."""
    a, b = (1 - math.sqrt(y)) ** 2, (1 + math.sqrt(y)) ** 2
    root = math.sqrt((x - a) * (b - x))
    terms = (
        root
        + (a + b) / 2 * math.asin((2 * x - a - b) / (b - a))
        - math.sqrt(a * b) * (math.asin(((a + b) * x - 2 * a * b) / (x * (b - a))) if a > 0 else 0.0)
    )
    start = -(a + b) / 2 * math.pi / 2 + math.sqrt(a * b) * math.pi / 2
    return (terms - start) / (2 * math.pi * y)


@pytest.mark.parametrize("ratio", RATIOS, ids=str)
def test_marchenko_pastur(ratio: Any) -> None:
    y = float(ratio)
    law = fa.law(MarchenkoPastur(ratio))
    left, right = (1 - math.sqrt(y)) ** 2, (1 + math.sqrt(y)) ** 2
    [(found_left, found_right)] = law.edges
    assert found_right == pytest.approx(right, rel=2e-15)
    assert found_left == pytest.approx(left, rel=1e-13, abs=0)
    x = between(left, right)[8:-8]  # nearer to the ends the reference itself loses digits
    np.testing.assert_allclose(law.density(x), marchenko_pastur_density(x, y), rtol=1e-10)
    weight = max(0.0, 1 - 1 / y)
    assert [(atom.location, float(atom.weight)) for atom in law.atoms] == (
        [(0.0, pytest.approx(weight))] if weight else []
    )
    for point in x[::6]:
        assert law.cdf(point) == pytest.approx(weight + marchenko_pastur_mass(point, y), abs=1e-12)
    assert law.edge_exponents == ((Fraction(-1 if ratio == 1 else 1, 2), Fraction(1, 2)),)
    assert law.density([left * (1 - 1e-9) - 1e-12, right * (1 + 1e-9), -1.0, 1e9]).tolist() == [0.0] * 4


@pytest.mark.parametrize("rate", [R(1, 50), R(2, 5), 1, R(7, 2), 30], ids=str)
def test_free_poisson(rate: Any) -> None:
    t = float(rate)
    law = fa.law(FreePoisson(rate))
    left, right = (1 - math.sqrt(t)) ** 2, (1 + math.sqrt(t)) ** 2
    assert law.edges[0] == pytest.approx((left, right), rel=1e-13, abs=0)
    x = between(left, right)[8:-8]
    np.testing.assert_allclose(
        law.density(x), np.sqrt((x - left) * (right - x)) / (2 * np.pi * x), rtol=1e-10
    )
    assert [atom.weight for atom in law.atoms] == ([1 - Fraction(str(rate))] if t < 1 else [])


def test_marchenko_pastur_near_its_edges() -> None:
    """Relative accuracy of the density down to 1e-9 from an edge: the product form with exact distances."""
    law = fa.law(MarchenkoPastur(4))
    left, right, distance = 1.0, 9.0, np.geomspace(1e-9, 1e-3, 13)
    expected = np.sqrt(distance * (8 - distance)) / (8 * np.pi * (left + distance))
    np.testing.assert_allclose(
        law.density(left + distance), expected, rtol=2e-7
    )  # x itself is rounded by 1e-16
    expected = np.sqrt(distance * (8 - distance)) / (8 * np.pi * (right - distance))
    np.testing.assert_allclose(law.density(right - distance), expected, rtol=2e-6)


def test_hard_edge_of_marchenko_pastur_over_many_decades() -> None:
    law = fa.law(MarchenkoPastur(1))
    x = np.geomspace(1e-250, 1e-12, 60)
    np.testing.assert_allclose(law.density(x), 1 / (np.pi * np.sqrt(x)), rtol=1e-11)
    assert law.density(0.0) == math.inf


# Products ----------------------------------------


@pytest.mark.parametrize("s", range(1, 7))
def test_fuss_catalan_density(s: int) -> None:
    law = fa.law(FreeProduct((MarchenkoPastur(1),) * s))
    angle = np.linspace(1e-3, 1 - 1e-3, 60) * np.pi / (s + 1)
    x = np.sin((s + 1) * angle) ** (s + 1) / (np.sin(angle) * np.sin(s * angle) ** s)
    expected = np.sin(angle) ** 2 * np.sin(s * angle) ** (s - 1) / (np.pi * np.sin((s + 1) * angle) ** s)
    np.testing.assert_allclose(law.density(x), expected, rtol=1e-9)
    assert law.edges == ((0.0, pytest.approx((s + 1) ** (s + 1) / s**s, rel=1e-14)),)
    assert law.edge_exponents[0][0] == Fraction(-s, s + 1)
    assert law.atoms == ()


@pytest.mark.parametrize("y", [R(1, 10), R(1, 2), 2], ids=str)
def test_sample_covariance_against_silverstein(y: Any) -> None:
    """−1/v + y∫ t/(1 + tv) dH = x with the companion transform v; ρ = Im v/(πy) (arXiv 1507.03003)."""
    locations, weights, ratio = (1.0, 10.0), (0.25, 0.75), float(y)
    law = fa.law(FreeProduct((Discrete((1, 10), (R(1, 4), R(3, 4))), MarchenkoPastur(y))))
    for left, right in law.edges:
        for x in left + (right - left) * np.linspace(0.02, 0.98, 15):
            v, x = np.poly1d([1.0, 0.0]), float(x)
            parts = [np.poly1d([t, 1.0]) for t in locations]
            cubic = (
                x * v * parts[0] * parts[1]
                + parts[0] * parts[1]
                - ratio * v * (weights[0] * locations[0] * parts[1] + weights[1] * locations[1] * parts[0])
            )
            [root] = [r for r in cubic.roots if r.imag > 1e-9]
            assert law.density(x) == pytest.approx(root.imag / (np.pi * ratio), rel=1e-8)
    weight = 1 - 1 / ratio
    assert [float(a.weight) for a in law.atoms] == ([weight] if weight > 0 else [])


def test_sample_covariance_of_the_identity() -> None:
    x = between(*fa.law(MarchenkoPastur(R(1, 3))).edges[0])[10:-10]
    product = fa.law(FreeProduct((PointMass(2), MarchenkoPastur(R(1, 3)))))
    np.testing.assert_allclose(
        2 * product.density(2 * x), fa.law(MarchenkoPastur(R(1, 3))).density(x), rtol=1e-11
    )


def test_product_of_projections() -> None:
    """√((x − λ₋)(λ₊ − x))/(2πx(1 − x)), λ± the ends (Voiculescu, Dykema, Nica, example 3.6.7)."""
    alpha, beta = 2 / 3, 3 / 4
    law = built("projections")
    centre, spread = alpha + beta - 2 * alpha * beta, math.sqrt(4 * alpha * beta * (1 - alpha) * (1 - beta))
    left, right = centre - spread, centre + spread
    assert law.edges[0] == pytest.approx((left, right), rel=1e-12)
    x = between(left, right)[10:-10]
    np.testing.assert_allclose(
        law.density(x), np.sqrt((x - left) * (right - x)) / (2 * np.pi * x * (1 - x)), rtol=1e-9
    )
    assert [(a.location, a.weight) for a in law.atoms] == [(0.0, Fraction(1, 3)), (1.0, Fraction(5, 12))]


# Sums ----------------------------------------


@pytest.mark.parametrize("variance", [1, R(1, 4), 9], ids=str)
def test_semicircle(variance: Any) -> None:
    radius = 2 * math.sqrt(variance)
    law = fa.law(Semicircle(variance))
    assert law.edges == ((pytest.approx(-radius, rel=1e-15), pytest.approx(radius, rel=1e-15)),)
    x = np.linspace(-0.99, 0.99, 40) * radius
    np.testing.assert_allclose(
        law.density(x), 2 * np.sqrt(radius**2 - x**2) / (np.pi * radius**2), rtol=1e-11
    )
    assert law.cdf(0.0) == pytest.approx(0.5, abs=1e-13)


def density_from_polynomial(coefficients: list[complex]) -> float:
    """Im G of the one root in the lower half-plane."""
    [root] = [r for r in np.roots(coefficients) if r.imag < -1e-9]
    return -root.imag / np.pi


@pytest.mark.parametrize("variance", [1, R(1, 4), R(9, 10)], ids=str)
def test_semicircle_and_coin(variance: Any) -> None:
    """G((x − vG)² − 1) = x − vG."""
    law, v = fa.law(FreeSum((Semicircle(variance), COIN))), float(variance)
    assert len(law.edges) == (2 if v < 1 else 1)
    for left, right in law.edges:
        for x in left + (right - left) * np.linspace(0.02, 0.98, 14):
            expected = density_from_polynomial([v * v, -2 * x * v, x * x - 1 + v, -x])
            assert law.density(x) == pytest.approx(expected, rel=1e-8)
    np.testing.assert_allclose(law.density(x), law.density(-x), rtol=1e-11)


def test_semicircle_and_coin_at_the_merger() -> None:
    """Variance 1: the two bands touch at 0, where ρ ~ |x|^{1/3} inside one band."""
    law = built("semicircle and coin")
    [(left, right)] = law.edges
    assert right == pytest.approx(1.5 * math.sqrt(3), rel=1e-14)
    assert left == pytest.approx(-right, rel=1e-14)
    x = np.array([1e-9, 1e-6])
    slope = np.diff(np.log(law.density(x)))[0] / np.diff(np.log(x))[0]
    assert slope == pytest.approx(1 / 3, abs=1e-3)


@pytest.mark.parametrize("y", [R(1, 2), 2], ids=str)
def test_semicircle_and_marchenko_pastur(y: Any) -> None:
    """x = 1/G + vG + 1/(1 − yG)."""
    ratio, v = float(y), 0.01
    law = fa.law(FreeSum((Semicircle(R(1, 100)), MarchenkoPastur(y))))
    for left, right in law.edges:
        for x in left + (right - left) * np.linspace(0.02, 0.98, 15):
            expected = density_from_polynomial([-v * ratio, v + x * ratio, 1 - x - ratio, 1.0])
            assert law.density(x) == pytest.approx(expected, rel=1e-7)
    assert law.atoms == ()
    assert len(law.edges) == (2 if ratio > 1 else 1)


def test_sum_of_free_poissons_is_free_poisson() -> None:
    law, reference = fa.law(FreeSum((FreePoisson(R(3, 2)), FreePoisson(1)))), fa.law(FreePoisson(R(5, 2)))
    x = between(*reference.edges[0])[10:-10]
    np.testing.assert_allclose(law.density(x), reference.density(x), rtol=1e-10)


@pytest.mark.parametrize("name", ["sum with atoms", "compound, signed", "semicircle and coin, two bands"])
def test_masses_of_sums(name: str) -> None:
    law = built(name)
    exact = np.array([1.0, *law.moments(4)])
    found = sum(band_integral(law, k, powers(4), np.ones(5)).real for k in range(len(law.edges)))
    for atom in law.atoms:
        found = found + float(atom.weight) * np.array([atom.location**k for k in range(5)])
    np.testing.assert_allclose(found, exact, atol=1e-10)


# Points ----------------------------------------


@pytest.mark.parametrize("location", [2, R(1, 3), -2], ids=str)
def test_point_mass(location: Any) -> None:
    law, a = fa.law(PointMass(location)), float(location)
    assert law.edges == ()
    assert [(atom.location, atom.weight) for atom in law.atoms] == [(a, 1)]
    assert law.density([a, a + 1, 0.0]).tolist() == [0.0, 0.0, 0.0]
    assert law.cdf([a - 1e-9, a, a + 1]).tolist() == [0.0, 1.0, 1.0]
    assert law.quantile([0.0, 0.3, 1.0]).tolist() == [a, a, a]
    assert law.moments(3) == pytest.approx((a, a**2, a**3))
    assert law.stieltjes(a + 4.0) == pytest.approx(-0.25, rel=1e-12)
    assert law.stieltjes(a + 1j) == pytest.approx(1j, rel=1e-12)


def test_symmetric_coin() -> None:
    law = fa.law(COIN)
    assert law.cdf([-1.5, -1.0, 0.0, 1.0]).tolist() == [0.0, 0.5, 0.5, 1.0]
    assert law.quantile([0.0, 0.5, 0.51, 1.0]).tolist() == [-1.0, -1.0, 1.0, 1.0]
    assert law.integrate(lambda x: x**2 + x) == pytest.approx(1.0)


# Dilations and images ----------------------------------------


@pytest.mark.parametrize("name", ["Marchenko-Pastur", "quadratic image", "semicircle", "sample covariance"])
def test_dilation_scales(name: str) -> None:
    law, wide = built(name), fa.law(Dilation(EVERYTHING[name], 7))
    for left, right in law.edges:
        x = between(left, right)[12:-12]
        np.testing.assert_allclose(7 * wide.density(7 * x), law.density(x), rtol=1e-10)
        np.testing.assert_allclose(wide.cdf(7 * x), law.cdf(x), atol=1e-12)


@pytest.mark.parametrize(
    ("rate", "a1", "a2"), [(2, R(1, 3), R(3, 4)), (R(1, 2), 1, 5), (1, 0, 1), (4, R(1, 100), 1)]
)
def test_quadratic_image_is_a_change_of_variable(rate: Any, a1: Any, a2: Any) -> None:
    law, base = fa.law(Image(FreePoisson(rate), (0, a1, a2))), fa.law(FreePoisson(rate))
    [(left, right)] = base.edges
    x = between(left, right)[12:-12]
    image, slope = float(a1) * x + float(a2) * x**2, float(a1) + 2 * float(a2) * x
    np.testing.assert_allclose(law.density(image) * slope, base.density(x), rtol=1e-9)
    assert [atom.weight for atom in law.atoms] == [atom.weight for atom in base.atoms]


def test_affine_image_is_a_change_of_variable() -> None:
    base = fa.law(MarchenkoPastur(R(1, 2)))
    law = fa.law(Image(MarchenkoPastur(R(1, 2)), (R(1, 2), 3)))
    x = between(*base.edges[0])[10:-10]
    np.testing.assert_allclose(3 * law.density(0.5 + 3 * x), base.density(x), rtol=1e-10)


def test_affine_image_with_an_atom() -> None:
    law = fa.law(Image(MarchenkoPastur(2), (R(1, 2), R(1, 2))))
    assert [(a.location, a.weight) for a in law.atoms] == [(0.5, Fraction(1, 2))]
    found, exact = mass_and_moments(law)
    np.testing.assert_allclose(found, exact, rtol=1e-11)
    assert law.cdf([0.4, 0.5, law.edges[0][0], law.edges[0][1]]) == pytest.approx([0.0, 0.5, 0.5, 1.0])
