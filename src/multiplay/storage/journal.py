"""Journals over rows: digest chain, binary format of arrays, transactions and queries.

A store implements the abstract methods of ``BaseJournal``: how rows are written and read, and how
a transaction begins and ends.

Arrays are stored as one line of text with their names, types and shapes, as in a .npy file, then
their bytes. The line is the same for most records of a journal, so its parsed form is cached.
"""

from __future__ import annotations

import ast
import json
import math
import operator
import shlex
import struct
from abc import abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from hashlib import blake2b
from typing import Any, NamedTuple

import numpy as np

from multiplay.errors import InvalidInput
from multiplay.storage.base import (
    NO_LABELS,
    Damaged,
    Entry,
    Head,
    Journal,
    Labels,
    Record,
    header_text,
)
from multiplay.types import Arrays

MAGIC = b"MPA1"  # the digit is the version of the format of arrays
START = len(MAGIC) + 4  # the length of the line of text follows the magic, then the line itself
CACHED_LINES = 256

DIGEST_SIZE = 16  # bytes
NUMBERS = struct.Struct("<qqdqqq")
LONGEST_KIND, LONGEST_KEY = 50, 500  # characters; index entries of PostgreSQL end at 2,704 bytes
LARGEST_PLAY = 2**63 - 1

FIRST_BATCH, LARGEST_BATCH = 16, 1000  # rows that are read at once
BATCH_BYTES = 2**22  # approximate size of a batch


# ------------------------------------------------------------ arrays as bytes


class _Place(NamedTuple):
    """Name, type and shape of an array, and its byte range after the line."""

    name: str
    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    start: int
    stop: int


def to_bytes(arrays: Arrays) -> bytes:
    """Return arrays without objects as bytes; ``b""`` for no arrays."""
    if not arrays:
        return b""
    look = tuple([(name, array.dtype, array.shape) for name, array in arrays.items()])
    return b"".join([_line(look), *[array.tobytes() for array in arrays.values()]])


def from_bytes(blob: bytes) -> Arrays:
    """Return the arrays that ``to_bytes`` wrote, as writable copies.

    Examples
    --------
    >>> from_bytes(to_bytes({"costs": np.array([0.5, 2.0])}))
    {'costs': array([0.5, 2. ])}
    """
    if not blob:
        return {}
    if blob[: len(MAGIC)] != MAGIC:
        raise _damaged_arrays("bytes with an unknown prefix")
    end = START + int.from_bytes(blob[len(MAGIC) : START], "little")
    places, size = _places(blob[START:end])
    if len(blob) != end + size:
        raise _damaged_arrays(f"{len(blob)} bytes instead of {end + size}")
    return {
        name: np.ndarray(shape, dtype, bytearray(blob[end + start : end + stop]))
        for name, dtype, shape, start, stop in places
    }


@lru_cache(CACHED_LINES)
def _line(look: tuple[tuple[str, np.dtype[Any], tuple[int, ...]], ...]) -> bytes:
    descriptions = [(name, np.lib.format.dtype_to_descr(d), shape) for name, d, shape in look]
    line = ascii(descriptions).encode()
    return MAGIC + len(line).to_bytes(4, "little") + line


@lru_cache(CACHED_LINES)
def _places(line: bytes) -> tuple[list[_Place], int]:
    """Return the place of each array, and their total size."""
    places, size = [], 0
    try:
        for name, description, shape in ast.literal_eval(line.decode()):
            dtype = np.lib.format.descr_to_dtype(description)
            if not isinstance(name, str) or dtype.hasobject or min(shape, default=0) < 0:
                raise ValueError(name)
            start, size = size, size + dtype.itemsize * math.prod(shape)
            places.append(_Place(name, dtype, shape, start, size))
    except Exception as error:  # damaged text can raise any exception
        raise _damaged_arrays(f"an unreadable line ({type(error).__name__})") from None
    return places, size


def _damaged_arrays(got: str) -> Damaged:
    return Damaged("arrays", "arrays written by multiplay", got, "Restore a backup.")


# ------------------------------------------------------------ rows and their digests


