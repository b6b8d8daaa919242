"""Files of numbers: one spectrum as .npy, or as text (.csv, .txt)."""

from __future__ import annotations

from pathlib import Path
from tokenize import TokenError
from typing import Any

import numpy as np

from freeattn.errors import InputError

__all__ = ["read_spectrum"]

_MOST_BYTES = 64 * 2**20
_TEXT = (".csv", ".txt", ".dat", ".tsv")


def read_spectrum(path: str | Path) -> Any:
    """The array of an .npy file (no pickles), or the numbers of a text file.

    A text has one number a line, or one line of numbers between commas, blanks or semicolons; empty lines and lines
    that start with "#" are left out.

    Raises:
        InputError: naming the file and what is wrong with it.
    """
    file = Path(path)
    if file.suffix.lower() not in (".npy", *_TEXT):
        raise InputError("spectrum", str(path), f"a file that ends in .npy, {', '.join(_TEXT)}")
    if not file.is_file():
        raise InputError("spectrum", str(path), "a regular file that exists")
    try:
        size = file.stat().st_size
        if size > _MOST_BYTES:
            raise InputError("spectrum", f"{path} ({size} bytes)", f"a file of at most {_MOST_BYTES} bytes")
        return _from_npy(file) if file.suffix.lower() == ".npy" else _from_text(file)
    except OSError as error:
        raise InputError("spectrum", str(path), f"a file that can be read ({error.strerror or error})") from None


def _from_npy(file: Path) -> Any:
    try:
        with file.open("rb") as stream:
            return np.lib.format.read_array(stream, allow_pickle=False)
    except (ValueError, EOFError, SyntaxError, TokenError, TypeError, KeyError, MemoryError) as error:
        reason = " ".join(str(error).split()) or type(error).__name__
        raise InputError("spectrum", str(file), f"one array of numbers in numpy's format ({reason})") from None


def _from_text(file: Path) -> Any:
    try:
        text = file.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError:
        raise InputError("spectrum", str(file), "a text file in UTF-8") from None
    rows = []
    for number, line in enumerate(text.splitlines(), start=1):
        cells = line.replace(",", " ").replace(";", " ").split()
        if cells and not line.lstrip().startswith("#"):
            rows.append([_number(file, number, cell) for cell in cells])
    if len(rows) > 1 and any(len(row) > 1 for row in rows):
        allowed = "one number a line, or all numbers in one line; this file has a table"
        raise InputError("spectrum", str(file), allowed)
    return np.array([value for row in rows for value in row], dtype=float)


def _number(file: Path, line: int, cell: str) -> float:
    try:
        if "_" in cell or not cell.isascii():  # Python reads 1_000 and digits of other scripts
            raise ValueError(cell)
        return float(cell)
    except ValueError:
        shown = cell if len(cell) <= 40 else f"{cell[:40]}…"
        allowed = f"numbers only; line {line} has {shown!r} (start the lines of a header with #)"
        raise InputError("spectrum", str(file), allowed) from None
