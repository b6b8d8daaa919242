"""The law of the sum of heads with keys of their own: ρ_{γK} ⊠ π_1, whatever the number of heads."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import sympy as sp

import freeattn as fa
from freeattn.theory.documents import Document, Pinned, listed, moment_by_routes, publish
from freeattn.theory.product_moments import product_moments
from freeattn.theory.symbols import GAMMA_KEY, GAMMA_KV, THETA_1, THETA_2

g, M_2, M_3 = sp.symbols("g m_2 m_3")


def document() -> Document:
    derivation = fa.derive(fa.symbolic_spec(output="head-sum"))
    moments = product_moments(g, (sp.Integer(1),))
    found = derivation.normalized_moments(3)[1:]
    assert all(sp.expand(m.subs(g, 1 / GAMMA_KV) - n) == 0 for m, n in zip(moments, found, strict=True))
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
        f"$\\gamma_{{\\mathrm{{kv}}}}=\\gamma_K$, and with {listed({g: 1 / GAMMA_KEY})} the moments of mean one are "
        f"{listed({M_2: moments[0], M_3: moments[1]})}, free of $h$.", pinned,
    )


if __name__ == "__main__":
    print(publish(document(), Path(__file__).parent / "out"))
