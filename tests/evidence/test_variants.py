"""Every variant of a layer against its law: Gaussian matrices of moderate size, and simulated softmax.

Nothing is clipped: at β = 4/5 single rows do not dominate, and moments are those of all eigenvalues.
"""

from __future__ import annotations

import numpy as np
import pytest
from variants import LAYERS, Law, N, layer

from freeattn.evidence.sampling import sample
from freeattn.model.architectures import architecture
from freeattn.model.attention import Attention
from freeattn.numerics.limiting import law

POINTS = np.array([0.2 + 0.5j, 1 + 0.7j, 2.5 + 1j])  # of the resolvent, over the mean
DRAWS = 3


def deviations(spectra, law) -> tuple[np.ndarray, np.ndarray]:
    """tr(M Mᵀ − z)⁻¹ over m(z), minus one, at three points; the first two moments over those of the law, minus one."""
    moments = law.moments(2)
    z = moments[0] * POINTS
    traces = np.mean([np.mean(1 / (values[:, None] - z), axis=0) for values in spectra], axis=0)
    found = np.mean([[np.mean(values**k) for k in (1, 2)] for values in spectra], axis=0)
    return np.abs(traces / law.stieltjes(z) - 1), found / moments - 1


@pytest.mark.slow
@pytest.mark.parametrize("name", LAYERS)
def test_simulated_layers(name):
    """Softmax within 1 % at three points, 1 % in the mean and 3 % in the second moment; its equivalent nearer."""
    drawn, law_of_words = [sample(layer(name), seed) for seed in range(DRAWS)], Law(layer(name))
    for attribute, allowed in (("softmax", (0.01, 0.01, 0.03)), ("equivalent", (0.004, 0.008, 0.03))):
        resolvent, moments = deviations([getattr(one, attribute) for one in drawn], law_of_words)
        assert resolvent.max() < allowed[0]
        assert abs(moments[0]) < allowed[1]
        assert abs(moments[1]) < allowed[2]


@pytest.mark.parametrize("name", [
    pytest.param(name, marks=pytest.mark.slow if "covariance" in name else ()) for name in LAYERS
])
def test_a_law_of_another_variant_would_be_seen(name):
    """Without its variant, a layer has a law that differs by more than the allowances.

    Alone, an output map tied to keys is the exception: independent values between them hide the tie.
    """
    spec = layer(name)
    plain = {
        "n_tokens": N, "d_model": spec.d_model, "n_heads": spec.n_heads, "d_key": spec.d_key or 600,
        "d_value": spec.d_value or 500, "d_out": spec.d_out, "beta": spec.beta, "output": spec.output,
    }
    other, own = law(Attention(**{**plain, "d_model": max(spec.d_model, N)})).moments(2), Law(spec).moments(2)
    gaps = [abs(float(a) / b - 1) for a, b in zip(other, own, strict=True)]
    if name in ("output-key", "output-key, square"):
        assert max(gaps) < 1e-12
    else:
        assert gaps[0] > 0.02 or gaps[1] > 0.06


def plain_heads(spec: Attention) -> Attention:
    """The same widths with keys and values straight from the tokens."""
    return spec.replace(latent=None, query_latent=None, position_width=0)


@pytest.mark.slow
@pytest.mark.parametrize(
    "spec", [layer("latents and positions"), architecture("deepseek-v2-lite", n_tokens=1024, beta=0.5)],
    ids=["three heads", "deepseek-v2-lite"],
)
def test_latents_and_positions_are_not_plain_heads(spec):
    """Simulated softmax agrees with the law of its own words and rejects that of plain heads, at 3 standard errors."""
    spectra = [sample(spec, seed).softmax for seed in range(4)]
    resolvent, moments = deviations(spectra, Law(spec))
    assert resolvent.max() < 0.01
    assert abs(moments[0]) < 0.01
    wrong = law(plain_heads(spec))
    z = float(wrong.mean) * POINTS
    traces = np.array([np.mean(1 / (values[:, None] - z), axis=0) for values in spectra])
    error = np.abs(traces - traces.mean(axis=0)).std(axis=0, ddof=1) / np.sqrt(len(spectra))
    assert np.all(np.abs(traces.mean(axis=0) - wrong.stieltjes(z)) > 3 * error)
    means = np.array([values.mean() for values in spectra])
    assert abs(means.mean() - float(wrong.mean)) > 3 * means.std(ddof=1) / np.sqrt(len(means))


@pytest.mark.parametrize("name", ["residual", "residual, gaussian input", "unequal heads", "latents and positions"])
def test_the_law_of_a_layer_has_the_moments_of_its_words(name):
    """θ₁ scales the law of most layers; not where tokens stand beside the attention branch, or β differs."""
    np.testing.assert_allclose([float(m) for m in law(layer(name)).moments(2)], Law(layer(name)).moments(2), rtol=1e-9)
