"""The report of a verification: passes for the right law, fails for a wrong one, and says why."""

from __future__ import annotations

import json
import math
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import stats

from freeattn.errors import InputError
from freeattn.evidence.published import TABLE_D2, published_agreement, upper_limit
from freeattn.evidence.verify import Estimate, verify
from freeattn.model.attention import Attention
from freeattn.numerics.limiting import law

SMALL = Attention(n_tokens=192, d_model=256, n_heads=4, d_key=64, d_value=64, d_out=144)
NAMES = [
    "relative_w1_to_law", "relative_w1_to_equivalent", "ks_to_law", "ks_to_equivalent", "moment_1",
    "bulk_moment_2", "bulk_moment_3", "bulk_moment_4", "moment_2", "moment_3", "moment_4",
    "mass_at_zero", "quantile_01", "quantile_99", "outliers",
]
NOT_JUDGED = ("moment_2", "moment_3", "moment_4")  # heavy tails: one row on one token can double them


class Dilated:
    """The law of t·x."""

    def __init__(self, of, t):
        self.of, self.t, self.mean = of, t, t * of.mean
        self.atoms = [SimpleNamespace(location=t * float(atom.location), weight=atom.weight) for atom in of.atoms]
        self.edges = [(t * left, t * right) for left, right in of.edges]

    def moments(self, k):
        return [self.t ** (order + 1) * float(moment) for order, moment in enumerate(self.of.moments(k))]

    def cdf(self, x):
        return self.of.cdf(np.asarray(x) / self.t)

    def quantile(self, p):
        return self.t * self.of.quantile(p)


@pytest.fixture(scope="module")
def small_law():
    return law(SMALL)


@pytest.fixture(scope="module")
def small(small_law):
    return verify(SMALL, draws=6, seed=1, law=small_law)


def failed(verification):
    return {statistic.name for statistic in verification.statistics if statistic.passed is False}


def test_the_right_law_passes(small):
    assert [statistic.name for statistic in small.statistics] == NAMES
    assert failed(small) == set()
    assert small.passed


@pytest.mark.parametrize("t", [1.1, 1 / 1.1])
def test_a_dilated_law_fails_because_the_equivalent_disagrees(small_law, t):
    wrong = verify(SMALL, draws=6, seed=1, law=Dilated(small_law, t))
    assert not wrong.passed
    assert {"moment_1", "relative_w1_to_law"} <= failed(wrong)
    first = wrong.statistics[NAMES.index("moment_1")]
    assert abs(first.equivalent.mean) > first.floor.value
    assert first.excess <= first.allowance.value


def test_the_law_of_another_layer_fails(small_law):
    other = SMALL.replace(d_key=16, d_value=32)
    assert "mass_at_zero" in failed(verify(other, draws=2, law=small_law))


def test_too_large_a_beta_fails_because_softmax_disagrees():
    hot = SMALL.replace(beta=2)
    verification = verify(hot, draws=3, seed=1)
    first = verification.statistics[NAMES.index("moment_1")]
    assert not first.passed
    assert abs(first.equivalent.mean) <= first.floor.value
    assert any("beta = 2 is above sqrt(log n)/2 = 1.146" in text for text in verification.warnings)
    assert any("allowances stop at 10%" in text for text in verification.warnings)


def test_the_beta_warning_is_for_softmax_only():
    linear = verify(SMALL.replace(beta=2, scores="linear"), draws=2)
    assert linear.warnings == ()


def test_default_law_is_that_of_the_specification(small):
    again = verify(SMALL, draws=6, seed=1)
    assert again.to_dict() == small.to_dict()


def test_report_is_json(small):
    record = json.loads(json.dumps(small.to_dict(), allow_nan=False))
    assert record["passed"] is True
    assert (record["draws"], record["seed"], record["confidence"]) == (6, 1, 0.95)
    assert record["spec"] == SMALL.to_dict()
    assert [statistic["name"] for statistic in record["statistics"]] == NAMES
    for statistic in record["statistics"]:
        low, high = statistic["softmax"]["interval"]
        assert low <= statistic["softmax"]["mean"] <= high
        assert statistic["n_tokens"] == 192
        if statistic["name"] in NOT_JUDGED:
            assert statistic["passed"] is statistic["allowance"] is statistic["floor"] is None
            continue
        assert statistic["allowance"]["value"] > 0
        assert statistic["allowance"]["reason"]
        between = "to_equivalent" in statistic["name"]
        assert (statistic["equivalent"] is None) == (statistic["floor"] is None) == between


def test_rows_are_flat_and_alike(small):
    rows = small.rows()
    assert [row["statistic"] for row in rows] == NAMES
    assert len({tuple(row) for row in rows}) == 1
    assert all(value is None or isinstance(value, (str, int, float)) for row in rows for value in row.values())


def test_samples_are_kept_and_draws_have_their_own_seeds(small):
    assert len(small.samples) == 6
    assert len({one.softmax[-1] for one in small.samples}) == 6
    shorter = verify(SMALL, draws=2, seed=1, law=law(SMALL))
    for one, other in zip(shorter.samples, small.samples, strict=False):
        assert np.array_equal(one.softmax, other.softmax)


