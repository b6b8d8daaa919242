"""The law of the sum of heads that share one key matrix: ρ_{γK/h} ⊠ π_1."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import sympy as sp

import freeattn as fa
from freeattn.theory.documents import Document, Pinned, formula, prose, publish
from freeattn.theory.product_moments import product_moments
from freeattn.theory.steps import Equation, Step
from freeattn.theory.symbols import GAMMA_KEY, GAMMA_KV, HEADS, C

TOKENS, WIDTH, COUNT = 240, 60, 4


def simulated() -> float:
    """m₂/m₁² of the Gaussian equivalent at finite size, mean over three draws."""
    layer = fa.Attention(n_tokens=TOKENS, d_model=TOKENS, n_heads=COUNT, d_key=WIDTH, n_kv_heads=1, output="head-sum")
    draws = [fa.sample(layer, seed).equivalent for seed in range(3)]
    return float(np.mean([np.mean(x**2) / np.mean(x) ** 2 for x in draws]))


def document() -> Document:
    derivation = fa.derive(fa.symbolic_spec(output="head-sum"))
    shared = GAMMA_KEY / HEADS
    moments = product_moments(1 / shared, (sp.Integer(1),))
    found = [moment.subs(GAMMA_KV, shared) for moment in derivation.normalized_moments(3)[1:]]
    assert all(sp.expand(a - b) == 0 for a, b in zip(moments, found, strict=True))
    step = Step("shared", "One key matrix for all heads", prose(
        "There is one key matrix of width $d_K=\\gamma_Kn/h$, so that $\\gamma_{\\mathrm{kv}}=\\gamma_K/h$ in all that "
        "stands above. The moments of mean one become"
    ), tuple(Equation(f"shared-{k}", formula(f"m_{k}"), m, main=True) for k, m in enumerate(moments, 2)))
    value = moments[0].subs({HEADS: COUNT, GAMMA_KEY: sp.Rational(COUNT * WIDTH, TOKENS), C: 1 / (sp.E - 1)})
    pinned = Pinned(
        "Second moment of mean one for $h=4$ heads on one key matrix, $\\gamma_K=1$, $\\beta=1$", value, simulated(),
        f"a simulation of the Gaussian equivalent at $n={TOKENS}$, three draws,", 0.03, digits=3,
    )
    return Document.of(
        derivation, "07_head_sum_shared_keys", "Sum of heads, shared keys",
        "When all heads share one key matrix, their sum has the law $\\rho\\boxtimes\\pi_1$ with "
        "$\\gamma_{\\mathrm{kv}}=\\gamma_K/h$: the more heads share it, the wider the law.", pinned, step,
        without=("moments",),
    )


if __name__ == "__main__":
    print(publish(document(), Path(__file__).parent / "out"))
