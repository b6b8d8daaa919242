"""Exact moments against closed forms and against the transform calculus, symbol for symbol."""

from __future__ import annotations

from fractions import Fraction
from functools import reduce
from math import comb

import models
import pytest
import sympy as sp
from models import G, d, d_key, d_out, d_value, h, n, q, theta_1, theta_2

import freeattn as fa
from freeattn.errors import InputError
from freeattn.model.expression import gaussian, wigner
from freeattn.model.letters import copies, space
from freeattn.theory.attention_laws import law_of
from freeattn.theory.dyson import dyson_of
from freeattn.theory.moments import moments
from freeattn.theory.transforms import MarchenkoPastur

N = space("n", 100)


def square(name: str):
    return gaussian(name, N, N, Fraction(1, 100))


def fuss_catalan(s: int, k: int) -> int:
    return comb((s + 1) * k, k) // (s * k + 1)


@pytest.mark.parametrize("s", range(1, 7))
def test_products_of_square_gaussians_are_fuss_catalan(s):
    word = reduce(lambda a, b: a @ b, [square(f"A{i}") for i in range(s)])
    assert moments(dyson_of(word), 5) == tuple(fuss_catalan(s, k) for k in range(1, 6))


@pytest.mark.parametrize("length", [1, 2, 3, 4, 5])
def test_repeated_letters_in_alternating_words(length):
    """X Xᵀ X …: M Mᵀ is a power of X Xᵀ, whose moments are the Catalan numbers."""
    x = square("X")
    word = reduce(lambda a, b: a @ b, [x if i % 2 == 0 else x.T for i in range(length)])
    assert moments(dyson_of(word), 3) == tuple(fuss_catalan(1, length * k) for k in range(1, 4))


def test_powers_of_iid_and_of_symmetric_letters():
    x, s = square("X"), wigner("S", N, Fraction(1, 100))
    assert moments(dyson_of(x @ x), 4) == tuple(fuss_catalan(2, k) for k in range(1, 5))  # as for different letters
    assert moments(dyson_of(s), 4) == (1, 2, 5, 14)  # even moments of the semicircle
    assert moments(dyson_of(s @ s), 3) == (2, 14, 132)
    assert moments(dyson_of(x + x.T), 3) == (2, 8, 40)  # symmetric, twice the variance
    a, b = s, wigner("R", N, Fraction(1, 100))
    assert moments(dyson_of(a @ b + b @ a), 2) == (2, 10)  # anticommutator of two semicirculars: fourth moment 10


def test_marchenko_pastur_with_its_ratio():
    p = sp.Symbol("p", positive=True)
    found = moments(dyson_of(gaussian("X", space("n", n), space("p", p), 1 / p)), 5)
    known = MarchenkoPastur(n / p).moments(5)
    assert [sp.cancel(a - b) for a, b in zip(found, known, strict=True)] == [0] * 5


def test_a_space_without_a_size_is_a_symbol():
    rows, columns = sp.symbols("rows columns", positive=True)
    assert moments(dyson_of(gaussian("X", space("rows"), space("columns"))), 2)[0] == columns
    assert sp.expand(moments(dyson_of(gaussian("X", space("rows"), space("columns"))), 2)[1]) == sp.expand(
        columns**2 + rows * columns
    )


@pytest.mark.parametrize("tie", ["none", "key-value"])
def test_orthogonal_input_reproduces_the_transform_calculus(tie):
    width = d_key if tie == "key-value" else d_value
    spec = fa.Attention(n_tokens=n, d_model=d, n_heads=h, d_key=d_key, d_value=width, d_out=d_out, tie=tie)
    expression = law_of(spec)
    known = [m.subs(dict(expression.values)) for m in expression.law.moments(3)]
    found = moments(dyson_of(models.orthogonal(tied=tie == "key-value")), 3)
    assert [sp.cancel(a - b) for a, b in zip(found, known, strict=True)] == [0, 0, 0]


def test_infinitely_many_heads_are_a_limit_of_the_moments():
    """Total widths fixed, h → ∞: the law of the transform calculus without its factor MP_{1/h}."""
    g_key, g_value, g_out = sp.symbols("g_K g_V g_O", positive=True)
    spec = fa.Attention.from_ratios(gamma_key=g_key, gamma_value=g_value, gamma_out=g_out, n_heads=float("inf"))
    expression = law_of(spec)
    known = [m.subs(dict(expression.values)) for m in expression.law.moments(3)]
    widths = {d_key: g_key * n / h, d_value: g_value * n / h, d_out: g_out * n}
    found = [sp.limit(sp.cancel(m.subs(widths)), h, sp.oo) for m in moments(dyson_of(models.orthogonal()), 3)]
    assert [sp.cancel(a - b) for a, b in zip(found, known, strict=True)] == [0, 0, 0]


@pytest.mark.parametrize("tied", [False, True])
def test_keys_and_values_shared_by_groups_of_heads_change_nothing(tied):
    groups = copies("groups", G)
    shared = dyson_of(models.orthogonal(tied, copies("heads", q, within=groups), groups))
    apart = dyson_of(models.orthogonal(tied))
    assert len(shared.entering) == len(apart.entering)
    pairs = zip(moments(shared, 3), moments(apart, 3), strict=True)
    assert [sp.cancel(a - b.subs(h, G * q)) for a, b in pairs] == [0, 0, 0]


def test_head_sum_depends_on_sharing_of_keys():
    """Σ_r of attention matrices, keys per head or one for all: m₂ = 2 + c²/γ in units of the mean, γ of all keys."""
    heads = copies("heads", h)
    query = gaussian("Q", models.TOKENS, models.KEY, theta_2 / (d_key * n * h), heads)
    noise = gaussian("W", models.TOKENS, models.TOKENS, (theta_1 - theta_2) / (n * h), heads)
    for per, width in ((heads, h * d_key), (None, d_key)):
        key = gaussian("K", models.TOKENS, models.KEY, 1, per)
        m1, m2 = moments(dyson_of(heads.sum(query @ key.T + noise)), 2)
        assert sp.cancel(m1 - theta_1) == 0
        assert sp.cancel(m2 - 2 * theta_1**2 - theta_2**2 * n / width) == 0


def test_gaussian_input_has_the_mean_that_is_known_and_as_many_traces():
    system = dyson_of(models.gaussian_input())
    assert sp.cancel(moments(system, 1)[0] - d_out / n * (theta_1 + theta_2 * n / d)) == 0
    assert (len(system.traces), len(system.entering)) == (24, 16)


@pytest.mark.parametrize("count", [1, 7, 10**6, h])
def test_the_number_of_heads_costs_nothing(count):
    system = dyson_of(models.gaussian_input(copies("heads", count)))
    assert (len(system.traces), len(system.entering)) == (24, 16)


def test_the_sign_of_the_scores_does_not_matter():
    assert moments(dyson_of(models.gaussian_input()), 2) == moments(dyson_of(models.gaussian_input(sign=-1)), 2)


@pytest.mark.parametrize("order", [0, -1, 1.5, True])
def test_an_order_that_is_no_positive_integer_is_refused(order):
    with pytest.raises(InputError, match="order"):
        moments(dyson_of(square("X")), order)
