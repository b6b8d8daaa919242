"""Expected finite-size effects, against closed forms, published numbers and simulated rows."""

from __future__ import annotations

import math

import numpy as np
import pytest

from freeattn.evidence.finite_size import finite_size
from freeattn.model.attention import Attention
from freeattn.model.dominated_rows import few_tokens_loss
from freeattn.model.rows import participation
from freeattn.model.scores import Entrywise, Linear, Softmax


def loss(beta: float, n: int) -> float:
    return few_tokens_loss(Softmax(), beta, n)


def layer(**changes) -> Attention:
    fields = {"n_tokens": 512, "d_model": 768, "n_heads": 1, "d_key": 64, "output": "attention"}
    return Attention(**{**fields, **changes})


@pytest.mark.parametrize(
    ("beta", "n", "expected"),
    [(1.25, 512, 0.06), (1.4, 1024, 0.07), (1.5, 2048, 0.06), (2.5, 512, 0.90), (2.5, 1024, 0.86), (2.5, 2048, 0.80)],
)
def test_losses_that_were_tabulated(beta, n, expected):
    assert loss(beta, n) == pytest.approx(expected, abs=0.006)


@pytest.mark.parametrize("beta", [0.3, 0.7, 1.0])
def test_loss_starts_with_its_first_order(beta):
    growth = math.exp(beta**2)
    n = 10**5
    assert loss(beta, n) * n == pytest.approx(growth * (2 * growth - 1), rel=1e-3)


@pytest.mark.parametrize("beta", [0.5, 1.0, 2.0, 4.0])
@pytest.mark.parametrize("order", [2, 4])
def test_participation_is_that_of_simulated_rows(beta, order):
    n, rows = 64, 20000
    weights = np.exp(beta * np.random.default_rng(1).standard_normal((rows, n)))
    weights /= weights.sum(axis=1, keepdims=True)
    sums = (weights**order).sum(axis=1)
    error = 4 * sums.std() / math.sqrt(rows)
    assert participation(Softmax(), beta, n, order) == pytest.approx(sums.mean(), abs=error)


def test_participation_of_equal_weights():
    flat = Entrywise(lambda x, _: 1 + 0 * x, name="flat", normalized=True)
    assert participation(flat, 1.0, 10, 2) == pytest.approx(0.1, rel=1e-6)
    assert participation(flat, 1.0, 10, 4) == pytest.approx(0.001, rel=1e-6)


@pytest.mark.parametrize("d_key", [16, 64, 256])
def test_gain_of_softmax_is_the_chi_square_transform(d_key):
    """E e^{β²κ} over κ ~ χ²(d)/d is (1 − 2β²/d)^{−d/2}; the midpoints cut its tail by about 1 %."""
    exact = ((1 - 2 / d_key) ** (-d_key / 2) - math.e) / (math.e - 1)
    assert finite_size(layer(d_key=d_key)).gain == pytest.approx(exact, rel=0.02)


def test_linear_scores_lose_and_gain_nothing():
    size = finite_size(layer(scores=Linear()))
    assert size.loss == 0
    assert size.gain < 1e-4


def test_spread_is_diluted_by_heads_and_by_distinct_keys_in_a_sum():
    one = finite_size(layer()).spread
    assert finite_size(layer(n_heads=4)).spread == pytest.approx(one / 4)
    assert finite_size(layer(n_heads=4, output="head-sum")).spread == pytest.approx(one / 4)
    assert finite_size(layer(n_heads=4, output="head-sum", n_kv_heads=1)).spread == pytest.approx(one)


@pytest.mark.parametrize("beta", [0.01, 1, 3.5, 6, 20])
@pytest.mark.parametrize("sizes", [(2, 1), (512, 64)])
def test_effects_are_finite_everywhere(beta, sizes):
    size = finite_size(layer(n_tokens=sizes[0], d_key=sizes[1], beta=beta))
    assert all(math.isfinite(value) and value >= 0 for value in (size.loss, size.gain, size.spread))
    assert size.loss <= 1
