"""What is read of attention modules of torch and transformers."""

import warnings

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

pytestmark = pytest.mark.slow
PLAIN = {"reset": "unit", "causal": False, "rotary": False}


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
