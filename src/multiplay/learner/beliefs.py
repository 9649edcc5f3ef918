"""What a learner knows, and how it comes to know more: no plays, no clock, no files."""

from __future__ import annotations

import math
from statistics import NormalDist

import numpy as np

from multiplay._support import deadline
from multiplay.actions import ActionSet
from multiplay.errors import InvalidInput
from multiplay.feedback import Feedback
from multiplay.learner.arm_state import Roster
from multiplay.learner.horizon import own_horizon
from multiplay.learner.intervals import empirical_bernstein
from multiplay.learner.plays import Estimate, PendingState
from multiplay.learner.ranges import Ranges
from multiplay.learner.reports import Report
from multiplay.learner.round_set import (
    NO_LIMITS,
    Limits,
    Today,
    check_day,
    check_storable,
    no_other_set,
)
from multiplay.learner.statistics import Seen
from multiplay.policies import GenCTS, Play, Policy
from multiplay.policies.averages import Averages
from multiplay.policies.base import check_fits, shown
from multiplay.policies.feasible import check_play
from multiplay.policies.forgetting import Forgetting
from multiplay.policies.regression import Regression, estimate
from multiplay.random import Streams
from multiplay.types import Arrays, FloatArray, IntArray


class Mind:
    """A policy, its state over all arms ever met, and what was seen of them.

    Losses are in [0, 1] inside; ``ranges`` turns them into the user's unit and back. ``restored``
    says that the rest comes from a file.
    """

    def __init__(
        self,
        actions: ActionSet,
        policy: Policy,
        ranges: Ranges,
        rng: Streams,
        restored: bool = False,
    ) -> None:
        self.actions, self.policy, self.ranges, self.rng = actions, policy, ranges, rng
        self.restored = restored
        self.usual = self.last = Today.of(actions, NO_LIMITS, ranges, policy)
        self.roster = Roster(policy, self.usual.actions)
        self.seen = Seen(actions.d)
        self.told = 0
        self.horizon = own_horizon(policy)
        self._believes = _believes(policy, self.roster.state)

    # ------------------------------------------------------------ days

    def day(self, actions: ActionSet | None, limits: Limits = NO_LIMITS) -> Today:
        """Return a day, after all of it was checked; the same object for the same set."""
        given = self.actions if actions is None else actions
        for known in (self.usual, self.last):
            if given is known.given and limits is known.limits:
                return known
        if given is not self.actions:
            check_day(given, self.actions, self.roster.number, self.policy)
            if not given.linear:
                self.ranges.check_plain(given)
            check_storable(given, self.actions)
        elif limits and not self.policy.changing:
            raise no_other_set(limits.first, self.policy, "nothing", "a limit")
        today = Today.of(given, limits, self.ranges, self.policy)
        check_fits(self.policy, today.actions, None, shows_units=True)
        return today

    def meet(self, today: Today) -> IntArray | None:
        """Return the places of the arms of a day, after adding those that are new."""
        names = today.actions.names
        if today is not self.usual and self.roster.newcomers(names):
            self.roster.add(today.actions, self.told, today.bounds.low / self.ranges.scale)
            self.seen.grow(len(self.roster.names))
        return self.roster.places(names)

    def enter(self, today: Today) -> IntArray | None:
        """Begin a round on the set of a day; return the places of its arms."""
        places = self.meet(today)
        self.roster.enter(today.actions)
        return places

    # ------------------------------------------------------------ rounds

    def choose(self, today: Today, when: str, until: float) -> tuple[Play, float, bool]:
        """Choose a play, and say what the policy believes that it costs: NaN if it does not say.

        At the deadline it is chosen with what there is, and said to be truncated. The state knows
        nothing of it yet: see ``keep_warm``.
        """
        state = self.roster.cut(self.enter(today))
        with deadline.before(until) as limit:
            play = self.policy.choose(today.actions, state, self.rng)
        self.check(today, play, when)
        return play, self._believed_cost(today, state, play.action[0]), limit.truncated

    def check(self, today: Today, play: Play, when: str) -> None:
        """Raise ``ArithmeticError`` unless a play is an action of the day."""
        check_play(self.policy, today.actions, play, 1, when, restored=self.restored)

    def believed_cost(self, today: Today, action: IntArray) -> float:
        """Return what the policy believes that a play of a day costs: NaN if it does not say."""
        return self._believed_cost(today, self.roster.cut(self.enter(today)), action)

    def _believed_cost(self, today: Today, state: Arrays, action: IntArray) -> float:
        believed = self.policy.believed(state) if self._believes else None
        return math.nan if believed is None else self.cost(today, action, believed[0])

    def keep_warm(self, play: PendingState) -> None:
        """Take the warm start of a play that was chosen, and nothing else of it."""
        self.roster.state |= play.play.cache  # makes the next choice faster, and no more
        self.last = play.today

    def learn(self, play: PendingState, report: Report, when: float) -> Feedback:
        """Learn from a play of our own, and return what was learned from."""
        feedback, today = self.usable(report), play.today
        places = self.roster.places(today.actions.names)
        if places is not None:
            low = self.ranges.of(self.roster.names).low
            self.roster.pass_by(places, low / self.ranges.scale)
        state = self.roster.cut(places)
        visible = shown(self.policy, feedback)
        self.policy.update(today.actions, state, play.play, visible, self.rng)
        self.roster.put_back(places, state)
        self.told += 1
        self.seen.add(places, feedback, True, self.told, when)
        return feedback

    def absorb(self, today: Today, report: Report, when: float) -> Feedback:
        """Learn from a plan of others."""
        feedback = self.usable(report)
        places = self.meet(today)
        state = self.roster.cut(places)
        self.policy.absorb(today.actions, state, feedback, self.rng)
        self.roster.put_back(places, state)
        self.seen.add(places, feedback, False, self.told, when)
        return feedback

    def absorb_all(self, feedback: Feedback) -> None:
        """Learn from units of any arms ever met; nobody knows of which set they were."""
        self.policy.absorb(self.actions, self.roster.state, feedback, self.rng)
        self.seen.add(None, feedback, False, self.told, np.nan)

    def can_use(self, report: Report) -> bool:
        """Say whether the policy can learn from a report."""
        try:
            self.usable(report)
        except InvalidInput:
            return False
        return True

    def usable(self, report: Report) -> Feedback:
        """Return the feedback of a report, if the policy can learn from it."""
        feedback = report.feedback()
        if feedback.units is None and self.policy.learns_from == "units":
            raise InvalidInput(
                "losses",
                f"the loss of every unit, which {type(self.policy).__name__} needs",
                "totals",
                "Use the policy itself, without copies: it learns from totals.",
            )
        if not feedback.complete and not self.policy.partial:
            raise InvalidInput(
                "losses",
                f"those of all units, which {type(self.policy).__name__} needs",
                f"{int(feedback.seen.sum())} of {int(feedback.count.sum())}",
                "Cancel the play, or make the learner with a policy such as GenCTS.",
            )
        return feedback

    # ------------------------------------------------------------ beliefs

    def mean(self, today: Today) -> FloatArray:
        """Return what a unit of each arm of a day is believed to lose, in [0, 1].

        For a policy that learns from the round and was told no more, single arms mean nothing: what
        an action loses is <a, mean>. NaN if it has no such belief either.
        """
        if self.knows_rounds_only:
            return self._fitted()
        believed = self.policy.believed(self.roster.state) if self._believes else None
        return self._on(today, self.seen.predicted() if believed is None else believed[0], 0.5)

    @property
    def knows_rounds_only(self) -> bool:
        """Whether nothing was ever seen of single arms, and nothing is believed of them."""
        return self.policy.learns_from == "round" and not self.seen.columns["units"].any()

    def _fitted(self) -> FloatArray:
        """Return losses of the arms that fit the totals of the rounds; NaN if there are none."""
        policy, state = self.policy, self.roster.state
        if isinstance(policy, Regression) and state["seen"][0] == self.actions.spanning.s:
            losses: FloatArray = estimate(self.actions, state, np.zeros_like(state["z"]))[0]
            return losses
        return np.full(self.actions.d, np.nan)

    def interval(self, today: Today, level: float) -> tuple[FloatArray, FloatArray]:
        """Return where these means are, with a probability of about ``level``."""
        low, high = self.intervals(level)
        return self._on(today, low, 0.0), self._on(today, high, 1.0)

    def intervals(
        self, level: float, places: IntArray | None = None
    ) -> tuple[FloatArray, FloatArray]:
        """Return where the mean of every arm ever met is, in [0, 1]; or of those at some places."""
        if places is not None and not self.policy.changing:  # its state cannot be cut
            low, high = self.intervals(level)
            return low[places], high[places]
        c, state = self.seen.at(places), self.roster.cut(places)
        units, total, squares = c["units"], c["total"], c["squares"]
        if self.forgets and isinstance(self.policy, Averages):  # the squares were not forgotten
            units, total = state["count"][0], state["sum"][0]
            squares = total
        low, high = empirical_bernstein(units, total, squares, level)
        posterior = self.policy.interval(state, level) if self._believes else None
        if posterior is None:
            return low, high
        # coins that are flipped for a total vary too much: that posterior is too narrow
        lumped = (c["lumped"] > 0) & isinstance(self.policy, GenCTS)
        return np.where(lumped, low, posterior[0][0]), np.where(lumped, high, posterior[1][0])

    def averages(self, places: IntArray | None = None) -> FloatArray:
        """Return what a unit of every arm ever met lost on average, in [0, 1]; NaN if unknown.

        Where the policy forgets, old losses do not count here either. With ``places``, only the
        arms there are looked at.
        """
        believed = self.policy.believed(self.roster.state) if self.forgets else None
        seen = self.seen.at(places)
        units, total = seen["units"], seen["total"]
        mean = total / np.maximum(units, 1)
        if believed is not None:
            mean = believed[0] if places is None else believed[0][places]
        return np.where(units > 0, mean, np.nan)

    @property
    def forgets(self) -> bool:
        """Whether old losses count less for the policy than recent ones."""
        policy = self.policy
        return isinstance(policy, Forgetting) and (policy.discount or policy.window) is not None

    def _on(self, today: Today, values: FloatArray, unknown: float) -> FloatArray:
        """Return values of the arms of a day; ``unknown`` for those that were never met."""
        names = today.actions.names
        if names is self.roster.names or tuple(names) == self.roster.names:
            return values
        number = self.roster.number
        places = np.array([number.get(name, -1) for name in names], dtype=np.int64)
        return np.where(places >= 0, np.append(values, unknown)[places], unknown)

    def cost(self, today: Today, action: IntArray, mean: FloatArray) -> float:
        """Return what an action costs in the user's unit, if its units lose these means."""
        if not today.actions.linear:
            return float(today.actions.value(action, mean))
        if self.ranges.plain:
            return float(mean.dot(action)) + self.shortfall(today, action)
        units = today.bounds.low + self.ranges.scale * mean
        return float(action @ units) + self.shortfall(today, action)

    def shortfall(self, today: Today, action: IntArray) -> float:
        """Return what the units cost that cannot be served."""
        actions = today.actions
        if not actions.penalty:
            return 0.0
        return actions.sign * actions.penalty * sum(actions.unmet(action).values())

    def realised(self, today: Today, feedback: Feedback) -> float:
        """Return what the units seen of a play cost in the user's unit.

        NaN where that is not the sum of what they lost: from totals nobody could say it.
        """
        if not today.actions.linear:
            return np.nan
        cost: float = sum(feedback.total[0].tolist())
        if not self.ranges.plain:
            whole = feedback.total.shape != feedback.seen.shape
            seen = feedback.count[0] if whole else feedback.seen[0]
            cost = cost * self.ranges.scale + float(seen @ today.bounds.low)
        return cost + self.shortfall(today, feedback.count[0])

    def expected(self, today: Today, action: IntArray, level: float = 0.95) -> Estimate:
        """Return what an action should cost: the means of its arms, and their doubts together.

        The doubts of different arms are independent, so their squares are added up. Where the value
        of an action is not linear, the ends are its values at the ends of all arms.
        """
        mean = self.mean(today)
        total = self.cost(today, action, mean)
        if self.knows_rounds_only:
            doubt = np.nan
            if isinstance(self.policy, Regression) and not np.isnan(total):
                sigma = self.policy.doubt(self.actions, self.roster.state, action)
                doubt = self.ranges.scale * sigma * NormalDist().inv_cdf((1 + level) / 2)
            return Estimate(total, total - doubt, total + doubt)
        low, high = self.interval(today, level)
        if not today.actions.linear:  # but it grows with every mean
            return Estimate(total, *(self.cost(today, action, end) for end in (low, high)))
        below, above = (
            self.ranges.scale * float(np.sqrt(((action * doubt) ** 2).sum()))
            for doubt in (np.maximum(mean - low, 0.0), np.maximum(high - mean, 0.0))
        )
        return Estimate(total, total - below, total + above)


def _believes(policy: Policy, state: Arrays) -> bool:
    """Say whether a policy can read beliefs in its state.

    A class that somebody made from one of ours may keep another state, and inherit the rest.
    """
    try:
        return policy.believed(state) is not None
    except KeyError:
        return False
