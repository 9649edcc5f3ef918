"""Imports: the tables of logged data of a journal, their names, and the rows known from them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from itertools import chain, count
from math import isfinite, nan
from typing import NamedTuple

import numpy as np

from multiplay._support.dates import day_names
from multiplay._support.formatting import counted
from multiplay._support.words import Words
from multiplay.learner.known_rows import KnownRows, known_rows
from multiplay.learner.logged_data import LoggedData
from multiplay.learner.ranges import Ranges
from multiplay.learner.table_changes import TableChanges
from multiplay.storage import Entry
from multiplay.storage.base import JournalEntries
from multiplay.studies import entry_codec, play_history
from multiplay.studies.entry_codec import ASK, LEARN, TABLE
from multiplay.studies.play_history import LossesByArm

DAY = 86_400.0  # seconds
AT_ONCE = 64  # keys that are looked up in one query
MOST_CHANGES = 100  # studies whose changes within tables are kept in memory
_changes: dict[tuple[bytes | float, ...], TableChanges] = {}  # by digests of tables, and the range
CENT = 0.005  # a total of n units may differ from the sum of their rows by n times this


class Import(NamedTuple):
    """A table of logged data that was learned.

    Attributes
    ----------
    name : str
        Its name, for ``retract``: that of its file, or its key.
    at : datetime or None
        When it was learned, if that is known.
    units, rounds : int
        The numbers of its units that were new, and of their rounds.
    known, skipped : int
        The numbers of rows that were learned before, and that were left out.
    total : float
        The sum of the losses that were new.
    first, last : datetime or None
        The first and the last date; None if the rounds have no dates.
    retracted : bool
        Whether it was retracted: it does not count any more.

    Examples
    --------
    >>> from multiplay import Budget, Learner
    >>> learner = Learner(Budget(3, [2, 2], names=["air", "sea"]), loss_range=(0, 100))
    >>> bills = {"arm": ["air", "sea"], "round": ["2026-03-01"] * 2, "loss": [80, 20]}
    >>> told = learner.learn_table(bills, source="march.csv")
    >>> print(learner.imports()[0])
    march.csv: 2 units of 1 day, 2026-03-01 to 2026-03-01, total 100
    """

    name: str
    at: datetime | None
    units: int
    rounds: int
    known: int
    skipped: int
    total: float
    first: datetime | None
    last: datetime | None
    retracted: bool

    def __str__(self) -> str:
        return self.text(Words())

    def text(self, words: Words) -> str:
        """Return the import as a line of text, in the words of the user."""
        return f"{self.name}: {self.content(words)}"

    def content(self, words: Words) -> str:
        """Return the text without the name."""
        text = f"{words.units(self.units)} of {words.rounds(self.rounds)}"
        if self.first is not None and self.last is not None:
            text += f", {self.first:%Y-%m-%d} to {self.last:%Y-%m-%d}"
        text += f", total {words.money(self.total)}"
        text += f", {counted(self.known, 'row')} known before" if self.known else ""
        text += f", {counted(self.skipped, 'row')} skipped" if self.skipped else ""
        return text + (", retracted" if self.retracted else "")


def imports(journal: JournalEntries) -> list[Import]:
    """Return all tables of logged data of a journal, in order."""
    return [_import(journal, entry, kept) for entry, kept in _tables(journal)]


def _import(journal: JournalEntries, entry: Entry, kept: bool) -> Import:
    header, lines = entry.record.header, play_history.lines_of_table(journal, entry)
    times = [line[0] for line in lines if line[0] == line[0]]
    ends = min(times, default=nan), max(times, default=nan)
    first, last, at = map(_time, (*ends, entry.labels.at))
    return Import(
        name_of(entry),
        at,
        header["seen"] + header["missing"],
        len(lines),
        header.get("known", 0),
        header.get("skipped", 0),
        float(sum(line[5] for line in lines if line[5] == line[5])),
        first,
        last,
        not kept,
    )


def _time(seconds: float) -> datetime | None:
    return datetime.fromtimestamp(seconds, UTC) if isfinite(seconds) else None


def name_of(entry: Entry) -> str:
    """Return the name of a table of logged data."""
    given = entry.record.header.get("source") or entry_codec.shown_key(entry.labels)
    return given or f"table {entry.number}"


def free_name(journal: JournalEntries, name: str) -> str:
    """Return a name that no table has which counts: a second march.csv is march.csv (2)."""
    used = {name_of(entry) for entry, kept in _tables(journal) if kept}
    names = chain([name], (f"{name} ({k})" for k in count(2)))
    return next(one for one in names if one not in used)


def table_named(journal: JournalEntries, name: str) -> Entry | None:
    """Return the table with a name, of several the last one; None if there is none."""
    named = [entry for entry, _ in _tables(journal) if name_of(entry) == name]
    return named[-1] if named else None


def _tables(journal: JournalEntries) -> Iterator[tuple[Entry, bool]]:
    """Yield the entries of all tables without their arrays, and whether each counts."""
    changed = play_history.corrected_plans(journal)
    for entry, _ in journal.pairs(TABLE, ()):
        yield entry, entry.number not in changed


def tables_that_count(journal: JournalEntries) -> list[LoggedData]:
    """Return all tables of a journal that were not retracted, with their units."""
    kept = [entry for entry, counts in _tables(journal) if counts]
    records = [next(journal.entries(entry.number)).record for entry in kept]
    return [entry_codec.logged_data_of(record) for record in records]


def changes_in_tables(journal: JournalEntries, ranges: Ranges) -> TableChanges | None:
    """Return the changes within the tables that count, from a cache; None without tables."""
    kept = [entry for entry, counts in _tables(journal) if counts]
    if not kept:
        return None
    known = *(entry.digest for entry in kept), ranges.origin, ranges.span
    if known not in _changes:
        _changes[known] = TableChanges.of(tables_that_count(journal), ranges)
        while len(_changes) > MOST_CHANGES:
            _changes.pop(next(iter(_changes)), None)
    return _changes[known]


def rows_known(journal: JournalEntries, given: LoggedData) -> KnownRows:
    """Return which units of logged data are new: not in another table, and not told for a day."""
    before = list[LoggedData]()
    for entry in [entry for entry, kept in _tables(journal) if kept]:
        record = next(journal.entries(entry.number)).record
        table = entry_codec.logged_data_of(record)
        of_older = not len(table.times) and not len(table.labels)
        if of_older and entry_codec.same_logged_data(record, given):
            return KnownRows(np.zeros(len(given.arm), dtype=bool), 0)
        before.append(table)
    return known_rows(given, [*before, *_told(journal, given)])


def _told(journal: JournalEntries, given: LoggedData) -> Iterator[LoggedData]:
    """Yield the units of plans whose key is a day of logged data, one for each plan."""
    days = {f"{datetime.fromtimestamp(t, UTC):%Y-%m-%d}": t for t in given.times if t % DAY == 0}
    keys = {name: day for day in days for name in day_names(day)}
    wanted = [(kind, name) for name in keys for kind in (ASK, LEARN)]
    batches = (wanted[k : k + AT_ONCE] for k in range(0, len(wanted), AT_ONCE))
    found = [entry.labels for batch in batches for entry in journal.find_all(batch)]
    for day in {keys[labels.key or ""]: None for labels in found if labels.kind == ASK}:
        played = play_history.play_with_plan(journal, play_history.about(journal, day))
        yield _units(given, played.plan, played.losses, days[day])
    plans = {keys[labels.key or ""]: None for labels in found if labels.kind == LEARN}
    changed = play_history.corrected_plans(journal) if plans else {}
    for day in plans:
        entry = play_history.keyed(journal, [LEARN], day)
        assert entry is not None
        last = changed.get(entry.number, entry)
        plan, losses = entry.record.header["plan"] or {}, last.record.header.get("losses")
        yield _units(given, plan, play_history.joined_losses(plan, [losses]), days[day])


def _units(
    given: LoggedData, plan: Mapping[str, int], losses: LossesByArm, when: float
) -> LoggedData:
    """Return the units of a plan with their losses, as logged data.

    The units of an arm that were told as a total are the rows that add up to it.
    """
    arms, rows = list[int](), list[float]()
    for k, (arm, told) in enumerate(losses.items()):
        if isinstance(told, list):
            values = [np.nan if loss is None else loss for loss in told]
        else:
            own = np.array([name == arm for name in given.arms], dtype=bool)[given.arm]
            values = given.loss[own & (given.times[given.round] == when)].tolist()
            units = plan.get(arm, 1)
            if len(values) != units or not abs(sum(values) - told) <= CENT * units:
                values = [told] if units == 1 else []
        arms += [k] * len(values)
        rows += values
    places, rounds = np.array(arms, dtype=np.int64), np.zeros(len(rows), dtype=np.int64)
    return LoggedData([*losses], places, rounds, np.array(rows), times=np.array([when]))
