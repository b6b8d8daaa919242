"""Many integrals against one law at once: ∫ f_i dν for a family f_1 … f_k, to about 1e-13 of each.

Every integral is a Chebyshev sum on pieces of the panels of the law, in their variable θ. Pieces start as quarters of
quarters towards both ends of a band, so that a function that lives next to an edge only, such as e^{−2tx} at large t,
cannot fall between the first points; they are halved until every member of the family is resolved on each.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.polynomial import chebyshev
from numpy.typing import NDArray

from freeattn.errors import ConvergenceError, NotCoveredError
from freeattn.numerics.bands import POINTS, TO_COEFFICIENTS, WEIGHTS, PanelBand
from freeattn.numerics.panel_engine import PanelEngine

__all__ = ["LawIntegrals"]

Array = NDArray[np.float64]

_GRADES = 14  # quarters towards an end of a band: θ down to 1e-9, x − edge to 1e-18 of the band
_RESOLVED = 1e-13  # last coefficients, times the length of a piece, over the integral of |f|
_LEAST = 1e-320  # rounding of numbers that are too small for the relative accuracy of doubles
_MOST_HALVINGS = 30
_MOST_PIECES = 4096  # unresolved at once
_MOST_MEMBERS = 64  # of a family evaluated at once: memory


class LawIntegrals:
    """Integrals against one `SpectralLaw` divided by `scale`, that is of x/scale.

    Attributes:
        scale: what one unit of the points is worth in those of the law.
        atoms: (location, weight), in the new unit.

    Raises:
        NotCoveredError: for a law whose engine has no panels.
    """

    def __init__(self, law: Any, scale: float = 1.0) -> None:
        if not isinstance(law._engine, PanelEngine):
            raise NotCoveredError("integrals of families need a law whose bands are held as panels")
        self.scale = scale
        self._law = law
        self.atoms = tuple((atom.location / scale, float(atom.weight)) for atom in law.atoms)
        self._panels = law._engine.panels
        self._unit = law._unit / scale
        masses = sum(law._engine.masses)
        self._exact = (1 - sum(weight for _, weight in self.atoms)) / masses if masses else 1.0  # 1 to rounding

    def __reduce__(self) -> tuple[type[LawIntegrals], tuple[Any, float]]:
        return LawIntegrals, (self._law, self.scale)  # the law is made again, and so are its panels

    def __call__(self, family: Callable[[Array, Array], Array], members: Array) -> Array:
        """∫ family(x, p) dν for each p of the one-dimensional `members`, atoms included."""
        total = self.continuous(family, members)
        for location, weight in self.atoms:
            total += weight * family(np.array([[location]]), members[:, None])[:, 0]
        return total

    def continuous(self, family: Callable[[Array, Array], Array], members: Array) -> Array:
        """The same over the bands alone; `family` is called with x of shape (1, points) and p of shape (members, 1).

        Raises:
            ConvergenceError: where a member is too rough on the support.
        """
        result = np.zeros(members.shape)
        for k in range(0, members.size, _MOST_MEMBERS):
            part = members[k:k + _MOST_MEMBERS, None]

            def values(x: Array, part: Array = part) -> Array:
                return family(self._unit * x[None, :], part)

            for panel in self._panels:
                result[k:k + _MOST_MEMBERS] += self._exact * _over_band(panel, values)
        return result


def _over_band(panel: PanelBand, values: Callable[[Array], Array]) -> Array:
    """∫ f(x) ρ(x) dx over one band for each f; `values` gives members × points."""
    owner, low, high = _first_pieces(panel.breaks.size - 1)
    total = size = np.zeros(1)
    for _ in range(_MOST_HALVINGS):
        along = (low + high)[:, None] / 2 + (high - low)[:, None] / 2 * POINTS
        start, end = panel.breaks[owner][:, None], panel.breaks[owner + 1][:, None]
        theta = start + (end - start) / 2 * along
        mass = chebyshev.chebval(along.T - 1, panel.density[owner].T, tensor=False).T
        mass[owner == 0] = _from_left_end(along[owner == 0], panel.density[0])
        half = (high - low)[:, None] * (end - start) / 4
        weighed = values(panel.map.point(theta).ravel()).reshape(-1, *theta.shape) * (mass * half)
        parts, tails = weighed @ WEIGHTS, 2 * np.abs(weighed @ TO_COEFFICIENTS[-2:].T).max(axis=2)
        scale = size + np.abs(parts).sum(axis=1)
        rough = (tails > np.maximum(_RESOLVED * scale, _LEAST)[:, None]).any(axis=0)
        total = total + parts[:, ~rough].sum(axis=1)
        size = size + np.abs(parts[:, ~rough]).sum(axis=1)
        if not rough.any():
            return total
        if rough.sum() > _MOST_PIECES:
            break
        owner, low, high = np.repeat(owner[rough], 2), low[rough], high[rough]
        low, high = np.ravel([low, (low + high) / 2], order="F"), np.ravel([(low + high) / 2, high], order="F")
    raise ConvergenceError(
        "integration against the law", float((tails.max(axis=1) / np.maximum(scale, _LEAST)).max()), _RESOLVED,
        "give a smoother function",
    )


def _from_left_end(along: Array, series: Array) -> Array:
    """g in the first panel, without the rounding of its limit 0: Σ c_k (T_k(u − 1) − T_k(−1)) term by term."""
    half = np.arcsin(np.sqrt(along / 2))  # u − 1 = −cos 2φ, T_k(u − 1) − T_k(−1) = −2(−1)^k sin² kφ
    k = np.arange(series.size)
    terms: Array = np.sin(half[..., None] * k) ** 2 @ (-2 * (-1.0) ** k * series)
    return terms


def _first_pieces(panels: int) -> tuple[NDArray[np.intp], Array, Array]:
    """(panel, ends): halves of panels, and quarters of quarters towards both ends of the band.

    Places in a panel are counted from 0 to 2, so that θ keeps its relative accuracy towards the left end of the band.
    """
    graded = 2 * 0.25 ** np.arange(_GRADES, 0, -1)
    owner, low, high = [], [], []
    for k in range(panels):
        cuts = [0.0, *(graded if k == 0 else ()), 1.0, *(2 - graded[::-1] if k == panels - 1 else ()), 2.0]
        owner += [k] * (len(cuts) - 1)
        low += cuts[:-1]
        high += cuts[1:]
    return np.array(owner, dtype=np.intp), np.array(low), np.array(high)
