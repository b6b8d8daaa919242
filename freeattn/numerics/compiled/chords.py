"""m on the axis inside a band by chord steps: Newton's method with an inverse Jacobian kept at each node of the panels.

A panel's series starts each point at 1e-11 or better, and the Jacobian at the nearest node differs little from the one
at the point: few steps bring the residual to rounding, without a linear system. Every point gets its own residual and
its own test of the cone. What rounding does to m is bounded by the moduli of the inverse Jacobian of the nearest node,
times `_MARGIN`. That holds away from the ends of a band only: a panel resolves the solution, so other singular points
are farther from it than its nodes are from each other. A point that fails anything is left to the full method.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from freeattn.numerics.bands import NODES, POINTS, PanelBand
from freeattn.numerics.compiled.algebra import decomposed, inverted
from freeattn.numerics.compiled.kernels import (
    ABSOLUTE,
    BOUND,
    CURRENT,
    PHI,
    RIGHT,
    SIZES,
    evaluate,
    in_cone,
    jacobian,
    output,
    output_bound,
    workspace,
)
from freeattn.numerics.compiled.packed import Packed
from freeattn.numerics.compiled.scalars import kernel, modulus, scaled
from freeattn.numerics.trace_equation import EPSILON, GOOD_ENOUGH, TOLERANCE, VISIBLE

__all__ = ["Chords"]

Real = NDArray[np.float64]
Mask = NDArray[np.bool_]
Numbers = NDArray[np.complex128]

_STEPS = 6  # two or three are typical; more are taken where the nearest node is far
_MARGIN = 10.0  # of the moduli of the inverse Jacobian: it may grow that much from the nearest node to the point


class Chords:
    """Inverse Jacobians at the nodes of one band.

    Args:
        equation: the flat tables of the equation.
        band: its panels, whose solution is the vector of unknowns.
    """

    def __init__(self, equation: Packed, band: PanelBand) -> None:
        self._equation, self._band = equation, band
        panels, _, count = band.delta.shape
        local = POINTS
        self._series = np.ascontiguousarray(band.delta, dtype=np.complex128)
        self._inverses = np.empty((panels, NODES, count, count), dtype=np.complex128)
        self._moduli = np.empty((panels, NODES, count, count))
        starts, ends = band.breaks[:-1, None], band.breaks[1:, None]
        x = band.map.point((starts + ends) / 2 + (ends - starts) / 2 * local)
        _kept(equation, x, local, self._series, self._inverses, self._moduli)

    def stieltjes(self, x: Real, theta: Real, reliable: float) -> tuple[Numbers, Mask]:
        """(m, whether it passed every test) at points x = x(θ) inside the band, away from its ends.

        `reliable` is the error by rounding, relative to Im m, beyond which a number does not pass.
        """
        panel, local = self._band.locate(theta)
        m, good = np.empty(len(x), dtype=np.complex128), np.empty(len(x), dtype=np.bool_)
        _values(self._equation, x, panel, local, self._series, self._inverses, self._moduli, reliable, m, good)
        return m, good


@kernel
def _series_at(series: Any, local: float, found: Any, previous: Any) -> None:
    """found ← Σ_k series[k] T_k(local), by Clenshaw's recurrence, for all unknowns at a time."""
    for e in range(len(found)):
        found[e] = previous[e] = 0.0
    for k in range(series.shape[0] - 1, 0, -1):
        for e in range(len(found)):
            following = scaled(found[e], 2 * local) - previous[e] + series[k, e]
            previous[e] = found[e]
            found[e] = following
    for e in range(len(found)):
        found[e] = scaled(found[e], local) - previous[e] + series[0, e]


@kernel
def _kept(t: Any, x: Any, local: Any, series: Any, inverses: Any, moduli: Any) -> None:
    """inverses, moduli ← (1 − ∂Φ/∂u)⁻¹ at the nodes, transposed, and the moduli of its entries; not-a-number where
    singular."""
    count = series.shape[2]
    w, inverse = workspace(t, count), np.empty((count, count), np.complex128)
    current, sizes = w.unknowns[CURRENT], w.sizes[SIZES]
    for panel in range(x.shape[0]):
        for node in range(x.shape[1]):
            _series_at(series[panel], local[node], current, w.unknowns[RIGHT])
            evaluate(t, current, complex(x[panel, node], 0.0), w)
            jacobian(t, w)
            regular = decomposed(w.matrix, w.order)
            inverted(w.matrix, w.order, inverse)
            for e in range(count):
                for i in range(count):
                    entry = scaled(inverse[i, e], sizes[i] / sizes[e] if regular else np.nan)
                    inverses[panel, node, e, i], moduli[panel, node, e, i] = entry, modulus(entry)


@kernel
def _values(
    t: Any, x: Any, panel: Any, local: Any, series: Any, inverses: Any, moduli: Any, reliable: float, m: Any, good: Any
) -> None:
    """m, good ← boundary values, and which of them passed every test."""
    count, nodes = series.shape[2], inverses.shape[1]
    w = workspace(t, count)
    current, right, phi = w.unknowns[CURRENT], w.unknowns[RIGHT], w.unknowns[PHI]
    shift, bound = w.sizes[ABSOLUTE], w.sizes[BOUND]
    for k in range(len(x)):
        node = max(0, min(int((1 - np.arccos(local[k]) / np.pi) * nodes), nodes - 1))  # 0 for a point off its panel
        inverse, large = inverses[panel[k], node], moduli[panel[k], node]
        _series_at(series[panel[k]], local[k], current, right)
        best, residual = np.inf, evaluate(t, current, complex(x[k], 0.0), w)
        for _ in range(_STEPS):
            if residual <= GOOD_ENOUGH or (residual <= TOLERANCE and best <= TOLERANCE):
                break
            best = residual
            for e in range(count):
                right[e] = phi[e] - current[e]
            for i in range(count):
                step = right[i]
                for e in range(count):
                    current[e] += inverse[i, e] * step
            residual = evaluate(t, current, complex(x[k], 0.0), w)
        m[k] = output(t, w)
        good[k] = residual <= TOLERANCE and m[k].imag > VISIBLE * modulus(m[k]) and in_cone(t, w)
        if good[k]:
            for e in range(count):
                shift[e] = 0.0
            for i in range(count):
                rounding = _MARGIN * EPSILON * bound[i]
                for e in range(count):
                    shift[e] += large[i, e] * rounding
            good[k] = output_bound(t, w) <= reliable * m[k].imag
