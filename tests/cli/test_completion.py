"""Completion: what click offers for words, and what bash makes of it."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from click.shell_completion import ShellComplete

from freeattn.cli import commands
from freeattn.cli.completion import _WholeWords

PROGRAM = f'#!/bin/sh\nexec "{sys.executable}" -m freeattn "$@"\n'


SPECS = (
    ("law",), ("derive",), ("verify",), ("converge",), ("sweep",), ("report",), ("compare",),
    ("predict", "ridge"), ("predict", "flow"), ("predict", "shape"),
)  # commands that take a SPEC


def offered(*words):
    """Values offered for the last word, and the kind of completion."""
    complete = ShellComplete(commands, {}, "freeattn", "_FREEATTN_COMPLETE")
    found = complete.get_completions(list(words[:-1]), words[-1])
    return [item.value for item in found], {item.type for item in found}


@pytest.mark.parametrize(
    ("words", "values"),
    [
        (("com",), ["compare", "completion"]),
        (("completion", ""), ["bash", "zsh", "fish"]),
        (("law", "bert-l"), ["bert-large"]),
        (("law", "--output", "h"), ["head-sum"]),
        (("law", "--beta", "i"), ["init"]),
        (("verify", "bert-base", "--workers", ""), ["all"]),
        (("sweep", "bert-base", "--over", "d_k"), ["d_key="]),
        (("sweep", "bert-base", "--over", "output=mha,val"), ["output=mha,values"]),
        (("compare", "bert-base", "bert-large:d_va"), ["bert-large:d_value="]),
        (("report", "bert-base:n_heads=6,tie=key-value-"), ["bert-base:n_heads=6,tie=key-value-output"]),
        *(((*command, "bert-base:n_h"), ["bert-base:n_heads="]) for command in SPECS),
        (("reproduce", "fig-3"), ["fig-3a", "fig-3b"]),
        (("architectures", "gpt2-m"), ["gpt2-medium"]),
    ],
)
def test_words(words, values):
    assert offered(*words) == (values, {"plain"})


@pytest.mark.parametrize(
    "words", [
        ("law", "./conf"), ("law", "--csv", ""), ("verify", "--store", "draws"), ("compare", "path/to"),
        ("report", "-o", "a"), ("derive", "-o", ""), ("verify", "--spectrum", "e"),
        *(("sweep", option, "x") for option in ("--csv", "--parquet", "--records", "--plot")),
    ]
)
def test_files(words):
    assert offered(*words) == ([words[-1]], {"file"})


@pytest.mark.parametrize(
    ("words", "index", "whole"),
    [
        ("freeattn sweep --over beta = 1", 5, (["sweep", "--over"], "beta=1")),
        ("freeattn sweep --over beta =", 4, (["sweep", "--over"], "beta=")),
        ("freeattn compare bert-base : d_key = 6", 6, (["compare"], "bert-base:d_key=6")),
        ("freeattn law bert-base --n-tokens 512", 4, (["law", "bert-base", "--n-tokens"], "512")),
    ],
)
def test_words_that_bash_takes_apart_are_put_together(monkeypatch, words, index, whole):
    monkeypatch.setenv("COMP_WORDS", words)
    monkeypatch.setenv("COMP_CWORD", str(index))
    assert _WholeWords(commands, {}, "freeattn", "_FREEATTN_COMPLETE").get_completion_args() == whole


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_lines_of_each_shell(run, shell):
    outcome = run("completion", shell)
    assert (outcome.code, outcome.err) == (0, "")
    assert f"_FREEATTN_COMPLETE={shell}_complete" in outcome.out


def test_another_shell_is_refused(run):
    line = run("completion", "csh").line
    assert line == "freeattn: error: shell = csh is not allowed; expected one of bash, zsh, fish"


@pytest.mark.skipif(shutil.which("bash") is None, reason="there is no bash")
@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("freeattn law bert-l", "bert-large"), ("freeattn sweep --over output = val", "values"),
        ("freeattn compare bert-base : d_va", "d_value="),
    ],
)
def test_a_real_bash(tmp_path, words, expected):
    """The function that bash calls, with the words as bash takes them apart."""
    program = tmp_path / "freeattn"
    program.write_text(PROGRAM)
    program.chmod(0o755)
    root = str(Path(__file__).resolve().parents[2])
    script = (
        'eval "$(freeattn completion bash)"\n'
        f"COMP_WORDS=({words}); COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1))\n"
        '_freeattn_completion freeattn\nprintf "%s\\n" "${COMPREPLY[@]}"\n'
    )
    environment = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}", "PYTHONPATH": root}
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, env=environment, check=True)
    assert done.stdout.splitlines() == [expected], done.stderr


def test_completion_loads_neither_numpy_nor_sympy():
    code = (
        "import sys\nfrom freeattn.cli import main\ntry:\n    main()\nexcept SystemExit:\n    pass\n"
        "print('LOADED', *{'numpy', 'sympy', 'scipy', 'rich'} & set(sys.modules))"
    )
    environment = {
        **os.environ, "_FREEATTN_COMPLETE": "bash_complete", "COMP_WORDS": "freeattn sweep --over beta",
        "COMP_CWORD": "3",
    }
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment, check=True)
    assert done.stdout.splitlines() == ["plain,beta=", "LOADED"]
