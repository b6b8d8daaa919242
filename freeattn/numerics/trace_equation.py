"""The Dyson equation in numbers, u = Φ(u, z), vectorized over points: values, derivatives, Newton, the physical root.

Every sector is a small matrix A = C − z·P − Σ_e u_e E_e with inverse G, and each unknown is read off inverses. All
derivatives are exact: dG = G (P dz + Σ_e E_e du_e) G.

**Rounding.** A computed Φ_e is the exact one for coefficients that are off by a few ulps, so it is off by at most that
many times B_e = Σ |coefficient|·(|G|·|A|·|G|), |A| being the sum of the moduli of the terms of A. A root is accepted
when |Φ_e − u_e| is of that size: no smaller residual has a meaning, and it stays meaningful where terms cancel.

**Which root.** At Im z > 0 and at real z inside a band the physical solution is the one whose matrices of traces all
have a positive definite imaginary part; in a gap it is the real one whose matrices of traces all have a positive
definite derivative. Both hold for compressions of a resolvent.
"""

from __future__ import annotations

from functools import reduce
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from freeattn.numerics.bands import PanelBand
from freeattn.numerics.dyson_tables import DysonTables, Read, SectorTable, copy_roots
from freeattn.numerics.small_inverse import inverses

__all__ = [
    "CONE", "EPSILON", "FIRST_RATIO", "GOOD_ENOUGH", "HOPELESS", "LEAST_RATIO", "NEWTON_BASIN",
    "NEWTON_STEPS", "ROUNDS", "TOLERANCE", "VISIBLE", "ChordValues", "GapValues", "Roots",
    "TraceEquation", "Value",
]

Real = NDArray[np.float64]
Numbers = NDArray[Any]  # float64 on a real branch, complex128 elsewhere
Mask = NDArray[np.bool_]

EPSILON = float(np.finfo(np.float64).eps)
TOLERANCE = 128 * EPSILON  # of B: a sum of some dozen products, each rounded
GOOD_ENOUGH = 8 * EPSILON  # of B: no further step can help
NEWTON_STEPS = 14
NEWTON_BASIN = 1e-6  # relative change of an averaged step from which Newton takes over
ROUNDS = 120  # continuation rounds; about 30 are typical
HOPELESS = 0.97  # ratio of heights in one step: continuation has met a singular point
FIRST_RATIO, LEAST_RATIO = 0.3, 0.05  # of heights in one step
VISIBLE = 1e-12  # Im m over |m| below which a solution counts as real
CONE = 1e-9  # how negative an eigenvalue of a normalized matrix may be by rounding


class Value(NamedTuple):
    """Inverses of all sectors, Φ(u), and |Φ − u|/B, the largest over the unknowns of each point."""

    matrices: list[Numbers]
    phi: Numbers
    residual: Real


class GapValues(NamedTuple):
    """m at real points of gaps, how far off it may be by rounding, and whether the root passed the test of a gap."""

    m: Real
    error: Real
    good: Mask


class Roots(NamedTuple):
    """Roots, whether they are ones to rounding, the inverses of all sectors there, and whether they are in the cone."""

    traces: Numbers
    good: Mask
    matrices: list[Numbers]
    cone: Mask


class ChordValues(Protocol):
    """Boundary values inside one band from what is kept at the nodes of its panels."""

    def stieltjes(self, x: Real, theta: Real, reliable: float) -> tuple[Numbers, Mask]:
        """(m, whether it passed the tests of a root and of its rounding) at points x = x(θ).

        `reliable` is the error by rounding, relative to Im m, beyond which a number does not pass.
        """


