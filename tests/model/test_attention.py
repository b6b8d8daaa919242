"""The specification: what it refuses, what it computes exactly, and how it is written down and changed."""

from __future__ import annotations

import copy
import dataclasses
import json
import math
import pickle
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
import sympy

import freeattn as fa
from freeattn.errors import FreeattnError, InputError
from freeattn.model.attention import OUTPUTS, Attention
from freeattn.model.ties import Ties

BERT: dict[str, Any] = {"n_tokens": 512, "d_model": 768, "n_heads": 12, "d_key": 64, "d_value": 64}
SIZES = ("n_tokens", "d_model", "n_heads", "d_key", "d_value", "d_out", "n_kv_heads")


def bert(**changes: Any) -> Attention:
    return Attention(**{**BERT, **changes})


def refused(**changes: Any) -> InputError:
    with pytest.raises(InputError) as caught:
        bert(**changes)
    return caught.value


# What is refused ------------------------------------------------------------------------------------------

BAD_SIZES = [
    0, -1, 1.5, Fraction(1, 2), True, False, np.True_, math.nan, math.inf, -math.inf, "64", 1j, [64],
    Decimal(64), np.array([64, 65]), sympy.oo, sympy.Rational(1, 2), sympy.sqrt(2),
    sympy.Symbol("negative", negative=True), sympy.Symbol("fraction", integer=False),
]


@pytest.mark.parametrize("field", SIZES)
@pytest.mark.parametrize("value", BAD_SIZES, ids=repr)
def test_bad_sizes(field: str, value: object) -> None:
    error = refused(**{field: value})
    assert error.field == field
    assert error.value is value
    assert error.allowed == "a positive integer or a symbol"


@pytest.mark.parametrize("field", ["n_tokens", "d_model", "n_heads", "d_key", "d_value"])
def test_missing_sizes(field: str) -> None:
    assert refused(**{field: None}).field == field


BAD_POSITIVE = [
    0, -1, -0.5, True, np.False_, math.nan, math.inf, "1", None, 1j, sympy.nan, sympy.I, -sympy.sqrt(2),
    sympy.Symbol("b", negative=True), sympy.Symbol("b", nonpositive=True), np.array([1.0, 2.0]),
]


@pytest.mark.parametrize("field", ["beta", "value_scale", "output_scale"])
@pytest.mark.parametrize("value", BAD_POSITIVE, ids=repr)
def test_bad_positive_numbers(field: str, value: object) -> None:
    assert refused(**{field: value}).field == field


def test_beta_too_large_for_softmax() -> None:
    assert bert(beta=26).beta == 26
    assert math.isfinite(math.exp(26**2))
    for beta in (26.5, 27, 1e6, sympy.sqrt(2) * 100):
        assert "at most 26" in refused(beta=beta).allowed
    assert bert(beta=1000, scores="linear").beta == 1000


@pytest.mark.parametrize(("name", "nearest"), [
    ("n_token", "n_tokens"), ("betta", "beta"), ("dkey", "d_key"), ("n_kv_head", "n_kv_heads"),
    ("ouput", "output"),
])
def test_unknown_fields_get_the_nearest(name: str, nearest: str) -> None:
    error = refused(**{name: 1})
    assert error.field == name
    assert f"did you mean {nearest}?" in error.allowed


def test_hopeless_field_lists_all() -> None:
    error = refused(zzz=1)
    assert "did you mean" not in error.allowed
    for name in (*SIZES, "beta", "tie", "output", "inputs", "scores"):
        assert name in error.allowed


def test_positional_arguments() -> None:
    with pytest.raises(InputError, match="fields given by name"):
        Attention(512, 768)  # type: ignore[call-arg]


@pytest.mark.parametrize("value", [5, 8, 9, 24])
def test_kv_heads_divide_heads(value: int) -> None:
    error = refused(n_kv_heads=value)
    assert (error.field, error.allowed) == ("n_kv_heads", "a divisor of n_heads = 12")


@pytest.mark.parametrize("value", [1, 2, 3, 4, 6, 12])
def test_divisors_are_accepted(value: int) -> None:
    spec = bert(n_kv_heads=value)
    assert spec.gamma_kv == Fraction(value * 64, 512)


def test_a_tie_needs_equal_widths() -> None:
    error = refused(d_key=32, tie="key-value")
    assert (error.field, error.value) == ("d_value", 64)
    assert error.allowed == 'equal to d_key = 32 when tie="key-value"'
    assert bert(d_key=32, d_value=None, tie="key-value").d_value == 32


