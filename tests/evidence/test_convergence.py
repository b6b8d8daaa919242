"""Distances against n: scaling, fitted powers, the test of the simulation, losses against β."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

import freeattn as fa
from freeattn.errors import InputError
from freeattn.evidence.convergence import draw_at_size
from freeattn.evidence.rates import fitted_rate
from freeattn.evidence.scaling import scaled
from freeattn.evidence.score_identity import exact_score_mean, identity_applies, score_identities
from freeattn.model.dominated_rows import few_tokens_loss


def layer(**changes) -> fa.Attention:
    fields = {"n_tokens": 64, "d_model": 64, "n_heads": 2, "d_key": 16, "output": "attention"}
    return fa.Attention(**{**fields, **changes})


# Scaling ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "spec",
    [
        fa.architecture("bert-base", n_tokens=512),
        fa.architecture("deepseek-v2-lite", n_tokens=1024),
        layer(heads=[fa.Heads(1, 16), fa.Heads(2, 32, beta=2)], n_heads=None, d_key=None),
        layer(n_kv_heads=1, output="values", d_value=8),
    ],
    ids=["bert-base", "deepseek-v2-lite", "unequal heads", "shared"],
)
def test_ratios_stay(spec):
    half = scaled(spec, spec.n_tokens // 2)
    assert half.n_tokens == spec.n_tokens // 2
    for name in ("gamma_key", "gamma_value", "gamma_out", "tokens_per_width", "n_heads", "n_kv_heads", "beta"):
        assert getattr(half, name) == getattr(spec, name), name
    assert scaled(half, spec.n_tokens) == spec
    assert fa.law(half).mean == pytest.approx(fa.law(spec).mean, rel=1e-12)


def test_layers_by_ratios_get_sizes():
    spec = fa.Attention.from_ratios(Fraction(1, 2), output="attention", n_heads=2)
    assert scaled(spec, 64) == spec.with_sizes(64)


def test_widths_are_integers():
    with pytest.raises(InputError, match=r"sizes = 100 .* a multiple of 8, so .*\(d_key would be 25/2\)"):
        scaled(fa.architecture("bert-base", n_tokens=512), 100)


# Rates -----------------------------------------------------------------------------------------------------------


def test_a_power_is_found():
    rate = fitted_rate((10, 100, 1000), [[3 * n**-0.75] * 2 for n in (10, 100, 1000)])
    assert rate.exponent == pytest.approx(0.75)
    assert rate.at(50) == pytest.approx(3 * 50**-0.75)
    assert rate.interval == pytest.approx((0.75, 0.75))


def test_intervals_hold_the_power_as_often_as_they_say():
    """Lognormal scatter about n^{−1}: 95 % of 400 intervals, within four standard deviations of that count."""
    rng, sizes, held = np.random.default_rng(0), (128, 256, 512), 0
    for _ in range(400):
        values = [n**-1.0 * np.exp(0.3 * rng.standard_normal(5)) for n in sizes]
        low, high = fitted_rate(sizes, values).interval
        held += low <= 1 <= high
    assert abs(held - 380) < 4 * math.sqrt(400 * 0.95 * 0.05)


def test_no_rate_of_zeros():
    assert fitted_rate((10, 20), [[0.0, 1.0], [1.0, 1.0]]) is None
    assert fitted_rate((10,), [[1.0, 2.0]]) is None
    assert fitted_rate((10, 20), [[1.0], [0.5]]).interval is None


# The test of the simulation --------------------------------------------------------------------------------------


@pytest.mark.parametrize(("beta", "d_key"), [(1.0, 8), (2.0, 32)])
def test_exact_mean_of_scores(beta, d_key):
    """E e^{βS} over |q|² ~ χ²(d_key), by a sum over its density."""
    x = np.linspace(1e-9, 40 * d_key, 400001)
    log = (d_key / 2 - 1) * np.log(x) - x / 2 - d_key / 2 * math.log(2) - math.lgamma(d_key / 2)
    mean = np.sum(np.exp(log + beta**2 * x / (2 * d_key) - beta**2 / 2)) * (x[1] - x[0])
    assert exact_score_mean(beta, d_key) == pytest.approx(mean, rel=1e-6)


def test_a_wrong_simulation_is_seen():
    spec = layer()
    draws = [draw_at_size(spec, 0, draw)["score_means"] for draw in range(12)]
    (right,), (wrong,) = score_identities(spec, draws, 1), score_identities(spec, [1.3 * one for one in draws], 1)
    assert right.passed
    assert not wrong.passed


@pytest.mark.parametrize(
    "changes", [{"inputs": "gaussian"}, {"d_key": 4}, {"scores": "relu"}, {"latent": fa.Latent(16)}], ids=str
)
def test_where_the_mean_is_not_known(changes):
    assert identity_applies(layer())
    assert identity_applies(layer().with_finite_size())
    assert not identity_applies(layer(**changes))


# The whole -------------------------------------------------------------------------------------------------------


def test_a_small_run(tmp_path):
    found = fa.converge(layer(), (64, 32), draws=3, betas=[Fraction(1, 2), 2], store=tmp_path / "draws.db")
    assert found.sizes == (32, 64)
    assert len(found.distances) == 18
    assert [one.n_tokens for one in found.identities] == [32, 64]
    one = found.distance("relative_w1")
    sample = draw_at_size(scaled(layer(), 64), 0, 1)
    apart = found.distance("relative_w1", "softmax-equivalent").estimates[1].mean
    assert one.estimates[1].mean == pytest.approx(apart, rel=0.5)
    assert sample["softmax"].shape == (64,)
    assert found.distance("relative_w1", "equivalent-law").estimates[1].mean < one.estimates[1].mean
    assert [(loss.beta, loss.n_tokens) for loss in found.losses] == [(0.5, 32), (0.5, 64), (2, 32), (2, 64)]
    last = found.losses[-1]
    assert last.expected == pytest.approx(few_tokens_loss(fa.Softmax(), 2.0, 64))
    assert last.loss.mean == pytest.approx(last.expected, abs=0.1)
    assert last.scaled_beta == pytest.approx(2 / math.sqrt(math.log(64)))
    calls = []
    again = fa.converge(
        layer(), (32, 64), draws=3, betas=[0.5, 2], store=tmp_path / "draws.db",
        progress=lambda done, total: calls.append((done, total)),
    )
    assert calls == [(18, 18)]  # everything was kept
    assert again.to_dict() == found.to_dict()
    assert "relative W1 of softmax to the law ~ n^-" in repr(found)


def test_finite_size_takes_the_law_of_each_size():
    plain = fa.converge(layer(beta=Fraction(3, 2)), (32, 64), draws=3)
    finite = fa.converge(layer(beta=Fraction(3, 2)), (32, 64), draws=3, finite_size=True)
    for before, after in zip(
        plain.distance("moment_1").estimates, finite.distance("moment_1").estimates, strict=True
    ):
        assert after.mean < before.mean


@pytest.mark.parametrize(
    ("arguments", "field"),
    [
        ({"sizes": (64,)}, "sizes"), ({"sizes": (64, 64)}, "sizes"), ({"sizes": 64}, "sizes"),
        ({"sizes": (32, 64.0)}, "sizes"), ({"draws": 1}, "draws"), ({"seed": -1}, "seed"), ({"betas": [0]}, "betas"),
        ({"spec": layer(heads=[fa.Heads(1, 16, beta=2)], n_heads=None, d_key=None), "betas": [1]}, "betas"),
        ({"spec": "bert-base"}, "spec"),
    ],
    ids=str,
)
def test_what_is_not_allowed(arguments, field):
    with pytest.raises(InputError) as caught:
        fa.converge(**{"spec": layer(), "sizes": (32, 64), "draws": 2, **arguments})
    assert caught.value.field == field


def test_unknown_distances():
    found = fa.converge(layer(), (32, 64), draws=2)
    with pytest.raises(InputError, match="one of relative_w1, ks, moment_1"):
        found.distance("w2")


@pytest.mark.slow
def test_distances_fall():
    """Softmax and equivalent approach the law: the 95 % intervals of the rates are above 1/2; the scores are right."""
    found = fa.converge(layer(n_tokens=1024, d_model=1024, n_heads=4, d_key=256), (64, 128, 256, 512), draws=8)
    assert found.passed
    for between in ("softmax-law", "equivalent-law", "softmax-equivalent"):
        assert found.distance("relative_w1", between).rate.interval[0] > 0.5
