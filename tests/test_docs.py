"""README.md and docs/ are code: every example runs, and shows what it really gives.

- ```python blocks run one after the other, with warnings as errors; a comment behind `print(…)` is what it prints;
- `>>>` examples are doctests;
- ```console blocks are commands after `$` and their output, `...` standing for anything (```console slow: slow ones);
- every script in derivations/ is listed (tests/theory/test_documents.py runs them);
- links lead to files and headings that exist.
"""

from __future__ import annotations

import doctest
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import freeattn as fa

ROOT = Path(__file__).resolve().parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")), *sorted((ROOT / "derivations").glob("*.md"))]
IDS = [str(page.relative_to(ROOT)) for page in PAGES]
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


def blocks(page: Path, language: str) -> list[str]:
    """The fenced blocks of one language, in order."""
    text = page.read_text(encoding="utf-8")
    return re.findall(rf"^```{language}\n(.*?)^```$", text, flags=re.MULTILINE | re.DOTALL)


def having(language: str) -> list[Path]:
    return [page for page in PAGES if blocks(page, language)]


def name_of(page: Path) -> str:
    return str(page.relative_to(ROOT))


@pytest.mark.parametrize("page", having("python"), ids=name_of)
def test_python_blocks(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {"__name__": "__main__"}
    for block in blocks(page, "python"):
        exec(compile(block, str(page), "exec"), names)
        promised = re.findall(r"^print\(.*\)  # (.*)$", block, flags=re.MULTILINE)
        checker, printed = doctest.OutputChecker(), capsys.readouterr().out
        assert checker.check_output("\n".join([*promised, ""]), printed, FLAGS), printed


@pytest.mark.parametrize("page", [page for page in PAGES if ">>> " in page.read_text(encoding="utf-8")], ids=name_of)
def test_doctests(page: Path) -> None:
    result = doctest.testfile(str(page), module_relative=False, optionflags=FLAGS, encoding="utf-8")
    assert result.attempted
    assert not result.failed


def commands(page: Path) -> list[Any]:
    """(command, output) of every `$ ` line of the console blocks, as test cases."""
    found = []
    for kind, marks in (("console", ()), ("console slow", (pytest.mark.slow,))):
        for block in blocks(page, kind):
            for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
                command, _, output = part.partition("\n")
                found.append(pytest.param(command, output, id=f"{name_of(page)}: {command}", marks=marks))
    return found


@pytest.mark.parametrize(("command", "expected"), [case for page in PAGES for case in commands(page)])
def test_console(command: str, expected: str, tmp_path: Path) -> None:
    program, *arguments = shlex.split(command)
    assert program == "freeattn"
    run = subprocess.run(
        [sys.executable, "-W", "error", "-m", "freeattn", *arguments], cwd=tmp_path, text=True, encoding="utf-8",
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False,
    )
    shown = "\n".join(line.rstrip() for line in run.stdout.splitlines()) + "\n"
    shown = "" if shown == "\n" else shown
    assert doctest.OutputChecker().check_output(expected, shown, FLAGS), shown


@pytest.mark.parametrize("script", sorted((ROOT / "derivations").glob("*.py")), ids=name_of)
def test_derivations_are_listed(script: Path) -> None:
    assert f"[{script.name}]({script.name})" in (script.parent / "README.md").read_text(encoding="utf-8")


def anchors(page: Path) -> set[str]:
    """The anchors that headings get on the usual hosts."""
    headings = re.findall(r"^#+ (.*)$", page.read_text(encoding="utf-8"), flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=IDS)
def test_links(page: Path) -> None:
    for target in re.findall(r"\]\(([^)\s]+)\)", page.read_text(encoding="utf-8")):
        if target.startswith(("http://", "https://")):
            continue
        name, _, anchor = target.partition("#")
        other = (page.parent / name).resolve() if name else page
        assert other.exists(), target
        assert not anchor or anchor in anchors(other), target


def test_statistics_of_the_evidence_page() -> None:
    """The table of statistics names all of them, and no other."""
    text = (ROOT / "docs" / "evidence.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (`.*?`) \| ", text.split("## What the verdict means")[0], flags=re.MULTILINE)
    small = fa.Attention(n_tokens=32, d_model=32, n_heads=2, d_key=16, output="attention", beta=0.5)
    names = [statistic.name for statistic in fa.verify(small, draws=2).statistics]
    assert sorted(re.findall(r"`(\w+)`", " ".join(rows))) == sorted(names)


def test_numbers_of_the_readme() -> None:
    """The table of presets: n_tokens, mean, mean-one edges and atom, as printed."""
    rows = re.findall(
        r"^\| `([\w.-]+)` \| (\d+) \| ([\d.]+) \| ([\d.]+) \| ([\d.]+) \| (\S+) \|$",
        (ROOT / "README.md").read_text(encoding="utf-8"), flags=re.MULTILINE,
    )
    assert len(rows) >= 5
    for name, n_tokens, mean, left, right, atom in rows:
        law = fa.law(fa.architecture(name, n_tokens=int(n_tokens)))
        low, high = law.normalized().edges[0][0], law.normalized().edges[-1][1]
        shown = (f"{law.mean:.6g}", f"{low:.6g}", f"{high:.6g}", str(sum(a.weight for a in law.atoms)))
        assert shown == (mean, left, right, atom), name


def test_readme_states_the_version_and_the_commands() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert "python3 -m venv .venv && .venv/bin/pip install" in text
    assert f"{len(fa.architectures())} published layers" in text
    assert f"## {fa.__version__}" in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert f"version: {fa.__version__}" in (ROOT / "CITATION.cff").read_text(encoding="utf-8")
