"""Store in a PostgreSQL database: for several machines."""

from __future__ import annotations

import math
import os
import re
import threading
import time
from contextlib import suppress
from typing import Any

import sqlalchemy as sa
from sqlalchemy.pool import NullPool, QueuePool

from multiplay.errors import InvalidInput, StoreError
from multiplay.storage.base import Head, NoConnectionLeft
from multiplay.storage.connection import DatabaseConnection, NotUnique, keep_for_parent
from multiplay.storage.schema import HEADS
from multiplay.storage.sql import TIMEOUT, SqlStore, checked_timeout

try:
    import psycopg
except ImportError:
    raise InvalidInput(
        "store",
        "psycopg, the PostgreSQL driver",
        "no such package",
        "Run: pip install 'multiplay[postgresql]'.",
    ) from None

CONNECTION_DEFAULTS = {  # seconds, after which a server that does not respond counts as lost
    "connect_timeout": "10",
    "keepalives_idle": "30",
    "keepalives_interval": "10",
    "keepalives_count": "3",
}
POOL = 7  # connections of all journals of a process: with that of the keys, eight
VERSION_LIFETIME = 10.0  # seconds for which the version of the tables is not read again
LONGEST_PAUSE = 300  # seconds of idleness within a transaction, after which the server ends it
TABLES_LOCK = 0x6D756C7469706C61  # "multipla": the advisory lock for creating tables
SECRETS = ("password", "sslpassword")
HAS_TABLE = (  # not to_regclass, which may return a result from before the lock was granted
    "SELECT 1 FROM pg_catalog.pg_class WHERE relname = %s AND pg_catalog.pg_table_is_visible(oid)"
)
BEGIN = (  # settings end with the transaction: a proxy may give the session to another client
    "BEGIN ISOLATION LEVEL READ COMMITTED; SELECT set_config('lock_timeout', '{wait:d}', true),"
    " set_config('idle_in_transaction_session_timeout', '{pause:d}', true),"
    " set_config('synchronous_commit', CASE current_setting('synchronous_commit')"
    " WHEN 'off' THEN 'on' ELSE current_setting('synchronous_commit') END, true)"
)
LOST = ("08", "57P", "25P03")  # states after which the server closes the connection
UNIQUE, FULL = "23505", "53300"  # states: not unique; too many connections
IS_FULL = re.compile("too many (clients|connections)|connection slots")  # has no state
ERRORS = {UNIQUE: NotUnique, FULL: NoConnectionLeft}
IDLE = psycopg.pq.TransactionStatus.IDLE
REASONS = {
    "53100": ("the disk of the server is full", "Free some space, and retry."),
    FULL: ("the server has too many connections", "Close some, and retry."),
    "25006": ("it is read-only", "Use the primary server."),
    "42501": ("this user has no permission for the tables", "Grant it, or use a different user."),
    "57014": ("the server cancelled the statement", "Retry."),
}
UNREACHABLE = "Check that the server runs, and the names of host, user and database; then retry."


