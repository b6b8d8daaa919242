"""The site of docs/: its gallery runs, its external links are well written, and it builds without a warning.

The build needs the extra `docs`; without it the test is skipped, except where CI says that it must run.
"""

from __future__ import annotations

import importlib.util
import os
import re
import runpy
import subprocess
import sys
import zlib
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import urlsplit

import pytest

import freeattn as fa

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
SCRIPTS = sorted((DOCS / "gallery").glob("*.py"))
PAGES = [ROOT / "README.md", ROOT / "CHANGELOG.md", *sorted(DOCS.rglob("*.md")), ROOT / "derivations" / "README.md"]
MOST_LINES = 25


def test_gallery_shows_every_script_once() -> None:
    text = (DOCS / "gallery.md").read_text(encoding="utf-8")
    shown = re.findall(r"^```\{gallery-script\} (\w+)$", text, flags=re.MULTILINE)
    assert sorted(shown) == [script.stem for script in SCRIPTS]
    assert len(SCRIPTS) >= 5


def test_home_page_asks_each_question_once() -> None:
    questions = re.findall(r"^\| ([^|]+\?) \| ", (DOCS / "index.md").read_text(encoding="utf-8"), flags=re.MULTILINE)
    assert len(questions) > 15
    assert sorted(questions) == sorted(set(questions))


@pytest.mark.slow
@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.stem)
def test_gallery_script(script: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = script.read_text(encoding="utf-8")
    assert len(text.splitlines()) <= MOST_LINES
    monkeypatch.chdir(tmp_path)
    runpy.run_path(str(script), run_name="__main__")
    assert [path.name for path in tmp_path.iterdir()] == [f"{script.stem}.svg"]
    picture = (tmp_path / f"{script.stem}.svg").read_text(encoding="utf-8")
    assert "</svg>" in picture
    assert picture.count("<path") > 10


def without_fences(page: Path) -> str:
    return re.sub(r"^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)


def external_links() -> list[tuple[Path, str]]:
    """Every link of a page to the outside."""
    found = []
    for page in PAGES:
        found += [(page, target) for target in re.findall(r"\]\((\w+:[^)\s]+)\)", without_fences(page))]
    return found


@pytest.mark.parametrize(("page", "target"), external_links(), ids=lambda value: str(value).removeprefix(f"{ROOT}/"))
def test_external_link_is_well_written(page: Path, target: str) -> None:
    parts = urlsplit(target)
    assert parts.scheme == "https", page
    assert re.fullmatch(r"[a-z0-9-]+(\.[a-z0-9-]+)+", parts.netloc), page
    assert re.fullmatch(r"[\w./~%-]*", parts.path), page
    assert not re.search(r"/(pdf|html)/", parts.path), "the page of the work, not a file of one version"


def test_one_address_is_written_in_one_way() -> None:
    spellings: dict[str, set[str]] = {}
    for _, target in external_links():
        parts = urlsplit(target.lower())
        spellings.setdefault(parts.netloc.removeprefix("www.") + parts.path.rstrip("/"), set()).add(target)
    assert spellings
    assert [several for several in spellings.values() if len(several) > 1] == []


class Words(HTMLParser):
    """The text of a page outside code, formulas and signatures, and what the page loads from elsewhere."""

    def __init__(self) -> None:
        super().__init__()
        self.inside: list[str] = []
        self.text: list[str] = []
        self.loaded: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        if tag in ("pre", "code", "math", "script", "style", "svg", "dt"):
            self.inside.append(tag)
        source = given.get("src") or (given.get("href") if tag == "link" else None)
        if source and re.match(r"(\w+:)?//", source):
            self.loaded.append(source)

    def handle_endtag(self, tag: str) -> None:
        if self.inside and self.inside[-1] == tag:
            self.inside.pop()

    def handle_data(self, data: str) -> None:
        if not self.inside:
            self.text.append(data)


def words_of(page: Path) -> Words:
    words = Words()
    words.feed(page.read_text(encoding="utf-8"))
    return words


def built(folder: Path) -> None:
    """Build the site into a folder; nothing is written into docs/."""
    if not (importlib.util.find_spec("sphinx") and importlib.util.find_spec("myst_nb")):
        if os.environ.get("CI"):
            pytest.fail("CI builds the site: install the extra docs")
        pytest.skip('needs the extra "docs"')
    before = sorted(DOCS.rglob("*"))
    run = subprocess.run(
        [sys.executable, "-B", "-m", "sphinx", "-q", "-W", "--keep-going", "-b", "html", "docs", str(folder)],
        cwd=ROOT, text=True, encoding="utf-8", stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False,
    )
    assert run.returncode == 0, run.stdout
    assert sorted(DOCS.rglob("*")) == before


def every_page_is_there(site: Path) -> None:
    pages = {path.relative_to(site).with_suffix(".md") for path in site.rglob("*.html")}
    assert {page.relative_to(DOCS) for page in DOCS.rglob("*.md")} <= pages


def pages_load_nothing_from_elsewhere(site: Path) -> None:
    loaded = {(page.name, source) for page in site.rglob("*.html") for source in words_of(page).loaded}
    assert loaded == set()


def formulas_are_drawn(site: Path) -> None:
    """As many formulas as the page has between dollars, none of them left as LaTeX."""
    text = without_fences(DOCS / "theory.md")
    displayed = re.findall(r"\$\$.+?\$\$", text, flags=re.DOTALL)
    inline = re.sub(r"\$\$.+?\$\$", "", text, flags=re.DOTALL)
    html = (site / "theory.html").read_text(encoding="utf-8")
    assert html.count('<math xmlns="http://www.w3.org/1998/Math/MathML" display="block"') == len(displayed)
    assert html.count("<math ") == len(displayed) + len(re.findall(r"\$[^$]+\$", inline))
    assert not re.search(r"<m\w+>\s*\\", html)
    assert "\\frac" not in html


def api_has_every_public_name_and_reads_well(site: Path) -> None:
    inventory = zlib.decompress((site / "objects.inv").read_bytes().split(b"zlib.\n", 1)[1]).decode()
    documented = {line.split(" ", 1)[0] for line in inventory.splitlines()}
    assert {f"freeattn.{name}" for name in fa._HOME} <= documented
    assert {"freeattn.SpectralLaw.density", "freeattn.Attention.replace"} <= documented
    html, text = (site / "api.html").read_text(encoding="utf-8"), " ".join(words_of(site / "api.html").text)
    assert not re.search(r"\*\*|``|:(param|type|returns?|raises)\b|\\[|*_]", text)
    assert "Power of |x − edge| with which the density starts" in text
    assert html.count(">Raises<span") > 20
    assert html.count(">Parameters<span") > 10


@pytest.mark.slow
def test_site(tmp_path: Path) -> None:
    built(tmp_path)  # once for all checks, on whichever process this runs
    every_page_is_there(tmp_path)
    pages_load_nothing_from_elsewhere(tmp_path)
    formulas_are_drawn(tmp_path)
    api_has_every_public_name_and_reads_well(tmp_path)
