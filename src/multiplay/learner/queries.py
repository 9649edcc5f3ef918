"""Read-only queries of a learner: beliefs, best plans, drift, pending plays."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from datetime import date
from typing import TYPE_CHECKING, Any

import numpy as np

from multiplay._support.checks import is_integer, probability
from multiplay._support.formatting import number
from multiplay._support.words import Words
from multiplay.actions import ActionSet
from multiplay.beliefs.changes import changes_of
from multiplay.errors import InvalidInput, NotFound
from multiplay.features import Features
from multiplay.learner.allowance import FOUND, Allowance, AllowanceSettings, is_restricted
from multiplay.learner.beliefs import Beliefs
from multiplay.learner.comparison import Against, Past, PlayedDays, Question, compared
from multiplay.learner.engine import Engine, Units
from multiplay.learner.features import deviations
from multiplay.learner.logged_data import TableCheck
from multiplay.learner.play_log import times
from multiplay.learner.plays import AnyPlay, Estimate, PendingPlay, PendingState, Plan, Why, play_id
from multiplay.learner.policy_state import PolicyState
from multiplay.learner.promises import PromiseReport, is_held
from multiplay.learner.round_set import RoundSet, action_of
from multiplay.learner.why import explain
from multiplay.policies import Policy
from multiplay.savings import Saved
from multiplay.types import FloatArray, IntArray

if TYPE_CHECKING:  # imported where it is used: it takes as long as all the rest
    import pandas as pd

LEVEL = "Use 0.95, for example."
DRIFT = 0.05  # the level of the test for drift

Moment = str | date | float | None  # a date or time


class Queries(ABC):
    """Queries of the current state: beliefs, plans and pending plays."""

    @abstractmethod
    def _current(self) -> AbstractContextManager[Engine]:
        """Return the current engine; it does not change within the ``with`` block."""

    @abstractmethod
    def _id_of(self, key: str) -> int | None:
        """Return the id of the play with a key; None if there is none."""

    def _id(self, play: AnyPlay) -> int:
        return play_id(play, self._id_of)

    @property
    def actions(self) -> ActionSet:
        """The usual action set."""
        with self._current() as engine:
            return engine.state.actions

    @property
    def policy(self) -> Policy:
        """The policy."""
        with self._current() as engine:
            return engine.state.policy

    @property
    def asked(self) -> int:
        """The number of plays."""
        with self._current() as engine:
            return engine.asked

    @property
    def clipped(self) -> int:
        """The number of losses that were clipped to their range."""
        with self._current() as engine:
            return engine.clipped

    @property
    def words(self) -> Words:
        """The words in which plans and costs are shown."""
        with self._current() as engine:
            return engine.words

    @property
    def loss_range(self) -> str:
        """The range of losses or rewards: "losses from 0 to 250", for example."""
        with self._current() as engine:
            return str(engine.state.ranges)

    @property
    def summary(self) -> str:
        """The policy, the number of arms and the number of plays, in one line."""
        with self._current() as engine:
            return str(engine)

    @property
    def seed(self) -> int | None:
        """The seed of all random numbers; None if it was not recorded."""
        with self._current() as engine:
            return engine.seed

    @property
    def known_arms(self) -> tuple[str, ...]:
        """The names of all arms ever seen."""
        with self._current() as engine:
            return engine.state.arms.names

    @property
    def open_plays(self) -> int:
        """The number of pending plays."""
        with self._current() as engine:
            return len(engine.pending)

    @property
    def features(self) -> Features | None:
        """The declared features, with their scaling as far as it is known; None without any."""
        with self._current() as engine:
            return engine.declared

    @property
    def described_arms(self) -> tuple[str, ...]:
        """The arms for which features are kept."""
        with self._current() as engine:
            features = engine.state.features
            return () if features is None else tuple(features.table.places)

    def day_features(self) -> dict[str, Any]:
        """Return the features that a round has to give, with their values in the last play.

        These are the features that are not kept for all arms of the default set. The value is None
        where it was given by arm, or never.

        Examples
        --------
        >>> from multiplay import Budget, Features, Flag, Learner, Number
        >>> plans, km = Budget(2, [2, 2], names=["air", "sea"]), {"air": 250.0, "sea": 400.0}
        >>> features = Features(km=Number(), rain=Flag())
        >>> learner = Learner(plans, features=features, arms={"km": km})
        >>> learner.day_features()
        {'rain': None}
        """
        with self._current() as engine:
            features, names = engine.state.features, engine.state.actions.names
            if features is None:
                return {}
            last = features.last or {}
            values = {name: last.get(name) for name in features.without_values(names)}
            return {
                name: None if isinstance(value, dict) else value for name, value in values.items()
            }

    def pending(self) -> list[PendingPlay]:
        """Return the plays without a final report, oldest first."""
        with self._current() as engine:
            return [self._pending_play(engine, id) for id in engine.pending]

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
            spread (the standard deviation of the loss of a unit within a day), last_seen, and
            share, the fraction of the reported plays and external plans that played it.
        """
        with self._current() as engine:
            level = probability("level", level, LEVEL)
            engine.features_for(features)
            return arms_frame(engine.state, engine.beliefs, level, features=features)

    def effects(self, level: float = 0.95, by: str = "feature") -> pd.DataFrame:
        r"""Return a table of the effects of the declared features, or of the arms themselves.

        The loss of a unit of arm i is :math:`\langle\theta, \phi_i\rangle + b_i` and noise. An
        effect is :math:`\theta_j` in the user's unit: what a unit costs more where the feature is
        larger by ``per``, and everything else is the same. The interval is that of the model.

        Parameters
        ----------
        level
            The probability with which an interval is to contain the effect.
        by
            "feature", or "arm" for the own effect :math:`b_i` of each arm.

        Returns
        -------
        DataFrame
            By feature: feature; per, such as "100 km"; effect, low and high; changes_plans, False
            for a feature that adds the same to every plan (known from the first ``ask`` on); and
            text, a sentence. The first row, "1", is the cost of a unit where all scaled features
            are 0. By arm: arm, effect, low and high. ``attrs["misfit"]`` is a text if the features
            do not explain the losses: then there are no intervals.

        Examples
        --------
        >>> from multiplay import Budget, Features, Learner, Number
        >>> plans = Budget(2, [2, 2], names=["air", "sea"])
        >>> features = Features(km=Number(centre=300, scale=100, unit="km"))
        >>> learner = Learner(plans, losses=(0, 100), features=features)
        >>> for day in range(40):
        ...     km = {"air": 200.0 + 10 * (day % 7), "sea": 400.0 - 20 * (day % 5)}
        ...     costs = {arm: [0.1 * one] for arm, one in km.items()}
        ...     told = learner.learn({"air": 1, "sea": 1}, costs, features={"km": km})
        >>> effects = learner.effects()
        >>> effects["per"][1], round(effects["effect"][1])
        ('100 km', 10)
        """
        with self._current() as engine:
            level = probability("level", level, LEVEL)
            return effects_frame(engine.state, level, by)

    @property
    def baseline(self) -> AllowanceSettings | None:
        """The baseline and the allowance; None if there are none."""
        with self._current() as engine:
            return None if engine.allowance is None else engine.allowance.settings

    @property
    def change(self) -> float | None:
        """The cost of each unit that differs from the last plan; None if there is none."""
        with self._current() as engine:
            return None if engine.switching is None else engine.switching.change

    def allowance(self) -> Allowance:
        """Return how much of the allowance is left, by what is believed now.

        Raises ``InvalidInput`` without a baseline.
        """
        with self._current() as engine:
            if engine.allowance is None:
                hint = "Create it with baseline=InProportion(), for example."
                raise InvalidInput("allowance", "a learner with a baseline", "none", hint)
            return engine.allowance.report(engine.state)

    def promises(self) -> pd.DataFrame:
        """Return how every promise stands: what is used, what is expected, and whether it holds.

        Returns
        -------
        DataFrame
            One row for each promise; its columns are the fields of ``PromiseReport``.

        Examples
        --------
        >>> from multiplay import AtMost, Budget, Learner
        >>> plans = Budget(10, [10, 10], names=["air", "sea"])
        >>> co2 = AtMost(100, of={"air": 5, "sea": 1}, plays=5, name="CO2")
        >>> learner = Learner(plans, losses=(0, 100), promises=[co2])
        >>> play = learner.ask(ahead=[plans] * 4)
        >>> row = learner.promises().loc[0]
        >>> bool(row.used == 5 * play.plan["air"] + play.plan["sea"]), row.holds
        (True, 'sure')
        """
        return promises_frame(self.promise_reports())

    def promise_reports(self) -> list[PromiseReport]:
        """Return the rows of ``promises``."""
        with self._current() as engine:
            return engine.promise_reports()

    def check_table(
        self,
        table: Any,
        arm: str | Sequence[str] = "arm",
        round: str = "round",
        loss: str = "loss",
        *,
        day_first: bool | None = None,
    ) -> TableCheck:
        """Return what ``learn_table`` would learn from a table, and its problems.

        The arguments are those of ``learn_table``. Nothing is learned.
        """
        with self._current() as engine:
            return engine.read_table(table, arm, round, loss, day_first).check

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
        with self._current() as engine:
            round_set = engine.round_set(actions, at_most, exclude, fixed)
            round_set = engine.featured(round_set, features, default=True)
            engine.check_believes(round_set)
            action = engine.beliefs.best(round_set)
        plan, words = round_set.plan(action), lambda: self.words
        return Plan(action, plan, lambda: self._expected(round_set, action), words)

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
        with self._current() as engine:
            round_set = engine.state.round_set(actions)
            action = action_of("plan", plan, round_set.given)
            limits = engine.limits(actions, at_most, exclude, fixed)
            limits.check("plan", action, round_set.given.names)
            round_set = engine.featured(round_set, features, action, default=True)
            engine.check_believes(round_set)
            level = probability("level", level, LEVEL)
            return engine.beliefs.expected(round_set, action, level)

    def why(self, play: AnyPlay) -> Why:
        """Return how a pending play differs from the best plan by present beliefs, and what for.

        Raises ``InvalidInput`` where ``best`` does, and for a play that is not pending.

        Parameters
        ----------
        play
            The play, its id or its key.

        Examples
        --------
        >>> from multiplay import Budget, Learner
        >>> plans = Budget(2, [2, 2], names=["air", "sea"])
        >>> learner = Learner(plans, losses=(0, 100), currency="EUR", unit="box")
        >>> for _ in range(9):
        ...     told = learner.learn({"air": 2}, {"air": [40.0, 44.0]})
        >>> why = learner.why(learner.ask())
        >>> why.explores, [row.reason for row in why.rows]
        (True, ['instead', 'to learn'])
        """
        with self._current() as engine:
            id = self._id(play)
            if not is_integer(id) or id not in engine.pending:
                hint = "Use the id of a play from pending()."
                raise NotFound("play", "a pending play", repr(id), hint)
            return explain(engine, id)

    def drift(self, level: float = DRIFT) -> pd.DataFrame:
        r"""Return the changes of arms: no rows if nothing has changed.

        Beliefs, and a policy that follows changes, weigh hypotheses "the same mean since round s"
        for each arm; see ``BootstrapCTS(change="follow")``. A row is a change with a weight of more
        than 1/2, or one that is confirmed: then older losses no longer count. Several changes in
        one direction are one row, and so is a change that most arms share.

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
            change); acted, whether older losses no longer count; certain; and arms, the names of
            all arms of the row. A change that arms share has an arm like "8 of 9 arms" and averages
            over their units. With declared features, rows compare the losses themselves: a fuel
            price that has risen is a row too, which the features explain, and nothing is acted on.
        """
        with self._current() as engine:
            return drift_frame(engine.state, level)

    def saved(
        self,
        against: Any = None,
        *,
        since: Moment = None,
        until: Moment = None,
        level: float = 0.95,
        method: str = "model",
    ) -> Saved:
        r"""Return what the plays saved against a rule on the same days, with an interval.

        With the plans :math:`a_t` that were played, those of the rule :math:`b_t` on the same sets,
        and the mean costs of a unit :math:`\mu_t`, it estimates

        .. math::

            S = \sum_t \langle b_t - a_t, \mu_t \rangle.

        All losses told so far count, those of external plans and logged data too. At least 10 plays
        must have been told. Nothing changes.

        Parameters
        ----------
        against
            ``InProportion()``, ``PriceList({...})`` or ``FixedPlan({...})``; plans by the keys of
            plays, as a dict of dicts by arm, or a table or CSV file with the columns key, arm and
            units; another policy, whose plays are then simulated; or, for a ``Learner``, a function
            that returns the plan for a set. The rule of ``Study.compare`` if not given.
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
        >>> learner = Learner(Budget(2, [2, 2], names=["air", "sea"]), losses=(0, 100))
        >>> for day in range(30):
        ...     play = learner.ask(key=f"2026-03-{day + 1:02}")
        ...     costs = {"air": 60.0 + day % 3, "sea": 20.0 + day % 5}
        ...     told = learner.tell(play, {arm: [costs[arm]] * n for arm, n in play.plan.items()})
        >>> saved = learner.saved(against=InProportion())
        >>> saved.days, bool(0 < saved.low < saved.total < saved.high)
        (30, True)
        """
        chosen = self._compared(against)
        return self._answer(Question.given(chosen, since, until, level, method))

    def cost_of_learning(
        self, *, since: Moment = None, until: Moment = None, level: float = 0.95
    ) -> Saved:
        """Return what the plays cost more than the best plans, with an interval.

        The best plan of a day is that of its set for the means of that day, by all that is known
        now. The arguments are those of ``saved``; ``total`` is what the plays cost more.
        """
        return self._answer(Question.given(None, since, until, level))

    def _compared(self, against: Any) -> Against:
        """Return what plays are compared with; a journal cannot keep a function."""
        return compared(against, functions=False)

    @abstractmethod
    def _answer(self, question: Question) -> Saved:
        """Return what was saved, or what learning cost."""

    def _past(self, engine: Engine, history: PlayedDays, entry: int | None = None) -> Past:
        state = engine.state
        moved = frozenset(arm for arms in drift_frame(state, DRIFT)["arms"] for arm in arms)
        return Past(history, state.ranges, moved, engine.words, entry)

    def _expected(
        self, round_set: RoundSet, action: IntArray, phi: FloatArray | None = None
    ) -> Estimate:
        with self._current() as engine:
            return engine.beliefs.expected(round_set, action, phi=phi)

    def _pending_play(self, engine: Engine, id: int) -> PendingPlay:
        """Return a pending play in its public form."""
        play = engine.pending[id]
        round_set, action = play.round_set, play.action[0].copy()

        def expect() -> Estimate:
            return self._expected(round_set, play.action[0], play.phi)

        made = id, action, round_set.plan(action), play.key, expect, lambda: self.why(id)
        limits = limits_of(engine, play)
        return PendingPlay(*made, play.truncated, lambda: self.words, gap=play.gap, **limits)


