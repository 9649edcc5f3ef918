"""Management of API keys: create, list, revoke."""

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
    made = tokens.make(name or "unnamed", can, study, now, expires=expires)
    if study is not None:
        place.open(study).close()  # raises NotFound if there is no such study
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
