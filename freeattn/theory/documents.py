"""Documents: one claim each, its derivation in steps, and a number that was obtained in two ways, as LaTeX for a paper.

A `Document` is a value; `latex_section` writes it as a section that another document can \\input, `latex_collection`
the document that holds them all. Both need freeattn.sty of the package; the collection brings its list of references.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import sympy as sp

from freeattn.errors import FreeattnError
from freeattn.model.attention import Attention
from freeattn.theory.assumptions import Assumption, Rule
from freeattn.theory.bibliography import bibliography, cited, keys_in
from freeattn.theory.derivation import Derivation
from freeattn.theory.derive import derive
from freeattn.theory.latex_words import latex_words
from freeattn.theory.notation import Notation, latex_of
from freeattn.theory.rendering import LatexOptions, latex_body, latex_sentence
from freeattn.theory.steps import Piece, Step, reference

__all__ = [
    "Document", "DocumentError", "Pinned", "formula", "latex_collection", "latex_section", "listed", "moment_by_routes",
    "prose", "publish", "written",
]

_PRIVATE = 0xE000  # the first character that Unicode leaves to private use
_MARKED = re.compile(r"\$([^$]+)\$|<([\w-]+)>|\[([^\]]+)\]")
_SECTION = """%% Written by derivations/%s.py. Needs freeattn.sty, and references.bib for the citations.
\\section{%s}
\\label{sec:%s}
%s

