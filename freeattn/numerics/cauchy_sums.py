"""A law as a sum over nodes: m(z), H(z) = z + 1/m(z) and H'(z) in the closed upper half-plane, vectorized.

F = −1/m is the reciprocal Cauchy transform and H = z − F. With A = ∫ dν(x)/(x − z) and c any point,

    H − c = ∫ (x − c)/(x − z) dν / A,      H' = (∫ (x − c)/(x − z)² dν − (H − c)·A') / A,

where nothing cancels far away, and nothing beside an atom when c is its location. Integrals are Gauss-Legendre sums on
pieces of the panels of the law, in their variable θ. Beside a piece the integrand g(θ)/(x(θ) − z) has a pole at θ_z, of
residue r = g(θ_z)/x'(θ_z), which is integrated exactly: ∫ r/(θ − θ_z) dθ minus the same Gauss-Legendre sum is added.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.polynomial import chebyshev
from numpy.typing import NDArray

from freeattn.errors import NotCoveredError
from freeattn.numerics.bands import BandMap, PanelBand
from freeattn.numerics.panel_engine import PanelEngine

__all__ = ["CauchySums", "CauchyValues"]

Array = NDArray[np.float64]
Complex = NDArray[np.complex128]

_POINTS, _WEIGHTS = np.polynomial.legendre.leggauss(24)  # of a piece
_GRADES = 12  # pieces towards an end of a band, each a quarter of the next
_CLEARANCE = 0.4  # lengths of a piece from it at which 24 nodes give 14 digits
_MOST_ENTRIES = 2_000_000  # of one matrix points × nodes
_STEP = 1e-4  # of the distance to the ends of bands: for H' where a pole is near


class CauchyValues(NamedTuple):
    """m(z), H(z) and H'(z)."""

    m: Complex
    h: Complex
    slope: Complex


class _Pieces(NamedTuple):
    """The pieces of one band: ends in θ, panel and local variable, nodes in θ, nodes in x and their masses."""

    map: BandMap
    start: Array
    end: Array
    series: Array  # pieces × coefficients of g on the panel
    low: Array  # panel of each piece
    high: Array
    x: Array  # pieces × nodes
    mass: Array


