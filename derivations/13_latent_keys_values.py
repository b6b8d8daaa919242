"""Keys and values projected up from one latent that all heads share: mean γ_O(θ₁ + θ₂ n/r)."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import numpy as np
import sympy as sp

import freeattn as fa
from freeattn.theory.documents import Document, Pinned, publish
from freeattn.theory.layer import sizes
from freeattn.theory.symbols import D_OUT, RANK, THETA_1, THETA_2

DRAWS = 3


def simulated(layer: fa.Attention) -> float:
    """The mean of the squared singular values of softmax attention."""
    return float(np.mean([np.mean(fa.sample(layer, seed).softmax) for seed in range(DRAWS)]))


def document() -> Document:
    (rank,) = sizes("rank")
    derivation = fa.derive(fa.symbolic_spec().replace(latent=fa.Latent(rank, shared=True)))
    mean = derivation.moments(1)[0]
    assert sp.expand(mean - D_OUT * (THETA_1 + THETA_2 / RANK)) == 0  # n = 1
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
        "n/r)$, more than with keys and values of their own.", pinned,
    )


if __name__ == "__main__":
    print(publish(document(), Path(__file__).parent / "out"))
