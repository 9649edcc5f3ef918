"""Keys of a store: who may use its studies. A store keeps digests, never a key."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import Any, NamedTuple

from multiplay.errors import InvalidInput
from multiplay.storage.base import Store
from multiplay.storage.memory import MemoryStore


class KeyRow(NamedTuple):
    """A key as a store keeps it.

    Attributes
    ----------
    id : str
        What the key is known by; it is no secret.
    digest : bytes
        Of the secret.
    name : str
        What it is called, for people.
    study : str or None
        The only study that it is for; None for all of them.
    can : str
        What may be done with it.
    created : float
        When it was made, in seconds since 1970.
    expires : float or None
        When it ends by itself.
    parent : str or None
        The key that it was made with, and ends with: that of a session in a browser.
    """

    id: str
    digest: bytes
    name: str
    study: str | None
    can: str
    created: float
    expires: float | None = None
    parent: str | None = None


class Keyring(ABC):
    """The keys of a store. A handle is used by one thread at a time."""

    @abstractmethod
    def add(self, row: KeyRow) -> None:
        """Keep a key."""

    @abstractmethod
    def find(self, ids: Iterable[str]) -> list[KeyRow]:
        """Return those of these keys that there are."""

    @abstractmethod
    def all(self) -> list[KeyRow]:
        """Return all keys, oldest first; those of sessions too."""

    @abstractmethod
    def is_empty(self) -> bool:
        """Say whether there is no key at all."""

    @abstractmethod
    def remove(self, id: str) -> bool:
        """Remove a key, and those that were made with it; say whether there was one."""

    @abstractmethod
    def remove_expired(self, now: float) -> None:
        """Remove the keys that ended before this."""

    @abstractmethod
    def close(self) -> None:
        """Give back what the handle holds; it can be used again."""


class MemoryKeyring(Keyring):
    """Keys in this process."""

    def __init__(self, rows: dict[str, KeyRow], lock: threading.Lock) -> None:
        self._rows, self._lock = rows, lock

    def add(self, row: KeyRow) -> None:
        """Keep a key."""
        with self._lock:
            self._rows[row.id] = row

    def find(self, ids: Iterable[str]) -> list[KeyRow]:
        """Return those of these keys that there are."""
        with self._lock:
            return [self._rows[id] for id in ids if id in self._rows]

    def all(self) -> list[KeyRow]:
        """Return all keys, oldest first."""
        with self._lock:
            return sorted(self._rows.values(), key=lambda row: row.created)

    def is_empty(self) -> bool:
        """Say whether there is no key at all."""
        return not self._rows

    def remove(self, id: str) -> bool:
        """Remove a key, and those that were made with it."""
        return self._keep(lambda row: id not in (row.id, row.parent))

    def remove_expired(self, now: float) -> None:
        """Remove the keys that ended before this."""
        self._keep(lambda row: row.expires is None or row.expires >= now)

    def close(self) -> None:
        """Do nothing: it holds nothing."""

    def _keep(self, stays: Any) -> bool:
        with self._lock:
            gone = [row.id for row in self._rows.values() if not stays(row)]
            for id in gone:
                del self._rows[id]
            return bool(gone)


def keyring_of(store: Store) -> Keyring:
    """Return a new handle on the keys of a store.

    Examples
    --------
    >>> keyring = keyring_of(MemoryStore())
    >>> keyring.add(KeyRow("4f2a", b"digest", "night job", "lanes", "play", 0.0))
    >>> [row.name for row in keyring.all()], keyring.remove("4f2a"), keyring.is_empty()
    (['night job'], True, True)
    """
    if isinstance(store, MemoryStore):
        return MemoryKeyring(store.keys, store.keys_lock)
    from multiplay.storage.sql import SqlStore  # SQLAlchemy takes a while

    if not isinstance(store, SqlStore):
        expected = "an SQLite file, a PostgreSQL database or memory://, which can keep keys"
        raise InvalidInput("store", expected, repr(store)[:60], "Choose one of these.")
    from multiplay.storage.sqlkeyring import SqlKeyring

    return SqlKeyring(store)
