"""Learning engine: pending plays and the rules of all verbs, without history or files."""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from multiplay._support import deadline
from multiplay._support.checks import check_instance, is_integer, true_or_false
from multiplay._support.serialization import pack
from multiplay.actions import ActionSet
from multiplay.errors import Conflict, InvalidInput, NotFound
from multiplay.learner.beliefs import Beliefs
from multiplay.learner.logged_data import LoggedData, reports
from multiplay.learner.plays import CANCELLED, PendingState, Receipt
from multiplay.learner.policy_state import PolicyState
from multiplay.learner.ranges import Ranges
from multiplay.learner.reports import ParsedLosses, Report, ReportBuilder, is_among, parse_losses
from multiplay.learner.round_set import NO_LIMITS, PlanLimits, RoundSet
from multiplay.policies import Duplicated, Policy
from multiplay.policies.base import check_fits
from multiplay.random import Streams
from multiplay.types import FloatArray, IntArray

MISSING = ("refuse", "ignore")
LONGEST_KEY = 200  # letters
REQUEST = "\x1f"  # before the key of a request that may come twice; that of a play never has it

Range = tuple[float, float] | Mapping[str, tuple[float, float]]
Losses = Mapping[str, Any] | Sequence[Any] | FloatArray | float
Units = Mapping[str, int] | Sequence[int] | IntArray  # or a pandas Series


class PlayOutcome(NamedTuple):
    """What came of a play that is closed.

    Attributes
    ----------
    seen : int
        How many of its units have reported.
    realised : float
        What they cost, in the user's unit; NaN if that is not known.
    clipped : int
        Numbers told of it that were outside their range.
    """

    seen: int
    realised: float
    clipped: int


class ReportResult(NamedTuple):
    """What a report has changed.

    Attributes
    ----------
    receipt : Receipt
        The answer to who told it.
    digests : bytes
        Of all that was told of the play.
    outcome : PlayOutcome or None
        What came of the play; None if more will come.
    """

    receipt: Receipt
    digests: bytes
    outcome: PlayOutcome | None


