"""Journal data for pages: entries as text, the last plays, and the chart of their costs."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from multiplay._support.formatting import Table, counted, minute, percent, plan_text, plural
from multiplay._support.hints import Surface
from multiplay._support.serialization import number_or_nan
from multiplay._support.words import Words, money_text
from multiplay.constraints.promise import PROMISES
from multiplay.errors import InvalidInput
from multiplay.learner.facts import rows_of
from multiplay.learner.plays import CANCELLED
from multiplay.reports import study_text
from multiplay.reports.study import StudyFacts
from multiplay.reports.study_curve import MOST as ROUNDS
from multiplay.storage import Entry, Journal
from multiplay.studies import entry_codec, play_history
from multiplay.studies.commands.notes import NOTE
from multiplay.studies.commands.plays import REASON
from multiplay.studies.export import time_of

if TYPE_CHECKING:
    import pandas as pd

FEW = 20  # entries on the page of a study
PAGE = 50  # entries on a page of the journal
PLAIN = Words()
WINDOW = 3 * ROUNDS  # entries that are read: a play has two, and some have more


# ---------------------------------------------------------------- entries


class JournalLine(NamedTuple):
    """An entry as text."""

    number: int
    when: str
    by: str | None
    what: str
    words: str
    play: int | None
    key: str | None


class JournalPage(NamedTuple):
    """Some entries, newest first; ``before`` is where older entries begin, if there are any."""

    rows: list[JournalLine]
    head: int
    before: int | None
    newer: bool


def last_entries(
    journal: Journal, most: int = FEW, before: int | None = None, words: Words = PLAIN
) -> JournalPage:
    """Return the last entries, or the last entries before a number."""
    head = journal.head().number
    end = head + 1 if before is None else min(max(before, 0), head + 1)
    start = max(end - most, 0)
    rows = []
    for entry in journal.entries(start):
        if entry.number >= end:
            break
        rows.append(entry_line(entry, words))
    return JournalPage(rows[::-1], head, start if start > 0 else None, end <= head)


def with_key_names(lines: Iterable[JournalLine], names: Mapping[str, str]) -> list[JournalLine]:
    """Return entries with the names of keys in place of their ids, where these are known."""
    return [line._replace(by=names.get(line.by or "", line.by)) for line in lines]


def entry_line(entry: Entry, words: Words = PLAIN) -> JournalLine:
    """Return an entry as text, in the words of the user."""
    labels, header = entry.labels, entry.record.header
    what, text = (
        ENTRY_TEXTS[labels.kind](header, words) if labels.kind in ENTRY_TEXTS else (labels.kind, "")
    )
    when = minute(time_of(labels.at))
    key = entry_codec.shown_key(labels)
    return JournalLine(entry.number, when, header.get(entry_codec.BY), what, text, labels.play, key)


def _units(header: dict[str, Any], words: Words) -> str:
    seen, missing, clipped = (header[name] for name in ("seen", "missing", "clipped"))
    text = f"{seen} of {words.units(seen + missing)} reported"
    return text + (f", {counted(clipped, 'value')} clipped" if clipped else "")


def _report(header: dict[str, Any], words: Words) -> str:
    realised = header.get("realised")
    total = "" if realised is None else f", total {words.money(realised)}"
    return _units(header, words) + total


def _asked(header: dict[str, Any], words: Words) -> str:
    expected = number_or_nan(header.get("expected"))
    estimate = "" if math.isnan(expected) else f", expected {words.money(expected)}"
    instead = header.get(entry_codec.REPLACES)
    text = "" if instead is None else f", instead of plan {instead}"
    return plan_text(header["plan"], arm=words.arm) + estimate + text


def _restart(header: dict[str, Any], name: str, when: str, words: Words) -> str:
    arm = header["arm"] or f"all {plural(words.arm)}"
    left = words.units(header["units"])
    return f"{arm}, reports {when} {words.round} {header[name]}; {left} count"


def _promise(plain: dict[str, Any]) -> str:
    kind = PROMISES[plain["kind"]].kind
    return f"{plain['name']}, {kind} {money_text(plain['limit'])}"


def _constraint(plain: dict[str, Any], words: Words) -> str:
    if plain["type"] == "SwitchingCost":
        return f"switching cost, {words.money(plain['cost'])}"
    return f"baseline, {percent(plain['allowance'])} more"


ENTRY_TEXTS: dict[str, Any] = {
    entry_codec.CREATE: lambda *_: ("created", "the study"),
    entry_codec.IMPORT: lambda *_: ("created", "from a saved learner"),
    entry_codec.ASK: lambda header, words: ("asked", _asked(header, words)),
    entry_codec.TELL: lambda header, words: ("told", _report(header, words)),
    entry_codec.PART: lambda header, words: ("told in part", _units(header, words)),
    entry_codec.CLOSE: lambda header, words: ("closed", _report(header, words)),
    entry_codec.CANCEL: lambda header, words: (
        "cancelled",
        header.get(REASON, "without learning from it"),
    ),
    entry_codec.CORRECT: lambda header, words: ("corrected", _report(header, words)),
    entry_codec.RETRACT: lambda *_: ("retracted", "its report no longer counts"),
    entry_codec.EXPIRE: lambda header, words: ("expired", counted(len(header["plays"]), "plan")),
    entry_codec.REQUESTED: lambda header, words: (
        "repeated",
        f"{header['verb']}, with the same result",
    ),
    entry_codec.WORDS: lambda *_: ("changed", "the words of the study"),
    entry_codec.LEARN: lambda header, words: (
        "learned from an external plan",
        _units(header, words),
    ),
    entry_codec.TABLE: lambda header, words: ("learned from a table", _units(header, words)),
    entry_codec.FORGET: lambda header, words: (
        "forgot",
        _restart(header, "before", "earlier than", words),
    ),
    entry_codec.KEEP: lambda header, words: ("kept", _restart(header, "since", "since", words)),
    entry_codec.PROMISE: lambda header, words: ("promised", _promise(header[entry_codec.PROMISE])),
    entry_codec.CONSTRAINT: lambda header, words: (
        "constrained",
        _constraint(header[entry_codec.CONSTRAINT], words),
    ),
    entry_codec.RELEASE: lambda header, words: ("ended", header["name"]),
    NOTE: lambda header, words: ("noted", header["text"]),
}


# ---------------------------------------------------------------- costs of the last plays


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


class CostSummary(NamedTuple):
    """Costs of the last rounds as text and as a table."""

    noun: str
    outcomes: dict[str, str]
    notes: list[str]
    plays: Table


def recent_plays(journal: Journal) -> RecentPlays:
    """Return the last plays, in a time that does not depend on how many there are."""
    head = journal.head().number
    start = max(head + 1 - WINDOW, 0)
    pairs = [*play_history.ended_plays(journal, start)][-ROUNDS:]
    explored = [entry_codec.explored(asked.record) for asked, _ in pairs]
    external = play_history.external_days(journal, start).tail(ROUNDS)
    asked = [entry for entry, end in pairs if play_history.status_of(end) != CANCELLED]
    return RecentPlays(head, play_history.table_of(pairs), explored, external, asked)


def cost_summary(facts: StudyFacts, recent: RecentPlays) -> CostSummary:
    """Return the costs of the last rounds for a page."""
    noun = study_text.wording(facts).noun
    notes = study_text.notes(facts)
    first = int(recent.plays["id"].iloc[0]) if len(recent.plays) else 1
    if first > 1:
        notes.insert(0, f"These numbers cover the last {len(recent.plays)} rounds.")
    outcomes = study_text.outcomes(facts, Surface.PAGE)
    table = study_text.last_plays_table(facts)
    return CostSummary(noun, outcomes, notes, table)


class ChartPoint(NamedTuple):
    """A day in the chart: its time, and the columns of ``chart_data``."""

    when: float
    rounds: int | None
    days: str
    realised: float | None = None
    external: float | None = None
    trend: float | None = None
    expected: float | None = None
    explored: bool | None = None


def chart_data(facts: StudyFacts, recent: RecentPlays, words: Words) -> dict[str, Any]:
    """Return the data of the chart: a value for each of the last days, None where unknown.

    Keys: ``head`` (the last entry), ``noun`` (cost or reward), ``words``, ``best`` (total, low,
    high) or None, and columns in the order of time: ``rounds`` (ids of plays; None for external
    plans and imported days), ``days`` (keys or dates), ``realised``, ``external``, ``trend``,
    ``expected``, ``explored``.
    """
    best = None
    if not isinstance(facts.best, InvalidInput):
        best = {
            name: finite_or_none(value) for name, value in facts.best.expected._asdict().items()
        }
    points = [
        ChartPoint(
            _seconds(play.asked),
            play.id,
            play.key or _day(play.asked),
            realised=finite_or_none(one.average.realised),
            trend=finite_or_none(level),
            expected=finite_or_none(one.average.expected),
            explored=explored,
        )
        for play, one, level, explored in zip(
            rows_of(recent.plays),
            facts.curve.stretches(),
            facts.curve.trend().tolist(),
            recent.explored,
            strict=True,
        )
    ]
    points += [
        ChartPoint(
            _seconds(one.asked),
            None,
            one.key or _day(one.asked),
            external=finite_or_none(one.realised),
        )
        for one in rows_of(recent.external)
    ]
    ordered = sorted(points, key=lambda point: point.when)[-ROUNDS:]
    return {
        "head": recent.head,
        "noun": study_text.wording(facts).noun,
        "words": words._asdict(),
        "best": best,
        **{name: [getattr(one, name) for one in ordered] for name in ChartPoint._fields[1:]},
    }


def _seconds(when: Any) -> float:
    """Return a time in seconds; a day whose time is not known is before all others."""
    return -math.inf if when != when else float(when.timestamp())


def _day(when: Any) -> str:
    return "" if when != when else f"{when:%Y-%m-%d}"


def finite_or_none(value: float) -> float | None:
    """Return a number that JSON can represent, and None for NaN and infinity."""
    return float(value) if math.isfinite(value) else None
