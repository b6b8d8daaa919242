"""Multi-head attention on Gaussian tokens: one polynomial equation in m and σ, and the mean γ_O(θ₁ + θ₂ n/d)."""

from __future__ import annotations

from pathlib import Path
from random import Random

import mpmath
import sympy as sp

import freeattn as fa
from freeattn.theory.documents import Document, Pinned, formula, prose, publish
from freeattn.theory.pencil_route import PencilDerivation
from freeattn.theory.steps import Equation, Step, Term, Vanishing
from freeattn.theory.symbols import D_KEY, D_MODEL, D_OUT, D_VALUE, HEADS, THETA_1, THETA_2, TOKENS, M, Z

POINTS = 4  # random rational points: a wrong identity holds at one of them by accident only
ETA, KAPPA, NU, OMEGA, SIGMA = sp.symbols("eta kappa nu omega sigma")
e, s, y, L, N, R, T = sp.symbols("e s y L N R T")
RATIOS = {ETA: TOKENS / D_MODEL, KAPPA: D_KEY / D_MODEL, NU: D_VALUE / D_MODEL, OMEGA: D_OUT / D_MODEL}
SHORT = {  # in this order
    N: 1 + ETA + SIGMA,
    L: 1 + ETA + 2 * SIGMA,
    T: (OMEGA / HEADS + SIGMA) * (1 + SIGMA / NU) * (1 + SIGMA) * (ETA + SIGMA),
    R: T / N,
    e: (THETA_1 - THETA_2) * M / ETA,
    y: THETA_2 * M / ETA,
    s: (SIGMA + e * T) / (1 - e * R),
}
CLOSED = (s * (1 - e * R) ** 2, y * R * L**2 * (1 + HEADS * s) * (1 + s / KAPPA))
POINT = -(HEADS * SIGMA / ETA + 1) / M  # z, from σ = −η(1 + zm)/h


def written_out(expression: sp.Expr) -> sp.Expr:
    """Without abbreviations."""
    for symbol, value in reversed(SHORT.items()):
        expression = expression.subs(symbol, value)
    return expression.subs(RATIOS)


def traced(derivation: PencilDerivation, known: dict[sp.Symbol, sp.Expr]) -> dict[str, sp.Expr]:
    """Every trace of the reduced system, one after the other, where `known` has all other symbols."""
    known = dict(known)
    for symbol, value in derivation.system.definitions:
        known[symbol] = sp.cancel(value.subs(known))
    return {str(symbol): value for symbol, value in known.items()} | {
        f"equation {k}": sp.cancel(equation.subs(known)) for k, equation in enumerate(derivation.equations)
    }


def same_solutions(derivation: PencilDerivation, seed: int) -> bool:
    """Both equations of the reduced system hold where the closed form does: polynomials in m, at random sizes and σ.

    The trace at (y4, y4) is −(T + sR)/η; in it the second unknown u enters as 1/(1 + u).
    """
    draw, symbols = Random(seed), (D_MODEL, HEADS, D_KEY, D_VALUE, D_OUT, THETA_1, THETA_2, SIGMA)
    numbers = {TOKENS: sp.Integer(1)} | {x: sp.Rational(draw.randint(1, 9), draw.randint(2, 9)) for x in symbols}
    output, unknown = derivation.unknowns
    known = {**numbers, output: M, Z: written_out(POINT).subs(numbers)}
    at_zero = traced(derivation, {**known, unknown: sp.Integer(0)})["g_y4_y4"]
    closed_trace = sp.cancel(written_out(-(T + s * R) / ETA).subs(numbers))
    found = traced(derivation, {**known, unknown: sp.cancel(at_zero / closed_trace - 1)})
    assert sp.cancel(found["g_y4_y4"] - closed_trace) == 0
    closed = sp.Poly(sp.numer(sp.together(written_out(sum(CLOSED)).subs(numbers))), M)
    return all(sp.Poly(sp.numer(found[f"equation {k}"]), M).rem(closed).is_zero for k in (0, 1))


def number(layer: fa.Attention, derivation: PencilDerivation) -> Pinned:
    """m(z) at one point: a root of the closed form, started off the law, against the Dyson equation."""
    values = {symbol: sp.N(value, 20) for symbol, value in derivation.values}
    by_traces = fa.law(layer).stieltjes(1 + 1j)
    sigma = (-(1 + Z * M) * ETA / HEADS).subs(RATIOS)
    equation = written_out(sum(CLOSED)).subs(SIGMA, sigma).subs(values).subs(Z, 1 + sp.I)
    root = mpmath.findroot(sp.lambdify(M, equation, "mpmath"), mpmath.mpc(by_traces) * (1 + 1e-3))
    return Pinned(
        "$|m(1+i)|$ for $n=d=d_O=96$, $h=4$, $d_K=d_V=24$, $\\beta=1$", abs(root), abs(by_traces),
        "the matrix Dyson equation, followed from infinity,", 1e-10,
    )


def document() -> Document:
    derivation = fa.derive(fa.symbolic_spec().replace(inputs="gaussian"))
    assert all(same_solutions(derivation, seed) for seed in range(POINTS))
    assert sp.expand(derivation.moments(1)[0] - D_OUT * (THETA_1 + THETA_2 / D_MODEL)) == 0  # n = 1
    layer = fa.Attention(n_tokens=96, d_model=96, n_heads=4, d_key=24, d_value=24, inputs="gaussian")
    one = sp.Integer(1)
    step = Step("closed", "The closed form", prose(
        "Two unknowns are left in <reduced-1> and <reduced-2>. With $\\eta=n/d$, $\\kappa=d_K/d$, $\\nu=d_V/d$, "
        "$\\omega=d_O/d$ and $\\sigma=-\\eta(1+zm)/h$ the trace at $(y_4,y_4)$ is $-(T+sR)/\\eta$, which fixes the "
        "second unknown. Then both equations hold where the one below does; that was checked exactly, as polynomials "
        f"in $m$, at {POINTS} random choices of all sizes, $\\theta_1$, $\\theta_2$ and $\\sigma$ as rational numbers. "
        "With $\\sigma$ it is an equation in $z$ and $m$ alone, with the abbreviations that follow:"
    ), (Vanishing("closed", tuple(Term(part, one, one) for part in CLOSED)),
        *(Equation(f"short-{symbol}", symbol, value) for symbol, value in SHORT.items())))
    mean = Step("mean", "The mean", prose("In ratios the first moment above is"), (
        Equation("mean", formula(r"\bar m"), formula(r"\gamma_O\Bigl(\theta_1+\theta_2\,\frac nd\Bigr)"), main=True,
                 exact=derivation.moments(1)[0]),))
    return Document.of(
        derivation, "11_gaussian_input", "Gaussian input",
        "On tokens with independent Gaussian entries, queries, keys and values share the tokens, and the law is no "
        "free product. It follows from one polynomial equation; the mean $\\gamma_O(\\theta_1+\\theta_2 n/d)$ holds "
        "neither $h$ nor $d_K$ nor $d_V$, and returns to that of orthogonal tokens as $n/d\\to 0$.",
        number(layer, fa.derive(layer)), step, mean,
    )


if __name__ == "__main__":
    print(publish(document(), Path(__file__).parent / "out"))