class Engine:
    """What is known, which plays wait, and what may be done with them.

    It knows no play that is over, and no key: who has it keeps the history, in memory
    (``Learner``) or in a journal (``Study``), and gives the ids.

    Attributes
    ----------
    state : PolicyState
        The policy and what it knows.
    missing : "refuse" or "ignore"
        What to do with units that a final report leaves out.
    pending : dict
        By id, the plays that wait for their losses, oldest first.
    asked, clipped : int
        How many plays were asked; how many numbers were clipped.
    """

    def __init__(self, state: PolicyState, missing: str = "refuse") -> None:
        self.state, self.beliefs, self.missing = state, Beliefs(state), missing
        self.horizon = own_horizon(state.policy)
        self.pending: dict[int, PendingState] = {}
        self.asked = self.clipped = 0

    @classmethod
    def create(
        cls,
        actions: ActionSet,
        policy: Policy,
        rng: Streams,
        losses: Range | None,
        rewards: Range | None,
        outside: str,
        missing: str,
        changing: bool,
    ) -> Engine:
        """Make a new one, after checking that all of it goes together and can be kept."""
        check_instance("actions", actions, ActionSet, "Transport([1, 4, 5], [4, 6])")
        check_instance("policy", policy, Policy, "GenCTS()")
        check_fits(policy, actions, None, shows_units=True)  # who tells totals is refused there
        pack(actions, "actions")  # refuses what could not be saved
        pack(policy, "policy")
        missing = checked_missing(missing)
        if true_or_false("changing", changing, "Leave it out.") and not policy.changing:
            raise _unable(policy, "one that can play on another set every day")
        if missing == "ignore" and not policy.partial:
            raise _unable(policy, "one that can learn when units are missing")
        ranges = Ranges.chosen(losses, rewards, outside, actions)
        return cls(PolicyState(actions, policy, ranges, rng), missing)

    def __str__(self) -> str:
        state, pending = self.state, len(self.pending)
        text = f"{type(state.policy).__name__} on {len(state.arms.names)} arms: "
        text += f"{self.asked} asked, {state.told} told"
        text += f", {pending} pending" if pending else ""
        text += f", {state.ranges}" if not state.ranges.plain else ""
        text += f", {self.clipped} clipped" if self.clipped else ""
        return text + (", for this set only" if not state.policy.changing else "")

    # ------------------------------------------------------------ plays

    def round_set(self, actions: Any, at_most: Any, exclude: Any, fixed: Any) -> RoundSet:
        """Return the day that the options of ``ask`` describe."""
        return self.state.round_set(actions, self.limits(actions, at_most, exclude, fixed))

    def limits(self, actions: Any, at_most: Any, exclude: Any, fixed: Any) -> PlanLimits:
        """Return what the options of ``ask`` want of a plan."""
        if at_most is None and fixed is None and isinstance(exclude, tuple) and not exclude:
            return NO_LIMITS
        given = self.state.actions if actions is None else actions
        check_instance("actions", given, ActionSet, "Transport([1, 4, 5], [4, 6])")
        return PlanLimits.given(at_most, exclude, fixed, given.names)

    def ask(
        self, id: int, round_set: RoundSet, when: float, key: str | None, until: float = math.inf
    ) -> PendingState:
        """Choose a play before a deadline; return it as it was chosen, with its warm start."""
        with deadline.told("choosing a play"):
            play, cost, truncated = self.state.choose(round_set, f"play {self.asked + 1}", until)
        units = int(play.action.sum())
        pending = PendingState(play, round_set, key, None, when, cost, units, truncated=truncated)
        self._keep(id, pending)
        return pending

    def keep(self, id: int, play: PendingState) -> None:
        """Let a play wait that was chosen before."""
        self.state.begin_round(play.round_set)
        self._keep(id, play)

    def parse(self, losses: Losses, play: PendingState) -> ParsedLosses:
        """Return what is told of a play, after checking that it is numbers for its arms."""
        round_set = play.round_set
        also = round_set.actions.unmet(play.action[0]) if round_set.may_lack else ()
        return parse_losses(losses, round_set.actions.names, self.state.policy, also)

    def ignores(self, missing: str | None) -> bool:
        """Say whether units may be left out of a last report."""
        return (self.missing if missing is None else checked_missing(missing)) == "ignore"

    def tell(
        self, id: int, parsed: ParsedLosses, final: bool, ignore: bool, when: float
    ) -> ReportResult:
        """Take a report of a play that waits; learn from all of its reports, if it is the last."""
        play = self.pending[id]
        action, names = play.action[0], play.round_set.actions.names
        report, digests = play.report, play.digests
        digest = parsed.digest(action)
        repeated = is_among(digest, digests)
        if report is None or not repeated:
            partly = ignore or not final or report is not None
            part = self._report(play.round_set, action, parsed, partly)
            report = part if report is None else report.joined(part, parsed.length, names)
        if not repeated:
            digests += digest
            if report.totals and any(parsed.totals.get(arm) == 0 for arm in report.totals):
                # as it will look when nobody knows any more which arms were played
                digests += parsed.digest(None)
        outcome = None
        if not final:
            self.pending[id] = play._replace(report=report, digests=digests)
        else:
            if not ignore:
                report.check_gaps(names)
            outcome = self._close(id, report, when)
        seen = play.units if report.whole else int(report.seen.sum())
        numbers = seen, play.units - seen, report.clipped
        return ReportResult(Receipt(id, *numbers, repeated and not final, final), digests, outcome)

    def close(self, id: int, when: float) -> tuple[Receipt, PlayOutcome]:
        """Learn from what was told of a play so far."""
        play = self.pending[id]
        report = Report.empty(play.action[0]) if play.report is None else play.report
        return receipt_of(id, report), self._close(id, report, when)

    def cancel(self, id: int) -> None:
        """Forget a play."""
        del self.pending[id]

    def late(self, latest: float) -> dict[int, bool]:
        """Return the plays that were asked before this, and whether to close or cancel each."""
        late = [(id, play) for id, play in self.pending.items() if not play.asked >= latest]  # NaN
        return {
            id: play.report is not None and self.state.can_use(play.report) for id, play in late
        }

    def warn_if_over(self, before: int) -> None:
        """Warn if the horizon of the policy was passed since so many rounds were told."""
        if self.horizon is not None and before <= self.horizon < self.state.told:
            warn_if_over(self.state.policy, self.horizon + 1)

    # ------------------------------------------------------------ what others did

    def learn(
        self, round_set: RoundSet, action: IntArray, losses: Losses, ignore: bool, when: float
    ) -> tuple[Receipt, ParsedLosses]:
        """Learn from a plan that somebody else chose."""
        names = round_set.actions.names
        parsed = parse_losses(losses, names, self.state.policy, round_set.actions.unmet(action))
        report = self._report(round_set, action, parsed, ignore)
        if not ignore:
            report.check_gaps(names)
        self.state.absorb(round_set, report, when)
        self.clipped += report.clipped
        return receipt_of(None, report), parsed

    def learn_all(self, logged: LoggedData, argument: str = "table") -> Receipt:
        """Learn from years of history; ``argument`` is what an error calls its arms."""
        history = reports(logged, self.state.arms.names, self.state.ranges, argument)
        for feedback in [self.state.usable(report) for report in history]:  # all is checked first
            self.state.absorb_all(feedback)
        told = [receipt_of(None, report) for report in history]
        seen, missing, clipped = (
            sum(getattr(one, name) for one in told) for name in ("seen", "missing", "clipped")
        )
        self.clipped += clipped
        return Receipt(None, seen, missing, clipped)

    def check_absorbs(self) -> None:
        """Raise ``InvalidInput`` if the policy cannot learn from plans of others."""
        if not self.state.policy.absorbs:
            raise _unable(self.state.policy, "one that can learn from plans of others")

    def check_believes(self, round_set: RoundSet) -> None:
        """Raise ``InvalidInput`` if nobody knows what a plan costs."""
        if np.isnan(self.beliefs.mean(round_set)).any():
            raise InvalidInput(
                "policy",
                "one that knows what a plan costs",
                f"{self.state.policy!r}, which was told totals of rounds only, and not enough of "
                "them",
                "Tell the losses of each arm, or play on with ask().",
            )

    # ------------------------------------------------------------ inside

    def _keep(self, id: int, play: PendingState) -> None:
        self.state.keep_warm(play)
        self.pending[id] = play.without_cache()
        self.asked += 1

    def _report(
        self, round_set: RoundSet, action: IntArray, parsed: ParsedLosses, partly: bool
    ) -> Report:
        builder = ReportBuilder(
            action, round_set.actions.names, round_set.bounds, self.state.ranges
        )
        return builder.report(parsed, partly)

    def _close(self, id: int, report: Report, when: float) -> PlayOutcome:
        """Let the policy learn from a play: nothing more will come."""
        play = self.pending[id]
        feedback = self.state.learn(play, report, when)
        del self.pending[id]
        self.clipped += report.clipped
        seen = play.units if feedback.complete else int(feedback.seen.sum())
        return PlayOutcome(seen, play.round_set.realised(feedback), report.clipped)


