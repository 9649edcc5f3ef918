"""One learner, live: ask for a plan, tell what it cost, ask again."""

from __future__ import annotations

import math
import secrets
import time
from collections.abc import Iterable, Mapping
from contextlib import AbstractContextManager, nullcontext
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from multiplay._support.atomic_files import as_path, remove_stale_drafts
from multiplay._support.checks import is_integer, true_or_false
from multiplay._support.deadline import checked_limit
from multiplay.actions import ActionSet
from multiplay.errors import InvalidInput
from multiplay.learner import snapshot
from multiplay.learner.beliefs import Mind
from multiplay.learner.engine import Core, Losses, Range, Units, checked_key, no_play, told_again
from multiplay.learner.facts import learner_panel
from multiplay.learner.logged_data import read_table
from multiplay.learner.losses import is_among, read
from multiplay.learner.plays import (
    CANCELLED,
    Estimate,
    PendingPlay,
    PlayLog,
    Receipt,
    duration,
    seconds,
)
from multiplay.learner.queries import Adviser
from multiplay.learner.round_set import action_of
from multiplay.policies import Policy
from multiplay.random import POLICY, Streams
from multiplay.storage.folder import read_record, write_record
from multiplay.types import Arrays

if TYPE_CHECKING:  # imported where it is used: it takes as long as all the rest
    import pandas as pd

    from multiplay._support.html import Panel

FIRST_OF_A_LIFE = 2**52  # ids after a restart are random numbers from here to 2^53

When = datetime | float | None


