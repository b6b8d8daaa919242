"""Execute the notebooks of this folder and write what they show into them: `python docs/notebooks/run.py`.

Needs the extra "test". What differs from run to run (times, versions) is left out, so that a change of a file is a
change of what a reader sees.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import nbformat
from nbclient import NotebookClient

HERE = Path(__file__).resolve().parent
_SECONDS = 600  # for one cell, on a busy machine


def executed(path: Path) -> Any:
    """The notebook with fresh outputs; an error in a cell is an error here."""
    notebook = nbformat.read(path, as_version=4)
    NotebookClient(
        notebook, timeout=_SECONDS, kernel_name="python3", resources={"metadata": {"path": None}}, coalesce_streams=True
    ).execute()
    for cell in notebook.cells:
        cell.metadata = {}
    notebook.metadata = {
        "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
        "language_info": {"name": "python"},
    }
    return notebook


if __name__ == "__main__":
    for path in sorted(HERE.glob("*.ipynb")):
        nbformat.write(executed(path), path)
        print(path.name)
