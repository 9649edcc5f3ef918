"""Export of a study: the journal or the plays, as CSV, Parquet or JSON lines."""

from __future__ import annotations

import base64
import csv
import importlib.util
import json
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from datetime import UTC, datetime, timedelta
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from multiplay._support.atomic_files import PRIVATE, as_path, write_whole
from multiplay._support.checks import true_or_false
from multiplay.errors import InvalidInput, StoreError
from multiplay.storage import Entry, Head, Journal, Labels, Record, Store
from multiplay.storage.base import header_text
from multiplay.storage.journal import from_bytes, row_of, to_bytes
from multiplay.studies import play_history
from multiplay.studies.entry_codec import UNREADABLE

if TYPE_CHECKING:  # imported where it is used: it takes as long as all the rest
    import pandas as pd

CSV, PARQUET, LINES = ".csv", ".parquet", ".jsonl"
PART_ROWS, PART_BYTES = 10_000, 2**24  # approximate maximum in memory

INTEGER, NUMBER, TEXT, TIME, BLOB, DIGEST = "integer", "number", "text", "time", "blob", "digest"
JOURNAL = {
    "number": INTEGER,
    "kind": TEXT,
    "key": TEXT,
    "play": INTEGER,
    "at": NUMBER,
    "time": TIME,
    "content": TEXT,
    "arrays": BLOB,
    "digest": DIGEST,
}
PLAYS = {
    "id": INTEGER,
    "key": TEXT,
    "status": TEXT,
    "asked": TIME,
    "told": TIME,
    "units": INTEGER,
    "seen": INTEGER,
    "expected": NUMBER,
    "realised": NUMBER,
    "clipped": INTEGER,
}
IN_TEXT: dict[str, Callable[[Any], str]] = {  # values that are neither text nor numbers
    TIME: lambda time: str(time.isoformat()),
    BLOB: lambda blob: base64.b64encode(blob).decode(),
    DIGEST: lambda digest: str(digest.hex()),
}

