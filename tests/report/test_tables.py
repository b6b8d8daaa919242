"""What the tables say, and how numbers are written."""

from fractions import Fraction
from types import SimpleNamespace

import mpmath
import pytest

import freeattn as fa
from freeattn import report
from freeattn.model.architectures import architectures
from freeattn.report.numbers import number_text
from freeattn.report.tables import edge_kind, later_fields, sharing_text


def line_of(text, start):
    return next(line for line in text.splitlines() if line.startswith(start)).split()


def test_law_tables_hold_every_number(law):
    text = report.render(*report.law_tables(law, "bert-base", digits=10))
    assert line_of(text, "gamma_key") == ["gamma_key", "3/2", "1.5"]
    assert line_of(text, "beta") == ["beta", "1/2", "0.5"]
    assert line_of(text, "mean") == ["mean", "1.5", "1"]
    assert line_of(text, "moment 2") == ["moment", "2", "3.1875", "1.416666667"]
    assert line_of(text, "atom at") == ["atom", "at", "0", "0"]
    assert line_of(text, "weight") == ["weight", "of", "the", "atom", "0.25", "0.25"]
    assert line_of(text, "1     left")[-3:] == ["1", "0.6666666667", "0.75"]
    assert line_of(text, "      right")[-2:] == ["3", "2"]
    assert "Not modelled: causal mask" in text


def test_law_tables_of_two_bands_give_the_mass_of_each(two_bands):
    text = report.render(*report.law_tables(two_bands))
    assert line_of(text, "1     left")[-1] == "0.5"
    assert line_of(text, "2     left")[-1] == "0.5"
    assert line_of(text, "atoms") == ["atoms", "none", "none"]


@pytest.mark.parametrize(
    ("exponent", "words"),
    [(0.5, "square root"), (-0.5, "hard, x^(-1/2)"), (1 / 3 - 1, "hard, x^(-2/3)"), (1 / 3, "x^(1/3)")],
)
def test_edge_kind(exponent, words):
    assert edge_kind(exponent) == words


@pytest.mark.parametrize(
    ("value", "digits", "text"),
    [
        (Fraction(1, 3), 20, "0.33333333333333333333"),
        (2, 30, "2"),
        (0.1, 15, "0.1"),
        (0.1, 40, "0.10000000000000001"),
        (mpmath.MPContext().mpf(1) / 4, 20, "0.25"),
    ],
)
def test_number_text(value, digits, text):
    assert number_text(value, digits) == text


def test_number_text_keeps_the_digits_of_an_mpmath_number():
    context = mpmath.MPContext()
    context.dps = 40
    assert number_text(context.pi, 30) == "3.14159265358979323846264338328"


@pytest.mark.parametrize(
    ("heads", "kv", "tie", "words"),
    [
        (8, 8, "none", "no"),
        (8, 1, "none", "all heads"),
        (8, 2, "none", "by 4"),
        (8, 8, "key-value", "no, K = V"),
    ],
)
def test_sharing(heads, kv, tie, words):
    assert sharing_text(SimpleNamespace(n_heads=heads, n_kv_heads=kv, tie=tie)) == words


def test_architectures_table_has_one_line_for_each_preset_in_a_pipe():
    presets = architectures()
    lines = report.render(*report.architectures_table(presets)).splitlines()
    for preset in presets:
        (line,) = (line for line in lines if line.split()[:1] == [preset.name])
        assert line.endswith(preset.source)


def test_unknown_name():
    with pytest.raises(AttributeError, match="no_such"):
        report.no_such  # noqa: B018


def test_fields_that_a_plain_layer_does_not_have():
    sizes = {"n_tokens": 64, "d_model": 64}
    assert list(later_fields(fa.Attention(**sizes, n_heads=2, d_key=16, d_value=16))) == []
    spec = fa.Attention(
        **sizes, heads=[fa.Heads(2, 16, 8), fa.Heads(1, 8, 8, 2)], inputs=fa.FeatureCovariance((1, 3)),
        latent=fa.Latent(4, shared=False), query_latent=fa.Latent(5, normalized=True), position_width=3, residual=0.5,
    )
    assert list(later_fields(spec)) == [
        ("eigenvalues", "1/2, 3/2"),
        ("weights", "1/2, 1/2"),
        ("latent", "rank 4, one per key/value head"),
        ("query_latent", "rank 5, shared, normalized"),
        ("position_width", "3"),
        ("heads", "2 with d_key 16, d_value 8"),
        ("heads", "1 with d_key 8, d_value 8, beta 2"),
        ("residual", "1/2"),
    ]
