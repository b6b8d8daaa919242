"""Traces to any number of digits by compiled loops: the same rounds as `PreciseTraces`, on limbs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from freeattn.errors import BranchError, ConvergenceError
from freeattn.numerics.compiled.balance import REGULAR, SINGULAR, balance
from freeattn.numerics.compiled.equation import CompiledEquation
from freeattn.numerics.compiled.lifts import LEFT, LIFTED, REAL_NUMBERS, TOO_FINE, Chord, Long, lift
from freeattn.numerics.compiled.limbs import LIMB
from freeattn.numerics.dyson_tables import DysonTables
from freeattn.numerics.lifting import exponents_of
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

__all__ = ["CompiledTraces"]

Real = NDArray[np.float64]
Numbers = NDArray[Any]
Limbs = NDArray[np.int32]

_MASK = (1 << LIMB) - 1


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
        exact = [pair for part in (sparse.energy, sparse.reads, sparse.constant, sparse.point) for pair in part.exact]
        mantissas, self._exponents = limbs_of(exact)
        self._long = Long(
            blocks, np.stack([row_starts[rows], row_starts[columns], sizes[rows]], axis=1), sparse.moving, mantissas,
            np.stack([sparse.energy.owner, sparse.sources], axis=1),
            np.stack([sparse.reads.owner, entries(sparse.reads.rows, sparse.reads.columns)], axis=1),
            sparse.constant.owner, sparse.point.owner,
        )
        weights = [np.array(sector.weight, dtype=float) for sector in tables.sectors]
        self._roots = np.concatenate([(np.sqrt(w)[:, None] / np.sqrt(w)).ravel() for w in weights])
        self._copies = np.log2(np.concatenate(weights)) / 2

    def _solution(self, start: Numbers, z: Any) -> Lifted:
        algebra = COMPLEX if np.iscomplexobj(start) else REAL
        rounded, rows, count = complex(z), len(self._copies), self._sparse.count
        column, solver = np.empty((2, len(self._roots))), np.empty((count, count), dtype=np.complex128)
        units = Units(np.empty(rows, np.int64), np.empty(rows, np.int64), np.empty(count, np.int64))
        u = np.ascontiguousarray(start, dtype=np.complex128)
        status, share, height = balance(self._packed, self._roots, self._copies, u, rounded, column, units.rows,
                                        units.columns, units.traces, solver)
        if status != REGULAR:
            raise ConvergenceError("Newton to many digits", None, None, (
                "a matrix of the equation is singular: ask at another point" if status == SINGULAR else ADVICE))
        traces = u * np.exp2(units.traces)
        wanted = self._bits + self._below(height if algebra is COMPLEX else share)
        place = place_of(z, algebra)
        if algebra is REAL:
            return self._found(REAL, units, column[:1], solver.real, traces.real, wanted, place, rounded)
        parts = np.concatenate([traces.real, traces.imag])
        turned = np.block([[solver.real, -solver.imag], [solver.imag, solver.real]])
        return self._found(COMPLEX, units, column, turned, parts, wanted, place, rounded)

    def _lift(self, start: Start, wanted: int, place: Sequence[Binary], border: Border | None = None) -> Lifted:
        rows = len(self._copies)
        column = start.column.reshape(-1, rows, rows)[:, self._entry_rows, self._entry_columns]
        return self._found(start.algebra, start.system.units, column, start.solver, start.traces.ravel(), wanted,
                           place, start.z, border)

    def _found(
        self, algebra: Algebra, units: Units, column: Real, solver: Real, traces: Real, wanted: int,
        place: Sequence[Binary], z: complex | float, border: Border | None = None,
    ) -> Lifted:
        sparse, moving = self._sparse, np.zeros(algebra.components * self._sparse.moving)
        point_units = units.of_matrix(sparse.point) + (0 if border is None else border.unit)
        exponents = self._exponents + np.concatenate([exponents_of(sparse, units), point_units])
        size = abs(z) if border is None else 1.0
        chord = Chord(
            np.ascontiguousarray(column), *(np.ldexp(part.doubles, shift) for part, shift in (
                (sparse.energy, units.of_matrix(sparse.energy) - units.traces[sparse.sources]),
                (sparse.reads, units.of_inverse(sparse.reads) + units.traces[sparse.reads.owner]),
                (sparse.constant, units.of_matrix(sparse.constant)))),
            np.ldexp(sparse.point.doubles, point_units) * size, np.ascontiguousarray(solver))
        gauge = np.zeros(0) if border is None else border.gauge
        last = 0.0 if border is None else z.real / 2.0**border.unit
        minus_z, z_exponents = limbs_of([(-m, e) for m, e in place] if border is None else [])
        status, found, bits, unit, inverse, parts = lift(
            self._long, chord, REAL_NUMBERS if algebra is REAL else algebra.square, exponents, minus_z, z_exponents,
            gauge, np.concatenate([column.ravel(), traces, moving, [last]]),
            np.array([wanted, self._most, ROUNDING_BITS, LEAST_GAIN, NEAR_START, SAFE_BITS], dtype=float))
        if status != LIFTED:
            raise self._refusal(status, found, wanted, z)
        length = parts.size // (traces.size + 1)
        rows, numbers = inverse.reshape(-1, length), parts.reshape(-1, length)
        entries = len(self._roots)
        output = [[_integer(rows[part * entries + m]) for m in self._output_entries]
                  for part in range(algebra.components)]
        return Lifted(
            units, LIMB * (length - 1 - unit), output,
            lambda: [[_integer(row) for row in part] for part in numbers[:-1].reshape(algebra.components, -1, length)],
            _integer(numbers[-1]) if border else 0,
        )

    def _refusal(self, status: int, size: float, wanted: int, z: complex | float) -> Exception:
        if status == LEFT:
            return BranchError(f"Newton at {z:.10g} moved from its start to another root")
        if status == TOO_FINE:
            return ConvergenceError("Newton to many digits", size, 2.0 ** (self._most - wanted), ADVICE)
        return ConvergenceError("Newton to many digits", 2.0 ** max(size, -1000), 2.0 ** -min(wanted, 1000), ADVICE)


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
    total = 0
    for limb in limbs.tolist():
        total = (total << LIMB) + limb
    return total
