"""Every equation of a derivation is read back, from LaTeX and from text, and has the value of its expression."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import pytest
import sympy as sp
from latex_reader import displays, plain, read, read_matrix, read_text, sides
from test_latex import SOURCES
from test_pencil_derivation import SOURCES as WORDS

import freeattn as fa
from freeattn.theory.derivation import Derivation
from freeattn.theory.derive import symbolic_spec
from freeattn.theory.notation import Notation
from freeattn.theory.pencil_route import PencilDerivation
from freeattn.theory.steps import Equation, Vanishing
from freeattn.theory.writing import text_equation

DIGITS, CLOSE = 30, 1e-20  # sums of some dozen terms at 30 digits
DEFINED = {"curve-psi": "psi", "curve-start": "x_0", "curve-point": "x", "curve-stieltjes": "m"}


def kind(spec: fa.Attention) -> tuple[object, ...]:
    """What the form of the equations depends on; sizes are numbers in them."""
    latents = (spec.latent, spec.query_latent)
    return (spec.tie, spec.scores, spec.position_width != 0, spec.n_kv_heads == spec.n_heads, *(
        latent and (latent.shared, latent.normalized) for latent in latents
    ))


PRESETS = {preset.name: fa.architecture(preset.name, n_tokens=64) for preset in fa.architectures()}
FIRST = {kind(spec): name for name, spec in reversed(PRESETS.items())}  # one preset of each kind
ROUTES = {
    **{name: (source, None) for name, source in SOURCES.items()},
    **{f"words-{name}": (source, None) for name, source in WORDS.items()},
    **{f"pencil-{output}-{tie}": (symbolic_spec(output, tie), "pencil")
       for output, tie in (("mha", "none"), ("values", "none"), ("attention", "none"), ("head-sum", "none"),
                           ("mha", "key-value"), ("values", "key-value"))},
    **{f"preset-{name}": (PRESETS[name], None) for name in FIRST.values()},
}
NAMES = [pytest.param(name, marks=[pytest.mark.slow] if name.startswith("preset-") else []) for name in ROUTES]


def derivation(name: str) -> Derivation:
    source, route = ROUTES[name]
    return fa.derive(source() if callable(source) else source, route=route)


def value(expression: Any, seed: str) -> sp.Expr:
    """At a random point that depends on the seed and on the names of symbols only."""
    expression = sp.sympify(expression)
    at = {s: sp.Float(random.Random(f"{seed} {s.name}").uniform(0.5, 2), DIGITS) for s in expression.free_symbols}
    return sp.N(expression.xreplace(at), DIGITS)


def agree(found: sp.Expr, expected: sp.Expr) -> bool:
    for seed in "ab":
        one, two = value(found, seed), value(plain(sp.sympify(expected)), seed)
        if not (one.is_number and two.is_number and abs(one - two) <= CLOSE * (1 + abs(two))):
            return False
    return True


def symbols_for_functions(expression: sp.Expr) -> sp.Expr:
    """Π(−w), ψ(q), … by the symbols that stand for them."""
    return expression.replace(
        lambda part: isinstance(part, sp.core.function.AppliedUndef), lambda part: sp.Symbol(part.func.__name__)
    )


def exact(equation: Equation | Vanishing) -> sp.Expr | None:
    if isinstance(equation, Vanishing):
        return equation.expression
    return equation.exact if isinstance(equation.right, Notation) else equation.right


def pairs(d: Derivation) -> Iterator[tuple[str, Equation | Vanishing]]:
    """(formula of the document, equation) in order."""
    return zip(displays(d.latex()), (e for step in d.steps for e in step.equations), strict=True)


@pytest.mark.parametrize("name", NAMES)
def test_latex_reads_back(name: str) -> None:
    known: dict[sp.Symbol, sp.Expr] = {}
    count = 0
    for formula, equation in pairs(derivation(name)):
        expected = exact(equation)
        if expected is None:
            continue
        parts = sides(formula)
        found = symbols_for_functions(read(parts[0 if isinstance(equation, Vanishing) else 1]))
        if equation.name in DEFINED:
            found = found.subs(known)
            known[sp.Symbol(DEFINED[equation.name])] = found
        assert agree(found, expected), f"{equation.name}: {formula}"
        if isinstance(equation, Equation) and not isinstance(equation.left, Notation):
            assert agree(symbols_for_functions(read(parts[0])), equation.left), f"{equation.name}: {formula}"
        if isinstance(equation, Equation) and equation.numeric is not None:
            assert abs(read(parts[2]) / equation.right - 1) < 1e-14
        count += 1
    assert count >= 6


@pytest.mark.parametrize("name", NAMES)
def test_text_reads_back(name: str) -> None:
    known: dict[sp.Symbol, sp.Expr] = {}
    for step in derivation(name).steps:
        for equation in step.equations:
            expected = exact(equation)
            if expected is None:
                continue
            left, right, *_ = text_equation(equation).replace(" ≈ ", " = ").split(" = ")
            found = read_text(left if isinstance(equation, Vanishing) else right)
            if equation.name in DEFINED:
                found = found.subs(known)
                known[sp.Symbol(DEFINED[equation.name])] = found
            assert agree(found, expected), f"{equation.name}: {text_equation(equation)}"


@pytest.mark.parametrize("name", [name for name in ROUTES if name.startswith(("words-", "pencil-"))])
def test_small_matrices_read_back(name: str) -> None:
    """Left and right of the matrix Dyson equation, with the self-energy that the document lists."""
    d = derivation(name)
    assert isinstance(d, PencilDerivation)
    read_off: dict[int, dict[str, sp.Matrix]] = {}
    energy: dict[sp.Symbol, sp.Expr] = {}
    for formula, equation in pairs(d):
        kind, _, rest = equation.name.partition("-")
        left, right = [*sides(formula), ""][:2]
        if equation.name.startswith("self-energy"):
            energy[read(left)] = read(right)
        if kind == "dyson" and not left.startswith(("(G_", "(A_", "G_")):
            number = int(rest.split("-")[0])
            inner = right.removesuffix("^{-1}")
            read_off[number] = {"left": read_matrix(left), "right": read_matrix(inner)}
    assert read_off
    for number, sides_read in read_off.items():
        sector = d.dyson.sectors[number - 1]
        for found, expected in (
            (sides_read["left"], d.dyson.inverse(sector)),
            (sides_read["right"].xreplace(energy), d.dyson.matrix(sector)),
        ):
            assert found.shape == expected.shape
            assert all(agree(one, two) for one, two in zip(found, expected, strict=True)), f"sector {number}"


@pytest.mark.parametrize(("latex", "expected"), [
    (r"a \left(1 - \frac{b}{2}\right)^{2} - \sqrt{c}", "a*(1 - b/2)**2 - sqrt(c)"),
    (r"e^{\beta^{2}} - 1", "exp(beta**2) - 1"),
    (r"\bigl(a + b\bigr) c^{3}", "(a + b)*c**3"),
    (r"\min\{1, h\}", "Min(1, h)"),
    (r"\mathrm{scale}_{\mathrm{x,y1}}", "scale_x_y1"),
])
def test_reader(latex: str, expected: str) -> None:
    assert sp.expand(read(latex) - plain(sp.sympify(expected, {"beta": sp.Symbol("beta")}))) == 0


def test_a_wrong_formula_is_told_apart() -> None:
    assert not agree(read(r"\frac{a}{b} + c"), sp.sympify("a/(b + c)"))
    assert not agree(read(r"output_{\mathrm{scale}}"), sp.Symbol("output_scale"))
