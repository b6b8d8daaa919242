"""Ridge risk for a population covariance: isotropic closed form, best penalty, laws as populations, simulation."""

from fractions import Fraction

import numpy as np
import pytest
from scipy.optimize import minimize_scalar

import freeattn as fa
from freeattn.errors import InputError
from freeattn.predict import sample_covariance
from freeattn.theory.transforms import FreePoisson, MarchenkoPastur

PENALTIES = np.array([1e-4, 0.05, 0.7, 20.0])
RATIOS = (0.3, 1.0, 2.5)
POPULATION = ([0.2, 1.0, 4.0], [0.5, 0.3, 0.2])


@pytest.mark.parametrize("ratio", RATIOS)
def test_isotropic_closed_form(ratio):
    """H = δ₁: with m the Stieltjes transform of Marchenko–Pastur at −λ, R = 1 + γm + λ(λα²/γ − 1)γ m'
    (Dobriban, Wager, section 2)."""
    signal = 1.7
    root = np.sqrt((1 - ratio + PENALTIES) ** 2 + 4 * ratio * PENALTIES)
    m = (-(1 - ratio + PENALTIES) + root) / (2 * ratio * PENALTIES)
    slope = (m + ratio * m**2) / root  # of ratio·λm² + (1 − ratio + λ)m = 1, along z = −λ
    covariance = sample_covariance([1], ratio)
    expected = 1 + ratio * m + PENALTIES * (PENALTIES * signal / ratio - 1) * ratio * slope
    assert covariance.ridge_risk(PENALTIES, signal) == pytest.approx(expected, rel=1e-9)
    companion = ratio * m + (1 - ratio) / PENALTIES
    assert covariance.companion(PENALTIES) == pytest.approx(companion, rel=1e-10)


@pytest.mark.parametrize("ratio", RATIOS)
def test_equation_and_slope_of_the_companion(ratio):
    covariance = sample_covariance(POPULATION[0], ratio, POPULATION[1])
    t, weights = np.array(POPULATION[0]), np.array(POPULATION[1])
    v = covariance.companion(PENALTIES)
    residual = -1 / v + ratio * (t / (1 + t * v[:, None])) @ weights + PENALTIES
    assert np.abs(residual).max() < 1e-11 * (1 / v + PENALTIES).max()
    step = 1e-5 * PENALTIES
    difference = (covariance.companion(PENALTIES - step) - covariance.companion(PENALTIES + step)) / (2 * step)
    assert covariance.companion(PENALTIES, derivative=1) == pytest.approx(difference, rel=1e-6)


@pytest.mark.parametrize("ratio", RATIOS)
def test_best_penalty(ratio):
    covariance = sample_covariance(POPULATION[0], ratio, POPULATION[1])
    best = covariance.best_penalty(2.0)
    assert best == ratio / 2
    least = minimize_scalar(lambda u: covariance.ridge_risk(np.exp(u), 2.0), bracket=(-3, 1), tol=1e-9)
    assert np.exp(least.x) == pytest.approx(best, rel=1e-4)
    assert covariance.ridge_risk(best, 2.0) == pytest.approx(1 / (best * covariance.companion(best)), rel=1e-12)


def test_a_law_as_population():
    """A law and a quadrature of it are one population; a law expression and its SpectralLaw too."""
    expression = MarchenkoPastur(Fraction(1, 2))
    law = fa.law(expression)
    levels = (np.arange(4000) + 0.5) / 4000
    risk = sample_covariance(law, 0.8).ridge_risk(PENALTIES)
    assert sample_covariance(law.quantile(levels), 0.8).ridge_risk(PENALTIES) == pytest.approx(risk, rel=1e-5)
    assert sample_covariance(expression, 0.8).ridge_risk(PENALTIES) == pytest.approx(risk, rel=1e-13)
    layer = fa.law(fa.Attention.from_ratios(1, 1, 1, n_heads=4))
    assert (np.diff(sample_covariance(layer, 0.5).companion(PENALTIES)) < 0).all()


def test_nothing_cancels_at_tiny_and_huge_penalties():
    """Without features the risk is 1 + α², without a penalty 1 + 1/(γ − 1) + α²(1 − 1/γ)."""
    for ratio in (1e-3, 1.0, 1e3):
        risks = sample_covariance([1], ratio).ridge_risk([1e9, 1e15], 2.0)
        np.testing.assert_allclose(risks, 3 - 2 * 2 / np.array([1e9, 1e15]), rtol=1e-14)
    for ratio in (2.0, 1e3):
        wide = sample_covariance([1], ratio)
        assert wide.ridge_risk(1e-12, 2.0) == pytest.approx(1 + 1 / (ratio - 1) + 2 * (1 - 1 / ratio), rel=1e-11)
        assert wide.companion(1e-12, derivative=1) == pytest.approx(ratio / (ratio - 1) ** 3, rel=1e-11)


def test_zeros_of_the_population_do_not_count():
    """Half the features without variance: γ halves, and α² too, of which half is on directions that are never seen."""
    full, half = sample_covariance([1], 0.5), sample_covariance([0, 1], 1.0)
    assert half.companion(PENALTIES) == pytest.approx(full.companion(PENALTIES), rel=1e-13)
    assert half.ridge_risk(0.3, 2.0) == pytest.approx(full.ridge_risk(0.3, 1.0), rel=1e-12)
    assert fa.law(FreePoisson(Fraction(1, 2))).atoms[0].weight == Fraction(1, 2)
    assert sample_covariance(FreePoisson(Fraction(1, 2)), 1.0).companion(0.3) > 0


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (([1, 2], 0), "ratio = 0.0"), (([1, 2], [1, 2]), "ratio = "), (([0, 0], 1), "population = "),
        (([1, -2], 1), "population = -2.0"), (([1, 2], 1, [1]), "weights = "), (("word", 1), "population = 'word'"),
        ((FreePoisson(2), 1, [1]), "weights = "), (([[1, 2]], 1), "population = "),
    ],
)
def test_bad_input(arguments, text):
    with pytest.raises(InputError, match=text):
        sample_covariance(*arguments)


def test_bad_penalties():
    covariance = sample_covariance([1], 1)
    with pytest.raises(InputError, match="penalty = 0"):
        covariance.ridge_risk(0)
    with pytest.raises(InputError, match="signal = -1"):
        covariance.ridge_risk(1, -1)
    with pytest.raises(InputError, match="derivative = 3"):
        covariance.companion(1, derivative=3)


@pytest.mark.slow
def test_simulated_regressions():
    samples, features, signal, penalty = 600, 900, 2.0, 0.3
    t = np.repeat([0.2, 1.0, 4.0], [450, 270, 180])
    risk = sample_covariance(POPULATION[0], features / samples, POPULATION[1]).ridge_risk(penalty, signal)
    draws, found = np.random.default_rng(11), []
    for _ in range(20):
        x = draws.standard_normal((samples, features)) * np.sqrt(t)
        gram = np.linalg.inv(x.T @ x / samples + penalty * np.eye(features))
        shrunk = penalty * gram  # bias: −λ(S + λ)⁻¹ω
        bias = signal / features * np.trace(shrunk.T @ (t[:, None] * shrunk))
        smooth = gram @ x.T / samples
        found.append(1 + bias + np.sum(t[:, None] * smooth**2))
    assert np.mean(found) == pytest.approx(risk, rel=0.01)
