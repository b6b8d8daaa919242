"""Unequal heads: families of heads with widths and an inverse temperature of their own."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from freeattn.errors import InputError
from freeattn.model.quantities import Quantity, as_positive, as_size

__all__ = ["Heads", "as_heads"]


@dataclass(frozen=True)
class Heads:
    """A family of `count` like heads in a layer whose heads are not all alike.

    Attributes:
        count: number of heads.
        d_key, d_value: widths per head; d_value is not needed where the output has no values, and is d_key where
            ties make them equal.
        beta: inverse temperature of these heads; None for that of the layer.

    Raises:
        InputError: for values that are not allowed.
    """

    count: Quantity
    d_key: Quantity
    d_value: Quantity = None
    beta: Quantity = None

    def __post_init__(self) -> None:
        for name in ("count", "d_key", "d_value"):
            value = getattr(self, name)
            if value is not None or name != "d_value":
                object.__setattr__(self, name, as_size(name, value))
        if self.beta is not None:
            object.__setattr__(self, "beta", as_positive("beta", self.beta))


def as_heads(value: object) -> tuple[Heads, ...] | None:
    """A tuple of `Heads`, or None when all heads are alike.

    Raises:
        InputError: for anything else.
    """
    if value is None:
        return None
    allowed = "a list of Heads(count, d_key, d_value, beta), at least one, or None when all heads are alike"
    if isinstance(value, str) or not isinstance(value, Iterable):
        raise InputError("heads", value, allowed)
    heads = tuple(value)
    if not heads or not all(isinstance(family, Heads) for family in heads):
        raise InputError("heads", value, allowed)
    return heads
