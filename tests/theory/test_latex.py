"""LaTeX of derivations: what it contains, and that pdflatex accepts it with no line far too wide."""

from __future__ import annotations

import dataclasses
import re
import shutil
import subprocess
from pathlib import Path

import pytest
import sympy as sp

import freeattn as fa
from freeattn.theory import assumptions
from freeattn.theory.bibliography import bibliography, cited, keys_in
from freeattn.theory.breaking import lines_of, width_of
from freeattn.theory.derive import derive, symbolic_spec
from freeattn.theory.latex_words import latex_words
from freeattn.theory.rendering import LatexOptions, latex_body, latex_document
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


DATA = Path(fa.__file__).parent / "theory" / "data"
ROUTES = {
    **{name: (source, None) for name, source in SOURCES.items()},
    **{f"pencil-{output}": (symbolic_spec(output), "pencil") for output in ("mha", "head-sum")},
}


def compiled(latex: str, folder: Path, bibtex: bool = False) -> str:
    """What the last run of pdflatex says."""
    (folder / "law.tex").write_text(latex, encoding="utf-8")
    for name in ("freeattn.sty", "references.bib"):
        shutil.copy(DATA / name, folder)
    latex_run = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "law.tex"]
    said = ""
    for command in (latex_run, *([["bibtex", "law"], latex_run] if bibtex else []), latex_run):
        run = subprocess.run(
            command, cwd=folder, capture_output=True, text=True, encoding="latin-1", check=False, timeout=60
        )
        assert run.returncode == 0, run.stdout[-2000:]
        said = run.stdout
    assert (folder / "law.pdf").stat().st_size > 0
    return said


def assert_clean(said: str) -> None:
    """No line far too wide, no reference or citation without its target."""
    overfull = [float(points) for points in re.findall(r"Overfull \\hbox \(([\d.]+)pt", said)]
    assert max(overfull, default=0.0) < WIDEST
    assert not re.search(r"undefined|multiply.defined", said)


needs_latex = pytest.mark.skipif(shutil.which("pdflatex") is None, reason="pdflatex is not installed")


@needs_latex
@pytest.mark.parametrize("macros", [False, True])
@pytest.mark.parametrize("name", ROUTES)
def test_compiles(name: str, macros: bool, tmp_path: Path) -> None:
    source, route = ROUTES[name]
    assert_clean(compiled(derive(source, route=route).latex(standalone=True, macros=macros), tmp_path))


@needs_latex
@pytest.mark.skipif(shutil.which("bibtex") is None, reason="bibtex is not installed")
def test_macros_and_bibliography_in_a_document_of_ones_own(tmp_path: Path) -> None:
    document = (
        "\\documentclass{article}\n\\usepackage{freeattn}\n\\begin{document}\n%s"
        "\\bibliographystyle{plain}\n\\bibliography{references}\n\\end{document}\n"
    )
    said = compiled(document % derive(symbolic_spec()).latex(macros=True), tmp_path, bibtex=True)
    assert_clean(said)
    entries = (tmp_path / "law.bbl").read_text(encoding="utf-8")
    assert "Lectures on the Combinatorics of Free Probability" in " ".join(entries.split())


@needs_latex
def test_several_derivations_in_one_document(tmp_path: Path) -> None:
    bodies = []
    for name in ("attention", "values"):
        d = derive(symbolic_spec(name))
        options = LatexOptions(prefix=name, macros=True, citations=True)
        bodies.append((f"The law of {name}", latex_body(d.steps, d.assumptions, d.rules, options)))
    latex = latex_document(bodies, LatexOptions(macros=True, citations=True), "Two laws")
    labels = re.findall(r"\\label\{(.*?)\}", latex)
    assert {"eq:attention-polynomial", "eq:values-polynomial"} <= set(labels)
    assert len(labels) == len(set(labels))
    assert_clean(compiled(latex, tmp_path))


@pytest.mark.parametrize("name", ROUTES)
def test_macros_stand_for_what_is_written_without_them(name: str) -> None:
    """Every macro of freeattn.sty put back by its definition: the document without macros."""
    source, route = ROUTES[name]
    d = derive(source, route=route)
    style = (DATA / "freeattn.sty").read_text(encoding="utf-8")
    latex = d.latex(standalone=True, macros=True)
    used = 0
    for macro, argument, meaning in re.findall(r"^\\newcommand\{(\\\w+)\}(\[1\])?\{(.*)\}$", style, re.MULTILINE):
        pattern = re.escape(macro) + (r"\{([^{}]*)\}" if argument else "(?![A-Za-z])")
        latex, count = re.subn(pattern, lambda m, meaning=meaning: meaning.replace("#1", m[m.lastindex or 0]), latex)
        used += count
    assert used > 5
    bare = d.latex(standalone=True)
    found, expected = latex.split(r"\maketitle")[1], bare.split(r"\fbox{$\scriptstyle+$}}}}")[1]
    assert "".join(found.split()) == "".join(expected.split())


@pytest.mark.parametrize("name", ROUTES)
def test_references_have_labels_and_citations_have_entries(name: str) -> None:
    source, route = ROUTES[name]
    latex = derive(source, route=route).latex(macros=True, prefix="one")
    labels = set(re.findall(r"\\label\{(.*?)\}", latex))
    references = set(re.findall(r"\\eqref\{(.*?)\}", latex))
    assert references <= labels
    assert references or name in ("no-mean",)
    assert all(label.startswith("eq:one-") for label in labels)
    entries = set(re.findall(r"^@\w+\{(.*),$", (DATA / "references.bib").read_text(encoding="utf-8"), re.MULTILINE))
    assert set(keys_in(latex)) <= entries
    assert len(keys_in(latex)) >= 2


def test_citations() -> None:
    assert cited("arXiv 2610.10033, Theorem 3.1") == r"\cite[{Theorem 3.1}]{arXiv:2610.10033}"
    assert cited("Nica-Speicher, lecture 18; Belinschi, atoms of free multiplicative convolution") == (
        r"\cite[{lecture 18}]{NicaSpeicher}; \cite{Belinschi}"
    )
    assert cited("the specification") == "the specification"
    assert "Nica and" in bibliography(["NicaSpeicher"]) or "Alexandru Nica" in bibliography(["NicaSpeicher"])


def test_a_name_of_several_letters_is_one_name() -> None:
    """Found by reading back: output_scale was the product of six letters."""
    latex = derive(SOURCES["bert-base-linear"]).latex()
    assert r"\mathrm{output}_{\mathrm{scale}}^{2}" in latex
    assert r"1 - \frac{1}{\pi}" in derive(SOURCES["symbolic-relu"]).latex()
    assert "1 − 1/π" in derive(SOURCES["symbolic-relu"]).text()


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


def test_every_assumption_has_latex_for_its_characters():
    texts = [
        getattr(value, field.name)
        for value in vars(assumptions).values() if isinstance(value, assumptions.Assumption)
        for field in dataclasses.fields(value)
    ]
    assert len(texts) > 30
    assert not [text for text in texts if isinstance(text, str) and "[U+" in latex_words(text)]
