"""What any Stieltjes transform, density and distribution function must satisfy."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any

import mpmath
import numpy as np
import pytest
import sympy as sp
from law_quadrature import band_integral, mass_and_moments, stieltjes_by_quadrature
from specimens import EVERYTHING, SPECS, built, ratios

import freeattn as fa
from freeattn.theory.transforms import FreeProduct, MarchenkoPastur

R = sp.Rational
NAMES = list(EVERYTHING)


def hull(law: Any) -> tuple[float, float]:
    ends = [end for band in law.edges for end in band] + [atom.location for atom in law.atoms]
    return min(ends), max(ends)


def points_of(law: Any, seed: int = 0) -> Any:
    """Points of the upper half-plane: over the support, beside it, near the axis and far away."""
    rng = np.random.default_rng(seed)
    low, high = hull(law)
    size = high - low + 1.0
    real = rng.uniform(low - size / 2, high + size / 2, 10)
    height = 10.0 ** rng.uniform(-9, 2, 10) * size
    return np.concatenate([real + 1j * height, [3j * size, 1j - 2 * size]])


@pytest.mark.parametrize("name", NAMES)
def test_stieltjes_maps_the_upper_half_plane_into_itself(name: str) -> None:
    law = built(name)
    z = points_of(law)
    m = law.stieltjes(z)
    assert (m.imag > 0).all()
    np.testing.assert_allclose(law.stieltjes(np.conj(z)), np.conj(m), rtol=0, atol=0)
    low, high = hull(law)
    distance = np.maximum(z.imag, np.maximum(low - z.real, z.real - high))
    assert (np.abs(m) * distance <= 1 + 1e-12).all()


@pytest.mark.parametrize("name", NAMES)
def test_expansion_at_infinity(name: str) -> None:
    """m(z) = −1/z − m₁/z² − … − m₁₂/z¹³ + O(z⁻¹⁴)."""
    law = built(name)
    moments = law.moments(12)
    radius = 12 * max(abs(end) for end in hull(law))
    for direction in (1j, -1 + 1j, 1 + 0.1j):
        z = radius * direction
        series = -1 / z - sum(m / z ** (k + 2) for k, m in enumerate(moments))
        assert abs(law.stieltjes(z) / series - 1) < 1e-12


@pytest.mark.parametrize("z", [1e3j, -1e5 + 1j, 1e6 + 1e4j, 1e12j])
@pytest.mark.parametrize("name", ["mha", "tied mha", "attention", "Marchenko-Pastur, hard edge"])
def test_far_away(name: str, z: complex) -> None:
    law = built(name)
    series = -1 / z - sum(m / z ** (k + 2) for k, m in enumerate(law.moments(3)))
    assert abs(law.stieltjes(z) / series - 1) < max(1e-13, 100 * (law.edges[-1][1] / abs(z)) ** 4)


@pytest.mark.parametrize("name", NAMES)
def test_stieltjes_against_quadrature_of_the_density(name: str) -> None:
    law = built(name)
    low, high = hull(law)
    size = high - low + 1.0
    for z in (0.3 * size + low + 0.2j * size, -0.4 * size + 1e-2j * size, high + 0.1 * size + 1e-3j * size):
        assert law.stieltjes(z) == pytest.approx(stieltjes_by_quadrature(law, z), rel=1e-9)


@pytest.mark.parametrize("name", NAMES)
def test_real_values_are_boundary_values(name: str) -> None:
    """At real z: the limit of m(x + iη), η → 0 (first order in η, so one extrapolation step is taken)."""
    law = built(name)
    for left, right in law.edges:
        x = left + (right - left) * np.array([0.1, 0.35, 0.55, 0.77, 0.95])
        eta = 1e-7 * (right - left)
        limit = 2 * law.stieltjes(x + 1j * eta) - law.stieltjes(x + 2j * eta)
        boundary = law.stieltjes(x)
        np.testing.assert_allclose(boundary, limit, rtol=1e-8)
        np.testing.assert_allclose(boundary.imag / np.pi, law.density(x), rtol=1e-12)


def outside(law: Any) -> list[float]:
    """Real points off the support: on both sides and in the gaps between bands and atoms."""
    pieces = sorted([*law.edges, *((atom.location, atom.location) for atom in law.atoms)])
    low, high = hull(law)
    size = high - low + 1.0
    points = [low - size, low - 1e-3 * size, high + 1e-3 * size, high + size]
    for (_, end), (start, _) in pairwise(pieces):
        if start - end > 1e-6 * size:
            points += [end + 0.1 * (start - end), (start + end) / 2, start - 0.1 * (start - end)]
    return points


@pytest.mark.parametrize("name", NAMES)
def test_real_axis_outside_the_support(name: str) -> None:
    """m is real, increasing, and equal to ∫ ν(dt)/(t − x)."""
    law = built(name)
    points = [x for x in outside(law) if x != 0]
    m = law.stieltjes(np.array(points))
    assert (m.imag == 0).all()
    for x, value in zip(points, m.real, strict=True):
        direct = sum(float(atom.weight) / (atom.location - x) for atom in law.atoms)
        slope = sum(float(atom.weight) / (atom.location - x) ** 2 for atom in law.atoms)
        for band in range(len(law.edges)):
            both = band_integral(
                law, band, lambda t, x=x: np.stack([1 / (t - x), (t - x) ** -2.0]), np.ones(2)
            ).real
            direct, slope = direct + both[0], slope + both[1]
        assert value == pytest.approx(direct, rel=1e-8)
        step = 1e-5 * min(
            abs(x - end) for end in [e for band in law.edges for e in band] + [a.location for a in law.atoms]
        )
        difference = law.stieltjes(np.array([x - step, x + step])).real
        assert (difference[1] - difference[0]) / (2 * step) == pytest.approx(slope, rel=1e-4)
        assert slope > 0


@pytest.mark.parametrize("name", list(SPECS))
def test_density_carries_mass_and_moments(name: str) -> None:
    found, exact = mass_and_moments(built(name))
    np.testing.assert_allclose(found, exact, rtol=1e-10)


@pytest.mark.parametrize("name", NAMES)
def test_distribution_function_and_quantiles(name: str) -> None:
    law = built(name)
    p = np.linspace(0.001, 0.999, 61)
    x = law.quantile(p)
    assert (np.diff(x) >= 0).all()
    at_atom = np.isin(x, [atom.location for atom in law.atoms])
    np.testing.assert_allclose(law.cdf(x)[~at_atom], p[~at_atom], atol=3e-14)
    assert (law.cdf(x)[at_atom] >= p[at_atom] - 1e-15).all()
    low, high = hull(law)
    assert law.quantile([0.0, 1.0]) == pytest.approx([low, high], rel=1e-8, abs=1e-300)
    assert law.cdf([-math.inf, low - 1, high, high + 1, math.inf]).tolist() == pytest.approx(
        [0, 0, 1, 1, 1], abs=1e-13
    )
    grid = np.linspace(low, high, 50)
    assert (np.diff(law.cdf(grid)) >= 0).all()
    for left, right in law.edges:
        inner = left + (right - left) * np.array([0.2, 0.7])
        step = 1e-6 * (right - left)
        slope = (law.cdf(inner + step) - law.cdf(inner - step)) / (2 * step)
        np.testing.assert_allclose(slope, law.density(inner), rtol=1e-6)


@pytest.mark.parametrize("name", NAMES)
def test_distribution_function_is_right_continuous_at_atoms(name: str) -> None:
    law = built(name)
    for atom in law.atoms:
        gap = 1e-12 * max(1.0, abs(atom.location))
        before, at, after = law.cdf([atom.location - gap, atom.location, atom.location + gap])
        assert at - before == pytest.approx(float(atom.weight), abs=1e-9)
        assert after == pytest.approx(at, abs=1e-9)


@pytest.mark.parametrize("name", list(SPECS))
def test_normalized(name: str) -> None:
    law = built(name)
    unit = law.normalized()
    assert unit.mean == pytest.approx(1, rel=1e-15)
    np.testing.assert_allclose(unit.edges, np.array(law.edges) / law.mean, rtol=1e-14)
    assert unit.moments(4) == pytest.approx(
        [m / law.mean**k for k, m in enumerate(law.moments(4), 1)], rel=1e-13
    )
    left, right = unit.edges[0]
    x = left + (right - left) * np.linspace(0.01, 0.99, 17)
    np.testing.assert_allclose(unit.density(x), law.mean * law.density(law.mean * x), rtol=1e-10)
    np.testing.assert_allclose(unit.cdf(x), law.cdf(law.mean * x), atol=1e-13)
    assert [a.weight for a in unit.atoms] == [a.weight for a in law.atoms]
    assert unit.band_masses == law.band_masses
    assert unit.normalized().edges == unit.edges


@pytest.mark.parametrize("name", NAMES)
def test_integrate_gives_the_exact_moments(name: str) -> None:
    law = built(name)
    exact = law.moments(5)
    low, high = hull(law)
    size = max(abs(low), abs(high))
    for k, moment in enumerate(exact, 1):
        assert law.integrate(lambda x, k=k: x**k) == pytest.approx(moment, rel=1e-11, abs=1e-12 * size**k)
    assert law.integrate(lambda x: 1 + 0 * x) == pytest.approx(1, abs=1e-12)
    assert law.integrate(lambda x: 0 * x) == 0


def test_integrate_rough_functions() -> None:
    law = built("Marchenko-Pastur")
    x0 = 0.7
    assert law.integrate(lambda x: 1.0 * (x <= x0)) == pytest.approx(law.cdf(x0), abs=1e-9)
    assert law.integrate(np.log) == pytest.approx(
        -1 - math.log(0.5), rel=1e-11
    )  # ∫ log x dMP_y = −1 − (1/y − 1)log(1 − y)
    assert built("Marchenko-Pastur, hard edge").integrate(np.log) == pytest.approx(-1, rel=1e-11)
    assert law.integrate(lambda x: 1 / x) == pytest.approx(2, rel=1e-12)  # 1/(1 − y)


@pytest.mark.parametrize("name", ["mha", "tied mha", "mha, two bands", "values, atom"])
def test_scales_dilate_the_law(name: str) -> None:
    spec = SPECS[name]
    law, wide = built(name), fa.law(spec.replace(value_scale=3))
    np.testing.assert_allclose(wide.edges, 9 * np.array(law.edges), rtol=1e-14)
    assert wide.mean == pytest.approx(9 * law.mean, rel=1e-15)


# Limits -------------------------------------------------------------------------------------------


def sample_points(law: Any) -> Any:
    left, right = law.edges[-1]
    return left + (right - left) * np.linspace(0.1, 0.9, 9)


def test_linear_scores_are_a_product_of_marchenko_pastur_laws() -> None:
    """c = 1: ρ is MP_{1/γK}."""
    law = fa.law(ratios(2, 3, R(3, 2), n_heads=4, scores="linear")).normalized()
    limit = fa.law(FreeProduct(tuple(MarchenkoPastur(y) for y in (R(1, 2), R(1, 4), R(1, 3), R(2, 3)))))
    x = sample_points(limit)
    np.testing.assert_allclose(law.density(x), limit.density(x), rtol=1e-12)
    near = fa.law(ratios(2, 3, R(3, 2), n_heads=4, beta=R(1, 10**4))).normalized()
    np.testing.assert_allclose(near.density(x), limit.density(x), rtol=1e-7)


def test_large_beta_drops_the_keys() -> None:
    """c → 0: c = 64/(e⁶⁴ − 1) at β = 8."""
    law = fa.law(ratios(R(1, 5), 3, R(3, 2), n_heads=4, beta=8)).normalized()
    limit = fa.law(FreeProduct(tuple(MarchenkoPastur(y) for y in (R(1, 4), R(1, 3), R(2, 3)))))
    x = sample_points(limit)
    np.testing.assert_allclose(law.density(x), limit.density(x), rtol=1e-10)
    np.testing.assert_allclose(law.edges, limit.edges, rtol=1e-10)


def test_large_beta_unties_keys_and_values() -> None:
    tied = fa.law(ratios(2, None, 3, n_heads=4, beta=8, tie="key-value")).normalized()
    free = fa.law(ratios(2, 2, 3, n_heads=4, beta=8)).normalized()
    x = sample_points(free)
    np.testing.assert_allclose(tied.density(x), free.density(x), rtol=1e-10)


@pytest.mark.parametrize("output", ["attention", "values", "mha"])
def test_wide_factors_drop_out(output: str) -> None:
    wide = fa.law(ratios(10**9, 10**9, 2, n_heads=3, output=output)).normalized()
    factors = [MarchenkoPastur(R(1, 3))] + ([MarchenkoPastur(R(1, 2))] if output == "mha" else [])
    limit = fa.law(FreeProduct(tuple(factors)))
    x = sample_points(limit)
    np.testing.assert_allclose(wide.density(x), limit.density(x), rtol=1e-7)


def test_sharing_leaves_the_law_alone() -> None:
    own, shared = (fa.law(ratios(2, 3, R(3, 2), n_heads=8, n_kv_heads=k)) for k in (8, 1))
    x = sample_points(own)
    assert own.edges == shared.edges
    assert own.density(x).tolist() == shared.density(x).tolist()


# Nothing outside changes --------------------------------------------------------------------------


def test_global_precision_and_error_state_are_untouched() -> None:
    before, precision = np.geterr(), (mpmath.mp.prec, mpmath.mp.dps)
    law = fa.law(ratios(1, 1, 2, n_heads=3))
    law.density([0.0, 1e-9, 1.0]), law.cdf(1.0), law.quantile(0.3), law.stieltjes(1j)
    law.stieltjes(1 + 1j, digits=40), law.edges_to(40), law.moments(3, digits=40), law.density(1, digits=30)
    law.normalized()
    assert np.geterr() == before
    assert (mpmath.mp.prec, mpmath.mp.dps) == precision
    with mpmath.workdps(200):
        assert law.stieltjes(2.0) == fa.law(ratios(1, 1, 2, n_heads=3)).stieltjes(2.0)


@pytest.mark.parametrize("shape", [(0,), (3,), (2, 3), (1, 1, 1)])
def test_shapes(shape: tuple[int, ...]) -> None:
    law = built("mha")
    p = np.full(shape, 0.4)
    x = law.quantile(p)
    for values in (x, law.cdf(x), law.density(x), law.stieltjes(x), law.stieltjes(x + 1j)):
        assert isinstance(values, np.ndarray)
        assert values.shape == shape


def test_scalars() -> None:
    law = built("mha")
    for value in (
        law.quantile(0.4),
        law.cdf(1),
        law.density(1),
        law.density(np.float32(1)),
        law.density(R(1, 3)),
    ):
        assert type(value) is float
    assert type(law.stieltjes(1)) is complex
    assert law.density([1, 2]).shape == (2,)
