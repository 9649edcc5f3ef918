"""Played days: the told plays of a learner with the sums of their losses, and external bills."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

import numpy as np

from multiplay.actions import ActionSet
from multiplay.learner.events import Asked, Ended, Event, Learned, LearnedTable, Told
from multiplay.learner.logged_data import reports
from multiplay.learner.plays import PendingState, time_of
from multiplay.learner.ranges import Bounds, Ranges
from multiplay.learner.reports import ParsedLosses, Report, ReportBuilder
from multiplay.learner.round_set import RoundSet
from multiplay.savings.days import Bills, PlayedDay
from multiplay.types import FloatArray, IntArray

NONE_PENDING: Mapping[int, PendingState] = {}


class PlayedDays(NamedTuple):
    """The history of a learner, as far as its losses are known.

    Attributes
    ----------
    days : list of PlayedDay
        The told plays, in order of time.
    bills : list of Bills
        External plans and rounds of logged data.
    """

    days: list[PlayedDay]
    bills: list[Bills]


NO_DAYS = PlayedDays([], [])


def played_days(
    events: Iterable[Event], ranges: Ranges, pending: Mapping[int, PendingState] = NONE_PENDING
) -> PlayedDays:
    """Return the played days of events; ``pending`` are the plays that are open before the first.

    Losses are in the user's unit, and clipped to their range as the learner clips them.
    """
    open, sets = dict(pending), dict[RoundSet, ActionSet]()
    days, bills = dict[int, PlayedDay | None].fromkeys(open), list[Bills]()
    for event in events:
        if isinstance(event, Asked):
            open[event.id], days[event.id] = event.play, None
        elif isinstance(event, Learned):
            bills.append(_external(event))
        elif isinstance(event, LearnedTable):
            bills += _of_table(event, ranges)
        elif isinstance(event, Told):
            play = open[event.id]
            open[event.id] = play._replace(report=_joined(play, event.parsed))
        if isinstance(event, Ended) or (isinstance(event, Told) and event.final):
            play = open.pop(event.id)
            if isinstance(event, Told) or event.is_closed:
                days[event.id] = _played_day(play, event.when, sets)
    told = sorted((day for day in days.values() if day is not None), key=lambda day: day.time)
    return PlayedDays(told, bills)


def _played_day(play: PendingState, told: float, sets: dict[RoundSet, ActionSet]) -> PlayedDay:
    """Return the day of a play that was told or closed; ``sets`` keeps the sets of days."""
    action, round_set = play.action[0], play.round_set
    if round_set not in sets:  # in the user's unit, without the known part of the losses
        limits, given = round_set.limits, round_set.given
        sets[round_set] = limits.apply(given) if limits else given
    report = Report.empty(action) if play.report is None else play.report
    x = play.memo.get("x")
    return PlayedDay(
        time_of(play.key, told if np.isnan(play.asked) else play.asked),
        play.key or "",
        sets[round_set],
        action,
        *arm_sums(report, round_set.bounds, round_set.ranges),
        x[0] if x is not None and x.shape == play.action.shape else None,
    )


def _joined(play: PendingState, parsed: ParsedLosses) -> Report:
    """Return all reports of a play so far."""
    round_set, action = play.round_set, play.action[0]
    part = _report(round_set, action, parsed)
    if play.report is None:
        return part
    return play.report.joined(part, parsed.length, round_set.given.names)


def _report(round_set: RoundSet, action: IntArray, parsed: ParsedLosses) -> Report:
    made = action, round_set.given.names, round_set.bounds, round_set.ranges
    return ReportBuilder(*made).report(parsed, partly=True)


def _external(event: Learned) -> Bills:
    round_set = event.round_set
    report = _report(round_set, event.action, event.parsed)
    sums = arm_sums(report, round_set.bounds, round_set.ranges)
    return Bills(event.when, "", round_set.given.names, *sums)


def _of_table(event: LearnedTable, ranges: Ranges) -> Iterator[Bills]:
    logged, names = event.logged, tuple(event.logged.arms)
    bounds = ranges.of(names)
    for k, report in enumerate(reports(logged, names, ranges)):
        yield Bills(logged.time(k), "", names, *arm_sums(report, bounds, ranges))


def arm_sums(
    report: Report, bounds: Bounds, ranges: Ranges
) -> tuple[IntArray, FloatArray, FloatArray]:
    """Return the units seen of each arm, their total, and the sum of their squares.

    In the user's unit. The squares are NaN where only the total of several units was told. Nothing
    was seen of an arm if only the total of all arms was told.
    """
    d = len(report.played)
    if report.round is not None:
        return np.zeros(d, dtype=np.int64), np.zeros(d), np.zeros(d)
    known = ~np.isnan(report.units)
    arm = report.arm[known]
    loss = bounds.low[arm] + ranges.scale * report.units[known]
    seen = report.seen.copy()
    total = np.bincount(arm, loss, d).astype(float)
    squares = np.bincount(arm, loss**2, d).astype(float)
    for i, share in report.totals.items():
        total[i] = seen[i] * bounds.low[i] + ranges.scale * share
        squares[i] = total[i] ** 2 if seen[i] == 1 else np.nan
    return seen, total, squares
