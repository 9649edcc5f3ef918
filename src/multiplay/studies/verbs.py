"""Verbs: what a learner, a study and a study of a service have in common, with its description."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any, TypeVar

from multiplay._support.checks import check_instance
from multiplay._support.words import Words
from multiplay.actions import ActionSet, Rule
from multiplay.constraints import Constraint
from multiplay.learner.constraints import ConstraintReport
from multiplay.learner.engine import Losses, Range, Round, Units
from multiplay.learner.logged_data import TableCheck
from multiplay.learner.plays import (
    AnyPlay,
    Estimate,
    PendingPlay,
    Plan,
    Receipt,
    Remaining,
    When,
    Why,
)
from multiplay.learner.queries import Moment, Queries
from multiplay.savings import Savings
from multiplay.storage.base import JournalEntries
from multiplay.studies.commands.base import Command, Query, Reader
from multiplay.studies.commands.constraints import AddConstraint, Constraints, EndConstraint
from multiplay.studies.commands.corrections import Correct, Retract
from multiplay.studies.commands.counting import Forget, Unforget
from multiplay.studies.commands.external import (
    CheckTable,
    Imports,
    Learn,
    LearnTable,
    SetArmFeatures,
)
from multiplay.studies.commands.notes import WriteNote
from multiplay.studies.commands.plays import Ask, Cancel, Close, Expire, Tell
from multiplay.studies.commands.queries import (
    Arms,
    Best,
    CompareArms,
    Drift,
    Effects,
    EstimateSavings,
    Expect,
    Explain,
)
from multiplay.studies.commands.settings import SetRange, SetVersus, SetWords
from multiplay.studies.imports import Import

if TYPE_CHECKING:  # imported where it is used: it takes as long as all the rest
    import pandas as pd

R = TypeVar("R")


class Verbs(ABC):
    """The verbs of a learner or a study.

    ``key`` makes a verb idempotent: the same verb with the same key returns the same result and
    changes nothing. Each verb has its own keys. ``at`` is the time of the verb; now if not given.
    """

    @abstractmethod
    def do(self, command: Command[R], key: str | None = None, at: When = None) -> R:
        """Run a verb that changes the state."""

    @abstractmethod
    def read(self, query: Query[R]) -> R:
        """Run a verb that reads the state."""

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
            The plan that you would use in this round, for a learner with ``Baseline("each day")``.
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
        given = actions, at_most, exclude, fixed, features
        return self.do(Ask(*given, time_limit, baseline, ahead, replace), key, at)

    def tell(
        self,
        play: AnyPlay,
        losses: Losses,
        *,
        final: bool = True,
        missing: str | None = None,
        key: str | None = None,
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
        return self.do(Tell(play, losses, final, missing), key, at)

    def close(self, play: AnyPlay, *, key: str | None = None, at: When = None) -> Receipt:
        """Close a play: learn from the losses told so far; the rest counts as missing."""
        return self.do(Close(play), key, at)

    def cancel(
        self,
        play: AnyPlay,
        *,
        reason: str | None = None,
        key: str | None = None,
        at: When = None,
    ) -> None:
        """Discard a play that was not carried out: nothing is learned from it.

        Its key is free again. The journal keeps the ``reason``, one short sentence.
        """
        self.do(Cancel(play, reason), key, at)

    def correct(
        self,
        play: AnyPlay,
        losses: Losses,
        *,
        missing: str | None = None,
        key: str | None = None,
        at: When = None,
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
        >>> learner = Learner(Budget(3, [3], names=["trucks"]), loss_range=(0, 250))
        >>> play = learner.ask(key="Monday")
        >>> told = learner.tell(play, {"trucks": [120.0, 12.0, 130.0]})
        >>> print(learner.correct("Monday", {"trucks": [120.0, 125.0, 130.0]}))
        play 1: 3 of 3 units seen
        >>> float(learner.arms()["average"][0])
        125.0
        """
        return self.do(Correct(play, losses, missing), key, at)

    def retract(self, play: AnyPlay, *, key: str | None = None, at: When = None) -> None:
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
        self.do(Retract(play), key, at)

    def expire(
        self, older_than: timedelta | float, *, key: str | None = None, at: When = None
    ) -> list[int]:
        """Close or cancel all plays that are older than this; return their ids.

        Plays with losses that the policy can learn from are closed; the rest are cancelled.
        """
        return self.do(Expire(older_than), key, at)

    # ------------------------------------------------------------ external plans and logged data

    def learn(
        self,
        plan: Units,
        losses: Losses,
        *,
        actions: ActionSet | None = None,
        features: Any = None,
        missing: str | None = None,
        key: str | None = None,
        at: When = None,
    ) -> Receipt:
        """Learn from an external plan: units by arm, and their losses.

        ``losses`` is as in ``tell``; ``actions`` is the set of that round, if it was not the usual
        one; ``features`` are those of that round as in ``ask``, for the arms of the plan. Thompson
        and index policies use the losses as samples. FTRL policies only improve their predictions,
        because the probability of playing this plan is not known.
        """
        return self.do(Learn(plan, losses, actions, features, missing), key, at)

    def learn_table(
        self,
        table: Any,
        arm: str | Sequence[str] = "arm",
        round: str = "round",
        loss: str = "loss",
        *,
        skip_bad: bool = False,
        day_first: bool | None = None,
        id: str | None = None,
        again: str = "skip",
        source: str = "",
        key: str | None = None,
        at: When = None,
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
        id
            The column with the id of the unit, such as the number of its invoice.
        again
            What to do with rows that were learned before, from a table or as losses of the plan of
            that day: "skip" learns from the others only, and ``Receipt.known`` is their number;
            "add" learns them again; "refuse" raises ``Conflict``. A row is known by its arm, round
            and loss, or by its id and arm. Of two equal rows, one may be known.
        source
            The name of the table in ``imports()``, and for ``retract``; that of its file if not
            given.

        With declared features, the table has a column for each, by its name; those that the table
        of arms has may be left out. All units of an arm in a round have the same features.

        Examples
        --------
        >>> from multiplay import Budget, Learner
        >>> learner = Learner(Budget(3, [2, 2], names=["air", "sea"]), loss_range=(0, 100))
        >>> bills = {"lane": ["air", "sea"], "day": ["2026-03-01"] * 2, "euros": ["79,50", "20,00"]}
        >>> print(learner.learn_table(bills, arm="lane", round="day", loss="euros"))
        an external plan: 2 of 2 units seen
        >>> f"{learner.arms()['last_seen'][0]:%d %B %Y}"
        '01 March 2026'
        >>> print(learner.learn_table(bills, arm="lane", round="day", loss="euros"))
        an external plan: all 2 rows are known, nothing has changed
        """
        columns = arm, round, loss, day_first, id
        return self.do(LearnTable(table, *columns, skip_bad, again, source), key, at)

    def check_table(
        self,
        table: Any,
        arm: str | Sequence[str] = "arm",
        round: str = "round",
        loss: str = "loss",
        *,
        day_first: bool | None = None,
        id: str | None = None,
    ) -> TableCheck:
        """Return what ``learn_table`` would learn from a table, and its problems.

        The arguments are those of ``learn_table``. Nothing is learned.
        """
        return self.read(CheckTable(table, arm, round, loss, day_first, id))

    def set_range(
        self, loss_range: Range | None, *, key: str | None = None, at: When = None
    ) -> None:
        """Set the range of losses, or rewards; all reports are learned again with it.

        ``loss_range`` is as in ``Learner``. None: the range grows when a loss lies outside it.
        Plans stay as they were chosen. A loss that was told and lies outside the new range is an
        error, or clipped. Policies that need a known range cannot change it.

        Examples
        --------
        >>> from multiplay import Budget, Learner
        >>> learner = Learner(Budget(2, [2], names=["trucks"]), loss_range=(0, 100))
        >>> learner.set_range((0, 250))
        >>> print(learner.tell(learner.ask().id, {"trucks": [120.0, 180.0]}))
        play 1: 2 of 2 units seen
        >>> learner.loss_range
        'losses from 0 to 250'
        """
        self.do(SetRange(loss_range), key, at)

    def imports(self) -> list[Import]:
        """Return every table that was learned, in order; ``retract`` undoes one by its name.

        Examples
        --------
        >>> from multiplay import Budget, Learner
        >>> learner = Learner(Budget(3, [2, 2], names=["air", "sea"]), loss_range=(0, 100))
        >>> bills = {"arm": ["air", "sea"], "round": ["2026-03-01"] * 2, "loss": [80, 20]}
        >>> told = learner.learn_table(bills, source="march.csv")
        >>> learner.retract("march.csv")
        >>> print(learner.imports()[0])
        march.csv: 2 units of 1 day, 2026-03-01 to 2026-03-01, total 100, retracted
        """
        return self.read(Imports())

    def set_arm_features(self, table: Any, *, key: str | None = None, at: When = None) -> None:
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
        >>> learner.set_arm_features({"km": {"air": 250.0, "sea": 400.0}})
        >>> sum(learner.ask().plan.values())
        2
        """
        self.do(SetArmFeatures(table), key, at)

    # ------------------------------------------------------------ settings

    def set_words(self, words: Words, *, key: str | None = None, at: When = None) -> None:
        """Set the words in which plans and costs are shown; nothing else depends on them.

        Examples
        --------
        >>> from multiplay import Budget, Learner, Words
        >>> learner = Learner(Budget(2, [2, 2], names=["air", "sea"]), words=Words("EUR"))
        >>> learner.set_words(learner.words._replace(unit="box", arm="way"))
        >>> learner.words
        Words(currency='EUR', unit='box', arm='way', round='day')
        """
        check_instance("words", words, Words, "Words(currency='EUR')")
        self.do(SetWords(*words), key, at)

    def note(self, text: str, *, key: str | None = None, at: When = None) -> None:
        """Keep a remark in the journal, with plays and reports; nothing is learned from it.

        Examples
        --------
        >>> from multiplay import Budget, Study
        >>> study = Study.create("ads", Budget(3, [3, 3]), store="memory://note-example")
        >>> study.note("Prices of radio are old.")
        >>> [entry.record.header["text"] for entry in study.entries(1)]
        ['Prices of radio are old.']
        """
        self.do(WriteNote(text), key, at)

    # ------------------------------------------------------------ constraints

    def add_constraint(
        self, constraint: Constraint, *, key: str | None = None, at: When = None
    ) -> None:
        """Add a constraint for the plays from now on, with any others.

        ``AtMost`` and ``AtLeast`` promise what all plays of a period use; a play counts as planned
        when it is asked for. A final report that leaves units out says that they were not used;
        None in a list marks a unit that was used and has no bill. External plans of ``learn`` count
        as plays; logged data does not count. A ``Baseline`` counts the plays from now on, and a
        ``SwitchingCost`` the changes of the last plan: there is at most one of each at a time.

        Examples
        --------
        >>> from multiplay import AtLeast, Budget, Learner
        >>> learner = Learner(Budget(4, [4, 4], names=["air", "sea"]), loss_range=(0, 100))
        >>> learner.add_constraint(AtLeast(9, {"air": 1, "*": 0}, plays=3, name="air freight"))
        >>> sum(learner.ask().plan["air"] for day in range(3)) >= 9
        True
        >>> learner.end_constraint("air freight")
        >>> learner.constraints()
        []
        """
        self.do(AddConstraint(constraint), key, at)

    def end_constraint(self, name: str, *, key: str | None = None, at: When = None) -> None:
        """End a constraint by its name; those of a baseline and a switching cost are in ``name``.

        Examples
        --------
        >>> from multiplay import Budget, Learner, SwitchingCost
        >>> learner = Learner(Budget(4, [4, 4]), constraints=[SwitchingCost(0.1)])
        >>> learner.end_constraint("switching cost")
        """
        self.do(EndConstraint(name), key, at)

    def constraints(self) -> list[ConstraintReport]:
        """Return every constraint with its settings, and what became of it so far.

        Returns
        -------
        list
            A ``BaselineReport``, a ``SwitchingReport``, and a ``PromiseReport`` for each promise;
            all have the ``name`` and the ``constraint``.

        Examples
        --------
        >>> from multiplay import AtMost, Budget, Learner
        >>> plans = Budget(10, [10, 10], names=["air", "sea"])
        >>> co2 = AtMost(100, of={"air": 5, "sea": 1}, plays=5, name="CO2")
        >>> learner = Learner(plans, loss_range=(0, 100), constraints=[co2])
        >>> play = learner.ask(ahead=[plans] * 4)
        >>> (report,) = learner.constraints()
        >>> report.used == 5 * play.plan["air"] + play.plan["sea"], report.holds
        (True, 'sure')
        """
        return self.read(Constraints())

    # ------------------------------------------------------------ reports that count

    def forget(
        self,
        arm: str | None = None,
        *,
        before: Round,
        key: str | None = None,
        at: When = None,
    ) -> Remaining:
        """Forget the losses of an arm that were told before a round, because they changed.

        Beliefs and policy then are as if these losses had not been told; later losses count as
        before. What ``PooledCTS(memory=Changes())`` forgot by itself stays forgotten. Policies
        that keep no sums of each arm, such as ``GenLBINFV``, and effects of features learn all
        plays again with these units missing. A policy that needs all units, such as ``LinTS``,
        raises an error.

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
        >>> learner = Learner(Budget(2, [1, 1], names=["air", "sea"]), loss_range=(0, 100))
        >>> for day in range(1, 31):
        ...     costs = {"air": [20.0 if day < 21 else 80.0], "sea": [50.0]}
        ...     told = learner.tell(learner.ask(key=str(day)), costs)
        >>> print(learner.forget("air", before=21))
        reports since round 21 count: 10 units
        >>> float(learner.arms()["average"][0])
        80.0
        """
        return self.do(Forget(arm, before=before), key, at)

    def unforget(
        self,
        arm: str | None = None,
        *,
        since: Round | None = None,
        key: str | None = None,
        at: When = None,
    ) -> Remaining:
        """Let all losses of an arm since a round count again: undo that they were forgotten.

        It undoes ``forget``, and what ``PooledCTS(memory=Changes())`` forgot by itself. The mean
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
        return self.do(Unforget(arm, since=since), key, at)

    # ------------------------------------------------------------ queries

    def arms(self, level: float = 0.95, features: Any = None) -> pd.DataFrame:
        r"""Return a table of all arms: units seen, mean, interval, last seen, share of plans.

        Mean and interval come from one model of the losses, the same for every policy: arms are
        alike up to a spread that is learned, each day has its effect on an arm, and the noise of a
        unit is learned. So the mean of an arm lies between its own average and that of the other
        arms, closer to its own the more is known of it:

        .. math::

            m_i \mp t_{\nu_i} \sqrt{\text{var}_i}.

        It is to contain the true mean with probability ``level``; see the page on beliefs for the
        worlds in which it does. For a policy that forgets, old losses count less here too. All
        numbers are in the user's unit.

        Parameters
        ----------
        level
            The probability.
        features
            With declared features: the values at which arms are compared, as in ``ask``; those of
            the last play if not given. Arms without a value of every feature have no mean then.

        Returns
        -------
        DataFrame
            One row for each arm that occurred: arm, seen (units), mean, low and high (of the
            model, for an arm never seen too), average (of the losses told; NaN if there is none),
            spread (the standard deviation of the loss of a unit within a day), last_seen, share,
            the fraction of the reported plays and external plans that played it, and long_run. With
            ``Persists()`` mean, low and high are those of the next round, and long_run is the mean
            to which losses return; else it is the mean.
        """
        if features is None:
            return self.read(Arms(level))
        return self.read(CompareArms(features, level))

    def effects(self, level: float = 0.95, by: str = "feature") -> pd.DataFrame:
        r"""Return a table of the effects of the declared features, or of the arms themselves.

        The loss of a unit of arm i is :math:`\langle\theta, \phi_i\rangle + b_i` and noise. An
        effect is what a unit costs more, in the user's unit, where a number is larger by ``per``,
        or a flag is true, and everything else is the same. A level of a category is compared with
        the average of all levels, and an arm with the average of all arms: only such differences
        can be learned, because the intercept, the levels and the arms are confounded. Of a feature
        that multiplies the effect is a percentage, and a level is compared with the average of the
        other levels; what others add is then that of average levels. The interval is that of the
        model.

        Parameters
        ----------
        level
            The probability with which an interval is to contain the effect.
        by
            "feature", or "arm" for the own effect :math:`b_i - \bar b` of each arm.

        Returns
        -------
        DataFrame
            By feature: feature; per, such as "100 km"; effect, low and high; changes_plans, False
            for a feature that adds the same to every plan (known from the first ``ask`` on); and
            text, a sentence. The first row, "1", is the cost of a unit of the average arm, where
            all scaled numbers are 0, flags are false and levels are averaged. By arm: arm,
            effect, low and high. ``attrs["misfit"]`` is a text if the features
            do not explain the losses: then there are no intervals.

        Examples
        --------
        >>> from multiplay import Budget, Features, Learner, Number
        >>> plans = Budget(2, [2, 2], names=["air", "sea"])
        >>> features = Features(km=Number(centre=300, scale=100, unit="km"))
        >>> learner = Learner(plans, loss_range=(0, 100), features=features)
        >>> for day in range(40):
        ...     km = {"air": 200.0 + 10 * (day % 7), "sea": 400.0 - 20 * (day % 5)}
        ...     costs = {arm: [0.1 * one] for arm, one in km.items()}
        ...     told = learner.learn({"air": 1, "sea": 1}, costs, features={"km": km})
        >>> effects = learner.effects()
        >>> effects["per"][1], round(effects["effect"][1])
        ('100 km', 10)
        """
        return self.read(Effects(level, by))

    def best(
        self,
        actions: ActionSet | None = None,
        *,
        at_most: Mapping[str, int] | None = None,
        exclude: Iterable[str] = (),
        fixed: Mapping[str, int] | None = None,
        features: Any = None,
    ) -> Plan:
        """Return the best plan for the current beliefs, without exploration; it is not a play.

        Where only totals of rounds were told, ``LinTS`` and ``LinUCB`` can estimate the cost of a
        plan after a few rounds. Other policies cannot, and raise ``InvalidInput``.

        Parameters
        ----------
        actions, at_most, exclude, fixed
            The set of a round and its limits, as in ``ask``.
        features
            The declared features of the round, as in ``ask``; those of the last play if not given.

        Returns
        -------
        Plan
            The action of the least believed cost, or the largest believed reward.
        """
        return self.read(Best(actions, at_most, exclude, fixed, features))

    def expect(
        self,
        plan: Units,
        *,
        actions: ActionSet | None = None,
        at_most: Mapping[str, int] | None = None,
        exclude: Iterable[str] = (),
        fixed: Mapping[str, int] | None = None,
        level: float = 0.95,
        features: Any = None,
    ) -> Estimate:
        """Return the expected cost of a given plan, with an interval.

        Raises ``InvalidInput`` where ``best`` does.

        Parameters
        ----------
        plan
            Units by the names of arms, or for all arms in order.
        actions, at_most, exclude, fixed
            The set of a round and its limits, as in ``ask``: the plan must be within them.
        level
            The probability with which the interval is to contain the expected cost.
        features
            The declared features of the round, as in ``ask``; those of the last play if not given.

        Returns
        -------
        Estimate
            The total and the ends of the interval.
        """
        given = actions, at_most, exclude, fixed, features
        return self.read(Expect(*given, plan=plan, level=level))

    def why(self, play: AnyPlay) -> Why:
        """Return how a play differs from the best plan, and why.

        Beliefs are the present ones for a pending play. For one that was told, cancelled or expired
        they are those of the time when it was asked for, with the corrections until then: the
        journal is replayed. Raises ``InvalidInput`` where ``best`` does.

        Parameters
        ----------
        play
            The play, its id or its key.

        Examples
        --------
        >>> from multiplay import Budget, Learner, Words
        >>> plans = Budget(2, [2, 2], names=["air", "sea"])
        >>> learner = Learner(plans, loss_range=(0, 100), words=Words("EUR", "box"))
        >>> for _ in range(9):
        ...     told = learner.learn({"air": 2}, {"air": [40.0, 44.0]})
        >>> why = learner.why(learner.ask())
        >>> why.explores, [row.reason for row in why.rows]
        (True, ['instead', 'to learn'])
        >>> told = learner.tell(1, {"sea": [30.0, 35.0]})
        >>> then = learner.why(1)
        >>> then.extra == why.extra, then.asked is not None
        (True, True)
        """
        return self.read(Explain(play))

    def drift(self, level: float = 0.05) -> pd.DataFrame:
        r"""Return the changes of arms: no rows if nothing has changed.

        Beliefs, and a policy that follows changes, weigh hypotheses "the same mean since round s"
        for each arm; see ``PooledCTS(memory=Changes())``. A row is a change with a weight of
        more than 1/2, or one that is confirmed: then older losses no longer count. Several changes
        in one direction are one row, and so is a change that most arms share.

        ``certain`` is a test that needs no model of the noise. The n losses of an arm, in [0, 1],
        are split after the first s. With :math:`\bar{k}_{1:s}` and :math:`\bar{k}_{s+1:n}` the
        averages of both parts, :math:`\bar{k}` that of all, and :math:`\operatorname{kl}(x, y) =
        x \ln \frac{x}{y} + (1 - x) \ln \frac{1 - x}{1 - y}`,

        .. math::

            G(s, n) = s \operatorname{kl}(\bar{k}_{1:s}, \bar{k})
                + (n - s) \operatorname{kl}(\bar{k}_{s+1:n}, \bar{k})

        measures how clearly the parts differ. With d arms, a change is certain if for some s

        .. math::

            G(s, n) > \ln \frac{12\, s^2 \sqrt{n - s}\; d}{\text{level}}.

        While nothing changes, no row is ever certain with a probability of at least 1 - ``level``,
        no matter how often it is read.

        Parameters
        ----------
        level
            The probability of a false alarm over the life of the learner, for ``certain``.

        Returns
        -------
        DataFrame
            arm; since, the round after which the new mean holds; before and after, the means in the
            user's unit; units, the number of units since; sure, the weight of the hypotheses that
            begin then or later, a probability under the model (NaN if only the test finds the
            change); acted, whether older losses no longer count; certain; date, for a change within
            imported tables, whose dates are rounds of their own: the first day of the new mean (NaT
            for other rows, and since is 0); and arms, the names of all arms of the row. A change
            that arms share has an arm like "8 of 9 arms" and averages over their units. With
            declared features, rows compare the losses themselves: a fuel price that has risen is a
            row too, which the features explain, and nothing is acted on.
        """
        return self.read(Drift(level))

    # ------------------------------------------------------------ savings

    def savings(
        self,
        versus: Any = None,
        *,
        since: Moment = None,
        until: Moment = None,
        level: float = 0.95,
        method: str = "model",
    ) -> Savings:
        r"""Return what the plays saved against a rule on the same days, with an interval.

        With the plans :math:`a_t` that were played, those of the rule :math:`b_t` on the same sets,
        and the mean costs of a unit :math:`\mu_t`, it estimates

        .. math::

            S = \sum_t \langle b_t - a_t, \mu_t \rangle.

        All losses told so far count, those of external plans and logged data too. At least 10 plays
        must have been told. Nothing changes.

        Parameters
        ----------
        versus
            ``InProportion()``, ``PriceList({...})`` or ``FixedPlan({...})``; "driven" for what was
            driven on imported days of the same demand, or a near one; plans by the keys of
            plays, as a dict of dicts by arm, or a table or CSV file with the columns key, arm and
            units; another policy, whose plays are then simulated; or, for a ``Learner``, a function
            that returns the plan for a set. The rule of ``Study.versus`` if not given.
        since, until
            The first and the last day that is compared: a text such as "2026-03-01", a date or a
            datetime. The date of a play is that at the beginning of its key, or when it was asked.
        level
            The probability with which an interval is to contain the saving.
        method
            "model"; or, where the policy logs the mean of its plays, as ``GenLBINFV`` does: "dr",
            doubly robust, or "ips", weighted by importance.

        Returns
        -------
        Saved
            The total with its interval, the same by week, and what it rests on. Plays are left out
            where the set of the day does not have the plan of the rule.

        Examples
        --------
        >>> from multiplay import Budget, InProportion, Learner
        >>> learner = Learner(Budget(2, [2, 2], names=["air", "sea"]), loss_range=(0, 100))
        >>> for day in range(30):
        ...     play = learner.ask(key=f"2026-03-{day + 1:02}")
        ...     costs = {"air": 60.0 + day % 3, "sea": 20.0 + day % 5}
        ...     told = learner.tell(play, {arm: [costs[arm]] * n for arm, n in play.plan.items()})
        >>> saved = learner.savings(versus=InProportion())
        >>> saved.days, bool(0 < saved.low < saved.total < saved.high)
        (30, True)
        """
        return self.read(EstimateSavings(versus, False, since, until, level, method))

    def cost_of_learning(
        self, *, since: Moment = None, until: Moment = None, level: float = 0.95
    ) -> Savings:
        """Return what the plays cost more than the best plans, with an interval.

        The best plan of a day is that of its set for the means of that day, by all that is known
        now. The arguments are those of ``savings``; ``total`` is what the plays cost more.
        """
        return self.read(EstimateSavings(None, True, since, until, level))


class LocalVerbs(Verbs, Queries):
    """The verbs of a learner or a study in this process."""

    def read(self, query: Query[R]) -> R:
        """Run a verb that reads the state."""
        about = self._current, self._id, self._asked, lambda: self.words
        rest = self._expected, self._compared, self._answer, self._history
        return query.read(Reader(*about, *rest))

    @abstractmethod
    def _history(self, act: Callable[[JournalEntries], Any]) -> Any:
        """Call a function with the journal, while no other thread uses it."""


class StudyVerbs(Verbs):
    """The verbs of a study, here or of a service: also the rule that plays are compared with."""

    @abstractmethod
    def _rule(self) -> Rule | None:
        """Return the rule that plays are compared with."""

    @property
    def versus(self) -> Rule | None:
        """The rule that plays are compared with, for ``show`` and ``savings``; None if none is set.

        Set it to ``InProportion()``, for example. The journal keeps it.

        Examples
        --------
        >>> from multiplay import Budget, InProportion, Study
        >>> study = Study.create("ads", Budget(3, [3, 3]), store="memory://versus-example")
        >>> study.versus = InProportion()
        >>> Study.open("ads", store="memory://versus-example").versus
        InProportion()
        """
        return self._rule()

    @versus.setter
    def versus(self, rule: Rule | None) -> None:
        self.set_versus(rule)

    def set_versus(self, rule: Rule | None, *, key: str | None = None, at: When = None) -> None:
        """Set the rule that plays are compared with; None for no rule. See ``versus``."""
        self.do(SetVersus(rule), key, at)
