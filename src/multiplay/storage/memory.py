"""Storage, journals and API keys in memory: for tests, and for runs that are not resumed."""

from __future__ import annotations

import copy
import json
import math
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from itertools import islice

from multiplay.errors import InvalidInput, StoreError
from multiplay.storage.base import (
    NO_LABELS,
    AnsweredRequest,
    Head,
    KeyRecord,
    Keyring,
    Labels,
    Record,
    Storage,
    Store,
    checked_name,
    header_text,
    journal_deleted,
    name_in_use,
    name_not_found,
    request_in_use,
)
from multiplay.storage.journal import BaseJournal, JournalRow, SnapshotRow, row_of, used_key

LOCK_TIMEOUT = 30.0  # seconds to wait for a transaction of another thread


class MemoryStorage(Storage):
    """A storage in the memory of this process.

    It stores and returns copies, so that callers cannot change its content.

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
        """Append a record; return its number."""
        self._records.append(_copy(record))
        return len(self._records) - 1

    def read(self, start: int = 0) -> Iterator[tuple[int, Record]]:
        """Yield the records from this number on."""
        for number in range(start, len(self._records)):
            yield number, copy.deepcopy(self._records[number])

    def put(self, snapshot: Record) -> None:
        """Replace the snapshot."""
        self._snapshot = _copy(snapshot)

    def get(self) -> Record | None:
        """Return the snapshot."""
        return copy.deepcopy(self._snapshot)


def _copy(record: Record) -> Record:
    return Record(json.loads(header_text(record)), copy.deepcopy(record.arrays))


class _SharedRows:
    """The rows that all handles on one journal share. Rows below ``count`` are committed."""

    def __init__(self, name: str, url: str, first: JournalRow) -> None:
        self.name, self.url = name, url
        self.lock = threading.Lock()  # held during a transaction
        self.rows: list[JournalRow] = []
        self.keys: dict[tuple[str, str], JournalRow] = {}
        self.plays: defaultdict[int, list[JournalRow]] = defaultdict(list)
        self.snapshots: list[SnapshotRow] = []  # newest first
        self.is_deleted = False
        self.accepted = 0.0
        self.add([first], [])

    def add(self, rows: list[JournalRow], snapshots: list[SnapshotRow]) -> None:
        for row in rows:
            if row.key is not None:
                self.keys[row.kind, row.key] = row
            if row.play is not None:
                self.plays[row.play].append(row)
        self.rows += rows
        self.count = len(self.rows)  # from now on other handles see all of them
        self.snapshots = [*snapshots, *self.snapshots][:2]

    def renamed(self, name: str) -> _SharedRows:
        """Return the same rows under a new name, for new handles."""
        made = copy.copy(self)
        made.name, made.lock = name, threading.Lock()
        return made


class MemoryJournal(BaseJournal):
    """A handle on a journal of a ``MemoryStore``; each thread uses its own."""

    def __init__(self, shared: _SharedRows) -> None:
        self._shared = shared
        self._new: list[JournalRow] = []  # of this transaction
        self._new_snapshots: list[SnapshotRow] = []

    def __repr__(self) -> str:
        return f"MemoryJournal({self._shared.name!r})"

    def accept(self) -> Head:
        """Accept the records that exist; return the last one."""
        with self.transaction() as head:
            self._shared.snapshots = []
            self._shared.accepted = max(
                time.time(), math.nextafter(self._shared.accepted, math.inf)
            )
        return head

    def accepted(self) -> float:
        """Return the time of the last ``accept``; 0 if there was none."""
        return self._rows_of_journal().accepted

    def _begin(self) -> Head:
        if not self._rows_of_journal().lock.acquire(timeout=LOCK_TIMEOUT):
            reason = f"a transaction of another thread has lasted {LOCK_TIMEOUT:g} seconds"
            raise StoreError(self._shared.url, reason, "End the other transaction, and retry.")
        try:
            return self._last()
        except InvalidInput:  # deleted while waiting
            self._shared.lock.release()
            raise

    def _commit(self) -> None:
        self._shared.add(self._new, self._new_snapshots)
        self._roll_back()

    def _roll_back(self) -> None:
        self._new, self._new_snapshots = [], []
        self._shared.lock.release()

    def _last(self) -> Head:
        shelf = self._rows_of_journal()
        last = shelf.rows[shelf.count - 1]
        return Head(last.number, last.digest)

    def _insert(self, row: JournalRow, is_new: bool) -> None:
        if row.key is not None and not is_new and self._keyed((row.kind,), row.key):
            raise used_key(row)
        self._new.append(row)

    def _batch(self, start: int, limit: int) -> list[JournalRow]:
        return list(islice(self._all(max(start, 0)), limit))

    def _all(self, start: int) -> Iterator[JournalRow]:
        shelf = self._rows_of_journal()
        yield from (shelf.rows[number] for number in range(start, shelf.count))
        yield from (row for row in self._new if row.number >= start)

    def _keyed(self, kinds: tuple[str, ...], key: str) -> JournalRow | None:
        shelf = self._rows_of_journal()
        for kind in kinds:
            row = shelf.keys.get((kind, key))
            if row is not None and row.number < shelf.count:
                return row
        return next((row for row in self._new if row.key == key and row.kind in kinds), None)

    def _of_play(self, play: int) -> list[JournalRow]:
        shelf = self._rows_of_journal()
        old = [row for row in shelf.plays.get(play, ()) if row.number < shelf.count]
        return [*old, *(row for row in self._new if row.play == play)]

    def _paired(
        self, kind: str, ends: Sequence[str], start: int, limit: int
    ) -> list[tuple[JournalRow, JournalRow | None]]:
        of_kind = (row for row in self._all(start) if row.kind == kind)
        return [(_bare(row), self._end_of(row, ends)) for row in islice(of_kind, limit)]

    def _end_of(self, row: JournalRow, ends: Sequence[str]) -> JournalRow | None:
        of_play = [] if row.play is None else self._of_play(row.play)
        return next((_bare(one) for one in reversed(of_play) if one.kind in ends), None)

    def _put(self, snapshot: SnapshotRow) -> None:
        self._new_snapshots.insert(0, snapshot)

    def _snapshots(self) -> Iterable[SnapshotRow]:
        return [*self._new_snapshots, *self._rows_of_journal().snapshots]

    def _rows_of_journal(self) -> _SharedRows:
        if self._shared.is_deleted:
            raise journal_deleted(self._shared.name, self._shared.url)
        return self._shared


def _bare(row: JournalRow) -> JournalRow:
    return row._replace(arrays=b"")


class MemoryKeyring(Keyring):
    """API keys in the memory of this process."""

    def __init__(
        self,
        rows: dict[str, KeyRecord],
        lock: threading.Lock,
        existing: Callable[[str], AbstractContextManager[None]],
    ) -> None:
        self._rows, self._lock, self._existing = rows, lock, existing

    def add(self, row: KeyRecord) -> None:
        """Store a key; raise ``NotFound`` if it is one of a study that does not exist."""
        is_of_study = row.study is not None and row.parent is None
        with self._existing(str(row.study)) if is_of_study else nullcontext(), self._lock:
            self._rows[row.id] = row

    def find(self, ids: Iterable[str]) -> list[KeyRecord]:
        """Return the keys with these ids; ids that do not exist are left out."""
        with self._lock:
            return [self._rows[id] for id in ids if id in self._rows]

    def all(self) -> list[KeyRecord]:
        """Return all keys, oldest first."""
        with self._lock:
            return sorted(self._rows.values(), key=lambda row: row.created)

    def is_empty(self) -> bool:
        """Return whether there are no keys."""
        return not self._rows

    def remove(self, id: str) -> bool:
        """Remove a key and its sessions; return whether the key existed."""
        return self._remove_unless(lambda row: id not in (row.id, row.parent))

    def remove_expired(self, now: float) -> None:
        """Remove the keys that expired before this time."""
        self._remove_unless(lambda row: row.expires is None or row.expires >= now)

    def close(self) -> None:
        """Do nothing: a keyring in memory holds no resources."""

    def _remove_unless(self, stays: Callable[[KeyRecord], bool]) -> bool:
        with self._lock:
            gone = [row.id for row in self._rows.values() if not stays(row)]
            for id in gone:
                del self._rows[id]
            return bool(gone)


class MemoryStore(Store):
    """A store in the memory of this process, shared by its threads.

    Parameters
    ----------
    name
        The part of its ``url`` after ``memory://``.

    Examples
    --------
    >>> store = MemoryStore()
    >>> journal = store.create("lanes", Record({"day": 1}, {}))
    >>> with journal.transaction() as head:
    ...     entry = journal.write(Record({"day": head.number + 2}, {}), Labels("ask", key="Monday"))
    >>> store.open("lanes").find("ask", "Monday").record.header
    {'day': 2}
    """

    shares_connections = True  # it has none

    def __init__(self, name: str = "") -> None:
        self._name = name
        self._journals: dict[str, _SharedRows] = {}
        self._lock = threading.Lock()
        self._keys: dict[str, KeyRecord] = {}  # by id
        self._keys_lock = threading.Lock()  # held alone, or within the other lock
        self._requests: dict[str, AnsweredRequest] = {}

    def __repr__(self) -> str:
        return f"MemoryStore({self._name!r})"

    @property
    def url(self) -> str:
        """The URL of the store."""
        return f"memory://{self._name}"

    def create(
        self,
        name: str,
        record: Record,
        labels: Labels = NO_LABELS,
        more: Iterable[tuple[Record, Labels]] = (),
        *,
        request: AnsweredRequest | None = None,
    ) -> MemoryJournal:
        """Create a journal with its first records."""
        shared = _SharedRows(checked_name(name), self.url, row_of(Head(), record, labels))
        journal = MemoryJournal(shared)
        with journal.transaction():
            for following in more:
                journal.write(*following)
        with self._lock:
            if name in self._journals:
                raise name_in_use(name, self.url)
            self._record(request)
            self._journals[name] = shared
        return journal

    def open(self, name: str) -> MemoryJournal:
        """Return a new handle on a journal."""
        with self._existing(checked_name(name)):
            return MemoryJournal(self._journals[name])

    def names(self, prefix: str = "", after: str = "", limit: int | None = None) -> list[str]:
        """Return the sorted names of journals that begin with a prefix and come after a name."""
        with self._lock:
            chosen = (one for one in self._journals if one.startswith(prefix) and one > after)
            return sorted(chosen)[:limit]

    def delete(
        self,
        name: str,
        *,
        request: AnsweredRequest | None = None,
        check: Callable[[], None] = lambda: None,
    ) -> None:
        """Delete a journal permanently, after the transaction that is running now."""
        shared = self.open(name)._shared
        with shared.lock, self._lock:
            if self._journals.get(name) is not shared:
                raise name_not_found(name, self._journals, self.url)
            check()
            self._record(request)
            del self._journals[name]
            shared.is_deleted = True
            with self._keys_lock:  # a new study with this name must not accept old keys
                for id in [id for id, row in self._keys.items() if row.study == name]:
                    del self._keys[id]

    def rename(self, name: str, new: str, *, request: AnsweredRequest | None = None) -> None:
        """Give a journal a new name, after the transaction that is running now."""
        shared, renamed = self.open(name)._shared, checked_name(new)
        with shared.lock, self._lock, self._keys_lock:
            if self._journals.get(name) is not shared:
                raise name_not_found(name, self._journals, self.url)
            if renamed in self._journals:
                raise name_in_use(renamed, self.url)
            self._record(request)
            self._journals[renamed] = shared.renamed(renamed)
            del self._journals[name]
            shared.is_deleted = True
            for row in [row for row in self._keys.values() if row.study == name]:
                self._keys[row.id] = row._replace(study=renamed)

    def answered(self, id: str) -> AnsweredRequest | None:
        """Return the recorded request with this id."""
        return self._requests.get(id)

    def _record(self, request: AnsweredRequest | None) -> None:
        """Record a request."""
        if request is not None:
            if request.id in self._requests:
                raise request_in_use(request)
            self._requests[request.id] = request

    def keyring(self) -> MemoryKeyring:
        """Return a new handle on the API keys of the store.

        Examples
        --------
        >>> keyring = MemoryStore().keyring()
        >>> keyring.add(KeyRecord("4f2a", b"digest", "night job", None, "play", 0.0))
        >>> [row.name for row in keyring.all()], keyring.remove("4f2a"), keyring.is_empty()
        (['night job'], True, True)
        """
        return MemoryKeyring(self._keys, self._keys_lock, self._existing)

    @contextmanager
    def _existing(self, name: str) -> Iterator[None]:
        """Keep the names as they are in the block; raise ``NotFound`` for an unknown one."""
        with self._lock:
            if name not in self._journals:
                raise name_not_found(name, self._journals, self.url)
            yield