class CauchySums:
    """The integrals of one `SpectralLaw`, with z and H measured from `origin`.

    At an atom as origin they keep their relative accuracy down to the smallest |z|.

    Raises:
        NotCoveredError: for a law whose engine has no panels.
    """

    def __init__(self, law: Any, origin: float = 0.0) -> None:
        if not isinstance(law._engine, PanelEngine):
            raise NotCoveredError("transforms need a law whose bands are held as panels")
        self._law, self.origin = law, origin
        self._unit = float(law._unit)
        self._bands = tuple(_pieces_of(panel) for panel in law._engine.panels)
        self._atoms = tuple((atom.location - origin, float(atom.weight)) for atom in law.atoms)
        self._centres = np.array(sorted({0.0, *(location for location, _ in self._atoms)}))
        nodes = (self._unit * band.x.ravel() - origin for band in self._bands)
        self._x = np.concatenate([[a for a, _ in self._atoms], *nodes])
        weight = np.concatenate([band.mass.ravel() for band in self._bands]) if self._bands else np.empty(0)
        self._scale = (1 - sum(w for _, w in self._atoms)) / weight.sum() if weight.size else 1.0  # 1 to rounding
        self._weight = np.concatenate([[w for _, w in self._atoms], self._scale * weight])

    def about(self, origin: float) -> CauchySums:
        """The same integrals, measured from another origin."""
        return CauchySums(self._law, origin)

    def __call__(self, z: Complex) -> CauchyValues:
        """m, H and H' at any point, infinity too; real points are approached from the upper half-plane."""
        m, h, slope = (np.empty(z.shape, dtype=complex) for _ in range(3))
        most = max(1, _MOST_ENTRIES // self._x.size)
        with np.errstate(all="ignore"):
            for k in range(0, z.size, most):
                part = slice(k, k + most)
                m[part], h[part], slope[part] = self._sums(z[part])
        return CauchyValues(m, h, slope)

    def _sums(self, z: Complex) -> CauchyValues:
        nearest = np.abs(z[:, None] - self._centres).argmin(axis=1)
        m, h, slope = (np.empty(z.shape, dtype=complex) for _ in range(3))
        for k in np.unique(nearest):
            chosen, centre = nearest == k, self._centres[k]
            inverse, moved = 1 / (self._x - z[chosen][:, None]), self._weight * (self._x - centre)
            a, b = inverse @ self._weight, inverse @ moved
            inverse *= inverse
            excess = b / a
            m[chosen], h[chosen] = a, centre + excess
            slope[chosen] = (inverse @ moved - excess * (inverse @ self._weight)) / a
        for location, weight in self._atoms:  # F has a simple zero there, with F' = 1/weight
            at = z == location
            m[at], h[at], slope[at] = np.inf, location, 1 - 1 / weight
        beyond = np.isinf(z)
        m[beyond], h[beyond], slope[beyond] = 0, self._x @ self._weight, 0  # H(∞) is the mean
        near = np.flatnonzero(self._correction(z) != 0)
        if near.size:
            m[near], h[near], slope[near] = self._beside_support(z[near])
        return CauchyValues(m, h, slope)

    def _beside_support(self, z: Complex) -> CauchyValues:
        ends = self._unit * np.array([x for band in self._bands for x in (band.map.left, band.map.right)]) - self.origin
        step = _STEP * np.abs(z[:, None] - ends).min(axis=1)
        m, after, before = (
            (1 / (self._x - at[:, None])) @ self._weight + self._correction(at) for at in (z, z + step, z - step)
        )
        return CauchyValues(m, z + 1 / m, 1 - (after - before) / (2 * step) / m**2)

    def _correction(self, z: Complex) -> Complex:
        """What the sum for m misses because of poles beside pieces."""
        total = np.zeros(z.shape, dtype=complex)
        upper = _above(z + self.origin) / self._unit
        for band in self._bands:
            part = np.zeros(z.shape, dtype=complex)
            for pole in _poles(band.map, upper):
                along = np.maximum(np.maximum(band.start - pole.real[:, None], pole.real[:, None] - band.end), 0)
                close = np.hypot(along, pole.imag[:, None]) < _CLEARANCE * (band.end - band.start)
                point, piece = np.nonzero(close)
                if point.size:
                    np.add.at(part, point, _missed(band, piece, pole[point], upper[point]))
            outside = (upper.imag == 0) & ((upper.real < band.map.left) | (upper.real > band.map.right))
            total += np.where(outside, part.real, part)  # poles come in pairs there
        total *= self._scale / self._unit
        corrected: Complex = np.where(z.imag < 0, np.conj(total), total)
        return corrected


def _missed(band: _Pieces, piece: NDArray[np.intp], pole: Complex, z: Complex) -> Complex:
    low, high, start, end = (values[piece] for values in (band.low, band.high, band.start, band.end))
    local = (2 * pole - low - high) / (high - low)
    residue = chebyshev.chebval(local, band.series[piece].T, tensor=False) / _slope(band.map, pole, z)
    half = ((end - start) / 2)[:, None]
    nodes = ((start + end) / 2)[:, None] + half * _POINTS
    summed = (half * _WEIGHTS / (nodes - pole[:, None])).sum(axis=1)
    missed: Complex = residue * (np.log(pole - end) - np.log(pole - start) - summed)
    return missed


def _poles(band_map: BandMap, z: Complex) -> tuple[Complex, Complex, Complex]:
    """The θ with x(θ) = z nearest to the band, for Im z ≥ 0: one above it, and its images beyond the left and the right
    end, which lie beside the band too when z is near that end."""
    width = band_map.right - band_map.left
    if band_map.logarithmic:
        share = np.log(z / band_map.left) / np.log(band_map.right / band_map.left)
    else:
        share = (band_map.right - z if band_map.hard_right else z - band_map.left) / width
    root = share ** (0.5 / (band_map.order or 1))
    turn = np.exp(-1j * np.pi / (band_map.order or 1))
    if band_map.hard_right:
        theta = np.arccos(root)
        after: Complex = np.arccos(root / turn)
        return _above(theta), -_above(theta), after
    theta = _above(np.arcsin(root))
    before: Complex = np.arcsin(root * turn)
    return theta, before, np.pi - theta


def _above(theta: Complex) -> Complex:
    """The point itself in the closed upper half-plane, its conjugate below."""
    above: Complex = np.where(theta.imag < 0, np.conj(theta), theta)
    return above


def _slope(band_map: BandMap, theta: Complex, z: Complex) -> Complex:
    """dx/dθ at a complex θ; z = x(θ)."""
    twice, width = np.sin(2 * theta), band_map.right - band_map.left
    if band_map.order:
        near: Any = np.cos(theta) if band_map.hard_right else np.sin(theta)
        power: Complex = band_map.order * twice * width * near ** (2 * band_map.order - 2)
        return power
    scale: Complex | float = float(np.log(band_map.right / band_map.left)) * z if band_map.logarithmic else width
    slope: Complex = twice * scale
    return slope


def _pieces_of(panel: PanelBand) -> _Pieces:
    """Halves of the panels, and quarters of quarters towards both ends."""
    graded = 2 * 0.25 ** np.arange(_GRADES, 0, -1) - 1
    last, cuts, owner = panel.breaks.size - 2, [], []
    for k in range(last + 1):
        local = np.concatenate([[-1], graded if k == 0 else [], [0], -graded[::-1] if k == last else [], [1]])
        a, b = panel.breaks[k], panel.breaks[k + 1]
        cuts.append((a + b) / 2 + (b - a) / 2 * local)
        owner += [k] * (local.size - 1)
    start, end = np.concatenate([theta[:-1] for theta in cuts]), np.concatenate([theta[1:] for theta in cuts])
    low, high, series = panel.breaks[owner], panel.breaks[1:][owner], panel.density[owner]
    half = (end - start)[:, None] / 2
    nodes = start[:, None] + half * (1 + _POINTS)
    local = (2 * nodes - (low + high)[:, None]) / (high - low)[:, None]
    g = chebyshev.chebval(local.T, series.T, tensor=False).T
    return _Pieces(panel.map, start, end, series, low, high, panel.map.point(nodes), g * half * _WEIGHTS)
