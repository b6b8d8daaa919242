"""Every preset, every output, both ties: the closed law and the Dyson equation of the words are one law."""

from __future__ import annotations

import pytest

import freeattn as fa
from freeattn.numerics import agreement
from freeattn.numerics.agreement import routes_agree

OUTPUTS = ("mha", "values", "attention", "head-sum")


def layers(preset):
    """The layers of one preset with at most d_model tokens that have a closed law."""
    tokens = min(preset.n_tokens, preset.d_model)
    for output in OUTPUTS:
        for tie in ("none", "key-value"):
            if tie == "key-value" and preset.d_key != preset.d_value:
                continue
            changes = {} if output in ("mha", "values") else {"d_value": None}
            changes |= {} if output == "mha" else {"d_out": None}
            yield fa.architecture(preset.name, n_tokens=tokens, output=output, tie=tie, **changes)


@pytest.mark.slow
@pytest.mark.parametrize("preset", [p for p in fa.architectures() if p.mla is None], ids=lambda preset: preset.name)
def test_both_routes_of_every_preset(preset):
    specs = [spec for spec in layers(preset) if spec.covered_by_transforms]
    assert specs
    assert max(routes_agree(spec) for spec in specs) < 1e-10


@pytest.mark.parametrize("output", OUTPUTS)
def test_both_routes_of_one_preset(output):
    changes = {} if output in ("mha", "values") else {"d_value": None}
    changes |= {} if output == "mha" else {"d_out": None}
    spec = fa.architecture("bert-base", n_tokens=512, output=output, **changes)
    assert routes_agree(spec) < 1e-12


def test_a_difference_is_an_error(monkeypatch):
    monkeypatch.setattr(agreement, "AGREEMENT", 1e-20)
    with pytest.raises(fa.errors.BranchError, match="two routes differ"):
        fa.law(fa.architecture("bert-base", n_tokens=512)).check()
