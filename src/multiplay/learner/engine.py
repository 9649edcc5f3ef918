"""Learning engine: pending plays and the rules of all verbs, without history or files.

For ``ask``, the owner prepares the set of the round (``round_set``, ``featured``), and
``Engine.ask`` lets the policy choose (``policy_state.py``), applies all constraints to its plan
(``constraints/terms.py``), and keeps the play as pending. For ``tell``, ``Engine.parse`` reads the
losses, and ``Engine.tell`` checks them against the play (``reports.py``) and, with the final
report, learns from all of them (``PolicyState.learn``). Means and expected costs are read from
that state (``beliefs.py``), and change nothing.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from multiplay._support import deadline
from multiplay._support.checks import check_instance, is_integer, true_or_false
from multiplay._support.dates import day_name
from multiplay._support.formatting import counted
from multiplay._support.hints import LEARNER, Hint, Option, Term, Verb
from multiplay._support.serialization import pack
from multiplay._support.suggestions import suggestion
from multiplay._support.words import USUAL_WORDS, Words, given_words
from multiplay.actions import ActionSet
from multiplay.beliefs.restart import ReportLog, Restart
from multiplay.constraints import terms
from multiplay.constraints.constraint import Constraint, checked_constraints
from multiplay.constraints.terms import Switching, planned, seen_first
from multiplay.errors import Conflict, InvalidInput, NotFound
from multiplay.features import Features
from multiplay.features.table import Scales, Values
from multiplay.learner.allowance import BY_DAY, FOUND
from multiplay.learner.beliefs import Beliefs
from multiplay.learner.constraints import Before, ConstraintReport, LearnerConstraints
from multiplay.learner.features import DECLARED_HERE, FeatureState, new_table
from multiplay.learner.logged_data import KnownArms, LoggedData, ReadTable, read_table, reports
from multiplay.learner.plays import (
    CANCELLED,
    CARRIED_OUT_HINT,
    PendingState,
    Receipt,
    Remaining,
    time_of,
    timestamp,
)
from multiplay.learner.policy_state import PolicyState
from multiplay.learner.promises import draws_costs, used_units
from multiplay.learner.ranges import GROW, Ranges
from multiplay.learner.reports import REFUSED, ParsedLosses, Report, Reports, is_among, parse_losses
from multiplay.learner.round_set import NO_LIMITS, PlanLimits, RoundSet, action_of
from multiplay.policies import Duplicated, FeatureCTS, Play, Policy
from multiplay.policies.base import check_fits
from multiplay.policies.pooledcts import DEFAULT
from multiplay.policies.wrapped import must_see
from multiplay.posteriors.memories import Changes
from multiplay.random import Streams
from multiplay.types import Arrays, FloatArray, IntArray

MISSING = ("refuse", "ignore")
LONGEST_KEY = 200  # characters
ROUNDING = 1e-9  # of a cost
REQUEST = "\x1f"  # prefix of the keys of requests; keys of users never have it

Range = tuple[float, float] | Mapping[str, tuple[float, float]]
Losses = Mapping[str, Any] | Sequence[Any] | FloatArray | float
Round = int | datetime  # its number, or a time
Units = Mapping[str, int] | Sequence[int] | IntArray  # or a pandas Series


class PlayOutcome(NamedTuple):
    """The outcome of a closed play.

    Attributes
    ----------
    seen : int
        The number of its units that were reported.
    realised : float
        Their cost in the user's unit; NaN if it is not known.
    clipped : int
        The number of losses outside their range.
    """

    seen: int
    realised: float
    clipped: int


class ReportResult(NamedTuple):
    """The result of a report.

    Attributes
    ----------
    receipt : Receipt
        The receipt for the caller.
    digests : bytes
        The digests of all reports of the play.
    outcome : PlayOutcome or None
        The outcome of the play; None if it is still open.
    """

    receipt: Receipt
    digests: bytes
    outcome: PlayOutcome | None


def check_grows(ranges: Ranges, policy: Policy, actions: ActionSet) -> None:
    """Raise ``InvalidInput`` if ranges grow, and the policy or the set needs known ones."""
    if ranges.outside == GROW and (policy.needs_range or not actions.affine):
        expected = "outside='refuse' or 'clip', because the range of losses must be known"
        got = f"outside='grow' for {policy if policy.needs_range else actions!r}"
        raise InvalidInput("reports", expected, got, "Use PooledCTS, or leave it out.")


def default_policy(features: Features | None) -> Policy:
    """Return the policy that follows changes, and reads the features that are declared."""
    return DEFAULT if features is None else FeatureCTS(memory=Changes())


class Engine:
    """The state of a learner, its pending plays, and the rules of all verbs.

    Closed plays and keys are not here: the owner keeps the history, in memory (``Learner``) or in
    a journal (``Study``), and issues the ids.

    Attributes
    ----------
    state : PolicyState
        The policy with its state, and statistics of each arm.
    beliefs : Beliefs
        Means, intervals and expected costs, read from the state.
    missing : "refuse" or "ignore"
        The treatment of units that a final report leaves out.
    pending : dict
        The plays without a final report by id, oldest first.
    asked, clipped : int
        The numbers of plays asked, and of losses clipped.
    horizon : int or None
        The horizon of the policy, if it has one.
    seed : int or None
        The seed of all random numbers, if it is known.
    words : Words
        The words in which plans and costs are shown.
    constraints : LearnerConstraints
        What the plans must keep or pay.
    """

    def __init__(
        self,
        state: PolicyState,
        missing: str = "refuse",
        constraints: LearnerConstraints | None = None,
    ) -> None:
        self.state, self.beliefs, self.missing = state, Beliefs(state), missing
        self.horizon = own_horizon(state.policy)
        self.seed: int | None = None
        self.pending: dict[int, PendingState] = {}
        self.asked = self.clipped = 0
        self.words = self.default_words
        self.constraints = LearnerConstraints() if constraints is None else constraints

    @classmethod
    def create(
        cls,
        actions: ActionSet,
        policy: Policy | None,
        rng: Streams,
        *,
        loss_range: Range | None = None,
        reports: Reports = REFUSED,
        varying_set: bool = False,
        features: Features | None = None,
        arm_features: Any = None,
        constraints: Sequence[Constraint] = (),
        words: Words = USUAL_WORDS,
        like: FloatArray | None = None,
    ) -> Engine:
        """Return a new engine, after checking that its parts fit and can be saved."""
        check_instance("actions", actions, ActionSet, "Transport([1, 4, 5], [4, 6])")
        table = new_table(features, arm_features)
        if policy is None:
            policy = default_policy(features)
        check_instance("policy", policy, Policy, "PooledCTS(memory=Changes())")
        if table is not None and not policy.reads_features:
            expected = "a policy that reads features, because features are declared"
            raise InvalidInput("policy", expected, f"{policy!r}", "Use FeatureCTS.")
        check_fits(policy, actions, None, shows_units=True)  # totals are checked when reported
        pack(actions, "actions")  # raises if it cannot be saved
        pack(policy, "policy")
        check_instance("reports", reports, Reports, "Reports(missing='ignore')")
        missing = checked_missing(reports.missing)
        if true_or_false("varying_set", varying_set, "Leave it out.") and not policy.changing:
            raise _unable(policy, "a policy for changing sets, because varying_set=True")
        if missing == "ignore" and not policy.partial:
            raise _unable(policy, "a policy that allows missing units, because missing='ignore'")
        grows = loss_range is None and actions.affine and not policy.needs_range
        outside = (GROW if grows else "refuse") if reports.outside is None else reports.outside
        ranges = Ranges.chosen(loss_range, outside, actions)
        check_grows(ranges, policy, actions)
        state = PolicyState(actions, policy, ranges, rng, table=table, like=like)
        given = checked_constraints(constraints)
        for one in given:
            LearnerConstraints().check(state, one, strict=not varying_set)
        made = cls(state, missing, LearnerConstraints(given, actions.d))
        check_instance("words", words, Words, "Words(currency='EUR')")
        usual = USUAL_WORDS._asdict()
        made.set_words(**{k: word for k, word in words._asdict().items() if word != usual[k]})
        return made

    def __str__(self) -> str:
        state, pending = self.state, len(self.pending)
        arms = counted(len(state.arms.names), "arm")
        text = f"{type(state.policy).__name__} on {arms}: "
        text += f"{self.asked} asked, {state.told} told"
        text += f", {pending} pending" if pending else ""
        text += f", {state.ranges}" if not state.ranges.plain else ""
        text += f", {self.clipped} clipped" if self.clipped else ""
        if self.constraints.switching is not None:
            text += f", a changed unit costs {self.constraints.switching.settings.cost:g}"
        return text + (", for this set only" if not state.policy.changing else "")

    # ------------------------------------------------------------ words

    @property
    def default_words(self) -> Words:
        """The words of a learner that was given none."""
        return Words(arm=self.state.actions.arm_word)

    @property
    def given_words(self) -> dict[str, str]:
        """The words that differ from the default ones."""
        usual = self.default_words._asdict()
        return {name: word for name, word in self.words._asdict().items() if word != usual[name]}

    def set_words(self, **given: str | None) -> dict[str, str]:
        """Replace the words that are given and not None; return these."""
        checked = given_words(**given)
        self.words = self.words._replace(**checked)
        return checked

    # ------------------------------------------------------------ plays

    def round_set(self, actions: Any, at_most: Any, exclude: Any, fixed: Any) -> RoundSet:
        """Return the set of a round for the options of ``ask``."""
        return self.state.round_set(actions, self.limits(actions, at_most, exclude, fixed))

    def featured(
        self,
        round_set: RoundSet,
        given: Any,
        action: IntArray | None = None,
        *,
        default: bool = False,
    ) -> RoundSet:
        """Return the set of a round with its features, for the argument of ``ask``.

        ``action`` as in ``with_features``; ``default``: with the features of the last play if none
        are given.
        """
        features = self.features_for(given)
        if features is None:
            return round_set
        return self.with_features(round_set, features.values(given, default), action)

    def with_features(
        self,
        round_set: RoundSet,
        today: Values | None,
        action: IntArray | None = None,
        scales: Scales | None = None,
    ) -> RoundSet:
        """Return the set of a round with its features, for parsed values.

        With an ``action``, those of its arms only: other arms need no values. ``scales`` are those
        of a journal, if they are known.
        """
        features, known = self.state.features, self.state.arms.index
        if features is None or today is None:
            return round_set
        if action is None:
            found = features.checked(today, round_set.actions.names, known, scales)
        else:
            found = features.checked_plan(today, round_set, action, known, scales)
        return round_set.featured(found)

    def features_for(self, given: Any) -> FeatureState | None:
        """Return the state of the features; raise ``InvalidInput`` if some are given without."""
        features = self.state.features
        if features is None and given is not None:
            hint = Hint("Create the {} with {}, or leave them out.", LEARNER, DECLARED_HERE)
            raise InvalidInput("features", "declared features", "no declared features", hint)
        return features

    @property
    def declared(self) -> Features | None:
        """The declared features, if there are any."""
        return None if self.state.features is None else self.state.features.features

    def described(self, table: Any) -> tuple[list[str], Arrays]:
        """Return the arms of a table and the codes of their features; nothing changes."""
        return self.state.known_features("table").described(table)

    def keep_arm_features(self, arms: Sequence[str], codes: Arrays) -> Scales:
        """Keep features of arms by their codes; return the scales that they fixed."""
        return self.state.known_features("table").set_arm_features(arms, codes)

    def limits(self, actions: Any, at_most: Any, exclude: Any, fixed: Any) -> PlanLimits:
        """Return the limits of a plan for the options of ``ask``."""
        if at_most is None and fixed is None and isinstance(exclude, tuple) and not exclude:
            return NO_LIMITS
        given = self.state.actions if actions is None else actions
        check_instance("actions", given, ActionSet, "Transport([1, 4, 5], [4, 6])")
        return PlanLimits.given(at_most, exclude, fixed, given.names)

    def baseline(self, round_set: RoundSet, given: Any) -> IntArray | None:
        """Return the baseline's plan of a round, for the argument of ``ask``; None without one."""
        limit = self.constraints.allowance
        if limit is not None:
            return limit.baseline(round_set, given)
        if given is not None:
            hint = Hint("Create the {} with {}, or leave it out.", LEARNER, BY_DAY)
            raise InvalidInput("baseline", "no plan without an allowance", "a plan", hint)
        return None

    @property
    def has_rule(self) -> bool:
        """Whether the plans of the baseline, if there are any, are those of a rule."""
        return self.constraints.allowance is None or self.constraints.allowance.has_rule

    def baseline_again(self, round_set: RoundSet, memo: Arrays) -> IntArray | None:
        """Return the baseline's plan of a play of the past: by the rule, or as it was given."""
        limit = self.constraints.allowance
        if limit is None:
            return None
        return limit.baseline(round_set, None if limit.has_rule else memo[FOUND][0])

    def ask(
        self,
        id: int,
        round_set: RoundSet,
        when: float,
        key: str | None,
        until: float = math.inf,
        baseline: IntArray | None = None,
        ahead: tuple[ActionSet, ...] = (),
    ) -> PendingState:
        """Choose a play before a deadline, and keep it; return it with its warm start.

        ``baseline`` is the baseline's plan, if there is an allowance; ``ahead`` are the known sets
        of the plays after it, for promises.
        """
        label, day = f"play {self.asked + 1}", time_of(key, when)
        with deadline.status_line("choosing a play"):
            play, truncated, gap = self._choose(round_set, day, label, until, baseline, ahead)
        action = play.action[0]
        units, phi = int(action.sum()), round_set.phi(action)
        cost = self.beliefs.cost(round_set, action, phi)
        numbers = when, cost, units, b"", truncated, phi, round_set.today
        pending = PendingState(play, round_set.base, key, None, *numbers, gap=gap)
        self._keep(id, pending, round_set, ahead)
        return pending

    def best_cost(self, round_set: RoundSet, cost: float) -> float:
        """Return the expected cost of the best plan of a round; NaN if its oracle is slow.

        ``cost`` is that of the play, which is returned unless another plan is better.
        """
        declared = round_set.given.cost
        slow = declared is None or declared.timed or declared.oracle == "search"
        if slow or math.isnan(cost):
            return math.nan
        best = self.beliefs.best(round_set)
        phi = None if round_set.features is None else round_set.phi(best)
        found = self.beliefs.cost(round_set, best, phi)
        return found if self.explores(cost, found) else cost

    def explores(self, cost: float, best: float) -> bool:
        """Return whether a plan is worse than the best one, beyond rounding errors."""
        worse = self.state.actions.sign * (cost - best)
        return bool(worse > ROUNDING * max(abs(cost), abs(best), self.state.ranges.span))

    def keep(
        self,
        id: int,
        play: PendingState,
        round_set: RoundSet,
        ahead: tuple[ActionSet, ...] = (),
    ) -> None:
        """Keep a play that was chosen before from this set."""
        self.state.begin_round(round_set)
        self._keep(id, play, round_set, ahead)

    def parse(self, losses: Losses, play: PendingState) -> ParsedLosses:
        """Return the losses of a play, after checking that they are numbers for its arms."""
        round_set = play.round_set
        also = round_set.actions.unmet(play.action[0]) if round_set.may_lack else ()
        return parse_losses(losses, round_set.actions.names, self.state.policy, also)

    def ignores(self, missing: str | None) -> bool:
        """Return whether units may be left out of a final report."""
        return (self.missing if missing is None else checked_missing(missing)) == "ignore"

    def tell(
        self, id: int, parsed: ParsedLosses, final: bool, ignore: bool, when: float
    ) -> ReportResult:
        """Add a report to a pending play; if it is final, learn from all of its reports."""
        play = self.pending[id]
        action, names = play.action[0], play.round_set.actions.names
        report, digests = play.report, play.digests
        digest = parsed.digest(action)
        repeated = is_among(digest, digests)
        if report is None or not repeated:
            partly = ignore or not final or report is not None
            part = play.round_set.report(action, parsed, partly)
            report = part if report is None else report.joined(part, parsed.length, names)
        if not repeated:
            digests += digest
            if report.totals and any(parsed.totals.get(arm) == 0 for arm in report.totals):
                # the digest after the play is closed, when its action is no longer kept
                digests += parsed.digest(None)
        outcome = None
        if not final:
            self.pending[id] = play._replace(report=report, digests=digests)
        else:
            if not ignore:
                report.check_gaps(names)
            used = used_units(report) if self.constraints.promises.kept else None
            outcome = self._close(id, report, when, used)
        seen = play.units if report.whole else int(report.seen.sum())
        numbers = seen, play.units - seen, report.clipped
        return ReportResult(Receipt(id, *numbers, repeated and not final, final), digests, outcome)

    def close(self, id: int, when: float) -> tuple[Receipt, PlayOutcome]:
        """Learn from the reports of a play so far."""
        play = self.pending[id]
        report = Report.empty(play.action[0]) if play.report is None else play.report
        return receipt_of(id, report), self._close(id, report, when)

    def cancel(self, id: int) -> None:
        """Discard a play."""
        self.constraints.cancel(self.state, self.pending.pop(id))

    def late(self, latest: float) -> dict[int, bool]:
        """Return the plays asked before this time; True to close, False to cancel."""
        late = [(id, play) for id, play in self.pending.items() if not play.asked >= latest]  # NaN
        return {
            id: play.report is not None and self.state.can_use(play.report) for id, play in late
        }

    def warn_if_over(self, before: int) -> None:
        """Warn if the horizon of the policy was passed since ``before`` rounds were told."""
        if self.horizon is not None and before <= self.horizon < self.state.told:
            warn_if_over(self.state.policy, self.horizon + 1)

    # ------------------------------------------------------------ constraints

    def add_constraint(self, constraint: Any, before: Before) -> Constraint:
        """Add a constraint for the plays from now on."""
        made = self.constraints.check(self.state, constraint)
        names = self.state.arms.names
        self.constraints.add(made, names, before, self.pending, self.asked)
        return made

    def end_constraint(self, name: Any) -> None:
        """End a constraint by its name."""
        self.constraints.end(name, self.pending)

    def constraint_reports(self) -> list[ConstraintReport]:
        """Return what became of each constraint so far."""
        return self.constraints.reports(self.state, self.beliefs)

    def warn_if_promised(self, play: PendingState) -> None:
        """Warn once, in the first play after those that a promise was made for."""
        for promise in self.constraints.promises.over(play.play):
            warnings.warn(
                f"{promise.name!r} was promised for {promise.plays} plays, and this is one more: "
                "no further plays are expected now. End it, and add it again for more plays.",
                UserWarning,
                stacklevel=CALLER - 1,
            )

    # ------------------------------------------------------------ external plans

    def external(
        self, plan: Units, actions: ActionSet | None, features: Any, missing: str | None
    ) -> tuple[RoundSet, IntArray, bool]:
        """Return the set of an external plan, the plan as an action, and ``ignores(missing)``."""
        self.check_absorbs()
        round_set, ignore = self.state.round_set(actions), self.ignores(missing)
        action = action_of("plan", plan, round_set.given)
        return self.featured(round_set, features, action), action, ignore

    def learn(
        self, round_set: RoundSet, action: IntArray, losses: Losses, ignore: bool, when: float
    ) -> tuple[Receipt, ParsedLosses]:
        """Learn from an external plan."""
        names = round_set.actions.names
        parsed = parse_losses(losses, names, self.state.policy, round_set.actions.unmet(action))
        return self.absorb(round_set, action, parsed, ignore, when), parsed

    def absorb(
        self, round_set: RoundSet, action: IntArray, parsed: ParsedLosses, ignore: bool, when: float
    ) -> Receipt:
        """Learn from an external plan and its parsed losses."""
        names = round_set.actions.names
        report = round_set.whole_report(action, parsed, ignore)
        promises = self.constraints.promises
        if promises.kept:
            promises.amounts(names)
        self.state.absorb(round_set, report, when)
        promises.learn(self.state, round_set, action, when)
        self.keep_features(round_set)
        self.clipped += report.clipped
        return receipt_of(None, report)

    def read_table(
        self,
        table: Any,
        arm: Any,
        round: str,
        loss: str,
        day_first: bool | None = None,
        id: str | None = None,
    ) -> ReadTable:
        """Return a table as logged data, compared with the arms; nothing changes."""
        state = self.state
        fixed = "" if state.policy.changing else type(state.policy).__name__
        known = KnownArms(state.arms.index, state.ranges, fixed, self.declared)
        return read_table(table, arm, round, loss, known, day_first, id)

    def learn_all(self, logged: LoggedData, scales: Scales | None = None) -> tuple[Receipt, Scales]:
        """Learn from logged data; arms that are not known are added.

        ``scales`` are those of a journal. Return the receipt, and the scales that the data fixed.
        """
        state, features = self.state, self.state.features
        new = state.arms.new_names(logged.arms)
        names = (*state.arms.names, *new)
        history = reports(logged, names, state.ranges)
        checked = [state.usable(report) for report in history]  # before any is learned
        rows: list[FloatArray | None] = [None] * len(history)
        if features is not None:
            rows, scales = features.learn_scales(logged, names, scales)
        state.add_names(new)
        for k, (report, feedback, phi) in enumerate(zip(history, checked, rows, strict=True)):
            state.absorb_all(report, feedback, logged.time(k), phi)
        told = [receipt_of(None, report) for report in history]
        seen, missing, clipped = (
            sum(getattr(one, name) for one in told) for name in ("seen", "missing", "clipped")
        )
        self.clipped += clipped
        receipt = Receipt(None, seen, missing, clipped, added=tuple(new), skipped=logged.skipped)
        return receipt._replace(known=logged.known), scales or {}

    def keep_features(self, round_set: RoundSet) -> None:
        """Keep the features of an external plan: all that stays of it if it is retracted."""
        if round_set.features is not None and self.state.features is not None:
            self.state.features.keep_values(round_set.features, round_set.actions.names)

    def skip_all(self, logged: LoggedData, scales: Scales) -> None:
        """Keep only the scales that logged data fixed, whose losses were retracted."""
        names, features = self.state.arms.names, self.state.features
        if features is not None:
            new = self.state.arms.new_names(logged.arms)
            features.learn_scales(logged, (*names, *new), scales)

    def check_report(
        self, id: int | None, play: PendingState, parsed: ParsedLosses, ignore: bool
    ) -> tuple[Receipt, PlayOutcome]:
        """Return the result of a complete report of a play, without learning from it."""
        report = play.round_set.whole_report(play.action[0], parsed, ignore)
        told, realised = receipt_of(id, report), play.round_set.realised(self.state.usable(report))
        return told, PlayOutcome(told.seen, realised, told.clipped)

    def check_absorbs(self) -> None:
        """Raise ``InvalidInput`` if the policy cannot learn from external plans."""
        if not self.state.policy.absorbs:
            raise _unable(self.state.policy, "a policy that can learn from external plans")

    def check_believes(self, round_set: RoundSet) -> None:
        """Raise ``InvalidInput`` if the cost of a plan cannot be estimated."""
        if np.isnan(self.beliefs.mean(round_set)).any():
            raise InvalidInput(
                "policy",
                "a policy that can estimate the cost of a plan",
                f"{self.state.policy!r} with too few totals of rounds",
                Hint(
                    "Tell the losses of each arm, or continue with {}.",
                    Term("ask()", "new plan"),
                ),
            )

    # ------------------------------------------------------------ reports that count

    def check_restarts(self) -> None:
        """Raise ``InvalidInput`` if the policy cannot learn without the reports of some arms."""
        if not self.state.policy.partial:
            raise InvalidInput(
                "policy",
                "a policy that allows missing units, and so can forget those of some arms",
                f"{self.state.policy!r}",
                "Use PooledCTS, GenLBINFV or another policy that allows missing units.",
            )

    def checked_arm(self, arm: Any) -> str | None:
        """Return the name of an arm; None for all arms."""
        index = self.state.arms.index
        if arm is None or (isinstance(arm, str) and arm in index):
            return arm
        hint = f"Check the spelling.{suggestion(arm, index)}"
        expected = f"a name such as {next(iter(index))!r}"
        raise InvalidInput("arm", expected, repr(arm), hint)

    def restarted(
        self, log: ReportLog, keep: bool, arm: str | None, given: Round | None, now: float
    ) -> Restart:
        """Return a restart of an arm, or of all arms; see ``restart``.

        ``keep``: with all reports since a round or time; otherwise without those before it.
        """
        round = self._kept_since(log, arm, given, now) if keep else self._left(log, given, now)
        if round < log.begins:
            raise InvalidInput(
                "since" if keep else "before",
                f"a round from {log.begins} on",
                f"{round}",
                "The file of an older version has no reports of earlier rounds.",
            )
        return self.state.rebuild(log, keep, round, self.arm_places(arm))

    def _left(self, log: ReportLog, before: Round | None, now: float) -> int:
        """Return the first round that is left where the reports before one are forgotten."""
        told = self.state.told
        if not isinstance(before, datetime):
            hint = f"Use {told + 1} to forget all reports so far."
            return checked_round("before", before, 1, told + 1, hint)
        round = log.round_at(past_time("before", before, now))
        if round == max(log.begins, 1):
            expected, hint = "a time after the first report", "Use a later time."
            raise InvalidInput("before", expected, str(before), hint)
        return round

    def _kept_since(self, log: ReportLog, arm: str | None, since: Round | None, now: float) -> int:
        """Return the first round whose reports count again.

        None for ``since``: that before the arm forgot some of them.
        """
        if since is None:
            if arm is None:
                hint = Hint("Use {} for all reports, or name one arm.", Option("since", "0"))
                raise InvalidInput("since", "a round or a time, for all arms", "nothing", hint)
            return int(max(log.previous_start(self.state.arms.index[arm]), 0.0))
        if not isinstance(since, datetime):
            return checked_round("since", since, 0, self.state.told, "Use 0 for all reports.")
        round = log.round_at(past_time("since", since, now))
        return 0 if round == log.begins + 1 == 1 else round

    def arm_places(self, arm: str | None) -> IntArray:
        """Return the place of an arm, or of all arms."""
        arms = self.state.arms
        return np.arange(len(arms.names)) if arm is None else np.array([arms.index[arm]])

    def restart(self, restart: Restart, hidden: bool = False) -> Remaining:
        """Let only the reports of a restart count of its arms; ``hidden`` as in the state."""
        self.state.restart(restart, hidden)
        return Remaining(restart.since, restart.units)

    # ------------------------------------------------------------ private

    def _choose(
        self,
        round_set: RoundSet,
        when: float,
        label: str,
        until: float,
        baseline: IntArray | None,
        ahead: tuple[ActionSet, ...],
    ) -> tuple[Play, bool, float | None]:
        """Return the play of the policy under all constraints; as ``PolicyState.choose``."""
        state, actions = self.state, round_set.actions
        limit, switching = self.constraints.allowance, self.constraints.switching
        promised = self.constraints.promises.of_play(state, self.beliefs, round_set, ahead, when)
        if promised is not None and switching is None and not draws_costs(state, promised.kept):
            return *promised.priced(state, round_set, label, until), None
        rng = Streams(state.rng.state.copy())
        play, truncated, gap = state.choose(round_set, label, until)
        if promised is None and switching is None and (limit is None or baseline is None):
            return play, truncated, gap
        limits, memos = list[terms.Term](), list[Callable[[IntArray], Arrays]]()
        if promised is not None:
            term = promised.term(round_set)
            limits.append(term)
            memos.append(partial(promised.memo, term))
        if limit is not None and baseline is not None:
            allowed = limit.term(state, round_set, baseline, when)
            limits.append(allowed)
            memos.append(lambda plan: limit.memo(allowed, plan, when))
        if switching is not None:
            last = switching.before(state, round_set, self.pending.values())
            limits.append(Switching(last.changes))
            memos.append(lambda plan: last.memo(plan, self.asked + 1))

        def theta() -> FloatArray:
            arrays = state.arms.to_choose(state.arms.places(actions.names))
            index = state.policy.index(actions, arrays, rng)
            assert index is not None  # see has_index
            if promised is None and switching is None:
                return index
            early = None if switching is None else must_see(state.policy, actions, arrays)
            return seen_first(actions, index, play.action, early)

        with deadline.before(until) as timed:
            plan = planned(actions, theta, play.action, limits)
        memo = play.memo | state.policy.memo(actions, plan)
        for of_term in memos:
            memo |= of_term(plan)
        made = Play(plan, memo, play.cache)
        state.check(round_set, made, label)
        same = promised is None and np.array_equal(plan, play.action)
        return made, truncated or timed.truncated, gap if same else None

    def _keep(
        self, id: int, play: PendingState, round_set: RoundSet, ahead: tuple[ActionSet, ...]
    ) -> None:
        self.state.keep_warm(play)
        if round_set.features is not None and self.state.features is not None:
            self.state.features.keep(round_set.features, round_set.base.actions)
        self.pending[id] = play.without_cache()
        when = time_of(play.key, play.asked)
        self.constraints.keep(self.state, play, round_set, when, ahead)
        self.asked += 1

    def _close(
        self, id: int, report: Report, when: float, used: IntArray | None = None
    ) -> PlayOutcome:
        """Learn from a play and remove it from the pending ones; ``used`` as the report says."""
        play = self.pending[id]
        feedback = self.state.learn(play, report, when)
        self.constraints.close(self.state, play, used)
        del self.pending[id]
        self.clipped += report.clipped
        seen = play.units if feedback.complete else int(feedback.seen.sum())
        return PlayOutcome(seen, play.round_set.realised(feedback), report.clipped)


