"""Journal pool: open journals for long reads, kept because a connection takes time to open."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TypeVar

from multiplay.errors import NotFound
from multiplay.service.studies.batching import is_deleted
from multiplay.storage import Journal, Store

T = TypeVar("T")
MOST_IDLE = 8


class JournalPool:
    """Idle journals of a store, the most recently used last."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._idle: list[tuple[str, Journal]] = []
        self._lock = threading.Lock()

    def use(self, name: str, act: Callable[[Journal], T]) -> T:
        """Call a function with the journal of a study."""
        kept = self._take(name)
        if kept is not None:
            try:
                return self._use(name, kept, act)
            except NotFound as error:
                if not is_deleted(error):
                    raise
        return self._use(name, self._store.open(name), act)  # perhaps a new study of this name

    def close(self) -> None:
        """Close all journals."""
        with self._lock:
            idle, self._idle = self._idle, []
        for _, journal in idle:
            journal.close()

    def _take(self, name: str) -> Journal | None:
        with self._lock:
            for place, (kept, journal) in reversed([*enumerate(self._idle)]):
                if kept == name:
                    del self._idle[place]
                    return journal
        return None

    def _use(self, name: str, journal: Journal, act: Callable[[Journal], T]) -> T:
        try:
            result = act(journal)
        except BaseException:
            journal.close()
            raise
        with self._lock:
            self._idle.append((name, journal))
            oldest = self._idle.pop(0)[1] if len(self._idle) > MOST_IDLE else None
        if oldest is not None:
            oldest.close()
        return result
