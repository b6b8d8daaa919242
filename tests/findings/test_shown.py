"""What notebooks show of a value: the HTML, its numbers, escaping, LaTeX, and that nothing is computed for it."""

from __future__ import annotations

import builtins
import re
import subprocess
import sys
from collections.abc import Callable
from fractions import Fraction
from html.parser import HTMLParser
from typing import Any

import pytest
import sympy as sp

import freeattn as fa
from freeattn.display import ShownAsFormulas, ShownAsTables
from freeattn.evidence.against_law import AgainstLaw
from freeattn.evidence.reproduce import Reproduction, Row
from freeattn.findings.shown_formulas import formulas_of, parts_beside
from freeattn.findings.shown_tables import KINDS
from freeattn.numerics.engine import Engine
from freeattn.report.numbers import number_text
from freeattn.report.tables import estimate_text
from freeattn.theory.transforms import FreeSum, Image, MarchenkoPastur, Semicircle

SMALL = fa.Attention(n_tokens=32, d_model=32, n_heads=2, d_key=16, output="attention", beta=0.5, name="small")
ROWS, COLUMNS = fa.space("rows", 128), fa.space("columns", 64)
X, S = fa.gaussian("X", ROWS, COLUMNS, Fraction(1, 128)), fa.wigner("S", ROWS, Fraction(1, 256))
ROW = Row(
    label="4 heads", quantity="mean", theory=1.25, printed_theory="1.25", theory_agrees=True, simulated=1.26,
    half_width=0.02, without_value=None, n_tokens=64, scale=4, draws=2, from_theory=0.5, printed="1.2",
    printed_half_width=0.1, from_printed=0.6,
)
VOID = {"br", "hr", "img"}
EVIL = '<script>alert("$x$")</script>'


