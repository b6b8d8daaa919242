"""Traces to any number of digits, in an mpmath context of their own (no global precision is touched).

A start in doubles is corrected digit by digit (`lifting`) with the inverse Jacobian of doubles. The working precision
follows from the digits asked for and from how much the equation magnifies rounding at the point.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from mpmath.libmp import from_man_exp
from numpy.typing import NDArray

from freeattn.errors import BranchError, ConvergenceError
from freeattn.model.precision import new_context
from freeattn.model.quantities import binary_of
from freeattn.numerics.chord import Chord
from freeattn.numerics.dyson_tables import DysonTables
from freeattn.numerics.folds import RANK_TOLERANCE, Fold, framed
from freeattn.numerics.lifting import Lifting
from freeattn.numerics.lifting_layout import COMPLEX, DUAL, REAL, Algebra, Layout
from freeattn.numerics.sparse_equation import MOST_INVERSE, Balanced, Binary, SparseEquation, Units
from freeattn.numerics.trace_equation import TraceEquation

__all__ = [
    "ADVICE", "LEAST_GAIN", "NEAR_START", "ROUNDING_BITS", "SAFE_BITS", "Border", "Lifted", "PreciseTraces", "Start",
    "place_of",
]

_STARTS = 3  # of one solution: from doubles, and from where corrections stopped shrinking
LEAST_GAIN = 2.0  # bits by which each round must shrink the correction
NEAR_START = -13.0  # log2 of the distance from the double solution, in sizes of a trace, that leads to another root
SAFE_BITS = 6  # by which a gain may be less than in all earlier rounds
_INFINITE = float("inf")
_GUARD_BITS = 6  # of the result, beyond the digits asked for
ROUNDING_BITS = 12  # lost to rounding of coefficients and of the residuals of some hundred rounds
ADVICE = "the point is too near an edge or the branch is ill-conditioned: ask at another point"
_BITS_PER_DIGIT = 3.3219280948873626

Real = NDArray[np.float64]
Numbers = NDArray[Any]


class Start(NamedTuple):
    """A solution in doubles: G as a column [x; y], the inverse Jacobian in all components, u in balanced units."""

    algebra: Algebra
    system: Balanced
    column: Real
    solver: Real
    traces: Real
    z: complex | float


class Border(NamedTuple):
    """What makes z an unknown: the exponent of two of its unit, and ℓ of ℓ·(second component of u) = 1."""

    unit: int
    gauge: Real


class Lifted(NamedTuple):
    """A root in integers, in units of 2^−bits: the entries of G that m is read from and u, component by component; z
    where it is an unknown. `inverse` has all entries of G, sector by sector, where they are at hand. `stalled` is log2
    of the correction that was no longer smaller than the one before, where that came before the last digit."""

    units: Units
    bits: int
    output: list[list[int]]
    traces: Callable[[], list[list[int]]]
    point: int
    inverse: Callable[[], list[list[int]]] | None = None
    stalled: float | None = None


class PreciseTraces:
    """Solutions of u = Φ(u, z) at a fixed number of digits.

    Args:
        tables: the equation with mpmath numbers.
        equation: the same in doubles.
        digits: decimal digits of results.
        guard: decimal digits of the tables beyond them.
    """

    def __init__(self, tables: DysonTables, equation: TraceEquation, digits: int, guard: int) -> None:
        self.context = new_context(digits + guard)
        self._equation, self._sparse = equation, SparseEquation(tables, self.context)
        self._layouts: dict[Algebra, Layout] = {}
        self._bits = int(digits * _BITS_PER_DIGIT) + _GUARD_BITS
        self._most = int((digits + guard) * _BITS_PER_DIGIT)
        self._spare = int(digits * _BITS_PER_DIGIT)

    def stieltjes(self, start: Numbers, z: Any) -> Any:
        """m(z) of the root next to a solution in doubles; its imaginary part has the digits asked for too.

        Raises:
            ConvergenceError: when corrections stop shrinking.
            BranchError: when they lead away from the start.
        """
        return self._output(self._solution(start, z))

    def traces(self, start: Numbers, z: Any) -> list[Any]:
        """The unknowns of that root; errors as for `stieltjes`."""
        parts = self._unknowns(self._solution(start, z))
        return list(map(self.context.mpc, *parts)) if len(parts) == 2 else parts[0]

    def _solution(self, start: Numbers, z: Any) -> Lifted:
        """From where corrections stop shrinking they begin anew, with the Jacobian there: beside a hard edge doubles
        leave half of their digits to a start, and its Jacobian is too far off."""
        for _ in range(_STARTS):
            lifted = self._from_start(start, z)
            if lifted.stalled is None or not lifted.stalled <= NEAR_START:
                break
            parts = [np.array(list(map(float, part))) for part in self._unknowns(lifted)]
            start = parts[0] if len(parts) == 1 else parts[0] + 1j * parts[1]
        return self._settled(lifted)

    def _settled(self, lifted: Lifted) -> Lifted:
        if (size := lifted.stalled) is not None:
            residual = 2.0 ** min(max(size, -1000), 1000) if not np.isnan(size) else None
            raise ConvergenceError("Newton to many digits", residual, 2.0 ** -min(self._bits, 1000), ADVICE)
        return lifted

    @np.errstate(all="ignore")  # numbers that are not finite do not converge
    def _from_start(self, start: Numbers, z: Any) -> Lifted:
        algebra = COMPLEX if np.iscomplexobj(start) else REAL
        rounded = complex(z) if algebra is COMPLEX else float(z.real)
        system = self._balanced(start, rounded)
        solver = _components(_inverse(system.jacobian), algebra)
        begin = Start(algebra, system, _column(system.inverse, algebra), solver,
                      _column(start * np.exp2(system.units.traces), algebra), rounded)
        return self._lift(begin, self._bits + self._lost(system), place_of(z, algebra))

    def fold(self, fold: Fold) -> Any:
        """The edge x to full precision.

        Raises:
            ConvergenceError, BranchError: as `stieltjes`.
        """
        return self.fold_traces(fold)[0]

    def fold_traces(self, fold: Fold) -> tuple[Any, list[Any]]:
        """The edge and the unknowns there; errors as for `stieltjes`."""
        lifted = self._lifted_fold(fold)
        return self._number(lifted.point, int(np.frexp(fold.x)[1]) - lifted.bits), self._unknowns(lifted)[0]

    @np.errstate(all="ignore")
    def _lifted_fold(self, fold: Fold) -> Lifted:
        count, unit = self._sparse.count, int(np.frexp(fold.x)[1])
        system = self._balanced(fold.traces, fold.x)
        sizes = np.exp2(-system.units.traces.astype(float))
        frame = framed(sizes, fold.x, fold.direction)
        _, matrix = self._equation.bordered(fold.traces, fold.x, frame.direction, frame.gauge)
        scale, weights = np.concatenate([sizes, [2.0**unit], sizes]), np.concatenate([sizes, sizes, [1.0]])
        solver = np.linalg.pinv(matrix * scale / weights[:, None], rcond=RANK_TOLERANCE)
        solver = solver[[*range(count), *range(count + 1, 2 * count + 1), count]]
        traces = np.stack([fold.traces, frame.direction]) / sizes
        turned = self._sparse.turned(system, traces[1])
        begin = Start(DUAL, system, np.concatenate([system.inverse, turned]), solver, traces, fold.x)
        return self._settled(self._lift_fold(begin, Border(unit, frame.gauge * sizes)))

    # Small steps -----------------------------------------------------------------------------------------------

    def _lift(self, start: Start, wanted: int, place: Sequence[Binary], border: Border | None = None) -> Lifted:
        """The root to so many bits; `place` is z, or its unit where it is an unknown."""
        layout = self._layout(start.algebra)
        unit, gauge, point = (None, None, 0.0) if border is None else (*border, start.z.real / 2.0**border.unit)
        chord = Chord(layout, start.system, start.column, start.solver, unit)
        lifting = self._lifting(layout, start.system, chord, wanted, place, gauge)
        lifting.begin(chord.start(start.traces, point))
        stalled = _stalled(lifting, chord, wanted, start.z)
        return Lifted(start.system.units, lifting.bits, [lifting.inverse[places].tolist() for places in layout.output],
                      lambda: lifting.traces.tolist(), lifting.point, stalled=stalled)

    def _lift_fold(self, start: Start, border: Border) -> Lifted:
        return self._lift(start, self._bits, [(1, border.unit)], border)

    def _layout(self, algebra: Algebra) -> Layout:
        if algebra not in self._layouts:
            self._layouts[algebra] = Layout(self._sparse, algebra)
        return self._layouts[algebra]

    def _balanced(self, traces: Numbers, z: complex | float) -> Balanced:
        try:
            return self._sparse.balanced(traces, z)
        except np.linalg.LinAlgError:
            raise ConvergenceError(
                "Newton to many digits", None, None, "a matrix of the equation is singular: ask at another point"
            ) from None

    def _lifting(
        self, layout: Layout, system: Balanced, chord: Chord, wanted: int, place: Sequence[tuple[int, int]],
        gauge: Real | None = None,
    ) -> Lifting:
        """Residuals at the precision that results of `wanted` bits need."""
        magnified = chord.magnification
        needed = wanted + ROUNDING_BITS + (int(np.log2(magnified)) if np.isfinite(magnified) else self._most)
        if needed > self._most:
            raise ConvergenceError("Newton to many digits", magnified, 2.0**(self._most - wanted), ADVICE)
        return Lifting(layout, system.units, needed, place, gauge, chord.spread)

    def _lost(self, system: Balanced) -> int:
        """Bits by which m, or Im m off the real branch, is below what its reads of entries of size 1 add up to."""
        output = self._sparse.output
        exponents = system.units.of_inverse(output)
        coefficients = np.ldexp(output.doubles, exponents - np.max(exponents))
        m = coefficients @ system.inverse[output.rows, output.columns]
        size = np.abs(m.imag) if np.iscomplexobj(m) else np.abs(m)
        return self._below(float(size / np.sum(np.abs(coefficients))))

    def _below(self, share: float) -> int:
        """Bits by which a share is below 1, as far as digits are asked for."""
        return min(max(int(-np.log2(share)), 0), self._spare) if share > 0 else self._spare

    def _output(self, lifted: Lifted) -> Any:
        """m from the entries of G."""
        output = self._sparse.output
        units = lifted.units.of_inverse(output).tolist()
        exponents = [e + k for (_, e), k in zip(output.exact, units, strict=True)]
        least, parts = min(exponents), []
        for entries in lifted.output:
            terms = zip(output.exact, entries, exponents, strict=True)
            total = sum(m * entry << e - least for (m, _), entry, e in terms)
            parts.append(self._number(total, least - lifted.bits))
        return self.context.mpc(*parts) if len(parts) == 2 else parts[0]

    def _unknowns(self, lifted: Lifted) -> list[list[Any]]:
        """u from balanced units, component by component."""
        exponents = (-lifted.bits - lifted.units.traces).tolist()
        return [[self._number(int(u), e) for u, e in zip(part, exponents, strict=True)] for part in lifted.traces()]

    def _number(self, mantissa: int, exponent: int) -> Any:
        return self.context.make_mpf(from_man_exp(mantissa, exponent, self.context.prec, "n"))


def _stalled(lifting: Lifting, chord: Chord, wanted: int, z: complex | float) -> float | None:
    """Rounds of corrections until what is left is below 2^−wanted, by the residual or by the gain of earlier rounds;
    `Lifted.stalled`."""
    enough = lifting.bits - wanted - int(np.log2(chord.magnification))
    last, gain = _INFINITE, _INFINITE
    while (largest := lifting.largest()) > enough:
        residual, exponent = lifting.residual(largest)
        step = chord.step(residual)
        size = _log2(step[lifting.layout.traces.start :], exponent)
        if not size < last - LEAST_GAIN:
            return size
        if size > NEAR_START:
            raise BranchError(f"Newton at {z:.10g} moved from its start to another root")
        gain = min(gain, last - size)
        if gain < _INFINITE and _log2(step, exponent) - gain < -wanted - SAFE_BITS:
            lifting.finish(step, exponent)
            return None
        lifting.add(step, exponent)
        last = size
    return None


def _log2(numbers: Real, exponent: int) -> float:
    """log2 of the largest of numbers·2^exponent."""
    largest = float(np.abs(numbers).max())
    return float(np.log2(largest)) + exponent if largest > 0 else -_INFINITE


def _column(values: Numbers, algebra: Algebra) -> Real:
    """[x; y] of complex numbers x + iy."""
    rows = values if values.ndim == 2 else values[None]
    return rows if algebra is REAL else np.concatenate([rows.real, rows.imag])


def _components(matrix: Numbers, algebra: Algebra) -> Real:
    """A complex matrix as one of real components."""
    if algebra is REAL:
        return matrix
    x, y = matrix.real, matrix.imag
    return np.concatenate([np.concatenate([x, -y], axis=1), np.concatenate([y, x], axis=1)])


def _inverse(jacobian: Numbers) -> Numbers:
    """Where doubles know it: a residual at rounding says nothing of a root where they do not."""
    try:
        inverse = np.linalg.inv(jacobian)
    except np.linalg.LinAlgError:
        raise ConvergenceError("Newton to many digits", None, None, ADVICE) from None
    if not np.abs(inverse).sum(axis=1).max(initial=0.0) < MOST_INVERSE:
        raise ConvergenceError("Newton to many digits", None, None, ADVICE)
    return inverse


def place_of(z: Any, algebra: Algebra) -> list[Binary]:
    """The components of a point as (mantissa, exponent of two)."""
    return [binary_of(part) for part in (z.real, z.imag)[: algebra.components]]
