"""Journal data for pages: entries as text."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from multiplay._support.formatting import counted, minute, percent, plan_text, plural
from multiplay._support.serialization import number_or_nan
from multiplay._support.words import Words, money_text
from multiplay.constraints.promise import PROMISES
from multiplay.storage import Entry, Journal
from multiplay.studies import entry_codec
from multiplay.studies.commands.notes import NOTE
from multiplay.studies.commands.plays import REASON
from multiplay.studies.export import time_of

PAGE = 15  # entries
PLAIN = Words()


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
    journal: Journal, most: int = PAGE, before: int | None = None, words: Words = PLAIN
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
    seen, missing, outside = (header[name] for name in ("seen", "missing", "clipped"))
    text = f"{seen} of {words.units(seen + missing)}"
    return text + (f", {counted(outside, 'value')} outside the range" if outside else "")


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
    entry_codec.ASK: lambda header, words: ("made", _asked(header, words)),
    entry_codec.TELL: lambda header, words: ("reported", _report(header, words)),
    entry_codec.PART: lambda header, words: ("reported in part", _units(header, words)),
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
    entry_codec.COMPARE: lambda *_: ("changed", "the rule that plans are compared with"),
    entry_codec.RANGE: lambda *_: ("changed", "the range of costs"),
    entry_codec.DESCRIBE: lambda header, words: (
        "changed",
        f"features of {words.arms(len(header['arms']))}",
    ),
    entry_codec.LEARN: lambda header, words: (
        "own plan",
        _units(header, words),
    ),
    entry_codec.TABLE: lambda header, words: (
        "imported",
        f"{header.get('source') or 'a table'}, {_units(header, words)}",
    ),
    entry_codec.FORGET: lambda header, words: (
        "forgot",
        _restart(header, "before", "earlier than", words),
    ),
    entry_codec.KEEP: lambda header, words: ("unforgot", _restart(header, "since", "since", words)),
    entry_codec.PROMISE: lambda header, words: ("promised", _promise(header[entry_codec.PROMISE])),
    entry_codec.CONSTRAINT: lambda header, words: (
        "added",
        _constraint(header[entry_codec.CONSTRAINT], words),
    ),
    entry_codec.RELEASE: lambda header, words: ("ended", header["name"]),
    NOTE: lambda header, words: ("noted", header["text"]),
}
