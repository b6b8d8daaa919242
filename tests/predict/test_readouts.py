"""Degrees of freedom and ridge regression: both forms of the error, digits, limits, published numbers."""

from fractions import Fraction

import mpmath
import numpy as np
import pytest
from scipy.optimize import brentq, minimize_scalar

import freeattn as fa
from freeattn.errors import InputError
from freeattn.predict import best_penalty, degrees_of_freedom, ridge_error
from freeattn.theory.transforms import FreePoisson, MarchenkoPastur

PLAIN = fa.Attention.from_ratios(Fraction(3, 2), Fraction(5, 4), Fraction(7, 4), n_heads=6)
SPECS = {
    "plain": PLAIN,
    "hard edge": fa.Attention.from_ratios(1, 1, 2, n_heads=64),
    "hardest edge": fa.Attention.from_ratios(1, 1, 1, n_heads=1),
    "atom": fa.Attention.from_ratios(Fraction(1, 2), Fraction(1, 2), 2, n_heads=32),
    "narrow output": fa.Attention.from_ratios(2, 2, Fraction(1, 3), n_heads=8),
    "keys are values": PLAIN.replace(tie="key-value", ratios=fa.Ratios(gamma_key=2, gamma_value=2, gamma_out=1)),
    "two bands": fa.Attention.from_ratios(Fraction(1, 20), 20, 20, n_heads=128),
    "gaussian tokens": fa.Attention.from_ratios(1, 1, Fraction(3, 2), 2, n_heads=4, inputs="gaussian"),
}
PENALTIES = np.array([1e-6, 1e-4, 0.03, 1.0, 50.0])


@pytest.fixture(scope="module")
def laws():
    return {name: fa.law(spec) for name, spec in SPECS.items()}


def marchenko_pastur_dof(penalty, ratio):
    """w of MP with rows/columns = ratio: ratio·λ m² + (1 − ratio + λ) m − 1 = 0 at z = −λ."""
    m = (-(1 - ratio + penalty) + np.sqrt((1 - ratio + penalty) ** 2 + 4 * ratio * penalty)) / (2 * ratio * penalty)
    return 1 - penalty * m


@pytest.mark.parametrize("name", SPECS)
def test_degrees_of_freedom_are_those_of_the_stieltjes_transform(laws, name):
    law = laws[name]
    normalized = law.normalized()
    for penalty, found in zip(PENALTIES, degrees_of_freedom(law, PENALTIES), strict=True):
        exact = 1 + mpmath.mpf(-float(penalty)) * normalized.stieltjes(-float(penalty), digits=30).real
        assert found == pytest.approx(float(exact), rel=1e-12)


@pytest.mark.parametrize("name", SPECS)
def test_slope_by_quadrature_and_by_differences(laws, name):
    found = degrees_of_freedom(laws[name], PENALTIES, derivative=1)
    for penalty, slope in zip(PENALTIES, found, strict=True):
        precise = degrees_of_freedom(laws[name], float(penalty), derivative=1, digits=25)
        assert slope == pytest.approx(float(precise), rel=1e-12)


@pytest.mark.parametrize("penalty", ["1e-20", "1e-60"])
def test_many_digits_of_slope_and_error_at_tiny_penalties(penalty):
    """Marchenko-Pastur with ratio 1/2 has ∫ 1/x = 2 and ∫ 1/x² = 8; with ratio 1, w ~ 1 − √λ."""
    law = fa.law(MarchenkoPastur(Fraction(1, 2)))
    slope = degrees_of_freedom(law, penalty, derivative=1, digits=18)
    assert slope == pytest.approx(-2, abs=1e-17)
    assert ridge_error(law, penalty, penalty, gamma_out=1, digits=18) == pytest.approx(2 * float(penalty), rel=1e-15)
    hard = degrees_of_freedom(fa.law(MarchenkoPastur(1)), penalty, derivative=1, digits=18)
    assert float(hard) == pytest.approx(-0.5 / float(penalty) ** 0.5, rel=1e-9)


@pytest.mark.parametrize("name", SPECS)
def test_both_forms_of_the_error(laws, name):
    """1 − w/γ + (λ/γ − σ²) w' against the integral of (λ²/γ + σ²x)/(x + λ)²."""
    law, noise = laws[name], 0.3
    gamma = float(law.spec.gamma_out)
    w, slope = (degrees_of_freedom(law, PENALTIES, derivative=k) for k in (0, 1))
    found = ridge_error(law, PENALTIES, noise)
    assert found == pytest.approx(1 - w / gamma + (PENALTIES / gamma - noise) * slope, rel=1e-11, abs=1e-13)
    normalized = law.normalized()
    for penalty, error in zip(PENALTIES[1:], found[1:], strict=True):
        integral = normalized.integrate(lambda x, p=penalty: (p**2 / gamma + noise * x) / (x + p) ** 2)
        assert error == pytest.approx(1 - 1 / gamma + integral, rel=1e-9)
    assert found[2] == pytest.approx(float(ridge_error(law, float(PENALTIES[2]), noise, digits=25)), rel=1e-12)


