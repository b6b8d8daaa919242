"""The notebooks of docs/notebooks: they run, print what is kept in them, and end with the values that matter."""

from __future__ import annotations

import json
import re
import runpy
import shutil
from pathlib import Path
from typing import Any

import pytest

import freeattn as fa

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "docs" / "notebooks"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))


def named(path: Path) -> str:
    return path.stem


def kept(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))


def code_cells(notebook: Any) -> list[Any]:
    return [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]


def joined(text: str | list[str]) -> str:
    return text if isinstance(text, str) else "".join(text)


def printed(notebook: Any) -> str:
    outputs = [output for cell in code_cells(notebook) for output in cell["outputs"]]
    return "".join(joined(output["text"]) for output in outputs if output["output_type"] == "stream")


def kinds_shown(notebook: Any) -> list[list[str]]:
    """The types of data of each result, cell by cell."""
    return [
        [kind for output in cell["outputs"] for kind in sorted(output.get("data", {}))] for cell in code_cells(notebook)
    ]


def test_there_are_two_notebooks_and_pages_link_them() -> None:
    assert [path.stem for path in NOTEBOOKS] == ["architecture", "own_model"]
    page = (ROOT / "docs" / "notebooks.md").read_text(encoding="utf-8")
    for path in NOTEBOOKS:
        assert f"](notebooks/{path.name})" in page
        assert f"\nnotebooks/{path.stem}\n" in page
    assert "](docs/notebooks.md)" in (ROOT / "README.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("path", NOTEBOOKS, ids=named)
def test_kept_outputs_are_complete_and_have_no_trace_of_their_run(path: Path) -> None:
    notebook = kept(path)
    cells = code_cells(notebook)
    assert [cell["execution_count"] for cell in cells] == list(range(1, len(cells) + 1))
    assert all(cell["outputs"] for cell in cells)
    assert all(cell["metadata"] == {} for cell in notebook["cells"])
    assert not [output for cell in cells for output in cell["outputs"] if output.get("name") == "stderr"]
    assert "/home/" not in path.read_text(encoding="utf-8")
    assert any("image/png" in kinds for kinds in kinds_shown(notebook))


@pytest.mark.slow
@pytest.mark.parametrize("path", NOTEBOOKS, ids=named)
@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::ResourceWarning")  # of the kernel's libraries
def test_notebook_runs_and_prints_what_is_kept(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("nbclient")
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    monkeypatch.setenv("FREEATTN_BACKEND", "numpy")  # nothing to compile for a few laws
    copy = Path(shutil.copy(path, tmp_path))
    fresh = runpy.run_path(str(FOLDER / "run.py"))["executed"](copy)
    assert printed(fresh) == printed(kept(path))
    assert kinds_shown(fresh) == kinds_shown(kept(path))
    assert list(tmp_path.iterdir()) == [copy]


def test_numbers_of_the_notebook_of_an_architecture() -> None:
    text, law = printed(kept(FOLDER / "architecture.ipynb")), fa.law(fa.architecture("bert-base", n_tokens=512))
    by_law, by_program = re.findall(r"density at 2.*: ([\d.]+)$", text, flags=re.MULTILINE)
    assert by_law == by_program == f"{law.density(2.0):.10f}"
    assert f"edges to 30 digits: {' '.join(str(end) for end in law.edges_to(30)[0])}" in text
    assert f"median: {law.quantile(0.5):.6f}, mean: {law.mean:.6f}" in text
    assert "passed: True" in text


def test_numbers_of_the_notebook_of_a_model() -> None:
    text = printed(kept(FOLDER / "own_model.ipynb"))
    assert "moments of M Mᵀ: 2 12 104 1056" in text
    assert "weight 3/4 at 0" in text
    assert "the same to 1e-12: True" in text
    assert "passed: True" in text
