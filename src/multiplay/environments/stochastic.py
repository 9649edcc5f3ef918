"""The stochastic regime."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from multiplay.actions import ActionSet
from multiplay.arrays import IntArray, check_instance
from multiplay.environments.base import Environment, Slots, World
from multiplay.environments.distributions import Distribution
from multiplay.feedback import Feedback
from multiplay.streams import LOSSES, Streams


@dataclass(frozen=True, eq=False)
class Stochastic(Environment):
    """L_ij(t) i.i.d. from the distribution of arm i.

    Examples
    --------
    >>> from multiplay import Constant, GenCTS, Transport, simulate
    >>> plans = Transport([1, 1], [1, 1])
    >>> result = simulate(plans, Stochastic(Constant([0.1, 0.9, 0.9, 0.1])), {"GenCTS": GenCTS()},
    ...                   horizon=50, trials=2, seed=0)
    >>> result.regret.sizes["round"]
    50
    """

    stationary = True

    distribution: Distribution

    def __post_init__(self) -> None:
        check_instance("distribution", self.distribution, Distribution, "Uniform(0, 2 * means)")

    def check(self, actions: ActionSet, horizon: int, trials: int) -> None:
        """One distribution for each arm, or for each trial and arm."""
        self.distribution.check("distribution", actions.d, trials)

    def open(self, actions: ActionSet, horizon: int, trials: Sequence[int], seed: int) -> World:
        """Start these trials at round 1."""
        return PhasedWorld([self.distribution], [horizon], actions, trials, seed)


class PhasedWorld(World):
    """Independent losses whose distribution changes at given rounds."""

    def __init__(
        self,
        distributions: Sequence[Distribution],
        rounds: Sequence[int],
        actions: ActionSet,
        trials: Sequence[int],
        seed: int,
    ) -> None:
        self.slots = Slots(actions.n)
        self.streams = Streams.spawn(seed, LOSSES, trials)
        arms = np.arange(actions.d)
        means = [distribution.spread(trials, arms).mean for distribution in distributions]
        slots = [distribution.spread(trials, self.slots.owner) for distribution in distributions]
        self.phases = list(zip(rounds, means, slots, strict=True))
        self.total_means = np.sum([r * mean for r, mean, _ in self.phases], axis=0)
        self.round = 0
        self.phase_end = 0

    def observe(self, action: IntArray) -> Feedback:
        """Draw the loss of every slot, played or not, so that all policies meet the same."""
        while self.round == self.phase_end:
            rounds, self.means, self.losses = self.phases.pop(0)
            self.phase_end += rounds
        self.round += 1
        u = self.streams.random((len(action), len(self.slots.owner)))
        return self.slots.feedback(self.losses.quantile(u), action, self.means)
