"""One learner, live: ask for a plan, tell what it cost, ask again."""

from __future__ import annotations

import math
import secrets
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from multiplay.actions import ActionSet
from multiplay.atomic_files import as_path, remove_stale_drafts
from multiplay.checks import check_instance, is_integer, probability, true_or_false
from multiplay.errors import InvalidInput
from multiplay.learner import beliefs, snapshot
from multiplay.learner.history import read_history
from multiplay.learner.horizon import warn_if_over
from multiplay.learner.losses import Reading, read
from multiplay.learner.mind import Mind
from multiplay.learner.plays import (
    CANCELLED,
    TOLD,
    Expected,
    PendingPlay,
    Plan,
    PlayLog,
    Told,
    Waiting,
    duration,
    seconds,
)
from multiplay.learner.ranges import Ranges
from multiplay.learner.report import Report, Terms
from multiplay.learner.snapshot import Parts
from multiplay.learner.today import Limits, Today, action_of
from multiplay.policies import Policy
from multiplay.policies.base import check_fits
from multiplay.serialization import pack
from multiplay.storage.folder import read_record, write_record
from multiplay.streams import POLICY, Streams
from multiplay.types import Arrays, FloatArray, IntArray

if TYPE_CHECKING:  # imported where it is used: it takes as long as all the rest
    import pandas as pd

MISSING = ("refuse", "ignore")
LEVEL = "Write 0.95, for example."
FIRST_OF_A_LIFE = 2**52  # ids after a restart are random numbers from here to 2^53

Range = tuple[float, float] | Mapping[str, tuple[float, float]]
Losses = Mapping[str, Any] | Sequence[Any] | FloatArray | float
Units = Mapping[str, int] | Sequence[int] | IntArray  # or a pandas Series
When = datetime | float | None


