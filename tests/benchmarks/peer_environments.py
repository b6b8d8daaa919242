"""Packages, each in a virtual environment of its own, and the processes that measure.

A package that cannot be installed, fails or takes too long is a value with its reason, never an exception.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ADAPTERS = Path(__file__).resolve().parent / "adapters"
INSTALL_LIMIT = 300  # seconds
ONE_THREAD = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")


@dataclass(frozen=True)
class Package:
    """A package to compare with.

    Attributes:
        name: as on the command line and in tables.
        adapter: the script in adapters/ that runs it; None when there is nothing to run.
        requirement: what pip installs; None for freeattn, which runs in the environment of the benchmark.
        methods: (key, title in tables) of each way to a law.
        reason: why nothing is run, when adapter is None.
    """

    name: str
    adapter: str | None
    requirement: str | None
    methods: tuple[tuple[str, str], ...]
    reason: str = ""


@dataclass(frozen=True)
class NotRun:
    """Why there is no answer."""

    reason: str


PACKAGES = (
    Package(
        "freeattn", "run_freeattn.py", None,
        (("laws", "freeattn, law expression"), ("words", "freeattn, Gaussian letters")),
    ),
    Package("rmtool", "run_rmtool.py", "rmtool==1.0.0", (("polynomial", "rmtool"),)),
    Package(
        "freealg", "run_freealg.py", "freealg==0.12.2",
        (("distributions", "freealg, distributions"), ("eigenvalues", "freealg, from 2,000 eigenvalues")),
    ),
    Package("scikit-rmt", "run_scikit_rmt.py", "scikit-rmt==2.1.1", (("distribution", "scikit-rmt"),)),
    Package(
        "free-matrix-laws", "run_free_matrix_laws.py",
        "free-matrix-laws @ git+https://github.com/slavakargin/free-matrix-laws@702234a5b00b88daa2770649afd9a82427cf78ee",
        (("linearization", "free-matrix-laws"),),
    ),
    Package(
        "auto-fpt", None, None, (("equations", "auto-fpt"),),
        "not on a package index, and it derives equations from a pencil of the user: no density, edges or atoms",
    ),
)


def environment(package: Package, folder: Path) -> Path | NotRun:
    """The Python that has the package installed; made on first use, in a folder named after the requirement."""
    if package.adapter is None:
        return NotRun(package.reason)
    if package.requirement is None:
        return Path(sys.executable)
    version = package.requirement.rpartition("==")[2] or package.requirement
    home = folder / f"{package.name}-{version.rpartition('@')[2]}-py{sys.version_info[0]}{sys.version_info[1]}"
    python, ready = home / "bin" / "python", home / "ready"
    if ready.exists():
        return python
    shutil.rmtree(home, ignore_errors=True)
    install = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", package.requirement]
    for command in ([sys.executable, "-m", "venv", str(home)], install):
        failure = _failure(command, INSTALL_LIMIT, {**os.environ, "GIT_TERMINAL_PROMPT": "0"})
        if failure:
            shutil.rmtree(home, ignore_errors=True)
            return NotRun(f"could not be installed: {failure}")
    ready.touch()
    return python


def answers(
    python: Path | NotRun, adapter: str, requests: Sequence[dict[str, Any]], limit: float
) -> list[dict[str, Any] | NotRun]:
    """The answers of an adapter, with one thread and at most `limit` seconds a request on average.

    One process answers them in order. A request that ends it is not run, and a new process goes on with the next one.
    """
    if isinstance(python, NotRun):
        return [python] * len(requests)
    found: list[dict[str, Any] | NotRun] = []
    while len(found) < len(requests):
        done, failure = _process(python, adapter, requests[len(found) :], limit * (len(requests) - len(found)))
        found += done
        if len(found) < len(requests):
            found.append(NotRun(failure or "no answer"))
    return found


def _process(
    python: Path, adapter: str, requests: Sequence[dict[str, Any]], limit: float
) -> tuple[list[dict[str, Any]], str]:
    """(answers until it ended, why it ended early)."""
    own = python == Path(sys.executable)
    inherited = {name: value for name, value in os.environ.items() if own or name != "PYTHONPATH"}
    variables = {**inherited, **dict.fromkeys(ONE_THREAD, "1"), "MPLBACKEND": "Agg"}
    with tempfile.TemporaryDirectory() as folder:
        result = Path(folder) / "answers.jsonl"
        result.touch()
        command = [str(python), str(ADAPTERS / adapter), str(result)]
        failure = _failure(command, limit, variables, json.dumps(list(requests)))
        lines = result.read_text(encoding="utf-8").splitlines(keepends=True)
    return [json.loads(line) for line in lines if line.endswith("\n")], failure


def _failure(command: Sequence[str], limit: float, variables: dict[str, str], given: str | None = None) -> str:
    """Run a command; empty when it succeeds, otherwise one line that says why not."""
    try:
        run = subprocess.run(
            command, input=given, capture_output=True, text=True, timeout=limit, env=variables, check=False
        )
    except subprocess.TimeoutExpired:
        return f"more than {limit:g} s"
    except OSError as error:
        return str(error)
    if run.returncode == 0:
        return ""
    lines = [line.strip() for line in run.stderr.splitlines() if line.strip()] or [f"exit status {run.returncode}"]
    telling = [line for line in lines if line.startswith(("ERROR:", "fatal:"))] or lines[-1:]
    return telling[0].removeprefix("ERROR:").removeprefix("fatal:").strip()[:200]
