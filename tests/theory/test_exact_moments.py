"""Exact moments and free cumulants against non-crossing pairings, identities, the other route, densities."""

from __future__ import annotations

from fractions import Fraction
from functools import cache
from itertools import product
from math import prod

import numpy as np
import pytest
import sympy as sp
from sympy.abc import p, q, r

import freeattn as fa
from freeattn.errors import InputError, NotCoveredError
from freeattn.model.quadrature import thetas
from freeattn.theory.cumulants import cumulants_to_moments, moments_to_cumulants
from freeattn.theory.dyson import dyson_of
from freeattn.theory.moments import free_cumulants, moments
from freeattn.theory.symbols import THETA_1, THETA_2, C
from freeattn.theory.transforms import MarchenkoPastur, Semicircle
from freeattn.theory.weights import WeightRing

FIELDS = {"n_tokens": 12, "d_model": 16, "n_heads": 2, "d_key": 5}
CLOSED = {
    "attention": {**FIELDS, "output": "attention"},
    "head sum": {**FIELDS, "output": "head-sum"},
    "values": {**FIELDS, "d_value": 7, "output": "values"},
    "mha": {**FIELDS, "d_value": 7, "d_out": 18},
    "key-value": {**FIELDS, "d_out": 18, "tie": "key-value"},
    "key-value, values": {**FIELDS, "output": "values", "tie": "key-value"},
}


def is_zero(expression) -> bool:
    return sp.cancel(sp.together(expression)) == 0


# Counting ----------------------------------------------------------------------------------------------------------


def number(value) -> Fraction:
    return Fraction(str(sp.sympify(value).subs(POINT)))


def counted(expression, order: int) -> list[Fraction]:
    """m_1 … m_order of M Mᵀ by non-crossing pairings: E[A W Aᵀ] = v·columns·τ(W), and the transposed rule."""
    def mirrored(word):
        return tuple((letter, not transposed) for letter, transposed in reversed(word))

    @cache
    def trace(word) -> Fraction:
        if not word:
            return Fraction(1)
        (letter, transposed), total = word[0], Fraction(0)
        inner = number((letter.rows if transposed else letter.columns).size)
        for k, (other, other_transposed) in enumerate(word[1:], 1):
            if other == letter and other_transposed != transposed:
                total += number(letter.variance) * inner * trace(word[1:k]) * trace(word[k + 1 :])
        return total

    terms = [(number(t.coefficient), tuple((f.letter, f.transposed) for f in t.word)) for t in expression.terms]
    squares = [(a * b, left + mirrored(right)) for (a, left), (b, right) in product(terms, repeat=2)]
    found = []
    for k in range(1, order + 1):
        chosen = product(squares, repeat=k)
        found.append(sum(prod(c for c, _ in pairs) * trace(sum((w for _, w in pairs), ())) for pairs in chosen))
    return found


POINT = {p: 2, q: 3, r: 5}
P, Q, R = fa.space("p", p), fa.space("q", q), fa.space("r", r)
X, Y, K = fa.gaussian("X", P, Q, 1 / p), fa.gaussian("Y", Q, R, 1 / q), fa.gaussian("K", P, R, 2)
WORDS = {
    "X": X, "XY": X @ Y, "XXᵀX": X @ X.T @ X, "XYYᵀ": X @ Y @ Y.T, "XY + K": X @ Y + 3 * K,
    "XYKᵀX − X": X @ Y @ K.T @ X - X, "attention with K = V": (K @ K.T + X @ X.T) @ K,
}


@pytest.mark.parametrize("name", WORDS)
def test_moments_count_non_crossing_pairings(name):
    found = moments(dyson_of(WORDS[name]), 3)
    assert [m.subs(POINT) for m in found] == counted(WORDS[name], 3)


# Identities --------------------------------------------------------------------------------------------------------

SIZES = n, d, h, d_key, d_value, d_out = sp.symbols("n d h d_K d_V d_O", positive=True)


@pytest.mark.parametrize(
    ("output", "used"), [("attention", "a"), ("values", "ab"), ("mha", "abo"), ("head-sum", "1")]
)
@pytest.mark.parametrize("route", ["transform", "pencil"])
def test_second_and_third_moment_of_the_law_of_mean_one(output, used, route):
    """m₂ = 1 + Σ + c²g and m₃, Σ over the factors MP; a second 1 in place of a for the head sum."""
    widths = {"d_value": d_value, "d_out": d_out} if output == "mha" else {"d_value": d_value}
    widths = widths if output in ("mha", "values") else {}
    spec = fa.Attention(n_tokens=n, d_model=d, n_heads=h, d_key=d_key, output=output, **widths)
    derivation = fa.derive(spec, route=route)
    ratios = dict(derivation.values[:-3]) if route == "transform" else {}  # the words speak of sizes themselves
    m1, m2, m3 = (m.subs(ratios).subs(THETA_2, C * THETA_1) for m in derivation.moments(3, general=True))
    a, b, o = (x if name in used else 0 for name, x in zip("abo", (1 / h, n / (h * d_value), n / d_out), strict=True))
    a, g = (1 if used == "1" else a), n / (h * d_key)
    assert is_zero(m2 / m1**2 - (1 + a + b + o + C**2 * g))
    third = 1 + 3 * (a + b + o + C**2 * g) + a**2 + b**2 + o**2 + 3 * (a * b + a * o + b * o)
    assert is_zero(m3 / m1**3 - (third + 3 * C**2 * g * (a + b + o) + C**3 * g**2))


