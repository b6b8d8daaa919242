"""The words of a layer: against the closed laws where both apply, and what must not matter or must."""

from __future__ import annotations

import math
from time import perf_counter

import pytest
import sympy as sp

from freeattn.model.architectures import architecture
from freeattn.model.attention import Attention
from freeattn.model.heads import Heads
from freeattn.model.inputs import FeatureCovariance
from freeattn.model.latent import Latent
from freeattn.model.ties import KeyValueCorrelation
from freeattn.theory import symbols as sym
from freeattn.theory.attention_laws import law_of
from freeattn.theory.attention_words import words_of
from freeattn.theory.dyson import dyson_of
from freeattn.theory.moments import moments
from freeattn.theory.reduce import scalar_system

SIZES = {"n_tokens": 60, "d_model": 90, "n_heads": 4, "d_key": 12}
VALUES = {**SIZES, "d_value": 10}
TIED = {**SIZES, "tie": "key-value"}
CLOSED = [
    {**VALUES, "d_out": 48},
    {**VALUES, "d_out": 48, "n_kv_heads": 2},
    {**VALUES, "d_out": 48, "n_kv_heads": 1, "value_scale": 2, "output_scale": sp.Rational(1, 3)},
    {**TIED, "d_out": 48},
    {**TIED, "d_out": 48, "n_kv_heads": 2, "value_scale": 3},
    {**VALUES, "output": "values"},
    {**VALUES, "output": "values", "n_kv_heads": 2},
    {**TIED, "output": "values", "n_kv_heads": 2},
    {**SIZES, "output": "attention"},
    {**SIZES, "output": "attention", "n_kv_heads": 1},
    {**SIZES, "output": "head-sum"},
    {**SIZES, "output": "head-sum", "n_kv_heads": 2},
    {**SIZES, "output": "head-sum", "n_kv_heads": 1},
    {**VALUES, "d_out": 48, "scores": "linear"},
    {**VALUES, "d_out": 48, "scores": "relu"},
]
ROUGH = FeatureCovariance((1, 4, 10), (3, 2, 1))
OPEN = [
    {**VALUES, "inputs": "gaussian"},
    {**VALUES, "inputs": ROUGH},
    {**SIZES, "tie": KeyValueCorrelation(sp.Rational(1, 2)), "inputs": "gaussian"},
    {**SIZES, "tie": "output-key"},
    {**SIZES, "tie": "key-value-output", "inputs": "gaussian"},
    {**VALUES, "latent": Latent(20)},
    {**VALUES, "latent": Latent(20), "query_latent": Latent(30), "position_width": 4},
    {"n_tokens": 60, "d_model": 90, "heads": [Heads(1, 12, 10), Heads(3, 6, 20, sp.Rational(1, 2))]},
    {**VALUES, "residual": 2},
    {**VALUES, "residual": 2, "inputs": "gaussian"},
]


def name(fields: dict) -> str:
    return " ".join(f"{key}={value}" for key, value in fields.items() if key not in VALUES)


def exact_moments(spec: Attention, order: int) -> list[sp.Expr]:
    """Moments of the words with the sizes put in, polynomials in θ₁ and θ₂."""
    words = words_of(spec)
    return [sp.expand(m.subs(dict(words.values))) for m in moments(dyson_of(words.expression), order)]


@pytest.mark.parametrize("fields", CLOSED, ids=name)
def test_moments_are_those_of_the_closed_law(fields):
    spec = Attention(**fields)
    law = law_of(spec)
    expected = [sp.expand(sp.together(m.subs(dict(law.values)))) for m in law.law.moments(3)]
    if fields.get("scores") == "linear":
        expected = [m.subs(sym.THETA_1, sym.THETA_2) for m in expected]
    assert [sp.expand(a - b) for a, b in zip(exact_moments(spec, 3), expected, strict=True)] == [0, 0, 0]


def test_mean_for_gaussian_tokens():
    """γ_O(θ₁ + θ₂ n/d), free of the heads and their widths."""
    spec = Attention(**VALUES, d_out=48, inputs="gaussian")
    expected = sp.Rational(48, 60) * (sym.THETA_1 + sym.THETA_2 * sp.Rational(60, 90))
    assert sp.expand(exact_moments(spec, 1)[0] - expected) == 0


