"""Rows of a journal: each has a digest of itself and of the digest before it."""

import json
import math
import operator
import struct
from collections.abc import Iterable, Iterator
from hashlib import blake2b
from typing import NamedTuple

from multiplay.errors import InvalidInput
from multiplay.storage.base import Damaged, Entry, Head, Labels, Record, header_text
from multiplay.storage.blobs import from_bytes, to_bytes

SIZE = 16  # of a digest
NUMBERS = struct.Struct("<qqdqqq")
LONGEST_KIND, LONGEST_KEY = 50, 500  # letters; PostgreSQL's indices end at 2,704 bytes
LARGEST_PLAY = 2**63 - 1


class Row(NamedTuple):
    """What is kept of an entry, as every database can keep it; large things come last."""

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
    """Return the digest of an entry; lengths come first, so that no two entries look the same."""
    text = [kind.encode(), b"" if key is None else key.encode(), header.encode()]
    numbers = NUMBERS.pack(
        number,
        -1 if play is None else play,
        at,
        len(text[0]),
        -1 if key is None else len(text[1]),
        len(text[2]),
    )
    digest = blake2b(b"".join([previous, numbers, *text]), digest_size=SIZE)
    if arrays:
        digest.update(arrays)
    return digest.digest()


def sealed(head: Head, record: Record, labels: Labels) -> Row:
    """Return the row that comes behind the head, after making sure that it can be kept."""
    header, arrays = header_text(record), to_bytes(record.arrays)
    begins = (head.number + 1, *checked(labels), head.digest)
    return Row(*begins, digest_of(*begins, header, arrays), header, arrays)


def opened(row: Row) -> Entry:
    """Return the entry that was sealed; raise ``Damaged`` if the row is another one now."""
    if not is_whole(row):
        raise damaged(row.number, "one that was changed")
    return unchecked(row)


def is_whole(row: Row) -> bool:
    """Say whether a row is what was sealed."""
    try:
        return digest_of(*row[:6], *row[7:]) == row.digest
    except (AttributeError, TypeError, UnicodeError, struct.error):  # a number instead of text
        return False


def unchecked(row: Row) -> Entry:
    """Return the entry as it is in the row."""
    number, kind, key, play, at, _, digest, header, arrays = row
    try:
        record = Record(json.loads(header), from_bytes(arrays))
    except ValueError as error:
        raise damaged(number, f"one that cannot be read ({error})") from None
    return Entry(number, Labels(kind, key, play, at), record, digest)


def followed(rows: Iterable[Row], start: int, previous: bytes | None) -> Iterator[Entry]:
    """Yield the entries from a number on, behind the one with this digest.

    If the digest is not known, ``rows`` begin with the one before, if it is there.
    """
    if start == 0:
        previous = b""
    expected = start
    for row in rows:
        if row.number < start:
            if is_whole(row):  # else it says nothing about the one behind it
                previous = row.digest
            continue
        if row.number != expected:
            raise damaged(expected, "none")
        entry = opened(row)
        if previous not in (None, row.previous):
            raise damaged(expected, "one that does not fit the one before it")
        previous, expected = row.digest, expected + 1
        yield entry


def checked(labels: Labels) -> Labels:
    """Return labels that every database can keep, or say what is wrong with them."""
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
            raise InvalidInput("play", "the number of a play", got, "Give the id that was asked.")
    if not math.isfinite(at):
        raise InvalidInput("at", "a time in seconds", repr(at), "Give a finite number.")
    return Labels(kind, key, play, float(at) + 0.0)  # no -0.0, which SQLite does not know


def _check_text(argument: str, text: object, longest: int) -> None:
    if not isinstance(text, str) or len(text) > longest:
        hint = "Give shorter text."
    elif not text.isascii() and not _is_unicode(text):
        hint = "Remove half of a character."
    elif "\0" in text:
        hint = "Remove the NUL character."
    else:
        return
    expected = f"text of at most {longest} letters"
    raise InvalidInput(argument, expected, ascii(text)[:60], hint)


def _is_unicode(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def used_key(row: Row) -> InvalidInput:
    """Return the error for a key that its kind has already."""
    expected, hint = f"a new key of kind {row.kind!r}", "Use the entry that has it."
    return InvalidInput("key", expected, repr(row.key), hint)


def damaged(number: int, got: str) -> Damaged:
    """Return the error for a row that is not what was written."""
    error = Damaged("journal", f"entry {number} as it was written", got, "Restore a backup.")
    error.number = number
    return error


class Kept(NamedTuple):
    """What is kept of a snapshot."""

    digest: bytes
    header: str
    arrays: bytes


def kept(snapshot: Record) -> Kept:
    """Return a snapshot as it is kept, with its digest."""
    header, arrays = header_text(snapshot), to_bytes(snapshot.arrays)
    return Kept(_digest_of_snapshot(header, arrays), header, arrays)


def newest_whole(snapshots: Iterable[Kept]) -> Record | None:
    """Return the first of the snapshots that can be read, if there is one."""
    for digest, header, arrays in snapshots:
        try:
            if digest == _digest_of_snapshot(header, arrays):
                return Record(json.loads(header), from_bytes(arrays))
        except (AttributeError, TypeError, ValueError):
            continue
    return None


def _digest_of_snapshot(header: str, arrays: bytes) -> bytes:
    text = header.encode()
    digest = blake2b(len(text).to_bytes(8, "little") + text, digest_size=SIZE, person=b"snapshot")
    digest.update(arrays)
    return digest.digest()
