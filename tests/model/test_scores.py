"""Score functions and their θ's: closed forms, quadrature and independent integrals against each other."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import mpmath
import numpy as np
import pytest
import sympy

import freeattn as fa
from freeattn.errors import ConvergenceError, InputError
from freeattn.model.quadrature import theta_slopes, thetas
from freeattn.model.scores import ScoreFunction, as_scores

DIGITS = 25
BETAS = [Fraction(1, 2), 1, 2]
CONTEXT = mpmath.MPContext()
CONTEXT.dps = 50

SAME_FUNCTION: dict[str, tuple[ScoreFunction, fa.Entrywise]] = {
    "softmax": (fa.Softmax(), fa.Entrywise(lambda x, m: m.exp(x), normalized=True)),
    "linear": (fa.Linear(), fa.Entrywise(lambda x, _: x)),
    "relu": (fa.ReLU(), fa.Entrywise(lambda x, _: (x + abs(x)) / 2, kinks=(0,))),
}


def close(value: Any, exact: Any, digits: int = DIGITS) -> bool:
    """Equal to `digits` digits relative to max(exact, 1), the promise of `thetas`."""
    return bool(abs(CONTEXT.mpf(value) - exact) <= CONTEXT.mpf(10) ** -digits * max(exact, 1))


# θ's ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("beta", BETAS)
@pytest.mark.parametrize("name", SAME_FUNCTION)
def test_closed_forms_agree_with_quadrature(name: str, beta: Any) -> None:
    exact_function, same = SAME_FUNCTION[name]
    exact, numeric = thetas(exact_function, beta, DIGITS), thetas(same, beta, DIGITS)
    assert close(numeric.theta_1, exact.theta_1)
    assert close(numeric.theta_2, exact.theta_2)
    assert numeric.error <= CONTEXT.mpf(10) ** -DIGITS * max(exact.theta_1, 1)


@pytest.mark.parametrize("name", SAME_FUNCTION)
def test_slopes_by_quadrature(name: str) -> None:
    exact, same = SAME_FUNCTION[name]
    beta = sympy.Symbol("beta")
    point, closed = Fraction(7, 5), exact.exact_thetas(beta, sympy)
    assert closed is not None
    for found, value in zip(theta_slopes(same, point, DIGITS), closed, strict=True):
        expected = sympy.N(sympy.diff(value, beta).subs(beta, sympy.Rational(7, 5)), 40)
        assert close(found, CONTEXT.mpf(expected._to_mpmath(160)), DIGITS - 1)


def test_slopes_beside_a_jump() -> None:
    """The θ's of a step at 1 change with β by the density at 1/β."""
    step = fa.Entrywise(lambda x, m: m.convert(int(x > 1)), kinks=(1,))
    (first, second), edge = theta_slopes(step, Fraction(2), DIGITS), CONTEXT.mpf(1) / 2
    mass, density = CONTEXT.ncdf(-edge), CONTEXT.npdf(edge)
    assert close(first, (1 - 2 * mass) * density / 4)
    assert close(second, 2 * density * density * edge / 4)


@pytest.mark.parametrize(("scores", "theta_1", "theta_2"), [
    (fa.Softmax(), lambda b: CONTEXT.exp(b**2) - 1, lambda b: b**2),
    (fa.Linear(), lambda b: b**2, lambda b: b**2),
    (fa.ReLU(), lambda b: b**2 / 2 - b**2 / (2 * CONTEXT.pi), lambda b: b**2 / 4),
])
def test_closed_forms(scores: ScoreFunction, theta_1: Callable[[Any], Any], theta_2: Any) -> None:
    for beta in (Fraction(1, 3), 1, 3):
        b = CONTEXT.mpf(Fraction(beta).numerator) / Fraction(beta).denominator
        computed = thetas(scores, beta, 40)
        assert close(computed.theta_1, theta_1(b), 40)
        assert close(computed.theta_2, theta_2(b), 40)


@pytest.mark.parametrize("beta", [Fraction(1, 2), 1, 3])
def test_sigmoid_against_an_independent_integral(beta: Any) -> None:
    """Tanh-sinh rule on the logistic function itself, and θ₂ = (E g')² instead of (E χ g)²."""
    b = CONTEXT.mpf(Fraction(beta).numerator) / Fraction(beta).denominator
    ends = [-CONTEXT.inf, -4, 0, 4, CONTEXT.inf]

    def expectation(function: Callable[[Any], Any]) -> Any:
        return CONTEXT.quad(lambda x: function(x) * CONTEXT.npdf(x), ends, method="tanh-sinh")

    def logistic(x: Any) -> Any:
        return 1 / (1 + CONTEXT.exp(-b * x))

    theta_1 = expectation(lambda x: logistic(x) ** 2) - expectation(logistic) ** 2
    theta_2 = expectation(lambda x: b * logistic(x) * (1 - logistic(x))) ** 2
    computed = thetas(fa.Sigmoid(), beta, DIGITS)
    assert close(computed.theta_1, theta_1)
    assert close(computed.theta_2, theta_2)


