"""Help, version, completion, and what the command line may not load."""

import os
import subprocess
import sys

import pytest

import freeattn

HEAVY = ("numpy", "sympy", "scipy", "mpmath", "flint", "rich", "matplotlib")


@pytest.mark.parametrize("command", ["law", "derive", "verify", "architectures"])
def test_help_of_each_command_shows_an_example(run, command):
    outcome = run(command, "--help")
    assert outcome.code == 0
    assert f"  freeattn {command}" in outcome.out.split("Examples:")[1]
    assert outcome.err == ""


def test_help_of_the_group_shows_an_example_of_each_command_and_how_to_complete(run):
    outcome = run("--help")
    for command in ("law", "derive", "verify", "architectures"):
        assert f"  freeattn {command}" in outcome.out
    assert "_FREEATTN_COMPLETE=bash_source freeattn" in outcome.out
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


@pytest.mark.parametrize("arguments", [["--help"], ["law", "--help"], ["--version"], ["law", "no-such"]])
def test_light_commands_load_nothing_heavy(arguments):
    code = (
        f"import sys; sys.argv = ['freeattn', *{arguments!r}]\n"
        "from freeattn.cli import main\n"
        "try:\n    main()\nexcept SystemExit:\n    pass\n"
        f"print('LOADED', [name for name in {HEAVY!r} if name in sys.modules])"
    )
    assert _python(code).stdout.splitlines()[-1] == "LOADED []"


def test_architectures_loads_rich_only_for_a_table():
    code = (
        "import sys; sys.argv = ['freeattn', 'architectures', 'bert', '--json']\n"
        "from freeattn.cli import main\n"
        "try:\n    main()\nexcept SystemExit:\n    pass\n"
        f"print('LOADED', [name for name in {HEAVY!r} if name in sys.modules])"
    )
    assert _python(code).stdout.splitlines()[-1] == "LOADED []"


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
