"""Where few tokens dominate each row of softmax."""

import pytest
import sympy

import freeattn
from freeattn.model.dominated_rows import reliable_beta

SIZES = {"n_tokens": 512, "d_model": 768, "n_heads": 12, "d_key": 64, "d_value": 64}


def test_reliable_beta():
    assert reliable_beta(512) == pytest.approx(1.2488, abs=1e-4)


def test_dominated_rows():
    assert freeattn.Attention(**SIZES, beta=1.24).dominated_rows is None
    hot = freeattn.Attention(**SIZES, beta=1.25)
    text = "beta = 1.25 is above sqrt(log n)/2 = 1.249 at n_tokens = 512: few tokens dominate each row"
    assert str(hot.dominated_rows) == str(hot.with_finite_size().dominated_rows) == text
    assert hot.dominated_rows.warning.startswith(f"{text}; the law of the limit is off there")
    assert hot.with_finite_size().dominated_rows.warning.startswith(f"{text}; the law at finite size has their mean")
    assert hot.replace(scores="relu").dominated_rows is None
    assert hot.replace(beta=sympy.Symbol("beta", positive=True)).dominated_rows is None
    assert freeattn.Attention.from_ratios(1, 1, 1, beta=3).dominated_rows is None


def test_the_ratio_is_that_of_the_means():
    hot = freeattn.Attention(**SIZES, beta=2)
    ratio = freeattn.law(hot, finite_size=True).mean / freeattn.law(hot).mean
    assert hot.dominated_rows.theta_ratio == pytest.approx(ratio, rel=1e-6)
    assert "expect about 0.42 times its mean" in hot.dominated_rows.warning
    gaussian = hot.replace(inputs="gaussian").dominated_rows
    assert gaussian.theta_ratio == hot.dominated_rows.theta_ratio
    assert "expect about 0.42 times its theta_1" in gaussian.warning  # the mean has a part with theta_2


def test_one_token_for_each_row():
    lost = freeattn.Attention(**SIZES, beta=20).dominated_rows
    assert lost.theta_ratio == 0
    assert "expect less than 0.002 times its mean" in lost.warning
