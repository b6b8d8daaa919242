"""What only the libraries themselves can tell: backend, BLAS, caches, and one law against exact numbers.

Runs in a process of its own, which `examine` starts: it imports what may be broken.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from threadpoolctl import threadpool_info

import freeattn
from freeattn.errors import FreeattnError
from freeattn.numerics.backends import backend, compiled_cache
from freeattn.runs.workers import available_cores

__all__ = ["facts", "print_facts"]

# Linear scores, one head as wide as the tokens: the Fuss-Catalan law of order 2, with its edge and moments exact.
_EDGE, _MOMENTS = 27 / 4, (1, 3, 12, 55)
_TOLERANCE = 1e-12  # relative, of doubles that are the last of a short computation


def facts() -> dict[str, Any]:
    """All of it, JSON-ready; "problem" stands in the place of what raised an error."""
    check = _told(_check)  # first: it loads the BLAS libraries that are told about
    return {"check": check, "backend": _told(_backend), "cores": available_cores(), "blas": _told(_blas)}


def print_facts() -> None:
    """`facts` as one line of JSON on stdout."""
    print(json.dumps(facts()))


def _told(find: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    try:
        return {**find(), "problem": None}
    except (FreeattnError, ArithmeticError, AttributeError, ImportError, LookupError, OSError, RuntimeError, TypeError,
            ValueError) as error:  # what broken libraries raise
        return {"problem": f"{type(error).__name__}: {error}"}


def _check() -> dict[str, Any]:
    """One closed law against its exact numbers.

    Raises:
        ArithmeticError: when a number is not the exact one.
    """
    started = time.perf_counter()
    spec = freeattn.Attention(
        n_tokens=64, d_model=64, n_heads=1, d_key=64, output="attention", scores="linear", beta=1
    )
    law = freeattn.law(spec)
    found = {"edge": (law.edges[-1][1], _EDGE)}
    found |= {f"moment {order}": pair for order, pair in enumerate(zip(law.moments(4), _MOMENTS, strict=True), 1)}
    for name, (number, exact) in found.items():
        if not abs(number - exact) <= _TOLERANCE * exact:
            raise ArithmeticError(f"{name} of the Fuss-Catalan law is {number!r}, exactly {exact}")
    return {"what": "edge and moments of the Fuss-Catalan law", "seconds": time.perf_counter() - started}


def _backend() -> dict[str, Any]:
    """The backend; for compiled loops where their cache is, whether it can be written and what it holds."""
    name = backend()
    folder = compiled_cache() if name == "compiled" else None
    if folder is None:
        return {"name": name, "cache": None}
    nearest = next(path for path in (folder, *folder.parents) if path.exists())
    return {
        "name": name, "cache": str(folder), "cache_writable": os.access(nearest, os.W_OK | os.X_OK),
        "compiled": any(Path(folder).glob("*.nbi")),
    }


def _blas() -> dict[str, Any]:
    names = ("internal_api", "version", "num_threads", "filepath")
    libraries = [library for library in threadpool_info() if library.get("user_api") == "blas"]
    return {"libraries": [{name: library.get(name) for name in names} for library in libraries]}
