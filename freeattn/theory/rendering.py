"""Steps as LaTeX (article with amsmath) and as plain text."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from freeattn.theory.assumptions import Assumption, Rule
from freeattn.theory.bibliography import bibliography, cited, keys_in
from freeattn.theory.breaking import lines_of, width_of
from freeattn.theory.latex_words import latex_words
from freeattn.theory.macros import with_macros
from freeattn.theory.notation import latex_of, text_of
from freeattn.theory.steps import Equation, Piece, Reference, Step, Vanishing
from freeattn.theory.writing import latex_tokens, text_equation

__all__ = ["LatexOptions", "latex_body", "latex_document", "latex_fragment", "latex_sentence", "to_text"]

_LINE = 60  # characters of formula that fit on a line of article at 10pt, by `width_of`
_ROW = 54  # of several formulas side by side: the room for each is estimated
_NUMBER, _INDENT = 6, 2  # room for an equation number, and the indent of a continued line
_COLUMNS = 100
_PAGE = re.compile(r" \(docs/\w+\)")  # of the documentation, which a document in LaTeX does not come with

_BOXES = r"""% Needs amsmath.
\providecommand{\boxtimes}{\mathbin{\fboxsep=.6pt\fboxrule=.3pt\raisebox{.1ex}{\fbox{$\scriptstyle\times$}}}}
\providecommand{\boxplus}{\mathbin{\fboxsep=.6pt\fboxrule=.3pt\raisebox{.1ex}{\fbox{$\scriptstyle+$}}}}
"""
_WITH_MACROS = "% Needs freeattn.sty, and references.bib for the citations.\n"
_DOCUMENT = r"""\documentclass{article}  %% run LaTeX twice: it numbers references in the second run
\usepackage{%s}
\title{%s}
\author{}
\date{}
\begin{document}
\maketitle
%s
\end{document}
"""
_TITLE = "Derivation of a limiting spectral law"


@dataclass(frozen=True)
class LatexOptions:
    """How a derivation is written in LaTeX.

    Attributes:
        prefix: equations have labels eq:prefix-name; documents of several derivations give each its own.
        macros: write with the macros of freeattn.sty, which the document must load.
        citations: sources as \\cite of keys in references.bib; False: in words.
    """

    prefix: str = "freeattn"
    macros: bool = False
    citations: bool = False

    def label(self, name: str) -> str:
        """The label of an equation by its name."""
        return f"eq:{self.prefix}-{name.replace('_', '-')}"


def latex_body(
    steps: Sequence[Step], assumptions: Sequence[Assumption], rules: Sequence[Rule], options: LatexOptions
) -> str:
    """Numbered steps, assumptions and sources, as the body of a section; definitions of symbols are the document's."""
    parts = []
    for number, step in enumerate(steps, 1):
        sentence = latex_sentence(step.sentence, options)
        equations = _latex_equations(step.equations, options)
        parts.append(rf"\paragraph{{{number}. {step.title}.}} {sentence}" + "\n" + equations)
    source = cited if options.citations else latex_words
    parts += [
        _latex_list("Assumptions", [
            latex_words(f"{_capital(a.name)}: {a.statement} (") + source(_PAGE.sub("", a.source)) + ")."
            for a in assumptions
        ]),
        _latex_list("Sources", [latex_words(f"{_capital(rule.name)}: ") + source(rule.source) + "." for rule in rules]),
    ]
    body = "\n".join(part.rstrip("\n") for part in parts if part) + "\n"
    return with_macros(body) if options.macros else body


def latex_sentence(sentence: Iterable[Piece], options: LatexOptions) -> str:
    """Words and formulas as LaTeX text."""
    return "".join(_latex_piece(piece, options) for piece in sentence)


def latex_fragment(
    steps: Sequence[Step], assumptions: Sequence[Assumption], rules: Sequence[Rule], options: LatexOptions
) -> str:
    """A fragment for a document that loads amsmath (or freeattn.sty, with macros)."""
    return (_WITH_MACROS if options.macros else _BOXES) + latex_body(steps, assumptions, rules, options)


