"""Square roots in the weights of an expansion, taken out by units of its unknowns.

A feature covariance stands in the pencil as roots √t of its eigenvalues, and coefficients may be roots of rational
numbers; moments hold their squares only. Each unknown and each entry of Σ is measured in a unit √s, s a squarefree
integer, in which all weights are rational.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import sympy as sp
from flint import fmpq, fmpz

from freeattn.errors import InputError
from freeattn.theory.expansion import Expansion, Start, Term
from freeattn.theory.weights import as_fmpq

__all__ = ["rational_weights"]


class _Root(NamedTuple):
    """value·√s with s a squarefree integer."""

    value: fmpq
    square: int


class _Link(NamedTuple):
    """target += root × sources: the units of all but one give that of the last."""

    target: int
    root: _Root
    sources: tuple[int, ...]


def rational_weights(expansion: Expansion, weights: Sequence[sp.Expr]) -> tuple[Expansion, tuple[fmpq, ...]]:
    """The expansion in units in which its weights are rational, and these weights.

    Raises:
        InputError: when there are no such units: an irrational weight that is no root, or roots that do not pair.
    """
    if all(weight.is_Rational for weight in weights):
        return expansion, tuple(map(as_fmpq, weights))
    roots = [_root(weight) for weight in weights]
    units = _units(list(_links(expansion, roots)), expansion.size + len(expansion.entries))
    found: dict[fmpq, int] = {}

    def number(weight: int, target: int | None, *sources: int | None) -> int:
        """The number of a weight in the units of what it joins."""
        product = roots[weight].square
        below = 1 if target is None else units[target]
        for source in sources:
            product *= 1 if source is None else units[source]
        root = fmpz(product * below).isqrt()
        if root * root != product * below:
            raise _irrational(weights[weight])
        return found.setdefault(roots[weight].value * fmpq(root, below), len(found))

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
    return changed, tuple(found)


def _root(weight: sp.Expr) -> _Root:
    square = sp.expand(weight**2)
    if not square.is_Rational:
        raise _irrational(weight)
    free = 1
    for prime, power in fmpz(int(square.p) * int(square.q)).factor() if square else ():
        free *= int(prime) ** (int(power) % 2)
    rest = sp.sqrt(square / free)
    return _Root(as_fmpq(-rest if weight.is_negative else rest), free)


def _irrational(weight: sp.Expr) -> InputError:
    return InputError("expression", str(weight), "rational coefficients and variances for an algebraic curve")


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