class PostgresqlStore(SqlStore):
    """A store in a PostgreSQL database, for any number of machines.

    Parameters
    ----------
    url
        ``postgresql://user:password@host/database``, with the options of libpq
        (``?sslmode=require``), and ``timeout``: seconds to wait for transactions of other
        processes.

    Notes
    -----
    The server ends a transaction that is idle for five minutes: its process may be on a machine
    that has failed, and other processes wait for the lock.

    All journals of a process share a pool of connections, each for the length of a transaction or
    of a query. No setting outlives a transaction, so a proxy such as PgBouncer may pool these.
    """

    shares_connections = True  # all journals of a process

    def __init__(self, url: str) -> None:
        place = _parsed(url)
        options = dict(place.query)
        self.timeout = checked_timeout("timeout", options.pop("timeout", TIMEOUT))
        known = {option.keyword.decode() for option in psycopg.pq.Conninfo.get_defaults()}
        for name in options:
            if name not in known:
                hint = "Remove it, or use an option of libpq."
                raise InvalidInput("store", "options of PostgreSQL", repr(name), hint)
        self.secrets = [
            str(found) for found in (place.password, *map(options.get, SECRETS)) if found
        ]
        options = {**CONNECTION_DEFAULTS, **options}
        given: dict[str, Any] = {
            "url": place.set(drivername="postgresql+psycopg", query=options),
            "paramstyle": "format",
            "use_native_hstore": False,  # saves a query
            "connect_args": {"prepare_threshold": None},  # a proxy may change the session
        }
        pool: dict[str, Any] = {
            "poolclass": QueuePool,
            "pool_size": POOL,
            "max_overflow": 0,
            "pool_timeout": self.timeout,
            "pool_use_lifo": True,
            "pool_reset_on_return": None,  # a turn ends its transaction itself
        }
        self.pooled: sa.Engine = sa.create_engine(**given, **pool)
        super().__init__(_public(place), sa.create_engine(**given, poolclass=NullPool))
        self._given, self._lock = url, threading.Lock()
        self._process, self.generation = os.getpid(), object()
        self._version: tuple[float, object, int] = (-math.inf, None, 0)

    def __del__(self) -> None:
        with suppress(Exception):  # at exit, modules may be unloaded already
            if self._process == os.getpid():
                self.pooled.dispose()

    def __reduce__(self) -> tuple[type, tuple[str]]:
        return type(self), (self._given,)

    def _new_connection(self, kept: bool) -> PostgresqlConnection:
        return PostgresqlConnection(self) if kept else PooledConnection(self)

    def take(self) -> sa.PoolProxiedConnection:
        """Return a connection of the pool, when one is free."""
        with self._lock:
            if self._process != os.getpid():
                keep_for_parent(self.pooled.pool)
                self.pooled.dispose(close=False)
                self._process, self.generation = os.getpid(), object()
        try:
            taken: sa.PoolProxiedConnection = self.pooled.raw_connection()
        except sa.exc.TimeoutError:
            reason = f"all {POOL} connections of this process were used for {self.timeout:g} s"
            raise StoreError(self.url, reason, "Retry, or wait longer: ?timeout=60.") from None
        return taken

    def known_version(self) -> int | None:
        """Return the version of the tables, if one of the connections has just read it."""
        until, generation, version = self._version
        fresh = time.monotonic() < until and generation is self.generation
        return version if fresh and version >= HEADS else None

    def know_version(self, version: int) -> None:
        """Keep the version of the tables: each of many studies that are opened would read it."""
        self._version = time.monotonic() + VERSION_LIFETIME, self.generation, version

    def renew(self) -> None:
        """Close the connections of the pool: one was lost, so the others may be, too."""
        self.generation = object()
        self.pooled.dispose()

    def _create_file(self) -> None:
        """Do nothing: the database must exist."""


def _parsed(url: str) -> sa.URL:
    """Return the parts of a URL; errors do not repeat it, as it may contain a password."""
    expected = "postgresql://user:password@host/database"
    try:
        place = sa.make_url(url)
    except (sa.exc.ArgumentError, ValueError):
        raise InvalidInput(
            "store", expected, "a URL that cannot be parsed", "Check the spelling."
        ) from None
    if "@" in (place.host or ""):
        hint = "Write %40 for an @ in a password."
        raise InvalidInput("store", expected, "a URL with more than one @", hint)
    return place


def _public(place: sa.URL) -> str:
    """Return the URL of the database without secrets."""
    query = {name: value for name, value in place.query.items() if name not in SECRETS}
    parts = ("postgresql", place.username, None, place.host, place.port, place.database, query)
    return sa.URL.create(*parts).render_as_string()


