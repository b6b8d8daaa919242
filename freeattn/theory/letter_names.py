"""Names of letters, spaces and blocks, such that two names never look the same."""

from __future__ import annotations

import re

from freeattn.theory.latex_words import latex_name
from freeattn.theory.notation import Notation

__all__ = ["name_of", "under"]

_CAPITALS = re.compile(r"([A-Z])([A-Z]*)(\d*)(°?)")  # K, O°, WQ, UK2: no product of letters
_NUMBERED = re.compile(r"([A-Za-z]+)(\d*)")
_INDEXED = re.compile(r"([A-Za-z]+)_(\w+)", re.ASCII)


def name_of(name: str) -> Notation:
    """A name of a letter, space or block, such that different names look different.

    What follows an underscore or is a number stands below: y_j, and x with 1 below for x1. A number behind an
    underscore is without serifs, for x1 and x_1 are two names. Of a name in capitals the first is the matrix and the
    rest stands above, W^{Q} for WQ: WQ would be a product. Other names are written letter for letter; so is WT, for
    W^{T} is the transpose of W.
    """
    if (capitals := _CAPITALS.fullmatch(name)) and capitals[2] + capitals[4] not in ("", "T"):
        letter, above, number, ring = capitals.groups()
        above += r"\circ" if ring else ""
        return Notation(f"{letter}^{{{above}}}" + (f"_{{{number}}}" if number else ""), name)
    if numbered := _NUMBERED.fullmatch(name):
        return Notation(_upright(numbered[1]) + (under(numbered[2]) if numbered[2] else ""), name)
    indexed_name = _INDEXED.fullmatch(name)
    if indexed_name and "_" not in indexed_name[2]:
        head, index = indexed_name.groups()
        return Notation(_upright(head) + (rf"_{{\mathsf{{{index}}}}}" if index.isdigit() else under(index)), name)
    return Notation(latex_name(name).rstrip(" ").replace("^{T}", r"^{\mathsf{T}}"), name)


def _upright(letters: str) -> str:
    """A name of several letters is upright: it is no product."""
    return letters if len(letters) == 1 else rf"\mathrm{{{letters}}}"


def under(index: str) -> str:
    """An index, upright when it has several characters."""
    return f"_{index}" if len(index) == 1 else rf"_{{\mathrm{{{index}}}}}"
