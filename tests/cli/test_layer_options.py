"""The options of the layer: which specification they make."""

from fractions import Fraction

import pytest

import freeattn as fa

BERT = {"n_tokens": 512, "d_model": 768, "n_heads": 12, "d_key": 64, "d_value": 64}
CORRELATED = fa.KeyValueCorrelation(Fraction(1, 2))


class CaughtError(fa.FreeattnError):
    """Carries the specification that a command was about to compute with."""


@pytest.fixture
def spec_of(run, monkeypatch):
    """The specification that a command line makes; nothing is computed."""
    made = []

    def catch(spec, **_):
        made.append(spec)
        raise CaughtError("caught")

    for name in ("law", "derive"):
        monkeypatch.setitem(vars(fa), name, catch)

    def spec(*args):
        outcome = run(*args)
        assert "caught" in outcome.line, outcome.line
        return made[-1]

    return spec


CASES = [
    ("--inputs gaussian --n-tokens 2000", {"inputs": fa.GaussianInput(), "n_tokens": 2000}),
    ("--inputs orthogonal", {}),
    ("--feature-eigenvalues 1,3", {"inputs": fa.FeatureCovariance((1, 3))}),
    (
        "--feature-eigenvalues 0.1,1/3 --feature-weights 5,1",
        {"inputs": fa.FeatureCovariance((Fraction(1, 10), Fraction(1, 3)), (5, 1))},
    ),
    ("--tie output-key", {"tie": "output-key"}),
    ("--tie key-value-output", {"tie": "key-value-output"}),
    ("--key-value-correlation 0.5", {"tie": CORRELATED}),
    ("--key-value-correlation -1/2", {"tie": fa.KeyValueCorrelation(Fraction(-1, 2))}),
    ("--key-value-correlation 0.5 --tie output-key", {"tie": fa.Ties(CORRELATED, "key")}),
    ("--latent-rank 32", {"latent": fa.Latent(32)}),
    (
        "--latent-rank 32 --latent-per-head --latent-normalized",
        {"latent": fa.Latent(32, shared=False, normalized=True)},
    ),
    (
        "--latent-rank 32 --position-width 16 --query-latent-rank 48 --query-latent-per-head",
        {"latent": fa.Latent(32), "position_width": 16, "query_latent": fa.Latent(48, shared=False)},
    ),
    ("--query-latent-rank 48 --query-latent-normalized", {"query_latent": fa.Latent(48, normalized=True)}),
    ("--residual 1/3", {"residual": Fraction(1, 3)}),
]


@pytest.mark.parametrize(("options", "fields"), CASES, ids=[options for options, _ in CASES])
@pytest.mark.parametrize("command", ["law", "verify", "derive"])
def test_options_are_fields(spec_of, command, options, fields):
    assert spec_of(command, "bert-base", *options.split()) == fa.Attention(**{**BERT, **fields})


def test_unequal_heads(spec_of):
    spec = spec_of("law", "bert-base", "--heads", "8:64:32,4:128:64:1/2")
    assert spec.heads == (fa.Heads(8, 64, 32), fa.Heads(4, 128, 64, Fraction(1, 2)))
    sizes = "--n-tokens 64 --d-model 64 --tie key-value --heads 2:16,1:32::2"
    assert spec_of("law", *sizes.split()).heads == (fa.Heads(2, 16, 16), fa.Heads(1, 32, 32, 2))


def test_a_latent_preset_and_its_changes(spec_of):
    lite = ("law", "deepseek-v2-lite", "--n-tokens", 2048)
    assert spec_of(*lite) == fa.architecture("deepseek-v2-lite", n_tokens=2048)
    assert spec_of(*lite, "--latent-rank", 256).latent == fa.Latent(256, normalized=True)
    assert spec_of(*lite, "--latent-per-head").latent == fa.Latent(512, shared=False, normalized=True)
    plain = spec_of(*lite, "--latent-rank", "none", "--position-width", 0)
    assert (plain.latent, plain.position_width) == (None, 0)
    assert spec_of("law", "deepseek-v3", "--inputs", "gaussian").n_tokens == 163840


def test_symbols_keep_the_kind_of_layer(spec_of):
    spec = spec_of("derive", "deepseek-v3", "--symbolic")
    assert (spec.latent, spec.query_latent, spec.position_width) == (
        fa.Latent(512, normalized=True), fa.Latent(1536, normalized=True), 64,
    )
    assert str(spec.n_tokens) == "n_tokens"
    spec = spec_of("derive", "--symbolic", "--tie", "key-value-output", "--inputs", "gaussian", "--residual", 2)
    assert spec.d_out == spec.d_model
    assert spec.d_value == spec.d_key
    assert (spec.tie.shorthand, spec.inputs, spec.residual) == ("key-value-output", fa.GaussianInput(), 2)
    spec = spec_of("derive", "--symbolic", "--key-value-correlation", "0.5", "--output", "values")
    assert (spec.tie.value, spec.output) == (CORRELATED, "values")


def test_what_the_closed_laws_do_not_cover_is_said(run):
    outcome = run("law", "bert-base", "--residual", 1, "--inputs", "gaussian", "--route", "transform")
    assert outcome.code == 2
    assert "no closed law is known with inputs, residual" in outcome.line
