"""What leaves a study as a file: the journal or the plays, as CSV, Parquet or JSON lines.

All of it is read and written in parts: memory does not grow with history.
"""

from __future__ import annotations

import base64
import csv
import importlib.util
import json
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from os import PathLike
from pathlib import Path
from typing import Any, TypeVar

from multiplay._support.atomic_files import as_path, write_whole
from multiplay._support.checks import true_or_false
from multiplay.errors import InvalidInput, StoreError
from multiplay.storage import Entry
from multiplay.storage.base import header_text
from multiplay.storage.journal import to_bytes
from multiplay.studies.history import History
from multiplay.studies.lines import time_of, to_line

CSV, PARQUET, LINES = ".csv", ".parquet", ".jsonl"
PART_ROWS, PART_BYTES = 10_000, 2**24  # the most that is held at once, about

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
IN_TEXT: dict[str, Callable[[Any], str]] = {  # what is no text and no number by itself
    TIME: lambda time: str(time.isoformat()),
    BLOB: lambda blob: base64.b64encode(blob).decode(),
    DIGEST: lambda digest: str(digest.hex()),
}

Progress = Callable[[int], None] | None
Columns = dict[str, str]
Row = tuple[Any, ...]
Thing = TypeVar("Thing")


def export(
    opened: AbstractContextManager[History],
    path: str | PathLike[str],
    plays: bool,
    progress: Progress = None,
) -> int:
    """Write the journal of a study, or its plays; return how many rows were written.

    ``progress`` is called with the number of rows so far.
    """
    place, plays = as_path("path", path), true_or_false("plays", plays, "Leave it out.")
    suffix, tally = _checked_suffix(place), Tally(progress)

    def write(draft: Path) -> None:
        with opened as history:
            last = history.head().number
            if suffix == LINES and not plays:
                entries = tally.count(entries_until(history, last))
                _write_lines(draft, (to_line(entry, last) for entry in entries))
                return
            columns = PLAYS if plays else JOURNAL
            rows = play_rows(history) if plays else map(_row, entries_until(history, last))
            WRITERS[suffix](draft, columns, tally.count(rows))

    with refusal_of(place):
        write_whole(place, write)
    return tally.number


class Tally:
    """Counts what goes through, and says so to ``progress``."""

    def __init__(self, progress: Progress) -> None:
        self.number, self._progress = 0, progress

    def count(self, things: Iterable[Thing]) -> Iterator[Thing]:
        """Yield the same things."""
        for thing in things:
            yield thing
            self.number += 1
            if self._progress is not None:
                self._progress(self.number)


def entries_until(history: History, last: int) -> Iterator[Entry]:
    """Yield the entries up to this number; others may write on."""
    for entry in history.entries():
        yield entry
        if entry.number >= last:
            return


def play_rows(history: History) -> Iterator[Row]:
    """Yield the plays, with None where there is no number or no time."""
    for table in history.plays():
        for row in table[list(PLAYS)].itertuples(index=False, name=None):
            yield tuple([_known(value) for value in row])


@contextmanager
def refusal_of(path: Path) -> Iterator[None]:
    """Say in one clear line that a file cannot be written."""
    try:
        yield
    except OSError as error:
        reason = f"it cannot be written ({error.strerror or error})"
        raise StoreError(str(path), reason, "Make room, or choose another place.") from error


def _row(entry: Entry) -> Row:
    content, arrays = header_text(entry.record), to_bytes(entry.record.arrays)
    return entry.number, *entry.labels, time_of(entry.labels.at), content, arrays, entry.digest


def _known(value: Any) -> Any:
    """Return a value of a table of pandas as one of Python; None for NaN and NaT."""
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
        raise InvalidInput("path", f"the package pyarrow, for {PARQUET}", "none", hint)
    return suffix


def _write_lines(draft: Path, lines: Iterable[str]) -> None:
    with draft.open("w", encoding="utf-8", newline="\n") as file:
        file.writelines(f"{line}\n" for line in lines)


def _rows_as_lines(draft: Path, columns: Columns, rows: Iterable[Row]) -> None:
    cells = (dict(zip(columns, row, strict=True)) for row in _in_text(columns, rows))
    _write_lines(draft, map(json.dumps, cells))


def _write_csv(draft: Path, columns: Columns, rows: Iterable[Row]) -> None:
    with draft.open("w", encoding="utf-8", newline="") as file:
        table = csv.writer(file, lineterminator="\n")
        table.writerow(columns)
        table.writerows(_in_text(columns, rows))


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
    others = [(place, IN_TEXT[k]) for place, k in enumerate(columns.values()) if k in IN_TEXT]
    for row in rows:
        cells = list(row)
        for place, in_text in others:
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
