"""The residual connection X/√d + α·MHA: its law by words, and mean 1 + α²γ_Oθ₁."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import numpy as np
import sympy as sp

import freeattn as fa
from freeattn.theory.documents import Document, Pinned, formula, prose, publish
from freeattn.theory.layer import sizes
from freeattn.theory.steps import Equation, Step
from freeattn.theory.symbols import D_MODEL, GAMMA_KEY, GAMMA_OUT, GAMMA_VALUE, HEADS, THETA_1, THETA_2, TOKENS

ALPHA = sp.Symbol("alpha", positive=True)
M_1, M_2 = sp.symbols("m_1 m_2")
DRAWS = 3


def simulated(layer: fa.Attention) -> float:
    """m₂ of softmax attention at finite size."""
    return float(np.mean([np.mean(fa.sample(layer, seed).softmax ** 2) for seed in range(DRAWS)]))


def ratios_of(layer: fa.Attention) -> dict[sp.Symbol, sp.Expr]:
    """The symbols of the closed law in sizes."""
    gammas = {GAMMA_KEY: layer.gamma_key, GAMMA_VALUE: layer.gamma_value, GAMMA_OUT: layer.gamma_out}
    return gammas | {HEADS: layer.n_heads}


def document() -> Document:
    (width,) = sizes("d_model")
    derivation = fa.derive(fa.symbolic_spec().replace(d_out=width, residual=ALPHA))
    values = {symbol: value for symbol, value in derivation.values if symbol not in (THETA_1, THETA_2)}
    mean, second = (moment.subs(values) for moment in derivation.moments(2))
    (tokens,), alone = sizes("n_tokens"), fa.symbolic_spec().replace(d_out=width)
    branch = [moment.subs(ratios_of(alone)) for moment in fa.derive(alone).moments(2)]
    assert sp.expand(mean - 1 - ALPHA**2 * width / tokens * THETA_1) == 0
    mixed = 2 * ALPHA**2 * (1 + tokens / width) * branch[0]
    shown = {branch[0]: M_1, width: D_MODEL, tokens: TOKENS}
    assert sp.cancel(second - 1 - mixed - ALPHA**4 * branch[1]) == 0
    step = Step("freely", "The second moment by hand", prose(
        "Let $M$ be the branch, whose law is the closed one of multi-head attention, and $E=X/\\sqrt d$, so that "
        "$EE^T=1$. The rows of $M$ are Gaussian in all directions, so that $E^TE$, of trace $n/d$, is free from $M$, "
        "and words with an odd number of $M$ or with $EM^TEM^T$ vanish. What is left of "
        "$(EE^T+\\alpha(EM^T+ME^T)+\\alpha^2MM^T)^2$ has the trace below, in which $m_1$ and $m_2$ belong to $M$. It "
        "equals the second moment above, exactly."
    ), (Equation("freely", formula(r"\bar m_2"), 1 + mixed.subs(shown) + ALPHA**4 * M_2, main=True),))
    layer = fa.Attention(n_tokens=300, d_model=300, n_heads=3, d_key=100, d_value=100, residual=1, beta=Fraction(1, 2))
    pinned = Pinned(
        "Second moment for $h=3$ heads, $d_K=d_V=n/3$, $d=n$, $\\alpha=1$, $\\beta=1/2$", fa.law(layer).moments(2)[1],
        simulated(layer), "a simulation of softmax attention with $n=300$ tokens, three draws,", 0.03, digits=3,
    )
    return Document.of(
        derivation, "14_residual", "The residual connection",
        "Tokens, scaled to $X/\\sqrt d$, and the attention branch, times $\\alpha$, add up. On orthogonal tokens the "
        "output map falls into two independent parts, one along the tokens and one across, and the law is that of "
        "words beside the identity. Its mean is $1+\\alpha^2\\gamma_O\\theta_1$.", pinned, step,
    )


if __name__ == "__main__":
    print(publish(document(), Path(__file__).parent / "out"))
