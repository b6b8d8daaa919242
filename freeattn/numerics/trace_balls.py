"""Rigorous bounds for a Dyson equation near a point: inverses, Jacobian and derivatives over a polydisc, in doubles.

All bounds hold for every system whose weights round to the doubles of the tables, hence for the true weights. The small
matrices of all sectors and nodes stand in one array, sectors × b × b, filled up with the identity to one size b.

**Inverses.** With Ĝ ≈ A⁻¹ and |1 − ĜA| ≤ T entry by entry for all A of the polydisc, and Td ≤ αd with d > 0, α < 1:

    |A⁻¹ − Ĝ| ≤ T|Ĝ| + α/(1−α)·d cᵀ,    c_j = max_i (T|Ĝ|)_ij / d_i.

**Linear systems.** With R ≈ J⁻¹ and |1 − RJ| ≤ K, Ks ≤ κs with κ < 1, the solution of Jx = b obeys
|x − x̂| ≤ q + κ/(1−κ)·s·max(q/s), q = K|x̂| + |Rb − x̂|.

**Derivatives.** ∂Φ_f/∂u_e = Σ c·v·G_pr·G_sq over reads c·G_pq of Φ_f and energies v·u_e at (r, s), as one list of such
products: of a product ab of balls, |a||b| to (|a| + r_a)(|b| + r_b) bounds what the radii add.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from freeattn.errors import CertificationError
from freeattn.numerics.array_balls import TINY, Ball, positive_definite, product, slack
from freeattn.numerics.dyson_tables import DysonTables, Read, copy_roots
from freeattn.numerics.enclosures import double_of, exactly

__all__ = [
    "GOOD_DEFECT", "LARGEST_DEFECT", "MOST_BALANCING", "Contraction", "Step", "TraceBalls", "contraction", "solution",
]

Numbers = NDArray[Any]
Real = NDArray[np.float64]

MOST_BALANCING = 5  # rounds towards |Ĝ_ij| ≤ d_i d_j, at most
GOOD_DEFECT = 1e-9  # that needs no better d
LARGEST_DEFECT = 0.25  # of 1 − ĜA and 1 − RJ in weighted norm


class Contraction(NamedTuple):
    """A preconditioner R, and K ≥ |1 − RJ| over a polydisc; K·size ≤ share·size."""

    inverse: Numbers
    defect: Real
    size: Real
    share: float


class Step(NamedTuple):
    """A step of Newton's method, du/dz, and the largest part of the step relative to the size of its unknown."""

    step: Numbers
    tangent: Numbers
    relative: float


class _Products(NamedTuple):
    """The products c·v·L_left·R_right that are summed for each place of the Jacobian, places ascending."""

    coefficients: Real
    moduli: Real
    left: NDArray[np.intp]
    right: NDArray[np.intp]
    starts: NDArray[np.intp]
    places: NDArray[np.intp]
    slack: float


