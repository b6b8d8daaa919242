"""`freeattn report`: files, names, JSON, errors."""

import json

import pytest

import freeattn as fa

LAYER = ("--n-tokens", "48", "--d-model", "64", "--n-heads", "4", "--d-key", "16", "--d-value", "12")


def test_a_page_of_options_alone(run, tmp_path):
    outcome = run("report", *LAYER, "--draws", "1", "-o", tmp_path / "layer.html")
    assert (outcome.code, outcome.out) == (0, "")
    page = (tmp_path / "layer.html").read_text(encoding="utf-8")
    line = f"freeattn report {' '.join(LAYER)} --draws 1 --seed 0 --noise 0.1"
    assert f"<code>{line} -o report.html</code>" in page
    assert "layer.html" not in page


def test_layers_with_fields_of_their_own(run, tmp_path):
    layers = ("bert-base:n_tokens=256", "bert-base:n_heads=6,d_key=128,d_value=128,n_tokens=128")
    outcome = run("report", *layers, "--draws", "0", "--json", "-o", tmp_path / "two.html")
    record = outcome.json
    assert record["bytes"] == (tmp_path / "two.html").stat().st_size < 2.4e6
    assert [layer["name"] for layer in record["layers"]] == list(layers)
    spec = fa.architecture("bert-base", n_tokens=128, n_heads=6, d_key=128, d_value=128)
    assert record["layers"][1]["spec"] == json.loads(json.dumps(spec.to_dict()))
    assert record["layers"][1]["law"]["mean of the law"] == pytest.approx(fa.law(spec).mean)


def test_names_are_short_where_they_differ(run, tmp_path):
    outcome = run("report", "bert-base:n_tokens=64", "bert-large:n_tokens=128", "--draws", "0", "--json",
                  "-o", tmp_path / "two.html")
    assert [layer["name"] for layer in outcome.json["layers"]] == ["bert-base", "bert-large"]


def test_configuration_files_say_what_they_were_read_as(run, tmp_path):
    config = {"model_type": "bert", "hidden_size": 64, "num_attention_heads": 4, "max_position_embeddings": 48}
    (tmp_path / "config.json").write_text(json.dumps(config))
    outcome = run("report", tmp_path / "config.json", "--draws", "0", "-o", tmp_path / "page.html")
    assert outcome.code == 0
    assert "Read as bert" in (tmp_path / "page.html").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("arguments", "field"),
    [
        ((*LAYER,), "-o"), (("bert-base", "bert-base", "-o", "a.html"), "layers"),
        (("bert-base:n_heads", "-o", "a.html"), "spec"), ((*LAYER, "--noise", "0", "-o", "a.html"), "noise"),
        ((*LAYER, "--draws", "-1", "-o", "a.html"), "draws"), ((*LAYER, "-o", "no/such/folder.html"), "-o"),
        (("-o", "a.html"), "preset"),
    ],
)
def test_bad_input(run, arguments, field, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    outcome = run("report", *arguments)
    assert outcome.code == 2
    assert outcome.line.startswith(f"freeattn: error: {field} = ")
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_exists_is_kept(run, tmp_path):
    (tmp_path / "a.html").write_text("mine")
    assert run("report", *LAYER, "-o", tmp_path / "a.html").code == 2
    assert (tmp_path / "a.html").read_text() == "mine"


@pytest.mark.parametrize("name", ["page.pdf", "page"])
def test_the_ending_of_a_page_says_what_it_is(run, tmp_path, name):
    outcome = run("report", "bert-base", "--n-tokens", "128", "-o", tmp_path / name)
    assert outcome.code == 2
    assert "ends in .html" in outcome.err
    assert not list(tmp_path.iterdir())