class Learner(Adviser):
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
        rng = Streams.spawn(seed, POLICY, [0])
        made_of = losses, rewards, outside, missing, changing
        self.core, self.log = Core.made(actions, policy, rng, *made_of), PlayLog()

    @property
    def mind(self) -> Mind:
        """The policy and what it knows."""
        return self.core.mind

    @property
    def missing(self) -> str:
        """What to do with units that a final report leaves out."""
        return self.core.missing

    @property
    def clipped(self) -> int:
        """How many numbers were clipped."""
        return self.core.clipped

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
        return f"Learner({self.core})"

    def _repr_html_(self) -> str:
        from multiplay._support.html import render  # most sessions are not notebooks

        return render(self._panel())

    def _panel(self) -> Panel:
        return learner_panel("Learner", {}, self.core)

    def _reading(self) -> AbstractContextManager[Core]:
        return nullcontext(self.core)

    # ------------------------------------------------------------ plays

    def ask(
        self,
        actions: ActionSet | None = None,
        *,
        key: str | None = None,
        at_most: Mapping[str, int] | None = None,
        exclude: Iterable[str] = (),
        fixed: Mapping[str, int] | None = None,
        time_limit: float | None = None,
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
        time_limit
            Seconds in which to answer. If the policy has not made its choice by then, the play is
            an action of the set all the same, drawn so that nothing wrong is learned from it, and
            marked as ``truncated``. Only the choice is cut short: a set that is new is looked at
            first, and single answers of an oracle of your own are waited for.
        at
            When this happens; now if not given.
        """
        until = time.monotonic() + checked_limit(time_limit)
        if key is not None and checked_key(key) in self.log.keys:
            return self._again(self.log.keys[key], key)
        core, log = self.core, self.log
        when, today = seconds("at", at), core.day(actions, at_most, exclude, fixed)
        id, line = log.next_id, len(log)
        play = core.ask(id, today, when, key, until)
        action = play.action[0]
        log.ask(when, today.actions.names, play.units, play.expected)
        if today.may_lack:
            log.unmet[line] = tuple(today.actions.unmet(action))
        if key is not None:
            log.keys[key], log.plans[id] = id, today.plan(action)
        if play.truncated:
            log.truncated.add(id)
        return self._pending_play(core, id)

    def tell(
        self,
        id: int,
        losses: Losses,
        *,
        final: bool = True,
        missing: str | None = None,
        at: When = None,
    ) -> Receipt:
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
        when, core = seconds("at", at), self.core
        if final is not True:
            final = true_or_false("final", final, "Write final=False if more will come.")
        ignore = core.ignores(missing)
        play = core.pending.get(id) if is_integer(id) else None
        if play is None:
            return self._told_again(id, losses)
        before = core.mind.told
        heard = core.tell(id, core.read(losses, play), final, ignore, when)
        line = self._line(id)
        self.log.digests[line] = heard.digests
        if heard.outcome is not None:
            self.log.tell(line, when, *heard.outcome)
            core.warn_if_over(before)  # at last: a warning may be made an error
        return heard.told

    def close(self, id: int, *, at: When = None) -> Receipt:
        """Learn from what was told of a play so far; what is missing will not come."""
        when, before = seconds("at", at), self.core.mind.told
        self._check_waits(id)
        told = self._close(id, when)
        self.core.warn_if_over(before)
        return told

    def cancel(self, id: int) -> None:
        """Forget a play that was never driven: nothing is learned from it."""
        self._check_waits(id)
        self.core.cancel(id)
        self.log.end(self._line(id), CANCELLED)

    def expire(self, older_than: timedelta | float, *, at: When = None) -> list[int]:
        """End the plays that were asked longer ago than this; return their ids.

        Those of which something was told are closed, if the policy can learn from that; the others
        are cancelled.
        """
        when, before = seconds("at", at), self.core.mind.told
        late = self.core.late(when - duration("older_than", older_than))
        for id, closes in late.items():
            if closes:
                self._close(id, when)
            else:
                self.cancel(id)
        self.core.warn_if_over(before)
        return list(late)

    # ------------------------------------------------------------ what others did

    def learn(
        self,
        plan: Units,
        losses: Losses,
        *,
        actions: ActionSet | None = None,
        missing: str | None = None,
        at: When = None,
    ) -> Receipt:
        """Learn from a plan that somebody else chose: units by arm, and what they lost.

        ``losses`` is as in ``tell``; ``actions`` is the set of that day, if it was not the usual
        one. Thompson and index policies take the samples. Those that follow a regularised leader
        improve their predictions only, for they do not know how likely they were to play this plan.
        """
        core = self.core
        core.check_absorbs()
        when, today = seconds("at", at), core.mind.day(actions)
        ignore = core.ignores(missing)
        action = action_of("plan", plan, today.given)
        return core.learn(today, action, losses, ignore, when)[0]

    def learn_table(
        self, table: Any, arm: str = "arm", round: str = "round", loss: str = "loss"
    ) -> Receipt:
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
        core = self.core
        core.check_absorbs()
        outcomes = read_table(table, arm, round, loss)
        return core.learn_all(outcomes, f"table[{arm!r}]")

    # ------------------------------------------------------------ history

    def plays(self) -> pd.DataFrame:
        """Return a table of all plays: id, key, when asked and told, units, expected, realised."""
        return self.log.frame()

    # ------------------------------------------------------------ save and load

    def save(self, path: str | Path) -> None:
        """Write everything to one file, from which ``load`` continues bit for bit."""
        write_record(path, snapshot.record(self.core, self.log))

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
            learner.core, learner.log = snapshot.parts_of(record, actions, policy)
        except InvalidInput:
            raise
        except ValueError as error:
            raise InvalidInput(
                "path",
                "a file written by Learner.save",
                f"{path} ({error})",
                "The file is damaged, or another one: restore a backup.",
            ) from None
        learner.log.begin_life(FIRST_OF_A_LIFE + secrets.randbelow(FIRST_OF_A_LIFE))
        return learner

    # ------------------------------------------------------------ inside

    def _close(self, id: int, when: float) -> Receipt:
        told, outcome = self.core.close(id, when)
        self.log.tell(self._line(id), when, *outcome)
        return told

    def _again(self, id: int, key: str) -> PendingPlay:
        """Return the play of a key that was asked before."""
        if id in self.core.pending:
            return self._pending_play(self.core, id)
        line = self._line(id)
        plan, arms = self.log.plans[id], self.log.arms[line]
        action = np.array([plan[name] for name in arms], dtype=np.int64)
        then = Estimate(self.log.get(line, "expected"), math.nan, math.nan)
        return PendingPlay(id, action, dict(plan), key, lambda: then, id in self.log.truncated)

    def _told_again(self, id: Any, losses: Losses) -> Receipt:
        """Answer a report of a play that does not wait any more."""
        line = self._line(id)
        reading = read(losses, self.log.arms[line], self.policy, self.log.unmet.get(line, ()))
        known = is_among(reading.digest(None), self.log.digests.get(line, b""))
        numbers = (int(self.log.get(line, name)) for name in ("units", "seen", "clipped"))
        return told_again(id, self.log.status(line), known, *numbers)

    def _line(self, id: Any) -> int:
        line = self.log.line(id) if is_integer(id) else None
        if line is None:
            raise no_play(id, "", "Use the id of a play that ask() gave.")
        return line

    def _check_waits(self, id: Any) -> None:
        status = self.log.status(self._line(id))
        if id not in self.core.pending:
            raise no_play(id, f"which was {status}", "Leave it: this play is over.")
