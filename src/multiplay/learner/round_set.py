"""The set of a round: the given set, its limits, and the costs of its actions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

import multiplay.actions
from multiplay._support.builder import classes_of
from multiplay._support.checks import EXACT, check_instance, is_integer, is_list
from multiplay._support.hints import Hint, Option
from multiplay._support.serialization import CONTAINERS, pack, type_name, types_in
from multiplay._support.suggestions import suggestion
from multiplay.actions import ActionSet, limited
from multiplay.errors import InvalidInput
from multiplay.features import FeatureRows
from multiplay.features.table import Scales, Values
from multiplay.feedback import Feedback
from multiplay.learner.ranges import Bounds, Ranges
from multiplay.learner.reports import ParsedLosses, Report, ReportBuilder, by_label
from multiplay.policies import Policy
from multiplay.types import FloatArray, IntArray

FREE = -1  # marks an arm whose number of units is not fixed


@dataclass(frozen=True)
class PlanLimits:
    """Limits of a plan, beyond those of the set: at_most, exclude and fixed of ``ask``."""

    at_most: dict[str, int] = field(default_factory=dict)
    exclude: tuple[str, ...] = ()
    fixed: dict[str, int] = field(default_factory=dict)

    @classmethod
    def given(cls, at_most: Any, exclude: Any, fixed: Any, names: Sequence[str]) -> PlanLimits:
        """Return the limits, after checking that they name arms of the set."""
        if isinstance(exclude, str) or not isinstance(exclude, Iterable):
            hint = "Use exclude=['Lyon->north'], for example."
            raise InvalidInput("exclude", "a list of names of arms", repr(exclude), hint)
        known, excluded = set(names), tuple(exclude)
        for name in excluded:
            _check_arm("exclude", name, known, names)
        most, exact = (
            _units(*one, known, names) for one in (("at_most", at_most), ("fixed", fixed))
        )
        return (
            cls(most, tuple(map(str, excluded)), exact) if most or excluded or exact else NO_LIMITS
        )

    def __bool__(self) -> bool:
        return bool(self.at_most or self.exclude or self.fixed)

    @property
    def first(self) -> str:
        """The name of the first limit that was given."""
        return next(name for name, value in vars(self).items() if value)

    def check(self, argument: str, action: IntArray, names: Sequence[str]) -> None:
        """Raise ``InvalidInput`` if an action is outside the limits."""
        plan = dict(zip(names, action.tolist(), strict=True))
        wrong = (
            *((name, "0, because it is excluded") for name in self.exclude if plan[name]),
            *((name, f"at most {k}") for name, k in self.at_most.items() if plan[name] > k),
            *((name, f"{k}, which is fixed") for name, k in self.fixed.items() if plan[name] != k),
        )
        for name, expected in wrong:
            got, hint = f"{plan[name]}", "Change the plan, or the limits."
            raise InvalidInput(f"{argument}[{name!r}]", expected, got, hint)

    def apply(self, actions: ActionSet) -> ActionSet:
        """Return the set of the actions within the limits."""
        number = {name: i for i, name in enumerate(actions.names)}
        most, fixed = np.full(actions.d, EXACT), np.full(actions.d, FREE)
        for name, units in self.at_most.items():
            most[number[name]] = units
        for name in self.exclude:
            most[number[name]] = 0
        for name, units in self.fixed.items():
            i = number[name]
            if units > most[i]:
                raise InvalidInput(
                    f"fixed[{name!r}]",
                    f"at most {most[i]}, because of at_most or exclude",
                    f"{units}",
                    "Remove one of the two limits.",
                )
            fixed[i] = units
        try:
            return limited(actions, most, fixed)
        except InvalidInput as error:
            if "at_most" not in error.argument or self.at_most:
                raise
            argument = error.argument.replace("at_most", "exclude")
            raise InvalidInput(argument, error.expected, error.got, error.hint) from None


NO_LIMITS = PlanLimits()


class RoundFeatures(NamedTuple):
    """The features of one round.

    Attributes
    ----------
    today : dict
        The values of the day, by feature: one for all arms, or a dict by arm.
    rows : FeatureRows
        phi of the arms of the set, in order.
    scales : dict
        The centre and scale of numbers that these values determine; empty as a rule.
    """

    today: Values
    rows: FeatureRows
    scales: Scales


@dataclass(frozen=True, eq=False)
class RoundSet:
    """The set of a round, prepared for the policy.

    Attributes
    ----------
    given : ActionSet
        The set that the caller gave.
    limits : PlanLimits
        The limits that the caller gave.
    actions : ActionSet
        The set that the policy plays on: limited, and with the known part of the losses.
    bounds : Bounds
        The range of losses of a unit of each arm.
    ranges : Ranges
        The user's unit.
    features : RoundFeatures or None
        The features of the arms in this round.
    plain : RoundSet or None
        The same set without the features of this round; None if it has none.
    """

    given: ActionSet
    limits: PlanLimits
    actions: ActionSet
    bounds: Bounds
    ranges: Ranges
    features: RoundFeatures | None = None
    plain: RoundSet | None = None

    @classmethod
    def of(
        cls,
        given: ActionSet,
        limits: PlanLimits,
        ranges: Ranges,
        policy: Policy,
        p: int = 0,
        factors: int = 0,
    ) -> RoundSet:
        """Return the prepared set of a round; p and factors are the columns of its features."""
        actions, bounds = given, ranges.of(given.names)
        if limits:
            actions = limits.apply(given)
        offset = ranges.offset(bounds, actions, policy)
        if actions.has_known:
            actions = actions.shifted(bounds.low / ranges.scale, ranges.scale)
        elif offset is not None:
            actions = actions.shifted(offset)
        width = (bounds.high - bounds.low) / ranges.scale
        if (width < 1.0).any():
            actions = actions.bounded(width)
        if p:  # the number of columns is all that is known before the features of a round
            rows = FeatureRows.none(1, p, factors)
            arm = np.broadcast_to(rows.arm, (1, actions.d, p))
            actions = actions.featured(rows._replace(arm=arm))
        return cls(given, limits, actions, bounds, ranges)

    def featured(self, features: RoundFeatures) -> RoundSet:
        """Return the set with the features of a round."""
        base = self.base
        actions = base.actions.featured(features.rows)
        made = self.given, self.limits, actions, self.bounds, self.ranges
        return RoundSet(*made, features, base)

    @property
    def base(self) -> RoundSet:
        """The set without the features of a round: the same object in every round."""
        return self if self.plain is None else self.plain

    @property
    def today(self) -> Values | None:
        """The values of the features in this round; None without features."""
        return None if self.features is None else self.features.today

    @property
    def scales(self) -> Scales | None:
        """The scales that these values determine; None without features."""
        return None if self.features is None else self.features.scales

    def keep_caches(self) -> None:
        """Keep what was computed of the set, which does not depend on features."""
        known, found = vars(self.base.actions), vars(self.actions)
        if len(found) > len(known):
            known |= {name: value for name, value in found.items() if name not in known}

    def phi(self, action: IntArray) -> FloatArray | None:
        """Return phi of the arms that are played, in order; None without features."""
        if self.features is None:
            return None
        played: FloatArray = self.features.rows.phi(action.nonzero()[0])[0]
        return played

    def plan(self, action: IntArray) -> dict[str, int]:
        """Return an action by arm name, with the units that cannot be served."""
        actions = self.actions
        plan = dict(zip(actions.names, action.tolist(), strict=True))
        return plan | actions.unmet(action) if self.may_lack else plan

    @cached_property
    def may_lack(self) -> bool:
        """Whether there may be units that cannot be served."""
        return bool(self.actions.unmet(np.zeros(self.actions.d, dtype=np.int64)))

    def cost(self, action: IntArray, mean: FloatArray) -> float:
        """Return the cost of an action in the user's unit, for these mean losses in [0, 1]."""
        if not self.actions.affine:
            return float(self.actions.value(action, mean))
        if self.ranges.plain:
            return float(mean.dot(action)) + self.certain(action)
        units = self.bounds.low + self.ranges.scale * mean
        return float(action @ units) + self.certain(action)

    def certain(self, action: IntArray) -> float:
        """Return the cost of an action that is known: of units not served, and of the set."""
        actions, cost = self.actions, 0.0
        if actions.penalty:
            cost = actions.sign * actions.penalty * sum(actions.unmet(action).values())
        return cost + float(actions.known_cost(action)) if actions.has_known else cost

    def certain_of(self, actions: IntArray) -> FloatArray:
        """Return the known cost of actions along the last axis."""
        rows = actions.reshape(-1, actions.shape[-1])
        return np.array([self.certain(row) for row in rows]).reshape(actions.shape[:-1])

    def report(self, action: IntArray, parsed: ParsedLosses, partly: bool) -> Report:
        """Return losses of an action as a report; with ``partly``, units may be left out."""
        builder = ReportBuilder(action, self.actions.names, self.bounds, self.ranges)
        return builder.report(parsed, partly)

    def whole_report(self, action: IntArray, parsed: ParsedLosses, ignore: bool) -> Report:
        """Return all losses of an action as a report, after checking that no unit is left out.

        With ``ignore``, units may be left out.
        """
        report = self.report(action, parsed, ignore)
        if not ignore:
            report.check_gaps(self.actions.names)
        return report

    def realised(self, feedback: Feedback) -> float:
        """Return the cost of the units seen of a play, in the user's unit.

        NaN where the cost is not the sum of their losses: it does not follow from totals.
        """
        if not self.actions.affine:
            return np.nan
        cost: float = sum(feedback.total[0].tolist())
        if not self.ranges.plain:
            whole = feedback.total.shape != feedback.seen.shape
            seen = feedback.count[0] if whole else feedback.seen[0]
            cost = cost * self.ranges.scale + float(seen @ self.bounds.low)
        return cost + self.certain(feedback.count[0])


