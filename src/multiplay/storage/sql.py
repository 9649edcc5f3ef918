"""Journals in a database: what SQLite and PostgreSQL have in common."""

from __future__ import annotations

import math
import time
from abc import abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import sqlalchemy as sa

from multiplay.errors import InvalidInput
from multiplay.storage.base import NO_LABELS, Head, Labels, Record, Store
from multiplay.storage.chain import Kept, Row, damaged, sealed, used_key
from multiplay.storage.connection import Link
from multiplay.storage.journal import Handle
from multiplay.storage.names import checked_name, deleted, taken, unknown
from multiplay.storage.schema import KEYS, VERSION, Statements

TIMEOUT = 30.0  # seconds to wait for others


class Identity(NamedTuple):
    """Which journal it is: a name can be given again, the rest is for ever."""

    id: int
    name: str
    created: float


class SqlStore(Store):
    """Keeps journals in a database.

    Parameters
    ----------
    url
        Where it is, for people.
    engine
        What connects to it.
    """

    def __init__(self, url: str, engine: sa.Engine) -> None:
        self._url, self.engine = url, engine
        self.sql = Statements(engine.dialect)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.url!r})"

    @property
    def url(self) -> str:
        """Where it is, without a password."""
        return self._url

    def create(
        self,
        name: str,
        record: Record,
        labels: Labels = NO_LABELS,
        more: Iterable[tuple[Record, Labels]] = (),
    ) -> SqlJournal:
        """Begin a journal with its first records, and the tables if there are none."""
        checked_name(name)
        first = sealed(Head(), record, labels)
        link = self.link()
        with _closed_if_it_fails(link):
            self.make(link)
            link.begin()
            if not link.change(self.sql.add_journal, name=name, created=time.time()):
                raise taken(name, self.url)
            found = self._found(link, name)
            assert found is not None
            link.change(self.sql.add, _values(found.id, first))
            last = first
            for following in more:
                last = sealed(Head(last.number, last.digest), *following)
                if not link.change(self.sql.add, _values(found.id, last)):
                    raise used_key(last)
            link.commit()
        return SqlJournal(link, found)

    def open(self, name: str) -> SqlJournal:
        """Return a new handle on a journal."""
        checked_name(name)
        link = self.link()
        with _closed_if_it_fails(link):
            return SqlJournal(link, self._known(link, name))

    def names(self) -> list[str]:
        """Return the names of all journals, sorted."""
        link = self.link()
        try:
            return self._names(link)
        finally:
            link.close()

    def delete(self, name: str) -> None:
        """Remove a journal for good, after the turn that somebody has now."""
        checked_name(name)
        link = self.link()
        with _closed_if_it_fails(link):
            found = self._known(link, name)
            if link.begin_turn(found.id) is None:
                raise unknown(name, self._names(link), self.url)
            for statement in self.sql.remove:
                link.change(statement, journal=found.id)
            if link.has_table(KEYS):  # a new study of this name is another one
                link.change(self.sql.remove_keys, study=name)
            link.commit()
        link.close()

    def link(self) -> Link:
        """Return a new link, which refuses tables of a newer multiplay."""
        link = self._link()
        link.greet = lambda: check_version(link)
        return link

    def _names(self, link: Link) -> list[str]:
        rows = link.fetch(self.sql.names) if link.has_tables() else []
        return sorted(name for (name,) in rows)

    def _found(self, link: Link, name: str) -> Identity | None:
        rows = link.fetch(self.sql.named, name=name)
        return Identity(*rows[0]) if rows else None

    def _known(self, link: Link, name: str) -> Identity:
        found = self._found(link, name) if link.has_tables() else None
        if found is None:
            raise unknown(name, self._names(link), self.url)
        return found

    def make(self, link: Link) -> None:
        """Make the place and the tables, if there are none."""
        self._make_place()
        if link.has_tables():
            return
        link.begin_to_make_tables()
        if not link.has_tables():  # nobody was faster
            for statement in self.sql.make:
                link.change(statement, version=VERSION)
        link.commit()

    @abstractmethod
    def _link(self) -> Link:
        """Return a new link to the database."""

    @abstractmethod
    def _make_place(self) -> None:
        """Make the place where the database will be, if need be."""


@contextmanager
def _closed_if_it_fails(link: Link) -> Iterator[None]:
    try:
        yield
    except BaseException:
        link.roll_back()
        link.close()
        raise


def check_version(link: Link) -> None:
    """Refuse tables that a newer multiplay has made."""
    if link.has_tables():
        newest = max((version for (version,) in link.fetch(link.sql.version)), default=0)
        if newest > VERSION:
            got = f"tables of version {newest} in {link.url}"
            expected = f"tables of version {VERSION} or older"
            raise InvalidInput("store", expected, got, "Update multiplay.")


