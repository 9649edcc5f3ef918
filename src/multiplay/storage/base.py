"""Protocols and records of storages, journals, stores and keyrings; names of journals."""

import json
from abc import ABC, abstractmethod
from bisect import bisect
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np

from multiplay._support.suggestions import suggestion
from multiplay.errors import Conflict, InvalidInput, NotFound, StoreError
from multiplay.types import Arrays

LONGEST_NAME = 200  # characters
NEAR = 50  # names before and after an unknown one, of which one may be meant


class Record(NamedTuple):
    """A unit of storage: plain data that JSON can hold, and arrays without objects.

    Attributes
    ----------
    header : dict
        Plain data.
    arrays : dict of arrays
        Numbers or text, by name.

    Examples
    --------
    >>> Record({"day": 1}, {"losses": np.array([0.2, 0.7])}).header
    {'day': 1}
    """

    header: dict[str, Any]
    arrays: Arrays


class Damaged(InvalidInput):
    """A record or snapshot that cannot be read.

    Attributes
    ----------
    number : int or None
        The number of the record; None for the snapshot. ``read(number + 1)`` continues after it.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from multiplay.storage import FolderStorage
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     storage = FolderStorage(folder)
    ...     for day in (1, 2):
    ...         number = storage.append(Record({"day": day}, {}))
    ...     Path(folder, "record-000000000.npz").unlink()
    ...     try:
    ...         list(storage.read())
    ...     except Damaged as error:
    ...         list(storage.read(error.number + 1))
    [(1, Record(header={'day': 2}, arrays={}))]
    """

    number: int | None = None


class NoConnectionLeft(StoreError):
    """A server that has as many connections as it allows; nothing was read or written."""


@runtime_checkable
class Storage(Protocol):
    """An append-only list of records, and one snapshot that is replaced.

    Every call is atomic and durable: when it returns, its data survives a crash; a call that does
    not finish has no effect. Several handles, in several processes, may use one storage. Check your
    own implementation with ``multiplay.testing.check_storage``.

    Examples
    --------
    >>> from multiplay.storage import MemoryStorage
    >>> storage: Storage = MemoryStorage()
    >>> storage.append(Record({"day": 1}, {})), storage.append(Record({"day": 2}, {}))
    (0, 1)
    >>> [record.header for _, record in storage.read(start=1)]
    [{'day': 2}]
    >>> storage.put(Record({"days": 2}, {}))
    >>> storage.get().header
    {'days': 2}
    """

    def append(self, record: Record) -> int:
        """Append a record; return its number, counted from 0 without gaps."""

    def read(self, start: int = 0) -> Iterator[tuple[int, Record]]:
        """Yield the records from this number on, in order; raise ``Damaged`` at a damaged one."""

    def put(self, snapshot: Record) -> None:
        """Replace the snapshot."""

    def get(self) -> Record | None:
        """Return the snapshot, or None if no snapshot was written."""


class Labels(NamedTuple):
    """Labels by which a record of a journal can be found.

    Attributes
    ----------
    kind : str
        The kind of event, such as "ask".
    key : str or None
        The idempotency key of the caller; a key is used once for each kind.
    play : int or None
        The play that the record belongs to.
    at : float
        The time of the event, in seconds since 1970.

    Examples
    --------
    >>> from multiplay.storage import MemoryStore
    >>> journal = MemoryStore().create("lanes", Record({}, {}), Labels("create"))
    >>> entry = journal.write(Record({"day": 1}, {}), Labels("ask", key="Monday", play=1))
    >>> journal.find("ask", "Monday").number, len(journal.of_play(1))
    (1, 1)
    """

    kind: str = ""
    key: str | None = None
    play: int | None = None
    at: float = 0.0


NO_LABELS = Labels()


