"""The equations of a derivation, built from its stages; `exposition` puts them in order and adds the words."""

from __future__ import annotations

import re

import sympy as sp

from freeattn.theory import symbols as sym
from freeattn.theory.branch import product_form
from freeattn.theory.forms import oriented, split_free, tidy
from freeattn.theory.law_names import LawNames
from freeattn.theory.mean_one import Factor, ScalarEquation, relation_of
from freeattn.theory.notation import PSI, X_0, Notation, latex_of, rank_of, text_of
from freeattn.theory.stages import Transform
from freeattn.theory.steps import Equation, Piece, Term, Vanishing
from freeattn.theory.system import Parametrization
from freeattn.theory.transforms import CompoundFreePoisson, FreePoisson, Image, Law, MarchenkoPastur

__all__ = [
    "at", "base_equations", "curve_equations", "hat", "in_words", "law_equations", "polynomial", "product", "rest",
    "root", "say", "stieltjes", "transform_of",
]

N = Notation

_GLOSSARY: dict[str, Piece] = {
    "S": N("S", "S"),
    "R": N("R", "R"),
    "n": N("n", "n"),
    "M": N("M", "M"),
    "m": N("m(z)", "m(z)"),
    "mean": N(r"\bar m", "m̄"),
    "nu": N(r"\nu", "ν"),
    "times": N(r"\boxtimes", "⊠"),
    "plus": N(r"\boxplus", "⊞"),
    "Pi": N(r"\Pi", "Π"),
}


def say(template: str, **pieces: Piece) -> tuple[Piece, ...]:
    """A sentence with formulas: {name} stands for a piece given here or in the glossary."""
    known = {**_GLOSSARY, **pieces}
    parts: list[Piece] = list(re.split(r"\{(\w+)\}", template))
    return tuple(known[str(part)] if k % 2 else part for k, part in enumerate(parts) if k % 2 or part)


def at(letter: str, law: Notation, argument: str | Notation) -> Notation:
    """letter_law(argument), such as S_ρ(w)."""
    inside = N(argument, argument) if isinstance(argument, str) else argument
    return N(rf"{letter}_{{{law.latex}}}({inside.latex})", f"{letter}_{law.text}({inside.text})")


def law_equations(names: LawNames) -> tuple[Equation, ...]:
    """The law in the algebra of free convolutions, and the images that have a letter."""
    images = (
        Equation(f"image-{k}", letter, in_words(image, names)) for k, (image, letter) in enumerate(names.images.items())
    )
    return (Equation("law", N(r"\nu", "ν"), names.of(names.law), main=True), *images)


def in_words(law: Law, names: LawNames) -> Notation:
    """An image as law of φ(x), x ~ …; anything else as it is written."""
    if not isinstance(law, Image):
        return names.of(law)
    inner, x = names.of(law.law), sp.Symbol("x")
    value = sp.Add(*(a * x**k for k, a in enumerate(law.coefficients)))
    return N(
        rf"\text{{law of }}{latex_of(value)},\quad x\sim {inner.latex}",
        f"law of {text_of(value)}, x ~ {inner.text}",
    )


def transform_of(transform: Transform, names: LawNames, label: str) -> Equation | None:
    """The S-transform of a node, or its R-transform; None where the rule of the node says it all."""
    law, name = transform.law, names.of(transform.law)
    if isinstance(law, CompoundFreePoisson) and transform.s is None:
        inner, t = names.of(law.law), law.rate
        below = t + sym.W
        return Equation(label, at("S", name, "w"), N(
            rf"\frac{{S_{{{inner.latex}}}(w/{latex_of(t)})}}{{{latex_of(below)}}}",
            f"S_{inner.text}(w/{text_of(t)})/({text_of(below)})",
        ))
    if law.children and not isinstance(law, Image):
        return None
    if transform.s is not None and (transform.r is None or isinstance(law, (MarchenkoPastur, FreePoisson))):
        return Equation(label, at("S", name, "w"), transform.s)
    return None if transform.r is None else Equation(label, at("R", name, "z"), transform.r)


# The law of mean one ---------------------------------------------------------------------------------------------


def hat(factor: Factor, scalar: ScalarEquation, names: LawNames) -> Notation:
    """The name of a base law of mean one: a hat over the letter of the image it comes from, or over ν_k."""
    if factor.origin in names.images:
        return names.hat(factor.origin)
    k = scalar.base.index(factor) + 1
    return N(rf"\hat{{\nu}}_{k}", f"ν̂_{k}")


def base_equations(scalar: ScalarEquation, names: LawNames) -> list[Equation | Vanishing]:
    """What each base law is, the relation that its S-transform satisfies, and S itself where a square root gives it."""
    equations: list[Equation | Vanishing] = []
    for k, factor in enumerate(scalar.base):
        name = hat(factor, scalar, names)
        terms = tuple(Term(sp.Integer(1), a, sym.S**power) for power, a in _relation(factor))
        equations += [
            Equation(f"base-{k}", name, in_words(factor.law, names)),
            Vanishing(f"base-relation-{k}", terms, main=False),
        ]
        closed = _closed_form(factor)
        if closed is not None:
            equations.append(Equation(f"base-closed-{k}", at("S", name, "w"), closed))
    return equations