def check_storable(actions: ActionSet, usual: ActionSet) -> None:
    """Raise ``InvalidInput`` if plays on a set could not be saved and loaded.

    To load them, the ``usual`` set is passed again if its class is user-defined. Other sets are
    built from the file: their classes must be of multiplay or that of the usual set.
    """
    plain, _ = pack(actions, "actions")
    known = {*classes_of(multiplay.actions), *CONTAINERS, type_name(type(usual))}
    foreign = sorted(types_in(plain) - known)
    if foreign:
        raise InvalidInput(
            "actions",
            "a class of multiplay, or that of the usual set",
            foreign[0],
            "Create the learner with a set of this class: only the usual set is passed to load.",
        )


def check_set(round_set: Any, usual: ActionSet, known: Mapping[str, int], policy: Policy) -> None:
    """Raise ``InvalidInput`` unless a learner can play a round on this set."""
    check_instance("actions", round_set, ActionSet, "Transport([1, 4, 5], [4, 6])")
    if not policy.changing:
        raise fixed_set_only("actions", policy, f"{round_set!r}")
    if round_set.sense != usual.sense:
        expected, got = f"sense={usual.sense!r}", f"sense={round_set.sense!r}"
        raise InvalidInput("actions", expected, got, "Use one learner for each sense.")
    if not any(name in known for name in round_set.names):
        raise InvalidInput(
            "actions",
            f"a set with at least one known arm, such as {next(iter(known))!r}",
            f"only unknown arms, such as {round_set.names[0]!r}",
            Hint("Use the same arm names in every round: {} of the set.", Option("names", "...")),
        )


