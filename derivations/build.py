"""All derivations at once: python derivations/build.py [--out FOLDER] [--pdf FILE].

Runs every NN_name.py, checks its number, writes out/NN_name.tex, and out/all.tex that reads them all. With --pdf it
also runs pdflatex, and fails on an undefined reference or a line that is far too wide.
"""

from __future__ import annotations

import argparse
import importlib.util
import re
import shutil
import subprocess
import sys
import tempfile
from importlib.resources import files
from pathlib import Path

from freeattn.theory.documents import Document, latex_collection, latex_section, publish

HERE = Path(__file__).parent
TITLE = "Limiting spectral laws of attention: derivations"
WIDEST = 20.0  # points beyond the margin
RUNS = 3  # contents, then page numbers, then the page numbers of the contents


def scripts() -> list[Path]:
    """The scripts, in their order."""
    return sorted(HERE.glob("[0-9][0-9]_*.py"))


def document_of(script: Path) -> Document:
    """What the function `document` of a script returns."""
    spec = importlib.util.spec_from_file_location(f"derivation_{script.stem}", script)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.document()


def problems(log: str) -> list[str]:
    """Undefined references and lines that are far too wide, from a log of LaTeX."""
    wide = [line for line, points in re.findall(r"(Overfull \\hbox \(([\d.]+)pt.*)", log) if float(points) > WIDEST]
    return wide + [line for line in log.splitlines() if "undefined" in line or "multiply" in line]


def compile_pdf(folder: Path, target: Path) -> None:
    """Run pdflatex on folder/all.tex in a temporary folder; exit with what is wrong."""
    with tempfile.TemporaryDirectory() as temporary:
        work = Path(temporary)
        for source in folder.glob("*.tex"):
            shutil.copy(source, work)
        style = files("freeattn.theory").joinpath("data", "freeattn.sty")
        (work / "freeattn.sty").write_text(style.read_text(encoding="utf-8"), encoding="utf-8")
        command = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "all.tex"]
        for _ in range(RUNS):
            run = subprocess.run(command, cwd=work, capture_output=True, text=True, encoding="latin-1", check=False)
            if run.returncode:
                sys.exit(run.stdout[-3000:])
        found = problems((work / "all.log").read_text(encoding="latin-1"))
        if found:
            sys.exit("\n".join(found))
        shutil.copy(work / "all.pdf", target)


def main() -> None:
    parser = argparse.ArgumentParser(description="Write all derivations as LaTeX.")
    parser.add_argument("--out", type=Path, default=HERE / "out", help="folder of the LaTeX files")
    parser.add_argument("--pdf", type=Path, help="compile the combined document to this file")
    arguments = parser.parse_args()
    documents = [document_of(script) for script in scripts()]
    for document in documents:
        print(document.name, publish(document, arguments.out), sep="  ")
    sections = {document.name: latex_section(document) for document in documents}
    (arguments.out / "all.tex").write_text(latex_collection(sections, TITLE), encoding="utf-8")
    if arguments.pdf:
        compile_pdf(arguments.out, arguments.pdf)
        print(arguments.pdf)


if __name__ == "__main__":
    main()
