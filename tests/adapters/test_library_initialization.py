"""The initial β against models that the library itself initializes: the spread of their scores in the first layer."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import freeattn as fa

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]  # warnings of the library are not ours

N_TOKENS = 64
SIZES = {
    "hidden_size": 256, "num_attention_heads": 4, "num_hidden_layers": 2, "intermediate_size": 64, "vocab_size": 512,
    "max_position_embeddings": 128,
}
GROUPED = SIZES | {"num_key_value_heads": 2, "head_dim": 32, "pad_token_id": 0}
IMAGE = {
    "hidden_size": 256, "num_attention_heads": 4, "num_hidden_layers": 2, "intermediate_size": 64, "image_size": 64,
    "patch_size": 8,
}
YARN = {"rope_type": "yarn", "factor": 8.0, "rope_theta": 10000.0, "original_max_position_embeddings": 16}
TEXTS = [
    ("gpt2", {
        "n_embd": 256, "n_head": 4, "n_layer": 2, "n_positions": 128, "vocab_size": 512, "initializer_range": 0.1,
    }),
    ("gpt2", {
        "n_embd": 256, "n_head": 4, "n_layer": 2, "n_positions": 128, "vocab_size": 512, "initializer_range": 0.03,
        "scale_attn_weights": False,
    }),
    ("bert", SIZES | {"initializer_range": 0.06}),
    ("roberta", SIZES | {"initializer_range": 0.06}),
    ("distilbert", {
        "dim": 256, "n_heads": 4, "n_layers": 2, "hidden_dim": 64, "vocab_size": 512, "initializer_range": 0.06,
    }),
    ("modernbert", SIZES | {"initializer_range": 0.06, "initializer_cutoff_factor": 1.0, "pad_token_id": 0}),
    ("clip_text_model", SIZES | {"initializer_factor": 2.5}),
    ("siglip_text_model", SIZES | {"bos_token_id": 1, "eos_token_id": 2}),
    ("llama", GROUPED | {"initializer_range": 0.06}),
    ("llama", GROUPED | {"initializer_range": 0.06, "rope_parameters": YARN}),
    ("mistral", GROUPED | {"initializer_range": 0.06}),
    ("mixtral", GROUPED | {"initializer_range": 0.06}),
    ("qwen2", GROUPED | {"initializer_range": 0.06}),
    ("qwen3", GROUPED | {"initializer_range": 0.06}),
    ("qwen3", GROUPED | {"initializer_range": 0.06, "rope_parameters": YARN}),
    ("qwen3_moe", GROUPED | {"initializer_range": 0.06, "moe_intermediate_size": 32}),
    ("gemma", GROUPED | {"initializer_range": 0.06}),
    ("gemma2", GROUPED | {"initializer_range": 0.06, "query_pre_attn_scalar": 16, "attn_logit_softcapping": None}),
    ("gemma3_text", GROUPED | {"query_pre_attn_scalar": 50}),
    ("falcon", SIZES | {"initializer_range": 0.06, "new_decoder_architecture": False, "multi_query": True}),
    ("falcon", SIZES | {"initializer_range": 0.06, "new_decoder_architecture": True, "num_kv_heads": 2}),
    ("phi", SIZES | {"initializer_range": 0.06}),
    ("phi", SIZES | {"qk_layernorm": True}),
    ("phi3", SIZES | {"initializer_range": 0.06, "pad_token_id": 0}),
    ("gpt_neox", SIZES | {"initializer_range": 0.06}),
    ("t5", {
        "d_model": 256, "num_heads": 4, "d_kv": 32, "num_layers": 2, "d_ff": 64, "vocab_size": 512,
        "initializer_factor": 0.9, "n_positions": 64,
    }),
    ("opt", SIZES | {"init_std": 0.06, "ffn_dim": 64, "word_embed_proj_dim": 256}),
    ("olmo2", GROUPED | {"initializer_range": 0.2}),
    ("granite", GROUPED | {"initializer_range": 0.06, "attention_multiplier": 0.125}),
]
IMAGES = [
    ("vit", IMAGE | {"initializer_range": 0.06}),
    ("deit", IMAGE | {"initializer_range": 0.06}),
    ("dinov2", IMAGE | {"initializer_range": 0.06}),
    ("dinov2_with_registers", IMAGE | {"initializer_range": 0.06, "num_register_tokens": 3}),
    ("dinov3_vit", IMAGE | {"initializer_range": 0.06, "num_register_tokens": 3}),
    ("clip_vision_model", IMAGE | {"initializer_factor": 2.5}),
    ("siglip_vision_model", IMAGE),
]


def configuration(model_type: str, fields: dict[str, Any]) -> Any:
    if model_type == "siglip_text_model":
        return transformers.SiglipTextConfig(**fields)
    return transformers.AutoConfig.for_model(model_type, **fields)


@pytest.mark.parametrize(("model_type", "fields"), TEXTS + IMAGES)
def test_files_that_the_library_writes(model_type: str, fields: dict[str, Any], tmp_path: Path) -> None:
    configuration(model_type, fields).save_pretrained(tmp_path)
    written, stated = tmp_path / "config.json", {"model_type": model_type, **fields}
    assert fa.from_config(written, n_tokens=N_TOKENS) == fa.from_config(stated, n_tokens=N_TOKENS)


@pytest.mark.parametrize(("name", "part", "fields"), [
    ("clip", "text", {"text_config": {"hidden_size": 64}}),
    ("clip", "vision", {"vision_config": {"patch_size": 16}}),
    ("siglip", "vision", {"vision_config": {"num_hidden_layers": 3}}),
    ("gemma3", "text", {"text_config": {"hidden_size": 512, "query_pre_attn_scalar": 64}}),
    ("gemma3", "vision", {}),
])
def test_parts_of_files_that_the_library_writes(name: str, part: str, fields: dict[str, Any], tmp_path: Path) -> None:
    config = transformers.AutoConfig.for_model(name, **fields)
    config.save_pretrained(tmp_path)
    layer, inner = fa.read_config(tmp_path / "config.json", part=part), getattr(config, f"{part}_config")
    assert (layer.d_model, layer.n_heads, layer.layers) == (
        inner.hidden_size, inner.num_attention_heads, inner.num_hidden_layers,
    )
    assert layer.d_key == getattr(inner, "head_dim", inner.hidden_size // inner.num_attention_heads)
    if part == "text":
        assert layer.n_tokens == inner.max_position_embeddings
    else:
        others = 1 if name == "clip" else 0
        assert layer.n_tokens == (inner.image_size // inner.patch_size) ** 2 + others


def spread_of_scores(model: Any, **inputs: Any) -> float:
    """The standard deviation of the scores of the first layer, by the weights of attention: log A_ij = s_ij + c_i."""
    model.eval()
    with torch.no_grad():
        weights = model(**inputs, output_attentions=True).attentions[0].double()
    seen = weights > 0
    logs = torch.where(seen, weights, torch.ones_like(weights)).log()
    count = seen.sum(-1, keepdim=True)
    mean = logs.sum(-1, keepdim=True) / count
    squares = torch.where(seen, (logs - mean) ** 2, torch.zeros_like(logs)).sum()
    return float((squares / (count - 1).sum()).sqrt())


def built(model_type: str, fields: dict[str, Any], seed: int) -> Any:
    torch.manual_seed(seed)
    config = configuration(model_type, fields)
    if model_type == "siglip_text_model":
        config._attn_implementation = "eager"
        return transformers.SiglipTextModel(config)
    model = transformers.AutoModel.from_config(config, attn_implementation="eager")
    if model_type in ("bert", "roberta"):  # the part that all tokens share, which softmax does not see
        model.embeddings.token_type_embeddings.weight.data.zero_()
    return model.get_encoder() if model_type == "t5" else model


def beta_of(model_type: str, fields: dict[str, Any]) -> float:
    return float(fa.from_config({"model_type": model_type, **fields}, n_tokens=N_TOKENS).beta)


@pytest.mark.parametrize(("model_type", "fields"), TEXTS)
def test_texts(model_type: str, fields: dict[str, Any]) -> None:
    found = []
    for seed in range(4):
        model = built(model_type, fields, seed)
        tokens = torch.randperm(500)[None, :N_TOKENS] + 3
        found.append(spread_of_scores(model, input_ids=tokens) ** 2)
    assert (sum(found) / len(found)) ** 0.5 == pytest.approx(beta_of(model_type, fields), rel=0.05)


@pytest.mark.parametrize(("model_type", "fields"), IMAGES)
def test_images(model_type: str, fields: dict[str, Any]) -> None:
    found = []
    for seed in range(4):
        model = built(model_type, fields, seed)
        pixels = torch.randn(1, 3, IMAGE["image_size"], IMAGE["image_size"])
        weights = model(pixel_values=pixels, output_attentions=True).attentions[0]
        record = fa.read_config({"model_type": model_type, **fields})
        assert weights.shape[-1] == record.n_tokens
        found.append(spread_of_scores(model, pixel_values=pixels) ** 2)
    assert (sum(found) / len(found)) ** 0.5 == pytest.approx(beta_of(model_type, fields), rel=0.05)
