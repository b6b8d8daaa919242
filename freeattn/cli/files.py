"""Files that a command writes: named by options, and refused before computing."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from freeattn.errors import InputError
from freeattn.report.writing import OutputFile

__all__ = ["output_files"]


def output_files(force: bool, given: Mapping[str, str | None]) -> dict[str, OutputFile]:
    """The checked files of a command, by the name of the option; options that were not given are left out.

    Raises:
        InputError: as `OutputFile.check`, for what is no name, or when two options name the same file.
    """
    files = {
        field: OutputFile(field, name, force, overwrite="--force") for field, name in given.items() if name is not None
    }
    taken: dict[Path, str] = {}
    for field, file in files.items():
        if file.given in ("", "-"):
            raise InputError(field, file.given or "(empty)", "the name of a file")
        file.check()
        if file.path in taken:
            raise InputError(field, file.given, f"another file than that of {taken[file.path]}")
        taken[file.path] = field
    return files
