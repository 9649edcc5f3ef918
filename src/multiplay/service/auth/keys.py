"""Making, listing and revoking keys."""

from __future__ import annotations

import time
from contextlib import closing

from multiplay._support.checks import is_number
from multiplay.errors import InvalidInput, NotFound
from multiplay.service.auth import tokens
from multiplay.storage.base import KeyRecord
from multiplay.storage.stores import store_at
from multiplay.studies.study import Place

DAY = 86_400.0  # seconds


def create(
    store: Place,
    can: str,
    *,
    study: str | None = None,
    name: str | None = None,
    days: float | None = None,
) -> tokens.Made:
    """Make a key; the secret is in the answer, and nowhere else.

    Parameters
    ----------
    store
        Where the studies are.
    can
        "read", "play" or "manage".
    study
        The only study that it is for; all of them if not given. It must be there.
    name
        What people call it.
    days
        After these it ends; never if not given.

    Examples
    --------
    >>> made = create("memory://keys", "read", name="the boss")
    >>> [(row.name, row.can, row.study) for row in list_all("memory://keys")]
    [('the boss', 'read', None)]
    >>> revoke("memory://keys", made.row.id)
    >>> has_keys("memory://keys")
    False
    """
    place, now = store_at(store), time.time()
    if days is not None and not (is_number(days) and 0 < days <= 1e6):
        hint = "Write 90, or leave it out."
        raise InvalidInput("days", "a positive number of days", repr(days), hint)
    expires = None if days is None else now + days * DAY
    made = tokens.make(name or "unnamed", can, study, now, expires=expires)
    if study is not None:
        place.open(study).close()  # refuses what is not there
    with closing(place.keyring()) as keyring:
        keyring.add(made.row)
    return made


def list_all(store: Place) -> list[KeyRecord]:
    """Return all keys, oldest first, without those of sessions."""
    with closing(store_at(store).keyring()) as keyring:
        return [row for row in keyring.all() if row.parent is None]


def revoke(store: Place, id: str) -> None:
    """Make a key invalid, and the sessions that were begun with it."""
    with closing(store_at(store).keyring()) as keyring:
        if not keyring.remove(id):
            hint = "Look at the list of keys: multiplay key list."
            raise NotFound("id", "the id of a key", repr(id)[:60], hint)


def has_keys(store: Place) -> bool:
    """Say whether there is a key at all."""
    with closing(store_at(store).keyring()) as keyring:
        return not keyring.is_empty()