def test_statistics_are_means_over_the_samples(small, small_law):
    mean = small.statistics[NAMES.index("moment_1")]
    ratios = [one.softmax.mean() / small_law.mean - 1 for one in small.samples]
    assert mean.softmax.mean == pytest.approx(np.mean(ratios))
    low, high = stats.t.interval(0.95, 5, np.mean(ratios), stats.sem(ratios))
    assert mean.softmax.interval == pytest.approx((low, high))
    assert mean.law == pytest.approx(small_law.mean)


def test_one_draw_has_no_interval(small_law):
    single = verify(SMALL, draws=1, law=small_law)
    assert single.warnings == ("one draw gives no confidence interval",)
    assert all(statistic.softmax.interval is None for statistic in single.statistics)
    assert single.to_dict()["statistics"][0]["softmax"]["interval"] is None
    assert Estimate.of([2.0]) == Estimate(2.0, None)


def test_progress_is_told_after_each_draw(small_law, capsys):
    calls = []
    verify(SMALL, draws=3, law=small_law, progress=lambda done, total: calls.append((done, total)))
    assert calls == [(1, 3), (2, 3), (3, 3)]
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize("draws", [0, -1, True, 2.0, None])
def test_draws_are_a_positive_integer(draws):
    with pytest.raises(InputError, match=r"draws = .* a positive integer"):
        verify(SMALL, draws=draws)


@pytest.mark.parametrize("seed", [-1, 0.5, np.random.SeedSequence(0)])
def test_the_seed_is_an_integer(seed):
    with pytest.raises(InputError, match="seed"):
        verify(SMALL, seed=seed)


def test_a_layer_without_sizes_is_refused_before_any_work():
    with pytest.raises(InputError, match="with_sizes"):
        verify(Attention.from_ratios(1, 1, 1))


# Published measurements -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("row", TABLE_D2, ids=lambda row: row.architecture)
def test_published_rows_find_themselves_and_their_mean(row):
    spec = row.spec()
    assert published_agreement(spec) is row
    tied = spec.n_tokens / spec.d_key if row.tie == "key-value" else 0
    assert row.limit_mean == pytest.approx(spec.d_out / spec.n_tokens * (math.e - 1 + tied), rel=1e-8)


@pytest.mark.parametrize("change", [{"beta": 2}, {"n_tokens": 511}, {"scores": "relu"}, {"value_scale": 2}])
def test_other_layers_have_no_published_row(change):
    assert published_agreement(TABLE_D2[0].spec().replace(**change)) is None


def test_a_repetition_may_differ_by_the_half_width_of_a_difference():
    assert upper_limit(1.0, 0.1, 10) == pytest.approx(1 + 0.2 * math.sqrt(2))


@pytest.mark.slow
def test_bert_base_repeats_its_published_row():
    """Ten draws at n = 512; published: relative W1 1.66 ± 0.23 %, KS 0.0109 ± 0.0010."""
    row = TABLE_D2[0]
    verification = verify(row.spec(), draws=10, seed=0)
    assert verification.passed
    w1 = verification.statistics[NAMES.index("relative_w1_to_equivalent")]
    assert "Table D.2" in w1.allowance.reason
    assert abs(w1.softmax.mean - row.relative_w1) < upper_limit(0, row.relative_w1_half_width, 10)
    ks = verification.statistics[NAMES.index("ks_to_equivalent")]
    assert abs(ks.softmax.mean - row.ks) < upper_limit(0, row.ks_half_width, 10)


LAYERS = [
    {"n_tokens": 400, "d_model": 500, "n_heads": 4, "d_key": 100, "d_value": 60, "d_out": 300, "n_kv_heads": 1},
    {"n_tokens": 400, "d_model": 500, "n_heads": 4, "d_key": 100, "d_out": 300, "tie": "key-value"},
    {"n_tokens": 400, "d_model": 500, "n_heads": 4, "d_key": 60, "output": "values", "tie": "key-value"},
    {"n_tokens": 512, "d_model": 512, "n_heads": 1, "d_key": 512, "output": "attention"},
    {"n_tokens": 512, "d_model": 512, "n_heads": 4, "d_key": 64, "output": "attention"},
    {"n_tokens": 512, "d_model": 512, "n_heads": 4, "d_key": 64, "output": "head-sum"},
    {"n_tokens": 512, "d_model": 512, "n_heads": 4, "d_key": 64, "output": "head-sum", "n_kv_heads": 1},
    {"n_tokens": 512, "d_model": 512, "n_heads": 4, "d_key": 64, "d_value": 64, "output": "values"},
    {"n_tokens": 512, "d_model": 512, "n_heads": 1, "d_key": 64, "d_value": 512},
    {"n_tokens": 512, "d_model": 768, "n_heads": 12, "d_key": 64, "d_value": 64, "beta": 0.25},
    {"n_tokens": 512, "d_model": 768, "n_heads": 12, "d_key": 64, "d_value": 64, "beta": 1.25},
    {"n_tokens": 512, "d_model": 768, "n_heads": 12, "d_key": 64, "d_value": 64, "scores": "relu"},
    {"n_tokens": 512, "d_model": 768, "n_heads": 12, "d_key": 64, "d_value": 64, "scores": "sigmoid"},
]


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("fields", LAYERS, ids=lambda fields: "-".join(map(str, fields.values())))
def test_layers_of_every_kind_agree_with_their_law(fields, seed):
    assert failed(verify(Attention(**fields), draws=4, seed=seed)) == set()
