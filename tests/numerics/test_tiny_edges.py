"""Layers whose ratios nearly coincide, or whose bands hide below a gap: edges of 10⁻¹² to 10⁻¹⁵ of the law, and orders
of a hard edge that change on the way to 0."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

import freeattn as fa
from freeattn.numerics.real_axis import Axis
from freeattn.numerics.stretches import Stretch, _is_power_law

ABOVE, BELOW = Fraction(1_000_001, 1_000_000), Fraction(999_999, 1_000_000)
HALF, HARD = Fraction(1, 2), Fraction(-1, 2)


def layer(key, value, out, tokens, **fields):
    """A layer with Gaussian tokens by its ratios."""
    ratios = {"gamma_key": key, "gamma_value": value, "gamma_out": out, "tokens_per_width": tokens}
    return fa.Attention.from_ratios(
        **{name: Fraction(value) for name, value in ratios.items()}, **({"inputs": "gaussian"} | fields)
    )


def covariance(*eigenvalues):
    return fa.FeatureCovariance([Fraction(value) for value in eigenvalues])


TINY = {  # γ_O = 1 ± 10⁻⁶ or γ_V(1 + 10⁻⁶)
    "key-value": (
        layer("73810/3517", "73810/3517", ABOVE, "71/1726", n_heads=2, beta=Fraction(353, 5933), tie="key-value"),
        1e-12),
    "key-value, wide": (
        layer("444081/9610", "444081/9610", ABOVE, "401/7115", n_heads=2, beta=Fraction(12583, 7948), tie="key-value"),
        1e-12),
    "output as wide as values": (
        layer("5693/3182", "915/8734", ABOVE * Fraction(915, 8734), "298097/9318", n_heads=4,
              beta=Fraction(17031, 5846), inputs=covariance(6086697426, 13466737260, 93379812465)), 1e-12),
    "covariance": (
        layer("4009/5334", "188311/7893", BELOW, "102846/8081", n_heads=64, beta=Fraction(689, 2536),
              inputs=covariance(29010861990, 101444352042, 1692970360515)), 1e-12),
}
CROSSING = {  # from x^{-3/4} or x^{-2/3} to x^{-1/2}
    "four factors, then two": layer(
        "9943/3414", "9943/3414", 1 / ABOVE, ABOVE, n_heads=1, beta=Fraction(12373, 8630), tie="output-key"),
    "three factors, then two": layer(
        "340/9891", "36275/1457", ABOVE, "6313/9173", n_heads=1, beta=Fraction(137, 1687),
        inputs=covariance(95003965395, 265682344228, 661666404267)),
}
HIDDEN = {  # a band below a gap that ends where the usual grid looks
    "gaussian": layer("878/8633", "3993/9769", "757/5007", "44221/5860", n_heads=1, beta=Fraction(524, 9297)),
    "covariance": layer("2439/7631", "30407/9456", "9122/5527", "17059/5661", n_heads=2, beta=Fraction(144, 6361),
                        inputs=covariance(22103120745, 34065715686, 53135702646)),
    "narrow": layer("341/9528", "2652/8297", "179/4850", "667/6888", n_heads=1, beta=Fraction(169, 8145),
                    inputs=covariance(268451128452, 2975681121840, 3588786067815)),
}


def cases(layers):
    """Names as parameters; those that take seconds are slow."""
    slow = ("covariance", "key-value", "output as wide as values", "three factors, then two")
    return [pytest.param(name, marks=[pytest.mark.slow] if name in slow else []) for name in layers]


def checked(spec):
    """The law, its mass and moments against the exact ones."""
    law = fa.law(spec)
    assert sum(law.band_masses) + sum(float(atom.weight) for atom in law.atoms) == pytest.approx(1, abs=1e-10)
    for order, moment in enumerate(law.moments(3), 1):
        assert law.integrate(lambda x, k=order: x**k) == pytest.approx(moment, rel=1e-10)
    return law


@pytest.mark.parametrize("name", cases(TINY))
def test_tiny_left_edges_are_good_to_the_last_digit(name):
    spec, share = TINY[name]
    law = checked(spec)
    left, right = law.edges[0]
    assert 0 < left < share * law.edges[-1][1]
    assert law.edge_exponents[0] == (HALF, HALF)
    assert left == pytest.approx(float(law.edges_to(30)[0][0]), rel=4e-16)
    near = [law.density(left * (1 + distance), digits=20) for distance in (1e-3, 4e-3)]
    assert near[1] / near[0] == pytest.approx(2, rel=0.02)  # a square root
    assert right > left


@pytest.mark.parametrize("name", cases(CROSSING))
def test_the_order_of_a_hard_edge_is_that_of_the_last_scale(name):
    law = checked(CROSSING[name])
    assert law.edge_exponents[0] == (HARD, HALF)
    assert law.edges[0][0] == 0


@pytest.mark.parametrize("name", cases(HIDDEN))
def test_bands_below_a_gap_are_found(name):
    law = checked(HIDDEN[name])
    (_, end), (start, _) = law.edges[:2]
    assert len(law.edges) == 2
    assert end < start < 1e-3 * law.edges[-1][1]
    assert law.density(np.sqrt(end * start)) == 0


def test_a_passing_power_is_no_power_law():
    assert _is_power_law(-0.5, -0.5, 1e-20)
    assert not _is_power_law(-0.6, -0.62, 1e-25)  # on the way from −2/3 to −1/2
    assert not _is_power_law(-0.5, -0.5, 1e-10)  # doubles would see it end
    assert not _is_power_law(-0.5, float("nan"), 1e-20)


class _SquareRoot:
    """u = −1 + i·√x: an equation in name only."""

    count = 1

    def matrices(self, u, z):  # noqa: ARG002
        return [u]

    def output(self, matrices):
        return matrices[0][..., 0]

    def rates(self, matrices):
        return [-0.5 * matrices[0] / 1e-30]


def test_the_tail_of_a_hard_edge():
    """ρ ~ x^{-1/2} below the innermost point; none where the mass there would be seen."""
    x, u = np.array([1e-30, 1e-20]), np.array([[1e15j * np.pi], [1e10j * np.pi]])
    stretch = Stretch(None, None, x, u, Fraction(2))
    tail = stretch.tail(Axis(_SquareRoot(), None))
    assert tail.beneath == 1e-30
    assert tail.density(np.array([1e-32, 1e-40])) == pytest.approx([1e16, 1e20], rel=1e-12)
    assert tail.density(np.array([1e-20])) == 0
    assert Stretch(None, None, x, u, Fraction(1)).tail(Axis(_SquareRoot(), None)).beneath == 0
    assert Stretch(None, None, x, 1e3 * u, Fraction(3)).tail(Axis(_SquareRoot(), None)).beneath == 0
