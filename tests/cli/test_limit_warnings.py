"""What commands say about a law beyond its numbers: where the limit is off, what a file was read as."""

from __future__ import annotations

import json

import freeattn

SMALL = ("--d-model", 64, "--n-heads", 4, "--d-key", 16, "--d-value", 16, "--n-tokens", 32)
HOT = (*SMALL, "--beta", "3/2")
GPT2 = {"model_type": "gpt2", "n_embd": 64, "n_head": 4, "n_layer": 2, "n_positions": 32, "initializer_range": 0.1}
WARNING = "freeattn: warning: beta = 1.5 is above sqrt(log n)/2 = 0.9308 at n_tokens = 32: few tokens dominate each row"


def test_law_and_predict_warn_where_the_limit_is_off(run):
    for command in (("law",), ("predict", "shape"), ("predict", "ridge"), ("predict", "flow")):
        (line,) = run(*command, *HOT).err.splitlines()
        assert line.startswith(WARNING)
        assert "--finite-size" in line
        assert run(*command, *SMALL, "--beta", "0.9").err == ""
    assert run("law", *HOT, "--finite-size").err == ""
    assert run("law", *HOT, "--scores", "linear").err == ""


def test_sweep_and_compare_warn_once(run):
    err = run("sweep", *SMALL, "--over", "beta=0.5,1.5,2", "--quantity", "mean").err
    assert err.count("freeattn: warning: 2 of 3 layers: beta = 1.5 is above") == err.count("warning") == 1
    err = run("compare", "bert-base", "bert-base:beta=2", "--n-tokens", 64).err
    assert err.startswith("freeattn: warning: 1 of 2 layers: bert-base:beta=2: beta = 2 is above")
    assert err.count("warning") == 1


def test_a_file_is_told_by_predict_and_compare(run, tmp_path):
    path = tmp_path / "config.json"
    path.write_text(json.dumps(GPT2), encoding="utf-8")
    record = run("predict", "shape", path, "--json").json
    assert record["preset"] is None
    assert record["config"]["model_type"] == "gpt2"
    assert "causal mask" in record["not_modelled"]
    out = run("predict", "shape", path).out
    assert "n_tokens 32, beta 0.64; law of mean one" in out
    assert "Read as gpt2: n_tokens (n_positions = 32)" in out
    assert "Not modelled: " in out
    arguments = ("compare", f"{path}:n_tokens=16", path)
    first, second = run(*arguments, "--json").json["layers"]
    assert (first["n_tokens"], second["n_tokens"]) == (16, 32)
    assert first["beta"] == second["beta"] == "16/25"
    assert first["config"]["n_tokens"] == "given"
    assert first["not_modelled"] == second["not_modelled"]
    lines = run(*arguments).out.splitlines()
    assert ["n_tokens", "16", "32"] in [line.split() for line in lines]
    assert any(line.startswith(f"{path}: Read as gpt2: ") for line in lines)
    assert any(line.startswith(f"{path}: Not modelled: ") for line in lines)


def test_beta_of_unequal_heads(run):
    heads = ("--d-model", 64, "--n-tokens", 32, "--heads", "2:16:16:1/2,2:8:8:3/2")
    outcome = run("predict", "shape", *heads)
    assert "beta 0.5, 1.5; law" in outcome.out
    assert outcome.err.startswith(WARNING)
    spec = freeattn.Attention(n_tokens=32, d_model=64, heads=[freeattn.Heads(2, 16, 16), freeattn.Heads(2, 8, 8)])
    assert spec.betas == (1,)
    assert freeattn.predict.summary(freeattn.law(spec))["beta"] == 1
