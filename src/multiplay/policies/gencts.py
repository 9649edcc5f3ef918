"""Generalised combinatorial Thompson sampling."""

from dataclasses import dataclass

import numpy as np

from multiplay.actions import ActionSet
from multiplay.feedback import Feedback
from multiplay.policies.base import Play, Policy
from multiplay.streams import Rng
from multiplay.types import Arrays, FloatArray


@dataclass(frozen=True)
class GenCTS(Policy):
    """Play the best action for losses (or rewards) drawn from the posterior of every arm.

    Each round, theta_i ~ Beta(p_i, q_i) and a is the best action for theta: argmin over A of
    <a, theta> for losses, argmax for rewards, or what ``actions.best`` makes of them. Then every
    unit flips a coin, Y_ij ~ Bernoulli(L_ij), and p_i += sum_j Y_ij, q_i += sum_j (1 - Y_ij), from
    p_i = q_i = 1. Units that were played and not seen flip no coin. Needs no horizon. Its regret is
    logarithmic in the stochastic regime, and linear when losses are corrupted. Duplicated, it is
    the CTS of Wang and Chen (2018).

    References
    ----------
    Nakamura, Kuroki, Chen: Multi-Play Combinatorial Semi-Bandit Problem, algorithm 1.
    Wang, Chen: Thompson Sampling for Combinatorial Semi-Bandits, ICML 2018.

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

    def start(self, actions: ActionSet, horizon: int | None, trials: int) -> Arrays:
        """p = q = 1: nothing is known."""
        shape = (trials, actions.d)
        return {"p": np.ones(shape), "q": np.ones(shape)}

    def choose(self, actions: ActionSet, state: Arrays, rng: Rng) -> Play:
        """Play the best action for one draw of the posterior."""
        theta = rng.beta(state["p"], state["q"])
        return Play(actions.best(theta))

    def update(
        self, actions: ActionSet, state: Arrays, play: Play, feedback: Feedback, rng: Rng
    ) -> None:
        """Count the heads and the tails."""
        self.absorb(actions, state, feedback, rng)

    def absorb(self, actions: ActionSet, state: Arrays, feedback: Feedback, rng: Rng) -> None:
        """Count the heads and the tails, whoever chose the units."""
        heads = feedback.flip(rng)
        state["p"] += heads
        state["q"] += feedback.seen - heads

    def believed(self, state: Arrays) -> FloatArray:
        """Return the mean of the posterior, p_i / (p_i + q_i)."""
        mean: FloatArray = state["p"] / (state["p"] + state["q"])
        return mean
