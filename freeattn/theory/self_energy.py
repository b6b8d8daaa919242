"""The self-energy of a pencil, and which block traces are zero.

With g_{qq'} the normalized trace of block (q, q') of the inverse and N its dimension, a letter A with entry variance v
at positions (p, q) and (p', q') with coefficients c and c' gives, summed over ordered pairs of positions,

    Σ_{pp'} += c c' v N_q g_{qq'},      Σ_{qq'} += c c' v N_p g_{pp'};

blocks on different spaces have trace zero, and A meets A untransposed with weight zero in the limit. A symmetric letter
stands at (p, q) and at (q, p) as well, and both placements of both positions count.

**Copies.** Blocks inside a copy carry indices; by exchangeability the trace of (p, i), (q, j) depends only on how many
of the leading indices agree. It is written Σ_l b_l·[at least l agree] (for one family aI + bJ: a = b_1 within a copy,
b = b_0 across copies), and the sums over indices leave powers of the counts as factors.

Source: Helton-Rashidi Far-Speicher, IMRN 2007, rnm086; Mingo-Speicher, chapters 9-10.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import NamedTuple

import sympy as sp

from freeattn.model.letters import Copies, Letter
from freeattn.theory.field import as_expression
from freeattn.theory.pencil import Fixed, Pencil, Position, count_of, size_of

__all__ = ["CORNER", "Pairing", "Trace", "closure", "fixed_entries", "pairings"]

Scope = tuple[Copies, ...]


class Trace(NamedTuple):
    """b_level of the blocks (row, column), row ≤ column: the part of their trace that asks `level` indices to agree."""

    row: int
    column: int
    level: int


CORNER = Trace(0, 0, 0)  # block (x, x): the Stieltjes transform


class Pairing(NamedTuple):
    """One term of the self-energy: Σ_target += weight · g_source."""

    target: Trace
    weight: sp.Expr
    source: Trace


class _End(NamedTuple):
    """A letter as seen from block `here`, with block `there` on its other side."""

    here: int
    there: int
    coefficient: sp.Expr


def common(first: Scope, second: Scope) -> int:
    """The number of leading families that two scopes share."""
    depth = 0
    while depth < min(len(first), len(second)) and first[depth] == second[depth]:
        depth += 1
    return depth


def pairings(pencil: Pencil) -> tuple[Pairing, ...]:
    """All terms of the self-energy, before any trace is known to vanish; equal terms are added up."""
    weights: dict[tuple[Trace, Trace], list[sp.Expr]] = {}
    for letter, places in pencil.letters.items():
        for ends in _sides(letter, places):
            for first, second in product(ends, repeat=2):
                if first.here <= second.here:
                    for target, weight, source in _terms(pencil, letter, first, second):
                        weights.setdefault((target, source), []).append(weight)
    return tuple(Pairing(target, sp.Add(*parts), source) for (target, source), parts in weights.items())


def _sides(letter: Letter, places: tuple[Position, ...]) -> Iterator[list[_End]]:
    """Ends that pair with one another: rows with rows and columns with columns, all of them for a symmetric letter."""
    rows = [_End(p.row, p.column, p.coefficient) for p in places]
    columns = [_End(p.column, p.row, p.coefficient) for p in places]
    yield from [rows + columns] if letter.symmetric else [rows, columns]


def _terms(pencil: Pencil, letter: Letter, first: _End, second: _End) -> Iterator[Pairing]:
    """Σ_{here, here'} += c c' v N g_{there, there'}, one term for each level of agreement of (there, there')."""
    blocks = pencil.blocks
    here, there = (blocks[first.here], blocks[second.here]), (blocks[first.there], blocks[second.there])
    base = first.coefficient * second.coefficient * as_expression(letter.variance) * size_of(there[0].space)
    for level in range(common(there[0].scope, there[1].scope) + 1):
        agree = max(len(letter.chain), level)  # leading indices that both edges must share
        chains = [max(letter.chain, h.scope, t.scope, key=len) for h, t in zip(here, there, strict=True)]
        kept = [len(h.scope) for h in here]
        target = Trace(first.here, second.here, min(agree, *kept))
        yield Pairing(target, base * _extensions(chains, kept, agree), _trace(first.there, second.there, level))


def _extensions(chains: list[Scope], kept: list[int], agree: int) -> sp.Expr:
    """The number of index pairs that extend given ones of length `kept` along the chains, the first `agree` equal."""
    shared = [count_of(family) for family in chains[0][max(kept) : agree]]
    free = [count_of(f) for chain, k in zip(chains, kept, strict=True) for f in chain[max(k, agree) :]]
    return sp.Mul(*shared, *free)


def _trace(row: int, column: int, level: int) -> Trace:
    return Trace(min(row, column), max(row, column), level)


def fixed_entries(pencil: Pencil) -> dict[Trace, tuple[Fixed, ...]]:
    """What stands at fixed places of the pencil; a matrix over copies that is the identity, or constant, in indices."""
    found: dict[Trace, tuple[Fixed, ...]] = {}
    for entry in pencil.fixed:
        level = common(pencil.blocks[entry.row].scope, pencil.blocks[entry.column].scope)
        trace = _trace(entry.row, entry.column, level)
        found[trace] = (*found.get(trace, ()), entry)
    return found


def closure(pencil: Pencil, terms: tuple[Pairing, ...]) -> tuple[frozenset[Trace], frozenset[Trace]]:
    """The traces that are not zero, and the entries of the self-energy that are not: (traces, entries).

    The inverse is Σ_k (C⁻¹Σ)ᵏC⁻¹ with C the constant part. Starting from C⁻¹ and from the fixed letters, what Σ of the
    present pattern creates is added until nothing new appears.
    """
    entries = set(fixed_entries(pencil))
    traces = {_trace(p, q, len(pencil.blocks[p].scope)) for p, q in enumerate(pencil.partners)}
    traces = _walks(pencil, traces, entries)
    while True:
        fresh = {term.target for term in terms if term.source in traces} - entries
        if not fresh:
            return frozenset(traces), frozenset(entries)
        entries |= fresh
        traces = _walks(pencil, traces, entries)


def _walks(pencil: Pencil, traces: set[Trace], entries: set[Trace]) -> set[Trace]:
    """The support of the inverse: G = C⁻¹ + C⁻¹ΣG, agreement being what every step of a walk keeps."""
    steps: dict[int, set[tuple[int, int]]] = {}
    for p, q, level in entries:
        for here, there in {(p, q), (q, p)}:
            steps.setdefault(there, set()).add((pencil.partners[here], level))
    found, pending = set(traces), list(traces)
    while pending:
        trace = pending.pop()
        for middle, end in {(trace.row, trace.column), (trace.column, trace.row)}:
            for start, level in steps.get(middle, ()):
                reached = _trace(start, end, min(level, trace.level))
                if reached not in found:
                    found.add(reached)
                    pending.append(reached)
    return found
