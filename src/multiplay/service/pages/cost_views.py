"""The history of a study as data: the costs of the last days, all together or of one arm."""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import UTC, date, datetime
from itertools import pairwise, takewhile
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from multiplay._support.formatting import Table
from multiplay._support.hints import Surface
from multiplay.errors import InvalidInput
from multiplay.learner.facts import rows_of
from multiplay.learner.plays import CANCELLED
from multiplay.reports import study_text
from multiplay.reports.study import StudyFacts, study_facts
from multiplay.reports.study_curve import MOST as ROUNDS
from multiplay.reports.study_curve import Curve
from multiplay.service.pages.drawings import ChartDay, CostChart, cost_chart
from multiplay.storage import Entry, Journal
from multiplay.studies import Study, entry_codec, play_history

if TYPE_CHECKING:
    import pandas as pd

WINDOW = 3 * ROUNDS  # entries that are read: a play has two, and some have more
SHOWN_PLAYS = 20  # below the chart
CHUNK = 100  # plays that are read together
MOST_KNOWN = 24  # studies whose times of plans are cached
MOST_ARMS = 200  # names in a list to choose from


_times: dict[bytes, list[tuple[int, float, str]]] = {}  # by the digest of the last entry


class Period(NamedTuple):
    """The days from the first to the last, both included; None for no end."""

    first: date | None = None
    last: date | None = None

    def has(self, when: float) -> bool:
        """Return whether a time in seconds is in the period."""
        if self == ALWAYS:
            return True
        day = datetime.fromtimestamp(when, UTC).date() if math.isfinite(when) else date.min
        return (self.first or date.min) <= day <= (self.last or date.max)

    def entries(self, journal: Journal, most: int | None = None) -> tuple[int, int]:
        """Return the first and the last entry that has a plan of these days; 0, -1 without one.

        ``most`` is how many of the last plans of the study are needed, if not all. Plans need not
        be in order of time: then all are read. Their times are cached until the study changes.
        """
        digest = journal.head().digest
        if digest not in _times:
            kinds = (entry_codec.ASK, entry_codec.LEARN)
            found = (entry for kind in kinds for entry, _ in journal.pairs(kind, ()))
            _times[digest] = sorted((one.number, one.labels.at, one.labels.kind) for one in found)
            while len(_times) > MOST_KNOWN:
                _times.pop(next(iter(_times)), None)
        known = _times[digest]
        numbers = [number for number, at, _ in known if self.has(at)]
        if not numbers:
            return 0, -1
        if most is not None and all(one[1] <= two[1] for one, two in pairwise(known)):
            own = [number for number, at, kind in known if kind == entry_codec.ASK and self.has(at)]
            return own[-most:][0] if own else numbers[0], numbers[-1]
        return numbers[0], numbers[-1]


ALWAYS = Period()


class RecentPlays(NamedTuple):
    """The last plays, and the number of the last entry when they were read.

    Attributes
    ----------
    head : int
        The number of the last entry.
    plays : DataFrame
        The last plays, a row for each.
    explored : list
        Whether each play was expected to be worse than the best plan; None if not known.
    external : DataFrame
        The last external plans and imported days.
    asked : list of Entry
        The entries of the last plays that were not cancelled.
    """

    head: int
    plays: pd.DataFrame
    explored: list[bool | None]
    external: pd.DataFrame
    asked: list[Entry]


class ArmDays(NamedTuple):
    """The days of one arm, each with the mean cost of its units; no name for no arm."""

    name: str = ""
    days: Sequence[ChartDay] = ()


class HistoryTab(NamedTuple):
    """Costs of the last rounds as text, as a table and as a chart; ``names`` are all arms."""

    outcomes: dict[str, str]
    notes: list[str]
    plays: Table
    chart: CostChart | None
    names: tuple[str, ...]


def recent_plays(journal: Journal, period: Period = ALWAYS) -> RecentPlays:
    """Return the last plays; of all times, in a time that does not depend on how many there are."""
    head = journal.head().number
    start = max(head + 1 - WINDOW, 0) if period == ALWAYS else 0
    first, last = (start, head) if period == ALWAYS else period.entries(journal, ROUNDS)
    pairs = takewhile(lambda pair: pair[0].number <= last, play_history.ended_plays(journal, first))
    kept = [pair for pair in pairs if period.has(pair[0].labels.at)][-ROUNDS:]
    explored = [entry_codec.explored(asked.record) for asked, _ in kept]
    days = play_history.external_days(journal, start)
    external = days[[period.has(_seconds(day)) for day in days["asked"]]].tail(ROUNDS)
    asked = [entry for entry, end in kept if play_history.status_of(end) != CANCELLED]
    return RecentPlays(head, play_history.table_of(kept), explored, external, asked)