class PostgresqlConnection(DatabaseConnection):
    """A connection to a PostgreSQL server."""

    Error = psycopg.Error

    def __init__(self, store: PostgresqlStore) -> None:
        super().__init__(store.url, store.engine, store.sql)
        self._timeout, self._secrets = store.timeout, store.secrets
        self._begins = BEGIN.format(wait=int(store.timeout * 1000), pause=LONGEST_PAUSE * 1000)

    def has_table(self, name: str) -> bool:
        """Return whether a table of this name exists."""
        return bool(self._call(self._fetched, HAS_TABLE, (name,)))

    def begin_to_create_tables(self) -> None:
        """Begin a transaction with a lock: two that create one table at once would both fail."""
        self.begin()
        self._call(self._run, f"SELECT pg_advisory_xact_lock({TABLES_LOCK})")

    def _prepare(self) -> None:
        connection: psycopg.Connection[Any] = self._connection
        connection.rollback()
        connection.autocommit = True  # transactions begin and end explicitly
        self._plain, self._binary = connection.cursor(), connection.cursor(binary=True)

    def _begin(self) -> None:
        self._plain.execute(self._begins)

    def commit_head(self, journal: int, head: Head) -> None:
        """Record the last entry of a journal and commit, in one round trip."""
        before = ""
        if self.records_heads:
            digest = f"'\\x{head.digest.hex()}'::bytea"
            given = {"number": head.number, "digest": digest, "journal": journal}
            before = self.sql.record_head.text % self.sql.record_head.values(given) + "; "
        self.commit(before)

    def _begin_on_journal(self, journal: int) -> tuple[Any, ...] | None:
        """Lock the journal, then read its head: one round trip, but two statements.

        A statement sees the rows that were committed when it began. A single statement that waits
        for the lock and reads the head would miss what was committed while it waited.
        """
        lock, head = (sql.text % journal for sql in (self.sql.lock_journal, self._head_query))
        cursor = self._plain.execute(f"{self._begins}; {lock}; {head}")
        for _ in range(3):
            cursor.nextset()
        return cursor.fetchone()

    def _has_begun(self) -> bool:
        return bool(self._connection.info.transaction_status != IDLE)

    def _run(self, text: str, values: tuple[Any, ...] = ()) -> psycopg.Cursor[Any]:
        return self._binary.execute(text, values) if values else self._plain.execute(text)

    def _run_all(self, text: str, values: list[tuple[Any, ...]]) -> psycopg.Cursor[Any]:
        self._binary.executemany(text, values)
        return self._binary

    def _is_lost(self, error: Exception) -> bool:
        state = getattr(error, "sqlstate", None) or ""
        closed = self._connection is not None and self._connection.closed
        return bool(closed) or state.startswith(LOST)

    def _explained(self, error: Exception) -> StoreError:
        state = getattr(error, "sqlstate", None)
        message = " ".join(str(error).split())[:300].rstrip(".")
        for secret in self._secrets:
            message = message.replace(secret, "***")
        if state is None and IS_FULL.search(message):
            state = FULL
        if state == "55P03":
            reason = f"a transaction of another process has lasted {self._timeout:g} seconds"
            hint = "Stop that process, or wait longer: ?timeout=60."
        elif state is None or self._is_lost(error):
            reason, hint = f"no connection to the server ({message})", UNREACHABLE
        else:
            reason, hint = REASONS.get(state, (message, "Correct the cause, and retry."))
        return ERRORS.get(state or "", StoreError)(self.url, reason, hint)


class PooledConnection(PostgresqlConnection):
    """A connection of the pool of a store, for the length of a transaction or of a call."""

    def __init__(self, store: PostgresqlStore) -> None:
        super().__init__(store)
        self._store = store
        self._taken: sa.PoolProxiedConnection | None = None
        self._taken_at = store.generation

    @property
    def _generation(self) -> object:
        return self._store.generation

    def _take(self) -> tuple[Any, bool]:
        self._taken, self._taken_at = self._store.take(), self._store.generation
        connection, known = self._taken.dbapi_connection, self._taken.info
        if cursors := known.get("cursors"):
            self._plain, self._binary = cursors
        return connection, not cursors

    def _prepare(self) -> None:
        super()._prepare()
        assert self._taken is not None
        self._taken.info["cursors"] = self._plain, self._binary

    def has_tables(self) -> bool:
        """Return whether the tables exist."""
        return self._store.known_version() is not None or super().has_tables()

    def version(self) -> int:
        """Return the version of the tables, which exist."""
        known = self._store.known_version()
        if known is None:
            self._store.know_version(known := super().version())
        return known

    def _leave(self) -> None:
        taken, self._taken, self._connection = self._taken, None, None
        if taken is not None and self._taken_at is not self._generation:
            taken.invalidate()  # its pool was given up meanwhile
        elif taken is not None:
            taken.close()

    def _drop(self) -> None:
        """Close the connection, and those that wait in the pool."""
        taken, self._taken, self._connection = self._taken, None, None
        if taken is not None and self._process != os.getpid():
            keep_for_parent(taken)
        elif taken is not None:
            with suppress(psycopg.Error):
                taken.invalidate()
            self._store.renew()
