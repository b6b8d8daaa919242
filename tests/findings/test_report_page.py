"""The page of a report: well formed, alone, readable without pictures, and with the numbers of the law."""

from __future__ import annotations

import json
import re
import sys
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from pages import Reader, small

import freeattn as fa
from freeattn.errors import InputError, MissingExtraError
from freeattn.findings.collect import collect
from freeattn.report.data import Fact
from freeattn.report.numbers import number_text

TWO = (small(), small(n_heads=2, d_value=8, d_out=96, name="other"))


@pytest.fixture(scope="module")
def page() -> str:
    return fa.html_report(*TWO, names=["one", "two <b>"], draws=2, seed=3).html


@pytest.fixture(scope="module")
def reader(page: str) -> Reader:
    return Reader(page)


def test_it_is_one_page_with_a_language_and_one_heading(page: str, reader: Reader) -> None:
    assert page.lstrip().startswith("<!DOCTYPE html>")
    assert reader.named("html") == [{"lang": "en"}]
    assert len(reader.named("h1")) == 1
    assert len(reader.named("title")) >= 1
    levels = [int(tag[1]) for tag, _ in reader.elements if re.fullmatch(r"h[1-6]", tag)]
    assert all(after - before <= 1 for before, after in pairwise(levels))
    assert [one["id"] for one in reader.named("section")] == [
        "architecture", "law", "predictions", "evidence", "derivation", "reproduce",
    ]


def test_it_names_no_other_place(page: str, reader: Reader) -> None:
    assert "http://" not in page
    assert "https://" not in page
    assert "@import" not in page
    assert not re.search(r"url\((?!#)", page)
    assert not reader.named("link", "img", "iframe", "object", "source")
    assert all("src" not in attributes for _, attributes in reader.elements)
    assert all(str(attributes["href"]).startswith("#") for attributes in reader.named("a"))
    policy = next(one for one in reader.named("meta") if one.get("http-equiv") == "Content-Security-Policy")
    assert str(policy["content"]).startswith("default-src 'none'")


def test_a_notebook_shows_the_page_in_a_frame() -> None:
    report = fa.html_report(small(), names=['a "b" <c>'], draws=0)
    (frame,) = Reader(report._repr_html_()).elements
    assert frame[0] == "iframe"
    assert frame[1]["srcdoc"] == report.html
    assert frame[1]["title"] == report.data.title


def test_links_lead_to_anchors_and_anchors_are_unique(reader: Reader) -> None:
    anchors = [attributes["id"] for _, attributes in reader.elements if "id" in attributes]
    assert len(anchors) == len(set(anchors))
    assert {str(one["href"])[1:] for one in reader.named("a")} <= set(anchors)
    named = [name for one in reader.named("svg") for name in str(one.get("aria-labelledby", "")).split()]
    assert named
    assert set(named) <= set(anchors)


def test_names_are_texts_not_markup(page: str) -> None:
    assert "two &lt;b&gt;" in page
    assert "two <b>" not in page


def test_every_figure_has_words_a_caption_and_a_table(page: str) -> None:
    figures = re.findall(r"<figure.*?</figure>", page, flags=re.DOTALL)
    assert len(figures) == 4
    for figure in figures:
        found = Reader(figure)
        (plot,) = [one for one in found.named("div") if one.get("role") == "img"]
        assert len(str(plot["aria-label"])) > 40
        assert len(found.named("figcaption")) == 1
        stills = [one for one in found.named("svg") if one.get("role") == "img"]
        assert stills
        assert len(found.named("title")) == len(found.named("desc")) == len(stills)
        assert found.named("details")
        assert len(found.named("tr")) > 20


def test_every_formula_is_mathml_with_words(reader: Reader) -> None:
    formulas = reader.named("math")
    assert len(formulas) > 100
    assert all(str(one["aria-label"]).strip() for one in formulas)
    words = reader.words(without=("script", "style", "math", "pre"))
    assert "\\" not in words  # no LaTeX is left in the text
    assert "\\" not in " ".join(text for where, text in reader.texts if "math" in where)


def test_numbers_are_those_of_the_law(page: str) -> None:
    cells = set(re.findall(r"<td>([^<]+)", page))
    for spec in TWO:
        law = fa.law(spec)
        unit = law.normalized()
        numbers = [
            law.mean, *(end for band in unit.edges for end in band), *unit.moments(4)[1:],
            fa.predict.degrees_of_freedom(law, 1e-4), fa.predict.ridge_error(law, 1e-4, 0.1),
            fa.predict.best_penalty(law, Fraction(1, 10)), fa.predict.arrival_time(law, 0.1) if not law.atoms else 0,
            fa.predict.stable_rank(law), fa.predict.spike_gap(law),
        ]
        for number in numbers:
            assert number_text(float(number), 8) in cells
    for spec in TWO:
        for row in fa.verify(spec, draws=2, seed=3).rows():
            assert any(cell.startswith(f"{row['softmax']:.3g}") for cell in cells), row["statistic"]


