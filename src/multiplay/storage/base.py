"""What every storage has."""

import json
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np

from multiplay.errors import InvalidInput
from multiplay.types import Arrays


class Record(NamedTuple):
    """What is kept in one piece: plain data that JSON can hold, and arrays without objects.

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
        Of the record; None for the snapshot. ``read(number + 1)`` goes on behind it.

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


@runtime_checkable
class Storage(Protocol):
    """A list of records that only grows, and one snapshot that is replaced.

    Every call is atomic and durable: when it returns, what it wrote survives, and what it did not
    finish was never there. Several handles, in several processes, may work on one storage. A
    storage of your own is checked by ``multiplay.testing.check_storage``.

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
        """Keep a record behind all others; return its number, counted from 0 without gaps."""

    def read(self, start: int = 0) -> Iterator[tuple[int, Record]]:
        """Yield the records from this number on, in order; raise ``Damaged`` at a lost one."""

    def put(self, snapshot: Record) -> None:
        """Keep this snapshot instead of the one before."""

    def get(self) -> Record | None:
        """Return the snapshot; None if there was none."""


class Labels(NamedTuple):
    """What a record of a journal can be found by.

    Attributes
    ----------
    kind : str
        What happened, "ask" say.
    key : str or None
        What the caller calls it; a key is used once for each kind.
    play : int or None
        The play that it is about.
    at : float
        When it happened, in seconds since 1970.

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
        What it can be found by, and what it says.
    digest : bytes
        Of the record, its number and its labels, and of the digest before it: a chain, in which
        nothing can be changed, left out or put in without being seen.

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
    """The last record of a journal: its number (-1 if there is none), and its digest.

    Attributes
    ----------
    number : int
        Of the record.
    digest : bytes
        Of the record, and so of all before it.

    Examples
    --------
    >>> from multiplay.storage import MemoryStore
    >>> journal = MemoryStore().create("lanes", Record({"day": 1}, {}))
    >>> journal.head().number
    0
    >>> Head().number  # of nothing
    -1
    """

    number: int = -1
    digest: bytes = b""


@runtime_checkable
class Journal(Storage, Protocol):
    """A storage whose records are chained by digests, found by their labels, written in turns.

    A handle is used by one thread at a time. ``get`` returns the newest snapshot that can be read.
    What fails because of the store itself raises ``StoreError``; then nothing of the turn is kept,
    unless the connection was lost while it was being committed: then nobody knows.

    Examples
    --------
    >>> from multiplay.storage import MemoryStore
    >>> journal: Journal = MemoryStore().create("lanes", Record({"day": 1}, {}))
    >>> try:
    ...     with journal.turn() as head:
    ...         entry = journal.write(Record({"day": 2}, {}))
    ...         raise KeyboardInterrupt
    ... except KeyboardInterrupt:
    ...     journal.head() == head  # nothing of the turn was kept
    True
    """

    def turn(self) -> AbstractContextManager[Head]:
        """Have the journal for oneself, from the head that is given until the end of the block.

        What is written within is kept durably when the block ends, all of it; nothing of it, if
        the block raises or anything failed in it. Others wait for their turn. Outside a turn, each
        ``write`` and each ``put`` is a turn. A turn within a turn is an error.
        """

    def head(self) -> Head:
        """Return the number and the digest of the last record."""

    def write(self, record: Record, labels: Labels = NO_LABELS, *, is_new: bool = False) -> Entry:
        """Append a record with labels. A key that is used already for the kind is refused.

        ``is_new``: in this turn it was made sure that the key is not used, so that nobody need
        look again.
        """

    def entries(self, start: int = 0, previous: bytes | None = None) -> Iterator[Entry]:
        """Yield all from this number on, in order, without holding all of them in memory.

        Raise ``Damaged``, with the number, at one that is lost, does not fit its digest, or does
        not fit the one before it. What is missing at the end cannot be seen: remember the head.
        ``previous`` is the digest of the one before the first; give it if you know it.
        """

    def find(self, kind: str | tuple[str, ...], key: str) -> Entry | None:
        """Return the record of this kind, or of one of these, with this key, if there is one."""

    def find_all(self, wanted: Sequence[tuple[str, str]]) -> list[Entry]:
        """Return the records that there are of these kinds and keys, in one journey."""

    def of_play(self, play: int) -> list[Entry]:
        """Return all records about a play, in order."""

    def pairs(
        self, kind: str, ends: Sequence[str], start: int = 0
    ) -> Iterator[tuple[Entry, Entry | None]]:
        """Yield all records of a kind, each with the last of its play of a kind in ``ends``.

        From the number ``start`` on, in order, without arrays, and without holding all of them in
        memory. Digests are not compared: they are of the arrays too.
        """

    def close(self) -> None:
        """Give back what the handle holds; it can be used again."""


@runtime_checkable
class Store(Protocol):
    """A place with any number of journals, each with a name.

    A store of your own is checked by ``multiplay.testing.check_store``.

    Examples
    --------
    >>> from multiplay.storage import MemoryStore
    >>> store: Store = MemoryStore()
    >>> for name in ("Lyon", "Lille"):
    ...     journal = store.create(name, Record({"day": 1}, {}))
    >>> store.names()
    ['Lille', 'Lyon']
    >>> store.delete("Lyon")
    >>> store.names()
    ['Lille']
    """

    @property
    def url(self) -> str:
        """Where it is, without a password."""

    def create(
        self,
        name: str,
        record: Record,
        labels: Labels = NO_LABELS,
        more: Iterable[tuple[Record, Labels]] = (),
    ) -> Journal:
        """Begin a journal with its first record, and more of them: all are kept, or none.

        A name that is taken is refused.
        """

    def open(self, name: str) -> Journal:
        """Return a new handle on a journal; a name that there is not is refused."""

    def names(self) -> list[str]:
        """Return the names of all journals, sorted."""

    def delete(self, name: str) -> None:
        """Remove a journal for good. Handles on it raise ``InvalidInput`` from then on."""


def header_text(record: Record) -> str:
    """Return the header as JSON, after making sure that all of the record can be written."""
    for name, array in record.arrays.items():
        if not isinstance(array, np.ndarray) or array.dtype.hasobject:
            raise InvalidInput(
                name, "an array of numbers or text", repr(array)[:60], "Convert it to numbers."
            )
    try:
        return json.dumps(record.header)
    except (TypeError, ValueError) as error:
        hint = "Give dicts with text as keys, lists, text and numbers."
        raise InvalidInput("header", "plain data", f"{error}", hint) from None
