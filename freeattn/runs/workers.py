"""Where tasks run: in this process, or in processes of their own that end with it; always with one BLAS thread."""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future, ProcessPoolExecutor
from contextlib import AbstractContextManager, ExitStack, contextmanager
from multiprocessing.connection import Connection
from operator import index
from typing import Any, final

from threadpoolctl import threadpool_limits

from freeattn.errors import InputError

__all__ = ["InProcess", "available_cores", "call", "checked_workers", "one_blas_thread", "process_pool"]

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
    try:
        number = 0 if isinstance(workers, bool) else index(workers)  # type: ignore[arg-type]
    except TypeError:
        number = 0
    if number < 1:
        raise InputError("workers", workers, "a positive integer, or None for all available cores")
    return number


def call(function: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
    """function(*arguments) with one BLAS thread: sums are then taken in one order, whatever the number of cores.

    In a process that is not inside `one_blas_thread`, a worker, the number stays at one: a worker may run several tasks
    at once, and none may change it under another.
    """
    _BLAS.settle()
    return function(*arguments)


def one_blas_thread() -> AbstractContextManager[None]:
    """A context with one BLAS thread in this process; the last one out restores the number."""
    return _BLAS.limited()


@final
class _Blas:
    """The number of BLAS threads, which belongs to the process. Some libraries let one thread alone change it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._inside = 0
        self._limits = ExitStack()
        self._owner: threading.Thread | None = None
        self._modules = 0  # how many were loaded when the libraries were looked up: that takes milliseconds

    @contextmanager
    def limited(self) -> Iterator[None]:
        """One thread while anyone is inside."""
        with self._lock:
            self._inside += 1
            if self._inside == 1:
                self._owner, self._modules = threading.current_thread(), len(sys.modules)
                self._limits.enter_context(threadpool_limits(1, user_api="blas"))
        try:
            yield
        finally:
            with self._lock:
                self._inside -= 1
                if self._inside == 0:
                    self._limits.close()
                    self._modules = 0

    def settle(self) -> None:
        """One thread in libraries that were loaded since the last time, too."""
        with self._lock:
            if self._modules == len(sys.modules):
                return
            self._modules = len(sys.modules)
            if not self._inside:
                threadpool_limits(1, user_api="blas")
            elif self._owner is threading.current_thread():
                self._limits.enter_context(threadpool_limits(1, user_api="blas"))


_BLAS = _Blas()


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


@final
class _Pool(ProcessPoolExecutor):
    """Processes that are started with Ctrl-C held back: a terminal sends it to them too, before they can ignore it."""

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """As of every pool; processes are started here, and inherit the signal mask of this thread."""
        if not hasattr(signal, "pthread_sigmask"):  # Windows has no masks
            return super().submit(fn, *args, **kwargs)
        before = signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGINT,))
        try:
            return super().submit(fn, *args, **kwargs)
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextmanager
def process_pool(workers: int) -> Iterator[Executor]:
    """Fresh processes (spawned: the same on every system, and safe next to threads), stopped at once on an error.

    Each holds one end of a pipe whose other end is here: when this process closes it or dies, they end.
    """
    context = multiprocessing.get_context("spawn")
    theirs, ours = context.Pipe(duplex=False)
    executor = _Pool(workers, mp_context=context, initializer=_end_with_parent, initargs=(theirs,))
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
