"""Workbook of a study: an Excel file with sheets of plans, bills and arms, and a summary."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, date, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from multiplay._support.formatting import plural
from multiplay.errors import InvalidInput
from multiplay.learner.words import Words
from multiplay.studies.play_history import PlayedPlan, rows_of

if TYPE_CHECKING:  # imported where they are used: they take as long as all the rest
    import pandas as pd
    from openpyxl import Workbook

MOST_ROWS, MOST_COLUMNS, LONGEST_TEXT = 2**20, 2**14, 2**15 - 1  # of Excel
LONGEST_TITLE, NOT_IN_TITLE = 31, str.maketrans(dict.fromkeys("[]:*?/\\"))
TEXT, WHOLE, AMOUNT, SHARE = "General", "#,##0", "#,##0.00", "0.0%"
TIME, DAY = "yyyy-mm-dd hh:mm", "yyyy-mm-dd"  # DAY: of texts that may be dates
WIDTHS = {TEXT: 10, WHOLE: 10, AMOUNT: 14, SHARE: 9, TIME: 17, DAY: 14}  # characters, at least
WIDEST = 48
HINT = "Export the plans as .csv or .parquet."

ARMS = ("arm", "seen", "mean", "low", "high", "average", "spread", "last_seen", "share")
TOTALS = ("id", "key", "status", "units", "seen", "expected", "realised", "difference")

Rows = Iterable[Sequence[Any]]


class Overview(NamedTuple):
    """What an export of plans says of a study beside its plays.

    Attributes
    ----------
    words : Words
        The words of the user.
    rewards : bool
        Whether units bring rewards, rather than losses.
    facts : dict
        Texts, numbers and times by name, for the summary.
    arms
        ``Study.arms``.
    """

    words: Words
    rewards: bool
    facts: Mapping[str, Any]
    arms: Callable[[], pd.DataFrame]


class Column(NamedTuple):
    """A column of a sheet: its header, the format of its cells, and its width at least."""

    header: str
    format: str = TEXT
    width: int = 0


def write_workbook(
    draft: Path,
    columns: Sequence[Column],
    rows: Rows,
    plans: Callable[[], Iterator[PlayedPlan]],
    overview: Overview,
) -> None:
    """Write all sheets; ``columns`` and ``rows`` are those of the sheet of plans."""
    from openpyxl import Workbook

    book = Workbook(write_only=True)
    try:
        _write_sheets(book, columns, rows, plans, overview)
        book.save(draft)
    except BaseException:
        for sheet in book.worksheets:  # they are written to files until the end
            with suppress(Exception):
                sheet.close()
        raise


def _write_sheets(
    book: Workbook,
    columns: Sequence[Column],
    rows: Rows,
    plans: Callable[[], Iterator[PlayedPlan]],
    overview: Overview,
) -> None:
    known = columns_of(overview)
    arms = [tuple(row.values()) for row in rows_of(overview.arms())]
    longest = max((len(row[0]) for row in arms), default=0)
    arm, wide = known["arm"], known["arm"]._replace(width=longest + 2)
    known["arm"] = wide
    heads = [wide if column == arm else column for column in columns]
    _write(book, "plans", heads, rows, fixed=2)
    heads = [known[name] for name in ("id", "key", "told", "arm", "units", "loss")]
    _write(book, "bills", heads, _bills(plans()), fixed=2)
    heads = [known[name] for name in ARMS]
    _write(book, plural(overview.words.arm), heads, arms, fixed=1)
    heads = [known[name] for name in TOTALS]
    _write(book, "summary", heads, _totals(plans()), facts=overview.facts)


def columns_of(overview: Overview) -> dict[str, Column]:
    """Return the columns of exported plans, by the names that they have in tables of Python."""
    words, money = overview.words, f" ({overview.words.currency})" * bool(overview.words.currency)
    what, units = "reward" if overview.rewards else "cost", plural(words.unit)
    return {
        "id": Column("plan", WHOLE),
        "key": Column("key", DAY),
        "status": Column("status"),
        "asked": Column("asked (UTC)", TIME),
        "told": Column("told (UTC)", TIME),
        "arm": Column(words.arm),
        "units": Column(units, WHOLE),
        "seen": Column(f"{units} told", WHOLE),
        "clipped": Column("clipped", WHOLE),
        "loss": Column(f"{what}{money}", AMOUNT),
        "expected": Column(f"expected {what} of the plan{money}", AMOUNT),
        "realised": Column(f"actual {what} of the plan{money}", AMOUNT),
        "difference": Column(f"difference{money}", AMOUNT),
        "mean": Column(f"{what} of a {words.unit}{money}", AMOUNT),
        "low": Column("from", AMOUNT),
        "high": Column("to", AMOUNT),
        "average": Column("average so far", AMOUNT),
        "spread": Column("spread", AMOUNT),
        "last_seen": Column("last seen (UTC)", TIME),
        "share": Column("share of the plans", SHARE),
    }


def _bills(plans: Iterable[PlayedPlan]) -> Iterator[Sequence[Any]]:
    """Yield a row for each loss that was told: of one unit, or of all units of an arm."""
    for row, plan, losses in plans:
        about = row["id"], row["key"], row["told"]
        for arm, told in losses.items():
            if isinstance(told, list):
                yield from ((*about, arm, 1, loss) for loss in told if loss is not None)
            else:
                yield *about, arm, plan[arm], told


def _totals(plans: Iterable[PlayedPlan]) -> Iterator[Sequence[Any]]:
    """Yield a row for each play: its totals, and their difference if all units were told."""
    for row, _, _ in plans:
        expected, realised = row["expected"], row["realised"]
        known = row["seen"] == row["units"] and None not in (expected, realised)
        yield *(row[name] for name in TOTALS[:-1]), realised - expected if known else None


def _write(
    book: Workbook,
    title: str,
    columns: Sequence[Column],
    rows: Rows,
    facts: Mapping[str, Any] | None = None,
    fixed: int = 0,
) -> None:
    """Write a sheet: some facts, and a table whose header and first columns do not scroll."""
    from openpyxl.cell import WriteOnlyCell
    from openpyxl.styles import Font
    from openpyxl.utils import get_column_letter

    if len(columns) > MOST_COLUMNS:
        expected = f"at most {MOST_COLUMNS:,} columns in a sheet"
        raise InvalidInput("path", expected, f"{len(columns):,}", HINT)
    sheet = book.create_sheet(title.translate(NOT_IN_TITLE)[:LONGEST_TITLE])
    for place, column in enumerate(columns, start=1):
        width = max(len(column.header) + 2, column.width, WIDTHS[column.format])
        sheet.column_dimensions[get_column_letter(place)].width = min(width, WIDEST)

    def cell_of(value: Any, bold: bool = False) -> Any:
        cell = WriteOnlyCell(sheet)
        cell.font = Font(bold=bold)
        if isinstance(value, float):
            cell.number_format = AMOUNT
        _set(cell, value)
        return cell

    first = 1
    for name, value in (facts or {}).items():
        sheet.append([cell_of(name, bold=True), cell_of(value)])
        first += 1
    if facts:
        sheet.append([])
        first += 1
    else:
        sheet.freeze_panes = f"{get_column_letter(fixed + 1)}2"
    sheet.append([cell_of(column.header, bold=True) for column in columns])
    cells, last = [WriteOnlyCell(sheet) for _ in columns], first  # of a row, used for all rows
    for cell, column in zip(cells, columns, strict=True):
        cell.number_format = column.format
    days = [place for place, column in enumerate(columns) if column.format == DAY]
    for row in rows:
        last += 1
        if last > MOST_ROWS:
            expected = f"at most {MOST_ROWS:,} rows in a sheet"
            raise InvalidInput("path", expected, "more", HINT)
        for cell, value in zip(cells, row, strict=True):
            _set(cell, value)
        for place in days:
            day = _day_of(row[place])
            if day is not None:
                cells[place].value = day
        sheet.append(cells)
    sheet.auto_filter.ref = f"A{first}:{get_column_letter(len(columns))}{last}"


def _set(cell: Any, value: Any) -> None:
    """Set the value of a cell; a text is never a formula."""
    from openpyxl.cell.cell import ILLEGAL_CHARACTERS_RE

    if isinstance(value, str):
        cell.value = ILLEGAL_CHARACTERS_RE.sub("\ufffd", value)[:LONGEST_TEXT]
        cell.data_type = "s"
    elif isinstance(value, datetime):
        cell.value = value.astimezone(UTC).replace(tzinfo=None)  # Excel has no time zones
    elif isinstance(value, float) and not math.isfinite(value):
        cell.value = None
    else:
        cell.value = value


def _day_of(key: str | None) -> date | None:
    """Return the date of a key such as 2026-11-16; None for other keys."""
    if key is not None and len(key) == 10 and key[4] == key[7] == "-":
        with suppress(ValueError):
            return date.fromisoformat(key)
    return None
