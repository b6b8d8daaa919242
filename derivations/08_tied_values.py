"""Keys equal to values within each head, without output map: π(μ_KV, h)."""

from __future__ import annotations

from pathlib import Path

import sympy as sp

import freeattn as fa
from freeattn.theory.documents import Document, Pinned, moment_by_routes, publish
from freeattn.theory.symbols import GAMMA_KEY, HEADS, THETA_1, THETA_2


def document() -> Document:
    derivation = fa.derive(fa.symbolic_spec(output="values", tie="key-value"))
    assert sp.expand(derivation.mean - (GAMMA_KEY * THETA_1 + HEADS * THETA_2)) == 0
    layer = fa.Attention(n_tokens=6, d_model=6, n_heads=2, d_key=2, d_value=2, output="values", tie="key-value")
    third, by_pencil = moment_by_routes(layer, 3, {THETA_1: 2, THETA_2: 1})
    pinned = Pinned(
        "Third moment for $h=2$, $\\gamma_K=2/3$, $\\theta_1=2$, $\\theta_2=1$", third, by_pencil,
        "the matrix Dyson equation of the word $(QK^{T}+W)K$ with repeated letters", 0,
    )
    return Document.of(
        derivation, "08_tied_values", "Keys equal to values, without output map",
        "When $V_r=K_r$ in each head, the law without output map is compound free Poisson of rate $h$ over the law of "
        "$\\varphi(x)=(\\theta_1-\\theta_2)x+(h\\theta_2/\\gamma_K)x^2$, $x\\sim\\pi_{\\gamma_K/h}$. Its mean is "
        "$\\gamma_K\\theta_1+h\\theta_2$.", pinned, without=("moments",),
    )


if __name__ == "__main__":
    print(publish(document(), Path(__file__).parent / "out"))
