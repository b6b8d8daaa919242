"""The house as docs/architecture.md draws it: which module may import what, read off the source by ast."""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from graphlib import TopologicalSorter
from pathlib import Path
from typing import NamedTuple

import pytest

import freeattn

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "freeattn"
DOCUMENT = ROOT / "docs" / "architecture.md"
MOST_LINES = 400

# What a package (or top-level module) may import from freeattn at module level, itself aside. "freeattn" is the top
# package, whose names load when first used.
MAY_IMPORT = {
    "freeattn": set(),
    "__main__": {"cli"},
    "errors": set(),
    "display": set(),
    "runs": {"errors", "freeattn"},  # of the top package, the version that stored results belong to
    "model": {"errors", "display"},
    "theory": {"errors", "display", "model"},
    "numerics": {"errors", "display", "model", "theory"},
    "evidence": {"errors", "display", "model", "numerics", "predict", "runs"},
    "predict": {"errors", "display", "model", "numerics"},
    "adapters": {"errors", "display", "model", "evidence", "numerics"},
    "report": {"errors"},
    "findings": {"freeattn", "errors", "model", "theory", "numerics", "predict", "evidence", "report"},
    "installation": {"freeattn", "errors", "numerics", "runs"},
    "cli": {"freeattn", "errors", "installation", "model", "report"},
}
# Modules that are held tighter than their package: what checks a law shares no step with what derives it, and a
# comparison takes its law as an argument.
TIGHTER = {
    "freeattn.evidence.sampling": {"errors", "model"},
    "freeattn.evidence.weights": {"errors", "model"},
    "freeattn.evidence.projections": {"errors", "model"},
    "freeattn.evidence.accumulators": {"errors", "model"},
    "freeattn.evidence.features": {"errors", "model"},
    "freeattn.evidence.words": {"errors", "model"},
    "freeattn.evidence.compare": {"errors"},
    "freeattn.evidence.finite_size": {"errors", "model"},
    "freeattn.evidence.scaling": {"errors", "model"},
    "freeattn.evidence.rates": set(),
    "freeattn.evidence.published": {"errors", "model"},
    "freeattn.adapters.module_reading": {"errors", "model"},
    "freeattn.adapters.module": {"errors", "model"},
    "freeattn.adapters.spectrum_files": {"errors"},
}
# Imports inside functions: the optional dependency at its one place.
INSIDE_FUNCTIONS = {
    ("freeattn.report.style", "matplotlib"), ("freeattn.report.lettering", "matplotlib"),
    *(("freeattn.report.extra", library) for library in ("jinja2", "latex2mathml", "plotly")),
    ("freeattn.report.parquet", "pyarrow"),
    ("freeattn.adapters.torch_library", "torch"),
}
# Modules that import by name when first asked: names handed on lazily (PEP 562), and sympy only for a derivation.
# numba only for compiled equations; what notebooks show, when they ask.
BY_NAME = {
    "freeattn", "freeattn.report", "freeattn.cli.derive", "freeattn.numerics.law", "freeattn.numerics.limiting",
    "freeattn.numerics.backends", "freeattn.numerics.exact", "freeattn.display", "freeattn.cli.architectures",
}
# Arrows between packages by name: `SpectralLaw.plot` hands the law to its picture, which imports no law.
DEFERRED = {("numerics", "report"), ("cli", "theory"), ("display", "findings")}
BRIDGE = "freeattn.numerics.compile"  # the one module that may import both sympy and numpy
# Only these packages may import the library at all.
AT_HOME = {
    "sympy": {"theory", "numerics"},
    "numpy": {"numerics", "evidence", "predict", "report", "findings", "runs", "adapters"},
    "sqlite3": {"runs"},
    "scipy": {"numerics", "evidence", "predict"},
    "torch": {"adapters"},
    "transformers": set(),
    "flint": {"theory", "numerics"},
    "numba": {"numerics"},
    "matplotlib": {"report"},
    "jinja2": {"report"},
    "latex2mathml": {"report"},
    "plotly": {"report"},
    "pyarrow": {"report"},
    "rich": {"report"},
    "click": {"cli"},
}


class Import(NamedTuple):
    """One import statement: the module that has it, what it names, and whether it stands inside a function."""

    importer: str
    imported: str
    inside: bool


def module_name(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


SOURCES = {module_name(path): path for path in sorted(PACKAGE.rglob("*.py"))}


def part_of(module: str) -> str:
    """The package or top-level module that a module of freeattn belongs to."""
    pieces = module.split(".")
    return pieces[1] if len(pieces) > 1 else "freeattn"


def named_by(node: ast.Import | ast.ImportFrom) -> Iterator[str]:
    """Full names of the modules that a statement imports; `from package import module` counts as the module."""
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
        return
    assert node.level == 0, "relative import"
    for alias in node.names:
        full = f"{node.module}.{alias.name}"
        yield full if full in SOURCES else str(node.module)


def imports_of(module: str) -> Iterator[Import]:
    def walk(node: ast.AST, inside: bool) -> Iterator[Import]:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, (ast.Import, ast.ImportFrom)):
                yield from (Import(module, name, inside) for name in named_by(child))
            yield from walk(child, inside or isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)))

    yield from walk(ast.parse(SOURCES[module].read_text(encoding="utf-8")), inside=False)


IMPORTS = [found for module in SOURCES for found in imports_of(module)]
INTERNAL = [found for found in IMPORTS if found.imported.split(".")[0] == "freeattn"]


def libraries(module: str) -> set[str]:
    return {found.imported.split(".")[0] for found in IMPORTS if found.importer == module}


def test_every_package_has_a_row() -> None:
    assert {part_of(module) for module in SOURCES} == set(MAY_IMPORT)


