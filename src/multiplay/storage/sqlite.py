"""Journals in an SQLite file: nothing to install, nothing to start."""

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

from multiplay._support.atomic_files import as_path, writable_folder
from multiplay.errors import InvalidInput, StoreError
from multiplay.storage.connection import Link
from multiplay.storage.sql import TIMEOUT, SqlStore, seconds

SYNCHRONOUS = ("full", "normal")
# Seconds between two tries to have the turn: by chance, from the shortest to what doubles with each
# try. Whoever waits long shall not keep those from working who have the turn.
SHORTEST, FIRST, LONGEST = 0.0002, 0.0025, 0.01
CHANCE = random.SystemRandom()  # forked processes would share the numbers of another one

HAS_TABLE = "SELECT 1 FROM sqlite_master WHERE name = ?"
BUSY = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
LOST = (
    sqlite3.SQLITE_IOERR,
    sqlite3.SQLITE_CORRUPT,
    sqlite3.SQLITE_NOTADB,
    sqlite3.SQLITE_CANTOPEN,
    sqlite3.SQLITE_READONLY,  # for ever, even if the file may be written again
)
ALLOW = "Allow this user to write its folder, the file, and those beside it with -wal and -shm."
REASONS = {
    sqlite3.SQLITE_FULL: ("the disk is full", "Make room, and try again."),
    sqlite3.SQLITE_READONLY: ("it can only be read", ALLOW),
    sqlite3.SQLITE_PERM: ("this user may not use it", ALLOW),
    sqlite3.SQLITE_CANTOPEN: (
        "it cannot be opened",
        "Check that file and folder are there, and that this user may write them.",
    ),
    sqlite3.SQLITE_CORRUPT: ("the file is damaged", "Restore a backup."),
    sqlite3.SQLITE_NOTADB: ("the file is not a database", "Restore a backup, or check the name."),
    sqlite3.SQLITE_IOERR: ("the disk cannot be read or written", "Check the disk, and try again."),
}


class SqliteStore(SqlStore):
    """Keeps journals in a file, for all processes of a machine.

    Parameters
    ----------
    path
        Of the file; it is made with the first journal, and its folder if need be.
    synchronous
        "full": what was written survives a power cut. "normal": it survives the death of the
        process, and a power cut may take the last entries.
    timeout
        Seconds to wait for others.
    """

    def __init__(
        self, path: str | Path, synchronous: str = "full", timeout: float = TIMEOUT
    ) -> None:
        if str(path) in ("", ".", ":memory:"):
            hint = "Give the name of a file, or memory://."
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
        """Return the store of a URL, from behind ``sqlite://``."""
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
                raise InvalidInput(name, " or ".join(SYNCHRONOUS), got, "Choose one of them.")
            elif name == "timeout":
                options[name] = seconds(name, value)
            else:
                expected = "the options synchronous and timeout"
                raise InvalidInput("store", expected, repr(name), "Remove the other option.")
        return cls(path[1:], **options)

    def _connect(self) -> sqlite3.Connection:
        return sqlite3.connect(
            f"{self.path.as_uri()}?mode=rw",  # never makes a file
            uri=True,
            timeout=0,  # we wait ourselves: shorter, and more justly
            isolation_level=None,
            check_same_thread=False,  # one thread at a time, but not always the same
        )

    def _link(self) -> SqliteLink:
        return SqliteLink(self)

    def _make_place(self) -> None:
        if not self.path.exists():
            if not self.path.parent.exists():
                writable_folder("store", self.path.parent)
            try:
                self.path.touch()
            except OSError as error:
                reason = f"the file cannot be made ({error.strerror})"
                raise StoreError(self.url, reason, "Choose another place.") from error


class SqliteLink(Link):
    """A connection to a file."""

    Error = sqlite3.Error

    def __init__(self, store: SqliteStore) -> None:
        super().__init__(store.url, store.engine, store.sql)
        self._path, self._timeout = str(store.path), store.timeout
        self._synchronous = store.synchronous
        self._file: tuple[int, ...] = ()

    def has_table(self, name: str) -> bool:
        """Say whether there is a table of this name."""
        if not os.path.exists(self._path):
            return False
        return bool(self._done(self._fetched, HAS_TABLE, (name,)))

    def begin_to_make_tables(self) -> None:
        """Begin to write, with a write-ahead log: then readers and the writer do not wait."""
        self._done(self._run, "PRAGMA journal_mode=WAL")
        self.begin()

    def _prepare(self) -> None:
        with suppress(OSError):  # gone again
            self._file = _identity(self._path)
        self._run(f"PRAGMA synchronous={self._synchronous}")
        with suppress(sqlite3.OperationalError):  # read-only, or in use: it works without, slower
            if self._fetched("PRAGMA journal_mode") != [("wal",)]:
                self._connection.execute("PRAGMA journal_mode=WAL")

    def _is_current(self) -> bool:
        """Say whether the file is still the one that was opened, and who may write it.

        A backup may be in its place. Who opened it while it could only be read never writes.
        """
        try:
            return _identity(self._path) == self._file
        except OSError:
            return False

    def _begin(self) -> None:
        self._run("BEGIN IMMEDIATE")

    def _begin_turn(self, journal: int) -> tuple[int, bytes] | None:
        self._run("BEGIN IMMEDIATE")
        head: tuple[int, bytes] | None = self._run(self.sql.head.text, (journal,)).fetchone()
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
            reason = f"another program has been writing for {self._timeout:g} seconds"
            hint = "End it, or wait longer: ?timeout=60."
        elif code == sqlite3.SQLITE_CANTOPEN and not os.path.exists(self._path):
            reason, hint = "there is no such file", "Check the path, or restore a backup."
        else:
            told = " ".join(str(error).split())
            reason, hint = REASONS.get(code, (told, "Read what it says, and try again."))
        return StoreError(self.url, reason, hint)


def _identity(path: str) -> tuple[int, ...]:
    found = os.stat(path)
    return found.st_ino, found.st_dev, found.st_mode


def _code(error: Exception) -> int:
    return getattr(error, "sqlite_errorcode", -1) & 0xFF  # the rest says more than we need
