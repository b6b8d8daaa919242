"""Running tasks: order, executors, bitwise the same numbers, failures, interruption."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from concurrent.futures import Executor, Future, ThreadPoolExecutor

import pytest
import sample_tasks
from sample_tasks import marks, slow_squares, spectra
from threadpoolctl import threadpool_limits

from freeattn.errors import FreeattnError, InputError, TaskError
from freeattn.runs import InterruptedRunError, Store, Task, available_cores, run

N = 6


def returning(value, name="r"):
    return Task({"name": name}, sample_tasks.returns, (value,))


@pytest.fixture(scope="module")
def serial():
    return run(spectra(N), workers=1)


def same(first, second):
    return all(
        one["values"].tobytes() == two["values"].tobytes() and one["mean"] == two["mean"] and one["draw"] == two["draw"]
        for one, two in zip(first, second, strict=True)
    )


def test_results_are_in_the_order_of_the_tasks(serial):
    assert [one["draw"] for one in serial] == list(range(N))
    backwards = run(spectra(N)[::-1], workers=1)
    assert same(backwards[::-1], serial)


def test_two_workers_give_the_same_bits_and_one_blas_thread(serial):
    tasks = [*spectra(N), Task({"what": "threads"}, sample_tasks.blas_threads)]
    *found, threads = run(tasks, workers=2)
    assert same(found, serial)
    assert set(threads["threads"]) == {1}


def test_threads_give_the_same_bits_whatever_blas_would_do(serial):
    with threadpool_limits(4, user_api="blas"):
        with ThreadPoolExecutor(3) as threads:
            found = run([*spectra(N), Task({"what": "threads"}, sample_tasks.blas_threads)], executor=threads)
            assert threads.submit(sample_tasks.returns, 1).result() == 1  # it is not shut down
        assert set(found[-1]["threads"]) == {1}
        after = sample_tasks.blas_threads()["threads"]
        assert set(after) == {min(4, max(after))}
        assert max(after) > 1 or available_cores() == 1
    assert same(found[:-1], serial)


def test_a_store_gives_the_same_bits(serial, tmp_path):
    for _ in range(2):
        assert same(run(spectra(N), workers=1, store=tmp_path / "s.db"), serial)
    assert same(run(spectra(N), executor=Refusing(), store=Store(tmp_path / "s.db")), serial)


class Refusing(Executor):
    """Fails the test when anything is computed."""

    def submit(self, fn, /, *args, **kwargs):
        raise AssertionError(f"computed {fn}{args}{kwargs}")


class Counting(Executor):
    """Holds back what it is given, and tells how much that was at most."""

    def __init__(self):
        self.held, self.most = [], 0

    def submit(self, fn, /, *args, **kwargs):
        future = Future()
        self.held.append((future, fn, args, kwargs))
        self.most = max(self.most, len(self.held))
        if len(self.held) == 1000:
            self.release()
        return future

    def release(self):
        for future, fn, args, kwargs in self.held:
            future.set_result(fn(*args, **kwargs))
        self.held = []


def test_thousands_of_tasks_are_handed_over_in_a_bounded_window():
    executor = Counting()
    tasks = [Task({"i": i}, sample_tasks.returns, ({"i": i},)) for i in range(3000)]
    assert [one["i"] for one in run(tasks, executor=executor)] == list(range(3000))
    assert executor.most == 1000


def test_equal_tasks_are_computed_once(tmp_path):
    tasks = slow_squares(3, tmp_path, 0)
    found = run([*tasks, tasks[0], *slow_squares(1, tmp_path, 0)], workers=1)
    assert [one["square"] for one in found] == [0, 1, 4, 0, 0]
    assert [marks(tmp_path, number) for number in range(3)] == [1, 1, 1]


def test_progress_counts_what_the_store_had_in_one_step(tmp_path):
    calls = []
    run(spectra(2), workers=1, store=tmp_path / "s.db")
    run(spectra(4), workers=1, store=tmp_path / "s.db", progress=lambda *call: calls.append(call))
    assert calls == [(2, 4), (3, 4), (4, 4)]


def test_no_tasks_no_results():
    assert run([]) == []


@pytest.mark.parametrize("workers", [0, -1, 1.0, True, "2"])
def test_workers_are_a_positive_integer(workers):
    with pytest.raises(InputError, match="workers"):
        run(spectra(1), workers=workers)


def test_workers_next_to_an_executor_are_refused():
    with pytest.raises(InputError, match="workers = 2"):
        run(spectra(1), executor=Refusing(), workers=2)


def test_only_tasks_are_run():
    with pytest.raises(InputError, match="tasks"):
        run([sample_tasks.returns])


# Failures ---------------------------------------------------------------------------------------------------------


def failing(bad, count=8):
    return [Task({"number": i}, sample_tasks.fails_on, (i, bad)) for i in range(count)]


def test_a_failure_names_the_key_and_keeps_what_was_finished(tmp_path):
    store = Store(tmp_path / "s.db")
    with pytest.raises(TaskError, match=r"'number': 4} failed: ZeroDivisionError: no 4; 4 of 8 .* kept in") as caught:
        run(failing(4), workers=1, store=store)
    assert isinstance(caught.value.__cause__, ZeroDivisionError)
    assert isinstance(caught.value, FreeattnError)
    assert caught.value.key == {"number": 4}
    assert len(store) == 4


def test_what_is_running_is_finished_and_stored_before_a_failure_is_raised(tmp_path):
    store = Store(tmp_path / "s.db")
    slow = Task({"slow": 1}, sample_tasks.slow_square, (1, str(tmp_path), 0.5))
    with ThreadPoolExecutor(2) as threads, pytest.raises(TaskError, match="no 0"):
        run([slow, *failing(0, 1), *failing(-1, 400)[1:]], executor=threads, store=store)
    assert store.get(slow)["square"] == 1


def test_a_failure_in_a_pool_drops_what_has_not_begun(tmp_path):
    store = Store(tmp_path / "s.db")
    with pytest.raises(TaskError, match="no 0; "):
        run([*failing(0, 1), *slow_squares(40, tmp_path, 0.2)], workers=2, store=store)
    kept = [key["square of"] for key in store.keys()]  # noqa: SIM118
    done = [number for number in range(40) if marks(tmp_path, number)]
    assert sorted(kept) == done  # what began was finished and kept
    assert len(done) < 20
    again = run([*failing(-1, 1), *slow_squares(40, tmp_path, 0)], workers=1, store=store)
    assert [one["square"] for one in again[1:]] == [number**2 for number in range(40)]
    assert all(marks(tmp_path, number) == 1 for number in range(40))


def test_runs_may_run_others(tmp_path):
    """A task that runs tasks of its own, as a row of a sweep with draws does."""
    with threadpool_limits(4, user_api="blas"):
        (inner,) = run([Task({"nested": 1}, sample_tasks.nested, (str(tmp_path),))], workers=1)
        assert set(inner["before"]) == set(inner["after"]) == {1}
        assert inner["squares"] == [0, 1, 4]
        assert set(sample_tasks.blas_threads()["threads"]) == {4}


def test_a_result_that_cannot_be_kept_is_a_failure_of_its_task():
    with pytest.raises(TaskError, match=r"task {'name': 'r'} failed: InputError: result\.x"):
        run([returning({"x": object()})], workers=1)


def test_a_worker_that_dies_is_a_failure(tmp_path):
    tasks = [Task({"dies": i}, sample_tasks.ends_its_process) for i in range(2)]
    with pytest.raises(TaskError, match=r"a worker process ended .*__main__"):
        run(tasks, workers=2, store=tmp_path / "s.db")


# Interruption -----------------------------------------------------------------------------------------------------


def test_an_interruption_says_what_is_kept_and_how_to_go_on(tmp_path):
    def interrupt(done, _total):
        if done == 3:
            raise KeyboardInterrupt

    store = tmp_path / "s.db"
    with pytest.raises(InterruptedRunError, match=r"3 of 6 results are finished and kept in .*s\.db; run the same"):
        run(spectra(N), workers=1, store=store, progress=interrupt)
    assert len(Store(store)) == 3
    with pytest.raises(KeyboardInterrupt, match="lost; with a store"):
        run(spectra(N), workers=1, progress=interrupt)


def started(folder, store, workers):
    command = [sys.executable, sample_tasks.__file__, str(folder), str(store), str(workers)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def wait_for(condition, seconds=60):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.02)


def children(pid):
    """Processes whose parent is pid, by /proc."""
    found = []
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{name}/stat") as handle:
                if int(handle.read().rpartition(")")[2].split()[1]) == pid:
                    found.append(int(name))
        except OSError:
            continue  # it has ended
    return found


def alive(pid):
    try:
        with open(f"/proc/{pid}/stat") as handle:
            return handle.read().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@pytest.mark.skipif(not os.path.isdir("/proc/self"), reason="looks for processes in /proc")
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
@pytest.mark.parametrize("workers", [1, 2])
def test_a_killed_run_goes_on_with_the_same_numbers(tmp_path, workers, number):
    store, folder = tmp_path / "s.db", tmp_path / "marks"
    folder.mkdir()
    with started(folder, store, workers) as process:
        wait_for(lambda: store.exists() and len(Store(store)) >= 3)
        helpers = children(process.pid)
        process.send_signal(number)
        said, _ = process.communicate(timeout=30)
    assert process.returncode == (-9 if number == signal.SIGKILL else 130)
    assert ("kept in" in said) == (number == signal.SIGINT)
    wait_for(lambda: not any(alive(pid) for pid in helpers), seconds=10)  # no worker is left behind
    kept = [key["square of"] for key in Store(store).keys()]  # noqa: SIM118
    assert 3 <= len(kept) < 12
    before = {i: marks(folder, i) for i in kept}
    found = run(slow_squares(12, folder, 0), store=store, workers=1)
    untouched = run(slow_squares(12, tmp_path, 0), workers=1)
    assert [one["square"] for one in found] == [one["square"] for one in untouched]
    assert [one["array"].tobytes() for one in found] == [one["array"].tobytes() for one in untouched]
    assert {i: marks(folder, i) for i in kept} == before == dict.fromkeys(kept, 1)
