"""`freeattn sweep`: grids and records from texts, tables as text, JSON, CSV and Parquet."""

import csv
import json
import sys

import pytest

import freeattn
from freeattn.cli.grids import read_grid

LAYER = ["--n-tokens", "64", "--d-model", "64", "--n-heads", "4", "--d-value", "16"]


def values(text):
    return [one["beta"] for one in read_grid([f"beta={text}"])]


def test_json_is_the_sweep(run):
    outcome = run("sweep", *LAYER, "--over", "beta=1/2,1", "--over", "d-key=8:24:8", "--quantity", "mean", "--json")
    assert outcome.code == 0
    assert outcome.err == ""
    record = outcome.json
    assert record["columns"] == ["beta", "d_key", "mean", "error"]
    assert [(row["beta"], row["d_key"]) for row in record["rows"]] == [(b, w) for b in (0.5, 1) for w in (8, 16, 24)]
    spec = freeattn.Attention(n_tokens=64, d_model=64, n_heads=4, d_value=16, d_key=16, beta=1)
    assert record["rows"][4]["mean"] == freeattn.law(spec).mean


def test_a_row_is_what_law_says_with_the_same_options(run):
    """d_out follows d_model, as for the option."""
    row = run("sweep", *LAYER[:2], *LAYER[4:], "--d-key", 8, "--over", "d_model=64,128", "--json").json["rows"][1]
    law = run("law", *LAYER[:2], *LAYER[4:], "--d-key", 8, "--d-model", 128, "--json").json
    assert (row["mean"], [row["left_edge"], row["right_edge"]]) == (law["mean"], law["edges"][0])


def test_errors_are_rows_and_a_note(run):
    outcome = run("sweep", *LAYER, "--over", "d_key=8,16", "--over", "beta=1,-1", "--quantity", "mean")
    assert outcome.code == 0
    assert outcome.err == "freeattn: note: 2 of 4 combinations have an error; the column error tells it\n"
    assert outcome.out.count("beta = -1 is not allowed") == 2
    everywhere = run("sweep", *LAYER, "--over", "d_key=8,16", "--over", "n_tokens=65")
    assert everywhere.code == 2  # n_tokens has an option of its own
    assert run("sweep", *LAYER, "--d-key", 8, "--over", "beta=-1").code == 1


def test_tables_have_one_line_for_each_layer(run):
    lines = run("sweep", *LAYER, "--over", "d_key=8,16").out.splitlines()
    assert lines[1].split() == ["d_key", "mean", "left_edge", "right_edge", "n_bands", "atom"]
    assert [line.split()[0] for line in lines[3:]] == ["8", "16"]


def test_files_have_all_numbers(run, tmp_path):
    pyarrow = pytest.importorskip("pyarrow.parquet", reason='needs the extra "parquet"')
    given = ["sweep", *LAYER, "--over", "beta=0.5,-1", "--d-key", 8, "--quantity", "edges", "--quantity", "bands",
             "--quantity", "moments:order=2", "--csv", tmp_path / "t.csv", "--parquet", tmp_path / "t.parquet",
             "--json"]
    record = run(*given).json
    with (tmp_path / "t.csv").open(newline="") as handle:
        first, second = csv.DictReader(handle)
    table = pyarrow.read_table(tmp_path / "t.parquet")
    assert table.column_names == record["columns"] == list(first)
    parquet = table.to_pylist()
    for name in ("left_edge", "moment_2"):
        assert float(first[name]) == parquet[0][name] == record["rows"][0][name]
        assert (second[name], parquet[1][name]) == ("", None)
    assert json.loads(first["bands"]) == json.loads(parquet[0]["bands"]) == record["rows"][0]["bands"]
    assert isinstance(parquet[0]["n_bands"], int)
    assert "beta = -1" in second["error"]
    assert "--force" in run(*given).line


@pytest.mark.usefixtures("computing_is_an_error")
def test_parquet_names_its_extra(run, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    outcome = run("sweep", *LAYER, "--over", "d_key=8", "--parquet", tmp_path / "t.parquet")
    assert outcome.code == 2
    assert 'pip install "freeattn[parquet]"' in outcome.line


def test_records_are_combinations(run, tmp_path):
    path = tmp_path / "layers.csv"
    path.write_text("n-heads,d_key,latent_rank,inputs\n4,16,,orthogonal\n\n2,32,24,gaussian\n")
    options = ["--n-tokens", 64, "--d-model", 64, "--d-value", 16, "--records", path, "--quantity", "parameter_count"]
    rows = run("sweep", *options, "--json").json["rows"]
    assert [(row["n_heads"], row["latent_rank"], row["inputs"]) for row in rows] == [
        (4, None, "orthogonal"), (2, 24, "gaussian"),
    ]
    assert rows[1]["parameter_count"] == 64 * 2 * 32 + 64 * 24 + 24 * 2 * (32 + 16) + 2 * 16 * 64


def test_a_store_keeps_rows_and_seeds_keep_draws(run, tmp_path):
    given = ["sweep", *LAYER, "--over", "d_key=8,16", "--draws", 2, "--seed", 3, "--json"]
    first = run(*given).out
    assert run(*given, "--store", tmp_path / "s.db").out == first
    assert run(*given, "--store", tmp_path / "s.db").out == first
    assert len(freeattn.Store(tmp_path / "s.db")) == 2
    assert "softmax_moment_1" in first


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("0.5:2:0.25", ["1/2", "3/4", "1", "5/4", "3/2", "7/4", "2"]), ("0.1:0.3:0.1", ["1/10", "1/5", "3/10"]),
        ("1:2:0.4", ["1", "7/5", "9/5"]), ("2:1:-1/2", ["2", "3/2", "1"]), ("1", ["1"]),
        (" 1 , 2:3:1", ["1", "2", "3"]),
        ("init,1e-3", ["init", "1e-3"]), ("1:1:1", ["1"]),
    ],
)
def test_ranges_are_exact_and_include_their_end(text, expected):
    assert values(text) == expected


