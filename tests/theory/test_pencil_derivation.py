"""Derivations by the pencil: their steps, written forms and values, and which route `derive` takes."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
import sympy as sp

import freeattn as fa
from freeattn.errors import InputError, NotCoveredError
from freeattn.model.expression import gaussian, wigner
from freeattn.model.letters import copies, space
from freeattn.numerics.dyson_solver import DysonSolver
from freeattn.theory import symbols as sym
from freeattn.theory.derivation import Derivation
from freeattn.theory.derive import derive, symbolic_spec
from freeattn.theory.notation import latex_of, text_of
from freeattn.theory.pencil_route import PencilDerivation
from freeattn.theory.pencil_writing import name_of
from freeattn.theory.transform_route import TransformDerivation
from freeattn.theory.transforms import MarchenkoPastur

WIDEST = 20.0  # points beyond the margin
n, p, h = sp.symbols("n p h", positive=True)
N, P = space("n", n), space("p", p)
X, S = gaussian("X", N, P, 1 / p), wigner("S", N, 1 / n)
HEADS = copies("heads", h)
SIZES = {"beta": 1, "n_tokens": 60, "d_model": 90, "n_heads": 3, "d_key": 20}
LAYER_STEPS = ["layer", "equivalent"]
STEPS = ["model", "pencil", "pattern", "self-energy", "dyson", "reduced", "definitions", "branch", "moments"]


def repeated():
    return X @ X.T @ X + S @ X / 2


def heads():
    """Σ_r (A_r B_rᵀ + W_r) X with h heads."""
    a, b, w = (gaussian(name, N, N, 1 / n, HEADS) for name in "ABW")
    return HEADS.sum((a @ b.T + w) @ X)


LAYERS = {
    "gaussian": {**SIZES, "d_value": 25, "d_out": 70, "inputs": "gaussian"},
    "output-key": {**SIZES, "tie": "output-key"},
    "key-value-output": {**SIZES, "inputs": "gaussian", "tie": "key-value-output"},
    "covariance": {**SIZES, "d_value": 25, "d_out": 70, "inputs": fa.FeatureCovariance((1, 4), (1, 1))},
    "latent": {**SIZES, "d_value": 25, "d_out": 70, "latent": fa.Latent(30)},
    "residual": {**SIZES, "d_value": 25, "d_out": 90, "residual": sp.Rational(1, 2)},
}
SOURCES = {
    "repeated": repeated, "heads": heads, "X": lambda: X,
    **{name: lambda fields=fields: fa.Attention(**fields) for name, fields in LAYERS.items()},
}


def pencil(name: str) -> PencilDerivation:
    found = derive(SOURCES[name]())
    assert isinstance(found, PencilDerivation)
    return found


@pytest.mark.parametrize("name", SOURCES)
def test_steps_and_written_forms(name: str) -> None:
    d = pencil(name)
    names = [step.name for step in d.steps]
    expected = LAYER_STEPS + STEPS if name in LAYERS else STEPS
    assert names[: len(expected)] == expected
    assert ("values" in names) == (name in LAYERS)
    text = d.text()
    for symbol in d.unknowns:
        assert f"{symbol} : {d.system.meaning(symbol)}"[:40] in " ".join(text.split())
    record = json.loads(json.dumps(d.to_dict()))
    assert record["route"] == "pencil"
    assert record["system"]["unknowns"] == [str(u) for u in d.unknowns]
    assert [sp.sympify(e["srepr"]) for e in record["system"]["equations"]] == list(d.equations)
    restored = {e["symbol"]: sp.sympify(e["srepr"]) for e in record["system"]["definitions"]}
    assert restored == {str(symbol): value for symbol, value in d.system.definitions}
    assert set(restored) | set(record["system"]["unknowns"]) <= set(record["system"]["meanings"])


@pytest.mark.parametrize("name", SOURCES)
def test_latex_is_ascii_with_unique_labels(name: str) -> None:
    latex = pencil(name).latex()
    assert latex.isascii()
    assert "[U+" not in latex
    labels = re.findall(r"\\label\{(.*?)\}", latex)
    assert labels
    assert len(labels) == len(set(labels))


@pytest.mark.skipif(shutil.which("pdflatex") is None, reason="pdflatex is not installed")
@pytest.mark.parametrize("name", SOURCES)
def test_latex_compiles(name: str, tmp_path: Path) -> None:
    (tmp_path / "law.tex").write_text(pencil(name).latex(standalone=True), encoding="utf-8")
    run = subprocess.run(
        ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "law.tex"],
        cwd=tmp_path, capture_output=True, text=True, encoding="latin-1", check=False, timeout=60,
    )
    assert run.returncode == 0, run.stdout[-2000:]
    overfull = [float(points) for points in re.findall(r"Overfull \\hbox \(([\d.]+)pt", run.stdout)]
    assert max(overfull, default=0.0) < WIDEST


def step_text(spec: fa.Attention, *names: str) -> str:
    """The named steps of the text, on one line."""
    text = " ".join(derive(spec, route="pencil").text().split())
    titles = {"layer": "1. The layer", "equivalent": "2. The Gauss", "model": "3. The model", "pencil": "4. "}
    order = list(titles)
    return " ".join(text[text.index(titles[a]) : text.index(titles[order[order.index(a) + 1]])] for a in names)


@pytest.mark.parametrize(
    ("fields", "stated"),
    [
        (LAYERS["gaussian"], ["X : n × d, iid N(0, 1)", "Q_r = X W_r^Q", "V_r = X W_r^V",
                              "M = [A₁^⊥V₁, …, A_h^⊥V_h]·W^O"]),
        ({**SIZES, "tie": "key-value"}, ["X Xᵀ = d·I", "V_r = K_r"]),
        (LAYERS["output-key"], ["W^O : in the rows of head r, √(d/w_V)·(W_r^K)ᵀ"]),
        (LAYERS["covariance"], ["rows iid N(0, C)"]),
        (LAYERS["latent"], ["D = X W^D, of width r", "K_r = D U_r^K", "V_r = D U_r^V"]),
        ({**LAYERS["latent"], "position_width": 5, "query_latent": fa.Latent(40, shared=False, normalized=True)},
         ["D_r^Q = X W_r^DQ, of width r_Q, rows then scaled to norm √r_Q", "Q_r = D_r^Q [U_r^Q, U_r^QP]",
          "K_r = [D U_r^K, X W^P]", "√(d_K + d_P)"]),
        (LAYERS["residual"], ["M = X/√d + 1/2·A^⊥"]),
        ({**SIZES, "tie": fa.KeyValueCorrelation(sp.Rational(1, 3)), "value_scale": 2},
         ["V_r = 2·(ρ·K_r + √(1 − ρ²)·V_r′)", "V_r′ = X W_r^V"]),
        ({**LAYERS["gaussian"], "scores": "relu"}, ["f(x) = max(x, 0)", "A_r = f(β·S_r)/n"]),
        ({**LAYERS["gaussian"], "n_kv_heads": 1}, ["the heads of each of h_kv groups share K_r and V_r"]),
    ],
)
def test_the_layer_is_stated(fields: dict[str, object], stated: list[str]) -> None:
    text = step_text(fa.Attention(**fields), "layer")
    assert [words for words in stated if words not in text] == []


def test_the_equivalent_is_stated() -> None:
    text = step_text(fa.Attention(**LAYERS["gaussian"]), "equivalent", "model")
    for words in ("√n·A_r^⊥ ↔ (√θ₂·S_r + √(θ₁−θ₂)·W_r)/√n", "θ₁ = Var g(χ) = exp(β²) − 1", "θ₂ = (E χ·g(χ))² = β²",
                  "β = 1", "letter W is the noise W_r of the equivalent", "entries, scaled into its variance"):
        assert words in text
    linear = step_text(fa.Attention(**LAYERS["gaussian"], scores="linear"), "equivalent", "model")
    assert "letter W " not in linear
    sigmoid = step_text(fa.Attention(**LAYERS["gaussian"], scores="sigmoid"), "equivalent")
    assert "No closed form" in sigmoid
    assert "θ₁ = Var g(χ) θ₂" in sigmoid
    families = [fa.Heads(count=2, d_key=10, d_value=12), fa.Heads(count=1, d_key=20, d_value=10, beta=2)]
    unequal = fa.Attention(n_tokens=60, d_model=90, heads=families, inputs="gaussian")
    assert "θ_1_2, θ_2_2 = θ₁, θ₂ at β = 2" in step_text(unequal, "equivalent")


@pytest.mark.parametrize("name", SOURCES)
def test_auxiliary_symbols_are_defined_before_they_are_used(name: str) -> None:
    d = pencil(name)
    shown = [e for step in d.steps if step.name in ("reduced", "definitions") for e in step.equations]
    known = {e.left for e in shown if e.name.startswith(("unknown", "meaning"))}
    for symbol, _ in d.system.definitions:
        if not symbol.name.startswith("g_"):
            assert symbol in known
            text = " ".join(d.text().split())
            assert text.index(f"{text_of(symbol)} : {d.system.meaning(symbol)}") < text.index("Which root")
    assert "entries that are not listed are zero" in " ".join(d.text().split())


def test_matrices_of_copies_are_told_apart() -> None:
    text = " ".join(pencil("key-value-output").text().split())
    system = pencil("key-value-output").dyson
    blocks = [set(s.blocks) for s in system.sectors]
    twice = [k for k, b in enumerate(blocks, 1) if any(b & other for i, other in enumerate(blocks, 1) if i != k)]
    for k in twice:
        which = "sums to zero over" if system.sectors[k - 1].depth else "all heads share"
        assert re.search(rf"Number {k} is for what {which}", text)
    assert twice
    assert "Number" not in pencil("gaussian").text()


def test_small_words() -> None:
    text, latex = " ".join(pencil("X").text().split()), pencil("gaussian").latex()
    assert not re.search(r"\b1 (small ones|traces|unknowns|equations)", text)
    assert "docs/" not in latex
    assert r"\text{in each of }h" in latex
    assert r"m_1 = \frac{d_O \left(d \theta_1 + n \theta_2\right)}{d n}" in latex


def test_values_name_their_unit() -> None:
    assert "sizes in units of n_tokens (n = 1)" in " ".join(pencil("gaussian").text().split())


def test_the_pencil_is_shown() -> None:
    text = derive(X @ X.T @ S).text()
    assert "X Xᵀ S" in text
    assert "[−z, X, 0, 0, 0, 0]" in text
    assert "S : n × n, symmetric, variance 1/n" in text


@pytest.mark.parametrize(
    ("name", "latex"),
    [("WQ", "W^{Q}"), ("UQP", "U^{QP}"), ("UK2", "U^{K}_{2}"), ("K1°", r"K^{\circ}_{1}"), ("O°", r"O^{\circ}"),
     ("VP°", r"V^{P\circ}"), ("K", "K"), ("X_1", r"X_{\mathsf{1}}"), ("W2", "W_2"),
     ("X(1, 2)", r"X(1,\ 2)"), ("O[1]", "O[1]"),
     ("y12", r"y_{\mathrm{12}}"), ("√C", r"\surd C"), ("x_", r"x\_"), ("x__2", r"x\_\_2"), ("y_j", "y_j"), ("A'", "A'"),
     ("α", r"\alpha"), ("alpha", r"\mathrm{alpha}"), ("x%", r"x\%"), ("é", "[U+00E9]"), ("A^2", r"A\wedge 2")],
)
def test_names_in_latex(name: str, latex: str) -> None:
    assert name_of(name).latex == latex
    assert name_of(name).text == name


ALIKE = (
    "x", "x_", "_x", "x__", "x2", "x_2", "x__2", "x₂", "x²", "x^2", "x'", "x''", "x_2_", "x22", "x_22", "x2_2", "x_a",
    "x_ab", "xa", "xab", "x_a_b", "alpha", "α", "alpha1", "alpha_1", "α1", "A", "A1", "A_1", "AB", "A^B", "A_B",
    "A B", "AB1", "AB_1", "A°", "A°1", "A1°", "A°°", "x-y", "x−y", "x y", "x  y", "xy", "x~y", "x∼y", "x$", "$x$",
    r"x\y", r"\x", "x%", "x&", "x#", "x{", "x}", "x{}", "é", "中", "x\n", "x\t", "12", "1_2", "θ1", "theta1",
    "theta_1", "WT", "Wᵀ", "√C", "x<y", "J_1", "J1", "J_2",
)


NAMED_SIZES = ("n", "n_", "_n", "n_1", "n_2", "n%", "n'", "n_m", "n_m%", "$n", "n#", "n&m", "n_é")


def test_different_names_look_different() -> None:
    seen = {name: "".join(name_of(name).latex.split()).replace("{}", "") for name in ALIKE}
    assert len(set(seen.values())) == len(ALIKE)
    assert "W^{T}" not in seen.values()  # the transpose of W


def test_different_sizes_look_different() -> None:
    """Spaces without a size are symbols of their name."""
    seen = {name: latex_of(sp.Symbol(name)) for name in NAMED_SIZES}
    assert len(set(seen.values())) == len(seen)
    assert seen["n_"] == r"n\_"


@pytest.mark.skipif(shutil.which("pdflatex") is None, reason="pdflatex is not installed")
def test_all_names_are_set_by_latex(tmp_path: Path) -> None:
    names = [name_of(name).latex for name in ALIKE] + [latex_of(sp.Symbol(name)) for name in NAMED_SIZES]
    formulas = "\n\n".join(rf"$M_{{{latex}}} + {{{latex}}}^{{T}} {latex}$" for latex in names)
    document = rf"\documentclass{{article}}\usepackage{{amsmath}}\begin{{document}}{formulas}\end{{document}}"
    (tmp_path / "names.tex").write_text(document, encoding="utf-8")
    run = subprocess.run(
        ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "names.tex"],
        cwd=tmp_path, capture_output=True, text=True, check=False, timeout=60,
    )
    assert run.returncode == 0, run.stdout[-2000:]


def test_letters_of_one_expression_are_told_apart() -> None:
    n = fa.space("n", 64)
    letters = [fa.gaussian(name, n, n, sp.Rational(1, 64)) for name in ("x_", "x", "x_1", "x1")]
    latex = fa.derive(letters[0] @ letters[1] + letters[2] @ letters[3]).latex()
    assert all(form in latex for form in (r"x\_", r"x_{\mathsf{1}}", "x_1"))


@pytest.mark.parametrize("name", ["gaussian", "latent"])
def test_no_name_reads_as_a_product(name: str) -> None:
    latex = pencil(name).latex()
    assert not re.search(r"(?<![A-Za-z\\])[A-Z]{2,}(?=[^A-Za-z]|$)(?!\S*,[xyw]\d)", latex.split("Assumptions")[0])
    assert {"gaussian": r"W^{Q}\,{W^{K}}^{T}\,{X}^{T}", "latent": r"{U^{K}}^{T}\,{D}^{T}\,D\,U^{V}"}[name] in latex


def test_a_large_pencil_is_a_list_of_blocks() -> None:
    steps = {step.name: step for step in pencil("gaussian").steps}
    assert len(pencil("gaussian").pencil.blocks) > 12
    assert len(steps["pencil"].equations) == len(pencil("gaussian").pencil.positions)


def test_marchenko_pastur() -> None:
    """X with rows/columns = n/p: the polynomial of MP, whichever route."""
    d = derive(X)
    definitions = dict(d.system.definitions)
    (equation,) = (e.subs(definitions) for e in d.equations)
    m, z = d.system.output, sym.Z
    known = n / p * z * m**2 + (z + n / p - 1) * m + 1
    assert not sp.cancel(sp.fraction(sp.together(equation))[0] / known).free_symbols & {m, z}
    assert d.moments(2) == (1, (n + p) / p)
    other = derive(MarchenkoPastur(n / p)).polynomial(normalized=False)
    assert sp.cancel(other / known.subs(m, sym.M)).free_symbols <= {n, p}


@pytest.mark.parametrize("tie", ["none", "key-value"])
def test_both_routes_have_one_law(tie: str) -> None:
    """Moments agree exactly, and the reduced system holds on the Stieltjes transform of the closed law."""
    fields = {**SIZES, "d_out": 70, "tie": tie} if tie != "none" else {**SIZES, "d_value": 25, "d_out": 70}
    spec = fa.Attention(**fields)
    closed, words = derive(spec, route="transform"), derive(spec, route="pencil")
    assert isinstance(closed, TransformDerivation)
    assert isinstance(words, PencilDerivation)
    for left, right in zip(closed.moments(3), words.moments(3), strict=True):
        assert sp.cancel(left - right) == 0
    if len(words.unknowns) == 1:
        values = {**dict(words.values)}
        z = 0.9 + 0.4j
        known = {sym.Z: z, words.unknowns[0]: complex(fa.law(spec).stieltjes(z))}
        for symbol, value in words.system.definitions:
            known[symbol] = complex(value.subs(values).subs(known))
        assert abs(complex(words.equations[0].subs(values).subs(known))) < 1e-10


def test_route_is_chosen_by_what_is_known() -> None:
    assert isinstance(derive(symbolic_spec()), TransformDerivation)
    assert isinstance(derive(fa.Attention(**LAYERS["gaussian"])), PencilDerivation)
    assert isinstance(derive(MarchenkoPastur(2)), Derivation)
    with pytest.raises(NotCoveredError):
        derive(fa.Attention(**LAYERS["gaussian"]), route="transform")


def test_what_does_not_fit_is_refused() -> None:
    with pytest.raises(InputError, match="route"):
        derive(X, route="transform")
    with pytest.raises(InputError, match="route"):
        derive(MarchenkoPastur(2), route="pencil")
    with pytest.raises(InputError, match="route"):
        derive(X, route="other")
    with pytest.raises(InputError, match="of"):
        derive(symbolic_spec(), of="cogram")
    with pytest.raises(InputError, match="of"):
        derive(X, of="transpose")
    with pytest.raises(InputError, match="source"):
        derive("bert-base")  # type: ignore[arg-type]


def test_symbolic_layers() -> None:
    d = derive(symbolic_spec(), route="pencil")
    first = d.moments(1, general=True)[0].subs(dict(d.values))
    size = {s.name: s for s in first.free_symbols}
    expected = size["d_out"] / size["n_tokens"] * (sp.exp(sym.BETA**2) - 1)
    assert sp.cancel(first - expected) == 0


@pytest.mark.parametrize("of", ["gram", "cogram"])
def test_laws_of_both_products(of: str) -> None:
    """m_k of MᵀM is (rows/columns)·m_k of M Mᵀ."""
    ratio = {"gram": 1, "cogram": n / p}[of]
    assert sp.cancel(derive(X, of=of).moments(1)[0] - ratio) == 0


def test_law_of_a_self_adjoint_expression() -> None:
    """S itself is a semicircle: m₁ = 0, m₂ = 1, and 1 + zm + m² = 0."""
    d = derive(S, of="self-adjoint")
    assert d.moments(2) == (0, 1)
    definitions = dict(d.system.definitions)
    (equation,) = (e.subs(definitions) for e in d.equations)
    m = d.system.output
    assert sp.cancel(sp.fraction(sp.together(equation))[0] / (1 + sym.Z * m + m**2)).is_number


@pytest.mark.parametrize("name", ["covariance", "latent", "residual", "output-key"])
def test_reduced_system_of_layers_holds_at_the_solution(name: str) -> None:
    """Newton's unknowns from the solver: m, and traces that are read off; equations vanish."""
    d = pencil(name)
    values = {**dict(d.values)}
    z = np.array([0.7 + 0.5j])
    solution = DysonSolver(d.dyson, values).solve(z)
    traces = {d.dyson.symbol(t): complex(v) for t, v in zip(d.dyson.entering, solution.traces[0], strict=True)}
    known = {sym.Z: complex(z[0]), **{u: traces[u] for u in d.unknowns}}
    for symbol, value in d.system.definitions:
        known[symbol] = complex(value.subs(values).subs(known))
        if symbol in traces:
            assert abs(known[symbol] / traces[symbol] - 1) < 1e-8
    for equation in d.equations:
        terms = [complex(term.subs(values).subs(known)) for term in sp.Add.make_args(equation)]
        assert abs(sum(terms)) < 1e-10 * sum(map(abs, terms))