def test_precisions_agree_to_the_lower() -> None:
    values = {digits: thetas(fa.Sigmoid(), Fraction(3, 2), digits) for digits in (15, 30, 60)}
    for lower in (15, 30):
        assert close(values[lower].theta_1, values[60].theta_1, lower)
        assert close(values[lower].theta_2, values[60].theta_2, lower)


@pytest.mark.parametrize("even", [
    fa.Entrywise(lambda x, m: m.cos(x)),
    fa.Entrywise(lambda x, _: x**2),
    fa.Entrywise(lambda x, _: abs(x), kinks=(0,)),
    fa.Entrywise(lambda x, m: m.exp(-(x**2)), normalized=True),
], ids=["cos", "square", "abs", "bell"])
def test_even_functions_have_no_linear_part(even: fa.Entrywise) -> None:
    computed = thetas(even, 1, DIGITS)
    assert abs(computed.theta_2) < 10.0 ** (-2 * DIGITS)
    assert computed.theta_1 > 0.01


def test_polynomials() -> None:
    cubic = thetas(fa.Entrywise(lambda x, _: x**3), 2, DIGITS)  # E χ⁶ = 15, E χ·χ³ = 3
    assert close(cubic.theta_1, 15 * 2**6)
    assert close(cubic.theta_2, 9 * 2**6)


@pytest.mark.parametrize("scores", [fa.Softmax(), fa.Linear(), fa.ReLU(), fa.Sigmoid()], ids=lambda s: s.name)
@pytest.mark.parametrize("beta", [Fraction(1, 10), 1, 3])
def test_the_linear_part_is_at_most_the_whole(scores: ScoreFunction, beta: Any) -> None:
    computed = thetas(scores, beta)
    assert 0 < computed.theta_2 <= computed.theta_1


@pytest.mark.parametrize("kink", [0.3, -0.4, 1.7])
@pytest.mark.parametrize("beta", [1, 2])
def test_a_declared_kink_is_exact(kink: float, beta: int) -> None:
    """f = |x − κ|, a = κ/β: E f = β(2φ(a) + a(2Φ(a) − 1)), E f² = β²(1 + a²), E χf = β(1 − 2Φ(a))."""
    a = CONTEXT.mpf(kink) / beta
    computed = thetas(fa.Entrywise(lambda x, m: abs(x - m.mpf(kink)), kinks=(kink,)), beta, DIGITS)
    mean = beta * (2 * CONTEXT.npdf(a) + a * (2 * CONTEXT.ncdf(a) - 1))
    assert close(computed.theta_1, beta**2 * (1 + a**2) - mean**2)
    assert close(computed.theta_2, beta**2 * (1 - 2 * CONTEXT.ncdf(a)) ** 2)


@pytest.mark.parametrize("undeclared", [
    fa.Entrywise(lambda x, _: abs(x - 0.3), name="kinked"),
    fa.Entrywise(lambda x, m: m.mpf(1 if x > 0.3 else 0), name="step"),
], ids=lambda scores: scores.name)
def test_an_undeclared_kink_is_found(undeclared: fa.Entrywise) -> None:
    with pytest.raises(ConvergenceError) as caught:
        thetas(undeclared, 1)
    error = caught.value
    assert undeclared.name in error.what
    assert error.residual > error.tolerance
    assert "kinks" in error.advice


@pytest.mark.parametrize(("scores", "allowed"), [
    (fa.Entrywise(lambda x, _: 0 * x + 2), "a function that is not constant"),
    (fa.Entrywise(lambda x, _: x - 1, normalized=True), "a positive function when rows are normalized"),
], ids=["constant", "negative"])
def test_functions_without_a_law(scores: fa.Entrywise, allowed: str) -> None:
    with pytest.raises(InputError) as caught:
        thetas(scores, 1)
    assert caught.value.field == "scores"
    assert allowed in caught.value.allowed


def test_an_exact_irrational_beta() -> None:
    computed = thetas(fa.Softmax(), sympy.sqrt(2), DIGITS)
    assert close(computed.theta_1, CONTEXT.exp(2) - 1)
    assert close(computed.theta_2, CONTEXT.mpf(2))


