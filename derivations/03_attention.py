"""The law of the attention matrices, ρ_{γK} ⊠ MP_{1/h}, and its second and third moments."""

from __future__ import annotations

from pathlib import Path

import sympy as sp

import freeattn as fa
from freeattn.theory.documents import Document, Pinned, listed, publish
from freeattn.theory.product_moments import product_moments
from freeattn.theory.symbols import GAMMA_KEY, HEADS

a, g, M_2, M_3 = sp.symbols("a g m_2 m_3")
SHORT = {a: 1 / HEADS, g: 1 / GAMMA_KEY}


def document() -> Document:
    derivation = fa.derive(fa.symbolic_spec(output="attention"))
    moments = product_moments(g, (a,))
    found = derivation.normalized_moments(3)[1:]
    assert all(sp.expand(m.subs(SHORT) - n) == 0 for m, n in zip(moments, found, strict=True))
    square = fa.law(fa.Attention.from_ratios(gamma_key=1, n_heads=1, output="attention"))
    pinned = Pinned(
        "Right edge of the bulk for one square head, $h=\\gamma_K=\\beta=1$, of the law itself (not of mean one)",
        square.edges[-1][1], 9.0095, "the published value of [arXiv 2510.06685]", 1e-5, digits=6,
    )
    return Document.of(
        derivation, "03_attention", "Attention matrices",
        "The attention matrices of $h$ heads side by side, centered, have the law $\\rho\\boxtimes\\MP_{1/h}$, where "
        "$\\rho$ is the law of $\\theta_1-\\theta_2+\\theta_2x$ for $x\\sim\\MP_{1/\\gamma_K}$. "
        f"With {listed(SHORT)} its moments of mean one are {listed({M_2: moments[0], M_3: moments[1]})}.", pinned,
    )


if __name__ == "__main__":
    print(publish(document(), Path(__file__).parent / "out"))
