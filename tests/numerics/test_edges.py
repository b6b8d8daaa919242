"""Ends of bands, gaps, masses of bands, hard edges and their exponents: published and derived numbers."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
import sympy as sp
from specimens import SPECS, built, ratios

import freeattn as fa
from freeattn.theory.transforms import MarchenkoPastur

R = sp.Rational
HALF = Fraction(1, 2)


def test_attention_with_one_head() -> None:
    law = fa.law(ratios(1, n_heads=1, output="attention"))
    assert law.normalized().edges == ((0.0, pytest.approx(5.2433439038665, rel=1e-14)),)
    assert law.edges[0][1] == pytest.approx(9.0095, abs=5e-5)  # arXiv 2510.06685, unnormalized
    assert law.edge_exponents == ((-HALF, HALF),)


def test_attention_with_four_heads() -> None:
    law = fa.law(ratios(16, n_heads=4, output="attention")).normalized()
    assert law.edges == (
        (pytest.approx(0.23979195229194, rel=3e-14), pytest.approx(2.3436632643103, rel=3e-14)),
    )


def test_mha_with_equal_ratios() -> None:
    law = fa.law(ratios(16, 16, 16, n_heads=16)).normalized()
    assert law.edges == (
        (pytest.approx(0.34240587274474, rel=3e-14), pytest.approx(2.225182540882, rel=3e-14)),
    )


def test_bert_base() -> None:
    law = fa.law(fa.architecture("bert-base", n_tokens=512))
    assert law.mean == pytest.approx(1.5 * math.expm1(1), rel=1e-15)
    scaled = np.array(law.edges) / law.mean
    assert scaled[0] == pytest.approx([0.0050735441926354, 6.2311775512601], rel=1e-13)
    assert law.normalized().edges[0] == pytest.approx((0.0050735441926354, 6.2311775512601), rel=1e-13)
    assert law.atoms == ()


def test_two_bands_of_attention() -> None:
    law = built("attention, two bands")
    (a, b), (c, d) = np.array(law.edges) / law.mean
    unit = math.expm1(1)
    assert law.mean == pytest.approx(unit, rel=1e-15)
    assert law.band_masses == pytest.approx((0.75, 0.25), abs=1e-12)
    assert law.cdf((law.edges[0][1] + law.edges[1][0]) / 2) == pytest.approx(0.75, abs=1e-12)
    assert (a, b, c) == pytest.approx((0.25, 0.60, 0.98), abs=0.015)
    assert d == pytest.approx(5.9, abs=0.05)


@pytest.mark.parametrize("name", ["attention, two bands", "mha, two bands", "attention", "head-sum"])
def test_bands_are_ordered_and_apart(name: str) -> None:
    law = built(name)
    ends = [end for band in law.edges for end in band]
    assert ends == sorted(ends)
    assert len(set(ends)) == len(ends)
    assert sum(law.band_masses) + sum(float(a.weight) for a in law.atoms) == pytest.approx(1, abs=1e-12)


@pytest.mark.parametrize("name", list(SPECS))
def test_edges_are_where_the_density_starts(name: str) -> None:
    law = built(name)
    for (left, right), (low, high) in zip(law.edges, law.edge_exponents, strict=True):
        step = np.array([1e-7, 1e-5]) * (right - left)
        assert (law.density(right - step) > 0).all()
        assert (law.density(right + step) == 0).all() or len(law.edges) > 1
        slope = np.diff(np.log(law.density(right - step)))[0] / np.diff(np.log(step))[0]
        assert slope == pytest.approx(float(high), abs=0.02)
        if low > 0:
            step = np.array([1e-7, 1e-5]) * left
            slope = np.diff(np.log(law.density(left + step)))[0] / np.diff(np.log(step))[0]
            assert slope == pytest.approx(float(low), abs=0.02)


HARD = [
    (ratios(2, n_heads=1, output="attention"), 2),
    pytest.param(ratios(2, 1, n_heads=1, output="values"), 3, marks=pytest.mark.slow),
    (ratios(2, 1, 1, n_heads=1), 4),
    pytest.param(ratios(2, 1, 1, n_heads=7), 3, marks=pytest.mark.slow),
    (ratios(2, 3, 3, n_heads=3), None),  # the smallest of {1, 3, 3, 3} is attained once
    (ratios(2, R(1, 2), R(1, 2), n_heads=3), 2),
    pytest.param(ratios(R(1, 3), R(1, 2), R(1, 2), n_heads=1), 2, marks=pytest.mark.slow),
    (ratios(2, n_heads=5, output="head-sum"), 2),
    pytest.param(ratios(R(1, 2), n_heads=5, output="head-sum", n_kv_heads=1), 2, marks=pytest.mark.slow),
    (ratios(1, 1, 1, n_heads=1, scores="linear"), 5),
    (ratios(1, None, n_heads=1, output="values", tie="key-value"), 3),
    pytest.param(ratios(1, None, n_heads=4, output="values", tie="key-value"), 2, marks=pytest.mark.slow),
    (ratios(1, None, 1, n_heads=1, tie="key-value"), 4),
    pytest.param(ratios(1, None, 1, n_heads=4, tie="key-value"), 3, marks=pytest.mark.slow),
    pytest.param(ratios(2, None, 1, n_heads=4, tie="key-value"), 2, marks=pytest.mark.slow),
    (ratios(R(1, 2), None, R(1, 2), n_heads=4, tie="key-value"), 2),
    (ratios(1, None, 1, n_heads=1, tie="key-value", scores="linear"), 6),
    (MarchenkoPastur(1), 2),
]


@pytest.mark.parametrize(("source", "order"), HARD)
def test_hard_edge_exponents(source: Any, order: int | None) -> None:
    """ρ ~ x^{1/k−1} where the smallest limit is attained k times; the slope is measured over 3 decades."""
    law = fa.law(source)
    left, right = law.edges[0]
    if order is None:
        assert left > 0
        assert law.edge_exponents[0][0] == HALF
        return
    assert left == 0
    assert law.edge_exponents[0][0] == Fraction(1, order) - 1
    decades = 45 if not law.atoms else 13
    x = np.array([1e-3, 1.0]) * 10.0**-decades * right
    slope = np.diff(np.log(law.density(x)))[0] / np.diff(np.log(x))[0]
    assert slope == pytest.approx(1 / order - 1, abs=1e-4)
    assert law.density(0.0) == math.inf


@pytest.mark.parametrize("factors", [(1, R(1, 2), R(1, 2))])
def test_a_hard_edge_softens_continuously(factors: tuple[Any, ...]) -> None:
    """Moving one ratio off its tie by 1e-6 opens a small positive left edge, and moves nothing else."""
    exact = fa.law(ratios(*factors, n_heads=1, output="mha"))
    moved = (factors[0], factors[1] * (1 + R(1, 10**6)), factors[2])
    near = fa.law(ratios(*moved, n_heads=1, output="mha"))
    assert exact.edges[0][0] == 0
    assert 0 <= near.edges[0][0] < 1e-5
    assert near.edges[0][1] == pytest.approx(exact.edges[0][1], rel=1e-5)
    assert near.moments(4) == pytest.approx(exact.moments(4), rel=1e-5)


@pytest.mark.parametrize("epsilon", [R(1, 100), R(1, 10**6), R(1, 10**9)], ids=str)
def test_left_edges_near_equal_ratios_have_all_their_digits(epsilon: Any) -> None:
    """`edges` is correct to double rounding however small the left edge is."""
    law = fa.law(ratios(2, 1 + epsilon, 1 - epsilon, n_heads=2))
    for found, exact in zip(law.edges, law.edges_to(60), strict=True):
        assert found == pytest.approx((float(exact[0]), float(exact[1])), rel=4e-16, abs=0)


def test_an_infinite_number_of_heads_is_the_limit() -> None:
    endless, many = (fa.law(ratios(2, 3, 4, n_heads=h)) for h in (math.inf, 10**9))
    np.testing.assert_allclose(endless.edges, many.edges, rtol=1e-8)


def test_edges_outside_of_everything() -> None:
    """The mean lies inside the convex hull of the support, and m₂ ≤ right edge · mean."""
    for name in SPECS:
        law = built(name)
        ends = [end for band in law.edges for end in band] + [atom.location for atom in law.atoms]
        assert min(ends) <= law.mean <= max(ends)
        assert law.moments(2)[1] <= law.mean * max(ends)


@pytest.mark.parametrize("source", [
    ratios(2, R(1, 2), R(1, 2), n_heads=3), ratios(R(1, 2), None, R(1, 2), n_heads=4, tie="key-value"),
], ids=["mha", "tied"])
def test_density_beside_an_atom_is_a_pure_power(source: Any) -> None:
    """Next to an atom at a hard edge ρ ~ C x^{−1/2}: C from many digits agrees with doubles down to 1e-45."""
    law = fa.law(source)
    x = np.array([1e-18, 1e-25, 1e-45])
    constant = float(law.density("1e-25", digits=30)) * 1e-25**0.5
    np.testing.assert_allclose(law.density(x) * np.sqrt(x), constant, rtol=1e-8)
