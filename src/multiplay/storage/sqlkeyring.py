"""Keys in a database: one more table, made with the first key."""

from __future__ import annotations

from collections.abc import Iterable

import sqlalchemy as sa

from multiplay.storage.keyring import Keyring, KeyRow
from multiplay.storage.schema import KEYS, compiled, keys
from multiplay.storage.sql import SqlStore


class SqlKeyring(Keyring):
    """A handle on the keys of a database, with a connection of its own."""

    def __init__(self, store: SqlStore) -> None:
        self._store, self._link = store, store.link()
        dialect = store.engine.dialect
        rows, one = sa.select(*keys.columns), sa.select(keys.c.id)
        given = sa.bindparam
        self._make = compiled(sa.schema.CreateTable(keys), dialect)
        self._add = compiled(sa.insert(keys), dialect)
        self._find = compiled(rows.where(keys.c.id == given("id")), dialect)
        self._all = compiled(rows.order_by(keys.c.created), dialect)
        self._one = compiled(
            one.limit(sa.literal_column("1")).offset(sa.literal_column("0")), dialect
        )
        gone = (keys.c.id == given("id")) | (keys.c.parent == given("parent"))
        self._remove = compiled(sa.delete(keys).where(gone), dialect)
        self._expire = compiled(sa.delete(keys).where(keys.c.expires < given("now")), dialect)
        self._made = False

    def close(self) -> None:
        """Close the connection; the next call opens another one."""
        self._link.close()

    def add(self, row: KeyRow) -> None:
        """Keep a key, and make the tables if there are none."""
        self._store.make(self._link)
        if not self._is_made():
            self._link.begin_to_make_tables()
            if not self._link.has_table(KEYS):  # nobody was faster
                self._link.change(self._make)
            self._link.commit()
        self._link.begin()
        self._link.change(self._add, tuple(row))
        self._link.commit()

    def find(self, ids: Iterable[str]) -> list[KeyRow]:
        """Return those of these keys that there are."""
        if not self._is_made():
            return []
        return [KeyRow(*row) for id in ids for row in self._link.fetch(self._find, id=id)]

    def all(self) -> list[KeyRow]:
        """Return all keys, oldest first."""
        return [KeyRow(*row) for row in self._link.fetch(self._all)] if self._is_made() else []

    def is_empty(self) -> bool:
        """Say whether there is no key at all."""
        return not (self._is_made() and self._link.fetch(self._one))

    def remove(self, id: str) -> bool:
        """Remove a key, and those that were made with it."""
        if not self._is_made():
            return False
        self._link.begin()
        removed = self._link.change(self._remove, id=id, parent=id)
        self._link.commit()
        return bool(removed)

    def remove_expired(self, now: float) -> None:
        """Remove the keys that ended before this."""
        if self._is_made():
            self._link.begin()
            self._link.change(self._expire, now=now)
            self._link.commit()

    def _is_made(self) -> bool:
        """Say whether there is a table of keys; it is never removed again."""
        self._made = self._made or self._link.has_table(KEYS)
        return self._made