def test_global_precision_is_left_alone() -> None:
    before = mpmath.mp.dps
    thetas(fa.Sigmoid(), Fraction(7, 5), 40)
    assert mpmath.mp.dps == before


# Weights --------------------------------------------------------------------------------------------------


def matrix(n: int = 7, scale: float = 1.0) -> np.ndarray:
    return scale * np.random.default_rng(3).standard_normal((n, n))


@pytest.mark.parametrize("scale", [1.0, 1e4])
@pytest.mark.parametrize("beta", [0.5, 1.0, 3.0])
def test_softmax_rows_sum_to_one(scale: float, beta: float) -> None:
    scores = matrix(scale=scale)
    before = scores.copy()
    weights = fa.Softmax().apply(scores, beta)
    assert np.all(weights >= 0)
    np.testing.assert_allclose(weights.sum(axis=1), 1, rtol=1e-14)
    np.testing.assert_array_equal(scores, before)


def test_softmax_is_the_quotient_of_exponentials() -> None:
    scores = matrix()
    direct = np.exp(2 * scores) / np.exp(2 * scores).sum(axis=1, keepdims=True)
    same = fa.Entrywise(lambda x, m: m.exp(x), normalized=True)
    np.testing.assert_allclose(fa.Softmax().apply(scores, 2.0), direct, rtol=1e-13)
    np.testing.assert_allclose(same.apply(scores, 2.0), direct, rtol=1e-13)


def test_softmax_does_not_see_a_shift_of_a_row() -> None:
    scores = matrix()
    shifted = scores + np.arange(7.0)[:, None]
    np.testing.assert_allclose(fa.Softmax().apply(shifted, 1.0), fa.Softmax().apply(scores, 1.0), rtol=1e-12)


@pytest.mark.parametrize(("scores", "function"), [
    (fa.Linear(), lambda x: x),
    (fa.ReLU(), lambda x: np.maximum(x, 0)),
    (fa.Sigmoid(), lambda x: 1 / (1 + np.exp(-x))),
    (fa.Entrywise(lambda x, m: m.exp(-(x**2))), lambda x: np.exp(-(x**2))),
], ids=["linear", "relu", "sigmoid", "entrywise"])
def test_plain_weights_are_divided_by_n(scores: ScoreFunction, function: Callable[..., Any]) -> None:
    values = matrix()
    np.testing.assert_allclose(scores.apply(values, 1.5), function(1.5 * values) / 7, rtol=1e-13)


def test_sigmoid_does_not_overflow() -> None:
    weights = fa.Sigmoid().apply(np.array([[1e6, -1e6], [0.0, 0.0]]), 1.0)
    np.testing.assert_array_equal(weights, [[0.5, 0.0], [0.25, 0.25]])


@pytest.mark.slow
@pytest.mark.parametrize("scores", [fa.ReLU(), fa.Sigmoid()], ids=lambda s: s.name)
def test_thetas_are_those_of_a_large_sample(scores: ScoreFunction) -> None:
    chi = np.random.default_rng(5).standard_normal((1, 10**6))
    g = scores.apply(chi, 1.0) * chi.size
    computed = thetas(scores, 1)
    assert float(np.var(g)) == pytest.approx(float(computed.theta_1), rel=0.01)  # five standard errors
    assert float(np.mean(chi * g)) ** 2 == pytest.approx(float(computed.theta_2), rel=0.02)


# Names ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "kind"), [
    ("softmax", fa.Softmax), ("linear", fa.Linear), ("relu", fa.ReLU), ("sigmoid", fa.Sigmoid),
])
def test_names(name: str, kind: type) -> None:
    assert as_scores(name) == kind()
    assert as_scores(kind()) == kind()
    assert as_scores(name).name == name


@pytest.mark.parametrize("value", ["Softmax", "gelu", None, 1, fa.Softmax, math.exp])
def test_other_values_are_refused(value: object) -> None:
    with pytest.raises(InputError) as caught:
        as_scores(value)
    assert caught.value.field == "scores"
    assert '"softmax", "linear", "relu", "sigmoid"' in caught.value.allowed


def test_entrywise_arguments() -> None:
    with pytest.raises(InputError, match="function = 'exp'"):
        fa.Entrywise("exp")
    assert fa.Entrywise(lambda x, _: x, kinks=(2, -1)).kinks == (-1.0, 2.0)


def test_score_functions_are_values() -> None:
    assert fa.Softmax() == fa.Softmax()
    assert hash(fa.Softmax()) == hash(fa.Softmax())
    assert fa.Softmax() != fa.Linear()
    with pytest.raises(TypeError, match="abstract"):
        ScoreFunction()  # type: ignore[abstract]
