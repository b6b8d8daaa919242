"""All polynomial relations between the traces of a Dyson equation that its structure gives, each with few terms.

In each sector A = C − Σ[g] and G = A⁻¹ give A·G = 1 and, for small matrices, with r = 1/det A also

    r·det A = 1,    G = r·adj A,    r = det G,    r·A = adj G.

and flows tie traces of different sectors together (`theory.flows`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations_with_replacement
from typing import Any, NamedTuple, TypeAlias

import sympy as sp
from sympy.polys.matrices import DomainMatrix

from freeattn.theory import symbols as sym
from freeattn.theory.dyson import DysonSystem, Sector
from freeattn.theory.flows import Products, flows_of
from freeattn.theory.self_energy import Trace

__all__ = ["Relations", "constants_of", "relations_of"]

_MOST_TERMS = 40  # of a determinant that is written out; one of 4 × 4 entries has 24, one of 5 × 5 already 120
_MOST_BLOCKS = 10  # whose terms are counted


Form: TypeAlias = "tuple[tuple[sp.Expr, sp.Symbol], ...]"  # Σ coefficient × trace


@dataclass(frozen=True)
class Relations:
    """Variables with their meaning, and polynomials in them that vanish.

    Polynomials are elements of one ring over Q with a generator for each variable, for z, and for each coefficient
    that is not rational; `coefficients` says what the latter stand for. Simple relations come first.
    """

    variables: tuple[sp.Symbol, ...]
    meanings: dict[sp.Symbol, str]
    polynomials: tuple[Any, ...]
    coefficients: dict[sp.Symbol, sp.Expr]
    ring: Any

    @cached_property
    def nonzero(self) -> frozenset[sp.Symbol]:
        """The coefficients that cannot be zero; symbols of which no sign is known count as positive."""
        return frozenset(symbol for symbol, value in self.coefficients.items() if _signed(value).is_nonzero)


def _signed(value: sp.Expr) -> sp.Expr:
    open_ = [s for s in value.free_symbols if s.is_nonnegative is None and s.is_nonpositive is None]
    return value.xreplace({s: sp.Dummy(s.name, positive=True) for s in open_})


def relations_of(system: DysonSystem) -> Relations:
    """The relations of a Dyson equation."""
    return _Builder(system).relations()


class _Entry(NamedTuple):
    """An entry of −Σ or G in a sector: coefficient × symbol."""

    coefficient: sp.Expr
    symbol: sp.Symbol | None


class _Small(NamedTuple):
    """A sector in symbols: entries of −Σ and of G by pairs of blocks, and its constant part at each node."""

    sector: Sector
    energy: dict[tuple[int, int], _Entry]
    inverse: dict[tuple[int, int], _Entry]
    nodes: tuple[tuple[sp.Expr, sp.Matrix, sp.Symbol | None], ...]


class _Builder:
    def __init__(self, system: DysonSystem) -> None:
        self.system, self.pencil = system, system.pencil
        self.meanings = {system.symbol(t): self._trace_meaning(t) for t in system.traces}
        self.sums: dict[sp.Symbol, Form] = {}
        self.small = [self._sector(number, sector) for number, sector in enumerate(system.sectors)]
        self.flows = flows_of(system)
        self.meanings.update(self.flows.meanings)
        self.hidden: dict[sp.Expr, sp.Symbol] = {}

    # Names ---------------------------------------------------------------------------------------------------------

    def _trace_meaning(self, trace: Trace) -> str:
        first, second = self.pencil.blocks[trace.row], self.pencil.blocks[trace.column]
        where = f"block ({first.name}, {second.name}) on space {first.space}"
        shared, own = first.scope[: trace.level], first.scope[trace.level :]
        if trace.row == trace.column == 0:
            return f"normalized trace of {where}, the resolvent of the law"
        if own and second.scope[trace.level :][:1] == own[:1]:
            return f"normalized trace of {where} between different {own[0]}"
        within = f" within one copy of {shared[-1]}" if shared else ""
        less = f", what it has beyond the trace between different {shared[-1]}" if self._splits(trace) else ""
        return f"normalized trace of {where}{within}{less}"

    def _splits(self, trace: Trace) -> bool:
        return any(t[:2] == trace[:2] and t.level < trace.level for t in self.system.traces)

    def _name(self, kind: str, sector: Sector, p: int, q: int) -> tuple[sp.Symbol, str]:
        """s_p_q or t_p_q; where copies are told apart in a deeper sector, with what is summed over."""
        first, second = self.pencil.blocks[p], self.pencil.blocks[q]
        name = f"{kind}_{first.name}_{second.name}"
        deeper = (other for other in self.system.sectors if other.depth > sector.depth)
        if not any(p in other.blocks and q in other.blocks for other in deeper):
            return sp.Symbol(name), ""
        over = first.scope[sector.depth].name
        return sp.Symbol(f"{name}_over_{over}"), over

    def _sector(self, number: int, sector: Sector) -> _Small:
        energy: dict[tuple[int, int], _Entry] = {}
        inverse: dict[tuple[int, int], _Entry] = {}
        for p, q in combinations_with_replacement(sector.blocks, 2):
            for kind, entries, form in (("s", energy, self._energy(sector, p, q)),
                                        ("t", inverse, self._inverse(sector, p, q))):
                entry = self._entry(kind, sector, (p, q), form)
                ratio = self.system.copies_below(p, 0) / self.system.copies_below(q, 0)
                entries[p, q], entries[q, p] = entry, entry._replace(coefficient=entry.coefficient * ratio)
        constants = constants_of(self.system, sector)
        filled = [[bool(energy[p, q].symbol) or any(matrix[i, j] != 0 for _, matrix in constants)
                   for j, q in enumerate(sector.blocks)] for i, p in enumerate(sector.blocks)]
        small = len(filled) <= _MOST_BLOCKS and _terms(filled) <= _MOST_TERMS
        nodes = tuple(self._node(number, k, weight, matrix, small) for k, (weight, matrix) in enumerate(constants))
        return _Small(sector, energy, inverse, nodes)

    def _node(self, number: int, k: int, weight: sp.Expr, matrix: sp.Matrix, small: bool) -> Any:
        if (matrix.rows == 1 and weight == 1) or not small:
            return weight, matrix, None
        name = sp.Symbol(f"r_{number + 1}" + (f"_{k + 1}" if weight != 1 else ""))
        blocks = ", ".join(self.pencil.blocks[p].name for p in self.system.sectors[number].blocks)
        self.meanings[name] = f"1/determinant of the matrix of blocks {blocks}" + (
            f" at eigenvalue number {k + 1}" if weight != 1 else "")
        return weight, matrix, name

    def _entry(self, kind: str, sector: Sector, place: tuple[int, int], form: Form) -> _Entry:
        """An entry with a single trace; a sum of several gets a symbol of its own."""
        if not form:
            return _Entry(sp.S.Zero, None)
        sign = -sp.S.One if kind == "s" else sp.S.One
        if len(form) == 1:
            (coefficient, trace), = form
            return _Entry(sign * coefficient, trace)
        name, over = self._name(kind, sector, *place)
        first, second = (self.pencil.blocks[p].name for p in place)
        what = "self-energy at" if kind == "s" else "sum of the traces of"
        self.meanings[name] = f"{what} block ({first}, {second})" + (f", summed over {over}" if over else "")
        self.sums[name] = form
        return _Entry(sign, name)

    def _energy(self, sector: Sector, p: int, q: int) -> Form:
        levels = self.system.levels(sector, p, q)
        return _form((term.weight * self.system.copies_below(q, term.target.level), self.system.symbol(term.source))
                     for term in self.system.terms if term.target in levels)

    def _inverse(self, sector: Sector, p: int, q: int) -> Form:
        present = (t for t in self.system.levels(sector, p, q) if t in set(self.system.traces))
        return _form((self.system.copies_below(q, t.level), self.system.symbol(t)) for t in present)

    # Polynomials ---------------------------------------------------------------------------------------------------

    def relations(self) -> Relations:
        unhidden = [c for form in self.sums.values() for c, _ in form]
        unhidden += [e.coefficient for s in self.small for e in (*s.energy.values(), *s.inverse.values())]
        unhidden += [entry for s in self.small for w, m, _ in s.nodes for entry in (w, *m) if entry != -sym.Z]
        unhidden += [c for relation in self.flows.relations for c, _ in relation]
        for value in unhidden:
            if not value.is_Rational:
                self.hidden.setdefault(value, sp.Symbol(f"k{len(self.hidden)}"))
        variables = tuple(self.meanings)
        self.ring = sp.ring([*variables, sym.Z, *self.hidden.values()], sp.QQ)[0]
        self.generators = dict(zip(self.ring.symbols, self.ring.gens, strict=True))
        found = [p for p in self._polynomials() if p]
        found.sort(key=lambda p: (max(map(sum, p.itermonoms())), len(p)))
        return Relations(variables, self.meanings, tuple(dict.fromkeys(found)),
                         {symbol: value for value, symbol in self.hidden.items()}, self.ring)

    def _number(self, value: sp.Expr) -> Any:
        if value == -sym.Z:
            return -self.generators[sym.Z]
        return self.ring(sp.QQ.from_sympy(value)) if value.is_Rational else self.generators[self.hidden[value]]

    def _polynomials(self) -> Iterator[Any]:
        for name, form in self.sums.items():
            yield sum((self._number(c) * self.generators[s] for c, s in form), -self.generators[name])
        yield from (self._sum(relation) for relation in self.flows.relations)
        for small in self.small:
            yield from self._of_sector(small)

    def _sum(self, products: Products) -> Any:
        total = self.ring.zero
        for coefficient, symbols in products:
            term = self._number(coefficient)
            for symbol in symbols:
                term = term * self.generators[symbol]
            total = total + term
        return total

    def _value(self, entry: _Entry, constant: sp.Expr = sp.S.Zero) -> Any:
        value = self._number(constant)
        if entry.symbol is None:
            return value
        return value + self._number(entry.coefficient) * self.generators[entry.symbol]

    def _matrix(self, entries: dict[tuple[int, int], _Entry], blocks: tuple[int, ...], constant: sp.Matrix) -> Any:
        rows = [[self._value(entries[p, q], constant[i, j]) for j, q in enumerate(blocks)]
                for i, p in enumerate(blocks)]
        return DomainMatrix(rows, constant.shape, self.ring.to_domain())

    def _of_sector(self, small: _Small) -> Iterator[Any]:
        blocks, size = small.sector.blocks, len(small.sector.blocks)
        inverse = self._matrix(small.inverse, blocks, sp.zeros(size))
        nodes = [(self._number(w), self._matrix(small.energy, blocks, c), name) for w, c, name in small.nodes]
        pairs = list(combinations_with_replacement(range(size), 2))
        if len(nodes) == 1:
            yield from _entries(nodes[0][1] * inverse - inverse.eye(size, self.ring.to_domain()).to_dense())
        if any(name is None for _, _, name in nodes):
            return
        averaged = inverse
        for weight, matrix, name in nodes:
            adjugate, determinant = matrix.adj_det()
            yield self.generators[name] * determinant - 1
            averaged = averaged - adjugate * (weight * self.generators[name])
        yield from (averaged[i, j].element for i, j in pairs)
        if len(nodes) == 1:
            root = self.generators[nodes[0][2]]
            adjugate, determinant = inverse.adj_det()
            yield determinant - root
            yield from ((nodes[0][1] * root - adjugate)[i, j].element for i, j in pairs)


def _terms(filled: list[list[bool]]) -> int:
    """The number of terms of a determinant whose entries are filled or zero, row by row over sets of columns."""
    ways = {0: 1}
    for row in filled:
        following: dict[int, int] = {}
        for used, count in ways.items():
            for column, present in enumerate(row):
                if present and not used >> column & 1:
                    following[used | 1 << column] = following.get(used | 1 << column, 0) + count
        ways = following
    return sum(ways.values())


def _entries(matrix: Any) -> Iterator[Any]:
    yield from (entry for row in matrix.to_list() for entry in row)


def _form(terms: Any) -> Form:
    parts: dict[sp.Symbol, list[sp.Expr]] = {}
    for coefficient, symbol in terms:
        parts.setdefault(symbol, []).append(coefficient)
    return tuple((sp.Add(*values), symbol) for symbol, values in parts.items())


def constants_of(system: DysonSystem, sector: Sector) -> list[tuple[sp.Expr, sp.Matrix]]:
    """(weight, constant part) at each node of a sector; one node of weight 1 without deterministic letters."""
    nothing = dict.fromkeys(system.unknowns, sp.S.Zero)
    return [(node.weight, system.matrix(sector, node).xreplace(nothing)) for node in sector.nodes]
