"""Keys equal to values within each head, with a Gaussian output map."""

from __future__ import annotations

from pathlib import Path

import sympy as sp

import freeattn as fa
from freeattn.theory.documents import Document, Pinned, moment_by_routes, publish
from freeattn.theory.symbols import GAMMA_KEY, GAMMA_OUT, HEADS, THETA_1, THETA_2


def document() -> Document:
    derivation = fa.derive(fa.symbolic_spec(output="mha", tie="key-value"))
    assert sp.expand(derivation.mean - (GAMMA_OUT * (THETA_1 + HEADS * THETA_2 / GAMMA_KEY))) == 0
    layer = fa.Attention(n_tokens=6, d_model=6, n_heads=2, d_key=2, d_value=2, output="mha", tie="key-value")
    third, by_pencil = moment_by_routes(layer, 3, {THETA_1: 2, THETA_2: 1})
    pinned = Pinned(
        "Third moment for $h=2$, $\\gamma_K=2/3$, $\\gamma_O=1$, $\\theta_1=2$, $\\theta_2=1$", third, by_pencil,
        "the matrix Dyson equation of the word $(QK^{T}+W)KO$ with repeated letters", 0,
    )
    return Document.of(
        derivation, "09_tied_mha", "Keys equal to values, with output map",
        "When $V_r=K_r$ in each head, a Gaussian output map multiplies the compound law of the values freely by "
        "$\\pi_{\\gamma_O}$ and divides it by $\\gamma_K$. The mean is $\\gamma_O(\\theta_1+h\\theta_2/\\gamma_K)$, "
        "more than with independent values.", pinned, without=("moments",),
    )


if __name__ == "__main__":
    print(publish(document(), Path(__file__).parent / "out"))
