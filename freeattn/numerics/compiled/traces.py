"""Traces to any number of digits by compiled loops: the same rounds as `PreciseTraces`, on limbs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from freeattn.errors import BranchError, ConvergenceError
from freeattn.numerics.compiled.balance import REGULAR, SINGULAR
from freeattn.numerics.compiled.equation import CompiledEquation
from freeattn.numerics.compiled.lifts import LEFT, LIFTED, TOO_FINE, Long, Point, lift, root
from freeattn.numerics.compiled.limbs import LIMB
from freeattn.numerics.dyson_tables import DysonTables, copy_roots
from freeattn.numerics.fold_proofs import FoldNumbers
from freeattn.numerics.folds import Fold
from freeattn.numerics.lifting_layout import COMPLEX, REAL, Algebra
from freeattn.numerics.precise_traces import (
    ADVICE,
    LEAST_GAIN,
    NEAR_START,
    ROUNDING_BITS,
    SAFE_BITS,
    Border,
    Lifted,
    PreciseTraces,
    Start,
    place_of,
)
from freeattn.numerics.sparse_equation import Binary, Units

__all__ = ["CompiledTraces", "fits"]

Real = NDArray[np.float64]
Numbers = NDArray[Any]
Limbs = NDArray[np.int32]

_MASK = (1 << LIMB) - 1
_MOST_TERMS = 2000  # of a sum: three products of 2^50 each at every limb stay below 2^63


def fits(tables: DysonTables) -> bool:
    """Whether the sums of an equation are short enough for limbs that are carried once, at their end."""
    lengths = [len(sums) for sums in (*tables.reads, tables.output)] + [len(one.energy) for one in tables.sectors]
    return max(lengths) <= _MOST_TERMS


class CompiledTraces(PreciseTraces):
    """`PreciseTraces` for an equation whose loops are compiled."""

    def __init__(self, tables: DysonTables, equation: CompiledEquation, digits: int, guard: int) -> None:
        super().__init__(tables, equation, digits, guard)
        self._packed, sparse = equation.packed, self._sparse
        first = np.cumsum([0, *(size * size for size in sparse.sizes)])
        sector = np.repeat(np.arange(len(sparse.sizes)), sparse.sizes)
        begins, sizes = first[sector], np.array(sparse.sizes)[sector]
        inside = np.arange(len(sector)) - sparse.first[sector]
        row_starts = begins + inside * sizes  # of each row of the block-diagonal matrix, in the vector of all entries

        def entries(rows: Any, columns: Any) -> Any:
            return row_starts[rows] + inside[columns]

        rows, columns = sparse.places
        blocks = np.stack([first[:-1], sparse.sizes], axis=1)
        self._entry_rows = np.concatenate([np.repeat(np.arange(b) + f, b) for f, b in zip(
            sparse.first, sparse.sizes, strict=True)])
        self._entry_columns = np.concatenate([np.tile(np.arange(b) + f, b) for f, b in zip(
            sparse.first, sparse.sizes, strict=True)])
        self._output_entries = entries(sparse.output.rows, sparse.output.columns).tolist()
        weights = (sparse.energy, sparse.reads, sparse.constant, sparse.point)
        mantissas, exponents = limbs_of([pair for part in weights for pair in part.exact])
        self._long = Long(
            blocks, np.stack([row_starts[rows], row_starts[columns], sizes[rows]], axis=1), sparse.moving, mantissas,
            exponents, np.concatenate([part.doubles for part in weights]), self._units(),
            np.stack([sparse.energy.owner, sparse.sources], axis=1),
            np.stack([sparse.reads.owner, entries(sparse.reads.rows, sparse.reads.columns)], axis=1),
            sparse.constant.owner, sparse.point.owner,
        )
        copies = [np.array(sector.weight, dtype=float) for sector in tables.sectors]
        self._copies = (np.concatenate([copy_roots(weight).ravel() for weight in copies]),
                        np.log2(np.concatenate(copies)) / 2)

    def _units(self) -> NDArray[np.int64]:
        """`Long.units`: what `Units.of_matrix` and `Units.of_inverse` take, and the units of traces."""
        sparse = self._sparse
        count = sum(sparse.sizes)
        traces, none = 2 * count, 2 * count + sparse.count

        def row(part: Any, of_inverse: bool, taken: Any, added: Any) -> Any:
            first, second = (part.rows, part.columns + count) if of_inverse else (part.rows + count, part.columns)
            return np.stack([first, second, taken + 0 * first, added + 0 * first], axis=1)

        return np.concatenate([
            row(sparse.energy, False, traces + sparse.sources, none),
            row(sparse.reads, True, none, traces + sparse.reads.owner),
            row(sparse.constant, False, none, none), row(sparse.point, False, none, none),
        ]).astype(np.int64)

    def _from_start(self, start: Numbers, z: Any) -> Lifted:
        algebra = COMPLEX if np.iscomplexobj(start) else REAL
        rounded, limits = complex(z), self._limits(self._bits)
        point = Point(*limbs_of([(-m, e) for m, e in place_of(z, algebra)]), abs(rounded), 0, np.zeros(0))
        u = np.ascontiguousarray(start, dtype=np.complex128)
        status, units, found = root(
            self._packed, self._copies, self._long, algebra is REAL, u, rounded, point, limits, self._spare)
        if status != REGULAR:
            raise ConvergenceError("Newton to many digits", None, None, (
                "a matrix of the equation is singular: ask at another point" if status == SINGULAR else ADVICE))
        rows, columns, traces, _ = np.split(units, np.cumsum([*2 * [len(self._copies[1])], len(u)]))
        return self._lifted(algebra, Units(rows, columns, traces), found, int(limits[0]), rounded)

    def _lift_fold(self, start: Start, border: Border) -> Lifted:
        rows, units, algebra = len(self._copies[1]), start.system.units, start.algebra
        column = start.column.reshape(-1, rows, rows)[:, self._entry_rows, self._entry_columns]
        numbers = np.concatenate([
            column.ravel(), start.traces.ravel(), np.zeros(algebra.components * self._sparse.moving),
            [start.z.real / 2.0**border.unit],
        ])
        point = Point(*limbs_of([]), 1.0, border.unit, border.gauge)
        exponents = np.concatenate([units.rows, units.columns, units.traces, [0]])
        found = lift(self._long, algebra.square, np.ascontiguousarray(column), np.ascontiguousarray(start.solver),
                     exponents, point, numbers, self._limits(self._bits))
        return self._lifted(algebra, units, found, self._bits, start.z)

    def _limits(self, wanted: int) -> Real:
        return np.array([wanted, self._most, ROUNDING_BITS, LEAST_GAIN, NEAR_START, SAFE_BITS], dtype=float)

    def _lifted(
        self, algebra: Algebra, units: Units, found: tuple[Any, ...], wanted: int, z: complex | float
    ) -> Lifted:
        status, size, unit, inverse, parts = found
        if status == LEFT:
            raise BranchError(f"Newton at {z:.10g} moved from its start to another root")
        if status == TOO_FINE:
            raise ConvergenceError("Newton to many digits", size, 2.0 ** (self._most - wanted), ADVICE)
        length = parts.size // (algebra.components * self._sparse.count + 1)
        rows, numbers = inverse.reshape(algebra.components, -1, length), parts.reshape(-1, length)
        return Lifted(
            units, LIMB * (length - 1 - unit), [[_integer(part[m]) for m in self._output_entries] for part in rows],
            lambda: [[_integer(row) for row in part] for part in numbers[:-1].reshape(algebra.components, -1, length)],
            _integer(numbers[-1]), lambda: [[_integer(row) for row in part] for part in rows],
            None if status == LIFTED else size,
        )

    def fold_numbers(self, fold: Fold) -> FoldNumbers:
        """All numbers of a fold; errors as for `fold`."""
        lifted = self._lifted_fold(fold)
        units, bits = lifted.units, lifted.bits
        entries = (-bits - units.rows[self._entry_rows] - units.columns[self._entry_columns]).tolist()
        traces = (-bits - units.traces).tolist()
        assert lifted.inverse is not None
        g, turned = ([*zip(part, entries, strict=True)] for part in lifted.inverse())
        u, phi = ([*zip(part, traces, strict=True)] for part in lifted.traces())
        return FoldNumbers((lifted.point, int(np.frexp(fold.x)[1]) - bits), u, phi, g, turned)


def limbs_of(numbers: Sequence[Binary]) -> tuple[Limbs, NDArray[np.int64]]:
    """(limbs, exponents): each number is Σ_k limb_k·2^(exponent − 26k)."""
    lengths = [max((abs(m).bit_length() + LIMB - 1) // LIMB, 1) for m, _ in numbers]
    limbs = np.zeros((len(numbers), max(lengths, default=1)), dtype=np.int32)
    for row, (mantissa, _), length in zip(limbs, numbers, lengths, strict=True):
        rest = abs(mantissa)
        parts = [(rest >> LIMB * k) & _MASK for k in range(length - 1, -1, -1)]
        row[:length] = parts if mantissa >= 0 else [-part for part in parts]
    return limbs, np.array([e + LIMB * (k - 1) for (_, e), k in zip(numbers, lengths, strict=True)], dtype=np.int64)


def _integer(limbs: Limbs) -> int:
    """A number in units of its last limb."""
    wide = limbs.astype(np.int64)
    if len(wide) % 2:
        wide = np.concatenate([[0], wide])
    total = 0
    for pair in ((wide[::2] << LIMB) + wide[1::2]).tolist():
        total = (total << 2 * LIMB) + pair
    return total
