"""Progress over computations whose number is known."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Protocol, TypeVar

from freeattn.cli.progress import progress_of

__all__ = ["Step", "steps_of"]

_T = TypeVar("_T")


class Step(Protocol):
    """Does one of the computations and counts it."""

    def __call__(self, compute: Callable[[], _T]) -> _T: ...


@contextmanager
def steps_of(total: int) -> Iterator[Step]:
    """What does the computations one by one, with the time left on a terminal (see `progress_of`)."""
    with progress_of("computing", total) as progress:
        done = 0

        def step(compute: Callable[[], _T]) -> _T:
            nonlocal done
            found = compute()
            done += 1
            if progress is not None:
                progress(done, total)
            return found

        yield step