def seconds(argument: str, value: Any) -> float:
    """Return how long to wait, or say what is wrong with it."""
    try:
        found = float(value)
    except (TypeError, ValueError):
        found = math.nan
    if not 0 <= found <= 1e6:
        expected, hint = "seconds", "Give a number from 0 to 1000000."
        raise InvalidInput(argument, expected, repr(value)[:60], hint)
    return found


def _values(journal: int, row: Row) -> tuple[Any, ...]:
    """Return a row as it is written; no arrays are no bytes."""
    return (journal, *row[:-1], row.arrays or None)


def _row(columns: tuple[Any, ...]) -> Row:
    return Row._make((*columns[:-1], columns[-1] or b""))


def _bare(columns: tuple[Any, ...]) -> Row:
    return Row._make((*columns, b""))


class SqlJournal(Handle):
    """A handle on a journal in a database, with a connection of its own."""

    def __init__(self, link: Link, identity: Identity) -> None:
        self._link, self._identity = link, identity
        self._id, self._sql = identity.id, link.sql
        self._unwritten: list[Row] = []  # of this turn
        link.greet = self._greet

    def __repr__(self) -> str:
        return f"SqlJournal({self._identity.name!r}, {self._link.url!r})"

    def close(self) -> None:
        """Close the connection; the next call opens another one."""
        self._link.close()

    def _greet(self) -> None:
        """Make sure of what is at the other end of a new connection."""
        check_version(self._link)
        if not self._is_there():
            raise self._gone()

    def _is_there(self) -> bool:
        if not self._link.has_tables():
            return False
        rows = self._link.fetch(self._sql.identified, journal=self._id)
        return rows == [tuple(self._identity)]

    def _gone(self) -> InvalidInput:
        """Return the error for a journal without entries: it begins with one."""
        if self._is_there():
            return damaged(0, "none")
        return deleted(self._identity.name, self._link.url)

    def _begin(self) -> Head:
        head = self._link.begin_turn(self._id)
        if head is None:
            self._link.roll_back()
            raise self._gone()
        return Head(*head)

    def _commit(self) -> None:
        self._write_out()
        self._link.commit()

    def _roll_back(self) -> None:
        self._unwritten = []
        self._link.roll_back()

    def _last(self) -> Head:
        rows = self._fetch(self._sql.head)
        if not rows:
            raise self._gone()
        return Head(*rows[0])

    def _fetch(self, sql: Any, **given: Any) -> list[tuple[Any, ...]]:
        self._write_out()
        rows = self._link.fetch(sql, journal=self._id, **given)
        if not rows and self._head is None and not self._is_there():
            raise self._gone()
        return rows

    def _insert(self, row: Row, is_new: bool) -> None:
        """Write a row; those that are new for sure wait for others, to go in one journey."""
        self._unwritten.append(row)
        if not is_new:
            self._write_out()

    def _write_out(self) -> None:
        rows, self._unwritten = self._unwritten, []
        if rows:
            values = [_values(self._id, row) for row in rows]
            if self._link.change_all(self._sql.add, values) < len(rows):
                raise used_key(rows[-1])  # others have made sure of theirs

    def _batch(self, start: int, limit: int) -> list[Row]:
        return [_row(row) for row in self._fetch(self._sql.batch, start=start, limit=limit)]

    def _keyed(self, kinds: tuple[str, ...], key: str) -> Row | None:
        given = {f"kind{k}": kind for k, kind in enumerate(kinds)}
        rows = self._fetch(self._sql.keyed(len(kinds)), key=key, **given)
        return _row(rows[0]) if rows else None

    def _all_keyed(self, wanted: Sequence[tuple[str, str]]) -> list[Row]:
        if not wanted:
            return []
        room = 1 << (len(wanted) - 1).bit_length()  # so that there are few different statements
        given: dict[str, str] = {}
        padded = [*wanted, *[wanted[0]] * (room - len(wanted))]
        for k, (kind, key) in enumerate(padded):
            given |= {f"kind{k}": kind, f"key{k}": key}
        found = [_row(row) for row in self._fetch(self._sql.all_keyed(room), **given)]
        return list({row.number: row for row in found}.values())

    def _about(self, play: int) -> list[Row]:
        return [_row(row) for row in self._fetch(self._sql.about, play=play)]

    def _paired(
        self, kind: str, ends: Sequence[str], start: int, limit: int
    ) -> list[tuple[Row, Row | None]]:
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

    def _keep(self, snapshot: Kept) -> None:
        ((newest,),) = self._link.fetch(self._sql.last_snapshot, journal=self._id)
        number = 0 if newest is None else newest + 1
        digest, header, arrays = snapshot
        self._link.change(
            self._sql.add_snapshot,
            journal=self._id,
            number=number,
            digest=digest,
            header=header,
            arrays=arrays or None,
        )
        self._link.change(self._sql.drop_snapshots, journal=self._id, number=number - 1)

    def _snapshots(self) -> Iterator[Kept]:
        for older in range(2):  # one by one: they may be large, and the first will do as a rule
            for digest, header, arrays in self._fetch(self._sql.snapshot, older=older):
                yield Kept(digest, header, arrays or b"")
