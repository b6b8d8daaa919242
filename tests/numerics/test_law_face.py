"""What laws answer to numbers at the ends of what is allowed, and beyond it."""

from __future__ import annotations

from fractions import Fraction

import mpmath
import numpy as np
import pytest

import freeattn as fa
from freeattn.errors import InputError

HUGE = 10**400


@pytest.fixture(scope="module", params=["orthogonal", "gaussian"])
def law(request):
    fields = {"n_tokens": 512, "d_model": 768, "n_heads": 12, "d_key": 64, "d_value": 64, "d_out": 300}
    return fa.law(fa.Attention(**fields, inputs=request.param))


def test_integrals_of_complex_functions(law):
    z = 1 + 1j
    assert law.integrate(lambda x: 1 / (x - z)) == pytest.approx(law.stieltjes(z), rel=1e-12)


@pytest.mark.parametrize("function", [3, "x", lambda _: "x", lambda _: None, lambda x: x[:1], lambda _: 1.0])
def test_what_cannot_be_integrated(law, function):
    with pytest.raises(InputError, match="function"):
        law.integrate(function)


@pytest.mark.parametrize("name", ["density", "cdf", "quantile"])
@pytest.mark.parametrize("value", [np.array([0.5 + 5j]), np.complex128(0.5 + 5j), 0.5 + 5j, HUGE, Fraction(HUGE, 3)])
def test_complex_and_huge_numbers_are_refused(law, name, value):
    with pytest.raises(InputError):
        getattr(law, name)(value)


@pytest.mark.parametrize("value", [HUGE, Fraction(HUGE, 3), [1, HUGE]])
def test_huge_points_of_the_transform(law, value):
    with pytest.raises(InputError):
        law.stieltjes(value)


@pytest.mark.parametrize("value", [HUGE, "1e400", "1e-999999999", "1e99999999999", mpmath.mpf("1e1000"), "1e-400"])
def test_certificates_of_numbers_out_of_range(law, value):
    with pytest.raises(InputError, match="z"):
        law.certify(value)


def test_the_largest_quantile_and_the_largest_mass(law):
    right = law.edges_to(30)[-1][1]
    assert law.quantile(1, digits=30) == right
    assert law.cdf(100, digits=30) == 1
    assert law.cdf(-100, digits=30) == 0


def test_moments_beyond_doubles():
    law = fa.law(fa.Attention.from_ratios(1, 2, Fraction(1, 2), n_heads=2, beta=20), route="pencil")
    with pytest.raises(InputError, match="digits"):
        law.moments(3)
    assert law.moments(3, digits=20)[2] > mpmath.mpf("1e308")
