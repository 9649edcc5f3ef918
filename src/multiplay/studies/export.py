"""Export of a study: journal, plays or plans, as CSV, Parquet, JSON lines or a workbook."""

from __future__ import annotations

import base64
import csv
import importlib.util
import json
from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, closing, contextmanager
from datetime import UTC, datetime, timedelta
from itertools import islice
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeVar

import numpy as np

from multiplay._support.atomic_files import PRIVATE, as_path, write_whole
from multiplay._support.checks import true_or_false
from multiplay._support.serialization import number_or_nan
from multiplay._support.xlsx import AMOUNT, WHOLE, Column
from multiplay.errors import InvalidInput, StoreError
from multiplay.storage import Entry, Head, Journal, Labels, Record, Store
from multiplay.storage.base import header_text
from multiplay.storage.journal import from_bytes, row_of, to_bytes
from multiplay.studies import play_history
from multiplay.studies.comparison import saved_text
from multiplay.studies.entry_codec import HELD, UNREADABLE
from multiplay.studies.play_history import PlayedPlan
from multiplay.studies.workbook import Overview, columns_of, write_workbook

if TYPE_CHECKING:  # imported where it is used: it takes as long as all the rest
    import pandas as pd

CSV, PARQUET, LINES, EXCEL = ".csv", ".parquet", ".jsonl", ".xlsx"
PART_ROWS, PART_BYTES = 10_000, 2**24  # approximate maximum in memory

