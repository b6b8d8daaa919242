"""The gallery: scripts that run when the site is built, and the pictures they write.

```{gallery-script} bert_base
```

runs docs/gallery/bert_base.py in a folder of the build, and shows its picture bert_base.svg, what it printed, and its
source. Its docstring is the text above. Nothing is written into docs/.
"""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
from pathlib import Path

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.errors import ExtensionError
from sphinx.util.docutils import SphinxDirective

LARGER, WIDEST = 1.5, 504.0  # points
ROOT = Path(__file__).resolve().parents[2]


def run_scripts(app: Sphinx) -> None:
    """Run every script whose picture is missing or older than it."""
    if app.builder.format != "html":
        return
    folder = pictures(app)
    folder.mkdir(parents=True, exist_ok=True)
    path = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
    environment = {**os.environ, "PYTHONPATH": path, "FREEATTN_BACKEND": "numpy"}  # nothing to compile for one law
    for script in sorted((Path(app.srcdir) / "gallery").glob("*.py")):
        picture, printed = folder / f"{script.stem}.svg", folder / f"{script.stem}.txt"
        if picture.exists() and printed.exists() and printed.stat().st_mtime >= script.stat().st_mtime:
            continue
        run = subprocess.run(
            [sys.executable, str(script)], cwd=folder, env=environment, text=True, encoding="utf-8",
            capture_output=True, check=False,
        )
        if run.returncode or not picture.exists():
            raise ExtensionError(f"{script} did not write {picture.name}:\n{run.stderr}")
        printed.write_text(run.stdout, encoding="utf-8")


def pictures(app: Sphinx) -> Path:
    return Path(app.doctreedir) / "gallery"


def shown_width(picture: Path) -> str:
    """Half as large again as in print, and at most as wide as the text."""
    width = re.search(r'<svg[^>]* width="([\d.]+)pt"', picture.read_text(encoding="utf-8"))
    if width is None:
        raise ExtensionError(f"{picture} does not tell its width in points")
    return f"{min(LARGER * float(width[1]), WIDEST):.0f}pt"


class GalleryScript(SphinxDirective):
    """One script with its picture and what it prints."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        name = self.arguments[0]
        script = Path(self.env.srcdir) / "gallery" / f"{name}.py"
        self.env.note_dependency(str(script))
        source = script.read_text(encoding="utf-8")
        text = ast.get_docstring(ast.parse(source)) or ""
        shown: list[nodes.Node] = list(self.parse_text_to_nodes(text))
        if self.env.app.builder.format == "html":
            folder = pictures(self.env.app)
            picture = folder / f"{name}.svg"
            uri = os.path.relpath(picture, self.env.srcdir)
            shown.append(nodes.image(uri=uri, alt=text, width=shown_width(picture)))
            printed = (folder / f"{name}.txt").read_text(encoding="utf-8").rstrip()
            if printed:
                shown.append(nodes.literal_block(printed, printed, language="none"))
        body = source.split('"""', 2)[2].strip()
        shown.append(nodes.literal_block(body, body, language="python"))
        return shown


def setup(app: Sphinx) -> dict[str, bool]:
    app.add_directive("gallery-script", GalleryScript)
    app.connect("builder-inited", run_scripts)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
