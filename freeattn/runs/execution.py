"""`run`: many tasks on any executor, each finished result stored at once."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import BrokenExecutor, Executor, Future
from contextlib import contextmanager
from pathlib import Path
from queue import SimpleQueue
from typing import Any, NamedTuple, TypeAlias, final

from freeattn.errors import InputError, TaskError
from freeattn.runs.store import Store
from freeattn.runs.task import Task
from freeattn.runs.values import Result, decoded, encoded
from freeattn.runs.workers import InProcess, call, checked_workers, one_blas_thread, process_pool

__all__ = ["InterruptedRunError", "Progress", "run"]

Progress: TypeAlias = Callable[[int, int], None]

_AHEAD = 4  # tasks submitted for each worker, so that none waits for the next
_WINDOW = 1024  # tasks submitted to an executor whose number of workers is not known
_ENDED = (
    "a worker process ended (out of memory? killed?); a script that starts workers needs "
    "`if __name__ == \"__main__\":` around what it does"
)


class InterruptedRunError(KeyboardInterrupt):
    """Ctrl-C during a run; the text says what is kept and how to go on."""


def run(
    tasks: Iterable[Task], *, executor: Executor | None = None, workers: int | None = None,
    store: Store | str | Path | None = None, progress: Progress | None = None,
) -> list[Result]:
    """The results of tasks, in their order.

    Every task runs with one BLAS thread and takes its random numbers from its own key, so that results are the same,
    bit by bit, whatever the executor and the number of workers (on machines with the same BLAS).

    Args:
        tasks: what to compute; tasks with the same key and function are computed once.
        executor: any `concurrent.futures.Executor` (`client.get_executor()` of dask.distributed is one); it is not
            shut down.
        workers: number of processes when there is no executor (default: all available cores); 1 runs in this process.
        store: where finished results are kept at once, and looked up first; a `Store` or its path.
        progress: called as progress(done, total) after each task, and once for all that the store had.

    Raises:
        TaskError: when a task fails: it names the key; what was running is finished and stored first.
        InterruptedRunError: on Ctrl-C (a KeyboardInterrupt): what was finished is in the store.
        InputError: for arguments that are not allowed, or a store that cannot be used.
    """
    every = list(tasks)
    for task in every:
        if not isinstance(task, Task):
            raise InputError("tasks", task, "tasks: Task(key, function, arguments)")
    if executor is not None and workers is not None:
        raise InputError("workers", workers, "nothing next to an executor, which has its own")
    count = checked_workers(workers)
    session = _Session(every, Store(store) if isinstance(store, (str, Path)) else store, progress)
    session.look_up()
    if session.missing:
        try:
            with one_blas_thread(), _place(executor, min(count, len(session.missing))) as place:
                session.compute(place)
        except KeyboardInterrupt:
            raise InterruptedRunError(f"interrupted: {session.kept()}") from None
    return [session.results[task.identity] for task in every]


class _Place(NamedTuple):
    """Where tasks run: an executor, how many tasks it is handed at a time, and whether it belongs to this run.

    Tasks for a pool of processes are pickled once here, to see that they can be: a future that fails in the pool's own
    threads can meet the end of the pool there, which some versions of Python do not expect.
    """

    executor: Executor
    window: int
    owned: bool
    pickles: bool = False

    def stop(self, running: Iterable[Future[Any]]) -> None:
        """Drop what has not begun. A pool does so itself: futures cancelled under it would trip it when it breaks."""
        if self.owned:
            self.executor.shutdown(wait=False, cancel_futures=True)
        else:
            for future in list(running):
                future.cancel()


@contextmanager
def _place(given: Executor | None, workers: int) -> Iterator[_Place]:
    if given is not None:
        yield _Place(given, _WINDOW, owned=False)
    elif workers == 1:
        yield _Place(InProcess(), 1, owned=True)
    else:
        with process_pool(workers) as pool:
            yield _Place(pool, _AHEAD * workers, owned=True, pickles=True)


@final
class _Session:
    """What one call of `run` knows: the tasks, the results so far, and where they are kept."""

    def __init__(self, tasks: Iterable[Task], store: Store | None, progress: Progress | None) -> None:
        self.results: dict[str, Result] = {}
        self._tasks = {task.identity: task for task in tasks}
        self._store, self._progress = store, progress

    @property
    def missing(self) -> list[Task]:
        """Tasks without a result."""
        return [task for identity, task in self._tasks.items() if identity not in self.results]

    def kept(self) -> str:
        """What there is, where it is, and how to go on."""
        finished = f"{len(self.results)} of {len(self._tasks)} results are finished"
        if self._store is None:
            return f"{finished} and lost; with a store they would have been kept"
        return f"{finished} and kept in {self._store.path}; run the same again to go on from there"

    def look_up(self) -> None:
        """Take what the store has."""
        if self._store is not None:
            found = zip(self._tasks, self._store.get_all(list(self._tasks.values())), strict=True)
            self.results |= {identity: result for identity, result in found if result is not None}
        if self.results:
            self._tell()

    def compute(self, place: _Place) -> None:
        """Compute what is missing; after a failure, finish and keep what is running."""
        waiting, running = iter(self.missing), dict[Future[Any], Task]()
        done: SimpleQueue[Future[Any]] = SimpleQueue()
        failure: TaskError | None = None
        try:
            while True:
                while failure is None and len(running) < place.window and (task := next(waiting, None)) is not None:
                    if self._stored(task):  # by another process, meanwhile
                        self._tell()
                        continue
                    failure = self._submit(place, task, running, done)
                if not running or (failure is not None and isinstance(failure.__cause__, BrokenExecutor)):
                    break  # of a broken pool nothing comes any more
                failed = self._take([(running.pop(future), future) for future in _finished(done)])
                if failed is not None and failure is None:
                    failure = failed
                    place.stop(running)
        except BaseException:
            place.stop(running)
            raise
        if failure is not None:
            raise TaskError(failure.key, f"{failure.reason}; {self.kept()}") from failure.__cause__

    def _submit(
        self, place: _Place, task: Task, running: dict[Future[Any], Task], done: SimpleQueue[Future[Any]]
    ) -> TaskError | None:
        try:
            if place.pickles:
                pickle.dumps((task.function, task.arguments))
            future = place.executor.submit(call, task.function, task.arguments)
        except (BrokenExecutor, pickle.PicklingError, AttributeError, TypeError) as error:
            return _failure(task, error)
        running[future] = task
        future.add_done_callback(done.put)
        return None

    def _take(self, finished: Sequence[tuple[Task, Future[Any]]]) -> TaskError | None:
        """Keep the results of finished tasks; what went wrong first, if something did."""
        forms, failure = [], None
        for task, future in finished:
            try:
                forms.append((task, encoded(future.result())))
            except Exception as error:  # whatever a task raised; it is raised again with the key
                failure = failure or _failure(task, error)
        if self._store is not None and forms:
            self._store.keep(forms)
        for task, form in forms:
            self.results[task.identity] = decoded(form)
            self._tell()
        return failure

    def _stored(self, task: Task) -> bool:
        found = None if self._store is None else self._store.get(task)
        if found is not None:
            self.results[task.identity] = found
        return found is not None

    def _tell(self) -> None:
        if self._progress is not None:
            self._progress(len(self.results), len(self._tasks))


def _finished(done: SimpleQueue[Future[Any]]) -> list[Future[Any]]:
    """All futures that are done, at least one: waits for it."""
    found = [done.get()]
    while not done.empty():
        found.append(done.get())
    return found


def _failure(task: Task, error: Exception) -> TaskError:
    reason = _ENDED if isinstance(error, BrokenExecutor) else f"{type(error).__name__}: {error}"
    failure = TaskError(dict(task.key), reason)
    failure.__cause__ = error
    return failure
