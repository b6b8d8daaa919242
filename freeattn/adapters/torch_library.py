"""torch, loaded when a module is read or run."""

from __future__ import annotations

from typing import Any

from freeattn.errors import MissingExtraError

__all__ = ["torch_library"]


def torch_library() -> Any:
    """The module `torch`.

    Raises:
        MissingExtraError: when it is not installed.
    """
    try:
        import torch
    except ImportError:
        raise MissingExtraError("reading and running modules", "torch") from None
    return torch
