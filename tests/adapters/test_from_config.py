"""Configurations of published models against the presets, whose records have sources of their own."""

from __future__ import annotations

import json
import math
import pickle
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

import freeattn as fa
from freeattn.adapters.config import from_config, read_config
from freeattn.adapters.families import families
from freeattn.errors import InputError, NotCoveredError
from freeattn.model.initialization import truncated_variance

CONFIGS = Path(__file__).parent / "configs"
PRESETS = {preset.name: preset for preset in fa.architectures()}
NAMES = sorted(path.stem for path in CONFIGS.glob("*.json"))
PARTS = {"clip-b32": "text", "gemma-3-27b": "text"}
PUBLISHED = [name for name in NAMES if name in PRESETS]
SMALL = {
    "hidden_size": 64, "num_attention_heads": 4, "num_key_value_heads": 4, "num_hidden_layers": 2,
    "max_position_embeddings": 32,
}


LLAMA = {
    "model_type": "llama", "hidden_size": 4096, "num_attention_heads": 32, "num_hidden_layers": 32,
    "num_key_value_heads": 8, "max_position_embeddings": 512,
}


def path(name: str) -> Path:
    return CONFIGS / f"{name}.json"


def fields(name: str) -> dict[str, Any]:
    return dict(json.loads(path(name).read_text(encoding="utf-8")))


def test_there_are_configurations_of_published_layers() -> None:
    assert len(PUBLISHED) >= 20
    assert {read_config(path(name), part=PARTS.get(name)).model_type for name in NAMES} >= {
        "gpt2", "bert", "roberta", "distilbert", "modernbert", "vit", "dinov2", "dinov3_vit", "llama", "mistral",
        "mixtral", "qwen2", "qwen3", "gemma", "gemma2", "gemma3_text", "falcon", "phi", "phi3", "gpt_neox", "t5",
        "deepseek_v2", "deepseek_v3", "clip_text_model",
    }


@pytest.mark.parametrize("name", PUBLISHED)
@pytest.mark.parametrize("inputs", ["orthogonal", "gaussian"])
def test_a_configuration_says_what_the_preset_says(name: str, inputs: str) -> None:
    changes: dict[str, Any] = {"n_tokens": 128, "beta": 1, "inputs": inputs}
    spec, preset = from_config(path(name), part=PARTS.get(name), **changes), fa.architecture(name, **changes)
    assert spec == preset
    assert set(preset.not_modelled) <= set(spec.not_modelled)


@pytest.mark.parametrize("name", [name for name in PUBLISHED if PRESETS[name].init.basis == "library-default"])
def test_beta_is_that_of_presets_which_take_it_from_the_library(name: str) -> None:
    spec = from_config(path(name), part=PARTS.get(name), n_tokens=128)
    assert spec.beta == fa.architecture(name, n_tokens=128, beta="init").beta
    assert spec.not_modelled[-1].startswith("beta of a model that the library builds from this configuration")


@pytest.mark.parametrize(("name", "beta"), [
    ("gpt2-small", Fraction(192, 625)),  # 0.02² · 768
    ("bert-base", Fraction(192, 625)),  # the library does not truncate, the published code does: 0.774 times this
    ("roberta-base", Fraction(192, 625)),
    ("distilbert-base", Fraction(192, 625)),
    ("vit-b16", Fraction(192, 625)),  # cut at ±2, which is 100 standard deviations; published: Xavier uniform
    ("dinov2-base", Fraction(192, 625)),
    ("dinov3-b16", Fraction(192, 625)),
    ("pythia-160m", Fraction(192, 625)),
    ("opt-125m", Fraction(192, 625)),
    ("clip-b32", Fraction(1, 24)),  # 1/(2 layers)
    ("t5-xxl", 1),
    ("qwen3-0.6b", 1),
])
def test_beta_by_hand(name: str, beta: Fraction) -> None:
    assert from_config(path(name), part=PARTS.get(name), n_tokens=64).beta == beta


def test_published_code_truncates_where_the_library_does_not() -> None:
    published = float(fa.architecture("bert-base", beta="init").beta)
    library = float(from_config(path("bert-base")).beta)
    assert published / library == pytest.approx(truncated_variance(2.0), rel=1e-12)


