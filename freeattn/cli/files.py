"""Files that a command writes: refused before computing, and never left half written."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from freeattn.errors import InputError

__all__ = ["OutputFile", "output_files"]


@dataclass(frozen=True)
class OutputFile:
    """A file to be written at the end of a command.

    Attributes:
        field: the option that named it, for messages.
        given: the name as typed.
        force: overwrite a regular file that exists.
    """

    field: str
    given: str
    force: bool = False

    @property
    def path(self) -> Path:
        """Where the bytes go: links are followed, so that a link stays a link."""
        return Path(os.path.realpath(self.given))

    def check(self) -> None:
        """Refuse what could not be written, before anything is computed.

        Raises:
            InputError: the folder is missing or closed, or the name is taken.
        """
        if self.given in ("", "-"):
            raise InputError(self.field, self.given or "(empty)", "the name of a file")
        folder = self.path.parent
        if not folder.is_dir():
            raise InputError(self.field, self.given, f"a file in a folder that exists; {folder} does not")
        if self.path.exists():
            if not self.path.is_file():
                raise InputError(self.field, self.given, "a file, not a folder or a device")
            if not self.force:
                raise InputError(self.field, self.given, "a file that does not exist yet (or --force)")
        if not os.access(folder, os.W_OK | os.X_OK):
            raise InputError(self.field, self.given, f"a file in a folder open to writing; {folder} is not")

    @contextmanager
    def writing(self) -> Iterator[Path]:
        """A temporary name in the same folder; it takes the place of the file only if the block succeeds."""
        part = self.path.with_name(f".{self.path.stem}.{secrets.token_hex(4)}{self.path.suffix}")
        try:
            yield part
            self.check()  # someone may have made the file meanwhile
            os.replace(part, self.path)
        finally:
            part.unlink(missing_ok=True)


def output_files(force: bool, given: Mapping[str, str | None]) -> dict[str, OutputFile]:
    """The checked files of a command, by the name of the option; options that were not given are left out.

    Raises:
        InputError: as `OutputFile.check`, or when two options name the same file.
    """
    files = {field: OutputFile(field, name, force) for field, name in given.items() if name is not None}
    taken: dict[Path, str] = {}
    for field, file in files.items():
        file.check()
        if file.path in taken:
            raise InputError(field, file.given, f"another file than that of {taken[file.path]}")
        taken[file.path] = field
    return files
