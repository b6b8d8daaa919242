"""JSON from strangers: one object, strictly read, of limited size and depth."""

from __future__ import annotations

import json
import os
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Any, NoReturn

from freeattn.errors import InputError

__all__ = ["printable", "read_object", "shown"]

MOST_BYTES = 1_000_000  # configurations have a few kilobytes
_LONGEST_NUMBER = 40  # characters; doubles need 24
_LONGEST_SHOWN = 60


class _RefusedError(ValueError):
    """Why a text is not accepted; reported with the name of its file."""


def read_object(path: str | os.PathLike[str]) -> dict[str, Any]:
    """The object that a JSON file contains; numbers become exact decimals.

    Nothing is executed and no other file is opened, whatever the text says.

    Raises:
        InputError: for a file that cannot be read, has more than a megabyte, or is not one object of strict JSON
            (UTF-8; no NaN or infinity, no key twice in one object, no number of more than 40 characters).
    """
    name = os.fspath(path)
    try:
        with Path(name).open("rb") as file:
            data = file.read(MOST_BYTES + 1)
    except IsADirectoryError:
        raise InputError("config", shown(name), "a file, not a folder; often config.json inside it") from None
    except (OSError, ValueError) as error:  # ValueError: a zero byte in the name
        reason = getattr(error, "strerror", None) or str(error)
        raise InputError("config", shown(name), f"a file that can be read ({reason})") from None
    if len(data) > MOST_BYTES:
        raise InputError("config", shown(name), f"a file of at most {MOST_BYTES} bytes")
    try:
        return _parsed(data)
    except _RefusedError as error:
        raise InputError("config", shown(name), f"a file with one JSON object ({error})") from None


def shown(value: object) -> str:
    """A value as messages show it: short, on one line, printable."""
    if isinstance(value, dict):
        return f"an object with {len(value)} keys"
    if isinstance(value, (list, tuple)):
        return f"a list of {len(value)}"
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    text = value if isinstance(value, str) else str(value)
    return printable(text) if len(text) <= _LONGEST_SHOWN else printable(text[:_LONGEST_SHOWN]) + "…"


def printable(text: str) -> str:
    """A text without characters that move the cursor or change colours: these become escapes."""
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)


def _parsed(data: bytes) -> dict[str, Any]:
    try:
        text = data.decode("utf-8-sig")
        value = json.loads(
            text, parse_int=_number, parse_float=_number, parse_constant=_constant, object_pairs_hook=_object
        )
    except UnicodeDecodeError:
        raise _RefusedError("it is not UTF-8 text") from None
    except json.JSONDecodeError as error:
        raise _RefusedError(f"line {error.lineno}, column {error.colno}: {error.msg}") from None
    except RecursionError:
        raise _RefusedError("it is nested too deep") from None
    if not isinstance(value, dict):
        raise _RefusedError("it has no object at the top")
    return value


def _number(text: str) -> Decimal:
    if len(text) > _LONGEST_NUMBER:
        raise _RefusedError(f"number {shown(text)} has more than {_LONGEST_NUMBER} characters")
    try:
        return Decimal(text)
    except InvalidOperation:
        raise _RefusedError(f"number {shown(text)} is out of range") from None


def _constant(text: str) -> NoReturn:
    raise _RefusedError(f"{text} is not a number of JSON")


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found:
            raise _RefusedError(f"the key {shown(key)} stands twice in one object")
        found[key] = value
    return found
