"""Rigorous bounds for a Dyson equation near a point: inverses, Jacobian and derivatives over a polydisc, in doubles.

All bounds hold for every system whose weights round to the doubles of the tables, hence for the true weights.

**Inverses.** With Ĝ ≈ A⁻¹ and |1 − ĜA| ≤ T entry by entry for all A of the polydisc, and Td ≤ αd with d > 0, α < 1:

    |A⁻¹ − Ĝ| ≤ T|Ĝ| + α/(1−α)·d cᵀ,    c_j = max_i (T|Ĝ|)_ij / d_i.

**Linear systems.** With R ≈ J⁻¹ and |1 − RJ| ≤ K, Ks ≤ κs with κ < 1, the solution of Jx = b obeys
|x − x̂| ≤ q + κ/(1−κ)·s·max(q/s), q = K|x̂| + |Rb − x̂|.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from freeattn.errors import CertificationError
from freeattn.numerics.array_balls import Ball, about, combination, product, slack
from freeattn.numerics.dyson_tables import DysonTables, Read, SectorTable
from freeattn.numerics.enclosures import double_of, exactly

__all__ = ["Contraction", "TraceBalls", "contraction", "solution"]

Numbers = NDArray[Any]
Real = NDArray[np.float64]

_BALANCING = 4  # rounds towards |Ĝ_ij| ≤ d_i d_j
_LARGEST_DEFECT = 0.25  # of 1 − ĜA and 1 − RJ in weighted norm


class Contraction(NamedTuple):
    """A preconditioner R, and K ≥ |1 − RJ| over a polydisc; K·size ≤ share·size."""

    inverse: Numbers
    defect: Real
    size: Real
    share: float


class TraceBalls:
    """Bounds at points of one system, given with an `Enclosure` for every number; each is rounded once to a double."""

    def __init__(self, tables: DysonTables) -> None:
        self.count = len(tables.reads)
        self.sectors = [
            SectorTable(_doubles(s.constant), _doubles(s.point), s.sources, _doubles(s.energy), _doubles(s.weight))
            for s in tables.sectors
        ]
        self._averages = [[(k, _double(weight)) for k, weight in average] for average in tables.averages]
        self._reads = [_map_of(tables.reads, k, s) for k, s in enumerate(tables.sectors)]
        self._output = [_map_of((tables.output,), k, s) for k, s in enumerate(tables.sectors)]
        self._roots = [np.sqrt(s.weight)[:, None] / np.sqrt(s.weight) for s in self.sectors]

    # Values ------------------------------------------------------------------------------------------------------

    def inverses(self, u: Ball, z: Ball, near: list[Numbers]) -> list[Ball]:
        """(C − z P − Σ u E)⁻¹ of each sector, for all u and z in the balls, from approximate ones `near` the middle.

        Raises:
            CertificationError: when a matrix may be singular.
        """
        return [self._inverse(sector, u, z, g) for sector, g in zip(self.sectors, near, strict=True)]

    def _inverse(self, sector: SectorTable, u: Ball, z: Ball, g: Numbers) -> Ball:
        middle, radius = self.matrix(sector, u, z)
        size = np.abs(g)
        terms = slack(len(g))
        defect = np.abs(np.eye(len(g)) - g @ middle) + size @ (terms * np.abs(middle) + radius) * (1 + terms) + terms
        d = _weights(size)
        share = float(np.max(defect @ d / d)) * (1 + terms)
        if not share < _LARGEST_DEFECT:
            raise CertificationError("a matrix of the equation is singular, or nearly, within the bounds")
        first = defect @ size
        worst = np.max(first / d[:, None], axis=0)
        rest = share / (1 - share) * d[:, None] * worst
        return Ball(g, (first + rest) * (1 + terms))

    def matrix(self, sector: SectorTable, u: Ball, z: Ball) -> Ball:
        """C − z P − Σ u E."""
        here = Ball(u.middle[sector.sources], u.radius[sector.sources])
        count, shape = len(sector.sources), sector.point.shape
        flat, terms = sector.energy.reshape(count, shape[0] ** 2), slack(count + 2)
        energy, size = (here.middle @ flat).reshape(shape), np.abs(flat)
        moduli = np.abs(sector.constant) + abs(complex(z.middle)) * sector.point
        moduli += (np.abs(here.middle) @ size).reshape(shape)
        moved = (here.radius @ size).reshape(shape) + float(z.radius) * sector.point
        return Ball(sector.constant - z.middle * sector.point - energy, (moved + terms * moduli) * (1 + terms))

    def moduli(self, sector: SectorTable, u: Numbers) -> Real:
        """Σ |u||E|."""
        flat = np.abs(sector.energy).reshape(len(sector.sources), len(sector.weight) ** 2)
        return np.asarray((np.abs(u[sector.sources]) @ flat).reshape(sector.point.shape))

    def energy(self, direction: Ball) -> list[Ball]:
        """Σ_e E_e·direction_e of each sector."""
        found = []
        for sector in self.sectors:
            here = Ball(direction.middle[sector.sources], direction.radius[sector.sources])
            flat = combination(sector.energy.reshape(len(sector.sources), len(sector.weight) ** 2).T, here)
            found.append(Ball(flat.middle.reshape(sector.point.shape), flat.radius.reshape(sector.point.shape)))
        return found

    def read(self, matrices: list[Ball], output: bool = False) -> Ball:
        """The unknowns (or m) from matrices of all sectors."""
        parts = [combination(c, Ball(g.middle.ravel(), g.radius.ravel()))
                 for c, g in zip(self._output if output else self._reads, matrices, strict=True)]
        return _total(parts)

    def bounds(self, matrices: list[Real]) -> tuple[Real, Real]:
        """Σ |coefficient| × entry for matrices of bounds: (unknowns, m)."""
        found = [
            np.sum([np.abs(c) @ g.ravel() for c, g in zip(maps, matrices, strict=True)], axis=0)
            for maps in (self._reads, self._output)
        ]
        return found[0], found[1]

    # Derivatives -------------------------------------------------------------------------------------------------

    def bilinear(self, left: list[Ball], right: list[Ball]) -> tuple[Ball, Ball]:
        """Reads of L·E_e·R, columns e: for the unknowns, and for m."""
        shape, kind = (self.count, self.count), np.result_type(*(g.middle for g in left))
        totals = [Ball(np.zeros(s, dtype=kind), np.zeros(s)) for s in (shape, (1, self.count))]
        for k, (first, second, sector) in enumerate(zip(left, right, self.sectors, strict=True)):
            if not len(sector.sources):
                continue
            turned = product(product(first, about(sector.energy)), second)
            flat = Ball(*(part.reshape(len(sector.sources), -1).T for part in turned))
            for total, coefficients in zip(totals, (self._reads[k], self._output[k]), strict=True):
                part = combination(coefficients, flat)
                total.middle[:, sector.sources] += part.middle
                total.radius[:, sector.sources] += part.radius + slack(len(left)) * np.abs(part.middle)
        return totals[0], totals[1]

    def jacobian(self, matrices: list[Ball]) -> tuple[Ball, Ball]:
        """(1 − ∂Φ/∂u, ∂m/∂u)."""
        change, output = self.bilinear(matrices, matrices)
        radius = change.radius + slack(1) * (1 + np.abs(change.middle))
        return Ball(np.eye(self.count) - change.middle, radius), output

    def slope(self, matrices: list[Ball]) -> Ball:
        """∂Φ/∂z."""
        return self.read([product(product(g, about(s.point)), g)
                          for g, s in zip(matrices, self.sectors, strict=True)])

    # Matrices of traces ------------------------------------------------------------------------------------------

    def symmetric(self, matrices: list[Ball]) -> list[Ball]:
        """The matrix of each sector, averaged over its nodes, with the copies of blocks shared out: symmetric."""
        found = []
        for average in self._averages:
            terms = slack(len(average))
            middle = np.sum([weight * matrices[k].middle for k, weight in average], axis=0)
            size = np.sum([weight * (matrices[k].radius + terms * np.abs(matrices[k].middle))
                           for k, weight in average], axis=0)
            roots = self._roots[average[0][0]]
            found.append(Ball(middle * roots, size * roots * (1 + terms) + terms * np.abs(middle * roots)))
        return found


def contraction(jacobian: Ball, inverse: Numbers, size: Real) -> Contraction:
    """K ≥ |1 − RJ|, with its norm in units of `size`.

    Raises:
        CertificationError: when that norm is not well below 1.
    """
    terms, moduli = slack(len(size)), np.abs(inverse)
    defect = np.abs(np.eye(len(size)) - inverse @ jacobian.middle)
    defect += (moduli @ (jacobian.radius + terms * np.abs(jacobian.middle)) + np.eye(len(size)) * terms) * (1 + terms)
    share = float(np.max(defect @ size / size)) * (1 + terms)
    if not share < _LARGEST_DEFECT:
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
    rest = proof.share / (1 - proof.share) * proof.size * np.max(first / proof.size)
    return Ball(found, (first + rest) * (1 + terms))


def _total(parts: list[Ball]) -> Ball:
    middle = np.sum([part.middle for part in parts], axis=0)
    size = np.sum([part.radius + slack(len(parts)) * np.abs(part.middle) for part in parts], axis=0)
    return Ball(middle, size * (1 + slack(len(parts))))


def _weights(size: Real) -> Real:
    """d with |Ĝ_ij| about d_i d_j at most."""
    d = np.sqrt(np.max(size, axis=1))
    for _ in range(_BALANCING):
        d = np.sqrt(d * np.max(size / d, axis=1))
    return np.asarray(d)


def _map_of(sums: tuple[tuple[Read, ...], ...], sector: int, table: SectorTable) -> Real:
    """Coefficients of each sum (rows) at the entries of one sector (columns)."""
    blocks = len(table.weight)
    found = np.zeros((len(sums), blocks, blocks), dtype=object)
    for number, reads in enumerate(sums):
        for k, row, column, coefficient in reads:
            if k == sector:
                found[number, row, column] += coefficient
    return _doubles(found.reshape(len(sums), -1))


def _doubles(values: Numbers) -> Real:
    return np.array([_double(value) for value in values.ravel()], dtype=float).reshape(values.shape)


def _double(value: Any) -> float:
    enclosure = exactly(value)
    return double_of((enclosure.low + enclosure.high) / 2)
