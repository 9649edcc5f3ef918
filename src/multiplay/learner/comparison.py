"""Comparison of plays with a rule: played days, the argument ``versus``, and the rule's plans."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np

from multiplay._support.checks import (
    natural_number,
    probability,
    whole_numbers,
)
from multiplay._support.dates import day_name, moment_of
from multiplay._support.formatting import counted
from multiplay._support.frames import TableFile, column, table_file
from multiplay._support.hints import Hint, Term
from multiplay._support.suggestions import suggestion
from multiplay._support.words import Words
from multiplay.actions import ActionSet, Rule
from multiplay.errors import InvalidInput
from multiplay.learner.logged_data import LoggedData, reports
from multiplay.learner.past_plans import DRIVEN, PastPlans
from multiplay.learner.plays import PendingState, time_of, timestamp
from multiplay.learner.ranges import Bounds, Ranges
from multiplay.learner.reports import ParsedLosses, Report, by_label
from multiplay.learner.round_set import RoundSet
from multiplay.policies import Policy
from multiplay.savings import Bills, PlayedDay, Savings, cost_of_learning, estimate, simulated
from multiplay.savings.estimates import FEWEST_DAYS
from multiplay.types import FloatArray, IntArray

DAY = timedelta(days=1)
METHODS = ("model", "dr", "ips")
COLUMNS = ("key", "arm", "units")
EXPECTED = "a rule, a policy, 'driven', or a table of plans by key"
EXAMPLE = "a table with the columns key, arm and units"
HINT = (
    "Use InProportion(), PriceList({...}), FixedPlan({...}), 'driven' for what was driven on "
    "imported days, or a table with key, arm, units."
)


class PlansByKey(NamedTuple):
    """Plans of a table, by the keys of plays.

    Attributes
    ----------
    by_key : dict
        The units of each arm, by the key of the play; arms that are left out have none.
    """

    by_key: dict[str, dict[str, int]]

    @property
    def text(self) -> str:
        """The plans in a few words."""
        return "the given plans"


Function: TypeAlias = Callable[[ActionSet], Any]
Versus: TypeAlias = Rule | Policy | PlansByKey | Function | Literal["driven"]


def compared(given: Any, *, functions: bool) -> Versus:
    """Return what plays are compared with, after checking it; ``functions`` may be given or not.

    Examples
    --------
    >>> compared({"Monday": {"air": 2}}, functions=False).by_key
    {'Monday': {'air': 2}}
    """
    if isinstance(given, Rule | Policy | PlansByKey):
        return given
    if isinstance(given, str) and given == DRIVEN:
        return DRIVEN
    if isinstance(given, Mapping) and not set(COLUMNS) <= set(given):
        return PlansByKey(_of_mapping(given))
    if isinstance(given, str | Path | Mapping | TableFile) or hasattr(given, "columns"):
        return PlansByKey(_of_table(given))
    if isinstance(given, type) or not callable(given):
        raise InvalidInput("versus", EXPECTED, repr(given), HINT)
    if not functions:
        hint = "A journal cannot keep a function. " + HINT
        raise InvalidInput("versus", EXPECTED, "a function", hint)
    return given  # type: ignore[no-any-return]


def _of_mapping(given: Mapping[Any, Any]) -> dict[str, dict[str, int]]:
    """Return the plans of a dict by key of dicts by arm."""
    plans: dict[str, dict[str, int]] = {}
    for key, plan in given.items():
        plan = by_label(plan)
        if not isinstance(plan, Mapping):
            hint = "Use {key of a play: {arm: units}}, or FixedPlan({arm: units}) for every day."
            raise InvalidInput(f"versus[{key!r}]", "units by arm", repr(plan), hint)
        plans[_key(key)] = {
            str(arm): natural_number(f"versus[{key!r}][{arm!r}]", units, "Use a whole number.")
            for arm, units in plan.items()
        }
    return plans


def _of_table(given: Any) -> dict[str, dict[str, int]]:
    """Return the plans of a table with the columns key, arm and units."""
    try:
        rows, _, first, _ = table_file(given, COLUMNS[:2])
        keys, arms, units = (column(rows, name, EXAMPLE).tolist() for name in COLUMNS)
    except InvalidInput as error:
        argument = error.argument.replace("table", "versus", 1)
        raise InvalidInput(argument, error.expected, error.got, error.hint) from None
    plans: dict[str, dict[str, int]] = {}
    for label, key, arm, count in zip(rows.index.tolist(), keys, arms, units, strict=True):
        plan, name = plans.setdefault(_key(key), {}), str(arm).strip()
        where = f"versus, row {label + first}"
        if name in plan:
            got, hint = f"{name!r} of {_key(key)!r} again", "Leave one of the rows out."
            raise InvalidInput(where, "every key and arm once", got, hint)
        plan[name] = natural_number(f"{where}, units", count, "Use a whole number.")
    return plans


def _key(given: Any) -> str:
    """Return the key of a play as text; a time without a clock is its date."""
    if isinstance(given, datetime) and given == datetime(given.year, given.month, given.day):
        given = given.date()
    return given.isoformat() if isinstance(given, date) else day_name(str(given).strip())


def plans_of(
    versus: Rule | PlansByKey | Function, days: Sequence[PlayedDay]
) -> list[IntArray | None]:
    """Return the plan of a rule on each day; None where the set of the day does not have it.

    Raises ``InvalidInput`` where a function fails, and if more than half of the days have no plan.
    """
    if isinstance(versus, PlansByKey):
        _check_arms(versus, days)
    found, reason, of_set = list[IntArray | None](), "", dict[ActionSet, IntArray | None]()
    for number, day in enumerate(days, start=1):
        if isinstance(versus, Rule):
            if day.actions not in of_set:
                try:
                    of_set[day.actions] = versus.plan(day.actions)
                except InvalidInput as error:
                    of_set[day.actions], reason = None, reason or f" ({error})"
            found.append(of_set[day.actions])
        elif isinstance(versus, PlansByKey):
            plan = versus.by_key.get(day.key)
            reason = reason or ("" if plan is not None else f" (none with the key {day.key!r})")
            found.append(None if plan is None else _action(plan, day.actions))
        else:
            found.append(_of_function(versus, day, number))
    lacking = [day for day, plan in zip(days, found, strict=True) if plan is None]
    if 2 * len(lacking) > len(days):
        shown = f"none for {len(lacking)} of {counted(len(days), 'play')}"
        reason = reason or f" (the set of {_named(lacking[0])} does not have it)"
        near = Term("FixedPlan(..., nearest=True)", "fixed plan")
        hint = Hint("Use {}, or give a plan for each set of a day.", near)
        raise InvalidInput("versus", "a plan of at least half of the days", shown + reason, hint)
    return found


def _named(day: PlayedDay) -> str:
    return f"play {day.key!r}" if day.key else "a play"


def _check_arms(plans: PlansByKey, days: Sequence[PlayedDay]) -> None:
    """Raise ``InvalidInput`` for an arm that no set has."""
    known = {name for day in days for name in day.actions.names}
    for key, plan in plans.by_key.items():
        for arm in plan.keys() - known:
            hint = f"Check the spelling.{suggestion(arm, known)}"
            raise InvalidInput(f"versus[{key!r}]", "names of arms", repr(arm), hint)


def _action(plan: Mapping[str, int], actions: ActionSet) -> IntArray | None:
    """Return a plan as an action; None if the set does not have it."""
    action = np.array([plan.get(name, 0) for name in actions.names], dtype=np.int64)
    has_all = action.sum() == sum(plan.values())
    return action if has_all and actions.contains(action) else None


def _of_function(function: Function, day: PlayedDay, number: int) -> IntArray | None:
    """Return the plan of a function; raise ``InvalidInput`` if it is not a plan."""
    actions, expected = day.actions, f"a plan for play {day.key or number}"
    hint = "Return units by arm, or an array of whole numbers with one for each arm."
    try:
        plan = by_label(function(actions))
        if isinstance(plan, Mapping):
            units = whole_numbers("plan", [*plan.values()]).tolist()
            return _action(dict(zip(plan, units, strict=True)), actions)
        action = whole_numbers("plan", plan)
    except Exception as error:  # the function is the user's
        got = f"{type(error).__name__}: {error}"
        raise InvalidInput("versus", expected, got, hint) from error
    if action.shape != (actions.d,):
        raise InvalidInput("versus", expected, f"an array of shape {action.shape}", hint)
    return action if actions.contains(action) else None


# ------------------------------------------------------------ played days


class Asked(NamedTuple):
    """A play that was chosen."""

    id: int
    play: PendingState


class Told(NamedTuple):
    """A report of a play."""

    id: int
    parsed: ParsedLosses
    final: bool
    when: float


class Ended(NamedTuple):
    """A play that was closed at a time, or cancelled: then that is None."""

    id: int
    when: float | None = None


class Learned(NamedTuple):
    """An external plan and its losses."""

    round_set: RoundSet
    action: IntArray
    parsed: ParsedLosses
    when: float


class LearnedTable(NamedTuple):
    """Logged data, and phi of the arms of each round, in order, if features are declared."""

    logged: LoggedData
    phi: list[FloatArray | None]


Event = Asked | Told | Ended | Learned | LearnedTable


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
    events: Iterable[Event], ranges: Ranges, pending: Mapping[int, PendingState]
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
            bills += _logged_bills(event, ranges)
        elif isinstance(event, Told):
            play = open[event.id]
            open[event.id] = play._replace(report=reports_so_far(play, event.parsed))
        if isinstance(event, Ended) or (isinstance(event, Told) and event.final):
            play = open.pop(event.id)
            if event.when is not None:
                days[event.id] = _played_day(play, event.when, sets)
    told = sorted((day for day in days.values() if day is not None), key=lambda day: day.time)
    return PlayedDays(told, bills)


def _played_day(play: PendingState, told: float, sets: dict[RoundSet, ActionSet]) -> PlayedDay:
    """Return the day of a play that was told or closed; ``sets`` keeps the sets of days."""
    action, round_set = play.action[0], play.round_set
    if round_set.base not in sets:  # in the user's unit, without the known part of the losses
        limits, given = round_set.limits, round_set.given
        sets[round_set.base] = limits.apply(given) if limits else given
    report = Report.empty(action) if play.report is None else play.report
    x = play.memo.get("x")
    return PlayedDay(
        time_of(play.key, told if np.isnan(play.asked) else play.asked),
        play.key or "",
        sets[round_set.base],
        action,
        *arm_sums(report, round_set.bounds, round_set.ranges),
        x[0] if x is not None and x.shape == play.action.shape else None,
        _phi(round_set),
    )


def _phi(round_set: RoundSet) -> FloatArray | None:
    """Return the features of the arms of a set; None if it has none."""
    if round_set.features is None:
        return None
    rows = round_set.features.rows
    phi: FloatArray = rows.phi(np.arange(rows.d))[0]
    return phi


def reports_so_far(play: PendingState, parsed: ParsedLosses) -> Report:
    """Return all reports of a play, with one more."""
    round_set, action = play.round_set, play.action[0]
    part = round_set.report(action, parsed, partly=True)
    if play.report is None:
        return part
    return play.report.joined(part, parsed.length, round_set.given.names)


def _external(event: Learned) -> Bills:
    round_set = event.round_set
    report = round_set.report(event.action, event.parsed, partly=True)
    sums = arm_sums(report, round_set.bounds, round_set.ranges)
    return Bills(event.when, "", round_set.given.names, *sums, _phi(round_set))


def _logged_bills(event: LearnedTable, ranges: Ranges) -> Iterator[Bills]:
    logged, names = event.logged, tuple(event.logged.arms)
    bounds = ranges.of(names)
    for k, report in enumerate(reports(logged, names, ranges)):
        sums, phi = arm_sums(report, bounds, ranges), event.phi[k] if event.phi else None
        if phi is not None:  # that of the arms of the round, also of bills that are missing
            rows = np.zeros((len(names), phi.shape[1]))
            rows[np.flatnonzero(report.played)] = phi
            phi = rows
        yield Bills(logged.time(k), "", names, *sums, phi)


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


# ------------------------------------------------------------ questions


class Period(NamedTuple):
    """The days that are compared: from the first to the last second, both included."""

    first: float
    last: float

    @classmethod
    def given(cls, since: Any, until: Any) -> Period:
        """Return a period; a date stands for the whole day, in UTC.

        Examples
        --------
        >>> Period.given("1970-01-01", "1970-01-01")
        Period(first=0.0, last=86399.999999)
        """
        first = -np.inf if since is None else _moment("since", since)
        last = np.inf if until is None else _moment("until", until, end=True)
        if first > last:
            got = f"{since} to {until}"
            raise InvalidInput("since", "a time before until", got, "Exchange them.")
        return cls(first, last)

    def parts(self, days: Iterable[PlayedDay]) -> tuple[list[PlayedDay], list[PlayedDay]]:
        """Return the days of the period, and the others."""
        within, others = list[PlayedDay](), list[PlayedDay]()
        for day in days:
            (within if self.first <= day.time <= self.last else others).append(day)
        return within, others


def _moment(argument: str, given: Any, end: bool = False) -> float:
    """Return a time in seconds since 1970; ``end``: the last microsecond of a date."""
    hint = "Use a text such as '2026-03-01', a date or a datetime."
    when = given
    if isinstance(given, str):
        when = moment_of(given)
        if when is None:
            raise InvalidInput(argument, "a date or a time", repr(given), hint)
        when = when.date() if len(given.strip()) <= len("2026-03-01") else when
    if isinstance(when, date) and not isinstance(when, datetime):
        when = datetime(when.year, when.month, when.day, tzinfo=UTC)
        when += DAY - timedelta(microseconds=1) if end else timedelta(0)
    if isinstance(when, datetime) and when.tzinfo is None:
        when = when.replace(tzinfo=UTC)
    if when is None or isinstance(when, bool):
        raise InvalidInput(argument, "a date or a time", repr(given), hint)
    return timestamp(argument, when)


class Question(NamedTuple):
    """The arguments of ``saved`` after checks; without ``versus``, those of cost_of_learning.

    Attributes
    ----------
    versus : Rule, Policy, PlansByKey, function or None
        What plays are compared with; None for the best plans.
    period : Period
        The days that are compared.
    level : float
        The level of the intervals.
    method : str
        "model", "dr" or "ips".
    """

    versus: Versus | None
    period: Period
    level: float
    method: str = "model"

    @classmethod
    def given(
        cls, versus: Versus | None, since: Any, until: Any, level: Any, method: Any = "model"
    ) -> Question:
        """Return a question, after checking it."""
        if not isinstance(method, str) or method not in METHODS:
            expected, hint = "'model', 'dr' or 'ips'", "Leave it out for 'model'."
            raise InvalidInput("method", expected, repr(method), hint)
        level = probability("level", level, "Use 0.95, for example.")
        return cls(versus, Period.given(since, until), level, method)


class Past(NamedTuple):
    """What a learner knows of its past.

    Attributes
    ----------
    history : PlayedDays
        Its played days, and external bills.
    ranges : Ranges
        The ranges of losses.
    words : Words
        The words in which costs are shown.
    entry : int or None
        The last entry of the journal.
    factors : int
        How many of the last columns of the features multiply.
    """

    history: PlayedDays
    ranges: Ranges
    words: Words
    entry: int | None = None
    factors: int = 0

    def answer(self, question: Question) -> Savings:
        """Return what was saved, or what learning cost."""
        versus, period, level, method = question
        days, others = period.parts(self.history.days)
        if len(days) < FEWEST_DAYS <= len(days) + len(others):
            argument = "since" if np.isfinite(period.first) else "until"
            expected = f"a period of at least {FEWEST_DAYS} plays told"
            raise InvalidInput(argument, expected, len(days), "Choose a longer period.")
        bills = [*self.history.bills, *(day.bills for day in others)]
        ranges = self._ranges([*bills, *(day.bills for day in days)])
        shared: dict[str, Any] = {"level": level, "entry": self.entry, "words": self.words}
        shared["factors"] = self.factors
        if versus is None:
            return cost_of_learning(days, bills, ranges, **shared)
        if isinstance(versus, Policy):
            if method != "model":
                hint = "Leave it out: the plays of a policy are simulated."
                raise InvalidInput("method", "'model' for another policy", repr(method), hint)
            return simulated(days, bills, versus, ranges, **shared)
        if versus == DRIVEN:
            rule, plans = PastPlans.of(days, self.history.bills)
        else:
            rule = versus.text if isinstance(versus, Rule | PlansByKey) else "the given function"
            plans = plans_of(versus, days)
        return estimate(days, bills, plans, ranges, method=method, rule=rule, **shared)

    def _ranges(self, bills: Iterable[Bills]) -> dict[str, tuple[float, float]]:
        """Return the range of the losses of each arm of some bills."""
        names = {name: None for one in bills for name in one.names}
        low, high = (end.tolist() for end in self.ranges.of(names))
        return dict(zip(names, zip(low, high, strict=True), strict=True))
