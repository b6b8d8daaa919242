"""Numbers of many digits in contexts of their own: nothing global is read or changed, so threads do not meet."""

from __future__ import annotations

import threading
from typing import Any

import mpmath

__all__ = ["kept_context", "own_context"]

_kept = threading.local()


def own_context(digits: int) -> Any:
    """A new mpmath context that works with the given decimal digits."""
    context = mpmath.MPContext()
    context.dps = digits
    return context


def kept_context(digits: int) -> Any:
    """A context that this thread keeps for conversions and plain arithmetic: making one takes a third of a millisecond.

    Nobody may set its precision. One whose precision has been set from outside, through a number that belongs to it, is
    not used again.
    """
    contexts: dict[int, tuple[Any, int]] = _kept.__dict__.setdefault("contexts", {})
    context, bits = contexts.get(digits, (None, 0))
    if context is None or context.prec != bits:
        context = own_context(digits)
        contexts[digits] = context, context.prec
    return context