def test_arrows_point_one_way() -> None:
    for importer, imported, _ in INTERNAL:
        home, other = part_of(importer), part_of(imported)
        allowed = TIGHTER.get(importer, MAY_IMPORT[home])
        assert other == home or other in allowed, f"{importer} imports {imported}"


def test_tighter_modules_exist() -> None:
    assert set(TIGHTER) <= set(SOURCES)


def test_no_cycle() -> None:
    """Neither between modules nor between packages; the lazy top package is a leaf."""
    for level in (str, part_of):
        graph: dict[str, set[str]] = {}
        for importer, imported, _ in INTERNAL:
            if level(importer) != level(imported):
                graph.setdefault(level(importer), set()).add(level(imported))
        tuple(TopologicalSorter(graph).static_order())  # raises CycleError


def test_imports_inside_functions() -> None:
    inside = {(found.importer, found.imported.split(".")[0]) for found in IMPORTS if found.inside}
    assert inside == INSIDE_FUNCTIONS


def test_imports_by_name() -> None:
    calls = re.compile(r"\bimport_module\(|\b__import__\(")
    assert {module for module, path in SOURCES.items() if calls.search(path.read_text(encoding="utf-8"))} == BY_NAME


def named_late(module: str) -> Iterator[str]:
    """The modules of freeattn that a module imports by name."""
    for node in ast.walk(ast.parse(SOURCES[module].read_text(encoding="utf-8"))):
        if isinstance(node, ast.Call) and ast.unparse(node.func).endswith("import_module"):
            yield from (arg.value for arg in node.args if isinstance(arg, ast.Constant))


def test_arrows_by_name_between_packages() -> None:
    found = {(part_of(module), part_of(late)) for module in BY_NAME for late in named_late(module)}
    imported = {(part_of(importer), part_of(module)) for importer, module, _ in INTERNAL}
    assert {(home, other) for home, other in found if home != other} - imported == DEFERRED


def test_one_bridge_from_symbols_to_arrays() -> None:
    assert {module for module in SOURCES if {"sympy", "numpy"} <= libraries(module)} <= {BRIDGE}


def test_libraries_stay_at_home() -> None:
    for importer, imported, _ in IMPORTS:
        library = imported.split(".")[0]
        assert part_of(importer) in AT_HOME.get(library, {part_of(importer)}), f"{importer} imports {library}"


def lazy_names(package: str) -> dict[str, str]:
    """The names that a package hands on when first used, and their modules."""
    tree = ast.parse(SOURCES[package].read_text(encoding="utf-8"))
    (home,) = (
        ast.literal_eval(node.value) for node in tree.body
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "_HOME"
    )
    return dict(home)


def test_lazy_names_exist() -> None:
    """Every name that a package hands on is defined in the module that it points to."""
    for package in ("freeattn", "freeattn.report"):
        for name, module in lazy_names(package).items():
            defined = {
                found.name for found in ast.walk(ast.parse(SOURCES[module].read_text(encoding="utf-8")))
                if isinstance(found, (ast.ClassDef, ast.FunctionDef))
            }
            assert name in defined, f"{package}.{name} is not in {module}"


@pytest.mark.parametrize("module", SOURCES)
def test_length(module: str) -> None:
    assert len(SOURCES[module].read_text(encoding="utf-8").splitlines()) <= MOST_LINES


def loaded_after(statement: str) -> set[str]:
    script = f"{statement}\nimport json, sys\nprint(json.dumps(sorted({{m.split('.')[0] for m in sys.modules}})))"
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, cwd=ROOT)
    return set(json.loads(run.stdout))


@pytest.mark.parametrize(
    ("statement", "absent"),
    [
        ("import freeattn", {"numpy", "scipy", "sympy", "mpmath", "flint", "matplotlib", "click", "rich"}),
        ("import freeattn.cli", {"numpy", "scipy", "sympy", "flint", "matplotlib", "rich"}),
        ("import freeattn; freeattn.architecture('bert-base')", {"numpy", "scipy", "sympy", "flint", "matplotlib"}),
        ("import freeattn; freeattn.read_config", {"numpy", "scipy", "sympy", "flint", "matplotlib", "torch"}),
        ("import freeattn; freeattn.law", {"matplotlib", "numba"}),
        ("import freeattn; freeattn.plot_laws; freeattn.save_figure", {"matplotlib", "scipy", "sympy", "rich"}),
    ],
)
def test_start_stays_light(statement: str, absent: set[str]) -> None:
    assert not loaded_after(statement) & absent


def documented() -> list[str]:
    """Names in the tables of docs/architecture.md: rows start with the module or package in backquotes."""
    text = DOCUMENT.read_text(encoding="utf-8")
    return re.findall(r"^\| `(freeattn[\w.]*)` \|", text, flags=re.MULTILINE)


def test_document_names_every_module_once() -> None:
    assert sorted(documented()) == sorted(SOURCES)


def test_document_draws_every_arrow() -> None:
    """Solid arrows between packages are those of the source; dotted ones those of the lazy top package."""
    text = DOCUMENT.read_text(encoding="utf-8")
    drawn = set(re.findall(r"^  (\w+) --> (\w+)$", text, flags=re.MULTILINE))
    found = {(part_of(importer), part_of(imported)) for importer, imported, _ in INTERNAL}
    assert drawn == {(home, other) for home, other in found if home != other and home != "__main__"}
    assert set(re.findall(r"^  (?!freeattn)(\w+) -\.-> (\w+)$", text, flags=re.MULTILINE)) == DEFERRED
    late = set(re.findall(r"^  freeattn -\.-> (\w+)$", text, flags=re.MULTILINE))
    late_packages = {part_of(module) for module in freeattn._PACKAGES.values()}
    assert late == {part_of(module) for module in lazy_names("freeattn").values()} - {"errors"} | late_packages
