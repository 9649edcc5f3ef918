"""The first page of a study as data: its plan, the reasons, and what is asked of the planner."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime
from typing import NamedTuple

from multiplay._support.formatting import minute
from multiplay._support.words import Words
from multiplay.actions import ActionSet
from multiplay.actions.transport import UNMET
from multiplay.learner import facts as learner_facts
from multiplay.learner.plays import PENDING, Estimate, PendingPlay
from multiplay.service.pages import savings
from multiplay.service.pages.features import DayField, day_fields
from multiplay.service.pages.home import MOST_CHANGES, changes_text
from multiplay.service.pages.plan_forms import MOST_UNIT_FIELDS, PlanFields, plan_fields
from multiplay.service.pages.plans import PlanView, current_plan, set_summary
from multiplay.service.pages.play_views import WhyView, served, told_so_far, why_view
from multiplay.storage import Entry, Journal
from multiplay.studies import Study, play_history
from multiplay.studies.export import time_of

FEWEST_PLAYS = 10  # reported plays with which savings are known
MOST_PENDING = 50  # rows
SAME = 0.005  # a smaller difference of costs is none
MOST_ARMS = 200  # names in a list to choose from
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


class Comparison(NamedTuple):
    """The expected cost of a plan of the user, beside the proposed plan, as text.

    ``deliveries`` names the customers for whom the plans have different units.
    """

    own: str
    proposed: str
    difference: str
    deliveries: str


class PlanTab(NamedTuple):
    """The content of the first page of a study.

    ``changes`` are the last ones, as sentences; ``leads`` is whether imported days are the first
    thing that it shows, until savings are known.
    """

    kind: str
    asked: int
    waits: int
    clipped: int
    plan: PlanView | None
    why: WhyView | None
    changes: list[str]
    names: tuple[str, ...]
    queue: list[PendingPlay]
    own: PlanFields
    names_of_own: str
    absorbs: bool
    actions: ActionSet
    by_round: bool
    day_fields: list[DayField]
    compared: str
    leads: bool


def plan_tab(study: Study) -> PlanTab:
    """Return the first page of a study, in a time that does not grow with its plays."""
    pending = study.pending()
    reported = study.asked - len(pending)
    plan = current_plan(study, pending)
    imported = any(not one.retracted for one in study.imports())
    leads = imported and reported < FEWEST_PLAYS
    units = dict.fromkeys(study.actions.names, 0) if plan is None else served(plan.units)
    return PlanTab(
        kind=set_summary(study.actions),
        asked=study.asked,
        waits=len(pending),
        clipped=study.clipped,
        plan=plan,
        why=why_view(pending[-1]) if pending else None,
        changes=changes_text(study.drift().head(MOST_CHANGES), study.words),
        names=study.known_arms[:MOST_ARMS],
        queue=_with_estimates(pending),
        own=plan_fields(units),
        names_of_own=json.dumps([*units]) if len(units) <= MOST_UNIT_FIELDS else "",
        absorbs=study.policy.absorbs,
        actions=study.actions,
        by_round=study.policy.learns_from == "round",
        day_fields=day_fields(study),
        compared="" if leads and study.versus is None else savings.compared_text(study),
        leads=leads,
    )


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
