"""Densities inside a band by chord steps: Newton's method with an inverse Jacobian kept at each node of the panels.

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
from freeattn.numerics.compiled.algebra import decomposed, substituted
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

    def density(self, x: Real, theta: Real, reliable: float) -> tuple[Real, Mask]:
        """(ρ, whether it passed every test) at points x = x(θ) inside the band, away from its ends.

        `reliable` is the relative error by rounding beyond which a number does not pass.
        """
        panel, local = self._band.locate(theta)
        rho, good = np.empty(len(x)), np.empty(len(x), dtype=np.bool_)
        _densities(
            self._equation, x, panel, local, self._series, self._inverses, self._moduli, reliable, rho, good
        )
        return rho, good


@kernel
def _series_at(series: Any, local: float, found: Any) -> None:
    """found ← Σ_k series[k] T_k(local), by Clenshaw's recurrence."""
    for e in range(series.shape[1]):
        total, previous = 0.0j, 0.0j
        for k in range(series.shape[0] - 1, 0, -1):
            total, previous = scaled(total, 2 * local) - previous + series[k, e], total
        found[e] = scaled(total, local) - previous + series[0, e]


@kernel
def _kept(t: Any, x: Any, local: Any, series: Any, inverses: Any, moduli: Any) -> None:
    """inverses, moduli ← (1 − ∂Φ/∂u)⁻¹ at the nodes, and the moduli of its entries; not-a-number where singular."""
    count = series.shape[2]
    w = workspace(t, count)
    current, right, sizes = w.unknowns[CURRENT], w.unknowns[RIGHT], w.sizes[SIZES]
    for panel in range(x.shape[0]):
        for node in range(x.shape[1]):
            _series_at(series[panel], local[node], current)
            evaluate(t, current, complex(x[panel, node], 0.0), w)
            jacobian(t, w)
            regular = decomposed(w.matrix, w.order)
            for e in range(count):
                for i in range(count):
                    right[i] = 1.0 if i == e else 0.0
                substituted(w.matrix, w.order, right)
                for i in range(count):
                    entry = scaled(right[i], sizes[i] / sizes[e] if regular else np.nan)
                    inverses[panel, node, i, e], moduli[panel, node, i, e] = entry, modulus(entry)


@kernel
def _densities(
    t: Any, x: Any, panel: Any, local: Any, series: Any, inverses: Any, moduli: Any, reliable: float,
    rho: Any, good: Any,
) -> None:
    """rho, good ← densities, and which of them passed every test."""
    count, nodes = series.shape[2], inverses.shape[1]
    w = workspace(t, count)
    current, right, phi = w.unknowns[CURRENT], w.unknowns[RIGHT], w.unknowns[PHI]
    shift, bound = w.sizes[ABSOLUTE], w.sizes[BOUND]
    for k in range(len(x)):
        node = max(0, min(int((1 - np.arccos(local[k]) / np.pi) * nodes), nodes - 1))  # 0 for a point off its panel
        inverse, large = inverses[panel[k], node], moduli[panel[k], node]
        _series_at(series[panel[k]], local[k], current)
        best, residual = np.inf, evaluate(t, current, complex(x[k], 0.0), w)
        for _ in range(_STEPS):
            if residual <= GOOD_ENOUGH or (residual <= TOLERANCE and best <= TOLERANCE):
                break
            best = residual
            for e in range(count):
                right[e] = phi[e] - current[e]
            for e in range(count):
                total = current[e]
                for i in range(count):
                    total += inverse[e, i] * right[i]
                current[e] = total
            residual = evaluate(t, current, complex(x[k], 0.0), w)
        m = output(t, w)
        rho[k] = m.imag / np.pi
        good[k] = residual <= TOLERANCE and m.imag > VISIBLE * modulus(m) and in_cone(t, w)
        if good[k]:
            for e in range(count):
                shift[e] = 0.0
                for i in range(count):
                    shift[e] += _MARGIN * EPSILON * large[e, i] * bound[i]
            good[k] = output_bound(t, w) <= reliable * m.imag
