"""What is gone with its process: for tests, and for runs that nobody resumes."""

from __future__ import annotations

import copy
import json
import threading
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING

from multiplay.errors import InvalidInput, StoreError
from multiplay.storage.base import NO_LABELS, Head, Labels, Record, Storage, Store, header_text
from multiplay.storage.chain import Kept, Row, sealed, used_key
from multiplay.storage.journal import Handle
from multiplay.storage.names import checked_name, deleted, taken, unknown

if TYPE_CHECKING:
    from multiplay.storage.keyring import KeyRow

PATIENCE = 30.0  # seconds to wait for a turn


class MemoryStorage(Storage):
    """Keeps records in this process.

    They are copies, so that nobody changes what is kept.

    Examples
    --------
    >>> storage = MemoryStorage()
    >>> storage.append(Record({"day": 1}, {}))
    0
    >>> [record.header for _, record in storage.read()]
    [{'day': 1}]
    """

    def __init__(self) -> None:
        self._records: list[Record] = []
        self._snapshot: Record | None = None

    def append(self, record: Record) -> int:
        """Keep a record behind all others."""
        self._records.append(_copy(record))
        return len(self._records) - 1

    def read(self, start: int = 0) -> Iterator[tuple[int, Record]]:
        """Yield the records from this number on."""
        for number in range(start, len(self._records)):
            yield number, copy.deepcopy(self._records[number])

    def put(self, snapshot: Record) -> None:
        """Keep this snapshot instead of the one before."""
        self._snapshot = _copy(snapshot)

    def get(self) -> Record | None:
        """Return the snapshot."""
        return copy.deepcopy(self._snapshot)


def _copy(record: Record) -> Record:
    return Record(json.loads(header_text(record)), copy.deepcopy(record.arrays))


class _Shelf:
    """What the handles on one journal share. Rows below ``count`` are there, for everybody."""

    def __init__(self, name: str, url: str, first: Row) -> None:
        self.name, self.url = name, url
        self.lock = threading.Lock()  # held by whose turn it is
        self.rows: list[Row] = []
        self.keys: dict[tuple[str, str], Row] = {}
        self.plays: defaultdict[int, list[Row]] = defaultdict(list)
        self.snapshots: list[Kept] = []  # the newest first
        self.is_deleted = False
        self.add([first], [])

    def add(self, rows: list[Row], snapshots: list[Kept]) -> None:
        for row in rows:
            if row.key is not None:
                self.keys[row.kind, row.key] = row
            if row.play is not None:
                self.plays[row.play].append(row)
        self.rows += rows
        self.count = len(self.rows)  # from now on others see all of them, at once
        self.snapshots = [*snapshots, *self.snapshots][:2]


