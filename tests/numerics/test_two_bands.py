"""Laws of several bands: where gaps open, what each band holds, and the total mass of random layers."""

from __future__ import annotations

import importlib.util
import random
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

import freeattn as fa

_PATH = Path(__file__).parents[1] / "benchmarks" / "robustness.py"
SIZES = {"n_tokens": 800, "d_model": 800}


def attention(gamma_key):
    """16 heads, β = 1."""
    return fa.Attention.from_ratios(Fraction(gamma_key), None, None, n_heads=16, output="attention")


def two_families(beta):
    """Eight heads of β = 1/2 and eight of another β, all of key width 10."""
    heads = [fa.Heads(8, 10, None, Fraction(1, 2)), fa.Heads(8, 10, None, Fraction(beta))]
    return fa.Attention(**SIZES, heads=heads, output="attention")


def threshold(layer, open_at, closed_at, bands, tolerance):
    """The parameter at which the number of bands changes from `bands` to another one, by bisection."""
    while abs(open_at - closed_at) > tolerance:
        middle = (open_at + closed_at) / 2
        if len(fa.law(layer(middle), route="pencil").edges) == bands:
            open_at = middle
        else:
            closed_at = middle
    return (open_at + closed_at) / 2


def quadrature(law, band):
    """∫ρ by Gauss–Chebyshev nodes of the second kind: x = centre + radius·cos, weight sin²."""
    (left, right), count = band, 600
    angle = np.pi * np.arange(1, count + 1) / (count + 1)
    radius = (right - left) / 2
    values = law.density((left + right) / 2 + radius * np.cos(angle)) * np.sin(angle)
    return float(np.pi / (count + 1) * radius * np.sum(values))


@pytest.mark.slow
def test_where_the_gap_of_attention_opens():
    found = threshold(attention, 0.4, 0.5, 2, 1e-4)
    print(f"attention with 16 heads, beta = 1: the gap opens at gamma_key = {found:.4f}")
    assert len(fa.law(attention(found - 1e-3)).edges) == 2  # the closed law says the same
    assert len(fa.law(attention(found + 1e-3)).edges) == 1


@pytest.mark.slow
def test_where_the_gaps_of_two_families_open_and_close():
    opens = threshold(two_families, 1.0, 0.5, 3, 2e-3)
    closes = threshold(two_families, 1.0, 1.5, 3, 2e-3)
    print(f"families of beta = 1/2 and b: three bands for {opens:.3f} < b < {closes:.3f}")
    for beta in (opens + 0.01, closes - 0.01):
        assert fa.law(two_families(beta)).band_masses == pytest.approx((0.8, 0.1, 0.1), abs=1e-12)
    assert fa.law(two_families(opens - 0.01)).band_masses == pytest.approx((0.8, 0.2), abs=1e-12)
    assert fa.law(two_families(closes + 0.01)).band_masses == pytest.approx((0.9, 0.1), abs=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("spec", [
    fa.Attention(**SIZES, n_heads=16, d_key=12, output="attention", beta=1),
    two_families(1),
    fa.Attention(**SIZES, heads=[fa.Heads(8, 10, None, Fraction(1, 2)), fa.Heads(8, 1, None, 1)], output="attention"),
], ids=["equal heads", "two temperatures", "two widths"])
def test_masses_of_bands(spec):
    """Each band: its mass, an independent quadrature, and the number of eigenvalues of one simulated matrix."""
    law, drawn = fa.law(spec, route="pencil"), fa.sample(spec, seed=1)
    assert len(law.edges) >= 2
    assert sum(law.band_masses) == pytest.approx(1, abs=1e-13)
    for band, mass in zip(law.edges, law.band_masses, strict=True):
        assert quadrature(law, band) == pytest.approx(mass, rel=1e-10)
    cuts = [0.0, *((a[1] * b[0]) ** 0.5 for a, b in zip(law.edges, law.edges[1:], strict=False)), np.inf]
    # Not softmax: with so few key coordinates it is not near its limit. At equal ratios d_key = 12, 24, 48 puts 9.5,
    # 5.8 and 1.5 % of the eigenvalues on the wrong side of the gap, the equivalent none.
    counts = np.histogram(drawn.equivalent, cuts)[0]
    assert np.abs(counts - spec.n_tokens * np.array(law.band_masses)).max() <= 1


@pytest.mark.slow
def test_total_mass_of_random_layers():
    """Panels hold the mass to rounding, whatever the layer."""
    module_spec = importlib.util.spec_from_file_location("robustness", _PATH)
    robustness = importlib.util.module_from_spec(module_spec)
    module_spec.loader.exec_module(robustness)
    rng, worst = random.Random(3), 0.0
    for k in range(40):
        law = fa.law(robustness.layer(rng, robustness.KINDS[k % len(robustness.KINDS)]), route="pencil")
        total = sum(law.band_masses) + sum(float(atom.weight) for atom in law.atoms)
        worst = max(worst, abs(total - 1))
    print(f"largest deviation of 40 masses: {worst:.1e}")
    assert worst <= 1e-12


def test_many_digits_of_the_quantile_at_the_mass_below_a_gap():
    """The infimum of {x : cdf(x) ≥ p} is the left end of the gap, rounded to the digits asked for."""
    law = fa.law(attention(Fraction(1, 4)))
    (_, left_end), (right_end, _) = law.edges_to(25)
    found = law.quantile(Fraction(law.band_masses[0]).limit_denominator(1000), digits=25)
    assert found.context.dps == 25
    assert abs(found - left_end) < 1e-24 * left_end < right_end - left_end
