"""Constrained: another policy, whose plans keep constraints."""

from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from functools import cached_property, lru_cache, partial
from typing import Self

import numpy as np
from numpy.typing import NDArray

from multiplay._support import hints
from multiplay._support.checks import check_instance
from multiplay._support.hints import Hint
from multiplay._support.serialization import with_prefix, without_prefix
from multiplay.actions import ActionSet, InProportion, Rule, TimeVarying
from multiplay.actions.base import added
from multiplay.constraints.baseline import (
    ROUNDS_OF_WEEK,
    Allowed,
    ArmBeliefs,
    Baseline,
    Margin,
    baseline_plan,
    beliefs_of,
)
from multiplay.constraints.constraint import Constraint, checked_constraints
from multiplay.constraints.prices import RemainingSet
from multiplay.constraints.promise import Promise
from multiplay.constraints.promised import MOST_PAST, Promised, Promises
from multiplay.constraints.reserve import ThriftyPlans
from multiplay.constraints.switching import Changes, SwitchingCost, charged
from multiplay.constraints.terms import FAR, Switching, Term, planned, seen_first
from multiplay.errors import InvalidInput
from multiplay.feedback import Feedback
from multiplay.kernels import change
from multiplay.policies.base import Play, Policy
from multiplay.policies.bootstrapcts import BootstrapCTS
from multiplay.policies.gencts import GenCTS
from multiplay.policies.index import ArmPolicy, expects_changes
from multiplay.policies.pooledcts import DEFAULT
from multiplay.policies.wrapped import (
    Wrapped,
    check_arm_means,
    check_index,
    check_limits,
    has_index,
    must_see,
)
from multiplay.posteriors.moments import LossMoments
from multiplay.random import PRICE, Rng, Streams
from multiplay.types import Arrays, BoolArray, FloatArray, IntArray

LAST, HELD = "switching_last", "switching_held"  # entries of the state, which files have
OWN = "allowance_"
UNITS, PERIOD, ROUNDS, ALL = OWN + "units", OWN + "period", OWN + "rounds", OWN + "all"
BELIEFS, RESTRICTED = OWN + "beliefs_", OWN + "restricted"
USED, PLAYS = "promises_used", "promises_plays"
BETWEEN = 40.0  # time of a plan between two, for each arm, relative to GenCTS


