"""NAME:FIELD=VALUE,… for every command that takes a layer."""

from __future__ import annotations

import json

import pytest

import freeattn
from freeattn.cli.spec_text import own_fields, parted_spec, preset_name, short_names

CONFIG = {"model_type": "gpt2", "n_embd": 64, "n_head": 4, "n_layer": 2, "n_positions": 32, "initializer_range": 0.1}
OWN = "bert-base:n_heads=6,d-key=128,d_value=128,n_tokens=64"


@pytest.fixture
def wide():
    return freeattn.architecture("bert-base", n_tokens=64, n_heads=6, d_key=128, d_value=128)


@pytest.mark.parametrize("command", [
    ("law",), ("predict", "shape"), ("predict", "ridge"), ("predict", "flow"), ("verify", "--draws", 1), ("derive",),
])
def test_every_command_takes_fields_of_the_layer(run, command, wide):
    outcome = run(*command, OWN, "--json")
    assert outcome.code == 0
    assert freeattn.Attention.from_dict(outcome.json["source" if command == ("derive",) else "spec"]) == wide
    assert outcome.json["preset"] == "bert-base"


def test_converge_and_sweep_take_them(run, wide):
    record = run("converge", OWN, "--sizes", "32,64", "--draws", 2, "--json").json
    assert record["preset"] == "bert-base"
    assert freeattn.Attention.from_dict(record["spec"]) == wide
    table = run("sweep", OWN, "--over", "beta=0.5,1", "--quantity", "mean", "--json").json
    assert table["preset"] == "bert-base"
    assert [row["mean"] for row in table["rows"]] == [freeattn.law(wide.replace(beta=b)).mean for b in (0.5, 1)]
    assert "over = d_key" in run("sweep", OWN, "--over", "d_key=64,128").line


def test_a_derivation_with_symbols_takes_the_kind_of_layer(run):
    own = run("derive", "bert-base:output=attention", "--symbolic").out
    assert own == run("derive", "bert-base", "--output", "attention", "--symbolic").out


def test_own_fields_go_before_options_and_lists_hold_commas(run):
    own = "bert-base:n_tokens=32,heads=8:64:64,4:128:64"
    spec = run("predict", "shape", own, "--n-tokens", 64, "--json").json["spec"]
    assert (spec["n_tokens"], len(spec["heads"])) == (32, 2)


def test_of_files(run, tmp_path):
    path = tmp_path / "config.json"
    path.write_text(json.dumps(CONFIG), encoding="utf-8")
    record = run("predict", "shape", f"{path}:n_tokens=16", "--json").json
    assert (record["preset"], record["spec"]["n_tokens"], record["config"]["n_tokens"]) == (None, 16, "given")
    odd = tmp_path / "a:b=c.json"
    odd.write_text(json.dumps(CONFIG), encoding="utf-8")
    assert parted_spec(str(odd)) == (str(odd), "")
    assert parted_spec(f"{odd}:n_tokens=16") == (str(odd), "n_tokens=16")


@pytest.mark.parametrize("command", [
    ("law",), ("predict", "shape"), ("verify", "--draws", 1), ("derive",), ("derive", "--symbolic"),
    ("converge", "--sizes", "16,32", "--draws", 2), ("sweep", "--over", "beta=1", "--quantity", "mean"),
])
def test_a_file_is_no_preset(run, tmp_path, command):
    path = tmp_path / "config.json"
    path.write_text(json.dumps(CONFIG), encoding="utf-8")
    arguments = (path,) if "--symbolic" in command else (path, "--n-tokens", 16)
    assert run(*command, *arguments, "--json").json["preset"] is None


def test_names_of_presets():
    given = (None, "bert-base", OWN, "./config.json", "config.json:beta=2")
    assert [preset_name(text) for text in given] == [None, "bert-base", "bert-base", None, None]


@pytest.mark.parametrize("command", ["compare", "report"])
@pytest.mark.parametrize("pair", [
    ("bert-base", "bert-base"), ("bert-base:beta=2", "bert-base:beta=2"), ("config.json", "./config.json"),
    ("config.json:beta=2", "a/../config.json:beta=2"),
])
def test_the_same_layer_twice_is_refused(run, tmp_path, monkeypatch, command, pair):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a").mkdir()
    (tmp_path / "config.json").write_text(json.dumps(CONFIG), encoding="utf-8")
    given = ("-o", "page.html") if command == "report" else ("--plot", "both.svg")
    outcome = run(command, *pair, "--n-tokens", 16, *given)
    assert outcome.code == 2
    assert outcome.line.endswith(f"layers = {' '.join(pair)} is not allowed; expected different layers")


@pytest.mark.parametrize(("text", "said"), [
    ("bert-base:d_key=32,d-key=64", "spec = d-key=64 is not allowed; expected each field once; d_key is given twice"),
    ("bert-base:heads=8:64,4:64,heads=12:64", "expected each field once; heads is given twice"),
    ("bert-base:", "spec = bert-base: is not allowed; expected fields of the layer behind the colon"),
    ("bert-base:,", "expected fields of the layer behind the colon"),
    ("bert-base:n_heads", "spec = n_heads is not allowed; expected FIELD=VALUE"),
    ("bert-base:n_heads=", "spec = n_heads= is not allowed; expected FIELD=VALUE"),
    ("bert-base:foo=1", "spec = foo=1 is not allowed; expected FIELD=VALUE"),
    ("bert-base:finite_size=1", "spec = finite_size=1 is not allowed; expected finite_size=on or finite_size=off"),
    ("bert-base:n_heads=6.5", "n_heads = 6.5 is not allowed"),
    ("bart:n_heads=6", "architecture = bart is not allowed"),
])
def test_refusals(run, text, said):
    outcome = run("law", text)
    assert outcome.code == 2
    assert said in outcome.line


