"""Results on disk: one SQLite file, each result whole or not there.

Every call opens the file anew, so that a store may be used by several threads and processes and survives a fork; it
uses a rollback journal, which is safe wherever file locks are, and leaves one file behind. A process that dies within
a transaction leaves the store as it was before it.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, final

import freeattn
from freeattn.errors import InputError
from freeattn.runs.task import Task
from freeattn.runs.values import Encoded, Result, decoded, encoded

__all__ = ["Store"]

_APPLICATION = 0x66726561  # "frea": the file says whose it is
_SCHEMA = 1
_BUSY_SECONDS = 60.0  # how long to wait for another process to finish its transaction, which takes milliseconds
_TABLES = """
CREATE TABLE results (
    id INTEGER PRIMARY KEY, identity TEXT NOT NULL, version TEXT NOT NULL, record TEXT NOT NULL, digest BLOB NOT NULL,
    finished REAL NOT NULL, UNIQUE (identity, version));
CREATE TABLE arrays (
    result INTEGER NOT NULL REFERENCES results (id), name TEXT NOT NULL, data BLOB NOT NULL,
    PRIMARY KEY (result, name)) WITHOUT ROWID;
"""


@final
class Store:
    """Finished results in one file, by the key of their task and the version of the package.

    A result that another version of freeattn computed is not returned: numbers may have moved. It stays in the file,
    for that version, until `prune` removes it.

    Args:
        path: the file; made when it is not there.
        version: whose results are read and written (default: the version of the package).

    Raises:
        InputError: for a file that is not a store, is damaged, belongs to a newer freeattn, or cannot be opened.
    """

    def __init__(self, path: str | Path, version: str | None = None) -> None:
        self.path = Path(path)
        self._file = self.path.absolute()  # the folder of the process may change
        self.version = freeattn.__version__ if version is None else version
        if not self.path.parent.is_dir():
            raise self._refusal(f"a file in a folder that exists; {self.path.parent} does not")
        if self.path.is_dir():
            raise self._refusal("a file, not a folder")
        with self._connection() as connection:
            self._check(connection)

    def __repr__(self) -> str:
        return f"Store({str(self.path)!r}, version={self.version!r})"

    def __len__(self) -> int:
        """Number of results of this version."""
        with self._connection() as connection:
            (count,) = connection.execute("SELECT count(*) FROM results WHERE version = ?", (self.version,)).fetchone()
        return int(count)

    def keys(self) -> Iterator[dict[str, Any]]:
        """The keys of this version's results, in the order in which they were finished."""
        with self._connection() as connection:
            found = connection.execute(
                "SELECT identity FROM results WHERE version = ? ORDER BY id", (self.version,)
            ).fetchall()
        yield from (json.loads(identity)["key"] for (identity,) in found)

    def get(self, task: Task) -> Result | None:
        """The result of a task, None when it is not there.

        Raises:
            InputError: when the bytes in the file are not those that were written.
        """
        (found,) = self.get_all([task])
        return found

    def get_all(self, tasks: Sequence[Task]) -> list[Result | None]:
        """`get` of many tasks, opening the file once."""
        with self._connection() as connection:
            connection.execute("BEGIN")  # one state of the file for all queries
            return [self._read(connection, task) for task in tasks]

    def put(self, task: Task, result: Result) -> None:
        """Keep the result of a task, all of it or nothing; a result that is already there stays.

        Raises:
            InputError: for a result that is not plain values and float64 arrays, or a store that cannot be written.
        """
        self.keep([(task, encoded(result))])

    def keep(self, finished: Sequence[tuple[Task, Encoded]]) -> None:
        """`put` of results that are already encoded, in one transaction: each row is whole, whenever the process ends.

        What finished while the last transaction was on its way to the disk goes there together.
        """
        with self._connection() as connection, _transaction(connection):
            for task, form in finished:
                made = connection.execute(
                    "INSERT OR IGNORE INTO results (identity, version, record, digest, finished) "
                    "VALUES (?, ?, ?, ?, ?)",
                    (task.identity, self.version, form.record, _digest(task.identity, form), time.time()),
                )
                if made.rowcount:
                    arrays = [(made.lastrowid, name, data) for name, data in form.arrays.items()]
                    connection.executemany("INSERT INTO arrays VALUES (?, ?, ?)", arrays)

    def _read(self, connection: sqlite3.Connection, task: Task) -> Result | None:
        row = connection.execute(
            "SELECT id, record, digest FROM results WHERE identity = ? AND version = ?", (task.identity, self.version)
        ).fetchone()
        if row is None:
            return None
        arrays = connection.execute("SELECT name, data FROM arrays WHERE result = ? ORDER BY name", row[:1])
        form = Encoded(row[1], dict(arrays.fetchall()))
        if _digest(task.identity, form) != row[2]:
            raise self._refusal(f"a store that is not damaged; the result of {task} is. Delete the file, or restore it")
        return decoded(form)

    def prune(self) -> int:
        """Remove the results of all other versions; returns how many there were."""
        with self._connection() as connection:
            with _transaction(connection):
                other = "SELECT id FROM results WHERE version <> ?"
                connection.execute(f"DELETE FROM arrays WHERE result IN ({other})", (self.version,))
                removed = connection.execute("DELETE FROM results WHERE version <> ?", (self.version,)).rowcount
            connection.execute("VACUUM")
        return int(removed)

    @contextmanager
    def _connection(self) -> Iterator[sqlite3.Connection]:
        """The open file; errors of the database become InputErrors that name the store."""
        try:
            with closing(sqlite3.connect(self._file, timeout=_BUSY_SECONDS, isolation_level=None)) as connection:
                yield connection
        except sqlite3.OperationalError as error:
            if "locked" in str(error):
                raise self._refusal(f"a store that no other process keeps locked for {_BUSY_SECONDS:g} s") from error
            raise self._refusal(f"a file that can be read and written here ({error})") from error
        except sqlite3.DatabaseError as error:
            raise self._refusal(f"a store made by freeattn; this file is damaged or not a store ({error})") from error

    def _check(self, connection: sqlite3.Connection) -> None:
        """Make the tables in an empty file; refuse what is not a store, or not of this schema."""
        with _transaction(connection):  # two processes may begin at once
            (application,) = connection.execute("PRAGMA application_id").fetchone()
            (schema,) = connection.execute("PRAGMA user_version").fetchone()
            (tables,) = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
            if application == 0 and tables == 0:
                for statement in (*_TABLES.strip().split(";\n"), f"PRAGMA application_id = {_APPLICATION}",
                                  f"PRAGMA user_version = {_SCHEMA}"):
                    connection.execute(statement)
            elif application != _APPLICATION:
                raise self._refusal("a store made by freeattn; this is the database of another program")
            elif schema > _SCHEMA:
                allowed = f"a store of schema {_SCHEMA}; this one has schema {schema}, of a newer freeattn: upgrade"
                raise self._refusal(allowed)
            connection.execute("SELECT identity, version, record, digest, finished FROM results LIMIT 0")
            connection.execute("SELECT result, name, data FROM arrays LIMIT 0")

    def _refusal(self, allowed: str) -> InputError:
        return InputError("store", str(self.path), allowed)


@contextmanager
def _transaction(connection: sqlite3.Connection) -> Iterator[None]:
    """All or nothing; the lock is taken first, so that no two processes wait for each other."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
    except BaseException:
        if connection.in_transaction:  # some errors have ended it already
            connection.execute("ROLLBACK")
        raise
    connection.execute("COMMIT")


def _digest(identity: str, form: Encoded) -> bytes:
    """Of all that is kept, so that a damaged row is found out."""
    digest = hashlib.blake2b(digest_size=16)
    for part in (identity, form.record):
        digest.update(len(part).to_bytes(8, "big") + part.encode())
    for name in sorted(form.arrays):
        digest.update(name.encode() + len(form.arrays[name]).to_bytes(8, "big") + form.arrays[name])
    return digest.digest()
