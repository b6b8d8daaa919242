"""How the benchmark talks to a package: one process for each package and method, which compiles once for all laws.

The process reads a JSON list of requests from standard input and writes its answers, one JSON object a line, to the
file it is told, each as soon as it is there. It runs in the environment of its package, so this module imports nothing
but the standard library and numpy.

Times: `first` is the first run on a law (in the first law of the process with all compilation, imports never), `warm`
the median of the following ones; both are preparing the law and its density at all points. `extras` is finding its
edges and atoms, once.
"""

from __future__ import annotations

import contextlib
import json
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

import numpy as np

STOP_AFTER = 5.0  # seconds: no further warm run after so many, so that slow methods end in time


class CannotError(Exception):
    """The package has no way to this law; the text says why."""


class Method(Protocol):
    """One way to a law in one package."""

    def prepare(self, ratios: tuple[float, ...]) -> Any:
        """What the package makes of the law before numbers are asked of it."""

    def density(self, state: Any, points: np.ndarray) -> np.ndarray:
        """Density of the absolutely continuous part."""

    def describe(self, state: Any) -> dict[str, Any]:
        """Of "atoms" (location, weight), "edges" (bands), "candidates" (for edges): those that the package gives."""


def timed(run: Callable[[], Any]) -> tuple[Any, float]:
    """(result, seconds)."""
    start = time.perf_counter()
    result = run()
    return result, time.perf_counter() - start


def repeated(run: Callable[[], Any], repeats: int, seconds: float) -> list[Any]:
    """Results of up to `repeats` runs; at least one, and none begins after so many seconds."""
    start, results = time.perf_counter(), []
    while not results or (len(results) < repeats and time.perf_counter() - start < seconds):
        results.append(run())
    return results


def answer(method: Method, request: dict[str, Any], forget: Callable[[], None] = lambda: None) -> dict[str, Any]:
    """Run one method on one law; `forget` empties the caches of the package before each warm run."""
    points, outside = np.array(request["points"]), np.array(request["outside"])

    def run() -> tuple[Any, np.ndarray]:
        state = method.prepare(tuple(request["ratios"]))
        return state, method.density(state, points)

    try:
        (state, density), first = timed(run)
    except CannotError as reason:
        return {"cannot": str(reason)}
    def once() -> float:
        forget()
        return timed(run)[1]

    warm = repeated(once, request["repeats"], STOP_AFTER)
    described, extras = timed(lambda: method.describe(state))
    return {
        "seconds": {"first": first, "warm": statistics.median(warm), "extras": extras, "runs": len(warm)},
        "density": np.asarray(density, dtype=float).tolist(),
        "outside": np.asarray(method.density(state, outside), dtype=float).tolist(),
        **described,
    }


def serve(handle: Callable[[dict[str, Any]], dict[str, Any]]) -> None:
    """Read the requests, answer them in order; whatever the package prints goes to standard error."""
    with Path(sys.argv[1]).open("w", encoding="utf-8") as answers:
        for request in json.load(sys.stdin):
            with contextlib.redirect_stdout(sys.stderr):
                result = handle(request)
            print(json.dumps(result), file=answers, flush=True)