@pytest.mark.parametrize("name", ["deepseek-v2-lite", "deepseek-v3"])
def test_beta_of_latent_attention_is_not_known(name: str) -> None:
    with pytest.raises(NotCoveredError, match=r"deepseek.*\.json is not known: .*no one beta.*; give beta a number"):
        from_config(path(name), n_tokens=128)
    assert from_config(path(name), n_tokens=128, beta=2).latent == fa.Latent(512, normalized=True)


@pytest.mark.parametrize(("name", "part", "n_tokens", "why"), [
    ("bert-base", None, 512, "max_position_embeddings = 512"),
    ("roberta-base", None, 512, "max_position_embeddings = 514 less 2 that no token has"),
    ("gpt2-small", None, 1024, "n_positions = 1024"),
    ("vit-b16", None, 197, "14 x 14 patches of the image and 1 other tokens"),
    ("dinov2-base", None, 1370, "37 x 37 patches of the image and 1 other tokens"),
    ("dinov3-b16", None, 201, "14 x 14 patches of the image and 5 other tokens"),
    ("clip-b32", "text", 77, "max_position_embeddings = 77"),
    ("clip-b32", "vision_config", 50, "7 x 7 patches of the image and 1 other tokens"),
    ("gemma-3-27b", "vision", 4096, "64 x 64 patches of the image and 0 other tokens"),
    ("falcon-40b", None, None, ""),
])
def test_number_of_tokens(name: str, part: str | None, n_tokens: int | None, why: str) -> None:
    layer = read_config(path(name), part=part)
    assert (layer.n_tokens, layer.tokens_from) == (n_tokens, why)


def test_the_number_of_tokens_is_the_one_of_the_file_unless_given() -> None:
    assert from_config(path("bert-base")).n_tokens == 512
    assert from_config(path("bert-base"), n_tokens=100).n_tokens == 100
    assert from_config(path("gpt2-small"), inputs="gaussian").n_tokens == 1024
    with pytest.raises(InputError, match=r"n_tokens = 1024 .*at most d_model = 768 .*states n_tokens = 1024.*gaussian"):
        from_config(path("gpt2-small"))
    with pytest.raises(InputError, match=r"n_tokens = '\(not given\)' .*states no longest sequence"):
        from_config(path("falcon-40b"))


def test_fields_of_attention_can_be_changed() -> None:
    spec = from_config(path("bert-base"), output="attention", tie="key-value", beta=Fraction(1, 2), n_tokens=64)
    assert (spec.output, spec.beta, spec.tie.value) == ("attention", Fraction(1, 2), "key")
    with pytest.raises(InputError, match=r"n_head = 3 .*a field of Attention \(did you mean n_heads"):
        from_config(path("bert-base"), n_head=3)
    with pytest.raises(InputError, match="d_key is not the configured one"):
        from_config(path("bert-base"), d_key=32)
    assert from_config(path("bert-base"), d_key=32, beta=1).d_key == 32


def test_a_mapping_is_read_like_its_file() -> None:
    assert from_config(fields("llama-2-7b"), n_tokens=256) == from_config(path("llama-2-7b"), n_tokens=256)
    assert from_config(str(path("llama-2-7b")), n_tokens=256).d_model == 4096
    for source in (3, None, b"config.json", ["a"]):
        with pytest.raises(InputError, match=r"config = .* a path, or the contents"):
            from_config(source)  # type: ignore[arg-type]


# Parts and families ------------------------------------------------------------------------------------------


def test_parts_must_be_chosen() -> None:
    with pytest.raises(InputError, match=r"part = .*one of text_config, vision_config: the file describes several"):
        from_config(path("clip-b32"))
    with pytest.raises(InputError, match=r"part = 'audio' .*one of text_config, vision_config"):
        from_config(path("clip-b32"), part="audio")
    with pytest.raises(InputError, match=r"part = 'text' .*nothing: the file describes one model"):
        from_config(path("bert-base"), part="text")


