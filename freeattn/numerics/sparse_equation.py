"""A Dyson equation as one sparse block-diagonal matrix: exact coefficients, and doubles in balanced units at a point.

All sectors stand along the diagonal of a = C − z·P − Σ_e u_e·E_e, with inverse G, and u_e = Σ c·G_pq over its reads.

**Balanced units.** Rows and columns of G are multiplied by powers of two that bring its diagonal to one size and no
entry above 1; u_e is measured by its natural size, Σ |c|·max(|G_pq|, √|G_pp G_qq|). A sector is symmetric once the
copies of blocks are shared out, and its units are chosen so.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from freeattn.model.quantities import binary_of
from freeattn.numerics.dyson_tables import DysonTables, copy_roots
from freeattn.numerics.small_inverse import inverses

__all__ = [
    "BALANCING_ROUNDS", "MOST_INVERSE", "Balanced", "Binary", "Coefficients", "SparseEquation", "Units", "shifted",
    "summed",
]

Index = NDArray[np.intp]
Real = NDArray[np.float64]
Numbers = NDArray[Any]  # float64 or complex128
Binary = tuple[int, int]  # mantissa, exponent of two

_ACCURATE = 1e-9  # relative: traces of inverses by LU that are this near those of the start are as good as any
BALANCING_ROUNDS = 2  # of balancing; each takes the square root of what is left of the spread of sizes
MOST_INVERSE = 2.0**44  # norm of an inverse Jacobian in balanced units; a larger one has no digits in doubles


class Coefficients(NamedTuple):
    """Exact numbers at entries (row, column); each belongs to the unknown or the place that `owner` says."""

    owner: Index
    rows: Index
    columns: Index
    exact: tuple[Binary, ...]
    doubles: Real


@dataclass(frozen=True)
class Units:
    """Powers of two: G_pq·2^(rows_p + columns_q), a_pq·2^−(columns_p + rows_q) and u_e·2^traces_e are balanced."""

    rows: Index
    columns: Index
    traces: Index

    def of_inverse(self, entries: Coefficients) -> Index:
        """Exponents that take a coefficient of entries of G to balanced units, the unit of a sum left out."""
        return -(self.rows[entries.rows] + self.columns[entries.columns])

    def of_matrix(self, entries: Coefficients) -> Index:
        """Exponents that take entries of a to balanced units."""
        return -(self.columns[entries.rows] + self.rows[entries.columns])


@dataclass(frozen=True)
class Balanced:
    """The equation at one point, in balanced units: G, the Jacobian 1 − ∂Φ/∂u, coefficients of E and of the reads."""

    units: Units
    inverse: Numbers
    jacobian: Numbers
    energy: Real
    reads: Real


class SparseEquation:
    """The tables of one equation, entry by entry.

    Attributes:
        count: the number of unknowns.
        sizes, first: of each sector, its number of blocks and its first row.
        places: rows and columns of the entries of a that are not zero identically: first the `energetic` ones, which
            hold unknowns, then what else of the `moving` ones, which hold unknowns or z.
        constant, point, energy: their parts; owners are places. `sources` has the unknown of each part of `energy`,
            which is in the order of places.
        reads: in the order of the unknowns, their owners. `output`: those of m, without owner.
    """

    def __init__(self, tables: DysonTables, context: Any) -> None:
        self._context = context
        self.count = len(tables.reads)
        self.sizes = [len(sector.weight) for sector in tables.sectors]
        self.first = np.cumsum([0, *self.sizes])[:-1]
        self._list_terms(tables)
        exact = [*self.energy.exact, *self.reads.exact, *self.constant.exact]
        self._padding = 2 * context.prec - np.array([e for _, e in exact], dtype=np.intp)
        self._padded = np.array([m << 2 * context.prec for m, _ in exact], dtype=object)
        total = sum(self.sizes)
        self._roots = np.zeros((total, total))
        for first, sector in zip(self.first, tables.sectors, strict=True):
            inside = slice(first, first + len(sector.weight))
            self._roots[inside, inside] = copy_roots(sector.weight)
        self._roots_or_one = np.where(self._roots == 0, 1.0, self._roots)
        self._copies = np.concatenate([np.log2(np.array(s.weight, dtype=float)) / 2 for s in tables.sectors])
        self._before = self.reads.rows[:, None] * total + self.energy.rows
        self._after = self.energy.columns * total + self.reads.columns[:, None]
        self._identity = np.eye(self.count)
        self._incidence = np.equal.outer(self.sources, np.arange(self.count)).astype(float)
        self.energy_starts, self.read_starts = _starts(self.energy.owner), _starts(self.reads.owner)

    def _list_terms(self, tables: DysonTables) -> None:
        """Places, and the parts of their entries; reads and output."""
        energy = sorted(
            (self._at(k, p, q), int(e), matrix[p, q])
            for k, sector in enumerate(tables.sectors)
            for e, matrix in zip(sector.sources, sector.energy, strict=True)
            for p, q in zip(*np.nonzero(matrix), strict=True)
        )
        fixed = [[(self._at(k, p, q), getattr(sector, name)[p, q]) for k, sector in enumerate(tables.sectors)
                  for p, q in zip(*np.nonzero(getattr(sector, name)), strict=True)] for name in ("constant", "point")]
        moving = dict.fromkeys(at for at, _, _ in energy)
        self.energetic = len(moving)
        moving |= dict.fromkeys(at for at, _ in fixed[1])
        self.moving = len(moving)
        place = {at: i for i, at in enumerate(dict.fromkeys([*moving, *(at for at, _ in fixed[0])]))}
        self.places = np.array(list(place), dtype=np.intp).reshape(-1, 2).T
        self.constant, self.point = (self._coefficients((place[at], at, v) for at, v in part) for part in fixed)
        self.energy = self._coefficients((place[at], at, v) for at, _, v in energy)
        self.sources = np.array([e for _, e, _ in energy], dtype=np.intp)
        self.reads, self.output = (
            self._coefficients((e, self._at(r.sector, r.row, r.column), r.coefficient)
                               for e, sums in enumerate(found) for r in sums)
            for found in (tables.reads, (tables.output,))
        )

    def _at(self, sector: int, row: Any, column: Any) -> tuple[int, int]:
        return int(self.first[sector] + row), int(self.first[sector] + column)

    def _coefficients(self, found: Iterable[tuple[int, tuple[int, int], Any]]) -> Coefficients:
        entries = list(found)
        exact = tuple(binary_of(self._context.convert(value)) for _, _, value in entries)
        owner, rows, columns = (np.array(column, dtype=np.intp) for column in (
            [owner for owner, _, _ in entries], [at[0] for _, at, _ in entries], [at[1] for _, at, _ in entries]))
        return Coefficients(owner, rows, columns, exact, np.array([float(value) for _, _, value in entries]))

    def fixed(self, exponents: Index) -> NDArray[Any]:
        """Integers: the coefficients of energy, reads and constant, times 2^exponents and rounded down."""
        down = self._padding - exponents
        if (down >= 0).all():
            return np.asarray(self._padded >> down)
        pairs = zip(self._padded.tolist(), down.tolist(), strict=True)
        return np.array([shifted(number, -power) for number, power in pairs], dtype=object)

    # At one point ------------------------------------------------------------------------------------------------

    def balanced(self, u: Numbers, z: complex | float) -> Balanced:
        """The equation at z and a solution u in balanced units.

        Raises:
            LinAlgError: where a matrix is singular.
        """
        inverse = self._inverse(self._matrix(u, z), u)
        units = self._units(inverse)
        inverse = inverse * np.ldexp(1.0, units.rows)[:, None] * np.ldexp(1.0, units.columns)
        energy = np.ldexp(self.energy.doubles, units.of_matrix(self.energy) - units.traces[self.sources])
        reads = np.ldexp(self.reads.doubles, units.of_inverse(self.reads) + units.traces[self.reads.owner])
        flat = inverse.reshape(-1)
        moved = (flat[self._before] * energy * flat[self._after]) @ self._incidence * reads[:, None]
        if len(reads) != self.count:
            moved = np.add.reduceat(moved, self.read_starts, axis=0)
        jacobian = self._identity - moved
        return Balanced(units, inverse, jacobian, energy, reads)

    def turned(self, system: Balanced, direction: Real) -> Real:
        """G·(Σ_e E_e direction_e)·G in balanced units."""
        energy = np.zeros_like(system.inverse)
        values = summed(system.energy * direction[self.sources], self.energy_starts)
        energy[self.places[0, : self.energetic], self.places[1, : self.energetic]] = values
        return np.asarray(system.inverse @ energy @ system.inverse)

    def _matrix(self, u: Numbers, z: complex | float) -> Numbers:
        values = np.zeros(self.places.shape[1], dtype=np.result_type(u, type(z)))
        values[self.constant.owner] = self.constant.doubles
        values[self.point.owner] -= self.point.doubles * z
        values[: self.energetic] -= summed(self.energy.doubles * u[self.sources], self.energy_starts)
        matrix = np.zeros(self._roots.shape, dtype=values.dtype)
        matrix[self.places[0], self.places[1]] = values
        return matrix

    def _inverse(self, matrix: Numbers, u: Numbers) -> Numbers:
        """G at a solution; entry by entry to full relative accuracy where LU leaves traces that are not u."""
        inverse = np.linalg.inv(matrix)
        entries = inverse[self.reads.rows, self.reads.columns]
        distance = np.abs(summed(self.reads.doubles * entries, self.read_starts) - u)
        if (distance <= _ACCURATE * np.abs(u)).all():
            return inverse
        for first, size in zip(self.first, self.sizes, strict=True):
            inside = slice(first, first + size)
            inverse[inside, inside] = inverses(matrix[None, inside, inside])[0]
        if not np.isfinite(inverse).all():
            raise np.linalg.LinAlgError("a matrix of the equation is singular")
        return inverse

    def _units(self, inverse: Numbers) -> Units:
        sizes = np.abs(inverse) * self._roots
        diagonal = sizes.diagonal()
        scale = 1 / np.sqrt(diagonal if diagonal.all() else np.where(diagonal > 0, diagonal, sizes.max(axis=1)))
        for _ in range(BALANCING_ROUNDS):
            scale = scale / np.sqrt((scale[:, None] * sizes * scale).max(axis=1))
        exponents = np.log2(scale)
        rows, columns = (np.rint(exponents + sign * self._copies).astype(np.intp) for sign in (1, -1))
        roots = np.sqrt(diagonal)
        natural = (np.maximum(sizes, roots[:, None] * roots) / self._roots_or_one)[self.reads.rows, self.reads.columns]
        traces = summed(np.abs(self.reads.doubles) * natural, self.read_starts)
        return Units(rows, columns, -np.rint(np.log2(np.where(traces == 0, 1.0, traces))).astype(np.intp))


def shifted(mantissa: int, exponent: int) -> int:
    """mantissa·2^exponent, rounded down."""
    return mantissa << exponent if exponent >= 0 else mantissa >> -exponent


def summed(values: NDArray[Any], starts: Index) -> NDArray[Any]:
    """Sums over runs of the last axis."""
    return values if len(starts) == values.shape[-1] else np.add.reduceat(values, starts, axis=-1)


def _starts(owners: Index) -> Index:
    """Where runs of one owner begin."""
    return np.flatnonzero(np.diff(owners, prepend=-1))
