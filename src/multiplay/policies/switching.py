"""Switching costs: plans that weigh what a change costs against what it saves."""

from contextlib import suppress
from copy import deepcopy
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from multiplay._support.checks import check_instance, is_number
from multiplay.actions import ActionSet, Changing
from multiplay.actions.base import owners, unit_numbers
from multiplay.errors import InvalidInput
from multiplay.feedback import Feedback
from multiplay.policies.base import Play, Policy
from multiplay.policies.bootstrapcts import BootstrapCTS
from multiplay.policies.wrapped import Wrapped, check_index
from multiplay.random import Rng
from multiplay.types import Arrays, FloatArray, IntArray

LAST, HELD = "switching_last", "switching_held"
SWITCHING = "the switching cost"  # in errors
MOST_COPIES = 20_000  # units of a set in which a plan with switching costs is searched


@dataclass(frozen=True)
class SwitchingCost(Wrapped):
    r"""Play as another policy, where every unit that differs from the last plan costs something.

    With the last plan b, which was played h times in a row, and the costs :math:`\theta` of which
    the policy would play the best plan (its draw, or its bounds),

    .. math::

        a = \operatorname*{arg\,min}_{a \in \mathcal{A}}
            \langle a, \theta \rangle + \frac{c}{\sqrt{h}} \sum_i |a_i - b_i|,

    and the difference of both at its largest for rewards. A change costs c once and saves in every
    round after it: so a new plan has to save its whole cost in one round, and a plan that has
    stayed for long is given up for less. Without :math:`\sqrt{h}` a large c would keep the first
    plan for ever, at a multiple of the cost: see "Switching costs" in docs/choosing.md. A unit
    more and a unit less count one each, so a unit that moves from one arm to another costs 2c: for
    a cost of 15 of each moved unit, write 7.5. Units of arms that the set of a round does not have
    do not count. The first plan costs nothing. Units that were not seen were played all the same.

    The minimum is exact on flows, and wherever an arm can be copied (budgets, knapsacks, integer
    programs, models, listed sets): the k-th unit of arm i costs :math:`\theta_i - c / \sqrt{h}` up
    to :math:`b_i`, and :math:`\theta_i + c / \sqrt{h}` beyond, which is convex. It is the better
    one of the last plan and the policy's own plan on all other sets: with a nonlinear objective,
    with known costs of helpers, and with more than 20,000 units. The random numbers are those of
    the policy alone. It is measured, and no bound is claimed.

    Parameters
    ----------
    policy
        The policy, one that plays the best action for some costs: ``index`` is not None.
    change
        c, the cost of each unit that differs, in the unit of the losses; 0 or more.

    See Also
    --------
    Learner : With ``change``, in the user's unit, plays without a report are last plans too.

    References
    ----------
    Dekel, Ding, Koren, Peres: Bandits with Switching Costs: T^{2/3} Regret, STOC 2014. (The
    problem, for adversarial losses; read: the abstract. The rule here is our own.)

    Examples
    --------
    >>> from multiplay import GenCTS, Stochastic, SwitchingCost, Transport, Uniform, simulate
    >>> plans, means = Transport([1, 4, 5], [4, 6]), np.array([0.1, 0.6, 0.4, 0.7, 0.3, 0.2])
    >>> world = Stochastic(Uniform(means - 0.1, means + 0.1))
    >>> policies = {"free": GenCTS(), "calm": SwitchingCost(GenCTS(), 0.05)}
    >>> simulate(plans, world, policies, horizon=60, trials=5).final("calm").shape
    (5,)
    """

    does = "Plays as another policy, and changes its plan where that saves more than it costs."
    cost = None  # a study of the service has a switching cost of its own

    policy: Policy
    change: float = 0.05

    def __post_init__(self) -> None:
        check_instance("policy", self.policy, Policy, "SwitchingCost(GenCTS())")
        checked_change(self.change)

    @classmethod
    def example(cls) -> Self:
        """Return a small instance, for examples."""
        return cls(BootstrapCTS())

    def effort(self, actions: ActionSet) -> float:
        """Return the effort of ``policy``, and of a plan with a cost of each copy."""
        return self.policy.effort(actions) + 2.0 * float(actions.n.sum())

    @property
    def needs_linear(self) -> bool:  # type: ignore[override]
        """Whether the policy needs a linear objective."""
        return self.policy.needs_linear

    @property
    def uses_known(self) -> bool:  # type: ignore[override]
        """Whether the policy can play sets with known costs of whole actions."""
        return self.policy.uses_known

    @property
    def shared(self) -> tuple[str, ...]:  # type: ignore[override]
        """The arrays of the policy that belong to all arms together."""
        return self.policy.shared

    @property
    def reads_features(self) -> bool:  # type: ignore[override]
        """Whether the policy reads features."""
        return self.policy.reads_features

    def start(self, actions: ActionSet, horizon: int | None, trials: int) -> Arrays:
        """Return the state of the policy, and no last plan."""
        own = self.policy.start(actions, horizon, trials)
        if not isinstance(actions, Changing):
            check_index(self.policy, actions, own, SWITCHING)
        last = np.zeros((trials, actions.d), dtype=np.int64)
        return own | {LAST: last, HELD: np.zeros(trials, dtype=np.int64)}

    def choose(self, actions: ActionSet, state: Arrays, rng: Rng) -> Play:
        """Play the plan with the least sum of both costs."""
        before = deepcopy(rng)
        play, held = self.policy.choose(actions, state, rng), state[HELD]
        theta = self.policy.index(actions, state, before)
        assert theta is not None  # see start
        charge = charged(self.change, held)
        action = calm_plans(actions, theta, play.action, state[LAST], charge)
        same = (state[LAST] == action).all(axis=1)
        own = {LAST: action, HELD: np.where(same, held + 1, 1)}
        return Play(action, play.memo | own, play.cache)

    def update(
        self, actions: ActionSet, state: Arrays, play: Play, feedback: Feedback, rng: Rng
    ) -> None:
        """Learn as the policy; the play is the last plan."""
        self.policy.update(actions, state, play, feedback, rng)
        state[LAST][:], state[HELD][:] = play.memo[LAST], play.memo[HELD]

    def absorb(self, actions: ActionSet, state: Arrays, feedback: Feedback, rng: Rng) -> None:
        """Learn as the policy from an external plan, which is not the last plan."""
        self.policy.absorb(actions, state, feedback, rng)

    def absent(self, state: Arrays, rounds: int, offset: FloatArray | float) -> None:
        """Let rounds pass for the policy; arms that are absent are not in the last plan."""
        super().absent(state, rounds, offset)
        state[LAST][:] = 0


