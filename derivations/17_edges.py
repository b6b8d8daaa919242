"""Edges are critical values of the curve; a hard edge x^{1/k − 1} at 0 when the smallest ratio occurs k times."""

from __future__ import annotations

from fractions import Fraction
from math import log
from pathlib import Path

import sympy as sp

import freeattn as fa
from freeattn.theory.documents import Document, Pinned, formula, prose, publish, written
from freeattn.theory.steps import Equation, Step
from freeattn.theory.symbols import GAMMA_OUT, GAMMA_VALUE, HEADS, LAMBDA, PI_FACTOR, S, W, Z

SIMILAR = formula(r"\sim")
SOFT_POWER, HARD_POWER = "1/2", "1/k-1"  # of the density at edges, as written
K, SOFT, HARD = sp.Symbol("k"), sp.Rational(SOFT_POWER), sp.sympify(HARD_POWER)
ORDERS = (2, 3, 4)
LARGE = 4  # a ratio that is not the smallest
NEAR, FAR = 1e-20, 1e-24  # points so near 0 that the next power of the density is below the tolerance


def curve() -> sp.Expr:
    """x(w) = −λ, a root of the equation of the law of mean one, with both values of S_ρ of its relation."""
    scalar = fa.derive(fa.symbolic_spec()).scalar
    found = -PI_FACTOR / (W * S)
    equation = sp.numer(sp.together(scalar.compact.subs(LAMBDA, -found)))
    assert sp.rem(sp.Poly(equation, S), sp.Poly(scalar.relation.subs(W, -W), S)).is_zero
    return found


def order(ratios: tuple[int, int, int]) -> int:
    """How often Π(−w) vanishes at w = 1, for h, γ_V, γ_O as given."""
    product = fa.derive(fa.symbolic_spec()).scalar.product.subs(Z, -W)
    numbers = dict(zip((HEADS, GAMMA_VALUE, GAMMA_OUT), ratios, strict=True))
    return sp.roots(sp.Poly(product.subs(numbers), W))[sp.Integer(1)]


def hard_edges() -> list[tuple[int, Fraction]]:
    """(k, exponent of the density at 0) of laws with k equal smallest ratios, by the formula and by the law."""
    found = []
    for k in ORDERS:
        ratios = (1,) * (k - 1) + (LARGE,) * (4 - k)
        assert order(ratios) == k
        law = fa.law(fa.Attention.from_ratios(2, ratios[1], ratios[2], n_heads=ratios[0]))
        assert law.edge_exponents[0] == (HARD.subs(K, k), SOFT)
        found.append((k, law.edge_exponents[0][0]))
    return found


def document() -> Document:
    square = fa.law(fa.Attention.from_ratios(2, 1, 1, n_heads=1))
    slope = log(square.density(NEAR) / square.density(FAR)) / log(NEAR / FAR)
    exponents = [
        Equation(f"exponent-{k}", formula(rf"k={k}:\quad \rho(x)"), formula(rf"C\,x^{{{power}}}"), sign=SIMILAR)
        for k, power in hard_edges()
    ]
    steps = (
        Step("curve", "The real line outside the support", prose(
            "The equation of the law of mean one gives the spectral point as a function of $w=1+zm$. As $w$ runs "
            "through real values, this covers the real line around the support, where $m$ is real and increasing. "
            "(Gaps between bands lie on the other sheet of the square root in $S_{\\rho}$.)"
        ), (Equation("curve", formula("x(w)"), written(curve(), {S: r"S_{\rho}(-w)"}), main=True),)),
        Step("soft", "Edges", prose(
            "The image ends where $x$ can no longer be inverted. So edges are critical values; the right one is the "
            "minimum over $w<0$, the left one the maximum between the two smallest of $1, h, \\gamma_V, \\gamma_O$ "
            "where they differ. At a simple critical point $x-x_c$ is quadratic in $w-w_c$, hence $m-m_c$ is a "
            "square root of $x-x_c$, and so is the density:"
        ), (Equation("critical", formula("x'(w_c)"), sp.Integer(0), main=True),
            Equation("root", formula(r"\rho(x)"), formula(rf"C\,|x-x_c|^{{{SOFT_POWER}}}"), sign=SIMILAR))),
        Step("hard", "Hard edges", prose(
            "Near $0$ the relevant zero of $\\Pi(-w)$ is the smallest of $1, h, \\gamma_V, \\gamma_O$; say it is "
            "$w_0$ and occurs $k$ times. As $c<1$, $S_{\\rho}(-w_0)$ is finite and not zero, and $x$ is of order "
            "$(w-w_0)^k$ by <curve>. Then $m=(w-1)/x$ has, beside the pole of the atom $1-w_0$, a part of order "
            f"$x^{{{HARD_POWER}}}$. For $k=1$ it is regular and there is no edge at $0$; for $k\\ge2$ the density "
            "diverges there:"
        ), (Equation("hard", formula(r"\rho(x)"), formula(rf"C\,x^{{{HARD_POWER}}}"), main=True, sign=SIMILAR),
            *exponents)),
    )
    pinned = Pinned(
        "Exponent for $h=\\gamma_V=\\gamma_O=1$, $\\gamma_K=2$, where $k=4$", float(HARD.subs(K, 4)), slope,
        "the slope of $\\log\\rho$ against $\\log x$ between $10^{-24}$ and $10^{-20}$", 1e-4, digits=7,
    )
    derivation = fa.derive(fa.symbolic_spec())
    return Document(
        "17_edges", "Edges and hard edges",
        "Edges of the closed laws are critical values of an explicit function. When the smallest of the ratios "
        "$1, h, \\gamma_V, \\gamma_O$ is attained $k\\ge2$ times, the law has a hard edge at $0$ with density of order "
        f"$x^{{{HARD_POWER}}}$.", steps, pinned, derivation.assumptions, derivation.rules,
    )


if __name__ == "__main__":
    print(publish(document(), Path(__file__).parent / "out"))
