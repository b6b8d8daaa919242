"""freeattn against simulation and against other packages: times and errors, all measured in one run.

    python tests/benchmarks/peers.py [--json FILE] [--markdown] [--update PAGE] [--repeats N] [--only NAME …]
                                     [--environment DIR]

Three parts: "own", the times of freeattn itself; "simulation", one draw of softmax attention with 1,024 tokens against
its law; and every package of `peer_environments.PACKAGES` on the laws of `peer_references.LAWS`, whose exact values do
not come from freeattn. Packages are installed, at pinned versions, into virtual environments in --environment; what
cannot be installed or fails is listed as not run, with the reason. One thread throughout. docs/benchmarks.md explains
the columns.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import peer_tables
from peer_environments import PACKAGES, NotRun, Package, answers, environment
from peer_references import LAWS, Reference, errors

import freeattn as fa
from freeattn.numerics.backends import backend

OWN_LIMIT = 300  # seconds for the times of freeattn, and for simulation
LAW_LIMIT = 90  # seconds for one package on one law, on average
N_TOKENS = 1024
SECTIONS = ("own", "simulation")
FOLDER = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "freeattn-benchmark"


_START = time.perf_counter()


def say(text: str) -> None:
    """Progress with seconds since the start, on standard error."""
    print(f"{time.perf_counter() - _START:5.0f} s  {text}", file=sys.stderr, flush=True)


def part(adapter: str, request: dict[str, Any]) -> dict[str, Any]:
    """A measurement of freeattn alone, or the reason why there is none."""
    (found,) = answers(Path(sys.executable), adapter, [request], OWN_LIMIT)
    return {"reason": f"not run: {found.reason}"} if isinstance(found, NotRun) else found


def row(package: Package, method: tuple[str, str], found: dict[str, Any] | NotRun, law: Reference,
        exact: np.ndarray) -> dict[str, Any]:
    """One line of a law's table."""
    start = {"package": package.name, "method": method[0], "title": method[1]}
    if isinstance(found, NotRun):
        return {**start, "status": "not run", "reason": found.reason}
    if "cannot" in found:
        return {**start, "status": "cannot", "reason": found["cannot"]}
    return {**start, "status": "run", "seconds": found["seconds"], "errors": asdict(errors(law, exact, found))}


def compare(packages: Sequence[Package], repeats: int, folder: Path) -> list[dict[str, Any]]:
    """All packages on all laws: one table for each law."""
    tables, exact = [], []
    for law in LAWS:
        say(f"exact values of {law.title}")
        exact.append(law.density(law.points()))
        tables.append({"key": law.key, "title": law.title, "rows": []})
    for package in packages:
        say(f"environment of {package.name}")
        python = environment(package, folder)
        for method in package.methods:
            say(method[1])
            requests = [
                {
                    "ratios": [float(ratio) for ratio in law.ratios], "points": law.points().tolist(),
                    "outside": law.outside().tolist(), "repeats": repeats, "method": method[0],
                }
                for law in LAWS
            ]
            found = answers(python, str(package.adapter), requests, LAW_LIMIT)
            for table, law, values, one in zip(tables, LAWS, exact, found, strict=True):
                table["rows"].append(row(package, method, one, law, values))
    return tables


def measure(only: Sequence[str], repeats: int, folder: Path) -> dict[str, Any]:
    """Everything that was asked for; `only` is empty for all."""
    result: dict[str, Any] = {
        "machine": {
            "date": time.strftime("%Y-%m-%d"), "processor": processor(), "cores": os.cpu_count(),
            "load before": load(), "python": platform.python_version(), "freeattn": fa.__version__,
            "backend": backend(), "repeats": repeats,
        }
    }
    if not only or "own" in only:
        say("freeattn itself")
        result["own"] = part("measure_own.py", {"repeats": repeats})
    if not only or "simulation" in only:
        say("simulation")
        result["simulation"] = part("measure_simulation.py", {"repeats": repeats, "n_tokens": N_TOKENS})
    packages = [package for package in PACKAGES if not only or package.name in only]
    if packages:
        result["laws"] = compare(packages, repeats, folder)
    return result


def processor() -> str:
    """The processor's name where the system tells."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()


def load() -> str:
    """Processes that were waiting for the cores, on average, in the minute before."""
    return f"{os.getloadavg()[0]:.1f}" if hasattr(os, "getloadavg") else "unknown"


def main() -> int:
    choices = [*SECTIONS, *(package.name for package in PACKAGES)]
    parser = argparse.ArgumentParser(description="freeattn against simulation and other packages.")
    parser.add_argument("--json", metavar="FILE", type=Path, help="write all numbers to this file")
    parser.add_argument("--markdown", action="store_true", help="print Markdown")
    parser.add_argument("--update", metavar="PAGE", type=Path, help="put the tables into a page, between its marks")
    parser.add_argument("--repeats", type=int, default=3, help="median of so many warm runs (default 3)")
    parser.add_argument("--only", nargs="+", choices=choices, default=[], help="these parts and packages only")
    parser.add_argument("--environment", metavar="DIR", type=Path, default=FOLDER, help=f"default {FOLDER}")
    options = parser.parse_args()
    if options.repeats < 1:
        parser.error("--repeats must be at least 1")
    if options.update and not peer_tables.has_marks(options.update.read_text(encoding="utf-8")):
        parser.error(f"{options.update} has no marks to put tables between")
    result = measure(options.only, options.repeats, options.environment.resolve())
    result["machine"]["whole run"] = f"{time.perf_counter() - _START:.0f} s"
    if options.json:
        options.json.write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")
    if options.update:
        page = options.update.read_text(encoding="utf-8")
        options.update.write_text(peer_tables.updated(page, peer_tables.report(result, True)), encoding="utf-8")
    print(peer_tables.report(result, options.markdown))
    return 0


if __name__ == "__main__":
    sys.exit(main())