def test_mean_with_gaussian_input():
    spec = fa.Attention(
        n_tokens=n, d_model=d, n_heads=h, d_key=d_key, d_value=d_value, d_out=d_out, inputs="gaussian"
    )
    derivation = fa.derive(spec)
    (mean,) = derivation.moments(1, general=True)
    assert is_zero(mean - d_out / n * (THETA_1 + THETA_2 * n / d))
    assert derivation.free_cumulants(1, general=True) == derivation.moments(1, general=True)


def test_four_moments_in_all_symbols_at_a_point():
    spec = fa.Attention(**CLOSED["mha"], inputs="gaussian")
    derivation = fa.derive(spec)
    for method in (derivation.moments, derivation.free_cumulants):
        for one, other in zip(method(4, general=True), method(4), strict=True):
            assert is_zero(one.subs(derivation.numbers) - other)


# Routes and values -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", CLOSED)
def test_both_routes(name):
    spec = fa.Attention(**CLOSED[name])
    first, second = fa.derive(spec), fa.derive(spec, route="pencil")
    for one, other in (
        (first.moments(8), second.moments(8)), (first.free_cumulants(6), second.free_cumulants(6)),
        (first.moments(3, general=True), first.law.moments(3)),
    ):
        assert all(is_zero(a - b) for a, b in zip(one, other, strict=True))


@pytest.mark.parametrize("fields", [{}, {"inputs": "gaussian"}], ids=["closed", "words"])
def test_exact_moments_of_a_law(fields):
    spec = fa.Attention(**CLOSED["mha"], **fields)
    law, both = fa.law(spec), thetas(spec.scores, spec.beta, 40)
    ratio = both.theta_2 / both.theta_1
    values = {THETA_1: sp.Float(str(both.theta_1), 40), THETA_2: sp.Float(str(both.theta_2), 40), C: ratio}
    values[C] = values[THETA_2] / values[THETA_1]
    for found in (law, law.normalized()):
        exact = found.moments(12, exact=True)
        assert exact[0].free_symbols <= {THETA_1, THETA_2, C}
        for k, (one, other) in enumerate(zip(exact, found.moments(12), strict=True), 1):
            assert abs(sp.N(one.subs(values), 20) / other - 1) < 1e-14
            if k <= 4:
                assert abs(found.integrate(lambda x, k=k: x**k) / other - 1) < 1e-10
    assert law.normalized().moments(1, exact=True)[0] == 1


def test_exact_moments_are_rational_where_everything_is():
    spec = fa.Attention(**CLOSED["mha"], inputs="gaussian", scores="linear")
    found = fa.law(spec).moments(30, exact=True)
    assert all(moment.is_Rational for moment in found)
    assert found[0] == Fraction(18, 12) * (1 + Fraction(12, 16))
    assert [float(m) for m in found] == pytest.approx(fa.law(spec).moments(30), rel=1e-14)


def test_roots_of_eigenvalues_are_not_in_the_moments():
    covariance = fa.FeatureCovariance((1, 4, 10), (5, 3, 2))
    spec = fa.Attention(**FIELDS, output="attention", inputs=covariance, scores="linear")
    general = fa.derive(spec).moments(4, general=True)
    assert not any(power.exp.is_Rational and not power.exp.is_Integer for m in general for power in m.atoms(sp.Pow))
    exact = fa.law(spec).moments(4, exact=True)
    assert [m.subs(fa.derive(spec).numbers).subs({THETA_1: 1, THETA_2: 1}) for m in general] == list(exact)
    assert [float(m) for m in exact] == pytest.approx(fa.law(spec).moments(4), rel=1e-13)


def test_exact_moments_of_words_and_law_expressions():
    square = fa.space("n", 10)
    law = fa.law(fa.gaussian("A", square, square, Fraction(1, 10)))
    assert law.moments(6, exact=True) == (1, 2, 5, 14, 42, 132)
    assert fa.law(MarchenkoPastur(1)).moments(6, exact=True) == (1, 2, 5, 14, 42, 132)
    assert fa.law(MarchenkoPastur(2)).normalized().moments(2, exact=True) == (1, 3)
    root = fa.law(Semicircle(sp.sqrt(2))).moments(4, exact=True)
    assert root == (0, sp.sqrt(2), 0, 4)