class MemoryJournal(Handle):
    """A handle on a journal of a ``MemoryStore``; threads have one each."""

    def __init__(self, shelf: _Shelf) -> None:
        self._kept = shelf
        self._new: list[Row] = []  # of this turn
        self._new_snapshots: list[Kept] = []

    def __repr__(self) -> str:
        return f"MemoryJournal({self._kept.name!r})"

    def _begin(self) -> Head:
        if not self._shelf().lock.acquire(timeout=PATIENCE):
            reason = f"somebody else has had the turn for {PATIENCE:g} seconds"
            raise StoreError(self._kept.url, reason, "End the other turn, and try again.")
        try:
            return self._last()
        except InvalidInput:  # deleted while we waited
            self._kept.lock.release()
            raise

    def _commit(self) -> None:
        self._kept.add(self._new, self._new_snapshots)
        self._roll_back()

    def _roll_back(self) -> None:
        self._new, self._new_snapshots = [], []
        self._kept.lock.release()

    def _last(self) -> Head:
        shelf = self._shelf()
        last = shelf.rows[shelf.count - 1]
        return Head(last.number, last.digest)

    def _insert(self, row: Row, is_new: bool) -> None:
        if row.key is not None and not is_new and self._keyed((row.kind,), row.key):
            raise used_key(row)
        self._new.append(row)

    def _batch(self, start: int, limit: int) -> list[Row]:
        return list(islice(self._all(max(start, 0)), limit))

    def _all(self, start: int) -> Iterator[Row]:
        shelf = self._shelf()
        yield from (shelf.rows[number] for number in range(start, shelf.count))
        yield from (row for row in self._new if row.number >= start)

    def _keyed(self, kinds: tuple[str, ...], key: str) -> Row | None:
        shelf = self._shelf()
        for kind in kinds:
            row = shelf.keys.get((kind, key))
            if row is not None and row.number < shelf.count:
                return row
        return next((row for row in self._new if row.key == key and row.kind in kinds), None)

    def _about(self, play: int) -> list[Row]:
        shelf = self._shelf()
        old = [row for row in shelf.plays.get(play, ()) if row.number < shelf.count]
        return [*old, *(row for row in self._new if row.play == play)]

    def _paired(
        self, kind: str, ends: Sequence[str], start: int, limit: int
    ) -> list[tuple[Row, Row | None]]:
        of_kind = (row for row in self._all(start) if row.kind == kind)
        return [(_bare(row), self._end_of(row, ends)) for row in islice(of_kind, limit)]

    def _end_of(self, row: Row, ends: Sequence[str]) -> Row | None:
        about = [] if row.play is None else self._about(row.play)
        return next((_bare(one) for one in reversed(about) if one.kind in ends), None)

    def _keep(self, snapshot: Kept) -> None:
        self._new_snapshots.insert(0, snapshot)

    def _snapshots(self) -> Iterable[Kept]:
        return [*self._new_snapshots, *self._shelf().snapshots]

    def _shelf(self) -> _Shelf:
        if self._kept.is_deleted:
            raise deleted(self._kept.name, self._kept.url)
        return self._kept


def _bare(row: Row) -> Row:
    return row._replace(arrays=b"")


class MemoryStore(Store):
    """Keeps journals in this process, for its threads.

    Parameters
    ----------
    name
        What its ``url`` says behind ``memory://``.

    Examples
    --------
    >>> store = MemoryStore()
    >>> journal = store.create("lanes", Record({"day": 1}, {}))
    >>> with journal.turn() as head:
    ...     entry = journal.write(Record({"day": head.number + 2}, {}), Labels("ask", key="Monday"))
    >>> store.open("lanes").find("ask", "Monday").record.header
    {'day': 2}
    """

    def __init__(self, name: str = "") -> None:
        self._name = name
        self._shelves: dict[str, _Shelf] = {}
        self._lock = threading.Lock()
        self.keys: dict[str, KeyRow] = {}  # by id
        self.keys_lock = threading.Lock()

    def __repr__(self) -> str:
        return f"MemoryStore({self._name!r})"

    @property
    def url(self) -> str:
        """Where it is."""
        return f"memory://{self._name}"

    def create(
        self,
        name: str,
        record: Record,
        labels: Labels = NO_LABELS,
        more: Iterable[tuple[Record, Labels]] = (),
    ) -> MemoryJournal:
        """Begin a journal with its first records."""
        shelf = _Shelf(checked_name(name), self.url, sealed(Head(), record, labels))
        journal = MemoryJournal(shelf)
        with journal.turn():
            for following in more:
                journal.write(*following)
        with self._lock:
            if name in self._shelves:
                raise taken(name, self.url)
            self._shelves[name] = shelf
        return journal

    def open(self, name: str) -> MemoryJournal:
        """Return a new handle on a journal."""
        checked_name(name)
        with self._lock:
            if name not in self._shelves:
                raise unknown(name, self._shelves, self.url)
            return MemoryJournal(self._shelves[name])

    def names(self) -> list[str]:
        """Return the names of all journals, sorted."""
        with self._lock:
            return sorted(self._shelves)

    def delete(self, name: str) -> None:
        """Remove a journal for good, after the turns that others have now."""
        shelf = self.open(name)._kept
        with shelf.lock, self._lock:
            if self._shelves.get(name) is not shelf:
                raise unknown(name, self._shelves, self.url)
            del self._shelves[name]
            shelf.is_deleted = True
        with self.keys_lock:  # a new study of this name is another one
            for id in [id for id, row in self.keys.items() if row.study == name]:
                del self.keys[id]
