"""Formulas of a derivation as MathML, which browsers show without fonts or scripts of ours.

latex2mathml converts; what it writes otherwise than MathML Core wants is put right here: names of several letters
become one identifier, and relations become operators.
"""

from __future__ import annotations

import re
from html import escape
from typing import Any

from freeattn.report.data import Formula

__all__ = ["display_formula", "display_latex", "inline_formula"]

_UPRIGHT = re.compile(r'(?:<mi mathvariant="normal">[^<]+</mi>){2,}')
_TAGS = re.compile(r"</?mi[^>]*>")
_SIGN = re.compile(r"(?<=&#x000(?:3D|2C|28|7B|5B);</mo>)<mo>&#x02212;</mo>")  # behind = , ( { [: a sign, no difference
_REPAIRS = (
    (' xmlns="http://www.w3.org/1998/Math/MathML"', ""),  # known to HTML
    ("<mi>&#x0007E;</mi>", "<mo>&#x0223C;</mo>"),  # \sim
    ("<mi>:</mi>", '<mo lspace="0.2em" rspace="0.2em">:</mo>'),
    ("<mi>&#x027C2;</mi>", "<mo>&#x022A5;</mo>"),  # \perp; fonts have the second
    ("<mo>&#x0002F;</mo>", '<mo lspace="0" rspace="0">/</mo>'),
    ("&#x000AF;", "&#x0203E;"),  # \bar, as wide as its letter
    ('maxsize="1.2em">(', 'maxsize="1.2em" form="prefix">('),  # \bigl and \\bigr
    ('maxsize="1.2em">)', 'maxsize="1.2em" form="postfix">)'),
    ('<mn mathvariant="bold">1</mn>', "<mn>&#x1D7CF;</mn>"),  # \mathbf{1}
)


def inline_formula(convert: Any, latex: str, text: str) -> str:
    """A <math> element in a sentence; `text` is what a reader aloud says."""
    return _labelled(_repaired(convert(latex)), text)


def display_formula(convert: Any, formula: Formula) -> str:
    """A <math> element on lines of its own, further lines set in."""
    return _labelled(_repaired(convert(display_latex(formula), display="block")), formula.text)


def display_latex(formula: Formula) -> str:
    """The formula as LaTeX (math mode), further lines set in."""
    if len(formula.lines) == 1:
        return f"{formula.left} {formula.lines[0]}".strip()
    lines = r" \\ &\quad ".join(formula.lines)
    return rf"\begin{{split}} {formula.left} &{lines} \end{{split}}"


def _repaired(mathml: str) -> str:
    for found, written in _REPAIRS:
        mathml = mathml.replace(found, written)
    mathml = _SIGN.sub('<mo form="prefix">&#x02212;</mo>', mathml)
    return _UPRIGHT.sub(lambda run: f"<mi>{_TAGS.sub('', run[0])}</mi>", mathml)


def _labelled(mathml: str, text: str) -> str:
    return mathml.replace("<math ", f'<math aria-label="{escape(text, quote=True)}" ', 1)
