"""What every storage has."""

import json
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np

from multiplay.errors import InvalidInput
from multiplay.types import Arrays


class Record(NamedTuple):
    """What is kept in one piece: plain data that JSON can hold, and arrays without objects."""

    header: dict[str, Any]
    arrays: Arrays


class Damaged(InvalidInput):
    """A record or snapshot that cannot be read.

    Attributes
    ----------
    number : int or None
        Of the record; None for the snapshot. ``read(number + 1)`` goes on behind it.
    """

    number: int | None = None


@runtime_checkable
class Storage(Protocol):
    """A list of records that only grows, and one snapshot that is replaced.

    Every call is atomic and durable: when it returns, what it wrote survives, and what it did not
    finish was never there. Several handles, in several processes, may work on one storage. A
    storage of your own is checked by ``multiplay.testing.check_storage``.
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
    """

    number: int
    labels: Labels
    record: Record
    digest: bytes


class Head(NamedTuple):
    """The last record of a journal: its number (-1 if there is none), and its digest."""

    number: int = -1
    digest: bytes = b""


@runtime_checkable
class Journal(Storage, Protocol):
    """A storage whose records are chained by digests, found by their labels, written in turns.

    A handle is used by one thread at a time. ``get`` returns the newest snapshot that can be read.
    What fails because of the store itself raises ``StoreError``; then nothing of the turn is kept,
    unless the connection was lost while it was being committed: then nobody knows.
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
