"""Study data for templates: the page of a study, and the page of a play."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from multiplay._support.formatting import (
    Table,
    chosen,
    minute,
)
from multiplay._support.serialization import number_or_nan
from multiplay._support.words import Words, money_text
from multiplay.actions import ActionSet
from multiplay.actions.transport import UNMET
from multiplay.errors import InvalidInput
from multiplay.learner import facts as learner_facts
from multiplay.learner.plays import PENDING, Estimate, PendingPlay
from multiplay.reports import study_text
from multiplay.reports.study import StudyFacts, study_facts
from multiplay.service.pages.bills import cost_text, field_of
from multiplay.service.pages.constraints import PromiseView, promise_views, switching_text
from multiplay.service.pages.features import DayField, Drivers, day_fields, drivers
from multiplay.service.pages.forms import as_typed
from multiplay.service.pages.home import MOST_CHANGES, changes_text
from multiplay.service.pages.journal_views import (
    CostSummary,
    JournalLine,
    RecentPlays,
    cost_summary,
    entry_line,
)
from multiplay.service.pages.plan_forms import MOST_UNIT_FIELDS, PlanFields, plan_fields
from multiplay.service.pages.plans import PlanView, current_plan, plan_view, set_summary
from multiplay.service.pages.savings import AllowanceView, allowance_view
from multiplay.storage import Entry, Journal
from multiplay.studies import Study, entry_codec, play_history
from multiplay.studies.export import time_of

if TYPE_CHECKING:
    import pandas as pd

MOST_PENDING = 50  # rows
SAME = 0.005  # a smaller difference of costs is none
MOST_ALARMS = 20
MOST_WHY = 30  # rows that explain a plan
SHOWN_PLAYS = 20  # below the chart
MOST_ARMS = 200  # rows, unless all of them are requested
BAR_WIDTH, BAR_MARGIN = 120.0, 5.0
PLAIN = Words()


class PendingPlayRow(NamedTuple):
    """A pending play as text."""

    id: int
    key: str | None
    asked: str
    age: str
    units: int
    plan: str
    expected: str
    told: str


class PendingPlayRows(NamedTuple):
    """The pending plays, oldest first, and how many more there are."""

    rows: list[PendingPlayRow]
    left_out: int


class IntervalBar(NamedTuple):
    """An interval on the scale of all arms; without a mean where nothing was seen."""

    low: float
    high: float
    mean: float | None


class ArmRow(NamedTuple):
    """An arm as text, with the bar of its interval."""

    name: str
    seen: int
    mean: str
    interval: str
    bar: IntervalBar | None
    last_seen: str
    share: str


class ArmRows(NamedTuple):
    """The arms on a page.

    Attributes
    ----------
    rows : list of ArmRow
        The arms that are shown.
    found, all : int
        The number of arms that match the filter, and of all arms.
    wanted : str
        The filter: a part of the name.
    whole : bool
        Whether all arms that match were requested.
    low, high : str
        The ends of the scale.
    """

    rows: list[ArmRow]
    found: int
    all: int
    wanted: str
    whole: bool
    low: str
    high: str


class ChangedArm(NamedTuple):
    """An arm that has changed: the round to forget before, or whether that was done."""

    name: str
    before: int
    acted: bool


class Comparison(NamedTuple):
    """The expected cost of a plan of the user, beside the proposed plan, as text.

    ``deliveries`` names the customers for whom the plans have different units.
    """

    own: str
    proposed: str
    difference: str
    deliveries: str


class WhyView(NamedTuple):
    """Why a plan was proposed: a sentence, whether the plan explores, and the table."""

    text: str
    explores: bool
    table: Table


class Overview(NamedTuple):
    """The content of the page of a study."""

    name: str
    words: Words
    kind: str
    summary: str
    policy: str
    loss_range: str
    noun: str
    rewards: bool
    asked: int
    waits: int
    clipped: int
    head: int
    plan: PlanView | None
    why: WhyView | None
    arms: ArmRows
    costs: CostSummary
    alarms: Table
    changes: list[str]
    changed: list[ChangedArm]
    restarts: bool
    names: tuple[str, ...]
    no_alarm: str
    follows: bool
    queue: list[PendingPlay]
    own: PlanFields
    names_of_own: str
    absorbs: bool
    actions: ActionSet
    by_round: bool
    day_fields: list[DayField]
    drivers: Drivers | None
    compared: str
    allowance: AllowanceView | None
    promises: list[PromiseView]
    switching: str


class PlayPage(NamedTuple):
    """A play and its entries; ``fields`` are the arms whose units can be reported."""

    id: int
    key: str | None
    status: str
    asked: str
    expected: str
    realised: str
    plan: PlanView
    units: int
    told: str
    lines: list[JournalLine]
    losses: list[tuple[str, str]]
    fields: dict[str, int]
    why: WhyView | None


# ---------------------------------------------------------------- one study


def overview(
    study: Study, recent: RecentPlays, now: datetime, wanted: str = "", whole: bool = False
) -> Overview:
    """Return the content of the page of a study, in a time that does not grow with its plays."""
    found = recent_facts(study, recent, now)
    pending = study.pending()
    plan = current_plan(study, pending)
    units = dict.fromkeys(study.actions.names, 0) if plan is None else served(plan.units)
    return Overview(
        name=study.name,
        words=study.words,
        kind=set_summary(study.actions),
        summary=found.summary,
        policy=found.policy,
        loss_range=f"{found.loss_range} {study.words.currency}".rstrip(),
        noun=study_text.wording(found).noun,
        rewards=found.rewards,
        asked=study.asked,
        waits=len(pending),
        clipped=found.clipped,
        head=recent.head,
        plan=plan,
        why=why_view(pending[-1]) if pending else None,
        arms=arm_rows(found.arms, wanted, whole, study.words),
        costs=cost_summary(found, recent),
        alarms=study_text.alarms_table(found, MOST_ALARMS),
        changes=changes_text(found.alarms.head(MOST_CHANGES), study.words),
        changed=changed_arms(found.alarms),
        restarts=study.policy.partial,
        names=study.known_arms[:MOST_ARMS],
        no_alarm=study_text.no_alarm(found),
        follows=found.follows,
        queue=_with_estimates(pending),
        own=plan_fields(units),
        names_of_own=json.dumps([*units]) if len(units) <= MOST_UNIT_FIELDS else "",
        absorbs=study.policy.absorbs,
        actions=study.actions,
        by_round=study.policy.learns_from == "round",
        day_fields=day_fields(study),
        drivers=drivers(study),
        compared="" if study.versus is None else study.versus.text,
        allowance=allowance_view(study, found.constraints, recent.asked),
        promises=promise_views(study, found.constraints, recent.asked),
        switching=switching_text(found.constraints, study.words),
    )


def why_view(play: PendingPlay) -> WhyView | None:
    """Return why a pending play was proposed; None if the policy has no beliefs about it."""
    try:
        why = play.why()
    except InvalidInput:
        return None
    return WhyView(str(why), why.explores, why.as_table(MOST_WHY))


def comparison(study: Study, plan: Mapping[str, int], own: Estimate) -> Comparison:
    """Return the expected cost of a plan of the user, beside that of the proposed plan."""
    words, pending = study.words, study.pending()
    other = pending[-1] if pending else study.best()
    proposed = other.expected
    more = own.total - proposed.total
    side = "more" if more > 0 else "less"
    difference = "the same" if abs(more) < SAME else f"{words.money(abs(more))} {side}"
    texts = words.estimate(*own), words.estimate(*proposed), difference
    return Comparison(*texts, _deliveries(plan, other.plan))


def _deliveries(own: Mapping[str, int], proposed: Mapping[str, int]) -> str:
    """Return which customers get other units than in the proposed plan.

    Examples
    --------
    >>> _deliveries({"Lyon->north": 3}, {"Lyon->north": 2, "Lille->south": 1})
    'north gets 3 instead of 2, south gets 0 instead of 1'
    """
    units: dict[str, list[int]] = {}
    for place, one in enumerate((own, proposed)):
        for arm, count in one.items():
            _, arrow, target = arm.partition("->")
            if arrow and not arm.startswith(UNMET):
                units.setdefault(target, [0, 0])[place] += count
    different = ((target, both) for target, both in units.items() if both[0] != both[1])
    return ", ".join(f"{target} gets {one} instead of {two}" for target, (one, two) in different)


def changed_arms(alarms: pd.DataFrame) -> list[ChangedArm]:
    """Return the arms of the first alarms."""
    return [
        ChangedArm(arm, int(row.since) + 1, bool(row.acted))
        for row in learner_facts.rows_of(alarms.head(MOST_ALARMS))
        for arm in row.arms
    ][:MOST_ALARMS]


def recent_facts(study: Study, recent: RecentPlays, now: datetime) -> StudyFacts:
    """Return the facts of the last plays."""
    return study_facts(study, SHOWN_PLAYS, now=now, plays=[recent.plays])


def arm_rows(
    table: pd.DataFrame, wanted: str = "", whole: bool = False, words: Words = PLAIN
) -> ArmRows:
    """Return the arms whose names contain ``wanted``, the most frequent in plans first."""
    part = wanted.strip().casefold()
    fits = [part in name.casefold() for name in table["arm"]]
    found = learner_facts.by_share(table[fits])
    shown = found if whole else found.head(MOST_ARMS)
    known = shown[["low", "high"]].to_numpy()
    known = known[np.isfinite(known)]
    low, high = (float(known.min()), float(known.max())) if len(known) else (0.0, 1.0)
    cells = learner_facts.arms_table(shown, len(table), words=words).rows
    rows = [
        ArmRow(
            name=str(arm.arm),
            seen=int(arm.seen),
            mean=mean,
            interval=interval,
            bar=_bar(arm.low, arm.mean, arm.high, low, high),
            last_seen=last_seen,
            share=share,
        )
        for arm, (_, _, mean, interval, last_seen, share) in zip(
            learner_facts.rows_of(shown), cells, strict=True
        )
    ]
    ends = (money_text(end) for end in (low, high))
    return ArmRows(rows, len(found), len(table), wanted, whole, *ends)


def _bar(low: float, mean: float, high: float, first: float, last: float) -> IntervalBar | None:
    if not np.isfinite([low, high]).all():
        return None

    def place(value: float) -> float:
        share = (value - first) / (last - first or 1.0)
        return round(BAR_MARGIN + float(share) * (BAR_WIDTH - 2 * BAR_MARGIN), 1)

    return IntervalBar(place(low), place(high), None if np.isnan(mean) else place(mean))


def _with_estimates(pending: list[PendingPlay]) -> list[PendingPlay]:
    for play in pending[:MOST_PENDING]:
        _ = play.expected  # computed now and kept, while the study may be used
    return pending


def pending_rows(
    journal: Journal, plays: list[PendingPlay], now: datetime, words: Words = PLAIN
) -> PendingPlayRows:
    """Return the pending plays for a page, with their times and what was told so far."""
    rows = []
    for play in plays[:MOST_PENDING]:
        about = journal.of_play(play.id)
        end = play_history.pair_of(about)[1] if about else None
        if about and play_history.status_of(end) == PENDING:  # otherwise it was told since
            rows.append(_pending_row(play, about, now, words))
    return PendingPlayRows(rows, len(plays) - min(len(plays), MOST_PENDING))


def _pending_row(
    play: PendingPlay, about: list[Entry], now: datetime, words: Words
) -> PendingPlayRow:
    asked = time_of(about[0].labels.at)
    units = int(play.action.sum())
    row = learner_facts.PendingRow(play.id, play.key, asked, units, play.expected.total, play.plan)
    ((_, _, age, plan, _, expected),) = learner_facts.pending_table([row], 1, now, words).rows
    return PendingPlayRow(
        id=play.id,
        key=play.key,
        asked=minute(asked),
        age=age,
        units=units,
        plan=plan,
        expected=expected,
        told=told_so_far(about, words),
    )


def told_so_far(about: Iterable[Entry], words: Words = PLAIN) -> str:
    """Return how many units of a play were reported as text, empty if none were."""
    parts = [
        entry.record.header
        for entry in play_history.in_effect(list(about))
        if entry.labels.kind == entry_codec.PART
    ]
    if not parts:
        return ""
    seen, missing = parts[-1]["seen"], parts[-1]["missing"]
    return f"{seen} of {words.units(seen + missing)} so far"


# ---------------------------------------------------------------- one play


def play_page(study: Study, about: list[Entry]) -> PlayPage:
    """Return the content of the page of a play, from all entries about it."""
    asked, end = play_history.pair_of(about)
    id, header = asked.labels.play, asked.record.header
    assert id is not None
    pending = next((play for play in study.pending() if play.id == id), None)
    if pending is not None:
        plan = plan_view(pending.plan, pending.expected, study, pending)
    else:
        plan = plan_view(_whole_plan(asked, study.actions), None, study)
    outcome = {} if end is None else end.record.header
    expected, realised = (
        study.words.money(number_or_nan(found))
        for found in (header.get("expected"), outcome.get("realised"))
    )
    return PlayPage(
        id=id,
        key=entry_codec.shown_key(asked.labels),
        status=play_history.status_of(end),
        asked=minute(time_of(asked.labels.at)),
        expected=expected,
        realised=realised,
        plan=plan,
        units=header["units"],
        told=told_so_far(about, study.words) if pending is not None else "",
        lines=[entry_line(entry, study.words) for entry in about],
        losses=_losses(about),
        fields=dict(header["plan"]),
        why=None if pending is None else why_view(pending),
    )


def _whole_plan(asked: Entry, usual: ActionSet) -> dict[str, int]:
    """Return the plan of a play that has ended, with the arms that it did not use."""
    header = asked.record.header
    if header.get("imported"):
        return {arm: header["plan"].get(arm, 0) for arm in header["arms"]}
    actions = entry_codec.StoredSet.of_record(asked.record).given(usual) or usual
    action = entry_codec.action_of_plan(header["plan"], actions.names)
    return dict(zip(actions.names, action.tolist(), strict=True)) | actions.unmet(action)


def reported(about: list[Entry]) -> dict[str, list[float | None]] | float:
    """Return the losses that count of a play: by arm, or one total; None if not reported."""
    told: dict[str, list[float | None]] = {}
    for entry in play_history.in_effect(about):
        losses = entry.record.header.get("losses")
        if isinstance(losses, float | int):
            return losses
        for arm, units in (losses or {}).items():
            told.setdefault(arm, []).extend(units if isinstance(units, list) else [units])
    return told


def reported_fields(about: list[Entry]) -> dict[str, str]:
    """Return the losses that count of a play, as input of the form that corrects them."""
    told = reported(about)
    if isinstance(told, float | int):
        return {"total": as_typed(told)}
    arms = enumerate(about[0].record.header["plan"])
    return {field_of(place): cost_text(told.get(arm, [])) for place, arm in arms}


def _losses(about: list[Entry]) -> list[tuple[str, str]]:
    """Return the losses that count of a play, as text."""
    told = reported(about)
    if isinstance(told, float | int):
        return [("all", as_typed(told))]
    return [(arm, cost_text(costs)) for arm, costs in told.items()]


def reportable(plan: Mapping[str, int]) -> dict[str, int]:
    """Return the arms of a plan whose units can be reported, without unmet demand."""
    return chosen(served(plan))


def served(plan: Mapping[str, int]) -> dict[str, int]:
    """Return a plan without unmet demand."""
    return {arm: units for arm, units in plan.items() if not arm.startswith(UNMET)}
