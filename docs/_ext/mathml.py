"""Mathematics as MathML, which browsers draw themselves: no script, nothing fetched, the same offline."""

from __future__ import annotations

from typing import Any

from docutils import nodes
from latex2mathml.converter import convert
from sphinx.application import Sphinx
from sphinx.util import logging

logger = logging.getLogger(__name__)


def mathml(node: nodes.Element, display: str) -> str:
    """The formula of a node; one that cannot be converted is a warning, and so an error of the build."""
    try:
        return str(convert(node.astext().strip(), display=display))
    except Exception as error:  # whatever the converter raises is about this formula
        logger.warning("no MathML for %r: %r", node.astext(), error, location=node)
        return ""


def visit_math(self: Any, node: nodes.math) -> None:
    self.body.append(mathml(node, "inline"))
    raise nodes.SkipNode


def visit_displaymath(self: Any, node: nodes.math_block) -> None:
    self.body.append(f'<div class="displaymath">{mathml(node, "block")}</div>\n')
    raise nodes.SkipNode


def setup(app: Sphinx) -> dict[str, bool]:
    app.add_html_math_renderer("mathml", (visit_math, None), (visit_displaymath, None))
    app.config.html_math_renderer = "mathml"  # type: ignore[attr-defined]
    return {"parallel_read_safe": True, "parallel_write_safe": True}
