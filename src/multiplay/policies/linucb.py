"""Optimism for totals: a confidence bound for every action, from the linear loss that fits best."""

from dataclasses import dataclass

import numpy as np

from multiplay._support.checks import integer_setting
from multiplay.actions import ActionSet
from multiplay.kernels import regression as kernels
from multiplay.policies.base import Play, PolicyCost, all_actions, known_values
from multiplay.policies.regression import MOST_ARMS, Regression, unknown_first
from multiplay.random import Rng
from multiplay.types import Arrays, FloatArray, IntArray


@dataclass(frozen=True)
class LinUCB(Regression):
    r"""Play the action with the most optimistic total within its confidence bound.

    It learns from the total y of a round alone; a round of which units were not seen is refused.
    x are the coordinates of the action in the linear span of the set, s of them. Until s
    independent actions were told, the first one of these that was not is played. Then, in round t,
    with :math:`V_0 = \sum x x^\top` over these s actions, the action of the least index is played,
    the first one of equals:

    .. math::

        \operatorname{index}(a) &= \langle x, V^{-1} b \rangle
            - \text{radius} \sqrt{x^\top V^{-1} x}, \\
        \text{radius} &= \sigma \sqrt{s + 2 \ln t + \ln \frac{\det V}{\det V_0}}, \\
        V &\leftarrow V + x x^\top, \qquad b \leftarrow b + x y.

    Rewards have + in place of -, and the largest index.

    The radius is the self-normalised bound. It holds in all rounds at once with probability
    :math:`1 - \delta`, if :math:`2 \ln(1 / \delta)` stands for :math:`2 \ln t`; with
    :math:`\delta = 1 / t` no horizon is needed. The first s plays take the place of the published
    ridge, whose size would have to be chosen; :math:`s \sigma^2` is the mean of their squared
    errors, and takes the place of its bias. All actions are listed and compared: a set with more
    than ``limit`` of them is refused, or with more than 500 dimensions.

    Parameters
    ----------
    sigma
        :math:`\sigma`, the standard deviation of the total of a round; less explores less. If not
        given, it is :math:`\sqrt{M} / 2` for at most M units in an action: M independent losses in
        [0, 1] have no more.
    limit
        Most actions to compare in every round and trial.

    References
    ----------
    Abbasi-Yadkori, Pal, Szepesvari: Improved Algorithms for Linear Stochastic Bandits, NIPS 2011.
    (OFUL: theorem 2 with :math:`\delta = 1 / t`.)

    Examples
    --------
    >>> from multiplay import Learner, LinUCB, Transport
    >>> learner = Learner(Transport([1, 4, 5], [4, 6]), LinUCB(), seed=0)
    >>> play = learner.ask()
    >>> sum(play.plan.values())
    10
    >>> print(learner.tell(play.id, 3.5))  # what all ten units lost together
    play 1: 10 of 10 units seen
    """

    does = "Plays the plan whose total may still be the best, by the totals of days."
    cost = PolicyCost(oracle="often", most_arms=MOST_ARMS, most_actions=10_000, capped=("limit",))

    sigma: float | None = None
    limit: int = 10_000

    def __post_init__(self) -> None:
        super().__post_init__()
        integer_setting(self, "limit", "Leave it out for 10000.")

    def start(self, actions: ActionSet, horizon: int | None, trials: int) -> Arrays:
        """Return the state before round 1; raise ``InvalidInput`` for too many actions."""
        self.compared(actions)
        return super().start(actions, horizon, trials)

    def choose(self, actions: ActionSet, state: Arrays, rng: Rng) -> Play:
        """Compare all actions."""
        best = (actions.sign * self.indices(actions, state)).argmin(axis=1)
        return Play(unknown_first(actions, state, self.compared(actions)[best]))

    def indices(self, actions: ActionSet, state: Arrays) -> FloatArray:
        """Return the index of every action, in the order of ``actions.enumerate()``."""
        x = self.compared(actions).take(actions.spanning.J, axis=1).astype(float)
        index = np.empty((len(state["t"]), len(x)))
        radius = -actions.sign * self.radius(actions, state)
        kernels.believe(state["seen"], state["R"], state["z"], radius, x, index)
        return index + known_values(actions, self.compared(actions))

    def radius(self, actions: ActionSet, state: Arrays) -> FloatArray:
        """Return the confidence radius of theta in the norm of V, once V has an inverse."""
        log_det = np.empty(len(state["t"]))
        kernels.log_determinants(state["seen"], state["R"], log_det)
        growth = np.maximum(log_det - actions.spanning.log_det, 0.0)
        doubt = actions.spanning.s + 2 * np.log(state["t"]) + growth
        radius: FloatArray = self.deviation(actions) * np.sqrt(doubt)
        return radius

    def compared(self, actions: ActionSet) -> IntArray:
        """Return all actions, or raise ``InvalidInput`` if there are too many."""
        instead = "LinTS, which computes one best action only"
        return all_actions("LinUCB", actions, self.limit, instead)
