"""Condition numbers, effective ranks and the leading singular value: closed forms, and simulated attention."""

import math
from fractions import Fraction

import numpy as np
import pytest

import freeattn as fa
from freeattn.errors import InputError, NotCoveredError
from freeattn.predict import (
    attention_stable_rank,
    condition_number,
    entropy_rank,
    leading_singular_value,
    parameter_count,
    participation_ratio,
    rank_fraction,
    spike_gap,
    stable_rank,
    summary,
)
from freeattn.theory.transforms import FreePoisson

SIZED = fa.Attention(n_tokens=4096, d_model=4096, n_heads=128, d_key=64, d_value=64, d_out=8192)


def test_marchenko_pastur():
    """π_4 has edges 1 and 9, m₂ = 20 and mean 4; π_{1/2} has an atom of 1/2."""
    law = fa.law(FreePoisson(4))
    assert condition_number(law) == pytest.approx(3, rel=1e-14)
    assert stable_rank(law) == pytest.approx(4 / 9, rel=1e-14)
    assert participation_ratio(law) == pytest.approx(16 / 20, rel=1e-14)
    narrow = fa.law(FreePoisson(Fraction(1, 2)))
    assert rank_fraction(narrow) == Fraction(1, 2)
    assert condition_number(narrow) == pytest.approx((math.sqrt(2) + 1) / (math.sqrt(2) - 1), rel=1e-13)


def test_entropy_of_a_square_matrix():
    """∫ x ln x dMP_1 = 1/2: the mean entropy of random states (D. N. Page, Phys. Rev. Lett. 71, 1993)."""
    assert entropy_rank(fa.law(FreePoisson(1))) == pytest.approx(math.exp(-0.5), rel=1e-12)


def test_a_hard_edge_has_no_condition_number():
    law = fa.law(SIZED.replace(n_heads=64))
    assert condition_number(law) == math.inf
    assert rank_fraction(law) == 1


def test_units_do_not_matter():
    law = fa.law(SIZED)
    for number in (condition_number, stable_rank, participation_ratio, entropy_rank, rank_fraction):
        assert number(law.normalized()) == pytest.approx(number(law), rel=1e-12)


def test_gap_of_plain_attention():
    """n/(θ₁ x₊)."""
    law = fa.law(SIZED)
    right = law.normalized().edges[-1][1]
    assert spike_gap(law) == pytest.approx(4096 / ((math.e - 1) * right), rel=1e-13)
    assert leading_singular_value(SIZED) == pytest.approx(math.sqrt(8192))
    ratios = fa.law(fa.Attention.from_ratios(2, 2, 2, n_heads=128))
    assert spike_gap(ratios, n_tokens=4096) == pytest.approx(spike_gap(law), rel=1e-12)


def test_what_has_no_gap():
    law = fa.law(SIZED)
    with pytest.raises(InputError, match="not divided by its mean"):
        spike_gap(law.normalized())
    with pytest.raises(InputError, match="n_tokens = 5"):
        spike_gap(law, n_tokens=5)
    with pytest.raises(InputError, match="law = "):
        spike_gap(fa.law(FreePoisson(2)), n_tokens=5)
    with pytest.raises(InputError, match="n_tokens = None"):
        leading_singular_value(fa.Attention.from_ratios(2, 2, 2, n_heads=8))
    with pytest.raises(NotCoveredError, match="rows do not sum to one"):
        leading_singular_value(SIZED.replace(scores="relu"))
    with pytest.raises(NotCoveredError, match="built from the keys"):
        leading_singular_value(SIZED.replace(tie="key-value-output", d_out=None))
    with pytest.raises(NotCoveredError, match="residual"):
        leading_singular_value(SIZED.replace(residual=1, d_out=None))


def test_stable_rank_of_attention_that_is_not_centered():
    spec = fa.Attention(n_tokens=64, d_model=64, n_heads=2, d_key=32, output="attention", beta=Fraction(1, 2))
    assert attention_stable_rank(spec) == pytest.approx(math.exp(0.25), rel=1e-15)
    assert attention_stable_rank(spec.replace(output="head-sum")) == pytest.approx(1 + (math.exp(0.25) - 1) / 2)
    with pytest.raises(InputError, match="output = 'mha'"):
        attention_stable_rank(SIZED)


