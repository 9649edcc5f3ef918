"""Baselines: follow the leader, epsilon-greedy, and random actions."""

from dataclasses import dataclass, field

import numpy as np

from multiplay._support.checks import is_number
from multiplay.actions import ActionSet
from multiplay.errors import InvalidInput
from multiplay.feedback import Feedback
from multiplay.policies.base import Play, Policy, PolicyCost
from multiplay.policies.index import IndexPolicy, Parts, memory_of, planner_of
from multiplay.policies.rules import Mean
from multiplay.posteriors.averages import Averages
from multiplay.posteriors.memories import Memory
from multiplay.random import Rng
from multiplay.types import Arrays, BoolArray, FloatArray


@dataclass(frozen=True, repr=False)
class FollowTheLeader(IndexPolicy):
    r"""Play the best action for the average losses (or rewards) so far.

    Every arm is seen once. Then, with :math:`N_i` the units of arm i seen so far and :math:`S_i`
    the sum of their losses,

    .. math::

        a = \operatorname*{arg\,min}_{a \in \mathcal{A}} \sum_{i=1}^{d} a_i \frac{S_i}{N_i},

    arg max for rewards, or what ``actions.best`` makes of these averages. It never looks again at
    an arm that had bad luck early, so its regret is linear in some trials: what exploration is
    worth is the distance to this curve. Units that were not seen count for nothing.

    Parameters
    ----------
    discount, window, memory
        Which reports count, as in ``GaussianCTS``: one of the three.
    replan
        "rarely": the solver is called in few rounds, see "Few calls of the solver" in
        docs/choosing.md. None: it is called in every round.

    References
    ----------
    Kalai, Vempala: Efficient algorithms for online decision problems, JCSS 2005, on why it fails.

    Examples
    --------
    >>> import numpy as np
    >>> from multiplay import Bernoulli, FollowTheLeader, Stochastic, Transport, simulate
    >>> plans, costs = Transport([1, 4, 5], [4, 6]), [0.1, 0.4, 0.2, 0.3, 0.3, 0.2]
    >>> world, policies = Stochastic(Bernoulli(costs)), {"leader": FollowTheLeader()}
    >>> result = simulate(plans, world, policies, horizon=300, trials=10)
    >>> final = result.final("leader")

    Most trials are lucky; the unlucky one makes the mean:

    >>> bool(np.median(final) < 5), bool(final.max() > 100)
    (True, True)
    """

    does = "Plays the plan that was best so far, and tries nothing else."
    cost = PolicyCost()

    discount: float | None = field(default=None, kw_only=True)
    window: int | None = field(default=None, kw_only=True)
    memory: Memory | None = field(default=None, kw_only=True)
    replan: str | None = field(default=None, kw_only=True)

    def parts(self) -> Parts:
        """Return averages."""
        memory = memory_of(self.memory, self.discount, self.window)
        return Parts(Averages(memory), Mean(), planner_of(self.replan, memory))


