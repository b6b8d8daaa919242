"""Simulated attention: what is drawn, exact ranks, exact expectations, memory."""

from __future__ import annotations

import math
import tracemalloc

import numpy as np
import pytest
import sympy as sp

from freeattn.errors import InputError
from freeattn.evidence.finite_size import finite_size
from freeattn.evidence.projections import Projections
from freeattn.evidence.sampling import Sample, Weights, sample
from freeattn.model.attention import Attention
from freeattn.model.heads import Heads
from freeattn.model.inputs import FeatureCovariance
from freeattn.model.latent import Latent
from freeattn.model.scores import Entrywise
from freeattn.model.ties import KeyValueCorrelation

SIZES = {"n_tokens": 48, "d_model": 60, "n_heads": 4, "d_key": 10}
OUTPUTS = {
    "mha": {**SIZES, "output": "mha", "d_value": 13, "d_out": 40},
    "values": {**SIZES, "output": "values", "d_value": 13},
    "attention": {**SIZES, "output": "attention"},
    "head-sum": {**SIZES, "output": "head-sum"},
}
LIKE = {"n_tokens": 48, "d_model": 60}
HEADS = [Heads(1, 20, 13), Heads(2, 10, 11, sp.Rational(1, 2))]
VARIANTS = [
    *OUTPUTS.values(),
    *({**fields, "n_kv_heads": 2} for fields in OUTPUTS.values()),
    *({**fields, "scores": "relu"} for fields in OUTPUTS.values()),
    {**OUTPUTS["values"], "d_value": 9},
    {**OUTPUTS["mha"], "d_value": 10, "tie": "key-value", "n_kv_heads": 1},
    {**OUTPUTS["values"], "d_value": 10, "tie": "key-value", "value_scale": 2},
    {**OUTPUTS["mha"], "value_scale": "1/2", "output_scale": 3, "beta": "3/4"},
    {**OUTPUTS["mha"], "inputs": "gaussian", "d_model": 40, "d_out": 30},
    {**OUTPUTS["values"], "inputs": FeatureCovariance((1, 3), (2, 1))},
    {**SIZES, "tie": KeyValueCorrelation(sp.Rational(-3, 5)), "d_out": 40, "n_kv_heads": 2},
    {**SIZES, "tie": "output-key", "n_kv_heads": 2, "output_scale": 3},
    {**SIZES, "tie": "key-value-output", "inputs": "gaussian"},
    {**OUTPUTS["mha"], "latent": Latent(9), "n_kv_heads": 2},
    {**OUTPUTS["mha"], "latent": Latent(9, shared=False, normalized=True), "query_latent": Latent(7)},
    {**OUTPUTS["mha"], "latent": Latent(9, normalized=True), "query_latent": Latent(7, False, True), "position_width": 4},
    {**SIZES, "tie": "key-value-output", "latent": Latent(9), "position_width": 4},
    {**OUTPUTS["head-sum"], "latent": Latent(9), "position_width": 4},
    {**OUTPUTS["mha"], "d_out": 60, "residual": "3/4", "value_scale": 2},
    *({**LIKE, "heads": HEADS, "output": output} for output in OUTPUTS),
    {**LIKE, "heads": HEADS, "output": "values", "n_tokens": 60},
]


def make(**fields) -> Attention:
    numbers = {"value_scale", "beta", "residual"}
    return Attention(**{k: sp.Rational(v) if k in numbers and isinstance(v, str) else v for k, v in fields.items()})


def name(fields: dict) -> str:
    return " ".join(str(value) for key, value in fields.items() if key not in SIZES)


@pytest.mark.parametrize("fields", VARIANTS, ids=name)
def test_spectra_are_ascending_complete_and_read_only(fields):
    drawn = sample(make(**fields), seed=3)
    for values in (drawn.softmax, drawn.equivalent):
        assert values.shape == (fields["n_tokens"],)
        assert np.all(np.diff(values) >= 0)
        assert values[0] >= 0
        with pytest.raises(ValueError, match="read-only"):
            values[0] = 1.0


def latent_of(tokens, latent, down):
    """X W^D with rows of length √rank where they are normalized; X itself without a latent."""
    if latent is None:
        return tokens
    drawn = tokens @ down
    if latent.normalized:
        drawn = drawn / np.linalg.norm(drawn, axis=1, keepdims=True) * math.sqrt(latent.rank)
    return drawn


