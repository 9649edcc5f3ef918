"""Logged data: a table with one row for each unit, checked, as reports."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from datetime import UTC, date, datetime
from hashlib import blake2b
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from multiplay._support.checks import is_number, shortened, true_or_false
from multiplay._support.csv_format import CsvFormat, decimal_of, number_in
from multiplay._support.dates import date_seconds
from multiplay._support.formatting import counted
from multiplay._support.frames import column, in_order, table_file
from multiplay._support.hints import Hint, Option, Verb
from multiplay._support.serialization import number_or_none
from multiplay._support.words import Words
from multiplay.actions.base import look
from multiplay.errors import InvalidInput
from multiplay.features import Features
from multiplay.features.columns import Column
from multiplay.features.table import item
from multiplay.learner.plays import FAR
from multiplay.learner.ranges import GROW, Ranges
from multiplay.learner.reports import EXACT, Report
from multiplay.types import Arrays, BoolArray, FloatArray, IntArray, Note

if TYPE_CHECKING:  # imported where it is used: it takes as long as all the rest
    import pandas as pd


NO_FEATURES: Arrays = {}
NO_TIMES = np.zeros(0)
Digests = NDArray[np.uint64]
NO_DIGESTS: Digests = np.zeros(0, dtype=np.uint64)
ARROW = "->"  # between the parts of a name, as in sets
SHOWN = 10  # problems in an error
EXAMPLE = Verb("learn_table", "table, arm='lane', round='day', loss='cost'")
OF_ONE_ROUND = Verb("read_bills", "table, arm='lane', loss='euros'")
EMPTY = "is empty"


class LoggedData(NamedTuple):
    """Logged losses, one entry of each array for each unit.

    Attributes
    ----------
    arms : list of names
        The different arms.
    arm, round : arrays
        The number of the arm of each unit in ``arms``, and the number of its round.
    loss : array
        The loss of each unit, in the user's unit; NaN if it is missing.
    features : dict of arrays
        The codes of the features of each unit, for features that are columns of the table.
    times : array
        The time of each round in seconds since 1970; empty if the rounds have no dates.
    skipped, known : int
        The numbers of rows of the table that were left out, and that were learned before.
    labels : array
        The digests of the labels of rounds without dates.
    ids : array
        The digests of the ids of units; 0 for a unit without an id, empty if no unit has one.
    source, whole : str
        The name of the table, and the digest of all its rows if some of them are known.
    """

    arms: list[str]
    arm: IntArray
    round: IntArray
    loss: FloatArray
    features: Arrays = NO_FEATURES
    times: FloatArray = NO_TIMES
    skipped: int = 0
    known: int = 0
    labels: Digests = NO_DIGESTS
    ids: Digests = NO_DIGESTS
    source: str = ""
    whole: str = ""

    @property
    def rounds(self) -> int:
        """The number of rounds."""
        return int(self.round.max(initial=-1)) + 1

    def rows(self, kept: BoolArray) -> LoggedData:
        """Return some of the units, with the arms and rounds that they have."""
        used, arms = _renumbered(self.arm[kept])
        played, rounds = np.unique(self.round[kept], return_inverse=True)
        of_rounds = {
            name: getattr(self, name)[played] if len(getattr(self, name)) else getattr(self, name)
            for name in ("times", "labels")
        }
        return self._replace(
            arms=[self.arms[k] for k in used.tolist()],
            arm=arms,
            round=rounds.astype(np.int64),
            loss=self.loss[kept],
            features={name: codes[kept] for name, codes in self.features.items()},
            ids=self.ids[kept] if len(self.ids) else self.ids,
            **of_rounds,
        )

    def totals(self) -> list[tuple[float, int, int, float]]:
        """Return the time, the units, the units with a loss and their total of each round."""
        known = ~np.isnan(self.loss)
        units, seen = np.bincount(self.round), np.bincount(self.round[known], minlength=self.rounds)
        totals = np.bincount(self.round, weights=np.where(known, self.loss, 0.0))
        when = self.times if len(self.times) else np.full(len(units), np.nan)
        columns = (one.tolist() for one in (when, units, seen, totals))
        return list(zip(*columns, strict=True))

    def time(self, round: int) -> float:
        """Return the time of a round; NaN if it is not known."""
        return float(self.times[round]) if len(self.times) else np.nan


class TableProblem(NamedTuple):
    """A row of a table that cannot be learned from.

    Attributes
    ----------
    row : int
        Its number: in a file the names of the columns are row 1; in a data frame, rows count from
        0.
    column, value : str
        The column, and its value as text.
    reason : str
        What is wrong with it.

    Examples
    --------
    >>> print(TableProblem(5, "euros", "'cheap'", "is not a number"))
    row 5, euros: 'cheap' is not a number
    """

    row: int
    column: str
    value: str
    reason: str

    def __str__(self) -> str:
        return f"row {self.row}, {self.text}"

    @property
    def text(self) -> str:
        """The problem without the number of the row."""
        if self.reason == EMPTY:
            return f"{self.column} {EMPTY}"
        return f"{self.column}: {self.value} {self.reason}"


class TableCheck(NamedTuple):
    """What a table of logged data contains, before it is learned.

    Attributes
    ----------
    rows, rounds : int
        The numbers of rows, and of rounds in rows without problems.
    arms, added : tuple of str
        The arms of these rows, and those of them that would be added.
    problems : tuple of TableProblem
        One for each row that cannot be learned from.
    first, last : datetime or None
        The first and the last date; None if the rounds have no dates.
    total : float
        The sum of the losses, in the user's unit.
    format : CsvFormat or None
        The format of a CSV file, as it was recognised.
    missing : int
        The number of rows without a loss.
    known : int
        The number of rows that were learned before.
    changed : int
        The number of those whose id is known with another round or loss.

    Examples
    --------
    >>> from multiplay import Budget, Learner
    >>> learner = Learner(Budget(3, [2, 2], names=["air", "sea"]), loss_range=(0, 100))
    >>> bills = {"arm": ["air", "rail", "sea"], "round": ["2026-03-01"] * 3, "loss": [80, 20, 500]}
    >>> print(learner.check_table(bills))
    3 rows: 1 round on 2026-03-01, 2 arms, total 100
    1 new arm: rail
    1 row with a problem:
      row 2, loss: 500 is outside 0 to 100
    """

    rows: int
    rounds: int
    arms: tuple[str, ...]
    added: tuple[str, ...]
    problems: tuple[TableProblem, ...]
    first: datetime | None
    last: datetime | None
    total: float
    format: Annotated[CsvFormat | None, Note.HIDDEN]
    missing: int = 0
    known: Annotated[int, "The number of rows that were learned before."] = 0
    changed: Annotated[int, "The number of those whose id has another round or loss now."] = 0

    @property
    def new(self) -> int:
        """The number of rows without problems that are not known."""
        return self.rows - len(self.problems) - self.known

    def __str__(self) -> str:
        return self.text(Words(arm="arm", round="round"))

    def text(self, words: Words) -> str:
        """Return the check as lines of text, in the words of the user."""
        text = f"{counted(self.rows, 'row')}: {words.rounds(self.rounds)}"
        if self.first is not None and self.last is not None:
            days = [f"{day:%Y-%m-%d}" for day in (self.first, self.last)]
            text += f" on {days[0]}" if days[0] == days[1] else f" from {days[0]} to {days[1]}"
        text += f", {words.arms(len(self.arms))}, total {words.money(self.total)}"
        text += f", {counted(self.missing, 'row')} without a loss" if self.missing else ""
        if self.known:
            text += f"\n{self.known:,} known, {self.new:,} new"
            text += f"; {self.changed:,} of the known have other costs now" if self.changed else ""
        if self.added:
            new = words._replace(arm=f"new {words.arm}").arms(len(self.added))
            text += f"\n{new}: {', '.join(self.added)}"
        return text + (f"\n{problems_text(self.problems)}" if self.problems else "")


def problems_text(problems: Sequence[TableProblem]) -> str:
    """Return the first problems of a table as lines of text."""
    rows = "1 row with a problem" if len(problems) == 1 else f"{len(problems)} rows with problems"
    lines = [f"{rows}:", *(f"  {problem}" for problem in problems[:SHOWN])]
    more = len(problems) - SHOWN
    return "\n".join([*lines, f"  and {more} more"] if more > 0 else lines)


class KnownArms(NamedTuple):
    """What a table is compared with: the arms of a learner, their ranges, and its features.

    Attributes
    ----------
    names
        The names of all arms.
    ranges : Ranges or None
        The ranges of their losses.
    fixed : str
        The policy that needs a fixed set; "" if arms can be added.
    features : Features or None
        The declared features.
    """

    names: Collection[str] = ()
    ranges: Ranges | None = None
    fixed: str = ""
    features: Features | None = None


class ReadTable(NamedTuple):
    """A table that was read.

    Attributes
    ----------
    rows : DataFrame
        All rows, as they were given.
    logged : LoggedData
        The rows without problems.
    bad : array of bool
        The rows with problems.
    check : TableCheck
        A summary.
    """

    rows: pd.DataFrame
    logged: LoggedData
    bad: BoolArray
    check: TableCheck

    def learned(self, skip_bad: bool) -> LoggedData:
        """Return the logged data; raise ``InvalidInput`` if rows with problems may not be skipped.

        Also if no row is left.
        """
        if self.bad.any() and not skip_bad:
            others = Option("skip_bad", "True")
            hint: str = Hint("Correct these rows, or state {} to learn from the others.", others)
            got = problems_text(self.check.problems)
            raise InvalidInput("table", "rows without problems", got, hint)
        if not len(self.logged.arm):
            hint = "Check the columns arm, round and loss."
            got = problems_text(self.check.problems)
            raise InvalidInput("table", "a row without problems", got, hint)
        return self.logged


class _Problems:
    """The first problem of each row of a table."""

    def __init__(self, rows: pd.DataFrame, first: int) -> None:
        self.rows, self.first = rows, first
        self.bad: BoolArray = np.zeros(len(rows), dtype=bool)
        self._found: dict[int, TableProblem] = {}

    def add(
        self,
        where: BoolArray,
        name: str,
        reason: str | Callable[[int], str],
        values: Any = None,
    ) -> None:
        """Add rows whose value of a column is bad; the reason may depend on the place.

        ``values`` are those of all rows, if they are not in one column.
        """
        (places,) = (where & ~self.bad).nonzero()
        if not len(places):
            return
        self.bad |= where
        given = self.rows[name].to_numpy(dtype=object) if values is None else values
        labels = self.rows.index.to_numpy()
        for k in places.tolist():
            shown = "" if reason == EMPTY else _shown(item(given[k]))
            why = reason if isinstance(reason, str) else reason(k)
            self._found[k] = TableProblem(int(labels[k]) + self.first, name, shown, why)

    def in_order(self) -> tuple[TableProblem, ...]:
        """Return the problems in the order of the rows."""
        return tuple(self._found[k] for k in sorted(self._found))


def _shown(value: Any) -> str:
    """Return a value of a table as text."""
    if is_number(value):
        return f"{value:g}"
    return str(value) if isinstance(value, date) else shortened(repr(value))


def read_table(
    table: Any,
    arm: str | Sequence[str],
    round: str,
    loss: str,
    known: KnownArms,
    day_first: bool | None = None,
    id: str | None = None,
) -> ReadTable:
    """Return a table as logged data, with the problems of its rows.

    Rounds are numbered in the order of their dates or labels. Of the declared features, those that
    have a column in the table are read.
    """
    parts = arm_columns(arm)
    roles = (*parts, round, loss, *([] if id is None else [id]))
    if len(set(roles)) < len(roles):
        hint = f"Name the columns, as in {EXAMPLE}."
        got = ", ".join(map(repr, roles))
        raise InvalidInput("table", "different columns for arm, round and loss", got, hint)
    day_first = checked_day_first(day_first)
    rows, format, first, source = table_file(table, parts)
    for name in roles:
        column(rows, name, EXAMPLE, gaps=True)
    problems = _Problems(rows, first)
    arms, names = _arms(rows, parts, known, problems)
    rounds, times, labels = _rounds(rows, round, day_first, problems)
    losses = _losses(rows, loss, format, problems)
    _check_ranges(arms, names, losses, loss, known.ranges, problems)
    features: Arrays = {}
    if known.features is not None:
        for name, kind in known.features.columns.items():
            if name in rows.columns and name not in roles:
                features[name] = _codes(rows, kind, name, problems)
    ids = NO_DIGESTS if id is None else text_digests(rows[id])
    logged = LoggedData(
        *(names, arms, rounds, losses, features, times, int(problems.bad.sum()), 0),
        *(labels, ids, source),
    ).rows(~problems.bad)
    times = logged.times
    dates = [datetime.fromtimestamp(float(at), UTC) for at in times[[0, -1]]] if len(times) else []
    new = () if known.fixed else (name for name in logged.arms if name not in known.names)
    check = TableCheck(
        len(rows),
        logged.rounds,
        tuple(logged.arms),
        tuple(new),
        problems.in_order(),
        dates[0] if dates else None,
        dates[-1] if dates else None,
        float(np.nansum(logged.loss)),
        format,
        int(np.isnan(logged.loss).sum()),
    )
    return ReadTable(rows, logged, problems.bad, check)


def read_bills(
    table: Any, arm: str | Sequence[str] = "arm", loss: str = "loss"
) -> dict[str, list[float | None]]:
    """Return the losses of one round by arm, for ``tell``, from a table with a row for each unit.

    Examples
    --------
    >>> read_bills({"arm": ["sea", "air", "sea"], "loss": ["20,50", "80,00", None]})
    {'sea': [20.5, None], 'air': [80.0]}
    """
    parts = arm_columns(arm)
    rows, format, first, _ = table_file(table, parts)
    for name in (*parts, loss):
        column(rows, name, OF_ONE_ROUND, gaps=True)
    problems = _Problems(rows, first)
    arms, names = _arms(rows, parts, KnownArms(), problems)
    losses = _losses(rows, loss, format, problems)
    if problems.bad.any():
        hint = "Correct these rows; leave the cell empty where a loss is missing."
        got = problems_text(problems.in_order())
        raise InvalidInput("table", "rows without problems", got, hint)
    bills: dict[str, list[float | None]] = {}
    for k, value in zip(arms.tolist(), losses.tolist(), strict=True):
        bills.setdefault(names[k], []).append(number_or_none(value))
    return bills


def first_rows(table: Any, arm: str | Sequence[str] = "arm") -> dict[str, int]:
    """Return the number of the first row of each arm of ``read_bills``, as errors count rows.

    Examples
    --------
    >>> first_rows({"arm": ["sea", "air", "sea"]})
    {'sea': 0, 'air': 1}
    """
    parts = arm_columns(arm)
    rows, _, first, _ = table_file(table, parts)
    arms, names = _arms(rows, parts, KnownArms(), _Problems(rows, first))
    _, places = np.unique(arms, return_index=True)
    return {name: int(rows.index[k]) + first for name, k in zip(names, places, strict=True)}


def arm_columns(arm: str | Sequence[str]) -> tuple[str, ...]:
    """Return the columns that name an arm."""
    parts = (arm,) if isinstance(arm, str) else tuple(arm)
    if not parts or not all(isinstance(part, str) for part in parts):
        hint = "Use arm='lane', or arm=['depot', 'customer']."
        raise InvalidInput("arm", "the name of a column, or several", repr(arm), hint)
    return parts


def checked_day_first(given: Any) -> bool | None:
    """Return ``day_first`` of ``learn_table``, or raise ``InvalidInput``."""
    hint = "Use True if 03/04/2026 is in April; leave it out if dates show it."
    return None if given is None else true_or_false("day_first", given, hint)


def _arms(
    rows: pd.DataFrame, parts: Sequence[str], known: KnownArms, problems: _Problems
) -> tuple[IntArray, list[str]]:
    """Return the number of the arm of each row, and the names; parts of a name are joined."""
    import pandas as pd

    combined, texts = np.zeros(len(rows), dtype=np.int64), [[""]]
    for part in parts:
        numbers, different = _different(rows[part], part)
        own = [_arm_text(item(value)) for value in different]
        empty = np.array([not look(text).strip() for text in own], dtype=bool)
        problems.add(_of_each(numbers, empty, True), part, EMPTY)
        combined = combined * max(len(own), 1) + np.maximum(numbers, 0)
        texts.append(own)
    codes, pairs = pd.factorize(combined)
    names, by_look = list[str](), {look(name): name for name in known.names}
    for pair in pairs.tolist():
        words = list[str]()
        for own in reversed(texts[1:]):
            pair, k = divmod(pair, max(len(own), 1))
            words.append(own[k] if own else "")
        name = ARROW.join(reversed(words))
        names.append(name if name in known.names else by_look.setdefault(look(name), name))
    different_names = list(dict.fromkeys(names))
    place = {name: k for k, name in enumerate(different_names)}
    codes = np.array([place[name] for name in names], dtype=np.int64)[codes]
    if known.fixed:
        unknown = np.array([name not in known.names for name in different_names], dtype=bool)
        reason = f"is not an arm of the set, which is fixed for {known.fixed}"
        values = np.array(different_names, dtype=object)[codes]
        problems.add(unknown[codes], ", ".join(parts), reason, values)
    return codes, different_names


def _arm_text(value: Any) -> str:
    """Return a part of the name of an arm; 7.0 is 7, in a column with missing numbers."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return str(value).strip()


