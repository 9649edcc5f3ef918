"""A learner without its history: what is known, what waits, and the rules."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from multiplay._support import deadline
from multiplay._support.checks import check_instance, true_or_false
from multiplay._support.serialization import pack
from multiplay.actions import ActionSet
from multiplay.errors import Conflict, InvalidInput, NotFound
from multiplay.learner.beliefs import Mind
from multiplay.learner.horizon import warn_if_over
from multiplay.learner.logged_data import Outcomes, reports
from multiplay.learner.losses import Reading, is_among, read
from multiplay.learner.plays import CANCELLED, PendingState, Receipt
from multiplay.learner.ranges import Ranges
from multiplay.learner.reports import Report, Terms
from multiplay.learner.round_set import NO_LIMITS, Limits, Today
from multiplay.policies import Policy
from multiplay.policies.base import check_fits
from multiplay.random import Streams
from multiplay.types import FloatArray, IntArray

MISSING = ("refuse", "ignore")
LONGEST_KEY = 200  # letters
REQUEST = "\x1f"  # before the key of a request that may come twice; that of a play never has it

Range = tuple[float, float] | Mapping[str, tuple[float, float]]
Losses = Mapping[str, Any] | Sequence[Any] | FloatArray | float
Units = Mapping[str, int] | Sequence[int] | IntArray  # or a pandas Series


class Outcome(NamedTuple):
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


class Heard(NamedTuple):
    """What a report has changed.

    Attributes
    ----------
    told : Receipt
        The answer to who told it.
    digests : bytes
        Of all that was told of the play.
    outcome : Outcome or None
        What came of the play; None if more will come.
    """

    told: Receipt
    digests: bytes
    outcome: Outcome | None


class Core:
    """What is known, which plays wait, and what may be done with them.

    It knows no play that is over, and no key: who has it keeps the history, in memory
    (``Learner``) or in a journal (``Study``), and gives the ids.

    Attributes
    ----------
    mind : Mind
        The policy and what it knows.
    missing : "refuse" or "ignore"
        What to do with units that a final report leaves out.
    pending : dict
        By id, the plays that wait for their losses, oldest first.
    asked, clipped : int
        How many plays were asked; how many numbers were clipped.
    """

    def __init__(self, mind: Mind, missing: str = "refuse") -> None:
        self.mind, self.missing = mind, missing
        self.pending: dict[int, PendingState] = {}
        self.asked = self.clipped = 0

    @classmethod
    def made(
        cls,
        actions: ActionSet,
        policy: Policy,
        rng: Streams,
        losses: Range | None,
        rewards: Range | None,
        outside: str,
        missing: str,
        changing: bool,
    ) -> Core:
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
        return cls(Mind(actions, policy, ranges, rng), missing)

    def __str__(self) -> str:
        mind, pending = self.mind, len(self.pending)
        text = f"{type(mind.policy).__name__} on {len(mind.roster.names)} arms: "
        text += f"{self.asked} asked, {mind.told} told"
        text += f", {pending} pending" if pending else ""
        text += f", {mind.ranges}" if not mind.ranges.plain else ""
        text += f", {self.clipped} clipped" if self.clipped else ""
        return text + (", for this set only" if not mind.policy.changing else "")

    # ------------------------------------------------------------ plays

    def day(self, actions: Any, at_most: Any, exclude: Any, fixed: Any) -> Today:
        """Return the day that the options of ``ask`` describe."""
        return self.mind.day(actions, self.limits(actions, at_most, exclude, fixed))

    def limits(self, actions: Any, at_most: Any, exclude: Any, fixed: Any) -> Limits:
        """Return what the options of ``ask`` want of a plan."""
        if at_most is None and fixed is None and isinstance(exclude, tuple) and not exclude:
            return NO_LIMITS
        given = self.mind.actions if actions is None else actions
        check_instance("actions", given, ActionSet, "Transport([1, 4, 5], [4, 6])")
        return Limits.given(at_most, exclude, fixed, given.names)

    def ask(
        self, id: int, today: Today, when: float, key: str | None, until: float = math.inf
    ) -> PendingState:
        """Choose a play before a deadline; return it as it was chosen, with its warm start."""
        with deadline.told("choosing a play"):
            play, cost, truncated = self.mind.choose(today, f"play {self.asked + 1}", until)
        units = int(play.action.sum())
        pending = PendingState(play, today, key, None, when, cost, units, truncated=truncated)
        self._keep(id, pending)
        return pending

    def keep(self, id: int, play: PendingState) -> None:
        """Let a play wait that was chosen before."""
        self.mind.enter(play.today)
        self._keep(id, play)

    def read(self, losses: Losses, play: PendingState) -> Reading:
        """Return what is told of a play, after checking that it is numbers for its arms."""
        today = play.today
        also = today.actions.unmet(play.action[0]) if today.may_lack else ()
        return read(losses, today.actions.names, self.mind.policy, also)

    def ignores(self, missing: str | None) -> bool:
        """Say whether units may be left out of a last report."""
        return (self.missing if missing is None else checked_missing(missing)) == "ignore"

    def tell(self, id: int, reading: Reading, final: bool, ignore: bool, when: float) -> Heard:
        """Take a report of a play that waits; learn from all of its reports, if it is the last."""
        play = self.pending[id]
        action, names = play.action[0], play.today.actions.names
        report, digests = play.report, play.digests
        digest = reading.digest(action)
        repeated = is_among(digest, digests)
        if report is None or not repeated:
            partly = ignore or not final or report is not None
            part = self._report(play.today, action, reading, partly)
            report = part if report is None else report.joined(part, reading.length, names)
        if not repeated:
            digests += digest
            if report.totals and any(reading.totals.get(arm) == 0 for arm in report.totals):
                # as it will look when nobody knows any more which arms were played
                digests += reading.digest(None)
        outcome = None
        if not final:
            self.pending[id] = play._replace(report=report, digests=digests)
        else:
            if not ignore:
                report.check_gaps(names)
            outcome = self._close(id, report, when)
        seen = play.units if report.whole else int(report.seen.sum())
        numbers = seen, play.units - seen, report.clipped
        return Heard(Receipt(id, *numbers, repeated and not final, final), digests, outcome)

    def close(self, id: int, when: float) -> tuple[Receipt, Outcome]:
        """Learn from what was told of a play so far."""
        play = self.pending[id]
        report = Report.empty(play.action[0]) if play.report is None else play.report
        return told_of(id, report), self._close(id, report, when)

    def cancel(self, id: int) -> None:
        """Forget a play."""
        del self.pending[id]

    def late(self, latest: float) -> dict[int, bool]:
        """Return the plays that were asked before this, and whether to close or cancel each."""
        late = [(id, play) for id, play in self.pending.items() if not play.asked >= latest]  # NaN
        return {id: play.report is not None and self.mind.can_use(play.report) for id, play in late}

    def warn_if_over(self, before: int) -> None:
        """Warn if the horizon of the policy was passed since so many rounds were told."""
        over = self.mind.horizon
        if over is not None and before <= over < self.mind.told:
            warn_if_over(self.mind.policy, over + 1)

    # ------------------------------------------------------------ what others did

    def learn(
        self, today: Today, action: IntArray, losses: Losses, ignore: bool, when: float
    ) -> tuple[Receipt, Reading]:
        """Learn from a plan that somebody else chose."""
        names = today.actions.names
        reading = read(losses, names, self.mind.policy, today.actions.unmet(action))
        report = self._report(today, action, reading, ignore)
        if not ignore:
            report.check_gaps(names)
        self.mind.absorb(today, report, when)
        self.clipped += report.clipped
        return told_of(None, report), reading

    def learn_all(self, outcomes: Outcomes, argument: str = "table") -> Receipt:
        """Learn from years of history; ``argument`` is what an error calls its arms."""
        history = reports(outcomes, self.mind.roster.names, self.mind.ranges, argument)
        for feedback in [self.mind.usable(report) for report in history]:  # all is checked first
            self.mind.absorb_all(feedback)
        told = [told_of(None, report) for report in history]
        seen, missing, clipped = (
            sum(getattr(one, name) for one in told) for name in ("seen", "missing", "clipped")
        )
        self.clipped += clipped
        return Receipt(None, seen, missing, clipped)

    def check_absorbs(self) -> None:
        """Raise ``InvalidInput`` if the policy cannot learn from plans of others."""
        if not self.mind.policy.absorbs:
            raise _unable(self.mind.policy, "one that can learn from plans of others")

    def check_believes(self, today: Today) -> None:
        """Raise ``InvalidInput`` if nobody knows what a plan costs."""
        if np.isnan(self.mind.mean(today)).any():
            raise InvalidInput(
                "policy",
                "one that knows what a plan costs",
                f"{self.mind.policy!r}, which was told totals of rounds only, and not enough of "
                "them",
                "Tell the losses of each arm, or play on with ask().",
            )

    # ------------------------------------------------------------ inside

    def _keep(self, id: int, play: PendingState) -> None:
        self.mind.keep_warm(play)
        self.pending[id] = play.without_cache()
        self.asked += 1

    def _report(self, today: Today, action: IntArray, reading: Reading, partly: bool) -> Report:
        terms = Terms(action, today.actions.names, today.bounds, self.mind.ranges)
        return terms.report(reading, partly)

    def _close(self, id: int, report: Report, when: float) -> Outcome:
        """Let the policy learn from a play: nothing more will come."""
        play = self.pending[id]
        feedback = self.mind.learn(play, report, when)
        del self.pending[id]
        self.clipped += report.clipped
        seen = play.units if feedback.complete else int(feedback.seen.sum())
        return Outcome(seen, self.mind.realised(play.today, feedback), report.clipped)


def told_of(id: int | None, report: Report) -> Receipt:
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


def no_play(id: Any, what: str, hint: str) -> InvalidInput:
    """Return the error of a play that does not wait; ``what`` became of it, if there was one."""
    kind, got = (Conflict, f"{id!r}, {what}") if what else (NotFound, repr(id))
    return kind("id", "a play that waits for its losses", got, hint)


def told_again(
    id: int, status: str, repeated: bool, units: int, seen: int, clipped: int
) -> Receipt:
    """Answer a report of a play that is over; ``repeated``: the same was told before."""
    if status == CANCELLED:
        hint = "Use learn(plan, losses) if it was driven all the same."
        raise no_play(id, "which was cancelled", hint)
    if not repeated:
        hint = "Correct the report, or leave it: what was learned cannot be taken back."
        raise no_play(id, "which was told already, and with other losses", hint)
    return Receipt(id, seen, units - seen, clipped, repeated=True)


def _unable(policy: Policy, expected: str) -> InvalidInput:
    hint = "Use GenCTS or GenLBINFV, for example."
    return InvalidInput("policy", expected, f"{policy!r}, which cannot", hint)
