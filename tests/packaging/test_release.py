"""What a release states, stated once or the same everywhere: version, date, Pythons, names and their types."""

import ast
import re
from pathlib import Path

import freeattn
from freeattn.installation.requirements import parsed_requirements

ROOT = Path(__file__).resolve().parents[2]
PROJECT = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
OLDEST = (3, 10)


def cited(field):
    return re.search(rf"^{field}: (\S+)$", (ROOT / "CITATION.cff").read_text(encoding="utf-8"), flags=re.MULTILINE)[1]


def test_the_newest_release_of_the_changelog_is_this_version_and_what_is_cited():
    headings = re.findall(r"^## (.*)$", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), flags=re.MULTILINE)
    form = re.compile(r"(\d+\.\d+\.\d+) \((\d{4}-\d{2}-\d{2})\)")
    released = [form.fullmatch(text) for text in headings if text != "Unreleased"]
    assert all(released)
    assert released[0].groups() == (freeattn.__version__, cited("date-released"))
    assert cited("version") == freeattn.__version__
    assert "Unreleased" not in headings[1:]


def entry(key):
    """The fields of an entry of BibTeX on the page about citing."""
    page = (ROOT / "docs" / "howto" / "cite.md").read_text(encoding="utf-8")
    body = re.search(rf"^@\w+\{{{re.escape(key)},\n(.*?)^\}}$", page, flags=re.MULTILINE | re.DOTALL)[1]
    return dict(re.findall(r"^  (\w+) += \{(.*)\},?$", body, flags=re.MULTILINE))


def test_the_entry_of_the_software_is_that_of_the_release():
    fields = entry("freeattn")
    assert fields["version"] == freeattn.__version__ == cited("version")
    assert fields["year"] == cited("date-released")[:4]
    assert fields["license"] == cited("license")
    assert f'title: "{fields["title"]}"' in (ROOT / "CITATION.cff").read_text(encoding="utf-8")


def test_the_same_papers_are_cited_everywhere():
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    papers = re.findall(r'value: "arXiv:([\d.]+)"', citation)
    assert papers == ["2610.10033", "2510.06685"]
    readme = (ROOT / "README.md").read_text(encoding="utf-8").partition("## How to cite")[2]
    bibliography = (ROOT / "freeattn" / "theory" / "data" / "references.bib").read_text(encoding="utf-8")
    for paper in papers:
        fields, year = entry(f"arXiv:{paper}"), f"20{paper[:2]}"
        assert (fields["eprint"], fields["archivePrefix"], fields["year"]) == (paper, "arXiv", year)
        assert fields["url"] == f"https://arxiv.org/abs/{paper}"
        assert f"arxiv.org/abs/{paper}" in readme
        assert fields["title"] in bibliography
        told = citation.partition(f'title: "arXiv:{paper}')[2].partition("- type: article")[0]
        assert f"year: {year}" in told
        assert f'url: "{fields["url"]}"' in told


def test_the_version_is_written_in_one_place():
    assert 'dynamic = ["version"]' in PROJECT
    assert 'path = "freeattn/__init__.py"' in PROJECT
    assert freeattn.__version__ not in PROJECT


def test_citation_has_what_its_format_needs():
    """Keys that the schema 1.2.0 requires, none twice."""
    text = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    keys = re.findall(r"^([\w-]+):", text, flags=re.MULTILINE)
    assert {"cff-version", "message", "title", "authors"} <= set(keys)
    assert len(keys) == len(set(keys))


def test_one_oldest_python():
    oldest = ".".join(map(str, OLDEST))
    assert f'requires-python = ">={oldest}"' in PROJECT
    assert f'target-version = "py{oldest.replace(".", "")}"' in PROJECT
    assert f'python_version = "{oldest}"' in PROJECT
    minors = [int(minor) for minor in re.findall(r"Python :: 3\.(\d+)", PROJECT)]
    assert minors == list(range(OLDEST[1], OLDEST[1] + len(minors)))
    assert f'LOWEST_PYTHON = "{oldest}"' in (ROOT / ".ci" / "packaging.py").read_text(encoding="utf-8")


def test_the_script_starts_as_the_module_does():
    assert '\nfreeattn = "freeattn.__main__:main"\n' in PROJECT


def test_every_requirement_has_a_lowest_version():
    tables = re.findall(r'"([a-z][\w.-]*(?:\[\w+\])?[<>=!][^"]*)"', PROJECT)
    assert len(tables) > 20
    for one in parsed_requirements(tables):
        assert ">=" in one.versions, one


def test_every_public_name_has_its_type():
    """freeattn/__init__.pyi names what __init__.py hands on, from the same modules."""
    tree = ast.parse((ROOT / "freeattn" / "__init__.pyi").read_text(encoding="utf-8"))
    stated = {
        alias.name: (node.module, alias.asname) for node in tree.body if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    handed_on = {name: (module, name) for name, module in freeattn._HOME.items()}
    handed_on |= {name: (module.rpartition(".")[0], name) for name, module in freeattn._PACKAGES.items()}
    assert stated == handed_on


def test_every_extra_is_installed_alone_by_the_packaging_script():
    """torch and transformers are where a CPU build is found (.ci/run), test with the lowest versions."""
    script = (ROOT / ".ci" / "packaging.py").read_text(encoding="utf-8")
    listed = set(re.findall(r'^    Extra\("(\w+)"', script, flags=re.MULTILINE))
    table = PROJECT.partition("[project.optional-dependencies]")[2].partition("\n[")[0]
    declared = set(re.findall(r"^(\w+) = \[", table, flags=re.MULTILINE))
    assert declared - listed == {"torch", "transformers", "test"}
    assert listed <= declared
