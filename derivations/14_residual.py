"""The residual connection X/√d + α·MHA: its law by words, and mean 1 + α²γ_Oθ₁."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import numpy as np
import sympy as sp

import freeattn as fa
from freeattn.theory.documents import Document, Pinned, publish
from freeattn.theory.layer import sizes
from freeattn.theory.symbols import THETA_1, THETA_2

ALPHA = sp.Symbol("alpha", positive=True)
DRAWS = 3


def simulated(layer: fa.Attention) -> float:
    """m₂ of softmax attention at finite size."""
    return float(np.mean([np.mean(fa.sample(layer, seed).softmax ** 2) for seed in range(DRAWS)]))


def document() -> Document:
    (width,) = sizes("d_model")
    derivation = fa.derive(fa.symbolic_spec().replace(d_out=width, residual=ALPHA))
    values = {symbol: value for symbol, value in derivation.values if symbol not in (THETA_1, THETA_2)}
    (tokens,) = sizes("n_tokens")
    mean = derivation.moments(1)[0].subs(values)
    assert sp.expand(mean - 1 - ALPHA**2 * width / tokens * THETA_1) == 0
    layer = fa.Attention(n_tokens=300, d_model=300, n_heads=3, d_key=100, d_value=100, residual=1, beta=Fraction(1, 2))
    pinned = Pinned(
        "Second moment for $h=3$ heads, $d_K=d_V=n/3$, $d=n$, $\\alpha=1$, $\\beta=1/2$", fa.law(layer).moments(2)[1],
        simulated(layer), "a simulation of softmax attention with $n=300$ tokens, three draws,", 0.03, digits=3,
    )
    return Document.of(
        derivation, "14_residual", "The residual connection",
        "Tokens, scaled to $X/\\sqrt d$, and the attention branch, times $\\alpha$, add up. On orthogonal tokens the "
        "output map falls into two independent parts, one along the tokens and one across, and the law is that of "
        "words beside the identity. Its mean is $1+\\alpha^2\\gamma_O\\theta_1$.", pinned,
    )


if __name__ == "__main__":
    print(publish(document(), Path(__file__).parent / "out"))
