"""Where a LaTeX formula may break: estimated widths, and lines filled with pieces that may stand alone."""

from __future__ import annotations

import re
from collections.abc import Sequence

__all__ = ["lines_of", "width_of"]

_SPACING = re.compile(r"\\(bigl|bigr|mathrm|text|operatorname|limits|displaystyle|,|;|!|quad|qquad)(?![a-zA-Z])")
_COMMAND = re.compile(r"\\[a-zA-Z]+")
_FRACTION = r"\frac"
_OPERATOR = 2.3  # width of a sign between two terms, spaces included
_WIDE = ("boxtimes", "boxplus", "leftrightarrow", "approx", "sim", "dots", "min")
_SCRIPT = 0.7  # width of a sub- or superscript against the line


def width_of(latex: str) -> float:
    """The width of a formula in characters, estimated: the wider part of each fraction, scripts smaller."""
    return _width(_SPACING.sub(lambda found: "~~~~" if "quad" in found[1] else "", latex))


def _width(latex: str) -> float:
    total, at = 0.0, 0
    while at < len(latex):
        character = latex[at]
        if latex.startswith(_FRACTION, at):
            top, at = _group(latex, at + len(_FRACTION))
            bottom, at = _group(latex, at)
            total += max(_width(top), _width(bottom)) + 0.7
        elif character in "_^":
            inner, at = _group(latex, at + 1)
            total += _SCRIPT * _width(inner)
        elif character == "\\":
            command = _COMMAND.match(latex, at)
            at = command.end() if command else at + 2
            total += _OPERATOR if command and command[0][1:] in _WIDE else 1
        else:
            at += 1
            total += 0 if character in "{} \n&" else _OPERATOR if character in "+-=<>" else 1
    return total


def _group(latex: str, at: int) -> tuple[str, int]:
    """The braced group, command or character at a position, and the position after it."""
    if not latex.startswith("{", at):
        command = _COMMAND.match(latex, at)
        end = command.end() if command else at + 1
        return latex[at:end], end
    depth, end = 0, at
    while end < len(latex):
        depth += {"{": 1, "}": -1}.get(latex[end], 0)
        end += 1
        if depth == 0:
            break
    return latex[at + 1 : end - 1], end


def lines_of(pieces: Sequence[str], first: float, other: float) -> list[str]:
    """Pieces joined to lines of at most the given widths; a piece wider than a line stands alone."""
    lines: list[list[str]] = [[]]
    room = first
    for piece in pieces:
        width = width_of(piece)
        if lines[-1] and width > room:
            lines.append([])
            room = other
        lines[-1].append(piece)
        room -= width
    return [" ".join(line) for line in lines]
