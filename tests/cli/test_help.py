"""Help, version, completion, and what the command line may not load."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import freeattn
from freeattn.cli import commands
from freeattn.cli.spec import CHOICES
from freeattn.model.attention import OUTPUTS
from freeattn.model.scores import as_scores
from freeattn.model.ties import as_ties

HEAVY = ("numpy", "sympy", "scipy", "rich", "matplotlib")
MODEL = ("mpmath", "freeattn.model.attention")


COMMANDS = [
    "law", "derive", "verify", "sweep", "converge", "architectures", "predict ridge", "predict flow", "predict shape",
    "compare", "report", "reproduce", "predict", "doctor",
]


@pytest.mark.parametrize("command", COMMANDS)
def test_help_of_each_command_shows_an_example(run, command):
    outcome = run(*command.split(), "--help")
    assert outcome.code == 0
    assert f"  freeattn {command}" in outcome.out.split("Examples:")[1]
    assert outcome.err == ""


def _command(context, names):
    """Help of a command below a context."""
    command = context.command
    for name in names:
        command = command.get_command(context, name)
        context = command.make_context(name, [], parent=context, resilient_parsing=True)
    return command.get_help(context)


@pytest.mark.parametrize("command", ["", "completion", *COMMANDS])
def test_help_fits_into_eighty_columns(command):
    context = commands.make_context("freeattn", [], resilient_parsing=True, terminal_width=80)
    text = _command(context, command.split())
    assert "--help" in text
    assert [line for line in text.splitlines() if len(line) > 80] == []


def test_help_of_the_group_shows_an_example_of_each_command_and_how_to_complete(run):
    outcome = run("--help")
    for command in ("law", "derive", "verify", "sweep", "converge", "architectures", "predict", "compare"):
        assert f"  freeattn {command}" in outcome.out
    assert "freeattn completion bash" in outcome.out
    assert "Exit codes" in outcome.out


def test_without_a_command_help_is_shown(run):
    outcome = run()
    assert outcome.code == 0
    assert outcome.out == run("--help").out


def test_version(run):
    assert run("--version").out == f"freeattn {freeattn.__version__}\n"


def _python(code, *, environment=None):
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False, env=environment
    )


def _loaded(*arguments):
    """Heavy modules that a command has loaded when it ends."""
    code = (
        f"import sys; sys.argv = ['freeattn', *{arguments!r}]\n"
        "from freeattn.cli import main\n"
        "try:\n    main()\nexcept SystemExit:\n    pass\n"
        f"print('LOADED', *[name for name in {HEAVY + MODEL!r} if name in sys.modules])"
    )
    return _python(code).stdout.splitlines()[-1].split()[1:]


@pytest.mark.parametrize("arguments", [["--help"], ["law", "--help"], ["--version"], ["laws"]])
def test_light_commands_load_nothing(arguments):
    assert _loaded(*arguments) == []


@pytest.mark.parametrize("arguments", [["law", "no-such"], ["architectures", "bert", "--json"]])
def test_a_wrong_preset_and_a_list_load_only_the_model(arguments):
    assert set(_loaded(*arguments)) <= set(MODEL)


def test_choices_are_those_of_the_model():
    assert CHOICES["output"] == OUTPUTS
    assert [as_ties(name).shorthand for name in CHOICES["tie"]] == list(CHOICES["tie"])
    assert [as_scores(name).name for name in CHOICES["scores"]] == list(CHOICES["scores"])


def _complete(words, index):
    environment = {
        **os.environ, "_FREEATTN_COMPLETE": "bash_complete", "COMP_WORDS": words, "COMP_CWORD": str(index)
    }
    outcome = _python("from freeattn.cli import main; main()", environment=environment)
    return outcome.stdout.splitlines()


def test_preset_names_and_values_complete_in_the_shell():
    assert {"plain,bert-base", "plain,bert-large"} <= set(_complete("freeattn law bert", 2))
    assert _complete("freeattn law --output h", 3) == ["plain,head-sum"]
    assert "plain,--n-tokens" in _complete("freeattn law --n", 2)


def test_module_runs_as_the_command():
    outcome = subprocess.run(
        [sys.executable, "-m", "freeattn", "--version"], capture_output=True, text=True, timeout=60,
        check=True,
    )
    assert outcome.stdout.startswith("freeattn ")


def test_examples_of_the_help_are_those_of_the_pages():
    """One way to ask for a document, in the help and in docs/cli.md."""
    outcome = _python("import sys; sys.argv = ['freeattn', '--help']; from freeattn.cli import main; main()")
    pages = (Path(__file__).resolve().parents[2] / "docs" / "cli.md").read_text(encoding="utf-8")
    example = "freeattn derive --symbolic --format document -o law.tex"
    assert example in outcome.stdout
    assert example in pages
    assert "--standalone" not in outcome.stdout
