"""Numbers of weights against counts by hand, and the widths that they allow."""

from fractions import Fraction

import pytest
import sympy

import freeattn as fa
from freeattn.errors import InputError
from freeattn.predict.parameters import with_widths

SIZES = {"n_tokens": 64, "d_model": 96, "n_heads": 8, "d_key": 12, "d_value": 20, "d_out": 40}


def test_bert_base_has_four_square_matrices():
    assert fa.predict.parameter_count(fa.architecture("bert-base", n_tokens=512)) == 4 * 768**2


@pytest.mark.parametrize(
    ("name", "n_tokens", "count"),
    [
        ("llama-2-70b", 2048, 2 * 8192**2 + 2 * 8192 * 8 * 128),  # GQA: 8 heads of keys and values for 64
        ("falcon-7b", 2048, 2 * 4544**2 + 2 * 4544 * 64),  # MQA
        (
            "deepseek-v2", 512,
            5120 * 1536 + 1536 * 128 * 192  # queries, from a latent
            + 5120 * (512 + 64) + 512 * 128 * (128 + 128)  # keys and values, from one latent and shared positions
            + 128 * 128 * 5120,
        ),
        ("deepseek-v2-lite", 512, 2048 * 16 * 192 + 2048 * (512 + 64) + 512 * 16 * (128 + 128) + 16 * 128 * 2048),
    ],
)
def test_published_layers_by_hand(name, n_tokens, count):
    assert fa.predict.parameter_count(fa.architecture(name, n_tokens=n_tokens)) == count


QUERIES, KEYS, VALUES, OUT = 96 * 96, 96 * 96, 96 * 160, 160 * 40
CHANGES = [
    ({}, QUERIES + KEYS + VALUES + OUT),
    ({"n_kv_heads": 2}, QUERIES + KEYS // 4 + VALUES // 4 + OUT),
    ({"output": "values", "d_out": None}, QUERIES + KEYS + VALUES),
    ({"output": "attention", "d_out": None, "d_value": None}, QUERIES + KEYS),
    ({"output": "head-sum", "d_out": None, "d_value": None, "n_kv_heads": 1}, QUERIES + KEYS // 8),
    ({"tie": "key-value", "d_value": 12}, QUERIES + KEYS + 96 * 40),
    ({"tie": fa.KeyValueCorrelation(Fraction(1, 2)), "d_value": 12}, QUERIES + 2 * KEYS + 96 * 40),
    ({"tie": "output-key", "d_value": 12, "d_out": 96}, QUERIES + 2 * KEYS),
    ({"tie": "key-value-output", "d_value": 12, "d_out": 96}, QUERIES + KEYS),
    ({"latent": fa.Latent(10)}, QUERIES + 96 * 10 + 10 * 8 * (12 + 20) + OUT),
    ({"latent": fa.Latent(10, shared=False), "n_kv_heads": 2}, QUERIES + 2 * (96 * 10 + 10 * (12 + 20)) + OUT),
    ({"query_latent": fa.Latent(10, shared=False)}, 8 * (96 * 10 + 10 * 12) + KEYS + VALUES + OUT),
    ({"latent": fa.Latent(10), "position_width": 5}, QUERIES + 96 * 15 + 10 * 8 * (7 + 20) + OUT),
]


@pytest.mark.parametrize(("changes", "count"), CHANGES)
def test_every_field_counts_as_by_hand(changes, count):
    assert fa.predict.parameter_count(fa.Attention(**{**SIZES, **changes})) == count


def test_unequal_heads_add_up():
    spec = fa.Attention(n_tokens=64, d_model=96, d_out=40, heads=[fa.Heads(2, 12, 20), fa.Heads(3, 4, 8)])
    assert fa.predict.parameter_count(spec) == 96 * (2 * 44 + 3 * 16) + (2 * 20 + 3 * 8) * 40


@pytest.mark.parametrize("changes", [change for change, _ in CHANGES if "heads" not in change])
def test_ratios_count_in_units_of_squared_tokens(changes):
    spec = fa.Attention(**{**SIZES, **changes})
    latents = {
        name: fa.Latent(Fraction(latent.rank, 64), latent.shared)
        for name in ("latent", "query_latent") if (latent := getattr(spec, name)) is not None
    }
    by_ratios = fa.Attention.from_ratios(
        spec.gamma_key, spec.gamma_value, spec.gamma_out, spec.tokens_per_width, 8, n_kv_heads=spec.n_kv_heads,
        tie=spec.tie, output=spec.output, position_width=Fraction(spec.position_width, 64), **latents,
    )
    assert fa.predict.parameter_count(by_ratios) == Fraction(fa.predict.parameter_count(spec), 64**2)


def test_symbols_give_an_expression():
    d, h = sympy.symbols("d h", positive=True, integer=True)
    spec = fa.Attention(n_tokens=64, d_model=d, n_heads=h, d_key=8, d_value=8, inputs="gaussian")
    assert sympy.expand(fa.predict.parameter_count(spec) - 4 * d * h * 8) == 0


def test_infinitely_many_heads_have_no_count():
    with pytest.raises(InputError, match="n_heads = inf"):
        fa.predict.parameter_count(fa.Attention.from_ratios(1, 1, 1, n_heads=sympy.oo))


@pytest.mark.parametrize("kv_heads", [1, 2, 16, 64])
def test_width_at_the_weights_of_a_layer_without_sharing(kv_heads):
    """γ_K = γ_V = 5/(3 + 2 h_KV/h) (arXiv 2610.10033, figure 3(a))."""
    spec = fa.Attention.from_ratios(1, 1, 2, n_heads=64, n_kv_heads=kv_heads)
    found = fa.predict.width_at(spec, 5, ("gamma_key", "gamma_value"))
    assert found == Fraction(5) / (3 + 2 * Fraction(kv_heads, 64))
    assert fa.predict.parameter_count(with_widths(spec, {"gamma_key": found, "gamma_value": found})) == 5


def test_width_at_of_sizes_is_exact_and_counts_tied_values_once():
    spec = fa.Attention(**SIZES)
    one_more = 8 * (96 + 40)  # weights of one more column of values, and row of W^O, in each head
    assert fa.predict.width_at(spec, fa.predict.parameter_count(spec) + one_more // 2, "d_value") == Fraction(41, 2)
    tied = fa.Attention(**{**SIZES, "tie": "key-value", "d_value": 12})
    assert fa.predict.width_at(tied, fa.predict.parameter_count(tied), "d_key") == 12


def test_width_above_the_coordinates_that_carry_positions():
    spec = fa.Attention(**SIZES, latent=fa.Latent(10), position_width=5)
    assert fa.predict.width_at(spec, fa.predict.parameter_count(spec), "d_key") == 12


@pytest.mark.parametrize(
    ("budget", "over", "message"),
    [
        (100, "d_key", "budget = 100 is not allowed; expected more than"),
        (10**6, ("d_value", "d_out"), "linear"),
        (10**6, (), "at least one width"),
        (10**6, "d_model", "widths among d_key, d_value, d_out"),
        (10**6, "gamma_key", "widths among d_key, d_value, d_out"),
    ],
)
def test_widths_that_cannot_be_had(budget, over, message):
    with pytest.raises(InputError, match=message):
        fa.predict.width_at(fa.Attention(**SIZES), budget, over)


def test_a_width_that_the_output_does_not_have():
    spec = fa.Attention(n_tokens=64, d_model=96, n_heads=8, d_key=12, output="attention")
    with pytest.raises(InputError, match=r'output="attention"'):
        fa.predict.width_at(spec, 10**6, "d_value")
