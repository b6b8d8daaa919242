"""Keys and values projected up from one latent that all heads share: mean γ_O(θ₁ + θ₂ n/r)."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import numpy as np
import sympy as sp

import freeattn as fa
from freeattn.theory.documents import Document, Pinned, publish
from freeattn.theory.layer import sizes
from freeattn.theory.symbols import (
    D_KEY,
    D_OUT,
    D_VALUE,
    GAMMA_KEY,
    GAMMA_OUT,
    GAMMA_VALUE,
    HEADS,
    RANK,
    THETA_1,
    THETA_2,
)

DRAWS = 3


def simulated(layer: fa.Attention) -> float:
    """The mean of the squared singular values of softmax attention."""
    return float(np.mean([np.mean(fa.sample(layer, seed).softmax) for seed in range(DRAWS)]))


def at_full_rank(moment: sp.Expr) -> sp.Expr:
    """Its limit r → ∞."""
    share = sp.Dummy("n/r")
    return sp.cancel(moment.subs(RANK, 1 / share)).subs(share, 0)


def document() -> Document:
    (rank,) = sizes("rank")
    derivation = fa.derive(fa.symbolic_spec().replace(latent=fa.Latent(rank, shared=True)))
    moments = derivation.moments(3)
    assert sp.expand(moments[0] - D_OUT * (THETA_1 + THETA_2 / RANK)) == 0  # n = 1
    ratios = {GAMMA_KEY: HEADS * D_KEY, GAMMA_VALUE: HEADS * D_VALUE, GAMMA_OUT: D_OUT}
    closed = [moment.subs(ratios) for moment in fa.derive(fa.symbolic_spec()).moments(3)]
    assert all(sp.cancel(at_full_rank(a) - b) == 0 for a, b in zip(moments, closed, strict=True))
    layer = fa.Attention(n_tokens=300, d_model=300, n_heads=3, d_key=100, d_value=100, latent=fa.Latent(150),
                         beta=Fraction(1, 2))
    pinned = Pinned(
        "Mean for $h=3$ heads, $d_K=d_V=n/3$, $r=n/2$, $\\gamma_O=1$, $\\beta=1/2$", fa.law(layer).mean,
        simulated(layer), "a simulation of softmax attention with $n=300$ tokens, three draws,", 0.03, digits=3,
    )
    return Document.of(
        derivation, "13_latent_keys_values", "Latent keys and values",
        "Keys $K_r=DU^K_r$ and values $V_r=DU^V_r$ are projected up from one latent $D$ of rank $r$ that all heads "
        "share. The law is that of words in which $D$ occurs twice. Its mean is $\\gamma_O(\\theta_1+\\theta_2 "
        "n/r)$, more than with keys and values of their own. As $r\\to\\infty$ its first three moments become "
        "those of the closed law $\\rho\\boxtimes\\MP_{1/h}\\boxtimes\\MP_{1/\\gamma_V}\\boxtimes\\pi_{\\gamma_O}$ of "
        "independent keys and values.", pinned,
    )


if __name__ == "__main__":
    print(publish(document(), Path(__file__).parent / "out"))
