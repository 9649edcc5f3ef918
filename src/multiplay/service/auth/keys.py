"""API keys: their format, and keys of a store that are created, listed and revoked.

A key has a public id and a secret of 256 bits, of which only the digest is stored.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
import time
from contextlib import closing
from typing import NamedTuple

from multiplay._support.checks import is_number
from multiplay.errors import InvalidInput, NotFound
from multiplay.storage.base import KeyRecord, checked_name
from multiplay.storage.stores import store_at
from multiplay.studies.study import Place

PERMISSIONS = ("read", "play", "manage")  # each includes those before it
PATTERN = re.compile(r"mp_([0-9a-f]{12})_([A-Za-z0-9_-]{43})")
NO_DIGEST = b"\0" * 32  # not the digest of any secret
DAY = 86_400.0  # seconds


class Made(NamedTuple):
    """A new key: the row in the store, and the key itself, which is shown once."""

    row: KeyRecord
    token: str


def make(
    name: str,
    can: str,
    study: str | None,
    now: float,
    *,
    expires: float | None = None,
    parent: str | None = None,
) -> Made:
    """Make a key with a permission, for one study or for all.

    Examples
    --------
    >>> row, token = make("night job", "play", "lanes", now=0.0)
    >>> found = split(token)
    >>> found.id == row.id, is_of(row, found.digest), is_of(row, NO_DIGEST), is_of(None, NO_DIGEST)
    (True, True, False, False)
    """
    if can not in PERMISSIONS:
        expected = f"one of {', '.join(PERMISSIONS)}"
        raise InvalidInput("can", expected, repr(can), "Use play for programs that ask and tell.")
    if study is not None:
        checked_name(study)
    id, secret = secrets.token_hex(6), secrets.token_urlsafe(32)
    row = KeyRecord(id, _digest(secret), checked_name(name), study, can, now, expires, parent)
    return Made(row, f"mp_{id}_{secret}")


class Claim(NamedTuple):
    """The parts of a key: its id, and the digest of its secret."""

    id: str
    digest: bytes


def split(token: str) -> Claim | None:
    """Return the parts of a key; None if the text does not have the format of a key."""
    found = PATTERN.fullmatch(token)
    return None if found is None else Claim(found[1], _digest(found[2]))


def is_of(row: KeyRecord | None, digest: bytes) -> bool:
    """Return whether a secret belongs to a row, in constant time with or without a row."""
    kept = NO_DIGEST if row is None else row.digest
    return hmac.compare_digest(kept, digest) and row is not None


def includes(can: str, needed: str) -> bool:
    """Return whether a permission includes another."""
    return PERMISSIONS.index(can) >= PERMISSIONS.index(needed)


def _digest(secret: str) -> bytes:
    """Return the digest of a secret; 256 random bits need no slow hash function."""
    return hashlib.sha256(secret.encode()).digest()


# ------------------------------------------------------------ keys of a store


def create(
    store: Place,
    can: str,
    *,
    study: str | None = None,
    name: str | None = None,
    days: float | None = None,
) -> Made:
    """Create a key; the secret is in the result, and is stored nowhere else.

    Parameters
    ----------
    store
        The store with the studies.
    can
        "read", "play" or "manage".
    study
        The only study that the key is valid for; all studies if not given. It must exist.
    name
        A name for the list of keys.
    days
        Days until the key expires; it never expires if not given.

    Examples
    --------
    >>> made = create("memory://keys", "read", name="night job")
    >>> [(row.name, row.can, row.study) for row in list_all("memory://keys")]
    [('night job', 'read', None)]
    >>> revoke("memory://keys", made.row.id)
    >>> has_keys("memory://keys")
    False
    """
    place, now = store_at(store), time.time()
    if days is not None and not (is_number(days) and 0 < days <= 1e6):
        hint = "Use 90, or omit it for a key that does not expire."
        raise InvalidInput("days", "a positive number of days", repr(days), hint)
    expires = None if days is None else now + days * DAY
    made = make(name or "unnamed", can, study, now, expires=expires)
    if study is not None:
        place.open(study).close()  # raises NotFound, and creates no store
    with closing(place.keyring()) as keyring:
        keyring.add(made.row)
    return made


def list_all(store: Place) -> list[KeyRecord]:
    """Return all keys, oldest first, without the keys of sessions."""
    with closing(store_at(store).keyring()) as keyring:
        return [row for row in keyring.all() if row.parent is None]


def revoke(store: Place, id: str) -> None:
    """Revoke a key, and the sessions that were started with it."""
    with closing(store_at(store).keyring()) as keyring:
        if not keyring.remove(id):
            hint = "List the keys: multiplay key list."
            raise NotFound("id", "the id of a key", repr(id)[:60], hint)


def has_keys(store: Place) -> bool:
    """Return whether the store has any key."""
    with closing(store_at(store).keyring()) as keyring:
        return not keyring.is_empty()
