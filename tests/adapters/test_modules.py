"""Attention modules of torch and transformers: what is read, what is run, and the law of their outputs."""

import json
import re
import warnings
from pathlib import Path

import numpy as np
import pytest
from modules import (
    MODULES,
    bert,
    grouped,
    latent,
    multihead,
    of_transformers,
    randomize_biases,
    tokens,
    torch,
    transformers,
)

import freeattn as fa
from freeattn.adapters.module import kind_of, read_module
from freeattn.adapters.module_kind import Behaviour
from freeattn.evidence.compare import LawTable, ks_distance

pytestmark = pytest.mark.slow
SINGLE = 1e-6  # transformers takes the softmax in single precision
PLAIN = {"reset": "unit", "causal": False, "rotary": False}


def measured(result, name):
    (found,) = (one for one in result.findings if one.name == name)
    return found.measured.mean


def run(module, X, causal=False, rotary=False):
    own = module.eval().double()
    with torch.inference_mode():
        part = torch.from_numpy(X)
        return kind_of(own).run(torch, own, (part,) * 3, Behaviour(causal, rotary)).numpy()


def attention(X, query, key, value, output, n_heads, hidden=None):
    """Softmax attention by its definition: weights as features × columns with their biases, keys shared in groups."""
    Q, K, V = (X @ weight + bias for weight, bias in (query, key, value))
    d_key = Q.shape[1] // n_heads
    group = n_heads * d_key // K.shape[1]
    blocks = []
    for head in range(n_heads):
        of = slice(head // group * d_key, (head // group + 1) * d_key)
        scores = Q[:, head * d_key:(head + 1) * d_key] @ K[:, of].T / np.sqrt(d_key)
        if hidden is not None:
            scores = np.where(hidden, -np.inf, scores)
        weights = np.exp(scores - scores.max(axis=1, keepdims=True))
        blocks.append(weights / weights.sum(axis=1, keepdims=True) @ V[:, of])
    found = np.hstack(blocks)
    return found if output is None else found @ output[0] + output[1]


def linear(layer):
    bias = 0.0 if layer.bias is None else layer.bias.detach().double().numpy()
    return layer.weight.detach().double().numpy().T, bias


def parts_of(module):
    """(weight, bias) of queries, keys, values and output, from the module's own parameters."""
    name = type(module).__name__
    if name == "MultiheadAttention":
        weights, biases = module.in_proj_weight.chunk(3), module.in_proj_bias.chunk(3)
        found = [(w.detach().double().numpy().T, b.detach().double().numpy())
                 for w, b in zip(weights, biases, strict=True)]
        return [*found, linear(module.out_proj)]
    if name == "GPT2Attention":
        weights, biases = module.c_attn.weight.chunk(3, 1), module.c_attn.bias.chunk(3)
        found = [(w.detach().double().numpy(), b.detach().double().numpy())
                 for w, b in zip(weights, biases, strict=True)]
        return [*found, (linear(module.c_proj)[0].T, linear(module.c_proj)[1])]
    if hasattr(module, "q_proj"):
        return [linear(part) for part in (module.q_proj, module.k_proj, module.v_proj, module.o_proj)]
    inner = getattr(module, "self", module)
    last = None if inner is module else linear(module.output.dense)
    return [*(linear(part) for part in (inner.query, inner.key, inner.value)), last]


@pytest.mark.parametrize("name", [n for n in MODULES if not n.startswith(("Deepseek", "Qwen3"))])
@pytest.mark.parametrize("causal", [False, True])
def test_the_output_is_that_of_the_modules_weights(name, causal):
    module = MODULES[name]()
    randomize_biases(module)
    X = tokens(24, read_module(module).sizes["d_model"])
    hidden = np.triu(np.ones((24, 24), bool), 1) if causal else None
    module = module.double()
    expected = attention(X, *parts_of(module), read_module(module).sizes["n_heads"], hidden)
    np.testing.assert_allclose(run(module, X, causal), expected, rtol=0, atol=SINGLE * np.abs(expected).max())


@pytest.mark.parametrize("name", ["LlamaAttention", "MistralAttention", "Qwen3Attention", "DeepseekV3Attention"])
def test_the_output_is_that_inside_the_whole_model(name):
    """The first layer's attention in a model of the library: its tokens, positions and mask are those of the model."""
    family = name.removesuffix("Attention")
    fields = {"vocab_size": 50, "num_hidden_layers": 1, "intermediate_size": 32, "hidden_size": 256}
    module = MODULES[name]()
    kept = module.config.to_dict()
    kept.pop("layer_types", None)  # one entry for each layer
    config = type(module.config)(**{**kept, **fields})
    config._attn_implementation = "eager"
    model = getattr(transformers, f"{family}Model")(config).eval()
    seen = {}
    layer = model.layers[0].self_attn
    hook = layer.register_forward_hook(
        lambda _, __, keywords, output: seen.update(X=keywords["hidden_states"], output=output[0]), with_kwargs=True
    )
    with torch.inference_mode():
        model(torch.arange(20)[None] % 50)
    hook.remove()
    found = run(layer, seen["X"][0].double().numpy(), causal=True, rotary=True)
    np.testing.assert_allclose(found, seen["output"][0].numpy(), rtol=1e-3, atol=1e-5 * np.abs(found).max())


def test_a_window_hides_tokens_far_back():
    module = grouped("MistralAttention", sliding_window=5)
    X = tokens(24, 256)
    behind = np.arange(24)[:, None] - np.arange(24)
    expected = attention(X, *parts_of(module.double()), 8, (behind < 0) | (behind >= 5))
    np.testing.assert_allclose(run(module, X, causal=True), expected, rtol=0, atol=SINGLE * np.abs(expected).max())
    assert "window of 5 tokens" in read_module(module).not_modelled


# What is read -------------------------------------------------------------------------------------------------


STATED = [  # module, β, value_scale, output_scale, from the rule of its initialization
    (lambda: multihead(512), 1 / 2, 0.5**0.5, (1 / 3) ** 0.5),
    (lambda: of_transformers("BertAttention", transformers.BertConfig()), 0.3072, 0.02 * 768**0.5, 0.02 * 768**0.5),
    (lambda: of_transformers("BertSelfAttention", transformers.BertConfig()), 0.3072, 0.02 * 768**0.5, 1),
    (lambda: of_transformers("ViTAttention", transformers.ViTConfig()), 0.3072, 0.02 * 768**0.5, 0.02 * 768**0.5),
    (lambda: of_transformers("GPT2Attention", transformers.GPT2Config()), 0.3072, 0.02 * 768**0.5,
     0.02 / 24**0.5 * 768**0.5),
    (lambda: grouped("LlamaAttention", 512, head_dim=64), 0.2048, 0.02 * 512**0.5, 0.02 * 512**0.5),
    (lambda: grouped("Qwen3Attention", 512, head_dim=64), 1, 0.02 * 512**0.5, 0.02 * 512**0.5),
]


@pytest.mark.parametrize(("make", "beta", "value", "output"), STATED)
def test_gains_are_those_of_the_librarys_initialization(make, beta, value, output):
    result = fa.verify_module(make(), 32, reset="own", draws=1)
    spec = result.spec
    assert float(spec.beta) == pytest.approx(beta, rel=0.01)  # entries by the hundred thousand: noise below 0.3 %
    assert float(spec.value_scale) == pytest.approx(value, rel=0.01)
    assert float(spec.output_scale) == pytest.approx(output, rel=0.01)


@pytest.mark.parametrize(
    ("name", "sizes"),
    [
        ("MultiheadAttention", (128, 4, 4, 32, 32, 128)),
        ("LlamaAttention", (256, 8, 2, 32, 32, 256)),
        ("GPT2Attention", (128, 4, 4, 32, 32, 128)),
        ("DeepseekV2Attention", (512, 8, 8, 96, 64, 512)),
    ],
)
def test_sizes(name, sizes):
    module = MODULES[name]()
    if name.startswith("Deepseek"):
        spec = fa.verify_module(module, 64, draws=1, **PLAIN).spec
        assert (spec.latent, spec.query_latent) == (
            fa.Latent(256, normalized=True), fa.Latent(384, normalized=True)
        )
        assert spec.position_width == 32
    else:
        spec = fa.from_module(module, 64)
    found = (spec.d_model, spec.n_heads, spec.n_kv_heads, spec.d_key, spec.d_value, spec.d_out)
    assert found == sizes
    assert spec.name == name


def test_values_end_without_an_output_map():
    spec = fa.from_module(bert("BertSelfAttention"), 64)
    assert (spec.output, spec.d_out) == ("values", None)


def test_what_is_not_modelled_is_listed():
    llama = fa.from_module(grouped("LlamaAttention"), 64)
    assert llama.not_modelled == ("causal mask", "rotary positions")
    assert fa.from_module(grouped("LlamaAttention"), 64, inputs="orthogonal").not_modelled == ("causal mask",)
    assert "norms of queries and keys per head" in fa.from_module(grouped("Qwen3Attention"), 64).not_modelled
    assert fa.from_module(multihead(), 64).not_modelled == ()
    extra = multihead(dropout=0.1, add_bias_kv=True, add_zero_attn=True)
    randomize_biases(extra)
    assert len(fa.from_module(extra, 64).not_modelled) == 5
    assert "residual connection and norm after the output map" in fa.from_module(bert(), 64).not_modelled


@pytest.mark.parametrize("output", ["values", "attention", "head-sum"])
def test_another_output_can_be_asked_about(output):
    spec = fa.from_module(multihead(), 64, output=output)
    assert (spec.output, spec.d_out) == (output, None)
    assert fa.law(spec.replace(inputs="orthogonal")).mean > 0


def test_fields_can_be_changed():
    assert fa.from_module(multihead(), 64, beta=2, name="mine").beta == 2


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float64"])
def test_any_precision_is_read(dtype):
    module = multihead().to(getattr(torch, dtype))
    assert float(fa.from_module(module, 64).beta) == pytest.approx(0.5, rel=0.05)


def test_weights_that_do_not_look_gaussian_are_said():
    module = multihead(256)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fa.from_module(module, 64)
    with torch.no_grad():
        module.out_proj.weight.copy_(torch.randn(256, 8) @ torch.randn(8, 256) / 50)
        module.in_proj_weight[:256].copy_(torch.distributions.StudentT(3.0).sample((256, 256)) / 50)
        module.in_proj_weight[256:320] *= 3
    with pytest.warns(UserWarning, match="Gaussian matrices of the same variances") as found:
        spec = fa.from_module(module, 64)
    (message,) = (str(one.message) for one in found)
    assert "W_Q has heavy-tailed entries" in message
    assert "W_K differs in size between heads" in message
    assert "W_O has" in message
    assert "effective rank" in message
    assert spec.not_modelled[-1] in message


def test_unequal_widths_have_a_law_for_orthogonal_tokens():
    module = multihead(128, kdim=160, vdim=192)
    spec = fa.from_module(module, 100, inputs="orthogonal")
    assert (spec.d_model, spec.d_out) == (128, 128)
    # σ_Q² = 2/(2d), σ_K² = 2/(d + kdim), fan-ins d and kdim
    assert float(spec.beta) == pytest.approx((160 * 2 / (128 + 160)) ** 0.5, rel=0.02)
    with pytest.raises(fa.NotCoveredError, match="orthogonal tokens only"):
        fa.from_module(module, 100)
    assert fa.verify_module(module, 100, inputs="orthogonal", reset="own", draws=3).passed


@pytest.mark.parametrize("inputs", [
    np.ones((8, 128)) * 1j, torch.ones(8, 128) * 1j, np.array([["a"] * 128] * 8), np.full((8, 128), None),
])
def test_tokens_that_are_not_real_numbers_are_refused(inputs):
    with pytest.raises(fa.InputError, match=r"inputs = .an array of"):
        fa.verify_module(multihead(), inputs=inputs)


def test_latent_attention_needs_scores_of_one_size():
    with pytest.raises(fa.NotCoveredError, match="no one beta"):
        fa.verify_module(latent("DeepseekV2Attention"), 64, reset="own")
    with pytest.raises(fa.InputError, match="token_square"):
        fa.verify_module(latent("DeepseekV2Attention"), inputs=2 * tokens(32, 512), **PLAIN)


@pytest.mark.parametrize(
    ("module", "error"),
    [
        (torch.nn.Linear(4, 4), fa.InputError),
        ("MultiheadAttention", fa.InputError),
        (of_transformers("BertCrossAttention", transformers.BertConfig(hidden_size=64, num_attention_heads=2)),
         fa.InputError),
        (of_transformers("GPT2Attention", transformers.GPT2Config(n_embd=64, n_head=2), True), fa.NotCoveredError),
    ],
)
def test_other_modules_are_refused(module, error):
    with pytest.raises(error):
        fa.from_module(module, 16)


@pytest.mark.parametrize("spoil", ["meta", "integers", "nan"])
def test_weights_that_are_no_numbers_are_refused(spoil):
    module = multihead(64)
    if spoil == "meta":
        module = module.to("meta")
    elif spoil == "integers":
        packed = torch.zeros(64, 64, dtype=torch.uint8)
        module.out_proj.weight = torch.nn.Parameter(packed, requires_grad=False)
    else:
        module.out_proj.weight.data[0, 0] = float("nan")
    with pytest.raises(fa.InputError, match="finite floating-point weights") as error:
        fa.from_module(module, 16)
    assert ("in_proj_weight" if spoil == "meta" else "out_proj.weight") in str(error.value)


def test_subclasses_are_what_they_derive_from():
    class Mine(torch.nn.MultiheadAttention):
        pass

    assert fa.from_module(Mine(64, 2), 16).name == "Mine"


# What is run --------------------------------------------------------------------------------------------------


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


# The law of the output ----------------------------------------------------------------------------------------


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
