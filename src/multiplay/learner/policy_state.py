"""A policy with its state, and the reports that change it."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import cached_property

import numpy as np

from multiplay._support import deadline
from multiplay._support.hints import LEARNER, Hint
from multiplay.actions import ActionSet, Budget
from multiplay.beliefs.posterior import shares
from multiplay.beliefs.restart import ReportLog, Restart, rebuild
from multiplay.errors import InvalidInput
from multiplay.features.rows import FeatureRows
from multiplay.features.table import ArmFeatures
from multiplay.feedback import Feedback
from multiplay.learner.features import DECLARED_HERE, FeatureState, model_of, scattered
from multiplay.learner.moments import ArmMoments, ArmReport
from multiplay.learner.plays import PendingState
from multiplay.learner.ranges import Bounds, Ranges
from multiplay.learner.reports import Report
from multiplay.learner.round_set import (
    NO_LIMITS,
    PlanLimits,
    RoundSet,
    check_set,
    check_storable,
    fixed_set_only,
)
from multiplay.learner.statistics import ArmStatistics
from multiplay.policies import Duplicated, Play, Policy
from multiplay.policies.arm_state import ArmState
from multiplay.policies.base import check_fits, check_play, shown
from multiplay.policies.wrapped import has_index
from multiplay.random import Streams
from multiplay.types import FloatArray, IntArray

NO_TOTALS = np.zeros(0)


class PolicyState:
    """A policy, its state over all arms ever seen, and the losses told of each arm.

    Losses are in [0, 1] inside; ``ranges`` turns them into the user's unit and back.

    Attributes
    ----------
    actions, policy, ranges
        The usual set, the policy, and the user's unit.
    rng : Streams
        The source of random numbers.
    restored : bool
        Whether the state comes from a file.
    usual, last : RoundSet
        The usual set, and that of the last play.
    arms : ArmState
        The state of the policy by arm name.
    statistics : ArmStatistics
        Units seen, plans and drift by arm.
    moments : ArmMoments
        Moments of the losses of each arm, which beliefs follow from; see ``ArmMoments``.
    told : int
        The number of plays the policy has learned from.
    log : ReportLog or None
        All reports, if they are logged: a study has them in its journal.
    hides : function or None
        Whether the reports of an arm are hidden from the policy and from the effects of features,
        because they no longer count; see ``Masks``.
    features : FeatureState or None
        The declared features, and the beliefs that use them.
    like : array of shape (k, 10) or None
        Moments of arms of other studies, in the user's unit, and the numbers of these: see
        ``studies.like``.
    """

    def __init__(
        self,
        actions: ActionSet,
        policy: Policy,
        ranges: Ranges,
        rng: Streams,
        restored: bool = False,
        table: ArmFeatures | None = None,
        like: FloatArray | None = None,
    ) -> None:
        self.like = like
        self.actions, self.policy, self.ranges, self.rng = actions, policy, ranges, rng
        self.restored = restored
        self.features = None
        if table is not None:
            origin = ranges.origin / ranges.span
            self.features = FeatureState(table, model_of(policy), actions.d, origin)
        self.usual = self.last = self.prepared(actions, NO_LIMITS)
        self.arms = ArmState(policy, self.usual.actions, ranges.offset_of)
        self.arms.like = self.like_shares()
        if self.features is not None and ranges.alike:
            self.features.share(policy, self.arms)
        self.statistics = ArmStatistics(actions.d)
        self.moments = ArmMoments(policy, self.arms, ranges.alike)
        self.told = 0
        self.log: ReportLog | None = None
        self.hides: Callable[[str], bool] | None = None

    @cached_property
    def has_index(self) -> bool:
        """Whether the policy plays the best plan for some costs."""
        actions = self.usual.actions
        if actions.features is not None:  # of no round yet, and for kernels not writable
            of_none = actions.features.p, actions.features.factors
            actions = actions.featured(FeatureRows.none(actions.d, *of_none))
        return has_index(self.policy, actions, self.arms.cut(self.arms.places(actions.names)))

    def known_features(self, argument: str) -> FeatureState:
        """Return the state of the features; raise ``InvalidInput`` if none are declared."""
        if self.features is None:
            hint = Hint("Create the {} with {}.", LEARNER, DECLARED_HERE)
            raise InvalidInput(argument, "declared features", "no declared features", hint)
        return self.features

    # ------------------------------------------------------------ sets

    def round_set(
        self, actions: ActionSet | None, limits: PlanLimits = NO_LIMITS, stored: bool = False
    ) -> RoundSet:
        """Return the set of a round after it was checked; the same object for the same set.

        ``stored``: it was read from a journal, so that it can be stored.
        """
        given = self.actions if actions is None else actions
        for known in (self.usual, self.last):
            if given is known.given and limits is known.limits:
                return known
        if given is not self.actions:
            check_set(given, self.actions, self.arms.index, self.policy)
            if not given.affine:
                self.ranges.check_plain(given)
            if not stored:
                check_storable(given, self.actions)
        elif limits and not self.policy.changing:
            raise fixed_set_only(limits.first, self.policy, "a limit")
        round_set = self.prepared(given, limits)
        check_fits(self.policy, round_set.actions, None, shows_units=True)
        return round_set

    def prepared(self, given: ActionSet, limits: PlanLimits) -> RoundSet:
        """Return the set of a round that needs no checks."""
        known = self.features
        columns = (0, 0) if known is None else (known.p, known.features.factors)
        return RoundSet.of(given, limits, self.ranges, self.policy, *columns)

    def add_arms(self, round_set: RoundSet) -> IntArray | None:
        """Return the places of the arms of a round, after adding new arms."""
        names = round_set.actions.names
        if round_set.base is not self.usual and self.arms.new_names(names):
            self.arms.add(round_set.actions, self.told)
            self.statistics.grow(len(self.arms.names))
            self.moments.grow(len(self.arms.names))
            if self.features is not None:
                self.features.grow(len(self.arms.names))
        return self.arms.places(names)

    def add_names(self, names: Sequence[str]) -> None:
        """Add arms that no set has had so far."""
        if names:
            one_of_each = Budget(1, [1] * len(names), names=names, sense=self.actions.sense)
            self.add_arms(self.prepared(one_of_each, NO_LIMITS))

    def begin_round(self, round_set: RoundSet) -> IntArray | None:
        """Begin a round; return the places of its arms."""
        places = self.add_arms(round_set)
        self.arms.begin_round(round_set.base.actions)
        return places

    # ------------------------------------------------------------ rounds

    def choose(
        self, round_set: RoundSet, when: str, until: float
    ) -> tuple[Play, bool, float | None]:
        """Return a play, whether it is truncated, and then its gap in the user's unit, if known.

        At the deadline the play is chosen with the best result so far, and truncated. The state
        does not change: see ``keep_warm``.
        """
        state = self.arms.to_choose(self.begin_round(round_set))
        with deadline.before(until) as limit:
            play = self.policy.choose(round_set.actions, state, self.rng)
        round_set.keep_caches()
        self.check(round_set, play, when)
        gap = None if math.isnan(limit.gap) else round_set.ranges.scale * limit.gap
        return play, limit.truncated, gap

    def like_shares(self) -> FloatArray | None:
        """Return the moments of arms of other studies, as shares of the range."""
        ranges = self.ranges
        if self.like is None or not ranges.alike:
            return None
        return shares(self.like, ranges.origin, np.full(len(self.like), ranges.span))

    def check(self, round_set: RoundSet, play: Play, when: str) -> None:
        """Raise ``ArithmeticError`` unless a play is an action of the set of its round."""
        check_play(self.policy, round_set.actions, play, 1, when, restored=self.restored)

    def keep_warm(self, play: PendingState) -> None:
        """Keep the warm start of a chosen play, and nothing else of it."""
        self.arms.arrays |= play.play.cache  # only makes the next choice faster
        self.last = play.round_set

    def learn(self, play: PendingState, report: Report, when: float) -> Feedback:
        """Learn from a report of our own play; return its feedback."""
        feedback, round_set = self.usable(report), play.round_set
        places = self.arms.places(round_set.actions.names)
        visible = shown(self.policy, self._visible(report, feedback, round_set.actions.names))
        self._separate(places, report, visible)
        self.arms.skip_round(places)
        state = self.arms.cut(places)
        self.policy.update(round_set.actions, state, play.play, visible, self.rng)
        self.arms.put_back(places, state)
        self.told += 1
        self.statistics.add(places, feedback, True, self.told, when)
        self.moments.pass_round()
        if self.log is not None:
            self.log.begin_round(when)
        if self.features is not None:
            self.features.pass_round()
        self._add_moments(places, report, visible, round_set.bounds, play.phi)
        return feedback

    def absorb(self, round_set: RoundSet, report: Report, when: float) -> Feedback:
        """Learn from a report of an external plan; return its feedback."""
        feedback = self.usable(report)
        places = self.add_arms(round_set)
        visible = self._visible(report, feedback, round_set.actions.names)
        self._separate(places, report, visible)
        state = self.arms.cut(places)
        self.policy.absorb(round_set.actions, state, visible, self.rng)
        self.arms.put_back(places, state)
        self.statistics.add(places, feedback, False, self.told, when)
        phi = round_set.phi(report.played)
        self._add_moments(places, report, visible, round_set.bounds, phi)
        return feedback

    def absorb_all(
        self, report: Report, feedback: Feedback, when: float, phi: FloatArray | None = None
    ) -> None:
        """Learn from a report of any arms ever seen, of unknown sets; ``feedback`` is usable.

        ``when`` is the time of the round, NaN if it is not known, and ``phi`` the features of the
        arms that were played.
        """
        actions, bounds = self.actions, self.ranges.of(self.arms.names)
        if self.policy.reads_features and self.usual.actions.offset is not None:
            actions = actions.shifted(bounds.low / self.ranges.scale)
        if phi is not None:
            actions = actions.featured(scattered(phi, report.played))
        visible = self._visible(report, feedback, self.arms.names)
        self._separate(None, report, visible)
        self.policy.absorb(actions, self.arms.arrays, visible, self.rng)
        self.statistics.add(None, feedback, False, self.told, when)
        self._add_moments(None, report, visible, bounds, phi)

    def _separate(self, places: IntArray | None, report: Report, visible: Feedback) -> None:
        """Separate beliefs from the policy if it will learn other bits of a report."""
        differs = places is not None or bool(report.totals and len(report.units))
        if differs:
            self.moments.separate()
        if self.features is not None and (differs or not visible.seen.any()):
            self.features.separate()

    def _visible(self, report: Report, feedback: Feedback, names: Sequence[str]) -> Feedback:
        """Return the feedback of a report without the arms that are hidden."""
        if self.hides is None:
            return feedback
        return report.without([i for i, name in enumerate(names) if self.hides(name)]).feedback()

    def _add_moments(
        self,
        places: IntArray | None,
        report: Report,
        learned: Feedback,
        bounds: Bounds,
        phi: FloatArray | None,
    ) -> None:
        """Add a report to what beliefs read; ``learned`` is what the policy has learned."""
        if report.round is None:  # a total of the round shows nothing of its arms
            totals = NO_TOTALS
            if report.totals:
                totals = np.full(len(report.played), np.nan)
                totals[list(report.totals)] = list(report.totals.values())
            told = report.played, report.slots, report.units, totals
            of_arms = ArmReport(*told, *self.ranges.shares(bounds))
            added = self.moments.add(places, of_arms, learned)
            if self.features is not None and phi is not None:
                (played,) = report.played.nonzero()
                visible = added
                if self.hides is not None:
                    hidden = np.array([self.hides(name) for name in self.arms.names])
                    visible = np.where(hidden[:, None], 0.0, added)
                self.features.learn(played if places is None else places[played], phi, visible)
            if self.log is not None:
                self.log.add(self.told, added, self.moments.starts)

    def rebuild(self, log: ReportLog, keep: bool, since: int, places: IntArray) -> Restart:
        """Return the restart of some arms from a round on."""
        return rebuild(log, keep, since, places, self.told, self.moments.memory.limits)

    @property
    def masks(self) -> bool:
        """Whether reports that no longer count are hidden in a replay of the journal.

        Otherwise the policy computes its state from the sums of a restart. Effects of features have
        no such sums.
        """
        return self.features is not None or not self.policy.restarts

    def restart(self, restart: Restart, hidden: bool = False) -> None:
        """Let only the reports of a restart count of its arms.

        ``hidden``: other reports were hidden from the policy.
        """
        names = [self.arms.names[place] for place in restart.places]
        visible = restart.unscaled(*self.ranges.shares(self.ranges.of(names)))
        self.moments.restart(restart)
        if not hidden:
            self.policy.restart(self.arms.arrays, visible)
        self.statistics.restart(visible)
        if self.log is not None:
            self.log.restart(restart)

    def can_use(self, report: Report) -> bool:
        """Return whether the policy can learn from a report."""
        try:
            self.usable(report)
        except InvalidInput:
            return False
        return True

    def usable(self, report: Report) -> Feedback:
        """Return the feedback of a report; raise ``InvalidInput`` if the policy cannot use it."""
        feedback = report.feedback()
        several = (feedback.seen > 1).any() or isinstance(self.policy, Duplicated)
        if feedback.units is None and self.policy.learns_from == "units" and several:
            raise InvalidInput(
                "losses",
                f"the loss of every unit, for {type(self.policy).__name__}",
                "totals",
                "Use the policy without Duplicated: it learns from totals."
                if isinstance(self.policy, Duplicated)
                else "Tell the losses of the units in order, as a list for each arm.",
            )
        if not feedback.complete and not self.policy.partial:
            raise InvalidInput(
                "losses",
                f"the losses of all units, for {type(self.policy).__name__}",
                f"{int(feedback.seen.sum())} of {int(feedback.count.sum())}",
                "Cancel the play, or use a policy that allows missing units, such as PooledCTS.",
            )
        return feedback
