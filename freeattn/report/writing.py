"""Files that a caller of Python asks for: complete or not there, and never in place of another one unasked."""

from __future__ import annotations

import os
from pathlib import Path

from freeattn.errors import InputError

__all__ = ["write_file"]


def write_file(path: str | os.PathLike[str], content: bytes, force: bool = False) -> None:
    """Write a file; one that exists is overwritten with `force` only, as on the command line.

    Raises:
        InputError: the name is taken, or its folder does not exist.
    """
    file = Path(path)
    if file.is_dir():
        raise InputError("path", os.fspath(path), "a file, not a folder")
    try:
        with file.open("wb" if force else "xb") as handle:
            handle.write(content)
    except FileExistsError:
        raise InputError("path", os.fspath(path), "a file that does not exist yet (or force=True)") from None
    except (FileNotFoundError, NotADirectoryError):
        raise InputError("path", os.fspath(path), "a file in a folder that exists") from None