@pytest.mark.parametrize(
    ("fields", "limit"),
    [
        ({"inputs": FeatureCovariance((3,)), "d_value": 12}, {"inputs": "gaussian", "d_value": 12}),
        ({"tie": KeyValueCorrelation(0), "d_value": 12}, {"d_value": 12}),
        ({"heads": [Heads(1, 12, 12), Heads(3, 12, 12)]}, {"d_value": 12}),
    ],
)
def test_special_cases(fields, limit):
    base = {**SIZES, "d_out": 48}
    unlike = {k: v for k, v in base.items() if k not in ("n_heads", "d_key")} if "heads" in fields else base
    special, plain = (exact_moments(Attention(**one), 2) for one in ({**unlike, **fields}, {**base, **limit}))
    assert [sp.expand(a - b) for a, b in zip(special, plain, strict=True)] == [0, 0]


@pytest.mark.parametrize("inputs", ["orthogonal", "gaussian", ROUGH], ids=["orthogonal", "gaussian", "covariance"])
def test_independent_values_hide_a_tie_of_output_and_keys(inputs):
    """M Mᵀ sees O through O Oᵀ, which W^V rotates against everything else, unless heads share their values."""
    base = {**SIZES, "d_value": 12, "inputs": inputs}
    tied, free = Attention(**base, tie="output-key"), Attention(**base, d_out=90)
    assert [sp.expand(a - b) for a, b in zip(exact_moments(tied, 2), exact_moments(free, 2), strict=True)] == [0, 0]
    shared = tied.replace(n_kv_heads=2)
    assert sp.expand(exact_moments(shared, 2)[1] - exact_moments(free, 2)[1]) != 0


def test_a_wide_latent_is_none():
    """A latent of rank r → ∞ leaves keys and values free."""
    far = Attention.from_ratios(4, 5, 2, n_heads=3, latent=Latent(10**9), query_latent=Latent(10**9))
    plain = Attention.from_ratios(4, 5, 2, n_heads=3)
    for wide, none in zip(exact_moments(far, 2), exact_moments(plain, 2), strict=True):
        numbers = {sym.THETA_1: 2, sym.THETA_2: 1}
        assert abs(wide.subs(numbers) / none.subs(numbers) - 1) < 1e-8


@pytest.mark.parametrize("fields", OPEN, ids=name)
def test_derivation_is_quick_and_free_of_sizes(fields):
    start = perf_counter()
    words = words_of(Attention(**fields))
    system = dyson_of(words.expression)
    assert perf_counter() - start < 2
    assert {"n", "d"} & {str(s) for place in system.spaces for s in sp.sympify(place.size).free_symbols}
    values = dict(words.values)
    thetas = {symbol for theta in words.thetas for symbol in (theta.theta_1, theta.theta_2)}
    free = {s for term in system.terms for s in term.weight.free_symbols}
    assert free <= set(values) | thetas


@pytest.mark.parametrize("fields", OPEN, ids=name)
def test_words_depend_on_ratios_alone(fields):
    twice = dict(fields)
    for key in ("n_tokens", "d_model", "d_key", "d_value", "position_width"):
        if key in fields:
            twice[key] = 2 * fields[key]
    for key in ("latent", "query_latent"):
        if key in fields:
            twice[key] = Latent(2 * fields[key].rank)
    if "heads" in fields:
        twice["heads"] = [Heads(f.count, 2 * f.d_key, 2 * f.d_value, f.beta) for f in fields["heads"]]
    one, two = words_of(Attention(**fields)), words_of(Attention(**twice))
    assert one.expression == two.expression
    assert one.values == two.values


