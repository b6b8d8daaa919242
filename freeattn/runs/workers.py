"""Where tasks run: in this process, or in processes of their own that end with it; always with one BLAS thread."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future, ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing.connection import Connection
from typing import Any, final

from threadpoolctl import threadpool_limits

from freeattn.errors import InputError

__all__ = ["InProcess", "available_cores", "call", "checked_workers", "process_pool"]

_INTERRUPTED = 130


def available_cores() -> int:
    """Cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def checked_workers(workers: object) -> int:
    """A number of workers; None is all available cores.

    Raises:
        InputError: unless it is a positive integer.
    """
    if workers is None:
        return available_cores()
    if isinstance(workers, bool) or not isinstance(workers, int) or workers < 1:
        raise InputError("workers", workers, "a positive integer, or None for all available cores")
    return workers


def call(function: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
    """function(*arguments) with one BLAS thread: sums are then taken in one order, whatever the number of cores."""
    with _ONE_BLAS_THREAD:
        return function(*arguments)


@final
class _BlasThreads:
    """One BLAS thread while anyone is inside. The number belongs to the process: the last thread out restores it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._inside = 0
        self._limits: threadpool_limits | None = None

    def __enter__(self) -> None:
        with self._lock:
            if self._inside == 0:
                self._limits = threadpool_limits(1, user_api="blas")
            self._inside += 1

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._inside -= 1
            if self._inside == 0 and self._limits is not None:
                self._limits.restore_original_limits()
                self._limits = None


_ONE_BLAS_THREAD = _BlasThreads()


@final
class InProcess(Executor):
    """Runs each task when it is submitted, in the thread that submits it."""

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """A future that is done; KeyboardInterrupt and its like pass through."""
        future: Future[Any] = Future()
        try:
            result = fn(*args, **kwargs)
        except Exception as error:  # handed to whoever asks for the result, as every executor does
            future.set_exception(error)
        else:
            future.set_result(result)
        return future


@contextmanager
def process_pool(workers: int) -> Iterator[Executor]:
    """Fresh processes (spawned: the same on every system, and safe next to threads), stopped at once on an error.

    Each holds one end of a pipe whose other end is here: when this process closes it or dies, they end.
    """
    context = multiprocessing.get_context("spawn")
    theirs, ours = context.Pipe(duplex=False)
    executor = ProcessPoolExecutor(workers, mp_context=context, initializer=_end_with_parent, initargs=(theirs,))
    try:
        yield executor
        executor.shutdown()
    finally:
        ours.close()
        executor.shutdown(wait=False, cancel_futures=True)
        theirs.close()


def _end_with_parent(pipe: Connection) -> None:
    """In a new worker: leave Ctrl-C to the parent, and end when the parent lets go of the pipe."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_wait_and_end, args=(pipe,), daemon=True).start()


def _wait_and_end(pipe: Connection) -> None:
    try:
        pipe.recv_bytes()
    except (EOFError, OSError):  # how the end of a pipe is told
        os._exit(_INTERRUPTED)
