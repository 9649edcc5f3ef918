"""Learner: asks and tells in one process, saved to one file.

``ask`` and ``tell`` check their arguments and call the engine (``engine.py``), which holds the
policy, its state and the pending plays. The learner adds the history in memory: a line for each
play (``play_log.py``), and events (``events.py``) from which the state is computed again after a
correction. ``save`` writes all of it as one record (``snapshot.py``), and read-only verbs are those
of ``Queries``.
"""

from __future__ import annotations

import math
import secrets
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from multiplay._support.atomic_files import as_path, remove_stale_drafts
from multiplay._support.checks import is_integer, true_or_false
from multiplay._support.dates import day_name
from multiplay._support.deadline import checked_limit
from multiplay._support.html import HasPanel, Panel
from multiplay.actions import ActionSet, Rule
from multiplay.beliefs.restart import ReportLog
from multiplay.errors import Conflict, InvalidInput
from multiplay.features import Features
from multiplay.learner import snapshot
from multiplay.learner.allowance import SURE, AllowanceSettings
from multiplay.learner.comparison import Against, Question, compared, played_days
from multiplay.learner.engine import (
    Engine,
    Losses,
    Range,
    Round,
    Units,
    play_error,
    told_again,
)
from multiplay.learner.events import (
    Asked,
    Described,
    Ended,
    Events,
    Learned,
    LearnedTable,
    Promised,
    Released,
    Restarted,
    Told,
    words_of,
)
from multiplay.learner.facts import learner_panel
from multiplay.learner.plan_request import PlanRequest, checked_replace
from multiplay.learner.play_log import PlayLog, external_table, joined_tables
from multiplay.learner.plays import (
    CANCELLED,
    NEVER,
    PENDING,
    AnyPlay,
    Estimate,
    PendingPlay,
    PendingState,
    Receipt,
    Remaining,
    duration_seconds,
    timestamp,
)
from multiplay.learner.policy_state import PolicyState
from multiplay.learner.promises import MOST_PAST, checked_promises, given_sets
from multiplay.learner.queries import Queries, limits_of
from multiplay.learner.reports import is_among, parse_losses
from multiplay.learner.round_set import RoundSet
from multiplay.policies import Policy
from multiplay.promises.promise import Promise
from multiplay.random import POLICY, Streams, seed_or_random
from multiplay.savings import Saved
from multiplay.storage.folder import read_record, write_record
from multiplay.types import Arrays, IntArray

if TYPE_CHECKING:  # imported where it is used: it takes as long as all the rest
    import pandas as pd

FIRST_RANDOM_ID = 2**52  # ids after a restart are random numbers from here to 2^53

When = datetime | float | None


