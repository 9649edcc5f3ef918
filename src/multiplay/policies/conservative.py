"""Conservative: another policy, whose plays stay within an allowance of a baseline's cost."""

from copy import deepcopy
from dataclasses import dataclass, field
from typing import ClassVar, Self

import numpy as np

from multiplay._support.checks import check_instance
from multiplay._support.serialization import with_prefix, without_prefix
from multiplay.actions import ActionSet, Changing, InProportion, Rule
from multiplay.feedback import Feedback
from multiplay.kernels import change
from multiplay.policies.allowance import (
    ROUNDS_OF_WEEK,
    Margin,
    baseline_plan,
    beliefs_of,
    check_allowance,
    check_limits,
    safe_plans,
    z_of,
)
from multiplay.policies.base import Play, Policy
from multiplay.policies.bootstrapcts import BootstrapCTS
from multiplay.policies.gencts import GenCTS
from multiplay.policies.wrapped import Wrapped
from multiplay.random import Rng
from multiplay.types import Arrays, BoolArray, FloatArray, IntArray

OWN = "allowance_"  # before the names of the entries of the state that are not the policy's
UNITS, PERIOD, ROUNDS, ALL = OWN + "units", OWN + "period", OWN + "rounds", OWN + "all"
BELIEFS, RESTRICTED = OWN + "beliefs_", OWN + "restricted"
Sums = tuple[FloatArray, FloatArray]
BETWEEN = 40.0  # time of a plan between two, for each arm, relative to GenCTS


