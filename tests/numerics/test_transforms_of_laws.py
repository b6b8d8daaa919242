"""ψ, η, R, S and free cumulants in numbers: known laws, defining relations, domains."""

from __future__ import annotations

import mpmath
import numpy as np
import pytest
import sympy as sp

import freeattn as fa
from freeattn.theory.transforms import Discrete, FreePoisson, MarchenkoPastur, PointMass, Semicircle

HALF = sp.Rational(1, 2)
G = np.array([-0.7, -0.05, -1e-12, 0, 1e-9, 0.1, 0.01 + 0.02j, -0.03j])


@pytest.mark.parametrize("y", [0.25, 1, 2])
def test_marchenko_pastur(y: float) -> None:
    law = fa.law(MarchenkoPastur(y))
    assert law.r_transform(G) == pytest.approx(1 / (1 - y * G), rel=1e-13)
    bottom = -1 + max(0, 1 - 1 / y)
    w = np.array([bottom + 0.05, bottom / 2, -1e-9, 0, 1e-9, 0.1])
    assert law.s_transform(w) == pytest.approx(1 / (1 + y * w), rel=1e-13)
    assert law.free_cumulants(6) == pytest.approx([y**k for k in range(6)], rel=1e-15)


def test_semicircle_and_point_mass() -> None:
    assert fa.law(Semicircle(2)).r_transform(G) == pytest.approx(2 * G, rel=1e-12, abs=1e-15)
    assert fa.law(Semicircle(2)).free_cumulants(5) == (0, 2, 0, 0, 0)
    point = fa.law(PointMass(3))
    assert point.r_transform([0.1, -5.0]) == pytest.approx([3, 3])
    assert point.s_transform([-0.5, 0.5]) == pytest.approx([1 / 3, 1 / 3])


def test_projection() -> None:
    law = fa.law(Discrete((0, 1), (1 - sp.Rational(3, 10), sp.Rational(3, 10))))
    w = np.array([-0.29, -0.1, 0, 2.0])
    assert law.s_transform(w) == pytest.approx((1 + w) / (0.3 + w), rel=1e-12)


def test_definitions() -> None:
    law = fa.law(fa.Attention(n_tokens=512, d_model=512, n_heads=4, d_key=64, output="mha", d_value=64, d_out=256))
    z = np.array([-3.0, -0.1, 0.01, 0.2 + 0.3j, 0.05 - 0.01j])
    psi = law.psi(z)
    assert psi == pytest.approx(-1 - law.stieltjes(1 / z) / z, rel=1e-11)
    assert law.eta_transform(z) == pytest.approx(psi / (1 + psi), rel=1e-11)
    assert law.psi(0) == law.eta_transform(0) == 0
    w = law.psi(-0.2)
    assert isinstance(w, float)
    assert law.s_transform(w) == pytest.approx((1 + w) * -0.2 / w, rel=1e-12)
    s = law.s_transform(np.array([-0.3, 0.01]))
    assert s * law.r_transform(np.array([-0.3, 0.01]) * s) == pytest.approx([1, 1], rel=1e-12)


def test_words_have_transforms_too() -> None:
    spec = fa.Attention(n_tokens=256, d_model=256, n_heads=2, d_key=64, d_value=64, d_out=512)
    closed, words = fa.law(spec), fa.law(spec, route="pencil")
    w = np.array([-0.3, -0.01, 0.01])  # the law has a mass at 0
    assert words.s_transform(w) == pytest.approx(closed.s_transform(w), rel=1e-10)
    g = np.array([-0.5, -1e-9, 0, 0.02])
    assert words.r_transform(g) == pytest.approx(closed.r_transform(g), rel=1e-10)
    assert words.free_cumulants(4) == pytest.approx(closed.free_cumulants(4), rel=1e-13)


def test_free_cumulants_to_many_digits() -> None:
    law = fa.law(FreePoisson(sp.Rational(1, 3)))
    assert all(abs(k - mpmath.mpf(1) / 3) < 1e-15 for k in law.free_cumulants(8))
    context = mpmath.MPContext()
    context.dps = 50
    assert all(abs(context.convert(k) * 3 - 1) < 1e-39 for k in law.free_cumulants(8, digits=40))


def test_shapes() -> None:
    law = fa.law(MarchenkoPastur(HALF))
    assert law.s_transform(np.full((2, 3), 0.1)).shape == law.r_transform(np.full((2, 3), 0.1)).shape == (2, 3)
    assert isinstance(law.r_transform(0.1), float)
    assert isinstance(law.psi(0.1j), complex)


def test_domains() -> None:
    law = fa.law(MarchenkoPastur(2))
    with pytest.raises(fa.InputError, match=r"w > -0\.5"):
        law.s_transform(-0.6)
    with pytest.raises(fa.InputError, match="real numbers"):
        law.s_transform(0.1j)
    with pytest.raises(fa.InputError, match="at the end of the support"):
        law.r_transform(5.0)
    with pytest.raises(fa.InputError, match=r"\|g\| <"):
        law.r_transform(1j)
    with pytest.raises(fa.InputError, match="finite"):
        law.psi(np.inf)
    with pytest.raises(fa.InputError, match="a point off the atoms"):
        fa.law(Discrete((1, 2), (HALF, HALF))).psi(0.5)
    with pytest.raises(fa.InputError, match=r"\[0, ∞\)"):
        fa.law(Semicircle(1)).s_transform(0.1)
    with pytest.raises(fa.InputError, match="positive integer"):
        law.free_cumulants(0)