def _rounds(
    rows: pd.DataFrame, name: str, day_first: bool | None, problems: _Problems
) -> tuple[IntArray, FloatArray, Digests]:
    """Return the number of the round of each row, and of the rounds the times or the digests."""
    import pandas as pd

    values, where = rows[name], f"table[{name!r}]"
    problems.add(values.isna().to_numpy(dtype=bool), name, EMPTY)
    if values.dtype.kind == "M":
        times = pd.DatetimeIndex(values)
        times = times.tz_localize(UTC) if times.tz is None else times.tz_convert(UTC)
        seconds = times.as_unit("ns").asi8 / 1e9
    elif values.dtype.kind in "biuf":
        return _labelled(values)
    else:
        numbers, different = _different(values, name)
        found = date_seconds(where, [item(value) for value in different], day_first)
        known = np.array([np.nan if one is None else one for one in found], dtype=float)
        if not len(known) or 2 * int((~np.isnan(known)).sum()) < len(known):
            return _labelled(values)
        seconds = _of_each(numbers, known, np.nan)
    wrong = ~(np.abs(seconds) <= FAR)
    problems.add(wrong, name, "is not a date")
    seconds = np.where(wrong, 0.0, seconds)
    different_times, rounds = np.unique(seconds, return_inverse=True)
    return rounds.astype(np.int64), different_times, NO_DIGESTS