INTEGER, NUMBER, TEXT, TIME, BLOB, DIGEST = "integer", "number", "text", "time", "blob", "digest"
FLAG, LIST = "flag", "list"
DIGITS = 14  # of numbers in a CSV file of plans: cents below 10^12, sums of thousands of bills
DTYPES: dict[str, Any] = {  # of tables, except times
    TEXT: object,
    INTEGER: np.int64,
    NUMBER: np.float64,
    FLAG: bool,
    LIST: object,
}
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
PLANS = {  # a row for each play and arm; expected and realised are those of the whole play
    **{name: PLAYS[name] for name in ("id", "key", "status", "asked", "told")},
    "arm": TEXT,
    "units": INTEGER,
    "seen": INTEGER,
    "loss": NUMBER,
    "expected": NUMBER,
    "realised": NUMBER,
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

    def plans(self) -> Iterator[PlayedPlan]:
        """Yield all plays with their plans and losses, in order."""


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

    def plans(self) -> Iterator[PlayedPlan]:
        """Yield all plays with their plans and losses, in order."""
        return (played for _, played in play_history.played_plans(self._journal))


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


class Content(NamedTuple):
    """What is exported: the journal, the plays, or the plans.

    Attributes
    ----------
    plays, plans : bool
        Whether the plays are exported, or the plans.
    wide : bool
        Whether a plan is one row, with a column for each arm.
    arms : tuple of str
        The arms in the order of these columns.
    promised : tuple of str
        The names of all promises ever made: plans have a column for the price of each.
    """

    plays: bool = False
    plans: bool = False
    wide: bool = False
    arms: tuple[str, ...] = ()
    promised: tuple[str, ...] = ()

    @classmethod
    def checked(
        cls,
        plays: bool,
        plans: bool,
        wide: bool,
        arms: tuple[str, ...],
        promised: tuple[str, ...] = (),
    ) -> Content:
        """Return what is exported, after checking it."""
        plays, plans, wide = (
            true_or_false(name, value, "Leave it out.")
            for name, value in (("plays", plays), ("plans", plans), ("wide", wide))
        )
        return cls(plays, plans or wide, wide, arms, promised)

    def table(self, history: History) -> tuple[Columns, Iterator[Row]]:
        """Return the columns of the table, and its rows."""
        if self.wide:
            return wide_plans(history, self.arms, self.promised)
        if self.plans:
            return _with_prices(PLANS, self.promised), plan_rows(history.plans(), self.promised)
        if self.plays:
            return PLAYS, play_rows(history)
        return JOURNAL, map(_row, entries_until(history, history.head().number))

    def heads(self, columns: Columns, overview: Overview) -> list[Column]:
        """Return the columns of plans with headers in the words of the user."""
        known, usual, taken = columns_of(overview), PLAYS if self.wide else PLANS, set[str]()
        prices, heads = len(usual) + len(self.promised), []
        for place, name in enumerate(columns):
            if place < len(usual) or (place == prices and self.promised):
                head = known[name]
            elif place < prices:
                head = Column(f"{name}{overview.money}", AMOUNT)
            else:
                head = Column(name, WHOLE)
            heads.append(head._replace(header=name_beside(taken, head.header)))
            taken.add(heads[-1].header)
        return heads


def export(
    opened: AbstractContextManager[History],
    path: str | PathLike[str],
    content: Content,
    overview: Callable[[], Overview],
    progress: Progress = None,
) -> int:
    """Write the journal of a study, its plays or its plans; return the number of rows.

    ``overview`` is called for a workbook; ``progress`` with the number of rows so far.
    """
    place = as_path("path", path)
    suffix, counter = _checked_suffix(place), ProgressCounter(progress)

    def write(draft: Path) -> None:
        with opened as history:
            if suffix == LINES and not (content.plays or content.plans):
                last = history.head().number
                entries = counter.count(entries_until(history, last))
                return _write_lines(draft, (to_line(entry, last) for entry in entries))
            if suffix == EXCEL:
                columns, rows = content._replace(plans=True).table(history)
                counted = counter.count(rows)
                seen = overview()
                heads = content.heads(columns, seen)
                return write_workbook(draft, heads, counted, history.plans, seen)
            columns, rows = content.table(history)
            if suffix == CSV and content.plans:
                heads = content.heads(columns, overview())
                kinds = columns.values()
                columns = {head.header: kind for head, kind in zip(heads, kinds, strict=True)}
                rows = _rounded(columns, rows)
            return WRITERS[suffix](draft, columns, counter.count(rows))

    with refusal_of(place):
        write_whole(place, write, PRIVATE)
    return counter.number


def overview(study: Any) -> Overview:
    """Return what an export says of a study, which is here or of a service."""
    rewards = study.actions.sense == "max"
    return Overview(study.words, rewards, lambda: _summary(study), study.arms)


def _summary(study: Any) -> dict[str, Any]:
    """Return facts of a study; its savings take seconds."""
    savings = saved_text(study)
    return {
        "study": study.name,
        "plans": study.asked,
        "without a report": study.open_plays,
        **({"savings": savings} if savings else {}),
        "exported (UTC)": datetime.now(UTC),
    }


def name_beside(taken: Container[str], name: str) -> str:
    """Return the name of a column, changed if another one has it."""
    while name in taken:
        name = f"arm {name}"
    return name


def plans_table(
    opened: AbstractContextManager[History],
    wide: bool,
    arms: tuple[str, ...],
    promised: tuple[str, ...],
) -> pd.DataFrame:
    """Return the plans of all plays as a table."""
    content = Content.checked(False, True, wide, arms, promised)
    with opened as history:
        columns, rows = content.table(history)
        return frame_of(columns, rows)


def frame_of(columns: Mapping[str, str], rows: Iterable[Row]) -> pd.DataFrame:
    """Return rows as a data frame, with NaN and NaT for None; times may be text."""
    import pandas as pd

    values = [*zip(*rows, strict=True)] or [()] * len(columns)
    made: dict[str, Any] = {}
    for (name, kind), column in zip(columns.items(), values, strict=True):
        if kind == TIME:
            texts = pd.Series(column, dtype=object)
            made[name] = pd.to_datetime(texts, utc=True, format="ISO8601").dt.as_unit("ns")
        else:
            given = map(number_or_nan, column) if kind == NUMBER else column
            made[name] = pd.Series(list(given), dtype=DTYPES[kind])
    return pd.DataFrame(made)


def _with_prices(columns: Columns, promised: Iterable[str]) -> Columns:
    """Return columns with those of the prices of promises, and of what promises changed."""
    found = dict(columns)
    for name in promised:
        found[name_beside(found, f"price of {name}")] = NUMBER
    return {**found, HELD: FLAG} if promised else found


def _prices(one: PlayedPlan, promised: Iterable[str]) -> Row:
    """Return the cells of a play in the columns of ``_with_prices``."""
    return (*map(one.prices.get, promised), one.held) if promised else ()


def plan_rows(plans: Iterable[PlayedPlan], promised: tuple[str, ...] = ()) -> Iterator[Row]:
    """Yield a row for each play and arm, as in ``PLANS``, with the prices of promises."""
    for one in plans:
        row, prices = one.row, _prices(one, promised)
        about = tuple(row[name] for name in ("id", "key", "status", "asked", "told"))
        for outcome in one.outcomes():
            yield *about, *outcome, row["expected"], row["realised"], *prices


def wide_plans(
    history: History, arms: Iterable[str], promised: tuple[str, ...]
) -> tuple[Columns, Iterator[Row]]:
    """Return the columns and rows of all plays, with a column for each arm that was played."""
    count, played = 0, set[str]()
    for one in history.plans():
        count, played = count + 1, played.union(one.plan)
    names = [*dict.fromkeys([arm for arm in arms if arm in played] + sorted(played))]
    columns = _with_prices(PLAYS, promised)
    for name in names:
        columns[name_beside(columns, name)] = INTEGER
    rows = (
        (*one.row.values(), *_prices(one, promised), *(one.plan.get(name, 0) for name in names))
        for one in islice(history.plans(), count)  # other processes may write more
    )
    return columns, rows


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
        for row in play_history.rows_of(table[list(PLAYS)]):
            yield tuple(row.values())


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


# ---------------------------------------------------------------- kinds of files


def _checked_suffix(path: Path) -> str:
    suffix = path.suffix.lower()
    if suffix not in (*WRITERS, EXCEL):
        expected = f"a name that ends in {CSV}, {EXCEL}, {PARQUET} or {LINES}"
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
        table.writerow(map(_quoted, columns))
        for cells in _in_text(columns, rows):
            for place in texts:
                cells[place] = _quoted(cells[place])
            table.writerow(cells)


def _rounded(columns: Columns, rows: Iterable[Row]) -> Iterator[Row]:
    """Yield rows for people: a sum of cents is 203.19, and not 203.19000000000003."""
    numbers = [kind == NUMBER for kind in columns.values()]
    for row in rows:
        yield tuple(
            float(f"{cell:.{DIGITS}g}") if number and cell is not None else cell
            for cell, number in zip(row, numbers, strict=True)
        )


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
        FLAG: pa.bool_(),
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
