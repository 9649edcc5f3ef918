"""Thompson sampling with a normal posterior."""

from dataclasses import dataclass

import numpy as np

from multiplay.actions import ActionSet
from multiplay.checks import is_number
from multiplay.errors import InvalidInput
from multiplay.policies.averages import Averages, averages, unseen_first
from multiplay.policies.base import Play
from multiplay.streams import Rng
from multiplay.types import Arrays, FloatArray

SMALLEST = 2.0**-54  # below all positive uniform numbers, which are multiples of 2^-53


@dataclass(frozen=True)
class GaussianCTS(Averages):
    """Play the best action for losses (or rewards) drawn around the average of every arm.

    Every arm is seen once. Then, each round,

    1. theta_i ~ Normal(mean_i, beta / (4 N_i)), with N_i samples of arm i and their average mean_i;
    2. a is the best action for theta: argmin over A of <a, theta> for losses, argmax for rewards;
    3. N_i += a_i: every unit is a sample.

    1/4 is the largest variance of a loss in [0, 1]. So, unlike ``GenCTS``, it needs no coins, and
    draws too far from losses of little variance. It needs no horizon. An objective that is not
    linear takes theta cut to [0, 1], for its means are chances.

    Parameters
    ----------
    beta
        How far to draw, positive; less explores less. The proof wants beta > 1; the simulations of
        the authors draw with the variance of the losses divided by N_i, which is beta = 1.

    References
    ----------
    Perrault, Boursier, Perchet, Valko: Statistical Efficiency of Thompson Sampling for
    Combinatorial Semi-Bandits, NeurIPS 2020. (CTS-Gaussian, for independent arms.)

    Examples
    --------
    >>> from multiplay import Learner, Transport
    >>> learner = Learner(Transport([1, 4, 5], [4, 6]), GaussianCTS(), seed=0)
    >>> sum(learner.ask().plan.values())
    10
    """

    beta: float = 1.0

    def __post_init__(self) -> None:
        if not (is_number(self.beta) and 0 < self.beta < np.inf):
            raise InvalidInput("beta", "a positive number", repr(self.beta), "Leave it out for 1.")

    def choose(self, actions: ActionSet, state: Arrays, rng: Rng) -> Play:
        """Play the best action for one draw."""
        theta = self.draw(state, rng)
        if not actions.linear:
            theta = np.clip(theta, 0.0, 1.0)
        return Play(unseen_first(actions, state, actions.best(theta)))

    def draw(self, state: Arrays, rng: Rng) -> FloatArray:
        """Return theta."""
        normal = standard_normal(state["count"].shape, rng)
        deviation = np.sqrt(self.beta / (4 * np.maximum(state["count"], 1)))
        theta: FloatArray = averages(state) + deviation * normal
        return theta


def standard_normal(shape: tuple[int, ...], rng: Rng) -> FloatArray:
    """Return normal numbers, from the quantiles of uniform ones."""
    from scipy.special import ndtri

    normal: FloatArray = ndtri(np.maximum(rng.random(shape), SMALLEST))
    return normal