@dataclass(frozen=True)
class Constrained(Wrapped):
    r"""Play as another policy, with plans that keep constraints.

    In every round, the policy would play the best plan for some costs :math:`\theta`, its draw or
    its bounds. The plan that is played is searched for the same costs under all constraints,

    .. math::

        a \approx \operatorname*{arg\,min}_{a \in \mathcal{A}} \;
            \langle a, \theta + \lambda c \rangle + \frac{s}{\sqrt{h}} \sum_i |a_i - b_i|
            \quad \text{where} \quad g(a) \ge 0.

    ``SwitchingCost`` adds the cost s of its changes of the last plan b to every plan, promises
    (``AtMost``, ``AtLeast``) add prices :math:`\lambda` of what units use and leave enough for
    later plays, and ``Baseline`` has plans within its allowance, by a margin g. Hard promises come
    first: where the baseline breaks one, the plan that keeps it is played. These are the
    constraints of a ``Learner``, for simulations, where the play of every round is reported before
    the next one. Units that were not seen were played all the same. The random numbers are those
    of the policy alone.

    In a simulation, a promise is made for its first ``plays`` rounds, and again for as many after
    them; dates have no meaning. With features, there is no allowance.

    Parameters
    ----------
    policy
        The policy, one that plays the best action for some costs: ``index`` is not None.
    constraints
        The constraints, of different names.

    See Also
    --------
    Learner : Its constraints also count plays without a report.

    Examples
    --------
    >>> from multiplay import AtMost, Baseline, Constrained, GenCTS, InProportion, Stochastic
    >>> from multiplay import SwitchingCost, Transport, Uniform, simulate
    >>> plans, means = Transport([1, 4, 5], [4, 6]), np.array([0.1, 0.6, 0.4, 0.7, 0.3, 0.2])
    >>> world = Stochastic(Uniform(means - 0.1, means + 0.1))
    >>> limits = [SwitchingCost(0.05), Baseline(InProportion(), 0.03)]
    >>> policies = {"free": GenCTS(), "limited": Constrained(GenCTS(), limits)}
    >>> simulate(plans, world, policies, horizon=60, trials=5).final("limited").shape
    (5,)
    """

    does = "Plays as another policy, with plans that keep constraints."
    cost = None  # a study of the service has constraints of its own

    policy: Policy
    constraints: Sequence[Constraint] = field(default=())

    def __post_init__(self) -> None:
        check_instance("policy", self.policy, Policy, "GenCTS()")
        object.__setattr__(self, "constraints", checked_constraints(self.constraints))
        rule = None if self._baseline is None else self._baseline.rule
        if isinstance(rule, str):
            expected = "a rule, where no plan of each day is given"
            hint = Hint("Use {}, for example.", hints.Term("InProportion()", "Rule"))
            raise InvalidInput("constraints", expected, repr(rule), hint)

    @classmethod
    def example(cls) -> Self:
        """Return a small instance, for examples."""
        return cls(GenCTS(), [SwitchingCost(0.05), Baseline(InProportion())])

    def effort(self, actions: ActionSet) -> float:
        """Return the effort of ``policy``, and of plans between it and others."""
        return self.policy.effort(actions) + BETWEEN * actions.d + 2.0 * float(actions.n.sum())

    @property
    def needs_linear(self) -> bool:  # type: ignore[override]
        """Whether the policy or a constraint needs a linear objective."""
        return self.policy.needs_linear or self._limits

    @property
    def uses_known(self) -> bool:  # type: ignore[override]
        """Whether the policy can play sets with known costs of whole actions."""
        return self.policy.uses_known or not self.policy.needs_linear

    @property
    def shared(self) -> tuple[str, ...]:  # type: ignore[override]
        """The arrays of the state that belong to all arms together."""
        return (*self.policy.shared, ALL, USED)

    @property
    def reads_features(self) -> bool:  # type: ignore[override]
        """Whether the policy reads features."""
        return self.policy.reads_features

    def start(self, actions: ActionSet, horizon: int | None, trials: int) -> Arrays:
        """Return the state of the policy, and nothing played."""
        own, (d, limit) = self.policy.start(actions, horizon, trials), (actions.d, self._baseline)
        if not isinstance(actions, TimeVarying):
            self._check(actions, own)
        if self._switching is not None:
            last = np.zeros((trials, d), dtype=np.int64)
            own |= {LAST: last, HELD: np.zeros(trials, dtype=np.int64)}
        if self._promises:
            used = np.zeros((trials, len(self._promises)))
            own |= {USED: used, PLAYS: np.zeros(trials, dtype=np.int64)}
        if limit is not None:
            if not self._shares:
                own |= with_prefix(BELIEFS, self._believer.start(actions, horizon, trials))
            own |= {
                UNITS: np.zeros((trials, d, 2), dtype=np.int64),
                PERIOD: np.zeros((trials, d), dtype=np.int64),
                ROUNDS: np.zeros(trials, dtype=np.int64),
                ALL: np.zeros((trials, 2)),
            }
        return own

    def choose(self, actions: ActionSet, state: Arrays, rng: Rng) -> Play:
        """Play as the policy, under the constraints; the memo has what they must remember."""
        before = deepcopy(rng)
        play, switching = self.policy.choose(actions, state, rng), self._switching
        terms, memo, limit = list[Term](), dict(play.memo), self._baseline

        def theta() -> FloatArray:
            index = self.policy.index(actions, state, before)
            assert index is not None  # see start
            if switching is None and not self._promises:
                return index
            early = None if switching is None else must_see(self.policy, actions, state)
            return seen_first(actions, index, play.action, early)

        if self._promises:
            terms.append(self._promised(actions, state))
        if limit is not None:
            terms.append(self._allowed(limit, actions, state, len(play.action)))
        if switching is not None:
            charge = charged(switching.cost, state[HELD])
            terms.append(Switching(Changes(state[LAST], charge)))
        action = planned(actions, theta, play.action, terms) if terms else play.action
        memo |= self.policy.memo(actions, action)
        for term in terms:
            if isinstance(term, Allowed):
                counted = np.stack([action, term.baseline], axis=2)
                restricted = (action != term.wanted).any(axis=1)
                memo |= {UNITS: counted, RESTRICTED: restricted}
        if switching is not None:
            same = (state[LAST] == action).all(axis=1)
            memo |= {LAST: action, HELD: np.where(same, state[HELD] + 1, 1)}
        if self._promises:
            memo[USED] = action @ self._amounts(actions).T
        return Play(action, memo, play.cache)

    def update(
        self, actions: ActionSet, state: Arrays, play: Play, feedback: Feedback, rng: Rng
    ) -> None:
        """Learn as the policy, and remember the play."""
        limit, before = self._baseline, self._sums(actions, state)
        self.policy.update(actions, state, play, feedback, rng)
        if limit is not None:
            self._believe("update", actions, state, play, feedback, rng)
            period = _period(limit, state)
            state[ALL][_begins(limit, state)] = 0.0
            state[UNITS][state[PERIOD] != period] = 0.0
            state[PERIOD][:] = period
            state[UNITS] += play.memo[UNITS]
            state[ALL] += (self._sums(actions, state) - before).T
            state[ROUNDS] += 1
        if self._switching is not None:
            state[LAST][:], state[HELD][:] = play.memo[LAST], play.memo[HELD]
        if self._promises:
            state[PLAYS] += 1
            state[USED] += play.memo[USED]
            plays = np.array([one.plays for one in self._promises])
            state[USED][state[PLAYS][:, None] % plays == 0] = 0.0

    def absorb(self, actions: ActionSet, state: Arrays, feedback: Feedback, rng: Rng) -> None:
        """Learn as the policy from an external plan, which no constraint counts."""
        limit, before = self._baseline, self._sums(actions, state)
        self.policy.absorb(actions, state, feedback, rng)
        if limit is not None:
            self._believe("absorb", actions, state, feedback, rng)
            state[ALL] += (self._sums(actions, state) - before).T

    def absent(self, state: Arrays, rounds: int, offset: FloatArray | float) -> None:
        """Let rounds pass for the policy; arms that are absent are not in the last plan."""
        super().absent(state, rounds, offset)
        if self._switching is not None:
            state[LAST][:] = 0

    # ------------------------------------------------------------ constraints

    @property
    def _switching(self) -> SwitchingCost | None:
        return next((one for one in self.constraints if isinstance(one, SwitchingCost)), None)

    @property
    def _baseline(self) -> Baseline | None:
        return next((one for one in self.constraints if isinstance(one, Baseline)), None)

    @property
    def _promises(self) -> list[Promise]:
        return [one for one in self.constraints if isinstance(one, Promise)]

    @property
    def _limits(self) -> bool:
        return self._baseline is not None or bool(self._promises)

    def _check(self, actions: ActionSet, state: Arrays) -> None:
        """Raise ``InvalidInput`` unless the constraints fit the policy and the set."""
        indexed, limit = has_index(self.policy, actions, state), self._baseline
        if self.constraints:
            check_index(self.policy, indexed, "the constraints")
        if self._limits:
            check_limits(self.policy, actions, indexed)
        if limit is not None:
            check_arm_means(self.policy)
            _rule_plan(limit, actions)
            if self.policy.learns_from == "round":
                expected = (
                    "a policy that learns from arms, because an allowance compares their means"
                )
                raise InvalidInput("policy", expected, f"{self.policy!r}", "Use BootstrapCTS.")
            if self.policy.reads_features and actions.features is not None:
                expected = "no features, because an allowance compares means"
                raise InvalidInput("constraints", expected, "a baseline", "Leave it out.")
        self._amounts(actions)

    # ------------------------------------------------------------ promises

    def _amounts(self, actions: ActionSet) -> FloatArray:
        """Return what units count for each promise, as upper limits."""
        rows = [one.sign * one.amounts(actions.names) for one in self._promises]
        return np.stack(rows) if rows else np.zeros((0, actions.d))

    def _promised(self, actions: ActionSet, state: Arrays) -> Promised:
        """Return the promises as a constraint of the round, as a learner makes it."""
        promises, amounts, drawn = self._promises, self._amounts(actions), list[FloatArray]()
        trials, sign = len(state[PLAYS]), np.array([one.sign for one in promises])
        offset = np.zeros(actions.d) if actions.offset is None else actions.offset
        bare = actions if actions.offset is None else actions.shifted(np.zeros(actions.d))

        def costs(trial: int, _: ActionSet, number: int) -> FloatArray:
            while len(drawn) <= number:
                words = np.repeat(_words(len(drawn)), trials, axis=0)
                index = self.policy.index(actions, state, Streams(words))
                assert index is not None  # see start
                theta = np.nan_to_num(index, nan=0.5, posinf=FAR, neginf=-FAR)
                drawn.append(added(theta, offset[None]))
            of_trial: FloatArray = drawn[number][trial]
            return of_trial

        @lru_cache(maxsize=1)
        def thrifty(scale: tuple[float, ...]) -> ThriftyPlans:
            one = RemainingSet(bare, 1.0, np.zeros(actions.d), amounts)
            return ThriftyPlans.of(one, np.array(scale))

        rows = []
        for trial, plays in enumerate(state[PLAYS].tolist()):
            passed = np.array([plays % one.plays for one in promises])
            left = np.array([one.plays for one in promises]) - passed
            made = Promises(
                promises,
                lambda _: amounts,
                lambda _, scale: thrifty(tuple(scale.tolist())),
                partial(costs, trial),
                True,
            )
            rest = sign * [one.limit for one in promises] - state[USED][trial]
            pool = [bare] * min(plays + 1, MOST_PAST)
            period = made.period([bare], pool, left, rest)
            rows.append((period.today(None), period.prices.prices))
        high = offset + (1.0 if actions.upper is None else actions.upper)
        return Promised(rows, float(np.maximum(np.abs(offset), np.abs(high)).max()))

    # ------------------------------------------------------------ allowance

    @property
    def _believer(self) -> ArmPolicy:
        """Keeps the moments of the losses, as the beliefs of a learner do: it follows changes."""
        return DEFAULT if expects_changes(self.policy) else BootstrapCTS()

    @cached_property
    def _shares(self) -> bool:
        """Whether the policy has these moments in its own state."""
        policy, memory = self.policy, self._believer.posterior.memory
        if not isinstance(policy, ArmPolicy) or policy.posterior.memory != memory:
            return False
        return memory.follows or isinstance(policy.posterior, LossMoments)

    def _allowed(self, limit: Baseline, actions: ActionSet, state: Arrays, rows: int) -> Allowed:
        """Return the allowance as a constraint of the round."""
        sign = actions.sign
        baseline = np.broadcast_to(_rule_plan(limit, actions), (rows, actions.d))
        left, believed = _left(limit, actions, state), self._moments(limit, actions, state)
        others = (
            np.where(_begins(limit, state)[:, None], 0.0, state[ALL])
            - _sums(sign, left, believed).T
        )
        target = left + (1.0 + sign * limit.allowance) * baseline
        doubt, most = np.maximum(others[:, 1], 0.0), np.zeros(rows)
        margin = Margin(sign, target, *believed, others[:, 0], doubt, most)
        known = actions.known_cost if actions.has_known else None
        return Allowed(baseline, margin, known)

    def _sums(self, actions: ActionSet, state: Arrays) -> FloatArray:
        """Return what the arms of the set add to the mean and to squared doubts, (2, trials)."""
        limit = self._baseline
        if limit is None:
            return np.zeros((2, 1))
        left = _left(limit, actions, state)
        return _sums(actions.sign, left, self._moments(limit, actions, state))

    def _moments(self, limit: Baseline, actions: ActionSet, state: Arrays) -> ArmBeliefs:
        """Return what is believed of the arms."""
        beliefs = state if self._shares else without_prefix(BELIEFS, state)
        sums = beliefs["moments"]
        if self._believer.posterior.memory.follows:
            hypotheses, marks = beliefs["hypotheses"], beliefs["marks"]
            settled = np.empty_like(sums)
            for trial in zip(sums, hypotheses, marks, settled, strict=True):
                change.settle(*trial)
            sums = settled
        low = np.zeros(actions.d) if actions.offset is None else actions.offset
        high = low + (1.0 if actions.upper is None else actions.upper)
        found = beliefs_of(sums, np.zeros(actions.d), high - low, limit)
        return found._replace(mean=found.mean + low)

    def _believe(self, verb: str, actions: ActionSet, state: Arrays, *given: object) -> None:
        """Add a report to the moments, unless they are those of the policy."""
        if not self._shares:
            part = without_prefix(BELIEFS, state)
            getattr(self._believer, verb)(actions, part, *given)
            state |= with_prefix(BELIEFS, part)