@dataclass(frozen=True)
class Conservative(Wrapped):
    r"""Play as another policy, within an allowance of what a baseline costs.

    With plays a(s), a rule's plans b(s) on the same sets and the mean losses :math:`\mu`, in every
    round t

    .. math::

        \sum_{s \le t} \langle a(s), \mu \rangle
            \le (1 + \alpha) \sum_{s \le t} \langle b(s), \mu \rangle,

    with high probability; for rewards, at least :math:`1 - \alpha` times as much. The weights of
    both sides are known, so that only one number must be bounded, :math:`\langle W, \mu \rangle`
    with :math:`W = \sum_s ((1 + \alpha) b(s) - a(s))`. The play of the policy is replaced where
    this number, with it, may be negative, by a plan between it and the baseline: see
    ``multiplay.policies.allowance``. The random numbers are those of the policy alone. Units that
    were not seen count in the sums, as played, and teach nothing.

    What is proved, and what is measured: a proof would need a confidence interval for each arm that
    holds in all rounds; with such intervals the rule is safe and useless, for in 60 rounds it
    hardly ever leaves the baseline. The bound here is for all arms together, by the moments of what
    is believed, for each round on its own. That it holds is measured, in the worlds of
    ``benchmarks/allowance.py``, and not proved. Where means drift, old plays are judged by the
    means of now: use ``per="week"``.

    Parameters
    ----------
    policy
        The policy, one that plays the best action for some costs: ``index`` is not None.
    baseline
        The rule.
    allowance
        :math:`\alpha`, a share above 0.
    sure
        The probability, of each round on its own.
    per
        "week": the sums begin again every 7 rounds.

    See Also
    --------
    Learner : With ``baseline`` and ``allowance``, plays without a report count too.

    References
    ----------
    Wu, Shariff, Lattimore, Szepesvari: Conservative Bandits, ICML 2016.
    Kazerouni, Ghavamzadeh, Abbasi-Yadkori, Van Roy: Conservative Contextual Linear Bandits,
    NeurIPS 2017. (Both play the proposal or the baseline, and bound each arm.)

    Examples
    --------
    >>> from multiplay import Conservative, GenCTS, InProportion, Stochastic, Transport, Uniform
    >>> from multiplay import simulate
    >>> plans, means = Transport([1, 4, 5], [4, 6]), np.array([0.1, 0.6, 0.4, 0.7, 0.3, 0.2])
    >>> world, rule = Stochastic(Uniform(means - 0.1, means + 0.1)), InProportion()
    >>> policies = {"free": GenCTS(), "safe": Conservative(GenCTS(), rule, allowance=0.05)}
    >>> result = simulate(plans, world, policies, horizon=60, trials=5)
    >>> result.final("safe").shape
    (5,)
    """

    does = "Plays as another policy, and stays near a baseline until that is known to be safe."
    cost = None  # a study of the service has a baseline and an allowance of its own
    needs_linear = True
    uses_known = True
    shared: ClassVar[tuple[str, ...]] = (ALL,)

    policy: Policy
    baseline: Rule = field(default_factory=InProportion)
    allowance: float = 0.03
    sure: float = field(default=0.99, kw_only=True)
    per: str | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        check_instance("policy", self.policy, Policy, "Conservative(GenCTS())")
        check_instance("baseline", self.baseline, Rule, "InProportion()")
        check_allowance(self.allowance, self.sure, self.per)

    @classmethod
    def example(cls) -> Self:
        """Return a small instance, for examples."""
        return cls(GenCTS())

    def effort(self, actions: ActionSet) -> float:
        """Return the effort of ``policy``, and of a plan between it and the baseline."""
        return self.policy.effort(actions) + BETWEEN * actions.d

    @property
    def _believer(self) -> BootstrapCTS:
        """Keeps the moments of the losses, as the beliefs of a learner do: it follows changes."""
        ignores = isinstance(self.policy, BootstrapCTS) and not self.policy.follows
        return BootstrapCTS(change="ignore" if ignores else "follow")

    def start(self, actions: ActionSet, horizon: int | None, trials: int) -> Arrays:
        """Return the state of the policy, no units, and no losses."""
        own = self.policy.start(actions, horizon, trials)
        if not isinstance(actions, Changing):
            check_limits(self.policy, actions, own)
            baseline_plan(self.baseline, actions)
        beliefs = self._believer.start(actions, horizon, trials)
        return (
            own
            | with_prefix(BELIEFS, beliefs)
            | {
                UNITS: np.zeros((trials, actions.d, 2), dtype=np.int64),
                PERIOD: np.zeros((trials, actions.d), dtype=np.int64),
                ROUNDS: np.zeros(trials, dtype=np.int64),
                ALL: np.zeros((trials, 2)),
            }
        )

    def choose(self, actions: ActionSet, state: Arrays, rng: Rng) -> Play:
        """Play as the policy, or within the allowance; the memo has the baseline's plan."""
        before = deepcopy(rng)
        play, inner = self.policy.choose(actions, state, rng), self.policy
        rows, sign = len(play.action), actions.sign
        baseline = np.broadcast_to(baseline_plan(self.baseline, actions), (rows, actions.d))
        left, (mean, variance) = self._left(actions, state), self._moments(actions, state)
        others = (
            np.where(self._begins(state)[:, None], 0.0, state[ALL])
            - _sums(sign, left, mean, variance).T
        )
        target = left + (1.0 + sign * self.allowance) * baseline
        rest = z_of(self.sure), others[:, 0], np.maximum(others[:, 1], 0.0)

        def costs() -> FloatArray:
            index = inner.index(actions, state, before)
            assert index is not None  # see start
            return actions.costs_of(index)

        known = actions.known_cost if actions.has_known else None
        margin = Margin(sign, target, mean, variance, *rest)
        found = safe_plans(actions, costs, play.action, baseline, margin, known)
        counted = np.stack([found.action, baseline], axis=2)
        memo = {**play.memo, UNITS: counted, RESTRICTED: found.restricted}
        return Play(found.action, memo, play.cache)

    def update(
        self, actions: ActionSet, state: Arrays, play: Play, feedback: Feedback, rng: Rng
    ) -> None:
        """Learn as the policy, and count the units of the play and of the baseline."""
        before = self._sums(actions, state)
        self.policy.update(actions, state, play, feedback, rng)
        self._believe("update", actions, state, play, feedback, rng)
        period = self._period(state)
        state[ALL][self._begins(state)] = 0.0
        state[UNITS][state[PERIOD] != period] = 0.0
        state[PERIOD][:] = period
        state[UNITS] += play.memo[UNITS]
        state[ALL] += (self._sums(actions, state) - before).T
        state[ROUNDS] += 1

    def absorb(self, actions: ActionSet, state: Arrays, feedback: Feedback, rng: Rng) -> None:
        """Learn as the policy from an external plan, whose units do not count."""
        before = self._sums(actions, state)
        self.policy.absorb(actions, state, feedback, rng)
        self._believe("absorb", actions, state, feedback, rng)
        state[ALL] += (self._sums(actions, state) - before).T

    # ------------------------------------------------------------ private

    @property
    def _rounds(self) -> int:
        """The number of rounds of a period."""
        return np.iinfo(np.int64).max if self.per is None else ROUNDS_OF_WEEK

    def _begins(self, state: Arrays) -> BoolArray:
        """Return in which trials the next round is the first of a period."""
        begins: BoolArray = state[ROUNDS] % self._rounds == 0
        return begins

    def _period(self, state: Arrays) -> IntArray:
        """Return the number of the period of the next round, (trials, 1)."""
        period: IntArray = state[ROUNDS][:, None] // self._rounds
        return period

    def _left(self, actions: ActionSet, state: Arrays) -> FloatArray:
        """Return (1 + allowance) times the baseline's units less those of the plays."""
        units = state[UNITS] * (state[PERIOD] == self._period(state))[:, :, None]
        left: FloatArray = (1.0 + actions.sign * self.allowance) * units[:, :, 1] - units[:, :, 0]
        return left

    def _sums(self, actions: ActionSet, state: Arrays) -> FloatArray:
        """Return what the arms of the set add to the mean and the variance, (2, trials)."""
        return _sums(actions.sign, self._left(actions, state), *self._moments(actions, state))

    def _moments(self, actions: ActionSet, state: Arrays) -> Sums:
        """Return means and variances of what is believed of the arms."""
        beliefs = without_prefix(BELIEFS, state)
        sums = beliefs["moments"]
        if self._believer.follows:
            hypotheses, marks = beliefs["hypotheses"], beliefs["marks"]
            settled = np.empty_like(sums)
            for trial in zip(sums, hypotheses, marks, settled, strict=True):
                change.settle(*trial)
            sums = settled
        low = np.zeros(actions.d) if actions.offset is None else actions.offset
        high = low + (1.0 if actions.upper is None else actions.upper)
        mean, variance = beliefs_of(sums, np.zeros(actions.d), high - low, self.per)
        return mean + low, variance

    def _believe(self, verb: str, actions: ActionSet, state: Arrays, *given: object) -> None:
        """Add a report to the moments."""
        part = without_prefix(BELIEFS, state)
        getattr(self._believer, verb)(actions, part, *given)
        state |= with_prefix(BELIEFS, part)


def _sums(sign: float, left: FloatArray, mean: FloatArray, variance: FloatArray) -> FloatArray:
    return np.stack([sign * (left * mean).sum(axis=1), (variance * left**2).sum(axis=1)])
