"""Optimism action by action: a confidence bound for every action, from all of its arms at once."""

import math
from dataclasses import dataclass

import numpy as np

from multiplay._support.checks import integer_setting
from multiplay.actions import ActionSet
from multiplay.policies.base import Play, PolicyCost, all_actions, known_values
from multiplay.policies.index import ArmPolicy
from multiplay.policies.planners import unseen_first
from multiplay.posteriors.averages import Averages, averages
from multiplay.random import Rng
from multiplay.types import Arrays, FloatArray, IntArray


@dataclass(frozen=True)
class ESCB(ArmPolicy):
    r"""Play the action with the most optimistic value within its confidence bound.

    Every arm is seen once. Then, in round t, with :math:`N_i` samples of arm i and their average
    :math:`\hat{\mu}_i`, the action of the least index is played, the first one of equals:

    .. math::

        \operatorname{index}(a) &= \langle a, \hat{\mu} \rangle
            - \sqrt{\frac{f(t)}{2} \sum_{i=1}^{d} \frac{a_i^2}{N_i}}, \\
        f(t) &= \ln t + 4 m \ln \ln t.

    m is the largest number of different arms in an action, and :math:`\ln \ln t` counts as 0 up to
    t = e. Rewards have + in place of -, and the largest index. Then
    :math:`N_i \leftarrow N_i + a_i`: every unit is a sample. Units that were not seen count for
    nothing.

    The estimated loss of a, :math:`\langle a, \hat{\mu} \rangle`, has variance
    :math:`\sum_i a_i^2 \sigma_i^2 / N_i`; for actions of 0 and 1 the index is the published one.
    The root joins the arms, so no oracle for linear costs finds the least index, and in general the
    problem is NP-hard: all actions are listed and compared, and a set with more than ``limit`` of
    them is refused. The objective must be linear, beside known costs.

    Parameters
    ----------
    limit
        Most actions to compare in every round and trial.

    References
    ----------
    Combes, Talebi, Proutiere, Lelarge: Combinatorial Bandits Revisited, NIPS 2015. (ESCB-2: the
    index with a closed form.)

    Examples
    --------
    >>> import numpy as np
    >>> from multiplay import ESCB, Budget, Learner, Transport
    >>> learner = Learner(Transport([1, 4, 5], [4, 6]), ESCB(), seed=0)
    >>> sum(learner.ask().plan.values())
    10

    One unit of each arm would be less in doubt than two of the same; the least index wins:

    >>> two = Budget(2, [2, 2])
    >>> two.enumerate().tolist()
    [[0, 2], [1, 1], [2, 0]]
    >>> seen, lost = np.array([[100.0, 100.0]]), np.array([[50.0, 50.0]])
    >>> state = {"t": np.array([100]), "count": seen, "sum": lost}
    >>> ESCB().indices(two, state).round(2)
    array([[0.42, 0.59, 0.42]])
    """

    does = "Plays the plan whose total may still be the best."
    cost = PolicyCost(most_actions=10_000, capped=("limit",))
    needs_linear = True
    uses_known = True

    posterior = Averages()

    limit: int = 10_000

    def __post_init__(self) -> None:
        integer_setting(self, "limit", "Leave it out for 10000.")

    def start(self, actions: ActionSet, horizon: int | None, trials: int) -> Arrays:
        """Return the state before round 1; raise ``InvalidInput`` for too many actions."""
        self.compared(actions)
        return super().start(actions, horizon, trials)

    def choose(self, actions: ActionSet, state: Arrays, rng: Rng) -> Play:
        """Compare all actions."""
        best = (actions.sign * self.indices(actions, state)).argmin(axis=1)
        return Play(unseen_first(self.posterior, actions, state, self.compared(actions)[best]))

    def indices(self, actions: ActionSet, state: Arrays) -> FloatArray:
        """Return the index of every action, in the order of ``actions.enumerate()``."""
        everything = self.compared(actions)
        t, m = state["t"].astype(float), (everything > 0).sum(axis=1).max()
        f = np.log(t) + 4 * m * np.log(np.log(np.maximum(t, math.e)))
        mean, samples = averages(state), np.maximum(state["count"], 1)
        value = np.zeros((len(t), len(everything)))
        value += known_values(actions, everything)
        doubt = np.zeros_like(value)
        for i, a in enumerate(everything.T.astype(float)):  # a sum in the same order in any company
            value += mean[:, i, None] * a
            doubt += a**2 / samples[:, i, None]
        index: FloatArray = value - actions.sign * np.sqrt(f[:, None] / 2 * doubt)
        return index

    def compared(self, actions: ActionSet) -> IntArray:
        """Return all actions, or raise ``InvalidInput`` if there are too many."""
        instead = "CombUCB or GaussianCTS, which compute one best action only"
        return all_actions("ESCB", actions, self.limit, instead)
