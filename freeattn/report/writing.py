"""Files that a caller asks for: complete or not there, and never in place of another one unasked."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from freeattn.errors import InputError

__all__ = ["OutputFile", "write_file"]

_LONGEST = 32  # characters of a name that go into the temporary one: systems limit its length


@dataclass(frozen=True)
class OutputFile:
    """A file to be written, under a temporary name until it is complete.

    Attributes:
        field: the argument or option that named it, for messages.
        given: the name as it was given.
        force: overwrite a regular file that exists.
        overwrite: how `force` is asked for, for messages.
    """

    field: str
    given: str
    force: bool = False
    overwrite: str = "force=True"

    @property
    def path(self) -> Path:
        """Where the bytes go: links are followed, so that a link stays a link."""
        return Path(os.path.realpath(self.given))

    def check(self) -> None:
        """Refuse what could not be written, before anything is computed.

        Raises:
            InputError: the folder is missing or closed, or the name is taken.
        """
        folder = self.path.parent
        if not folder.is_dir():
            raise InputError(self.field, self.given, f"a file in a folder that exists; {folder} does not")
        if self.path.exists():
            if not self.path.is_file():
                raise InputError(self.field, self.given, "a file, not a folder or a device")
            if not self.force:
                raise InputError(self.field, self.given, f"a file that does not exist yet (or {self.overwrite})")
        if not os.access(folder, os.W_OK | os.X_OK):
            raise InputError(self.field, self.given, f"a file in a folder open to writing; {folder} is not")

    @contextmanager
    def writing(self) -> Iterator[Path]:
        """A temporary name in the same folder; it takes the place of the file only if the block succeeds.

        Raises:
            InputError: as `check`, and where the system refuses to write, as on a full disk; what was there stays.
        """
        part = self.path.with_name(f".{self.path.stem[:_LONGEST]}.{secrets.token_hex(4)}{self.path.suffix}")
        try:
            yield part
            self.check()  # someone may have made the file meanwhile
            os.replace(part, self.path)
        except OSError as error:
            raise self._unwritten(error.strerror or str(error)) from error
        except InputError as error:
            if not isinstance(error.__cause__, OSError) or error.value != os.fspath(part):
                raise
            raise self._unwritten(error.__cause__.strerror or str(error.__cause__)) from error.__cause__
        finally:
            part.unlink(missing_ok=True)

    def _unwritten(self, reason: str) -> InputError:
        return InputError(self.field, self.given, f"a file that can be written ({reason})")


def write_file(path: str | os.PathLike[str], content: bytes, force: bool = False) -> None:
    """Write a file; one that exists is overwritten with `force` only, as on the command line.

    Raises:
        InputError: as `OutputFile.check` and `OutputFile.writing`.
    """
    file = OutputFile("path", os.fspath(path), force)
    file.check()
    with file.writing() as part:
        part.write_bytes(content)
