"""Journals and API keys in a database: the common part of SQLite and PostgreSQL."""

from __future__ import annotations

import math
import time
from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import takewhile
from typing import Any, NamedTuple

import sqlalchemy as sa

from multiplay.errors import InvalidInput, NotFound
from multiplay.storage.base import (
    NO_LABELS,
    AnsweredRequest,
    Head,
    KeyRecord,
    Keyring,
    Labels,
    Record,
    Store,
    checked_name,
    journal_deleted,
    name_in_use,
    name_not_found,
    request_in_use,
)
from multiplay.storage.connection import DatabaseConnection, NotUnique
from multiplay.storage.journal import (
    BaseJournal,
    JournalRow,
    SnapshotRow,
    damaged,
    missing_end,
    row_of,
    used_key,
)
from multiplay.storage.schema import HEADS, KEYS, REQUESTS, VERSION, compiled, keys, statements

LARGEST = 2**62  # above the numbers of all snapshots
TIMEOUT = 30.0  # seconds to wait for transactions of other processes


class Identity(NamedTuple):
    """The identity of a journal: names can be reused after a deletion, ids cannot."""

    id: int
    name: str
    created: float


class SqlStore(Store):
    """A store in a database.

    Parameters
    ----------
    url
        The URL of the store, without a password, for messages.
    engine
        The engine of SQLAlchemy that opens connections.
    """

    def __init__(self, url: str, engine: sa.Engine) -> None:
        self._url, self.engine = url, engine
        self.sql = statements(engine.dialect)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.url!r})"

    @property
    def url(self) -> str:
        """The URL of the store, without a password."""
        return self._url

    def create(
        self,
        name: str,
        record: Record,
        labels: Labels = NO_LABELS,
        more: Iterable[tuple[Record, Labels]] = (),
        *,
        request: AnsweredRequest | None = None,
    ) -> SqlJournal:
        """Create a journal with its first records, and the tables if they do not exist."""
        checked_name(name)
        first = row_of(Head(), record, labels)
        connection = self.connect()
        with _closed_on_error(connection):
            self.create_tables(connection)
            self._create_requests(connection, request)
            connection.begin()
            if not connection.change(self.sql.add_journal, name=name, created=time.time()):
                raise name_in_use(name, self.url)
            self._record(connection, request)
            found = self._found(connection, name)
            assert found is not None
            connection.change(self.sql.add, _values(found.id, first))
            last = first
            for following in more:
                last = row_of(Head(last.number, last.digest), *following)
                if not connection.change(self.sql.add, _values(found.id, last)):
                    raise used_key(last)
            connection.commit_head(found.id, Head(last.number, last.digest))
        return SqlJournal(connection, found)

    def open(self, name: str) -> SqlJournal:
        """Return a new handle on a journal."""
        checked_name(name)
        connection = self.connect()
        with _closed_on_error(connection):
            return SqlJournal(connection, self._known(connection, name))

    def names(self, prefix: str = "", after: str = "", limit: int | None = None) -> list[str]:
        """Return the sorted names of journals that begin with a prefix and come after a name."""
        connection, most = self.connect(), LARGEST if limit is None else limit
        given: dict[str, Any] = {"after": after, "prefix": prefix, "limit": most}
        try:
            rows = connection.fetch(self.sql.names, **given) if connection.has_tables() else []
        finally:
            connection.close()
        return list(takewhile(lambda name: name.startswith(prefix), (name for (name,) in rows)))

    def delete(
        self,
        name: str,
        *,
        request: AnsweredRequest | None = None,
        check: Callable[[], None] = lambda: None,
    ) -> None:
        """Delete a journal permanently, after the transaction that is running now."""
        checked_name(name)
        with self._changing(name, request) as (connection, journal):
            check()
            for statement in self.sql.remove:
                connection.change(statement, journal=journal)
            if connection.has_table(KEYS):  # a new study with this name must not accept old keys
                connection.change(self.sql.remove_keys, study=name)

    def rename(self, name: str, new: str, *, request: AnsweredRequest | None = None) -> None:
        """Give a journal a new name, after the transaction that is running now."""
        checked_name(name), checked_name(new)
        with self._changing(name, request) as (connection, journal):
            if self._found(connection, new) is not None:
                raise name_in_use(new, self.url)
            try:
                connection.change(self.sql.rename, journal=journal, new=new)
            except NotUnique:  # another process has used the new name meanwhile
                raise name_in_use(new, self.url) from None
            if connection.has_table(KEYS):
                connection.change(self.sql.rename_keys, old=name, new=new)

    @contextmanager
    def _changing(
        self, name: str, request: AnsweredRequest | None
    ) -> Iterator[tuple[DatabaseConnection, int]]:
        """Begin a transaction on a journal; commit the changes of the block, and the request."""
        connection = self.connect()
        with _closed_on_error(connection):
            found = self._known(connection, name)
            self._create_requests(connection, request)
            row = connection.begin_on_journal(found.id)
            if row is None or row[-1] != name:
                raise self._not_found(connection, name)
            yield connection, found.id
            self._record(connection, request)
            connection.commit()
        connection.close()

    def answered(self, id: str) -> AnsweredRequest | None:
        """Return the recorded request with this id."""
        connection = self.connect()
        try:
            has_table = connection.has_table(REQUESTS)
            rows = connection.fetch(self.sql.request, id=id) if has_table else []
        finally:
            connection.close()
        return AnsweredRequest(*rows[0]) if rows else None

    def _create_requests(
        self, connection: DatabaseConnection, request: AnsweredRequest | None
    ) -> None:
        """Create the table of requests, if there is one to record and the table does not exist."""
        if request is not None and not connection.has_table(REQUESTS):
            connection.begin_to_create_tables()
            if not connection.has_table(REQUESTS):  # no other process created it meanwhile
                connection.change(self.sql.make_requests)
            connection.commit()

    def _record(self, connection: DatabaseConnection, request: AnsweredRequest | None) -> None:
        """Record a request, within a transaction."""
        if request is not None and not connection.change(self.sql.add_request, tuple(request)):
            raise request_in_use(request)

    def keyring(self) -> SqlKeyring:
        """Return a new handle on the API keys of the store."""
        return SqlKeyring(self)

    def connect(self, kept: bool = False) -> DatabaseConnection:
        """Return a new connection, which refuses tables of a newer multiplay.

        One that is ``kept`` is not taken from a pool: it can be used in a transaction of another.
        """
        connection = self._new_connection(kept)
        connection.on_connect = lambda: check_version(connection)
        return connection

    def _found(self, connection: DatabaseConnection, name: str) -> Identity | None:
        rows = connection.fetch(self.sql.named, name=name)
        return Identity(*rows[0]) if rows else None

    def _known(self, connection: DatabaseConnection, name: str) -> Identity:
        found = self._found(connection, name) if connection.has_tables() else None
        if found is None:
            raise self._not_found(connection, name)
        return found

    def _not_found(self, connection: DatabaseConnection, name: str) -> NotFound:
        """Return the error for an unknown name; few names are read."""
        near = self.sql.near if connection.has_tables() else []
        rows = [row for sql in near for row in connection.fetch(sql, name=name)]
        return name_not_found(name, [known for (known,) in rows], self.url)

    def lock(self, connection: DatabaseConnection, name: str) -> None:
        """Lock a journal until the transaction ends; raise ``NotFound`` if it does not exist."""
        if not connection.fetch(self.sql.lock_named, name=name):
            raise self._not_found(connection, name)

    def create_tables(self, connection: DatabaseConnection) -> None:
        """Create the file, the tables and their columns, if they do not exist."""
        self._create_file()
        if connection.has_tables():
            if not connection.records_heads:
                connection.add_columns()
            return
        connection.begin_to_create_tables()
        if not connection.has_tables():  # no other process created them meanwhile
            for statement in self.sql.make:
                connection.change(statement, version=VERSION)
        connection.commit()

    @abstractmethod
    def _new_connection(self, kept: bool) -> DatabaseConnection:
        """Return a new connection to the database."""

    @abstractmethod
    def _create_file(self) -> None:
        """Create the file of the database, if it is in a file that does not exist."""


