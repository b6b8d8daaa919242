"""What a readout of the features sees: degrees of freedom w(λ), ridge error and gradient flow, all from m(z)."""

from __future__ import annotations

from pathlib import Path

import sympy as sp

import freeattn as fa
from freeattn.theory.derivation import Derivation
from freeattn.theory.documents import Document, Pinned, formula, prose, publish
from freeattn.theory.steps import Equation, Step
from freeattn.theory.symbols import GAMMA_OUT, LAMBDA, C, W

X, NOISE, TIME, LAPLACE = sp.symbols("x sigma t s", positive=True)
PENALTY, VARIANCE = 1e-4, 0.1
SHARE = X / (X + LAMBDA)  # of one eigenvalue in w(λ)
SLOPE = sp.diff(SHARE, LAMBDA)


def identities() -> None:
    """The formulas, eigenvalue by eigenvalue: what stands under the integrals is equal on both sides."""
    bias_and_variance = (LAMBDA**2 / GAMMA_OUT + NOISE**2 * X) / (X + LAMBDA) ** 2
    assert sp.cancel(SHARE - (1 - LAMBDA / (X + LAMBDA))) == 0
    assert sp.cancel(bias_and_variance - 1 / GAMMA_OUT - (
        -SHARE / GAMMA_OUT + (LAMBDA / GAMMA_OUT - NOISE**2) * SLOPE)) == 0
    loss = sp.integrate(sp.exp(-(2 * X + LAPLACE) * TIME), (TIME, 0, sp.oo))
    assert sp.cancel(loss - (1 - SHARE.subs(LAMBDA, LAPLACE / 2)) / LAPLACE) == 0


def ridge_error(derivation: Derivation, law: fa.SpectralLaw) -> float:
    """E_λ from w = 1 + zm at z = −λ and w′ = −P_λ/P_w of the polynomial P(λ, w) of the law of mean one."""
    share = 1 - PENALTY * law.stieltjes(-PENALTY).real
    polynomial = derivation.specialized().polynomial().subs(C, derivation.value_of(C))
    at = {LAMBDA: PENALTY, W: share}
    slope = float((-sp.diff(polynomial, LAMBDA) / sp.diff(polynomial, W)).subs(at))
    gamma = float(derivation.value_of(GAMMA_OUT))
    return 1 - share / gamma + (PENALTY / gamma - VARIANCE) * slope


def document() -> Document:
    identities()
    layer = fa.architecture("bert-base", n_tokens=512)
    derivation, law = fa.derive(layer), fa.law(layer).normalized()
    gamma = float(layer.gamma_out)
    integral = law.integrate(lambda x: (PENALTY**2 / gamma + VARIANCE * x) / (x + PENALTY) ** 2)
    pinned = Pinned(
        "Ridge error of BERT-base at $n=512$, $\\lambda=10^{-4}$, $\\sigma^2=0.1$", ridge_error(derivation, law),
        1 - 1 / gamma + integral, "the integral <ridge-integral>, by quadrature against the density,", 1e-9,
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
        ), (Equation("freedom", formula(r"w(\lambda)=\int\frac{x}{x+\lambda}\,d\nu"), formula(r"1-\lambda m(-\lambda)"),
                     main=True),
            Equation("slope", formula(r"w'(\lambda)=-\int\frac{x}{(x+\lambda)^2}\,d\nu"),
                     formula(r"-\frac{P_\lambda(\lambda,w)}{P_w(\lambda,w)}"), main=True))),
        Step("ridge", "Ridge regression", prose(
            "Minimize $\\frac1n\\|y-\\sqrt nFv\\|^2+\\lambda\\|v\\|^2$ for $y=\\sqrt nF\\vartheta+\\varepsilon$ with "
            "$\\vartheta\\sim N(0,I/d_O)$ and $\\varepsilon\\sim N(0,\\sigma^2I)$. The mean square error of the "
            "coefficients is, direction by direction of $F$, squared bias and variance; directions outside the range "
            "of $F$ add $1-1/\\gamma_O$ (with $n$ eigenvalues and $d_O$ coefficients)."
        ), (Equation("ridge-integral", formula(r"E_\lambda"), formula(
                r"1-\frac1{\gamma_O}+\int\frac{\lambda^2/\gamma_O+\sigma^2x}{(x+\lambda)^2}\,d\nu"), main=True),
            Equation("ridge", formula(r"E_\lambda"), formula(
                r"1-\frac{w(\lambda)}{\gamma_O}+\Bigl(\frac{\lambda}{\gamma_O}-\sigma^2\Bigr)w'(\lambda)"
            ), main=True))),
        Step("flow", "Gradient flow", prose(
            "Gradient flow on $\\frac12\\|Fv-y\\|^2$ from $v=0$, with $\\|y\\|^2=n$ and $y$ independent of $F$, "
            "damps each direction by $e^{-xt}$. The relative loss and its Laplace transform are"
        ), (Equation("loss", formula("L(t)"), formula(r"\int e^{-2tx}\,d\nu"), main=True),
            Equation("laplace", formula(r"\int_0^\infty e^{-st}L(t)\,dt"), formula(r"\frac{1-w(s/2)}{s}"), main=True))),
    )


if __name__ == "__main__":
    print(publish(document(), Path(__file__).parent / "out"))