class Entry(NamedTuple):
    """One record of a journal.

    Attributes
    ----------
    number : int
        Counted from 0 without gaps.
    labels, record
        The labels, and the content.
    digest : bytes
        The digest of the record, its number, its labels and the digest before it: a chain in which
        a change, an omission or an insertion is detected.

    Examples
    --------
    >>> from multiplay.storage import MemoryStore
    >>> journal = MemoryStore().create("lanes", Record({"day": 1}, {}), Labels("create"))
    >>> entry = journal.write(Record({"day": 2}, {}), Labels("ask"))
    >>> entry.number, entry.labels.kind, entry.record.header
    (1, 'ask', {'day': 2})
    >>> entry.digest == journal.head().digest
    True
    """

    number: int
    labels: Labels
    record: Record
    digest: bytes


class Head(NamedTuple):
    """The last record of a journal: its number (-1 for an empty journal), and its digest.

    Attributes
    ----------
    number : int
        The number of the record.
    digest : bytes
        The digest of the record, which covers all records before it.

    Examples
    --------
    >>> from multiplay.storage import MemoryStore
    >>> journal = MemoryStore().create("lanes", Record({"day": 1}, {}))
    >>> journal.head().number
    0
    >>> Head().number  # of an empty journal
    -1
    """

    number: int = -1
    digest: bytes = b""


class JournalEntries(Protocol):
    """The entries of a journal, read in order and by their labels."""

    def head(self) -> Head:
        """Return the number and the digest of the last record.

        Raise ``Damaged``, with the number of the first missing one, if records at the end are
        missing: the store keeps the last number and digest separately.
        """

    def entries(self, start: int = 0, previous: bytes | None = None) -> Iterator[Entry]:
        """Yield all entries from this number on, in order, reading them in batches.

        Raise ``Damaged``, with the number, at an entry that is missing, does not match its digest,
        or does not follow the entry before it. Missing entries at the end are detected by
        ``head``. ``previous`` is the digest of the entry before ``start``, if known.
        """

    def find(self, kind: str | tuple[str, ...], key: str) -> Entry | None:
        """Return the entry with this key, of this kind or one of these kinds; None if not found."""

    def find_all(self, wanted: Sequence[tuple[str, str]]) -> list[Entry]:
        """Return the existing entries of these (kind, key) pairs, with one query."""

    def of_play(self, play: int) -> list[Entry]:
        """Return all entries of a play, in order."""

    def pairs(
        self, kind: str, ends: Sequence[str], start: int = 0
    ) -> Iterator[tuple[Entry, Entry | None]]:
        """Yield all entries of a kind, each with the last entry of its play of a kind in ``ends``.

        From the number ``start`` on, in order, without arrays, in batches. Digests are not
        compared, because they cover the arrays too.
        """


@runtime_checkable
class Journal(Storage, JournalEntries, Protocol):
    """A storage whose records are chained by digests, found by labels, and written in transactions.

    A handle is used by one thread at a time. ``get`` returns the newest readable snapshot. A
    failure of the store raises ``StoreError``, and the transaction is rolled back. If the
    connection is lost during the commit, the commit may or may not have succeeded.

    Examples
    --------
    >>> from multiplay.storage import MemoryStore
    >>> journal: Journal = MemoryStore().create("lanes", Record({"day": 1}, {}))
    >>> try:
    ...     with journal.transaction() as head:
    ...         entry = journal.write(Record({"day": 2}, {}))
    ...         raise KeyboardInterrupt
    ... except KeyboardInterrupt:
    ...     journal.head() == head  # the transaction was rolled back
    True
    """

    def transaction(self) -> AbstractContextManager[Head]:
        """Lock the journal for the block, and return its head.

        When the block ends, everything written in it is committed durably. If the block raises, or
        a call in it failed, everything is rolled back. Other handles wait for the lock. Outside a
        transaction, each ``write`` and each ``put`` is a transaction. Transactions cannot be
        nested.
        """

    def get(self, before: int | None = None) -> Record | None:
        """Return the newest readable snapshot, or None if there is none.

        ``before``: of those that are kept and whose field "number" is smaller.
        """

    def accept(self) -> Head:
        """Accept the records that exist as the whole journal; return the last one.

        For a journal whose last records are lost, or a restored backup. Snapshots are deleted.
        """

    def accepted(self) -> float:
        """Return the time of the last ``accept``, in seconds since 1970; 0 if there was none.

        It increases with each call, also if the clock does not.
        """

    def write(self, record: Record, labels: Labels = NO_LABELS, *, is_new: bool = False) -> Entry:
        """Append a record with labels; raise ``InvalidInput`` if its kind already has its key.

        ``is_new``: the caller has checked in this transaction that the key is unused, so that the
        check is skipped.
        """

    def close(self) -> None:
        """Release the resources of the handle; the next call acquires them again."""