class TraceEquation:
    """u = Φ(u, z) for the unknowns of one system; points come first in every array, unknowns last."""

    def __init__(self, tables: DysonTables) -> None:
        self.tables = tables
        self.count = len(tables.reads)
        self._reads = [_reads_of(tables.reads, k) for k in range(len(tables.sectors))]
        self._output = [_reads_of((tables.output,), k) for k in range(len(tables.sectors))]
        self._absolute = [(np.abs(s.constant), np.abs(s.point), np.abs(_flat(s.energy))) for s in tables.sectors]
        self._constant = [not any(tables.sectors[k].moves for k, _ in average) for average in tables.averages]
        self._roots = [copy_roots(s.weight) for s in tables.sectors]

    def matrices(self, u: Numbers, z: Numbers) -> list[Numbers]:
        """(C − z P − Σ u E)⁻¹ in each sector."""
        found = []
        for sector in self.tables.sectors:
            energy = _combined(u, sector)
            found.append(inverses(sector.constant - energy - z[:, None, None] * sector.point))
        return found

    def evaluate(self, u: Numbers, z: Numbers) -> Value:
        """Φ(u), and how far u is from it in units of rounding."""
        matrices = self.matrices(u, z)
        phi = self.read(matrices)
        bound = self._bound(matrices, self._moduli(u, z))
        with np.errstate(all="ignore"):
            distance = np.abs(phi - u)
            residual = np.max(np.where(distance == 0, 0.0, distance / bound), axis=1, initial=0.0)
        return Value(matrices, phi, np.where(np.isfinite(residual), residual, np.inf))

    def output(self, matrices: list[Numbers]) -> Numbers:
        """m(z)."""
        return _read(self._output, matrices)[..., 0]

    def read(self, matrices: list[Numbers]) -> Numbers:
        """The unknowns from matrices of all sectors (two last axes the blocks); linear."""
        return _read(self._reads, matrices)

    def _moduli(self, u: Numbers, z: Numbers) -> list[Real]:
        """|A| of each sector: the sums of the moduli of its terms."""
        return [
            constant + np.abs(z)[:, None, None] * point + shift
            for (constant, point, _), shift in zip(self._absolute, self._shifts(np.abs(u)), strict=True)
        ]

    def _shifts(self, size: Real) -> list[Real]:
        """Σ_e |E_e|·size_e of each sector."""
        return [
            (size[:, sector.sources] @ energy).reshape(-1, *constant.shape)
            for (constant, _, energy), sector in zip(self._absolute, self.tables.sectors, strict=True)
        ]

    def _bound(self, matrices: list[Numbers], moduli: list[Real]) -> Real:
        """B of each unknown."""
        with np.errstate(all="ignore"):
            found = [np.abs(g) @ terms @ np.abs(g) for g, terms in zip(matrices, moduli, strict=True)]
        return _read(self._reads, found, absolute=True)

    # Derivatives -----------------------------------------------------------------------------------------------

    def energy(self, direction: Numbers) -> list[Numbers]:
        """Σ_e E_e·direction_e in each sector."""
        return [_combined(direction, sector) for sector in self.tables.sectors]

    def jacobian(self, matrices: list[Numbers]) -> Numbers:
        """1 − ∂Φ/∂u: rows are equations, columns unknowns."""
        return np.eye(self.count) - self.bilinear(matrices, matrices)

    def bilinear(self, left: list[Numbers], right: list[Numbers]) -> Numbers:
        """For each unknown, its reads of L·E_e·R (columns e), L and R given sector by sector."""
        total = np.zeros((len(left[0]), self.count, self.count), dtype=np.result_type(*left))
        for first, second, sector, reads in zip(left, right, self.tables.sectors, self._reads, strict=True):
            blocks, sources = len(sector.weight), len(sector.sources)
            if not sources or not reads.rows.size:
                continue
            wide = np.swapaxes(sector.energy, 0, 1).reshape(blocks, sources * blocks)
            rows = (first[:, reads.rows, :] @ wide).reshape(len(first), -1, sources, blocks)
            columns = np.swapaxes(second[:, :, reads.columns], 1, 2)
            part = (rows @ columns[:, :, :, None])[..., 0]
            total[:, :, sector.sources] += reads.coefficients.T @ part
        return total

    def bordered(self, u: Real, x: float, phi: Real, gauge: Real) -> tuple[Real, Real]:
        """(F, F_u φ, ℓ·φ − 1) at one real point, and its matrix of derivatives in (u, x, φ); see `folds`."""
        count, g = self.count, self.matrices(u[None], np.array([x]))
        turned = [a @ e @ a for a, e in zip(g, self.energy(phi[None]), strict=True)]
        points = [sector.point for sector in self.tables.sectors]
        jacobian = self.jacobian(g)[0]
        second = -(self.bilinear(g, turned) + self.bilinear(turned, g))[0]
        mixed = -self.read([a @ p @ t + t @ p @ a for a, p, t in zip(g, points, turned, strict=True)])[0]
        matrix = np.zeros((2 * count + 1, 2 * count + 1))
        matrix[:count, :count], matrix[:count, count] = jacobian, -self.slope(g)[0]
        matrix[count:-1, :count], matrix[count:-1, count], matrix[count:-1, count + 1 :] = second, mixed, jacobian
        matrix[-1, count + 1 :] = gauge
        residual = np.concatenate([u - self.read(g)[0], jacobian @ phi, [gauge @ phi - 1]])
        return residual, matrix

    def slope(self, matrices: list[Numbers]) -> Numbers:
        """∂Φ/∂z."""
        return self.read([g @ s.point @ g for g, s in zip(matrices, self.tables.sectors, strict=True)])

    def tangent(self, matrices: list[Numbers]) -> Numbers:
        """du/dz along the branch; not-a-number where the Jacobian is singular."""
        return self.solve(self.jacobian(matrices), self.slope(matrices), self.sizes(matrices))

    def rates(self, matrices: list[Numbers]) -> list[Numbers]:
        """dG/dz of each sector along the branch."""
        change = self.energy(self.tangent(matrices))
        return [g @ (s.point + e) @ g for g, s, e in zip(matrices, self.tables.sectors, change, strict=True)]

    def sizes(self, matrices: list[Numbers]) -> Real:
        """The natural size of each unknown, √|G_pp G_qq| summed over its reads."""
        def geometric(g: Numbers) -> Real:
            diagonal = np.sqrt(np.abs(np.einsum("...pp->...p", g)))
            return np.maximum(np.abs(g), diagonal[..., :, None] * diagonal[..., None, :])

        found = _read(self._reads, [geometric(g) for g in matrices], absolute=True)
        return np.where(found == 0, 1.0, found)  # a trace that is zero has no size

    def output_error(self, u: Numbers, z: Numbers, matrices: list[Numbers]) -> Real:
        """How far off m may be by rounding: ε·B through the inverse of the Jacobian, and through the last inverses."""
        sizes, moduli = self.sizes(matrices), self._moduli(u, z)
        jacobian = self.jacobian(matrices) * (sizes[:, None, :] / sizes[:, :, None])
        bound = EPSILON * self._bound(matrices, moduli) / sizes
        usable = np.isfinite(jacobian).all(axis=(1, 2))
        shift = np.full(u.shape, np.inf)
        try:
            inverse = np.abs(np.linalg.inv(jacobian[usable]))
        except np.linalg.LinAlgError:  # one of them is singular: an error without bound there
            inverse = np.abs(np.linalg.pinv(jacobian[usable], rcond=0.0))
        shift[usable] = (inverse @ bound[usable][..., None])[..., 0] * sizes[usable]
        changes = [moved + EPSILON * terms for moved, terms in zip(self._shifts(shift), moduli, strict=True)]
        found = [np.abs(g) @ change @ np.abs(g) for g, change in zip(matrices, changes, strict=True)]
        return _read(self._output, found, absolute=True)[..., 0]

    @staticmethod
    def solve(jacobian: Numbers, right: Numbers, size: Real) -> Numbers:
        """Solutions of linear systems in units of the size of each unknown; not-a-number where singular."""
        with np.errstate(all="ignore"):
            jacobian, right = jacobian * (size[:, None, :] / size[:, :, None]), right / size
        usable = np.all(np.isfinite(jacobian), axis=(1, 2)) & np.all(np.isfinite(right), axis=1)
        result = np.full_like(right, np.nan)
        try:
            result[usable] = np.linalg.solve(jacobian[usable], right[usable][..., None])[..., 0]
        except np.linalg.LinAlgError:
            usable[usable] = np.linalg.det(jacobian[usable]) != 0
            result[usable] = np.linalg.solve(jacobian[usable], right[usable][..., None])[..., 0]
        return result * size

    # Roots -----------------------------------------------------------------------------------------------------

    def newton(self, u: Numbers, z: Numbers) -> tuple[Numbers, Mask]:
        """Newton's method from the given start: (best iterate, whether it is a root to rounding)."""
        best, kept, current = np.full(len(u), np.inf), u.copy(), u
        active = np.arange(len(u))
        for step in range(NEWTON_STEPS):
            value = self.evaluate(current, z[active])
            better = value.residual < best[active]
            kept[active[better]], best[active[better]] = current[better], value.residual[better]
            settled = (best[active] <= GOOD_ENOUGH) | ((best[active] <= TOLERANCE) & ~better)
            go = ~settled & np.isfinite(value.residual)
            if step == NEWTON_STEPS - 1 or not go.any():
                break
            active, matrices = active[go], [g[go] for g in value.matrices]
            current = current[go] + self.solve(
                self.jacobian(matrices), value.phi[go] - current[go], self.sizes(matrices)
            )
        return kept, best <= TOLERANCE

    def in_cone(self, u: Numbers, z: Numbers) -> Mask:
        """Whether every matrix of traces has a positive definite imaginary part (to rounding)."""
        good = np.ones(len(u), dtype=bool)
        for g in self._varying(self.symmetric(self.matrices(u, z))):
            scale = np.sqrt(np.abs(np.einsum("kpp->kp", g)))
            good &= _definite(g.imag, EPSILON * scale[:, :, None] * scale[:, None, :])
        return good

    def roots(self, u: Numbers, z: Numbers) -> Roots:
        """Newton's method, and what is asked of its roots in bands; the cone is looked at where they are good."""
        found, good = self.newton(u, z)
        cone = np.zeros(len(found), dtype=bool)
        if good.any():
            cone[good] = self.in_cone(found[good], z[good])
        return Roots(found, good, self.matrices(found, z), cone)

    def gap_values(self, u: Real, x: Real) -> GapValues:
        """m at real points outside the bands by Newton's method from the given start."""
        found, good = self.newton(u, x)
        if good.any():
            good[good] = self.increasing(found[good], x[good])
        matrices = self.matrices(found, x)
        return GapValues(self.output(matrices), self.output_error(found, x, matrices), good)

    def averaged(self, z: Numbers, steps: int) -> Numbers:
        """Averaged iteration u ← (u + Φ(u))/2 from C⁻¹, until a step is small: a start for Newton's method."""
        u = np.zeros((z.size, self.count), dtype=np.complex128)
        for _ in range(steps):
            value = self.evaluate(u, z)
            close = np.abs(value.phi - u) <= NEWTON_BASIN * self.sizes(value.matrices)
            u = (u + value.phi) / 2
            if close.all():
                break
        return u

    def follow(self, start: Numbers, points: Numbers, u: Numbers) -> tuple[Numbers, Mask]:
        """From solutions u at `start` down vertical lines to `points`, by Euler's predictor and Newton's method.

        A step counts when the root is one to rounding and in the cone: (unknowns, which points were reached).
        """
        target, height, u = points.imag, start.imag.copy(), u.copy()
        ratio = np.full(points.shape, FIRST_RATIO)
        for _ in range(ROUNDS):
            index = np.flatnonzero((height > target) & (ratio < HOPELESS))
            if not index.size:
                break
            following = np.maximum(height[index] * ratio[index], target[index])
            here, there = (points.real[index] + 1j * h for h in (height[index], following))
            tangent = self.tangent(self.matrices(u[index], here))
            moved, good = self.newton(u[index] + tangent * (there - here)[:, None], there)
            good &= self.in_cone(moved, there)
            u[index] = np.where(good[:, None], moved, u[index])
            height[index] = np.where(good, following, height[index])
            ratio[index] = np.where(good, np.maximum(ratio[index] ** 1.5, LEAST_RATIO), np.sqrt(ratio[index]))
        return u, height <= target

    def chords(self, band: PanelBand) -> ChordValues | None:  # noqa: ARG002
        """A faster way to values inside a band, None where there is none; slow to make, made for each band once."""
        return None

    def symmetric(self, matrices: list[Numbers]) -> list[Numbers]:
        """The matrix of each sector, averaged over its nodes, with the copies of blocks shared out: symmetric."""
        return [
            np.sum([weight * matrices[k] for k, weight in average], axis=0) * self._roots[average[0][0]]
            for average in self.tables.averages
        ]

    def _varying(self, averages: list[Numbers]) -> list[Numbers]:
        """Without the sectors that neither z nor any unknown enters: their matrices are constant."""
        return [g for g, constant in zip(averages, self._constant, strict=True) if not constant]

    def increasing(self, u: Real, z: Real) -> Mask:
        """Whether every matrix of traces of a real solution has a positive definite derivative."""
        good = np.ones(len(u), dtype=bool)
        for rate in self._varying(self.symmetric(self.rates(self.matrices(u, z)))):
            good &= _definite(rate, np.zeros_like(rate))
        return good


