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
    assert hot.dominated_rows.startswith("beta = 1.25 is above sqrt(log n)/2 = 1.249 at n_tokens = 512")
    assert hot.with_finite_size().dominated_rows == hot.dominated_rows
    assert hot.replace(scores="relu").dominated_rows is None
    assert hot.replace(beta=sympy.Symbol("beta", positive=True)).dominated_rows is None
    assert freeattn.Attention.from_ratios(1, 1, 1, beta=3).dominated_rows is None
