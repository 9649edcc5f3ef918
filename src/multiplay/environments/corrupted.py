"""Corruption by a switch: a different distribution from some round on."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np

from multiplay._support.checks import check_instance, integer_setting
from multiplay.actions import ActionSet
from multiplay.environments.base import LARGEST_DRAW, Environment, World, largest_change
from multiplay.environments.distributions import Distribution, Uniform
from multiplay.environments.stochastic import PhasedWorld
from multiplay.types import FloatArray

QUANTILES = 2049


@dataclass(frozen=True, eq=False)
class Corrupted(Environment):
    r"""Losses from one distribution up to some round, and from a different one afterwards.

    With F and G the distributions ``before`` and ``after`` of arm i, and :math:`U_{ij}(t)`
    independent and uniform on [0, 1],

    .. math::

        L_{ij}(t) &= \begin{cases}
            F^{-1}(U_{ij}(t)) & \text{for } t \le \text{at}, \\
            G^{-1}(U_{ij}(t)) & \text{for } t > \text{at},
        \end{cases} \\
        L'_{ij}(t) &= F^{-1}(U_{ij}(t)), \\
        C &= \sum_t \max_{i, j} \lvert L_{ij}(t) - L'_{ij}(t) \rvert.

    The clean losses :math:`L'` are those of ``before`` throughout, at the same quantiles;
    C is the corruption. Pseudo-regret is measured against the best fixed action for the corrupted
    losses.

    Parameters
    ----------
    before, after
        Distributions: for all arms, for each arm, or for each trial and arm.
    at
        The last clean round.

    See Also
    --------
    Attacked : Corruption on a budget.

    Examples
    --------
    >>> from multiplay import Constant, Transport
    >>> plans = Transport([2], [1, 1])
    >>> flip = Corrupted(before=Constant([0.25, 0.5]), after=Constant([1.0, 0.5]), at=2)
    >>> world = flip.open(plans, horizon=6, trials=[0], seed=0)
    >>> for t in range(6):
    ...     seen = world.observe(plans.argmin([[0, 0]]))
    >>> world.corruption
    array([3.])
    """

    before: Distribution
    after: Distribution
    at: int = 2000

    @classmethod
    def example(cls) -> Self:
        """Return a small instance, for examples with ``Transport.example()``."""
        half = [0.2, 0.4, 0.3, 0.5, 0.6, 0.1]
        return cls(before=Uniform(0, half), after=Uniform(half, 1), at=10)

    def __post_init__(self) -> None:
        check_instance("before", self.before, Distribution, "Uniform(0, 2 * means)")
        check_instance("after", self.after, Distribution, "Uniform(1 - 2 * means, 1)")
        integer_setting(self, "at", "Give a positive integer, the last clean round.")

    def marks(self, horizon: int) -> dict[int, str]:
        """Mark the first corrupted round."""
        first = self.at + 1
        return {first: f"corruption from round {first}"} if first <= horizon else {}

    def check(self, actions: ActionSet, horizon: int, trials: int) -> None:
        """Raise ``InvalidInput`` unless both distributions fit the arms and trials."""
        self.before.check("before", actions.d, trials)
        self.after.check("after", actions.d, trials)

    def open(self, actions: ActionSet, horizon: int, trials: Sequence[int], seed: int) -> World:
        """Start these trials at round 1."""
        return CorruptedWorld(self.before, self.after, self.at, actions, horizon, trials, seed)


class CorruptedWorld(PhasedWorld):
    """One distribution, then a different one, with the corruption so far."""

    corruption: FloatArray

    def __init__(
        self,
        before: Distribution,
        after: Distribution,
        at: int,
        actions: ActionSet,
        horizon: int,
        trials: Sequence[int],
        seed: int,
    ) -> None:
        rounds = [min(at, horizon), max(horizon - at, 0)]
        super().__init__([before, after], rounds, actions, trials, seed)
        self.last_fused = at
        self.clean = before.spread(trials, self.slots.owner)
        self.corruption = np.zeros(len(trials))
        if not self.slots.every_unit:
            arms = np.flatnonzero(actions.n)
            self.worst = _worst_change(before.spread(trials, arms), after.spread(trials, arms))

    def draw(self, u: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Draw from the distribution of this phase, and compare with the clean losses."""
        losses, means = super().draw(u)
        if self.round > self.last_fused:
            self.corruption = self.corruption + self._change(losses, u)
        return losses, means

    def _change(self, losses: FloatArray, u: FloatArray) -> FloatArray:
        """Return max_ij |L_ij - L'_ij|; among very many units some unit has the worst quantile."""
        if self.slots.every_unit:
            return largest_change(losses, self.clean.quantile(u))
        return self.worst


def _worst_change(before: Distribution, after: Distribution) -> FloatArray:
    """Return the largest change of any arm at any quantile, for each trial."""
    worst = np.zeros(len(before.mean))
    for level in np.linspace(0, LARGEST_DRAW, QUANTILES):
        u = np.full(before.shape, level)
        worst = np.maximum(worst, largest_change(after.quantile(u), before.quantile(u)))
    return worst
