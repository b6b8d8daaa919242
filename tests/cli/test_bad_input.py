"""Bad input: exit code 2, one line on stderr with field, value and what is allowed, before computing."""

import sys

import pytest

from freeattn.errors import InputError
from freeattn.model.written_numbers import exact_number

pytestmark = pytest.mark.usefixtures("computing_is_an_error")

SIZES = "--n-tokens 64 --d-model 64 --n-heads 4 --d-key 16 --d-value 16"
BAD = [
    ("law bert-base --n-tokens 0", "n_tokens = 0 ", "a positive integer"),
    ("law bert-base --n-heads -3", "n_heads = -3 ", "a positive integer"),
    ("law bert-base --d-key 12.5", "d_key = 12.5 ", "a positive integer"),
    ("law bert-base --d-value 1/2", "d_value = 1/2 ", "a positive integer"),
    ("law bert-base --d-out abc", "d_out = abc ", "a number such as"),
    ("law bert-base --n-tokens inf", "n_tokens = inf ", "a number such as"),
    ("law bert-base --n-tokens 1/0", "n_tokens = 1/0 ", "a number such as"),
    ("law bert-base --tie key-value --d-key 32", "d_value = 64 ", "equal to d_key = 32"),
    ("law bert-base --n-kv-heads 5", "n_kv_heads = 5 ", "a divisor of n_heads = 12"),
    ("law bert-base --beta 0", "beta = 0 ", "a number above 0"),
    ("law bert-base --beta -1", "beta = -1 ", "a number above 0"),
    ("law bert-base --beta nan", "beta = nan ", "a number such as"),
    ("law bert-base --beta inf", "beta = inf ", "a number such as"),
    ("law bert-base --beta 27", "beta = 27 ", "at most 26"),
    ("law bert-base --beta 1e999999999", "beta = 1e999999999 ", "a number such as"),
    (f"law --beta init {SIZES}", "beta = init ", "needs a preset"),
    ("law bert-bse", "= bert-bse ", "bert-base"),
    ("law bert-base --n-tokens 1024", "n_tokens = 1024 ", "at most d_model = 768"),
    ("law bert-base --output heads", "output = heads ", "mha, values, attention, head-sum"),
    ("law bert-base --tie both", "tie = both ", "none, key-value"),
    ("law bert-base --inputs uniform", "inputs = uniform ", "orthogonal, gaussian"),
    ("law bert-base --tie output-key --output values", "tie = output-key ", "has no W^O"),
    ("law bert-base --tie output-key --d-out 64", "d_out = 64 ", "equal to d_model = 768"),
    ("law bert-base --feature-eigenvalues 1,x", "feature_eigenvalues = 1,x ", "a number such as"),
    ("law bert-base --feature-eigenvalues 0,0", "feature_eigenvalues = 0,0 ", "at least one of them above 0"),
    ("law bert-base --feature-eigenvalues 1,-2", "feature_eigenvalues = 1,-2 ", "nonnegative numbers"),
    ("law bert-base --feature-eigenvalues 1,2 --feature-weights 1", "feature_weights = 1 ", "2 positive numbers"),
    ("law bert-base --feature-weights 1", "feature_weights = 1 ", "nothing without --feature-eigenvalues"),
    ("law bert-base --feature-eigenvalues 1,2 --inputs gaussian", "inputs = gaussian ", "nothing next to"),
    ("law bert-base --key-value-correlation 1", "key_value_correlation = 1 ", "between -1 and 1"),
    ("law bert-base --key-value-correlation 0.5 --tie key-value", "tie = key-value ", "none or output-key"),
    ("law bert-base --key-value-correlation 0.5 --d-key 32", "d_value = 64 ", "equal to d_key = 32"),
    ("law bert-base --latent-rank 0", "latent_rank = 0 ", "a positive number"),
    ("law bert-base --latent-rank 1.5", "latent_rank = 1.5 ", "a positive integer"),
    ("law bert-base --query-latent-rank 1/2", "query_latent_rank = 1/2 ", "a positive integer"),
    ("law bert-base --latent-per-head", "latent_per_head = on ", "nothing without a latent; --latent-rank"),
    ("law bert-base --position-width 8", "position_width = 8 ", "0 without a latent"),
    ("law bert-base --latent-rank 64 --position-width 64", "position_width = 64 ", "less than d_key = 64"),
    ("law bert-base --latent-rank 64 --position-width -1", "position_width = -1 ", "at least 0"),
    ("law bert-base --heads 64", "heads = 64 ", "COUNT:D_KEY[:D_VALUE[:BETA]]"),
    ("law bert-base --heads 1:2:3:4:5", "heads = 1:2:3:4:5 ", "COUNT:D_KEY[:D_VALUE[:BETA]]"),
    ("law bert-base --heads 0:64:64", "heads = 0:64:64 ", "count a positive integer"),
    ("law bert-base --heads 4:64", "heads = 4:64 ", "d_value a positive integer"),
    ("law bert-base --heads 4:64:64:27", "heads = 4:64:64:27 ", "at most 26"),
    ("law bert-base --heads 4:64:64 --d-key 64", "d_key = 64 ", "nothing next to heads"),
    ("law bert-base --residual 0", "residual = 0 ", "a positive number"),
    ("law bert-base --residual 1 --output values", "residual = 1 ", "nothing, because"),
    ("law deepseek-v3", "n_tokens = 163840 ", "n_tokens=4096, its pre-training length, or --inputs gaussian"),
    ("law bert-base --scores tanh", "scores = tanh ", "softmax, linear, relu, sigmoid"),
    ("law bert-base --output attention --value-scale 2", "value_scale = 2 ", "1, because"),
    ("law bert-base --output-scale 0", "output_scale = 0 ", "a positive number"),
    ("law bert-base --digits 0", "digits = 0 ", "an integer from 1 to"),
    ("law bert-base --digits many", "digits = many ", "an integer from 1 to"),
    ("law bert-base --points 1", "points = 1 ", "an integer from 10 to"),
    ("law bert-base --token 3", "option = --token ", "listed by --help"),
    ("law bert-base --n-head 3", "option = --n-head ", "did you mean --heads, --n-heads"),
    ("law bert-base bert-large", "argument = bert-large ", "one layer at most; freeattn compare and freeattn report"),
    ("derive bert-base bert-large --symbolic", "argument = bert-large ", "one layer at most; freeattn compare"),
    ("verify bert-base bert-large t5-base", "argument = bert-large t5-base ", "one layer at most; freeattn compare"),
    ("converge bert-base bert-large", "argument = bert-large ", "one layer at most; freeattn compare"),
    ("sweep bert-base bert-large", "argument = bert-large ", "one layer at most; freeattn compare"),
    ("predict ridge bert-base bert-large", "argument = bert-large ", "one layer at most; freeattn compare"),
    ("architectures bert large", "argument = large ", "at most one SEARCH"),
    ("reproduce fig-2a fig-2c", "argument = fig-2c ", "at most one FIGURE"),
    ("doctor all", "argument = all ", "options only, as in freeattn doctor --help"),
    ("law bert-base:n_head=6", "spec = n_head=6 ", "a field of the layer (did you mean n_heads?)"),
    ("compare bert-base bert-base:d-keys=6", "spec = d-keys=6 ", "a field of the layer (did you mean d_key?)"),
    ("sweep bert-base --over n_head=4,6", "over = n_head=4,6 ", "(did you mean n_heads?)"),
    ("sweep bert-base --over beta=1 --quantity rigde_error", "quantity = rigde_error ", "(did you mean ridge_error?)"),
    ("sweep bert-base --over beta=1 --quantity ridge_error:penalti=1", "quantity = ridge_error:penalti=1 ",
     "ridge_error with penalty, noise, gamma_out (did you mean penalty?)"),
    ("lwa bert-base", "command = lwa ", "(did you mean law?)"),
    ("law", "preset = (not given) ", "freeattn architectures"),
    ("law --n-tokens 64", "d_model = (not given) ", "--d-model"),
    ("verify bert-base --draws 0", "draws = 0 ", "an integer from 1 to"),
    ("verify bert-base --seed -1", "seed = -1 ", "an integer from 0 to"),
    ("derive bert-base --format html", "format = html ", "text, latex, document, json"),
    ("derive bert-base --format text --json", "format = text ", "json"),
    ("derive bert-base --standalone", "format = text ", "latex"),
    ("laws bert-base", "command = laws ", "law, derive, verify, "),
]