@dataclass(frozen=True, repr=False)
class EpsilonGreedy(IndexPolicy):
    r"""Follow the leader, and with probability epsilon play at random instead.

    Each round, independently,

    .. math::

        a = \begin{cases}
            \text{a random action, as of RandomAction} & \text{with probability } \epsilon, \\
            \text{the leader, as of FollowTheLeader} & \text{with probability } 1 - \epsilon.
        \end{cases}

    With a fixed :math:`\epsilon` the regret is linear, about :math:`\epsilon` times that of random
    play. Units that were not seen count for nothing.

    Parameters
    ----------
    epsilon
        :math:`\epsilon`, the probability of a random action, in [0, 1].
    discount, window, memory
        Which reports count, as in ``GaussianCTS``: one of the three.
    replan
        "rarely": the solver is called in few rounds, see "Few calls of the solver" in
        docs/choosing.md. None: it is called in every round.

    References
    ----------
    Auer, Cesa-Bianchi, Fischer: Finite-time Analysis of the Multiarmed Bandit Problem, Machine
    Learning 2002.

    Examples
    --------
    >>> from multiplay import Bernoulli, EpsilonGreedy, Stochastic, Transport, simulate
    >>> plans, costs = Transport([1, 4, 5], [4, 6]), [0.1, 0.4, 0.2, 0.3, 0.3, 0.2]
    >>> policies = {str(epsilon): EpsilonGreedy(epsilon) for epsilon in (1, 0.5, 0.1)}
    >>> simulate(plans, Stochastic(Bernoulli(costs)), policies, horizon=300, trials=10).ranked
    ['0.1', '0.5', '1']
    """

    does = "Plays the plan that was best so far, and now and then a random one."
    cost = PolicyCost()

    epsilon: float = 0.1
    discount: float | None = field(default=None, kw_only=True)
    window: int | None = field(default=None, kw_only=True)
    memory: Memory | None = field(default=None, kw_only=True)
    replan: str | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        if not (is_number(self.epsilon) and 0 <= self.epsilon <= 1):
            raise InvalidInput(
                "epsilon", "a probability in [0, 1]", repr(self.epsilon), "Leave it out for 0.1."
            )
        super().__post_init__()

    def parts(self) -> Parts:
        """Return averages."""
        memory = memory_of(self.memory, self.discount, self.window)
        return Parts(Averages(memory), Mean(), planner_of(self.replan, memory))

    def index(self, actions: ActionSet, state: Arrays, rng: Rng) -> FloatArray:
        """Return the averages, or random costs with probability epsilon."""
        theta = self._theta(actions, state, rng)
        explore, costs = self._explored(actions, len(theta), rng)
        return np.where(explore[:, None], actions.sign * costs, theta)

    def choose(self, actions: ActionSet, state: Arrays, rng: Rng) -> Play:
        """Play the leader, or with probability epsilon a random action."""
        play = self._plan(actions, state, self._theta(actions, state, rng))
        action = play.action
        explore, costs = self._explored(actions, len(action), rng)
        if explore.any():
            action = action.copy()
            action[explore] = actions.argmin(costs[explore])
        return Play(action, cache=play.cache)

    def _explored(self, actions: ActionSet, trials: int, rng: Rng) -> tuple[BoolArray, FloatArray]:
        """Return in which trials a random action is played, and random costs."""
        coin = rng.random((trials, 1))[:, 0]
        return coin < self.epsilon, random_costs(actions, trials, rng)


@dataclass(frozen=True)
class RandomAction(Policy):
    r"""Play a random action, always.

    It is the best action for random costs,

    .. math::

        a = \operatorname*{arg\,min}_{a \in \mathcal{A}} \langle a, c \rangle, \qquad
            c_i \sim \operatorname{Uniform}[-1, 1).

    Every vertex of :math:`\operatorname{conv}(\mathcal{A})` has a positive probability, though not
    the same one. It learns nothing: a policy that is not far below this curve does not either, and
    units that were not seen make no difference.

    Examples
    --------
    >>> from multiplay import Budget, Learner, RandomAction
    >>> learner = Learner(Budget(3, [3, 3]), RandomAction(), seed=0)
    >>> sorted({tuple(learner.ask().action.tolist()) for day in range(20)})
    [(0, 3), (3, 0)]
    """

    does = "Plays a random plan every time, and learns nothing."
    cost = PolicyCost()
    changing = True
    partial = True
    absorbs = True

    def start(self, actions: ActionSet, horizon: int | None, trials: int) -> Arrays:
        """Return the state: t = 1."""
        return {"t": np.ones(trials, dtype=np.int64)}

    def choose(self, actions: ActionSet, state: Arrays, rng: Rng) -> Play:
        """Play the best action for random costs."""
        return Play(actions.argmin(random_costs(actions, len(state["t"]), rng)))

    def update(
        self, actions: ActionSet, state: Arrays, play: Play, feedback: Feedback, rng: Rng
    ) -> None:
        """Count the round."""
        state["t"] += 1

    def absorb(self, actions: ActionSet, state: Arrays, feedback: Feedback, rng: Rng) -> None:
        """Learn nothing."""


def random_costs(actions: ActionSet, trials: int, rng: Rng) -> FloatArray:
    """Return costs that are uniform on [-1, 1): symmetric, so that no arm is preferred."""
    return 2 * rng.random((trials, actions.d)) - 1
