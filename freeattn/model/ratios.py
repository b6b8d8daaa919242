"""Ratios: a layer without sizes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from freeattn.display import ShownAsTables
from freeattn.model.quantities import Quantity, as_positive

__all__ = ["Ratios"]


_ALWAYS = ("gamma_key", "tokens_per_width")  # what every layer has


@dataclass(frozen=True, kw_only=True)
class Ratios(ShownAsTables):
    """A layer without sizes: total widths over tokens, and tokens over d_model."""

    shown_as: ClassVar[str] = "ratios"

    gamma_key: Quantity = None
    gamma_value: Quantity = None
    gamma_out: Quantity = None
    tokens_per_width: Quantity = 1

    def __post_init__(self) -> None:
        for name in ("gamma_key", "gamma_value", "gamma_out", "tokens_per_width"):
            value = getattr(self, name)
            if value is not None or name in _ALWAYS:
                object.__setattr__(self, name, as_positive(name, value))
