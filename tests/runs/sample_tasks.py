"""Tasks for the tests of runs: functions that other processes import."""

from __future__ import annotations

import os
import time

import numpy as np
from threadpoolctl import threadpool_info

from freeattn.runs import Task, run

SIZE = 150  # BLAS takes several threads from about 100 on


def spectrum(seed, draw):
    """Sums in BLAS and LAPACK, whose order depends on the number of threads."""
    generator = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(draw,)))
    matrix = generator.standard_normal((SIZE, SIZE))
    values = np.linalg.svd(matrix @ matrix.T, compute_uv=False)
    return {"values": values, "mean": float(values.mean()), "draw": draw}


def spectra(count, seed=0):
    return [Task({"what": "spectrum", "seed": seed, "draw": i}, spectrum, (seed, i)) for i in range(count)]


def slow_square(number, folder, seconds):
    """A task that leaves a mark for every time that it was computed."""
    time.sleep(seconds)
    with open(os.path.join(folder, f"{number}.mark"), "a") as handle:
        handle.write("x")
    return {"square": float(number**2), "array": np.full(3, number / 7)}


def slow_squares(count, folder, seconds):
    return [Task({"square of": i}, slow_square, (i, str(folder), seconds)) for i in range(count)]


def marks(folder, number):
    path = os.path.join(folder, f"{number}.mark")
    return os.path.getsize(path) if os.path.exists(path) else 0


def blas_threads():
    return {"threads": [pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"]}


def nested(folder):
    before = blas_threads()["threads"]
    squares = [one["square"] for one in run(slow_squares(3, folder, 0), workers=1)]
    return {"before": before, "squares": squares, "after": blas_threads()["threads"]}


def returns(value):
    return value


def fails_on(number, bad):
    if number == bad:
        raise ZeroDivisionError(f"no {number}")
    return {"number": number}


def ends_its_process():
    os._exit(3)


if __name__ == "__main__":  # a run that a test kills: folder, store, number of workers
    import signal
    import sys

    import sample_tasks

    signal.signal(signal.SIGINT, signal.default_int_handler)  # a background job of a shell starts without it
    folder, store, workers = sys.argv[1:]
    try:
        run(sample_tasks.slow_squares(12, folder, 0.3), store=store, workers=int(workers))
    except KeyboardInterrupt as error:
        print(error)
        sys.exit(130)
