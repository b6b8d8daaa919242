"""torch, loaded when a module is read or run."""

from __future__ import annotations

import sys
from typing import Any

from freeattn.errors import MissingExtraError

__all__ = ["is_module", "torch_library"]


def is_module(value: object) -> bool:
    """True for a module of torch; torch is not loaded for the question."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, torch.nn.Module)


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
