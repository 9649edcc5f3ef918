"""Store in an SQLite file: for all processes of one machine."""

from __future__ import annotations

import os
import random
import sqlite3
import time
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl

import sqlalchemy as sa
from sqlalchemy.pool import NullPool

from multiplay._support.atomic_files import PRIVATE, as_path, writable_folder
from multiplay.errors import InvalidInput, StoreError, UnknownOutcome
from multiplay.storage.connection import MAYBE_COMMITTED, DatabaseConnection
from multiplay.storage.sql import TIMEOUT, SqlStore, checked_timeout

SYNCHRONOUS = ("full", "normal")
# Seconds between two attempts to get the lock: random, from SHORTEST to a limit that doubles with
# each attempt, so that waiting processes do not slow down the one that holds the lock.
SHORTEST, FIRST, LONGEST = 0.0002, 0.0025, 0.01
CHANCE = random.SystemRandom()  # forked processes would share the state of a seeded generator

HAS_TABLE = "SELECT 1 FROM sqlite_master WHERE name = ?"
LOGS = ("-wal", "-shm")  # endings of the log and its index
BUSY = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
LOST = (
    sqlite3.SQLITE_IOERR,
    sqlite3.SQLITE_CORRUPT,
    sqlite3.SQLITE_NOTADB,
    sqlite3.SQLITE_CANTOPEN,
    sqlite3.SQLITE_READONLY,  # permanent, even if the file becomes writable again
)
ALLOW = "Allow this user to write the folder, the file, and its -wal and -shm files."
REASONS = {
    sqlite3.SQLITE_FULL: ("the disk is full", "Free some space, and retry."),
    sqlite3.SQLITE_READONLY: ("it is read-only", ALLOW),
    sqlite3.SQLITE_PERM: ("this user has no permission", ALLOW),
    sqlite3.SQLITE_CANTOPEN: (
        "it cannot be opened",
        "Check that the file and its folder exist, and that this user may write them.",
    ),
    sqlite3.SQLITE_CORRUPT: ("the file is damaged", "Restore a backup."),
    sqlite3.SQLITE_NOTADB: ("the file is not a database", "Check the name, or restore a backup."),
    sqlite3.SQLITE_IOERR: ("the disk cannot be read or written", "Check the disk, and retry."),
}


class SqliteStore(SqlStore):
    """A store in an SQLite file, for all processes of a machine.

    Parameters
    ----------
    path
        The file; it is created with the first journal, and its folder too.
    synchronous
        "full": committed entries survive a power failure. "normal": they survive a crash of the
        process, but the last ones may be lost in a power failure.
    timeout
        Seconds to wait for transactions of other processes.
    """

    def __init__(
        self, path: str | Path, synchronous: str = "full", timeout: float = TIMEOUT
    ) -> None:
        if str(path) in ("", ".", ":memory:"):
            hint = "Use the name of a file, or memory://."
            raise InvalidInput("store", "the name of a file", repr(str(path)), hint)
        self.path = as_path("store", path).absolute()
        if self.path.is_dir():
            got = f"{path}, a folder"
            raise InvalidInput("store", "the name of a file", got, "Add a file name.")
        self.synchronous, self.timeout = synchronous, timeout
        default = synchronous == "full" and timeout == TIMEOUT
        options = "" if default else f"?synchronous={synchronous}&timeout={timeout:g}"
        engine = sa.create_engine("sqlite://", creator=self._connect, poolclass=NullPool)
        super().__init__(f"sqlite:///{path}{options}", engine)

    def __reduce__(self) -> tuple[type, tuple[Path, str, float]]:
        return type(self), (self.path, self.synchronous, self.timeout)

    @classmethod
    def at(cls, rest: str) -> SqliteStore:
        """Return the store of a URL, given its part after ``sqlite://``."""
        path, _, query = rest.partition("?")
        if path and not path.startswith("/"):
            hint = f"Write three slashes: sqlite:///{rest}."
            raise InvalidInput("store", "sqlite:///file.db", f"sqlite://{rest}", hint)
        options: dict[str, Any] = {}
        for name, value in parse_qsl(query, keep_blank_values=True):
            if name == "synchronous" and value in SYNCHRONOUS:
                options[name] = value
            elif name == "synchronous":
                got = repr(value)
                raise InvalidInput(name, " or ".join(SYNCHRONOUS), got, "Use one of these.")
            elif name == "timeout":
                options[name] = checked_timeout(name, value)
            else:
                expected = "the options synchronous and timeout"
                raise InvalidInput("store", expected, repr(name), "Remove this option.")
        return cls(path[1:], **options)

    def _connect(self) -> sqlite3.Connection:
        return sqlite3.connect(
            f"{self.path.as_uri()}?mode=rw",  # never creates a file
            uri=True,
            timeout=0,  # _run waits instead: with shorter pauses, and more fairly
            isolation_level=None,
            check_same_thread=False,  # one thread at a time, not always the same
        )

    def _new_connection(self, kept: bool) -> SqliteConnection:
        return SqliteConnection(self)

    def _create_file(self) -> None:
        if not self.path.exists():
            if not self.path.parent.exists():
                writable_folder("store", self.path.parent)
            try:
                self.path.touch(PRIVATE)  # SQLite gives its log the same permissions
            except OSError as error:
                reason = f"the file cannot be created ({error.strerror})"
                raise StoreError(self.url, reason, "Choose a different path.") from error