def test_infinitely_many_heads():
    closed = fa.Attention.from_ratios(gamma_key=1, gamma_value=2, gamma_out=1, n_heads=float("inf"))
    finite = fa.Attention.from_ratios(gamma_key=1, gamma_value=2, gamma_out=1, n_heads=10**9)
    for one, other in zip(*(fa.law(s).moments(3, exact=True) for s in (closed, finite)), strict=True):
        assert abs(float((one / other).subs({THETA_1: 2, THETA_2: 1})) - 1) < 1e-8
    words = fa.Attention.from_ratios(
        gamma_key=1, gamma_value=2, gamma_out=1, n_heads=float("inf"), inputs="gaussian", tokens_per_width=1
    )
    with pytest.raises(NotCoveredError, match="infinitely many"):
        fa.law(words).moments(2, exact=True)


# Cumulants ---------------------------------------------------------------------------------------------------------


def test_cumulants_and_moments_are_inverse():
    given = [Fraction(k * k - 7, k + 2) for k in range(1, 16)]
    found = cumulants_to_moments(given, Fraction(0), Fraction(1))
    assert moments_to_cumulants(found, Fraction(0), Fraction(1)) == given
    catalan = cumulants_to_moments([1] * 10, 0, 1)
    assert catalan == [sp.catalan(k) for k in range(1, 11)]


def test_cumulants_of_known_laws():
    square = fa.space("n", n)
    semicircle = dyson_of(fa.wigner("S", square, 1 / n), "self-adjoint")
    assert free_cumulants(semicircle, 6) == (0, 1, 0, 0, 0, 0)
    wide = dyson_of(fa.gaussian("X", square, fa.space("d", d), 1 / d))
    assert all(is_zero(k - (n / d) ** i) for i, k in enumerate(free_cumulants(wide, 6)))


def test_cumulants_add_for_free_sums():
    square = fa.space("n", n)
    one, two = fa.wigner("S", square, 1 / n), fa.gaussian("X", square, fa.space("d", d), 1 / n)
    found = [free_cumulants(dyson_of(e, "self-adjoint"), 5) for e in (one, two @ two.T, one + two @ two.T)]
    assert all(is_zero(a + b - c) for a, b, c in zip(*found, strict=True))


@pytest.mark.parametrize("order", [0, True, 2.5])
def test_an_order_that_is_no_positive_integer_is_refused(order):
    with pytest.raises(InputError, match="order"):
        free_cumulants(dyson_of(WORDS["X"]), order)
    with pytest.raises(InputError, match="order"):
        fa.law(MarchenkoPastur(1)).moments(order, exact=True)


@pytest.mark.parametrize("order", [0, -1, 2.5, "3", None, [2], float("nan"), True])
@pytest.mark.parametrize("route", ["transform", "pencil"])
def test_orders_of_derivations(order, route):
    derivation = fa.derive(fa.Attention(**CLOSED["mha"]), route=route)
    law = MarchenkoPastur(1)
    calls = [derivation.moments, derivation.free_cumulants, law.moments, law.free_cumulants]
    calls += [derivation.normalized_moments] if route == "transform" else []
    for call in calls:
        with pytest.raises(InputError, match="a positive integer") as caught:
            call(order)
        assert (caught.value.field, caught.value.value) == ("order", order) or order != order


@pytest.mark.parametrize("route", ["transform", "pencil"])
def test_orders_of_other_integer_types(route):
    derivation = fa.derive(fa.Attention(**CLOSED["mha"]), route=route)
    for order in (np.int64(2), sp.Integer(2)):
        assert derivation.moments(order) == derivation.moments(2)
        assert derivation.free_cumulants(order) == derivation.free_cumulants(2)


# The ring of weights -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "weights",
    [
        [n / d, d * (THETA_1 - THETA_2), sp.sqrt(THETA_2) / n], [sp.sqrt(2) * n, sp.sqrt(2) / n, sp.Rational(2, 3)],
        [1 / (n + d), (n + d) ** 2, 2 * n - 2 * d], [sp.exp(n) - 1, 1 / d], [sp.Rational(1, 3), sp.Integer(2)],
        [(1 - n**2) / (d * n**2), 1 / h + (1 - n**2) / (h * n**2)],
    ],
)
def test_weights_survive_arithmetic(weights):
    ring = WeightRing(weights)
    x, y, *_ = ring.elements
    z = ring.elements[-1]
    expected = weights[0] ** 2 * weights[1] - 3 * weights[-1] * weights[0] + sp.Rational(1, 7)
    found = ring.expression(x * x * y - z * x * 3 + ring.one * sp.Rational(1, 7).p / 7)
    point = {n: sp.Rational(3, 7), d: sp.Rational(11, 5), h: 3, THETA_1: sp.Rational(9, 4), THETA_2: sp.Rational(5, 3)}
    assert abs(sp.N((found - expected).subs(point), 30)) < 1e-25
    assert ring.expression(x - x) == 0