@pytest.mark.parametrize(("command", "found", "allowed"), BAD, ids=[command for command, _, _ in BAD])
def test_one_line_that_names_field_value_and_what_is_allowed(run, command, found, allowed):
    outcome = run(*command.split())
    assert outcome.code == 2
    assert found in outcome.line
    assert allowed in outcome.line
    assert "symbol" not in outcome.line


def test_an_initial_beta_belongs_to_the_published_sizes(run):
    outcome = run("derive", "bert-base", "--symbolic", "--beta", "init")
    assert outcome.code == 2
    assert "beta = init is not allowed; expected a number, or nothing, next to --symbolic" in outcome.line


@pytest.mark.parametrize("command", ["law bert-base other", "law bert-base --beta", "derive --format"])
def test_usage_errors_are_one_line_too(run, command):
    outcome = run(*command.split())
    assert outcome.code == 2
    assert outcome.line


def test_a_value_with_line_breaks_stays_on_one_line(run):
    outcome = run("law", "two\nlines")
    assert outcome.code == 2
    assert "two lines" in outcome.line


@pytest.mark.parametrize("name", ["query-key", "key-query", "queries"])
@pytest.mark.parametrize("command", ["law bert-base", "derive --symbolic"])
def test_ties_to_queries_are_refused_with_the_reason(run, command, name):
    outcome = run(*command.split(), "--tie", name)
    assert outcome.code == 2
    assert f"tie = '{name}' has no known law: queries tied to keys" in outcome.line