class JournalRow(NamedTuple):
    """An entry as databases store it; large columns come last."""

    number: int
    kind: str
    key: str | None
    play: int | None
    at: float
    previous: bytes
    digest: bytes
    header: str
    arrays: bytes


def digest_of(
    number: int,
    kind: str,
    key: str | None,
    play: int | None,
    at: float,
    previous: bytes,
    header: str,
    arrays: bytes,
) -> bytes:
    """Return the digest of an entry, which covers lengths too: no two entries encode alike."""
    text = [kind.encode(), b"" if key is None else key.encode(), header.encode()]
    numbers = NUMBERS.pack(
        number,
        -1 if play is None else play,
        at,
        len(text[0]),
        -1 if key is None else len(text[1]),
        len(text[2]),
    )
    digest = blake2b(b"".join([previous, numbers, *text]), digest_size=DIGEST_SIZE)
    if arrays:
        digest.update(arrays)
    return digest.digest()


def row_of(head: Head, record: Record, labels: Labels) -> JournalRow:
    """Return the row that follows the head; raise ``InvalidInput`` if it cannot be stored."""
    header, arrays = header_text(record), to_bytes(record.arrays)
    begins = (head.number + 1, *checked_labels(labels), head.digest)
    return JournalRow(*begins, digest_of(*begins, header, arrays), header, arrays)


def entry_of(row: JournalRow) -> Entry:
    """Return the entry of a row; raise ``Damaged`` if the row does not match its digest."""
    if not is_intact(row):
        raise damaged(row.number, "a modified entry")
    return unverified_entry(row)


def is_intact(row: JournalRow) -> bool:
    """Return whether a row matches its digest."""
    try:
        return digest_of(*row[:6], *row[7:]) == row.digest
    except (AttributeError, TypeError, UnicodeError, struct.error):  # a number instead of text
        return False


def unverified_entry(row: JournalRow) -> Entry:
    """Return the entry of a row without comparing its digest."""
    number, kind, key, play, at, _, digest, header, arrays = row
    try:
        record = Record(json.loads(header), from_bytes(arrays))
    except (ValueError, TypeError, RecursionError) as error:
        raise damaged(number, f"an unreadable entry ({error})") from None
    return Entry(number, Labels(kind, key, play, at), record, digest)


def verified_entries(
    rows: Iterable[JournalRow], start: int, previous: bytes | None
) -> Iterator[Entry]:
    """Yield the entries from a number on, after the entry with the digest ``previous``.

    If that digest is not known, ``rows`` begin with the entry before ``start``, if it exists.
    """
    if start == 0:
        previous = b""
    expected = start
    for row in rows:
        if row.number < start:
            if is_intact(row):  # otherwise its digest proves nothing about the next row
                previous = row.digest
            continue
        if row.number != expected:
            raise damaged(expected, "no entry")
        entry = entry_of(row)
        if previous not in (None, row.previous):
            raise damaged(expected, "an entry that does not follow the one before it")
        previous, expected = row.digest, expected + 1
        yield entry


def checked_labels(labels: Labels) -> Labels:
    """Return labels that every database can store; raise ``InvalidInput`` otherwise."""
    kind, key, play, at = labels
    _check_text("kind", kind, LONGEST_KIND)
    if key is not None:
        _check_text("key", key, LONGEST_KEY)
    if play is not None:
        try:
            play = operator.index(play)
        except TypeError:
            play = -1
        if not 0 <= play <= LARGEST_PLAY:
            got = repr(labels.play)[:60]
            raise InvalidInput("play", "the number of a play", got, "Use the id of the play.")
    if not math.isfinite(at):
        raise InvalidInput("at", "a time in seconds", repr(at), "Use a finite number.")
    return Labels(kind, key, play, float(at) + 0.0)  # not -0.0, which SQLite cannot store


def _check_text(argument: str, text: object, longest: int) -> None:
    if not isinstance(text, str) or len(text) > longest:
        hint = "Use shorter text."
    elif not text.isascii() and not _is_unicode(text):
        hint = "Remove the unpaired surrogate."
    elif "\0" in text:
        hint = "Remove the NUL character."
    else:
        return
    expected = f"text of at most {longest} characters"
    raise InvalidInput(argument, expected, ascii(text)[:60], hint)


