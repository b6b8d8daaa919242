"""What every engine does with the panels of its bands: masses, distribution function, quantiles, integrals."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from freeattn.errors import BranchError
from freeattn.numerics.bands import PanelBand
from freeattn.numerics.engine import Engine

__all__ = ["GapInsideError", "PanelEngine", "near_edge"]

Array = NDArray[np.float64]

_MASS_ROUNDING = 1e-13  # of the mass of a band: a level this far above it still belongs to the band
_EDGE_ULPS = 64  # this near an edge the rounding of x moves the solution as much as x does: the series stands for it


class GapInsideError(BranchError):
    """Points in a gap that the grid has not seen."""

    def __init__(self, points: Array) -> None:
        self.points = points
        super().__init__(f"x = {points[0]:.17g} lies in a gap inside a band")


class PanelEngine(Engine):
    """An engine whose bands are panels of Chebyshev series."""

    @property
    @abstractmethod
    def panels(self) -> tuple[PanelBand, ...]:
        """One `PanelBand` for each band, ascending."""

    @property
    def masses(self) -> tuple[float, ...]:
        return tuple(panel.mass for panel in self.panels)

    def mass_below(self, x: Array) -> Array:
        total = np.zeros(x.shape)
        for panel in self.panels:
            inside = panel.map.inside(x)
            total = np.where(x >= panel.map.right, total + panel.mass, total)
            if inside.any():
                total[inside] += panel.mass_to(panel.map.angle(x[inside]))
        return total

    def quantile(self, mass: Array) -> Array:
        ends = np.cumsum(self.masses)
        index = np.clip(np.searchsorted(ends + _MASS_ROUNDING, mass, side="left"), 0, len(ends) - 1)
        result = np.empty(mass.shape)
        for k, panel in enumerate(self.panels):
            chosen = index == k
            if chosen.any():
                inner = mass[chosen] - (ends[k - 1] if k else 0.0)
                result[chosen] = panel.map.point(panel.angle_of_mass(inner))
        return result

    def integrate(self, function: Callable[[Array], Any]) -> Any:
        return sum((panel.integrate(function) for panel in self.panels), 0.0)


def near_edge(panel: PanelBand, x: Array) -> NDArray[Any]:
    """Whether x is within rounding of an end of the band (of its right end only when the left one is 0)."""
    left, right = panel.map.left, panel.map.right
    margin = _EDGE_ULPS * np.spacing(np.abs(np.array([left, right])))
    return (right - x <= margin[1]) | ((x - left <= margin[0]) & (left != 0))
