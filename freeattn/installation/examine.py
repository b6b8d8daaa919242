"""`examine`: every library that is declared, tried; and what the libraries tell of themselves."""

from __future__ import annotations

import json
import os
import platform
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any, final

import freeattn
from freeattn.installation.processes import run_code
from freeattn.installation.requirements import Requirement, declared_requirements, extra_names

__all__ = ["Installation", "Package", "examine"]

_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMEXPR_NUM_THREADS", "NUMBA_NUM_THREADS")
# Modules to import; elsewhere the name, with underscores.
_MODULES = {"python-flint": "flint", "pytest-xdist": "xdist", "dask": "dask.distributed"}
_AT_ONCE = 4  # processes that try an import
_IMPORTED = "imported"  # printed last
_IMPORT_SECONDS = 60.0
_PROBE_SECONDS = 300.0  # loops that are not compiled yet take a minute or two, on a busy machine longer


@final
@dataclass(frozen=True)
class Package:
    """A library that is needed: which version is there, and what is wrong with it.

    Attributes:
        requirement: what is declared.
        version: the installed one, None where it is not installed.
        problem: None where all is well; else "not installed", "too old" or the like, or how its import failed.
    """

    requirement: Requirement
    version: str | None
    problem: str | None

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready."""
        return {
            "name": self.requirement.name, "version": self.version, "required": self.requirement.versions,
            "problem": self.problem,
        }


@final
@dataclass(frozen=True)
class Installation:
    """What `examine` found.

    Attributes:
        dependencies: what the package itself needs; None where it is not installed, so that nothing is declared.
        extras: what each extra needs.
        facts: backend, BLAS, cores and the check, as `freeattn.installation.probe` tells them.
        failure: why there are no facts, None where there are.
    """

    dependencies: tuple[Package, ...] | None
    extras: dict[str, tuple[Package, ...]]
    facts: dict[str, Any]
    failure: str | None

    @property
    def problems(self) -> list[str]:
        """What keeps freeattn from working; extras that are missing do not."""
        found = [f"{one.requirement.name}: {one.problem}" for one in self.dependencies or () if one.problem]
        if self.failure is not None:
            return [*found, f"self-check: {self.failure}"]
        return found + [
            f"{name}: {self.facts[part]['problem']}" for name, part in (("self-check", "check"), ("backend", "backend"))
            if self.facts[part]["problem"]
        ]

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready."""
        return {
            "version": freeattn.__version__, "folder": str(Path(freeattn.__file__).parent), "installed": self.installed,
            "python": platform.python_version(), "executable": sys.executable, "platform": platform.platform(),
            "dependencies": [one.to_dict() for one in self.dependencies or ()],
            "extras": {name: [one.to_dict() for one in packages] for name, packages in self.extras.items()},
            **({"check": None, "backend": None, "cores": None, "blas": None} | self.facts), "failure": self.failure,
            "environment": {name: os.environ.get(name) for name in ("FREEATTN_BACKEND", *_THREADS)},
            "problems": self.problems,
        }

    @property
    def installed(self) -> bool:
        """False where freeattn runs from a folder that is not installed."""
        return self.dependencies is not None


def examine() -> Installation:
    """Look at every declared library and try to import it, in a process of its own; then check one law."""
    try:
        core, extras = declared_requirements(), {name: declared_requirements(name) for name in extra_names()}
    except metadata.PackageNotFoundError:
        core, extras = None, {}
    facts, failure = _facts()
    found = _packages([*(core or ()), *(one for needed in extras.values() for one in needed)])
    return Installation(
        None if core is None else tuple(found[one] for one in core),
        {name: tuple(found[one] for one in needed) for name, needed in extras.items()}, facts, failure,
    )


def _facts() -> tuple[dict[str, Any], str | None]:
    """What the probe tells, and why it tells nothing."""
    done = run_code("from freeattn.installation.probe import print_facts; print_facts()", _PROBE_SECONDS)
    if done.problem is not None:
        return {}, done.problem
    try:
        return json.loads(done.output.splitlines()[-1]), None
    except (ValueError, IndexError):  # a library that prints, or ends the process with exit code 0
        return {}, "it gave no answer"


def _packages(requirements: Sequence[Requirement]) -> dict[Requirement, Package]:
    """Each requirement with what is there; a library that several extras need is imported once."""
    versions = {one.name: _version(one.name) for one in requirements}
    there = [name for name, version in versions.items() if version is not None]
    with ThreadPoolExecutor(_AT_ONCE) as threads:
        tried = dict(zip(there, threads.map(_import_problem, there), strict=True))
    return {one: _package(one, versions[one.name], tried.get(one.name)) for one in requirements}


def _package(requirement: Requirement, version: str | None, problem: str | None) -> Package:
    if version is None:
        return Package(requirement, None, "not installed")
    if not requirement.allows(version):
        return Package(requirement, version, f"{version} is installed, {requirement.versions} is needed")
    return Package(requirement, version, None if problem is None else f"cannot be imported: {problem}")


def _version(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def _import_problem(name: str) -> str | None:
    """What goes wrong when a library is imported."""
    module = _MODULES.get(name, name.replace("-", "_"))
    done = run_code(f"import {module}; print({_IMPORTED!r})", _IMPORT_SECONDS)
    if done.problem is None and not done.output.rstrip().endswith(_IMPORTED):
        return "it ends the process"
    return done.problem
