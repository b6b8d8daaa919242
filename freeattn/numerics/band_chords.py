"""Boundary values inside bands from what the equation keeps at the nodes of their panels, made when first needed."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from freeattn.numerics.bands import PanelBand
from freeattn.numerics.trace_equation import ChordValues, TraceEquation

__all__ = ["NEAR_ENDS", "BandChords"]

Array = NDArray[np.float64]
Complex = NDArray[np.complex128]

NEAR_ENDS = 1e-2  # angle from the ends of a band within which the series of the panels is accurate


class BandChords:
    """`ChordValues` of each band of one equation, where its backend has any."""

    def __init__(self, equation: TraceEquation) -> None:
        self._equation = equation
        self._known: dict[float, ChordValues | None] = {}

    def stieltjes(self, x: Array, theta: Array, panel: PanelBand, reliable: float) -> Complex:
        """m at x = x(θ) away from the ends of a band where it passes every test at once; not-a-number elsewhere."""
        m = np.full(x.shape, complex(np.nan, np.nan))
        middle = np.flatnonzero(np.minimum(theta, np.pi / 2 - theta) >= NEAR_ENDS)
        chords = self._of(panel) if middle.size else None
        if chords is not None:
            found, good = chords.stieltjes(x[middle], theta[middle], reliable)
            m[middle[good]] = found[good]
        return m

    def _of(self, panel: PanelBand) -> ChordValues | None:
        key = panel.map.left
        if key not in self._known:
            self._known[key] = self._equation.chords(panel)
        return self._known[key]