def test_parts_of_a_family_that_is_not_known() -> None:
    several = {"model_type": "new_vlm", "text_config": fields("llama-2-7b"), "quantization_config": {"bits": 4}}
    assert from_config(several, part="text", n_tokens=64).d_model == 4096
    with pytest.raises(InputError, match="one of text_config"):
        from_config(several)



def test_parts_state_their_defaults() -> None:
    layer = read_config({"model_type": "clip", "vision_config": {"hidden_size": 1536}}, part="vision")
    assert (layer.n_heads, layer.d_key, layer.n_tokens) == (12, 128, 50)
    assert dict(layer.defaulted)["vision_config.num_attention_heads"] == "12"


def test_unknown_families_name_the_known_ones() -> None:
    with pytest.raises(InputError, match=r"model_type = 'lama' .*bert, .*nearest: llama.*give the sizes by hand"):
        from_config({"model_type": "lama", **SMALL})
    with pytest.raises(InputError, match=r"model_type = '\(missing\)' .*one of bert"):
        from_config(SMALL)
    assert from_config({"model_type": "lama", **SMALL}, model_type="llama").d_key == 16
    assert from_config(SMALL, model_type="llama").name == "configuration"


@pytest.mark.parametrize("model_type", [name for name, family in families().items() if not family.parts])
def test_every_family_reads_its_own_defaults_as_a_part(model_type: str) -> None:
    """In a part everything may be left out: what the library would build then."""
    layer = read_config({"model_type": "vlm", "some_config": {"model_type": model_type}}, part="some")
    assert layer.n_heads * layer.d_key > 0
    assert all(name.startswith("some_config.") for name, _ in layer.defaulted)


@pytest.mark.parametrize("model_type", [name for name, family in families().items() if not family.parts])
def test_sizes_must_be_stated_at_the_top(model_type: str) -> None:
    names = families()[model_type].names
    with pytest.raises(InputError) as caught:
        read_config({"model_type": model_type})
    assert caught.value.field == names["d_model"][0]
    assert caught.value.value == "(missing)"


# Rules of single families ------------------------------------------------------------------------------------


def read(model_type: str, **changes: Any) -> Any:
    return read_config({"model_type": model_type, **SMALL, **changes})


def test_a_default_that_does_not_fit_is_told_from_a_value() -> None:
    small = {name: value for name, value in SMALL.items() if name != "num_key_value_heads"}
    with pytest.raises(InputError, match=r"num_key_value_heads = .8 \(the library's default\). .*a divisor of num_"):
        read_config({"model_type": "mistral", **small})
    with pytest.raises(InputError, match=r"num_key_value_heads = '3' .*a divisor of num_attention_heads = 4"):
        read("llama", num_key_value_heads=3)


def test_falcon() -> None:
    assert read("falcon").n_kv_heads == 1  # multi_query is the library's default
    assert read("falcon", num_kv_heads=2).n_kv_heads == 1
    assert read("falcon", multi_query=False).n_kv_heads == 4
    assert read("falcon", new_decoder_architecture=True, num_kv_heads=2).n_kv_heads == 2
    assert "relative position bias on the scores" in read("falcon", alibi=True).not_modelled


def test_scales() -> None:
    gpt2 = {"model_type": "gpt2", "n_embd": 64, "n_head": 4, "n_layer": 2, "n_positions": 32}
    beta = Fraction(64, 2500)
    assert from_config(gpt2).beta == beta
    assert from_config({**gpt2, "scale_attn_weights": False}).beta == beta * 4
    by_layer = from_config({**gpt2, "scale_attn_by_inverse_layer_idx": True})
    assert by_layer.beta == beta
    assert "scores of layer l divided by l (the first layer is taken)" in by_layer.not_modelled
    assert from_config({"model_type": "granite", **SMALL, "attention_multiplier": 0.5}).beta == beta * 2
    assert read("gemma2", query_pre_attn_scalar=256).score_scale == "1/sqrt(d_key)"
    assert read("gemma2", head_dim=16, query_pre_attn_scalar=64).score_scale == "1/sqrt(64)"
    assert float(read("gemma2", query_pre_attn_scalar=2.25).score_scale) == pytest.approx(1 / 1.5, rel=1e-15)