class Page(HTMLParser):
    """Tags in balance, attributes, and the text of the cells, row by row."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: set[str] = set()
        self.attributes: list[tuple[str, str | None]] = []
        self.rows: list[list[str]] = []
        self.text = ""
        self.feed(html)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes += attrs
        if tag not in VOID:
            self.open.append(tag)
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th"):
            self.rows[-1].append("")

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data
        if "td" in self.open or "th" in self.open:
            self.rows[-1][-1] += data


MAKERS: dict[str, Callable[[], Any]] = {
    "layer": lambda: SMALL,
    "symbolic layer": fa.symbolic_spec,
    "infinite heads": lambda: fa.Attention.from_ratios(gamma_key=1, n_heads=sp.oo, output="attention"),
    "ratios": lambda: fa.Ratios(gamma_key=Fraction(1, 4)),
    "law": lambda: fa.law(SMALL),
    "law of words": lambda: fa.law(X @ X.T + S, of="self-adjoint"),
    "free sum": lambda: fa.free_sum(fa.law(X), fa.law(SMALL)),
    "verification": lambda: fa.verify(SMALL, draws=2),
    "word verification": lambda: fa.verify(X, draws=2),
    "spectrum verification": lambda: fa.verify_spectrum(fa.sample(SMALL, seed=0).softmax, SMALL),
    "convergence": lambda: fa.converge(SMALL, sizes=(32, 64), draws=2, betas=[1]),
    "reproduction": lambda: Reproduction("fig-3a", "Figure 3(a)", "beta = 1", "a note", 0, (ROW,), tuple),
    "sweep": lambda: fa.sweep(SMALL, {"beta": [Fraction(1, 2), 1], "d_key": [16, 0]}),
    "summary": lambda: fa.predict.summary(fa.law(SMALL)),
    "certificate": lambda: fa.law(SMALL).certify(Fraction(1, 4)),
    "certificate of edges": lambda: fa.law(SMALL).certify_edges(),
    "derivation": lambda: fa.derive(SMALL),
    "derivation of words": lambda: fa.derive(X @ X.T + S, of="self-adjoint"),
    "derivation with symbols": lambda: fa.derive(fa.symbolic_spec()),
    "long derivation": lambda: fa.derive(fa.architecture("deepseek-v3", n_tokens=2048)),
    "expression": lambda: X @ X.T + 2 * S,
    "law of the algebra": lambda: FreeSum((MarchenkoPastur(Fraction(1, 2)), Image(MarchenkoPastur(2), (1, 2)))),
    "curve": lambda: fa.derive(X).curve(),
}


class Made(dict[str, Any]):
    """Each value when it is first asked for."""

    def __missing__(self, name: str) -> Any:
        self[name] = MAKERS[name]()
        return self[name]


@pytest.fixture(scope="module")
def values() -> Made:
    return Made()


def without(monkeypatch: pytest.MonkeyPatch, *libraries: str) -> None:
    """As if the libraries were not installed."""
    original = builtins.__import__

    def refusing(name: str, *args: Any, **kwargs: Any) -> Any:
        if name.split(".")[0] in libraries:
            raise ImportError(name)
        return original(name, *args, **kwargs)

    for name in [module for module in sys.modules if module.split(".")[0] in libraries]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setattr(builtins, "__import__", refusing)


@pytest.mark.parametrize("name", MAKERS)
def test_html_is_well_formed_and_has_no_colour(name: str, values: dict[str, Any]) -> None:
    html = values[name]._repr_html_()
    page = Page(html)
    assert "script" not in page.tags
    styles = [value or "" for key, value in page.attributes if key == "style"]
    assert not [style for style in styles if re.search(r"color(?!: inherit)|background|#|rgb", style)]
    assert not [key for key, _ in page.attributes if key in ("color", "bgcolor", "mathcolor", "mathbackground")]
    assert len(html) < 60_000


@pytest.mark.parametrize("name", MAKERS)
def test_one_line_in_a_plain_shell(name: str, values: dict[str, Any]) -> None:
    assert "\n" not in repr(values[name])
    assert name == "summary" or len(repr(values[name])) < 260


@pytest.mark.parametrize("name", MAKERS)
def test_no_extra_is_needed(name: str, values: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    with_extras = values[name]._repr_html_()
    without(monkeypatch, "jinja2", "latex2mathml", "plotly", "matplotlib", "IPython", "pyarrow")
    html = values[name]._repr_html_()
    page = Page(html)
    assert "math" not in page.tags
    assert page.rows == Page(with_extras).rows
    assert html.count("$$") == 2 * with_extras.count("<math ")


@pytest.mark.parametrize("name", MAKERS)
def test_latex_is_balanced(name: str, values: dict[str, Any]) -> None:
    if isinstance(values[name], ShownAsTables):
        assert not hasattr(values[name], "_repr_latex_")
        return
    latex = values[name]._repr_latex_()
    body = re.fullmatch(r"\$\$(.+)\$\$", latex, flags=re.DOTALL)[1]  # type: ignore[index]
    assert "$" not in body
    depth = 0
    for mark in re.findall(r"(?<!\\)[{}]", body):
        depth += 1 if mark == "{" else -1
        assert depth >= 0
    assert depth == 0
    for kind in ("begin", "left"):
        other = {"begin": "end", "left": "right"}[kind]
        assert len(re.findall(rf"\\{kind}\b", body)) == len(re.findall(rf"\\{other}\b", body))
    open_environments: list[str] = []
    for kind, environment in re.findall(r"\\(begin|end)\{(\w+)\}", body):
        if kind == "begin":
            open_environments.append(environment)
        else:
            assert open_environments.pop() == environment


def test_numbers_of_a_law(values: dict[str, Any]) -> None:
    law = values["law"]
    page = Page(law._repr_html_())
    (left, right), = law.edges
    assert ["band 1", number_text(left, 15), number_text(right, 15), f"{law.band_masses[0]:.10g}"] in page.rows
    assert f"small, output attention: mean {number_text(law.mean, 15)}" in page.text
    update = fa.law(X)  # rank 64 of 128
    assert ["atom at 0", "", "", "1/2"] in Page(update._repr_html_()).rows


def test_numbers_of_results(values: dict[str, Any]) -> None:
    found = values["verification"]
    rows = Page(found._repr_html_()).rows
    for row in found.rows():
        written = [row["statistic"], estimate_text(row, "softmax"), estimate_text(row, "equivalent")]
        assert written in [cells[:3] for cells in rows]
    numbers = values["summary"]
    assert ["condition_number", number_text(numbers["condition_number"], 8)] in Page(numbers._repr_html_()).rows
    certificate = values["certificate"]
    assert ["density", str(certificate.density)] in Page(certificate._repr_html_()).rows
    assert all(statement in Page(certificate._repr_html_()).text for statement in certificate.proved)
    sweep = Page(values["sweep"]._repr_html_())
    assert len(sweep.rows) == 5  # the head, and four layers of which two are refused
    assert "d_key" in sweep.rows[-1][-1]


def test_a_layer_has_exact_ratios(values: dict[str, Any]) -> None:
    spec = fa.Attention(n_tokens=48, d_model=64, n_heads=2, d_key=32, d_value=32)
    assert ["gamma_key", "4/3", "1.333333333"] in Page(spec._repr_html_()).rows
    assert ["gamma_key", "d_key*n_heads/n_tokens", ""] in Page(values["symbolic layer"]._repr_html_()).rows


def test_a_derivation_has_its_equations_and_folded_steps(values: dict[str, Any]) -> None:
    derivation = values["derivation of words"]
    html = derivation._repr_html_()
    page = Page(html)
    assert "details" in page.tags
    assert derivation.text() in page.text
    assert {row[0] for row in page.rows} >= {str(symbol) for symbol in derivation.unknowns}
    assert r"g_{\mathrm{y1,y1}} = 2 s_{\mathrm{x,x}} - g_{\mathrm{x,x}}" in derivation._repr_latex_()  # all are defined
    assert html.count("<math ") == 5


def test_names_are_escaped(monkeypatch: pytest.MonkeyPatch) -> None:
    layer = SMALL.replace(name=EVIL, not_modelled=(EVIL,))
    letter = fa.gaussian(EVIL, fa.space(EVIL, 4), fa.space("columns", 8))
    shown = [layer, fa.law(layer), letter, fa.law(letter), fa.derive(letter), fa.verify(layer, draws=2)]
    for extras in (True, False):
        if not extras:
            without(monkeypatch, "latex2mathml")
        for value in shown:
            html = value._repr_html_()
            page = Page(html)
            assert "script" not in page.tags
            assert EVIL in page.text
            before = html[: html.index("&lt;script")]
            assert before.rindex("mathjax_ignore") > before.rfind("<math")  # no dollar of a name starts a formula
    assert letter._repr_latex_() is None


@pytest.mark.parametrize("name", [r"\href{javascript:alert(1)}", "X}", "{", "a%b", "a$b", "A&B"])
def test_a_name_that_is_no_name_in_latex_is_plain_text(name: str) -> None:
    letter = fa.gaussian(name, ROWS, COLUMNS)
    page = Page(letter._repr_html_())
    assert "math" not in page.tags
    assert f"M = {name}" in page.text
    assert letter._repr_latex_() is None


@pytest.mark.parametrize("name", ["law", "law of words", "free sum"])
def test_a_law_is_not_computed_further(
    name: str, values: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A notebook asks an engine for nothing but the bands that it has found already, and their masses."""
    law, used = values[name], set()
    repr(law)
    for kind in {type(law._engine), *type(law._engine).__mro__} - {object}:
        for method in Engine.__abstractmethods__ - {"masses"}:
            if method in vars(kind):
                monkeypatch.setattr(kind, method, lambda *_, method=method, **__: used.add(method))
    law._repr_html_()
    assert used == set()