@lru_cache(maxsize=MOST_PAST)
def _words(number: int) -> NDArray[np.uint64]:
    """Return the words of the random stream of a remaining play."""
    words: NDArray[np.uint64] = Streams.spawn(0, PRICE, [number]).state
    return words


def _rule_plan(limit: Baseline, actions: ActionSet) -> IntArray:
    """Return the plan of the baseline's rule."""
    assert isinstance(limit.rule, Rule)  # see __post_init__
    return baseline_plan(limit.rule, actions)


def _rounds(limit: Baseline) -> int:
    """Return the number of rounds of a period."""
    return np.iinfo(np.int64).max if limit.per is None else ROUNDS_OF_WEEK


def _begins(limit: Baseline, state: Arrays) -> BoolArray:
    """Return in which trials the next round is the first of a period."""
    begins: BoolArray = state[ROUNDS] % _rounds(limit) == 0
    return begins


def _period(limit: Baseline, state: Arrays) -> IntArray:
    """Return the number of the period of the next round, (trials, 1)."""
    period: IntArray = state[ROUNDS][:, None] // _rounds(limit)
    return period


def _left(limit: Baseline, actions: ActionSet, state: Arrays) -> FloatArray:
    """Return (1 + allowance) times the baseline's units less those of the plays."""
    units = state[UNITS] * (state[PERIOD] == _period(limit, state))[:, :, None]
    left: FloatArray = (1.0 + actions.sign * limit.allowance) * units[:, :, 1] - units[:, :, 0]
    return left


def _sums(sign: float, left: FloatArray, of: ArmBeliefs) -> FloatArray:
    return np.stack([sign * (left * of.mean).sum(axis=1), (of.square * left**2).sum(axis=1)])
