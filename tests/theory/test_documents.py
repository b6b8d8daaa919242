"""The documents of derivations/: every script's number holds, and its LaTeX is the file that is checked in."""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
import sys
from functools import lru_cache
from pathlib import Path
from types import ModuleType

import pytest
import sympy as sp

import freeattn as fa
from freeattn.theory.documents import (
    Document,
    DocumentError,
    Pinned,
    latex_collection,
    latex_section,
    moment_by_routes,
    prose,
    publish,
)
from freeattn.theory.product_moments import product_moments
from freeattn.theory.steps import Reference
from freeattn.theory.symbols import THETA_1, THETA_2, C

FOLDER = Path(__file__).resolve().parents[2] / "derivations"
OUT = FOLDER / "out"
SCRIPTS = sorted(FOLDER.glob("[0-9][0-9]_*.py"))


@lru_cache(maxsize=1)
def build() -> ModuleType:
    """derivations/build.py as a module."""
    spec = importlib.util.spec_from_file_location("build_derivations", FOLDER / "build.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def example(derived: object = 2, reference: object = 2, tolerance: float = 0) -> Document:
    pinned = Pinned("The number $x$", derived, reference, "counting", tolerance)
    return Document("99_some_name", "A title", "A claim.", (), pinned)


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.stem)
def test_number_and_latex(script: Path) -> None:
    document = build().document_of(script)
    assert document.name == script.stem
    assert document.title in document.checked()
    assert latex_section(document) == (OUT / f"{script.stem}.tex").read_text(encoding="utf-8")


def test_collection_and_nothing_else_is_checked_in() -> None:
    sections = {script.stem: (OUT / f"{script.stem}.tex").read_text(encoding="utf-8") for script in SCRIPTS}
    assert latex_collection(sections, build().TITLE) == (OUT / "all.tex").read_text(encoding="utf-8")
    assert {path.name for path in OUT.iterdir()} == {"all.tex", *(f"{name}.tex" for name in sections)}
    assert [int(name[:2]) for name in sections] == list(range(1, len(sections) + 1))


@pytest.mark.skipif(shutil.which("pdflatex") is None, reason="pdflatex is not installed")
def test_collection_compiles(tmp_path: Path) -> None:
    target = tmp_path / "all.pdf"
    build().compile_pdf(OUT, target)
    assert target.stat().st_size > 0


def test_problems_in_a_log() -> None:
    log = "Overfull \\hbox (3.1pt too wide)\nOverfull \\hbox (21.5pt too wide)\nReference `eq:x' undefined\nfine\n"
    assert build().problems(log) == ["Overfull \\hbox (21.5pt too wide)", "Reference `eq:x' undefined"]


@pytest.mark.slow
@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.stem)
def test_script_runs_by_itself(script: Path, tmp_path: Path) -> None:
    shutil.copy(script, tmp_path)
    run = subprocess.run(
        [sys.executable, "-W", "error", script.name], cwd=tmp_path, text=True, capture_output=True, check=False
    )
    assert run.returncode == 0, run.stderr
    assert run.stdout
    assert (tmp_path / "out" / f"{script.stem}.tex").read_bytes() == (OUT / f"{script.stem}.tex").read_bytes()


def test_a_number_that_does_not_hold_is_not_published(tmp_path: Path) -> None:
    with pytest.raises(DocumentError, match=r"2\.0+ and 3\.0+ differ by 0\.333 \(relative\), more than 0\.1"):
        publish(example(2, 3, 0.1), tmp_path / "out")
    assert not (tmp_path / "out").exists()
    assert publish(example(), tmp_path / "out").startswith("A title: 2.0")
    assert (tmp_path / "out" / "99_some_name.tex").exists()


def test_exact_numbers_are_equal_expressions() -> None:
    assert example(sp.Rational(1, 3), sp.Rational(1, 3)).pinned.holds
    assert not example(sp.Rational(1, 3), sp.Rational(1, 3) + sp.Rational(1, 10**40)).pinned.holds
    assert example(1.0, 1.0 + 1e-9, 1e-8).pinned.holds


def test_section_has_labels_and_says_how_well_numbers_agree() -> None:
    latex = latex_section(example(1.0, 1.0 + 1e-9, 2e-8))
    assert "\\section{A title}\n\\label{sec:some-name}\nA claim." in latex
    assert r"relative difference below $2\cdot 10^{-8}$" in latex
    assert "exactly equal" in latex_section(example())


def test_prose_has_formulas_references_and_citations() -> None:
    words, formula, between, reference, more, cited, end = prose(
        "If $a<b$ then <main> holds by [Nica-Speicher, lecture 12]."
    )
    assert (words, between, more, end) == ("If ", " then ", " holds by ", ".")
    assert formula.latex == "a<b"
    assert isinstance(reference, Reference)
    assert reference.names == ("main",)
    assert cited.latex == r"\text{\cite[{lecture 12}]{NicaSpeicher}}"


def test_moments_of_products() -> None:
    """Free cumulants: 1, y, y² of MP_y; 1, c²g, c³g² of the key law. Two MP of ratio 1 have Fuss-Catalan moments."""
    y, g = sp.symbols("y g")
    assert product_moments(sp.Integer(0), (y,)) == (1 + y, 1 + 3 * y + y**2)
    assert product_moments(g, ()) == (1 + C**2 * g, sp.expand(1 + 3 * C**2 * g + C**3 * g**2))
    one = sp.Integer(1)
    assert product_moments(sp.Integer(0), (one, one)) == (3, 12)


def test_moment_by_routes_is_exact() -> None:
    layer = fa.Attention(n_tokens=6, d_model=6, n_heads=2, d_key=2, output="attention")
    first, second = moment_by_routes(layer, 2, {THETA_1: 2, THETA_2: 1})
    assert first == second
    assert first.is_Rational
