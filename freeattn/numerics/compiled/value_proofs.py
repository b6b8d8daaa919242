"""Proofs of values in one call, for complex unknowns: off the axis and in bands."""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache
from math import floor, ldexp, log2
from typing import Any, NamedTuple

import numpy as np
from flint import fmpq
from numpy.typing import NDArray

from freeattn.errors import CertificationError
from freeattn.numerics.array_balls import slack
from freeattn.numerics.compiled.packed import (
    ENERGY,
    OUTPUT,
    PRODUCTS,
    READS,
    first_entries,
    packed,
    products_of,
    trace_matrices,
)
from freeattn.numerics.compiled.pairs import MOST_TERMS, times_exactly
from freeattn.numerics.compiled.proofs import Lower, prove_value
from freeattn.numerics.dyson_tables import DysonTables, mapped
from freeattn.numerics.enclosures import double_of, exactly
from freeattn.numerics.exact_traces import Dyadic, Pair, up

__all__ = ["CompiledProofs", "Proved"]

_PAIR_WIDTH = 2.0**-100  # relative: of a number from its two doubles, with room
_BITS = 120  # of a midpoint, relative to m

Numbers = NDArray[Any]
Index = NDArray[np.int64]
Real = NDArray[np.float64]


class Proved(NamedTuple):
    """m within `radius` of a midpoint, and the bound of the contraction."""

    middle: Dyadic
    radius: float
    share: float


class CompiledProofs:
    """Proofs for one equation, given with an `Enclosure` for every number.

    Args:
        tables: the equation.
        width: how far true weights and z may be from the middles of their enclosures, relative.
    """

    def __init__(self, tables: DysonTables, width: float) -> None:
        high = mapped(tables, lambda value: double_of(exactly(value).middle))
        self._tables = packed(high)
        first = first_entries(tables)
        energy, reads, output, products = (
            self._tables.terms[slice(*self._tables.sections[k : k + 2])] for k in (ENERGY, READS, OUTPUT, PRODUCTS))
        derivatives, values = _derivatives(high, first)
        means, shares, weights, roots = _traces(high, first)
        counts = [
            _most(energy[:, :1]), max(_most(reads[:, :1]), len(output)),
            max(_most(products[:, :2]), _most(derivatives[:, :1])), _most(shares[:, :1]),
        ]
        sizes = [len(sector.weight) for sector in tables.sectors]
        self.usable = max(*counts[:2], *sizes) + 2 <= MOST_TERMS and _products_are_exact()
        lower_energy = _lows(value for sector in tables.sectors for value in sector.energy.ravel() if value != 0)
        lower_reads = _lows(read.coefficient for sums in tables.reads for read in sums)
        if (len(lower_energy), len(lower_reads)) != (len(energy), len(reads)):
            raise CertificationError("a coefficient of the equation is not told from 0 by its enclosure")
        self._lower = Lower(
            _lows(value for sector in tables.sectors for value in sector.constant.ravel()),
            lower_energy, lower_reads,
            _lows(read.coefficient for read in tables.output),
            derivatives, values, means, shares, weights, roots,
            np.array([slack(count + 2) for count in counts]), width + _PAIR_WIDTH,
        )

    def __call__(self, u: Numbers, z: Pair) -> Proved | None:
        """The value at a solution in doubles; None where it is not proved that way."""
        (x, x_low), (y, y_low) = map(_both, z)
        found = np.zeros(8)
        proved = self.usable and prove_value(
            self._tables, self._lower, np.ascontiguousarray(u, dtype=np.complex128), complex(x, y),
            complex(x_low, y_low), found)
        if not (proved and np.isfinite(found).all() and found[:6].any()):
            return None
        real, real_low, imag, imag_low, real_change, imag_change, radius, share = found.tolist()
        bits = max(0, _BITS - floor(log2(max(abs(real), abs(imag)))))
        x_sum, y_sum = (sum(up(part, bits) for part in parts) for parts in (
            (real, real_low, real_change), (imag, imag_low, imag_change)))
        return Proved(Dyadic(x_sum, y_sum, bits), (radius + ldexp(8.0, -bits)) * (1 + slack(1)), share)


@lru_cache(maxsize=1)
def _products_are_exact() -> bool:
    """Whether compiled products are split exactly on this machine: no operation is merged with another one."""
    factors = [(1 + 2.0**-30) * 3.0**k for k in range(-20, 21)] + [-0.1, 1 / 3, 2.0**52 + 1]
    return all(
        Fraction(a) * Fraction(b) == sum(map(Fraction, times_exactly(a, b))) for a in factors for b in factors
    )


def _both(value: fmpq) -> tuple[float, float]:
    """A number as the sum of two doubles, nearly."""
    high = double_of(value)
    return high, double_of(value - fmpq(*high.as_integer_ratio()))


def _lows(values: Any) -> Real:
    return np.array([_both(exactly(value).middle)[1] for value in values], dtype=float)


def _derivatives(tables: DysonTables, first: Index) -> tuple[Index, Real]:
    """The terms of ∂m/∂u: (unknown, left, right), and coefficients."""
    terms = list(products_of(tables.output, tables, first))
    places = np.array([place for place, _ in terms], dtype=np.int64).reshape(-1, 3)
    return places, np.array([value for _, value in terms], dtype=float)


def _traces(tables: DysonTables, first: Index) -> tuple[Index, Index, Real, Real]:
    """(places and sizes of all matrices of traces, (own entry, entry), shares, roots of each own entry)."""
    matrices = list(trace_matrices(tables, first))
    terms = [term for matrix in matrices for term in matrix.terms()]
    return (
        np.array([(matrix.start, matrix.size) for matrix in matrices], dtype=np.int64),
        np.array([(own, entry) for own, entry, _, _ in terms], dtype=np.int64),
        np.array([share for _, _, share, _ in terms], dtype=float),
        np.concatenate([np.zeros(0), *(matrix.roots for matrix in matrices)]),
    )


def _most(keys: Index) -> int:
    """How many rows agree, at most."""
    return int(np.unique(keys, axis=0, return_counts=True)[1].max(initial=0))
