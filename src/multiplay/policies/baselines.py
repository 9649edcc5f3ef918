"""What people do without a library: follow the leader, sometimes at random, always at random."""

from dataclasses import dataclass

import numpy as np

from multiplay.actions import ActionSet
from multiplay.checks import is_number
from multiplay.errors import InvalidInput
from multiplay.feedback import Feedback
from multiplay.policies.averages import Averages, averages, unseen_first
from multiplay.policies.base import Play, Policy
from multiplay.streams import Rng
from multiplay.types import Arrays, FloatArray


@dataclass(frozen=True)
class FollowTheLeader(Averages):
    """Play the best action for the average losses (or rewards) so far.

    Every arm is seen once; then a is the best action for S / N, where N_i += a_i and S_i += the sum
    of the a_i losses seen: argmin over A of <a, S / N> for losses, argmax for rewards, or what
    ``actions.best`` makes of them. It never looks again at an arm that had bad luck early, so its
    regret is linear in some trials: what exploration is worth is the distance to this curve. Units
    that were not seen count for nothing.

    References
    ----------
    Kalai, Vempala: Efficient algorithms for online decision problems, JCSS 2005, on why it fails.

    Examples
    --------
    >>> from multiplay import Learner, Transport
    >>> learner = Learner(Transport([1, 4, 5], [4, 6]), FollowTheLeader(), seed=0)
    >>> sum(learner.ask().plan.values())
    10
    """

    def choose(self, actions: ActionSet, state: Arrays, rng: Rng) -> Play:
        """Play the leader."""
        return Play(unseen_first(actions, state, actions.best(averages(state))))


@dataclass(frozen=True)
class EpsilonGreedy(Averages):
    """Follow the leader, and with probability epsilon play at random instead.

    Each round, independently: with probability epsilon a is a random action, as ``RandomAction``
    plays it; otherwise the leader, as ``FollowTheLeader`` does. With a fixed epsilon the regret is
    linear, about epsilon times that of random play. Units that were not seen count for nothing.

    Parameters
    ----------
    epsilon
        Probability of a random action, in [0, 1].

    References
    ----------
    Auer, Cesa-Bianchi, Fischer: Finite-time Analysis of the Multiarmed Bandit Problem, Machine
    Learning 2002.

    Examples
    --------
    >>> from multiplay import Learner, Transport
    >>> learner = Learner(Transport([1, 4, 5], [4, 6]), EpsilonGreedy(0.05), seed=0)
    >>> sum(learner.ask().plan.values())
    10
    """

    epsilon: float = 0.1

    def __post_init__(self) -> None:
        if not (is_number(self.epsilon) and 0 <= self.epsilon <= 1):
            raise InvalidInput(
                "epsilon", "a probability in [0, 1]", repr(self.epsilon), "Leave it out for 0.1."
            )

    def choose(self, actions: ActionSet, state: Arrays, rng: Rng) -> Play:
        """Flip a coin between the leader and a random action."""
        action = unseen_first(actions, state, actions.best(averages(state)))
        coin = rng.random((len(action), 1))[:, 0]
        costs = random_costs(actions, len(action), rng)
        explore = coin < self.epsilon
        if explore.any():
            action = action.copy()
            action[explore] = actions.argmin(costs[explore])
        return Play(action)


@dataclass(frozen=True)
class RandomAction(Policy):
    """Play a random action, always: argmin over A of <a, c>, with c_i uniform on [-1, 1).

    Every vertex of conv(A) has a positive probability, though not the same one. It learns nothing:
    a policy that is not far below this curve does not either, and units that were not seen make no
    difference. ``multiplay.policies.Uniform`` is
    another name of it (``multiplay.Uniform`` is a distribution of losses).

    Examples
    --------
    >>> from multiplay import Learner, Transport
    >>> learner = Learner(Transport([1, 4, 5], [4, 6]), RandomAction(), seed=0)
    >>> sum(learner.ask().plan.values())
    10
    """

    changing = True
    partial = True
    absorbs = True

    def start(self, actions: ActionSet, horizon: int | None, trials: int) -> Arrays:
        """t = 1: there is nothing else to know."""
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
    """Return costs that are uniform on [-1, 1): symmetric, so that no arm is shunned or sought."""
    return 2 * rng.random((trials, actions.d)) - 1
