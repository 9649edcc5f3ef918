"""What a learner knows, and how it comes to know more: no plays, no clock, no files."""

from __future__ import annotations

import numpy as np

from multiplay.actions import ActionSet
from multiplay.errors import InvalidInput
from multiplay.feedback import Feedback
from multiplay.learner.horizon import own_horizon, warn_if_over
from multiplay.learner.intervals import empirical_bernstein
from multiplay.learner.losses import Report
from multiplay.learner.plays import Expected, Waiting
from multiplay.learner.ranges import Ranges
from multiplay.learner.roster import Roster
from multiplay.learner.seen import Seen
from multiplay.learner.today import NO_LIMITS, Limits, Today, check_day
from multiplay.policies import Play, Policy
from multiplay.policies.base import check_fits, shown
from multiplay.policies.feasible import check_play
from multiplay.serialization import pack
from multiplay.streams import Streams
from multiplay.types import FloatArray, IntArray


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
        self._horizon = own_horizon(policy) or -1

    # ------------------------------------------------------------ days

    def day(self, actions: ActionSet | None, limits: Limits = NO_LIMITS) -> Today:
        """Return a day, after all of it was checked; the same object for the same set."""
        given = self.actions if actions is None else actions
        for known in (self.usual, self.last):
            if given is known.given and limits is known.limits:
                return known
        if given is not self.actions:
            check_day(given, self.actions, self.roster.number, self.policy)
            pack(given, "actions")  # refuses what could not be saved
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

    # ------------------------------------------------------------ rounds

    def choose(self, today: Today, when: str) -> Play:
        """Choose a play; the state has its warm start, and nothing else of it."""
        places = self.meet(today)
        self.roster.enter(today.actions)
        play = self.policy.choose(today.actions, self.roster.cut(places), self.rng)
        check_play(self.policy, today.actions, play, 1, when, restored=self.restored)
        self.roster.state |= play.cache  # makes the next choice faster, and no more
        self.last = today
        return Play(play.action, play.memo)

    def learn(self, play: Waiting, report: Report, when: float) -> Feedback:
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
        if self.told == self._horizon + 1:
            warn_if_over(self.policy, self.told)
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

    def absorb_all(self, report: Report) -> None:
        """Learn from units of any arms ever met; nobody knows of which set they were."""
        feedback = self.usable(report)
        self.policy.absorb(self.actions, self.roster.state, feedback, self.rng)
        self.seen.add(None, feedback, False, self.told, np.nan)

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
        """Return what a unit of each arm of a day is believed to lose, in [0, 1]."""
        return self._on(today, self._mean_of_all(), 0.5)

    def interval(self, today: Today, level: float) -> tuple[FloatArray, FloatArray]:
        """Return where these means are, with a probability of about ``level``."""
        low, high = self.intervals(level)
        return self._on(today, low, 0.0), self._on(today, high, 1.0)

    def _mean_of_all(self) -> FloatArray:
        believed = self.policy.believed(self.roster.state)
        return self.seen.predicted() if believed is None else believed[0]

    def intervals(self, level: float) -> tuple[FloatArray, FloatArray]:
        """Return where the mean of every arm ever met is, in [0, 1]."""
        posterior = self.policy.interval(self.roster.state, level)
        if posterior is not None:
            return posterior[0][0], posterior[1][0]
        c = self.seen.columns
        return empirical_bernstein(c["units"], c["total"], c["squares"], level)

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
        if self.ranges.plain:
            return float(mean.dot(action)) + self.shortfall(today, action)
        units = today.bounds.low + self.ranges.scale * mean
        return float(action @ units) + self.shortfall(today, action)

    def shortfall(self, today: Today, action: IntArray) -> float:
        """Return what the units cost that cannot be served."""
        actions = today.actions
        return actions.penalty * sum(actions.unmet(action).values()) if actions.penalty else 0.0

    def realised(self, today: Today, feedback: Feedback) -> float:
        """Return what the units seen of a play cost in the user's unit."""
        cost: float = sum(feedback.total[0].tolist())
        if not self.ranges.plain:
            whole = feedback.total.shape != feedback.seen.shape
            seen = feedback.count[0] if whole else feedback.seen[0]
            cost = cost * self.ranges.scale + float(seen @ today.bounds.low)
        return cost + self.shortfall(today, feedback.count[0])

    def expected(self, today: Today, action: IntArray, level: float = 0.95) -> Expected:
        """Return what an action should cost: the means of its arms, and their doubts together.

        The doubts of different arms are independent, so their squares are added up.
        """
        mean, (low, high) = self.mean(today), self.interval(today, level)
        total = self.cost(today, action, mean)
        below, above = (
            self.ranges.scale * float(np.sqrt(((action * doubt) ** 2).sum()))
            for doubt in (np.maximum(mean - low, 0.0), np.maximum(high - mean, 0.0))
        )
        return Expected(total, total - below, total + above)
