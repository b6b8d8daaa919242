"""Ties: which matrices of a head are built from the same weights."""

from __future__ import annotations

from dataclasses import dataclass

from freeattn.errors import InputError

__all__ = ["Ties", "as_ties"]

_SHORTHAND = {"none": ("none", "none"), "key-value": ("key", "none")}


@dataclass(frozen=True)
class Ties:
    """What the values and the output map of a head are tied to.

    Attributes:
        value: "none" (W^V independent of W^K) or "key" (W^V = W^K within each head).
        output: "none" (W^O independent of everything).
    """

    value: str = "none"
    output: str = "none"

    def __post_init__(self) -> None:
        if self.value not in ("none", "key"):
            raise InputError("tie.value", self.value, '"none" or "key"')
        if self.output != "none":
            raise InputError("tie.output", self.output, '"none"')

    @property
    def shorthand(self) -> str:
        """The string that stands for this value in `Attention(tie=…)`."""
        return next(name for name, pair in _SHORTHAND.items() if pair == (self.value, self.output))


def as_ties(value: object) -> Ties:
    """Resolve the shorthand strings "none" and "key-value"; a `Ties` value passes through."""
    if isinstance(value, Ties):
        return value
    if isinstance(value, str) and value in _SHORTHAND:
        return Ties(*_SHORTHAND[value])
    raise InputError("tie", value, " or ".join(f'"{name}"' for name in _SHORTHAND))
