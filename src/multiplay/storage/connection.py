"""Connection to a database: opened on first use, reopened after a loss, never shared.

A subclass may take it from a pool for each turn: a transaction, or a call outside of one.

A forked process opens its own connection, and does not touch that of its parent.
"""

from __future__ import annotations

import ctypes
import os
from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import suppress
from typing import Any, TypeVar

import sqlalchemy as sa

from multiplay.errors import StoreError, UnknownOutcome
from multiplay.storage.base import Head
from multiplay.storage.schema import HEADS, VERSION, Sql, Statements

T = TypeVar("T")
MAYBE_COMMITTED = "The commit may or may not have succeeded. Retry with the same key."
END_FIRST = "End the transaction first."


class NotUnique(StoreError):
    """A value that must be unique exists already: another transaction has just written it."""


class DatabaseConnection(ABC):
    """A connection of a journal or a keyring to its database.

    Parameters
    ----------
    url
        The URL of the store, without a password, for messages.
    engine
        The engine of SQLAlchemy that opens connections.

    Attributes
    ----------
    on_connect
        Called before the first use, and again after connections were lost.
    records_heads : bool
        Whether the tables have the columns for the last entry of each journal. Those of multiplay
        0.9 do not, until ``add_columns``.
    """

    Error: type[Exception]  # of the driver

    def __init__(self, url: str, engine: sa.Engine, sql: Statements) -> None:
        self.url, self.sql = url, sql
        self.on_connect: Callable[[], None] = lambda: None
        self.records_heads = True
        self._engine = engine
        self._connection: Any = None  # of the driver
        self._process = 0  # id of the process that opened it
        self._in_transaction = self._is_connecting = False
        self._checked: object = None  # the connections after which ``on_connect`` was called
        self._failure: StoreError | None = None  # of this transaction, which must be rolled back

    def __del__(self) -> None:
        with suppress(Exception):  # at exit, modules may be unloaded already
            self._drop()

    def close(self) -> None:
        """Close the connection; the next call opens a new one."""
        if self._in_transaction:
            self._failure = StoreError(
                self.url, "the handle was closed during its transaction", END_FIRST
            )
        self._checked = None
        self._drop()

    def _drop(self) -> None:
        """Close the connection, if this process opened it."""
        connection, self._connection = self._connection, None
        if connection is None:
            return
        if self._process == os.getpid():
            with suppress(self.Error):
                connection.close()
        else:  # closing it would close the parent's connection: it is never collected
            keep_for_parent(connection)

    def fetch(self, sql: Sql, **given: Any) -> list[tuple[Any, ...]]:
        """Return all rows of a query."""
        return self._call(self._fetched, sql.text, sql.values(given))

    def change(self, sql: Sql, values: tuple[Any, ...] = (), **given: Any) -> int:
        """Run a statement within a transaction; return how many rows it changed."""
        changed: int = self._call(self._run, sql.text, values or sql.values(given)).rowcount
        return changed

    def change_all(self, sql: Sql, values: list[tuple[Any, ...]]) -> int:
        """Run a statement for many rows within a transaction; return how many it changed."""
        if len(values) == 1:
            return self.change(sql, values[0])
        changed: int = self._call(self._run_all, sql.text, values).rowcount
        return changed

    def begin(self) -> None:
        """Begin a write transaction; ``commit`` or ``roll_back`` ends it."""
        self._call(self._begin, begins=True)

    def begin_on_journal(self, journal: int) -> tuple[Any, ...] | None:
        """Begin a transaction on a journal; return the result of ``fetch_head``."""
        try:
            return self._call(self._begin_on_journal, journal, begins=True)
        except BaseException:
            self.roll_back()
            raise

    def fetch_head(self, journal: int) -> tuple[Any, ...] | None:
        """Return the recorded head of a journal and its last entry; None if it does not exist."""
        rows = self._call(lambda: self._fetched(self._head_query.text, (journal,)))
        return rows[0] if rows else None

    @property
    def _head_query(self) -> Sql:
        return self.sql.head if self.records_heads else self.sql.head_0_9

    def add_columns(self) -> None:
        """Add the columns that tables of multiplay 0.9 do not have."""
        try:
            self.begin_to_create_tables()
            if self.version() < HEADS:  # no other process added them meanwhile
                for statement in self.sql.add_columns:
                    self.change(statement, version=VERSION)
            self.commit()
        except BaseException:
            self.roll_back()
            raise
        self.records_heads = True

    def version(self) -> int:
        """Return the version of the tables, which exist."""
        return max((version for (version,) in self.fetch(self.sql.version)), default=0)

    def commit_head(self, journal: int, head: Head) -> None:
        """Record the last entry of a journal, and commit the transaction."""
        if self.records_heads:
            self.change(self.sql.record_head, journal=journal, **head._asdict())
        self.commit()

    def commit(self, before: str = "") -> None:
        """Commit the transaction, after a last statement."""
        self._check_transaction()
        try:
            self._run(f"{before}COMMIT")
        except self.Error as error:
            failure = self._explained(error)
            if self._is_lost(error):
                self._drop()
                reason = f"{failure.reason}, during a commit"
                failure = UnknownOutcome(self.url, reason, MAYBE_COMMITTED)
            raise failure from error
        self._in_transaction = False
        self._leave()

    def roll_back(self) -> None:
        """Roll the transaction back; never raise."""
        self._in_transaction, self._failure = False, None
        if self._connection is None or self._process != os.getpid():
            return
        try:
            if self._has_begun():
                self._run("ROLLBACK")
        except self.Error:  # without the connection, the database rolls back itself
            self._drop()
        else:
            self._leave()

    def _call(self, act: Callable[..., T], *values: Any, begins: bool = False) -> T:
        """Call a function of the driver; retry once if an idle connection turns out to be lost."""
        if self._in_transaction:
            self._check_transaction()
            was_open = False
        else:
            was_open = self._connect_if_needed()
        try:
            result = act(*values)
        except self.Error as error:
            is_lost, failure = self._is_lost(error), self._explained(error)
            if is_lost:
                self._drop()
            elif not self._in_transaction:
                self.roll_back()
            if not (is_lost and was_open):
                self._failure = failure if self._in_transaction else None
                raise failure from error
        except BaseException:  # an interrupt: the connection may be in any state
            if not self._in_transaction:
                self._drop()
            raise
        else:
            self._in_transaction |= begins
            if not self._in_transaction and not self._is_connecting:
                self._leave()
            return result
        return self._call(act, *values, begins=begins)  # on a new connection, so at most once

    def _check_transaction(self) -> None:
        """Raise ``StoreError`` if a call failed in the transaction, or another process began it."""
        if self._failure is not None:
            raise self._failure
        if self._process != os.getpid():
            raise StoreError(self.url, "the transaction belongs to the parent process", END_FIRST)

    def _connect_if_needed(self) -> bool:
        """Open a connection of this process if needed; return whether one was open."""
        if self._connection is not None:
            if self._process == os.getpid() and self._is_current():
                if self._has_begun():  # the begin of a transaction was interrupted
                    self.roll_back()
                return not self._is_connecting
            self._drop()
        try:
            self._connection, is_new = self._take()
        except (self.Error, sa.exc.DBAPIError) as error:
            cause = error.orig if isinstance(error, sa.exc.DBAPIError) else error
            raise self._explained(cause if isinstance(cause, Exception) else error) from None
        self._process = os.getpid()
        if self._checked is self._generation and not is_new:
            return True
        self._is_connecting = True  # a new connection that fails is not tried again
        try:
            if is_new:
                self._prepare()
            self.on_connect()
            self._checked = self._generation
        except BaseException as error:
            was_idle = self._connection is None and not is_new and isinstance(error, StoreError)
            self._drop()
            self._is_connecting = False
            if was_idle:  # it was lost in the pool
                return self._connect_if_needed()
            if isinstance(error, self.Error):
                raise self._explained(error) from error
            raise
        finally:
            self._is_connecting = False
        return False

    def _take(self) -> tuple[Any, bool]:
        """Return a connection of the driver, and whether it is new."""
        detached = self._engine.raw_connection()
        detached.detach()
        return detached.dbapi_connection, True

    def _leave(self) -> None:  # noqa: B027
        """End a turn: a subclass may give the connection back to a pool."""

    @property
    def _generation(self) -> object:
        """Another object after connections of a pool were lost: a handle checks its journal."""
        return None

    def _fetched(self, text: str, values: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
        rows: list[tuple[Any, ...]] = self._run(text, values).fetchall()
        return rows

    def _is_current(self) -> bool:
        """Return whether the connection still refers to the current database."""
        return True

    @abstractmethod
    def _run(self, text: str, values: tuple[Any, ...] = ()) -> Any:
        """Run a statement on the connection; return the driver's cursor."""

    @abstractmethod
    def _run_all(self, text: str, values: list[tuple[Any, ...]]) -> Any:
        """Run a statement for many rows; return the driver's cursor."""

    @abstractmethod
    def _prepare(self) -> None:
        """Configure a new connection."""

    def has_tables(self) -> bool:
        """Return whether the tables exist; never create a file."""
        return self.has_table("multiplay_schema")

    @abstractmethod
    def has_table(self, name: str) -> bool:
        """Return whether a table of this name exists."""

    @abstractmethod
    def begin_to_create_tables(self) -> None:
        """Begin a transaction that no other process creates the tables in at the same time."""

    @abstractmethod
    def _begin(self) -> None:
        """Begin a write transaction."""

    @abstractmethod
    def _begin_on_journal(self, journal: int) -> tuple[Any, ...] | None:
        """Begin a transaction on a journal; return the result of ``fetch_head``."""

    @abstractmethod
    def _has_begun(self) -> bool:
        """Return whether a transaction is open in the database."""

    @abstractmethod
    def _is_lost(self, error: Exception) -> bool:
        """Return whether the connection is unusable after this error."""

    @abstractmethod
    def _explained(self, error: Exception) -> StoreError:
        """Return the error as a ``StoreError`` with a reason and a hint."""


def keep_for_parent(thing: object) -> None:
    """Never collect what a forked process has of its parent: to close it would end its session."""
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(thing))
