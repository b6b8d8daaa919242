"""Exact moments: the Dyson equation as a recursion in the number of letters.

G = C⁻¹ + C⁻¹ (Σ[G] − F) G with F the fixed letters. Every Σ is one pair of letters and every F is one letter, so with
G^(j) the part of j letters

    G^(0) = C⁻¹,      G^(j) = C⁻¹ ( Σ_{i + k = j − 2} Σ[G^(i)] G^(k)  −  F G^(j−1) ),

a finite sum at each step: nothing is inverted. Where diagonal letters act, G is kept for each of their joint
eigenvalues, and averaged in Σ[G]. G_xx = −Σ_k m_k u^{k+1} with u = 1/z, and m_k has at most 2k × (length of the longest
word) letters, half of that for the law of M itself. Weights of the self-energy are generators of a polynomial ring, so
moments are polynomials in them with integer coefficients; what they stand for is put in at the end.

Source: Helton-Rashidi Far-Speicher, IMRN 2007, rnm086, section 2 (the power series at infinity).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple

import sympy as sp

from freeattn.errors import InputError
from freeattn.model.letters import Space
from freeattn.theory.dyson import DysonSystem, Node
from freeattn.theory.field import CoefficientField
from freeattn.theory.self_energy import Pairing, Trace

__all__ = ["moments"]


class _Product(NamedTuple):
    """target += −(or −u at x) × factor × Σ_entry × G_trace; factor: copies, over the scale of the constant part."""

    target: Trace
    at_x: bool
    factor: Any
    entry: Trace
    trace: Trace


class _Local(NamedTuple):
    """The recursion at one joint eigenvalue of one space: its weight, the traces on the space, and F_entry there."""

    weight: Any
    own: frozenset[Trace]
    fixed: dict[Trace, Any]
    products: tuple[_Product, ...]


Series = list[dict[Trace, Any]]  # G by the number of letters


def moments(
    system: DysonSystem, order: int, values: Mapping[sp.Symbol, sp.Rational] | None = None
) -> tuple[sp.Expr, ...]:
    """m_1 … m_order of the law, exact, in the symbols of sizes, counts, variances and coefficients.

    Args:
        system: the equation.
        order: the last moment.
        values: rational numbers to put in for symbols from the start, which is much faster than doing so at the end.

    Raises:
        InputError: for an order that is not a positive integer.
    """
    if isinstance(order, bool) or not isinstance(order, int) or order < 1:
        raise InputError("order", order, "a positive integer")
    weights = _Weights(system, dict(values or {}))
    length = max(1, *(len(term.word) for term in system.expression.terms))  # an identity counts as a letter
    length = length if system.pencil.of == "self-adjoint" else 2 * length
    total = _corner(system, weights, letters=order * length, degree=order + 1)
    return tuple(weights.value(total, power) for power in range(2, order + 2))


class _Weights:
    """The ring of u and of one generator for each weight that is not a rational number."""

    def __init__(self, system: DysonSystem, numbers: dict[sp.Symbol, sp.Rational]) -> None:
        self._numbers = numbers
        self._put = cache(self._put_numbers)
        values = [term.weight for term in system.terms]
        values += [system.copies_below(p, level) for p, b in enumerate(system.pencil.blocks)
                   for level in range(len(b.scope))]
        values += [1 / scale for scale in system.pencil.scales]
        values += [share for share, _ in system.outputs]
        for space in system.spaces:
            for node in system.nodes(space):
                values += [node.weight, *_fixed(system, space, node).values()]
        self._known = list(dict.fromkeys(v for v in map(self._put, values) if not v.is_Rational))
        names = [f"k{i}" for i in range(len(self._known))]
        self.ring, self.u, *generators = sp.ring(["u", *names], sp.QQ)
        self._generator = dict(zip(self._known, generators, strict=True))

    def _put_numbers(self, value: sp.Expr) -> sp.Expr:
        return value.subs(self._numbers) if self._numbers else value

    def __call__(self, value: sp.Expr) -> Any:
        value = self._put(value)
        return self.ring(sp.QQ.from_sympy(value)) if value.is_Rational else self._generator[value]

    def value(self, total: Any, power: int) -> sp.Expr:
        """−[u^power] of a polynomial, generators replaced by what they stand for, as one reduced fraction."""
        field = CoefficientField(self._known)
        elements = [field.element(value) for value in self._known]
        parts = []
        for (degree, *powers), coefficient in total.terms():
            if degree == power:
                part = field.domain.convert(-coefficient, sp.QQ)
                for element, exponent in zip(elements, powers, strict=True):
                    part = part * element**exponent if exponent else part
                parts.append(part)
        return field.expression(_sum(parts, field.domain.zero))


def _sum(parts: Sequence[Any], zero: Any) -> Any:
    """The sum by halves: partial sums of fractions stay small."""
    if len(parts) < 2:
        return parts[0] if parts else zero
    half = len(parts) // 2
    return _sum(parts[:half], zero) + _sum(parts[half:], zero)


def _corner(system: DysonSystem, weights: _Weights, letters: int, degree: int) -> Any:
    """Σ_j of the output at j letters, for j ≤ letters, to the given degree in u."""
    zero = weights.ring.zero
    loaded = [(term, weights(term.weight)) for term in system.terms]
    places = _locals(system, weights)
    start = {t: -weights.u if t.row < system.pencil.corners else -weights(1 / system.pencil.scales[t.row])
             for t in system.traces if _is_constant(system, t)}
    series: list[Series] = [[{t: v for t, v in start.items() if t in place.own}] for place in places]
    averages, energies = [start], []
    for _ in range(letters):
        energies.append(_energy(loaded, averages[-1]))
        for place, parts in zip(places, series, strict=True):
            parts.append(_following(place, energies, parts, weights.u, zero, degree))
        averages.append(_averaged(places, series, zero))
    return sum((weights(share) * part[t] for part in averages for share, t in system.outputs if t in part), zero)


def _following(place: _Local, energies: Series, parts: Series, u: Any, zero: Any, degree: int) -> dict[Trace, Any]:
    """G^(j) at one eigenvalue, from all before."""
    following: dict[Trace, Any] = {}
    pairs = [(e, g) for e, g in zip(energies[:-1], reversed(parts[:-1]), strict=True) if e and g]
    for product in place.products:
        value = _convolved(pairs, product, zero)
        if product.entry in place.fixed and product.trace in parts[-1]:
            value = value - place.fixed[product.entry] * parts[-1][product.trace]
        if value:
            value = -product.factor * value * (u if product.at_x else 1)
            following[product.target] = following.get(product.target, zero) + value
    return {t: low for t, v in following.items() if (low := _truncated(v, degree))}


def _averaged(places: Sequence[_Local], series: Sequence[Series], zero: Any) -> dict[Trace, Any]:
    """The newest part of G, averaged over the eigenvalues of each space."""
    total: dict[Trace, Any] = {}
    for place, parts in zip(places, series, strict=True):
        for trace, value in parts[-1].items():
            total[trace] = total.get(trace, zero) + place.weight * value
    return {trace: value for trace, value in total.items() if value}


def _locals(system: DysonSystem, weights: _Weights) -> tuple[_Local, ...]:
    products, blocks = _products(system, weights), system.pencil.blocks
    found = []
    for space in system.spaces:
        own = frozenset(t for t in system.traces if blocks[t.row].space == space)
        here = tuple(product for product in products if product.target in own)
        for node in system.nodes(space):
            fixed = {t: weights(value) for t, value in _fixed(system, space, node).items()}
            found.append(_Local(weights(node.weight), own, fixed, here))
    return tuple(found)


def _fixed(system: DysonSystem, space: Space, node: Node) -> dict[Trace, sp.Expr]:
    """The fixed letters on a space at one of its nodes."""
    values, blocks = dict(node.values), system.pencil.blocks
    here = (item for item in system.fixed_letters.items() if blocks[item[0].row].space == space)
    return {trace: value.xreplace(values) for trace, value in here}


def _is_constant(system: DysonSystem, trace: Trace) -> bool:
    pencil = system.pencil
    return pencil.partners[trace.row] == trace.column and trace.level == len(pencil.blocks[trace.row].scope)


def _energy(loaded: Sequence[tuple[Pairing, Any]], traces: dict[Trace, Any]) -> dict[Trace, Any]:
    """Σ[g] for one part of g."""
    found: dict[Trace, Any] = {}
    for (target, _, source), weight in loaded:
        if source in traces:
            value = weight * traces[source]
            found[target] = found[target] + value if target in found else value
    return found


def _convolved(pairs: Sequence[tuple[dict[Trace, Any], dict[Trace, Any]]], product: _Product, zero: Any) -> Any:
    total = zero
    for energy, traces in pairs:
        if product.entry in energy and product.trace in traces:
            total = total + energy[product.entry] * traces[product.trace]
    return total


def _truncated(value: Any, degree: int) -> Any:
    if all(powers[0] <= degree for powers in value.itermonoms()):
        return value
    return value.ring.from_dict({powers: c for powers, c in value.iterterms() if powers[0] <= degree})


def _products(system: DysonSystem, weights: _Weights) -> tuple[_Product, ...]:
    """The products of one entry of Σ with one trace that make up C⁻¹ΣG, block (p, q) with p ≤ q."""
    pencil, wanted = system.pencil, set(system.traces)
    found = []
    for entry in dict.fromkeys([*(term.target for term in system.terms), *system.fixed_letters]):
        for s, r in {(entry.row, entry.column), (entry.column, entry.row)}:
            p = pencil.partners[s]
            for trace in system.traces:
                for left, q in {(trace.row, trace.column), (trace.column, trace.row)}:
                    target = Trace(p, q, min(entry.level, trace.level))
                    if left == r and target in wanted:
                        copies = weights(system.copies_below(r, max(entry.level, trace.level)))
                        factor = copies * weights(1 / pencil.scales[p])
                        found.append(_Product(target, p < pencil.corners, factor, entry, trace))
    return tuple(found)
