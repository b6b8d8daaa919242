"""`freeattn architectures`."""

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


def test_no_match_is_said_on_stderr(run):
    outcome = run("architectures", "no-such-model")
    assert (outcome.code, outcome.out) == (0, "")
    assert outcome.err == "freeattn: note: no architecture matches no-such-model\n"
    assert run("architectures", "no-such-model", "--json").json["architectures"] == []
