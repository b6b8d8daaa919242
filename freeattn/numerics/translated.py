"""The engine of a law with 0 inside a band: that of the law moved to the right, seen from where it was.

A curve in doubles solves log x(q) = log x, which loses what x has left next to 0. Moved by more than its support
reaches, the law lives at x of one size; m and ρ stay what they are.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np
from flint import fmpq
from numpy.typing import NDArray

from freeattn.model.precision import own_context
from freeattn.numerics.bands import BandMap, LinearMap, PanelBand
from freeattn.numerics.compile import CompiledCurve
from freeattn.numerics.engine import Engine
from freeattn.numerics.panel_engine import PanelEngine
from freeattn.numerics.precise_integrals import as_number
from freeattn.numerics.rational import RationalEngine
from freeattn.numerics.support import Band

__all__ = ["TranslatedEngine", "engine_of_curve"]

Array = NDArray[np.float64]

_GUARD_DIGITS = 30


def engine_of_curve(compiled: Callable[[int], CompiledCurve]) -> Engine:
    """The engine of a curve x(q), m(q).

    Args:
        compiled: digits ↦ the curve with parameters to that many digits.
    """
    engine = RationalEngine(compiled)
    edges = [(float(band.left.x), float(band.right.x)) for band in engine.bands(1)]
    if not any(left < 0 < right for left, right in edges):
        return engine
    reach = max(abs(x) for band in edges for x in band)
    return TranslatedEngine(compiled, math.frexp(reach)[1] + 1)


class TranslatedEngine(PanelEngine):
    """Engine of the law of x, from that of the law of x + 2^power."""

    def __init__(self, compiled: Callable[[int], CompiledCurve], power: int) -> None:
        self._shift = 2.0**power  # exact in every arithmetic
        self._engine = RationalEngine(lambda digits: compiled(digits).translated(fmpq(2) ** power), self._shift)

    def _moved(self, x: Any, digits: int) -> Any:
        return as_number(own_context(digits + _GUARD_DIGITS), x) + self._shift

    def bands(self, digits: int) -> tuple[Band, ...]:
        return tuple(
            Band(*(replace(edge, x=edge.x - self._shift) for edge in (band.left, band.right)))
            for band in self._engine.bands(digits)
        )

    def density(self, x: Array) -> Array:
        return self._engine.density(x + self._shift)

    def stieltjes(self, z: NDArray[np.complex128]) -> NDArray[np.complex128]:
        return self._engine.stieltjes(z + self._shift)

    def stieltjes_to(self, z: Any, digits: int) -> Any:
        return self._engine.stieltjes_to(self._moved(z, digits), digits)

    def density_to(self, x: Any, digits: int) -> Any:
        return self._engine.density_to(self._moved(x, digits), digits)

    @cached_property
    def panels(self) -> tuple[PanelBand, ...]:
        return tuple(replace(panel, map=self._back(panel)) for panel in self._engine.panels)

    def _back(self, panel: PanelBand) -> BandMap:
        """x(θ) − 2^power; the moved ends are too far from 0 for a logarithmic scale."""
        return LinearMap(panel.map.left - self._shift, panel.map.right - self._shift)

    def integrate_to(
        self, function: Callable[[Any], Any], digits: int, lower: Any = None, upper: Any = None
    ) -> Any:
        ends = [None if end is None else self._moved(end, digits) for end in (lower, upper)]
        return self._engine.integrate_to(lambda x: function(x - self._shift), digits, *ends)
