"""The Marchenko–Pastur law MP_y of mean one: its equation, density and edges from its S-transform 1/(1 + yw)."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import sympy as sp

import freeattn as fa
from freeattn.theory.documents import Document, Pinned, formula, publish
from freeattn.theory.formulas import say
from freeattn.theory.steps import Equation, Step
from freeattn.theory.symbols import M
from freeattn.theory.transforms import MarchenkoPastur

Y, X, LEFT, RIGHT = sp.symbols("y x x_- x_+", positive=True)


def density_step(polynomial: sp.Expr) -> tuple[Step, sp.Expr]:
    """The density √(−disc)/(2π · leading coefficient) of a quadratic equation for m, and the edges, where disc = 0."""
    on_axis = sp.Poly(polynomial.subs(sp.Symbol("z"), X), M)
    discriminant = sp.factor(sp.discriminant(on_axis))
    lower, upper = (1 - sp.sqrt(Y)) ** 2, (1 + sp.sqrt(Y)) ** 2
    assert sp.expand(discriminant - (X - lower) * (X - upper)) == 0
    density = sp.sqrt(RIGHT - X) * sp.sqrt(X - LEFT) / (2 * sp.pi * on_axis.LC())
    sentence = say("The equation is quadratic in {m}. Its discriminant is negative between the edges, and there the "
                   "imaginary part of the root, divided by {pi}, is the density.", pi=formula(r"\pi"))
    return Step("density", "The density", sentence, (
        Equation("discriminant", formula(r"\operatorname{disc}_m"), discriminant),
        Equation("edges", formula(r"x_{\mp}"), formula(r"(1\mp\sqrt{y})^2")),
        Equation("density", formula(r"\rho(x)"), density, main=True),
    )), density.subs({LEFT: lower, RIGHT: upper})


def document() -> Document:
    derivation = fa.derive(MarchenkoPastur(Y))
    assert tuple(derivation.free_cumulants(4)) == (1, Y, Y**2, Y**3)
    step, density = density_step(derivation.polynomial(normalized=False))
    pinned = Pinned(
        "Density of $\\MP_{1/2}$ at $x=2$", density.subs({Y: sp.Rational(1, 2), X: 2}),
        fa.law(MarchenkoPastur(Fraction(1, 2))).density(2.0),
        "Newton's method along the rational curve of the law, which uses no discriminant,", 1e-13,
    )
    return Document.of(
        derivation, "01_marchenko_pastur", "The Marchenko-Pastur law",
        "The eigenvalues of $GG^{T}/p$, for an $n\\times p$ matrix $G$ of independent standard entries with "
        "$n/p\\to y$, have the limiting law $\\MP_y$, whose free cumulants are $1, y, y^2, \\dots$ All closed laws of "
        "attention are built from it.", pinned, step,
    )


if __name__ == "__main__":
    print(publish(document(), Path(__file__).parent / "out"))
