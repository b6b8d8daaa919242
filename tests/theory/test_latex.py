"""LaTeX of derivations: what it contains, and that pdflatex accepts it with no line far too wide."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest
import sympy as sp

import freeattn as fa
from freeattn.theory.breaking import lines_of, width_of
from freeattn.theory.derive import derive, symbolic_spec
from freeattn.theory.latex_words import latex_words
from freeattn.theory.transforms import Discrete, FreeProduct, FreeSum, Image, MarchenkoPastur, Semicircle

HALF = sp.Rational(1, 2)
WIDEST = 20.0  # points beyond the margin
BERT = {"name": "bert-base", "n_tokens": 512}
SOURCES = {
    **{f"symbolic-{output}": symbolic_spec(output) for output in ("mha", "values", "attention", "head-sum")},
    "symbolic-tied-mha": symbolic_spec("mha", "key-value"),
    "symbolic-tied-values": symbolic_spec("values", "key-value"),
    "symbolic-sigmoid": symbolic_spec("values", scores="sigmoid"),
    "symbolic-relu": symbolic_spec("mha", scores="relu"),
    "bert-base": fa.architecture(**BERT),
    "bert-base-tied": fa.architecture(**BERT, tie="key-value"),
    "bert-base-linear": fa.architecture(**BERT, scores="linear", value_scale=2),
    "awkward-numbers": fa.Attention(
        n_tokens=1009, d_model=1013, n_heads=7, d_key=101, output="values", tie="key-value", beta=sp.Rational(123, 457)
    ),
    "endless-heads": fa.Attention.from_ratios(HALF, 3, 2, n_heads=float("inf")),
    "product": FreeProduct((MarchenkoPastur(HALF), MarchenkoPastur(sp.Rational(4, 5)))),
    "sum": FreeSum((MarchenkoPastur(HALF), Semicircle(sp.Integer(1)))),
    "no-mean": FreeSum((Discrete((-1, 1), (HALF, HALF)), Semicircle(sp.Symbol("v", positive=True)))),  # type: ignore[arg-type]
    "two-bases": FreeProduct((
        Image(MarchenkoPastur(HALF), (1, 2)), Image(MarchenkoPastur(sp.Symbol("t", positive=True)), (1, 1)),  # type: ignore[arg-type]
    )),
}


@pytest.mark.skipif(shutil.which("pdflatex") is None, reason="pdflatex is not installed")
@pytest.mark.parametrize("name", SOURCES)
def test_compiles(name: str, tmp_path: Path) -> None:
    (tmp_path / "law.tex").write_text(derive(SOURCES[name]).latex(standalone=True), encoding="utf-8")
    run = subprocess.run(
        ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "law.tex"],
        cwd=tmp_path, capture_output=True, text=True, check=False, timeout=60,
    )
    assert run.returncode == 0, run.stdout[-2000:]
    overfull = [float(points) for points in re.findall(r"Overfull \\hbox \(([\d.]+)pt", run.stdout)]
    assert max(overfull, default=0.0) < WIDEST
    assert (tmp_path / "law.pdf").stat().st_size > 0


@pytest.mark.skipif(shutil.which("pdflatex") is None, reason="pdflatex is not installed")
def test_fragment_compiles_in_a_plain_article(tmp_path: Path) -> None:
    document = "\\documentclass{article}\n\\usepackage{amsmath}\n\\begin{document}\n%s\\end{document}\n"
    (tmp_path / "law.tex").write_text(document % derive(symbolic_spec()).latex(), encoding="utf-8")
    run = subprocess.run(
        ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "law.tex"],
        cwd=tmp_path, capture_output=True, text=True, check=False, timeout=60,
    )
    assert run.returncode == 0, run.stdout[-2000:]


def test_equations_of_the_layer() -> None:
    latex = derive(symbolic_spec()).latex()
    for formula in (
        r"\lambda^{2} w - \lambda \left(1 - \frac{c w}{\gamma_K}\right) \Pi(-w)"
        r" - \frac{c \left(1 - c\right)}{\gamma_K} \Pi(-w)^{2} = 0",
        r"\Pi(z) = \left(1 + z\right)\left(1 + \frac{z}{h}\right)"
        r"\left(1 + \frac{z}{\gamma_V}\right)\left(1 + \frac{z}{\gamma_O}\right)",
        r"\nu = \rho_{\gamma_K} \boxtimes \mathrm{MP}_{1/h} \boxtimes \mathrm{MP}_{1/\gamma_V}"
        r" \boxtimes \pi_{\gamma_O}",
        r"\theta_1 = e^{\beta^{2}} - 1",
        r"\label{eq:freeattn-polynomial}",
        r"\label{eq:freeattn-stieltjes}",
    ):
        assert formula in latex
    assert r"\documentclass" not in latex


def test_changing_a_factor_changes_the_latex() -> None:
    law = derive(symbolic_spec()).law
    assert isinstance(law, FreeProduct)
    changed = derive(FreeProduct(law.factors[:1] + law.factors[2:])).latex()
    product = r"\left(1 + z\right)\left(1 + \frac{z}{\gamma_V}\right)\left(1 + \frac{z}{\gamma_O}\right)"
    assert rf"\Pi(z) = {product}" in changed


@pytest.mark.parametrize("name", SOURCES)
def test_is_plain_ascii_with_unique_labels(name: str) -> None:
    latex = derive(SOURCES[name]).latex()
    assert latex.isascii()
    assert "[U+" not in latex
    labels = re.findall(r"\\label\{(.*?)\}", latex)
    assert labels
    assert len(labels) == len(set(labels))


def test_sources_are_listed() -> None:
    latex = derive(symbolic_spec()).latex()
    sources = latex[latex.index("Sources") :]
    for name in ("arXiv 2610.10033", "Nica-Speicher", "Belinschi-Bercovici"):
        assert name in sources


def test_words() -> None:
    assert latex_words("n_tokens ≤ d_model") == r"\texttt{n\_tokens} $\le$ \texttt{d\_model}"
    assert latex_words("X Xᵀ/d_model = I, 100 %") == r"$X$ $X^{T}$/\texttt{d\_model} $=$ $I$, 100 \%"
    assert latex_words("A law for J. Math.") == "A law for J. Math."


def test_widths_and_lines() -> None:
    assert width_of(r"\frac{a b c}{d}") < width_of("a b c d e f")
    assert width_of(r"\gamma_K") < 2
    lines = lines_of(["+ aaaa"] * 6, 20, 15)
    assert len(lines) > 1
    assert " ".join(lines).count("+ aaaa") == 6
    assert all(width_of(line) <= 20 for line in lines)
