"""Thompson sampling for totals: a linear loss drawn around the one that fits best."""

from dataclasses import dataclass

import numpy as np

from multiplay.actions import ActionSet
from multiplay.policies.base import Play, PolicyCost
from multiplay.policies.regression import MOST_ARMS, Regression, estimate, unknown_first
from multiplay.random import Rng, standard_normal
from multiplay.types import Arrays, FloatArray


@dataclass(frozen=True)
class LinTS(Regression):
    r"""Play the best action for a linear loss (or reward) drawn around the one that fits best.

    It learns from the total y of a round alone; a round of which units were not seen is refused.
    x are the coordinates of the action in the linear span of the set, s of them. Until s
    independent actions were told, the first one of these that was not is played. Then, each round,

    .. math::

        \theta &\sim \mathcal{N}\bigl(V^{-1} b, \sigma^2 V^{-1}\bigr), \\
        a &= \operatorname*{arg\,min}_{a \in \mathcal{A}} \langle x, \theta \rangle, \\
        V &\leftarrow V + x x^\top, \qquad b \leftarrow b + x y.

    :math:`\theta` has the posterior, if nothing is known before and totals have normal noise of
    standard deviation :math:`\sigma`. Rewards have arg max.

    Where an action is one arm, it is ``GaussianCTS``. It asks for one best action, so it needs no
    list of actions, and no horizon. External plans count like its own. Its regret is logarithmic in
    the stochastic regime, and linear when losses are corrupted. A set with more than 500 dimensions
    is refused.

    Parameters
    ----------
    sigma
        :math:`\sigma`, the standard deviation of the total of a round; less explores less. If not
        given, it is :math:`\sqrt{M} / 2` for at most M units in an action: M independent losses in
        [0, 1] have no more.

    References
    ----------
    Agrawal, Goyal: Thompson Sampling for Contextual Bandits with Linear Payoffs, ICML 2013. (There
    with a ridge and a larger :math:`\sigma`, for the proof.)

    Examples
    --------
    >>> from multiplay import Learner, LinTS, Transport
    >>> learner = Learner(Transport([1, 4, 5], [4, 6]), LinTS(), seed=0)
    >>> for total in (3.5, 2.0, 4.0):  # what all ten units lost together
    ...     play = learner.ask()
    ...     told = learner.tell(play.id, total)

    These plans span three dimensions, so three totals tell what any plan should lose:

    >>> round(learner.best().expected.total, 6)
    2.0
    """

    does = "Plays each plan as often as it is likely to be the best, by the totals of days."
    cost = PolicyCost(oracle="often", most_arms=MOST_ARMS)

    sigma: float | None = None

    def choose(self, actions: ActionSet, state: Arrays, rng: Rng) -> Play:
        """Play the best action for one draw."""
        theta = self.draw(actions, state, rng)
        return Play(unknown_first(actions, state, actions.best(theta)))

    def draw(self, actions: ActionSet, state: Arrays, rng: Rng) -> FloatArray:
        r"""Return :math:`\theta` as losses of all arms."""
        return estimate(actions, state, self._noise(actions, state, rng))

    def index(self, actions: ActionSet, state: Arrays, rng: Rng) -> FloatArray:
        r"""Return :math:`\theta`, also before all spanning actions were told.

        A constraint may not permit these. Until totals tell all of :math:`\theta`, it is drawn with
        a prior, in which the total of each spanning action has the mean and the deviation M / 2.
        """
        noise, basis = self._noise(actions, state, rng), actions.spanning
        theta, half = estimate(actions, state, noise), max(actions.M, 1) / 2
        weight = self.deviation(actions) / half
        for k in np.flatnonzero(state["seen"] < basis.s):
            Q, R = np.linalg.qr(np.vstack([state["R"][k], weight * basis.X]))
            z = np.append(state["z"][k], np.full(basis.s, weight * half)) @ Q
            theta[k, basis.J] = np.linalg.solve(R, z + noise[k])
        return theta

    def _noise(self, actions: ActionSet, state: Arrays, rng: Rng) -> FloatArray:
        return self.deviation(actions) * standard_normal(state["z"].shape, rng)
