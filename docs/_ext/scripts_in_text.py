"""Subscripts and superscripts of formulas in running text: γ_K, A_r^⊥, ρ_{γK}, x^{1/k−1} as a reader would write them.

Only a single letter (or MP) can carry one, and only a single sign or braces can be one, so that names such as d_model
stay what they are. Code, formulas and signatures are left alone.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.transforms.post_transforms import SphinxPostTransform

SCRIPTED = re.compile(r"(MP|[^\W\d_])((?:[_^](?:\{[^{}]+\}|KV|kv|\d+|[^\W_]|[⊥∞°]))+)(?!(?<!\d)[a-z0-9_])")
SCRIPT = re.compile(r"([_^])(?:\{([^{}]+)\}|(KV|kv|\d+|.))")
LEFT_ALONE = (
    nodes.literal, nodes.literal_block, nodes.math, nodes.math_block, nodes.raw, nodes.title, addnodes.desc_signature,
    nodes.subscript, nodes.superscript,
)


def pieces(text: str) -> Iterator[nodes.Node]:
    """The text with scripts as nodes; a letter inside a word carries none."""
    end = 0
    for match in SCRIPTED.finditer(text):
        start = match.start()
        before = text[start - 1] if start != end else " "
        if before == "_" or (before.isalpha() and before != "ᵀ"):
            continue
        yield nodes.Text(text[end:start] + match[1])
        for kind, braces, single in SCRIPT.findall(match[2]):
            yield (nodes.subscript if kind == "_" else nodes.superscript)("", braces or single)
        end = match.end()
    yield nodes.Text(text[end:])


def inside(node: nodes.Node) -> bool:
    parent = node.parent
    while parent is not None:
        if isinstance(parent, LEFT_ALONE):
            return True
        parent = parent.parent
    return False


class ScriptsInText(SphinxPostTransform):
    """Every text node of a page."""

    default_priority = 900  # when all references are resolved
    formats = ("html",)

    def run(self) -> None:
        for text in list(self.document.findall(nodes.Text)):
            if SCRIPTED.search(text) and not inside(text):
                text.parent.replace(text, list(pieces(str(text))))


def setup(app: Sphinx) -> dict[str, bool]:
    app.add_post_transform(ScriptsInText)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