def test_more_tokens_than_width() -> None:
    assert bert(n_tokens=768).tokens_per_width == 1
    error = refused(n_tokens=769)
    assert error.field == "n_tokens"
    assert "at most d_model = 768 for orthogonal input" in error.allowed
    n = sympy.Symbol("n", positive=True)
    assert refused(n_tokens=2 * n, d_model=n).field == "n_tokens"


@pytest.mark.parametrize(("field", "value"), [
    ("tie", "value-key"), ("tie", None), ("tie", ["none"]), ("output", "heads"), ("output", None),
    ("output", ["mha"]), ("inputs", "gauss"), ("inputs", None), ("scores", "softmin"), ("scores", None),
    ("scores", fa.Softmax), ("scores", math.exp),
])
def test_bad_words(field: str, value: object) -> None:
    assert refused(**{field: value}).field == field


def test_bad_ties() -> None:
    with pytest.raises(InputError, match=r"tie\.value = 'output'"):
        Ties(value="output")
    with pytest.raises(InputError, match=r"tie\.output = 'value'"):
        Ties(output="value")


@pytest.mark.parametrize(("output", "field"), [
    ("attention", "value_scale"), ("head-sum", "value_scale"), ("attention", "output_scale"),
    ("head-sum", "output_scale"), ("values", "output_scale"),
])
def test_scales_of_matrices_that_are_absent(output: str, field: str) -> None:
    assert refused(output=output, **{field: 2}).field == field


@pytest.mark.parametrize("output", OUTPUTS)
def test_which_widths_an_output_needs(output: str) -> None:
    fields: dict[str, Any] = {"n_tokens": 8, "d_model": 8, "n_heads": 2, "d_key": 4}
    if output in ("mha", "values"):
        with pytest.raises(InputError, match="d_value = None"):
            Attention(output=output, **fields)
    else:
        assert Attention(output=output, **fields).gamma_value is None
    spec = Attention(output=output, d_value=2, **fields)
    assert spec.gamma_out == (1 if output == "mha" else None)


def test_errors_are_one_line_and_survive_pickling() -> None:
    error = refused(n_tokens=769)
    assert isinstance(error, FreeattnError)
    assert isinstance(error, ValueError)
    assert "\n" not in str(error)
    again = pickle.loads(pickle.dumps(error))
    assert (again.field, again.value, again.allowed, str(again)) == (
        error.field, error.value, error.allowed, str(error),
    )


# Exact numbers --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("number", [
    np.int64(12), np.int32(12), np.uint8(12), 12.0, np.float64(12), Fraction(12), sympy.Integer(12),
], ids=repr)
def test_integers_of_other_kinds_become_int(number: object) -> None:
    spec = bert(n_heads=number)
    assert type(spec.n_heads) is int
    assert spec == bert()
    assert hash(spec) == hash(bert())


@pytest.mark.parametrize(("given", "held"), [
    (0.1, Fraction(0.1)), (np.float64(0.1), Fraction(0.1)), (Fraction(2, 6), Fraction(1, 3)), (2.0, 2),
    (sympy.Rational(1, 3), Fraction(1, 3)), (sympy.Float(0.5), Fraction(1, 2)),
    (np.float32(0.5), Fraction(1, 2)),
], ids=repr)
def test_numbers_are_exact(given: object, held: int | Fraction) -> None:
    beta = bert(beta=given).beta
    assert beta == held
    assert type(beta) is type(held)


def test_exact_irrational_beta() -> None:
    assert bert(beta=sympy.sqrt(2)).beta == sympy.sqrt(2)
    assert not bert(beta=sympy.sqrt(2)).symbolic


@pytest.mark.parametrize(("n_tokens", "n_heads", "d_key", "d_value", "d_out"), [
    (512, 12, 64, 64, 768), (7, 3, 5, 2, 11), (768, 1, 1, 1, 1), (97, 8, 13, 89, 1009),
])
def test_ratios_are_exact(n_tokens: int, n_heads: int, d_key: int, d_value: int, d_out: int) -> None:
    spec = bert(n_tokens=n_tokens, n_heads=n_heads, d_key=d_key, d_value=d_value, d_out=d_out)
    for ratio, width in (
        (spec.gamma_key, n_heads * d_key), (spec.gamma_value, n_heads * d_value), (spec.gamma_out, d_out),
        (spec.gamma_kv, n_heads * d_key),
    ):
        assert ratio == Fraction(width, n_tokens)
        assert type(ratio) is (int if width % n_tokens == 0 else Fraction)
    assert spec.tokens_per_width == Fraction(n_tokens, 768)


