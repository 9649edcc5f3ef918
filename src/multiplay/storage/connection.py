"""One connection to a database: opened when it is needed, renewed when it was lost, never shared.

A process that was forked opens its own, and leaves that of its parent alone.
"""

from __future__ import annotations

import ctypes
import os
from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import suppress
from typing import Any, TypeVar

import sqlalchemy as sa

from multiplay.errors import StoreError
from multiplay.storage.schema import Sql, Statements

T = TypeVar("T")
UNKNOWN_END = (
    "Nobody knows whether the last turn was kept: look, or do the same again with the same key."
)
AFTER_IT = "End the turn first."


class Link(ABC):
    """What journals need of a database.

    Parameters
    ----------
    url
        Where it is, without a password, for people.
    engine
        What connects.

    Attributes
    ----------
    greet
        Called with every new connection, before anything else is done with it.
    """

    Error: type[Exception]  # of the driver

    def __init__(self, url: str, engine: sa.Engine, sql: Statements) -> None:
        self.url, self.sql = url, sql
        self.greet: Callable[[], None] = lambda: None
        self._engine = engine
        self._connection: Any = None  # of the driver
        self._process = 0  # that opened it
        self._in_turn = False
        self._failure: StoreError | None = None  # of this turn: then nothing of it may be kept

    def __del__(self) -> None:
        with suppress(Exception):  # modules may be gone already
            self._drop()

    def close(self) -> None:
        """Close the connection; the next call opens another one."""
        if self._in_turn:
            self._failure = StoreError(self.url, "the handle was closed in its turn", AFTER_IT)
        self._drop()

    def _drop(self) -> None:
        """Close the connection, if it is ours."""
        connection, self._connection = self._connection, None
        if connection is None:
            return
        if self._process == os.getpid():
            with suppress(self.Error):
                connection.close()
        else:  # its end would be the end of the parent's too: it is never collected
            ctypes.pythonapi.Py_IncRef(ctypes.py_object(connection))

    def fetch(self, sql: Sql, **given: Any) -> list[tuple[Any, ...]]:
        """Return all rows of a query."""
        return self._done(self._fetched, sql.text, sql.values(given))

    def change(self, sql: Sql, values: tuple[Any, ...] = (), **given: Any) -> int:
        """Run a statement within a turn; return how many rows it changed."""
        changed: int = self._done(self._run, sql.text, values or sql.values(given)).rowcount
        return changed

    def change_all(self, sql: Sql, values: list[tuple[Any, ...]]) -> int:
        """Run a statement for many rows within a turn; return how many it changed."""
        if len(values) == 1:
            return self.change(sql, values[0])
        changed: int = self._done(self._run_all, sql.text, values).rowcount
        return changed

    def begin(self) -> None:
        """Begin to write; ``commit`` or ``roll_back`` ends it."""
        self._done(self._begin)
        self._in_turn = True

    def begin_turn(self, journal: int) -> tuple[int, bytes] | None:
        """Begin to write to a journal; return its last number and digest, None if it is gone."""
        try:
            head = self._done(self._begin_turn, journal)
        except BaseException:
            self.roll_back()
            raise
        self._in_turn = True
        return head

    def commit(self) -> None:
        """Keep what was written."""
        self._check_turn()
        try:
            self._run("COMMIT")
        except self.Error as error:
            failure = self._explained(error)
            if self._is_lost(error):
                self._drop()
                reason = f"{failure.reason}, at the end of a turn"
                failure = StoreError(self.url, reason, UNKNOWN_END)
            raise failure from error
        self._in_turn = False

    def roll_back(self) -> None:
        """Forget what was written; never raises."""
        self._in_turn, self._failure = False, None
        if self._connection is None or self._process != os.getpid():
            return
        try:
            if self._has_begun():
                self._run("ROLLBACK")
        except self.Error:  # the database forgets it with the connection
            self._drop()

    def _done(self, act: Callable[..., T], *values: Any) -> T:
        """Do something, with an error for people; once more if the connection was lost before."""
        if self._in_turn:
            self._check_turn()
            was_open = False
        else:
            was_open = self._connect_if_needed()
        try:
            return act(*values)
        except self.Error as error:
            is_lost, failure = self._is_lost(error), self._explained(error)
            if is_lost:
                self._drop()
            if not (is_lost and was_open):
                self._failure = failure if self._in_turn else None
                raise failure from error
        return self._done(act, *values)  # on a new connection: this happens once

    def _check_turn(self) -> None:
        """Make sure that the turn is whole: nothing failed, and it is that of this process."""
        if self._failure is not None:
            raise self._failure
        if self._process != os.getpid():
            raise StoreError(self.url, "the turn is that of the parent process", AFTER_IT)

    def _connect_if_needed(self) -> bool:
        """Make sure that there is a connection of this process; say whether there was one."""
        if self._connection is not None:
            if self._process == os.getpid() and self._is_current():
                if self._has_begun():  # the beginning of a turn was interrupted
                    self.roll_back()
                return True
            self._drop()
        try:
            detached = self._engine.raw_connection()
            detached.detach()
        except (self.Error, sa.exc.DBAPIError) as error:
            cause = error.orig if isinstance(error, sa.exc.DBAPIError) else error
            raise self._explained(cause if isinstance(cause, Exception) else error) from None
        self._connection, self._process = detached.dbapi_connection, os.getpid()
        try:
            self._prepare()
            self.greet()
        except BaseException as error:
            self._drop()
            if isinstance(error, self.Error):
                raise self._explained(error) from error
            raise
        return False

    def _fetched(self, text: str, values: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
        rows: list[tuple[Any, ...]] = self._run(text, values).fetchall()
        return rows

    def _is_current(self) -> bool:
        """Say whether the connection leads to where the database is now."""
        return True

    @abstractmethod
    def _run(self, text: str, values: tuple[Any, ...] = ()) -> Any:
        """Run a statement on the connection; return the driver's cursor."""

    @abstractmethod
    def _run_all(self, text: str, values: list[tuple[Any, ...]]) -> Any:
        """Run a statement for many rows; return the driver's cursor."""

    @abstractmethod
    def _prepare(self) -> None:
        """Make a new connection ready."""

    def has_tables(self) -> bool:
        """Say whether there are tables of ours; a file that is not there is not made."""
        return self.has_table("multiplay_schema")

    @abstractmethod
    def has_table(self, name: str) -> bool:
        """Say whether there is a table of this name."""

    @abstractmethod
    def begin_to_make_tables(self) -> None:
        """Begin to write, so that no other process makes the tables as well."""

    @abstractmethod
    def _begin(self) -> None:
        """Begin to write."""

    @abstractmethod
    def _begin_turn(self, journal: int) -> tuple[int, bytes] | None:
        """Begin to write to a journal."""

    @abstractmethod
    def _has_begun(self) -> bool:
        """Say whether the database has begun a turn that it did not end."""

    @abstractmethod
    def _is_lost(self, error: Exception) -> bool:
        """Say whether the connection is of no use any more."""

    @abstractmethod
    def _explained(self, error: Exception) -> StoreError:
        """Return the error for people."""
