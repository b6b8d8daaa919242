"""Integrals of `law.density` on nodes chosen here: adaptive Gauss-Legendre that resolves band ends.

Nothing of the package's own quadrature is used; only edges, their exponents and the density are asked for.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

NODES, WEIGHTS = np.polynomial.legendre.leggauss(24)
PANELS = 6
DEPTH = 45
MOST_PANELS = 2000
HALF = np.pi / 2


def substitution(left: float, right: float, exponent: float) -> Callable[[Array], tuple[Array, Array]]:
    """θ in [0, π/2] ↦ (x, dx/dθ): x = R sin^{2k} θ at a hard edge, else x (or log x) linear in sin² θ."""
    if exponent < 0:
        order = round(1 / (1 + exponent))

        def hard(theta: Array) -> tuple[Array, Array]:
            sine = np.sin(theta)
            return right * sine ** (2 * order), right * 2 * order * sine ** (2 * order - 1) * np.cos(theta)

        return hard
    if left > 0 and right > 20 * left:
        width = math.log(right / left)

        def logarithmic(theta: Array) -> tuple[Array, Array]:
            low, high = left * np.exp(width * np.sin(theta) ** 2), right * np.exp(-width * np.cos(theta) ** 2)
            x = np.where(theta < HALF / 2, low, high)
            return x, width * np.sin(2 * theta) * x

        return logarithmic

    def soft(theta: Array) -> tuple[Array, Array]:
        width = right - left
        x = np.where(theta < HALF / 2, left + width * np.sin(theta) ** 2, right - width * np.cos(theta) ** 2)
        return x, width * np.sin(2 * theta)

    return soft


def powers(order: int) -> Callable[[Array], Array]:
    """x ↦ (1, x, …, x^order), stacked first."""
    return lambda x: np.stack([x**k for k in range(order + 1)])


def band_integral(
    law: Any, band: int, function: Callable[[Array], Array], scale: Array, tolerance: float = 1e-11
) -> Array:
    """∫ f ρ dx over one band, f stacked first; each panel agrees with its halves to `tolerance` × scale."""
    (left, right), (low_power, _) = law.edges[band], law.edge_exponents[band]
    change = substitution(left, right, float(low_power))

    def estimates(panels: list[tuple[float, float]]) -> list[Array]:
        theta = np.array([(a + b) / 2 + (b - a) / 2 * NODES for a, b in panels])
        x, slope = change(theta)
        mass = law.density(x.ravel()).reshape(x.shape) * slope
        assert np.isfinite(mass).all()
        values = function(x) * mass
        return [(b - a) / 2 * values[..., k, :] @ WEIGHTS for k, (a, b) in enumerate(panels)]

    panels = [(HALF * k / PANELS, HALF * (k + 1) / PANELS) for k in range(PANELS)]
    coarse, total = estimates(panels), np.zeros(np.shape(scale), dtype=complex)
    for _ in range(DEPTH):
        halves = [half for a, b in panels for half in ((a, (a + b) / 2), ((a + b) / 2, b))]
        fine = estimates(halves)
        todo: list[tuple[float, float]] = []
        kept: list[Array] = []
        for k, value in enumerate(coarse):
            both = fine[2 * k] + fine[2 * k + 1]
            if (np.abs(both - value) <= tolerance * scale).all():
                total = total + both
            else:
                todo += halves[2 * k : 2 * k + 2]
                kept += fine[2 * k : 2 * k + 2]
        if not todo:
            return total
        if len(todo) > MOST_PANELS:
            break
        panels, coarse = todo, kept
    raise AssertionError(f"the density is rough near x = {change(np.array(panels[0]))[0]}")


def mass_and_moments(law: Any, order: int = 4) -> tuple[Array, Array]:
    """((1, m_1, …) from the density and the atoms, the exact ones)."""
    exact = np.array([1.0, *law.moments(order)])
    found = np.zeros(order + 1)
    size = max([abs(end) for band in law.edges for end in band], default=0.0)
    scale = np.maximum(np.abs(exact), 1e-3 * size ** np.arange(order + 1.0))  # odd moments may vanish
    for band in range(len(law.edges)):
        found = found + band_integral(law, band, powers(order), scale).real
    for atom in law.atoms:
        found = found + float(atom.weight) * np.array([atom.location**k for k in range(order + 1)])
    return found, exact


def stieltjes_by_quadrature(law: Any, z: complex) -> complex:
    """∫ ν(dx)/(x − z) from the density and the atoms."""
    total = sum(float(atom.weight) / (atom.location - z) for atom in law.atoms)
    for band in range(len(law.edges)):
        total += complex(band_integral(law, band, lambda x: 1 / (x - z), np.array(0.01)))
    return total
