"""API key format: a public id and a secret of 256 bits, of which only the digest is stored."""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
from typing import NamedTuple

from multiplay.errors import InvalidInput
from multiplay.storage.base import KeyRecord, checked_name

PERMISSIONS = ("read", "play", "manage")  # each includes those before it
PATTERN = re.compile(r"mp_([0-9a-f]{12})_([A-Za-z0-9_-]{43})")
NO_DIGEST = b"\0" * 32  # not the digest of any secret


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
