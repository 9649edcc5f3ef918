"""What all handles on journals share: turns, and entries that are chained and found."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Iterator, Sequence

from multiplay.storage.base import NO_LABELS, Entry, Head, Journal, Labels, Record
from multiplay.storage.chain import (
    Kept,
    Row,
    followed,
    kept,
    newest_whole,
    opened,
    sealed,
    unchecked,
)

FIRST_BATCH, LARGEST_BATCH = 100, 1000  # rows that are read at once
ROOM = 2**22  # bytes of a batch, about


class Turn:
    """A turn of a handle, for ``with``; a class, because a generator takes twice the time."""

    def __init__(self, handle: Handle) -> None:
        self._handle = handle

    def __enter__(self) -> Head:
        handle = self._handle
        if handle._head is not None:
            raise RuntimeError("a turn cannot begin within a turn of the same handle")
        head = handle._head = handle._begin()
        return head

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        handle = self._handle
        handle._head = None
        if kind is not None:
            handle._roll_back()
            return
        try:
            handle._commit()
        except BaseException:
            handle._roll_back()
            raise


class Handle(Journal):
    """A journal over rows: a store says how they are kept and read, and what a turn is.

    Within a turn, ``_head`` is the last row that was written.
    """

    _head: Head | None = None

    def turn(self) -> Turn:
        """Have the journal for oneself until the end of the block."""
        return Turn(self)

    def head(self) -> Head:
        """Return the number and the digest of the last record."""
        return self._last() if self._head is None else self._head

    def write(self, record: Record, labels: Labels = NO_LABELS, *, is_new: bool = False) -> Entry:
        """Append a record with labels."""
        if self._head is None:
            with self.turn():
                return self.write(record, labels)
        row = sealed(self._head, record, labels)
        self._insert(row, is_new)
        self._head = Head(row.number, row.digest)
        return Entry(row.number, Labels(*row[1:5]), record, row.digest)

    def append(self, record: Record) -> int:
        """Append a record without labels."""
        return self.write(record).number

    def entries(self, start: int = 0, previous: bytes | None = None) -> Iterator[Entry]:
        """Yield all from this number on, read in batches."""
        return followed(self._rows(start - (previous is None)), start, previous)

    def read(self, start: int = 0) -> Iterator[tuple[int, Record]]:
        """Yield the records from this number on."""
        return ((entry.number, entry.record) for entry in self.entries(start))

    def find(self, kind: str | tuple[str, ...], key: str) -> Entry | None:
        """Return the record of this kind, or of one of these, with this key, if there is one."""
        row = self._keyed((kind,) if isinstance(kind, str) else kind, key)
        return None if row is None else opened(row)

    def find_all(self, wanted: Sequence[tuple[str, str]]) -> list[Entry]:
        """Return the records that there are of these kinds and keys."""
        return [opened(row) for row in self._all_keyed(wanted)]

    def of_play(self, play: int) -> list[Entry]:
        """Return all records about a play, in order."""
        return [opened(row) for row in self._about(play)]

    def pairs(
        self, kind: str, ends: Sequence[str], start: int = 0
    ) -> Iterator[tuple[Entry, Entry | None]]:
        """Yield all records of a kind, each with the last of its play that is of such a kind."""
        while batch := self._paired(kind, ends, start, LARGEST_BATCH):
            for row, end in batch:
                yield unchecked(row), None if end is None else unchecked(end)
            start = batch[-1][0].number + 1

    def put(self, snapshot: Record) -> None:
        """Keep this snapshot; the one before stays in reserve."""
        if self._head is None:
            with self.turn():
                return self.put(snapshot)
        return self._keep(kept(snapshot))

    def get(self) -> Record | None:
        """Return the newest snapshot that can be read."""
        return newest_whole(self._snapshots())

    def close(self) -> None:
        """Give back what the handle holds; it can be used again."""

    def _rows(self, start: int) -> Iterator[Row]:
        """Yield the rows from a number on; batches become smaller where rows are large."""
        limit = FIRST_BATCH
        while batch := self._batch(start, limit):
            yield from batch
            if len(batch) < limit:
                return
            start = batch[-1].number + 1
            size = sum(len(row.header) + len(row.arrays) for row in batch)
            limit = max(1, min(LARGEST_BATCH, len(batch) * ROOM // (size + 1)))

    @abstractmethod
    def _begin(self) -> Head:
        """Wait for the turn, and return the head."""

    @abstractmethod
    def _commit(self) -> None:
        """Keep what was written in this turn; raise if anything failed in it."""

    @abstractmethod
    def _roll_back(self) -> None:
        """Forget what was written in this turn. Never raises: the reason is raised already."""

    @abstractmethod
    def _last(self) -> Head:
        """Return the head, outside a turn."""

    @abstractmethod
    def _insert(self, row: Row, is_new: bool) -> None:
        """Write a row, within a turn; ``is_new``: no other one has its key."""

    @abstractmethod
    def _batch(self, start: int, limit: int) -> list[Row]:
        """Return the next rows from a number on."""

    @abstractmethod
    def _keyed(self, kinds: tuple[str, ...], key: str) -> Row | None:
        """Return the row of one of these kinds with a key."""

    def _all_keyed(self, wanted: Sequence[tuple[str, str]]) -> list[Row]:
        """Return the rows that there are of these kinds and keys."""
        found = (self._keyed((kind,), key) for kind, key in wanted)
        return [row for row in found if row is not None]

    @abstractmethod
    def _about(self, play: int) -> list[Row]:
        """Return the rows of a play, in order."""

    @abstractmethod
    def _paired(
        self, kind: str, ends: Sequence[str], start: int, limit: int
    ) -> list[tuple[Row, Row | None]]:
        """Return the next rows of a kind, each with its end, all without arrays."""

    @abstractmethod
    def _keep(self, snapshot: Kept) -> None:
        """Write a snapshot, within a turn; keep the two newest."""

    @abstractmethod
    def _snapshots(self) -> Iterable[Kept]:
        """Return the snapshots, the newest first."""
