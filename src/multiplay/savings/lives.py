"""Simulated lives: what another policy would have cost on the same days."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from multiplay._support.formatting import brief_policy
from multiplay._support.words import Words
from multiplay.actions import ActionSet
from multiplay.errors import InvalidInput
from multiplay.feedback import Feedback
from multiplay.policies import Policy
from multiplay.policies.arm_state import ArmState
from multiplay.policies.base import check_fits, shown
from multiplay.random import Streams
from multiplay.savings.days import Bills, PlayedDay
from multiplay.savings.estimates import History, Ranges
from multiplay.savings.result import Savings, WeekSavings
from multiplay.types import FloatArray, IntArray

LIVES = 200
SEED = 0  # the same journal gives the same bits
WIDEST = 0.99  # of the largest variance of a loss in its range


def simulated(
    days: Sequence[PlayedDay],
    bills: Sequence[Bills],
    policy: Policy,
    ranges: Ranges,
    *,
    level: float = 0.95,
    lives: int = LIVES,
    entry: int | None = None,
    words: Words | None = None,
    factors: int = 0,
) -> Savings:
    """Return what the plays saved against another policy, whose plays are simulated.

    In each life, mean losses of all days are drawn from the posterior, and the policy plays the
    sets of the days with losses of the learned spread. The interval has the quantiles over lives:
    it contains the luck of the policy too. Other parameters are those of ``estimate``.
    """
    history = History(days, bills, ranges, words or Words(), factors)
    _check(policy, days)
    means = history.smoothed.draw(lives, np.random.default_rng(SEED))[:, history.first :]
    plans = _Histories(history, policy, lives).plans(means, bills)
    played = np.zeros(means.shape[1:])
    more = np.zeros((lives, len(days)))
    for t, day in enumerate(days):
        at = history.places(day.actions.names)
        played[t, at] = day.action
        own = day.certain(day.action)
        more[:, t] = [day.certain(plan[at].astype(np.int64)) - own for plan in plans[:, t]]
    more += ((plans - played) * means).sum(axis=2)
    return _summary(history, plans, history.sign * more, level, policy, entry)


def _summary(
    history: History,
    plans: FloatArray,
    saved: FloatArray,
    level: float,
    policy: Policy,
    entry: int | None,
) -> Savings:
    """Return the result, from the saving of each life and day."""
    typical = [
        np.round(plans[:, t].mean(axis=0))[history.places(day.actions.names)].astype(np.int64)
        for t, day in enumerate(history.days)
    ]
    result = history.saved(history.compare(typical), level, brief_policy(policy))
    ends = (1 - level) / 2, (1 + level) / 2
    total = saved.sum(axis=1)
    low, high = np.quantile(total, ends)
    weeks = []
    for row in result.by_week:
        one = saved[:, history.calendar.week == history.calendar.labels.index(row.week)]
        a, b = np.quantile(one.sum(axis=1), ends)
        weeks.append(
            WeekSavings(row.week, row.days, float(one.sum(axis=1).mean()), float(a), float(b))
        )
    mean = float(total.mean())
    cost = abs(result.paid + history.sign * mean)
    return replace(
        result,
        total=mean,
        low=float(low),
        high=float(high),
        share=mean / cost if cost else np.nan,
        by_week=tuple(weeks),
        simulated=True,
        entry=entry,
    )


class _Histories:
    """A policy that plays the days of a history in many lives at once."""

    def __init__(self, history: History, policy: Policy, lives: int) -> None:
        self.history, self.policy, self.lives = history, policy, lives
        reports = history.reports
        self.low, self.scale = reports.low, float((reports.high - reports.low).max())
        self.span = reports.high - reports.low
        self.rng = Streams.spawn(SEED, 0, range(lives))
        self.losses = np.random.default_rng([SEED, 1])
        self._sets: dict[int, ActionSet] = {}
        first = self.prepared(history.days[0].actions)
        self.arms = ArmState(policy, first, self.offset_of, lives)

    def offset_of(self, names: Sequence[str]) -> FloatArray:
        """Return the lower ends of the ranges of some arms, as shares of the largest range."""
        return self.low[self.history.places(tuple(names))] / self.scale

    def prepared(self, actions: ActionSet) -> ActionSet:
        """Return a set as the policy plays it: losses are shares of the largest range."""
        if id(actions) not in self._sets:
            low = self.low[self.history.places(actions.names)]
            same = not low.any() and not actions.has_known
            ready = actions if same else actions.shifted(low / self.scale, self.scale)
            self._sets[id(actions)] = ready
        return self._sets[id(actions)]

    def plans(self, means: FloatArray, bills: Sequence[Bills]) -> FloatArray:
        """Return the plan of every life and day, (lives, days, arms)."""
        plans = np.zeros(means.shape)
        arms, policy = self.arms, self.policy
        for told, day in enumerate(self.history.days):
            actions, at = self.prepared(day.actions), self.history.places(day.actions.names)
            if arms.new_names(actions.names):
                arms.add(actions, told)
            if told == 0 and policy.absorbs:
                self.absorb(bills)
            arms.begin_round(actions)
            places = arms.places(actions.names)
            play = policy.choose(actions, arms.to_choose(places), self.rng)
            plans[:, told, at] = play.action
            feedback = self.drawn(play.action, means[:, told, at], at, told)
            arms.skip_round(places)
            state = arms.cut(places)
            policy.update(actions, state, play, shown(policy, feedback), self.rng)
            arms.put_back(places, state)
        return plans

    def absorb(self, bills: Sequence[Bills]) -> None:
        """Let the policy learn from the bills before the first play, in all lives."""
        history, arms = self.history, self.arms
        place, at = history.calendar.place, history.places(arms.names)
        for t in np.flatnonzero(place[: len(bills)] < place[history.first]):
            units = history.reports.units[t, at].astype(np.int64)
            if units.any():
                share = (history.reports.total[t, at] - units * self.low[at]) / self.scale
                rows = np.tile(units, (self.lives, 1)), np.tile(share, (self.lives, 1))
                self.policy.absorb(arms.warm_for, arms.arrays, Feedback(*rows), self.rng)

    def drawn(self, action: IntArray, means: FloatArray, at: IntArray, told: int) -> Feedback:
        """Draw the losses of the units of a day, with the learned spread, within their ranges."""
        most, span = int(action.max()), self.span[at]
        mean = np.clip((means - self.low[at]) / span, 1e-6, 1 - 1e-6)
        variance = self.history.smoothed.variances(self.history.first + told)[at] / span**2
        size = mean * (1 - mean) / np.minimum(variance, WIDEST * mean * (1 - mean)) - 1
        shape = (len(action), len(at), most)
        share = self.losses.beta((mean * size)[..., None], ((1 - mean) * size)[..., None], shape)
        share = share * (span / self.scale)[:, None]
        share[np.arange(most) >= action[..., None]] = 0.0
        units = np.ascontiguousarray(share).reshape(len(action), -1)
        return Feedback(action, share.sum(axis=2), units, np.arange(len(at) + 1) * most)


def _check(policy: Policy, days: Sequence[PlayedDay]) -> None:
    """Raise ``InvalidInput`` if a policy cannot play these days."""
    if policy.reads_features:
        hint = "Use PooledCTS or GenLBINFV, for example."
        raise InvalidInput("versus", "a policy without features", f"{policy!r}", hint)
    first = days[0].actions
    if not policy.changing and any(day.actions is not first for day in days):
        expected = "a policy that can play on changing sets"
        hint = "Use PooledCTS, CombUCB or GenLBINFV, for example."
        raise InvalidInput("versus", expected, f"{policy!r}", hint)
    check_fits(policy, first, None, shows_units=True)