def latex_document(bodies: Sequence[tuple[str, str]], options: LatexOptions, title: str = _TITLE) -> str:
    """A whole document of sections (title, body); one without a title has no heading. References are listed in it."""
    sections = "\n".join((rf"\section{{{heading}}}" + "\n" if heading else "") + body for heading, body in bodies)
    parts = ["" if options.macros else _BOXES, sections.rstrip("\n"), bibliography(keys_in(sections))]
    return _DOCUMENT % (
        "freeattn" if options.macros else "amsmath", title, "\n".join(part.strip("\n") for part in parts if part)
    )


def to_text(steps: Sequence[Step], assumptions: Sequence[Assumption], rules: Sequence[Rule]) -> str:
    """The same in plain text, at most 100 columns where formulas allow."""
    parts = []
    for number, step in enumerate(steps, 1):
        sentence = "".join(piece if isinstance(piece, str) else text_of(piece) for piece in step.sentence)
        parts.append(_wrapped(f"{number}. {step.title}. {sentence}", "", "   "))
        parts += [_wrapped(text_equation(equation), "      ", "          ") for equation in step.equations]
        parts.append("")
    for title, lines in (
        ("Assumptions", [f"{_capital(a.name)}: {a.statement} ({a.source})." for a in assumptions]),
        ("Sources", _sources(rules)),
    ):
        parts += [title, *(_wrapped(line, " - ", "   ") for line in lines), ""]
    return "\n".join(parts).rstrip("\n") + "\n"


def _sources(rules: Iterable[Rule]) -> list[str]:
    return [f"{_capital(rule.name)}: {rule.source}." for rule in rules]


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def _wrapped(text: str, first: str, other: str) -> str:
    return textwrap.fill(
        text, _COLUMNS, initial_indent=first, subsequent_indent=other, break_long_words=False, break_on_hyphens=False
    )


def _latex_piece(piece: Piece, options: LatexOptions) -> str:
    if isinstance(piece, Reference):
        ends = dict.fromkeys((piece.names[0], piece.names[-1]))
        return "--".join(rf"\eqref{{{options.label(name)}}}" for name in ends)
    return latex_words(piece) if isinstance(piece, str) else f"${latex_of(piece)}$"


def _latex_list(title: str, lines: Iterable[str]) -> str:
    items = "\n".join(rf"\item {line}" for line in lines)
    return rf"\paragraph{{{title}.}}" + "\n\\begin{itemize}\n" + items + "\n\\end{itemize}" if items else ""


def _latex_equations(equations: Sequence[Equation | Vanishing], options: LatexOptions) -> str:
    """Main equations are numbered, one by one; the others share lines as far as they fit."""
    blocks: list[str] = []
    row: list[str] = []
    for equation in equations:
        left, tokens = latex_tokens(equation, _LINE)
        whole = " ".join([left, *tokens])
        if equation.main or width_of(whole) > _LINE:
            blocks += [*_row(row), _display(equation, left, tokens, options)]
            row = []
        elif width_of(r"\qquad ".join([*row, whole])) > _ROW:
            blocks += _row(row)
            row = [whole]
        else:
            row.append(whole)
    return "\n".join(blocks + _row(row))


def _row(formulas: list[str]) -> list[str]:
    return ["\\begin{equation*}\n" + ",\\qquad ".join(formulas) + "\n\\end{equation*}"] if formulas else []


def _display(equation: Equation | Vanishing, left: str, tokens: list[str], options: LatexOptions) -> str:
    star = "" if equation.main else "*"
    label = rf"\label{{{options.label(equation.name)}}}" + "\n" if equation.main else ""
    room = _LINE - (_NUMBER if equation.main else 0)
    lines = lines_of(tokens, room - width_of(left), room - width_of(left) - _INDENT)
    if len(lines) == 1:
        body = f"{left} {lines[0]}".strip()
    else:
        rows = " \\\\\n&\\quad ".join(lines)
        body = f"\\begin{{split}}\n{left} &{rows}\n\\end{{split}}"
    return f"\\begin{{equation{star}}}{label}\n{body}\n\\end{{equation{star}}}".replace("}\n\n", "}\n")


