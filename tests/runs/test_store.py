"""Stores: what goes in comes out; what is not a store, or is damaged, is refused by name."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
import threading
from contextlib import closing

import numpy as np
import pytest
import sample_tasks

import freeattn
from freeattn.errors import InputError
from freeattn.runs import Store, Task, run

RESULT = {"values": np.linspace(0, 1, 1000), "mean": 0.5}


def task(number=0):
    return Task({"number": number}, sample_tasks.returns)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "results.db"


def test_what_goes_in_comes_out_of_one_file(path):
    store = Store(path)
    assert store.get(task()) is None
    store.put(task(), RESULT)
    store.put(task(1), {"x": 1})
    again = Store(str(path))
    found = again.get(task())
    assert found["mean"] == 0.5
    assert found["values"].tobytes() == RESULT["values"].tobytes()
    assert len(again) == 2
    assert list(again.keys()) == [{"number": 0}, {"number": 1}]
    assert os.listdir(path.parent) == [path.name]
    assert repr(again) == f"Store({str(path)!r}, version={freeattn.__version__!r})"


def test_a_relative_name_stays_where_it_was(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    store = Store(":memory:")  # a file like any other
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    store.put(task(), RESULT)
    assert store.get(task())["mean"] == 0.5
    assert (tmp_path / ":memory:").exists()


def test_the_first_result_of_a_task_stays(path):
    store = Store(path)
    store.put(task(), RESULT)
    store.put(task(), {"mean": 7})
    assert store.get(task())["mean"] == 0.5


def test_results_of_another_version_are_not_returned(path):
    old, new = Store(path, version="0.0.9"), Store(path)
    old.put(task(), RESULT)
    assert new.get(task()) is None
    assert len(new) == 0
    new.put(task(), {"mean": 0.25})
    assert (old.get(task())["mean"], new.get(task())["mean"]) == (0.5, 0.25)
    assert new.prune() == 1
    assert old.get(task()) is None
    assert new.get(task())["mean"] == 0.25
    assert new.prune() == 0


@pytest.mark.parametrize("content", [b"beta,mean\n1,2\n" * 100, b"\x00" * 5000, b"SQLite format 3\x00" + b"x" * 4000])
def test_a_file_that_is_no_database_is_refused_and_left_alone(path, content):
    path.write_bytes(content)
    with pytest.raises(InputError, match=r"store = .*results\.db.* damaged or not a store"):
        Store(path)
    assert path.read_bytes() == content


def test_the_database_of_another_program_is_refused(path):
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE mine (x)")
    with pytest.raises(InputError, match="another program"):
        Store(path)


def test_a_newer_schema_is_refused(path):
    Store(path)
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA user_version = 2")
    with pytest.raises(InputError, match="schema 2, of a newer freeattn: upgrade"):
        Store(path)


def test_missing_tables_are_refused(path):
    Store(path)
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("DROP TABLE arrays")
    with pytest.raises(InputError, match=r"store = .*no such table: arrays"):
        Store(path)


def test_missing_folders_and_folders_are_refused(tmp_path):
    with pytest.raises(InputError, match="a folder that exists"):
        Store(tmp_path / "no" / "results.db")
    with pytest.raises(InputError, match="not a folder"):
        Store(tmp_path)


def test_damaged_bytes_are_found_out(path):
    store = Store(path)
    store.put(task(), RESULT)
    content = bytearray(path.read_bytes())
    place = content.rindex(RESULT["values"][500].tobytes())
    content[place] ^= 1
    path.write_bytes(content)
    with pytest.raises(InputError, match=r"not damaged; the result of \{\"number\":0\} is"):
        Store(path).get(task())


def test_a_truncated_file_is_refused(path):
    store = Store(path)
    for number in range(20):
        store.put(task(number), RESULT)
    path.write_bytes(path.read_bytes()[:9000])
    with pytest.raises(InputError, match=r"store = .*(damaged|malformed)"):
        [Store(path).get(task(number)) for number in range(20)]


def test_a_bad_result_leaves_nothing(path):
    store = Store(path)
    with pytest.raises(InputError, match="result"):
        store.put(task(), {"values": np.ones(3), "bad": object()})
    assert len(store) == 0


def test_half_a_transaction_is_none(path):
    """A process that dies between a row and its arrays leaves neither."""
    script = (
        "import os, sqlite3, sys; from freeattn.runs import Store; s = Store(sys.argv[1])\n"
        "with s._connection() as c:\n"
        "    c.execute('PRAGMA cache_spill = 1'); c.execute('PRAGMA cache_size = 1'); c.execute('BEGIN IMMEDIATE')\n"
        "    for i in range(10, 210):\n"
        "        c.execute('INSERT INTO results VALUES (?, ?, ?, ?, ?, 0)', (i, str(i), 'v', 'x' * 3000, b''))\n"
        "    os._exit(9)\n"
    )
    Store(path).put(task(), RESULT)
    assert subprocess.run([sys.executable, "-c", script, str(path)], check=False).returncode == 9
    assert len(os.listdir(path.parent)) == 2  # the journal of the transaction that broke off
    store = Store(path)
    assert (len(store), len(Store(path, version="v"))) == (1, 0)
    assert store.get(task())["mean"] == 0.5


def test_threads_share_a_store(path):
    store = Store(path)

    def work(first):
        for number in range(first, first + 20):
            store.put(task(number % 40), {"n": number % 40})

    threads = [threading.Thread(target=work, args=(10 * k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(key["number"] for key in store.keys()) == list(range(40))  # noqa: SIM118
    assert all(store.get(task(number)) == {"n": number} for number in range(40))


def test_two_processes_share_a_store_from_its_beginning(tmp_path, path):
    script = (
        "import sys; sys.path.insert(0, sys.argv[1]); import sample_tasks; from freeattn.runs import run\n"
        "run(sample_tasks.slow_squares(30, sys.argv[2], 0.01), store=sys.argv[3], workers=1)\n"
    )
    folder = tmp_path / "marks"
    folder.mkdir()
    command = [sys.executable, "-c", script, os.path.dirname(sample_tasks.__file__), str(folder), str(path)]
    both = [subprocess.Popen(command) for _ in range(2)]
    assert [process.wait() for process in both] == [0, 0]
    tasks = sample_tasks.slow_squares(30, folder, 0)
    before = [sample_tasks.marks(folder, number) for number in range(30)]
    found = run(tasks, store=path, workers=1)
    assert [one["square"] for one in found] == [number**2 for number in range(30)]
    assert len(Store(path)) == 30
    assert [sample_tasks.marks(folder, number) for number in range(30)] == before  # nothing was computed again


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_that_is_closed_is_refused(tmp_path):
    tmp_path.chmod(0o500)
    try:
        with pytest.raises(InputError, match="can be read and written here"):
            Store(tmp_path / "results.db")
    finally:
        tmp_path.chmod(0o700)
