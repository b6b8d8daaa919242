"""The layer in formulas: the matrix M, the ratios, and the Gaussian equivalent (arXiv 2610.10033, sections 2-3)."""

from __future__ import annotations

import sympy as sp

from freeattn.model.attention import Attention
from freeattn.theory import symbols as sym
from freeattn.theory.equivalent import GaussianEquivalent
from freeattn.theory.notation import Notation

__all__ = ["definition_of", "equivalent_equations", "matrix_of", "sizes", "theta_definitions"]

N = Notation


def sizes(*names: str) -> tuple[sp.Symbol, ...]:
    """Positive integer symbols for sizes, equal wherever they are made."""
    return tuple(sp.Symbol(name, positive=True, integer=True) for name in names)


_TOKENS, _HEADS, _KV_HEADS, _KEY, _VALUE, _OUT = sizes("n_tokens", "n_heads", "n_kv_heads", "d_key", "d_value", "d_out")

_RATIOS = {
    sym.GAMMA_KEY: _HEADS * _KEY / _TOKENS,
    sym.GAMMA_KV: _KV_HEADS * _KEY / _TOKENS,
    sym.GAMMA_VALUE: _HEADS * _VALUE / _TOKENS,
    sym.GAMMA_OUT: _OUT / _TOKENS,
    sym.HEADS: _HEADS,
    sym.SCALE: (sp.Symbol("value_scale", positive=True) * sp.Symbol("output_scale", positive=True)) ** 2,
}

_ROWS = N(r"A_1^{\perp}V_1,\dots,A_h^{\perp}V_h", "A₁^⊥V₁, …, A_h^⊥V_h")
_MATRICES = {
    "mha": N(rf"[{_ROWS.latex}]\,W^O", f"[{_ROWS.text}]·W^O"),
    "values": N(rf"[{_ROWS.latex}]", f"[{_ROWS.text}]"),
    "attention": N(r"\sqrt{n/h}\,[A_1^{\perp},\dots,A_h^{\perp}]", "√(n/h)·[A₁^⊥, …, A_h^⊥]"),
    "head-sum": N(r"\sqrt{nh}\cdot\tfrac1h(A_1^{\perp}+\dots+A_h^{\perp})", "√(n·h)·(A₁^⊥ + … + A_h^⊥)/h"),
}
_TIED = N(r",\quad V_r=K_r", ", V_r = K_r")


def matrix_of(spec: Attention) -> Notation:
    """The matrix whose squared singular values are asked for."""
    matrix = _MATRICES[spec.output]
    return N(matrix.latex + _TIED.latex, matrix.text + _TIED.text) if spec.tie.value == "key" else matrix


def definition_of(symbol: sp.Symbol, equivalent: GaussianEquivalent) -> sp.Expr:
    """What a symbol stands for: ratios in sizes, θ₁, θ₂ and c in β; the symbol itself where there is no closed form."""
    thetas = equivalent.spec.scores.exact_thetas(sym.BETA, sp)
    if symbol in _RATIOS:
        return _RATIOS[symbol]
    if thetas is None:
        return symbol
    first, second = (sp.sympify(theta) for theta in thetas)
    return {sym.THETA_1: first, sym.THETA_2: second, sym.C: sp.cancel(second / first)}[symbol]


def theta_definitions(spec: Attention) -> tuple[Notation, Notation]:
    """θ₁ and θ₂ in terms of g, or of one row of n weights A₁, …, A_n over iid scores βχ₁, …, βχ_n."""
    if not spec.finite_size:
        return (N(r"\operatorname{Var}g(\chi)", "Var g(χ)"),
                N(r"\bigl(\mathrm{E}\,\chi g(\chi)\bigr)^2", "(E χ·g(χ))²"))
    row = N(r"A_1=f(\beta\chi_1)/\sum_{j\le n}f(\beta\chi_j)", "A₁ = f(β·χ₁)/Σ_{j≤n} f(β·χ_j)")
    return (N(rf"\operatorname{{Var}}(nA_1),\quad {row.latex},\quad n={spec.n_tokens}",
              f"Var(n·A₁), {row.text}, n = {spec.n_tokens}"),
            N(r"\bigl(\mathrm{E}\,\chi_1 nA_1\bigr)^2", "(E χ₁·n·A₁)²"))


def equivalent_equations(equivalent: GaussianEquivalent) -> tuple[tuple[sp.Expr | Notation, sp.Expr | Notation], ...]:
    """(left, right) of: the replacement, θ₁, θ₂, c."""
    thetas = equivalent.spec.scores.exact_thetas(sym.BETA, sp)
    values: tuple[sp.Expr | Notation, ...]
    if thetas is None:
        first, second = theta_definitions(equivalent.spec)
        values = (first, N(second.latex + r",\quad \chi\sim N(0,1)", f"{second.text}, χ ~ N(0, 1)"))
    else:
        values = tuple(sp.sympify(theta) for theta in thetas)
    return (
        (N(r"\sqrt n\,A_r^{\perp}", "√n·A_r^⊥"),
         N(r"\bigl(\sqrt{\theta_2}\,S_r+\sqrt{\theta_1-\theta_2}\,W_r\bigr)/\sqrt n", "(√θ₂·S_r + √(θ₁−θ₂)·W_r)/√n")),
        (sym.THETA_1, values[0]),
        (sym.THETA_2, values[1]),
        (sym.C, N(r"\theta_2/\theta_1", "θ₂/θ₁")),
    )
