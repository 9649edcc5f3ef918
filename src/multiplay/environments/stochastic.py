"""The stochastic regime."""

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import cycle
from typing import Self

import numpy as np

from multiplay.actions import ActionSet
from multiplay.checks import check_instance
from multiplay.environments.base import Environment, Slots, World
from multiplay.environments.distributions import Bernoulli, Distribution
from multiplay.environments.observation import Observation
from multiplay.streams import LOSSES, Streams
from multiplay.types import FloatArray, IntArray


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

    @classmethod
    def example(cls) -> Self:
        """Return a small instance, to try things on with ``Transport.example()``."""
        return cls(Bernoulli([0.2, 0.4, 0.3, 0.5, 0.6, 0.1]))

    def __post_init__(self) -> None:
        check_instance("distribution", self.distribution, Distribution, "Uniform(0, 2 * means)")

    def check(self, actions: ActionSet, horizon: int, trials: int) -> None:
        """One distribution for each arm, or for each trial and arm."""
        self.distribution.check("distribution", actions.d, trials)

    def open(self, actions: ActionSet, horizon: int, trials: Sequence[int], seed: int) -> World:
        """Start these trials at round 1."""
        return PhasedWorld([self.distribution], [horizon], actions, trials, seed)


class DrawnWorld(World):
    """Independent losses for every slot, played or not, so that all policies meet the same."""

    def __init__(self, actions: ActionSet, trials: Sequence[int], seed: int) -> None:
        self.slots = Slots(actions.n)
        self.streams = Streams.spawn(seed, LOSSES, trials)

    def observe(self, action: IntArray) -> Observation:
        """Draw the loss of every slot, and show those that are played."""
        u = self.streams.random((len(action), len(self.slots.owner)))
        units, means = self.draw(u)
        return self.slots.observation(units, action, means)

    @abstractmethod
    def draw(self, u: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Enter the next round; return its losses at the quantiles u, and the means of the arms."""


class PhasedWorld(DrawnWorld):
    """Losses whose distribution changes at given rounds.

    Phase p lasts ``rounds[p]`` rounds; after the last distribution comes the first one again.
    """

    def __init__(
        self,
        distributions: Sequence[Distribution],
        rounds: Sequence[int],
        actions: ActionSet,
        trials: Sequence[int],
        seed: int,
    ) -> None:
        super().__init__(actions, trials, seed)
        arms = np.arange(actions.d)
        means = [distribution.spread(trials, arms).mean for distribution in distributions]
        slots = [distribution.spread(trials, self.slots.owner) for distribution in distributions]
        self.phases = zip(rounds, cycle(zip(means, slots, strict=True)), strict=False)
        shares = [sum(rounds[k :: len(means)]) * mean for k, mean in enumerate(means)]
        self.total_means = np.sum(shares, axis=0)
        self.round = 0
        self.phase_end = 0

    def draw(self, u: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Draw from the distribution of this phase."""
        while self.round == self.phase_end:
            rounds, (self.phase_means, self.losses) = next(self.phases)
            self.phase_end += rounds
        self.round += 1
        return self.losses.quantile(u), self.phase_means
