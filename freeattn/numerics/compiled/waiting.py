"""A word when loops are compiled: nobody should wait for a minute without one.

numba compiles a loop when it is first called and keeps it on disk, so that the wait comes once for each installation,
in several parts: for a law, for many digits, for proofs.
"""

from __future__ import annotations

import logging
import time
from functools import lru_cache
from threading import Timer
from typing import Any, final

from numba.core import event

__all__ = ["CompilingListener", "tell_of_compiling"]

_COMPILES = "numba:compile"  # nothing of the kind happens where a loop is read from disk
_PATIENCE = 2.0  # seconds of compiling, all together, before a word is said
_WORD = (
    'compiling loops of the extra "fast": once for each installation, a minute or two in all '
    "(FREEATTN_BACKEND=numpy does without)"
)


@lru_cache(maxsize=1)
def tell_of_compiling() -> None:
    """From now on, one line in the log "freeattn" when this process has compiled loops for some seconds."""
    event.register(_COMPILES, CompilingListener())


@final
class CompilingListener(event.Listener):  # type: ignore[misc]  # numba has no types
    """Measures how long loops of this package are compiled, and says so once. numba compiles one at a time."""

    def __init__(self, patience: float = _PATIENCE) -> None:
        self._left = patience
        self._depth = 0  # loops that call loops compile these first
        self._started = 0.0
        self._timer: Timer | None = None
        self._told = False

    def on_start(self, event: Any) -> None:
        if self._told or not _is_ours(event):
            return
        if self._depth == 0:
            self._started = time.monotonic()
            self._timer = Timer(max(self._left, 0.0), self._tell)
            self._timer.daemon = True
            self._timer.start()
        self._depth += 1

    def on_end(self, event: Any) -> None:
        if self._depth == 0 or not _is_ours(event):
            return
        self._depth -= 1
        if self._depth == 0 and self._timer is not None:
            self._timer.cancel()
            self._left -= time.monotonic() - self._started

    def _tell(self) -> None:
        self._told = True
        logging.getLogger("freeattn").warning(_WORD)


def _is_ours(event: Any) -> bool:
    return str(event.data["dispatcher"].py_func.__module__).startswith("freeattn.")
