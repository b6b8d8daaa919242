"""The law at finite size against simulated softmax, next to the law of the limit."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

import freeattn as fa
from freeattn.evidence.finite_size import finite_size


def layer(**changes) -> fa.Attention:
    fields = {"n_tokens": 64, "d_model": 64, "n_heads": 2, "d_key": 32, "output": "attention", "beta": Fraction(3, 2)}
    return fa.Attention(**{**fields, **changes})


def test_verification_has_both_laws():
    found = fa.verify(layer(), draws=3, finite_size=True)
    plain = fa.verify(layer(), draws=3)
    assert found.spec.finite_size
    for one, other in zip(found.statistics, plain.statistics, strict=True):
        if other.equivalent is None:  # between softmax and equivalent: no law to compare
            assert one.limit is None
            continue
        assert one.limit.mean == other.softmax.mean  # the same draws of softmax
        assert one.to_dict()["softmax_to_limit"]["mean"] == other.softmax.mean
    mean, before = (next(s for s in one.statistics if s.name == "moment_1") for one in (found, plain))
    assert mean.law < before.law
    assert abs(mean.softmax.mean) < abs(before.softmax.mean) / 2
    assert abs(mean.equivalent.mean) <= mean.floor.value  # the equivalent has the θ's of rows too
    assert "limit" in str(found).splitlines()[0]
    assert "limit" not in str(plain).splitlines()[0]
    assert {"limit", "limit_low", "limit_high"} <= set(found.rows()[0])
    assert "softmax_to_limit" not in plain.statistics[0].to_dict()


def test_warning_speaks_of_the_shape():
    found = fa.verify(layer(), draws=2, finite_size=True)
    assert any("the law at finite size has their mean, but softmax has" in warning for warning in found.warnings)
    assert not any("below the law" in warning for warning in found.warnings)


def test_nothing_is_lost_against_the_law_at_finite_size():
    plain, dressed = finite_size(layer()), finite_size(layer().with_finite_size())
    assert plain.loss > 0.3
    assert dressed.loss == 0
    assert (dressed.gain, dressed.spread) == (plain.gain, plain.spread)
    assert finite_size(layer(beta=5).with_finite_size()).loss == 0


def test_predictions_take_the_law():
    """The loss of gradient flow, ∫ e^{−2tx} dν of the law of mean one, by an integral over the density."""
    law = fa.law(layer(output="mha", d_value=32, d_out=64), finite_size=True)
    expected = law.normalized().integrate(lambda x: np.exp(-6 * x))
    assert fa.predict.flow_loss(law, 3.0) == pytest.approx(expected, rel=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize(("beta", "limit_is_low_by"), [(Fraction(3, 2), 0.07), (2, 0.43)])
def test_mean_at_large_beta(beta, limit_is_low_by):
    """n = d = 1024, 4 heads: softmax misses the mean of the limit by more than that, that of rows by less than 4 %."""
    spec = layer(n_tokens=1024, d_model=1024, n_heads=4, d_key=256, beta=beta)
    mean = np.mean([fa.sample(spec, seed).softmax.mean() for seed in range(5)])
    assert mean / fa.law(spec).mean - 1 < -limit_is_low_by
    assert abs(mean / fa.law(spec, finite_size=True).mean - 1) < 0.04
