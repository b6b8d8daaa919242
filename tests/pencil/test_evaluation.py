"""Exact values of weights, and what layers of one kind share."""

from __future__ import annotations

from fractions import Fraction

import pytest
import sympy as sp
from flint import fmpq

from freeattn import Attention, FeatureCovariance, KeyValueCorrelation, Latent
from freeattn.numerics.exact_words import words_law
from freeattn.theory.attention_words import words_of
from freeattn.theory.evaluation import Evaluation
from freeattn.theory.expansion import expansion_of
from freeattn.theory.rank import atoms_of

A, B, C = sp.symbols("a b c", positive=True)
BASE = {"n_tokens": 60, "d_model": 90, "n_heads": 4, "d_key": 12}


@pytest.mark.parametrize("expression", [
    A, sp.Integer(3), A + B, A * B / (A - 2 * B) ** 3, (1 - A**2) / (B * (A + 1 / B)), A**-2, sp.Rational(2, 7) * A - 1,
])
def test_rational_functions(expression):
    values = {A: sp.Rational(3, 7), B: sp.Rational(-5, 2)}
    evaluation = Evaluation(values)
    expected = expression.subs(values)
    assert evaluation.exact(expression) == fmpq(int(expected.p), int(expected.q))
    assert evaluation(expression) == expected


def test_what_is_no_rational_number_is_left():
    evaluation = Evaluation({A: sp.Rational(1, 2), B: sp.sqrt(2)})
    assert evaluation.exact(B + 1) is None
    assert evaluation(B**2 + A) == sp.Rational(5, 2)
    assert evaluation(A * C) == C / 2
    assert evaluation(sp.sqrt(A)) == sp.sqrt(2) / 2
    assert evaluation(1 / (A - sp.Rational(1, 2))) == sp.zoo


def test_values_as_users_give_them():
    evaluation = Evaluation({"a": Fraction(1, 3), sp.Symbol("b"): 2})
    assert evaluation(sp.Symbol("a") * sp.Symbol("b")) == sp.Rational(2, 3)


@pytest.mark.parametrize("fields", [
    {"d_value": 10}, {"d_value": 10, "inputs": "gaussian"}, {"tie": "key-value-output", "inputs": "gaussian"},
    {"d_value": 12, "tie": KeyValueCorrelation(0.5)}, {"d_value": 10, "latent": Latent(7)},
    {"d_value": 10, "inputs": FeatureCovariance((1, 3))},
])
def test_weights_of_layers(fields):
    """Every weight of the equation has the value that substitution gives."""
    exact = words_law(Attention(**BASE, **fields), "gram", None)
    numbers = exact.numbers(17)
    evaluation = Evaluation(numbers)
    for weight in expansion_of(exact.system).weights:
        assert evaluation(weight) == weight.subs(numbers)


def test_layers_of_one_kind_share_their_words():
    one = Attention(**BASE, d_value=10, d_out=48)
    two = Attention(**BASE | {"n_tokens": 61}, d_value=9, d_out=50, beta=2)
    assert words_of(one).expression is words_of(two).expression
    for fields in ({"scores": "linear"}, {"value_scale": 2}, {"inputs": "gaussian"}, {"n_kv_heads": 2}):
        assert words_of(one.replace(**fields)).expression != words_of(one).expression


def test_atoms_follow_the_numbers_of_one_kind():
    """Flows on networks that are kept, with other capacities each time: the thinnest space decides."""
    for width, expected in ((30, Fraction(1, 2)), (48, Fraction(1, 5)), (90, Fraction(0)), (15, Fraction(3, 4))):
        exact = words_law(Attention(**BASE | {"d_key": 20}, d_value=20, d_out=width), "gram", None)
        found = dict(atoms_of(exact.system.expression, "gram", exact.numbers(17)))
        assert found.get(sp.Integer(0), Fraction(0)) == expected
