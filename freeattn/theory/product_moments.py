"""Moments of the closed laws that are products: ρ̂ ⊠ MP_{y_1} ⊠ MP_{y_2} ⊠ …, divided by the mean.

ρ̂ is the law of 1 − c + cx, x ~ MP_g, with g = 1/γ_K; the ratios y are 1/h, 1/γ_V, 1/γ_O as far as the output has them.
"""

from __future__ import annotations

from collections.abc import Sequence

import sympy as sp

from freeattn.theory.symbols import C

__all__ = ["product_moments"]


def product_moments(g: sp.Expr, ratios: Sequence[sp.Expr]) -> tuple[sp.Expr, sp.Expr]:
    """(m₂, m₃) of ρ̂ ⊠ MP_{y_1} ⊠ MP_{y_2} ⊠ … of mean one.

    With t = Σ y_k, s = Σ y_k², e = Σ_{j<k} y_j y_k:

        m₂ = 1 + t + c²g,    m₃ = 1 + 3(t + c²g) + s + 3e + 3c²g t + c³g².

    Source: arXiv 2610.10033, section 3, expanded at infinity.
    """
    total, squares = sp.Add(*ratios), sp.Add(*(y**2 for y in ratios))
    pairs = sp.expand(total**2 - squares) / 2
    key = C**2 * g
    second = 1 + total + key
    third = 1 + 3 * (total + key) + squares + 3 * pairs + 3 * key * total + C**3 * g**2
    return sp.expand(second), sp.expand(third)