def limits_of(engine: Engine, play: PendingState) -> dict[str, Any]:
    """Return what an allowance, promises and changes did to a play: fields of ``PendingPlay``."""
    found, switching = play.memo.get(FOUND), engine.switching
    return {
        "baseline": None if found is None else play.round_set.plan(found[0]),
        "restricted": is_restricted(play.play),
        "prices": engine.promises.prices_of(play.play),
        "held": is_held(play.play),
        "change_cost": 0.0 if switching is None else switching.cost_of(play.play),
    }


CHANGE_COLUMNS: dict[str, type] = {
    "since": np.int64,
    "before": float,
    "after": float,
    "units": np.int64,
    "sure": float,
    "acted": bool,
    "certain": bool,
}


def arms_frame(
    state: PolicyState,
    beliefs: Beliefs,
    level: float,
    places: IntArray | None = None,
    features: Any = None,
) -> pd.DataFrame:
    """Return one row for each arm ever seen, or for the arms at ``places``."""
    import pandas as pd

    names = state.arms.names
    if places is not None:
        names = tuple(names[place] for place in places)
    rows = slice(None) if places is None else places
    mean, below, above = beliefs.table(level, features)
    columns = {name: column[rows] for name, column in state.statistics.columns.items()}
    table = pd.DataFrame(
        {
            "arm": pd.Series(names, dtype=object),
            "seen": columns["units"].astype(np.int64),
            "mean": mean[rows],
            "low": below[rows],
            "high": above[rows],
            "average": beliefs.averages()[rows],
            "spread": beliefs.spreads()[rows],
            "last_seen": times(columns["last"]),
            "share": columns["plans"] / max(state.told + state.statistics.external, 1),
        }
    )
    if state.features is not None:
        table.attrs["misfit"] = state.features.misfit
    return table


