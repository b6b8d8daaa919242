"""θ₁ and θ₂ of rows of finite length: exact moments of a row, against other ways to the same numbers."""

from __future__ import annotations

import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest

import freeattn as fa
from freeattn.errors import ConvergenceError, InputError, NotCoveredError
from freeattn.model.quadrature import thetas
from freeattn.model.rows import row_moment
from freeattn.model.scores import Entrywise, FiniteRows, ReLU, Softmax

SOFTPLUS = Entrywise(lambda x, f: f.log(1 + f.exp(x)), name="softplus", normalized=True)
BENT = Entrywise(lambda x, _: abs(x) + 0.5, name="bent", normalized=True, kinks=(0,))


def layer(**changes) -> fa.Attention:
    fields = {"n_tokens": 512, "d_model": 512, "n_heads": 4, "d_key": 128, "output": "attention"}
    return fa.Attention(**{**fields, **changes})


def at(scores, beta, n):
    return thetas(FiniteRows(scores).at_tokens(n), beta)


@pytest.mark.parametrize("beta", [Fraction(1, 10), 1, 3])
def test_two_tokens_are_a_logistic_function(beta):
    """A₁ = 1/(1 + e^{−β(χ₁ − χ₂)}) and χ₁ − χ₂ ~ N(0, 2)."""
    context = mpmath.MPContext()
    context.dps = 30

    def squares(x):
        a = 1 / (1 + context.exp(-beta * context.sqrt(2) * x))
        return 2 * a**2 * context.npdf(x)

    expected = context.quad(squares, range(-12, 13))
    found = row_moment(Softmax(), context.mpf(beta.numerator) / beta.denominator, 2, 2, digits=20)
    assert abs(found.value - expected) < 1e-20


@pytest.mark.parametrize("scores", [SOFTPLUS, BENT], ids=lambda scores: scores.name)
@pytest.mark.parametrize(("power", "degree"), [(2, 0), (1, 1), (4, 0)])
def test_two_tokens_of_other_functions(scores, power, degree):
    """By a sum over a square, whose error at a kink is the step squared."""
    x = np.linspace(-8, 8, 3201)
    mass = np.exp(-(x**2) / 2) * (x[1] - x[0]) / math.sqrt(2 * math.pi)
    f = scores.value(1.5 * x, np)
    first = f[:, None] / (f[:, None] + f[None, :])
    expected = 2 * mass @ (first**power * x[:, None] ** degree) @ mass
    assert float(row_moment(scores, 1.5, 2, power, degree).value) == pytest.approx(expected, abs=1e-5)


@pytest.mark.parametrize(("beta", "n"), [(0.5, 64), (2, 300)])
def test_stein_identity(beta, n):
    """E χ₁ n A₁ = β(1 − I_n) for softmax, each side by its own quadrature."""
    share, slope = (row_moment(Softmax(), beta, n, *orders, digits=20) for orders in ((2, 0), (1, 1)))
    context = mpmath.MPContext()
    context.dps = 30
    assert abs(context.mpf(slope.value) - context.mpf(beta) * (1 - context.mpf(share.value))) < 1e-19


def test_more_digits_agree_with_fewer():
    few, many = (row_moment(Softmax(), 1, 1024, 2, digits=digits) for digits in (12, 30))
    assert abs(few.value - many.value) < 1e-12
    assert many.error < 1e-30
    assert mpmath.MPContext().nstr(many.value, 15) == "0.00263540900616278"


@pytest.mark.parametrize("scores", [Softmax(), SOFTPLUS], ids=lambda scores: scores.name)
def test_long_rows_are_the_limit(scores):
    limit = thetas(scores, 1)
    apart = []
    for n in (10**3, 10**4):
        share, slope = (row_moment(scores, 1.0, n, *orders, digits=12).value for orders in ((2, 0), (1, 1)))
        apart.append((abs(float((n * share - 1) / limit.theta_1) - 1), abs(float(slope**2 / limit.theta_2) - 1)))
    for coarse, fine in zip(*apart, strict=True):
        assert fine == pytest.approx(coarse / 10, rel=0.1)  # like 1/n
        assert fine < 2e-3


@pytest.mark.parametrize("beta", [Fraction(1, 1000), 1, 3])
@pytest.mark.parametrize("n", [2, 100])
def test_signal_is_a_part_of_the_power(beta, n):
    found = at(Softmax(), beta, n)
    assert 0 < found.theta_2 <= found.theta_1 <= n - 1


def test_no_law_of_rows_that_one_token_carries():
    with pytest.raises(ConvergenceError, match=r"at beta = 26 .* smaller beta"):
        at(Softmax(), 26, 512)