def test_defaults() -> None:
    spec = bert()
    assert (spec.d_out, spec.n_kv_heads, spec.beta, spec.output, spec.name) == (768, 12, 1, "mha", None)
    assert (spec.tie.shorthand, spec.inputs.name, spec.scores.name) == ("none", "orthogonal", "softmax")
    assert (spec.not_modelled, spec.open_conditions, spec.symbolic) == ((), (), False)


# Symbols --------------------------------------------------------------------------------------------------

N, D, H, K, V, OUT, B = sympy.symbols("n d h k v o b", positive=True)
SYMBOLIC: dict[str, Any] = {"n_tokens": N, "d_model": D, "n_heads": H, "d_key": K, "d_value": V, "d_out": OUT}


def test_symbolic_sizes() -> None:
    spec = Attention(**SYMBOLIC, beta=B)
    assert (spec.gamma_key, spec.gamma_value, spec.gamma_out) == (H * K / N, H * V / N, OUT / N)
    assert spec.symbolic
    assert spec.open_conditions == (
        "n_tokens ≤ d_model (orthogonal input)",
        "n_heads and n_kv_heads are positive integers and n_kv_heads divides n_heads",
        "beta > 0",
    )


def test_one_symbol_among_numbers() -> None:
    spec = bert(n_heads=H)
    assert (spec.gamma_key, spec.n_kv_heads, spec.gamma_out) == (H / 8, H, Fraction(3, 2))
    assert bert(n_tokens=N).open_conditions == ("n_tokens ≤ d_model (orthogonal input)",)
    assert bert(n_tokens=N, d_model=2 * N).tokens_per_width == Fraction(1, 2)
    assert bert(n_tokens=N, d_model=2 * N).open_conditions == ()


def test_ties_of_symbolic_widths() -> None:
    spec = bert(d_key=K, d_value=V, tie="key-value")
    assert "d_key = d_value (keys and values are tied)" in spec.open_conditions
    assert bert(d_key=K, d_value=None, tie="key-value").open_conditions == ()


@pytest.mark.parametrize("output", OUTPUTS)
def test_symbolic_means_that_the_law_is(output: str) -> None:
    assert bert(output=output, d_key=K).symbolic
    assert bert(output=output, d_value=V).symbolic == (output in ("mha", "values"))
    assert bert(output=output, d_out=OUT).symbolic == (output == "mha")


# Ratios without sizes -------------------------------------------------------------------------------------


@pytest.mark.parametrize("infinite", [math.inf, sympy.oo], ids=repr)
def test_infinitely_many_heads(infinite: object) -> None:
    spec = Attention.from_ratios(1, 2, 3, n_heads=infinite)
    assert spec.n_heads == spec.n_kv_heads == math.inf
    assert (spec.gamma_key, spec.gamma_value, spec.gamma_out, spec.gamma_kv) == (1, 2, 3, 1)
    assert Attention.from_dict(json.loads(json.dumps(spec.to_dict()))) == spec
    with pytest.raises(InputError, match="finite to get sizes"):
        spec.with_sizes(100)


def test_infinitely_many_heads_need_ratios() -> None:
    assert refused(n_heads=math.inf).field == "n_heads"
    with pytest.raises(InputError, match="n_kv_heads = 2 is not allowed; expected nothing"):
        Attention.from_ratios(1, 1, 1, n_heads=math.inf, n_kv_heads=2)


def test_ratios_to_sizes_and_back() -> None:
    spec = Attention.from_ratios(
        Fraction(3, 2), Fraction(3, 4), 1.5, Fraction(2, 3), n_heads=12, n_kv_heads=4, beta=0.5,
        output_scale=2,
    )
    sized = spec.with_sizes(512)
    assert (sized.n_tokens, sized.d_model, sized.d_key, sized.d_value, sized.d_out) == (512, 768, 64, 32, 768)
    assert (sized.n_heads, sized.n_kv_heads, sized.beta, sized.output_scale) == (12, 4, Fraction(1, 2), 2)
    for ratio in ("gamma_key", "gamma_value", "gamma_out", "gamma_kv", "tokens_per_width"):
        assert getattr(sized, ratio) == getattr(spec, ratio)
    with pytest.raises(InputError, match="makes d_model = 1533/2 an integer"):
        spec.with_sizes(511)
    with pytest.raises(InputError, match="already has sizes"):
        sized.with_sizes(512)


