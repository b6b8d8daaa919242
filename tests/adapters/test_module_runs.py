"""Modules as they are run: nothing of them changes, seeds decide, and what cannot be run is refused."""

import json
import re
from pathlib import Path

import numpy as np
import pytest
from modules import (
    grouped,
    multihead,
    tokens,
    torch,
)

import freeattn as fa

pytestmark = pytest.mark.slow


def test_biases_of_keys_values_and_output_change_nothing():
    module = multihead(96)
    plain = fa.verify_module(module, 64, draws=1).spectra[0]
    with torch.no_grad():
        module.in_proj_bias[96:].normal_()
        module.out_proj.bias.normal_()
    np.testing.assert_allclose(fa.verify_module(module, 64, draws=1).spectra[0], plain, rtol=1e-6, atol=1e-9)
    with torch.no_grad():
        module.in_proj_bias[:96].normal_()
    assert np.abs(fa.verify_module(module, 64, draws=1).spectra[0] - plain).max() > 0.01 * plain.max()


def test_the_module_and_torch_stay_as_they_were():
    module = multihead(64).train()
    before = {name: value.clone() for name, value in module.state_dict().items()}
    state = torch.get_rng_state()
    fa.verify_module(module, 32, reset="own", draws=2)
    assert torch.equal(torch.get_rng_state(), state)
    assert module.training
    assert all(torch.equal(before[name], value) for name, value in module.state_dict().items())
    assert module.in_proj_weight.dtype == torch.float32
    decoder = grouped("LlamaAttention")
    decoder.config._attn_implementation = "sdpa"
    fa.verify_module(decoder, 32, draws=1)
    assert decoder.config._attn_implementation == "sdpa"
    assert decoder.training


def test_the_seed_decides():
    one, again, other = (fa.verify_module(multihead(64), 32, reset="own", draws=2, seed=s) for s in (1, 1, 2))
    assert all(np.array_equal(a, b) for a, b in zip(one.spectra, again.spectra, strict=True))
    assert not np.array_equal(one.spectra[0], other.spectra[0])
    assert not np.array_equal(one.spectra[0], one.spectra[1])
    assert one.to_dict() == again.to_dict()


def test_the_report():
    seen = []
    result = fa.verify_module(
        multihead(96), 96, reset="own", draws=2, progress=lambda done, total: seen.append((done, total))
    )
    assert seen == [(1, 2), (2, 2)]
    record = json.loads(json.dumps(result.to_dict()))
    assert (record["module"], record["reset"], record["centering"]) == ("MultiheadAttention", "own", "mean token")
    assert {"relative_w1_to_law", "ks_to_law", "moment_1", "outliers"} <= {s["name"] for s in record["statistics"]}
    assert str(result).endswith("checks passed")
    assert result.passed
    assert all(len(values) == 96 and (values >= 0).all() for values in result.spectra)


def test_given_tokens():
    X = tokens(96, 96)
    module = multihead(96)
    result = fa.verify_module(module, inputs=X)
    assert result.draws == 1
    assert result.spec.inputs.name == "gaussian"
    assert "same mean square" in " ".join(result.warnings)
    double = fa.verify_module(module, inputs=2 * X)
    assert float(double.spec.beta / result.spec.beta) == pytest.approx(4)
    assert float(double.spec.value_scale / result.spec.value_scale) == pytest.approx(2)
    frame = np.linalg.qr(X)[0].T[:64] * 96**0.5
    assert fa.verify_module(module, inputs=torch.from_numpy(frame)).spec.inputs.name == "orthogonal"


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({}, "n_tokens"),
        ({"n_tokens": 0}, "n_tokens"),
        ({"n_tokens": 16, "inputs": "uniform"}, "inputs"),
        ({"n_tokens": 128, "inputs": "orthogonal"}, "n_tokens"),
        ({"inputs": tokens(8, 65)}, "inputs"),
        ({"inputs": np.full((8, 64), np.nan)}, "inputs"),
        ({"inputs": np.zeros((8, 64))}, "inputs"),
        ({"inputs": tokens(8, 64), "n_tokens": 9}, "n_tokens"),
        ({"inputs": tokens(8, 64), "draws": 2}, "draws"),
        ({"n_tokens": 16, "draws": 0}, "draws"),
        ({"n_tokens": 16, "seed": -1}, "seed"),
        ({"n_tokens": 16, "seed": np.random.SeedSequence(0)}, "seed"),
        ({"n_tokens": 16, "reset": "mine"}, "reset"),
        ({"n_tokens": 16, "causal": "yes"}, "causal"),
        ({"n_tokens": 16, "rotary": True}, "rotary"),
    ],
)
def test_bad_arguments(fields, field):
    with pytest.raises(fa.InputError) as error:
        fa.verify_module(multihead(64), **fields)
    assert error.value.field == field




def test_examples_of_the_documentation(tmp_path, monkeypatch, capsys):
    """Blocks marked "python torch" of docs/modules.md; a comment behind `print(…)` is what it prints."""
    text = (Path(__file__).parents[2] / "docs" / "modules.md").read_text(encoding="utf-8")
    blocks = re.findall(r"^```python torch\n(.*?)^```$", text, flags=re.MULTILINE | re.DOTALL)
    assert blocks
    monkeypatch.chdir(tmp_path)
    torch.manual_seed(0)
    names = {"__name__": "__main__"}
    for block in blocks:
        exec(compile(block, "modules.md", "exec"), names)
        assert re.findall(r"^print\(.*\)  # (.*)$", block, flags=re.MULTILINE) == capsys.readouterr().out.splitlines()


def test_verify_takes_modules_too():
    module = multihead(64)
    found = fa.verify(module, n_tokens=32, draws=2, seed=1, causal=True)
    expected = fa.verify_module(module, 32, draws=2, seed=1, causal=True)
    assert found.to_dict() == expected.to_dict()
    assert fa.verify(module, n_tokens=32).draws == 5
    spec = fa.from_module(module, n_tokens=32, inputs="orthogonal")
    assert fa.verify(spec, 1).draws == 1
    assert fa.verify(spec.replace(n_tokens=16), workers=1).draws == 10


@pytest.mark.parametrize(("fields", "field"), [
    ({"law": 1}, "law"), ({"sizes": {}}, "sizes"), ({"of": "gram"}, "of"), ({"workers": 2}, "workers"),
    ({"workers": None}, "workers"),
    ({"store": "a.db"}, "store"), ({"finite_size": True}, "finite_size"), ({}, "n_tokens"),
])
def test_arguments_of_layers_are_refused_for_modules(fields, field):
    with pytest.raises(fa.InputError) as error:
        fa.verify(multihead(64), **({"n_tokens": 32, **fields} if fields else {}))
    assert error.value.field == field


@pytest.mark.parametrize("field", ["n_tokens", "inputs", "reset", "causal", "rotary"])
def test_arguments_of_modules_are_refused_for_layers(field):
    spec = fa.Attention(n_tokens=16, d_model=16, n_heads=1, d_key=16, output="attention")
    with pytest.raises(fa.InputError, match=f"{field} = .*nothing, unless the model is a module of torch"):
        fa.verify(spec, 1, **{field: True})
