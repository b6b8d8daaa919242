"""Numbers of many digits in contexts of their own: nothing global is read or changed, so threads do not meet."""

from __future__ import annotations

import threading
from typing import Any

import mpmath

__all__ = ["own_context"]

_MOST_CONTEXTS = 64  # kept in each thread; a context takes milliseconds to make


class _Made(threading.local):
    def __init__(self) -> None:
        self.contexts: dict[int, Any] = {}


_made = _Made()


def own_context(digits: int) -> Any:
    """The mpmath context of this thread that works with the given decimal digits; its precision must stay as it is."""
    contexts = _made.contexts
    if digits not in contexts:
        if len(contexts) >= _MOST_CONTEXTS:
            contexts.clear()
        contexts[digits] = mpmath.MPContext()
        contexts[digits].dps = digits
    return contexts[digits]
