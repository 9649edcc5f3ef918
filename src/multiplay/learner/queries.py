"""Settings, numbers and pending plays of a learner, and tables of its arms, effects and changes."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from contextlib import AbstractContextManager
from datetime import date
from typing import TYPE_CHECKING, Any

import numpy as np

from multiplay._support.words import Words, money_text
from multiplay.actions import ActionSet
from multiplay.constraints import Constraint
from multiplay.errors import InvalidInput
from multiplay.features import Features
from multiplay.learner.allowance import FOUND, is_restricted
from multiplay.learner.beliefs import Beliefs
from multiplay.learner.comparison import Past, PlayedDays, Question, Versus, compared
from multiplay.learner.engine import Engine
from multiplay.learner.features import FeatureState, deviations
from multiplay.learner.play_log import times
from multiplay.learner.plays import AnyPlay, Estimate, PendingPlay, PendingState, Why, play_id
from multiplay.learner.policy_state import PolicyState
from multiplay.learner.promises import is_held
from multiplay.learner.round_set import RoundSet
from multiplay.learner.table_changes import TableChanges
from multiplay.policies import Policy
from multiplay.savings import Savings
from multiplay.types import FloatArray, IntArray

if TYPE_CHECKING:  # imported where it is used: it takes as long as all the rest
    import pandas as pd

LEVEL = "Use 0.95, for example."
DRIFT = 0.05  # the level of the test for drift

Moment = str | date | float | None  # a date or time


class Queries(ABC):
    """The current state of a learner or a study: its settings, numbers and pending plays.

    The verbs that read it are commands of ``studies``.
    """

    @abstractmethod
    def _current(self) -> AbstractContextManager[Engine]:
        """Return the current engine; it does not change within the ``with`` block."""

    @abstractmethod
    def _id_of(self, key: str) -> int | None:
        """Return the id of the play with a key; None if there is none."""

    @abstractmethod
    def why(self, play: AnyPlay) -> Why:
        """Return how a pending play differs from the best plan, and why."""

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
        >>> learner = Learner(plans, features=features, arm_features={"km": km})
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

    @property
    def constrained_by(self) -> tuple[Constraint, ...]:
        """The constraints that count now; ``constraints`` says what became of them."""
        with self._current() as engine:
            return tuple(engine.constraints)

    def _compared(self, versus: Any) -> Versus:
        """Return what plays are compared with; a journal cannot keep a function."""
        return compared(versus, functions=False)

    @abstractmethod
    def _asked(self, id: int) -> tuple[Engine, float]:
        """Return the engine as it was when a play was asked for, and the time."""

    @abstractmethod
    def _answer(self, question: Question) -> Savings:
        """Return what was saved, or what learning cost."""

    def _past(self, engine: Engine, history: PlayedDays, entry: int | None = None) -> Past:
        state, known = engine.state, engine.state.features
        factors = 0 if known is None else known.features.factors
        return Past(history, state.ranges, engine.words, entry, factors)

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
        limits = limits_of(engine, play) if play.memo else {}  # nothing was limited without one
        return PendingPlay(*made, play.truncated, lambda: self.words, gap=play.gap, **limits)


def limits_of(engine: Engine, play: PendingState) -> dict[str, Any]:
    """Return what an allowance, promises and changes did to a play: fields of ``PendingPlay``."""
    found, switching = play.memo.get(FOUND), engine.constraints.switching
    return {
        "baseline": None if found is None else play.round_set.plan(found[0]),
        "restricted": is_restricted(play.play),
        "prices": engine.constraints.promises.prices_of(play.play),
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
            "long_run": mean[rows] if state.features else beliefs.long_run()[rows],
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
    if by == "arm":  # compared with the average of all arms
        arms = np.arange(features.arms)
        weights, shared = np.zeros((len(arms), features.p)), np.full(len(arms), -1.0)
    else:  # the intercept is that of the average arm
        weights, arms = features.features.differences, None
        shared = np.zeros(features.p)
        shared[0] = 1.0
    found = features.model.contrasts(features.arrays, weights, shared, arms)
    effect, spread = (ranges.span * array[0] for array in found)
    if by == "feature":
        effect[0] += ranges.origin
    ends = np.stack([effect, effect - z * spread, effect + z * spread])
    if features.features.factors:
        ends = _with_factors(features, ends, ranges.span, weights, shared, arms)
    if misfit:
        ends[1:] = np.nan
    columns = dict(zip(("effect", "low", "high"), ends, strict=True))
    if by == "arm":
        table = pd.DataFrame({"arm": pd.Series(state.arms.names, dtype=object), **columns})
    else:
        declared = features.features
        table = pd.DataFrame(
            {
                "feature": pd.Series(declared.names, dtype=object),
                "per": pd.Series(declared.per, dtype=object),
                **columns,
                "changes_plans": features.can_change_plans(state.actions),
            }
        )
        table["text"] = pd.Series(effect_texts(state, table), dtype=object)
    table.attrs["misfit"] = misfit
    return table


def _with_factors(
    features: FeatureState,
    ends: FloatArray,
    span: float,
    weights: FloatArray,
    shared: FloatArray,
    arms: IntArray | None,
) -> FloatArray:
    """Return effects and intervals on average levels of what multiplies; of that, percentages."""
    model, declared, averages = features.model, features.features, features.features.averages
    factor = float(np.exp(model.contrasts(features.arrays, averages[None])[0][0, 0]))
    both = weights + ends[0][:, None] / span * averages  # d (factor effect) = factor times this
    spreads = [
        span * model.contrasts(features.arrays, one, shared, arms)[1][0] for one in (weights, both)
    ]
    wider = np.divide(spreads[1], spreads[0], out=np.ones(len(both)), where=spreads[0] > 0.0)
    found: FloatArray = factor * (ends[0] + wider * (ends - ends[0]))
    if arms is None:
        found[:, -declared.factors :] = 100 * np.expm1(ends[:, -declared.factors :] / span)
    return found


def effect_texts(state: PolicyState, table: pd.DataFrame) -> list[str]:
    """Return a sentence for each effect: "each 100 km costs 31 (27 to 35)"."""
    verb = {"losses": "costs", "rewards": "brings"}[state.ranges.noun]
    declared = state.known_features("features").features
    averaged, first = declared.averaged, declared.p - declared.factors
    texts = []
    rows = table.iloc[:, :5].itertuples(index=False, name=None)
    for place, ((feature, per, effect, low, high), categories) in enumerate(
        zip(rows, averaged, strict=True)
    ):
        if place >= first:
            subject = f"each {per}" if per[:1].isdigit() else per
            texts.append(_percentage(subject, effect, low, high))
            continue
        ends = "" if np.isnan(low) else f" ({money_text(low)} to {money_text(high)})"
        subject = f"each {per} {verb}" if per[:1].isdigit() else f"{per} adds"
        if feature == "1":
            subject = f"a unit {verb}"
        text = f"{subject} {money_text(effect)}{ends}"
        others = " and ".join(dict.fromkeys(categories))
        texts.append(f"{text}, compared with the average {others}" if others else text)
    return texts


def _percentage(subject: str, effect: float, low: float, high: float) -> str:
    """Return the sentence of a feature that multiplies.

    Examples
    --------
    >>> _percentage("weekday=Sat", 25.2, 22.0, 28.4), _percentage("rain", -4.0, math.nan, math.nan)
    ('weekday=Sat: 25 % more (22 to 28)', 'rain: 4 % less')
    """
    sign, word = (1.0, "more") if effect >= 0 else (-1.0, "less")
    ends = sorted((sign * low, sign * high))
    digits = 1 if high - low < 2.0 or abs(effect) < 1.0 else 0  # no more than the interval supports
    shown = [f"{one + 0.0:.{digits}f}" for one in (sign * effect, *ends)]
    interval = "" if math.isnan(low) else f" ({shown[1]} to {shown[2]})"
    return f"{subject}: {shown[0]} % {word}{interval}"


def drift_frame(state: PolicyState, level: float, past: TableChanges | None = None) -> pd.DataFrame:
    """Return one row for each change; arms that only the test at ``level`` finds come last.

    The changes of ``past``, within tables of logged data, come first; they are not listed again
    where the memory has found them in the reports since.
    """
    import pandas as pd

    names, ranges = state.arms.names, state.ranges
    alarms = {alarm.arm: alarm for alarm in state.statistics.drift.alarms(level)}
    acts = state.features is None  # a model of features forgets no arm by itself
    rows: list[tuple[Any, ...]] = []
    if past is not None:
        tested, follows = past.certain(level), acts and state.moments.follows
        for change in past.found:
            arms, date, *means, units, sure, acted = change
            certain = tested.issuperset(arms)
            rows.append(
                (arms, 0, *means, units, sure, acted and follows, certain, date.timestamp())
            )
    told: set[int] = set()
    listed = {(row[0], round(row[4])) for row in rows}
    for places, since, *means, units, sure, acted in state.moments.changes():
        told |= {*places}
        arms = tuple(names[arm] for arm in places)
        if (arms, round(units)) in listed:
            continue
        means = [float(ranges.from_shares(np.array(mean))) for mean in means]
        certain = all(arm in alarms for arm in places)
        rows.append((arms, since, *means, units, sure, acted and acts, certain, np.nan))
    low = ranges.of(names).low
    for arm, since, *means, units in (alarms[arm] for arm in alarms if arm not in told):
        means = [float(low[arm] + ranges.scale * mean) for mean in means]
        rows.append(((names[arm],), since, *means, units, np.nan, False, True, np.nan))
    columns = CHANGE_COLUMNS | {"date": float}
    frame = pd.DataFrame(rows, columns=["arms", *columns]).astype(columns)
    frame["date"] = times(frame["date"].to_numpy())
    lists = [[*arms] for arms in frame.pop("arms")]
    seen = int((state.moments.seen > 0).sum())
    labels = [one[0] if len(one) == 1 else f"{len(one)} of {seen} arms" for one in lists]
    frame.insert(0, "arm", pd.Series(labels, dtype=object))
    return frame.assign(arms=pd.Series(lists, dtype=object))
