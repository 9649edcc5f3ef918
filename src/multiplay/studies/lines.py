"""Entries of a journal as JSON lines: nothing is lost, and a changed line is noticed."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from multiplay.errors import InvalidInput
from multiplay.storage import Entry, Head, Labels, Record
from multiplay.storage.journal import from_bytes, row_of, to_bytes

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
FIELDS = {  # of a line, and what stands there
    "number": int,
    "last": int,
    "kind": str,
    "key": str | None,
    "play": int | None,
    "at": float | int,
    "time": str,
    "content": dict,
    "arrays": str,
    "digest": str,
}


def to_line(entry: Entry, last: int) -> str:
    """Return an entry as a line; ``last`` is the number of the last entry of the file.

    Examples
    --------
    >>> entry = Entry(0, Labels("ask", "Monday", 1, 0.5), Record({"units": 2}, {}), b"0f")
    >>> print(to_line(entry, last=0))
    {"number": 0, "last": 0, "kind": "ask", "key": "Monday", "play": 1, "at": 0.5, \
"time": "1970-01-01T00:00:00.500000+00:00", "content": {"units": 2}, "arrays": "", "digest": "3066"}
    """
    return json.dumps(of_entry(entry, last))


def of_entry(entry: Entry, last: int) -> dict[str, Any]:
    """Return an entry as plain data; ``last`` is the number of the last entry."""
    kind, key, play, at = entry.labels
    arrays = base64.b64encode(to_bytes(entry.record.arrays)).decode()
    values = time_of(at).isoformat(), entry.record.header, arrays, entry.digest.hex()
    fields = zip(FIELDS, (entry.number, last, kind, key, play, at, *values), strict=True)
    return dict(fields)


def time_of(at: float) -> datetime:
    """Return seconds since 1970 as a time."""
    return EPOCH + timedelta(seconds=at)


def read(path: Path) -> Iterator[Entry]:
    """Yield the entries of a file, one by one; raise ``InvalidInput`` at a line that is bad."""
    head, last = Head(), 0
    try:
        with path.open("rb") as file:
            for line in file:
                with errors_of_line(head.number + 2):
                    entry, last = _entry(line, head)
                head = Head(entry.number, entry.digest)
                yield entry
    except OSError as error:
        got = f"{path} ({error.strerror})"
        hint = "Give a file that study.export wrote."
        raise InvalidInput("path", "a file that can be read", got, hint) from None
    if head.number < last or head.number < 0:
        expected, got = f"{last + 1} lines, one for each entry", f"{head.number + 1}"
        raise InvalidInput("path", expected, got, "The rest of the file is lost: export again.")


@contextmanager
def errors_of_line(number: int) -> Iterator[None]:
    """Let errors name the line."""
    try:
        yield
    except InvalidInput as error:
        where = f"path, line {number}: {error.argument}"
        raise InvalidInput(where, error.expected, error.got, error.hint) from None
    except (ValueError, KeyError, TypeError, AttributeError, AssertionError) as error:
        expected = f"line {number} as study.export wrote it"
        words = " ".join(str(error).split()) or type(error).__name__
        got = f"another one ({words.removesuffix('.')})"
        raise InvalidInput("path", expected, got, "Export the study again.") from None


def _entry(line: bytes, before: Head) -> tuple[Entry, int]:
    """Return the entry of a line, if it is the next one, and the number of the last one."""
    given: dict[str, Any] = json.loads(line)
    return to_entry(given, before), given["last"]


def to_entry(given: dict[str, Any], before: Head) -> Entry:
    """Return what ``of_entry`` was given, if it is the one after ``before``."""
    if not isinstance(given, dict) or given.keys() != FIELDS.keys():
        raise ValueError(f"not the fields {', '.join(FIELDS)}; perhaps multiplay is too old")
    for name, kind in FIELDS.items():
        if not isinstance(given[name], kind) or isinstance(given[name], bool):
            raise ValueError(f"{name} is {json.dumps(given[name])[:60]}")
    if given["number"] != before.number + 1:
        raise ValueError(f"entry {given['number']}, where {before.number + 1} is the next")
    arrays = from_bytes(base64.b64decode(given["arrays"], validate=True))
    record = Record(given["content"], arrays)
    labels = Labels(*(given[name] for name in Labels._fields))
    row = row_of(before, record, labels)
    if row.digest.hex() != given["digest"]:
        raise ValueError("its digest is of something else")
    return Entry(row.number, Labels(*row[1:5]), record, row.digest)
