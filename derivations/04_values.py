"""The law of attention times values, ρ_{γK} ⊠ MP_{1/h} ⊠ π_{γV}."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import sympy as sp

import freeattn as fa
from freeattn.theory.documents import Document, Pinned, listed, moment_by_routes, publish
from freeattn.theory.product_moments import product_moments
from freeattn.theory.symbols import GAMMA_KEY, GAMMA_VALUE, HEADS, THETA_1, THETA_2

a, b, g, M_2 = sp.symbols("a b g m_2")
SHORT = {a: 1 / HEADS, b: 1 / GAMMA_VALUE, g: 1 / GAMMA_KEY}


def document() -> Document:
    derivation = fa.derive(fa.symbolic_spec(output="values"))
    assert sp.expand(derivation.mean - GAMMA_VALUE * THETA_1) == 0
    moments = product_moments(g, (a, b))
    found = derivation.normalized_moments(3)[1:]
    assert all(sp.expand(m.subs(SHORT) - n) == 0 for m, n in zip(moments, found, strict=True))
    layer = fa.Attention.from_ratios(Fraction(1, 2), 3, n_heads=2, output="values")
    third, by_pencil = moment_by_routes(layer, 3, {THETA_1: 2, THETA_2: 1})
    pinned = Pinned(
        "Third moment for $h=2$, $\\gamma_K=1/2$, $\\gamma_V=3$, $\\theta_1=2$, $\\theta_2=1$", third, by_pencil,
        "the matrix Dyson equation of the word $(QK^{T}+W)V$, which knows no transforms,", 0,
    )
    return Document.of(
        derivation, "04_values", "Attention times values",
        "With independent Gaussian values and no output map the law is "
        "$\\rho\\boxtimes\\MP_{1/h}\\boxtimes\\pi_{\\gamma_V}$, of mean $\\gamma_V\\theta_1$, where $\\pi_t$ is the "
        f"free Poisson law of rate $t$. With {listed(SHORT)} the second moment of mean one is "
        f"{listed({M_2: moments[0]})}.", pinned,
    )


if __name__ == "__main__":
    print(publish(document(), Path(__file__).parent / "out"))
