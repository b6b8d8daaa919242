"""Which numerics Dyson equations run on: numpy, or compiled loops where the extra `fast` is installed.

The environment variable FREEATTN_BACKEND ("numpy" or "compiled") overrides the choice. Nothing compiled is loaded
before the first equation is made.
"""

from __future__ import annotations

import importlib
import os
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from freeattn.errors import InputError
from freeattn.numerics.dyson_tables import DysonTables
from freeattn.numerics.precise_traces import PreciseTraces
from freeattn.numerics.trace_equation import TraceEquation

__all__ = ["backend", "compiled_cache", "precise_traces", "trace_equation", "trace_equation_at_once", "value_proofs"]

VARIABLE = "FREEATTN_BACKEND"
_COMPILED = "freeattn.numerics.compiled.equation"


def backend() -> str:
    """The name of the backend of Dyson equations, "compiled" or "numpy".

    Raises:
        InputError: when the environment asks for another one, or for one that is not installed.
    """
    asked = os.environ.get(VARIABLE, "")
    installed = find_spec("numba") is not None
    if asked not in ("", "numpy", "compiled"):
        raise InputError(VARIABLE, asked, '"numpy" or "compiled"')
    if asked == "compiled" and not installed:
        raise InputError(VARIABLE, asked, 'the extra "fast" to be installed: pip install "freeattn[fast]"')
    return asked or ("compiled" if installed else "numpy")


def trace_equation(tables: DysonTables) -> TraceEquation:
    """The Dyson equation of the given tables, on the backend that is chosen.

    Raises:
        InputError: when that backend is not installed.
    """
    if backend() == "numpy":
        return TraceEquation(tables)
    return _compiled().CompiledEquation(tables)


def compiled_cache() -> Path:
    """The folder in which numba keeps the compiled loops.

    Raises:
        ImportError: without the extra `fast`.
        RuntimeError: when numba finds no folder that it can write.
    """
    return Path(_compiled().roots.stats.cache_path)


def _compiled() -> Any:
    return importlib.import_module(_COMPILED)  # numba takes most of a second


def trace_equation_at_once(tables: DysonTables) -> TraceEquation:
    """The equation for a few starts: compiled only where its loops are in memory, because they take seconds to load."""
    made = getattr(sys.modules.get(_COMPILED), "CompiledEquation", None)  # another thread may be importing it
    return TraceEquation(tables) if made is None or backend() == "numpy" else made(tables)


def precise_traces(tables: DysonTables, equation: TraceEquation, digits: int, guard: int) -> PreciseTraces:
    """Solutions to many digits of an equation, on the backend that it is on."""
    if type(equation) is not TraceEquation:
        compiled = importlib.import_module("freeattn.numerics.compiled.traces")
        if compiled.fits(tables):
            return compiled.CompiledTraces(tables, equation, digits, guard)
    return PreciseTraces(tables, equation, digits, guard)


def value_proofs(equation: TraceEquation, tables: DysonTables, width: float) -> Any:
    """Compiled proofs of values (`compiled.value_proofs`) for an equation that is compiled itself, None for another."""
    if type(equation) is TraceEquation:
        return None
    return importlib.import_module("freeattn.numerics.compiled.value_proofs").CompiledProofs(tables, width)