@contextmanager
def _closed_on_error(connection: DatabaseConnection) -> Iterator[None]:
    try:
        yield
    except BaseException:
        connection.roll_back()
        connection.close()
        raise


def check_version(connection: DatabaseConnection) -> None:
    """Raise ``InvalidInput`` for tables that a newer multiplay created."""
    if connection.has_tables():
        newest = connection.version()
        connection.records_heads = newest >= HEADS
        if newest > VERSION:
            got = f"tables of version {newest} in {connection.url}"
            expected = f"tables of version {VERSION} or older"
            raise InvalidInput("store", expected, got, "Update multiplay.")


def checked_timeout(argument: str, value: Any) -> float:
    """Return a timeout in seconds; raise ``InvalidInput`` if it is not valid."""
    try:
        found = float(value)
    except (TypeError, ValueError):
        found = math.nan
    if not 0 <= found <= 1e6:
        expected, hint = "seconds", "Use a number from 0 to 1000000."
        raise InvalidInput(argument, expected, repr(value)[:60], hint)
    return found


def _values(journal: int, row: JournalRow) -> tuple[Any, ...]:
    """Return the columns of a row; NULL if it has no arrays."""
    return (journal, *row[:-1], row.arrays or None)


def _row(columns: tuple[Any, ...]) -> JournalRow:
    return JournalRow._make((*columns[:-1], columns[-1] or b""))


