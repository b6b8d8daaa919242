"""Numbers of many digits in contexts of their own: nothing global is read or changed, so threads do not meet."""

from __future__ import annotations

from typing import Any

import mpmath

__all__ = ["own_context"]


def own_context(digits: int) -> Any:
    """A new mpmath context that works with the given decimal digits."""
    context = mpmath.MPContext()
    context.dps = digits
    return context
