"""Layers beyond the closed laws: inputs, ties, latents, unequal heads, a residual connection."""

from __future__ import annotations

import json
import math
import pickle
from fractions import Fraction
from typing import Any

import pytest
import sympy

import freeattn as fa
from freeattn.errors import InputError, NotCoveredError
from freeattn.model.attention import Attention
from freeattn.model.heads import Heads
from freeattn.model.inputs import FeatureCovariance, GaussianInput, OrthogonalInput
from freeattn.model.latent import Latent
from freeattn.model.ties import KeyValueCorrelation, Ties
from freeattn.theory.attention_laws import law_of

BERT: dict[str, Any] = {"n_tokens": 512, "d_model": 768, "n_heads": 12, "d_key": 64, "d_value": 64}
RATIOS: dict[str, Any] = {"gamma_key": 2, "gamma_value": 2, "n_heads": 4}
HALF = KeyValueCorrelation(Fraction(1, 2))
X, Y = sympy.symbols("x y", positive=True)


def bert(**changes: Any) -> Attention:
    return Attention(**{**BERT, **changes})


def unequal(**changes: Any) -> Attention:
    return Attention(n_tokens=512, d_model=768, **{"heads": [Heads(8, 64, 32), Heads(4, 16, 48, 2)], **changes})


def refused(build: Any = bert, **changes: Any) -> InputError:
    with pytest.raises(InputError) as caught:
        build(**changes)
    assert "\n" not in str(caught.value)
    return caught.value


# Inputs ---------------------------------------------------------------------------------------------------


def test_only_orthogonal_tokens_are_limited_in_number() -> None:
    for inputs in ("gaussian", GaussianInput(), FeatureCovariance((1, 2))):
        assert bert(n_tokens=7680, inputs=inputs).tokens_per_width == 10
        assert Attention.from_ratios(1, 1, 1, 10, inputs=inputs).tokens_per_width == 10
        assert bert(n_tokens=X, inputs=inputs).open_conditions == ()
    assert bert(inputs="gaussian").inputs == GaussianInput()
    assert refused(n_tokens=769).allowed.endswith('choose n_tokens up to 768, or inputs="gaussian"')


def test_a_feature_covariance_is_canonical() -> None:
    law = FeatureCovariance((4, 0, 2, 4), (1, 2, 2, 1))
    assert law.eigenvalues == (0, 1, 2)
    assert law.weights == (Fraction(1, 3),) * 3
    assert law == FeatureCovariance([0.0, 8.0, 16.0], [5, 5, 5]) == FeatureCovariance((0, 1, 2))
    assert FeatureCovariance(law.eigenvalues, law.weights) == law
    uneven = FeatureCovariance((1, 10), (9, Fraction(1, 3)))
    assert sum(uneven.weights) == 1
    assert sum(w * t for w, t in zip(uneven.weights, uneven.eigenvalues, strict=True)) == 1
    assert uneven.eigenvalues[1] == 10 * uneven.eigenvalues[0]


@pytest.mark.parametrize(("eigenvalues", "weights", "field"), [
    ((), (), "eigenvalues"), ((0, 0), (1, 1), "eigenvalues"), ((1, -1), (1, 1), "eigenvalues"),
    ((1, math.nan), (1, 1), "eigenvalues"), ((1, True), (1, 1), "eigenvalues"), ((1, X), (1, 1), "eigenvalues"),
    ((1, sympy.sqrt(2)), (1, 1), "eigenvalues"), (("1", 2), (1, 1), "eigenvalues"), ("12", (1, 1), "eigenvalues"),
    (3, (1,), "eigenvalues"), ((1, 2), (1,), "weights"), ((1, 2), (1, 0), "weights"), ((1, 2), (1, -1), "weights"),
    ((1, 2), (1, math.inf), "weights"), ((1, 2), (1, X), "weights"), ((1, 2), 5, "weights"), ((1, 2), "11", "weights"),
])
def test_bad_feature_covariances(eigenvalues: Any, weights: Any, field: str) -> None:
    assert refused(lambda: FeatureCovariance(eigenvalues, weights)).field == field