class TraceBalls:
    """Bounds at points of one system, given with an `Enclosure` for every number; each is rounded once to a double."""

    def __init__(self, tables: DysonTables) -> None:
        self.count = len(tables.reads)
        self.blocks = tuple(len(s.weight) for s in tables.sectors)
        width = max(self.blocks)
        self.shape, self._one = (len(self.blocks), width, width), np.eye(width)
        self._constant, self.point, roots_of = np.zeros(self.shape), np.zeros(self.shape), np.ones(self.shape)
        energy = np.zeros((*self.shape, self.count))
        for k, (s, b) in enumerate(zip(tables.sectors, self.blocks, strict=True)):
            self._constant[k, range(b, width), range(b, width)] = 1.0
            self._constant[k, :b, :b], self.point[k, :b, :b] = _doubles(s.constant), _doubles(s.point)
            energy[k, :b, :b, s.sources] = _doubles(s.energy)
            roots_of[k, :b, :b] = copy_roots(_doubles(s.weight))
        self._energy = energy.reshape(-1, self.count)
        self._energy_moduli = np.abs(self._energy)
        self._energy_slack = slack(_most_terms(self._energy) + 2)
        self._moduli = np.abs(self._constant)
        self._reads = np.stack([_map_of(sums, self.shape) for sums in (*tables.reads, tables.output)])
        self._read_moduli, self._read_slack = np.abs(self._reads), slack(_most_terms(self._reads))
        self._products = self._products_of(energy)
        self._average = np.zeros((len(tables.averages), self.shape[0]))
        for row, average in enumerate(tables.averages):
            for k, weight in average:
                self._average[row, k] = _double(weight)
        self._corners = np.einsum("kpp->kp", self.point)[:, None, :]
        firsts = [average[0][0] for average in tables.averages]
        inside = np.array([np.arange(width) < self.blocks[k] for k in firsts])
        self._symmetrized = roots_of[firsts] * (inside[:, :, None] & inside[:, None, :])
        self._pads = np.eye(width) * ~inside[:, None, :]
        self._plain = np.array_equal(self._average, np.eye(self.shape[0]))

    def _products_of(self, energy: Real) -> _Products:
        k, r, s, e = np.nonzero(energy)
        found: list[tuple[Any, ...]] = []
        flat, width = self._reads.reshape(self.count + 1, *self.shape), self.shape[1]
        for f, sector, p, q in zip(*np.nonzero(flat), strict=True):
            here = np.flatnonzero(k == sector)
            base = int(sector) * width
            found += [
                (f * self.count + e[i], flat[f, sector, p, q] * energy[k[i], r[i], s[i], e[i]],
                 (base + p) * width + r[i], (base + s[i]) * width + q)
                for i in here
            ]
        found.sort(key=lambda term: (term[0], term[2], term[3]))
        places, coefficients, left, right = (np.array(column) for column in zip(*found, strict=True)) if found else (
            np.zeros(0, dtype=int), np.zeros(0), np.zeros(0, dtype=int), np.zeros(0, dtype=int))
        unique, starts, counts = np.unique(places, return_index=True, return_counts=True)
        most = int(counts.max(initial=1))
        return _Products(coefficients, np.abs(coefficients), left, right, starts, unique, slack(most + 2))

    # In doubles, without bounds ------------------------------------------------------------------------------------

    def approximate(self, u: Numbers, z: complex) -> Numbers:
        """(C − z P − Σ u E)⁻¹, nearly; not-a-number where a matrix is singular."""
        matrices = self._constant - z * self.point - self.changes(u)
        with np.errstate(all="ignore"):
            size = np.abs(matrices)
            left = 1 / np.max(size, axis=2)
            right = 1 / np.max(left[:, :, None] * size, axis=1)
            try:
                inverse = np.linalg.inv(left[:, :, None] * matrices * right[:, None, :])
            except np.linalg.LinAlgError:
                return np.full(self.shape, np.nan)
            inverse = right[:, :, None] * inverse * left[:, None, :]
            return np.asarray(inverse + inverse @ (self._one - matrices @ inverse))

    def sizes(self, g: Numbers) -> Real:
        """The natural size of each unknown, √|G_pp G_qq| summed over its reads."""
        size = np.abs(g)
        diagonal = np.sqrt(np.einsum("kpp->kp", size))
        found = self._read_moduli[:-1] @ np.maximum(size, diagonal[:, :, None] * diagonal[:, None, :]).ravel()
        return np.where(found == 0, 1.0, found)  # a trace that is zero has no size

    def values(self, g: Numbers) -> Numbers:
        """Φ, and m as the last entry."""
        return _combined(self._reads, g.ravel())

    def newton(self, u: Numbers, z: complex) -> Step:
        """One step of Newton's method at u; not-a-number where the Jacobian is singular."""
        g = self.approximate(u, z)
        size, jacobian = self.sizes(g), np.eye(self.count) - self.derivative(g)
        right = np.stack([self.values(g)[:-1] - u, self.values((g * self._corners) @ g)[:-1]], axis=1)
        try:
            with np.errstate(all="ignore"):
                found = np.linalg.solve(jacobian * (size / size[:, None]), right / size[:, None])
        except np.linalg.LinAlgError:
            found = np.full(right.shape, np.nan)
        relative = float(np.max(np.abs(found[:, 0]), initial=0.0))
        return Step(found[:, 0] * size, found[:, 1] * size, relative)

    def derivative(self, g: Numbers) -> Numbers:
        """∂Φ/∂u."""
        p = self._products
        flat, found = g.ravel(), np.zeros((self.count + 1) * self.count, dtype=g.dtype)
        if len(p.starts):
            found[p.places] = np.add.reduceat(p.coefficients * flat[p.left] * flat[p.right], p.starts)
        return found.reshape(self.count + 1, self.count)[:-1]

    def changes(self, direction: Numbers) -> Numbers:
        """Σ_e E_e·direction_e."""
        return _combined(self._energy, direction).reshape(self.shape)

    # Values --------------------------------------------------------------------------------------------------------

    def inverses(self, u: Ball, z: Ball, near: Numbers) -> Ball:
        """(C − z P − Σ u E)⁻¹ of each sector, for all u and z in the balls, from approximate ones `near` the middle.

        Raises:
            CertificationError: when a matrix may be singular.
        """
        matrix, size, terms, one = self._matrices(u, z), np.abs(near), slack(self.shape[1]), self._one
        defect = size @ (terms * np.abs(matrix.middle) + matrix.radius) * (1 + terms)
        defect += np.abs(one - near @ matrix.middle) + terms * one + TINY
        d = np.sqrt(size.max(axis=2))
        share = self._share(defect, d)
        for _ in range(MOST_BALANCING):
            if share.max() < GOOD_DEFECT:
                break
            d = np.sqrt(d * (size / d[:, None, :]).max(axis=2))
            share = self._share(defect, d)  # of the d that the bound below is stated with
        if not share.max() < LARGEST_DEFECT:
            raise CertificationError("a matrix of the equation is singular, or nearly, within the bounds")
        first = defect @ size
        worst = (first / d[:, :, None]).max(axis=1)
        rest = (share / (1 - share))[:, None, None] * d[:, :, None] * worst[:, None, :]
        return Ball(near, (first + rest) * (1 + terms) + TINY)

    def _share(self, defect: Real, d: Real) -> Real:
        """α of each sector: T·d ≤ α·d."""
        return ((defect @ d[:, :, None])[:, :, 0] / d).max(axis=1) * (1 + slack(self.shape[1]))

    def _matrices(self, u: Ball, z: Ball) -> Ball:
        """C − z P − Σ u E."""
        middle = self._constant - z.middle * self.point - self.changes(u.middle)
        both = (self._energy_moduli @ np.stack([np.abs(u.middle), u.radius], axis=1)).reshape(*self.shape, 2)
        moduli = self._moduli + float(np.abs(z.middle)) * self.point + both[..., 0]
        moved = both[..., 1] + float(z.radius) * self.point
        return Ball(middle, (moved + self._energy_slack * moduli) * (1 + self._energy_slack) + TINY)

    def moduli(self, u: Real, z: float = 0.0, constant: bool = True) -> Real:
        """|C| + zP + Σ u|E| for bounds u, z of moduli; without C and zP for changes."""
        found = (self._energy_moduli @ u).reshape(self.shape)
        return found + self._moduli + z * self.point if constant else found

    def energy(self, direction: Ball) -> Ball:
        """Σ_e E_e·direction_e of each sector."""
        terms, middle = self._energy_slack, self.changes(direction.middle)
        radius = self._energy_moduli @ (direction.radius + terms * np.abs(direction.middle))
        return Ball(middle, radius.reshape(self.shape) * (1 + terms) + TINY)

    def read(self, matrices: Ball) -> Ball:
        """The unknowns, and m as the last entry, from the matrices of all sectors."""
        radius = self.bounds(matrices.radius + self._read_slack * np.abs(matrices.middle))
        return Ball(self.values(matrices.middle), radius * (1 + self._read_slack) + TINY)

    def bounds(self, matrices: Real) -> Real:
        """Σ |coefficient| × entry for matrices of bounds: unknowns, and m as the last entry."""
        return np.asarray(self._read_moduli @ matrices.ravel())

    # Derivatives ---------------------------------------------------------------------------------------------------

    def bilinear(self, left: Ball, right: Ball) -> Ball:
        """Reads of L·E_e·R, columns e: rows the unknowns, and m as the last one."""
        p = self._products
        middle = np.zeros((self.count + 1) * self.count, dtype=np.result_type(left.middle, right.middle))
        radius = np.full(middle.shape, TINY)
        if len(p.starts):
            values = p.coefficients * left.middle.ravel()[p.left] * right.middle.ravel()[p.right]
            upper = p.moduli * left.size.ravel()[p.left] * right.size.ravel()[p.right]
            sums = np.add.reduceat(np.stack([upper, np.abs(values)]), p.starts, axis=1)
            middle[p.places] = np.add.reduceat(values, p.starts)
            radius[p.places] += sums[0] - sums[1] + p.slack * sums[0]
        shape = (self.count + 1, self.count)
        return Ball(middle.reshape(shape), radius.reshape(shape))

    def jacobian(self, matrices: Ball) -> tuple[Ball, Ball]:
        """(1 − ∂Φ/∂u, ∂m/∂u)."""
        change = self.bilinear(matrices, matrices)
        middle, radius = change.middle[:-1], change.radius[:-1]
        derivative = Ball(np.eye(self.count) - middle, radius + slack(1) * (np.eye(self.count) + np.abs(middle)))
        return derivative, Ball(change.middle[-1:], change.radius[-1:])

    def slope(self, matrices: Ball) -> Ball:
        """∂Φ/∂z, and the direct part of ∂m/∂z as the last entry."""
        return self.read(product(self.at_corners(matrices), matrices))

    def at_corners(self, matrices: Ball) -> Ball:
        """G·P."""
        return Ball(matrices.middle * self._corners, matrices.radius * self._corners)

    # Matrices of traces --------------------------------------------------------------------------------------------

    def definite(self, matrices: Ball) -> bool:
        """Whether the real matrix of every sector, averaged over its nodes, with the copies of blocks shared out so
        that it is symmetric, is proved to be positive definite."""
        middle, radius = matrices
        if not self._plain:
            terms = slack(int(np.count_nonzero(self._average, axis=1).max()))
            flat = np.stack([middle, radius + terms * np.abs(middle)]).reshape(2, self.shape[0], -1)
            middle, radius = (self._average @ flat).reshape(2, -1, *self.shape[1:])
            radius = radius * (1 + terms)
        middle, radius = middle * self._symmetrized, radius * self._symmetrized
        return positive_definite(Ball(middle + self._pads, radius * (1 + slack(1)) + slack(1) * np.abs(middle)))


