"""The libraries of the extra "report", loaded when a page is written: templates, MathML, and scripts for figures."""

from __future__ import annotations

import base64
import zlib
from collections.abc import Callable
from typing import Any, NamedTuple

from freeattn.errors import MissingExtraError

__all__ = ["PageLibraries", "mathml_converter", "page_libraries"]

_BEST_COMPRESSION = 9


class PageLibraries(NamedTuple):
    """What a page is made with.

    Attributes:
        environment: of Jinja templates, which escape what they are given.
        convert: LaTeX (math mode) to MathML.
        script: plotly.js, compressed (zlib) and in base64: a third of its size, unpacked by the browser.
    """

    environment: Any
    convert: Any
    script: str


def page_libraries() -> PageLibraries:
    """The libraries of the extra "report".

    Raises:
        MissingExtraError: when one is not installed.
    """
    try:
        from jinja2 import Environment, PackageLoader, StrictUndefined
        from latex2mathml.converter import convert
        from plotly.offline import get_plotlyjs
    except ImportError:
        raise MissingExtraError("a report in HTML", "report") from None
    environment = Environment(
        loader=PackageLoader("freeattn.report"), autoescape=True, trim_blocks=True, lstrip_blocks=True,
        undefined=StrictUndefined,
    )
    packed = zlib.compress(get_plotlyjs().encode(), _BEST_COMPRESSION)
    return PageLibraries(environment, convert, base64.b64encode(packed).decode())


def mathml_converter() -> Callable[..., str] | None:
    """LaTeX (math mode) to MathML; None where the extra "report" is not installed."""
    try:
        from latex2mathml.converter import convert
    except ImportError:
        return None
    return convert
