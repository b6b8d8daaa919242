"""The documentation site: `python -m sphinx -W --keep-going -b html docs BUILD`, with the extra `docs` installed."""

from __future__ import annotations

import re
import sys
from os.path import relpath
from pathlib import Path
from typing import Any

from docutils import nodes

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), str(HERE / "_ext")]

import freeattn  # noqa: E402  (the checkout that these pages belong to)

project = "freeattn"
author = "The freeattn developers"
copyright = author
version = release = freeattn.__version__
html_title = f"freeattn {release}"

extensions = [
    "myst_nb",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx_copybutton",
    "mathml",
    "public_names",
    "gallery_scripts",
    "arcs",
    "scripts_in_text",
]
root_doc = "index"
exclude_patterns = ["_ext", "_static", "gallery/*"]
nitpicky = True

# Pages are plain Markdown that also reads well on its own; headings have the anchors of the usual hosts.
myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 4
myst_fence_as_directive = ["mermaid"]
nb_execution_mode = "off"  # notebooks are shown as they are kept, with outputs that the tests compare
highlight_language = "none"  # blocks without a language are equations, shell commands and drawings

# Docstrings: Google's sections, `code` in single backquotes.
default_role = "code"
napoleon_numpy_docstring = False
napoleon_use_rtype = False
napoleon_use_ivar = True
autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_type_aliases = {"ArrayLike": "ArrayLike"}
python_use_unqualified_type_names = True
python_maximum_signature_line_length = 100
add_module_names = False
toc_object_entries_show_parents = "hide"

html_theme = "furo"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_copy_source = False
html_show_sphinx = False
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True

SHORT = 12  # characters of a cell that is kept on one line

linkcheck_timeout = 20
linkcheck_workers = 4


def links_from_here(app: Any, path: Path, _page: str, content: list[str]) -> None:
    """Links of an included file, which are relative to its folder, relative to docs/ instead."""
    folder = (Path(app.srcdir) / path).resolve().parent

    def relinked(link: re.Match[str]) -> str:
        target = link[1]
        return link[0] if "://" in target or target.startswith("#") else f"]({relpath(folder / target, app.srcdir)})"

    content[0] = re.sub(r"\]\(([^)\s]+)\)", relinked, content[0])


def without_last_blank_line(_app: Any, tree: nodes.document) -> None:
    """Doctests end with a blank line, which readers need not see."""
    for block in tree.findall(nodes.literal_block):
        text = block.astext().rstrip()
        block.rawsource, block.children = text, []
        block += nodes.Text(text)


def short_cells(_app: Any, tree: nodes.document) -> None:
    """Numbers in tables stay on one line; a table that gets too wide scrolls."""
    for entry in tree.findall(nodes.entry):
        if len(entry.astext()) <= SHORT:
            entry["classes"].append("short")


def setup(app: Any) -> None:
    app.connect("doctree-read", short_cells)
    app.connect("doctree-read", without_last_blank_line)
    app.connect("include-read", links_from_here)
