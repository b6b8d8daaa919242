"""Edges of a law as folds of the real branch: the residual vanishes and the Jacobian is singular.

Newton's method for (u, x, φ) with F = u − Φ(u, x):

    F = 0,      F_u φ = 0,      ℓ·φ = 1,

whose matrix is regular at a simple fold. The null vector φ is the direction in which the traces leave the real axis: at
an edge of the physical branch every matrix of traces changes by a semidefinite amount along it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from freeattn.numerics.trace_equation import EPSILON, TOLERANCE, TraceEquation

__all__ = ["RANK_TOLERANCE", "Fold", "Frame", "find_fold", "framed"]

Real = NDArray[np.float64]

_STEPS = 30
RANK_TOLERANCE = 1e-11  # of singular values of the bordered matrix, in natural units: below is rounding
_SETTLED = 64 * EPSILON  # relative change of x in a last step
_ROUNDED = 1e-7  # the same where terms cancel, as at an edge that is tiny: steps do not shrink below their rounding
_SHRINKING = 0.25  # at least, of steps that have not reached rounding
_SEMIDEFINITE = 1e-6  # relative: eigenvalues of the direction that may be on the wrong side


@dataclass(frozen=True)
class Fold:
    """An edge: x, the real traces there, the null vector of the Jacobian, and whether x is good to a few ulps."""

    x: float
    traces: Real
    direction: Real
    sharp: bool = True


@dataclass(frozen=True)
class Frame:
    """Natural units of the bordered system: φ of norm one, ℓ with ℓ·φ = 1, and sizes of unknowns and of equations."""

    direction: Real
    gauge: Real
    scale: Real
    weights: Real


def framed(sizes: Real, x: float, direction: Real) -> Frame:
    """The frame of a fold near x whose traces have the given sizes."""
    phi = direction / np.linalg.norm(direction / sizes)
    gauge = phi / sizes / sizes
    gauge /= gauge @ phi
    return Frame(phi, gauge, np.concatenate([sizes, [abs(x)], sizes]), np.concatenate([sizes, sizes, [1.0]]))


def find_fold(equation: TraceEquation, x: float, traces: Real, direction: Real) -> Fold | None:
    """The fold that Newton's method reaches from a guess; None when it reaches none, or one of another branch."""
    count = equation.count
    frame = framed(np.maximum(np.abs(traces), np.finfo(float).tiny), x, direction)
    u, phi, last = traces.astype(float), frame.direction, np.inf
    for _ in range(_STEPS):
        with np.errstate(all="ignore"):
            residual, matrix = equation.bordered(u, x, phi, frame.gauge)
            scaled = matrix * frame.scale / frame.weights[:, None]
        if not (np.isfinite(scaled).all() and np.isfinite(residual).all()):
            return None
        step = -frame.scale * _solution(scaled, residual / frame.weights)
        if not np.isfinite(step).all():
            return None
        u, x, phi = u + step[:count], x + step[count], phi + step[count + 1 :]
        change, sharp = abs(step[count] / x), abs(step[count]) <= _SETTLED * abs(x)
        if sharp or (change <= _ROUNDED and change > _SHRINKING * last and _is_root(equation, u, x)):
            return Fold(float(x), u, phi, bool(sharp)) if _on_physical_branch(equation, u, x, phi) else None
        last = change
    return None


@np.errstate(all="ignore")
def _solution(matrix: Real, right: Real) -> Real:
    """Of a linear system; by least squares where rows depend on each other: where edges of two branches coincide, the
    null space has more than one dimension."""
    try:
        inverse = np.linalg.inv(matrix)
        if np.linalg.norm(matrix) * np.linalg.norm(inverse) * RANK_TOLERANCE < 1:
            return np.asarray(inverse @ right)
    except np.linalg.LinAlgError:
        pass
    try:
        return np.asarray(np.linalg.lstsq(matrix, right, rcond=RANK_TOLERANCE)[0])
    except np.linalg.LinAlgError:
        return np.full_like(right, np.nan)


def _is_root(equation: TraceEquation, u: Real, x: float) -> bool:
    """Whether F vanishes to rounding."""
    return bool(equation.evaluate(u[None], np.array([x])).residual[0] <= TOLERANCE)


def _on_physical_branch(equation: TraceEquation, u: Real, x: float, phi: Real) -> bool:
    """Whether every matrix of traces changes by a semidefinite amount along the null vector, all of one sign."""
    lowest, highest = [], []
    matrices, energies = equation.matrices(u[None], np.array([x])), equation.energy(phi[None])
    for turned in equation.symmetric([g @ e @ g for g, e in zip(matrices, energies, strict=True)]):
        change = turned[0]
        if not np.isfinite(change).all():
            return False
        size = np.sqrt(np.abs(np.diag(change)))
        size[size == 0] = 1.0
        normal = change / size[:, None] / size
        values = np.linalg.eigvalsh((normal + normal.T) / 2)
        lowest.append(values[0])
        highest.append(values[-1])
    return min(lowest) > -_SEMIDEFINITE or max(highest) < _SEMIDEFINITE
