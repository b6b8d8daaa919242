"""Square roots of numbers in the weights of an expansion, taken out by units of its unknowns.

A feature covariance stands in the pencil as roots √t of its eigenvalues, and coefficients may be roots of rational
numbers; moments hold their squares only. Each unknown and each entry of Σ is measured in a unit √s, s a squarefree
integer, in which no weight has such a root.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import sympy as sp
from flint import fmpz

from freeattn.theory.expansion import Expansion, Start, Term

__all__ = ["without_roots"]


class _Root(NamedTuple):
    """value·√s with s a squarefree integer."""

    value: sp.Expr
    square: int


class _Link(NamedTuple):
    """target += root × sources: the units of all but one give that of the last."""

    target: int
    root: _Root
    sources: tuple[int, ...]


def without_roots(expansion: Expansion, weights: Sequence[sp.Expr]) -> tuple[Expansion, tuple[sp.Expr, ...]]:
    """The expansion in units in which its weights have no roots of numbers, and these weights.

    It is returned as it stands when it has no such roots, or when they do not meet in pairs.
    """
    roots = [_root(weight) for weight in weights]
    if all(root.square == 1 for root in roots):
        return expansion, tuple(weights)
    units = _units(list(_links(expansion, roots)), expansion.size + len(expansion.entries))
    found: dict[sp.Expr, int] = {}
    unpaired = []

    def number(weight: int, target: int | None, *sources: int | None) -> int:
        """The number of a weight in the units of what it joins."""
        below = 1 if target is None else units[target]
        product = roots[weight].square * below
        for source in sources:
            product *= 1 if source is None else units[source]
        root = int(fmpz(product).isqrt())
        if root * root != product:
            unpaired.append(weight)
        return found.setdefault(roots[weight].value * sp.Rational(root, below), len(found))

    size = expansion.size
    changed = Expansion(
        (), size,
        tuple(Start(s.unknown, number(s.weight, s.unknown), s.power) for s in expansion.starts),
        tuple(tuple(Term(number(t.weight, size + k, t.unknown), t.unknown) for t in terms)
              for k, terms in enumerate(expansion.entries)),
        tuple(p._replace(weight=number(p.weight, p.target, p.unknown, None if p.entry is None else size + p.entry))
              for p in expansion.products),
        tuple(Term(number(t.weight, None, t.unknown), t.unknown) for t in expansion.outputs),
    )
    return (expansion, tuple(weights)) if unpaired else (changed, tuple(found))


def _root(weight: sp.Expr) -> _Root:
    """The root of a number that a weight has as a factor; none where the factor is irrational in another way."""
    if weight.is_Rational:
        return _Root(weight, 1)
    number, rest = weight.as_independent(*weight.free_symbols, as_Add=False) if weight.free_symbols else (weight, 1)
    square = sp.expand(number**2)
    if number.is_Rational or not square.is_Rational:
        return _Root(weight, 1)
    free = 1
    for prime, power in fmpz(int(square.p) * int(square.q)).factor():
        free *= int(prime) ** (int(power) % 2)
    value = sp.sqrt(square / free)
    return _Root((-value if number.is_negative else value) * rest, free)


def _links(expansion: Expansion, roots: Sequence[_Root]) -> Iterator[_Link]:
    yield from (_Link(start.unknown, roots[start.weight], ()) for start in expansion.starts)
    for k, terms in enumerate(expansion.entries, expansion.size):
        yield from (_Link(k, roots[term.weight], (term.unknown,)) for term in terms)
    for product in expansion.products:
        entry = () if product.entry is None else (expansion.size + product.entry,)
        yield _Link(product.target, roots[product.weight], (product.unknown, *entry))


def _units(links: Sequence[_Link], count: int) -> list[int]:
    """Squarefree units, from those of C⁻¹ on; one where nothing says otherwise."""
    units: dict[int, int] = {}
    changed = True
    while changed:
        changed = False
        for target, root, sources in links:
            if target not in units and root.value != 0 and all(source in units for source in sources):
                units[target] = root.square
                for source in sources:
                    units[target] = _product(units[target], units[source])
                changed = True
    return [units.get(number, 1) for number in range(count)]


def _product(first: int, second: int) -> int:
    """The squarefree part of the product of two squarefree integers."""
    common = int(fmpz(first).gcd(fmpz(second)))
    return first // common * (second // common)
