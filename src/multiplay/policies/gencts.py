"""Generalised combinatorial Thompson sampling."""

from dataclasses import dataclass, field

import numpy as np

from multiplay.actions import ActionSet
from multiplay.feedback import Feedback
from multiplay.kernels.averages import count_coins
from multiplay.policies.base import Play
from multiplay.policies.forgetting import Forgetting
from multiplay.streams import Rng
from multiplay.types import Arrays, FloatArray


@dataclass(frozen=True, repr=False)
class GenCTS(Forgetting):
    """Play the best action for losses (or rewards) drawn from the posterior of every arm.

    Each round, theta_i ~ Beta(p_i, q_i) and a is the best action for theta: argmin over A of
    <a, theta> for losses, argmax for rewards, or what ``actions.best`` makes of them. Then every
    unit flips a coin, Y_ij ~ Bernoulli(L_ij), and p_i += sum_j Y_ij, q_i += sum_j (1 - Y_ij), from
    p_i = q_i = 1. Units that were played and not seen flip no coin. Needs no horizon. Its regret is
    logarithmic in the stochastic regime, and linear when losses are corrupted. Duplicated, it is
    the CTS of Wang and Chen (2018).

    Parameters
    ----------
    discount
        For losses that drift: gamma in (0, 1) makes old coins fade. For every round told,
        p_i = 1 + gamma (p_i - 1) + heads and q_i = 1 + gamma (q_i - 1) + tails, for all arms.
    window
        The same by W, a number of rounds: only the coins of the last W rounds told count.

    References
    ----------
    Nakamura, Kuroki, Chen: Multi-Play Combinatorial Semi-Bandit Problem, algorithm 1.
    Wang, Chen: Thompson Sampling for Combinatorial Semi-Bandits, ICML 2018.
    Raj, Kalyani: Taming Non-stationary Bandits: A Bayesian Approach, 2017 (``discount``).
    Trovo, Paladino, Restelli, Gatti: Sliding-Window Thompson Sampling for Non-Stationary Settings,
    JAIR 2020 (``window``).

    Examples
    --------
    >>> from multiplay import Learner, Transport
    >>> learner = Learner(Transport([1, 4, 5], [4, 6]), GenCTS(), seed=0)
    >>> sum(learner.ask().plan.values())
    10
    """

    changing = True
    partial = True
    absorbs = True
    sums = ("p", "q")
    prior = 1.0

    discount: float | None = field(default=None, kw_only=True)
    window: int | None = field(default=None, kw_only=True)

    def start(self, actions: ActionSet, horizon: int | None, trials: int) -> Arrays:
        """p = q = 1: nothing is known."""
        shape = (trials, actions.d)
        return {"p": np.ones(shape), "q": np.ones(shape)} | self.slots(*shape)

    def choose(self, actions: ActionSet, state: Arrays, rng: Rng) -> Play:
        """Play the best action for one draw of the posterior."""
        theta = rng.beta(state["p"], state["q"])
        return Play(actions.best(theta))

    def update(
        self, actions: ActionSet, state: Arrays, play: Play, feedback: Feedback, rng: Rng
    ) -> None:
        """Forget a little, if so set, and count the heads and the tails."""
        self.pass_round(state)
        self.absorb(actions, state, feedback, rng)

    def absorb(self, actions: ActionSet, state: Arrays, feedback: Feedback, rng: Rng) -> None:
        """Count the heads and the tails, whoever chose the units."""
        heads, p = feedback.flip(rng), state["p"]
        if self.window is None and heads.shape == p.shape:
            count_coins(feedback.seen, heads, p, state["q"])
        else:
            self.add(state, heads, feedback.seen - heads)

    def believed(self, state: Arrays) -> FloatArray:
        """Return the mean of the posterior, p_i / (p_i + q_i)."""
        mean: FloatArray = state["p"] / (state["p"] + state["q"])
        return mean

    def interval(self, state: Arrays, level: float) -> tuple[FloatArray, FloatArray]:
        """Return the quantiles (1 - level) / 2 and (1 + level) / 2 of Beta(p_i, q_i).

        Where the loss of every unit is told, the coins of an arm are Bernoulli with its mean,
        whatever its losses are: for means that are as likely anywhere in [0, 1] the interval holds
        them with probability ``level``, also after any play of the policy. From totals only, the
        coins vary up to twice as much, and the interval may be too short by a factor of sqrt(2).
        """
        from scipy.special import betaincinv

        ends = np.array([[[1 - level]], [[1 + level]]]) / 2
        low, high = np.asarray(betaincinv(state["p"], state["q"], ends), dtype=float)
        return low, high
