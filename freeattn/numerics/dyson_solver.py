"""The Dyson equation in numbers: from z = ∞ down to any point of the upper half-plane, vectorized over points.

The unknowns u are the traces that enter the self-energy and the equation is u = Φ(u, z). Averaged iteration
u ← (u + Φ(u))/2 from C⁻¹ finds the solution far above the support; Newton's method with the exact Jacobian
(dG = G·dΣ·G) and Euler's predictor follow it down along vertical lines. A step is accepted when the residual is small
and the imaginary part of every small matrix of traces is positive definite, as it is for compressions of a resolvent
and, of all solutions, for the physical one alone. Nothing else is ever returned.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from freeattn.errors import BranchError, ConvergenceError, InputError
from freeattn.numerics.dyson_tables import DysonTables, Read, number_of, tables_of
from freeattn.numerics.small_inverse import inverses
from freeattn.theory.dyson import DysonSystem
from freeattn.theory.moments import moments

__all__ = ["DysonSolution", "DysonSolver"]

Complex = NDArray[np.complex128]
Real = NDArray[np.float64]
Mask = NDArray[np.bool_]

TOLERANCE = 1e-13  # relative residual of an accepted solution; rounding of the small inverses is a few 1e-15
_CONE = 1e-9  # how negative an eigenvalue of a normalized imaginary part may be by rounding
_NEWTON_STEPS = 12  # before a point counts as not converged
_AVERAGED_STEPS = 200  # far above the support the error halves at each step at worst
_START = 30.0  # first height over |z| and the size of the law: any value works that is well above the support
_RAISES = 12  # times that the start is doubled before giving up
_ROUNDS = 400  # continuation rounds; about 30 are typical


@dataclass(frozen=True)
class DysonSolution:
    """At each z: m(z), the traces that enter the self-energy (last axis), and the relative residual of the equation."""

    stieltjes: Complex
    traces: Complex
    residual: Real


class DysonSolver:
    """Solves the Dyson equation of one expression.

    Args:
        system: the equation.
        values: a number for each symbol of sizes, counts, variances and coefficients.

    Raises:
        InputError: when a symbol has no value.
    """

    def __init__(self, system: DysonSystem, values: Mapping[Any, Any] | None = None) -> None:
        self._tables = tables_of(system, values)
        self._scale = _scale(system, values)

    def stieltjes(self, z: ArrayLike) -> Complex:
        """m(z) = ∫ ν(dx)/(x − z) at points with Im z > 0, same shape as z; see `solve`."""
        return self.solve(z).stieltjes

    def solve(self, z: ArrayLike) -> DysonSolution:
        """The physical solution at points of the upper half-plane.

        Raises:
            InputError: for a point with Im z ≤ 0 or that is not finite.
            ConvergenceError: when some point is not reached.
            BranchError: when the start far above the support is not physical.
        """
        points = np.asarray(z, dtype=np.complex128)
        if not np.all(np.isfinite(points) & (points.imag > 0)):
            raise InputError("z", z, "finite points with a positive imaginary part")
        here, unknowns = self._begin(points.ravel())
        unknowns = self._descend(points.ravel(), here.imag, unknowns)
        value, shape = _evaluate(self._tables, unknowns, points.ravel()), points.shape
        stieltjes = _total(self._tables.output, value.matrices)
        return DysonSolution(stieltjes.reshape(shape), unknowns.reshape(*shape, -1), value.residual.reshape(shape))

    def _begin(self, points: Complex) -> tuple[Complex, Complex]:
        """Points far above the given ones, and the solution there."""
        count = len(self._tables.reads)
        worst = np.inf
        for doubling in range(_RAISES):
            height = np.maximum(points.imag, 2.0**doubling * _START * (self._scale + np.abs(points.real)))
            there = points.real + 1j * height
            unknowns = np.zeros((points.size, count), dtype=np.complex128)
            for _ in range(_AVERAGED_STEPS):
                value = _evaluate(self._tables, unknowns, there)
                unknowns = (unknowns + value.phi) / 2
                if np.max(value.residual, initial=0.0) < 1e-6:
                    break
            unknowns, good = _newton(self._tables, unknowns, there)
            if np.all(good & _in_cone(self._tables, unknowns, there)):
                return there, unknowns
            worst = float(np.max(_evaluate(self._tables, unknowns, there).residual, initial=0.0))
        if worst < TOLERANCE:
            raise BranchError("no physical solution of the Dyson equation was found far above the support")
        raise ConvergenceError("the Dyson equation far above the support", worst, TOLERANCE, "check the sizes given")

    def _descend(self, points: Complex, height: Real, unknowns: Complex) -> Complex:
        target, height = points.imag, height.copy()
        ratio = np.full(points.shape, 0.3)
        for _ in range(_ROUNDS):
            index = np.flatnonzero(height > target)
            if not index.size:
                return unknowns
            following = np.maximum(height[index] * ratio[index], target[index])
            here, there = (points.real[index] + 1j * h for h in (height[index], following))
            moved, good = self._step(here, there, unknowns[index])
            unknowns[index] = np.where(good[:, None], moved, unknowns[index])
            height[index] = np.where(good, following, height[index])
            ratio[index] = np.where(good, np.maximum(ratio[index] ** 1.5, 0.05), np.sqrt(ratio[index]))
        left = height > target
        raise ConvergenceError(
            "continuation of the Dyson equation", float(np.max((height / target)[left] - 1)), 0.0,
            f"it stopped near z = {points[left][0]:.6g}; take Im z larger",
        )

    def _step(self, here: Complex, there: Complex, unknowns: Complex) -> tuple[Complex, Mask]:
        value = _evaluate(self._tables, unknowns, here)
        jacobian, slope = _derivatives(self._tables, value.matrices)
        tangent = _solve(jacobian, slope, value.size)
        guess = unknowns + tangent * (there - here)[:, None]
        moved, good = _newton(self._tables, guess, there)
        return moved, good & _in_cone(self._tables, moved, there)


def _scale(system: DysonSystem, values: Mapping[Any, Any] | None) -> float:
    """The size of a typical eigenvalue: the mean, or the root of the second moment where signs may cancel."""
    if system.pencil.of == "self-adjoint":
        return float(np.sqrt(number_of(moments(system, 2)[1], values)))
    return number_of(moments(system, 1)[0], values)


class _Value(NamedTuple):
    """What the equation says at u: the matrices of traces of all sectors, Φ(u), the natural size of each unknown,
    and the relative residual max_e |Φ − u|_e / size_e of each point."""

    matrices: list[Complex]
    phi: Complex
    size: Real
    residual: Real


def _matrices(tables: DysonTables, unknowns: Complex, z: Complex) -> list[Complex]:
    """(C − Σ[u])⁻¹ in each sector, points first."""
    found = []
    for sector in tables.sectors:
        energy = np.tensordot(unknowns[:, sector.sources], sector.energy, axes=1)
        found.append(inverses(sector.constant - z[:, None, None] * sector.point - energy))
    return found


def _evaluate(tables: DysonTables, unknowns: Complex, z: Complex) -> _Value:
    """Φ(u) and how far u is from it."""
    matrices = _matrices(tables, unknowns, z)
    value = _read(tables, matrices)  # no columns for a deterministic M
    diagonals = [np.sqrt(np.abs(np.einsum("kpp->kp", inverse))) for inverse in matrices]
    size = np.abs(value)
    for e, reads in enumerate(tables.reads):
        bound = sum(abs(c) * diagonals[s][:, i] * diagonals[s][:, j] for s, i, j, c in reads)
        size[:, e] = np.maximum(size[:, e], bound)
    with np.errstate(all="ignore"):
        residual = np.max(np.abs(value - unknowns) / size, axis=1, initial=0.0)
    return _Value(matrices, value, size, np.where(np.isfinite(residual), residual, np.inf))


def _read(tables: DysonTables, matrices: list[Complex]) -> Complex:
    """The unknowns from matrices of all sectors (points first, two last axes the blocks); linear."""
    value = np.empty((*matrices[0].shape[:-2], len(tables.reads)), dtype=np.complex128)
    for e, reads in enumerate(tables.reads):
        value[..., e] = _total(reads, matrices)
    return value


def _total(reads: tuple[Read, ...], matrices: list[Complex]) -> Complex:
    parts = [r.coefficient * matrices[r.sector][..., r.row, r.column] for r in reads]
    return np.sum(parts, axis=0, dtype=np.complex128)


def _derivatives(tables: DysonTables, matrices: list[Complex]) -> tuple[Complex, Complex]:
    """1 − ∂Φ/∂u (rows: equations) and ∂Φ/∂z, from dG = G (E_xx dz + dΣ) G."""
    by_trace, by_point, count = [], [], len(tables.reads)
    for sector, inverse in zip(tables.sectors, matrices, strict=True):
        change = np.zeros((len(inverse), count, *inverse.shape[1:]), dtype=np.complex128)
        change[:, sector.sources] = inverse[:, None] @ sector.energy @ inverse[:, None]
        by_trace.append(change)
        by_point.append(inverse @ sector.point @ inverse)
    jacobian = np.swapaxes(_read(tables, by_trace), 1, 2)
    return np.eye(count) - jacobian, _read(tables, by_point)


def _solve(jacobian: Complex, right: Complex, size: Real) -> Complex:
    """Solutions of the linear systems, in units of the natural size of each unknown; not-a-number where singular."""
    jacobian, right = jacobian * (size[:, None, :] / size[:, :, None]), right / size
    usable = np.all(np.isfinite(jacobian), axis=(1, 2)) & np.all(np.isfinite(right), axis=1)
    usable[usable] = np.linalg.det(jacobian[usable]) != 0
    result = np.full_like(right, np.nan)
    result[usable] = np.linalg.solve(jacobian[usable], right[usable][..., None])[..., 0]
    return result * size


def _newton(tables: DysonTables, unknowns: Complex, z: Complex) -> tuple[Complex, Mask]:
    """Newton's method for u − Φ(u) = 0 from the given start; (u, converged)."""
    best, kept = np.full(z.shape, np.inf), unknowns.copy()
    current = unknowns
    for _ in range(_NEWTON_STEPS):
        value = _evaluate(tables, current, z)
        better = value.residual < best
        kept[better], best[better] = current[better], value.residual[better]
        if np.all((best <= TOLERANCE / 50) | ((best <= TOLERANCE) & ~better)):
            break
        jacobian, _ = _derivatives(tables, value.matrices)
        current = current + _solve(jacobian, value.phi - current, value.size)
    return kept, best <= TOLERANCE


def _in_cone(tables: DysonTables, unknowns: Complex, z: Complex) -> Mask:
    """Whether the imaginary part of every small matrix of traces is positive definite (to rounding)."""
    good = np.ones(z.shape, dtype=bool)
    matrices = _matrices(tables, unknowns, z)
    for average in tables.averages:
        inverse = sum((weight * matrices[k] for k, weight in average), np.complex128(0))
        root = np.sqrt(tables.sectors[average[0][0]].weight)
        imaginary = (inverse * root[:, None] / root).imag
        diagonal = np.einsum("kpp->kp", imaginary)
        good &= np.all(diagonal > 0, axis=1)
        with np.errstate(all="ignore"):
            scale = 1 / np.sqrt(np.where(diagonal > 0, diagonal, 1.0))
        normal = imaginary * scale[:, :, None] * scale[:, None, :]
        finite = np.all(np.isfinite(normal), axis=(1, 2))
        good &= finite
        normal[~finite] = np.eye(len(root))
        good &= np.linalg.eigvalsh((normal + np.swapaxes(normal, 1, 2)) / 2)[:, 0] > -_CONE
    return good

