"""What the pages show of studies: plain data for templates, in the user's unit."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import NamedTuple

from multiplay._support.formatting import (
    UNKNOWN,
    Table,
    amount,
    brief_policy,
    chosen,
    counted,
    plan,
)
from multiplay.actions import ActionSet
from multiplay.actions.transport import UNMET
from multiplay.learner.plays import PendingPlay
from multiplay.reports import study_words as words
from multiplay.reports.study import Facts, facts
from multiplay.service.pages import journal_lines
from multiplay.service.pages.arms import Arms, shown
from multiplay.service.pages.costs import Costs, Recent, costs_of, last_cost
from multiplay.service.pages.plans import Planned, described, planned, what_it_is
from multiplay.storage import Entry, Journal
from multiplay.studies import Study, entry_codec, play_history
from multiplay.studies.lines import time_of

MOST_PENDING = 50  # rows
MOST_ALARMS = 20
SHOWN_PLAYS = 20  # below the chart


class Card(NamedTuple):
    """A study in the list of all; ``problem`` says why it cannot be read, if so."""

    name: str
    kind: str = ""
    policy: str = ""
    unit: str = ""
    asked: int = 0
    pending: int = 0
    cost: str = UNKNOWN
    problem: str = ""


class Waits(NamedTuple):
    """A play that waits."""

    id: int
    key: str | None
    asked: str
    age: str
    units: int
    plan: str
    expected: str
    told: str


class Queue(NamedTuple):
    """The plays that wait, oldest first, and how many more there are."""

    rows: list[Waits]
    left_out: int


class Overview(NamedTuple):
    """All that the page of a study says of it."""

    name: str
    kind: str
    policy: str
    unit: str
    noun: str
    rewards: bool
    asked: int
    waits: int
    clipped: int
    head: int
    plan: Planned | None
    arms: Arms
    costs: Costs
    alarms: Table
    no_alarm: str
    queue: list[PendingPlay]
    actions: ActionSet
    by_round: bool


class PlayPage(NamedTuple):
    """A play and all that was written of it; ``fields`` are the arms whose units can report."""

    id: int
    key: str | None
    status: str
    asked: str
    expected: str
    realised: str
    plan: Planned
    units: int
    told: str
    lines: list[journal_lines.Line]
    losses: list[tuple[str, str]]
    fields: dict[str, int]


def card(study: Study) -> Card:
    """Return a study for the list of all, without its last cost."""
    kind, policy = what_it_is(study.actions), brief_policy(study.policy)
    return Card(study.name, kind, policy, study.unit, study.asked, study.open_plays)


def with_cost(one: Card, journal: Journal) -> Card:
    """Return it with what the last round cost."""
    return one._replace(cost=amount(last_cost(journal)))


def overview(
    study: Study, seen: Recent, now: datetime, wanted: str = "", whole: bool = False
) -> Overview:
    """Collect what the page of a study says; it takes as long for many plays as for a few."""
    found = facts(study, SHOWN_PLAYS, now=now, plays=[seen.plays])
    pending = study.pending()
    return Overview(
        name=study.name,
        kind=what_it_is(study.actions),
        policy=found.policy,
        unit=found.unit,
        noun=words.wording(found).noun,
        rewards=found.rewards,
        asked=study.asked,
        waits=len(pending),
        clipped=found.clipped,
        head=seen.head,
        plan=planned(study, pending),
        arms=shown(found.arms, wanted, whole),
        costs=costs_of(found, seen),
        alarms=words.alarms_table(found, MOST_ALARMS),
        no_alarm=words.no_alarm(found),
        queue=_with_outlook(pending),
        actions=study.actions,
        by_round=study.policy.learns_from == "round",
    )


def costs(study: Study, seen: Recent, now: datetime) -> Costs:
    """Return what the last rounds cost."""
    return costs_of(recent_facts(study, seen, now), seen)


def recent_facts(study: Study, seen: Recent, now: datetime) -> Facts:
    """Return the facts of the last plays."""
    return facts(study, SHOWN_PLAYS, now=now, plays=[seen.plays])


def queue(study: Study) -> list[PendingPlay]:
    """Return the plays that wait, oldest first; what those that are shown should cost is known."""
    return _with_outlook(study.pending())


def _with_outlook(pending: list[PendingPlay]) -> list[PendingPlay]:
    for play in pending[:MOST_PENDING]:
        _ = play.expected  # kept in it, while the study may be used
    return pending


def waits(journal: Journal, plays: list[PendingPlay], now: datetime) -> Queue:
    """Return the plays that wait for a page, with when they were asked and what was told."""
    rows = []
    for play in plays[:MOST_PENDING]:
        about = journal.of_play(play.id)
        if about and _end(about) is None:  # else it was told meanwhile
            rows.append(_waits(play, about, now))
    return Queue(rows, len(plays) - min(len(plays), MOST_PENDING))


def _waits(play: PendingPlay, about: list[Entry], now: datetime) -> Waits:
    asked = time_of(about[0].labels.at)
    ago = f"{words.duration(max((now - asked).total_seconds(), 0.0))} ago"
    return Waits(
        id=play.id,
        key=play.key,
        asked=words.moment(asked),
        age=ago,
        units=int(play.action.sum()),
        plan=plan(play.plan),
        expected=amount(play.expected.total),
        told=told_so_far(about),
    )


def told_so_far(about: Iterable[Entry]) -> str:
    """Say how many units of a play have reported; nothing, if none has."""
    parts = [entry.record.header for entry in about if entry.labels.kind == entry_codec.PART]
    if not parts:
        return ""
    seen, missing = parts[-1]["seen"], parts[-1]["missing"]
    return f"{seen} of {counted(seen + missing, 'unit')} so far"


def play_page(study: Study, about: list[Entry]) -> PlayPage:
    """Return a play and all that was written of it."""
    asked, end = about[0], _end(about)
    id, header = asked.labels.play, asked.record.header
    assert id is not None
    sense = study.actions.sense
    pending = next((play for play in study.pending() if play.id == id), None)
    if pending is not None:
        plan = described(pending.plan, pending.expected, sense, pending)
    else:
        plan = described(_whole_plan(asked, study.actions), None, sense)
    came = {} if end is None else end.record.header
    expected, realised = (
        amount(entry_codec.from_number(found))
        for found in (header.get("expected"), came.get("realised"))
    )
    return PlayPage(
        id=id,
        key=entry_codec.shown_key(asked.labels),
        status=play_history.status_of(end),
        asked=words.moment(time_of(asked.labels.at)),
        expected=expected,
        realised=realised,
        plan=plan,
        units=header["units"],
        told=told_so_far(about) if end is None else "",
        lines=[journal_lines.line_of(entry) for entry in about],
        losses=_losses(about),
        fields=dict(header["plan"]),
    )


def _whole_plan(asked: Entry, usual: ActionSet) -> dict[str, int]:
    """Return the plan of a play that is over, with the arms that it did not use."""
    header = asked.record.header
    if header.get("imported"):
        return {arm: header["plan"].get(arm, 0) for arm in header["arms"]}
    day = entry_codec.Day.read(asked.record).given(usual) or usual
    action = entry_codec.action_of_plan(header["plan"], day.names)
    return dict(zip(day.names, action.tolist(), strict=True)) | day.unmet(action)


def _end(about: list[Entry]) -> Entry | None:
    ends = [entry for entry in about if entry.labels.kind in entry_codec.ENDS]
    return ends[-1] if ends else None


def _losses(about: list[Entry]) -> list[tuple[str, str]]:
    """Return what was told of a play, arm by arm, as it could be typed again."""
    told: dict[str, list[str]] = {}
    for entry in about:
        losses = entry.record.header.get("losses")
        if losses is None or isinstance(losses, float | int):
            told |= {} if losses is None else {"all units": [amount(losses)]}
            continue
        for arm, units in losses.items():
            each = units if isinstance(units, list) else [units]
            texts = [UNKNOWN if one is None else amount(one) for one in each]
            told.setdefault(arm, []).extend(texts)
    return [(arm, " ".join(texts)) for arm, texts in told.items()]


def played(plan: Mapping[str, int]) -> dict[str, int]:
    """Return the arms of a plan whose units can report: not those that cannot be served."""
    return {arm: k for arm, k in chosen(dict(plan)).items() if not arm.startswith(UNMET)}