# Ties -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("tie", "value", "output"), [
    ("none", "none", "none"), ("key-value", "key", "none"), ("output-key", "none", "key"),
    ("key-value-output", "key", "key"), (HALF, HALF, "none"), (Ties(HALF, "key"), HALF, "key"),
])
def test_ties_and_their_shorthand(tie: Any, value: Any, output: str) -> None:
    spec = bert(tie=tie)
    assert (spec.tie.value, spec.tie.output) == (value, output)
    if isinstance(tie, str):
        assert spec.tie.shorthand == tie
    else:
        assert "correlation 1/2" in spec.tie.shorthand


@pytest.mark.parametrize("tie", ["key-value", "output-key", "key-value-output", HALF, Ties(HALF, "key")])
def test_every_tie_needs_equal_widths(tie: Any) -> None:
    error = refused(d_key=32, tie=tie)
    assert (error.field, error.value) == ("d_value", 64)
    assert "equal to d_key = 32" in error.allowed
    assert bert(d_key=32, d_value=None, tie=tie).d_value == 32
    assert refused(Attention.from_ratios, gamma_key=1, gamma_value=2, gamma_out=1, tie=tie).field == "gamma_value"
    assert "d_key = d_value" in bert(d_key=X, tie=tie).open_conditions[0]


@pytest.mark.parametrize("fields", [{"tie": "output-key"}, {"tie": Ties(HALF, "key")}, {"residual": 2}])
def test_what_needs_an_output_as_wide_as_the_tokens(fields: dict[str, Any]) -> None:
    error = refused(d_out=512, **fields)
    assert (error.field, error.value) == ("d_out", 512)
    assert "equal to d_model = 768" in error.allowed
    assert bert(d_out=None, **fields).d_out == 768
    assert Attention.from_ratios(1, 1, None, Fraction(1, 2), **fields).gamma_out == 2
    assert refused(Attention.from_ratios, gamma_key=1, gamma_value=1, gamma_out=1,
                   tokens_per_width=Fraction(1, 2), **fields).field == "gamma_out"
    assert "d_out = d_model" in " ".join(bert(d_out=X, **fields).open_conditions)
    for output in ("values", "attention", "head-sum"):
        assert refused(output=output, **fields).field == next(iter(fields))


@pytest.mark.parametrize("rho", [1, -1, 1.5, math.nan, math.inf, True, "0.5", None, sympy.sqrt(2)])
def test_bad_correlations(rho: Any) -> None:
    assert refused(lambda: KeyValueCorrelation(rho)).field == "rho"


def test_good_correlations() -> None:
    assert KeyValueCorrelation(0.5) == HALF
    assert KeyValueCorrelation(-sympy.sqrt(2) / 2).rho == -sympy.sqrt(2) / 2
    assert bert(tie=KeyValueCorrelation(0)).tie.value.rho == 0  # type: ignore[union-attr]
    spec = bert(tie=KeyValueCorrelation(X))
    assert spec.symbolic
    assert "-1 < rho < 1" in spec.open_conditions


@pytest.mark.parametrize("build", [
    lambda: bert(tie="query-key"), lambda: bert(tie="key-query"), lambda: bert(tie="QUERIES"),
    lambda: Ties(value="query"), lambda: Ties(output="queries"),
])
def test_queries_cannot_be_tied(build: Any) -> None:
    with pytest.raises(NotCoveredError, match="Gaussian equivalent rests; no equivalent is known"):
        build()


# Latents and position parts -------------------------------------------------------------------------------


@pytest.mark.parametrize(("fields", "field"), [
    ({"rank": 0}, "rank"), ({"rank": -1}, "rank"), ({"rank": None}, "rank"), ({"rank": True}, "rank"),
    ({"rank": math.inf}, "rank"), ({"rank": 4, "shared": 1}, "shared"),
    ({"rank": 4, "normalized": "yes"}, "normalized"),
])
def test_bad_latents(fields: dict[str, Any], field: str) -> None:
    assert refused(Latent, **fields).field == field


