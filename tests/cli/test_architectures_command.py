"""`freeattn architectures`."""

import pytest

import freeattn


def test_json_holds_every_preset_and_its_ratios(run):
    outcome = run("architectures", "--json")
    records = outcome.json["architectures"]
    assert [record["name"] for record in records] == [preset.name for preset in freeattn.architectures()]
    (bert,) = (record for record in records if record["name"] == "bert-base")
    assert bert["gamma"]["exact"] == {"key": "3/2", "value": "3/2", "out": "3/2"}
    assert [bert["gamma"][name] for name in ("key", "value", "out")] == [1.5, 1.5, 1.5]
    assert (bert["n_heads"], bert["d_key"], bert["d_value"], bert["d_model"]) == (12, 64, 64, 768)
    assert bert["source"]
    assert bert["confirmed"] is True
    assert bert["covered"] is True


def test_json_says_why_a_preset_is_not_covered(run):
    (record,) = run("architectures", "gpt2-small", "--json").json["architectures"]
    assert record["covered"] is False
    assert "n_tokens" in record["why_not"]


def test_search_keeps_what_contains_the_text(run):
    outcome = run("architectures", "FALCON")
    assert outcome.code == 0
    assert "falcon-7b" in outcome.out
    assert "bert-base" not in outcome.out


@pytest.mark.parametrize("json", [(), ("--json",)])
@pytest.mark.parametrize(("search", "near"), [
    ("nosuch", ""), ("bert-bse", "nearest: bert-base; "),
    ("llama3-8b", "nearest: llama-3-8b, llama-3.1-8b, llada-8b; "),
])
def test_no_match_is_bad_input_and_says_what_was_searched(run, search, near, json):
    outcome = run("architectures", search, *json)
    assert outcome.code == 2
    count = len(freeattn.architectures())
    assert outcome.line == (
        f"freeattn: error: search = {search} is not allowed; expected a text in the name, family or source of a preset "
        f"({near}freeattn architectures lists all {count})"
    )
