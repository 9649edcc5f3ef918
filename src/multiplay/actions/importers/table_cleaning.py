"""Rows of a table of logged data that are probably mistakes, and the table without them.

A row may be twice in the table, be the sum of others, have a negative loss, or a misspelt name;
dates may have times, although a plan is for a day. Each is a finding, which the user accepts or
not.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Collection, Iterable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from multiplay._support.frames import TableFile
from multiplay.actions.base import look
from multiplay.actions.importers.table_columns import ARROW, SEPARATED, Columns, numbers_in
from multiplay.errors import InvalidInput
from multiplay.types import BoolArray, FloatArray

if TYPE_CHECKING:
    import pandas as pd

DUPLICATE, SUBTOTAL, NEGATIVE = ROWS = "duplicate", "subtotal", "negative"  # rows are left out
MISSPELT, TIMES = "misspelt", "times"
CLOCK = re.compile(r"(\d+[-./]\d+[-./]\d+)[T ,]+\d{1,2}:\d\d.*")  # the day, before the time
FEW = 2  # rows of a time of the day: a plan for each time would be for fewer units
SUM = re.compile(
    r"(?:sub|zwischen|grand |gesamt|end)?-?\s?"
    r"(?:total[ei]?|totaal|summen?|sum|sommes?|sommas?|suma|gesamt|insgesamt|ubertrag|overall)\b",
)
COMMON = 0.02  # share of the rows above which equal rows and negative losses are no mistakes
RARE = 0.05  # a name is a misspelling of one that is at least twenty times as frequent
SHORTEST, LONG = 4, 9  # characters of a name with one mistake, and with two
MOST_NAMES = 2_000  # different names of a column that are compared
MOST_UNITS = 1_000  # of a row
BETWEEN, LONGEST = " · ", 160  # between cells of a row that is shown; characters of it
DIGITS = re.compile(r"\d+")
SPACES = re.compile(r"\s+")


class Finding(NamedTuple):
    """A row, or a name, that is probably a mistake.

    Attributes
    ----------
    kind : "duplicate", "subtotal", "negative", "misspelt" or "times"
        What was found.
    rows : tuple of int
        The index of each row.
    text : str
        The row, the name, or a date with a time.
    column, meant : str
        The column of a misspelt name, and the name that is probably meant; of dates, and the day.
    is_sure : bool
        Whether it is accepted unless the user says otherwise.
    """

    kind: str
    rows: tuple[int, ...]
    text: str
    column: str = ""
    meant: str = ""
    is_sure: bool = True


def findings(file: TableFile, columns: Columns, known: Collection[str] = ()) -> list[Finding]:
    r"""Return what is probably a mistake, in the order of kinds and rows.

    ``known`` are names of arms, which are not misspelt.

    Examples
    --------
    >>> from multiplay._support.csv_format import CsvFormat
    >>> from multiplay._support.frames import read_text
    >>> rows = ["Ulm,1,80", "Ulm,1,80", "Bonn,1,-9", "Total,,151"]
    >>> rows += [f"Hamburg,{k},95" for k in range(150)] + ["Hamurg,7,94"]
    >>> table = read_text("\n".join(["town,day,cost", *rows]), ["town"], CsvFormat())
    >>> for one in findings(table, Columns(("town",), "day", "cost")):
    ...     print(f"{one.kind} {one.text} {one.meant}".strip())
    duplicate Ulm · 1 · 80
    subtotal Total · 151
    negative Bonn · 1 · -9
    misspelt Hamurg Hamburg
    """
    rows, losses = file.frame, losses_of(file, columns)
    sums = _sums(rows, columns)
    negative = (losses < 0) & ~sums
    twice, is_sure = _twice(rows, columns, sums)
    found = [
        *_each(DUPLICATE, rows, twice, is_sure),
        *_each(SUBTOTAL, rows, sums),
        *(_each(NEGATIVE, rows, negative) if negative.mean() <= max(COMMON, 1 / len(rows)) else ()),
    ]
    parts: list[set[str]] = [set() for _ in columns.arm]
    for name in known:
        words = name.split(ARROW) if len(parts) > 1 else [name]
        for part, word in zip(parts, words, strict=False):
            part.add(word)
    for column, names in zip(columns.arm, parts, strict=True):
        found += _misspelt(rows[column][~sums], column, names)
    return [*found, *(_times(rows, columns.round) if columns.round else ())]


def cleaned(file: TableFile, columns: Columns, accepted: Iterable[Finding]) -> TableFile:
    """Return a table without the rows of the findings that are accepted, and with joined names.

    A row of several units becomes one row for each, with its share of the loss. Rows keep their
    index, so that errors name the rows of the file.

    Examples
    --------
    >>> import pandas as pd
    >>> rows = pd.DataFrame({"town": ["A "], "day": [1], "n": [2], "cost": [90.0]})
    >>> table = TableFile(rows, None)
    >>> cleaned(table, Columns(("town",), "day", "cost", units="n"), []).frame["cost"].tolist()
    [45.0, 45.0]
    """
    frame = file.frame.copy()
    accepted = [*accepted]
    for column in columns.arm:
        joined = {one.text: one.meant for one in accepted if one.column == column}
        tidy = {name: _tidy(name) for name in frame[column].unique() if isinstance(name, str)}
        tidy = {name: joined.get(plain, plain) for name, plain in tidy.items()}
        if any(name != plain for name, plain in tidy.items()):
            frame[column] = frame[column].map(lambda name, names=tidy: names.get(name, name))
    if len(columns.arm) == 1:
        frame[columns.arm[0]] = _with_arrows(frame[columns.arm[0]])
    if any(one.kind == TIMES for one in accepted):
        frame[columns.round] = frame[columns.round].map(_day)
    gone = {row for one in accepted if one.kind in ROWS for row in one.rows}
    if gone:
        frame = frame[~frame.index.isin(gone)]
    if columns.units:
        frame = _in_units(file._replace(frame=frame), columns)
    return file._replace(frame=frame)


def losses_of(file: TableFile, columns: Columns) -> FloatArray:
    """Return the losses of the rows, NaN where one is missing or no number."""
    decimal = "." if file.format is None else file.format.decimal
    return numbers_in(file.frame[columns.loss], decimal)


# ---------------------------------------------------------------- rows


def _each(
    kind: str, rows: pd.DataFrame, where: BoolArray, is_sure: bool = True
) -> Iterable[Finding]:
    """Yield a finding for each of these rows."""
    for k in np.flatnonzero(where).tolist():
        cells = [_text(cell) for cell in rows.iloc[k].tolist() if cell == cell and cell is not None]
        yield Finding(kind, (int(rows.index[k]),), BETWEEN.join(cells)[:LONGEST], is_sure=is_sure)


def _text(cell: Any) -> str:
    """Return a cell as text; a whole number in a column with gaps has no decimals."""
    return str(int(cell)) if isinstance(cell, float) and cell.is_integer() else str(cell)


def _sums(rows: pd.DataFrame, columns: Columns) -> BoolArray:
    """Return which rows are sums of others: a name of a sum in a cell, and no arm or no round.

    A customer may be called Total: his rows have a round and a supplier.
    """
    found, lacking = np.zeros(len(rows), dtype=bool), np.zeros(len(rows), dtype=bool)
    keys = {name for name in (*columns.arm, columns.round) if name}
    for name in rows.columns:
        different = rows[name].drop_duplicates()
        sums = [one for one in different if isinstance(one, str) and is_sum(one)]
        where = rows[name].isin(sums).to_numpy(dtype=bool) if sums else False
        found |= where
        if name in keys:
            lacking |= rows[name].isna().to_numpy(dtype=bool)
        if name == columns.round or columns.arm == (name,):
            lacking |= where
    return found & lacking


def is_sum(text: str) -> bool:
    """Return whether a text is the name of a sum, such as "Zwischensumme Juni"."""
    return text[:1].isalpha() and SUM.match(_fold(text)) is not None


def _twice(rows: pd.DataFrame, columns: Columns, sums: BoolArray) -> tuple[BoolArray, bool]:
    """Return which rows repeat an earlier one in all cells, and whether that is a mistake.

    Without numbers of invoices, two units of a day may have the same loss: rows of which many are
    equal are none.
    """
    twice = rows.duplicated().to_numpy(dtype=bool) & ~sums
    return twice, bool(columns.id or twice.sum() <= COMMON * len(rows))


def _times(rows: pd.DataFrame, column: str) -> list[Finding]:
    """Return that dates have times of the day, if nearly each row has one of its own.

    Examples
    --------
    >>> import pandas as pd
    >>> moments = [f"2026-03-0{day} {hour:02}:15" for day in (1, 2) for hour in (7, 8, 9)]
    >>> [(one.text, one.meant) for one in _times(pd.DataFrame({"pickup": moments}), "pickup")]
    [('2026-03-01 07:15', '2026-03-01')]
    """
    values = rows[column].dropna()
    moments = {one: _day(one) for one in values.unique()}
    timed = [one for one, day in moments.items() if day != one]
    is_one_of_day = len(values) < FEW * len(moments) and 2 * len({*moments.values()}) <= len(
        moments
    )
    if 2 * len(timed) <= len(moments) or not is_one_of_day:
        return []
    return [Finding(TIMES, (int(values.index[0]),), timed[0], column, moments[timed[0]])]


def _day(value: Any) -> Any:
    """Return the day of a text with a date and a time, as it is written; other values as is."""
    match = CLOCK.fullmatch(value.strip()) if isinstance(value, str) else None
    return value if match is None else match[1]


# ---------------------------------------------------------------- names


def _misspelt(values: pd.Series[Any], column: str, known: Collection[str]) -> list[Finding]:
    """Return the rare names of a column that are near a frequent one."""
    texts = values.dropna()
    tidy = {name: _tidy(name) for name in texts.unique() if isinstance(name, str)}
    places: dict[str, list[int]] = {}
    for row, name in zip(texts.index.tolist(), texts.tolist(), strict=True):
        if isinstance(name, str):
            places.setdefault(tidy[name], []).append(int(row))
    counts = Counter({name: len(rows) for name, rows in places.items()})
    counts.update(dict.fromkeys(known, len(values)))
    if len(counts) > MOST_NAMES:
        return []
    folded = {name: _fold(name) for name in counts}
    found = []
    for name, rows in places.items():
        if name in known:
            continue
        near = [
            other
            for other, count in counts.items()
            if other != name
            and (len(rows) <= RARE * count or (count, other) > (len(rows), name))
            and _is_near(folded[name], folded[other], len(rows) <= RARE * count)
        ]
        if near:
            meant = max(near, key=lambda other: counts[other])
            found.append(Finding(MISSPELT, tuple(rows), name, column, meant))
    return found


def _is_near(one: str, other: str, is_rare: bool = True) -> bool:
    """Return whether names differ by case, or by so few characters that a rare one is misspelt.

    Names with different numbers are different.

    Examples
    --------
    >>> _is_near("hamurg", "hamburg"), _is_near("lyon 1", "lyon 2"), _is_near("ulm", "elm")
    (True, False, False)
    """
    if one == other:
        return True
    if not is_rare or DIGITS.findall(one) != DIGITS.findall(other):
        return False
    longest = min(len(one), len(other))
    allowed = 0 if longest < SHORTEST else 1 if longest < LONG else 2
    return abs(len(one) - len(other)) <= allowed and _edits(one, other, allowed) <= allowed


def _edits(one: str, other: str, most: int) -> int:
    """Return how many characters are added, removed, replaced or swapped; ``most`` + 1 if more.

    Examples
    --------
    >>> _edits("hamburg", "hambrug", 2), _edits("bonn", "bone", 2), _edits("koln", "koeln", 2)
    (1, 1, 1)
    """
    before: list[int] = []
    row: list[int] = [*range(len(other) + 1)]
    for i, a in enumerate(one, 1):
        last, row = row, [i]
        for j, b in enumerate(other, 1):
            cost = min(last[j] + 1, row[j - 1] + 1, last[j - 1] + (a != b))
            if i > 1 and j > 1 and a == other[j - 2] and b == one[i - 2]:
                cost = min(cost, before[j - 2] + 1)
            row.append(cost)
        before = last
        if min(row) > most:
            return most + 1
    return row[-1]


def _tidy(name: str) -> str:
    """Return a name without characters of no width, and with single spaces."""
    return SPACES.sub(" ", look(name)).strip()


def _fold(name: str) -> str:
    """Return a name in lower case, without accents."""
    parts = unicodedata.normalize("NFKD", name.casefold().strip())
    return "".join(one for one in parts if not unicodedata.combining(one))


def _with_arrows(names: pd.Series[Any]) -> pd.Series[Any]:
    """Return names of lanes such as ``Lyon - north`` as ``Lyon->north``, if all are such names."""
    different = [name for name in names.unique() if isinstance(name, str)]
    found = {name: SEPARATED.fullmatch(name) for name in different}
    if not found or not all(found.values()):
        return names
    lanes = {name: ARROW.join(match.groups()) for name, match in found.items() if match}
    return names.map(lambda name: lanes.get(name, name))


# ---------------------------------------------------------------- units


def _in_units(file: TableFile, columns: Columns) -> pd.DataFrame:
    """Return a row for each unit, with its share of the loss; a row of no units is left out."""
    frame, decimal = file.frame, "." if file.format is None else file.format.decimal
    units, losses = numbers_in(frame[columns.units], decimal), losses_of(file, columns)
    bad = ~((units >= 0) & (units <= MOST_UNITS) & (units % 1 == 0))
    if bad.any():
        k = int(np.flatnonzero(bad)[0])
        expected = f"whole numbers from 0 to {MOST_UNITS}"
        got = f"{frame[columns.units].iloc[k]!r} in row {int(frame.index[k]) + file.first}"
        hint = "Correct the row, or choose no column of units."
        raise InvalidInput(f"table[{columns.units!r}]", expected, got, hint)
    counts = units.astype(int)
    if (counts == 1).all():
        return frame
    shares = np.where(np.isnan(losses), np.nan, losses / np.maximum(counts, 1))
    texts = frame[columns.loss].where(np.isnan(losses))  # what is no number stays as it is
    frame = frame.assign(**{columns.loss: texts.astype(object).where(np.isnan(losses), shares)})
    several = frame.loc[frame.index.repeat(counts)]
    if columns.id:  # the units of an invoice are different
        place = several.groupby(level=0).cumcount()
        ids = several[columns.id].astype(str).where(several[columns.id].notna())
        several[columns.id] = ids.where(place == 0, ids + "/" + (place + 1).astype(str))
    return several
