"""Best of both worlds without a horizon: follow-the-regularised-leader with Tsallis entropy."""

from dataclasses import dataclass

import numpy as np

from multiplay.actions import ActionSet
from multiplay.checks import is_number
from multiplay.errors import InvalidInput
from multiplay.feedback import Feedback
from multiplay.hull import Regulariser
from multiplay.policies.base import Play, Policy
from multiplay.streams import Rng
from multiplay.types import Arrays


@dataclass(frozen=True)
class Hybrid(Policy):
    """Follow the leader under two entropies, one for arms to leave, one for arms to keep.

    With u = x_i / n_i, in round t

    1. x = argmin over conv(A) of <Lhat, x> + (sqrt(t) / 2) sum_i phi_i(x_i), where
       phi_i(x) = n_i [gamma (1 - u) log(1 - u) - sqrt(u)];
    2. an action a with E[a] = x is played, and k_i is the average of the a_i losses seen;
    3. Lhat_i += q + (a_i / x_i) (k_i - q), with q = 0.

    The original has losses in [-1, 1] and the rate 1 / sqrt(t); for losses in [0, 1] that is the
    rate 2 / sqrt(t) above. Estimates must not fall far below their smallest true value: those of
    losses are never negative. Rewards stay rewards, and the sign of <Lhat, x> is turned; with q = 1
    their estimates never exceed 1. Needs no horizon. The regret is logarithmic in the stochastic
    regime and of order sqrt(T) against any adversary.

    Parameters
    ----------
    gamma
        Weight of the entropy of 1 - u, positive. The authors' program takes 1, and 1 / sqrt(log m)
        for m-sets of at least half of the arms.

    References
    ----------
    Zimmert, Luo, Wei: Beating Stochastic and Adversarial Semi-Bandits Optimally and Simultaneously,
    ICML 2019.

    Examples
    --------
    >>> from multiplay import Learner, Transport
    >>> learner = Learner(Transport([1, 4, 5], [4, 6]), Hybrid(), seed=0)
    >>> sum(learner.ask().plan.values())
    10
    """

    gamma: float = 1.0

    def __post_init__(self) -> None:
        if not (is_number(self.gamma) and 0 < self.gamma < np.inf):
            raise InvalidInput(
                "gamma", "a positive weight", repr(self.gamma), "Leave it out for 1."
            )

    def start(self, actions: ActionSet, horizon: int | None, trials: int) -> Arrays:
        """t = 1, Lhat = 0, and an interior point as the first warm start."""
        L = np.zeros((trials, actions.d))
        return {"t": np.ones(trials), "L": L, **actions.hull.start(trials)}

    def choose(self, actions: ActionSet, state: Arrays, rng: Rng) -> Play:
        """Minimise over the hull, from the last minimiser, and draw an action around it."""
        one = np.ones_like(state["t"])
        regulariser = Regulariser(barrier=0 * one, entropy=self.gamma * one, root=one)
        warm = {name: state[name] for name in actions.hull.point}
        beta = np.repeat(np.sqrt(state["t"])[:, None] / 2, actions.d, axis=1)
        # (1 - u) log(1 - u) is the entropy of a regulariser without its linear part, u
        costs = actions.sign * state["L"] - self.gamma * beta
        point = actions.hull.minimise(costs, beta, regulariser, warm)
        return Play(actions.hull.draw(point, rng), point)

    def update(
        self, actions: ActionSet, state: Arrays, play: Play, feedback: Feedback, rng: Rng
    ) -> None:
        """Step 3, with the x that the action was drawn with."""
        a, x = feedback.count, np.maximum(play.memo["x"], 1e-100)
        q = 0.0 if actions.sign > 0 else 1.0
        state["L"] += q + (a / x) * (feedback.mean - q)
        state["t"] += 1
        state |= {name: play.memo[name] for name in actions.hull.point}
