"""The journal in words: what was done, when, and by whom."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from multiplay._support.formatting import amount, counted, plan
from multiplay.reports.study_words import moment
from multiplay.storage import Entry, Journal
from multiplay.studies import entry_codec
from multiplay.studies.entry_codec import from_number
from multiplay.studies.lines import time_of

FEW = 20  # on the page of a study
PAGE = 50  # on a page of the journal


class Line(NamedTuple):
    """An entry in words."""

    number: int
    when: str
    by: str | None
    what: str
    words: str
    play: int | None
    key: str | None


class Lines(NamedTuple):
    """Some entries, newest first; ``before`` is where older ones begin, if there are any."""

    rows: list[Line]
    head: int
    before: int | None
    newer: bool


def last(journal: Journal, most: int = FEW, before: int | None = None) -> Lines:
    """Return the last entries, or the last before a number."""
    head = journal.head().number
    end = head + 1 if before is None else min(max(before, 0), head + 1)
    start = max(end - most, 0)
    rows = []
    for entry in journal.entries(start):
        if entry.number >= end:
            break
        rows.append(line_of(entry))
    return Lines(rows[::-1], head, start if start > 0 else None, end <= head)


def named(lines: Iterable[Line], names: Mapping[str, str]) -> list[Line]:
    """Return entries with the names of keys, where their ids are known."""
    return [line._replace(by=names.get(line.by or "", line.by)) for line in lines]


def line_of(entry: Entry) -> Line:
    """Return an entry in words."""
    labels, header = entry.labels, entry.record.header
    what, words = SAID[labels.kind](header) if labels.kind in SAID else (labels.kind, "")
    when = moment(time_of(labels.at))
    key = entry_codec.shown_key(labels)
    return Line(entry.number, when, header.get(entry_codec.BY), what, words, labels.play, key)


def _units(header: dict[str, Any]) -> str:
    seen, missing, clipped = (header[name] for name in ("seen", "missing", "clipped"))
    text = f"{seen} of {counted(seen + missing, 'unit')} reported"
    return text + (f", {counted(clipped, 'number')} clipped" if clipped else "")


def _told(header: dict[str, Any]) -> str:
    realised = header.get("realised")
    total = "" if realised is None else f", {amount(realised)} in all"
    return _units(header) + total


def _asked(header: dict[str, Any]) -> str:
    expected = from_number(header.get("expected"))
    should = "" if expected != expected else f", expected {amount(expected)}"
    return plan(header["plan"]) + should


SAID: dict[str, Any] = {
    entry_codec.CREATE: lambda header: ("began", "the study"),
    entry_codec.IMPORT: lambda header: ("began", "from a saved learner"),
    entry_codec.ASK: lambda header: ("asked", _asked(header)),
    entry_codec.TELL: lambda header: ("told", _told(header)),
    entry_codec.PART: lambda header: ("told in part", _units(header)),
    entry_codec.CLOSE: lambda header: ("closed", _told(header)),
    entry_codec.CANCEL: lambda header: ("cancelled", "nothing is learned from it"),
    entry_codec.EXPIRE: lambda header: ("ended old plays", counted(len(header["plays"]), "play")),
    entry_codec.LEARN: lambda header: ("learned from a plan", _units(header)),
    entry_codec.TABLE: lambda header: ("learned from a table", _units(header)),
}
