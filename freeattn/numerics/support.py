"""The support of a law: bands with their edges, and the gaps between them, as values of any engine."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

__all__ = ["Band", "Edge", "Gap"]


@dataclass(frozen=True)
class Edge:
    """An end of a band: the point x, its parameter q, and the power with which the density leaves or meets it."""

    x: Any
    q: Any
    exponent: Fraction


@dataclass(frozen=True)
class Band:
    """One interval of the support."""

    left: Edge
    right: Edge


@dataclass(frozen=True)
class Gap:
    """An interval (low, high) free of continuous spectrum and the parameters at its ends."""

    low: Any
    high: Any
    q_low: Any
    q_high: Any
