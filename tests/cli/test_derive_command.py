"""`freeattn derive`: the forms, the symbols and the file."""

import json

import pytest


def test_latex_fragment_and_document(run):
    fragment = run("derive", "--symbolic", "--format", "latex")
    document = run("derive", "--symbolic", "--format", "latex", "--standalone")
    assert (fragment.code, fragment.err) == (0, "")
    assert r"\documentclass" not in fragment.out
    assert document.out.lstrip().startswith(r"\documentclass")
    assert "% run LaTeX twice: it numbers" in document.out.splitlines()[0]
    assert r"\gamma" in fragment.out


def test_document_is_the_standalone_form(run):
    document = run("derive", "--symbolic", "--format", "document")
    assert document.out == run("derive", "--symbolic", "--format", "latex", "--standalone").out
    assert r"\begin{thebibliography}" in document.out


def test_macros(run):
    fragment = run("derive", "--symbolic", "--format", "latex", "--macros")
    assert r"\cite[{Theorem 3.1}]{arXiv:2610.10033}" in fragment.out
    assert r"\usepackage{freeattn}" in run("derive", "--symbolic", "--format", "document", "--macros").out
    refused = run("derive", "--symbolic", "--macros")
    assert refused.code == 2
    assert "--macros" in refused.line


@pytest.mark.parametrize(("form", "words"), [
    ("python", "def density(x)"), ("julia", "module Law"), ("mathematica", "BeginPackage"),
])
def test_programs(run, tmp_path, form, words):
    outcome = run("derive", "bert-base", "--format", form)
    assert (outcome.code, outcome.err) == (0, "")
    assert words in outcome.out
    path = tmp_path / "law.txt"
    assert run("derive", "bert-base", "--format", form, "-o", path).code == 0
    assert path.read_text(encoding="utf-8") == outcome.out


def test_a_program_runs(run):
    names = {}
    exec(compile(run("derive", "--symbolic", "--output", "attention", "--format", "python").out, "law", "exec"), names)
    density = names["density"](2.0, beta=1, d_key=64, n_heads=12, n_tokens=512)
    record = run("law", "bert-base", "--n-tokens", 512, "--output", "attention", "--json").json
    assert density > 0
    assert names["density"](2 * record["edges"][-1][1], beta=1, d_key=64, n_heads=12, n_tokens=512) == 0


def test_unknown_form(run):
    outcome = run("derive", "bert-base", "--format", "fortran")
    assert outcome.code == 2


def test_json_is_one_object(run):
    record = run("derive", "bert-base", "--json").json
    assert record["preset"] == "bert-base"
    assert record["version"]
    assert record == run("derive", "bert-base", "--format", "json").json


def test_text_is_the_default(run):
    assert run("derive", "bert-base").out == run("derive", "bert-base", "--format", "text").out


@pytest.mark.parametrize("output", ["mha", "values", "attention", "head-sum"])
def test_symbolic_follows_the_output(run, output):
    outcome = run("derive", "--symbolic", "--output", output)
    assert outcome.code == 0
    assert outcome.out.strip()


def test_symbolic_takes_output_and_tie_of_the_preset(run):
    tied = run("derive", "kayyam-1.2b-kv", "--symbolic")
    assert tied.code == 0
    assert tied.out == run("derive", "--symbolic", "--tie", "key-value").out


def test_a_number_can_be_put_in_for_a_symbol(run):
    general, special = run("derive", "--symbolic").out, run("derive", "--symbolic", "--beta", "1/2").out
    assert special != general


def test_bad_number_in_a_symbolic_derivation(run):
    outcome = run("derive", "--symbolic", "--n-heads", 0)
    assert outcome.code == 2
    assert "n_heads = 0 " in outcome.line


def test_output_goes_to_a_file_and_is_whole(run, tmp_path):
    path = tmp_path / "law.tex"
    outcome = run("derive", "--symbolic", "--format", "latex", "-o", path)
    assert (outcome.code, outcome.out, outcome.err) == (0, "", "")
    assert path.read_text(encoding="utf-8") == run("derive", "--symbolic", "--format", "latex").out
    assert run("derive", "bert-base", "--json", "-o", path, "--force").code == 0
    assert json.loads(path.read_text())["preset"] == "bert-base"


def test_route_is_chosen_or_asked_for(run):
    closed = run("derive", "bert-base", "--json").json
    words = run("derive", "bert-base", "--json", "--route", "pencil").json
    assert (closed["route"], words["route"]) == ("transform", "pencil")
    assert run("derive", "bert-base", "--json", "--inputs", "gaussian").json["route"] == "pencil"
    assert words["system"]["unknowns"] == ["g_x_x"]
    assert [e["name"] for e in words["steps"]][:5] == ["layer", "equivalent", "model", "pencil", "pattern"]


def test_no_closed_law_for_the_route_that_needs_one(run):
    outcome = run("derive", "bert-base", "--inputs", "gaussian", "--route", "transform")
    assert outcome.code == 2
    assert outcome.line


def test_unknown_route(run):
    assert run("derive", "bert-base", "--route", "other").code == 2
