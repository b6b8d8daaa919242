"""What commands say about a law beyond its numbers: where the limit is off, what a file was read as."""

from __future__ import annotations

import json

import freeattn

SMALL = ("--d-model", 64, "--n-heads", 4, "--d-key", 16, "--d-value", 16, "--n-tokens", 32)
HOT = (*SMALL, "--beta", "3/2")
GPT2 = {"model_type": "gpt2", "n_embd": 64, "n_head": 4, "n_layer": 2, "n_positions": 32, "initializer_range": 0.1}
WARNING = "freeattn: warning: beta = 1.5 is above sqrt(log n)/2 = 0.9308 at n_tokens = 32: few tokens dominate each row"


def test_law_and_predict_warn_where_the_limit_is_off(run):
    sizes = {"d_model": 64, "n_heads": 4, "d_key": 16, "d_value": 16, "n_tokens": 32}
    loss = freeattn.Attention(**sizes, beta=1.5).dominated_rows.theta_ratio
    for command in (("law",), ("predict", "shape"), ("predict", "ridge"), ("predict", "flow")):
        (line,) = run(*command, *HOT).err.splitlines()
        assert line.startswith(WARNING)
        assert "; the law of the limit is off there: expect about " in line
        assert f"expect about {loss:.2g} times its mean, and another shape" in line
        assert "--finite-size) repairs the mean, not what depends on the shape (condition number, ridge, flow)" in line
        assert run(*command, *SMALL, "--beta", "0.9").err == ""
        (line,) = run(*command, *HOT, "--finite-size").err.splitlines()
        assert line.startswith(WARNING)
        assert "; the law at finite size has their mean, but softmax has another shape" in line
        assert run(*command, *SMALL, "--beta", "0.9", "--finite-size").err == ""
    assert run("law", *HOT, "--scores", "linear").err == ""


def test_sweep_and_compare_warn_once(run):
    err = run("sweep", *SMALL, "--over", "beta=0.5,1.5,2", "--quantity", "mean").err
    assert err.count("freeattn: warning: 2 of 3 layers: beta = 1.5 is above") == err.count("warning") == 1
    err = run("compare", "bert-base", "bert-base:beta=2", "--n-tokens", 64).err
    assert err.startswith("freeattn: warning: 1 of 2 layers: bert-base:beta=2: beta = 2 is above")
    assert err.count("warning") == 1


def test_finite_size_is_told(run):
    assert "law of mean one at finite size: rows of 32 tokens" in run("predict", "shape", *SMALL, "--finite-size").out
    assert "finite size" not in run("predict", "shape", *SMALL).out
    assert run("predict", "flow", *SMALL, "--finite-size", "--json").json["finite_size"] is True
    layers = ("compare", "bert-base", "bert-base:finite_size=on", "--n-tokens", 64)
    lines = [line.split("  ") for line in run(*layers).out.splitlines()]
    (told,) = [[cell.strip() for cell in line if cell] for line in lines if line[0] == "finite size"]
    assert told == ["finite size", "no, the limit", "rows of 64"]
    assert [layer["finite_size"] for layer in run(*layers, "--json").json["layers"]] == [False, True]
    assert "finite size" not in run("compare", "bert-base", "bert-large", "--n-tokens", 64).out


def test_a_command_has_one_warning_for_each_kind_of_law(run):
    err = run("compare", "bert-base:beta=2", "bert-base:beta=2,finite_size=on", "--n-tokens", 64).err.splitlines()
    assert ["law of the limit" in line for line in err] == [True, False]
    assert "1 of 2 layers: bert-base:beta=2,finite_size=on: beta = 2" in err[1]


def test_a_report_warns_on_the_page_and_on_stderr(run, tmp_path):
    outcome = run("report", *HOT, "--draws", 0, "--json", "-o", tmp_path / "hot.html")
    assert outcome.err.startswith(WARNING)
    (layer,) = outcome.json["layers"]
    (warning,) = layer["warnings"]
    assert warning.startswith("Beta = 1.5 is above")
    page = (tmp_path / "hot.html").read_text(encoding="utf-8")
    for section in ("law", "predictions"):
        text = page.partition(f'<section id="{section}"')[2].partition("</section>")[0]
        assert "<strong>Warning:</strong> Beta = 1.5 is above" in text
    outcome = run("report", *SMALL, "--beta", "0.9", "--draws", 0, "--json", "-o", tmp_path / "cool.html")
    assert outcome.json["layers"][0]["warnings"] == []
    assert "warning" not in outcome.err


def test_files_have_short_names_that_tell_them_apart(run, tmp_path):
    paths = [tmp_path / folder / "config.json" for folder in ("small", "large")]
    for path, width in zip(paths, (64, 96), strict=True):
        path.parent.mkdir()
        path.write_text(json.dumps({**GPT2, "n_embd": width}), encoding="utf-8")
    heading = run("compare", *paths, f"{paths[0]}:n_tokens=16").out.splitlines()[1]
    assert heading.split() == ["small/config.json", "large/config.json", "small/config.json:n_tokens=16"]
    assert run("compare", paths[0], "bert-base:n_tokens=32").out.splitlines()[1].split() == [
        "config.json", "bert-base:n_tokens=32",
    ]


def test_a_file_is_told_by_predict_and_compare(run, tmp_path):
    path = tmp_path / "config.json"
    path.write_text(json.dumps(GPT2), encoding="utf-8")
    record = run("predict", "shape", path, "--json").json
    assert record["preset"] is None
    assert record["config"]["model_type"] == "gpt2"
    assert "causal mask" in record["not_modelled"]
    out = run("predict", "shape", path).out
    assert "n_tokens 32, beta 16/25; law of mean one" in out
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
    assert any(line.startswith("config.json: Read as gpt2: ") for line in lines)
    assert any(line.startswith("config.json:n_tokens=16: Not modelled: ") for line in lines)


def test_beta_of_unequal_heads(run):
    heads = ("--d-model", 64, "--n-tokens", 32, "--heads", "2:16:16:1/2,2:8:8:3/2")
    outcome = run("predict", "shape", *heads)
    assert "beta 1/2, 3/2; law" in outcome.out
    assert outcome.err.startswith(WARNING)
    spec = freeattn.Attention(n_tokens=32, d_model=64, heads=[freeattn.Heads(2, 16, 16), freeattn.Heads(2, 8, 8)])
    assert spec.betas == (1,)
    assert freeattn.predict.summary(freeattn.law(spec))["beta"] == 1