def recent_facts(study: Study, recent: RecentPlays, now: datetime) -> StudyFacts:
    """Return the facts of the last plays."""
    return study_facts(study, SHOWN_PLAYS, now=now, plays=[recent.plays])


def history_tab(study: Study, recent: RecentPlays, now: datetime, arm: ArmDays) -> HistoryTab:
    """Return the costs of the last plays, or those of the units of one arm."""
    found = recent_facts(study, recent, now)
    days: Sequence[ChartDay] = arm.days if arm.name else chart_days(found, recent)
    best: tuple[float, ...] | None = None
    if arm.name:
        rows = found.arms[found.arms["arm"] == arm.name][["mean", "low", "high"]].to_numpy()
        best = tuple(rows[0].tolist()) if len(rows) else None
    elif not isinstance(found.best, InvalidInput):
        best = tuple(found.best.expected)
    notes = study_text.notes(found)
    first = int(recent.plays["id"].iloc[0]) if len(recent.plays) else 1
    if first > 1:
        cover = found.words.rounds(len(recent.plays))
        notes.insert(0, f"These numbers are those of {cover}.")
    return HistoryTab(
        outcomes=study_text.outcomes(found, Surface.PAGE),
        notes=notes,
        plays=study_text.last_plays_table(found, Surface.PAGE),
        chart=cost_chart(days, study.words, best),
        names=study.known_arms[:MOST_ARMS],
    )


def chart_days(facts: StudyFacts, recent: RecentPlays) -> list[ChartDay]:
    """Return the last days in order of time, own plans, external plans and imported days."""
    own = [
        ChartDay(
            _seconds(play.asked),
            play.key or f"plan {play.id}",
            play.id,
            one.average.realised,
            level,
            one.average.expected,
            bool(explored),
        )
        for play, one, level, explored in zip(
            rows_of(recent.plays),
            facts.curve.stretches(),
            facts.curve.trend().tolist(),
            recent.explored,
            strict=True,
        )
    ]
    external = [
        ChartDay(_seconds(one.asked), one.key or _day(one.asked), None, one.realised)
        for one in rows_of(recent.external)
    ]
    return sorted(own + external, key=lambda day: day.when)[-ROUNDS:]


def arm_days(journal: Journal, name: str, period: Period = ALWAYS) -> ArmDays:
    """Return the mean cost of the units of an arm on each of the last days."""
    head = journal.head().number
    first, start, end = 0, max(head + 1 - WINDOW, 0), head
    if period != ALWAYS:
        first, _ = period.entries(journal)
        start, end = period.entries(journal, WINDOW // 2)
    days = _arm_days(journal, name, start, end)
    if period != ALWAYS and first < start and len(days) < ROUNDS:
        days += _arm_days(journal, name, first, start - 1)
    for when, seen, total in play_history.arm_of_tables(journal, name):
        day = datetime.fromtimestamp(when, UTC) if math.isfinite(when) else math.nan
        days.append(ChartDay(_seconds(day), _day(day), None, total / seen))
    kept = sorted((one for one in days if period.has(one.when)), key=lambda day: day.when)[-ROUNDS:]
    curve = Curve()
    costs = np.array([one.cost for one in kept])
    curve.add(costs, np.full(len(costs), np.nan))
    levels = curve.trend().tolist() if kept else []
    return ArmDays(name, [one._replace(trend=x) for one, x in zip(kept, levels, strict=True)])


def _arm_days(journal: Journal, name: str, start: int, end: int) -> list[ChartDay]:
    """Return the days of the plans from one entry to another that have units of an arm."""
    days = list[ChartDay]()
    for _, played in play_history.played_plans(journal, start, CHUNK, name, end):
        told = [(seen, total) for arm, _, seen, total in played.outcomes() if arm == name]
        for seen, total in told:
            if seen and total is not None:
                when, play = played.row["asked"], played.row["id"] or None
                day = played.row["key"] or (f"plan {play}" if play else _day(when))
                days.append(ChartDay(_seconds(when), day, play, total / seen))
    return days


def _seconds(when: Any) -> float:
    """Return a time in seconds; a day whose time is not known is before all others."""
    return -math.inf if when is None or when != when else float(when.timestamp())


def _day(when: Any) -> str:
    return "" if when is None or when != when else f"{when:%Y-%m-%d}"
