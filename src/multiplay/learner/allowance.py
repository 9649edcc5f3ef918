"""Allowance of a learner: what its plays may cost more than those of a baseline."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, NamedTuple

import numpy as np

from multiplay._support.builder import Builder
from multiplay._support.checks import shortened
from multiplay._support.hints import LEARNER, Hint, Option
from multiplay._support.serialization import pack, unpack, with_prefix, without_prefix
from multiplay.actions import Rule
from multiplay.beliefs.features import FACTORS
from multiplay.constraints.baseline import (
    WEEK,
    Allowed,
    ArmBeliefs,
    Baseline,
    Margin,
    Together,
    baseline_plan,
    beliefs_of,
    tail_of,
    z_of,
)
from multiplay.errors import InvalidInput
from multiplay.features import FeatureRows
from multiplay.learner.features import FeatureState
from multiplay.learner.policy_state import PolicyState
from multiplay.learner.ranges import Ranges
from multiplay.learner.round_set import RoundSet, action_of
from multiplay.policies import Play
from multiplay.policies.wrapped import check_arm_means, check_limits
from multiplay.types import Arrays, FloatArray, IntArray

FOUND, WANTED, ETA, PERIOD = "baseline", "wanted", "eta", "period"  # in the memo of a play
PHI = "baseline_phi"  # the features of both plans, there too: sums, or ``AllowanceState.rows``
MEMO = FOUND, WANTED, ETA, PERIOD, PHI
SUMS = "phi", "rows"  # of an ``AllowanceState``
DAY, MONDAY = 86_400.0, 3  # seconds; 1 January 1970 was a Thursday
BY_DAY = Option("constraints", "[Baseline('each day')]")
PlayAndBaseline = tuple[Mapping[str, int], Mapping[str, int]]


class BaselineReport(NamedTuple):
    r"""How much of the allowance of a baseline is left, by what is believed of the means now.

    With units A of all plays, B of the baseline, and means m, squared doubts q and tails c of what
    is believed:

    .. math::

        \text{spent} &= \langle A - B, m \rangle, \\
        \text{left} &= \alpha \langle B, m \rangle - \text{spent}, \\
        \text{sure\_of} &= \text{left} - \sqrt{\textstyle\sum_i q_i w_i^2} - \max_i(-c_i w_i), \\
        w &= (1 + \alpha) B - A.

    All are in the user's unit. For rewards, ``spent`` is what the plays brought less than the
    baseline.

    Attributes
    ----------
    name : str
        Its name, "baseline".
    constraint : Baseline
        Its settings.
    spent : float
        What the plays are expected to cost more than those of the baseline; negative if they cost
        less.
    left : float
        What they may cost more from now on.
    sure_of : float
        The part of it that is left with the probability ``sure``; may be negative.
    days : int
        The number of plays, cancelled ones left out.
    restricted : int
        The number of plays that the allowance changed.

    Examples
    --------
    >>> from multiplay import Baseline, Budget, InProportion, Learner
    >>> plans, limit = Budget(20, [20, 20], names=["air", "sea"]), Baseline(InProportion(), 0.1)
    >>> learner = Learner(plans, loss_range=(0, 100), constraints=[limit])
    >>> for day in range(9):
    ...     play = learner.ask()
    ...     costs = {"air": [80.0] * play.plan["air"], "sea": [20.0] * play.plan["sea"]}
    ...     told = learner.tell(play, costs)
    >>> play.baseline, play.plan["sea"] > 10, play.explores > 0
    ({'air': 10, 'sea': 10}, True, True)
    >>> (used,) = learner.constraints()
    >>> used.name, used.days, used.spent < 0 < used.sure_of < used.left
    ('baseline', 9, True)
    """

    name: str
    constraint: Baseline
    spent: Annotated[float, "What plays are expected to cost more than the baseline."]
    left: Annotated[float, "What they may cost more from now on."]
    sure_of: Annotated[float, "The part of it that is left with the probability `sure`."]
    days: Annotated[int, "The number of plays."]
    restricted: Annotated[int, "The number of plays that the allowance changed."]


def settings_record(baseline: Baseline) -> tuple[dict[str, Any], Arrays]:
    """Return a baseline as plain data and arrays, as in all versions of journals and files."""
    plain, arrays = pack(baseline.rule, "rule")
    header = {"baseline": plain, "allowance": baseline.allowance, "sure": baseline.sure}
    return header | ({} if baseline.per is None else {"per": baseline.per}), arrays


def settings_of(header: dict[str, Any], arrays: Arrays, builder: Builder) -> Baseline:
    """Return the baseline of ``settings_record``."""
    rule = unpack(header["baseline"], arrays, builder)
    return Baseline(rule, header["allowance"], sure=header["sure"], per=header.get("per"))


class AllowanceCurve(NamedTuple):
    """The allowance after each of some plays, by what is believed now, in the user's unit.

    Attributes
    ----------
    spent : array
        What all plays until then are expected to cost more than the baseline.
    most : array
        The most that was permitted.
    doubt : array
        The half width of the interval of their difference.
    """

    spent: FloatArray
    most: FloatArray
    doubt: FloatArray


class AllowanceState:
    """Units of all plays and of their baselines, and the plan that stays within the allowance.

    Plays count when they are asked for; a play that is cancelled does not count. What was told does
    not change them. Sums are whole numbers, so that the order of plays makes no difference.

    Attributes
    ----------
    settings : Baseline
        The rule, the share, the probability and the period.
    units : array of shape (2, arms)
        Units of the plays, and of the baseline, of the present period.
    known : array of shape (2,)
        Their known costs.
    phi : array of shape (2, p)
        Sums of the features of their units; (2, 0) before the first play, and without features.
    rows : array of shape (n, 3 + p)
        Where features multiply, instead: of each play and each arm that it or the baseline uses,
        the arm, the units of both, and the features. What a unit costs depends on all of these.
    period : int
        The number of the week, or 0.
    days, restricted : int
        The number of plays, and of those that the allowance changed, of all periods.
    """

    def __init__(self, settings: Baseline, arms: int) -> None:
        self.settings = settings
        self.units, self.known = np.zeros((2, arms), dtype=np.int64), np.zeros(2)
        self.phi, self.rows = np.zeros((2, 0)), np.zeros((0, 0))
        self.period = self.days = self.restricted = 0

    @property
    def has_rule(self) -> bool:
        """Whether a rule gives the baseline, and not the argument of ``ask``."""
        return isinstance(self.settings.rule, Rule)

    def check(self, state: PolicyState) -> None:
        """Raise ``InvalidInput`` unless an allowance fits the parts of a learner."""
        if state.features is not None and self.settings.per is not None:
            expected = "one allowance for all plays, because the model of features has no weeks"
            raise InvalidInput("per", expected, repr(self.settings.per), "Leave it out.")
        check_limits(state.policy, state.usual.actions, state.has_index)
        check_arm_means(state.policy)
        low = state.ranges.origin
        if low < 0:
            expected, got = "0 or more, because an allowance is a share", f"a range from {low:g}"
            raise InvalidInput("loss_range", expected, got, "Leave out the baseline.")
        if isinstance(self.settings.rule, Rule):
            baseline_plan(self.settings.rule, state.usual.actions)

    # ------------------------------------------------------------ plans

    def baseline(self, round_set: RoundSet, given: Any) -> IntArray:
        """Return the baseline's plan of a round; ``given`` is the argument of ``ask``."""
        rule = self.settings.rule
        if isinstance(rule, Rule):
            if given is not None:
                hint = Hint("Leave it out, or create the {} with {}.", LEARNER, BY_DAY)
                expected = f"no plan, because the baseline is a rule: {rule.text}"
                raise InvalidInput("baseline", expected, shortened(repr(given)), hint)
            return baseline_plan(rule, round_set.actions)
        if given is None:
            own = Option("baseline", "{...}", "ask({})")
            hint = Hint("Use {}, because the {} has {}.", own, LEARNER, BY_DAY)
            raise InvalidInput("baseline", "the plan that you would use", "nothing", hint)
        return action_of("baseline", given, round_set.actions)

    def term(self, state: PolicyState, round_set: RoundSet, plan: IntArray, when: float) -> Allowed:
        """Return the allowance as a constraint of a round; ``plan`` is that of the baseline."""
        actions = round_set.actions
        places = state.arms.places(actions.names)
        margin = self._margin(state, round_set, places, plan, self._period(when))
        known = round_set.certain_of if actions.has_known else None
        return Allowed(plan[None], margin, known, state.ranges.scale)

    def memo(self, term: Allowed, plan: IntArray, when: float) -> Arrays:
        """Return what is remembered of a play."""
        period = np.array([self._period(when)])
        memo = {FOUND: term.baseline, WANTED: term.wanted, ETA: term.eta, PERIOD: period}
        together = term.margin.together
        if together is not None:
            both = np.concatenate([plan, term.baseline])
            if FACTORS in together.arrays:
                used = np.flatnonzero(both.sum(axis=0))
                memo[PHI] = np.column_stack([used, both[:, used].T, together.phi[0, used]])[None]
            else:
                memo[PHI] = both[None] @ together.phi
        return memo

    def _margin(
        self,
        state: PolicyState,
        round_set: RoundSet,
        places: IntArray | None,
        baseline: IntArray,
        period: int,
    ) -> Margin:
        sign, arms = state.actions.sign, len(state.arms.names)
        factor = 1.0 + sign * self.settings.allowance
        units, known = self._grown(arms), self.known
        if period != self.period:
            units, known = np.zeros_like(units), np.zeros(2)
        left = factor * units[1] - units[0]
        today = np.arange(arms) if places is None else places
        target = left[today] + factor * baseline
        absent = np.ones(arms, dtype=bool)
        absent[today] = False
        together, features, of_round = None, state.features, round_set.features
        if features is None or of_round is None:
            mean, square, tail = beliefs(state, self.settings)
        else:
            together = self._together(state, features, of_round.rows, today, units)
            mean, square, tail = np.zeros((3, arms))
            shares, deviation = features.posterior(today, of_round.rows)
            mean[today] = state.ranges.from_shares(shares)
            square[today] = (together.z * state.ranges.span * deviation) ** 2
        certain = round_set.certain(baseline)
        gain = sign * (left[absent] @ mean[absent] + factor * (known[1] + certain) - known[0])
        if not round_set.actions.has_known:  # then all plans of the set have the same known costs
            gain -= sign * certain
        doubt, most = square[absent] @ left[absent] ** 2, tail_of(sign * left[absent], tail[absent])
        moments = mean[today][None], square[today][None], tail[today][None]
        absents = np.array([gain]), np.array([doubt]), np.array([most])
        return Margin(sign, target[None], *moments, *absents, together)

    def _together(
        self,
        state: PolicyState,
        features: FeatureState,
        rows: FeatureRows,
        today: IntArray,
        units: IntArray,
    ) -> Together:
        """Return what is believed of all plays with units of this round."""
        factor = 1.0 + state.actions.sign * self.settings.allowance
        phi, others = (
            rows.phi(np.arange(len(today))),
            np.setdiff1d(np.arange(units.shape[1]), today),
        )
        x, weight, price = _slopes(features, state.ranges, today, phi[0])
        sums = self._sums(features, state.ranges, units)
        rest, more, known = (factor * base - played for played, base in sums)
        left = (factor * units[1] - units[0])[today]
        return Together(
            features.model,
            features.cut(np.append(today, others)),
            phi,
            (x[None], weight[None]),
            price[None],
            (
                (rest - left @ x)[None],
                (more[today] - left * weight)[None],
                np.array([known - left @ price]),
            ),
            more[None, others],
            state.ranges.span,
            z_of(self.settings.sure),
        )

    def _sums(
        self, features: FeatureState, ranges: Ranges, units: IntArray
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return x, w and the constants of ``Together`` of all plays, and of their baselines."""
        if not self.rows.size:
            x = self.phi if self.phi.size else np.zeros((2, features.p))
            return x, units.astype(float), ranges.origin * units.sum(axis=1)
        arms, used = self.rows[:, 0].astype(np.int64), self.rows[:, 1:3].T
        by_unit, each, price = _slopes(features, ranges, arms, self.rows[:, 3:])
        weight = np.zeros(units.shape)
        np.add.at(weight.T, arms, (used * each).T)
        return used @ by_unit, weight, used @ price

    def _period(self, when: float) -> int:
        """Return the number of the week of a play; plays of the past count for the present."""
        if self.settings.per != WEEK or math.isnan(when):
            return self.period
        return max(self.period, int((when // DAY + MONDAY) // 7))

    # ------------------------------------------------------------ what counts

    def add(self, state: PolicyState, round_set: RoundSet, play: Play) -> None:
        """Count a play that was asked for."""
        period = int(play.memo[PERIOD][0])
        if period != self.period:
            self.units, self.known = np.zeros_like(self.units), np.zeros(2)
            self.period = period
        self._count(state, round_set, play, 1)

    def remove(self, state: PolicyState, round_set: RoundSet, play: Play) -> None:
        """Leave out a play that was cancelled."""
        self._count(state, round_set, play, -1)

    def _count(self, state: PolicyState, round_set: RoundSet, play: Play, times: int) -> None:
        self.days += times
        self.restricted += times * is_restricted(play)
        if int(play.memo[PERIOD][0]) != self.period:
            return
        both = np.concatenate([play.action, play.memo[FOUND]])
        self.units = self._grown(len(state.arms.names))
        places = state.arms.places(round_set.actions.names)
        self.units[:, slice(None) if places is None else places] += times * both
        self.known = self.known + times * np.array([round_set.certain(one) for one in both])
        if PHI not in play.memo:
            return
        phi = play.memo[PHI][0]
        if state.features is not None and state.features.features.factors:
            rows = phi.copy()
            rows[:, 0] = rows[:, 0] if places is None else places[rows[:, 0].astype(np.int64)]
            rows[:, 1:3] *= times
            self.rows = np.concatenate([self.rows, rows]) if self.rows.size else rows
        else:
            self.phi = times * phi + (self.phi if self.phi.size else 0.0)

    def _grown(self, arms: int) -> IntArray:
        """Return the units of all arms; those of new arms are 0."""
        more = arms - self.units.shape[1]
        return np.pad(self.units, ((0, 0), (0, more))) if more else self.units

    def report(self, state: PolicyState) -> BaselineReport:
        """Return how much is left."""
        sign, share = state.actions.sign, self.settings.allowance
        spent = sign * self._cost(state, 1.0, -1.0)[0]
        left = share * self._cost(state, 0.0, 1.0)[0] - spent
        doubt = self._cost(state, -1.0, 1.0 + sign * share)[1]
        numbers = spent, left, left - doubt, self.days, self.restricted
        return BaselineReport(self.settings.name, self.settings, *numbers)

    def _cost(self, state: PolicyState, by_play: float, by_base: float) -> tuple[float, float]:
        """Return mean and doubt of the cost of the plays and the baselines, so many times."""
        features, units = state.features, self._grown(len(state.arms.names))
        by = np.array([by_play, by_base])
        if features is None:
            weight, each = by_play * units[0] + by_base * units[1], beliefs(state, self.settings)
            mean, doubt = float(weight @ each.mean), float(self._doubt(state, weight, each))
        else:
            x, weight, known = (by @ one for one in self._sums(features, state.ranges, units))
            found = features.model.weighted(features.arrays, weight[None, None], x[None, None])
            share, width = (float(one[0, 0]) for one in found)
            mean = float(known) + state.ranges.span * share
            doubt = z_of(self.settings.sure) * state.ranges.span * width
        return mean + by_play * float(self.known[0]) + by_base * float(self.known[1]), doubt

    def _doubt(self, state: PolicyState, weight: FloatArray, of: ArmBeliefs) -> FloatArray:
        """Return the doubt about the cost of units of all arms, along the last axis."""
        doubt: FloatArray = np.sqrt(weight**2 @ of.square)
        return doubt + tail_of(state.actions.sign * weight, of.tail)

    def curve(self, state: PolicyState, plays: Sequence[PlayAndBaseline]) -> AllowanceCurve | None:
        """Return the allowance after each of the last plays of this period, in their order.

        A play is its plan and that of the baseline, by arm. None where plays have known costs, or
        features.
        """
        if self.known.any() or state.features is not None:
            return None
        sign, share, arms = state.actions.sign, self.settings.allowance, len(state.arms.names)
        each = np.zeros((len(plays), 2, arms))
        for k, both in enumerate(plays):
            for row, plan in zip(each[k], both, strict=True):
                row[[state.arms.index[arm] for arm in plan]] = [*plan.values()]
        units = self._grown(arms) - (each.sum(axis=0) - np.cumsum(each, axis=0))
        believed = beliefs(state, self.settings)
        played, base = (units @ believed.mean).T
        weight = (1.0 + sign * share) * units[:, 1] - units[:, 0]
        doubt = self._doubt(state, weight, believed)
        return AllowanceCurve(sign * (played - base), share * base, doubt)

    # ------------------------------------------------------------ records

    def record(self) -> tuple[dict[str, Any], Arrays]:
        """Return settings and state as plain data and arrays."""
        header, arrays = settings_record(self.settings)
        counts = {"period": self.period, "days": self.days, "restricted": self.restricted}
        own = {"units": self.units, "known": self.known}
        own |= {name: one for name in SUMS if (one := getattr(self, name)).size}
        return header | counts, own | with_prefix("baseline/", arrays)

    @classmethod
    def restored(cls, header: dict[str, Any], arrays: Arrays, builder: Any) -> AllowanceState:
        """Return the state of a record."""
        settings = settings_of(header, without_prefix("baseline/", arrays), builder)
        units = arrays["units"].astype(np.int64)
        state = cls(settings, units.shape[1])
        state.units, state.known = units, arrays["known"].astype(float)
        for name in SUMS:
            setattr(state, name, arrays.get(name, getattr(state, name)).astype(float))
        state.period, state.days = header["period"], header["days"]
        state.restricted = header["restricted"]
        return state


def beliefs(state: PolicyState, settings: Baseline) -> ArmBeliefs:
    """Return what is believed of all arms, in the user's unit."""
    ranges = state.ranges
    low, high = ((end - ranges.origin) / ranges.span for end in ranges.of(state.arms.names))
    found = beliefs_of(state.moments.sums, low, high, settings)
    return found._replace(
        mean=ranges.from_shares(found.mean),
        square=ranges.span**2 * found.square,
        tail=ranges.span * found.tail,
    )


def _slopes(
    features: FeatureState, ranges: Ranges, arms: IntArray, phi: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return what a unit of each of some arms adds to x, w and the constants of ``Together``."""
    x, weight, constant = features.model.slopes(features.arrays, arms, phi)
    return x, weight, ranges.from_shares(constant)


def is_restricted(play: Play) -> bool:
    """Return whether the allowance changed a play."""
    return WANTED in play.memo and bool((play.memo[WANTED] != play.action).any())


def breaks_promise(play: Play) -> bool:
    """Return whether the baseline was needed, and not played: it breaks a promise."""
    if ETA not in play.memo or not np.isinf(play.memo[ETA]).any():
        return False
    return bool((play.memo[FOUND] != play.action).any())