Progress = Callable[[int], None] | None
Columns = dict[str, str]
Row = tuple[Any, ...]
Item = TypeVar("Item")
# Beginnings of formulas in spreadsheets: OWASP, "CSV Injection"; also the full-width characters.
FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "\uff1d", "\uff0b", "\uff0d", "\uff20")
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
FIELDS = {  # of a line, with their types
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


class History(Protocol):
    """Read access to a whole study, while other processes may write."""

    def snapshot(self) -> Record | None:
        """Return the newest snapshot, or None."""

    def head(self) -> Head:
        """Return the number and the digest of the last entry."""

    def entries(self) -> Iterator[Entry]:
        """Yield all entries, in order."""

    def plays(self) -> Iterator[pd.DataFrame]:
        """Yield the table of plays in parts; one empty part if there are no plays."""


class JournalHistory:
    """The history of a journal."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal

    def snapshot(self) -> Record | None:
        """Return the newest snapshot, or None."""
        return self._journal.get()

    def head(self) -> Head:
        """Return the number and the digest of the last entry."""
        return self._journal.head()

    def entries(self) -> Iterator[Entry]:
        """Yield all entries, in order."""
        return self._journal.entries()

    def plays(self) -> Iterator[pd.DataFrame]:
        """Yield the table of plays in parts."""
        return play_history.play_tables(self._journal, play_history.CHUNK)


@contextmanager
def history_in(store: Store, name: str) -> Iterator[History]:
    """Open the history of a study with a separate connection, for long reads."""
    with closing(store.open(name)) as journal:
        yield JournalHistory(journal)


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


def read_lines(path: Path) -> Iterator[Entry]:
    """Yield the entries of a file; raise ``InvalidInput`` at a bad line."""
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
        hint = "Use a file written by study.export."
        raise InvalidInput("path", "a readable file", got, hint) from None
    if head.number < last or head.number < 0:
        expected, got = f"{last + 1} lines, one for each entry", f"{head.number + 1}"
        raise InvalidInput("path", expected, got, "The file is incomplete: export again.")


@contextmanager
def errors_of_line(number: int) -> Iterator[None]:
    """Add the number of the line to errors in the block."""
    try:
        yield
    except InvalidInput as error:
        where = f"path, line {number}: {error.argument}"
        raise InvalidInput(where, error.expected, error.got, error.hint) from None
    except (*UNREADABLE, AssertionError) as error:
        expected = f"line {number} as study.export wrote it"
        words = " ".join(str(error).split()) or type(error).__name__
        got = f"a changed line ({words.removesuffix('.')})"
        raise InvalidInput("path", expected, got, "Export the study again.") from None


def _entry(line: bytes, before: Head) -> tuple[Entry, int]:
    """Return the entry of a line after checking that it is the next, and the last number."""
    given: dict[str, Any] = json.loads(line)
    return to_entry(given, before), given["last"]


def to_entry(given: dict[str, Any], before: Head) -> Entry:
    """Return the entry of plain data after checking that it follows ``before``."""
    if not isinstance(given, dict) or given.keys() != FIELDS.keys():
        raise ValueError(f"the fields are not {', '.join(FIELDS)}; update multiplay")
    for name, kind in FIELDS.items():
        if not isinstance(given[name], kind) or isinstance(given[name], bool):
            raise ValueError(f"{name} has the wrong type: {json.dumps(given[name])[:60]}")
    if given["number"] != before.number + 1:
        raise ValueError(f"entry {given['number']} instead of {before.number + 1}")
    arrays = from_bytes(base64.b64decode(given["arrays"], validate=True))
    record = Record(given["content"], arrays)
    labels = Labels(*(given[name] for name in Labels._fields))
    row = row_of(before, record, labels)
    if row.digest.hex() != given["digest"]:
        raise ValueError("its digest does not match its content")
    return Entry(row.number, Labels(*row[1:5]), record, row.digest)


def export(
    opened: AbstractContextManager[History],
    path: str | PathLike[str],
    plays: bool,
    progress: Progress = None,
) -> int:
    """Write the journal of a study, or its plays; return the number of rows.

    ``progress`` is called with the number of rows so far.
    """
    place, plays = as_path("path", path), true_or_false("plays", plays, "Leave it out.")
    suffix, counter = _checked_suffix(place), ProgressCounter(progress)

    def write(draft: Path) -> None:
        with opened as history:
            last = history.head().number
            if suffix == LINES and not plays:
                entries = counter.count(entries_until(history, last))
                _write_lines(draft, (to_line(entry, last) for entry in entries))
                return
            columns = PLAYS if plays else JOURNAL
            rows = play_rows(history) if plays else map(_row, entries_until(history, last))
            WRITERS[suffix](draft, columns, counter.count(rows))

    with refusal_of(place):
        write_whole(place, write, PRIVATE)
    return counter.number


class ProgressCounter:
    """Count of items of an iteration, reported to ``progress``."""

    def __init__(self, progress: Progress) -> None:
        self.number, self._progress = 0, progress

    def count(self, items: Iterable[Item]) -> Iterator[Item]:
        """Yield and count the items."""
        for item in items:
            yield item
            self.number += 1
            if self._progress is not None:
                self._progress(self.number)


def entries_until(history: History, last: int) -> Iterator[Entry]:
    """Yield the entries up to this number; other processes may write more."""
    for entry in history.entries():
        yield entry
        if entry.number >= last:
            return


def play_rows(history: History) -> Iterator[Row]:
    """Yield the plays, with None for a missing number or time."""
    for table in history.plays():
        for row in table[list(PLAYS)].itertuples(index=False, name=None):
            yield tuple([_known(value) for value in row])


@contextmanager
def refusal_of(path: Path) -> Iterator[None]:
    """Raise ``StoreError`` where a file cannot be written."""
    try:
        yield
    except OSError as error:
        reason = f"it cannot be written ({error.strerror or error})"
        raise StoreError(
            str(path), reason, "Free some space, or choose a different folder."
        ) from error


def _row(entry: Entry) -> Row:
    content, arrays = header_text(entry.record), to_bytes(entry.record.arrays)
    return entry.number, *entry.labels, time_of(entry.labels.at), content, arrays, entry.digest


def _known(value: Any) -> Any:
    """Return a value of a pandas table as a Python value; None for NaN and NaT."""
    if value is None or value != value:
        return None
    return value.to_pydatetime(warn=False) if hasattr(value, "to_pydatetime") else value


# ---------------------------------------------------------------- kinds of files


def _checked_suffix(path: Path) -> str:
    suffix = path.suffix.lower()
    if suffix not in WRITERS:
        expected = f"a name that ends in {CSV}, {PARQUET} or {LINES}"
        raise InvalidInput("path", expected, str(path), "Choose one of these endings.")
    if suffix == PARQUET and importlib.util.find_spec("pyarrow") is None:
        hint = f"Run pip install 'multiplay[parquet]', or choose {CSV} or {LINES}."
        raise InvalidInput("path", f"the package pyarrow for {PARQUET}", "no pyarrow", hint)
    return suffix


def _write_lines(draft: Path, lines: Iterable[str]) -> None:
    with draft.open("w", encoding="utf-8", newline="\n") as file:
        file.writelines(f"{line}\n" for line in lines)


def _rows_as_lines(draft: Path, columns: Columns, rows: Iterable[Row]) -> None:
    cells = (dict(zip(columns, row, strict=True)) for row in _in_text(columns, rows))
    _write_lines(draft, map(json.dumps, cells))


def _write_csv(draft: Path, columns: Columns, rows: Iterable[Row]) -> None:
    texts = [place for place, kind in enumerate(columns.values()) if kind == TEXT]
    with draft.open("w", encoding="utf-8", newline="") as file:
        table = csv.writer(file)  # lines end as in RFC 4180; cells with one of these are in quotes
        table.writerow(columns)
        for cells in _in_text(columns, rows):
            for place in texts:
                cells[place] = _quoted(cells[place])
            table.writerow(cells)


def _quoted(text: str | None) -> str | None:
    """Return text with a quote before it if a spreadsheet would take it for a formula."""
    return f"'{text}" if text is not None and text.startswith(FORMULA) else text


def _write_parquet(draft: Path, columns: Columns, rows: Iterable[Row]) -> None:
    import pyarrow as pa
    from pyarrow import parquet

    types: dict[str, pa.DataType] = {
        INTEGER: pa.int64(),
        NUMBER: pa.float64(),
        TEXT: pa.string(),
        TIME: pa.timestamp("us", tz="UTC"),
        BLOB: pa.binary(),
        DIGEST: pa.binary(),
    }
    schema = pa.schema([(name, types[kind]) for name, kind in columns.items()])
    with parquet.ParquetWriter(draft, schema) as file:
        for part in _parts(rows):
            arrays = [
                pa.array(values, type=field.type)
                for values, field in zip(zip(*part, strict=True), schema, strict=True)
            ]
            file.write_batch(pa.record_batch(arrays, schema=schema))


def _in_text(columns: Columns, rows: Iterable[Row]) -> Iterator[list[Any]]:
    """Yield rows of text, numbers and None."""
    to_text = [(place, IN_TEXT[k]) for place, k in enumerate(columns.values()) if k in IN_TEXT]
    for row in rows:
        cells = list(row)
        for place, in_text in to_text:
            cells[place] = None if cells[place] is None else in_text(cells[place])
        yield cells


def _parts(rows: Iterable[Row]) -> Iterator[list[Row]]:
    """Yield lists of rows that fit into memory."""
    part: list[Row] = []
    size = 0
    for row in rows:
        part.append(row)
        size += sum(len(value) for value in row if isinstance(value, str | bytes))
        if len(part) == PART_ROWS or size > PART_BYTES:
            yield part
            part, size = [], 0
    if part:
        yield part


WRITERS = {CSV: _write_csv, PARQUET: _write_parquet, LINES: _rows_as_lines}