def _labelled(values: pd.Series[Any]) -> tuple[IntArray, FloatArray, Digests]:
    """Return the number of the label of each row, and the digests of the labels."""
    numbers, labels = in_order(values)
    return np.maximum(numbers, 0), NO_TIMES, text_digests(labels)


def text_digests(values: Any) -> Digests:
    """Return a digest of 8 bytes for each value, by its text; 0 for a missing value."""
    import pandas as pd

    numbers, different = pd.factorize(pd.Series(values, dtype=object))
    texts = [_arm_text(item(value)) for value in different]
    digests = [int.from_bytes(blake2b(text.encode(), digest_size=8).digest()) for text in texts]
    return np.append(np.array(digests, dtype=np.uint64), np.uint64(0))[numbers]


def _losses(
    rows: pd.DataFrame, name: str, format: CsvFormat | None, problems: _Problems
) -> FloatArray:
    """Return a column of losses, NaN where one is missing."""
    values = rows[name]
    if values.dtype.kind in "biuf":
        losses: FloatArray = values.to_numpy(dtype=float, na_value=np.nan)
    else:
        numbers, different = _different(values, name)
        texts = [value for value in different if isinstance(value, str)]
        mark = decimal_of(texts, f"table[{name!r}]") if format is None else format.decimal
        found = [_loss(item(value), mark) for value in different]
        known = np.array([np.nan if one is None else one for one in found], dtype=float)
        wrong = np.array([one is None for one in found], dtype=bool)
        problems.add(_of_each(numbers, wrong, False), name, "is not a number")
        losses = _of_each(numbers, known, np.nan)
    problems.add(np.isinf(losses), name, "is not a finite number")
    return losses