def contraction(jacobian: Ball, inverse: Numbers, size: Real) -> Contraction:
    """K ≥ |1 − RJ|, with its norm in units of `size`.

    Raises:
        CertificationError: when that norm is not well below 1.
    """
    terms, moduli, one = slack(len(size)), np.abs(inverse), np.eye(len(size))
    defect = np.abs(one - inverse @ jacobian.middle)
    defect += (moduli @ (jacobian.radius + terms * np.abs(jacobian.middle)) + one * terms) * (1 + terms)
    share = float(np.max(defect @ size / size, initial=0.0)) * (1 + terms)
    if not share < LARGEST_DEFECT:
        raise CertificationError(
            "the root is too ill-conditioned for a proof in double precision: the point is too near an edge, or terms "
            "of very unequal size cancel"
        )
    return Contraction(inverse, defect * (1 + terms), size, share)


def solution(proof: Contraction, right: Ball) -> Ball:
    """The solutions of all systems J x = b, b in the ball."""
    terms, moduli = slack(len(proof.size)), np.abs(proof.inverse)
    found = proof.inverse @ right.middle
    first = proof.defect @ np.abs(found) + moduli @ (right.radius + terms * np.abs(right.middle))
    first *= 1 + terms
    rest = proof.share / (1 - proof.share) * proof.size * np.max(first / proof.size, initial=0.0)
    return Ball(found, (first + rest) * (1 + terms))


def _combined(real: Real, values: Numbers) -> Numbers:
    """A real matrix times a vector, complex or not."""
    if np.iscomplexobj(values):
        return np.asarray((real @ np.ascontiguousarray(values).view(float).reshape(-1, 2)).view(complex).ravel())
    return np.asarray(real @ values)


def _map_of(reads: tuple[Read, ...], shape: tuple[int, ...]) -> Real:
    """Coefficients of a sum at the entries of all sectors."""
    found = np.zeros(shape, dtype=object)
    for k, row, column, coefficient in reads:
        found[k, row, column] += coefficient
    return _doubles(found.ravel())


def _most_terms(matrix: Real) -> int:
    return int(np.count_nonzero(matrix, axis=1).max(initial=0))


def _doubles(values: Numbers) -> Real:
    return np.array([_double(value) for value in values.ravel()], dtype=float).reshape(values.shape)


def _double(value: Any) -> float:
    enclosure = exactly(value)
    return double_of((enclosure.low + enclosure.high) / 2)
