"""The page of a play as data: its plan, its reasons, and what was reported of it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from multiplay._support.formatting import Table, chosen, minute
from multiplay._support.serialization import number_or_nan
from multiplay._support.words import Words
from multiplay.actions import ActionSet
from multiplay.actions.transport import UNMET
from multiplay.errors import InvalidInput
from multiplay.learner.plays import PendingPlay
from multiplay.service.pages.bills import cost_text, field_of
from multiplay.service.pages.forms import as_typed
from multiplay.service.pages.journal_views import JournalLine, entry_line
from multiplay.service.pages.plans import PlanView, plan_view
from multiplay.storage import Entry
from multiplay.studies import Study, entry_codec, play_history
from multiplay.studies.export import time_of

MOST_WHY = 30  # rows that explain a plan
PLAIN = Words()


class WhyView(NamedTuple):
    """Why a plan was proposed: a sentence, whether the plan explores, and the table."""

    text: str
    explores: bool
    table: Table


class PlayPage(NamedTuple):
    """A play and its entries; ``fields`` are the arms whose units can be reported."""

    id: int
    key: str | None
    status: str
    asked: str
    expected: str
    realised: str
    missing: str
    plan: PlanView
    units: int
    told: str
    lines: list[JournalLine]
    losses: list[tuple[str, str]]
    fields: dict[str, int]
    why: WhyView | None


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
    missing = int(outcome.get("missing") or 0)
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
        missing=f"{study.words.units(missing)} not reported" if missing else "",
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


def why_view(play: PendingPlay) -> WhyView | None:
    """Return why a pending play was proposed; None if the policy has no beliefs about it."""
    try:
        why = play.why()
    except InvalidInput:
        return None
    return WhyView(str(why), why.explores, why.as_table(MOST_WHY))


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
