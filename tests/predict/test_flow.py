"""Gradient flow: against inverse Laplace transforms and quadrature of many digits, hard edges, plateaus, arrivals."""

from fractions import Fraction

import mpmath
import numpy as np
import pytest

import freeattn as fa
from freeattn.errors import ConvergenceError, InputError
from freeattn.predict import arrival_time, flow_loss
from freeattn.theory.transforms import MarchenkoPastur

SPECS = {
    "plain": fa.Attention.from_ratios(Fraction(3, 2), Fraction(5, 4), Fraction(7, 4), n_heads=6),
    "hard edge": fa.Attention.from_ratios(1, 1, 2, n_heads=64),
    "hardest edge": fa.Attention.from_ratios(1, 1, 1, n_heads=1),
    "atom": fa.Attention.from_ratios(Fraction(1, 2), Fraction(1, 2), 2, n_heads=32),
    "keys are values": fa.Attention.from_ratios(2, 2, 1, n_heads=4, tie="key-value"),
    "two bands": fa.Attention.from_ratios(Fraction(1, 20), 20, 20, n_heads=128),
    "gaussian tokens": fa.Attention.from_ratios(1, 1, Fraction(3, 2), 2, n_heads=4, inputs="gaussian"),
}


@pytest.fixture(scope="module")
def laws():
    return {name: fa.law(spec) for name, spec in SPECS.items()}


def inverted(law, t, digits=18):
    """(1 − w(s/2))/s inverted by mpmath's own method, in a context of its own."""
    context = mpmath.MPContext()
    context.dps = digits
    normalized = law.normalized()

    def transform(s):
        return context.convert(normalized.stieltjes(-s / 2, digits=context.dps)) / 2  # (1 − w(s/2))/s = m(−s/2)/2

    return float(context.invertlaplace(transform, context.mpf(t), method="talbot", degree=24))


@pytest.mark.parametrize("name", SPECS)
def test_loss_is_an_inverse_laplace_transform(laws, name):
    for t in (0.25, 12.0):
        assert flow_loss(laws[name], t) == pytest.approx(inverted(laws[name], t), rel=1e-9)


@pytest.mark.parametrize(
    ("name", "t"), [
        ("hard edge", 3.0), ("hard edge", 1e3), ("hardest edge", 1e8),
        *(pytest.param(name, t, marks=pytest.mark.slow)
          for name in ("hard edge", "hardest edge") for t in (1e-3, 30.0, 1e5, 1e7)),
    ],
)
def test_hard_edges_over_all_times(laws, name, t):
    """Right where the loss falls like a power of t: many digits by another method."""
    assert flow_loss(laws[name], t) == pytest.approx(float(flow_loss(laws[name], t, digits=16)), rel=1e-11)


def test_power_laws(laws):
    """ρ ~ x^{1/k−1} at 0 gives L ~ t^{−1/k}; k = 2 and k = 4 here."""
    for name, k in (("hard edge", 2), ("hardest edge", 4)):
        assert laws[name].edge_exponents[0][0] == Fraction(1, k) - 1
        early, late = flow_loss(laws[name], [1e24, 1e26])
        assert late / early == pytest.approx(100 ** (-1 / k), rel=1e-5)


@pytest.mark.slow
def test_many_digits_by_quadrature(laws):
    law = laws["plain"]
    t = Fraction(3, 2)
    found = flow_loss(law, t, digits=20)
    normalized = law.normalized()
    direct = normalized.integrate(lambda x: x.context.exp(-2 * x.context.mpf(3) / 2 * x), digits=20)
    assert abs(found - direct) < 1e-19
    assert flow_loss(law, 1.5) == pytest.approx(float(found), rel=1e-13)


def test_plateau_and_ends(laws):
    for name, law in laws.items():
        plateau = sum(float(atom.weight) for atom in law.atoms if atom.location == 0)
        assert flow_loss(law, 0) == pytest.approx(1, abs=1e-15), name
        losses = flow_loss(law, np.concatenate([[0], np.logspace(-6, 30, 37)]))
        assert (np.diff(losses) <= 1e-15).all(), name
        assert (losses >= plateau).all(), name
    assert flow_loss(laws["atom"], 1e8) == 0.5
    assert flow_loss(laws["plain"], 1e8) == 0


