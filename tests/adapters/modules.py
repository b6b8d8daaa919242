"""Attention modules of torch and transformers, small, by name; importing it skips tests where a library is missing."""

import importlib

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason='the extra "torch" is not installed')
transformers = pytest.importorskip("transformers", reason='the extra "transformers" is not installed')

GROUPED = {"num_attention_heads": 8, "num_key_value_heads": 2, "head_dim": 32}
LATENT = {
    "num_attention_heads": 8, "num_key_value_heads": 8, "kv_lora_rank": 256, "q_lora_rank": 384,
    "qk_rope_head_dim": 32, "qk_nope_head_dim": 64, "v_head_dim": 64,
}


def of_transformers(name, config, *position):
    """An attention module by the name of its class: BertAttention stands in models.bert.modeling_bert."""
    folders = {"Bert": "bert", "Rob": "roberta", "ViT": "vit", "Lla": "llama", "Mis": "mistral", "Mix": "mixtral",
               "GPT": "gpt2", "Qwen2": "qwen2", "Qwen3": "qwen3", "DeepseekV2": "deepseek_v2",
               "DeepseekV3": "deepseek_v3"}
    (folder,) = (folder for start, folder in folders.items() if name.startswith(start))
    home = importlib.import_module(f"transformers.models.{folder}.modeling_{folder}")
    return getattr(home, name)(config, *position)


def grouped(name, width=256, **fields):
    """A decoder's attention with two key/value heads for eight heads."""
    config = getattr(transformers, name.removesuffix("Attention") + "Config")
    return of_transformers(name, config(hidden_size=width, **{**GROUPED, **fields}), 0)


def latent(name, width=512, **fields):
    config = getattr(transformers, name.removesuffix("Attention") + "Config")
    return of_transformers(name, config(hidden_size=width, **{**LATENT, **fields}), 0)


def multihead(width=128, heads=4, **fields):
    return torch.nn.MultiheadAttention(width, heads, **fields)


def bert(name="BertAttention", width=128):
    return of_transformers(name, transformers.BertConfig(hidden_size=width, num_attention_heads=4))


MODULES = {
    "MultiheadAttention": multihead,
    "BertAttention": bert,
    "BertSelfAttention": lambda: bert("BertSelfAttention"),
    "RobertaAttention": lambda: of_transformers(
        "RobertaAttention", transformers.RobertaConfig(hidden_size=128, num_attention_heads=4)
    ),
    "RobertaSelfAttention": lambda: of_transformers(
        "RobertaSelfAttention", transformers.RobertaConfig(hidden_size=128, num_attention_heads=4)
    ),
    "ViTAttention": lambda: of_transformers(
        "ViTAttention", transformers.ViTConfig(hidden_size=128, num_attention_heads=4)
    ),
    "GPT2Attention": lambda: of_transformers("GPT2Attention", transformers.GPT2Config(n_embd=128, n_head=4)),
    **{f"{name}Attention": (lambda name=name: grouped(f"{name}Attention"))
       for name in ("Llama", "Mistral", "Mixtral", "Qwen2", "Qwen3")},
    **{f"Deepseek{name}Attention": (lambda name=name: latent(f"Deepseek{name}Attention")) for name in ("V2", "V3")},
}


def randomize_biases(module, but=()):
    """Entries of size one in every bias whose name does not contain one of `but`."""
    generator = torch.Generator().manual_seed(5)
    with torch.no_grad():
        for name, parameter in module.named_parameters():
            if name.endswith("bias") and not any(part in name for part in but):
                parameter.normal_(0, 1, generator=generator)


def tokens(rows, width, seed=0):
    return np.random.default_rng(seed).standard_normal((rows, width))
