"""Estimates of savings: plays compared with the plans of a rule on the same days.

By the belief model, or from a logged x: importance weighting, and doubly robust. These two use no
model of the means. On m-sets, importance weighting is the independent inverse propensity score of
the Open Bandit Pipeline.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from statistics import NormalDist
from typing import NamedTuple

import numpy as np

from multiplay._support.formatting import percent, plan_text
from multiplay._support.hints import Hint, Option, Term
from multiplay._support.words import Words
from multiplay.beliefs.smoothed import Contrast, Reports, Smoothed
from multiplay.errors import InvalidInput
from multiplay.savings.days import Bills, PlayedDay, calendar
from multiplay.savings.result import Evidence, Savings, WeekSavings
from multiplay.types import FloatArray, IntArray

FEWEST_DAYS = 10
FEW_BILLS = 5
RECENT = 4.0  # weeks
MOST_NEVER = 0.25  # shares of the rule's units
MOST_STALE = 0.75
ENOUGH_BILLS = 60  # after a jump, to know the new price
DISAGREES = 3.0  # joint standard errors
BY_MODEL = Option("method", "'model'")

Ranges = tuple[float, float] | Mapping[str, tuple[float, float]]


def estimate(
    days: Sequence[PlayedDay],
    bills: Sequence[Bills],
    plans: Sequence[IntArray | None],
    ranges: Ranges,
    *,
    level: float = 0.95,
    method: str = "model",
    rule: str = "",
    entry: int | None = None,
    words: Words | None = None,
    factors: int = 0,
) -> Savings:
    """Return what the plays of some days saved against the plans of a rule.

    Parameters
    ----------
    days
        The plays that were told, in their order.
    bills
        Losses that count as bills only.
    plans
        The plan of the rule for each day, over the arms of its set; None where it has none, which
        is counted as left out. To leave out days before or after a date, pass their ``bills``.
    ranges
        The range of the losses of a unit in the user's unit: of all arms, or by arm.
    level
        The level of the intervals.
    method
        "model" (the belief model, smoothed), "dr" (doubly robust) or "ips" (importance weighting);
        the last two need the logged x of all days.
    rule
        The rule in words, such as "in proportion".
    entry
        The last entry of the journal that was read.
    words
        The words in which the result is shown.
    factors
        How many of the last columns of the features multiply.
    """
    history = History(days, bills, ranges, words or Words(), factors)
    compared = history.compare(plans)
    model = history.saved(compared, level, rule)
    logged = history.logged(compared)
    if method == "model":
        agrees = None if logged is None else history.agrees(compared, logged)
        return replace(model, entry=entry, agrees=agrees)
    if logged is None:
        expected = "plays with a logged x, of a policy such as GenLBINFV"
        hint = Hint("Use {}, which needs none.", BY_MODEL)
        raise InvalidInput("method", expected, f"{method!r} for plays without it", hint)
    found = history.weighted(compared, logged, method)
    return replace(history.with_numbers(model, compared, found), entry=entry, method=method)


def cost_of_learning(
    days: Sequence[PlayedDay],
    bills: Sequence[Bills],
    ranges: Ranges,
    *,
    level: float = 0.95,
    entry: int | None = None,
    words: Words | None = None,
    factors: int = 0,
) -> Savings:
    """Return what the plays cost more than the best plans, by all that is known now.

    The best plan of a day is that for the means of the day, from all reports before and after it.
    Parameters are those of ``estimate``.
    """
    history = History(days, bills, ranges, words or Words(), factors)
    compared = history.compare(history.best_plans())
    result = history.saved(compared, level, "the best plan by what is known now")
    weeks = [row._replace(saved=-row.saved, low=-row.high, high=-row.low) for row in result.by_week]
    ends = -result.high, -result.low
    return replace(
        result,
        total=-result.total,
        low=ends[0],
        high=ends[1],
        share=-result.share,
        by_week=tuple(weeks),
        trust="",
        entry=entry,
        learning=True,
    )


class Compared(NamedTuple):
    """Days of which the rule has a plan.

    Attributes
    ----------
    plan, played : arrays of shape (days, arms)
        The units of the rule and of the plays; 0 on days that are left out.
    certain : array of shape (days,)
        What the plan costs more than the play, of costs that are known.
    week : array of integers
        The week of each day; -1 on days that are left out.
    """

    plan: FloatArray
    played: FloatArray
    certain: FloatArray
    week: IntArray

    @property
    def left_out(self) -> int:
        """The number of days without a plan."""
        return int((self.week < 0).sum())


class History:
    """Plays and bills of a study, as arrays over all days and arms; bills are before the plays.

    Parameters
    ----------
    days, bills, ranges, words, factors
        As in ``estimate``.
    """

    def __init__(
        self,
        days: Sequence[PlayedDay],
        bills: Sequence[Bills],
        ranges: Ranges,
        words: Words,
        factors: int = 0,
    ) -> None:
        _check(days)
        self.days, self.words, self.factors = days, words, factors
        self.sign, self.sense = days[0].actions.sign, days[0].actions.sense
        everything = [*bills, *(day.bills for day in days)]
        names = dict.fromkeys(name for one in everything for name in one.names)
        self.names = tuple(names)
        self._place = {name: place for place, name in enumerate(names)}
        self.first, self.calendar = len(bills), calendar(bills, days)
        shape = len(everything), len(names)
        units, total, squares = np.zeros(shape), np.zeros(shape), np.zeros(shape)
        width = max(0 if one.phi is None else one.phi.shape[1] for one in everything)
        phi = np.zeros((*shape, width))
        for t, one in enumerate(everything):
            at = self.places(one.names)
            units[t, at], total[t, at], squares[t, at] = one.units, one.total, one.squares
            if one.phi is not None:
                phi[t, at] = one.phi
        if not units.any():
            expected, hint = "losses of single arms", "Report the losses of each arm."
            raise InvalidInput("study", expected, "only totals of rounds", hint)
        low, high = self._ends(ranges)
        self.reports = Reports(self.calendar.place, units, total, squares, low, high, phi)

    def places(self, names: tuple[str, ...]) -> IntArray:
        """Return the places of some arms among all arms."""
        return np.array([self._place[name] for name in names], dtype=np.int64)

    def _ends(self, ranges: Ranges) -> tuple[FloatArray, FloatArray]:
        by_arm = ranges if isinstance(ranges, Mapping) else dict.fromkeys(self.names, ranges)
        ends = np.array([by_arm[name] for name in self.names], dtype=float)
        return ends[:, 0], ends[:, 1]

    @cached_property
    def smoothed(self) -> Smoothed:
        """The beliefs about all past days."""
        return Smoothed.of(self.reports, self.factors)

    def best_plans(self) -> list[IntArray]:
        """Return the best plan of each day, for the means of that day as they are known now.

        An arm that was never seen counts as bad as its range allows: nothing is known of it.
        """
        reports = self.reports
        worst = reports.high if self.sense == "min" else reports.low
        known = self.smoothed.means()[self.first :]
        means = np.where(reports.units.any(axis=0), known, worst)
        return [
            day.actions.best(one[self.places(day.actions.names)])
            for day, one in zip(self.days, means, strict=True)
        ]

    def compare(self, plans: Sequence[IntArray | None]) -> Compared:
        """Return the plans of a rule beside the plays."""
        if len(plans) != len(self.days):
            raise ValueError(f"{len(plans)} plans for {len(self.days)} days")
        shape = len(plans), len(self.names)
        plan, played, certain = np.zeros(shape), np.zeros(shape), np.zeros(len(plans))
        week = self.calendar.week.copy()
        for t, (day, one) in enumerate(zip(self.days, plans, strict=True)):
            if one is None:
                week[t] = -1
                continue
            at = self.places(day.actions.names)
            plan[t, at], played[t, at] = one, day.action
            certain[t] = day.certain(one) - day.certain(day.action)
        return Compared(plan, played, certain, week)

    def saved(self, compared: Compared, level: float, rule: str) -> Savings:
        """Return the saving by the belief model."""
        thin, never, stale = self._shares(compared)
        result = Savings(
            total=0.0,
            low=0.0,
            high=0.0,
            share=0.0,
            evidence=self._evidence(compared),
            thin=thin,
            never=never,
            stale=stale,
            left_out=compared.left_out,
            trust=self._trust(compared, stale),
            paid=self._paid(compared),
            days=len(self.days) - compared.left_out,
            rule=rule,
            level=level,
            words=self.words,
            sense=self.sense,
        )
        return self.with_numbers(result, compared, self._contrast(compared))

    def with_numbers(self, result: Savings, compared: Compared, found: Contrast) -> Savings:
        """Return a result with the estimates of its weeks and of the total."""
        width = NormalDist().inv_cdf((1 + result.level) / 2)
        total, deviation = found.total
        rule_cost = abs(result.paid + self.sign * total)
        count = np.bincount(compared.week[compared.week >= 0])
        half = width * found.deviation
        rows = zip(self.calendar.labels, count, found.mean, half, strict=False)
        weeks = [
            WeekSavings(label, int(days), float(mean), float(mean - one), float(mean + one))
            for label, days, mean, one in rows
            if days
        ]
        return replace(
            result,
            total=total,
            low=total - width * deviation,
            high=total + width * deviation,
            share=total / rule_cost if rule_cost else math.nan,
            by_week=tuple(weeks),
        )

    def _contrast(self, compared: Compared) -> Contrast:
        """Return the saving of each week by the belief model."""
        nothing = np.zeros((self.first, len(self.names)))
        weights = np.concatenate([nothing, self.sign * (compared.plan - compared.played)])
        groups = np.concatenate([np.full(self.first, -1), compared.week])
        found = self.smoothed.contrast(weights, groups)
        kept = compared.week >= 0
        certain = np.bincount(compared.week[kept], compared.certain[kept], len(found.mean))
        return Contrast(found.mean + self.sign * certain, found.covariance)

    def logged(self, compared: Compared) -> LoggedDays | None:
        """Return the compared days with their logged x; None if it is not logged on all of them."""
        kept = np.flatnonzero(compared.week >= 0)
        x = np.zeros((len(kept), len(self.names)))
        for row, t in enumerate(kept.tolist()):
            day = self.days[t]
            if day.x is None:
                return None
            x[row, self.places(day.actions.names)] = day.x
        at = self.first + kept
        units, total = self.reports.units[at], self.reports.total[at]
        before = averages_before(self.reports)[at]
        return LoggedDays(compared.plan[kept], compared.played[kept], x, units, total, before)

    def weighted(self, compared: Compared, logged: LoggedDays, method: str) -> Contrast:
        """Return the saving of each week without the belief model."""
        found, error = difference(logged, method)
        kept = compared.week >= 0
        week, count = compared.week[kept], int(compared.week.max()) + 1
        mean, variance = np.zeros((2, count))
        np.add.at(mean, week, found + compared.certain[kept])
        np.add.at(variance, week, error**2)
        return Contrast(self.sign * mean, np.diag(variance))

    def agrees(self, compared: Compared, logged: LoggedDays) -> bool | None:
        """Return whether the doubly robust estimate is near that of the model."""
        if ((logged.plan > 0) & ~(logged.x > 0)).any():
            return None
        one, other = self._contrast(compared).total, self.weighted(compared, logged, "dr").total
        return abs(one[0] - other[0]) <= DISAGREES * math.hypot(one[1], other[1])

    def _paid(self, compared: Compared) -> float:
        """Return what the compared plays cost; units not reported cost what is believed."""
        kept = compared.week >= 0
        units, total = self.reports.units[self.first :], self.reports.total[self.first :]
        missing = compared.played - units
        paid = float(total[kept].sum())
        paid += sum(
            day.certain(day.action) for day, one in zip(self.days, kept, strict=True) if one
        )
        if missing[kept].any():
            means = self.smoothed.means()[self.first :]
            paid += float((missing * means)[kept].sum())
        return paid

    # ------------------------------------------------------------ what it rests on

    def _shares(self, compared: Compared) -> tuple[float, float, float]:
        """Return thin, never and stale; raise ``InvalidInput`` if too much was never seen."""
        asked = compared.plan.sum(axis=0)
        whole = max(asked.sum(), 1.0)
        bills = self.reports.units.sum(axis=0)
        place = self.calendar.place
        recent = self.reports.units[place > place[self.first :].max() - RECENT].sum(axis=0)
        thin, never, stale = (
            float(asked[few].sum() / whole)
            for few in (bills < FEW_BILLS, bills == 0, recent < FEW_BILLS)
        )
        if never > MOST_NEVER and not self.smoothed.phi.shape[2]:
            arms = np.flatnonzero((bills == 0) & (asked > 0))
            named = plan_text({self.names[i]: int(asked[i]) for i in arms}, arm=self.words.arm)
            lanes = self._arms_word
            got = f"{percent(never)} on {lanes} that were never played: {named}"
            expected = f"a rule of whose units at most {percent(MOST_NEVER)} are on unknown {lanes}"
            hint = "Their cost is not known. Compare with a rule that uses other arms."
            raise InvalidInput("versus", expected, got, hint)
        return thin, never, stale

    @property
    def _arms_word(self) -> str:
        return self.words.arms(2).partition(" ")[2]

    def _trust(self, compared: Compared, stale: float) -> str:
        jumps = self.smoothed.jumps()
        jumped = jumps.found & (compared.plan > 0).any(axis=0)
        if (jumped & (jumps.units < ENOUGH_BILLS)).any():
            return f"prices have moved on {self._arms_word} that were not used"
        if jumped.any():
            return f"prices of single {self._arms_word} have jumped, and may have on others"
        if stale > MOST_STALE:
            return (
                f"{percent(stale)} of the rule's units are on {self._arms_word} with fewer than "
                f"{FEW_BILLS} bills in the last {RECENT:.0f} weeks, whose prices may have moved"
            )
        return ""

    def _evidence(self, compared: Compared) -> tuple[Evidence, ...]:
        asked, played = compared.plan.sum(axis=0), compared.played.sum(axis=0)
        bills, seen = self.reports.units.sum(axis=0), self.reports.units > 0
        latest = np.argsort(self.calendar.place, kind="stable")
        found = []
        for i in np.flatnonzero((asked > 0) | (played > 0)):
            days = latest[seen[latest, i]]
            last = self.calendar.dates[days[-1]] if len(days) else ""
            row = Evidence(self.names[i], int(asked[i]), int(played[i]), int(bills[i]), last)
            found.append(row)
        return tuple(sorted(found, key=lambda row: -row.rule_units))


def _check(days: Sequence[PlayedDay]) -> None:
    """Raise ``InvalidInput`` where nothing can be said."""
    if len(days) < FEWEST_DAYS:
        expected = Hint("at least {} {}", f"{FEWEST_DAYS}", Term("plays told", "plays told"))
        hint = Hint("Report more {} first.", Term("plays", "plays"))
        raise InvalidInput("study", expected, len(days), hint)
    odd = next((day.actions for day in days if not day.actions.affine), None)
    if odd is not None:
        wanted = "sets whose value is the sum of their units"
        raise InvalidInput("study", wanted, f"{odd!r}", "Savings need such a set.")


# ------------------------------------------------------------ from a logged x


class LoggedDays(NamedTuple):
    """Days with a logged x; arrays are (days, arms).

    Attributes
    ----------
    plan, played : array
        The units of the rule, b, and of the play, a.
    x : array
        The mean of the distribution from which the play was drawn.
    units, total : array
        The units of the play that were seen, and the sum of their losses.
    before : array
        The average of the reports before the day, m.
    """

    plan: FloatArray
    played: FloatArray
    x: FloatArray
    units: FloatArray
    total: FloatArray
    before: FloatArray


def difference(days: LoggedDays, method: str) -> tuple[FloatArray, FloatArray]:
    r"""Return what the plans cost more than the plays, by day, and the error of every day.

    .. math::

        \text{ips} = \sum_i \Bigl(\frac{b_i}{x_i} - 1\Bigr) \text{total}_i, \qquad
        \text{dr} = \langle b - a, m \rangle
            + \sum_i \Bigl(\frac{b_i}{x_i} - 1\Bigr) (\text{total}_i - a_i m_i)

    Units that were not seen count like those seen of the same day and arm, or as :math:`m_i` if
    none was. The square of an error estimates the variance of its day.

    Examples
    --------
    >>> one = np.array([[1.0, 0.0]])
    >>> day = LoggedDays(one[:, ::-1], one, np.full((1, 2), 0.5), one, 3 * one, np.ones((1, 2)))
    >>> difference(day, "ips")[0], difference(day, "dr")[0]
    (array([-3.]), array([-2.]))
    """
    if ((days.plan > 0) & ~(days.x > 0)).any():
        expected = "a rule that uses no unit whose logged mean is 0"
        hint = Hint("Use {}.", BY_MODEL)
        raise InvalidInput("method", expected, repr(method), hint)
    seen = days.units > 0
    average = np.divide(days.total, days.units, out=days.before.copy(), where=seen)
    ratio = np.divide(days.plan, days.x, out=np.zeros_like(days.x), where=days.plan > 0)
    if method == "ips":
        found = ((ratio - 1) * days.played * average).sum(axis=1)
        return found, found - found.mean()
    rest = ((ratio - 1) * days.played * (average - days.before)).sum(axis=1)
    return ((days.plan - days.played) * days.before).sum(axis=1) + rest, rest


def averages_before(reports: Reports) -> FloatArray:
    """Return the average of the reports before each day, with one unit of the overall average.

    Examples
    --------
    >>> ends = np.zeros(1), np.full(1, 10.0)
    >>> bills = np.array([[4.0], [8.0], [9.0]])
    >>> averages_before(Reports(np.arange(3.0), np.ones((3, 1)), bills, bills**2, *ends))
    array([[5.],
           [4.],
           [6.]])
    """
    order = np.argsort(reports.place, kind="stable")
    units, total = reports.units[order], reports.total[order]
    count, sums = units.cumsum(axis=0) - units, total.cumsum(axis=0) - total
    seen = count.sum(axis=1)
    middle = float((reports.low + reports.high).mean()) / 2
    overall = np.where(seen > 0, sums.sum(axis=1) / np.maximum(seen, 1), middle)
    found = np.empty_like(sums)
    found[order] = (sums + overall[:, None]) / (count + 1)
    return found
