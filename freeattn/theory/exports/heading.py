"""What every exported program says about itself."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable

from freeattn.theory.assumptions import Rule
from freeattn.theory.exports.program import Heading
from freeattn.theory.steps import Step
from freeattn.theory.writing import text_equation

__all__ = ["CONVENTIONS", "heading_of", "heading_text"]

_COLUMNS = 100
CONVENTIONS = (
    "m(z) = ∫ ν(dx)/(x − z) with Im m > 0 for Im z > 0 and m ~ −1/z at infinity; the density of ν at x is "
    "Im m(x + i0)/π, point masses left out. ν is the law itself, not divided by its mean, and has mass 1. A root that "
    "is not reached, or that fails the test of the physical branch, raises an error: it is never returned."
)
_LEFT_OUT = ("layer", "equivalent", "transforms", "moments", "specialized")  # steps that no program computes


def heading_of(title: str, steps: Iterable[Step], rules: Iterable[Rule]) -> Heading:
    """Title, the numbered equations of the steps, and the sources of the rules, each once."""
    shown = [e for step in steps if step.name not in _LEFT_OUT for e in step.equations if getattr(e, "main", False)]
    return Heading(
        title, tuple(text_equation(equation) for equation in shown), tuple(dict.fromkeys(rule.source for rule in rules))
    )


def heading_text(heading: Heading, units: str, width: int = _COLUMNS) -> str:
    """The heading as plain text."""
    equations = [textwrap.fill(s, width, initial_indent="    ", subsequent_indent="        ", break_long_words=False,
                               break_on_hyphens=False) for s in heading.statements]
    sources = [textwrap.fill(f"- {source}", width, subsequent_indent="  ") for source in heading.sources]
    parts = [textwrap.fill(heading.title, width), "\n".join(equations), textwrap.fill(CONVENTIONS, width), units,
             "\n".join(["Sources:", *sources])]
    return "\n\n".join(part for part in parts if part)