def test_ratios_that_are_not_allowed() -> None:
    for bad in (0, -1, math.nan, math.inf, True, "1"):
        with pytest.raises(InputError) as caught:
            Attention.from_ratios(bad, 1, 1)
        assert caught.value.field == "gamma_key"
    for fields, field in (
        ({"gamma_key": 1}, "gamma_value"),
        ({"gamma_key": 1, "gamma_value": 1}, "gamma_out"),
        ({"gamma_key": 1, "gamma_value": 2, "gamma_out": 1, "tie": "key-value"}, "gamma_value"),
        ({"gamma_key": 1, "gamma_value": 1, "gamma_out": 1, "tokens_per_width": 2}, "tokens_per_width"),
        ({"gamma_key": 1, "gamma_value": 1, "gamma_out": 1, "d_key": 64}, "d_key"),
        ({"gamma_key": 1, "gamma_value": 1, "gamma_out": 1, "n_heads": 0}, "n_heads"),
        ({"gamma_key": 1, "gamma_value": 1, "gamma_out": 1, "n_heads": 4, "n_kv_heads": 3}, "n_kv_heads"),
    ):
        with pytest.raises(InputError) as caught:
            Attention.from_ratios(**fields)
        assert caught.value.field == field


def test_tied_ratios_follow_the_keys() -> None:
    assert Attention.from_ratios(2, gamma_out=1, tie="key-value").gamma_value == 2


# Written down and read back -------------------------------------------------------------------------------

ROUND_TRIPS = [
    {}, {"beta": 0.1}, {"beta": Fraction(1, 3)}, {"n_kv_heads": 4}, {"tie": "key-value"}, {"scores": "relu"},
    {"scores": fa.Sigmoid()}, {"output": "values", "value_scale": 2}, {"output": "head-sum"},
    {"output": "attention", "d_value": None}, {"value_scale": Fraction(1, 2), "output_scale": 3},
]


@pytest.mark.parametrize("changes", ROUND_TRIPS, ids=repr)
def test_round_trip(changes: dict[str, Any]) -> None:
    spec = bert(**changes)
    text = json.dumps(spec.to_dict())
    again = Attention.from_dict(json.loads(text))
    assert again == spec
    assert json.dumps(again.to_dict()) == text


def test_round_trip_of_symbols() -> None:
    spec = Attention(**SYMBOLIC, beta=B)
    form = json.loads(json.dumps(spec.to_dict()))
    assert form["n_tokens"] == {"symbol": "n"}
    assert Attention.from_dict(form, symbols={str(s): s for s in (N, D, H, K, V, OUT, B)}) == spec
    with pytest.raises(InputError, match="n_tokens = 'n' is not allowed; expected a symbol given in"):
        Attention.from_dict(form)


def test_round_trip_of_ratios() -> None:
    spec = Attention.from_ratios(Fraction(3, 2), 1, 0.1, Fraction(2, 3), n_heads=8, n_kv_heads=2, beta=2)
    form = json.loads(json.dumps(spec.to_dict()))
    assert form["ratios"]["gamma_key"] == "3/2"
    assert Attention.from_dict(form) == spec


@pytest.mark.parametrize(("field", "value"), [
    ("beta", "one"), ("beta", "1/0"), ("n_heads", "3.x"), ("betta", 1),
])
def test_bad_files(field: str, value: object) -> None:
    with pytest.raises(InputError) as caught:
        Attention.from_dict({**bert().to_dict(), field: value})
    assert caught.value.field == field


def test_names_are_not_part_of_the_specification() -> None:
    named = bert(name="bert", not_modelled=("mask",))
    assert named == bert()
    assert hash(named) == hash(bert())
    assert named.to_dict() == bert().to_dict()


def test_copies() -> None:
    spec = bert(beta=0.5, scores="relu")
    assert copy.copy(spec) == copy.deepcopy(spec) == pickle.loads(pickle.dumps(spec)) == spec
    with pytest.raises(dataclasses.FrozenInstanceError):
        spec.beta = 2  # type: ignore[misc]


# Changed --------------------------------------------------------------------------------------------------


def test_replace_follows_kv_heads() -> None:
    assert bert().replace(n_heads=6).n_kv_heads == 6
    assert bert(n_kv_heads=4).replace(n_heads=8).n_kv_heads == 4
    assert bert().replace(n_heads=6, n_kv_heads=2).n_kv_heads == 2
    with pytest.raises(InputError, match="a divisor of n_heads = 6"):
        bert(n_kv_heads=4).replace(n_heads=6)
    ratios = Attention.from_ratios(1, 1, 1, n_heads=4)
    assert ratios.replace(n_heads=math.inf).n_kv_heads == math.inf


def test_replace_checks_again() -> None:
    assert bert().replace(beta=2) == bert(beta=2)
    assert bert().replace() == bert()
    assert bert(name="bert").replace(beta=2).name == "bert"
    with pytest.raises(InputError, match="at most d_model = 256"):
        bert().replace(d_model=256)
    with pytest.raises(InputError, match=r"did you mean n_heads\?"):
        bert().replace(n_head=2)
