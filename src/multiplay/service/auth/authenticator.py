"""Authentication of callers: API keys of the store, with a cache of the keys seen before."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from typing import NamedTuple, TypeVar

from multiplay.service.auth import keys
from multiplay.service.errors import Forbidden, Unauthenticated
from multiplay.storage.base import KeyRecord, Keyring

T = TypeVar("T")
MOST_CACHED = 1_000  # keys
EXPECTED = "a valid API key"
HINT = "Check the key, or create a new one: multiplay key create."


class Caller(NamedTuple):
    """The key of a request, and its permission.

    Attributes
    ----------
    id, name : str or None
        Of the key; None where the service is open.
    study : str or None
        The only study that the key is valid for.
    can : "read", "play" or "manage"
        The permission.
    row : str or None
        The id of the row in the store: a session has a row of its own, not that of its key.
    """

    id: str | None
    name: str | None
    study: str | None
    can: str
    row: str | None = None

    def request(self, key: str) -> str:
        """Return an idempotency key that is distinct from those of other callers."""
        return f"{self.id or ''}:{key}"

    def check(self, needed: str, study: str | None = None) -> None:
        """Raise ``Forbidden`` unless the key has a permission for one study, or for all of them."""
        if not keys.includes(self.can, needed):
            raise Forbidden(
                "key",
                f"a key with the permission {needed}",
                f"one with the permission {self.can}",
                f"Create another key: multiplay key create --can {needed}.",
            )
        if self.study is not None and self.study != study:
            expected = (
                "a key for all studies" if study is None else f"a key for the study {study!r}"
            )
            got, hint = f"one for the study {self.study!r}", "Use the key of that study."
            raise Forbidden("key", expected, got, hint)


ANONYMOUS = Caller(None, None, None, "manage")


class Authenticator:
    """Finds callers by their keys.

    A key that was valid once is cached, so that a request need not wait for the store before its
    body is read. ``confirm`` reads the store, and is called before every operation: a revoked key
    is refused immediately, and a key of a study that was renamed is one of its new name.

    Parameters
    ----------
    keyring
        The keys of the store; one thread at a time uses it.
    is_open
        Whether requests without a key are accepted, as long as the store has no key.
    """

    def __init__(self, keyring: Keyring, is_open: bool) -> None:
        self._keyring, self._is_open = keyring, is_open
        self._lock = threading.Lock()
        self._cached: OrderedDict[str, KeyRecord] = OrderedDict()

    def close(self) -> None:
        """Close the connection to the store."""
        self._keyring.close()

    def use(self, act: Callable[[Keyring], T]) -> T:
        """Call a function that reads the keyring."""
        with self._lock:
            return act(self._keyring)

    def caller(self, token: str | None) -> Caller:
        """Return the caller of a key, read from the store; raise ``Unauthenticated`` if none."""
        if token is None:
            if self._is_open and self.use(lambda keyring: keyring.is_empty()):
                return ANONYMOUS
            hint = "Send the header Authorization: Bearer mp_..."
            raise Unauthenticated("key", EXPECTED, "none", hint)
        claim = keys.split(token) or keys.Claim("", keys.NO_DIGEST)
        row = self._read(claim.id)
        if not keys.is_of(row, claim.digest) or row is None:
            raise _not_valid()
        return _caller(row)

    def cached(self, token: str | None) -> Caller | None:
        """Return the caller of a key from the cache; None for a request without a key."""
        claim = None if token is None else keys.split(token)
        row = None if claim is None else self._cached.get(claim.id)
        if claim is None or row is None or not keys.is_of(row, claim.digest):
            return None
        return _caller(row)

    def current(self, caller: Caller) -> Caller:
        """Return a caller as the store has its key now; raise ``Unauthenticated`` if it has not."""
        if caller.row is None:
            if self._is_open and self.use(lambda keyring: keyring.is_empty()):
                return ANONYMOUS
            raise _not_valid()
        row = self._read(caller.row)
        if row is None:
            raise _not_valid()
        return _caller(row)

    def confirm(self, caller: Caller, needed: str, study: str | None = None) -> None:
        """Raise unless the store has the key of a caller, with a permission as in ``check``."""
        self.current(caller).check(needed, study)

    def _read(self, id: str) -> KeyRecord | None:
        """Return a valid key from the store, and cache it; a session has the rights of its key."""
        row = self._find(id)
        key = row if row is None or row.parent is None else self._find(row.parent)
        if row is None or key is None:
            self._cached.pop(id, None)
            return None
        row = self._cached[id] = row._replace(study=key.study, can=key.can)
        while len(self._cached) > MOST_CACHED:
            self._cached.popitem(last=False)
        return row

    def _find(self, id: str) -> KeyRecord | None:
        found = self.use(lambda keyring: keyring.find([id]))
        return next((row for row in found if not _is_expired(row)), None)


def _not_valid() -> Unauthenticated:
    got = "one that is not valid (unknown, revoked or expired)"
    return Unauthenticated("key", EXPECTED, got, HINT)


def _caller(row: KeyRecord) -> Caller:
    return Caller(row.parent or row.id, row.name, row.study, row.can, row.id)


def _is_expired(row: KeyRecord) -> bool:
    return row.expires is not None and row.expires < time.time()
