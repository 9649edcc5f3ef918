"""The stochastic regime: independent losses from fixed distributions."""

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import cycle
from typing import Self

import numpy as np

from multiplay._support.checks import check_instance
from multiplay.actions import ActionSet
from multiplay.environments.base import Environment, Observation, Slots, World
from multiplay.environments.distributions import Bernoulli, Distribution, law_of
from multiplay.random import LOSSES, Streams
from multiplay.types import FloatArray, IntArray


@dataclass(frozen=True, eq=False)
class Stochastic(Environment):
    r"""Independent losses, from one distribution for each arm that never changes.

    .. math::

        L_{ij}(t) &\sim D_i \text{ independently for all } i, j, t, \\
        \mathbb{E}[L_{ij}(t)] &= \ell_i

    Parameters
    ----------
    distribution
        The distributions :math:`D_i`: one for all arms, for each arm, or for each trial and arm.

    See Also
    --------
    Corrupted : A different distribution from some round on.
    Attacked : Losses that an attacker changes within a budget.

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
        """Return a small instance, for examples with ``Transport.example()``."""
        return cls(Bernoulli([0.2, 0.4, 0.3, 0.5, 0.6, 0.1]))

    def __post_init__(self) -> None:
        check_instance("distribution", self.distribution, Distribution, "Uniform(0, 2 * means)")

    def check(self, actions: ActionSet, horizon: int, trials: int) -> None:
        """Raise ``InvalidInput`` unless there is a distribution for each arm, or trial and arm."""
        self.distribution.check("distribution", actions.d, trials)

    def open(self, actions: ActionSet, horizon: int, trials: Sequence[int], seed: int) -> World:
        """Start these trials at round 1."""
        return PhasedWorld([self.distribution], [horizon], actions, trials, seed)


class DrawnWorld(World):
    """Independent losses for every slot, played or not: all policies get the same losses."""

    def __init__(self, actions: ActionSet, trials: Sequence[int], seed: int) -> None:
        self.slots = Slots(actions.n)
        self.streams = Streams.spawn(seed, LOSSES, trials)
        self.round = 0

    def observe(self, action: IntArray) -> Observation:
        """Draw the loss of every slot, and return those that are played."""
        self.round += 1
        units, means = self.draw(self.slots.uniforms(self.streams, self.round))
        return self.slots.observation(units, action, means)

    @abstractmethod
    def draw(self, u: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the losses of this round at the quantiles u, and the means of the arms."""


class PhasedWorld(DrawnWorld):
    """Losses whose distribution changes at given rounds.

    Phase p lasts ``rounds[p]`` rounds; the distributions repeat in a cycle.
    """

    last_fused: float = np.inf  # the last round that one kernel may draw without ``draw``

    def __init__(
        self,
        distributions: Sequence[Distribution],
        rounds: Sequence[int],
        actions: ActionSet,
        trials: Sequence[int],
        seed: int,
    ) -> None:
        super().__init__(actions, trials, seed)
        phases = [Phase(distribution, trials, self.slots) for distribution in distributions]
        self.phases = zip(rounds, cycle(phases), strict=False)
        shares = [sum(rounds[k :: len(phases)]) * phase.means for k, phase in enumerate(phases)]
        self.total_means = np.sum(shares, axis=0)
        self.phase_end = 0

    def observe(self, action: IntArray) -> Observation:
        """Draw the losses by one kernel where it implements their law, else by ``draw``."""
        while self.round == self.phase_end:
            rounds, self.phase = next(self.phases)
            self.phase_end += rounds
        law = self.phase.law
        if law is None or self.round >= self.last_fused:
            return super().observe(action)
        self.round += 1
        return self.slots.drawn(self.streams, self.round, law, action, self.phase.means)

    def draw(self, u: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Draw from the distribution of this phase."""
        return self.phase.losses.quantile(u), self.phase.means


class Phase:
    """One phase of a distribution: the means of the arms, and losses, by law or by slot."""

    def __init__(self, distribution: Distribution, trials: Sequence[int], slots: Slots) -> None:
        arms = distribution.spread(trials, np.arange(len(slots.n)))
        self.means, self.law = np.ascontiguousarray(arms.mean), law_of(arms)
        self._spread = partial(distribution.spread, trials, slots.owner)

    @cached_property
    def losses(self) -> Distribution:
        """The distribution of every slot."""
        return self._spread()