EFFECTS_BY = ("feature", "arm")


def checked_by(by: str) -> str:
    """Return ``by`` of ``effects``, or raise ``InvalidInput``."""
    if by not in EFFECTS_BY:
        raise InvalidInput("by", "'feature' or 'arm'", repr(by), "Leave it out for 'feature'.")
    return by


def effects_frame(state: PolicyState, level: float, by: str) -> pd.DataFrame:
    """Return the effects of the features, or those of the arms, in the user's unit."""
    import pandas as pd

    by, features, ranges = checked_by(by), state.known_features("features"), state.ranges
    misfit, z = features.misfit, deviations(level)
    model, arrays = features.model, features.arrays
    found = model.own_effects(arrays) if by == "arm" else model.coefficients(arrays)
    values, spread = (array[0] for array in found)
    effect = ranges.span * values
    width = np.full(len(effect), np.nan) if misfit else z * ranges.span * spread
    if by == "feature":
        effect[0] += ranges.origin
    ends = {"effect": effect, "low": effect - width, "high": effect + width}
    if by == "arm":
        table = pd.DataFrame({"arm": pd.Series(state.arms.names, dtype=object), **ends})
    else:
        declared = features.features
        table = pd.DataFrame(
            {
                "feature": pd.Series(declared.names, dtype=object),
                "per": pd.Series(declared.per, dtype=object),
                **ends,
                "changes_plans": features.can_change_plans(state.actions),
            }
        )
        table["text"] = pd.Series(effect_texts(state, table), dtype=object)
    table.attrs["misfit"] = misfit
    return table