@pytest.mark.parametrize("name", ["latent", "query_latent"])
def test_ranks(name: str) -> None:
    for bad in (64, "64", {"rank": 64}, (64,)):
        assert refused(**{name: bad}).field == name
    error = refused(**{name: Latent(Fraction(1, 2))})
    assert (error.field, error.value) == (f"{name}.rank", Fraction(1, 2))
    assert getattr(bert(**{name: Latent(100_000)}), name).rank == 100_000
    assert bert(**{name: Latent(X)}).symbolic
    assert not bert(**{name: Latent(X)}, n_tokens=X, d_model=2 * X, d_key=X, d_value=X, d_out=2 * X).symbolic


@pytest.mark.parametrize("width", [-1, 1.5, 64, 65, True, None, "8", math.nan, -X, 64 + X - X])
def test_bad_position_widths(width: Any) -> None:
    assert refused(latent=Latent(32), position_width=width).field == "position_width"


def test_position_widths() -> None:
    assert bert(latent=Latent(32), position_width=63).position_width == 63
    assert "without a latent" in refused(position_width=8).allowed
    assert refused(query_latent=Latent(8), position_width=8).field == "position_width"
    spec = bert(latent=Latent(32), position_width=X)
    assert spec.symbolic
    assert spec.open_conditions == ("position_width < d_key",)
    assert refused(latent=Latent(32), position_width=2 * X, d_key=X).field == "position_width"
    assert refused(unequal, latent=Latent(32), position_width=16).field == "position_width"
    assert unequal(latent=Latent(32), position_width=15).position_width == 15


def test_latents_by_ratios_are_in_units_of_tokens() -> None:
    spec = Attention.from_ratios(
        **RATIOS, gamma_out=1, latent=Latent(0.25), query_latent=Latent(1.5), position_width=Fraction(1, 8),
    )
    sized = spec.with_sizes(64)
    assert (sized.latent, sized.query_latent) == (Latent(16), Latent(96))
    assert (sized.position_width, sized.d_key) == (8, 32)
    assert refused(spec.with_sizes, n_tokens=4).allowed.endswith("position_width = 1/2 an integer")
    assert refused(Attention.from_ratios(**RATIOS, gamma_out=1, latent=Latent(Fraction(1, 3))).with_sizes, n_tokens=64
                   ).allowed.endswith("latent.rank = 64/3 an integer")
    error = refused(Attention.from_ratios, **RATIOS, gamma_out=1, latent=Latent(1), position_width=Fraction(1, 2))
    assert error.field == "position_width"  # all of d_key/n_tokens = 1/2


def test_a_position_part_needs_finitely_many_heads() -> None:
    fields = {**RATIOS, "gamma_out": 1, "n_heads": math.inf, "latent": Latent(1)}
    assert Attention.from_ratios(**fields).n_heads == math.inf
    assert refused(Attention.from_ratios, **fields, position_width=0.1).field == "position_width"


# Unequal heads --------------------------------------------------------------------------------------------


def test_unequal_heads_add_up() -> None:
    spec = unequal()
    assert (spec.n_heads, spec.n_kv_heads, spec.d_key, spec.d_value, spec.d_out) == (12, 12, None, None, 768)
    assert spec.gamma_key == spec.gamma_kv == Fraction(8 * 64 + 4 * 16, 512)
    assert spec.gamma_value == Fraction(8 * 32 + 4 * 48, 512)
    assert spec.families == (Heads(8, 64, 32, 1), Heads(4, 16, 48, 2))
    assert unequal(beta=3).families[0].beta == 3
    assert bert(beta=3).families == (Heads(12, 64, 64, 3),)
    assert unequal(output="attention", heads=[Heads(1, 2), Heads(1, 4)]).gamma_value is None


