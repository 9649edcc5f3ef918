"""Who may come in: the keys of a store, as one worker knows them."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from typing import NamedTuple, TypeVar

from multiplay.service.api.refusals import Forbidden, Unknown
from multiplay.service.auth import tokens
from multiplay.storage.base import KeyRecord, Keyring

T = TypeVar("T")
MOST = 1_000  # keys that are remembered
HINT = "Check it, or make another one: multiplay key create."


class Caller(NamedTuple):
    """Who asks, and what they may do.

    Attributes
    ----------
    id, name : str or None
        Of the key; None where the service is open.
    study : str or None
        The only study that the key is for.
    can : "read", "play" or "manage"
        What may be done with it.
    row : str or None
        What the store knows it by: that of a session is not that of its key.
    """

    id: str | None
    name: str | None
    study: str | None
    can: str
    row: str | None = None

    def request(self, key: str) -> str:
        """Return what a request of this caller is known by; those of others do not meet it."""
        return f"{self.id or ''}:{key}"

    def check(self, needed: str, study: str | None = None) -> None:
        """Raise ``Forbidden`` unless this may be done, with a study or with all of them."""
        if not tokens.includes(self.can, needed):
            raise Forbidden(
                "key",
                f"one that may {needed}",
                f"one that may {self.can}",
                f"Make another one: multiplay key create --can {needed}.",
            )
        if self.study is not None and self.study != study:
            expected = "one for all studies" if study is None else f"one for the study {study!r}"
            got, hint = f"one for the study {self.study!r}", "Use the key of that study."
            raise Forbidden("key", expected, got, hint)


ANYBODY = Caller(None, None, None, "manage")


class Register:
    """Knows callers by their keys.

    A key that was valid once is remembered, so that a request need not wait for the store before
    it is read. ``is_valid`` asks the store, and is called before anything is done: a key that is
    revoked is of no use from then on.

    Parameters
    ----------
    keyring
        The keys of the store; one thread at a time uses it.
    is_open
        Anybody may come in, as long as there is no key.
    """

    def __init__(self, keyring: Keyring, is_open: bool) -> None:
        self._keyring, self._is_open = keyring, is_open
        self._lock = threading.Lock()
        self._known: OrderedDict[str, KeyRecord] = OrderedDict()

    def close(self) -> None:
        """Give back the connection to the store."""
        self._keyring.close()

    def use(self, act: Callable[[Keyring], T]) -> T:
        """Call something with the keyring."""
        with self._lock:
            return act(self._keyring)

    def caller(self, token: str | None) -> Caller:
        """Return who has a key, as the store knows; raise ``Unknown`` if nobody has it."""
        if token is None:
            if self._is_open and self.use(lambda keyring: keyring.is_empty()):
                return ANYBODY
            raise Unknown("key", "a key", "none", "Send it as: Authorization: Bearer mp_...")
        claim = tokens.split(token) or tokens.Claim("", tokens.NOBODY)
        row = next(iter(self.use(lambda keyring: keyring.find([claim.id]))), None)
        if not tokens.is_of(row, claim.digest) or row is None or _is_over(row):
            raise Unknown("key", "a key that is valid", "another one", HINT)
        self._known[row.id] = row
        while len(self._known) > MOST:
            self._known.popitem(last=False)
        return _caller(row)

    def remembered(self, token: str | None) -> Caller | None:
        """Return who has a key, if that is remembered; never somebody without one."""
        claim = None if token is None else tokens.split(token)
        row = None if claim is None else self._known.get(claim.id)
        if claim is None or row is None or not tokens.is_of(row, claim.digest):
            return None
        return _caller(row)

    def is_valid(self, caller: Caller) -> bool:
        """Say whether the store still knows a caller."""
        if caller.row is None:
            return self._is_open and self.use(lambda keyring: keyring.is_empty())
        row = next(iter(self.use(lambda keyring: keyring.find([str(caller.row)]))), None)
        if row is None or _is_over(row):
            self._known.pop(caller.row, None)
            return False
        return True

    def confirm(self, caller: Caller) -> None:
        """Raise ``Unknown`` unless the store still knows a caller."""
        if not self.is_valid(caller):
            raise Unknown("key", "a key that is valid", "one that is not any more", HINT)


def _caller(row: KeyRecord) -> Caller:
    return Caller(row.parent or row.id, row.name, row.study, row.can, row.id)


def _is_over(row: KeyRecord) -> bool:
    return row.expires is not None and row.expires < time.time()