def effect_texts(state: PolicyState, table: pd.DataFrame) -> list[str]:
    """Return a sentence for each effect: "each 100 km costs 31 (27 to 35)"."""
    verb = {"losses": "costs", "rewards": "brings"}[state.ranges.argument]
    texts = []
    for feature, per, effect, low, high in table.iloc[:, :5].itertuples(index=False, name=None):
        ends = "" if np.isnan(low) else f" ({number(low)} to {number(high)})"
        subject = f"each {per} {verb}" if per[:1].isdigit() else f"{per} adds"
        if feature == "1":
            subject = f"a unit {verb}"
        texts.append(f"{subject} {number(effect)}{ends}")
    return texts


def promises_frame(reports: Sequence[PromiseReport]) -> pd.DataFrame:
    """Return reports of promises as a table."""
    import pandas as pd

    return pd.DataFrame(list(reports), columns=list(PromiseReport._fields))


def drift_frame(state: PolicyState, level: float) -> pd.DataFrame:
    """Return one row for each change; arms that only the test at ``level`` finds come last."""
    import pandas as pd

    names, ranges = state.arms.names, state.ranges
    alarms = {alarm.arm: alarm for alarm in state.statistics.drift.alarms(level)}
    rows: list[tuple[object, ...]] = []
    for arms, since, *means, units, sure, acted in changes_of(state.moments):
        means = [float(ranges.from_shares(np.array(mean))) for mean in means]
        certain = all(arm in alarms for arm in arms)
        acted = acted and state.features is None  # a model of features forgets no arm by itself
        rows.append((arms, since, *means, units, sure, acted, certain))
    told = {arm for row in rows for arm in row[0]}  # type: ignore[attr-defined]
    low = ranges.of(names).low
    for arm, since, *means, units in (alarms[arm] for arm in alarms if arm not in told):
        means = [float(low[arm] + ranges.scale * mean) for mean in means]
        rows.append(((arm,), since, *means, units, np.nan, False, True))
    frame = pd.DataFrame(rows, columns=["arms", *CHANGE_COLUMNS]).astype(CHANGE_COLUMNS)
    lists = [[names[arm] for arm in arms] for arms in frame.pop("arms")]
    seen = int((state.moments.seen > 0).sum())
    labels = [one[0] if len(one) == 1 else f"{len(one)} of {seen} arms" for one in lists]
    frame.insert(0, "arm", pd.Series(labels, dtype=object))
    return frame.assign(arms=pd.Series(lists, dtype=object))
