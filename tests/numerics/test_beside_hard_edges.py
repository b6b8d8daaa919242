"""Numbers next to an end where the density diverges: right to all digits that are given, or refused."""

from __future__ import annotations

from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
import pytest

import freeattn as fa
from freeattn.errors import BranchError, ConvergenceError, InputError
from freeattn.model.precision import own_context

CONTEXT = own_context(80)
SIZES = (8, 20, 22, 40, 76, 100, 200, 300)


@cache
def words(count: int) -> fa.SpectralLaw:
    """The law of a product of square Gaussian matrices: Fuss-Catalan of order `count`."""
    n = fa.space("n", 100)
    letters = [fa.gaussian(f"A{j}", n, n, Fraction(1, 100)) for j in range(count)]
    word = letters[0]
    for letter in letters[1:]:
        word = word @ letter
    return fa.law(word)


def marchenko_pastur(x: Any) -> Any:
    """Mass of [0, x] for the square case."""
    root = CONTEXT.sqrt(CONTEXT.mpf(x))
    return (root * CONTEXT.sqrt(4 - CONTEXT.mpf(x)) + 4 * CONTEXT.asin(root / 2)) / (2 * CONTEXT.pi)


@pytest.mark.parametrize("size", SIZES)
def test_densities_in_doubles(size: int) -> None:
    x = 10.0**-size
    assert words(1).density(x) == pytest.approx(np.sqrt(4 / x - 1) / (2 * np.pi), rel=1e-10)
    if size >= 40:  # ρ = √3/2π·x^{−2/3}·(1 + O(x^{1/3}))
        assert words(2).density(x) == pytest.approx(np.sqrt(3) / (2 * np.pi) * x ** (-2 / 3), rel=1e-9)


@pytest.mark.parametrize("size", SIZES)
def test_small_masses_and_their_quantiles(size: int) -> None:
    x = 10.0**-size
    mass = 2 / np.pi * np.sqrt(x)
    assert words(1).cdf(x) == pytest.approx(mass, rel=1e-8)
    if size >= 20:
        assert words(1).quantile(mass) == pytest.approx(x, rel=1e-9)


@pytest.mark.parametrize("size", [size for size in SIZES if size >= 40])
def test_densities_of_a_free_product(size: int) -> None:
    """By subordination, the law of the product of two letters: ρ = √3/2π·x^{−2/3}."""
    x = 10.0**-size
    product = fa.free_product(words(1), words(1))
    assert product.density(x) == pytest.approx(np.sqrt(3) / (2 * np.pi) * x ** (-2 / 3), rel=1e-9)
    assert product.cdf(x) == pytest.approx(3 * np.sqrt(3) / (2 * np.pi) * x ** (1 / 3), rel=1e-9)


def test_a_hard_edge_from_below() -> None:
    """The law of −A Aᵀ: x is negative, and ends at 0."""
    n = fa.space("n", 100)
    letter = fa.gaussian("A0", n, n, Fraction(1, 100))
    mirrored = fa.law(-(letter @ letter.T), of="self-adjoint")
    for size in (20, 60, 200):
        x = 10.0**-size
        assert mirrored.density(-x) == pytest.approx(words(1).density(x), rel=1e-9)


@pytest.mark.parametrize("digits", [25, 50])
@pytest.mark.parametrize("size", [18, 22, 26, 30, 60, 76, 100, 140, 300])
def test_many_digits_are_right_or_refused(size: int, digits: int) -> None:
    """Where doubles have no digit of the Jacobian, or z is below the last bit, a small residual means nothing."""
    x = CONTEXT.mpf(10) ** -size
    try:
        found = words(1).density(x, digits=digits)
    except (BranchError, ConvergenceError):
        assert size > 22
    else:
        right = CONTEXT.sqrt(4 / x - 1) / (2 * CONTEXT.pi)
        assert abs(found / right - 1) < CONTEXT.mpf(10) ** (1 - digits)


@pytest.mark.parametrize(("x", "digits"), [("1e-12", 50), ("1e-6", 40), ("1e-3", 50), ("2", 50), ("4", 30), ("5", 30)])
def test_distribution_functions_do_not_need_the_edge(x: str, digits: int) -> None:
    """Mass is told from the end where the density is small."""
    right = marchenko_pastur(min(float(x), 4.0)) if float(x) >= 1 else marchenko_pastur(x)
    assert abs(words(1).cdf(x, digits=digits) - right) < CONTEXT.mpf(10) ** (1 - digits)


@pytest.mark.parametrize("level", ["1e-12", "0.25"])
def test_quantiles_to_many_digits(level: str) -> None:
    found = words(1).quantile(level, digits=30)
    assert abs(marchenko_pastur(found) / CONTEXT.mpf(level) - 1) < 1e-17


def test_products_agree_with_doubles() -> None:
    for x in (1e-6, 0.5, 2.0):
        assert float(words(2).cdf(x, digits=40)) == pytest.approx(words(2).cdf(x), rel=1e-11)


@pytest.mark.parametrize("variance", [Fraction(10) ** 200, 1e200, Fraction(1, 10**200), Fraction(1, 10**152)])
def test_units_that_doubles_do_not_hold_are_refused(variance: Any) -> None:
    n = fa.space("n", 100)
    with pytest.raises(InputError, match="second moment of the law"):
        fa.law(fa.gaussian("A", n, n, variance))


@pytest.mark.parametrize("variance", [Fraction(10) ** 130, Fraction(1, 10**130)])
def test_far_units_are_right(variance: Fraction) -> None:
    n = fa.space("n", 100)
    law = fa.law(fa.gaussian("A", n, n, variance / 100))
    size = float(variance)
    assert law.edges[0][1] == pytest.approx(4 * size, rel=1e-12)
    assert law.density(size) * size == pytest.approx(words(1).density(1.0), rel=1e-10)
