"""Progress on stderr with the time left, for what takes more than a moment. Importing this module imports rich."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Timer
from typing import final

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, ProgressColumn, TextColumn, TimeElapsedColumn

__all__ = ["TimeLeft", "progress_on_stderr"]

_SHOWN_AFTER = 2.0  # seconds


@final
class TimeLeft:
    """How long the rest takes, from what was computed since the start.

    Results come one by one; a jump by more than one is what a store had, and says nothing about speed.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock, self._start = clock, clock()
        self._done = self._computed = 0

    def text(self, done: int, total: int) -> str:
        """ "0:01:30 left", or nothing before anything was computed."""
        if done - self._done == 1:
            self._computed += 1
        self._done = done
        if not self._computed:
            return ""
        seconds = round((self._clock() - self._start) / self._computed * (total - done))
        return f"{seconds // 3600}:{seconds // 60 % 60:02}:{seconds % 60:02} left"


@contextmanager
def progress_on_stderr(
    total: int | None, what: str = "drawing", after: float = _SHOWN_AFTER
) -> Iterator[Callable[[int, int], None]]:
    """A progress bar on stderr that appears after some seconds and is gone when done.

    Yields the function to call with (done, total). Without a total it shows the time that has passed. Colours follow
    NO_COLOR.
    """
    counted: tuple[ProgressColumn, ...] = (MofNCompleteColumn(), TextColumn("{task.fields[left]}"))
    columns = counted if total is not None else (TimeElapsedColumn(),)
    console = Console(stderr=True)
    bar = Progress(TextColumn("{task.description}"), BarColumn(), *columns, console=console, transient=True)
    task, left = bar.add_task(what, total=total, left=""), TimeLeft()
    timer = Timer(after, bar.start)
    timer.daemon = True
    timer.start()
    try:
        yield lambda done, of: bar.update(task, completed=done, total=of, left=left.text(done, of))
    finally:
        timer.cancel()
        timer.join()  # it may be starting the bar
        if bar.live.is_started:
            bar.stop()
