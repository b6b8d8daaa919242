"""Commands on configuration files of models."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import freeattn
from freeattn.cli.spec import build_layer

GPT2 = {"model_type": "gpt2", "n_embd": 64, "n_head": 4, "n_layer": 2, "n_positions": 32, "initializer_range": 0.1}
TEXT = {
    "model_type": "gemma3_text", "hidden_size": 64, "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 16,
}
DEEPSEEK = {
    "model_type": "deepseek_v3", "hidden_size": 64, "num_attention_heads": 4, "num_hidden_layers": 2, "kv_lora_rank": 8,
    "q_lora_rank": 12, "qk_nope_head_dim": 8, "qk_rope_head_dim": 4, "v_head_dim": 8, "max_position_embeddings": 4096,
}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    files = {
        "config.json": GPT2, "vlm.json": {"model_type": "gemma3", "text_config": TEXT, "vision_config": {}},
        "deepseek.json": DEEPSEEK, "unknown.json": {**GPT2, "model_type": "gpt7"}, "odd.json": {**GPT2, "n_embd": -1},
    }
    for name, fields in files.items():
        (tmp_path / name).write_text(json.dumps(fields), encoding="utf-8")
    (tmp_path / "model").mkdir()
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.usefixtures("folder")
def test_law_of_a_configuration(run):
    record = run("law", "config.json", "--json").json
    assert record["preset"] is None
    assert record["config"] == {
        "file": "config.json", "model_type": "gpt2", "part": None, "n_tokens": "n_positions = 32",
        "beta": {
            "value": "16/25", "rule": "0.1 · 0.1 · 64 · √16 · 1/sqrt(16)",
            "initialization": "normal, initializer_range",
        },
        "defaults": {"scale_attn_weights": "True", "attn_pdrop": "0.1"},
    }
    assert record["spec"]["n_tokens"] == 32
    assert record["spec"]["beta"] == "16/25"
    assert "causal mask" in record["not_modelled"]
    sizes = "--n-tokens 32 --d-model 64 --n-heads 4 --d-key 16 --d-value 16 --beta 16/25"
    assert run("law", *sizes.split(), "--json").json["edges"] == record["edges"]


@pytest.mark.usefixtures("folder")
def test_tables_say_what_was_read(run):
    out = run("law", "config.json").out
    assert out.startswith("config.json: output mha\n")
    assert "Read as gpt2: n_tokens (n_positions = 32), beta (0.1 · 0.1 · 64 · √16 · 1/sqrt(16))" in out
    assert "Not in the file, taken from the library: scale_attn_weights = True, attn_pdrop = 0.1" in out
    given = run("law", "config.json", "--n-tokens", "16", "--beta", "1").out
    assert "Read as gpt2: n_tokens given, beta given" in given


@pytest.mark.usefixtures("folder")
def test_options_change_what_the_file_says(run):
    spec = run("law", "config.json", "--n-tokens", 16, "--beta", "1/2", "--output", "attention", "--json").json["spec"]
    assert (spec["n_tokens"], spec["beta"], spec["output"]) == (16, "1/2", "attention")
    assert run("law", "config.json", "--beta", "init", "--json").json["spec"]["beta"] == "16/25"
    options = {"n_tokens": "32", "beta": "1", "latent_rank": "16"}
    assert build_layer("deepseek.json", options).spec.latent == freeattn.Latent(16, normalized=True)


@pytest.mark.usefixtures("folder")
def test_parts_and_families(run):
    record = run("law", "vlm.json", "--part", "text", "--n-tokens", 32, "--json").json
    assert record["config"]["part"] == "text_config"
    assert record["spec"]["beta"] == "1/4"  # √16/√256
    assert run("law", "unknown.json", "--model-type", "gpt2", "--json").json["config"]["model_type"] == "gpt2"


@pytest.mark.usefixtures("folder")
def test_derive_and_verify(run):
    derived = run("derive", "config.json", "--json").json
    assert derived["preset"] is None
    assert derived["config"]["model_type"] == "gpt2"
    symbolic = run("derive", "deepseek.json", "--symbolic", "--output", "attention", "--latent-rank", "none",
                   "--query-latent-rank", "none", "--position-width", "0")
    assert symbolic.code == 0
    assert "h = n_heads" in symbolic.out
    verified = run("verify", "config.json", "--draws", 2, "--json")
    assert json.loads(verified.out)["config"]["n_tokens"] == "n_positions = 32"


@pytest.mark.usefixtures("folder", "computing_is_an_error")
@pytest.mark.parametrize(("command", "parts"), [
    ("law none.json", ["config = none.json ", "No such file or directory"]),
    ("law ./none", ["config = ./none ", "No such file or directory"]),
    ("law model", ["config = model ", "a file, not a folder; often config.json inside it"]),
    ("law unknown.json", ["model_type = gpt7 ", "nearest: gpt2", "or give the sizes by hand"]),
    ("law odd.json", ["n_embd = -1 ", "an integer from 1 to 1000000000"]),
    ("verify odd.json --n-tokens 16", ["n_embd = -1 "]),
    ("derive odd.json --symbolic", ["n_embd = -1 "]),
    ("law vlm.json", ["part = (not given) ", "one of text_config, vision_config"]),
    ("law vlm.json --part sound", ["part = sound ", "one of text_config, vision_config"]),
    ("law config.json --part text", ["part = text ", "nothing: the file describes one model"]),
    ("law config.json --n-tokens 65", ["n_tokens = 65 ", "at most d_model = 64", "--inputs gaussian"]),
    ("law config.json --d-key 8", ["beta = init ", "d_key is not the configured one"]),
    ("law config.json --n-heads 0 --beta 1", ["n_heads = 0 ", "a positive integer"]),
    ("law deepseek.json --n-tokens 32", ["deepseek.json is not known", "give beta a number"]),
    ("law bert-base --part text", ["part = text ", "nothing without a configuration file"]),
    ("law --model-type bert --n-tokens 4", ["model_type = bert ", "nothing without a configuration file"]),
    ("derive bert-base --symbolic --part text", ["part = text ", "nothing without a configuration file"]),
])
def test_bad_files(run, command, parts):
    outcome = run(*command.split())
    assert outcome.code == 2
    for part in parts:
        assert part in outcome.line


def test_a_preset_wins_over_a_file_of_its_name(run, folder):
    (folder / "bert-base").write_text("{}", encoding="utf-8")
    assert run("law", "bert-base", "--n-tokens", 64, "--json").json["preset"] == "bert-base"
    assert "model_type = (missing) " in run("law", "./bert-base").line


def test_escapes_of_terminals_are_not_printed(run, folder):
    (folder / "red.json").write_text(json.dumps({"model_type": "\x1b[31mred\n"}), encoding="utf-8")
    line = run("law", "red.json").line
    assert r"model_type = \x1b[31mred\n is not allowed" in line
    assert "\x1b" not in line


@pytest.mark.usefixtures("folder")
def test_finite_size_of_a_configuration(run):
    plain, dressed = (run("law", "config.json", "--json", *more).json for more in ((), ("--finite-size",)))
    assert dressed["limit"]["mean"] == plain["mean"]
    assert 0.9 * plain["mean"] < dressed["mean"] < plain["mean"]


@pytest.mark.usefixtures("folder")
def test_a_missing_file_with_the_name_of_a_preset(run):
    for path in ("llama-2-7b.json", "model/llama-2-7b.json"):
        hint = "expected a file that exists; the preset of this name is llama-2-7b"
        assert f"config = {path} is not allowed; {hint}" in run("law", path).line
    assert "preset" not in run("law", "nothing.json").line


def test_errors_of_fields_name_the_file(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name, heads in (("good.json", 4), ("bad.json", "4")):
        fields = {"model_type": "gpt2", "n_embd": 64, "n_head": heads, "n_layer": 2, "n_positions": 32}
        (tmp_path / name).write_text(json.dumps(fields), encoding="utf-8")
    for command in ("law bad.json", "compare good.json bad.json", "sweep bad.json --over beta=1"):
        outcome = run(*command.split())
        assert outcome.code == 2
        assert outcome.line == (
            "freeattn: error: bad.json: n_head = 4 is not allowed; expected an integer from 1 to 1000000000, "
            "not a text in quotes"
        )
