"""Numbers of many digits in contexts of their own: nothing global is read or changed, so threads do not meet."""

from __future__ import annotations

import threading
from typing import Any

import mpmath

__all__ = ["own_context"]

_MOST_CONTEXTS = 64  # kept in each thread; making one takes milliseconds


class _Kept(threading.local):
    def __init__(self) -> None:
        self.contexts: dict[int, tuple[Any, int]] = {}


_kept = _Kept()


def own_context(digits: int) -> Any:
    """The mpmath context of this thread that works with the given decimal digits.

    Nobody may set its precision. One whose precision has been set from outside, through a number that belongs to it, is
    not used again.
    """
    contexts = _kept.contexts
    context, bits = contexts.get(digits, (None, 0))
    if context is None or context.prec != bits:
        if len(contexts) >= _MOST_CONTEXTS:
            contexts.clear()
        context = mpmath.MPContext()
        context.dps = digits
        contexts[digits] = context, context.prec
    return context
