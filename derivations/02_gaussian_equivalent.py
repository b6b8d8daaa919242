"""The two numbers of softmax: θ₁ = e^{β²} − 1 and θ₂ = β², by Gaussian integrals over its function of the scores."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import sympy as sp

from freeattn.model.scores import ReLU, Softmax
from freeattn.theory.assumptions import CONDITIONAL_INDEPENDENCE, ORTHOGONAL_INPUT, QUERY_INDEPENDENCE
from freeattn.theory.documents import Document, Pinned, formula, prose, publish
from freeattn.theory.equivalent import EQUIVALENCE
from freeattn.theory.steps import Equation, Step
from freeattn.theory.symbols import BETA, THETA_1, THETA_2

X = sp.Symbol("x", real=True)
SCORE = sp.exp(BETA * X - BETA**2 / 2) - 1  # of a row, divided by its mean, minus one
NODES = 60


def gaussian_mean(function: sp.Expr, low: sp.Expr = -sp.oo) -> sp.Expr:
    """E function(χ) over χ > low, χ ~ N(0, 1)."""
    return sp.simplify(sp.integrate(sp.expand(function) * sp.exp(-(X**2) / 2), (X, low, sp.oo)) / sp.sqrt(2 * sp.pi))


def two_numbers() -> tuple[sp.Expr, sp.Expr]:
    assert gaussian_mean(SCORE) == 0
    thetas = gaussian_mean(SCORE**2), gaussian_mean(X * SCORE) ** 2
    assert all(sp.simplify(a - b) == 0 for a, b in zip(thetas, Softmax().exact_thetas(BETA, sp), strict=True))
    return thetas


def relu_numbers() -> tuple[sp.Expr, sp.Expr]:
    """The same for max(βx, 0), centered."""
    mean, square, slope = (BETA**k * gaussian_mean(X**p, 0) for k, p in ((1, 1), (2, 2), (1, 2)))
    thetas = sp.expand(square - mean**2), sp.expand(slope**2)
    assert all(sp.simplify(a - b) == 0 for a, b in zip(thetas, ReLU().exact_thetas(BETA, sp), strict=True))
    return thetas


def document() -> Document:
    (theta_1, theta_2), relu = two_numbers(), relu_numbers()
    steps = (
        Step("rows", "Rows of softmax", prose(
            "Scores are asymptotically standard Gaussian, so that the denominator of a row is $n$ times its mean "
            "$\\mathrm{E}\\,e^{\\beta\\chi}=e^{\\beta^2/2}$, with $\\chi\\sim N(0,1)$. Hence entries of the attention "
            "matrix are a function $f$ of the scores:"
        ), (Equation("entries", formula("nA_{ij}-1"), formula(r"f(S_{ij})+o(1)")),
            Equation("function", formula("f(x)"), formula(r"e^{\beta x-\beta^2/2}-1"), main=True, exact=SCORE))),
        Step("numbers", "Two numbers", prose(
            "The function has mean zero. It enters through its variance and its linear coefficient, which are Gaussian "
            "integrals of <function>:"
        ), (Equation("theta-1", formula(r"\theta_1=\mathrm{E}\,f(\chi)^2"), theta_1, main=True),
            Equation("theta-2", formula(r"\theta_2=\bigl(\mathrm{E}\,\chi f(\chi)\bigr)^2"), theta_2, main=True))),
        Step("equivalent", "The Gaussian equivalent", prose(
            "Split $f(\\chi)=\\sqrt{\\theta_2}\\,\\chi+\\bigl(f(\\chi)-\\sqrt{\\theta_2}\\,\\chi\\bigr)$: the rest is "
            "uncorrelated with the score and has variance $\\theta_1-\\theta_2$. In the limit it acts as independent "
            "noise $W_r$ with standard entries:"
        ), (Equation("equivalent", formula(r"\sqrt n\,A_r^{\perp}"), formula(
            r"\bigl(\sqrt{\theta_2}\,S_r+\sqrt{\theta_1-\theta_2}\,W_r\bigr)/\sqrt n"
        ), main=True, sign=formula(r"\leftrightarrow")),)),
        Step("other", "Another score function", prose(
            "Any entrywise function of the scores enters by its own two numbers. For $\\max(\\beta x,0)$, centered:"
        ), (Equation("relu-1", THETA_1, relu[0]), Equation("relu-2", THETA_2, relu[1]))),
    )
    nodes, weights = np.polynomial.hermite_e.hermegauss(NODES)
    numeric = float(weights @ (np.exp(nodes - 0.5) - 1) ** 2 / np.sqrt(2 * np.pi))
    pinned = Pinned("$\\theta_1$ at $\\beta=1$", theta_1.subs(BETA, 1), numeric, f"Gauss-Hermite quadrature with "
                    f"{NODES} nodes", 1e-12)
    return Document(
        "02_gaussian_equivalent", "The Gaussian equivalent of softmax",
        "At large size the centered attention matrix acts as a linear function of its scores and independent noise. "
        "Softmax enters every law through two numbers only, $\\theta_1=e^{\\beta^2}-1$ and $\\theta_2=\\beta^2$.",
        steps, pinned, (ORTHOGONAL_INPUT, QUERY_INDEPENDENCE, CONDITIONAL_INDEPENDENCE), (EQUIVALENCE,),
    )


if __name__ == "__main__":
    print(publish(document(), Path(__file__).parent / "out"))