def test_a_layer_and_an_expression_are_shown_without_their_law(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any, **__: Any) -> Any:
        raise AssertionError("a law is computed")

    monkeypatch.setattr("freeattn.numerics.law.SpectralLaw.__init__", refuse)
    monkeypatch.setattr("freeattn.theory.dyson.DysonSystem.__init__", refuse)
    for value in (SMALL, X @ X.T, FreeSum((Semicircle(1), MarchenkoPastur(1)))):
        assert value._repr_html_()


def test_a_layer_is_shown_without_symbols() -> None:
    """No sympy for a table of numbers."""
    script = "import sys, freeattn as fa; fa.architecture('bert-base')._repr_html_(); print('sympy' in sys.modules)"
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert run.stdout == "False\n"


def test_every_kind_has_a_table_or_formulas() -> None:
    def below(kind: type) -> set[type]:
        return {kind}.union(*(below(sub) for sub in kind.__subclasses__()))

    import freeattn.adapters.verify_module  # noqa: F401  (its class is a kind too)

    for kind in below(ShownAsFormulas) - {ShownAsFormulas}:
        for shown_by in (formulas_of, parts_beside):
            assert shown_by.dispatch(kind) is not shown_by.dispatch(object), f"{kind.__name__} is not shown"
    with pytest.raises(TypeError, match="of object"):
        formulas_of(object())
    shown = {kind.shown_as for kind in below(ShownAsTables) - {ShownAsTables}}
    assert shown == set(KINDS)
    assert not below(ShownAsTables) & below(ShownAsFormulas)


def test_a_module_verification_is_shown(values: dict[str, Any]) -> None:
    """With the findings of a spectrum in place of those of a module, which needs torch."""
    from freeattn.adapters.verify_module import ModuleVerification

    spectrum = values["spectrum verification"]
    found = ModuleVerification(
        spec=SMALL, law=spectrum.law, seed=0, draws=1, reset=None, causal=False, rotary=False, centering="mean token",
        findings=spectrum.findings, warnings=("a sentence",), spectra=(spectrum.spectrum,),
    )
    assert isinstance(found, AgainstLaw)
    page = Page(found._repr_html_())
    assert [row[0] for row in page.rows[1:]] == [finding.name for finding in spectrum.findings]
    assert "Warning: a sentence" in page.text


@pytest.mark.parametrize(("name", "latex"), [("x^", r"x\wedge"), ("__", None), ("^", r"\wedge")])
def test_a_name_that_ends_in_a_script_sign_is_no_script(name, latex):
    """It is set letter for letter, or shown as text."""
    tokens = fa.space("n", 100)
    letter = fa.gaussian(name, tokens, tokens, Fraction(1, 100))
    for expression in (letter, letter @ letter.T + 2 * letter):
        assert ("<math" in expression._repr_html_()) == (latex is not None)
        shown = expression._repr_latex_()
        assert shown is None if latex is None else latex in shown
