"""Residuals of a Dyson equation, exact up to a proved bound, at dyadic points.

Unknowns, z, weights and approximate inverses Ĝ are integers times powers of two, so H = 1 − AĜ has no rounding at all.
With A⁻¹ in a ball,

    A⁻¹ = Ĝ + A⁻¹H,

and H being small, the second term is needed in doubles only. The derivative T = A⁻¹ΦA⁻¹ along a direction
Φ = Σ φ_e E_e is T̂ + A⁻¹(ΦĜ − AT̂) + TH in the same way. The weights are centres of enclosures: `width` is the largest
relative distance of a true weight from its centre.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import floor, frexp, ldexp, log2
from typing import Any, NamedTuple

import numpy as np
from flint import fmpq
from numpy.typing import NDArray

from freeattn.errors import CertificationError
from freeattn.numerics.array_balls import Ball, about, product, total
from freeattn.numerics.dyson_tables import DysonTables, Read
from freeattn.numerics.enclosures import BITS_PER_DIGIT, double_of, exactly
from freeattn.numerics.trace_balls import TraceBalls

__all__ = ["Dyadic", "ExactPoint", "ExactTraces", "Pair", "Residual", "Turned", "added", "down", "up"]

Numbers = NDArray[Any]
Real = NDArray[np.float64]
Pair = tuple[fmpq, fmpq]  # real and imaginary part
Matrix = list[list[int]]
Rows = list[list[tuple[int, int]]]

_MOST_WIDTH = 1e-18  # relative: far below the rounding of doubles, which the enclosures of matrices allow for
_GUARD_BITS = 30  # of unknowns and inverses, relative to their natural sizes
_WEIGHT_BITS = 70  # of weights and of z, relative, beyond the digits
_MANTISSA = 53
_WHOLE = 2.0**_MANTISSA


class Dyadic(NamedTuple):
    """(x + iy)·2^−bits."""

    x: int
    y: int
    bits: int

    def plus(self, value: complex, error: float) -> tuple[Dyadic, float]:
        """The sum with a double, and the error that is left."""
        moved = Dyadic(self.x + up(value.real, self.bits), self.y + up(value.imag, self.bits), self.bits)
        return moved, error + ldexp(2.0, -self.bits)

    @property
    def size(self) -> float:
        """The larger of the moduli of the two parts, in doubles."""
        return max(abs(down(self.x, self.bits)), abs(down(self.y, self.bits)))


class ExactPoint(NamedTuple):
    """Unknowns u = (ux + i uy)·2^−bits, z, and inverses of each sector times 2^shifts; the imaginary parts of a real
    point are None."""

    ux: list[int]
    uy: list[int] | None
    bits: int
    z: Dyadic
    gx: list[Matrix]
    gy: list[Matrix] | None
    shifts: list[int]


class Residual(NamedTuple):
    """u − Φ(u, z) in doubles, bounds of its errors, m with its error, and A⁻¹H, which corrects the inverses."""

    values: Numbers
    errors: Real
    output: Dyadic
    output_error: float
    correction: Numbers


class Turned(NamedTuple):
    """F and F_u φ in doubles, bounds of their errors, and what corrects Ĝ and T̂."""

    values: Real
    errors: Real
    correction: Real
    second: Real


class _Entry(NamedTuple):
    """One entry of a matrix: constant − z (at corners) − Σ weight·u."""

    column: int
    constant: int
    corner: bool
    terms: tuple[tuple[int, int], ...]


class _Sector(NamedTuple):
    """Rows of entries that are not zero, weights times 2^bits."""

    rows: list[list[_Entry]]
    bits: int
    corner: bool

    def bits_at(self, bits: int, z: Dyadic) -> int:
        """The power of two in which entries are integers, with unknowns times 2^bits."""
        return max(self.bits + bits, z.bits) if self.corner else self.bits + bits

    def rows_at(self, u: list[int], bits: int, whole: int, z: int, z_bits: int, constant: bool = True) -> Rows:
        """(column, entry times 2^whole) of C − zP − ΣuE, one part of it or without C."""
        fill, found = whole - self.bits - bits, []
        for row in self.rows:
            entries = []
            for column, value, corner, terms in row:
                total = value << bits if constant else 0
                for e, weight in terms:
                    total -= weight * u[e]
                total <<= fill
                if corner:
                    total -= z << (whole - z_bits)
                entries.append((column, total))
            found.append(entries)
        return found


class ExactTraces:
    """u − Φ(u, z) and m of one system.

    Args:
        tables: the equation with an `Enclosure` for every number.
        balls: its bounds in doubles.
        digits: of what is to be proved.

    Raises:
        CertificationError: when a weight is not known well enough.
    """

    def __init__(self, tables: DysonTables, balls: TraceBalls, digits: int) -> None:
        self.bits = int(digits * BITS_PER_DIGIT) + _GUARD_BITS
        self._weight_bits = int(digits * BITS_PER_DIGIT) + _WEIGHT_BITS
        self.width = ldexp(1.0, -self._weight_bits)
        self.balls = balls
        self._sectors = [self._sector(sector) for sector in tables.sectors]
        sums = (*tables.reads, tables.output)
        self._read_bits = self._fine([read.coefficient for reads in sums for read in reads])
        self._reads = [self._centred(reads) for reads in sums]

    # Integers of weights -------------------------------------------------------------------------------------------

    def _fine(self, values: Sequence[Any]) -> int:
        """The power of two in which all values have the digits that weights need."""
        sizes = [abs(double_of(_middle(value))) for value in values]
        return max(0, self._weight_bits - floor(log2(min((size for size in sizes if size), default=1.0))))

    def _centre(self, value: Any, bits: int) -> int:
        enclosure, middle = exactly(value), _middle(value)
        spread = double_of(enclosure.high - enclosure.low)
        if spread and not spread <= _MOST_WIDTH * abs(double_of(middle)):
            raise CertificationError("a weight of the equation is not known to enough digits: ask for fewer")
        if middle:
            self.width = max(self.width, 2 * (spread + ldexp(1.0, -bits)) / abs(double_of(middle)))
        return (int(middle.p) << bits) // int(middle.q)

    def _sector(self, sector: Any) -> _Sector:
        energy = [(int(e), matrix) for e, matrix in zip(sector.sources, sector.energy, strict=True)]
        values = [v for matrix in (sector.constant, sector.energy) for v in matrix.ravel() if v != 0]
        bits, rows = self._fine(values), []
        for p in range(len(sector.weight)):
            row = []
            for q in range(len(sector.weight)):
                terms = tuple((e, self._centre(m[p, q], bits)) for e, m in energy if m[p, q] != 0)
                constant, corner = sector.constant[p, q], bool(sector.point[p, q] != 0)
                if terms or corner or constant != 0:
                    row.append(_Entry(q, self._centre(constant, bits), corner, terms))
            rows.append(row)
        return _Sector(rows, bits, bool(np.any(sector.point != 0)))

    def _centred(self, reads: tuple[Read, ...]) -> list[tuple[int, int, int, int]]:
        return [(k, p, q, self._centre(coefficient, self._read_bits)) for k, p, q, coefficient in reads]

    # Points --------------------------------------------------------------------------------------------------------

    def dyadic(self, z: Pair) -> Dyadic:
        """z, rounded by less than `width`."""
        size = max(abs(double_of(part)) for part in z)
        bits = max(0, self._weight_bits + 2 - floor(log2(size))) if size else 0
        x, y = ((int(part.p) << bits) // int(part.q) for part in z)
        return Dyadic(x, y, bits)

    def grid(self, sizes: Real) -> int:
        """The power of two in which unknowns of these sizes are integers."""
        return max(0, self.bits - floor(log2(float(np.min(sizes, initial=1.0)))))

    def point(self, u: Numbers, z: Dyadic, g: Numbers, bits: int) -> ExactPoint:
        """Integers of doubles; u must lie on the grid of `bits`."""
        shifts = self.shifts(g)
        gx, gy = self.integers(g.real, shifts), None
        ux, uy = [up(v, bits) for v in u.real.tolist()], None
        if np.iscomplexobj(u):
            gy, uy = self.integers(g.imag, shifts), [up(v, bits) for v in u.imag.tolist()]
        return ExactPoint(ux, uy, bits, z, gx, gy, shifts)

    def shifts(self, g: Numbers) -> list[int]:
        """Powers of two in which inverses have enough digits, relative to the natural sizes of their entries."""
        size = np.abs(g)
        least, most = np.max(size, axis=2).min(axis=1), size.max(axis=(1, 2))
        return [max(0, self.bits - floor(log2(v))) for v in (least / most * least).tolist()]

    def integers(self, values: Real, shifts: Sequence[int]) -> list[Matrix]:
        """Doubles, sector by sector, times powers of two."""
        return [
            [[up(v, shift) for v in row[:size]] for row in matrix[:size]]
            for matrix, shift, size in zip(values.tolist(), shifts, self.balls.blocks, strict=True)
        ]

    def moved(self, point: ExactPoint, step: Numbers, inverses: Numbers) -> ExactPoint:
        """Unknowns and inverses changed by doubles."""
        ux = [a + up(v, point.bits) for a, v in zip(point.ux, step.real.tolist(), strict=True)]
        gx = added(point.gx, self.integers(inverses.real, point.shifts))
        if point.uy is None or point.gy is None:
            return point._replace(ux=ux, gx=gx)
        uy = [a + up(v, point.bits) for a, v in zip(point.uy, step.imag.tolist(), strict=True)]
        return point._replace(ux=ux, uy=uy, gx=gx, gy=added(point.gy, self.integers(inverses.imag, point.shifts)))

    # Residuals -----------------------------------------------------------------------------------------------------

    def residual(self, point: ExactPoint, g: Ball) -> Residual:
        """u − Φ(u, z) and m; the ball must contain all inverses at the point."""
        correction = product(g, about(self._defects(point)))
        change = self.balls.read(correction)
        bits, (*ux, mx) = self._differences([*point.ux, 0], point.gx, point)
        values, my = np.array([down(v, bits) for v in ux]), 0
        if point.uy is not None and point.gy is not None:
            bits, (*uy, my) = self._differences([*point.uy, 0], point.gy, point)
            values = values + 1j * np.array([down(v, bits) for v in uy])
        output, error = Dyadic(-mx, -my, bits).plus(complex(change.middle[-1]), float(change.radius[-1]))
        return Residual(values - change.middle[:-1], change.radius[:-1], output, error, correction.middle)

    def bordered(self, point: ExactPoint, phi: list[int], turned: list[Matrix], g: Ball, t: Ball) -> Turned:
        """F and F_u φ at a real point, φ on the grid of u; the balls must contain A⁻¹ and A⁻¹ΦA⁻¹."""
        defects = self._defects(point)
        h, second = about(defects), about(self._second_defects(point, phi, turned))
        corrections = product(g, h), total(product(g, second), product(t, h))
        values, errors = [], []
        for unknowns, matrices, correction in zip((point.ux, phi), (point.gx, turned), corrections, strict=True):
            bits, (*found, _) = self._differences([*unknowns, 0], matrices, point)
            change = self.balls.read(correction)
            values.append(np.array([down(v, bits) for v in found]) - change.middle[:-1])
            errors.append(change.radius[:-1])
        return Turned(np.concatenate(values), np.concatenate(errors), corrections[0].middle, corrections[1].middle)

    def _differences(self, unknowns: list[int], matrices: list[Matrix], point: ExactPoint) -> tuple[int, list[int]]:
        """(bits, unknowns − reads of matrices, in units of 2^−bits)."""
        bits = max(self._read_bits + max(point.shifts), point.bits)
        up_u, up_g = bits - point.bits, [bits - self._read_bits - shift for shift in point.shifts]
        found = []
        for value, reads in zip(unknowns, self._reads, strict=True):
            rest = value << up_u
            for k, p, q, coefficient in reads:
                rest -= (coefficient * matrices[k][p][q]) << up_g[k]
            found.append(rest)
        return bits, found

    def _defects(self, point: ExactPoint) -> Numbers:
        """1 − AĜ, rounded once."""
        real = np.zeros(self.balls.shape)
        imaginary = None if point.uy is None else np.zeros(self.balls.shape)
        for k, (sector, size, shift) in enumerate(zip(self._sectors, self.balls.blocks, point.shifts, strict=True)):
            bits = sector.bits_at(point.bits, point.z)
            x = [[(i == j) << (bits + shift) for j in range(size)] for i in range(size)]
            ax = sector.rows_at(point.ux, point.bits, bits, point.z.x, point.z.bits)
            subtract(x, ax, point.gx[k])
            if imaginary is not None and point.uy is not None and point.gy is not None:
                ay = sector.rows_at(point.uy, point.bits, bits, point.z.y, point.z.bits, constant=False)
                y = [[0] * size for _ in range(size)]
                subtract(x, [[(q, -v) for q, v in row] for row in ay], point.gy[k])
                subtract(y, ax, point.gy[k])
                subtract(y, ay, point.gx[k])
                _store(imaginary, k, y, bits + shift)
            _store(real, k, x, bits + shift)
        return real if imaginary is None else real + 1j * imaginary

    def _second_defects(self, point: ExactPoint, phi: list[int], turned: list[Matrix]) -> Real:
        """ΦĜ − AT̂ at a real point, rounded once."""
        found = np.zeros(self.balls.shape)
        for k, (sector, size, shift) in enumerate(zip(self._sectors, self.balls.blocks, point.shifts, strict=True)):
            bits = sector.bits_at(point.bits, point.z)
            rest = [[0] * size for _ in range(size)]
            subtract(rest, sector.rows_at(phi, point.bits, bits, 0, 0, constant=False), point.gx[k])
            subtract(rest, sector.rows_at(point.ux, point.bits, bits, point.z.x, point.z.bits), turned[k])
            _store(found, k, rest, bits + shift)
        return found


def subtract(target: Matrix, rows: Rows, matrix: Matrix) -> None:
    """target − rows·matrix, in place."""
    if len(target) == 1:  # most sectors
        for _, value in rows[0]:
            target[0][0] -= value * matrix[0][0]
        return
    for into, row in zip(target, rows, strict=True):
        for q, value in row:
            if value:
                for j, other in enumerate(matrix[q]):
                    into[j] -= value * other


def added(left: list[Matrix], right: list[Matrix]) -> list[Matrix]:
    """Sums of matrices."""
    return [
        [[a + b for a, b in zip(row, other, strict=True)] for row, other in zip(first, second, strict=True)]
        for first, second in zip(left, right, strict=True)
    ]


def up(value: float, bits: int) -> int:
    """value·2^bits, its fraction cut off."""
    if not value:
        return 0
    mantissa, exponent = frexp(value)
    shift = bits + exponent - _MANTISSA
    whole = int(mantissa * _WHOLE)
    return whole << shift if shift >= 0 else -(-whole >> -shift) if whole < 0 else whole >> -shift


def down(value: int, bits: int) -> float:
    """value·2^−bits as a double, off by less than one unit in the last place."""
    spare = value.bit_length() - 2 * _MANTISSA
    return ldexp(float(value >> spare), spare - bits) if spare > 0 else ldexp(float(value), -bits)


def _store(found: Real, k: int, matrix: Matrix, bits: int) -> None:
    size = len(matrix)
    found[k, :size, :size] = [[down(v, bits) for v in row] for row in matrix]


def _middle(value: Any) -> fmpq:
    enclosure = exactly(value)
    return (enclosure.low + enclosure.high) / 2