def test_against_marchenko_pastur():
    law = fa.law(FreePoisson(2))  # mean 2, MP with rows/columns = 1/2 after division by it
    penalties = np.logspace(-8, 4, 25)
    assert degrees_of_freedom(law, penalties) == pytest.approx(marchenko_pastur_dof(penalties, 0.5), rel=1e-7)
    assert degrees_of_freedom(law, penalties[8:]) == pytest.approx(marchenko_pastur_dof(penalties[8:], 0.5), rel=1e-11)


def test_limits(laws):
    plain, hard, atom = (laws[name] for name in ("plain", "hard edge", "atom"))
    assert degrees_of_freedom(atom, 0) == pytest.approx(0.5, rel=1e-14)
    assert degrees_of_freedom(plain, 1e12) == pytest.approx(1e-12, rel=1e-11)
    assert degrees_of_freedom(hard, 0, derivative=1) == -np.inf
    assert ridge_error(hard, 0) == np.inf
    assert ridge_error(hard, 0, 0) == pytest.approx(1 - 1 / 2)
    inverse = plain.normalized().integrate(lambda x: 1 / x)
    assert ridge_error(plain, 0, 0.1) == pytest.approx(1 - 4 / 7 + 0.1 * inverse, rel=1e-11)
    assert ridge_error(plain, 1e14) == pytest.approx(1)


@pytest.mark.parametrize("name", SPECS)
def test_best_penalty_is_best(laws, name):
    """The least error over the penalty, found by search, is at γσ², where it is 1 − w/γ."""
    law, noise = laws[name], Fraction(1, 5)
    best = best_penalty(law, noise)
    gamma = law.spec.gamma_out
    assert best == gamma * noise
    least = minimize_scalar(lambda u: ridge_error(law, np.exp(u), 0.2), bracket=(-4, 0), tol=1e-9)
    assert np.exp(least.x) == pytest.approx(float(best), rel=1e-5)
    assert ridge_error(law, float(best), 0.2) == pytest.approx(
        1 - degrees_of_freedom(law, float(best)) / float(gamma), rel=1e-12
    )


def test_shapes_and_units(laws):
    law = laws["plain"]
    assert isinstance(ridge_error(law), float)
    grid = ridge_error(law, [[1e-3], [1e-2]], [0.1, 0.2, 0.3])
    assert grid.shape == (2, 3)
    assert grid[1, 2] == pytest.approx(ridge_error(law, 1e-2, 0.3), rel=1e-14)
    assert degrees_of_freedom(law, np.zeros((0, 2))).shape == (0, 2)
    assert ridge_error(law.normalized()) == pytest.approx(ridge_error(law), rel=1e-13)


def test_words_and_law_expressions_need_the_ratio():
    n, p = fa.space("n", 100), fa.space("p", 150)
    word = fa.law(fa.gaussian("G", n, p, Fraction(1, 100)))
    transform = fa.law(MarchenkoPastur(Fraction(2, 3)))
    for law in (word, transform):
        with pytest.raises(InputError, match="gamma_out = None is not allowed; expected the output width"):
            ridge_error(law)
        w = marchenko_pastur_dof(0.15, 2 / 3)
        assert ridge_error(law, 0.15, 0.1, gamma_out=1.5) == pytest.approx(1 - w / 1.5, rel=1e-11)
        assert best_penalty(law, 0.1, gamma_out=1.5) == pytest.approx(0.15)


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"penalty": -1}, "penalty = -1.0"), ({"noise": np.nan}, "noise = nan"), ({"penalty": "x"}, "penalty = 'x'"),
        ({"gamma_out": 3}, "gamma_out = 3"), ({"penalty": 0, "digits": 30}, "penalty = 0"),
        ({"digits": 0}, "digits = 0"), ({"penalty": 1j}, "penalty = 1j"),
    ],
)
def test_bad_input(laws, arguments, text):
    with pytest.raises(InputError, match=text):
        ridge_error(laws["plain"], **arguments)


def test_bad_laws():
    n = fa.space("n", 10)
    for law in (PLAIN, fa.law(fa.wigner("S", n, Fraction(1, 10)), of="self-adjoint")):
        with pytest.raises(InputError, match="law = "):
            degrees_of_freedom(law)
    with pytest.raises(InputError, match="derivative = 2"):
        degrees_of_freedom(fa.law(PLAIN), derivative=2)
    with pytest.raises(InputError, match=r"gamma_out = 0\.5 is not allowed; expected at least 1"):
        ridge_error(fa.law(MarchenkoPastur(Fraction(2, 3))), gamma_out=0.5)


def test_no_global_precision(laws):
    with mpmath.workdps(7):
        before = mpmath.mp.prec
        assert str(ridge_error(laws["plain"], "0.01", "0.1", digits=40)).startswith(
            str(ridge_error(laws["plain"], 0.01, 0.1))[:9]
        )
        assert mpmath.mp.prec == before


def test_published_crossing():
    """arXiv 2610.10033, Fig. 2(d): (d_key, d_value) = (64, 192) against (128, 128) at h = 96 crosses 1 at β ≈ 0.559."""
    def ratio(beta):
        errors = [
            ridge_error(fa.law(fa.Attention(
                n_tokens=8192, d_model=12288, n_heads=96, d_key=key, d_value=value, d_out=12288, beta=beta
            ))) for key, value in ((64, 192), (128, 128))
        ]
        return errors[0] / errors[1] - 1

    assert brentq(ratio, 0.54, 0.58, xtol=1e-4) == pytest.approx(0.559, abs=5e-4)