def _definite(matrices: Real, noise: Real) -> Mask:
    """Positive definite, up to rounding of the entries and `noise` in them."""
    diagonal = np.einsum("kpp->kp", matrices)
    with np.errstate(all="ignore"):
        good = np.all(diagonal > 0, axis=1)
        scale = 1 / np.sqrt(np.where(diagonal > 0, diagonal, 1.0))
        units = scale[:, :, None] * scale[:, None, :]
        normal, slack = matrices * units, np.max(noise * units, axis=(1, 2))
    good &= np.all(np.isfinite(normal), axis=(1, 2))
    normal[~good] = np.eye(matrices.shape[1])
    if matrices.shape[1] == 1:
        return good
    lowest = np.linalg.eigvalsh((normal + np.swapaxes(normal, 1, 2)) / 2)[:, 0]
    return good & (lowest > -CONE - 100 * slack)


class _Reads(NamedTuple):
    """Entries (row, column) of one sector, and the coefficients with which they enter each sum (entries × sums)."""

    rows: NDArray[np.intp]
    columns: NDArray[np.intp]
    coefficients: Real


def _reads_of(sums: tuple[tuple[Read, ...], ...], sector: int) -> _Reads:
    found = [(number, read) for number, reads in enumerate(sums) for read in reads if read.sector == sector]
    coefficients = np.zeros((len(found), len(sums)))
    for place, (number, read) in enumerate(found):
        coefficients[place, number] = read.coefficient
    rows, columns = (np.array([getattr(read, name) for _, read in found], dtype=np.intp) for name in ("row", "column"))
    return _Reads(rows, columns, coefficients)


def _read(reads: list[_Reads], matrices: list[Numbers], absolute: bool = False) -> Numbers:
    """Σ coefficient × entry for each sum."""
    parts = [
        matrix[..., r.rows, r.columns] @ (np.abs(r.coefficients) if absolute else r.coefficients)
        for r, matrix in zip(reads, matrices, strict=True) if r.rows.size
    ]
    if parts:
        return reduce(np.add, parts)
    return np.zeros((*matrices[0].shape[:-2], reads[0].coefficients.shape[1]), dtype=matrices[0].dtype)


def _flat(energy: Real) -> Real:
    return energy.reshape(len(energy), energy.shape[1] ** 2)


def _combined(u: Numbers, sector: SectorTable) -> Numbers:
    """Σ_e u_e E_e."""
    size = len(sector.weight)
    return (u[:, sector.sources] @ _flat(sector.energy)).reshape(-1, size, size)