def test_switches():
    assert own_fields("a:finite_size=on", {"finite_size": False}) == ("a", {"finite_size": True})
    assert own_fields("a:finite_size=off", {"finite_size": True}) == ("a", {"finite_size": False})


def test_short_names():
    assert short_names(["bert-base:beta=2", "a/b/config.json"]) == ["bert-base", "config.json"]
    assert short_names(["bert-base:beta=2", "a/x.json"], with_fields=True) == ["bert-base:beta=2", "x.json"]
    assert short_names(["a/b/c.json", "a/d/c.json:beta=1"]) == ["b/c.json", "d/c.json"]
    assert short_names(["c.json", "a/c.json"]) == ["c.json", "a/c.json"]
    assert short_names(["bert-base", "bert-base:beta=2"]) == ["bert-base", "bert-base:beta=2"]


def test_an_initial_beta_of_other_widths_names_the_way_out(run, tmp_path):
    path = tmp_path / "config.json"
    path.write_text(json.dumps(CONFIG), encoding="utf-8")
    line = run("law", path, "--n-heads", 2).line
    assert "expected a number, such as --beta 1, when n_heads is not the configured one: " in line
    line = run("law", path, "--n-heads", 2, "--d-key", 8).line
    assert "when n_heads and d_key are not the configured ones: " in line
    assert run("law", path, "--n-heads", 2, "--beta", 1).code == 0


@pytest.mark.parametrize(("given", "told"), [
    (("bert-base", "--n-tokens", 64, "--n-heads", 5),
     "bert-base: d_key and d_value stay 64: n_heads*d_key = 320, d_model = 768"),
    (("bert-base:n_heads=5,n_tokens=64",),
     "bert-base:n_heads=5,n_tokens=64: d_key and d_value stay 64: n_heads*d_key = 320, d_model = 768"),
    (("bert-base", "--n-tokens", 64, "--n-heads", 6, "--d-key", 128),
     "bert-base: d_value stays 64: n_heads*d_value = 384, d_model = 768"),
    (("bert-base", "--n-tokens", 64, "--d-model", 1024),
     "bert-base: d_key and d_value stay 64: n_heads*d_key = 768, d_model = 1024"),
    (("bert-base", "--n-tokens", 64, "--n-heads", 5, "--output", "attention"),
     "bert-base: d_key stays 64: n_heads*d_key = 320, d_model = 768"),
])
@pytest.mark.parametrize("command", ["law", "predict shape"])
def test_widths_that_stay_are_told_once(run, command, given, told):
    outcome = run(*command.split(), *given, "--json")
    assert outcome.code == 0
    assert outcome.err == f"freeattn: note: {told}\n"
    assert outcome.json["spec"]["d_key"] in (64, 128)


@pytest.mark.parametrize("given", [
    (), ("--n-heads", 6, "--d-key", 128, "--d-value", 128), ("--d-key", 32), ("--beta", 0.5),
    ("--d-model", 1024, "--n-heads", 16), ("--n-heads", 5, "--d-key", 10, "--d-value", 10),
    ("--heads", "4:64:64,8:32:32"),
])
def test_nothing_is_told_where_widths_were_given_or_fit(run, given):
    outcome = run("law", "bert-base", "--n-tokens", 64, *given)
    assert (outcome.code, outcome.err) == (0, "")


def test_a_preset_whose_widths_are_its_own_says_nothing(run):
    assert run("law", "deepseek-v3", "--n-tokens", 512, "--n-heads", 64).err == ""


def test_widths_that_stay_are_told_of_files_and_in_every_command(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "config.json").write_text(json.dumps(CONFIG), encoding="utf-8")
    told = "freeattn: note: config.json: d_key and d_value stay 16: n_heads*d_key = 48, d_model = 64\n"
    for command in ("law", "derive", "verify --draws 1", "converge --sizes 32,64 --draws 2"):
        assert told in run(*command.split(), "config.json", "--n-heads", 3, "--beta", 1).err
    outcome = run("compare", "config.json:n_heads=3", "config.json", "--beta", "1/2")
    assert outcome.err == told.replace("config.json:", "config.json:n_heads=3:")


def test_a_sweep_tells_widths_that_stay_once(run):
    given = ("sweep", "bert-base", "--n-tokens", 64, "--quantity", "parameter_count")
    outcome = run(*given, "--over", "n_heads=4,6,12", "--json")
    assert outcome.err == (
        "freeattn: note: bert-base: 2 of 3 layers, the first: d_key and d_value stay 64: n_heads*d_key = 256, "
        "d_model = 768\n"
    )
    assert len(outcome.json["rows"]) == 3
    assert run(*given, "--over", "d_key=32,64").err == ""
