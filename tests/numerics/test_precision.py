"""More digits: lower precisions agree with higher ones, and doubles with both."""

from __future__ import annotations

from typing import Any

import mpmath
import numpy as np
import pytest
import sympy as sp
from specimens import SPECS, built, ratios

import freeattn as fa
from freeattn.theory.transforms import FreeProduct, MarchenkoPastur

R = sp.Rational
CONTEXT = mpmath.MPContext()
CONTEXT.dps = 100
LAWS = [
    "attention, two bands",
    "values, atom",
    "mha",
    "mha, hard edge",
    "tied values",
    "tied mha",
    "sample covariance",
    "semicircle and coin, two bands",
]


def number(value: Any) -> Any:
    return CONTEXT.mpmathify(value)


def agree(a: Any, b: Any, digits: float) -> bool:
    return bool(abs(number(a) - number(b)) <= abs(number(b)) * CONTEXT.mpf(10) ** -digits)


def inside(law: Any) -> list[Any]:
    left, right = law.edges[-1]
    return [R(left + (right - left) * share) for share in (0.01, 0.4, 0.97)]


@pytest.mark.parametrize("name", LAWS)
def test_digits_of_the_stieltjes_transform(name: str) -> None:
    law = built(name)
    low, high = law.edges[0][0], law.edges[-1][1]
    points = [(low + high) / 2 + 0.3j * high, -0.1 * high + 1e-6j, low - high, *inside(law)]
    for z in points:
        values = {digits: law.stieltjes(z, digits=digits) for digits in (30, 60)}
        assert agree(values[30], values[60], 29.5)
        double = law.stieltjes(complex(z) if isinstance(z, complex) else float(z))
        assert abs(complex(values[60]) - double) <= 1e-11 * abs(double)


@pytest.mark.parametrize("name", LAWS)
def test_digits_of_the_density(name: str) -> None:
    law = built(name)
    for x in inside(law):
        values = {digits: law.density(x, digits=digits) for digits in (30, 60)}
        assert agree(values[30], values[60], 29.5)
        assert law.density(float(x)) == pytest.approx(float(values[60]), rel=1e-12)
    assert law.density(law.edges[-1][1] * 2, digits=30) == 0


@pytest.mark.parametrize("name", [name for name in LAWS if name in SPECS])
def test_digits_of_edges(name: str) -> None:
    law = built(name)
    coarse, fine = law.edges_to(30), law.edges_to(50)
    for (a, b), (c, d), (e, f) in zip(coarse, fine, law.edges, strict=True):
        assert agree(a, c, 29)
        assert agree(b, d, 29)
        assert e == pytest.approx(float(c), rel=4e-16, abs=0)
        assert f == pytest.approx(float(d), rel=4e-16, abs=0)


@pytest.mark.parametrize("name", list(SPECS))
def test_digits_of_moments(name: str) -> None:
    law = built(name)
    for a, b, c in zip(law.moments(4), law.moments(4, digits=30), law.moments(4, digits=60), strict=True):
        assert agree(b, c, 29.5)
        assert a == pytest.approx(float(c), rel=4e-16)


def test_marchenko_pastur_to_fifty_digits() -> None:
    law = fa.law(MarchenkoPastur(R(1, 3)))
    with mpmath.workdps(70):
        root = 1 / mpmath.sqrt(3)
        [(left, right)] = law.edges_to(50)
        assert abs(left / (1 - root) ** 2 - 1) < mpmath.mpf(10) ** -50
        assert abs(right / (1 + root) ** 2 - 1) < mpmath.mpf(10) ** -50
        x = mpmath.mpf(7) / 5
        expected = mpmath.sqrt((x - (1 - root) ** 2) * ((1 + root) ** 2 - x)) / (2 * mpmath.pi * x / 3)
        found = law.density(R(7, 5), digits=50)
        assert abs(found / expected - 1) < mpmath.mpf(10) ** -49


def test_fuss_catalan_edge_to_fifty_digits() -> None:
    law = fa.law(FreeProduct((MarchenkoPastur(1),) * 3))
    [(left, right)] = law.edges_to(50)
    assert left == 0
    assert agree(right, CONTEXT.mpf(256) / 27, 50)


def test_the_residual_at_double_precision() -> None:
    """Doubles solve the published polynomial: λ²w − λ(1 − cw/γ)Π(−w) − c(1 − c)/γ·Π(−w)² = 0, λ = −z."""
    gamma, heads, value, out = 1.5, 12, 1.5, 1.5
    law = built("mha").normalized()
    c = 1 / np.expm1(1.0)
    left, right = law.edges[0]
    grid = left + (right - left) * np.linspace(0.02, 0.98, 25)
    for z in (grid + 0j, grid + 0.1j, grid - 3j, -grid + 0j):
        m = law.stieltjes(z)
        lam, w = -z, 1 + z * m  # m = (1 − w)/λ
        product = (1 - w) * (1 - w / heads) * (1 - w / value) * (1 - w / out)
        terms = [lam**2 * w, -lam * (1 - c * w / gamma) * product, -c * (1 - c) / gamma * product**2]
        assert (np.abs(sum(terms)) <= 3e-13 * np.sum(np.abs(terms), axis=0)).all()


def test_many_digits_near_an_edge() -> None:
    law = built("mha")
    [(left, right)] = law.edges_to(60)
    for power in (12, 20):
        step = CONTEXT.mpf(10) ** -power
        a = law.density(number(right) * (1 - step), digits=30)
        b = law.density(number(right) * (1 - step / 4), digits=30)
        assert abs(number(a) / number(b) - 2) < CONTEXT.mpf(10) ** (-power / 2)  # a square root
        a = law.density(number(left) * (1 + step), digits=30)
        b = law.density(number(left) * (1 + step / 4), digits=30)
        assert abs(number(a) / number(b) - 2) < 100 * CONTEXT.mpf(10) ** (-power / 2)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["Marchenko-Pastur", "mha", "mha, hard edge", "tied values"])
def test_digits_of_integrals(name: str) -> None:
    law = built(name)
    exact = law.moments(2, digits=60)
    assert agree(law.integrate(lambda x: x, digits=30), exact[0], 29.5)
    assert agree(law.integrate(lambda x: x * x, digits=30), exact[1], 29.5)
    assert agree(law.integrate(lambda x: x * 0 + 1, digits=30), 1, 29.5)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["Marchenko-Pastur", "mha", "tied values"])
def test_digits_of_quantiles(name: str) -> None:
    law = built(name)
    x = law.quantile(R(1, 3), digits=30)
    assert agree(law.cdf(x, digits=35), CONTEXT.mpf(1) / 3, 29)
    assert float(x) == pytest.approx(law.quantile(1 / 3), rel=1e-13)


@pytest.mark.parametrize("beta", [R(1, 10**6), R(1, 10**3), 6, 8])
def test_double_edges_are_rounded_edges(beta: Any) -> None:
    """c near 1 and near 0: no digit of an edge is lost to cancellation in θ₁ − θ₂."""
    for output in ("attention", "mha"):
        law = fa.law(ratios(R(5, 2), 3, 2, n_heads=4, beta=beta, output=output))
        for found, exact in zip(law.edges, law.edges_to(60), strict=True):
            assert found == pytest.approx([float(e) for e in exact], rel=4e-16, abs=0)
