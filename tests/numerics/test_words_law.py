"""Laws of words on the real axis: closed forms, the other route, gaps, hard edges, any number of digits, refusals."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

import freeattn as fa
from freeattn.errors import InputError, NotCoveredError

N = fa.space("n", 1)
SIZES = {"n_tokens": 512, "d_model": 768, "n_heads": 12, "d_key": 64, "d_value": 64, "d_out": 768}


def square(name, variance=1):
    return fa.gaussian(name, N, N, variance)


def product_of(count):
    total = square("X0")
    for k in range(1, count):
        total = total @ square(f"X{k}")
    return total


def marchenko_pastur(x):
    return np.sqrt((4 - x) / x) / (2 * np.pi)


def assert_close(found, known, tolerance=1e-12):
    assert float(np.max(np.abs(np.asarray(found) / np.asarray(known) - 1))) < tolerance


@pytest.mark.parametrize("count", range(1, 7))
def test_products_of_square_gaussians_are_fuss_catalan(count):
    law = fa.law(product_of(count))
    fuss_catalan = [math.comb((count + 1) * k, k) / (count * k + 1) for k in range(1, 7)]
    assert list(law.moments(6)) == fuss_catalan
    assert_close([law.integrate(lambda x, k=k: x**k) for k in range(1, 7)], fuss_catalan, 1e-11)
    phi = np.linspace(0.02, 0.98, 25) * np.pi / (count + 1)
    x = np.sin((count + 1) * phi) ** (count + 1) / (np.sin(phi) * np.sin(count * phi) ** count)
    known = np.sin(phi) ** 2 * np.sin(count * phi) ** (count - 1) / (np.pi * np.sin((count + 1) * phi) ** count)
    assert_close(law.density(x), known, 1e-9)
    assert law.edges[0][0] == 0
    assert_close(law.edges[0][1], (count + 1) ** (count + 1) / count**count)
    assert law.density(0.0) == math.inf


@pytest.mark.parametrize(("word", "of", "power"), [
    (square("X") @ square("X").T @ square("X"), "gram", 3),
    (square("X") @ square("X").T @ square("X") @ square("X").T, "gram", 4),
    ((square("X").T @ square("X")) ** 2, "self-adjoint", 2),
])
def test_powers_of_one_square_letter_are_images_of_marchenko_pastur(word, of, power):
    law = fa.law(word, of=of)
    y = np.linspace(0.1, 3.9, 30)
    assert_close(law.density(y**power), marchenko_pastur(y) / (power * y ** (power - 1)), 1e-10)
    assert_close(law.edges[0][1], 4**power)


def test_semicircle_has_both_signs():
    law = fa.law(fa.wigner("S", N), of="self-adjoint")
    x = np.linspace(-1.99, 1.99, 41)
    assert_close(law.density(x), np.sqrt(4 - x * x) / (2 * np.pi))
    assert law.density(0.0) == pytest.approx(1 / np.pi, rel=1e-14)
    assert law.stieltjes(0.0) == pytest.approx(1j, abs=1e-14)
    assert law.quantile(0.5) == pytest.approx(0, abs=1e-13)
    assert law.edges == ((-2.0, 2.0),)


@pytest.mark.parametrize(("scale", "bands"), [(Fraction(1, 2), 2), (1, 1), (2, 1)])
def test_two_points_spread_by_a_semicircle(scale, bands):
    """z = x(m): m² m-equation of ±1 ⊞ σ: m = ½ Σ 1/(±1 − z − σ²m)."""
    law = fa.law(scale * fa.wigner("S", N) + fa.diagonal("D", N, [-1, 1], [1, 1]), of="self-adjoint")
    assert len(law.edges) == bands
    assert law.edges[0][0] == pytest.approx(-law.edges[-1][1], rel=1e-12)
    z = np.linspace(-3, 3, 13) + 0.01j
    m, variance = law.stieltjes(z), float(scale) ** 2
    assert_close(m, (1 / (1 - z - variance * m) + 1 / (-1 - z - variance * m)) / 2, 1e-11)


def test_the_cusp_of_two_points():
    """At scale 1 the bands have just met: ρ ~ √3/(2π)·|x|^{1/3}."""
    law = fa.law(fa.wigner("S", N) + fa.diagonal("D", N, [-1, 1], [1, 1]), of="self-adjoint")
    x = np.array([1e-6, 1e-9])
    assert_close(law.density(x) / np.cbrt(x), np.sqrt(3) / (2 * np.pi), 1e-3)
    x = np.array([1e-2, 1e-4])  # nearer to 0 rounding grows like |x|^{-2/3}
    assert_close(law.density(-x), law.density(x), 1e-11)


def test_anticommutator_of_two_semicirculars():
    a, b = fa.wigner("A", N), fa.wigner("B", N)
    law = fa.law(a @ b + b @ a, of="self-adjoint")
    assert law.moments(6) == (0.0, 2.0, 0.0, 10.0, 0.0, 66.0)
    assert_close([law.integrate(lambda x, k=k: x**k) for k in (2, 4, 6)], (2, 10, 66), 1e-12)
    assert law.edges[0][1] == pytest.approx(math.sqrt((11 + 5 * math.sqrt(5)) / 2), rel=1e-13)


def test_singular_values_of_one_plus_gaussian_have_a_hard_edge_of_half_odd_order():
    law = fa.law(fa.identity(N) + square("X"))
    x = np.array([1e-9, 1e-12])
    slope = np.diff(np.log(law.density(x))) / np.diff(np.log(x))
    assert slope[0] == pytest.approx(-1 / 3, abs=1e-3)
    assert law.edges[0] == pytest.approx((0, 27 / 4), rel=1e-13)
    assert law.integrate(lambda x: x**2) == pytest.approx(7, rel=1e-12)


def test_atoms_beside_bands():
    rows = fa.space("n", 4)
    thin = fa.gaussian("Y", rows, fa.space("p", 1))
    law = fa.law(thin @ thin.T + fa.diagonal("D", rows, [1, 2], [1, 1]), of="self-adjoint")
    assert [(atom.location, atom.weight) for atom in law.atoms] == [(1.0, Fraction(1, 4)), (2.0, Fraction(1, 4))]
    assert sum(law.band_masses) == pytest.approx(0.5, abs=1e-12)
    found = (-1e-6j * law.stieltjes(1 + 1e-6j)).real
    assert found == pytest.approx(0.25, abs=1e-4)


def test_a_law_that_is_one_atom():
    law = fa.law(3 * fa.identity(N))
    assert (law.edges, law.mean, law.atoms[0].location, law.atoms[0].weight) == ((), 9.0, 9.0, 1)


def test_sizes_by_name_symbol_or_space():
    rows, columns = fa.space("n"), fa.space("p")
    x = fa.gaussian("X", rows, columns)
    by_name = fa.law(x, sizes={"n": 2, "p": 3})
    by_space = fa.law(x, sizes={rows: 2, columns: 3})
    assert by_name.edges == by_space.edges
    assert by_name.edges[0] == pytest.approx(((math.sqrt(3) - math.sqrt(2)) ** 2, (math.sqrt(3) + math.sqrt(2)) ** 2))
    cogram = fa.law(x, of="cogram", sizes={"n": 2, "p": 3})
    assert cogram.atoms[0].weight == Fraction(1, 3)
    assert cogram.mean == pytest.approx(2)


# The other route -------------------------------------------------------------------------------------------------

LAYERS = [
    {}, {"n_heads": 3, "n_tokens": 700}, {"tie": "key-value"}, {"output": "head-sum", "n_kv_heads": 4},
    {"output": "attention", "n_tokens": 128}, {"output": "values"}, {"d_key": 4, "output": "attention"},
]


@pytest.mark.parametrize("fields", LAYERS, ids=str)
def test_densities_edges_and_masses_of_both_routes(fields):
    spec = fa.Attention(**{**SIZES, **fields})
    one, other = fa.law(spec), fa.law(spec, route="pencil")
    assert_close(np.ravel(other.edges) + 1, np.ravel(one.edges) + 1, 1e-13)
    assert_close(other.band_masses, one.band_masses, 1e-11)
    assert other.atoms == one.atoms
    assert_close(other.moments(4), one.moments(4), 1e-13)
    for left, right in one.edges:
        x = np.linspace(left, right, 40)[1:-1]
        assert_close(other.density(x), one.density(x), 1e-11)
        assert_close(other.cdf(x), one.cdf(x), 1e-11)
    outside = np.array([-2.0, 1.2 * one.edges[-1][1]])
    assert_close(other.stieltjes(outside), one.stieltjes(outside), 1e-12)
    assert other.check() < 1e-12


def test_many_digits_of_both_routes():
    spec = fa.Attention(**SIZES)
    one, other = fa.law(spec), fa.law(spec, route="pencil")
    assert_close([float(a / b) for a, b in zip(one.edges_to(60)[0], other.edges_to(60)[0], strict=True)], 1, 1e-15)
    assert max(abs(a / b - 1) for a, b in zip(one.edges_to(60)[0], other.edges_to(60)[0], strict=True)) < 1e-58
    for z in (0.5 + 0.1j, -1.5, 2):
        known, found = one.stieltjes(z, digits=60), other.stieltjes(z, digits=60)
        assert abs(found / known - 1) < 1e-58
    assert abs(other.density(0.5, digits=60) / one.density(0.5, digits=60) - 1) < 1e-58


@pytest.mark.slow
def test_integrals_to_many_digits():
    spec = fa.Attention(**SIZES)
    one, other = fa.law(spec), fa.law(spec, route="pencil")
    assert abs(other.cdf(0.5, digits=25) - one.cdf(0.5, digits=25)) < 1e-24


@pytest.mark.parametrize("scores", ["linear", "relu"])
def test_scores_without_noise_or_with_their_own_numbers(scores):
    assert fa.law(fa.Attention(**SIZES, scores=scores)).check() < 1e-12


# Beyond the closed laws --------------------------------------------------------------------------------------------


def test_a_narrow_gap_inside_a_wide_band():
    """Gaussian input: the upper band carries the rank fraction of the scores, however narrow the gap."""
    ratios = {"gamma_key": Fraction(144, 929) * Fraction(689, 466), "tokens_per_width": Fraction(466, 689)}
    spec = fa.Attention.from_ratios(
        **ratios, gamma_value=Fraction(649, 169) * Fraction(689, 466),
        gamma_out=Fraction(457, 462) * Fraction(689, 466), n_heads=256, inputs="gaussian",
    )
    law = fa.law(spec)
    (_, left), (right, _) = law.edges
    assert 0 < right / left - 1 < 0.01
    assert law.band_masses[1] == pytest.approx(float(spec.gamma_key), abs=1e-11)
    assert law.density((left + right) / 2) == 0
    assert law.stieltjes((left + right) / 2).imag == 0


@pytest.mark.parametrize(("scores", "order"), [("softmax", 5), ("linear", 9)])
def test_hard_edges_of_gaussian_input(scores, order):
    """All ratios one, one head: ρ ~ x^{1/k − 1} with k = 5, and 9 without noise."""
    spec = fa.Attention(n_tokens=8, d_model=8, n_heads=1, d_key=8, d_value=8, scores=scores, inputs="gaussian")
    law = fa.law(spec)
    x = np.array([1e-12, 1e-15])
    slope = float(np.diff(np.log(law.density(x)))[0] / np.diff(np.log(x))[0])
    assert slope == pytest.approx(1 / order - 1, abs=2e-2)
    assert law.integrate(lambda x: x) == pytest.approx(law.mean, rel=1e-10)


def test_gaussian_input_at_few_tokens_is_orthogonal_input():
    at = {"gamma_key": Fraction(3, 2), "gamma_value": Fraction(3, 2), "gamma_out": 2, "n_heads": 4}
    orthogonal = fa.law(fa.Attention.from_ratios(**at))
    gaps = []
    for few in (10**3, 10**5):
        spec = fa.Attention.from_ratios(**at, tokens_per_width=Fraction(1, few), inputs="gaussian")
        gaps.append(abs(fa.law(spec).edges[0][1] / orthogonal.edges[0][1] - 1))
    assert gaps[0] < 1e-2
    assert gaps[1] == pytest.approx(gaps[0] / 100, rel=0.05)


def test_mean_of_gaussian_input():
    law = fa.law(fa.Attention(**SIZES, inputs="gaussian"))
    assert law.mean == pytest.approx(1.5 * (math.e - 1 + 512 / 768), rel=1e-14)
    assert law.integrate(lambda x: x) == pytest.approx(law.mean, rel=1e-12)


def test_infinitely_many_heads():
    ratios = {"gamma_key": 1.5, "gamma_value": 1.5, "gamma_out": 1.5, "tokens_per_width": 0.5, "inputs": "gaussian"}
    endless = fa.law(fa.Attention.from_ratios(n_heads=math.inf, **ratios))
    very_many = fa.law(fa.Attention.from_ratios(n_heads=10**9, **ratios))
    assert_close(very_many.edges, endless.edges, 1e-8)
    assert fa.law(fa.Attention.from_ratios(1.5, 1.5, 1.5, n_heads=math.inf)).check() < 1e-12
    with pytest.raises(InputError, match="digits"):
        endless.edges_to(50)
    with pytest.raises(NotCoveredError, match="grows with the number of heads"):
        fa.law(fa.Attention.from_ratios(n_heads=math.inf, **ratios, tie="key-value"))


def test_refusals():
    x, s = square("X"), fa.wigner("S", fa.space("n"))
    spec = fa.Attention(**SIZES)
    with pytest.raises(InputError, match="of"):
        fa.law(spec, of="cogram")
    with pytest.raises(InputError, match="sizes"):
        fa.law(spec, sizes={"n": 3})
    with pytest.raises(InputError, match="route"):
        fa.law(spec, route="moments")
    with pytest.raises(InputError, match="of"):
        fa.law(x, of="spectrum")
    with pytest.raises(InputError):
        fa.law(x, of="self-adjoint")
    with pytest.raises(InputError, match="route"):
        fa.law(x, route="transform")
    with pytest.raises(NotCoveredError, match="inputs"):
        fa.law(spec.replace(inputs="gaussian"), route="transform")
    with pytest.raises(InputError, match="n"):
        fa.law(s, of="self-adjoint")
    with pytest.raises(InputError, match="width"):
        fa.law(s, of="self-adjoint", sizes={"width": 3, "n": 2})
    with pytest.raises(InputError, match="number"):
        fa.law(s, of="self-adjoint", sizes={"n": "many"})
    with pytest.raises(NotCoveredError, match="two routes"):
        fa.law(x).check()
    with pytest.raises(InputError, match="hard edge"):
        fa.law(x).stieltjes(0.0)
