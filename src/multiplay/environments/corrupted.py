"""The stochastic regime with adversarial corruption."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from multiplay.actions import ActionSet
from multiplay.arrays import FloatArray, check_instance, positive_integer
from multiplay.environments.base import Environment, Slots, World
from multiplay.environments.distributions import Distribution
from multiplay.environments.stochastic import PhasedWorld

SAMPLED_ROUNDS = 256
QUANTILES = 2049


@dataclass(frozen=True, eq=False)
class Corrupted(Environment):
    """Losses from ``before`` in rounds 1, ..., ``at``, and from ``after`` from then on.

    The clean losses L' are those of ``before`` throughout, at the same quantiles: what would have
    come with the same luck. Pseudo-regret is measured against the best fixed action for the losses
    that came.

    Examples
    --------
    >>> from multiplay import Constant, Transport
    >>> flip = Corrupted(before=Constant([0.2, 0.4]), after=Constant([0.9, 0.6]), at=30)
    >>> flip.corruption(Transport([2], [1, 1]), horizon=100, trials=1)
    array([49.])
    """

    before: Distribution
    after: Distribution
    at: int = 2000

    def __post_init__(self) -> None:
        check_instance("before", self.before, Distribution, "Uniform(0, 2 * means)")
        check_instance("after", self.after, Distribution, "Uniform(1 - 2 * means, 1)")
        positive_integer("at", self.at, "It is the last clean round.")

    def check(self, actions: ActionSet, horizon: int, trials: int) -> None:
        """One distribution for each arm, or for each trial and arm, before and after."""
        self.before.check("before", actions.d, trials)
        self.after.check("after", actions.d, trials)

    def open(self, actions: ActionSet, horizon: int, trials: Sequence[int], seed: int) -> World:
        """Start these trials at round 1."""
        rounds = [min(self.at, horizon), max(horizon - self.at, 0)]
        return PhasedWorld([self.before, self.after], rounds, actions, trials, seed)

    def corruption(self, actions: ActionSet, horizon: int, trials: int) -> FloatArray:
        """C = E sum_t max_ij |L_ij(t) - L'_ij(t)| for each trial.

        The expectation of one round is an average over 256 rounds with one fixed seed; it is exact
        where ``after`` is ``before`` shifted, as in the paper. With more units than are simulated
        one by one, some unit always meets the worst quantile.
        """
        slots = Slots(actions.n)
        if slots.every_unit:
            luck = np.random.default_rng(0).random((SAMPLED_ROUNDS, len(slots.owner)))
        else:
            luck = np.tile(np.linspace(0, 1, QUANTILES)[:, None], len(slots.owner))
        before, after = (d.spread(range(trials), slots.owner) for d in (self.before, self.after))
        worst = np.array([np.abs(after.quantile(u) - before.quantile(u)).max(axis=1) for u in luck])
        one_round = worst.mean(axis=0) if slots.every_unit else worst.max(axis=0)
        corruption: FloatArray = one_round * max(horizon - self.at, 0)
        return corruption
