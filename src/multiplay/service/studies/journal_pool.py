"""Handles on journals for long reads: a few are kept, for a connection takes a while to open."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TypeVar

from multiplay.errors import NotFound
from multiplay.service.studies.batching import is_gone
from multiplay.storage import Journal, Store

T = TypeVar("T")
MOST = 8  # that are kept


class Handles:
    """Handles on the journals of a store that nobody uses now, the newest last."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._idle: list[tuple[str, Journal]] = []
        self._lock = threading.Lock()

    def use(self, name: str, act: Callable[[Journal], T]) -> T:
        """Call something with a handle on a journal."""
        kept = self._taken(name)
        if kept is not None:
            try:
                return self._used(name, kept, act)
            except NotFound as error:
                if not is_gone(error):
                    raise
        return self._used(name, self._store.open(name), act)  # perhaps a new study of this name

    def close(self) -> None:
        """Close them all."""
        with self._lock:
            idle, self._idle = self._idle, []
        for _, journal in idle:
            journal.close()

    def _taken(self, name: str) -> Journal | None:
        with self._lock:
            for place, (kept, journal) in reversed([*enumerate(self._idle)]):
                if kept == name:
                    del self._idle[place]
                    return journal
        return None

    def _used(self, name: str, journal: Journal, act: Callable[[Journal], T]) -> T:
        try:
            answer = act(journal)
        except BaseException:
            journal.close()
            raise
        with self._lock:
            self._idle.append((name, journal))
            late = self._idle.pop(0)[1] if len(self._idle) > MOST else None
        if late is not None:
            late.close()
        return answer