def test_no_rows_that_may_be_empty():
    """max(x, 0) vanishes in half of all places: a row of 8 tokens has no sum with probability 2⁻⁸."""
    positive = Entrywise(lambda x, _: (x + abs(x)) / 2, "positive part", normalized=True, kinks=(0,))
    with pytest.raises(InputError, match=r"all weights of a row of 8 tokens are 0 with probability 0\.0"):
        row_moment(positive, 1, 8, power=2)
    long = row_moment(positive, 1, 10**4, power=2)  # θ₁ = 2π·E max(χ, 0)² − 1 = π − 1 as n → ∞
    assert 10**4 * float(long.value) - 1 == pytest.approx(math.pi - 1, rel=1e-2)


def test_plain_scores_have_no_row_sums():
    with pytest.raises(NotCoveredError, match=r"'relu' scores f\(βS\)/n have none"):
        layer(scores=ReLU()).with_finite_size()


# The specification -----------------------------------------------------------------------------------------------


def test_a_specification_follows_its_tokens_and_comes_back():
    spec = layer().with_finite_size()
    assert spec.finite_size
    assert spec.scores.n_tokens == 512
    assert spec.replace(n_tokens=256).scores.n_tokens == 256
    assert spec.with_finite_size() == spec
    assert spec.with_finite_size(False) == layer()
    assert spec != layer()
    assert spec.to_dict()["scores"] == {"finite-size": "softmax"}
    assert fa.Attention.from_dict(spec.to_dict()) == spec
    assert layer(scores=fa.FiniteRows("softmax")) == spec


@pytest.mark.parametrize("spec", [fa.Attention.from_ratios(1, output="attention"), layer(n_tokens=1, d_key=1)])
def test_rows_need_a_length(spec):
    with pytest.raises(InputError, match=r"n_tokens = .* a number of at least 2 for finite size"):
        spec.with_finite_size()


def test_only_layers_have_rows():
    n = fa.space("n", 10)
    with pytest.raises(InputError, match="finite_size = True"):
        fa.law(fa.gaussian("X", n, n, 1), finite_size=True)
    with pytest.raises(InputError, match="finite_size = True"):
        fa.verify(fa.gaussian("X", n, n, 1), finite_size=True)


# The law ---------------------------------------------------------------------------------------------------------


def test_mean_is_the_variance_of_a_row():
    share = row_moment(Softmax(), 1, 512, 2)
    assert fa.law(layer(), finite_size=True).mean == pytest.approx(float(512 * share.value - 1), rel=1e-14)


def test_both_routes():
    one, two = (fa.law(layer(beta=2), route=route, finite_size=True) for route in ("transform", "pencil"))
    assert one.mean < 0.6 * fa.law(layer(beta=2)).mean
    assert np.array(one.edges) == pytest.approx(np.array(two.edges), rel=1e-12)
    assert one.moments(4) == pytest.approx(two.moments(4), rel=1e-12)


def test_gaussian_tokens_and_unequal_heads():
    """First moments in θ₁ and θ₂: γ_O(θ₁ + θ₂ n/d) for Gaussian tokens; the mean of θ₁ over unequal heads."""
    found = at(Softmax(), 1, 64)
    sizes = {"n_tokens": 64, "d_model": 128}
    gaussian = fa.Attention(inputs="gaussian", n_heads=2, d_key=16, d_value=16, d_out=64, **sizes)
    assert fa.law(gaussian, finite_size=True).mean == pytest.approx(float(found.theta_1 + found.theta_2 / 2), rel=1e-12)
    heads = [fa.Heads(1, 16, beta=1), fa.Heads(1, 16, beta=2)]
    unequal = fa.Attention(heads=heads, output="attention", **sizes)
    both = (found.theta_1 + at(Softmax(), 2, 64).theta_1) / 2
    assert fa.law(unequal, finite_size=True).mean == pytest.approx(float(both), rel=1e-12)


@pytest.mark.parametrize("route", ["transform", "pencil"])
def test_more_digits_are_refused(route):
    law = fa.law(layer(), route=route, finite_size=True)
    assert float(law.edges_to(20)[0][0]) == pytest.approx(law.edges[0][0], rel=1e-14)
    for ask in (lambda: law.edges_to(21), lambda: law.moments(2, digits=30), lambda: law.stieltjes(-1, digits=30)):
        with pytest.raises(InputError, match=r"digits = .* at most 20 at finite size"):
            ask()


def test_derivation_says_what_is_put_in():
    for route in ("transform", "pencil"):
        derivation = fa.derive(layer().with_finite_size(), route=route)
        assert "Var(n·A₁), A₁ = f(β·χ₁)/Σ_{j≤n} f(β·χ_j), n = 512" in derivation.text()
        assert "finite rows" in [assumption.name for assumption in derivation.assumptions]
    assert "finite rows" not in [assumption.name for assumption in fa.derive(layer()).assumptions]
