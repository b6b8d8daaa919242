"""Python code in processes of its own: a library that is broken ends that process, not this one."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from typing import NamedTuple

__all__ = ["Outcome", "run_code"]

# The path of this process, whatever the working folder holds; the code comes as an argument after it.
_START = "import json, sys; sys.path[:] = json.loads(sys.argv.pop(1)); exec(sys.argv.pop(1))"
_LONGEST = 300  # characters of a message


class Outcome(NamedTuple):
    """What a process printed, and what went wrong (None where nothing did)."""

    output: str
    problem: str | None


def run_code(code: str, seconds: float) -> Outcome:
    """Run code in a fresh process with the module path of this one, for some seconds at most."""
    command = [sys.executable, "-c", _START, json.dumps(sys.path), code]
    try:
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, timeout=seconds, check=False, encoding="utf-8",
            errors="replace",
        )
    except subprocess.TimeoutExpired:
        return Outcome("", f"not done after {seconds:g} s")
    except OSError as error:
        return Outcome("", f"no process could be started: {error}")
    return Outcome(done.stdout, _problem(done.returncode, done.stderr))


def _problem(code: int, messages: str) -> str | None:
    if code == 0:
        return None
    if code < 0:
        try:
            return f"ended by {signal.Signals(-code).name}"
        except ValueError:
            return f"ended by signal {-code}"
    lines = [line.strip() for line in messages.splitlines() if line.strip()]
    return (lines[-1] if lines else f"ended with exit code {code}")[:_LONGEST]