def checked_round(argument: str, given: Any, least: int, most: int, hint: str) -> int:
    """Return the number of a round, after checking that it is in a range."""
    if not is_integer(given) or not least <= given <= most:
        round, time = Term("a round", "round"), Term("a datetime", "datetime")
        expected = Hint("{} from {} to {}, or {}", round, f"{least}", f"{most}", time)
        raise InvalidInput(argument, expected, repr(given), hint)
    return int(given)


def past_time(argument: str, given: datetime, now: float) -> float:
    """Return a time as seconds since 1970, after checking that it is not in the future."""
    when = timestamp(argument, given)
    if when > now:
        raise InvalidInput(argument, "a time that is not in the future", str(given), "Check it.")
    return when


def receipt_of(id: int | None, report: Report) -> Receipt:
    """Return the receipt of a complete report."""
    played = int(report.played.sum())
    seen = played if report.whole else int(report.seen.sum())
    return Receipt(id, seen, played - seen, report.clipped)


def checked_missing(given: Any) -> str:
    """Return ``missing`` after checking that it is "refuse" or "ignore"."""
    if not isinstance(given, str) or given not in MISSING:
        hint = "Leave it out for 'refuse'."
        raise InvalidInput("missing", "'refuse' or 'ignore'", repr(given), hint)
    return given