def matrices(spec: Attention, weights: Weights, head: int) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
    """Q, K and V of a query head from the definition of the layer."""
    tokens, kv_head = weights.tokens(), head * spec.n_kv_heads // spec.n_heads
    source = latent_of(tokens, spec.query_latent, spec.query_latent and weights.query_latent(head))
    queries = source @ weights.query(head)
    source = latent_of(tokens, spec.latent, spec.latent and weights.latent(kv_head))
    keys = source @ weights.key(kv_head)
    if spec.position_width:
        keys = np.concatenate([keys, tokens @ weights.position()], axis=1)
    if not spec.has_values:
        return queries, keys, None
    values = keys if spec.tie.value == "key" else source @ weights.value(kv_head)
    if isinstance(spec.tie.value, KeyValueCorrelation):
        rho = float(spec.tie.value.rho)
        values = rho * keys + math.sqrt(1 - rho**2) * values
    return queries, keys, float(spec.value_scale) * values


def output_map(spec: Attention, weights: Weights, head: int) -> np.ndarray:
    """The rows of W^O that belong to a head: W^Kᵀ, scaled, when tied."""
    if spec.tie.output == "none":
        return weights.output(head)
    kv_head = head * spec.n_kv_heads // spec.n_heads
    key = weights.key(kv_head) if spec.latent is None else weights.latent(kv_head) @ weights.key(kv_head)
    if spec.position_width:
        key = np.concatenate([key, weights.position()], axis=1)
    width = sum(family.count * family.d_value for family in spec.families)
    return float(spec.output_scale) * key.T * math.sqrt(spec.d_model / width)


def centered(spec: Attention, scores: np.ndarray, beta: float, noise: np.ndarray | None) -> np.ndarray:
    """A^⊥ of softmax or ReLU scores; the Gaussian equivalent when there is noise."""
    n = spec.n_tokens
    if noise is not None:
        theta_1, theta_2 = math.expm1(beta**2), beta**2
        if spec.scores.name == "relu":
            theta_1, theta_2 = beta**2 * (0.5 - 0.5 / math.pi), beta**2 / 4
        return (math.sqrt(theta_2) * scores + math.sqrt(theta_1 - theta_2) * noise) / n
    if spec.scores.name == "relu":
        attention = np.maximum(beta * scores, 0) / n
        return attention - attention.mean()
    attention = np.exp(beta * scores)
    return attention / attention.sum(axis=1, keepdims=True) - 1 / n


def whole_output(spec: Attention, seed: int, equivalent: bool) -> np.ndarray:
    """M from its definition, all heads at once and in reverse order, for softmax or ReLU scores."""
    weights = Weights(spec, seed)
    n, h = spec.n_tokens, spec.n_heads
    betas = [float(family.beta) for family in spec.families for _ in range(family.count)]
    blocks = {}
    for head in reversed(range(h)):
        queries, keys, values = matrices(spec, weights, head)
        scores = queries @ keys.T / math.sqrt(keys.shape[1])
        block = centered(spec, scores, betas[head], weights.noise(head) if equivalent else None)
        blocks[head] = block if values is None else block @ values
    together = [blocks[head] for head in range(h)]
    if spec.output == "head-sum":
        return math.sqrt(n * h) * np.mean(together, axis=0)
    if spec.output == "attention":
        return math.sqrt(n / h) * np.hstack(together)
    if spec.output == "values":
        return np.hstack(together)
    output = np.hstack(together) @ np.vstack([output_map(spec, weights, head) for head in range(h)])
    if spec.residual is None:
        return output
    return weights.tokens() / math.sqrt(spec.d_model) + float(spec.residual) * output


@pytest.mark.parametrize("fields", VARIANTS, ids=name)
def test_spectra_are_those_of_the_definition(fields):
    spec = make(**fields)
    drawn = sample(spec, seed=11)
    for values, equivalent in ((drawn.softmax, False), (drawn.equivalent, True)):
        output = whole_output(spec, 11, equivalent)
        expected = np.linalg.eigvalsh(output @ output.T)
        np.testing.assert_allclose(values, expected, rtol=1e-9, atol=1e-12 * expected[-1])


def test_same_seed_same_numbers():
    spec = make(**OUTPUTS["mha"])
    first, again, other = sample(spec, 5), sample(spec, np.random.SeedSequence(5)), sample(spec, 6)
    assert np.array_equal(first.softmax, again.softmax)
    assert np.array_equal(first.equivalent, again.equivalent)
    assert not np.array_equal(first.softmax, other.softmax)


def test_a_seed_sequence_is_not_used_up():
    sequence = np.random.SeedSequence(8)
    spec = make(**OUTPUTS["attention"])
    first = sample(spec, sequence)
    assert sequence.n_children_spawned == 0
    assert np.array_equal(first.softmax, sample(spec, sequence).softmax)
    child = sequence.spawn(1)[0]
    assert not np.array_equal(first.softmax, sample(spec, child).softmax)