%s"""
_COLLECTION = r"""%% Needs freeattn.sty and the sections that it reads. Written by derivations/build.py.
%% Run LaTeX three times.
\documentclass[titlepage]{article}
\usepackage{amssymb}
\usepackage{freeattn}
\usepackage[textwidth=360pt,textheight=640pt]{geometry}
\usepackage[hidelinks]{hyperref}
\numberwithin{equation}{section}
\makeatletter
\renewcommand{\@listi}{\leftmargin\leftmargini \topsep 2pt \itemsep 1pt \parsep 0pt}
\let\@listI\@listi
\makeatother
\begin{document}
\begin{titlepage}
\null\vfil
\begin{center}
\LARGE %s
\end{center}
\vspace{2em}
\begin{quote}
%s
\end{quote}
\vfil\null
\end{titlepage}
\tableofcontents
\clearpage
%s
\phantomsection
\addcontentsline{toc}{section}{References}
%s
\end{document}
"""
_ABOUT = (
    "Each section states one claim, derives it step by step from the rules of the package freeattn, and ends with a "
    "number that was obtained in a second way. Sections are independent of each other: each lists what it assumes "
    "and its sources, and can be taken over by itself. All of this is written by programs, which derive the "
    "equations and check the number at the end; sentences, and formulas that are not steps of a derivation, are "
    "written by hand."
)


def prose(text: str) -> tuple[Piece, ...]:
    """A sentence with formulas and references.

    $…$ is a formula in LaTeX, <name> the number of the main equation of that name, and [arXiv 2610.10033, section 3] a
    citation, written as sources are.
    """
    pieces: list[Piece] = []
    at = 0
    for mark in _MARKED.finditer(text):
        pieces += [text[at : mark.start()], _marked(*mark.groups())]
        at = mark.end()
    return tuple(piece for piece in (*pieces, text[at:]) if piece != "")


def _marked(mathematics: str | None, name: str | None, source: str | None) -> Piece:
    if mathematics:
        return formula(mathematics)
    if name:
        return reference(f"({name})", name)
    return Notation(rf"\text{{{cited(str(source))}}}", f"[{source}]")


def formula(latex: str) -> Notation:
    """A formula written by hand, in LaTeX."""
    return Notation(latex, latex)


def written(expression: sp.Expr, names: Mapping[sp.Symbol, str]) -> Notation:
    """An expression in LaTeX, some of its symbols under names that are more than a letter with an index."""
    stand_ins = {symbol: sp.Symbol(chr(_PRIVATE + k)) for k, symbol in enumerate(names)}
    latex = latex_of(expression.xreplace(stand_ins))
    for symbol, name in names.items():
        latex = latex.replace(str(stand_ins[symbol]), name)
    return formula(latex)


def listed(values: Mapping[Any, Any]) -> str:
    """Formulas "symbol = value" for `prose`, in a row: $a=…$, $b=…$ and $c=…$."""
    formulas = [f"${latex_of(symbol)}={latex_of(value)}$" for symbol, value in values.items()]
    return " and ".join(part for part in (", ".join(formulas[:-1]), formulas[-1]) if part)


@dataclass(frozen=True)
class Pinned:
    """One number obtained in two ways.

    Attributes:
        what: what it is, as `prose`.
        derived: its value by the derivation.
        reference: its value obtained in another way.
        how: that other way, as `prose`: a phrase that "gives" the value.
        tolerance: the largest relative difference; 0: the two are equal.
        digits: significant digits that are shown.
    """

    what: str
    derived: Any
    reference: Any
    how: str
    tolerance: float
    digits: int = 10

    @property
    def difference(self) -> float:
        """|derived/reference − 1|; 0 where the two are the same expression."""
        if self.derived == self.reference:
            return 0.0
        return abs(float(sp.N(self.derived / self.reference - 1, 30)))

    @property
    def holds(self) -> bool:
        """True when the two agree."""
        return self.difference <= self.tolerance

    @property
    def step(self) -> Step:
        """The comparison as the last step of a derivation."""
        shown = [latex_of(sp.N(x, self.digits) if self.tolerance else x) for x in (self.derived, self.reference)]
        end = f"relative difference below ${_power(self.tolerance)}$" if self.tolerance else "exactly equal"
        return Step("number", "A number obtained in two ways", prose(
            f"{self.what}: the derivation gives ${shown[0]}$; {self.how} gives ${shown[1]}$ ({end})."
        ))


def _power(tolerance: float) -> str:
    """A tolerance such as 10^{-9} or 0.03."""
    mantissa, exponent = f"{tolerance:.0e}".split("e")
    if int(exponent) >= -3:
        return f"{tolerance:g}"
    return ("" if mantissa == "1" else rf"{mantissa}\cdot ") + f"10^{{{int(exponent)}}}"


@dataclass(frozen=True)
class Document:
    """One claim with its derivation.

    Attributes:
        name: NN_name, of the script and of the LaTeX file.
        title: words for the heading.
        claim: what is shown, as `prose`.
        steps: the derivation.
        pinned: one number obtained in two ways.
        assumptions, rules: what the derivation rests on, each with its source.
    """

    name: str
    title: str
    claim: str
    steps: tuple[Step, ...]
    pinned: Pinned
    assumptions: tuple[Assumption, ...] = ()
    rules: tuple[Rule, ...] = ()

    @classmethod
    def of(
        cls, derivation: Derivation, name: str, title: str, claim: str, pinned: Pinned, *more: Step,
        without: Sequence[str] = (),
    ) -> Document:
        """The steps of a derivation, some left out by their names, and more steps behind them."""
        steps = tuple(step for step in derivation.steps if step.name not in without)
        return cls(name, title, claim, (*steps, *more), pinned, derivation.assumptions, derivation.rules)

    @property
    def prefix(self) -> str:
        """What its labels begin with."""
        return self.name.partition("_")[2].replace("_", "-")

    def checked(self) -> str:
        """What a script prints: the claim's title and its number.

        Raises:
            DocumentError: when the two values of the number differ.
        """
        pinned = self.pinned
        line = f"{self.title}: {sp.N(pinned.derived, 15)} and {sp.N(pinned.reference, 15)}"
        if not pinned.holds:
            raise DocumentError(f"{line} differ by {pinned.difference:.3g} (relative), more than {pinned.tolerance:g}")
        return line


class DocumentError(FreeattnError):
    """A document whose number does not hold."""


def moment_by_routes(layer: Attention, order: int, values: Mapping[sp.Symbol, sp.Expr]) -> tuple[sp.Expr, sp.Expr]:
    """One moment of a layer by its transforms and by its matrix Dyson equation, which share no step; exact."""
    first, second = (derive(layer, route).moments(order)[-1].subs(values) for route in ("transform", "pencil"))
    return first, second


def latex_section(document: Document) -> str:
    """The document as a section; labels are sec:name and eq:name-equation."""
    options = LatexOptions(document.prefix, macros=True, citations=True)
    steps = (*document.steps, document.pinned.step)
    body = latex_body(steps, document.assumptions, document.rules, options)
    claim = latex_sentence(prose(document.claim), options)
    return _SECTION % (document.name, latex_words(document.title), document.prefix, claim, body)


def latex_collection(sections: Mapping[str, str], title: str) -> str:
    """Sections, as name of the file: text, in one document with title page, contents and references.

    It reads them by \\input, and lists the references that they cite.
    """
    inputs = "\n".join(rf"\input{{{name}}}" for name in sections)
    keys = keys_in("\n".join(sections.values()))
    return _COLLECTION % (latex_words(title), latex_words(_ABOUT), inputs, bibliography(keys))


def publish(document: Document, folder: Path) -> str:
    """Check the number, write folder/name.tex, and return what was found as one line.

    Raises:
        DocumentError: when the number does not hold; nothing is written then.
    """
    found = document.checked()
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{document.name}.tex").write_text(latex_section(document), encoding="utf-8")
    return found
