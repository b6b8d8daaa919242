"""Exact power series of free probability over any field: S-transforms and free products.

A series is a list of coefficients [a_1, …, a_k] of z, z², …, z^k (no constant term). Coefficients are elements of one
sympy domain, so nothing is simplified and nothing is rounded.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import sympy as sp
from sympy.polys.constructor import construct_domain

__all__ = [
    "from_domain",
    "moments_of_product",
    "to_domain",
]


def to_domain(groups: Sequence[Sequence[sp.Expr]]) -> tuple[Any, list[list[Any]]]:
    """One field that holds all given expressions, and the expressions as its elements."""
    flat = [sp.sympify(value) for group in groups for value in group]
    domain, elements = construct_domain(flat, field=True)
    supply = iter(elements)
    return domain, [[next(supply) for _ in group] for group in groups]


def from_domain(domain: Any, elements: Sequence[Any]) -> tuple[sp.Expr, ...]:
    """Elements of a field as sympy expressions, numerators expanded."""
    return tuple(domain.to_sympy(element) for element in elements)


def _multiply(a: Sequence[Any], b: Sequence[Any], order: int, zero: Any) -> list[Any]:
    """Product of two power series given from the constant term on, to z^order."""
    product = [zero] * (order + 1)
    for i, left in enumerate(a[: order + 1]):
        if left:
            for j, right in enumerate(b[: order + 1 - i]):
                product[i + j] = product[i + j] + left * right
    return product


def _revert(series: Sequence[Any], domain: Any) -> list[Any]:
    """Compositional inverse of a_1 z + a_2 z² + …, a_1 ≠ 0, by Lagrange: b_n = [z^{n−1}] (z/a(z))^n / n."""
    order = len(series)
    quotient = _reciprocal(list(series), domain)
    inverse, power = [], [domain.one]
    for n in range(1, order + 1):
        power = _multiply(power, quotient, order - 1, domain.zero)
        inverse.append(power[n - 1] / domain.convert(n))
    return inverse


def _reciprocal(series: Sequence[Any], domain: Any) -> list[Any]:
    """1/(a_0 + a_1 z + …) to the same number of terms."""
    result = [domain.one / series[0]]
    for n in range(1, len(series)):
        total = sum((series[k] * result[n - k] for k in range(1, n + 1)), domain.zero)
        result.append(-total / series[0])
    return result


def _s_series(moments: Sequence[Any], domain: Any) -> list[Any]:
    """S(w) = (1 + w) χ(w)/w from its constant term on, χ = ψ^{−1}, ψ(z) = Σ m_k z^k."""
    chi = _revert(moments, domain)
    return [chi[0], *(chi[k] + chi[k - 1] for k in range(1, len(chi)))]


def moments_of_product(factors: Sequence[Sequence[Any]], domain: Any) -> list[Any]:
    """Moments of μ₁ ⊠ μ₂ ⊠ … from the moments of the factors: S(⊠) = ∏ S (all means nonzero)."""
    order = len(factors[0])
    s_product = [domain.one]
    for moments in factors:
        s_product = _multiply(s_product, _s_series(moments, domain), order - 1, domain.zero)
    signs = [domain.one if k % 2 == 0 else -domain.one for k in range(order)]  # 1/(1 + w)
    chi = _multiply(s_product, signs, order - 1, domain.zero)
    return _revert(chi, domain)
