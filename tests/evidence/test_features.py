"""Features of softmax attention against matrices written out."""

import numpy as np
import pytest
from scipy import linalg

import freeattn as fa
from freeattn.errors import InputError
from freeattn.evidence.features import Features, draw_features
from freeattn.evidence.projections import Projections
from freeattn.evidence.weights import Weights

SPEC = fa.Attention(n_tokens=24, d_model=32, n_heads=4, d_key=6, d_value=5, d_out=30)
VARIANTS = [
    {}, {"d_out": 10}, {"n_kv_heads": 2}, {"tie": "key-value", "d_value": 6}, {"inputs": "gaussian", "d_model": 12},
    {"tie": "output-key", "d_value": 6, "d_out": 32}, {"scores": "relu"},
]


def written_out(spec, seed):
    """[A_1 V_1, …, A_h V_h] W^O, by softmax as it is defined."""
    weights = Weights(spec, seed)
    layer = Projections(spec, weights)
    mixed = []
    for head in range(spec.n_heads):
        keys, values = layer.keys_and_values(head * spec.n_kv_heads // spec.n_heads)
        scores = float(spec.beta) * layer.queries(head) @ keys.T / np.sqrt(spec.d_key)
        if spec.scores.name == "softmax":
            attention = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
        else:
            attention = np.maximum(scores, 0) / spec.n_tokens
        mixed.append(attention @ values)
    return np.hstack(mixed) @ np.vstack([weights.output(head) for head in range(spec.n_heads)])


@pytest.mark.parametrize("changes", VARIANTS)
def test_eigenvalues_are_those_of_the_layer_itself(changes):
    spec = SPEC.replace(**changes)
    features = written_out(spec, 3)
    found = draw_features(spec, 3)
    expected = np.linalg.eigvalsh(features @ features.T)
    assert found.values == pytest.approx(expected, abs=1e-11 * expected[-1])
    rank = min(spec.n_tokens, 4 * spec.d_value, spec.d_out)
    assert (found.values == 0).sum() == spec.n_tokens - rank
    assert found.shares.sum() == pytest.approx(1)
    assert (found.shares >= 0).all()


@pytest.mark.parametrize("changes", VARIANTS[:3])
def test_ridge_error_is_that_of_the_regression(changes):
    """E‖v̂ − ϑ‖² for v̂ = (FᵀF + λ)⁻¹ Fᵀ (F ϑ + ε/√n), by matrices."""
    spec, unit, penalty, noise = SPEC.replace(**changes), 1.7, 0.03, 0.2
    f = written_out(spec, 5) / np.sqrt(unit)
    gram = f.T @ f
    inverse = np.linalg.inv(gram + penalty * np.eye(spec.d_out))
    bias = penalty**2 * np.trace(inverse @ inverse) / spec.d_out
    variance = noise / spec.n_tokens * np.trace(inverse @ gram @ inverse)
    assert draw_features(spec, 5).ridge_error(unit, penalty, noise) == pytest.approx(bias + variance, rel=1e-9)


def test_loss_is_that_of_gradient_flow():
    """Mean over centered targets of ‖e^{−tFFᵀ} y‖²/n, by the matrix exponential."""
    spec, unit, times = SPEC.replace(d_out=10), 1.3, np.array([0.0, 0.3, 2.0, 40.0])
    n = spec.n_tokens
    f = written_out(spec, 5) / np.sqrt(unit)
    centered = np.eye(n) - np.ones((n, n)) / n
    expected = [np.trace(centered @ linalg.expm(-2 * t * f @ f.T)) / (n - 1) for t in times]
    found = draw_features(spec, 5)
    assert found.loss(unit, times) == pytest.approx(expected, rel=1e-8)
    assert found.loss(unit, 1e12) == pytest.approx(found.plateau, rel=1e-12)
    assert found.plateau == pytest.approx((n - 10) / (n - 1), abs=0.02)


def test_arrival_time_is_where_the_loss_is():
    found = Features(np.array([0.0, 0.5, 1.0, 3.0]), np.array([0.1, 0.2, 0.3, 0.4]), 3)
    for level in (0.999, 0.5, 0.1 + 1e-6):
        assert found.loss(2.0, found.arrival_time(2.0, level)) == pytest.approx(level, rel=1e-9)
    assert found.arrival_time(2.0, 0.1) == np.inf


@pytest.mark.parametrize("changes", [{"output": "values", "d_out": None}, {"d_out": 32, "residual": 1}])
def test_layers_without_features(changes):
    with pytest.raises(InputError, match='"mha" without a residual'):
        draw_features(SPEC.replace(**changes), 0)


@pytest.mark.slow
def test_readouts_of_features_tend_to_those_of_the_law():
    spec = fa.Attention(n_tokens=1024, d_model=1024, n_heads=32, d_key=64, d_value=64, d_out=512)
    law = fa.law(spec)
    drawn = [draw_features(spec, seed) for seed in range(2)]
    ridge = np.mean([one.ridge_error(law.mean, 1e-2, 0.1) for one in drawn])
    assert ridge == pytest.approx(fa.predict.ridge_error(law, 1e-2, 0.1), rel=0.02)
    loss = np.mean([one.loss(law.mean, 1.0) for one in drawn])
    assert loss == pytest.approx(fa.predict.flow_loss(law, 1.0), rel=0.02)