class Learner:
    """Learn from every unit that was sent out: ``ask`` for a plan, ``tell`` its losses.

    Losses may come late, in parts, incomplete and in any order. The set may be another one every
    day. What cannot be used is refused with an error, and then nothing has changed.

    Parameters
    ----------
    actions, policy
        What may be played as a rule, and how to learn. What ``save`` could not keep, a function
        say, is refused here already.
    seed
        Draws everything; the same seed and the same losses give the same plans.
    losses, rewards
        (low, high): what a unit can cost, or bring; or such a pair for each arm, by its name, with
        "*" for all others. All that is told and shown is in this unit. From 0 to 1 if not given.
    outside
        What to do with a loss outside its range: "refuse" it, or "clip" it to the range and count.
    missing
        What to do with units that a final report leaves out: "refuse", or "ignore" them. None or
        NaN in a list always says that a unit did not report.
    changing
        True: the set will change. A policy that cannot play on other sets is refused now.

    Examples
    --------
    >>> from multiplay import GenCTS, Learner, Transport
    >>> plans = Transport([2, 1], [1, 2], names=(["Lyon", "Lille"], ["north", "south"]))
    >>> learner = Learner(plans, GenCTS(), seed=7, losses=(0, 250))
    >>> play = learner.ask()
    >>> play.plan["Lyon->north"] + play.plan["Lyon->south"]
    2
    >>> euros = {lane: [120.0] * trucks for lane, trucks in play.plan.items()}
    >>> print(learner.tell(play.id, euros))
    play 1: 3 of 3 units seen
    >>> print(learner.tell(play.id, euros))
    play 1: the same was told before, nothing has changed
    >>> learner
    Learner(GenCTS on 4 arms: 1 asked, 1 told, losses from 0 to 250)
    """

    def __init__(
        self,
        actions: ActionSet,
        policy: Policy,
        seed: int = 0,
        *,
        losses: Range | None = None,
        rewards: Range | None = None,
        outside: str = "refuse",
        missing: str = "refuse",
        changing: bool = False,
    ) -> None:
        check_instance("actions", actions, ActionSet, "Transport([1, 4, 5], [4, 6])")
        check_instance("policy", policy, Policy, "GenCTS()")
        check_fits(policy, actions, None, shows_units=True)  # who tells totals is refused there
        pack(actions, "actions")  # refuses what could not be saved
        pack(policy, "policy")
        self.missing = _missing(missing)
        if true_or_false("changing", changing, "Leave it out.") and not policy.changing:
            raise _unable(policy, "one that can play on another set every day")
        if self.missing == "ignore" and not policy.partial:
            raise _unable(policy, "one that can learn when units are missing")
        ranges = Ranges.chosen(losses, rewards, outside, actions)
        self.mind = Mind(actions, policy, ranges, Streams.spawn(seed, POLICY, [0]))
        self.log, self.clipped = PlayLog(), 0
        self.pending: dict[int, Waiting] = {}

    @property
    def actions(self) -> ActionSet:
        """What may be played as a rule."""
        return self.mind.actions

    @property
    def policy(self) -> Policy:
        """How to learn."""
        return self.mind.policy

    @property
    def rng(self) -> Streams:
        """Where random numbers come from."""
        return self.mind.rng

    @property
    def state(self) -> Arrays:
        """What the policy knows of all arms ever met."""
        return self.mind.roster.state

    @property
    def asked(self) -> int:
        """How many plays were asked."""
        return len(self.log)

    def __repr__(self) -> str:
        told, waiting = self.log.number(TOLD), len(self.pending)
        text = f"{type(self.policy).__name__} on {len(self.mind.roster.names)} arms: "
        text += f"{self.asked} asked, {told} told"
        text += f", {waiting} waiting" if waiting else ""
        text += f", {self.mind.ranges}" if not self.mind.ranges.plain else ""
        text += f", {self.clipped} clipped" if self.clipped else ""
        text += ", for this set only" if not self.policy.changing else ""
        return f"Learner({text})"

    # ------------------------------------------------------------ plays

    def ask(
        self,
        actions: ActionSet | None = None,
        *,
        key: str | None = None,
        at_most: Mapping[str, int] | None = None,
        exclude: Iterable[str] = (),
        fixed: Mapping[str, int] | None = None,
        at: When = None,
    ) -> PendingPlay:
        """Choose the next play.

        Parameters
        ----------
        actions
            The set of today, if it is not the usual one. Its arms are matched by their names; those
            that are new are added.
        key
            What you call this play, "2026-11-15" say. The same key gives the same play for ever.
        at_most, exclude, fixed
            Units that an arm may have today at most; arms that are not to be played today; arms
            that are to have exactly so many units. For sets that can express them.
        at
            When this happens; now if not given.
        """
        if key is not None:
            if not isinstance(key, str) or not key:
                hint = "Give a text such as '2026-11-15', or leave it out."
                raise InvalidInput("key", "a text", repr(key), hint)
            if key in self.log.keys:
                return self._again(self.log.keys[key], key)
        when, today = seconds("at", at), self._day(actions, at_most, exclude, fixed)
        play, cost = self.mind.choose(today, f"play {self.asked + 1}")
        action = play.action[0]
        id = self.log.ask(when, today.actions.names, int(action.sum()), cost)
        if today.may_lack:
            self.log.unmet[self._line(id)] = tuple(today.actions.unmet(action))
        if key is not None:
            self.log.keys[key] = id
            self.log.plans[id] = today.plan(action)
        self.pending[id] = Waiting(play, today, key)
        return self._pending_play(id)

    def waiting(self) -> list[PendingPlay]:
        """Return the plays that wait for their losses, oldest first."""
        return [self._pending_play(id) for id in self.pending]

    def tell(
        self,
        id: int,
        losses: Losses,
        *,
        final: bool = True,
        missing: str | None = None,
        at: When = None,
    ) -> Told:
        """Learn from the losses of a play, in the user's unit.

        ``losses`` gives, for each arm, either a list with the loss of every unit or one number, the
        total of its units. By name, arms that were not played may be left out; otherwise one entry
        for each arm, in order; a pandas Series is taken by its index. None or NaN in a list stands
        for a unit that did not report. A total may miss its range by rounding.

        A policy that learns from the round, such as ``LinTS``, may be told one number: the total of
        all units. It is shown no more than that, whatever was told.

        The same report again changes nothing, and the answer says so. Other losses for the same
        units are refused. So two parts with the same content are one: where two units of an arm
        lost the same, tell them together, or write None for the other.

        Parameters
        ----------
        id, losses
            The play, and what its units lost.
        final
            False: more will come. Then arms and units may be left out. A list with an entry for
            every unit says which of them; a shorter list is for units that were not told yet. The
            policy learns from all parts at once, when the last one comes or the play is closed.
        missing
            "ignore": arms and units may be left out of the last report too. As the learner was made
            if not given.
        at
            When this happens; now if not given.
        """
        when, line = seconds("at", at), self._line(id)
        if final is not True:
            final = true_or_false("final", final, "Write final=False if more will come.")
        ignore = (self.missing if missing is None else _missing(missing)) == "ignore"
        names, play = self.log.arms[line], self.pending.get(id)
        reading = read(losses, names, self.policy, self.log.unmet.get(line, ()))
        digest = reading.digest(None if play is None else play.action[0])
        repeated = self.log.repeats(line, digest)
        if play is None:
            return self._told_again(id, line, repeated)
        report = play.report
        if report is None or not repeated:
            partly = ignore or not final or report is not None
            part = self._report(play.today, play.action[0], reading, partly)
            report = part if report is None else report.joined(part, reading.length, names)
        if not final:
            self.pending[id] = play._replace(report=report)
        else:
            if not ignore:
                report.check_gaps(names)
            self._close(id, line, report, when)
        if not repeated:
            self.log.note(line, digest)
            if any(reading.totals.get(arm) == 0 for arm in report.totals):
                # as it will look when nobody knows any more which arms were played
                self.log.note(line, reading.digest(None))
        units = int(self.log.get(line, "units"))
        seen = units if report.whole else int(report.seen.sum())
        if final and self.mind.told - 1 == self.mind.horizon:
            warn_if_over(self.policy, self.mind.told)  # at last: a warning may be made an error
        return Told(id, seen, units - seen, report.clipped, repeated and not final, final)

    def close(self, id: int, *, at: When = None) -> Told:
        """Learn from what was told of a play so far; what is missing will not come."""
        when, play = seconds("at", at), self._waiting(id)
        report = Report.empty(play.action[0]) if play.report is None else play.report
        self._close(id, self._line(id), report, when)
        warn_if_over(self.policy, self.mind.told)
        return _told(id, report)

    def cancel(self, id: int) -> None:
        """Forget a play that was never driven: nothing is learned from it."""
        self._waiting(id)
        del self.pending[id]
        self.log.end(self._line(id), CANCELLED)

    def expire(self, older_than: timedelta | float, *, at: When = None) -> list[int]:
        """End the plays that were asked longer ago than this; return their ids.

        Those of which something was told are closed, if the policy can learn from that; the others
        are cancelled.
        """
        when = seconds("at", at)
        latest = when - duration("older_than", older_than)
        asked = {id: self.log.get(self._line(id), "asked") for id in self.pending}
        late = [id for id, when in asked.items() if not when >= latest]  # NaN: of an old file
        before = self.mind.told
        for id in late:
            report = self.pending[id].report
            if report is None or not self.mind.can_use(report):
                self.cancel(id)
            else:
                self._close(id, self._line(id), report, when)
        for told in range(before, self.mind.told):
            warn_if_over(self.policy, told + 1)
        return late

    # ------------------------------------------------------------ what others did

    def learn(
        self,
        plan: Units,
        losses: Losses,
        *,
        actions: ActionSet | None = None,
        missing: str | None = None,
        at: When = None,
    ) -> Told:
        """Learn from a plan that somebody else chose: units by arm, and what they lost.

        ``losses`` is as in ``tell``; ``actions`` is the set of that day, if it was not the usual
        one. Thompson and index policies take the samples. Those that follow a regularised leader
        improve their predictions only, for they do not know how likely they were to play this plan.
        """
        self._check_absorbs()
        when, today = seconds("at", at), self.mind.day(actions)
        ignore = _missing(self.missing if missing is None else missing) == "ignore"
        action, names = action_of("plan", plan, today.given), today.actions.names
        reading = read(losses, names, self.policy, today.actions.unmet(action))
        report = self._report(today, action, reading, ignore)
        if not ignore:
            report.check_gaps(names)
        self.mind.absorb(today, report, when)
        self.clipped += report.clipped
        return _told(None, report)

    def learn_table(
        self, table: Any, arm: str = "arm", round: str = "round", loss: str = "loss"
    ) -> Told:
        """Learn from years of history: a table with one row for each unit.

        Parameters
        ----------
        table
            A pandas ``DataFrame``, whatever ``pandas.DataFrame(table)`` takes, or the path of a CSV
            file.
        arm, round, loss
            Its columns: the name of the arm, when it was (any labels that can be sorted), and what
            the unit lost, in the user's unit. A loss may be missing.
        """
        self._check_absorbs()
        history = read_history(table, arm, round, loss, self.mind.roster.names, self.mind.ranges)
        for feedback in [self.mind.usable(report) for report in history]:  # all is checked first
            self.mind.absorb_all(feedback)
        clipped = sum(report.clipped for report in history)
        self.clipped += clipped
        counts = [_seen_and_missing(report) for report in history]
        seen, missing = (sum(column) for column in zip(*counts, strict=True))
        return Told(None, seen, missing, clipped)

    # ------------------------------------------------------------ beliefs

    def arms(self, level: float = 0.95) -> pd.DataFrame:
        """Return a table of all arms: units seen, mean with an interval, last seen, share of plans.

        The interval is that of the posterior for Thompson policies, an empirical Bernstein interval
        for the others; it is to hold the true mean with probability ``level``. Where a policy
        forgets, mean and interval are of what it still remembers.
        """
        return beliefs.arms(self.mind, probability("level", level, LEVEL))

    def plays(self) -> pd.DataFrame:
        """Return a table of all plays: id, key, when asked and told, units, expected, realised."""
        return self.log.frame()

    def best(
        self,
        actions: ActionSet | None = None,
        *,
        at_most: Mapping[str, int] | None = None,
        exclude: Iterable[str] = (),
        fixed: Mapping[str, int] | None = None,
    ) -> Plan:
        """Return the best plan by what is known now, without exploration; it is no play.

        Where nothing but totals of rounds was told, ``LinTS`` and ``LinUCB`` know what plans cost
        after a few of them. Other policies do not, and then this is refused.
        """
        today = self._day(actions, at_most, exclude, fixed)
        self._check_believes(today)
        action = today.actions.best(self.mind.mean(today))
        return Plan(action, today.plan(action), lambda: self.mind.expected(today, action))

    def expect(
        self, plan: Units, *, actions: ActionSet | None = None, level: float = 0.95
    ) -> Expected:
        """Say what a plan of yours should cost, with an interval; ``actions`` as in ``ask``.

        Refused where ``best`` is.
        """
        today = self.mind.day(actions)
        action = action_of("plan", plan, today.given)
        self._check_believes(today)
        return self.mind.expected(today, action, probability("level", level, LEVEL))

    def drift(self, level: float = 0.05) -> pd.DataFrame:
        """Return the arms whose recent losses do not fit the old ones: no rows if all is well.

        While nothing changes, this table stays empty for ever with a probability of at least
        1 - ``level``, however often it is asked for.
        """
        return beliefs.drift(self.mind, level)

    # ------------------------------------------------------------ save and load

    def save(self, path: str | Path) -> None:
        """Write everything to one file, from which ``load`` continues bit for bit."""
        parts = Parts(self.mind, self.log, self.pending, self.missing, self.clipped)
        write_record(path, snapshot.record(parts))

    @classmethod
    def load(
        cls, path: str | Path, actions: ActionSet | None = None, policy: Policy | None = None
    ) -> Learner:
        """Continue from ``save``; classes that are not multiplay's own must be passed again.

        New plays have ids that were never issued: they begin at a large random number.
        """
        place = as_path("path", path)
        remove_stale_drafts(place.parent)
        record = read_record(place)
        learner = cls.__new__(cls)
        try:
            parts = snapshot.parts_of(record, actions, policy)
        except InvalidInput:
            raise
        except ValueError as error:
            raise InvalidInput(
                "path",
                "a file written by Learner.save",
                f"{path} ({error})",
                "The file is damaged, or another one: restore a backup.",
            ) from None
        learner.mind, learner.log, learner.pending, learner.missing, learner.clipped = parts
        learner.log.begin_life(FIRST_OF_A_LIFE + secrets.randbelow(FIRST_OF_A_LIFE))
        return learner

    # ------------------------------------------------------------ inside

    def _day(self, actions: Any, at_most: Any, exclude: Any, fixed: Any) -> Today:
        """Return the day that the options of ``ask`` describe."""
        if at_most is None and fixed is None and isinstance(exclude, tuple) and not exclude:
            return self.mind.day(actions)
        given = self.actions if actions is None else actions
        check_instance("actions", given, ActionSet, "Transport([1, 4, 5], [4, 6])")
        return self.mind.day(actions, Limits.given(at_most, exclude, fixed, given.names))

    def _report(self, today: Today, action: IntArray, reading: Reading, partly: bool) -> Report:
        terms = Terms(action, today.actions.names, today.bounds, self.mind.ranges)
        return terms.report(reading, partly)

    def _close(self, id: int, line: int, report: Report, when: float) -> None:
        """Let the policy learn from a play: nothing more will come."""
        play = self.pending[id]
        feedback = self.mind.learn(play, report, when)
        units = int(self.log.get(line, "units"))
        del self.pending[id]
        self.clipped += report.clipped
        seen = units if feedback.complete else int(feedback.seen.sum())
        self.log.tell(line, when, seen, self.mind.realised(play.today, feedback), report.clipped)

    def _pending_play(self, id: int) -> PendingPlay:
        play = self.pending[id]
        today, action = play.today, play.action[0].copy()

        def expect() -> Expected:
            return self.mind.expected(today, play.action[0])

        return PendingPlay(id, action, today.plan(action), play.key, expect)

    def _again(self, id: int, key: str) -> PendingPlay:
        """Return the play of a key that was asked before."""
        if id in self.pending:
            return self._pending_play(id)
        line = self._line(id)
        plan, arms = self.log.plans[id], self.log.arms[line]
        action = np.array([plan[name] for name in arms], dtype=np.int64)
        then = Expected(self.log.get(line, "expected"), math.nan, math.nan)
        return PendingPlay(id, action, dict(plan), key, lambda: then)

    def _told_again(self, id: int, line: int, repeated: bool) -> Told:
        """Answer a report of a play that does not wait any more."""
        if self.log.status(line) == CANCELLED:
            hint = "Use learn(plan, losses) if it was driven all the same."
            raise _no_play(id, "which was cancelled", hint)
        if not repeated:
            hint = "Correct the report, or leave it: what was learned cannot be taken back."
            raise _no_play(id, "which was told already, and with other losses", hint)
        numbers = (int(self.log.get(line, name)) for name in ("units", "seen", "clipped"))
        units, seen, clipped = numbers
        return Told(id, seen, units - seen, clipped, repeated=True)

    def _line(self, id: Any) -> int:
        line = self.log.line(id) if is_integer(id) else None
        if line is None:
            raise _no_play(id, "", "Use the id of a play that ask() gave.")
        return line

    def _waiting(self, id: Any) -> Waiting:
        status = self.log.status(self._line(id))
        if id not in self.pending:
            raise _no_play(id, f"which was {status}", "Leave it: this play is over.")
        return self.pending[id]

    def _check_believes(self, today: Today) -> None:
        if np.isnan(self.mind.mean(today)).any():
            raise InvalidInput(
                "policy",
                "one that knows what a plan costs",
                f"{self.policy!r}, which was told totals of rounds only, and not enough of them",
                "Tell the losses of each arm, or play on with ask().",
            )

    def _check_absorbs(self) -> None:
        if not self.policy.absorbs:
            raise _unable(self.policy, "one that can learn from plans of others")


def _no_play(id: Any, what: str, hint: str) -> InvalidInput:
    got = f"{id!r}, {what}" if what else repr(id)
    return InvalidInput("id", "a play that waits for its losses", got, hint)


def _unable(policy: Policy, expected: str) -> InvalidInput:
    hint = "Use GenCTS or GenLBINFV, for example."
    return InvalidInput("policy", expected, f"{policy!r}, which cannot", hint)


def _missing(given: Any) -> str:
    if not isinstance(given, str) or given not in MISSING:
        hint = "Leave it out for 'refuse'."
        raise InvalidInput("missing", "'refuse' or 'ignore'", repr(given), hint)
    return given


def _seen_and_missing(report: Report) -> tuple[int, int]:
    played = int(report.played.sum())
    seen = played if report.whole else int(report.seen.sum())
    return seen, played - seen


def _told(id: int | None, report: Report) -> Told:
    return Told(id, *_seen_and_missing(report), report.clipped)