def is_key(key: Any) -> bool:
    """Return whether a key has the type, length and characters of a key."""
    good = isinstance(key, str) and 0 < len(key) <= LONGEST_KEY and "\0" not in key
    try:
        return good and not key.startswith(REQUEST) and bool(key.encode())
    except UnicodeEncodeError:
        return False


def checked_key(key: Any) -> str:
    """Return a key after checking it; a date in any spelling is its day, as 2026-11-18."""
    if not is_key(key):
        hint = "Use a text such as '2026-11-15', or leave it out."
        expected = f"a text of 1 to {LONGEST_KEY} characters"
        raise InvalidInput("key", expected, repr(key)[:80], hint)
    return day_name(str(key))


def play_error(id: Any, what: str, hint: str) -> InvalidInput:
    """Return the error of a play that is not pending; ``what`` is its state if it exists."""
    kind, got = (Conflict, f"{id!r}, {what}") if what else (NotFound, repr(id))
    return kind("play", Hint("{}", Term("a pending play", "pending play")), got, hint)


def told_again(
    id: int, status: str, repeated: bool, units: int, seen: int, clipped: int
) -> Receipt:
    """Return the receipt of a report of a closed play; ``repeated``: it was told before."""
    if status == CANCELLED:
        raise play_error(id, "which was cancelled", CARRIED_OUT_HINT)
    if not repeated:
        hint = Hint("Use {} to replace the report, or omit it.", Verb("correct", "play, losses"))
        raise play_error(id, "which was closed with different losses", hint)
    return Receipt(id, seen, units - seen, clipped, repeated=True)


