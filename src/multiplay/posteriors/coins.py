"""Coins: a beta posterior for every arm, of one coin for each unit."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from multiplay.actions import ActionSet
from multiplay.feedback import Feedback
from multiplay.kernels.averages import confidence_bounds, count_coins
from multiplay.kernels.quantiles import beta_quantiles
from multiplay.posteriors.base import Additive, seeds
from multiplay.random import Rng
from multiplay.types import Arrays, FloatArray


@dataclass(frozen=True, repr=False)
class Coins(Additive):
    r"""A beta posterior of each arm: every unit flips a coin with its loss as the chance of heads.

    .. math::

        \mu_i \sim \operatorname{Beta}(p_i, q_i), \qquad p_i = 1 + \text{heads}, \quad
        q_i = 1 + \text{tails}.

    Parameters
    ----------
    memory
        Which reports count.

    Examples
    --------
    >>> from multiplay import Coins, Composed, Draw, GenCTS, Learner, Transport
    >>> plans = Transport([1, 4, 5], [4, 6])
    >>> one, two = Learner(plans, Composed(Coins(), Draw())), Learner(plans, GenCTS())
    >>> one.ask().plan == two.ask().plan
    True
    """

    names, prior = ("p", "q"), 1.0

    def gains(self, feedback: Feedback, rng: Rng) -> tuple[NDArray[Any], ...]:
        """Return heads and tails."""
        heads = feedback.flip(rng)
        return heads, feedback.seen - heads

    def counts(self, units: FloatArray, total: FloatArray) -> tuple[FloatArray, ...]:
        """Return the expected numbers of heads and tails: no coins are flipped again."""
        heads = np.clip(total, 0.0, units)
        return heads, units - heads

    def add(self, state: Arrays, feedback: Feedback, rng: Rng) -> None:
        """Count the heads and the tails."""
        heads, p = feedback.flip(rng), state["p"]
        if heads.shape == p.shape:
            count_coins(feedback.seen, heads, p, state["q"])
        else:
            p += heads
            state["q"] += feedback.seen - heads

    def draw(self, actions: ActionSet, state: Arrays, rng: Rng) -> FloatArray:
        """Return one draw of the mean loss of each arm."""
        if self.memory.follows:
            return rng.beta(*self.sums(state, rng))
        return rng.beta(state["p"], state["q"])

    def draw_shared(self, actions: ActionSet, state: Arrays, rng: Rng) -> FloatArray:
        """Return the draw of each arm at one quantile for all arms of a trial."""
        follows = self.memory.follows
        z = seeds(trials_of(state), rng, numbers=2 if follows else 1)
        p, q = self.sums(state, shared=z[:, 1:]) if follows else (state["p"], state["q"])
        theta = np.empty(p.shape)
        beta_quantiles(np.ascontiguousarray(z[:, :1]), p, q, theta)
        return theta

    def mean(self, actions: ActionSet, state: Arrays, rng: Rng | None = None) -> FloatArray:
        """Return the mean of the posterior."""
        return self.believed(state)

    def deviation(self, actions: ActionSet, state: Arrays) -> FloatArray:
        """Return the standard deviation of the posterior."""
        p, q = self.sums(state)
        n = p + q
        deviation: FloatArray = np.sqrt(p * q / (n + 1.0)) / n
        return deviation

    def bound(
        self, alpha: float, actions: ActionSet, state: Arrays, rng: Rng | None = None
    ) -> FloatArray:
        """Return the confidence bounds of the averages of the coins."""
        p, q = self.sums(state)
        bound, (discount, window) = np.empty(p.shape), self.memory.limits
        settings = discount, window, float(alpha), actions.sign
        confidence_bounds(state["t"], p + q - 2.0, p - 1.0, *settings, bound)
        return bound

    def believed(self, state: Arrays) -> FloatArray:
        """Return the mean of the posterior, :math:`p_i / (p_i + q_i)`."""
        p, q = self.sums(state)
        mean: FloatArray = p / (p + q)
        return mean

    def interval(self, state: Arrays, level: float) -> tuple[FloatArray, FloatArray]:
        """Return two quantiles of the posterior, (1 - level) / 2 and (1 + level) / 2."""
        from scipy.special import betaincinv

        ends = np.array([[[1 - level]], [[1 + level]]]) / 2
        p, q = self.sums(state)
        low, high = np.asarray(betaincinv(p, q, ends), dtype=float)
        return low, high


def trials_of(state: Arrays) -> int:
    """Return the number of trials of a state."""
    return len(next(iter(state.values())))