def _is_unicode(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def used_key(row: JournalRow) -> InvalidInput:
    """Return the error for a key that its kind already has."""
    expected, hint = f"a new key of kind {row.kind!r}", "Use the existing entry with this key."
    return InvalidInput("key", expected, repr(row.key), hint)


def damaged(number: int, got: str) -> Damaged:
    """Return the error for a row that differs from what was written."""
    error = Damaged("journal", f"entry {number} as it was written", got, "Restore a backup.")
    error.number = number
    return error


def missing_end(name: str, number: int, last: int) -> Damaged:
    """Return the error for a journal whose last entries, from a number on, are not there."""
    which = f"entry {last}" if number == last else f"entries {number} to {last}"
    hint = (
        f"Restore a backup, or continue without them: multiplay study accept {shlex.quote(name)}."
    )
    error = Damaged("journal", f"{which}, as it was written", "a journal without them", hint)
    error.number = number
    return error


class SnapshotRow(NamedTuple):
    """A snapshot as databases store it."""

    digest: bytes
    header: str
    arrays: bytes


def snapshot_row(snapshot: Record) -> SnapshotRow:
    """Return the row of a snapshot, with its digest."""
    header, arrays = header_text(snapshot), to_bytes(snapshot.arrays)
    return SnapshotRow(_digest_of_snapshot(header, arrays), header, arrays)


def newest_readable(snapshots: Iterable[SnapshotRow], before: int | None = None) -> Record | None:
    """Return the first of the snapshots that is intact; None if none is.

    ``before``: the first whose field "number" is smaller.
    """
    for digest, header, arrays in snapshots:
        try:
            if digest == _digest_of_snapshot(header, arrays):
                plain = json.loads(header)
                if before is None or plain.get("number", before) < before:
                    return Record(plain, from_bytes(arrays))
        except (AttributeError, TypeError, ValueError, RecursionError):
            continue
    return None


def _digest_of_snapshot(header: str, arrays: bytes) -> bytes:
    text = header.encode()
    digest = blake2b(
        len(text).to_bytes(8, "little") + text, digest_size=DIGEST_SIZE, person=b"snapshot"
    )
    digest.update(arrays)
    return digest.digest()


# ------------------------------------------------------------ transactions and queries


class Transaction:
    """Context manager of a transaction; a class, because a generator takes twice the time."""

    def __init__(self, journal: BaseJournal) -> None:
        self._journal = journal

    def __enter__(self) -> Head:
        journal = self._journal
        if journal._head is not None:
            raise RuntimeError("transactions of one handle cannot be nested")
        head = journal._head = journal._begin()
        return head

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        journal = self._journal
        journal._head = None
        if kind is not None:
            journal._roll_back()
            return
        try:
            journal._commit()
        except BaseException:
            journal._roll_back()
            raise


def _fitting(batch: Sequence[JournalRow]) -> int:
    """Return how many rows of the size of these are a batch."""
    size = sum(len(row.header) + len(row.arrays) for row in batch)
    return max(1, min(LARGEST_BATCH, len(batch) * BATCH_BYTES // (size + 1)))


class BaseJournal(Journal):
    """A journal over rows; a store implements the abstract methods.

    Within a transaction, ``_head`` is the last row that was written.
    """

    _head: Head | None = None

    def transaction(self) -> Transaction:
        """Lock the journal for the block, and return its head."""
        return Transaction(self)

    def head(self) -> Head:
        """Return the number and the digest of the last record."""
        return self._last() if self._head is None else self._head

    def write(self, record: Record, labels: Labels = NO_LABELS, *, is_new: bool = False) -> Entry:
        """Append a record with labels."""
        if self._head is None:
            with self.transaction():
                return self.write(record, labels)
        row = row_of(self._head, record, labels)
        self._insert(row, is_new)
        self._head = Head(row.number, row.digest)
        return Entry(row.number, Labels(*row[1:5]), record, row.digest)

    def append(self, record: Record) -> int:
        """Append a record without labels."""
        return self.write(record).number

    def entries(self, start: int = 0, previous: bytes | None = None) -> Iterator[Entry]:
        """Yield all entries from this number on, reading them in batches."""
        return verified_entries(self._rows(start - (previous is None)), start, previous)

    def read(self, start: int = 0) -> Iterator[tuple[int, Record]]:
        """Yield the records from this number on."""
        return ((entry.number, entry.record) for entry in self.entries(start))

    def find(self, kind: str | tuple[str, ...], key: str) -> Entry | None:
        """Return the entry with this key, of this kind or one of these kinds; None if not found."""
        row = self._keyed((kind,) if isinstance(kind, str) else kind, key)
        return None if row is None else entry_of(row)

    def find_all(self, wanted: Sequence[tuple[str, str]]) -> list[Entry]:
        """Return the existing entries of these (kind, key) pairs."""
        return [entry_of(row) for row in self._all_keyed(wanted)]

    def of_play(self, play: int) -> list[Entry]:
        """Return all entries of a play, in order."""
        return [entry_of(row) for row in self._of_play(play)]

    def pairs(
        self, kind: str, ends: Sequence[str], start: int = 0
    ) -> Iterator[tuple[Entry, Entry | None]]:
        """Yield all entries of a kind, each with the last end of its play."""
        limit = FIRST_BATCH
        while batch := self._paired(kind, ends, start, limit):
            for row, end in batch:
                yield unverified_entry(row), None if end is None else unverified_entry(end)
            start = batch[-1][0].number + 1
            limit = _fitting([row for pair in batch for row in pair if row is not None])

    def put(self, snapshot: Record) -> None:
        """Write a snapshot; the previous one is kept as a fallback."""
        if self._head is None:
            with self.transaction():
                return self.put(snapshot)
        return self._put(snapshot_row(snapshot))

    def get(self, before: int | None = None) -> Record | None:
        """Return the newest readable snapshot; ``before``: of those with a smaller number."""
        return newest_readable(self._snapshots(), before)

    def close(self) -> None:
        """Release the resources of the handle; the next call acquires them again."""

    def _rows(self, start: int) -> Iterator[JournalRow]:
        """Yield the rows from a number on, in smaller batches where rows are large."""
        limit = FIRST_BATCH
        while batch := self._batch(start, limit):
            yield from batch
            if len(batch) < limit:
                return
            start = batch[-1].number + 1
            limit = _fitting(batch)

    @abstractmethod
    def _begin(self) -> Head:
        """Wait for the lock, begin a transaction, and return the head."""

    @abstractmethod
    def _commit(self) -> None:
        """Commit the transaction; raise if a call in it failed."""

    @abstractmethod
    def _roll_back(self) -> None:
        """Roll the transaction back. Never raise: an exception is already propagating."""

    @abstractmethod
    def _last(self) -> Head:
        """Return the head, outside a transaction."""

    @abstractmethod
    def _insert(self, row: JournalRow, is_new: bool) -> None:
        """Write a row, within a transaction; ``is_new``: its key is known to be unused."""

    @abstractmethod
    def _batch(self, start: int, limit: int) -> list[JournalRow]:
        """Return the next rows from a number on."""

    @abstractmethod
    def _keyed(self, kinds: tuple[str, ...], key: str) -> JournalRow | None:
        """Return the row of one of these kinds with a key; None if not found."""

    def _all_keyed(self, wanted: Sequence[tuple[str, str]]) -> list[JournalRow]:
        """Return the existing rows of these (kind, key) pairs."""
        found = (self._keyed((kind,), key) for kind, key in wanted)
        return [row for row in found if row is not None]

    @abstractmethod
    def _of_play(self, play: int) -> list[JournalRow]:
        """Return the rows of a play, in order."""

    @abstractmethod
    def _paired(
        self, kind: str, ends: Sequence[str], start: int, limit: int
    ) -> list[tuple[JournalRow, JournalRow | None]]:
        """Return the next rows of a kind, each with its last end, all without arrays."""

    @abstractmethod
    def _put(self, snapshot: SnapshotRow) -> None:
        """Write a snapshot, within a transaction; keep the two newest."""

    @abstractmethod
    def _snapshots(self) -> Iterable[SnapshotRow]:
        """Return the snapshots, newest first."""