def _unable(policy: Policy, expected: str) -> InvalidInput:
    hint = "Use PooledCTS or GenLBINFV."
    return InvalidInput("policy", expected, f"{policy!r}", hint)


CALLER = 5  # stack level of the code that called a verb


def own_horizon(policy: Policy) -> int | None:
    """Return the horizon of a policy, if it has one."""
    T = getattr(_without_copies(policy), "horizon", None)
    return T if is_integer(T) else None


def warn_if_over(policy: Policy, told: int) -> None:
    """Warn once, in the first round after the horizon of a policy.

    ``told`` is the number of rounds told so far. It is saved with the learner, so that a loaded
    learner does not warn again.

    Examples
    --------
    >>> import warnings
    >>> from multiplay import GenLBINFV
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     for told in range(300, 400):
    ...         warn_if_over(GenLBINFV(horizon=365), told)
    >>> len(caught)
    1
    """
    T = own_horizon(policy)
    if T is None or told != T + 1:
        return
    policy = _without_copies(policy)
    name = type(policy).__name__
    without = "LinTS()" if policy.learns_from == "round" else "GenLBINFV()"
    warnings.warn(
        f"the horizon of {name}(horizon={T}) is over: round {told} was told. The learner continues "
        f"to choose valid plans and to learn, but its learning rates are tuned for {T} rounds, and "
        f"its regret bound ends there. For an unknown number of rounds use {without}, which needs "
        f"no horizon: start a new learner, and let it learn from the data told so far.",
        UserWarning,
        stacklevel=CALLER,
    )


def _without_copies(policy: Policy) -> Policy:
    while isinstance(policy, Duplicated):
        policy = policy.policy
    return policy