def _relation(factor: Factor) -> list[tuple[int, sp.Expr]]:
    """(power of S, coefficient), descending; the last coefficient has no factor free of w, the first has sign plus."""
    terms = sp.Poly(relation_of(factor.law), sym.S).terms()
    unit = split_free(tidy(terms[-1][1], sym.W), sym.W)[0]
    if tidy(terms[0][1] / unit, sym.W).could_extract_minus_sign():
        unit = -unit
    return [(k, tidy(a / unit, sym.W)) for (k,), a in terms]


def _closed_form(factor: Factor) -> sp.Expr | None:
    """S = 2/(−B + √(B² − 4A)) for A S² + B S + 1 = 0 with A = 0 and B = −1 at w = 0."""
    coefficients = dict(_relation(factor))
    if set(coefficients) != {0, 1, 2} or abs(coefficients[0]) != 1 or coefficients[2].subs(sym.W, 0) != 0:
        return None
    a, b = (coefficients[k] / coefficients[0] for k in (2, 1))
    return 2 / (-b + sp.sqrt(sp.expand(b**2 - 4 * a)))


# The scalar equation ---------------------------------------------------------------------------------------------


def root(scalar: ScalarEquation, names: LawNames) -> Equation:
    """λ w S_base(−w) = Π(−w)."""
    left = N(r"\lambda w", "λ·w")
    for factor in scalar.base:
        scale = factor.scale
        inside = N("-w", "−w") if scale == 1 else N(f"-w/{latex_of(scale)}", f"−w/{text_of(scale)}")
        part = at("S", hat(factor, scalar, names), inside)
        left = N(rf"{left.latex}\,{part.latex}", f"{left.text}·{part.text}")
    return Equation("root", left, sym.PI_FACTOR)


def product(name: str, scalar: ScalarEquation) -> Equation:
    """Π(z) = …"""
    return Equation(name, N(r"\Pi(z)", "Π(z)"), _in_order(scalar.product), main=True, exact=scalar.product)


def rest(name: str, scalar: ScalarEquation) -> Equation:
    """Π₁(z) = Π(z)/(1 + z) = …"""
    return Equation(name, N(r"\Pi_1(z)", "Π₁(z)"), _in_order(scalar.rest), exact=scalar.rest)


def _in_order(expression: sp.Expr) -> Notation | sp.Expr:
    """A product of powers of sums in the order (1 + z)(1 + z/h)…; anything else as it is."""
    factors = [factor.as_base_exp() for factor in sp.Mul.make_args(expression)]
    if not all(base.is_Add and power.is_Integer and power > 0 for base, power in factors):
        return expression
    plain = (1 + sym.Z, 1 + PSI)
    ordered = sorted(factors, key=lambda f: (f[0] not in plain, rank_of(f[0]), str(f[0])))
    latex = [rf"\left({latex_of(base)}\right)" + (f"^{power}" if power > 1 else "") for base, power in ordered]
    text = [f"({text_of(base)})" if power == 1 else text_of(base**power) for base, power in ordered]
    return N("".join(latex), "".join(text))


def polynomial(name: str, scalar: ScalarEquation) -> Vanishing:
    """The equation in λ, w and Π(−w)."""
    return Vanishing(name, tuple(Term(sym.LAMBDA**i, a, sym.PI_FACTOR**j) for i, j, a in scalar.terms))


def stieltjes(name: str, scalar: ScalarEquation) -> Vanishing:
    """The equation in z, m, w = 1 + z m and Π₁(−w)."""
    terms = scalar.stieltjes_terms
    return Vanishing(name, tuple(Term(sym.Z**k * sym.M**j, a, sym.PI_REST**j) for k, j, a in terms))


# The curve -------------------------------------------------------------------------------------------------------


def curve_equations(curve: Parametrization, mean: sp.Expr) -> tuple[Equation, ...]:
    """ψ(q), x(q) (through x₀(q) and ψ(q) where the curve has a product form) and m(q)."""
    exact = sp.Mul(*(base**power for base, power in curve.point))
    equations = [Equation("curve-psi", PSI, oriented(curve.psi, sym.Q))]
    form = product_form(curve, mean)
    right: sp.Expr | Notation = exact
    if form is not None:
        equations.append(Equation("curve-start", X_0, oriented(1 / form.start, sym.Q)))
        right = front = form.unit * X_0
        if form.rates:
            factors = _in_order(sp.Mul(*(1 + y * PSI for y in form.rates)))
            right = N(f"{latex_of(front)} {latex_of(factors)}", f"{text_of(front)}·{text_of(factors)}")
    m = sp.Mul(*(base**power for base, power in curve.stieltjes))
    short = N(r"-\frac{1+\psi(q)}{x(q)}", "−(1 + ψ(q))/x(q)")
    return (
        *equations,
        Equation("curve-point", N("x(q)", "x(q)"), right, main=True, exact=exact),
        Equation("curve-stieltjes", N("m(q)", "m(q)"), short, main=True, exact=m),
    )
