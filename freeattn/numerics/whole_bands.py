"""Bands that are all there: on finer and finer grids until their masses add up to that of the law."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from freeattn.errors import BranchError, FreeattnError
from freeattn.numerics.bands import PanelBand
from freeattn.numerics.panel_engine import GapInsideError

__all__ = ["whole_bands"]

Array = NDArray[np.float64]
_Band = TypeVar("_Band")

_MASS_TOLERANCE = 1e-9
_MOST_GAPS = 12  # that are found one after another inside bands of one grid


def whole_bands(
    found: Callable[[int, Array], tuple[tuple[_Band, ...], tuple[PanelBand, ...]]], mass: float,
    refinements: tuple[int, ...], near: Array, refusal: type[FreeattnError],
) -> tuple[tuple[_Band, ...], tuple[PanelBand, ...]]:
    """Bands and their panels, of the given mass in all.

    Args:
        found: those that a grid shows, by how many times finer it is than usual and the points that it must hold.
        mass: of the continuous part; below rounding there is no band.
        refinements: tried in turn.
        near: points that the grid must hold. Those of a gap that was found inside a band join them.
        refusal: the error of `found` after which a finer grid may help.

    Raises:
        BranchError: when the masses do not add up, or the last refusal.
    """
    if mass <= _MASS_TOLERANCE:
        return (), ()
    last: FreeattnError = BranchError("no band was found")
    for refine in refinements:
        for _ in range(_MOST_GAPS):
            try:
                bands, panels = found(refine, near)
            except GapInsideError as gap:
                near, last = np.concatenate([near, gap.points]), gap
                continue
            except refusal as error:
                last = error
                break
            total = sum(panel.mass for panel in panels)
            if abs(total - mass) <= _MASS_TOLERANCE:
                return bands, panels
            last = BranchError(
                f"the bands found hold mass {total:.12g} instead of {mass:.12g}: one is missing or wrong"
            )
            break
    raise last