def test_losses_too_small_for_doubles_fall_to_zero(laws):
    """Between 1e-306 and 1e-320 doubles have fewer and fewer digits: the loss is found to those that there are."""
    law = laws["plain"]
    left = float(law.normalized().edges[0][0])
    losses = flow_loss(law, np.linspace(680, 750, 701) / (2 * left))
    assert (np.diff(losses) <= 1e-320).all()
    assert losses[0] > 1e-305
    assert losses[-1] == 0


def test_published_losses():
    """arXiv 2610.10033, Fig. 2(a): plateau 0.5 at h = 32, 7.55e-5 in the limit at h = 128, t = 100."""
    specs = {
        h: fa.Attention(n_tokens=4096, d_model=4096, n_heads=h, d_key=64, d_value=64, d_out=8192) for h in (32, 64, 128)
    }
    losses = {h: flow_loss(fa.law(spec), [100.0, 1e8]) for h, spec in specs.items()}
    assert losses[32][1] == 0.5
    assert losses[64][1] < 1e-4
    assert losses[128][0] == pytest.approx(7.55e-5, rel=1e-3)


def test_published_times_of_arrival():
    """arXiv 2610.10033, Fig. 3(a)."""
    plain = fa.Attention(n_tokens=4096, d_model=4096, n_heads=64, d_key=64, d_value=64, d_out=8192)
    gamma = Fraction(5) / (3 + Fraction(2, 64))
    shared = fa.Attention.from_ratios(gamma, gamma, 2, n_heads=64)
    rounded = plain.replace(n_kv_heads=1, d_key=106, d_value=106)
    times = [arrival_time(fa.law(spec), 0.1) for spec in (plain, shared, rounded)]
    assert times == [pytest.approx(41.22, abs=0.005), pytest.approx(7.80, abs=0.005), pytest.approx(7.76, abs=0.005)]


@pytest.mark.parametrize("name", SPECS)
@pytest.mark.parametrize("share", [0.999999, 0.6, 0.05, 1e-3])
def test_arrival_inverts_the_loss(laws, name, share):
    law = laws[name]
    plateau = sum(float(atom.weight) for atom in law.atoms if atom.location == 0)
    level = plateau + share * (1 - plateau)
    time = arrival_time(law, level)
    assert flow_loss(law, time) - plateau == pytest.approx(level - plateau, rel=1e-11, abs=1e-15)


@pytest.mark.slow
@pytest.mark.parametrize("deficit", [2.0**-50, 2.0**-33, 2.0**-20])
def test_arrival_next_to_the_start(laws, deficit):
    """1 − L = 2t − 2m₂t² + …, to the accuracy of 1 − level."""
    second = laws["plain"].normalized().moments(2)[1]
    t = (1 + second * deficit / 2) * deficit / 2
    assert arrival_time(laws["plain"], 1 - deficit) == pytest.approx(t, rel=max(1e-13, 100 * deficit**2))


def test_arrival_next_to_the_ends_to_many_digits():
    atom = fa.law(MarchenkoPastur(2))
    assert arrival_time(atom, 1 - Fraction(1, 10**18), digits=16) == pytest.approx(5e-19, rel=1e-14)
    late = arrival_time(atom, Fraction(1, 2) + Fraction(1, 10**6), digits=16)
    assert float(flow_loss(atom, late, digits=26) - mpmath.mpf(0.5)) == pytest.approx(1e-6, rel=1e-14)


def test_arrival_to_many_digits(laws):
    time = arrival_time(laws["plain"], "0.25", digits=22)
    assert abs(flow_loss(laws["plain"], time, digits=25) - mpmath.mpf("0.25")) < 1e-21
    assert arrival_time(laws["plain"], 0.25) == pytest.approx(float(time), rel=1e-13)


def test_levels_that_are_never_reached(laws):
    assert arrival_time(laws["plain"], 1) == 0
    for name, level in (("atom", 0.5), ("atom", 0.3), ("plain", 0), ("plain", 1.1), ("plain", [0.1, 0.2])):
        with pytest.raises(InputError, match="level = "):
            arrival_time(laws[name], level)
    with pytest.raises(ConvergenceError, match="beyond 1e"):
        arrival_time(laws["hardest edge"], 1e-9)


def test_bad_times(laws):
    for t in (-1, np.inf, "x", 1e31):
        with pytest.raises(InputError, match="t = "):
            flow_loss(laws["plain"], t)