class Learner(Queries, HasPanel):
    """Learn from live plays: ``ask`` for a plan, ``tell`` its losses.

    Losses may come late, in parts, incomplete and in any order. The set may change in every round.
    Invalid input raises an error, and then nothing has changed.

    Parameters
    ----------
    actions, policy
        The usual action set, and the policy: ``BootstrapCTS(change="follow")`` if not given.
        Objects that ``save`` could not store, such as a function, raise an error.
    seed
        The seed of all random numbers: the same seed and losses give the same plans. With None a
        random seed is drawn and recorded, see ``Learner.seed``.
    losses, rewards
        The range (low, high) of the cost, or reward, of a unit; or a dict of ranges by arm name,
        with "*" for all other arms. All losses and results are in this unit. (0, 1) by default.
    outside
        The treatment of a loss outside its range: "refuse" it, or "clip" it to the range.
    missing
        The treatment of units that a final report leaves out: "refuse", or "ignore" them. None or
        NaN in a list always marks a missing unit.
    changing
        True: the set will change. A policy that needs a fixed set then raises an error.
    features
        The declared features of arms and days. The policy then is ``FeatureCTS(change="follow")``
        if not given, and must be one that reads features.
    arms
        Features of the arms: a table (DataFrame, CSV file) with a column "arm" and one for each
        feature, or a dict by feature of dicts by arm. See ``describe``.
    currency, unit, arm, round
        The words in which plans and costs are shown: "EUR", "truck", "lane", "day". See
        ``set_words``.
    baseline
        The plan that is used without the learner: a rule such as ``InProportion()``, or "each day"
        if it is given with every ``ask``. Plays, also those without a report, are then expected to
        cost in all at most ``1 + allowance`` times as much, or to bring at least ``1 - allowance``
        times as much. A play that may exceed this is replaced by a plan between it and the
        baseline, or by the baseline: on networks the best one that was found, elsewhere the
        baseline. The policy must play the best plan for some costs, as ``BootstrapCTS``,
        ``GenCTS`` or ``CombUCB`` do.
    allowance
        The share: 0.03 if not given.
    sure
        The probability with which it is kept on each day. It is measured in simulated worlds, see
        ``benchmarks/allowance.py``, and not proved: bounds for each arm that are proved hold too,
        but hardly ever leave the baseline in 60 days. Expected costs count, not single bills.
    per
        "week": the allowance begins again every Monday, UTC. The date of a play is that at the
        beginning of its key, or when it was asked. Use it where means drift: they are then taken to
        move as much as days differ beyond the noise of their units.
    promises
        What all plays until a date may use, or have to: ``AtMost`` and ``AtLeast``. See
        ``promise``.
    change
        What each unit that differs from the last plan costs, in the unit of the losses: 15 for 15
        euros. A unit more of one arm and a unit less of another are two. A plan is then changed
        where the policy's costs of a round outweigh ``change / sqrt(h)`` for each of them, where h
        plays in a row had the last plan: see ``SwitchingCost``, and ``play.change_cost``. The last
        plan is that of the newest play that was not cancelled. Costs that are told and expected do
        not contain it. The policy must play the best plan for some costs; without a baseline and
        promises.

    Examples
    --------
    >>> from multiplay import Learner, Transport
    >>> plans = Transport([2, 1], [1, 2], names=(["Lyon", "Lille"], ["north", "south"]))
    >>> learner = Learner(plans, seed=7, losses=(0, 250))
    >>> play = learner.ask()
    >>> play.plan["Lyon->north"] + play.plan["Lyon->south"]
    2
    >>> euros = {lane: [120.0] * trucks for lane, trucks in play.plan.items()}
    >>> print(learner.tell(play.id, euros))
    play 1: 3 of 3 units seen
    >>> print(learner.tell(play.id, euros))
    play 1: the same was told before, nothing has changed
    >>> learner
    Learner(BootstrapCTS on 4 arms: 1 asked, 1 told, losses from 0 to 250)
    """

    def __init__(
        self,
        actions: ActionSet,
        policy: Policy | None = None,
        seed: int | None = 0,
        *,
        losses: Range | None = None,
        rewards: Range | None = None,
        outside: str = "refuse",
        missing: str = "refuse",
        changing: bool = False,
        features: Features | None = None,
        arms: Any = None,
        currency: str | None = None,
        unit: str | None = None,
        arm: str | None = None,
        round: str | None = None,
        baseline: Rule | str | None = None,
        allowance: float | None = None,
        sure: float = SURE,
        per: str | None = None,
        promises: Sequence[Promise] | None = None,
        change: float | None = None,
    ) -> None:
        drawn = seed_or_random(seed)
        rng, settings = Streams.spawn(drawn, POLICY, [0]), (losses, rewards, outside, missing)
        limit = AllowanceSettings.given(baseline, allowance, sure, per)
        rest = changing, features, arms, limit
        own = checked_promises(promises)
        self.engine = Engine.create(
            actions, policy, rng, *settings, *rest, promises=own, change=change
        )
        self.engine.set_words(currency=currency, unit=unit, arm=arm, round=round)
        self.engine.seed, self.log = drawn, PlayLog()
        self.engine.state.log = ReportLog() if self.policy.restarts else None
        described = self.engine.state.features
        self.events = Events(None if described is None else described.table)

    @property
    def policy_state(self) -> PolicyState:
        """The policy, its state, and the statistics of each arm."""
        return self.engine.state

    @property
    def missing(self) -> str:
        """The treatment of units that a final report leaves out."""
        return self.engine.missing

    @property
    def rng(self) -> Streams:
        """The source of random numbers."""
        return self.policy_state.rng

    @property
    def state(self) -> Arrays:
        """The state of the policy for all arms ever seen."""
        return self.policy_state.arms.arrays

    def __repr__(self) -> str:
        return f"Learner({self.engine})"

    def _panel(self) -> Panel:
        return learner_panel("Learner", {}, self.engine)

    def _current(self) -> AbstractContextManager[Engine]:
        return nullcontext(self.engine)

    # ------------------------------------------------------------ plays

    def ask(
        self,
        actions: ActionSet | None = None,
        *,
        key: str | None = None,
        at_most: Mapping[str, int] | None = None,
        exclude: Iterable[str] = (),
        fixed: Mapping[str, int] | None = None,
        features: Any = None,
        baseline: Units | None = None,
        ahead: Sequence[ActionSet] | None = None,
        time_limit: float | None = None,
        replace: bool = False,
        at: When = None,
    ) -> PendingPlay:
        """Choose the next play.

        Parameters
        ----------
        actions
            The set of this round, if it differs from the usual set. Arms are matched by name; new
            arms are added.
        key
            A name for this play, such as "2026-11-15". The same request with the same key gives the
            same play, marked as ``repeated``; a different request raises ``Conflict``. The key of a
            cancelled play is free again. A date names its day in any spelling: 15.11.2026 is
            2026-11-15.
        at_most, exclude, fixed
            The largest number of units of an arm; arms that are not played; arms with an exact
            number of units. For sets that support such limits.
        features
            The declared features of this round: a value for all arms or a dict by arm for each,
            ``{"fuel": 1.72, "rain": {"Lyon->south": True, "*": False}}``, or a table with a column
            "arm". A value comes, first found, from here by arm, from here for all arms, or from the
            table of the arms. Values of arms that are new are kept.
        baseline
            The plan that you would use in this round, for a learner with ``baseline="each day"``.
        ahead
            The sets of the plays after this one, in order, as far as they are known: what a promise
            leaves for them is then certain. Otherwise sets of the past stand for them.
        time_limit
            Seconds for the choice. If the policy has not finished by then, the play is still an
            action of the set, drawn so that learning from it is not biased, and marked as
            ``truncated``; on a ``Model``, ``gap`` says how far it may be from the best. Only the
            choice is cut short: the preparation of a new set and single calls of a user-defined
            oracle are not interrupted.
        replace
            True: a pending play with this key is cancelled, and a new one is chosen.
        at
            The time of the play; now if not given.

        Examples
        --------
        >>> from multiplay import Budget, Learner
        >>> learner = Learner(Budget(2, [2, 2], names=["air", "sea"]))
        >>> play = learner.ask(key="2026-11-18")
        >>> learner.ask(key="18.11.2026").repeated
        True
        >>> learner.ask(key="2026-11-18", exclude=["air"], replace=True).plan
        {'air': 0, 'sea': 2}
        >>> learner.plays()["status"].tolist()
        ['cancelled', 'pending']
        """
        until = time.monotonic() + checked_limit(time_limit)
        engine, log = self.engine, self.log
        key, replace = checked_replace(key, replace)
        when, round_set = timestamp("at", at), engine.round_set(actions, at_most, exclude, fixed)
        round_set = engine.featured(round_set, features)
        id, line = log.next_id, len(log)
        base = engine.baseline(round_set, baseline)
        request = None if key is None else self._plan_request(round_set, base, given_sets(ahead))
        known = None if key is None else self._id_of(key)
        if key is not None and request is not None and known is not None:
            line = self._line(known)
            then = log.requests.get(known), log.get(line, "asked"), log.status(line)
            if not request.is_free(key, *then, replace):
                return self._again(known, key).again()
        sets = engine.promises.checked_ahead(engine.state, ahead)
        replaced = known if known in engine.pending else None
        play = self._chosen(replaced, id, round_set, when, key, until, base, sets)
        action = play.action[0]
        log.ask(when, round_set.actions.names, play.units, play.expected)
        if round_set.may_lack:
            log.unmet[line] = tuple(round_set.actions.unmet(action))
        if key is not None:
            log.name(id, key, round_set.plan(action), request)
        if play.truncated:
            log.truncated[id] = play.gap
        self.events.all.append(Asked(id, engine.pending[id], round_set.scales))
        engine.warn_if_promised(play)
        return self._pending_play(engine, id)

    def tell(
        self,
        play: AnyPlay,
        losses: Losses,
        *,
        final: bool = True,
        missing: str | None = None,
        at: When = None,
    ) -> Receipt:
        """Learn from the losses of a play, in the user's unit.

        ``losses`` gives, for each arm, either a list with the loss of every unit or one number, the
        total of its units. By name, arms that were not played may be left out; otherwise one entry
        for each arm, in order; a pandas Series is read by its index. None or NaN in a list marks a
        missing unit. A total may be outside its range by rounding errors.

        For a policy that learns from totals of rounds, such as ``LinTS``, one number may be given:
        the total of all units. The policy sees only that total in every case.

        The same report again changes nothing, and the receipt is marked as repeated. Different
        losses for the same units raise an error. So two parts with the same content count once:
        where two units of an arm have the same loss, tell them together, or use None for one.

        Parameters
        ----------
        play, losses
            The play, its id or its key; and the losses of its units.
        final
            False: more reports follow. Then arms and units may be left out. A list with an entry
            for every unit shows which are missing; a shorter list is for units not told before. The
            policy learns from all parts at once, after the final report or when the play is closed.
        missing
            "ignore": arms and units may be left out of the final report too. The setting of the
            learner if not given.
        at
            The time of the report; now if not given.
        """
        when, engine = timestamp("at", at), self.engine
        if final is not True:
            final = true_or_false("final", final, "Use final=False if more losses follow.")
        ignore = engine.ignores(missing)
        id = self._id(play)
        pending = engine.pending.get(id) if is_integer(id) else None
        if pending is None:
            return self._told_again(id, losses)
        before, words = engine.state.told, words_of(engine)
        parsed = engine.parse(losses, pending)
        result = engine.tell(id, parsed, final, ignore, when)
        if not result.receipt.repeated:
            self.events.all.append(Told(int(id), parsed, final, ignore, when, words))
        line = self._line(id)
        self.log.digests[line] = result.digests
        if result.outcome is not None:
            self.log.tell(line, when, *result.outcome)
            engine.warn_if_over(before)  # at the end: a warning may be turned into an error
        return result.receipt

    def close(self, play: AnyPlay, *, at: When = None) -> Receipt:
        """Close a play: learn from the losses told so far; the rest counts as missing."""
        id, when, before = self._id(play), timestamp("at", at), self.engine.state.told
        self._check_waits(id)
        told = self._close(id, when)
        self.engine.warn_if_over(before)
        return told

    def cancel(self, play: AnyPlay) -> None:
        """Discard a play that was not carried out: nothing is learned from it.

        Its key is free again.
        """
        id = self._id(play)
        self._check_waits(id)
        self.engine.cancel(id)
        self._cancelled(id)

    def correct(
        self, play: AnyPlay, losses: Losses, *, missing: str | None = None, at: When = None
    ) -> Receipt:
        """Replace the losses that were told of a play, for example after a typo.

        The state is then that of a learner that was told these losses in the first place, with the
        plans as they were chosen. Reports that were forgotten or kept by hand are computed anew.
        All events of the learner are replayed, which takes about as long as all calls of ``tell``
        did. The same correction again changes nothing.

        Parameters
        ----------
        play
            A play that was told or closed: the play, its id or its key.
        losses, missing
            All losses of the play, as in a final report of ``tell``.
        at
            The time of this call; the report keeps its own time.

        Examples
        --------
        >>> from multiplay import Budget, Learner
        >>> learner = Learner(Budget(3, [3], names=["trucks"]), losses=(0, 250))
        >>> play = learner.ask(key="Monday")
        >>> told = learner.tell(play, {"trucks": [120.0, 12.0, 130.0]})
        >>> print(learner.correct("Monday", {"trucks": [120.0, 125.0, 130.0]}))
        play 1: 3 of 3 units seen
        >>> float(learner.arms()["average"][0])
        125.0
        """
        timestamp("at", at)
        id, line = self._told_id(play)
        place, parts = self.events.report(id)
        now, pending = self.events.all[place], self.events.play(id)
        ignore, parsed = self.engine.ignores(missing), self.engine.parse(losses, pending)
        digest = parsed.digest(pending.action[0])
        if type(now) is Told and not parts and now.parsed.digest(pending.action[0]) == digest:
            return self._told_again(id, losses)
        receipt, outcome = self.engine.check_report(id, pending, parsed, ignore)
        assert isinstance(now, Told | Ended)
        told = Told(id, parsed, True, ignore, now.when, now.words)
        self.engine = self.events.replace(self.engine, place, parts, told)
        self.log.digests[line] = self.log.digests.get(line, b"") + digest + parsed.digest(None)
        self.log.tell(line, now.when, *outcome)
        return receipt

    def retract(self, play: AnyPlay, *, at: When = None) -> None:
        """Withdraw the losses that were told of a play, which is then pending again.

        The state is that of a learner that was not told them. Tell the right losses later, or
        cancel the play if it was not carried out. Parts of a report are withdrawn as well.

        Examples
        --------
        >>> from multiplay import Budget, Learner
        >>> learner = Learner(Budget(3, [3], names=["trucks"]))
        >>> told = learner.tell(learner.ask(key="Monday"), {"trucks": [0.5, 0.5, 0.5]})
        >>> learner.retract("Monday")
        >>> learner.open_plays, int(learner.arms()["seen"][0])
        (1, 0)
        """
        timestamp("at", at)
        id = self._id(play)
        parts = self.events.parts(id) if is_integer(id) and id in self.engine.pending else []
        if parts:
            place, parts = parts[-1], parts[:-1]
        else:
            id, _ = self._told_id(id)
            place, parts = self.events.report(id)
        self.engine, line = self.events.replace(self.engine, place, parts), self._line(id)
        self.log.digests.pop(line, None)
        self.log.tell(line, NEVER, 0, NEVER, 0)
        self.log.end(line, PENDING)

    def expire(self, older_than: timedelta | float, *, at: When = None) -> list[int]:
        """Close or cancel all plays that are older than this; return their ids.

        Plays with losses that the policy can learn from are closed; the rest are cancelled.
        """
        when, before = timestamp("at", at), self.engine.state.told
        late = self.engine.late(when - duration_seconds("older_than", older_than))
        for id, closes in late.items():
            if closes:
                self._close(id, when)
            else:
                self.cancel(id)
        self.engine.warn_if_over(before)
        return list(late)

    # ------------------------------------------------------------ external plans

    def learn(
        self,
        plan: Units,
        losses: Losses,
        *,
        actions: ActionSet | None = None,
        features: Any = None,
        missing: str | None = None,
        at: When = None,
    ) -> Receipt:
        """Learn from an external plan: units by arm, and their losses.

        ``losses`` is as in ``tell``; ``actions`` is the set of that round, if it was not the usual
        one; ``features`` are those of that round as in ``ask``, for the arms of the plan. Thompson
        and index policies use the losses as samples. FTRL policies only improve their predictions,
        because the probability of playing this plan is not known.
        """
        engine, when = self.engine, timestamp("at", at)
        round_set, action, ignore = engine.external(plan, actions, features, missing)
        words = words_of(engine)
        told, parsed = engine.learn(round_set, action, losses, ignore, when)
        rest = ignore, when, words, round_set.today, round_set.scales
        self.events.all.append(Learned(round_set.base, action, parsed, *rest))
        return told

    def learn_table(
        self,
        table: Any,
        arm: str | Sequence[str] = "arm",
        round: str = "round",
        loss: str = "loss",
        *,
        skip_bad: bool = False,
        day_first: bool | None = None,
    ) -> Receipt:
        """Learn from logged data (warm start): a table with one row for each unit.

        Parameters
        ----------
        table
            A table of pandas, polars or Arrow, an argument of ``pandas.DataFrame``, or the path of
            a CSV file (any separator and decimal mark) or an Excel file.
        arm
            The column with the name of the arm, or several columns whose texts are joined:
            ``["depot", "customer"]`` for "Lyon->north". Arms that are not known are added, if the
            policy allows that; ``Receipt.added`` lists them.
        round
            The column of the round: dates, or any labels that can be sorted. Dates may be times or
            text such as 2026-12-31, 31.12.2026 or 12/31/2026; they also set ``last_seen``. A time
            without a zone is UTC. Each different time is a round.
        loss
            The column of the loss of the unit, in the user's unit. A loss may be missing.
        skip_bad
            True: rows with problems are left out, and ``Receipt.skipped`` is their number.
            Otherwise a table with problems is refused, and nothing is learned.
        day_first
            True if 03/04/2026 is the third of April, False if it is the fourth of March; needed
            only where no date of the table shows it.

        With declared features, the table has a column for each, by its name; those that the table
        of arms has may be left out. All units of an arm in a round have the same features.

        Examples
        --------
        >>> from multiplay import Budget, Learner
        >>> learner = Learner(Budget(3, [2, 2], names=["air", "sea"]), losses=(0, 100))
        >>> bills = {"lane": ["air", "sea"], "day": ["2026-03-01"] * 2, "euros": ["79,50", "20,00"]}
        >>> print(learner.learn_table(bills, arm="lane", round="day", loss="euros"))
        an external plan: 2 of 2 units seen
        >>> f"{learner.arms()['last_seen'][0]:%d %B %Y}"
        '01 March 2026'
        """
        engine = self.engine
        engine.check_absorbs()
        skip_bad = true_or_false("skip_bad", skip_bad, "Leave it out.")
        read = engine.read_table(table, arm, round, loss, day_first)
        logged, words = read.learned(skip_bad), words_of(engine)
        told, scales = engine.learn_all(logged)
        self.events.all.append(LearnedTable(logged, scales, words))
        return told

    def describe(self, table: Any) -> None:
        """Keep features of arms, also of arms that are not known yet; values are replaced.

        Parameters
        ----------
        table
            A DataFrame or CSV file with the arms in its column "arm" (or its index) and one column
            for each feature; or a dict by feature of dicts by arm.

        Examples
        --------
        >>> from multiplay import Budget, Features, Learner, Number
        >>> plans = Budget(2, [2, 2], names=["air", "sea"])
        >>> learner = Learner(plans, features=Features(km=Number(centre=300, scale=100)))
        >>> learner.describe({"km": {"air": 250.0, "sea": 400.0}})
        >>> sum(learner.ask().plan.values())
        2
        """
        arms, codes = self.engine.described(table)
        self.events.all.append(Described(arms, codes, self.engine.describe(arms, codes)))

    def set_words(
        self,
        currency: str | None = None,
        unit: str | None = None,
        arm: str | None = None,
        round: str | None = None,
    ) -> None:
        """Set the words in which plans and costs are shown; nothing else depends on them.

        Parameters
        ----------
        currency
            The name of the unit of costs, such as "EUR"; "" for none.
        unit, arm, round
            What a unit of a plan, an arm and a round are called, each in the singular: "truck",
            "lane", "day". A word that is None stays as it is.

        Examples
        --------
        >>> from multiplay import Budget, Learner
        >>> learner = Learner(Budget(2, [2, 2], names=["air", "sea"]), currency="EUR")
        >>> learner.set_words(unit="box", arm="way")
        >>> learner.words
        Words(currency='EUR', unit='box', arm='way', round='day')
        """
        self.engine.set_words(currency=currency, unit=unit, arm=arm, round=round)

    # ------------------------------------------------------------ promises

    def promise(self, promise: Promise) -> None:
        """Make a promise, which counts the plays from now on.

        A play counts as planned when it is asked for. A final report that leaves units out says
        that they were not used; None in a list marks a unit that was used and has no bill. External
        plans of ``learn`` count as plays; logged data does not count.

        Examples
        --------
        >>> from multiplay import AtLeast, Budget, Learner
        >>> learner = Learner(Budget(4, [4, 4], names=["air", "sea"]), losses=(0, 100))
        >>> learner.promise(AtLeast(9, of={"air": 1, "*": 0}, plays=3, name="air freight"))
        >>> sum(learner.ask().plan["air"] for day in range(3)) >= 9
        True
        >>> learner.release("air freight")
        >>> len(learner.promises())
        0
        """
        past = list[RoundSet]()
        if not self.engine.promises:
            asked = [one for one in self.events.all if isinstance(one, Asked)]
            past = [one.play.round_set for one in asked[-MOST_PAST:]]
        made = self.engine.promise(promise, [one.given for one in past])
        self.events.all.append(Promised(made, tuple(past)))

    def release(self, name: str) -> None:
        """End a promise by its name."""
        self.engine.promises.release(name)
        self.events.all.append(Released(name))

    # ------------------------------------------------------------ reports that count

    def forget(self, arm: str | None = None, *, before: Round, at: When = None) -> Remaining:
        """Forget the losses of an arm that were told before a round, because they changed.

        Beliefs and policy then are as if these losses had not been told; later losses count as
        before. What ``BootstrapCTS(change="follow")`` forgot by itself stays forgotten. For a
        policy that cannot forget the losses of single arms, such as ``GenLBINFV``, an error is
        raised.

        Parameters
        ----------
        arm
            The name of the arm; None for all arms.
        before
            The number of a round: 1 is the first play told, and external plans count for the play
            told before them. Or a datetime: the first round told at that time or later.
        at
            The time of this call; now if not given.

        Examples
        --------
        >>> from multiplay import Budget, Learner
        >>> learner = Learner(Budget(2, [1, 1], names=["air", "sea"]), losses=(0, 100))
        >>> for day in range(1, 31):
        ...     costs = {"air": [20.0 if day < 21 else 80.0], "sea": [50.0]}
        ...     told = learner.tell(learner.ask(key=str(day)), costs)
        >>> print(learner.forget("air", before=21))
        reports since round 21 count: 10 units
        >>> float(learner.arms()["average"][0])
        80.0
        """
        return self._restart(False, arm, before, at)

    def keep(
        self, arm: str | None = None, *, since: Round | None = None, at: When = None
    ) -> Remaining:
        """Let all losses of an arm since a round count again: undo that they were forgotten.

        It undoes ``forget``, and what ``BootstrapCTS(change="follow")`` forgot by itself. The mean
        of the arm is then taken to be the same since that round; a later change is still found.

        Parameters
        ----------
        arm
            The name of the arm; None for all arms.
        since
            The number of a round, 0 for all losses told; or a datetime. If not given, the losses
            count that counted before the arm forgot some of them for the last time.
        at
            The time of this call; now if not given.
        """
        return self._restart(True, arm, since, at)

    def _restart(self, keep: bool, arm: str | None, given: Round | None, at: When) -> Remaining:
        engine, log = self.engine, self.engine.state.log
        engine.check_restarts()
        assert log is not None  # for such a policy, a learner logs all reports
        now, arm = timestamp("at", at), engine.checked_arm(arm)
        left = engine.restart(engine.restarted(log, keep, arm, given, now))
        self.events.all.append(Restarted(keep, arm, given, now))
        return left

    # ------------------------------------------------------------ history

    def plays(self, *, external: bool = False) -> pd.DataFrame:
        """Return a table of all plays: id, key, when asked and told, units, expected, realised.

        ``external``: True for external plans and rounds of logged data as well. They come first, in
        order of time, with id 0 and the status "external".
        """
        if not true_or_false("external", external, "Leave it out."):
            return self.log.frame()
        return joined_tables([external_table(self.events.external()), self.log.frame()])

    def _compared(self, against: Any) -> Against:
        return compared(against, functions=True)

    def _answer(self, question: Question) -> Saved:
        events, ranges = self.events, self.engine.state.ranges
        pending = {} if events.begin is None else events.begin().pending
        history = played_days(events.all, ranges, pending)
        return self._past(self.engine, history).answer(question)

    # ------------------------------------------------------------ save and load

    def save(self, path: str | Path) -> None:
        """Write the learner to one file, from which ``load`` continues bit for bit."""
        write_record(path, snapshot.with_events(self.engine, self.log, self.events))

    @classmethod
    def load(
        cls, path: str | Path, actions: ActionSet | None = None, policy: Policy | None = None
    ) -> Learner:
        """Return a saved learner; user-defined sets and policies must be passed again.

        The ids of new plays begin at a large random number, so that no id is issued twice.
        """
        place = as_path("path", path)
        remove_stale_drafts(place.parent)
        record = read_record(place)
        learner = cls.__new__(cls)
        try:
            learner.engine, learner.log = snapshot.parts_of(record, actions, policy)
            learner.events = snapshot.events_of(record, learner.engine, learner.log)
        except InvalidInput:
            raise
        except ValueError as error:
            raise InvalidInput(
                "path",
                "a file written by Learner.save",
                f"{path} ({error})",
                "The file is damaged, or is a different file: restore a backup.",
            ) from None
        learner.log.begin_ids(FIRST_RANDOM_ID + secrets.randbelow(FIRST_RANDOM_ID))
        return learner

    # ------------------------------------------------------------ private

    def _plan_request(
        self, round_set: RoundSet, baseline: IntArray | None, ahead: Iterable[ActionSet]
    ) -> PlanRequest:
        """Return what a play is asked for; a baseline that is a rule is no part of it."""
        engine, book, given = self.engine, self.engine.promises, round_set.given
        usual = engine.state.actions
        own = given is not usual and book.digest(given) != book.digest(usual)
        return PlanRequest.of(
            book.digest(given).hex() if own else "",
            vars(round_set.limits),
            round_set.today,
            None if engine.has_rule or baseline is None else round_set.plan(baseline),
            [book.digest(one).hex() for one in ahead],
        )

    def _chosen(self, replaced: int | None, *given: Any) -> PendingState:
        """Choose a play, after the one that it replaces is cancelled."""
        engine = self.engine
        if replaced is None:
            return engine.ask(*given)
        engine.cancel(replaced)
        try:
            play = engine.ask(*given)
        except BaseException:  # it is pending again
            self.engine = self.events.replayed(self.events.all, engine)
            raise
        self._cancelled(replaced)
        return play

    def _cancelled(self, id: int) -> None:
        """Log that a play was cancelled."""
        self.events.all.append(Ended(int(id)))
        self.log.end(self._line(id), CANCELLED)

    def _close(self, id: int, when: float) -> Receipt:
        words = words_of(self.engine)
        told, outcome = self.engine.close(id, when)
        self.events.all.append(Ended(int(id), when, words))
        self.log.tell(self._line(id), when, *outcome)
        return told

    def _again(self, id: int, key: str) -> PendingPlay:
        """Return the play of a key that was used before."""
        if id in self.engine.pending:
            return self._pending_play(self.engine, id)
        line = self._line(id)
        plan, arms = self.log.plans[id], self.log.arms[line]
        action = np.array([plan[name] for name in arms], dtype=np.int64)
        then = Estimate(self.log.get(line, "expected"), math.nan, math.nan)
        made = id, action, dict(plan), key, lambda: then, lambda: self.why(id)
        engine, cut = self.engine, self.log.truncated
        limited = engine.promises or engine.allowance is not None or engine.switching is not None
        limits = limits_of(engine, self.events.play(id)) if limited else {}
        return PendingPlay(*made, id in cut, lambda: self.words, gap=cut.get(id), **limits)

    def _told_again(self, id: Any, losses: Losses) -> Receipt:
        """Return the receipt of a report of a play that is not pending."""
        line = self._line(id)
        parsed = parse_losses(
            losses, self.log.arms[line], self.policy, self.log.unmet.get(line, ())
        )
        known = is_among(parsed.digest(None), self.log.digests.get(line, b""))
        numbers = (int(self.log.get(line, name)) for name in ("units", "seen", "clipped"))
        return told_again(id, self.log.status(line), known, *numbers)

    def _told_id(self, play: AnyPlay) -> tuple[int, int]:
        """Return the id and the line of a play; raise ``Conflict`` unless it was told."""
        id = self._id(play)
        line = self._line(id)
        status = self.log.status(line)
        hint = {
            PENDING: "Use tell(play, losses).",
            CANCELLED: "Use learn(plan, losses) if the plan was carried out.",
        }.get(status)
        if hint is not None:
            what = f"{id!r}, which {'is' if status == PENDING else 'was'} {status}"
            raise Conflict("play", "a play that was told", what, hint)
        return int(id), line

    def _id_of(self, key: str) -> int | None:
        return self.log.keys.get(day_name(key))

    def _line(self, id: Any) -> int:
        line = self.log.line(id) if is_integer(id) else None
        if line is None:
            raise play_error(id, "", "Use the id or the key of a play from ask().")
        return line

    def _check_waits(self, id: Any) -> None:
        status = self.log.status(self._line(id))
        if id not in self.engine.pending:
            raise play_error(id, f"which was {status}", "Omit it: this play is closed.")