def _loss(value: Any, decimal: str) -> float | None:
    """Return a loss, NaN for an empty text; None if it is no number."""
    if isinstance(value, str):
        return number_in(value, decimal) if value.strip() else np.nan
    return float(value) if is_number(value) or type(value) in EXACT else None


def _check_ranges(
    arms: IntArray,
    names: Sequence[str],
    losses: FloatArray,
    column: str,
    ranges: Ranges | None,
    problems: _Problems,
) -> None:
    """Find losses outside the range of their arm, if they are not clipped."""
    if ranges is not None and ranges.outside == "refuse":
        low, high = ranges.of(names)
        outside = (losses < low[arms]) | (losses > high[arms])
        ends = [f"is outside {a:g} to {b:g}" for a, b in zip(low, high, strict=True)]
        problems.add(outside, column, lambda k: ends[arms[k]])


def _codes(rows: pd.DataFrame, kind: Column, name: str, problems: _Problems) -> FloatArray:
    """Return the codes of a column of features; each different value is read once."""
    numbers, different = _different(column(rows, name, EXAMPLE, gaps=True), name)
    codes, reasons = np.full(len(different), np.nan), [""] * len(different)
    for k, value in enumerate(different):
        try:
            codes[k] = kind.code(f"table[{name!r}]", item(value))
        except InvalidInput as error:
            reasons[k] = f"is not {error.expected}"
    problems.add(numbers < 0, name, EMPTY)
    found: FloatArray = _of_each(numbers, codes, np.nan)
    problems.add(np.isnan(found), name, lambda k: reasons[numbers[k]])
    return found