def _bare(columns: tuple[Any, ...]) -> JournalRow:
    return JournalRow._make((*columns, b""))


def _checked_head(recorded: Head | None, last: Head, name: str) -> Head:
    """Return the last entry; raise ``Damaged`` if the journal recorded a later or different one.

    A running process of multiplay 0.9 does not record what it writes: the last entry may be later.
    """
    if recorded is None or recorded.number < last.number or recorded == last:
        return last
    raise missing_end(name, min(recorded.number, last.number + 1), recorded.number)


class SqlJournal(BaseJournal):
    """A handle on a journal in a database."""

    def __init__(self, connection: DatabaseConnection, identity: Identity) -> None:
        self._connection, self._identity = connection, identity
        self._id, self._sql = identity.id, connection.sql
        self._unwritten: list[JournalRow] = []  # of this transaction
        self._written: JournalRow | None = None  # the last one of this transaction
        connection.on_connect = self._check_connection

    def __repr__(self) -> str:
        return f"SqlJournal({self._identity.name!r}, {self._connection.url!r})"

    def close(self) -> None:
        """Close the connection; the next call opens a new one."""
        self._connection.close()

    def _check_connection(self) -> None:
        """Raise if a new connection leads to a newer schema, or not to this journal."""
        check_version(self._connection)
        if not self._exists():
            raise self._missing()

    def _exists(self) -> bool:
        return self._connection.has_tables() and self._has_name()

    def _has_name(self) -> bool:
        """Return whether the journal exists and was not renamed."""
        rows = self._connection.fetch(self._sql.identified, journal=self._id)
        return rows == [tuple(self._identity)]

    def _missing(self) -> InvalidInput:
        """Return the error for a journal without entries: each has a first entry."""
        if self._exists():
            return damaged(0, "no entry")
        return journal_deleted(self._identity.name, self._connection.url)

    def accept(self) -> Head:
        """Accept the entries that exist as the whole journal; return the last one."""
        try:
            head = self._locked()[1]
            at = max(time.time(), math.nextafter(self.accepted(), math.inf))
            self._connection.change(self._sql.accept, journal=self._id, at=at)
            self._connection.change(self._sql.drop_snapshots, journal=self._id, number=LARGEST)
            self._connection.commit_head(self._id, head)
        except BaseException:
            self._connection.roll_back()
            raise
        return head

    def accepted(self) -> float:
        """Return when a shorter journal was last accepted; 0 if that never happened."""
        if not self._connection.records_heads:
            return 0.0
        rows = self._connection.fetch(self._sql.accepted, journal=self._id)
        return 0.0 if not rows or rows[0][0] is None else float(rows[0][0])

    def _begin(self) -> Head:
        try:
            return _checked_head(*self._locked(), self._identity.name)
        except BaseException:
            self._connection.roll_back()
            raise

    def _locked(self) -> tuple[Head | None, Head]:
        """Begin a transaction; return the recorded head and the last entry."""
        row = self._connection.begin_on_journal(self._id)
        if row is not None and not self._connection.records_heads:
            self._connection.roll_back()
            self._connection.add_columns()
            row = self._connection.begin_on_journal(self._id)
        return self._heads(row)

    def _heads(self, row: tuple[Any, ...] | None) -> tuple[Head | None, Head]:
        if row is None or row[2] is None or row[-1] != self._identity.name:
            self._connection.roll_back()
            raise self._missing()
        recorded = None if row[0] is None else Head(row[0], row[1])
        return recorded, Head(row[2], row[3])

    def _commit(self) -> None:
        self._flush()
        last, self._written = self._written, None
        if last is None:
            self._connection.commit()
        else:
            self._connection.commit_head(self._id, Head(last.number, last.digest))

    def _roll_back(self) -> None:
        self._unwritten, self._written = [], None
        self._connection.roll_back()

    def _last(self) -> Head:
        row = self._connection.fetch_head(self._id)
        return _checked_head(*self._heads(row), self._identity.name)

    def _fetch(self, sql: Any, **given: Any) -> list[tuple[Any, ...]]:
        self._flush()
        rows = self._connection.fetch(sql, journal=self._id, **given)
        if self._head is None and not (self._has_name() if rows else self._exists()):
            raise self._missing()
        return rows

    def _insert(self, row: JournalRow, is_new: bool) -> None:
        """Write a row; rows whose keys are known to be unused are buffered, for one statement."""
        self._unwritten.append(row)
        if not is_new:
            self._flush()

    def _flush(self) -> None:
        rows, self._unwritten = self._unwritten, []
        if rows:
            values = [_values(self._id, row) for row in rows]
            if self._connection.change_all(self._sql.add, values) < len(rows):
                raise used_key(rows[-1])  # the keys of the rows before it are known to be unused
            self._written = rows[-1]

    def _batch(self, start: int, limit: int) -> list[JournalRow]:
        return [_row(row) for row in self._fetch(self._sql.batch, start=start, limit=limit)]

    def _keyed(self, kinds: tuple[str, ...], key: str) -> JournalRow | None:
        given = {f"kind{k}": kind for k, kind in enumerate(kinds)}
        rows = self._fetch(self._sql.keyed(len(kinds)), key=key, **given)
        return _row(rows[0]) if rows else None

    def _all_keyed(self, wanted: Sequence[tuple[str, str]]) -> list[JournalRow]:
        if not wanted:
            return []
        slots = (
            1 << (len(wanted) - 1).bit_length()
        )  # a power of two, so that there are few different statements
        given: dict[str, str] = {}
        padded = [*wanted, *[wanted[0]] * (slots - len(wanted))]
        for k, (kind, key) in enumerate(padded):
            given |= {f"kind{k}": kind, f"key{k}": key}
        found = [_row(row) for row in self._fetch(self._sql.all_keyed(slots), **given)]
        return list({row.number: row for row in found}.values())

    def _of_play(self, play: int) -> list[JournalRow]:
        return [_row(row) for row in self._fetch(self._sql.of_play, play=play)]

    def _paired(
        self, kind: str, ends: Sequence[str], start: int, limit: int
    ) -> list[tuple[JournalRow, JournalRow | None]]:
        found = self._fetch(self._sql.of_kind, kind=kind, start=start, limit=limit)
        rows = [_bare(row) for row in found]
        if not rows or not ends:
            return [(row, None) for row in rows]
        given = {f"end{k}": end for k, end in enumerate(ends)}
        found = self._fetch(
            self._sql.ends(len(ends)),
            kind=kind,
            start=start,
            stop=rows[-1].number,
            **given,
        )
        last = {row.play: row for row in map(_bare, sorted(found))}  # by number
        return [(row, None if row.play is None else last.get(row.play)) for row in rows]

    def _put(self, snapshot: SnapshotRow) -> None:
        ((newest,),) = self._connection.fetch(self._sql.last_snapshot, journal=self._id)
        number = 0 if newest is None else newest + 1
        digest, header, arrays = snapshot
        self._connection.change(
            self._sql.add_snapshot,
            journal=self._id,
            number=number,
            digest=digest,
            header=header,
            arrays=arrays or None,
        )
        self._connection.change(self._sql.drop_snapshots, journal=self._id, number=number - 1)

    def _snapshots(self) -> Iterator[SnapshotRow]:
        for older in range(2):  # one by one: they may be large, and the first is usually intact
            rows = self._fetch(self._sql.snapshot, older=older)
            for digest, header, arrays in rows:
                yield SnapshotRow(digest, header, arrays or b"")
            if not rows:
                return