@pytest.mark.parametrize("inputs", ["orthogonal", "gaussian"])
@pytest.mark.parametrize("tie", ["none", "key-value", "output-key", "key-value-output"])
def test_sharing_across_heads_changes_nothing(inputs, tie):
    """The reduced system of h heads in groups is that of h heads, as long as traces between heads vanish."""
    base = {**SIZES, "d_value": 12, "inputs": inputs, "tie": tie}
    plain, grouped = words_of(Attention(**base)), words_of(Attention(**base, n_kv_heads=2))
    systems = [scalar_system(dyson_of(words.expression)) for words in (plain, grouped)]
    plain_form, grouped_form = ((s.unknowns, s.equations, s.definitions) for s in systems)
    same = plain_form == grouped_form
    assert same == (tie in ("none", "key-value"))


def test_sharing_changes_the_head_sum():
    plain, grouped = (Attention(**SIZES, output="head-sum", n_kv_heads=k) for k in (4, 2))
    assert exact_moments(plain, 2)[1] != exact_moments(grouped, 2)[1]


def test_infinitely_many_heads_are_a_limit():
    spec = Attention.from_ratios(2, 3, 4, n_heads=math.inf)
    words = words_of(spec)
    values = dict(words.values)
    assert values.pop(sym.HEADS) == sp.oo
    law = law_of(spec)
    expected = law.law.moments(3)
    found = moments(dyson_of(words.expression), 3)
    for one, other in zip(found, expected, strict=True):
        limit = sp.limit(sp.expand(one.subs(values)), sym.HEADS, sp.oo)
        assert sp.expand(limit - other.subs(dict(law.values))) == 0


def test_thetas_belong_to_betas():
    families = [Heads(1, 12, 10), Heads(3, 6, 20, sp.Rational(1, 2)), Heads(2, 6, 20)]
    words = words_of(Attention(n_tokens=60, d_model=90, heads=families))
    assert [(str(t.theta_1), t.beta) for t in words.thetas] == [("theta_1_1", 1), ("theta_1_2", sp.Rational(1, 2))]
    alike = words_of(Attention(n_tokens=60, d_model=90, heads=[Heads(1, 12, 10), Heads(3, 6, 20)]))
    assert [t.theta_1 for t in alike.thetas] == [sym.THETA_1]


@pytest.mark.parametrize("fields", [*CLOSED, *OPEN], ids=name)
def test_theta_is_a_scale_where_words_are_homogeneous(fields):
    """m_k is homogeneous of degree k in θ₁ and θ₂, unless tokens stand beside them (residual) or β differs."""
    words = words_of(Attention(**fields))
    symbols = {s for theta in words.thetas for s in (theta.theta_1, theta.theta_2)}
    second = exact_moments(Attention(**fields), 2)[1]
    doubled = sp.expand(second.subs({s: 2 * s for s in symbols}, simultaneous=True) - 4 * second)
    one_pair = len(words.thetas) == 1
    assert words.homogeneous == (doubled == 0 and one_pair)
    assert words.homogeneous == ("residual" not in fields and "heads" not in fields)


def test_assumptions_name_what_the_theorem_does_not_cover():
    plain, latent = Attention(**VALUES), Attention(**VALUES, latent=Latent(20, normalized=True), query_latent=Latent(9))
    names = [{a.name for a in words_of(spec).assumptions} for spec in (plain, latent)]
    assert "equivalence beyond the theorem" not in names[0]
    assert {"equivalence beyond the theorem", "normalized latent", "orthogonal input"} <= names[1]


@pytest.mark.parametrize("preset", ["deepseek-v2-lite", "deepseek-v2", "deepseek-v3"])
def test_presets_with_latents_have_their_own_words(preset):
    spec = architecture(preset, n_tokens=1024)
    values = dict(words_of(spec).values)
    assert values[sym.D_KEY] == sp.Rational(spec.d_key - 64, 1024)
    assert values[sym.D_POSITION] == sp.Rational(64, 1024)
    assert values[sym.RANK] == sp.Rational(512, 1024)


def test_symbols_may_stay():
    n, width = sp.symbols("N width", positive=True)
    spec = Attention(n_tokens=n, d_model=2 * n, n_heads=3, d_key=width, d_value=width, inputs="gaussian")
    assert dict(words_of(spec).values)[sym.D_KEY] == width / n
