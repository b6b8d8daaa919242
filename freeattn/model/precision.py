"""Numbers of many digits in contexts of their own: nothing global is read or changed, so threads do not meet."""

from __future__ import annotations

import threading
from typing import Any

import mpmath

__all__ = ["context_for_results", "new_context", "own_context"]

_MOST_CONTEXTS = 64  # kept in each thread; making one takes milliseconds


class _Kept(threading.local):
    def __init__(self) -> None:
        self.working: dict[int, tuple[Any, int]] = {}
        self.results: dict[int, tuple[Any, int]] = {}


_kept = _Kept()


def new_context(digits: int) -> Any:
    """A new mpmath context of the given decimal digits: for what keeps it, and may be shared by threads."""
    context = mpmath.MPContext()
    for kind in (context.mpf, context.mpc):
        kind.__reduce__ = _reduced
    context.dps = digits
    return context


def _reduced(number: Any) -> tuple[Any, tuple[str, int, int], Any]:
    """What pickle keeps of a number: pickle finds classes by their names, and that of a context has none.

    A number is made again in the process that reads it, with the precision of its context, so that what is computed
    from it there has as many digits.
    """
    return _unset, (type(number).__name__, number.context.dps, number.context.prec), number.__getstate__()


def _unset(kind: str, digits: int, bits: int) -> Any:
    """A number of the kind "mpf" or "mpc", whose value pickle sets."""
    context = context_for_results(digits)
    if context.prec != bits:  # a user has set the bits, between those of two numbers of digits
        context = new_context(digits)
        context.prec = bits
    return getattr(context, kind)()


def own_context(digits: int) -> Any:
    """The context of this thread with the given decimal digits: for one call, not to be kept or handed out."""
    return _fetched(_kept.working, digits)


def context_for_results(digits: int) -> Any:
    """The context of numbers that users are given in this thread; nothing is computed in it.

    A number belongs to its context, so a user can set the precision of it: such a context is not used again.
    """
    return _fetched(_kept.results, digits)


def _fetched(contexts: dict[int, tuple[Any, int]], digits: int) -> Any:
    context, bits = contexts.get(digits, (None, 0))
    if context is None or context.prec != bits:
        if len(contexts) >= _MOST_CONTEXTS:
            contexts.clear()
        context = new_context(digits)
        contexts[digits] = context, context.prec
    return context
