"""Roots of a Dyson equation digit by digit, in fixed-point numbers on integers.

The entries of a and G and the traces u are unknowns together, so that everything is bilinear and no matrix is inverted:

    R = 1 − a·G,      r = reads(G) − u,      s = C − z·P − E(u) − a.

The residuals are integers in units of 2^−bits. A correction is computed from their leading digits with a preconditioner
of doubles and rounded to numbers of some 50 bits; the residuals are then updated, exactly but for the last bit, by
products of one long and one short number. A round so gains what a double holds, less what the condition of the equation
costs, and its time is linear in the digits.

Numbers are real, complex, or dual (a + bε, ε² = 0: the equation and its derivative in one direction, as a fold needs):
two components with i² = −1 or ε² = 0, and matrices of such numbers multiply as real matrices of twice the size. Of a left
factor that is [[x, ∓y], [y, x]], of a right one the column [x; y].
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from freeattn.numerics.sparse_equation import Binary, Coefficients, SparseEquation, Units

__all__ = ["COMPLEX", "DUAL", "REAL", "Algebra", "Layout", "Lifting", "Residual", "Step"]

Index = NDArray[np.intp]
Real = NDArray[np.float64]
Integers = NDArray[Any]  # Python integers

SHORT_BITS = 52  # of the largest number of a correction
_LEADING_BITS = 62  # of residuals, as doubles


class Algebra(NamedTuple):
    """Numbers with one or two components; the square of the second unit."""

    components: int
    square: int


REAL, COMPLEX, DUAL = Algebra(1, 0), Algebra(2, -1), Algebra(2, 0)


class Residual(NamedTuple):
    """R (as the vector of its entries), r, s and that of a last scalar equation, as doubles times 2^exponent."""

    inverse: Real
    traces: Real
    places: Real
    scalar: float
    exponent: int


class Step(NamedTuple):
    """A correction of G (the vector of its entries), u, a and z."""

    inverse: Real
    traces: Real
    places: Real
    point: float


class Layout:
    """Where the numbers of one algebra stand: sectors of one size share an array for integers; doubles are dense.

    Attributes:
        inverse: the places of the entries of all G's, (sectors of one size) × component × row × column after one
            another, in the dense column [x; y].
        reads, output: the entries of that vector which the reads take, component by component.
    """

    def __init__(self, equation: SparseEquation, algebra: Algebra) -> None:
        self.equation, self.algebra = equation, algebra
        self.rows = sum(equation.sizes)
        count, total = algebra.components, self.rows
        where = np.zeros((count, total, total), dtype=np.intp)  # of an entry of G in the vector
        wide = np.zeros((count, count, total, total), dtype=np.intp)  # of an entry of a left factor
        dense: list[Index] = []
        self.groups: list[tuple[int, slice, slice, int]] = []
        at = wide_at = 0
        for size in sorted(set(equation.sizes)):
            members = [first for first, b in zip(equation.first, equation.sizes, strict=True) if b == size]
            start, wide_start = at, wide_at
            for first in members:
                inside = slice(first, first + size)
                block = np.arange(count * size * size, dtype=np.intp).reshape(count, size, size)
                where[:, inside, inside] = at + block
                square = np.arange((count * size) ** 2, dtype=np.intp).reshape(count, size, count, size)
                wide[:, :, inside, inside] = wide_at + square.transpose(0, 2, 1, 3)
                rows = np.arange(count)[:, None, None] * total + np.arange(first, first + size)[:, None]
                dense.append((rows * total + np.arange(first, first + size)).ravel())
                at, wide_at = at + block.size, wide_at + square.size
            self.groups.append((size, slice(start, at), slice(wide_start, wide_at), len(members)))
        self.size, self.wide_size = at, wide_at
        self.inverse = np.concatenate(dense)
        self.reads = where[:, equation.reads.rows, equation.reads.columns]
        self.dense_reads = self.inverse[self.reads]
        self.output = where[:, equation.output.rows, equation.output.columns]
        self.unit = where[0].diagonal()
        p, q = equation.places
        parts = [(k, k, 0) for k in range(count)]
        parts += [(1, 0, 1)] if count == 2 else []
        parts += [(0, 1, 1)] if algebra.square else []
        self._signs = np.concatenate([np.full(p.size, algebra.square if (i, j) == (0, 1) else 1) for i, j, _ in parts])
        self._sources = np.concatenate([component * p.size + np.arange(p.size) for _, _, component in parts])
        self._wide = np.concatenate([wide[i, j, p, q] for i, j, _ in parts])
        self._dense = np.concatenate([(i * total + p) * count * total + j * total + q for i, j, _ in parts])
        self._turned = bool(algebra.square)

    def left_integers(self, places: Integers) -> Integers:
        """Left factors, all sectors after one another, from the entries at the places of a (components × places)."""
        factors = np.zeros(self.wide_size, dtype=object)
        factors[self._wide] = self._placed(places)
        return factors

    def left(self, places: Real) -> Real:
        """The dense left factor."""
        factor = np.zeros((self.algebra.components * self.rows,) * 2)
        factor.reshape(-1)[self._dense] = self._placed(places)
        return factor

    def _placed(self, places: NDArray[Any]) -> NDArray[Any]:
        found = places.reshape(-1)[self._sources]
        return found * self._signs if self._turned else found

    def product(self, left: Integers, right: Integers) -> Integers:
        """left·right, sector by sector: a vector as that of G."""
        parts = []
        for size, inside, wide, members in self.groups:
            width = self.algebra.components * size
            first, second = left[wide].reshape(members, width, width), right[inside].reshape(members, width, size)
            parts.append((first @ second).reshape(-1))
        return np.concatenate(parts)

    def wide_of(self, column: Real) -> Real:
        """The dense left factor of a column."""
        total, square = self.rows, self.algebra.square
        if self.algebra.components == 1:
            return column
        wide = np.zeros((2 * total, 2 * total))
        wide[:, :total], wide[total:, total:] = column, column[:total]
        if square:
            wide[:total, total:] = square * column[total:]
        return wide

    def column(self, vector: Real) -> Real:
        """The dense column [x; y] of a vector as that of G."""
        column = np.zeros((self.algebra.components * self.rows, self.rows))
        column.reshape(-1)[self.inverse] = vector
        return column

    def vector(self, column: Real) -> Real:
        return column.reshape(-1)[self.inverse]


class Lifting:
    """The unknowns and residuals of one equation at one point.

    Args:
        layout: where numbers stand.
        units: the units in which everything is of size 1.
        bits: binary digits after the point.
        place: z: (mantissa, exponent) of each component; of one component when z is itself an unknown, then its unit.
        gauge: ℓ of the last equation, ℓ·(second component of u) = 1, when z is an unknown.
    """

    def __init__(
        self, layout: Layout, units: Units, bits: int, place: tuple[Binary, ...], gauge: Real | None = None
    ) -> None:
        equation, self.layout, self.bits = layout.equation, layout, bits
        count = layout.algebra.components
        self._energy = _scaled(equation.energy, units.of_matrix(equation.energy) - units.traces[equation.sources], bits)
        self._reads = _scaled(equation.reads, units.of_inverse(equation.reads) + units.traces[equation.reads.owner], bits)
        self._gauge = None if gauge is None else np.array(
            [int(g) << bits - SHORT_BITS for g in np.ldexp(gauge, SHORT_BITS)], dtype=object
        )
        self.places = np.zeros((count, equation.places.shape[1]), dtype=object)
        self.places[0, equation.constant.owner] = _scaled(equation.constant, units.of_matrix(equation.constant), bits)
        exponents = units.of_matrix(equation.point) + bits
        points = [
            [_shifted(a * b, e + f + g) for (a, e), g in zip(equation.point.exact, exponents.tolist(), strict=True)]
            for b, f in place
        ]
        if gauge is None:
            for component, point in enumerate(points):
                self.places[component, equation.point.owner] -= np.array(point, dtype=object)
        self._point = np.array(points[0], dtype=object)
        self.inverse = np.zeros(layout.size, dtype=object)
        self.traces = np.zeros((count, equation.count), dtype=object)
        self.point = 0
        self._errors = np.zeros(layout.size + count * (equation.count + equation.places.shape[1]) + 1, dtype=object)
        ends = np.cumsum([layout.size, count * equation.count])
        self._in_inverse, self._in_traces, places = np.split(self._errors[:-1], ends)
        self._in_traces, self._in_places = self._in_traces.reshape(count, -1), places.reshape(count, -1)
        self._in_inverse[layout.unit] = 1 << bits
        self._errors[-1] = 0 if gauge is None else 1 << bits

    def residual(self) -> Residual:
        """The leading digits of all residuals."""
        shift = max(self.largest() - _LEADING_BITS, 0)
        found = (self._errors >> shift).astype(np.float64)
        ends = np.cumsum([self.inverse.size, self.traces.size])
        inverse, traces, places = np.split(found[:-1], ends)
        return Residual(
            inverse, traces.reshape(self.traces.shape), places.reshape(self.places.shape), found[-1], shift - self.bits
        )

    def largest(self) -> int:
        """The bits of the largest residual, in units of 2^−bits."""
        return max(map(int.bit_length, self._errors.tolist()))

    def begin(self, inverse: Real, traces: Real, point: float = 0.0) -> None:
        """The start: G and u (and z) rounded to short numbers, a exactly what they give."""
        layout, short = self.layout, self._short((inverse, traces, point), 0)
        self._apply(short)
        moved = self._moved(short)
        self.places[:, : moved.shape[1]] -= moved
        self._in_inverse -= layout.product(layout.left_integers(self.places), short.inverse) >> short.down

    def add(self, step: Step, exponent: int) -> None:
        """Corrections step·2^exponent, rounded to short numbers."""
        layout, short = self.layout, self._short(step, exponent)
        before = self.inverse.copy()
        self._apply(short)
        moved = self._moved(short)
        self._in_places[:, : moved.shape[1]] -= moved
        self._in_places -= short.places << short.up
        self.places += short.places << short.up
        change = layout.product(layout.left_integers(self.places), short.inverse)
        change += layout.product(layout.left_integers(short.places), before)
        self._in_inverse -= change >> short.down

    def _short(self, step: tuple[Any, ...], exponent: int) -> _Short:
        """Numbers·2^exponent as integers of at most 52 bits, in units of 2^−down = 2^(up − bits)."""
        largest = max(float(np.max(np.abs(part), initial=0.0)) for part in step)
        fine = min(SHORT_BITS - int(np.frexp(largest)[1]), self.bits + exponent)
        parts = [np.rint(np.ldexp(part, fine)).astype(np.int64).astype(object) for part in step]
        return _Short(parts[0], parts[1], parts[2], parts[-1], fine - exponent, self.bits - fine + exponent)

    def _apply(self, short: _Short) -> None:
        """G, u and z, and the residuals that do not hold a."""
        self.inverse += short.inverse << short.up
        self.traces += short.traces << short.up
        equation, layout = self.layout.equation, self.layout
        read = np.add.reduceat(self._reads * short.inverse[layout.reads], equation.read_starts, axis=1)
        self._in_traces += (read >> short.down) - (short.traces << short.up)
        if self._gauge is not None:
            self.point += int(short.point) << short.up
            self._errors[-1] -= (self._gauge @ short.traces[1]) >> short.down

    def _moved(self, short: _Short) -> Integers:
        """E(u) + z·P of a correction, at the places that they reach."""
        equation = self.layout.equation
        moved = np.add.reduceat(
            self._energy * short.traces[:, equation.sources], equation.energy_starts, axis=1) >> short.down
        if self._gauge is None:
            return moved
        everywhere = np.zeros(self.places.shape, dtype=object)
        everywhere[:, : equation.varying] = moved
        everywhere[0, equation.point.owner] += self._point * short.point >> short.down
        return everywhere


class _Short(NamedTuple):
    inverse: Integers
    traces: Integers
    places: Integers
    point: Any
    down: int
    up: int


def _scaled(entries: Coefficients, exponents: Index, bits: int) -> Integers:
    """Coefficients·2^exponents in units of 2^−bits."""
    return np.array(
        [_shifted(m, e + k) for (m, e), k in zip(entries.exact, (exponents + bits).tolist(), strict=True)], dtype=object
    )


def _shifted(mantissa: int, exponent: int) -> int:
    return mantissa << exponent if exponent >= 0 else mantissa >> -exponent