def test_one_key_head_per_query_head_is_no_sharing():
    fields = OUTPUTS["mha"]
    plain, grouped = sample(make(**fields), 2), sample(make(**fields, n_kv_heads=4), 2)
    assert np.array_equal(plain.softmax, grouped.softmax)
    assert np.array_equal(plain.equivalent, grouped.equivalent)


def test_sharing_changes_keys_and_nothing_else():
    plain, shared = Weights(make(**OUTPUTS["mha"]), 0), Weights(make(**OUTPUTS["mha"], n_kv_heads=2), 0)
    assert [list(shared.group(kv_head)) for kv_head in range(2)] == [[0, 1], [2, 3]]
    for head in range(4):
        assert np.array_equal(plain.query(head), shared.query(head))
        assert np.array_equal(plain.output(head), shared.output(head))
        assert np.array_equal(plain.noise(head), shared.noise(head))


def test_every_matrix_has_its_own_stream():
    weights = Weights(make(**OUTPUTS["mha"]), 0)
    first = [weights.tokens()[0, 0]]
    for head in range(4):
        for draw in (weights.query, weights.key, weights.value, weights.output, weights.noise):
            first.append(draw(head)[0, 0] / draw(head).std())
    assert len(set(first)) == 21


def test_tied_values_are_the_keys():
    spec = make(**{**OUTPUTS["values"], "d_value": 10, "tie": "key-value", "value_scale": 2})
    keys, values = Projections(spec, Weights(spec, 0)).keys_and_values(1)
    assert np.array_equal(values, 2 * keys)


def test_tokens_are_orthogonal_and_weights_have_their_variance():
    spec = Attention(n_tokens=200, d_model=300, n_heads=2, d_key=50, d_value=40, d_out=100)
    weights = Weights(spec, 1)
    tokens = weights.tokens()
    np.testing.assert_allclose(tokens @ tokens.T / 300, np.eye(200), atol=1e-13)
    variances = [(weights.query(0), 300), (weights.key(1), 300), (weights.value(0), 300), (weights.output(1), 80)]
    for matrix, inverse in variances:  # a variance of N Gaussians has relative standard deviation √(2/N)
        assert abs(matrix.var() * inverse - 1) < 5 * math.sqrt(2 / matrix.size)


# Expectations -----------------------------------------------------------------------------------------------------

E = math.e - 1  # θ₁ at β = 1
BASE = {"n_tokens": 240, "d_model": 300, "n_heads": 3, "d_key": 80}
MEANS = [
    ({**BASE, "output": "mha", "d_value": 60, "d_out": 180}, 0.75 * E),
    ({**BASE, "output": "mha", "d_value": 60, "d_out": 180, "n_kv_heads": 1}, 0.75 * E),
    ({**BASE, "output": "values", "d_value": 60}, 0.75 * E),
    ({**BASE, "output": "attention"}, E),
    ({**BASE, "output": "attention", "n_kv_heads": 1}, E),
    ({**BASE, "output": "head-sum"}, E),
    ({**BASE, "output": "head-sum", "n_kv_heads": 1}, E),
    ({**BASE, "output": "values", "tie": "key-value"}, E + 3),
    ({**BASE, "output": "mha", "d_out": 180, "tie": "key-value"}, 0.75 * (E + 3)),
    ({**BASE, "output": "mha", "d_value": 60, "d_out": 180, "value_scale": 2, "output_scale": 3}, 36 * 0.75 * E),
    ({**BASE, "output": "values", "d_value": 60, "scores": "relu"}, 0.75 * (0.5 - 0.5 / math.pi)),
]


@pytest.mark.parametrize(("fields", "limit"), MEANS, ids=[name(fields) for fields, _ in MEANS])
def test_means_are_those_of_the_limit(fields, limit):
    """Table of means of the limit (arXiv 2610.10033, section 3).

    Tolerance: four standard errors of the mean over the draws, measured, and the finite-size effects: known ones for
    softmax (`finite_size`), 1/n for centering or for the ties.
    """
    spec = make(**fields)
    draws = [sample(spec, seed) for seed in range(8)]
    size = finite_size(spec)
    for attribute, effect in (("softmax", size.loss + size.gain), ("equivalent", 0)):
        means = np.array([getattr(one, attribute).mean() for one in draws])
        error = 4 * means.std(ddof=1) / math.sqrt(len(means)) + limit * (effect + 2 / spec.n_tokens)
        assert error < 0.12 * limit
        assert abs(means.mean() - limit) < error


