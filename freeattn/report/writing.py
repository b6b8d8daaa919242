"""Files that a caller asks for: complete or not there, and never in place of another one unasked."""

from __future__ import annotations

import os
import secrets
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from freeattn.errors import InputError

__all__ = ["OutputFile", "write_file"]

_LONGEST = 32  # characters of a name that go into the temporary one: systems limit its length
_MOST_LINKS = 40  # as Linux follows


@dataclass(frozen=True)
class OutputFile:
    """A file to be written, under a temporary name until it is complete.

    What is no regular file (a pipe, a device, an open descriptor such as /dev/stdout) is written to when the file is
    complete: nothing there could be overwritten.

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
        if self._is_stream:
            if not os.path.exists(self.given):
                raise InputError(self.field, self.given, "a stream that is open")
            return
        folder = self.path.parent
        if not folder.is_dir():
            raise InputError(self.field, self.given, f"a file in a folder that exists; {folder} does not")
        if self.path.exists():
            if not self.path.is_file():
                raise InputError(self.field, self.given, "a file, not a folder")
            if not self.force:
                raise InputError(self.field, self.given, f"a file that does not exist yet (or {self.overwrite})")
        if not os.access(folder, os.W_OK | os.X_OK):
            raise InputError(self.field, self.given, f"a file in a folder open to writing; {folder} is not")

    @property
    def _is_stream(self) -> bool:
        exists = os.path.exists(self.given)
        special = exists and not os.path.isfile(self.given) and not os.path.isdir(self.given)
        return special or _descriptor(self.given) is not None

    @contextmanager
    def writing(self) -> Iterator[Path]:
        """A temporary name; what is there takes the place of the file, or goes to the stream, if the block succeeds.

        Raises:
            InputError: as `check`, and where the system refuses to write, as on a full disk; what was there stays.
        """
        streams = self._is_stream
        folder = Path(tempfile.gettempdir()) if streams else self.path.parent
        name = Path(self.given) if streams else self.path
        part = folder / f".{name.stem[:_LONGEST]}.{secrets.token_hex(4)}{name.suffix}"
        try:
            yield part
            if streams:
                _send(part, self.given)
            else:
                self.check()  # someone may have made the file meanwhile
                os.replace(part, self.path)
        except BrokenPipeError:  # the reader has what it wanted
            raise
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


def _descriptor(name: str) -> int | None:
    """The open descriptor of this process that a name stands for, as /dev/stdout and /dev/fd/3 do; None for others."""
    for _ in range(_MOST_LINKS):
        folder, last = os.path.split(os.path.abspath(name))
        folder = os.path.realpath(folder)
        if folder in ("/dev/fd", f"/proc/{os.getpid()}/fd"):
            return int(last) if last.isascii() and last.isdigit() else None
        if not os.path.islink(name):
            return None
        name = os.path.join(folder, os.readlink(name))
    return None


def _send(part: Path, name: str) -> None:
    """Write the bytes of a file to a stream; of a descriptor, behind what was written to it before."""
    descriptor = _descriptor(name)
    if descriptor is not None:
        sys.stdout.flush()
        descriptor = os.dup(descriptor)
    with part.open("rb") as source, open(name if descriptor is None else descriptor, "wb") as stream:
        shutil.copyfileobj(source, stream)


def write_file(path: str | os.PathLike[str], content: bytes, force: bool = False) -> None:
    """Write a file; one that exists is overwritten with `force` only, as on the command line.

    Raises:
        InputError: as `OutputFile.check` and `OutputFile.writing`.
    """
    file = OutputFile("path", os.fspath(path), force)
    file.check()
    with file.writing() as part:
        part.write_bytes(content)