class SqliteConnection(DatabaseConnection):
    """A connection to an SQLite file."""

    Error = sqlite3.Error

    def __init__(self, store: SqliteStore) -> None:
        super().__init__(store.url, store.engine, store.sql)
        self._path, self._timeout = str(store.path), store.timeout
        self._synchronous = store.synchronous
        self._file: tuple[int, ...] = ()
        self._logs: list[tuple[int, ...] | None] = []  # the log and its index, once they exist

    def has_table(self, name: str) -> bool:
        """Return whether a table of this name exists."""
        if not os.path.exists(self._path):
            return False
        return bool(self._call(self._fetched, HAS_TABLE, (name,)))

    def begin_to_create_tables(self) -> None:
        """Begin a transaction, with a write-ahead log: readers do not wait for the writer."""
        self._call(self._run, "PRAGMA journal_mode=WAL")
        self.begin()

    def _prepare(self) -> None:
        self._logs = [None, None]
        with suppress(OSError):  # deleted meanwhile
            self._file = _identity(self._path)
        self._run(f"PRAGMA synchronous={self._synchronous}")
        with suppress(sqlite3.OperationalError):  # read-only or in use: slower, but it works
            if self._fetched("PRAGMA journal_mode") != [("wal",)]:
                self._connection.execute("PRAGMA journal_mode=WAL")

    def _is_current(self) -> bool:
        """Return whether the paths still name the opened files, with the same permissions.

        The file may have been replaced by a backup, and its log deleted: what is written to a
        deleted log is lost with the process. A connection that was opened while the file was
        read-only can never write.
        """
        try:
            return _identity(self._path) == self._file and self._has_its_logs()
        except OSError:
            return False

    def _has_its_logs(self) -> bool:
        """Return whether the log and its index are the files that were opened.

        They exist from the first use of the connection until it is closed.
        """
        for k, suffix in enumerate(LOGS):
            try:
                found = _identity(self._path + suffix)[:2]
            except FileNotFoundError:
                if self._logs[k] is not None:
                    return False
                continue
            if self._logs[k] is None:
                self._logs[k] = found
            elif self._logs[k] != found:
                return False
        return True

    def commit(self, before: str = "") -> None:
        """Commit the transaction; raise ``UnknownOutcome`` if its files were deleted meanwhile."""
        is_used = self._in_transaction
        super().commit(before)
        if is_used and not self._is_in_place():
            self._drop()
            raise UnknownOutcome(
                self.url, "its files were replaced during a commit", MAYBE_COMMITTED
            )

    def _is_in_place(self) -> bool:
        try:
            return _identity(self._path)[:2] == self._file[:2] and self._has_its_logs()
        except OSError:
            return False

    def _begin(self) -> None:
        self._run("BEGIN IMMEDIATE")

    def _begin_on_journal(self, journal: int) -> tuple[Any, ...] | None:
        self._run("BEGIN IMMEDIATE")
        head: tuple[Any, ...] | None = self._run(self._head_query.text, (journal,)).fetchone()
        return head

    def _has_begun(self) -> bool:
        return bool(self._connection.in_transaction)

    def _run(self, text: str, values: tuple[Any, ...] = ()) -> sqlite3.Cursor:
        connection: sqlite3.Connection = self._connection
        try:
            return connection.execute(text, values)
        except sqlite3.OperationalError as error:
            if _code(error) not in BUSY:
                raise
        except UnicodeDecodeError:  # the message of SQLite quotes damaged bytes of the file
            damaged = sqlite3.DatabaseError("the schema is damaged")
            damaged.sqlite_errorcode = sqlite3.SQLITE_CORRUPT
            raise damaged from None
        deadline, longest = time.monotonic() + self._timeout, FIRST
        while True:
            time.sleep(CHANCE.uniform(SHORTEST, longest))
            longest = min(2 * longest, LONGEST)
            try:
                return connection.execute(text, values)
            except sqlite3.OperationalError as error:
                if _code(error) not in BUSY or time.monotonic() > deadline:
                    raise

    def _run_all(self, text: str, values: list[tuple[Any, ...]]) -> sqlite3.Cursor:
        connection: sqlite3.Connection = self._connection
        return connection.executemany(text, values)

    def _is_lost(self, error: Exception) -> bool:
        return isinstance(error, sqlite3.ProgrammingError) or _code(error) in LOST

    def _explained(self, error: Exception) -> StoreError:
        code = _code(error)
        if code in BUSY:
            reason = f"another process has been writing for {self._timeout:g} seconds"
            hint = "Stop that process, or wait longer: ?timeout=60."
        elif code == sqlite3.SQLITE_CANTOPEN and not os.path.exists(self._path):
            reason, hint = "the file does not exist", "Check the path, or restore a backup."
        else:
            message = " ".join(str(error).split())
            reason, hint = REASONS.get(code, (message, "Correct the cause, and retry."))
        return StoreError(self.url, reason, hint)


def _identity(path: str) -> tuple[int, ...]:
    found = os.stat(path)
    return found.st_ino, found.st_dev, found.st_mode


def _code(error: Exception) -> int:
    return getattr(error, "sqlite_errorcode", -1) & 0xFF  # without the extended part of the code
