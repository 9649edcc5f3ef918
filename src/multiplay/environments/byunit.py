"""Means by unit: the k-th unit of an arm has a distribution of its own."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np

from multiplay._support.checks import check_instance
from multiplay._support.serialization import settings
from multiplay.actions import ActionSet
from multiplay.actions.base import unit_numbers
from multiplay.environments.base import EVERY_UNIT, Environment, World, few_enough
from multiplay.environments.distributions import Bernoulli, Distribution
from multiplay.environments.stochastic import DrawnWorld
from multiplay.errors import InvalidInput
from multiplay.types import FloatArray


@dataclass(frozen=True, eq=False)
class ByUnit(Environment):
    r"""Independent losses, from one distribution for each arm and number of the unit.

    .. math::

        L_{ik}(t) &\sim D_{ik} \text{ independently for all } i, k, t, \\
        \mathbb{E}[L_{ik}(t)] &= \mu_{ik}

    So an action costs :math:`\sum_i \sum_{k \le a_i} \mu_{ik}` on average, and regret is measured
    against the action with the least such sum, by ``ActionSet.best_by_unit``. Returns diminish
    where :math:`\mu_{ik}` does not decrease in k (where it does not increase, for rewards): that is
    what policies with ``unit_means="ordered"`` assume. Other means are possible on sets of at most
    100,000 actions.

    Parameters
    ----------
    distribution
        The distributions :math:`D_{ik}`, with parameters of shape (d, K), or (trials, d, K): a row
        for each arm, and a column for each unit, at least as many as the set can play.

    Examples
    --------
    The first unit is cheap, and each further one costs more:

    >>> from multiplay import Bernoulli, Budget, ByUnit, GenCTS, simulate
    >>> world = ByUnit(Bernoulli([[0.1, 0.3, 0.9], [0.2, 0.4, 0.8]]))
    >>> policies = {"plain": GenCTS(), "ordered": GenCTS(unit_means="ordered")}
    >>> result = simulate(Budget(3, caps=[3, 3]), world, policies, horizon=300, trials=5, seed=0)
    >>> result.ranked
    ['ordered', 'plain']
    """

    stationary = True

    distribution: Distribution

    @classmethod
    def example(cls) -> Self:
        """Return a small instance, for examples with ``Transport.example()``."""
        first, units = np.array([0.1, 0.2, 0.3, 0.2, 0.1, 0.3]), np.arange(10)
        return cls(Bernoulli(first[:, None] + 0.06 * units))

    def __post_init__(self) -> None:
        check_instance("distribution", self.distribution, Distribution, "Bernoulli(means_by_unit)")
        if len(self.distribution.shape) not in (2, 3):
            expected = "parameters of shape (d, K), or (trials, d, K)"
            hint = "Give a row for each arm, and a column for each unit; or use Stochastic."
            got = f"shape {self.distribution.shape}"
            raise InvalidInput("distribution", expected, got, hint)

    def check(self, actions: ActionSet, horizon: int, trials: int) -> None:
        """Raise ``InvalidInput`` unless there is a distribution for each unit of each arm."""
        shape, most = self.distribution.shape, int(actions.n.max())
        if shape[:-1] not in ((actions.d,), (trials, actions.d)) or shape[-1] < most:
            raise InvalidInput(
                "distribution",
                f"parameters of shape ({actions.d}, K), or ({trials}, {actions.d}, K), with K at "
                f"least {most}, the most units of an arm",
                f"shape {shape}",
                "Give a row for each arm, and a column for each unit.",
            )
        if not few_enough(actions.n):
            raise InvalidInput(
                "actions",
                f"a set with at most {EVERY_UNIT} units in all, each of which has its own mean",
                f"{actions.n.sum()} units",
                "Use a smaller set, or Stochastic.",
            )
        if actions.period == 1:
            rows = self.distribution.mean.reshape(-1, actions.d, shape[-1])
            actions.best_by_unit(rows[:1])

    def open(self, actions: ActionSet, horizon: int, trials: Sequence[int], seed: int) -> World:
        """Start these trials at round 1."""
        return UnitWorld(self.distribution, actions, horizon, trials, seed)


class UnitWorld(DrawnWorld):
    """Losses by unit; the mean of an arm is the average of the means of all its units."""

    def __init__(
        self,
        distribution: Distribution,
        actions: ActionSet,
        horizon: int,
        trials: Sequence[int],
        seed: int,
    ) -> None:
        super().__init__(actions, trials, seed)
        n, owner = self.slots.n, self.slots.owner
        rows = np.asarray(trials) if len(distribution.shape) == 3 else np.zeros(len(trials), int)
        by_unit = {name: _three(value)[rows] for name, value in settings(distribution).items()}
        kind, unit = type(distribution), unit_numbers(n) - 1
        self.losses = kind(**{name: each[:, owner, unit] for name, each in by_unit.items()})
        self.unit_means = kind(**by_unit).mean
        played = np.arange(self.unit_means.shape[2]) < n[:, None]
        self.means = (self.unit_means * played).sum(axis=2) / np.maximum(n, 1)
        self.total_means = horizon * self.means

    def draw(self, u: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Draw every unit from its own distribution."""
        return self.losses.quantile(u), self.means


def _three(parameter: FloatArray) -> FloatArray:
    """Return a parameter with the trials first."""
    return parameter if parameter.ndim == 3 else parameter[None]
