"""A law as a program without a language: parameters, what is computed from them, and the equations to be solved.

Exports print such a program. Two kinds of equations have numbers: a rational curve x = x(q), m = m(q), and a matrix
Dyson equation, whose small matrices are affine in the unknown traces and regular everywhere, unlike the quotients of a
reduced system.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import sympy as sp

from freeattn.errors import NotCoveredError

if TYPE_CHECKING:
    from freeattn.theory.transforms.uniformization import Factored

__all__ = [
    "CurveProgram",
    "DysonProgram",
    "EnergyEntry",
    "Entry",
    "Heading",
    "Inputs",
    "Pair",
    "Read",
    "SectorProgram",
    "inputs_of",
]


@dataclass(frozen=True)
class Heading:
    """What a program says about itself: the law, its equations in plain text, and its sources."""

    title: str
    statements: tuple[str, ...]
    sources: tuple[str, ...]


@dataclass(frozen=True)
class Inputs:
    """The symbols that a caller gives, and what is computed from them; `exact` where a number has a closed form."""

    parameters: tuple[sp.Symbol, ...]
    assignments: tuple[tuple[sp.Symbol, sp.Expr], ...]
    exact: tuple[tuple[sp.Symbol, sp.Expr], ...]


@dataclass(frozen=True)
class Pair:
    """Sum and product of two values, and the rate t: both values must lie in |p|² < t."""

    total: sp.Expr
    product: sp.Expr
    rate: sp.Expr


@dataclass(frozen=True)
class CurveProgram:
    """z = ∏ base^power in the unknown q, m = `stieltjes`; q ~ residue/z at infinity.

    `tested` is True where a local test is known: at Im z < 0 every expression of `upper` has a positive imaginary
    part, every pair is inside, and arg(1/z) = arg start − Σ arg factors. `upper` holds pairs (point, value) of leaves;
    a leaf whose value is zero is absent.
    """

    heading: Heading
    inputs: Inputs
    unknown: sp.Symbol
    point: Factored
    stieltjes: sp.Expr
    residue: sp.Expr
    psi: sp.Expr
    tested: bool
    start: sp.Expr
    leaves: tuple[tuple[sp.Expr, sp.Expr], ...]
    pairs: tuple[Pair, ...]
    factors: tuple[sp.Expr, ...]


@dataclass(frozen=True)
class Entry:
    """A number at (row, column) of a small matrix."""

    row: int
    column: int
    value: sp.Expr


@dataclass(frozen=True)
class EnergyEntry:
    """A number at (row, column) of a small matrix that multiplies the trace number `unknown`."""

    unknown: int
    row: int
    column: int
    value: sp.Expr


@dataclass(frozen=True)
class SectorProgram:
    """A small matrix, constant + z·point + Σ unknowns; √(w_p/w_q) × (entry p, q) of its inverse is symmetric."""

    size: int
    constant: tuple[Entry, ...]
    point: tuple[Entry, ...]
    energy: tuple[EnergyEntry, ...]
    weights: tuple[sp.Expr, ...]


@dataclass(frozen=True)
class Read:
    """coefficient × the entry (row, column) of the inverse of small matrix number `sector`."""

    sector: int
    row: int
    column: int
    coefficient: sp.Expr


@dataclass(frozen=True)
class DysonProgram:
    """u_e = Σ `reads[e]`, m = Σ `output`; `averages` groups the small matrices that are averaged over eigenvalues."""

    heading: Heading
    inputs: Inputs
    unknowns: tuple[sp.Symbol, ...]
    sectors: tuple[SectorProgram, ...]
    reads: tuple[tuple[Read, ...], ...]
    output: tuple[Read, ...]
    averages: tuple[tuple[tuple[int, sp.Expr], ...], ...]


def inputs_of(
    needed: Iterable[sp.Symbol],
    value_of: Callable[[sp.Symbol], sp.Expr],
    number_of: Callable[[sp.Symbol], sp.Expr | None],
) -> Inputs:
    """The inputs of a program: numbers where a symbol has one, expressions in the caller's symbols, or a parameter.

    Raises:
        NotCoveredError: for a symbol whose value is infinite.
    """
    parameters: set[sp.Symbol] = set()
    assignments = []
    for symbol in sorted(needed, key=str):
        value, number = value_of(symbol), number_of(symbol)
        if value.has(sp.oo):
            raise NotCoveredError(f"a program of a law in which {symbol} is infinite")
        if value.is_Rational:
            assignments.append((symbol, value))
        elif number is not None:
            assignments.append((symbol, number))
        elif value != symbol:
            assignments.append((symbol, value))
            parameters |= value.free_symbols
        else:
            parameters.add(symbol)
    exact = tuple((s, v if value_of(s) == s else value_of(s)) for s, v in assignments)
    return Inputs(tuple(sorted(parameters, key=str)), tuple(assignments), exact)