class KeyRecord(NamedTuple):
    """An API key as a store keeps it: its digest, never the secret.

    Attributes
    ----------
    id : str
        The public identifier of the key.
    digest : bytes
        The digest of the secret.
    name : str
        The name that the user gave it.
    study : str or None
        The present name of the study that it is restricted to; None for all studies. The store
        changes it with the name of the study.
    can : str
        The permission: what the key may do.
    created : float
        The time of creation, in seconds since 1970.
    expires : float or None
        The time of expiry.
    parent : str or None
        The key that a browser session was opened with; the session ends with it.
    """

    id: str
    digest: bytes
    name: str
    study: str | None
    can: str
    created: float
    expires: float | None = None
    parent: str | None = None


class AnsweredRequest(NamedTuple):
    """A request that created or deleted a journal, and the response to it.

    Attributes
    ----------
    id : str
        The id of the request.
    body : str
        The digest of its content.
    answer : str
        The response, as text.
    at : float
        The time, in seconds since 1970.
    """

    id: str
    body: str
    answer: str
    at: float


class Keyring(ABC):
    """The API keys of a store. A handle is used by one thread at a time.

    The keys of a study change in the transaction that renames or deletes it.
    """

    @abstractmethod
    def add(self, row: KeyRecord) -> None:
        """Store a key; raise ``NotFound`` if it is one of a study that does not exist.

        A session is stored without this check: it has the rights of its key.
        """

    @abstractmethod
    def find(self, ids: Iterable[str]) -> list[KeyRecord]:
        """Return the keys with these ids; ids that do not exist are left out."""

    @abstractmethod
    def all(self) -> list[KeyRecord]:
        """Return all keys, oldest first, including those of sessions."""

    @abstractmethod
    def is_empty(self) -> bool:
        """Return whether the store has no keys."""

    @abstractmethod
    def remove(self, id: str) -> bool:
        """Remove a key and its sessions; return whether the key existed."""

    @abstractmethod
    def remove_expired(self, now: float) -> None:
        """Remove the keys that expired before this time."""

    @abstractmethod
    def close(self) -> None:
        """Release the resources of the handle; the next call acquires them again."""


