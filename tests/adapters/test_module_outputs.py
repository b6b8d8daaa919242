"""The output that is run is softmax attention with the module's own weights."""

import numpy as np
import pytest
from modules import (
    MODULES,
    grouped,
    randomize_biases,
    tokens,
    torch,
    transformers,
)

from freeattn.adapters.module import kind_of, read_module
from freeattn.adapters.module_kind import Behaviour

pytestmark = pytest.mark.slow
SINGLE = 1e-6  # transformers takes the softmax in single precision


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
