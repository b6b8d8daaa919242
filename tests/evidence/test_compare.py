"""Distances between spectra and laws, against brute force."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from scipy import stats

from freeattn.errors import InputError
from freeattn.evidence import compare
from freeattn.evidence.compare import LawTable


class UniformWithAtom:
    """Mass `weight` at zero, the rest uniform on [1, 3]."""

    def __init__(self, weight: float = 0.25) -> None:
        self.weight = weight
        self.mean = 2 * (1 - weight)
        self.atoms = (SimpleNamespace(location=0, weight=weight),) if weight else ()
        self.edges = ((1.0, 3.0),)

    def moments(self, k):
        return [(1 - self.weight) * (3 ** (j + 1) - 1) / (2 * (j + 1)) for j in range(1, k + 1)]

    def cdf(self, x):
        share = np.clip((np.asarray(x) - 1) / 2, 0, 1)
        return np.where(np.asarray(x) < 0, 0.0, self.weight + (1 - self.weight) * share)

    def quantile(self, p):
        return np.where(np.asarray(p) <= self.weight, 0.0, 1 + 2 * (np.asarray(p) - self.weight) / (1 - self.weight))


def spectrum(n: int, weight: float, seed: int = 0, scale: float = 1.0) -> np.ndarray:
    generator = np.random.default_rng(seed)
    values = np.where(generator.random(n) < weight, 0.0, generator.uniform(1, 3, n))
    return np.sort(scale * values)


def test_a_table_holds_the_numbers_of_the_law():
    table = LawTable.of(UniformWithAtom(), 8)
    assert table.mean == 1.5
    assert table.zero_weight == 0.25
    assert table.right_edge == 3.0
    np.testing.assert_allclose(table.moments, [1.5, 3.25, 7.5, 18.15])
    np.testing.assert_allclose(table.midpoints, [0, 0, *(1 + 2 * (np.arange(6) + 0.5) / 6)])
    np.testing.assert_allclose(table.bulk, [1.02, 2.98])


def test_relative_w1_is_zero_for_the_quantiles_and_for_identical_spectra():
    table = LawTable.of(UniformWithAtom(), 50)
    assert compare.relative_w1(table.midpoints, table) == 0
    values = spectrum(50, 0.25)
    assert compare.relative_w1_between(values, values, 1.5) == 0
    assert compare.ks_between(values, values) == 0


def test_relative_w1_of_a_dilation_is_the_dilation():
    table = LawTable.of(UniformWithAtom(), 2000)
    assert compare.relative_w1(1.1 * table.midpoints, table) == pytest.approx(0.1, rel=1e-9)


@pytest.mark.parametrize("seed", range(3))
def test_w1_between_is_the_wasserstein_distance(seed):
    first, second = spectrum(40, 0.3, seed), spectrum(40, 0.2, seed + 10)
    expected = stats.wasserstein_distance(first, second) / 1.5
    assert compare.relative_w1_between(first, second, 1.5) == pytest.approx(expected, rel=1e-12)


def test_w1_to_law_tends_to_the_wasserstein_distance():
    """The midpoint rule is the integral of |F_n⁻¹ − F⁻¹| up to the width of one step, 1/n of the range."""
    values = spectrum(400, 0.25)
    fine = (np.arange(400 * 50) + 0.5) / (400 * 50)
    exact = np.abs(np.repeat(values, 50) - UniformWithAtom().quantile(fine)).mean() / 1.5
    assert compare.relative_w1(values, LawTable.of(UniformWithAtom(), 400)) == pytest.approx(exact, abs=3 / 400)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("scale", [1.0, 1.2, 0.7])
def test_ks_of_a_continuous_law_is_that_of_scipy(seed, scale):
    law = UniformWithAtom(0.0)
    values = spectrum(60, 0.0, seed, scale)
    expected = stats.kstest(values, law.cdf).statistic
    assert compare.ks_distance(values, LawTable.of(law, 60)) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(
    ("law_weight", "weight"), [(0.25, 0.25), (0.25, 0.6), (0.6, 0.1), (0.4, 0.0), (0.0, 0.4), (0.3, 1.0)]
)
def test_ks_with_an_atom_is_the_largest_difference_on_a_fine_grid(seed, law_weight, weight):
    law, values = UniformWithAtom(law_weight), spectrum(30, weight, seed)
    grid = np.concatenate([np.linspace(-1, 4, 4001), values, values - 1e-9, values + 1e-9])
    empirical = np.searchsorted(values, grid, side="right") / 30
    expected = np.abs(empirical - law.cdf(grid)).max()
    assert compare.ks_distance(values, LawTable.of(law, 30)) == pytest.approx(expected, abs=1e-8)


def test_ks_sees_no_jump_at_an_atom_that_the_sample_shares():
    values = np.sort(np.concatenate([np.zeros(25), 1 + 2 * (np.arange(75) + 0.5) / 75]))
    assert compare.ks_distance(values, LawTable.of(UniformWithAtom(), 100)) == pytest.approx(0.5 / 100)


@pytest.mark.parametrize("seed", range(3))
def test_ks_between_is_that_of_scipy(seed):
    first, second = spectrum(45, 0.3, seed), spectrum(45, 0.2, seed + 10, 1.1)
    assert compare.ks_between(first, second) == pytest.approx(stats.ks_2samp(first, second).statistic)


def test_moments_are_relative_to_those_of_the_law():
    table = LawTable.of(UniformWithAtom(), 4)
    np.testing.assert_allclose(
        compare.moment_deviations(np.array([0.0, 1.0, 2.0, 3.0]), table),
        [1.5 / 1.5 - 1, 3.5 / 3.25 - 1, 9 / 7.5 - 1, 24.5 / 18.15 - 1],
    )


def test_bulk_moments_do_not_feel_the_size_of_an_outlier():
    table = LawTable.of(UniformWithAtom(), 1000)
    far, near = table.midpoints.copy(), table.midpoints.copy()
    far[-1], near[-1] = 1e6, 3 * (1 + 1000 ** (-2 / 3))
    expected = compare.moment_deviations(near, table)
    np.testing.assert_allclose(compare.bulk_moment_deviations(far, table), expected, rtol=1e-12)
    inside = compare.moment_deviations(table.midpoints, table)
    np.testing.assert_array_equal(compare.bulk_moment_deviations(table.midpoints, table), inside)


def test_bulk_quantiles_leave_zeros_and_single_outliers_out():
    law = UniformWithAtom(0.5)
    table = LawTable.of(law, 1000)
    np.testing.assert_allclose(compare.bulk_deviations(table.midpoints, table), 0, atol=1e-12)
    spoiled = np.sort(np.append(table.midpoints[:-1], 100.0))
    np.testing.assert_allclose(compare.bulk_deviations(spoiled, table), 0, atol=1e-12)
    assert np.isnan(compare.bulk_deviations(np.zeros(5), table)).all()


def test_outliers_are_beyond_the_edge_and_its_margin():
    table = LawTable.of(UniformWithAtom(), 1000)  # margin 1000^(−2/3) = 1 %
    values = np.linspace(0, 3, 1000)
    values[-4:] = [3.02, 3.029, 3.031, 9.0]
    assert compare.outliers(values, table) == 2


def test_mass_at_zero_counts_exact_zeros():
    assert compare.mass_at_zero(np.array([0.0, 0.0, 1e-300, 1.0])) == 0.5


def test_as_spectrum_sorts_and_cleans():
    np.testing.assert_array_equal(compare.as_spectrum([3.0, -1e-14, 1e-12, 2.0]), [0, 0, 2, 3])
    np.testing.assert_array_equal(compare.as_spectrum([3.0, 1e-12], zero_below=0), [1e-12, 3])


@pytest.mark.parametrize("values", [[], [1.0, np.nan], [np.inf], [-0.1, 1.0], [-1.0, -2.0]])
def test_as_spectrum_refuses_what_is_none(values):
    with pytest.raises(InputError, match="squared singular values"):
        compare.as_spectrum(values)
