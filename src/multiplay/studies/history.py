"""All that was written of a study, wherever it is, for those who copy it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING, Protocol

from multiplay.storage import Entry, Head, Journal, Record, Store
from multiplay.studies import play_history

if TYPE_CHECKING:  # imported where it is used: it takes as long as all the rest
    import pandas as pd


class History(Protocol):
    """A study that is read from its beginning to its end, while others may write on."""

    def snapshot(self) -> Record | None:
        """Return a state that makes opening fast, if there is one."""

    def head(self) -> Head:
        """Return the number and the digest of the last entry."""

    def entries(self) -> Iterator[Entry]:
        """Yield all entries, in order."""

    def plays(self) -> Iterator[pd.DataFrame]:
        """Yield the table of plays in parts; an empty one if there is no play."""


class JournalHistory:
    """The history of a journal."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal

    def snapshot(self) -> Record | None:
        """Return a state that makes opening fast, if there is one."""
        return self._journal.get()

    def head(self) -> Head:
        """Return the number and the digest of the last entry."""
        return self._journal.head()

    def entries(self) -> Iterator[Entry]:
        """Yield all entries, in order."""
        return self._journal.entries()

    def plays(self) -> Iterator[pd.DataFrame]:
        """Yield the table of plays in parts."""
        return play_history.plays(self._journal, play_history.CHUNK)


@contextmanager
def history_in(store: Store, name: str) -> Iterator[History]:
    """Give the history of a study, with a handle of its own: a long reading disturbs nobody."""
    with closing(store.open(name)) as journal:
        yield JournalHistory(journal)