def test_the_curves_are_those_of_the_law() -> None:
    data = collect(TWO[0], draws=0)
    (layer,) = data.layers
    law = fa.law(TWO[0])
    unit = law.normalized()
    linear, log = layer.densities
    assert linear.curve.y[100] == pytest.approx(float(unit.density(linear.curve.x[100])), rel=1e-4)
    assert log.curve.y[100] == pytest.approx(log.curve.x[100] * float(unit.density(log.curve.x[100])), rel=1e-4)
    assert layer.loss is not None
    assert layer.loss.y[30] == fa.predict.flow_loss(law, layer.loss.x)[30]
    assert linear.sample is None
    assert layer.evidence.rows == ()
    assert layer.spike == pytest.approx(fa.predict.leading_singular_value(TWO[0]) ** 2 / float(law.mean))


def test_the_same_arguments_give_the_same_page(page: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def again() -> str:
        return fa.html_report(*TWO, names=["one", "two <b>"], draws=2, seed=3).html

    assert again() == page
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1700000000")
    assert again() == page.replace(f"freeattn {fa.__version__}:</p>", f"freeattn {fa.__version__} on 2023-11-14:</p>")


def test_specifications_can_be_read_back(page: str) -> None:
    (first, _) = re.findall(r"<pre><code>(\{.*?)</code></pre>", page, flags=re.DOTALL)
    assert fa.Attention.from_dict(json.loads(first.replace("&#34;", '"'))) == TWO[0]


def test_large_layers_are_drawn_with_fewer_tokens_and_it_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    spec = small(n_tokens=288, d_model=288, d_key=72, d_value=72, n_heads=2)
    monkeypatch.setattr("freeattn.findings.collect.MOST_ENTRIES", 2 * 2 * 144**2)
    (layer,) = collect(spec, draws=2).layers
    assert "2 draws at n_tokens = 144 in place of 288" in layer.evidence.sentences[0]
    assert {row["n_tokens"] for row in layer.evidence.rows} == {144}
    monkeypatch.setattr("freeattn.findings.collect.MOST_ENTRIES", 1000)
    (layer,) = collect(spec, draws=2).layers
    assert layer.evidence.passed is None
    assert layer.evidence.sentences[0].startswith("Nothing was simulated: 2 draws take more than")


def test_layers_without_output_map_with_atoms_and_by_ratios() -> None:
    by_ratios = fa.Attention.from_ratios(Fraction(1, 2), Fraction(1, 4), Fraction(1, 2), n_heads=2)
    attention = small(output="attention", d_value=None)
    page = fa.html_report(by_ratios, attention, names=["ratios", "attention"], draws=1).html
    words = Reader(page).words()
    assert "a specification by ratios has no sizes" in words
    assert "this output has no output map" in words
    assert "weight of the atom at 0" in words
    assert re.search(r"atom of weight 0\.75 at 0", page)
    assert "the loss never falls below its plateau" in words


def test_facts_are_written_exactly_where_that_is_short() -> None:
    assert Fact("a", Fraction(3, 2)).text == "3/2 = 1.5"
    assert Fact("a", Fraction(7)).text == "7"
    assert Fact("a", float("inf")).text == "infinite"
    assert Fact("a", None).text == "none"
    assert Fact("a", Fraction(12345678901, 10**12)).text == "0.012345679"


@pytest.mark.parametrize(
    ("specs", "options", "field"),
    [
        ((), {}, "specs"), ((small(),) * 7, {}, "specs"), (("bert-base",), {}, "specs"),
        ((small(),), {"draws": -1}, "draws"), ((small(),), {"draws": True}, "draws"),
        ((small(),), {"noise": 0}, "noise"), ((small(),), {"noise": "a"}, "noise"),
        ((small(),), {"noise": float("nan")}, "noise"), ((small(),), {"seed": -1}, "seed"),
        ((small(),), {"seed": 1.0}, "seed"),
        ((small(), small()), {"names": ["a", "a"]}, "names"), ((small(),), {"names": ["a", "b"]}, "names"),
    ],
)
def test_bad_arguments(specs: tuple[object, ...], options: dict[str, object], field: str) -> None:
    with pytest.raises(InputError) as caught:
        collect(*specs, **options)  # type: ignore[arg-type]
    assert caught.value.field == field


def test_numbers_of_other_types_are_those_of_python() -> None:
    found = collect(small(), draws=np.int64(1), seed=np.uint32(3), noise=np.float32(0.5))
    plain = collect(small(), draws=1, seed=3, noise=0.5)
    assert json.dumps(found.to_dict()) == json.dumps(plain.to_dict())


@pytest.mark.parametrize("library", ["jinja2", "latex2mathml.converter", "plotly.offline"])
def test_a_missing_library_names_the_extra(library: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(MissingExtraError, match=r"freeattn\[report\]"):
        fa.html_report(small(), draws=0)