def fixed_set_only(argument: str, policy: Policy, got: str) -> InvalidInput:
    """Return the error of a policy that needs a fixed action set."""
    return InvalidInput(
        argument,
        f"the set of the learner, because {type(policy).__name__} needs a fixed set",
        got,
        f"Leave {argument} out, or use a policy such as PooledCTS or GenLBINFV.",
    )


def action_of(argument: str, plan: Any, actions: ActionSet) -> IntArray:
    """Return a plan, given by arm name or as a list, as an action of the set."""
    names, plan = actions.names, by_label(plan)
    if isinstance(plan, Mapping):
        shown = actions.unmet(np.zeros(actions.d, dtype=np.int64))
        units = {name: k for name, k in plan.items() if name not in shown}
        by_name = _units(argument, units, set(names), names)
        action = np.array([by_name.get(name, 0) for name in names], dtype=np.int64)
    elif is_list(plan) and len(plan) == len(names):
        units = _units(argument, dict(zip(names, plan, strict=True)), set(names), names)
        action = np.array(list(units.values()), dtype=np.int64)
    else:
        hint = 'Use {"name of the arm": units, ...}.'
        raise InvalidInput(argument, "a dict by arm name", repr(plan), hint)
    if not actions.contains(action):
        raise InvalidInput(
            argument,
            f"a plan of {actions!r}",
            f"{ {name: int(k) for name, k in zip(names, action, strict=True) if k} }",
            Hint("Pass the set of that round: {}", Option("actions", "...")),
        )
    return action


def _units(argument: str, given: Any, known: set[str], names: Sequence[str]) -> dict[str, int]:
    if given is None:
        return {}
    given = by_label(given)
    if not isinstance(given, Mapping):
        hint = f"Use {argument}={{{names[0]!r}: 2}}, for example."
        raise InvalidInput(argument, "a dict by arm name", repr(given), hint)
    for name, units in given.items():
        _check_arm(argument, name, known, names)
        if not is_integer(units) or not 0 <= units <= EXACT:
            hint = "Use an int of at least 0."
            raise InvalidInput(f"{argument}[{name!r}]", "a whole number", repr(units), hint)
    return {name: int(units) for name, units in given.items()}


def _check_arm(argument: str, name: Any, known: set[str], names: Sequence[str]) -> None:
    if not isinstance(name, str) or name not in known:
        expected = f"names such as {names[0]!r}"
        hint = f"Check the spelling.{suggestion(name, names)}"
        raise InvalidInput(argument, expected, repr(name), hint)
