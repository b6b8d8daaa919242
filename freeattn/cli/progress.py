"""Progress of a command: on a terminal, after two seconds, with the time left where it is known; nothing elsewhere."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from freeattn import report

__all__ = ["progress_of"]


@contextmanager
def progress_of(what: str, total: int | None = None) -> Iterator[Callable[[int, int], None] | None]:
    """The function to call with (done, total), None when stderr is not a terminal."""
    if not sys.stderr.isatty():
        yield None
        return
    with report.progress_on_stderr(total, what) as progress:
        yield progress