@runtime_checkable
class Store(Protocol):
    """A collection of named journals.

    Check your own implementation with ``multiplay.testing.check_store``.

    Examples
    --------
    >>> from multiplay.storage import MemoryStore
    >>> store: Store = MemoryStore()
    >>> for name in ("Lyon", "Lille"):
    ...     journal = store.create(name, Record({"day": 1}, {}))
    >>> store.names(), store.names(after="Lille"), store.names("Li", limit=10)
    (['Lille', 'Lyon'], ['Lyon'], ['Lille'])
    >>> store.delete("Lyon")
    >>> store.names()
    ['Lille']
    """

    @property
    def url(self) -> str:
        """The URL of the store, without a password."""

    def create(
        self,
        name: str,
        record: Record,
        labels: Labels = NO_LABELS,
        more: Iterable[tuple[Record, Labels]] = (),
        *,
        request: AnsweredRequest | None = None,
    ) -> Journal:
        """Create a journal with its first records, and record a request, in one transaction.

        Raise ``Conflict`` if the name is in use, or the id of the request.
        """

    def open(self, name: str) -> Journal:
        """Return a new handle on a journal; raise ``NotFound`` if it does not exist."""

    def names(self, prefix: str = "", after: str = "", limit: int | None = None) -> list[str]:
        """Return the sorted names of journals that begin with a prefix and come after a name.

        All of them, or the first ``limit``.
        """

    def delete(
        self,
        name: str,
        *,
        request: AnsweredRequest | None = None,
        check: Callable[[], None] = lambda: None,
    ) -> None:
        """Delete a journal permanently, and record a request, in one transaction.

        ``check`` is called in the transaction: no other journal can have the name now, and nothing
        is deleted if it raises. Handles on the journal raise ``InvalidInput`` afterwards.
        """

    def rename(self, name: str, new: str, *, request: AnsweredRequest | None = None) -> None:
        """Give a journal a new name, and record a request, in one transaction.

        Raise ``NotFound`` if it does not exist, and ``Conflict`` if the new name is in use. Handles
        on the journal raise ``InvalidInput`` afterwards. API keys of the journal keep it.
        """

    def answered(self, id: str) -> AnsweredRequest | None:
        """Return the recorded request with this id, also after its journal was deleted."""

    def keyring(self) -> Keyring:
        """Return a new handle on the API keys of the store."""
        expected = "an SQLite file, a PostgreSQL database or memory://, which can keep API keys"
        raise InvalidInput("store", expected, repr(self)[:60], "Use one of these stores.")


def header_text(record: Record) -> str:
    """Return the header as JSON; raise ``InvalidInput`` if the record cannot be stored."""
    for name, array in record.arrays.items():
        if not isinstance(array, np.ndarray) or array.dtype.hasobject:
            raise InvalidInput(
                name,
                "an array of numbers or text",
                repr(array)[:60],
                "Convert it to numbers or text.",
            )
    try:
        return json.dumps(record.header)
    except (TypeError, ValueError) as error:
        hint = "Use dicts with text keys, lists, text and numbers."
        raise InvalidInput("header", "plain data", f"{error}", hint) from None


def checked_name(name: object) -> str:
    """Return a name that every store can keep; raise ``InvalidInput`` otherwise."""
    if not isinstance(name, str) or not name.strip() or len(name) > LONGEST_NAME:
        got = repr(name)[:60]
        expected = f"text of 1 to {LONGEST_NAME} characters"
        raise InvalidInput("name", expected, got, "Use a shorter name that is not empty.")
    if not name.isprintable():
        expected = "printable characters"
        raise InvalidInput("name", expected, ascii(name)[:60], "Remove control characters.")
    return name


def name_in_use(name: str, url: str) -> Conflict:
    """Return the error for a name that is already in use."""
    hint = "Open the existing one, or choose a different name."
    return Conflict("name", f"a new name in {url}", repr(name), hint)


def request_in_use(request: AnsweredRequest) -> Conflict:
    """Return the error of a request that is recorded already."""
    hint = "Read its response."
    return Conflict("request", "a new request", "one that was answered before", hint)


def near(name: str, names: Sequence[str]) -> Sequence[str]:
    """Return the sorted names before and after one: few, however many there are.

    Examples
    --------
    >>> len(near("b", ["a"] * 900 + ["c"] * 30))
    80
    """
    place = bisect(names, name)
    return names[max(place - NEAR, 0) : place + NEAR]


def name_not_found(name: object, names: Iterable[str], url: str) -> NotFound:
    """Return the error for a name that does not exist in a store, given the names near it."""
    names = near(str(name), sorted(names))
    hint = suggestion(name, names).strip()
    shown = ", ".join(names[:10]) + (", ..." if len(names) > 10 else "")
    if not hint:
        hint = f"Choose one of: {shown}." if names else "The store is empty: create a study first."
    return NotFound("name", f"an existing name in {url}", repr(name)[:60], hint)


def journal_deleted(name: str, url: str) -> NotFound:
    """Return the error for a handle whose journal was deleted, or has a new name."""
    expected, got = f"an existing name in {url}", f"{name!r}, which was deleted or renamed"
    hint = "Open a different one, or this one again if it was restored."
    return NotFound("name", expected, got, hint)
