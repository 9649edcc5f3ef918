"""Journals in a PostgreSQL database: for several machines."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from sqlalchemy.pool import NullPool

from multiplay.errors import InvalidInput, StoreError
from multiplay.storage.connection import Link
from multiplay.storage.sql import TIMEOUT, SqlStore, seconds

try:
    import psycopg
except ImportError:
    raise InvalidInput(
        "store",
        "psycopg, which speaks to PostgreSQL",
        "none",
        "Run: pip install 'multiplay[postgresql]'.",
    ) from None

PATIENCE = {  # seconds, until a server that does not answer is taken for dead
    "connect_timeout": "10",
    "keepalives_idle": "30",
    "keepalives_interval": "10",
    "keepalives_count": "3",
}
LONGEST_PAUSE = 300  # seconds within a turn, until the server takes its maker for dead
TABLES_LOCK = 0x6D756C7469706C61  # "multipla": who makes tables has this advisory lock
SECRETS = ("password", "sslpassword")
HAS_TABLE = (  # not to_regclass: it may remember that there were none before we had the lock
    "SELECT 1 FROM pg_catalog.pg_class WHERE relname = %s AND pg_catalog.pg_table_is_visible(oid)"
)
BEGIN = "BEGIN ISOLATION LEVEL READ COMMITTED"
LOST = ("08", "57P", "25P03")  # states after which the server hangs up
IDLE = psycopg.pq.TransactionStatus.IDLE
REASONS = {
    "53100": ("the disk of the server is full", "Make room, and try again."),
    "53300": ("the server has too many connections", "Close some, and try again."),
    "25006": ("it can only be read", "Use the server that can be written."),
    "42501": ("this user may not use the tables", "Grant the rights, or choose another user."),
    "57014": ("the server ended the statement", "Try again."),
}
AWAY = "Check that the server runs, and the names of host, user and database; then try again."


class PostgresqlStore(SqlStore):
    """Keeps journals in a database, for any number of machines.

    Parameters
    ----------
    url
        ``postgresql://user:password@host/database``, with the options that libpq knows
        (``?sslmode=require``), and ``timeout``: seconds to wait for others.

    Notes
    -----
    A turn in which nothing happens for five minutes is ended by the server: its process may be
    on a machine that is gone, and others wait.
    """

    def __init__(self, url: str) -> None:
        place = _parsed(url)
        options = dict(place.query)
        self.timeout = seconds("timeout", options.pop("timeout", TIMEOUT))
        known = {option.keyword.decode() for option in psycopg.pq.Conninfo.get_defaults()}
        for name in options:
            if name not in known:
                hint = "Remove it, or see the options of libpq."
                raise InvalidInput("store", "options that PostgreSQL has", repr(name), hint)
        self.secrets = [
            str(found) for found in (place.password, *map(options.get, SECRETS)) if found
        ]
        options = {**PATIENCE, **options}
        engine = sa.create_engine(
            place.set(drivername="postgresql+psycopg", query=options),
            poolclass=NullPool,
            paramstyle="format",
            use_native_hstore=False,  # spares a question to the server
        )
        super().__init__(_public(place), engine)
        self._given = url

    def __reduce__(self) -> tuple[type, tuple[str]]:
        return type(self), (self._given,)

    def _link(self) -> PostgresqlLink:
        return PostgresqlLink(self)

    def _make_place(self) -> None:
        """Leave the making of databases to others."""


def _parsed(url: str) -> sa.URL:
    """Return the parts of a URL; errors do not repeat it, for there may be a password in it."""
    expected = "postgresql://user:password@host/database"
    try:
        place = sa.make_url(url)
    except (sa.exc.ArgumentError, ValueError):
        raise InvalidInput("store", expected, "something else", "Check the spelling.") from None
    if "@" in (place.host or ""):
        hint = "Write %40 for an @ in a password."
        raise InvalidInput("store", expected, "one with more than one @", hint)
    return place


def _public(place: sa.URL) -> str:
    """Return where the database is, for people."""
    query = {name: value for name, value in place.query.items() if name not in SECRETS}
    parts = ("postgresql", place.username, None, place.host, place.port, place.database, query)
    return sa.URL.create(*parts).render_as_string()


class PostgresqlLink(Link):
    """A connection to a server."""

    Error = psycopg.Error

    def __init__(self, store: PostgresqlStore) -> None:
        super().__init__(store.url, store.engine, store.sql)
        self._timeout, self._secrets = store.timeout, store.secrets

    def has_table(self, name: str) -> bool:
        """Say whether there is a table of this name."""
        return bool(self._done(self._fetched, HAS_TABLE, (name,)))

    def begin_to_make_tables(self) -> None:
        """Begin to write; two that make one table at the same time would both fail."""
        self.begin()
        self._done(self._run, f"SELECT pg_advisory_xact_lock({TABLES_LOCK})")

    def _prepare(self) -> None:
        connection: psycopg.Connection[Any] = self._connection
        connection.rollback()
        connection.autocommit = True  # we say ourselves where a turn begins and ends
        self._plain, self._binary = connection.cursor(), connection.cursor(binary=True)
        wait, pause = int(self._timeout * 1000), LONGEST_PAUSE * 1000
        self._plain.execute(
            f"SET lock_timeout = {wait}; SET idle_in_transaction_session_timeout = {pause};"
            " SELECT set_config('synchronous_commit', 'on', false)"
            " WHERE current_setting('synchronous_commit') = 'off'"
        )

    def _begin(self) -> None:
        self._plain.execute(BEGIN)

    def _begin_turn(self, journal: int) -> tuple[int, bytes] | None:
        """Lock the journal, then read its head: one journey, but two statements.

        Each statement sees what was there when it began. One that both waits for the lock and
        reads the head would not see what was written while it waited.
        """
        lock, head = (sql.text % journal for sql in (self.sql.lock_journal, self.sql.head))
        cursor = self._plain.execute(f"{BEGIN}; {lock}; {head}")
        cursor.nextset()
        is_there = cursor.fetchone() is not None
        cursor.nextset()
        return cursor.fetchone() if is_there else None

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
        told = " ".join(str(error).split())[:300].rstrip(".")
        for secret in self._secrets:
            told = told.replace(secret, "***")
        if state == "55P03":
            reason = f"another program has had the turn for {self._timeout:g} seconds"
            hint = "End it, or wait longer: ?timeout=60."
        elif state is None or self._is_lost(error):
            reason, hint = f"no connection to the server ({told})", AWAY
        else:
            reason, hint = REASONS.get(state, (told, "Read what it says, and try again."))
        return StoreError(self.url, reason, hint)