def charged(change: float, held: IntArray) -> FloatArray:
    """Return the cost of a unit that differs from a plan that was played so many times in a row.

    Examples
    --------
    >>> charged(15.0, np.array([0, 1, 9]))
    array([ 0., 15.,  5.])
    """
    return np.where(held > 0, change / np.sqrt(np.maximum(held, 1)), 0.0)


def calm_plans(
    actions: ActionSet, theta: FloatArray, proposal: IntArray, last: IntArray, charge: FloatArray
) -> IntArray:
    """Return the plans of the least cost by theta and by their differences from the last plans.

    Parameters
    ----------
    actions
        The set.
    theta, proposal
        The costs of each row, (rows, d), and the best plans for them.
    last
        The last plans, (rows, d), in the set or not.
    charge
        The cost of each unit that differs, (rows,); with 0 the proposal is returned.

    Examples
    --------
    Another arm is cheaper by 0.3; a unit that moves there costs two changes.

    >>> from multiplay import Budget
    >>> plans, theta, last = Budget(3, caps=[3, 3]), np.array([[0.5, 0.2]]), np.array([[2, 1]])
    >>> for change in (0.1, 0.2):
    ...     print(calm_plans(plans, theta, np.array([[0, 3]]), last, np.array([change])))
    [[0 3]]
    [[2 1]]
    """
    free = charge == 0.0
    if free.all():
        return proposal
    n = actions.n
    if actions.linear and 0 < n.sum() <= MOST_COPIES:
        owner, k = owners(n), unit_numbers(n)
        costs = actions.costs_of(theta)
        more = np.where(k <= last[:, owner], -1.0, 1.0) * charge[:, None]
        with suppress(InvalidInput):  # a set of the user that cannot be copied
            found = actions.argmin_increasing(costs[:, owner] + more)
            return np.where(free[:, None], proposal, found)
    rows = np.arange(len(theta))
    both = np.stack([proposal, np.where(actions.contains(last)[:, None], last, proposal)], axis=1)
    values = actions.sign * actions.value(both, theta[:, None])
    values = values + charge[:, None] * np.abs(both - last[:, None]).sum(axis=2)
    better: IntArray = both[rows, values.argmin(axis=1)]
    return better


def checked_change(change: Any) -> float:
    """Return a switching cost as a float; raise ``InvalidInput`` for anything else."""
    if not is_number(change) or not 0 <= change < np.inf:
        hint = "Use the cost of one unit that differs from the last plan."
        raise InvalidInput("change", "a number of 0 or more", repr(change), hint)
    return float(change)