def test_windows_caps_and_switches() -> None:
    assert read("qwen2", sliding_window=16).window is None
    assert read("qwen2", sliding_window=16, use_sliding_window=True).window == 16
    assert read("mistral").window == 4096
    assert read("mistral", sliding_window=None).window is None
    assert "logit softcap 50" in read("gemma2").not_modelled
    assert read("gemma2", attn_logit_softcapping=None).logit_softcap is None
    assert read("phi", qk_layernorm=True).qk_norm
    assert read("bert", is_decoder=True).causal
    assert "relative position bias on the scores" in read("bert", position_embedding_type="relative_key").not_modelled
    assert "sinusoidal positions added to the tokens" in read_config(
        {"model_type": "distilbert", "dim": 8, "n_heads": 2, "sinusoidal_pos_embds": True}
    ).not_modelled
    assert "biases on queries, keys and values" in read("llama", attention_bias=True).not_modelled
    assert "dropout 0.25 of attention weights" in read("llama", attention_dropout=0.25).not_modelled
    opt = read("opt", do_layer_norm_before=False)
    assert "tokens of the first layer that are not normalized" in opt.not_modelled


def test_truncation() -> None:
    cut = read("modernbert", initializer_range=0.5, initializer_cutoff_factor=1.5)
    assert cut.init.cutoff == 1.5
    assert float(cut.attention().beta) == pytest.approx(0.25 * 64 * truncated_variance(1.5), rel=1e-14)
    image = {"hidden_size": 16, "num_attention_heads": 1, "num_hidden_layers": 1, "image_size": 32, "patch_size": 16}
    wide = read_config({"model_type": "vit", **image, "initializer_range": 1.0})
    assert float(wide.attention().beta) == pytest.approx(16 * truncated_variance(2.0), rel=1e-14)


def test_rotary_scaling_that_multiplies_scores() -> None:
    yarn = {"rope_type": "yarn", "factor": 4.0}
    plain, growth = from_config({"model_type": "llama", **SMALL}), 0.1 * math.log(4) + 1
    for scaling in ({"rope_scaling": yarn}, {"rope_parameters": {**yarn, "rope_theta": 1e4}}):
        scaled = from_config({"model_type": "llama", **SMALL, **scaling})
        assert float(scaled.beta) == pytest.approx(float(plain.beta) * growth**2, rel=1e-14)
    given = from_config({"model_type": "llama", **SMALL, "rope_scaling": {**yarn, "attention_factor": 2}})
    assert float(given.beta) == pytest.approx(float(plain.beta) * 4, rel=1e-14)
    even = {**yarn, "mscale": 0.7, "mscale_all_dim": 0.7}
    assert float(from_config({"model_type": "llama", **SMALL, "rope_scaling": even}).beta) == float(plain.beta)
    long = {"type": "longrope", "short_factor": [1], "long_factor": [2]}
    phi3 = {"model_type": "phi3", **SMALL, "original_max_position_embeddings": 8, "rope_scaling": long}
    factor = math.sqrt(1 + math.log(4) / math.log(8))
    assert float(from_config(phi3).beta) == pytest.approx(float(plain.beta) * factor**2, rel=1e-14)
    turned = {"rope_scaling": {"rope_type": "linear", "factor": 8}}
    assert from_config({"model_type": "llama", **SMALL, **turned}).beta == plain.beta


def test_rotary_scaling_of_a_part_of_each_head_leaves_no_one_beta() -> None:
    config = {"model_type": "gpt_neox", **SMALL, "rope_scaling": {"type": "yarn", "factor": 4}}
    with pytest.raises(NotCoveredError, match=r"multiply 4 of 16 coordinates of queries and keys by 1\.13863"):
        from_config(config)
    assert from_config(config, beta=1).beta == 1
    assert read("gpt_neox").rotary_width == 4


def test_what_is_not_read_does_not_matter() -> None:
    strange = {"_name_or_path": "/etc/passwd", "auto_map": {"AutoConfig": "x--evil.py"}, "torch_dtype": 7, "x": [[{}]]}
    assert from_config({**fields("bert-base"), **strange}) == from_config(path("bert-base"))


