"""Exact moments of M Mᵀ: the Dyson equation as a recursion in the number of paired letters.

G = C⁻¹ + C⁻¹ Σ[G] G. Every Σ is one pair of letters, so with G^(j) the part of j pairs

    G^(0) = C⁻¹,      G^(j) = C⁻¹ Σ_{i + k = j − 1} Σ[G^(i)] G^(k),

a finite sum at each step: nothing is inverted. G_xx = −Σ_k m_k u^{k+1} with u = 1/z, and m_k has at most k × (length of
the longest word) pairs. Weights of the self-energy are generators of a polynomial ring, so moments are polynomials in
them with integer coefficients; what they stand for is put in at the end.

Source: Helton-Rashidi Far-Speicher, IMRN 2007, rnm086, section 2 (the power series at infinity).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import sympy as sp

from freeattn.errors import InputError
from freeattn.theory.dyson import DysonSystem
from freeattn.theory.field import CoefficientField
from freeattn.theory.self_energy import CORNER, Pairing, Trace

__all__ = ["moments"]


class _Product(NamedTuple):
    """target += −(or −u at x) × copies × Σ_entry × G_trace."""

    target: Trace
    at_x: bool
    copies: Any
    entry: Trace
    trace: Trace


def moments(system: DysonSystem, order: int) -> tuple[sp.Expr, ...]:
    """m_1 … m_order of the law of M Mᵀ, exact, in the symbols of sizes, counts, variances and coefficients.

    Raises:
        InputError: for an order that is not a positive integer.
    """
    if isinstance(order, bool) or not isinstance(order, int) or order < 1:
        raise InputError("order", order, "a positive integer")
    weights = _Weights(system)
    length = max(len(term.word) for term in system.expression.terms)
    total = _corner(system, weights, pairs=order * length, degree=order + 1)
    return tuple(weights.value(total, power) for power in range(2, order + 2))


class _Weights:
    """The ring of u and of one generator for each weight that is not a rational number."""

    def __init__(self, system: DysonSystem) -> None:
        values = [term.weight for term in system.terms]
        values += [system.copies_below(p, level) for p, b in enumerate(system.pencil.blocks)
                   for level in range(len(b.scope))]
        self._known = list(dict.fromkeys(value for value in values if not value.is_Rational))
        names = [f"k{i}" for i in range(len(self._known))]
        self.ring, self.u, *generators = sp.ring(["u", *names], sp.QQ)
        self._generator = dict(zip(self._known, generators, strict=True))

    def __call__(self, value: sp.Expr) -> Any:
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


def _corner(system: DysonSystem, weights: _Weights, pairs: int, degree: int) -> Any:
    """Σ_j G_xx^(j) for j ≤ pairs, to the given degree in u."""
    u, zero, products = weights.u, weights.ring.zero, _products(system, weights)
    loaded = [(term, weights(term.weight)) for term in system.terms]
    start = {t: -u if t.row == 0 else -weights.ring.one for t in system.traces if _is_constant(system, t)}
    series, energies = [start], []
    for _ in range(pairs):
        energies.append(_energy(loaded, series[-1]))
        following: dict[Trace, Any] = {}
        for product in products:
            value = _convolved(energies, series, product, zero)
            if value:
                value = -product.copies * value * (u if product.at_x else 1)
                following[product.target] = following.get(product.target, zero) + value
        series.append({t: low for t, v in following.items() if (low := _truncated(v, degree))})
    return sum((part[CORNER] for part in series if CORNER in part), zero)


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


def _convolved(energies: list[dict[Trace, Any]], series: list[dict[Trace, Any]], product: _Product, zero: Any) -> Any:
    total = zero
    for energy, traces in zip(energies, reversed(series), strict=True):
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
    for entry in dict.fromkeys(term.target for term in system.terms):
        for s, r in {(entry.row, entry.column), (entry.column, entry.row)}:
            p = pencil.partners[s]
            for trace in system.traces:
                for left, q in {(trace.row, trace.column), (trace.column, trace.row)}:
                    target = Trace(p, q, min(entry.level, trace.level))
                    if left == r and target in wanted:
                        copies = weights(system.copies_below(r, max(entry.level, trace.level)))
                        found.append(_Product(target, p == 0, copies, entry, trace))
    return tuple(found)
