"""A law as a sum over nodes: m(z), H(z) = z + 1/m(z) and H'(z) anywhere off the support, vectorized.

F = −1/m is the reciprocal Cauchy transform and H = z − F. With ∫ dν(x)/(x − z) = A and c any point,

    H − c = ∫ (x − c)/(x − z) dν / A,      H' = (∫ (x − c)/(x − z)² dν − (H − c)·A') / A,

where nothing cancels far away, and nothing beside an atom when c is its location. Integrals are Gauss-Legendre sums on
pieces of the panels of the law; close to the support pieces are finer, and closer still the law's own engine answers.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.polynomial import chebyshev
from numpy.typing import NDArray

from freeattn.errors import NotCoveredError
from freeattn.numerics.bands import PanelBand
from freeattn.numerics.panel_engine import PanelEngine

__all__ = ["CauchySums", "CauchyValues"]

Array = NDArray[np.float64]
Complex = NDArray[np.complex128]

_ORDER = 24  # Gauss-Legendre nodes of a piece
_PIECES = (2, 32)  # of each panel, coarse and fine
_CLEARANCE = 0.35  # lengths of a piece from it at which 24 nodes give 13 digits
_MOST_ENTRIES = 2_000_000  # of one matrix points × nodes
_STEP = 1e-4  # of the distance to the support: for the derivative of what an engine returns


class CauchyValues(NamedTuple):
    """m(z), H(z) and H'(z)."""

    m: Complex
    h: Complex
    slope: Complex


class _Nodes(NamedTuple):
    x: Array
    weight: Array
    start: Array  # of each piece
    end: Array


class CauchySums:
    """The integrals of one `SpectralLaw`.

    Raises:
        NotCoveredError: for a law whose engine has no panels.
    """

    def __init__(self, law: Any) -> None:
        if not isinstance(law._engine, PanelEngine):
            raise NotCoveredError("transforms need a law whose bands are held as panels")
        self._law = law
        self._panels = tuple(law._engine.panels)
        self._unit = float(law._unit)
        self._atoms = tuple((atom.location, float(atom.weight)) for atom in law.atoms)
        self._levels = lru_cache(maxsize=None)(self._nodes)
        self._centres = np.array(sorted({0.0, *(location for location, _ in self._atoms)}))

    def _nodes(self, pieces: int) -> _Nodes:
        parts = [_nodes_of(panel, pieces) for panel in self._panels]
        located = [np.array([a for a, _ in self._atoms]), np.array([w for _, w in self._atoms])]
        joined = [np.concatenate([part[k] for part in parts]) if parts else np.empty(0) for k in range(4)]
        x, weight, start, end = joined
        free = 1 - located[1].sum()
        if weight.size:
            weight = weight * (free / weight.sum())  # the masses are exact, the sum is to rounding of the panels
        return _Nodes(
            np.concatenate([located[0], self._unit * x]), np.concatenate([located[1], weight]),
            self._unit * start, self._unit * end,
        )

    def __call__(self, z: Complex) -> CauchyValues:
        """m, H and H' at points off the support; real points are taken from the upper half-plane."""
        m, h, slope = (np.full(z.shape, np.nan + 0j) for _ in range(3))
        left = np.arange(z.size)
        for pieces in _PIECES:
            nodes = self._levels(pieces)
            far = _clear(z[left], nodes)
            for chunk in _chunks(left[far], nodes.x.size):
                m[chunk], h[chunk], slope[chunk] = self._sums(z[chunk], nodes)
            left = left[~far]
            if not left.size:
                break
        if left.size:
            m[left], h[left], slope[left] = self._by_engine(z[left])
        return CauchyValues(m, h, slope)

    def _sums(self, z: Complex, nodes: _Nodes) -> CauchyValues:
        nearest = np.abs(z[:, None] - self._centres).argmin(axis=1)
        m, h, slope = (np.empty(z.shape, dtype=complex) for _ in range(3))
        for k in np.unique(nearest):
            chosen, centre = nearest == k, self._centres[k]
            with np.errstate(divide="ignore", invalid="ignore"):
                inverse = 1 / (nodes.x - z[chosen][:, None])
                a, b = inverse @ nodes.weight, inverse @ (nodes.weight * (nodes.x - centre))
                inverse *= inverse
                excess = b / a
                m[chosen], h[chosen] = a, centre + excess
                moved = inverse @ (nodes.weight * (nodes.x - centre))
                slope[chosen] = (moved - excess * (inverse @ nodes.weight)) / a
        for location, weight in self._atoms:  # F has a simple zero there, with F' = 1/weight
            at = z == location
            m[at], h[at], slope[at] = np.inf, location, 1 - 1 / weight
        return CauchyValues(m, h, slope)

    def _by_engine(self, z: Complex) -> CauchyValues:
        step = _STEP * np.maximum(np.abs(z.imag), self._distance(z.real) * (z.imag == 0))
        step = np.maximum(step, 1e-12 * np.abs(z))
        m = self._law.stieltjes(z)
        rate = (self._law.stieltjes(z + step) - self._law.stieltjes(z - step)) / (2 * step)
        return CauchyValues(m, z + 1 / m, 1 - rate / m**2)

    def _distance(self, x: Array) -> Array:
        result = np.full(x.shape, np.inf)
        for left, right in self._law.edges:
            result = np.minimum(result, np.maximum(np.maximum(left - x, x - right), 0))
        return result


def _nodes_of(panel: PanelBand, pieces: int) -> tuple[Array, Array, Array, Array]:
    """(x, weight) of the nodes of a band in the unit of its engine, and the ends of its pieces."""
    points, weights = np.polynomial.legendre.leggauss(_ORDER)
    cuts = np.linspace(-1, 1, pieces + 1)
    local = ((cuts[:-1] + cuts[1:])[:, None] / 2 + points / pieces).ravel()
    low, high = panel.breaks[:-1, None], panel.breaks[1:, None]
    theta = (low + high) / 2 + (high - low) / 2 * local
    density = chebyshev.chebval(local, panel.density.T)
    weight = density * (high - low) / 2 * np.tile(weights / pieces, pieces)
    ends = panel.map.point((low + high) / 2 + (high - low) / 2 * cuts)
    return panel.map.point(theta).ravel(), weight.ravel(), ends[:, :-1].ravel(), ends[:, 1:].ravel()


def _clear(z: Complex, nodes: _Nodes) -> NDArray[np.bool_]:
    x = z.real[:, None]
    away = np.hypot(np.maximum(np.maximum(nodes.start - x, x - nodes.end), 0), z.imag[:, None])
    return np.asarray((away >= _CLEARANCE * (nodes.end - nodes.start)).all(axis=1))


def _chunks(rows: NDArray[np.intp], columns: int) -> Iterator[NDArray[np.intp]]:
    most = max(1, _MOST_ENTRIES // max(columns, 1))
    for k in range(0, rows.size, most):
        yield rows[k : k + most]