def test_a_statement_says_what_a_specification_rests_on() -> None:
    layer = read_config(path("gemma-3-27b"), part="text")
    statement = layer.statement(layer.attention(n_tokens=512), {"n_tokens": 512})
    assert statement == {
        "file": f"{path('gemma-3-27b')}:text_config",
        "model_type": "gemma3_text",
        "part": "text_config",
        "n_tokens": "given",
        "beta": {
            "value": str(Fraction(math.sqrt(Fraction(128, 168)))), "initialization": "normal, initializer_range",
            "rule": "queries and keys of mean square 1 (gains 1): √128 · 1/sqrt(168)",
        },
        "defaults": {"text_config.initializer_range": "0.02", "text_config.max_position_embeddings": "131072"},
    }
    given = layer.statement(layer.attention(n_tokens=512, beta=2), {"beta": 2})
    assert given["beta"] == {"value": "2", "rule": "given"}
    assert given["n_tokens"] == "max_position_embeddings = 131072"


def test_a_field_that_is_left_out_or_misspelled_is_said():
    llama = {"model_type": "llama", "hidden_size": 512, "num_attention_heads": 8, "num_hidden_layers": 2}
    assert "num_key_value_heads" not in dict(fa.read_config(llama | {"num_key_value_heads": 2}).defaulted)
    plain = dict(fa.read_config(llama).defaulted)["num_key_value_heads"]
    assert plain == "8"
    assert dict(fa.read_config(llama | {"num_key_value_heds": 2}).defaulted)["num_key_value_heads"] == (
        "8 (the file has num_key_value_heds)"
    )
    del llama["hidden_size"]
    with pytest.raises(InputError, match=r"hidden_size.*the file has hiden_size"):
        fa.read_config(llama | {"hiden_size": 512})
    with pytest.raises(InputError, match="not a text in quotes"):
        fa.read_config(llama | {"hidden_size": "512"})


@pytest.mark.parametrize("field", ["part", "model_type"])
def test_names_that_are_no_texts_are_refused(field):
    with pytest.raises(InputError, match=field):
        from_config({"model_type": "llama"}, **{field: 5})


@pytest.mark.parametrize(("change", "field", "value", "told"), [
    ({"num_attention_heads": "32"}, "num_attention_heads", "32", "1 to 1000000000, not a text in quotes"),
    ({"num_key_value_heads": 5}, "num_key_value_heads", "5", "a divisor of num_attention_heads = 32"),
    ({"hidden_size": None}, "hidden_size", "null", "an integer from 1 to 1000000000"),
    ({"rope_scaling": {"rope_type": "x"}}, "rope_scaling.rope_type", "x", "one of default, linear, "),
    ({"model_type": "lama"}, "model_type", "lama", "one of bert, "),
    ({"initializer_range": 1}, "beta", 4096, "; it is 1 · 1 · 4096 · √128 · 1/sqrt(128) (normal, initializer_range)"),
])
def test_errors_name_file_and_field(
    tmp_path: Path, change: dict[str, Any], field: str, value: object, told: str
) -> None:
    file = tmp_path / "config.json"
    file.write_text(json.dumps({**LLAMA, **change}), encoding="utf-8")
    with pytest.raises(InputError) as caught:
        from_config(file, n_tokens=512)
    error = caught.value
    assert (error.source, error.field, error.value) == (str(file), field, value)
    assert str(error).startswith(f"{file}: {field} = {value!r} is not allowed; expected ")
    assert told in str(error)
    assert pickle.loads(pickle.dumps(error)).args == error.args


def test_what_the_caller_gave_is_not_blamed_on_the_file(tmp_path: Path) -> None:
    file = tmp_path / "config.json"
    file.write_text(json.dumps(LLAMA), encoding="utf-8")
    with pytest.raises(InputError, match=r"^n_tokens = 0 is not allowed"):
        from_config(file, n_tokens=0)
    with pytest.raises(InputError, match=r"^beta = 30 is not allowed"):
        from_config(file, n_tokens=512, beta=30)
    with pytest.raises(InputError, match=r"^num_attention_heads = '32' is not allowed"):
        from_config({**LLAMA, "num_attention_heads": "32"})