def test_lists_are_parted_by_semicolons_and_switches_are_on_or_off():
    assert [one["heads"] for one in read_grid(["heads=8:64,4:32;12:64"])] == ["8:64,4:32", "12:64"]
    assert len(read_grid(["latent-per-head=on,off", "tie=none,key-value"])) == 4


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ([], "over = (not given)"), (["--over", "beta"], "FIELD=VALUES"), (["--over", "beta="], "FIELD=VALUES"),
        (["--over", "betta=1"], "FIELD is one of n_tokens"), (["--over", "beta=1:2"], "FIRST:LAST:STEP"),
        (["--over", "beta=1:2:0"], "a STEP towards it"), (["--over", "beta=2:1:1"], "a STEP towards it"),
        (["--over", "beta=1:2:1e-9"], "at most 1000000 values"), (["--over", "beta=x"], "beta as a number such as"),
        (["--over", "beta=1", "--quantity", "flow_loss:t=1e99999999"], "NAME=NUMBER"),
        (["--over", "beta=1", "--quantity", "ridge_error:noise=1,noise=2"], "each argument once"),
        (["--over", "beta=1,,2"], "a number such as"), (["--over", "tie=all"], "values of tie among none, key-value"),
        (["--over", "beta=1", "--over", "beta=2"], "given twice"),
        (["--over", "n_tokens=1:1e4:1", "--over", "beta=1:200:1"], "at most 1000000 combinations"),
        (["--over", "beta=1", "--beta", 2], "--beta is given too"),
        (["--over", "latent_per_head=yes"], "among on, off"), (["--records", "no.csv"], "records = no.csv"),
        (["--over", "beta=1", "--records", "no.csv"], "either"), (["--over", "beta=1", "--quantity", "moan"], "mean"),
        (["--over", "beta=1", "--workers", "0"], "workers = 0"), (["--over", "beta=1", "--workers", "many"], "or all"),
        (["--over", "beta=1", "--store", "no/s.db"], "a folder that exists"),
    ],
)
def test_bad_input_is_one_line_before_anything_is_computed(run, given, said, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    outcome = run("sweep", *given)
    assert outcome.code == 2
    assert said in outcome.line


@pytest.mark.parametrize(
    "text", [
        "", "beta\n", "\n", "beta,beta\n1,2\n", "beta\n1,2\n", "betta\n1\n", "beta\nx\n", "beta\n\xff\n", 'beta\n"1\n',
    ],
)
def test_bad_records_are_refused_by_name(run, text, tmp_path):
    path = tmp_path / "layers.csv"
    path.write_bytes(text.encode("latin-1"))
    assert "records = " in run("sweep", *LAYER, "--records", path).line


def test_records_of_a_spreadsheet_are_read(run, tmp_path):
    """A mark of the byte order in front, a line of blanks behind."""
    path = tmp_path / "layers.csv"
    path.write_bytes(b"\xef\xbb\xbfbeta\r\n1\r\n  \r\n")
    assert [row["beta"] for row in run("sweep", *LAYER, "--records", path, "--json").json["rows"]] == [1]


def test_a_number_of_records_that_cannot_be_read_is_named(run, tmp_path):
    path = tmp_path / "layers.csv"
    path.write_text("beta\nabc\n", encoding="utf-8")
    assert "layers.csv: beta = abc " in run("sweep", *LAYER, "--records", path).line


def test_an_unknown_preset_is_refused_as_everywhere(run):
    assert "nearest: bert-base" in run("sweep", "bert-bas", "--over", "beta=1").line


def test_one_combination_with_an_error_has_one(run):
    layer = ("bert-base", "--n-tokens", 64, "--n-kv-heads", 12, "--quantity", "mean")
    err = run("sweep", *layer, "--over", "n_heads=12,7").err
    assert err == "freeattn: note: 1 of 2 combinations has an error; the column error tells it\n"


def test_a_file_is_read_once(run, tmp_path, monkeypatch):
    path = tmp_path / "config.json"
    path.write_text(json.dumps({
        "model_type": "llama", "hidden_size": 64, "num_attention_heads": 4, "num_hidden_layers": 2,
        "num_key_value_heads": 2, "max_position_embeddings": 4096,
    }), encoding="utf-8")
    read, calls = freeattn.read_config, []

    def counted(*given, **named):
        calls.append(given)
        return read(*given, **named)

    monkeypatch.setitem(vars(freeattn), "read_config", counted)
    outcome = run(
        "sweep", path, "--over", "n_tokens=16:64:16", "--over", "beta=1,3", "--quantity", "parameter_count", "--json"
    )
    assert len(calls) == 1
    assert outcome.err == ""  # no law is asked for, and none is warned of
    spec = freeattn.from_config(path, n_tokens=16, beta=1)
    assert {row["parameter_count"] for row in outcome.json["rows"]} == {freeattn.predict.parameter_count(spec)}
    assert len(outcome.json["rows"]) == 8
