"""What a readout of the features sees: degrees of freedom w(λ), ridge error and gradient flow, all from m(z)."""

from __future__ import annotations

from pathlib import Path

import sympy as sp

import freeattn as fa
from freeattn.theory.derivation import Derivation
from freeattn.theory.documents import Document, Pinned, formula, prose, publish, written
from freeattn.theory.notation import Notation, latex_of
from freeattn.theory.steps import Equation, Step
from freeattn.theory.symbols import GAMMA_OUT, LAMBDA, C, W

X, NOISE, TIME, LAPLACE = sp.symbols("x sigma t s", positive=True)
PENALTY, VARIANCE = 1e-4, 0.1
RESOLVENT, FREEDOM, SLOPE, HALFWAY, P_LAMBDA, P_W = sp.symbols("m w v u p q")
NAMES = {RESOLVENT: r"m(-\lambda)", FREEDOM: r"w(\lambda)", SLOPE: r"w'(\lambda)", HALFWAY: "w(s/2)",
         P_LAMBDA: r"P_\lambda(\lambda,w)", P_W: r"P_w(\lambda,w)"}
SHARE = X / (X + LAMBDA)  # of one eigenvalue in w(λ)
SHARE_SLOPE = sp.diff(SHARE, LAMBDA)
BIAS_AND_VARIANCE = (LAMBDA**2 / GAMMA_OUT + NOISE**2 * X) / (X + LAMBDA) ** 2
LOSS = sp.exp(-2 * X * TIME)
BY_RESOLVENT = 1 - LAMBDA * RESOLVENT
IMPLICIT = -P_LAMBDA / P_W
OUTSIDE = 1 - 1 / GAMMA_OUT  # squared error in directions outside the range
ERROR = 1 - FREEDOM / GAMMA_OUT + (LAMBDA / GAMMA_OUT - NOISE**2) * SLOPE
TRANSFORMED = (1 - HALFWAY) / LAPLACE


def identities() -> None:
    """What is displayed, eigenvalue by eigenvalue: under the integrals both sides are equal."""
    assert sp.cancel(SHARE - BY_RESOLVENT.subs(RESOLVENT, 1 / (X + LAMBDA))) == 0
    eigenvalue = {FREEDOM: SHARE, SLOPE: SHARE_SLOPE, HALFWAY: SHARE.subs(LAMBDA, LAPLACE / 2)}
    assert sp.cancel(OUTSIDE + BIAS_AND_VARIANCE - ERROR.subs(eigenvalue)) == 0
    transformed = sp.integrate(LOSS * sp.exp(-LAPLACE * TIME), (TIME, 0, sp.oo))
    assert sp.cancel(transformed - TRANSFORMED.subs(eigenvalue)) == 0


def over_law(integrand: sp.Expr, before: str = "") -> Notation:
    """∫ integrand dν, with what stands before it."""
    return formula(rf"{before}\int {latex_of(integrand)}\,d\nu")


def equal(symbol: sp.Symbol, integral: Notation) -> Notation:
    """symbol = integral, as the left side of an equation."""
    return formula(f"{NAMES[symbol]}={integral.latex}")


def ridge_error(derivation: Derivation, law: fa.SpectralLaw) -> float:
    """E_λ from w = 1 + zm at z = −λ and w′ = −P_λ/P_w of the polynomial P(λ, w) of the law of mean one."""
    share = float(BY_RESOLVENT.subs({LAMBDA: PENALTY, RESOLVENT: law.stieltjes(-PENALTY).real}))
    polynomial = derivation.specialized().polynomial().subs(C, derivation.value_of(C))
    at = {LAMBDA: PENALTY, W: share}
    slopes = {P_LAMBDA: sp.diff(polynomial, LAMBDA), P_W: sp.diff(polynomial, W)}
    values = {FREEDOM: share, SLOPE: IMPLICIT.subs(slopes).subs(at), LAMBDA: PENALTY, NOISE: VARIANCE**0.5}
    return float(ERROR.subs(values | {GAMMA_OUT: derivation.value_of(GAMMA_OUT)}))


def document() -> Document:
    identities()
    layer = fa.architecture("bert-base", n_tokens=512)
    derivation, law = fa.derive(layer), fa.law(layer).normalized()
    numbers = {LAMBDA: PENALTY, NOISE: VARIANCE**0.5, GAMMA_OUT: layer.gamma_out}
    integral = law.integrate(sp.lambdify(X, BIAS_AND_VARIANCE.subs(numbers)))
    pinned = Pinned(
        "Ridge error of BERT-base at $n=512$, $\\lambda=10^{-4}$, $\\sigma^2=0.1$", ridge_error(derivation, law),
        float(OUTSIDE.subs(numbers)) + integral,
        "the integral <ridge-integral>, by quadrature against the density,", 1e-9,
    )
    return Document(
        "15_readouts", "Readouts of the features",
        "Let $\\nu$ be the law of mean one, of the features $F$ (their output divided by the root of its mean square "
        "singular value). What a linear readout of them does follows from the Stieltjes transform of $\\nu$ on the "
        "negative axis [arXiv 2610.10033, section 5].", steps(), pinned,
    )


def steps() -> tuple[Step, ...]:
    return (
        Step("freedom", "Effective degrees of freedom", prose(
            "Per token they are a value of the Stieltjes transform, and the slope follows from the polynomial "
            "$P(\\lambda,w)=0$ of the law by implicit differentiation:"
        ), (Equation("freedom", equal(FREEDOM, over_law(SHARE)), written(BY_RESOLVENT, NAMES), main=True),
            Equation("slope", equal(SLOPE, over_law(SHARE_SLOPE)), written(IMPLICIT, NAMES), main=True))),
        Step("ridge", "Ridge regression", prose(
            "Minimize $\\frac1n\\|y-\\sqrt nFv\\|^2+\\lambda\\|v\\|^2$ for $y=\\sqrt nF\\vartheta+\\varepsilon$ with "
            "$\\vartheta\\sim N(0,I/d_O)$ and $\\varepsilon\\sim N(0,\\sigma^2I)$. The mean square error of the "
            "coefficients is, direction by direction of $F$, squared bias and variance; directions outside the range "
            f"of $F$ add ${latex_of(OUTSIDE)}$ (with $n$ eigenvalues and $d_O$ coefficients)."
        ), (Equation("ridge-integral", formula(r"E_\lambda"), over_law(BIAS_AND_VARIANCE, f"{latex_of(OUTSIDE)}+"),
                     main=True),
            Equation("ridge", formula(r"E_\lambda"), written(ERROR, NAMES), main=True))),
        Step("flow", "Gradient flow", prose(
            "Gradient flow on $\\frac12\\|Fv-y\\|^2$ from $v=0$, with $\\|y\\|^2=n$ and $y$ independent of $F$, "
            "damps each direction by $e^{-xt}$. The relative loss and its Laplace transform are"
        ), (Equation("loss", formula("L(t)"), over_law(LOSS), main=True),
            Equation("laplace", formula(r"\int_0^\infty e^{-st}L(t)\,dt"), written(TRANSFORMED, NAMES), main=True))),
    )


if __name__ == "__main__":
    print(publish(document(), Path(__file__).parent / "out"))
