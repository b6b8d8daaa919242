"""Values correlated with keys, V = ρK + √(1 − ρ²)V′: between independent values and keys equal to values."""

from __future__ import annotations

from pathlib import Path

import sympy as sp

import freeattn as fa
from freeattn.theory.documents import Document, Pinned, publish
from freeattn.theory.symbols import D_KEY, D_OUT, RHO, THETA_1, THETA_2

WIDTHS = {"n_tokens": 6, "d_model": 6, "n_heads": 2, "d_key": 2, "d_value": 2}
THETAS = {THETA_1: 2, THETA_2: 1}


def document() -> Document:
    sizes = fa.symbolic_spec()
    spec = sizes.replace(d_value=sizes.d_key, tie=fa.KeyValueCorrelation(RHO))
    derivation = fa.derive(spec)
    assert sp.expand(derivation.moments(1)[0] - D_OUT * (THETA_1 + RHO**2 * THETA_2 / D_KEY)) == 0  # n = 1
    third = fa.derive(fa.Attention(**WIDTHS, tie=fa.KeyValueCorrelation(RHO))).moments(3)[2].subs(THETAS)
    free, tied = (fa.derive(fa.Attention(**WIDTHS, tie=tie), "transform").moments(3)[2].subs(THETAS)
                  for tie in ("none", "key-value"))
    assert sp.expand(third.subs(RHO, 0) - free) == 0
    pinned = Pinned(
        "Third moment at $\\rho=1$ for $h=2$, $\\gamma_K=2/3$, $\\gamma_O=1$, $\\theta_1=2$, $\\theta_2=1$",
        third.subs(RHO, 1), tied, "the closed law of keys equal to values, by transforms,", 0,
    )
    return Document.of(
        derivation, "12_key_value_correlation", "Correlated keys and values",
        "With $V_r=\\rho K_r+\\sqrt{1-\\rho^2}\\,V_r'$ in each head the mean is "
        "$\\gamma_O(\\theta_1+h\\rho^2\\theta_2/\\gamma_K)$. Independent values ($\\rho=0$) and keys equal to values "
        "($\\rho=1$) are the ends.", pinned,
    )


if __name__ == "__main__":
    print(publish(document(), Path(__file__).parent / "out"))
