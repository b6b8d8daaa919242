"""The law of multi-head attention, ρ_{γK} ⊠ MP_{1/h} ⊠ MP_{1/γV} ⊠ π_{γO}, and its right edge."""

from __future__ import annotations

from pathlib import Path

import mpmath
import sympy as sp

import freeattn as fa
from freeattn.theory.documents import Document, Pinned, listed, publish
from freeattn.theory.mean_one import ScalarEquation
from freeattn.theory.product_moments import product_moments
from freeattn.theory.symbols import GAMMA_KEY, GAMMA_OUT, GAMMA_VALUE, HEADS, LAMBDA, PI_FACTOR, THETA_1, C, W, Z

RATIO = 16  # h = γ_K = γ_V = γ_O
a, b, o, g, M_2 = sp.symbols("a b o g m_2")
SHORT = {a: 1 / HEADS, b: 1 / GAMMA_VALUE, o: 1 / GAMMA_OUT, g: 1 / GAMMA_KEY}


def edge_by_minimum(scalar: ScalarEquation) -> mpmath.mpf:
    """The smallest spectral point x = −λ over w < 0, on the sheet that starts at infinity, where x is the larger."""
    numbers = {GAMMA_KEY: RATIO, GAMMA_VALUE: RATIO, GAMMA_OUT: RATIO, HEADS: RATIO, C: 1 / (sp.E - 1)}
    equation = scalar.compact.subs(PI_FACTOR, scalar.product.subs(Z, -W)).subs(numbers)
    coefficients = sp.lambdify(W, sp.Poly(equation, LAMBDA).all_coeffs(), "mpmath")

    def point(w: mpmath.mpf) -> mpmath.mpf:
        square, linear, constant = coefficients(w)
        root = mpmath.sqrt(linear**2 - 4 * square * constant)
        return max((linear + root) / (2 * square), (linear - root) / (2 * square))

    return point(mpmath.findroot(lambda w: mpmath.diff(point, w), (-4.0, -3.0)))


def document() -> Document:
    derivation = fa.derive(fa.symbolic_spec(output="mha"))
    assert sp.expand(derivation.mean - GAMMA_OUT * THETA_1) == 0
    moments = product_moments(g, (a, b, o))
    found = derivation.normalized_moments(3)[1:]
    assert all(sp.expand(m.subs(SHORT) - n) == 0 for m, n in zip(moments, found, strict=True))
    law = fa.law(fa.Attention.from_ratios(RATIO, RATIO, RATIO, n_heads=RATIO)).normalized()
    pinned = Pinned(
        "Right edge of the law of mean one for $h=\\gamma_K=\\gamma_V=\\gamma_O=16$, $\\beta=1$", law.edges[-1][1],
        edge_by_minimum(derivation.scalar), "the smallest $-\\lambda$ over $w<0$ in <polynomial>, by a secant method,",
        1e-12, digits=13,
    )
    return Document.of(
        derivation, "05_mha", "Multi-head attention",
        "With independent Gaussian values and output map the law is $\\rho\\boxtimes\\MP_{1/h}\\boxtimes"
        "\\MP_{1/\\gamma_V}\\boxtimes\\pi_{\\gamma_O}$, of mean $\\gamma_O\\theta_1$. "
        f"With {listed(SHORT)} the second moment of mean one is {listed({M_2: moments[0]})}.", pinned,
    )


if __name__ == "__main__":
    print(publish(document(), Path(__file__).parent / "out"))
