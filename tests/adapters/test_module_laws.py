"""The law of the outputs of attention modules."""

import numpy as np
import pytest
from modules import (
    MODULES,
    grouped,
    latent,
    multihead,
    of_transformers,
    transformers,
)

import freeattn as fa
from freeattn.evidence.compare import LawTable, ks_distance

pytestmark = pytest.mark.slow
PLAIN = {"reset": "unit", "causal": False, "rotary": False}


def measured(result, name):
    (found,) = (one for one in result.findings if one.name == name)
    return found.measured.mean


@pytest.mark.parametrize("name", [n for n in MODULES if not n.startswith("Qwen3")])
def test_every_kind_follows_its_law(name):
    """At its library's initialization; latent attention at unit scale. Without mask and rotations."""
    reset = "unit" if name.startswith("Deepseek") else "own"
    result = fa.verify_module(MODULES[name](), 192, **{**PLAIN, "reset": reset}, draws=4)
    assert result.passed, str(result)
    assert measured(result, "relative_w1_to_law") < 0.1


def test_normalized_queries_and_keys_meet_the_law_as_heads_widen():
    """Rows of fixed length give scores with lighter tails than Gaussian ones: the mean is low, by O(1/d_key)."""
    off = [
        measured(fa.verify_module(grouped("Qwen3Attention", 384, head_dim=d), 384, **PLAIN, draws=3), "moment_1")
        for d in (32, 256)
    ]
    assert off[0] < -0.1
    assert off[0] / 2 < off[1] < 0  # few tokens take some 3 % as well, whatever the width


def distances(module, n_tokens, **fields):
    """KS distance of every draw, three seeds of three."""
    found = []
    for seed in range(3):
        result = fa.verify_module(module, n_tokens, seed=seed, draws=3, **fields)
        table = LawTable.of(result.law, n_tokens)
        found += [ks_distance(values, table) for values in result.spectra]
    return np.array(found)


TARGETS = [  # module, tokens, KS of every draw below, of their mean below
    (lambda: multihead(512), 512, {"reset": "own"}, 0.011, 0.009),
    (lambda: multihead(1024), 1024, {"reset": "own"}, 0.006, 0.0045),
    (lambda: of_transformers("BertAttention", transformers.BertConfig()), 512, {"reset": "own"}, 0.013, 0.010),
    (lambda: grouped("LlamaAttention", 1024, head_dim=128), 1024, PLAIN, 0.010, 0.007),
    (lambda: latent("DeepseekV2Attention", 1024), 1024, PLAIN, 0.010, 0.009),
]


@pytest.mark.parametrize(("make", "n_tokens", "fields", "every", "mean"), TARGETS)
def test_distance_to_the_law(make, n_tokens, fields, every, mean):
    ks = distances(make(), n_tokens, **fields)
    assert ks.max() < every
    assert ks.mean() < mean


@pytest.mark.parametrize("change", [{"rotary": True}, {"causal": True}])
def test_positions_and_masks_leave_the_law(change):
    """With Gaussian tokens; what the law does not model is seen."""
    result = fa.verify_module(grouped("LlamaAttention", 1024, head_dim=128), 1024, **{**PLAIN, **change}, draws=2)
    assert not result.passed
    assert measured(result, "relative_w1_to_law") > 0.15
    assert result.warnings


def test_positions_leave_the_law_of_orthogonal_tokens_as_it_is():
    module = grouped("LlamaAttention", 1024, head_dim=128)
    result = fa.verify_module(module, 1024, **{**PLAIN, "rotary": True}, inputs="orthogonal", draws=2)
    assert result.passed
    assert measured(result, "relative_w1_to_law") < 0.035
    assert not result.warnings
