"""Queries: beliefs, best plans, explanations, changes and savings."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from math import isfinite
from typing import TYPE_CHECKING, Annotated, Any

from multiplay._support.checks import is_integer, probability
from multiplay.errors import InvalidInput
from multiplay.learner.comparison import Question
from multiplay.learner.engine import Units
from multiplay.learner.plays import AnyPlay, Estimate, Plan, Why
from multiplay.learner.queries import DRIFT, Moment, arms_frame, drift_frame, effects_frame
from multiplay.learner.queries import LEVEL as LEVEL_HINT
from multiplay.learner.round_set import action_of
from multiplay.learner.why import explain
from multiplay.savings import Savings
from multiplay.studies import results, wire
from multiplay.studies.commands.base import (
    OF_PLAY,
    QUERIES,
    Arg,
    ClientContext,
    Http,
    Plain,
    Query,
    Reader,
    either,
    none_of,
    verb,
)
from multiplay.studies.commands.external import EXAMPLE_PLAN
from multiplay.studies.commands.plays import RoundLimits
from multiplay.studies.commands.values import (
    DAY,
    DRIFT_LEVEL,
    EFFECTS_BY,
    FEATURES,
    FLAG,
    LEVEL,
    METHOD,
    PLAY,
    UNITS,
    VERSUS,
)
from multiplay.studies.imports import changes_in_tables

if TYPE_CHECKING:  # imported where it is used: it takes as long as all the rest
    import pandas as pd


# ------------------------------------------------------------ plans


@verb(
    "best",
    Http(
        "POST",
        "best",
        QUERIES,
        "Best",
        "The set for the best plan, and constraints.",
        {"exclude": ["Lyon->north"]},
        optional=True,
    ),
)
@dataclass(frozen=True)
class Best(RoundLimits, Query[Plan]):
    """Return the best plan by the current estimates, without exploration; it is not a play."""

    def read(self, reader: Reader) -> Plan:
        """Return the action of the least believed cost, or the largest believed reward."""
        given = self.actions, self.at_most, self.exclude, self.fixed
        with reader.current() as engine:
            round_set = engine.featured(engine.round_set(*given), self.features, default=True)
            engine.check_believes(round_set)
            action = engine.beliefs.best(round_set)
        plan = round_set.plan(action)
        return Plan(action, plan, lambda: reader.expected(round_set, action), reader.words)

    def answer(self, plain: Plain, context: ClientContext) -> Plan:
        """Return the plan of plain data."""
        return context.plan(plain)


@verb(
    "expect",
    Http(
        "POST",
        "expect",
        QUERIES,
        "Expect",
        "A plan to estimate, which must be within the constraints.",
        {"plan": EXAMPLE_PLAN},
    ),
)
@dataclass(frozen=True, kw_only=True)
class Expect(RoundLimits, Query[Estimate]):
    """Return the expected loss of a plan, with an interval."""

    returns = Estimate

    plan: Annotated[Units, Arg(UNITS)]
    level: Annotated[float, Arg(LEVEL)] = 0.95

    def read(self, reader: Reader) -> Estimate:
        """Return the total and the ends of the interval."""
        with reader.current() as engine:
            round_set = engine.state.round_set(self.actions)
            action = action_of("plan", self.plan, round_set.given)
            limits = engine.limits(self.actions, self.at_most, self.exclude, self.fixed)
            limits.check("plan", action, round_set.given.names)
            round_set = engine.featured(round_set, self.features, action, default=True)
            engine.check_believes(round_set)
            level = probability("level", self.level, LEVEL_HINT)
            return engine.beliefs.expected(round_set, action, level)


@verb("why", Http("GET", OF_PLAY + "why", QUERIES))
@dataclass(frozen=True)
class Explain(Query[Why]):
    """Return how a play differs from the best plan, and why.

    Beliefs are the present ones for a pending play, else those of the time when it was asked for.
    """

    returns = Why

    play: Annotated[AnyPlay, Arg(PLAY)]

    def read(self, reader: Reader) -> Why:
        """Compare the play with the best plan."""
        with reader.current() as engine:
            id = reader.id_of(self.play)
            if is_integer(id) and id in engine.pending:
                return explain(engine, id)
        then, when = reader.asked(id)
        return replace(explain(then, id), words=reader.words(), asked=when)


# ------------------------------------------------------------ tables


class TableQuery(Query["pd.DataFrame"]):
    """A query for a table of beliefs."""

    @staticmethod
    def present(result: pd.DataFrame) -> Plain:
        """Return the table as plain data, with what the features do not explain."""
        return wire.of_beliefs(result)

    def answer(self, plain: Plain, context: ClientContext) -> pd.DataFrame:
        """Return the table of plain data."""
        return wire.to_beliefs(plain, results.ARMS)


@verb("list_arms", Http("GET", "arms", QUERIES))
@dataclass(frozen=True)
class Arms(TableQuery):
    """Return the statistics of all arms: units seen, mean with interval, time last seen, share."""

    level: Annotated[float, Arg(LEVEL, "The confidence of the intervals.")] = 0.95

    def read(self, reader: Reader) -> pd.DataFrame:
        """Return one row for each arm."""
        return CompareArms(None, self.level).read(reader)


@verb(
    "compare_arms",
    Http(
        "POST",
        "arms",
        QUERIES,
        "CompareArms",
        "The features at which arms are compared, and the level of the intervals.",
        {"level": 0.95},
        optional=True,
    ),
)
@dataclass(frozen=True)
class CompareArms(TableQuery):
    """Return the statistics of all arms at given features; those of the last play by default."""

    features: Annotated[Any, Arg(FEATURES)] = None
    level: Annotated[float, Arg(LEVEL)] = 0.95

    def read(self, reader: Reader) -> pd.DataFrame:
        """Return one row for each arm."""
        with reader.current() as engine:
            level = probability("level", self.level, LEVEL_HINT)
            engine.features_for(self.features)
            return arms_frame(engine.state, engine.beliefs, level, features=self.features)


@verb("list_effects", Http("GET", "effects", QUERIES))
@dataclass(frozen=True)
class Effects(TableQuery):
    """Return what the features do to the loss of a unit, or what arms have for themselves."""

    level: Annotated[float, Arg(LEVEL, "The confidence of the intervals.")] = 0.95
    by: Annotated[str, Arg(EFFECTS_BY, "The effects of features, or the own effects of arms.")] = (
        "feature"
    )

    def read(self, reader: Reader) -> pd.DataFrame:
        """Return one row for each feature or arm."""
        with reader.current() as engine:
            level = probability("level", self.level, LEVEL_HINT)
            return effects_frame(engine.state, level, self.by)

    def answer(self, plain: Plain, context: ClientContext) -> pd.DataFrame:
        """Return the table of plain data."""
        return wire.to_beliefs(plain, results.ARM_EFFECTS if self.by == "arm" else results.EFFECTS)


@verb("list_drift", Http("GET", "drift", QUERIES))
@dataclass(frozen=True)
class Drift(Query["pd.DataFrame"]):
    """Return the arms whose recent losses differ from their earlier losses."""

    level: Annotated[float, Arg(DRIFT_LEVEL, "The chance that certain is ever false.")] = DRIFT

    def read(self, reader: Reader) -> pd.DataFrame:
        """Return one row for each change."""
        with reader.current() as engine:
            past = reader.history(partial(changes_in_tables, ranges=engine.state.ranges))
            return drift_frame(engine.state, self.level, past)

    @staticmethod
    def present(result: pd.DataFrame) -> Plain:
        """Return the table as plain data."""
        return {"items": wire.of_table(result)}

    def answer(self, plain: Plain, context: ClientContext) -> pd.DataFrame:
        """Return the table of plain data."""
        return wire.to_table(plain["items"], results.DRIFT)


# ------------------------------------------------------------ savings


NO_LEARNING = {"properties": {"learning": {"const": False}}}


@verb(
    "savings",
    Http(
        "POST",
        "savings",
        QUERIES,
        "Compare",
        "What plays are compared with: a rule, a policy, or plans by key.",
        {"versus": {"type": "InProportion"}, "since": "2026-03-01"},
        optional=True,
        rules=(
            either(none_of("versus"), NO_LEARNING),
            either({"properties": {"method": {"const": "model"}}}, NO_LEARNING),
        ),
    ),
)
@dataclass(frozen=True)
class EstimateSavings(Query[Savings]):
    """Return what the plays saved against a rule on the same days, with an interval."""

    returns = Savings

    versus: Annotated[Any, Arg(VERSUS, "By default the rule that was set for the study.")] = None
    learning: Annotated[
        bool, Arg(FLAG, "Compare with the best plans known at the end instead.")
    ] = False
    since: Annotated[Moment, Arg(DAY, "The first day, such as 2026-03-01.")] = None
    until: Annotated[Moment, Arg(DAY, "The last day, such as 2026-03-31.")] = None
    level: Annotated[float, Arg(LEVEL)] = 0.95
    method: Annotated[
        str,
        Arg(
            METHOD,
            "`dr` (doubly robust) and `ips` need a policy that logs the means of plays.",
        ),
    ] = "model"

    def question(self, versus: Any = None) -> Question:
        """Return the arguments after checks."""
        return Question.given(versus, self.since, self.until, self.level, self.method)

    def read(self, reader: Reader) -> Savings:
        """Return what was saved, or what learning cost."""
        if not self.learning:
            return reader.answer(self.question(reader.compared(self.versus)))
        if self.versus is not None or self.method != "model":
            expected, hint = "no versus or method with learning", "Leave them out."
            raise InvalidInput("learning", expected, "true", hint)
        return reader.answer(self.question())

    def plain(self, context: ClientContext) -> Plain:
        """Return the arguments as plain data for JSON, with the days as times."""
        period = self.question().period
        ends = {"since": period.first, "until": period.last}
        body = {
            name: datetime.fromtimestamp(end, UTC).isoformat()
            for name, end in ends.items()
            if isfinite(end)
        }
        given = {name: getattr(self, name) for name in ("learning", "level", "method")}
        versus = None if self.versus is None else wire.of_versus(self.versus)
        return given | body | ({} if versus is None else {"versus": versus})
