"""Mermaid graphs as pictures without a script: packages on a line, an arc for each arrow.

Solid arrows are arcs above the line, dotted ones below it. Every solid arrow points to the left.
"""

from __future__ import annotations

import re
from graphlib import TopologicalSorter
from html import escape

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

STEP, HALF, BOX = 104, 46, 15  # between centres of boxes, half the width and half the height of one
FLAT = 0.42  # height of an arc over the distance that it spans


def arrows(text: str, kind: str) -> list[tuple[str, str]]:
    return re.findall(rf"^\s*(\w+) {re.escape(kind)} (\w+)$", text, flags=re.MULTILINE)


def order(text: str) -> list[str]:
    """Names such that every solid arrow points to the left, and the dotted ones where these allow it."""
    graph: dict[str, set[str]] = {}
    for kind in ("-->", "-.->"):
        for start, end in arrows(text, kind):
            if kind == "-->" or start not in reached(graph, end):
                graph.setdefault(start, set()).add(end)
                graph.setdefault(end, set())
    return list(TopologicalSorter(graph).static_order())


def reached(graph: dict[str, set[str]], start: str) -> set[str]:
    """All names that arrows lead to from one."""
    found, ahead = set(), [start]
    while ahead:
        new = graph.get(ahead.pop(), set()) - found
        found |= new
        ahead.extend(new)
    return found


def svg(text: str) -> str:
    """The picture, in the colours of the page."""
    names = order(text)
    x = {name: STEP * number + STEP / 2 for number, name in enumerate(names)}
    reach = {
        kind: FLAT * max((abs(x[a] - x[b]) for a, b in arrows(text, kind)), default=0) for kind in ("-->", "-.->")
    }
    middle = reach["-->"] + BOX + 12
    width, height = STEP * len(names), middle + reach["-.->"] + BOX + 12
    parts = []
    for kind, side, style in (("-->", -1, "arc"), ("-.->", 1, "arc dotted")):
        for start, end in arrows(text, kind):
            a, b, y = x[start] - 6 * (x[start] > x[end]), x[end] + 6 * (x[start] > x[end]), middle + side * (BOX + 2)
            top = y + side * FLAT * 1.33 * abs(a - b)
            label = f"{start} → {end}"
            parts.append(
                f'<path class="{style}" marker-end="url(#tip)" d="M{a:.0f} {y:.0f} C{a:.0f} {top:.0f} '
                f'{b:.0f} {top:.0f} {b:.0f} {y:.0f}"><title>{label}</title></path>'
            )
    for name in names:
        parts.append(
            f'<rect x="{x[name] - HALF:.0f}" y="{middle - BOX:.0f}" width="{2 * HALF}" height="{2 * BOX}" rx="4"/>'
            f'<text x="{x[name]:.0f}" y="{middle + 5:.0f}">{escape(name)}</text>'
        )
    tip = '<marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
    return (
        f'<div class="arcs"><svg role="img" aria-label="arrows between packages" viewBox="0 0 {width} {height:.0f}">'
        f'<defs>{tip}<path class="tip" d="M0 0L8 4L0 8z"/></marker></defs>{"".join(parts)}</svg></div>'
    )


class Mermaid(SphinxDirective):
    """A `graph` of mermaid whose lines are arrows."""

    has_content = True

    def run(self) -> list[nodes.Node]:
        return [nodes.raw("", svg("\n".join(self.content)), format="html")]


def setup(app: Sphinx) -> dict[str, bool]:
    app.add_directive("mermaid", Mermaid)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
