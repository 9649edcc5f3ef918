"""What rounds cost: the last of them, for the chart and in words."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, NamedTuple

from multiplay._support.formatting import Table
from multiplay.errors import InvalidInput
from multiplay.reports import study_words as words
from multiplay.reports.study import Facts
from multiplay.reports.study_curve import MOST as ROUNDS
from multiplay.storage import Journal
from multiplay.studies import play_history
from multiplay.studies.entry_codec import ENDS

if TYPE_CHECKING:
    import pandas as pd

WINDOW = 3 * ROUNDS  # entries that are read: a play has two, and some more
BACK = 200  # entries in which the last cost is looked for


class Recent(NamedTuple):
    """The last plays, and the number of the last entry when they were read."""

    head: int
    plays: pd.DataFrame


class Costs(NamedTuple):
    """What rounds cost, in words."""

    noun: str
    said: dict[str, str]
    notes: list[str]
    plays: Table
    chart: dict[str, Any]


def recent(journal: Journal) -> Recent:
    """Return the last plays; it takes the same time however many there are."""
    head = journal.head().number
    *_, table = play_history.plays(journal, 2 * WINDOW, max(head + 1 - WINDOW, 0))
    return Recent(head, table.tail(ROUNDS).reset_index(drop=True))


def costs_of(facts: Facts, seen: Recent) -> Costs:
    """Return the costs of the last rounds for a page."""
    noun = words.wording(facts).noun
    notes = words.notes(facts)
    first = int(seen.plays["id"].iloc[0]) if len(seen.plays) else 1
    if first > 1:
        notes.insert(0, f"Only the last {len(seen.plays)} rounds are counted here.")
    return Costs(noun, words.outcomes(facts), notes, words.plays_table(facts), chart(facts, seen))


def chart(facts: Facts, seen: Recent) -> dict[str, Any]:
    """Return what the chart draws: a number for each of the last rounds, None where none is known.

    Attributes of the answer: ``head`` (the last entry), ``noun`` (cost or reward), ``rounds`` (ids
    of plays), ``realised``, ``trend``, ``expected``, and ``best`` (total, low, high) or None.
    """
    stretches = facts.curve.stretches()
    best = None
    if not isinstance(facts.best, InvalidInput):
        best = {name: known(value) for name, value in facts.best.expected._asdict().items()}
    return {
        "head": seen.head,
        "noun": words.wording(facts).noun,
        "rounds": seen.plays["id"].tolist(),
        "realised": [known(one.average.realised) for one in stretches],
        "trend": [known(value) for value in facts.curve.trend().tolist()],
        "expected": [known(one.average.expected) for one in stretches],
        "best": best,
    }


def last_cost(journal: Journal) -> float:
    """Return what the last round cost that was told lately; NaN if there is none."""
    head = journal.head().number
    ends = [
        entry.record.header
        for entry in journal.entries(max(head + 1 - BACK, 0))
        if entry.labels.kind in ENDS
    ]
    return _last_known(header.get("realised") for header in reversed(ends))


def _last_known(values: Iterable[float | None]) -> float:
    return next((value for value in values if value is not None), math.nan)


def known(value: float) -> float | None:
    """Return a number as JSON can write it: None if it is not known."""
    return float(value) if math.isfinite(value) else None