@pytest.mark.parametrize(
    ("text", "numerator", "denominator"),
    [("12", 12, 1), ("0.1", 1, 10), ("0.559", 559, 1000), ("1/2", 1, 2), ("1e-3", 1, 1000), (".5", 1, 2)],
)
def test_numbers_are_exact(text, numerator, denominator):
    number = exact_number("beta", text)
    assert (number.numerator, number.denominator) == (numerator, denominator)
    assert isinstance(number, int) == (denominator == 1)


@pytest.mark.parametrize("text", ["", " ", "1_0", "١", "1/2/3", "0x10", "1e1000", "9" * 2000, "--", "1 2"])
def test_what_is_not_a_number(text):
    with pytest.raises(InputError, match="beta = "):
        exact_number("beta", text)


# Files --------------------------------------------------------------------------------------------

WITH_FILES = [
    ("law", "--csv", "csv"),
    ("law", "--plot", "png"),
    ("verify", "--csv", "csv"),
    ("verify", "--plot", "png"),
    ("derive", "-o", "tex"),
]


@pytest.mark.parametrize(("command", "option", "suffix"), WITH_FILES)
def test_missing_folder_is_refused_before_computing(run, tmp_path, command, option, suffix):
    outcome = run(command, "bert-base", option, tmp_path / "nowhere" / f"file.{suffix}")
    assert outcome.code == 2
    assert f"{option.removeprefix('--')} = {tmp_path}" in outcome.line
    assert "a folder that exists" in outcome.line


@pytest.mark.parametrize(("command", "option", "suffix"), WITH_FILES)
def test_existing_file_is_refused_before_computing(run, tmp_path, command, option, suffix):
    path = tmp_path / f"file.{suffix}"
    path.write_text("mine")
    outcome = run(command, "bert-base", option, path)
    assert outcome.code == 2
    assert "--force" in outcome.line
    assert path.read_text() == "mine"


@pytest.mark.parametrize(("command", "option", "suffix"), WITH_FILES)
def test_a_folder_is_never_overwritten(run, tmp_path, command, option, suffix):
    folder = tmp_path / f"folder.{suffix}"
    folder.mkdir()
    outcome = run(command, "bert-base", option, folder, "--force")
    assert outcome.code == 2
    assert "a file, not a folder" in outcome.line


@pytest.mark.parametrize("command", ["law", "verify"])
def test_unknown_picture_format_is_refused_before_computing(run, tmp_path, command):
    outcome = run(command, "bert-base", "--plot", tmp_path / "law.gif")
    assert outcome.code == 2
    assert "plot = " in outcome.line
    assert ".png, .pdf, .svg" in outcome.line


@pytest.mark.parametrize("command", ["law", "verify"])
def test_plot_without_matplotlib_names_the_extra_before_computing(run, tmp_path, monkeypatch, command):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    outcome = run(command, "bert-base", "--plot", tmp_path / "law.png")
    assert outcome.code == 2
    assert "freeattn[plot]" in outcome.line


def test_two_options_cannot_name_the_same_file(run, tmp_path):
    outcome = run("law", "bert-base", "--csv", tmp_path / "x.png", "--plot", tmp_path / "x.png")
    assert outcome.code == 2
    assert "another file" in outcome.line


@pytest.mark.parametrize("name", ["", "-"])
def test_a_file_needs_a_name(run, name):
    assert "the name of a file" in run("law", "bert-base", "--csv", name).line