def test_unequal_heads_with_ties() -> None:
    spec = unequal(heads=[Heads(2, 64), Heads(1, 32)], tie="key-value")
    assert [family.d_value for family in spec.heads or ()] == [64, 32]
    assert refused(unequal, tie="key-value").field == "heads.d_value"
    assert "d_key = d_value" in unequal(heads=[Heads(2, X, Y)], tie="output-key").open_conditions[0]


@pytest.mark.parametrize(("changes", "field"), [
    ({"heads": []}, "heads"), ({"heads": 12}, "heads"), ({"heads": "12:64"}, "heads"), ({"heads": [12, 64]}, "heads"),
    ({"heads": Heads(1, 2, 3)}, "heads"), ({"heads": [Heads(1, 64)]}, "heads.d_value"), ({"d_key": 64}, "d_key"),
    ({"d_value": 64}, "d_value"), ({"n_heads": 11}, "n_heads"), ({"n_kv_heads": 4}, "n_kv_heads"),
    ({"heads": [Heads(1, 2, 3, 27)]}, "heads.beta"),
])
def test_bad_unequal_heads(changes: dict[str, Any], field: str) -> None:
    assert refused(unequal, **changes).field == field


@pytest.mark.parametrize(("fields", "field"), [
    ((0, 64), "count"), ((1.5, 64), "count"), ((1, None), "d_key"), ((1, 64, 0), "d_value"), ((1, 64, 64, 0), "beta"),
])
def test_bad_families(fields: Any, field: str) -> None:
    assert refused(lambda: Heads(*fields)).field == field


def test_unequal_heads_need_sizes() -> None:
    assert refused(Attention.from_ratios, **{**RATIOS, "n_heads": None}, heads=[Heads(1, 2, 3)]).field == "heads"


def test_replacing_heads() -> None:
    assert bert().replace(heads=[Heads(3, 8, 8)]) == Attention(n_tokens=512, d_model=768, heads=[Heads(3, 8, 8)])
    assert unequal().replace(heads=[Heads(3, 8, 8)]).n_heads == 3
    assert unequal().replace(beta=2).n_heads == 12
    assert unequal().replace(heads=None, d_key=64, d_value=64) == bert()
    assert pickle.loads(pickle.dumps(unequal())) == unequal()


@pytest.mark.parametrize("heads", [
    [Heads(X, 2, 3)], [Heads(1, X, 3)], [Heads(1, 2, X)], [Heads(1, 2, 3, X)],
])
def test_symbols_in_unequal_heads(heads: list[Heads]) -> None:
    assert unequal(heads=heads).symbolic


# Residual connections, and all together -------------------------------------------------------------------


@pytest.mark.parametrize("residual", [0, -1, True, "1", math.nan, math.inf])
def test_bad_residuals(residual: Any) -> None:
    assert refused(residual=residual).field == "residual"


def test_residuals() -> None:
    assert bert(residual=0.5).residual == Fraction(1, 2)
    spec = bert(residual=X)
    assert spec.symbolic
    assert spec.open_conditions == ("residual > 0",)


BEYOND: list[tuple[dict[str, Any], tuple[str, ...]]] = [
    ({}, ()), ({"tie": "key-value"}, ()), ({"inputs": OrthogonalInput(), "scores": "relu", "n_kv_heads": 3}, ()),
    ({"inputs": "gaussian"}, ("inputs",)), ({"inputs": FeatureCovariance((1, 2))}, ("inputs",)),
    ({"tie": "output-key"}, ("tie",)), ({"tie": "key-value-output"}, ("tie",)), ({"tie": HALF}, ("tie",)),
    ({"tie": Ties(KeyValueCorrelation(-0.25), "key")}, ("tie",)), ({"latent": Latent(64)}, ("latent",)),
    ({"latent": Latent(64, False, True), "position_width": 8}, ("latent", "position_width")),
    ({"query_latent": Latent(64)}, ("query_latent",)), ({"residual": Fraction(1, 3)}, ("residual",)),
    (
        {"inputs": "gaussian", "n_tokens": 1000, "residual": 2, "latent": Latent(7), "tie": "key-value-output"},
        ("inputs", "tie", "latent", "residual"),
    ),
]


