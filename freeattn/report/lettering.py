"""Letters of pictures: names are drawn as they are, whatever characters they have.

matplotlib takes what stands between two dollars for a formula, leaves names that begin with an underscore out of
legends, and warns of characters that a font lacks. A name that goes through `plain_text` is read as none of these, and
`all_letters` lends the fonts that are installed to texts whose own font lacks a character.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from typing import Any

__all__ = ["MissingGlyphWarning", "all_letters", "plain_text"]

_NO_LETTERS = "\n"
_BOXES = "Last Resort"  # fonts that draw a box for every character
_TRUETYPE = (1, 0)  # version of the table "maxp" in fonts that can be embedded as TrueType


class MissingGlyphWarning(UserWarning):
    """No font that is installed has a character of a name: its number is drawn instead."""


def plain_text(text: str) -> str:
    """A name, or another text without formulas, as matplotlib has to be given it to draw it letter for letter.

    A character that no installed font has becomes its number, [U+4E2D], with a `MissingGlyphWarning`.
    """
    lacking = [character for character in _lacking(text, _usual_families()) if _lender(character) is None]
    for character in lacking:
        text = text.replace(character, f"[U+{ord(character):04X}]")
    if lacking:
        numbers = ", ".join(f"U+{ord(character):04X}" for character in lacking)
        advice = "install a font that has it, and name it in rcParams['font.family'] of matplotlib"
        warnings.warn(f"no font has {numbers}, so the number is drawn; {advice}", MissingGlyphWarning, stacklevel=3)
    escaped = text.replace("$", r"\$")
    return f" {escaped}" if escaped.startswith("_") else escaped


@contextmanager
def all_letters(figure: Any) -> Iterator[None]:
    """While a figure is written, its texts may also use fonts that have what their own font lacks."""
    from matplotlib.text import Text

    for ax in figure.axes:
        ax.get_xticklabels(), ax.get_yticklabels()  # names at ticks are texts from here on
    before = []
    for text in figure.findobj(Text):
        families = text.get_fontfamily()
        lenders = dict.fromkeys(_lender(character) for character in _lacking(text.get_text(), families))
        lent = [name for name in lenders if name is not None]
        if lent:
            before.append((text, families))
            text.set_fontfamily([*families, *lent])
    try:
        yield
    finally:
        for text, families in before:
            text.set_fontfamily(families)


def _usual_families() -> list[str]:
    from matplotlib import rcParams

    return list(rcParams["font.family"])


def _lacking(text: str, families: Sequence[str]) -> list[str]:
    """The characters of a text, each once, that no font of the families has."""
    rare = [one for one in dict.fromkeys(text) if one not in _NO_LETTERS and not (one.isascii() and one.isprintable())]
    if not rare:
        return []
    held = [_characters(path) for path in _files_of(families)]
    return [one for one in rare if not any(ord(one) in characters for characters in held)]


def _files_of(families: Iterable[str]) -> Iterator[str]:
    from matplotlib.font_manager import FontProperties, findfont

    for family in families:
        try:
            yield findfont(FontProperties(family=[family]), fallback_to_default=False)
        except ValueError:  # not installed
            continue


def _lender(character: str) -> str | None:
    """The family of the first installed font, by name, that has a character and can be embedded."""
    from matplotlib.font_manager import fontManager

    entries = sorted({(entry.name, entry.fname) for entry in fontManager.ttflist if _is_plain(entry)})
    return next((name for name, path in entries if ord(character) in _characters(path)), None)


def _is_plain(entry: Any) -> bool:
    return entry.style == "normal" and entry.weight == 400 and not entry.name.startswith(_BOXES)


@lru_cache(maxsize=1024)
def _characters(path: str) -> frozenset[int]:
    """The characters of a font file; none where it cannot be read, or not be embedded as TrueType."""
    from matplotlib.font_manager import get_font

    try:
        font = get_font(path)
    except (OSError, RuntimeError):  # gone, or of a kind that FreeType does not read
        return frozenset()
    table = font.get_sfnt_table("maxp")
    return frozenset(font.get_charmap()) if table is not None and tuple(table["version"]) == _TRUETYPE else frozenset()
