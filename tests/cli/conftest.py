"""Running commands in this process, and a stand-in for everything that computes."""

import json
from dataclasses import dataclass

import pytest
from click.testing import CliRunner

import freeattn
from freeattn.cli import commands


@dataclass(frozen=True)
class Outcome:
    code: int
    out: str
    err: str

    @property
    def json(self):
        return json.loads(self.out)

    @property
    def line(self):
        """The one line on stderr of a command that failed."""
        assert self.out == ""
        assert self.err.endswith("\n")
        (line,) = self.err.splitlines()
        assert line.startswith("freeattn: error: ")
        return line


@pytest.fixture
def run():
    def run_command(*args):
        result = CliRunner().invoke(commands, [str(arg) for arg in args])
        assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
        return Outcome(result.exit_code, result.stdout, result.stderr)

    return run_command


@pytest.fixture
def computing_is_an_error(monkeypatch):
    """Whatever would take time fails the test."""

    def refuse(*_, **__):
        raise AssertionError("computed before checking the input")

    for name in ("law", "verify", "derive", "sweep"):
        monkeypatch.setitem(vars(freeattn), name, refuse)
