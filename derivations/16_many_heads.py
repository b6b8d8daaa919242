"""Infinitely many heads at fixed total widths: the factor MP_{1/h} drops out of the law."""

from __future__ import annotations

from pathlib import Path

import sympy as sp

import freeattn as fa
from freeattn.theory.documents import Document, Pinned, formula, prose, publish
from freeattn.theory.steps import Equation, Step
from freeattn.theory.symbols import GAMMA_KEY, GAMMA_OUT, GAMMA_VALUE, HEADS

FEWEST = 64


def right_edge(n_heads: object) -> float:
    """Of the law of mean one, all ratios of widths 1."""
    return fa.law(fa.Attention.from_ratios(1, 1, 1, n_heads=n_heads)).normalized().edges[-1][1]


def extrapolated() -> float:
    """Two steps of Richardson's extrapolation in 1/h, from h, 2h and 4h heads."""
    one, two, four = (right_edge(FEWEST * k) for k in (1, 2, 4))
    return (8 * four - 6 * two + one) / 3


def document() -> Document:
    derivation = fa.derive(fa.Attention.from_ratios(GAMMA_KEY, GAMMA_VALUE, GAMMA_OUT, n_heads=sp.oo))
    finite = fa.derive(fa.symbolic_spec(output="mha"))
    assert sp.cancel(sp.limit(finite.scalar.product, HEADS, sp.oo) - derivation.scalar.product) == 0
    second = finite.normalized_moments(2, general=True)[1] - derivation.normalized_moments(2, general=True)[1]
    for moment in finite.normalized_moments(4, general=True):
        sp.Poly(moment.subs(HEADS, 1 / sp.Symbol("a")), sp.Symbol("a"))  # an error if it is no polynomial in 1/h
    step = Step("rate", "How fast", prose(
        "As $h\\to\\infty$ the factor $1+z/h$ of $\\Pi$ goes to one, and what is left is the product above. The second "
        "moment of mean one differs by"
    ), (Equation("rate", formula(r"m_2(h)-m_2(\infty)"), sp.expand(second), main=True),))
    pinned = Pinned(
        "Right edge of mean one for $\\gamma_K=\\gamma_V=\\gamma_O=1$, $\\beta=1$", right_edge(sp.oo), extrapolated(),
        f"extrapolation in $1/h$ from $h={FEWEST}$, ${2 * FEWEST}$, ${4 * FEWEST}$", 1e-5, digits=7,
    )
    return Document.of(
        derivation, "16_many_heads", "The limit of many heads",
        "When the number of heads grows at fixed total widths, the law of multi-head attention goes to "
        "$\\rho\\boxtimes\\MP_{1/\\gamma_V}\\boxtimes\\pi_{\\gamma_O}$, with an error of order $1/h$ in every moment, "
        "because moments of mean one are polynomials in $1/h$.",
        pinned, step,
    )


if __name__ == "__main__":
    print(publish(document(), Path(__file__).parent / "out"))
