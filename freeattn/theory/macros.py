"""The macros of freeattn.sty, read off the file itself, and formulas written with them."""

from __future__ import annotations

import re
from functools import lru_cache
from importlib.resources import files

__all__ = ["with_macros"]

_MACRO = re.compile(r"^\\newcommand\{\\(\w+)\}(?:\[1\])?\{(.*)\}$", re.MULTILINE)
_LAST_LETTER = re.compile(r"[A-Za-z]$")


@lru_cache(maxsize=1)
def _macros() -> tuple[tuple[re.Pattern[str], str], ...]:
    """(what a macro stands for, the macro), longest first; an argument is a group without braces."""
    text = (files("freeattn.theory") / "data" / "freeattn.sty").read_text(encoding="utf-8")
    found = []
    for name, meaning in sorted(_MACRO.findall(text), key=lambda pair: -len(pair[1])):
        before, argument, after = meaning.partition("#1")
        if argument:
            found.append((re.compile(re.escape(before) + r"([^{}]*)" + re.escape(after)), rf"\\{name}{{\1}}"))
            continue
        whole = re.escape(meaning) + (r"(?![A-Za-z])" if _LAST_LETTER.search(meaning) else "")
        found.append((re.compile(whole + r"(?=[A-Za-z])"), rf"\\{name} "))  # the space ends the name of the macro
        found.append((re.compile(whole), rf"\\{name}"))
    return tuple(found)


def with_macros(latex: str) -> str:
    """The same LaTeX with a macro wherever what it stands for is written out."""
    for pattern, macro in _macros():
        latex = pattern.sub(macro, latex)
    return latex
