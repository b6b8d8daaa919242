"""How far the work on a report is."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias, final

__all__ = ["Parts", "Progress"]

Progress: TypeAlias = Callable[[int, int], None]


@final
class Parts:
    """Counts the parts of the work that are done, and tells `progress`."""

    def __init__(self, progress: Progress | None, total: int) -> None:
        self._progress, self._total, self._done = progress, total, 0

    def done(self, count: int = 1) -> None:
        """So many more parts are done."""
        self._done += count
        if self._progress is not None:
            self._progress(self._done, self._total)

    def of_draws(self) -> Progress:
        """The progress of a verification, each of whose draws is a part."""
        told = 0

        def draw_done(done: int, total: int) -> None:
            nonlocal told
            del total
            self.done(done - told)
            told = done

        return draw_done