def receipt_of(id: int | None, report: Report) -> Receipt:
    """Answer who told a report."""
    played = int(report.played.sum())
    seen = played if report.whole else int(report.seen.sum())
    return Receipt(id, seen, played - seen, report.clipped)


def checked_missing(given: Any) -> str:
    """Return "refuse" or "ignore", if it is one of them."""
    if not isinstance(given, str) or given not in MISSING:
        hint = "Leave it out for 'refuse'."
        raise InvalidInput("missing", "'refuse' or 'ignore'", repr(given), hint)
    return given


def checked_key(key: Any) -> str:
    """Return a key, if it can be one."""
    good = isinstance(key, str) and 0 < len(key) <= LONGEST_KEY and "\0" not in key
    good = good and not key.startswith(REQUEST)
    try:
        good = good and bool(key.encode())
    except UnicodeEncodeError:
        good = False
    if not good:
        hint = "Give a text such as '2026-11-15', or leave it out."
        expected = f"a text of at most {LONGEST_KEY} letters"
        raise InvalidInput("key", expected, repr(key)[:80], hint)
    return str(key)


def play_error(id: Any, what: str, hint: str) -> InvalidInput:
    """Return the error of a play that does not wait; ``what`` became of it, if there was one."""
    kind, got = (Conflict, f"{id!r}, {what}") if what else (NotFound, repr(id))
    return kind("id", "a play that waits for its losses", got, hint)


def told_again(
    id: int, status: str, repeated: bool, units: int, seen: int, clipped: int
) -> Receipt:
    """Answer a report of a play that is over; ``repeated``: the same was told before."""
    if status == CANCELLED:
        hint = "Use learn(plan, losses) if it was driven all the same."
        raise play_error(id, "which was cancelled", hint)
    if not repeated:
        hint = "Correct the report, or leave it: what was learned cannot be taken back."
        raise play_error(id, "which was told already, and with other losses", hint)
    return Receipt(id, seen, units - seen, clipped, repeated=True)


def _unable(policy: Policy, expected: str) -> InvalidInput:
    hint = "Use GenCTS or GenLBINFV, for example."
    return InvalidInput("policy", expected, f"{policy!r}, which cannot", hint)


TELLER = 4  # who called the learner


def own_horizon(policy: Policy) -> int | None:
    """Return the number of rounds that a policy was made for, if it says one itself."""
    T = getattr(_without_copies(policy), "horizon", None)
    return T if is_integer(T) else None


def warn_if_over(policy: Policy, told: int) -> None:
    """Warn in the first round after a policy's own horizon, and in no other.

    ``told`` is the number of rounds told so far. It is kept with the learner, so that one that was
    loaded does not warn again.

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
        f"the horizon of {name}(horizon={T}) is over: round {told} was told. The learner goes on, "
        f"its plans are right, and it still learns. But its rates are made for {T} rounds, and "
        f"what is proved of its regret ends there. For a study whose end nobody knows, use "
        f"{without}, which needs no horizon; learn again from what was told, or start anew.",
        UserWarning,
        stacklevel=TELLER,
    )


def _without_copies(policy: Policy) -> Policy:
    while isinstance(policy, Duplicated):
        policy = policy.policy
    return policy
