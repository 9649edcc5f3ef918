"""Keys: a part that is known, and a secret of 256 bits of which only the digest is kept."""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
from typing import NamedTuple

from multiplay.errors import InvalidInput
from multiplay.storage.base import KeyRecord, checked_name

RIGHTS = ("read", "play", "manage")  # each includes those before it
PATTERN = re.compile(r"mp_([0-9a-f]{12})_([A-Za-z0-9_-]{43})")
NOBODY = b"\0" * 32  # the digest of no secret


class Made(NamedTuple):
    """A new key: what the store keeps of it, and the key itself, which is shown once."""

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
    """Make a key with a right, for one study or for all.

    Examples
    --------
    >>> row, token = make("night job", "play", "lanes", now=0.0)
    >>> found = split(token)
    >>> found.id == row.id, is_of(row, found.digest), is_of(row, NOBODY), is_of(None, NOBODY)
    (True, True, False, False)
    """
    if can not in RIGHTS:
        expected = f"one of {', '.join(RIGHTS)}"
        raise InvalidInput("can", expected, repr(can), "Write play to ask and tell.")
    if study is not None:
        checked_name(study)
    id, secret = secrets.token_hex(6), secrets.token_urlsafe(32)
    row = KeyRecord(id, _digest(secret), checked_name(name), study, can, now, expires, parent)
    return Made(row, f"mp_{id}_{secret}")


class Claim(NamedTuple):
    """What a key says: who it is, and the digest of its secret."""

    id: str
    digest: bytes


def split(token: str) -> Claim | None:
    """Return the parts of a key; None if it cannot be one."""
    found = PATTERN.fullmatch(token)
    return None if found is None else Claim(found[1], _digest(found[2]))


def is_of(row: KeyRecord | None, digest: bytes) -> bool:
    """Say whether a secret is that of a key, in the same time whether or not there is one."""
    kept = NOBODY if row is None else row.digest
    return hmac.compare_digest(kept, digest) and row is not None


def includes(can: str, needed: str) -> bool:
    """Say whether a right includes another one."""
    return RIGHTS.index(can) >= RIGHTS.index(needed)


def _digest(secret: str) -> bytes:
    """Return the digest of a secret; one with 256 bits needs no slow function."""
    return hashlib.sha256(secret.encode()).digest()
