"""The law of the sum of heads with keys of their own: ρ_{γK} ⊠ π_1, whatever the number of heads."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import sympy as sp

import freeattn as fa
from freeattn.theory.documents import Document, Pinned, moment_by_routes, publish
from freeattn.theory.product_moments import product_moments
from freeattn.theory.symbols import GAMMA_KV, THETA_1, THETA_2


def document() -> Document:
    derivation = fa.derive(fa.symbolic_spec(output="head-sum"))
    moments = product_moments(1 / GAMMA_KV, (sp.Integer(1),))
    assert all(sp.expand(a - b) == 0 for a, b in zip(moments, derivation.normalized_moments(3)[1:], strict=True))
    layer = fa.Attention(n_tokens=12, d_model=12, n_heads=3, d_key=2, output="head-sum")
    assert layer.gamma_kv == layer.gamma_key == Fraction(1, 2)
    third, by_pencil = moment_by_routes(layer, 3, {THETA_1: 2, THETA_2: 1})
    pinned = Pinned(
        "Third moment for three heads, $\\gamma_K=1/2$, $\\theta_1=2$, $\\theta_2=1$", third, by_pencil,
        "the matrix Dyson equation of the sum of three words", 0,
    )
    return Document.of(
        derivation, "06_head_sum_independent_keys", "Sum of heads, independent keys",
        "The centered mean of the attention matrices, times $\\sqrt{nh}$, has the law $\\rho\\boxtimes\\pi_1$, where "
        "$\\rho$ holds $\\gamma_{\\mathrm{kv}}$, the total width of distinct keys over tokens. With keys of their own "
        "$\\gamma_{\\mathrm{kv}}=\\gamma_K$, and with $g=1/\\gamma_K$ the moments of mean one are $m_2=2+c^2g$ and "
        "$m_3=5+6c^2g+c^3g^2$, free of $h$.", pinned,
    )


if __name__ == "__main__":
    print(publish(document(), Path(__file__).parent / "out"))