class SqlKeyring(Keyring):
    """A handle on the API keys of a database, with its own connection.

    Their table is created with the first key.
    """

    def __init__(self, store: SqlStore) -> None:
        self._store, self._connection = store, store.connect(kept=True)
        dialect = store.engine.dialect
        rows, one = sa.select(*keys.columns), sa.select(keys.c.id)
        given = sa.bindparam
        self._create = compiled(sa.schema.CreateTable(keys), dialect)
        self._add = compiled(sa.insert(keys), dialect)
        self._find = compiled(rows.where(keys.c.id == given("id")), dialect)
        self._all = compiled(rows.order_by(keys.c.created), dialect)
        self._one = compiled(
            one.limit(sa.literal_column("1")).offset(sa.literal_column("0")), dialect
        )
        gone = (keys.c.id == given("id")) | (keys.c.parent == given("parent"))
        self._remove = compiled(sa.delete(keys).where(gone), dialect)
        self._expire = compiled(sa.delete(keys).where(keys.c.expires < given("now")), dialect)
        self._found_table = False

    def close(self) -> None:
        """Close the connection; the next call opens a new one."""
        self._connection.close()

    def add(self, row: KeyRecord) -> None:
        """Store a key; create the tables if they do not exist."""
        self._store.create_tables(self._connection)
        if not self._has_table():
            self._connection.begin_to_create_tables()
            if not self._connection.has_table(KEYS):  # no other process created it meanwhile
                self._connection.change(self._create)
            self._connection.commit()
        self._connection.begin()
        try:
            if row.study is not None and row.parent is None:
                self._store.lock(self._connection, row.study)
            self._connection.change(self._add, tuple(row))
            self._connection.commit()
        except BaseException:
            self._connection.roll_back()
            raise

    def find(self, ids: Iterable[str]) -> list[KeyRecord]:
        """Return the keys with these ids; ids that do not exist are left out."""
        if not self._has_table():
            return []
        return [KeyRecord(*row) for id in ids for row in self._connection.fetch(self._find, id=id)]

    def all(self) -> list[KeyRecord]:
        """Return all keys, oldest first."""
        return (
            [KeyRecord(*row) for row in self._connection.fetch(self._all)]
            if self._has_table()
            else []
        )

    def is_empty(self) -> bool:
        """Return whether there are no keys."""
        return not (self._has_table() and self._connection.fetch(self._one))

    def remove(self, id: str) -> bool:
        """Remove a key and its sessions; return whether the key existed."""
        if not self._has_table():
            return False
        self._connection.begin()
        removed = self._connection.change(self._remove, id=id, parent=id)
        self._connection.commit()
        return bool(removed)

    def remove_expired(self, now: float) -> None:
        """Remove the keys that expired before this time."""
        if self._has_table():
            self._connection.begin()
            self._connection.change(self._expire, now=now)
            self._connection.commit()

    def _has_table(self) -> bool:
        """Return whether the table of keys exists; it is never dropped."""
        self._found_table = self._found_table or self._connection.has_table(KEYS)
        return self._found_table