def test_parameters():
    assert parameter_count(SIZED) == 4096 * 8192 * 3 + 8192 * 8192
    assert parameter_count(SIZED.replace(n_kv_heads=1)) == 4096 * (8192 + 128) + 8192 * 8192
    assert parameter_count(SIZED.replace(tie="key-value")) == 4096 * 8192 * 2 + 8192 * 8192
    assert parameter_count(SIZED.replace(latent=fa.Latent(512))) == (
        4096 * 8192 + 4096 * 512 + 512 * 8192 * 2 + 8192 * 8192
    )
    heads = [fa.Heads(count=2, d_key=16, d_value=8), fa.Heads(count=1, d_key=32, d_value=64)]
    unequal = fa.Attention(n_tokens=64, d_model=64, heads=heads, d_out=64)
    assert parameter_count(unequal) == 64 * 64 * 2 + 64 * 80 + 80 * 64
    deepseek = fa.architecture("deepseek-v2-lite", n_tokens=1024)  # 16 heads, 128 + 64 | 128, rank 512, no query latent
    assert parameter_count(deepseek) == 2048 * (16 * 192 + 512 + 64) + 512 * 16 * (128 + 128) + 16 * 128 * 2048
    assert parameter_count(fa.Attention.from_ratios(1, 1, 1)) == 4  # in units of n_tokens²


def test_summary_leaves_out_what_is_not_there():
    found = summary(fa.law(FreePoisson(Fraction(1, 2))), level=0.3)
    assert [name for name, value in found.items() if value is None] == [
        "n_tokens", "gamma_key", "gamma_value", "gamma_out", "beta", "parameters", "ridge_error", "arrival_time",
        "spike_gap",
    ]
    full = summary(fa.law(SIZED))
    assert None not in full.values()
    assert full["spike_gap"] == pytest.approx(spike_gap(fa.law(SIZED)))


@pytest.mark.slow
def test_simulated_attention():
    """Softmax at n = 1000, not centered: s₁/√d_O near 1, the gap near n/(θ₁x₊), and the stable rank e^{β²}."""
    n, heads, width, d_out = 1000, 8, 250, 2000
    spec = fa.Attention(n_tokens=n, d_model=n, n_heads=heads, d_key=width, d_value=width, d_out=d_out)
    draws = np.random.default_rng(5)
    ratios, gaps, ranks, formula = [], [], [], []
    for _ in range(3):
        values, first = [], None
        for _ in range(heads):
            q, k, v = (draws.standard_normal((n, width)) for _ in range(3))
            scores = np.exp(q @ k.T / math.sqrt(width))
            matrix = scores / scores.sum(axis=1, keepdims=True)
            first = matrix if first is None else first
            values.append((matrix @ v, v))
        out = draws.standard_normal((heads * width, d_out)) / math.sqrt(heads * width)
        singular = np.linalg.svd(np.hstack([av for av, _ in values]) @ out, compute_uv=False)
        total = np.hstack([v for _, v in values]).sum(axis=0) @ out
        formula.append(singular[0] / math.sqrt(d_out) - np.linalg.norm(total) / math.sqrt(n * d_out))
        ratios.append(singular[0] / leading_singular_value(spec))
        gaps.append((singular[0] / singular[1]) ** 2)
        ranks.append((first**2).sum() / np.linalg.norm(first, 2) ** 2)
    assert np.abs(formula).max() < 0.01
    assert np.mean(ratios) == pytest.approx(1, abs=0.03)
    assert np.mean(gaps) == pytest.approx(spike_gap(fa.law(spec)), rel=0.1)
    attention = fa.Attention(n_tokens=n, d_model=n, n_heads=heads, d_key=width, output="attention")
    assert np.mean(ranks) == pytest.approx(attention_stable_rank(attention), rel=0.03)
