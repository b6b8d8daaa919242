"""When the law of attention splits into two bands.

With fewer key coordinates than tokens (γ_K < 1) the keys see only a share γ_K of the directions, and for many heads the
law of the attention matrices splits: a lower band of mass 1 − γ_K and an upper one of mass γ_K. The polynomial
P(z, m) = 0 of the law (arXiv 2610.10033, section 3) follows by rule; ends of bands are among the zeros of its
discriminant in m, because two roots m meet there.

This script takes h = 16 heads of softmax at β = 1 and finds

1. the four edges at γ_K = 1/4 from the discriminant, which is not how `freeattn.law` finds them, and compares;
2. the γ_K at which the two bands merge: there two zeros of the discriminant meet.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache
from pathlib import Path

import sympy as sp

import freeattn as fa
from freeattn.theory.documents import Document, Pinned, formula, prose, publish
from freeattn.theory.steps import Equation, Step
from freeattn.theory.symbols import GAMMA_KEY, C, M, Z

HEADS = 16
DIGITS = 30


def layer(gamma_key: object) -> fa.Attention:
    return fa.Attention.from_ratios(gamma_key=gamma_key, n_heads=HEADS, output="attention")


@lru_cache(maxsize=1)
def discriminant() -> sp.Expr:
    """The part of disc_m P(z, m) that can vanish at an edge off 0, in z, c and γ_K."""
    polynomial = fa.derive(layer(GAMMA_KEY)).polynomial()
    factors = sp.factor_list(sp.discriminant(polynomial, M))[1]
    (part,) = [factor for factor, power in factors if factor.has(Z) and factor != Z and power == 1]
    return part


@lru_cache(maxsize=1)
def coefficients() -> Callable[..., list[sp.Expr]]:
    """Of its powers of z, highest first, as functions of γ_K and c."""
    return sp.lambdify((GAMMA_KEY, C), sp.Poly(discriminant(), Z).all_coeffs(), "sympy")


def real_roots(gamma_key: Fraction) -> list[sp.Float]:
    """Its real zeros in z at a number γ_K, for softmax at β = 1."""
    c = sp.N(1 / (sp.E - 1), 2 * DIGITS)
    numbers = sp.Poly(coefficients()(sp.Rational(gamma_key), c), Z)
    roots = numbers.nroots(n=DIGITS, maxsteps=200)
    return sorted(root for root in roots if abs(sp.im(root)) < sp.Float(10) ** (-DIGITS // 2))


def edges_at_a_quarter() -> list[sp.Float]:
    """Those zeros of the discriminant that are the four edges; the law has them from its curve."""
    gamma_key = Fraction(1, 4)
    law = fa.law(layer(gamma_key)).normalized()
    known = [edge for band in law.edges for edge in band]
    found = [root for root in real_roots(gamma_key) if root > 0]
    nearest = [min(found, key=lambda x: abs(x - edge)) for edge in known]
    assert len(nearest) == 4
    assert all(abs(float(x) / edge - 1) < 1e-13 for x, edge in zip(nearest, known, strict=True))
    assert [round(mass, 12) for mass in law.band_masses] == [0.75, 0.25]
    assert [round(mass, 12) for mass in fa.law(layer(Fraction(2, 5))).band_masses] == [0.6, 0.4]
    return nearest


def merging_point() -> float:
    """Bisection in γ_K for the change from four positive real zeros to two; exact rational γ_K throughout."""
    low, high = Fraction(1, 4), Fraction(1)
    while high - low > Fraction(1, 2**30):
        middle = (low + high) / 2
        split = len([root for root in real_roots(middle) if root > 0]) == 4
        low, high = (middle, high) if split else (low, middle)
    return float(low)


def document() -> Document:
    edges, limit = edges_at_a_quarter(), merging_point()
    below, above = (fa.law(layer(Fraction(limit) + shift)) for shift in (Fraction(-1, 10**5), Fraction(1, 10**5)))
    assert (len(below.edges), len(above.edges)) == (2, 1)
    derivation = fa.derive(layer(Fraction(1, 4)))
    steps = (
        Step("discriminant", "The discriminant", prose(
            "Two roots $m$ of the polynomial $P(z,m)$ of the law meet at an edge, so that ends of bands are among the "
            f"zeros of its discriminant in $m$. For $h={HEADS}$ heads the part that can vanish off $0$ has degree "
            f"${sp.degree(discriminant(), Z)}$ in $z$. Four of its zeros at $\\gamma_K=1/4$ are edges of the law of "
            "mean one at $\\beta=1$:"
        ), tuple(Equation(f"edge-{k}", formula(f"x_{k}"), sp.N(edge, 10)) for k, edge in enumerate(edges, 1))),
        Step("masses", "What the bands carry", prose(
            "With fewer key coordinates than tokens the keys see a share $\\gamma_K$ of the directions only: the "
            "upper band carries the mass $\\gamma_K$ and the lower one $1-\\gamma_K$, here $1/4$ and $3/4$."
        )),
        Step("merging", "Where the bands merge", prose(
            "As $\\gamma_K$ grows, two positive zeros of the discriminant meet and leave the real line; the gap closes "
            "there. Bisection, in exact rational $\\gamma_K$, gives the largest $\\gamma_K$ with two bands:"
        ), (Equation("merging", formula(r"\gamma_K^{*}"), sp.N(limit, 6), main=True),)),
    )
    pinned = Pinned(
        "Left edge of the upper band at $\\gamma_K=1/4$", edges[2],
        fa.law(layer(Fraction(1, 4))).normalized().edges[1][0],
        "the critical value of the rational curve of the law, which uses no discriminant,", 1e-13, digits=12,
    )
    return Document(
        "18_two_bands", "Two bands",
        f"For $h={HEADS}$ heads of softmax at $\\beta=1$ the law of the attention matrices splits into two bands when "
        "$\\gamma_K$ is small.", steps, pinned, derivation.assumptions, derivation.rules,
    )


if __name__ == "__main__":
    print(publish(document(), Path(__file__).parent / "out"))