def _different(values: pd.Series[Any], name: str) -> tuple[IntArray, Sequence[Any]]:
    """Return the number of each value, -1 for a missing one, and the different values."""
    import pandas as pd

    try:
        numbers, different = pd.factorize(values)
    except TypeError as error:
        expected, hint = "numbers, texts or dates", "Give one value for each row."
        raise InvalidInput(f"table[{name!r}]", expected, str(error), hint) from None
    return numbers, list(different)


def _of_each(numbers: IntArray, values: Any, missing: Any) -> Any:
    """Return the value of each row; ``missing`` where its number is -1."""
    return np.append(values, missing)[numbers]


def _renumbered(codes: IntArray) -> tuple[IntArray, IntArray]:
    """Return the codes that occur, in the order of their first place, and their new numbers."""
    import pandas as pd

    numbers, used = pd.factorize(codes)
    return used, numbers.astype(np.int64)


def reports(logged: LoggedData, names: tuple[str, ...], ranges: Ranges) -> list[Report]:
    """Return a report of all these arms for each round of logged data."""
    number = {name: i for i, name in enumerate(names)}
    places = np.array([number[name] for name in logged.arms], dtype=np.int64)[logged.arm]
    rounds, values = logged.round, logged.loss
    order, found = np.lexsort((places, rounds)), []
    bounds = ranges.of(names)
    if ranges.outside == GROW:  # by all losses at once
        ranges.learned(
            names, bounds, np.bincount(places, minlength=len(names)), values[np.argsort(places)]
        )
    for rows_of in np.split(order, np.flatnonzero(np.diff(rounds[order])) + 1):
        count = np.bincount(places[rows_of], minlength=len(names))
        learned, clipped = ranges.learned(names, bounds, count, values[rows_of])
        gaps = bool(np.isnan(learned).any())
        found.append(Report(count, count, learned, {}, None, gaps, clipped, whole=not gaps))
    return found