def test_exact_expectation_of_exponential_scores():
    """E (1/n) Σ_j e^{βS_ij − β²/2} = e^{−β²/2}(1 − β²/d_K)^{−d_K/2} at every n: here 3.5 % above 1, its limit."""
    d_key, beta = 8, 1.0
    spec = Attention(n_tokens=200, d_model=200, n_heads=1, d_key=d_key, output="attention")
    means = []
    for seed in range(40):
        weights = Weights(spec, seed)
        tokens = weights.tokens()
        scores = tokens @ weights.query(0) @ (tokens @ weights.key(0)).T / math.sqrt(d_key)
        means.append(np.exp(beta * scores - beta**2 / 2).mean())
    exact = math.exp(-(beta**2) / 2) * (1 - beta**2 / d_key) ** (-d_key / 2)
    error = np.std(means, ddof=1) / math.sqrt(len(means))
    assert error < 0.008
    assert abs(np.mean(means) - exact) < 4 * error
    assert abs(np.mean(means) - 1) > 4 * error


# Ranks ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fields", "softmax", "equivalent"),
    [
        ({**SIZES, "output": "values", "d_value": 5}, 28, 28),  # n − h d_value
        ({**SIZES, "output": "values", "d_value": 5, "n_kv_heads": 1}, 28, 28),
        ({**SIZES, "output": "mha", "d_value": 5, "d_out": 200}, 28, 28),
        ({**SIZES, "output": "mha", "d_value": 20, "d_out": 30}, 18, 18),  # n − d_out
        ({**SIZES, "output": "mha", "d_value": 20, "d_out": 48}, 0, 0),
        ({**SIZES, "output": "mha", "d_out": 60, "tie": "key-value"}, 8, 8),  # n − h d_key
        ({**SIZES, "output": "attention", "n_heads": 1}, 1, 0),  # rows of A^⊥ sum to zero
        ({**SIZES, "output": "head-sum"}, 1, 0),
        ({**SIZES, "output": "attention", "n_heads": 1, "scores": "linear"}, 37, 38),  # d_key, and one for the mean
    ],
)
def test_zeros_are_exact(fields, softmax, equivalent):
    drawn = sample(make(**fields), 4)
    assert np.count_nonzero(drawn.softmax == 0) == softmax
    assert np.count_nonzero(drawn.equivalent == 0) == equivalent


def test_linear_scores_are_their_own_equivalent():
    spec = Attention(n_tokens=100, d_model=100, n_heads=2, d_key=60, output="attention", scores="linear")
    drawn = sample(spec, 0)
    assert np.abs(drawn.softmax - drawn.equivalent).mean() < 0.01 * drawn.equivalent.mean()  # centering: rank one


# Errors -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("spec", "text"),
    [
        ("bert-base", "spec = 'bert-base' .* an Attention"),
        (Attention.from_ratios(1, 1, 1), "spec.with_sizes"),
        (Attention.from_ratios(1, 1, 1, n_heads=math.inf), "spec.replace"),
        (make(**{**OUTPUTS["mha"], "d_out": sp.Symbol("p", positive=True)}), r"d_out = p .* spec.replace\(d_out"),
        (make(**{**OUTPUTS["attention"], "beta": sp.Symbol("b", positive=True)}), r"spec.replace\(beta"),
    ],
)
def test_sizes_are_asked_for(spec, text):
    with pytest.raises(InputError, match=text):
        sample(spec)


@pytest.mark.parametrize("seed", [-1, True, 1.5, None, "0"])
def test_seeds_are_checked(seed):
    with pytest.raises(InputError, match="seed"):
        sample(make(**OUTPUTS["attention"]), seed)


def overflowing(x, functions):
    return functions.exp(1000 * x**2) if functions is np else functions.exp(x)  # finite θ's, no finite weights


def huge(x, functions):
    return 1e300 * functions.exp(x) if functions is np else functions.exp(x)


@pytest.mark.parametrize(("function", "text"), [(overflowing, "finite weights"), (huge, "do not overflow")])
def test_weights_that_are_not_finite_are_an_error(function, text):
    spec = make(**{**OUTPUTS["attention"], "scores": Entrywise(function, name="wild"), "n_heads": 8})
    with pytest.raises(InputError, match=f"wild.*{text}"):
        sample(spec)


def test_memory_stays_at_a_few_square_arrays():
    """All weights and noises of the 24 heads would take 36 arrays of n × n; each head alone takes a fraction."""
    spec = Attention(n_tokens=256, d_model=256, n_heads=24, d_key=32, d_value=32)
    sample(spec.replace(n_tokens=16))  # imports and caches
    tracemalloc.start()
    try:
        sample(spec)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 8 * spec.n_tokens**2 * 8


def test_a_sample_is_a_value():
    spec = make(**OUTPUTS["attention"])
    drawn = sample(spec, 9)
    assert isinstance(drawn, Sample)
    assert (drawn.spec, drawn.seed) == (spec, 9)