@pytest.mark.parametrize(("changes", "beyond"), BEYOND, ids=repr)
def test_what_the_closed_laws_cover(changes: dict[str, Any], beyond: tuple[str, ...]) -> None:
    spec = bert(**changes)
    assert spec.beyond_transforms == beyond
    assert spec.covered_by_transforms == (not beyond)
    if not beyond:
        law_of(spec)
        return
    with pytest.raises(NotCoveredError, match=f"{', '.join(beyond)} as given.*the pencil route covers it"):
        law_of(spec)


def test_unequal_heads_are_beyond_the_closed_laws() -> None:
    assert unequal().beyond_transforms == ("heads",)


@pytest.mark.parametrize("spec", [*(bert(**changes) for changes, _ in BEYOND), unequal()], ids=repr)
def test_round_trips(spec: Attention) -> None:
    text = json.dumps(spec.to_dict())
    again = Attention.from_dict(json.loads(text))
    assert again == spec
    assert hash(again) == hash(spec)
    assert json.dumps(again.to_dict()) == text


def test_the_form_of_a_plain_layer_has_no_new_keys() -> None:
    assert list(bert().to_dict()) == [
        "n_tokens", "d_model", "n_heads", "n_kv_heads", "d_key", "d_value", "d_out", "beta", "value_scale",
        "output_scale", "tie", "output", "inputs", "scores",
    ]
    assert bert().to_dict()["inputs"] == "orthogonal"


def test_round_trips_of_symbols_and_ratios() -> None:
    spec = bert(
        tie=KeyValueCorrelation(X), latent=Latent(Y), query_latent=Latent(2 * X), position_width=X, residual=Y,
    )
    form = json.loads(json.dumps(spec.to_dict()))
    symbols = {"x": X, "y": Y, "2*x": 2 * X}
    assert Attention.from_dict(form, symbols) == spec
    assert refused(Attention.from_dict, form=form).value in symbols
    heads = unequal(heads=[Heads(X, Y, 2 * X, X)])
    assert Attention.from_dict(json.loads(json.dumps(heads.to_dict())), symbols | {"x": X}) == heads
    ratios = Attention.from_ratios(**RATIOS, gamma_out=1, latent=Latent(0.25), position_width=0.125)
    assert Attention.from_dict(json.loads(json.dumps(ratios.to_dict()))) == ratios


@pytest.mark.parametrize(("name", "value", "field"), [
    ("latent", 64, "latent"), ("latent", {}, "latent.rank"), ("latent", {"rank": 4, "width": 1}, "latent"),
    ("latent", {"rank": "four"}, "latent.rank"), ("latent", {"rank": 4, "shared": 1}, "shared"),
    ("heads", [{"count": 1}], "heads.d_key"), ("heads", [3], "heads"), ("heads", 3, "heads"),
    ("tie", {"value": {"rho": 1}}, "tie.value"), ("tie", {"key": 1}, "tie"), ("tie", {"value": {}},
     "tie.value.key-value-correlation"), ("inputs", {"name": "gauss", "eigenvalues": [1]}, "inputs.name"),
    ("inputs", {"name": "feature-covariance"}, "inputs.eigenvalues"),
    ("inputs", {"name": "feature-covariance", "eigenvalues": 1}, "inputs.eigenvalues"),
    ("inputs", {"name": "feature-covariance", "eigenvalues": ["a"]}, "inputs.eigenvalues"),
    ("position_width", "wide", "position_width"), ("residual", {"symbol": "x"}, "residual"),
])
def test_bad_forms(name: str, value: Any, field: str) -> None:
    assert refused(Attention.from_dict, form={**bert().to_dict(), name: value}).field == field


def test_the_package_hands_the_names_on() -> None:
    for kind in (GaussianInput, FeatureCovariance, KeyValueCorrelation, Latent, Heads):
        assert getattr(fa, kind.__name__) is kind
