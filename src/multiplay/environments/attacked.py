"""Corruption within a budget: an attack on the losses of the best action."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, Self

import numpy as np

from multiplay._support.checks import check_instance, is_number
from multiplay.actions import ActionSet, TimeVarying
from multiplay.environments.base import LARGEST_DRAW, ROUNDING, Environment, World, largest_change
from multiplay.environments.distributions import Bernoulli, Distribution
from multiplay.environments.stochastic import DrawnWorld
from multiplay.errors import InvalidInput
from multiplay.types import FloatArray, IntArray

WHEN = ("start", "spread")
ON = ("best", "all")


@dataclass(frozen=True, eq=False)
class Attacked(Environment):
    r"""Clean losses that an attacker changes, within a budget.

    In each round the clean losses :math:`L'_{ij}` are drawn, and moved towards the target of their
    arm,

    .. math::

        L_{ij} = L'_{ij} + s \, (\text{target}_i - L'_{ij}),

    with a strength :math:`s \in [0, 1]`, which is the same for all arms and chosen before the
    losses are drawn; so the mean of the round is :math:`\ell_i + s \, (\text{target}_i - \ell_i)`.
    A round costs :math:`\max_{i, j} \lvert L_{ij} - L'_{ij} \rvert \le s`, and the attack on a
    trial never costs more than ``budget``. Pseudo-regret is measured against the best fixed action
    for the corrupted losses.

    Parameters
    ----------
    clean
        The distribution of the clean losses :math:`L'`.
    budget
        The largest sum over all rounds of :math:`\max_{i, j} \lvert L_{ij} - L'_{ij} \rvert`.
    when
        ``"start"``: as strong as possible while the budget lasts, s = min(1, left / worst), where
        worst is the largest change that s = 1 could make. ``"spread"``: the same in every round,
        s = min(1, budget / horizon).
    on
        ``"best"``: the arms of the best action for the clean means look bad: their target is 1,
        and 0 if units bring rewards. The other arms are left alone. ``"all"``: these look good
        besides, with the opposite target.

    Examples
    --------
    >>> from multiplay import Budget, Constant
    >>> one = Budget(1, caps=[1, 1])
    >>> attack = Attacked(Constant([0.5, 0.75]), budget=1.25)  # arm 1 looks bad
    >>> world = attack.open(one, horizon=5, trials=[0], seed=0)
    >>> for t in range(4):
    ...     seen = world.observe(np.array([[1, 0]]))
    ...     print(seen.feedback.total, world.corruption)
    [[1. 0.]] [0.5]
    [[1. 0.]] [1.]
    [[0.75 0.  ]] [1.25]
    [[0.5 0. ]] [1.25]
    """

    clean: Distribution
    budget: float
    when: str = "start"
    on: str = "best"

    @classmethod
    def example(cls) -> Self:
        """Return a small instance, for examples with ``Transport.example()``."""
        return cls(Bernoulli([0.2, 0.4, 0.3, 0.5, 0.6, 0.1]), budget=5)

    def __post_init__(self) -> None:
        check_instance("clean", self.clean, Distribution, "Uniform(0, 2 * means)")
        if not is_number(self.budget) or not 0 <= self.budget < np.inf:
            raise InvalidInput(
                "budget",
                "a finite number of at least 0",
                repr(self.budget),
                "Give a number of 0 or more; each round takes at most 1 of it.",
            )
        _check_choice("when", self.when, WHEN)
        _check_choice("on", self.on, ON)

    def check(self, actions: ActionSet, horizon: int, trials: int) -> None:
        """Raise ``InvalidInput`` unless there is a distribution for each arm, or trial and arm."""
        self.clean.check("clean", actions.d, trials)
        if isinstance(actions, TimeVarying):
            raise InvalidInput(
                "environment",
                f"an environment without a fixed target: the best action of {actions!r} changes",
                "Attacked",
                "Use Corrupted, or a different environment.",
            )

    def open(self, actions: ActionSet, horizon: int, trials: Sequence[int], seed: int) -> World:
        """Start these trials at round 1."""
        return AttackedWorld(self, actions, horizon, trials, seed)


class Aim(NamedTuple):
    """The target of each loss, and which losses move: arrays (trials, arms or slots)."""

    target: FloatArray
    moved: FloatArray

    def pull(self, losses: FloatArray) -> FloatArray:
        """Return target - loss where losses are moved, else 0."""
        return self.moved * (self.target - losses)

    def spread(self, owner: IntArray) -> "Aim":
        """Return the aim of every slot."""
        return Aim(self.target[:, owner], self.moved[:, owner])


class AttackedWorld(DrawnWorld):
    """Losses that are drawn, and then moved towards their targets as far as the budget allows."""

    corruption: FloatArray

    def __init__(
        self, attack: Attacked, actions: ActionSet, horizon: int, trials: Sequence[int], seed: int
    ) -> None:
        super().__init__(actions, trials, seed)
        arms = attack.clean.spread(trials, np.arange(actions.d))
        self.clean = attack.clean.spread(trials, self.slots.owner)
        best = actions.best(arms.mean) > 0
        target = (best == (actions.sense == "min")).astype(float)
        aim = Aim(target, (best | (attack.on == "all")).astype(float))
        self.aim = aim.spread(self.slots.owner)
        self.clean_means, self.pull_means = arms.mean, aim.pull(arms.mean)
        ends = [aim.pull(arms.quantile(np.full(best.shape, u))) for u in (0, LARGEST_DRAW)]
        self.worst = np.abs(ends)[:, :, actions.n > 0].max(axis=(0, 2), initial=0.0)
        self.corruption = np.zeros(len(trials))
        self.budget, self.pace = attack.budget, None
        if attack.when == "spread":
            self.pace = np.full(len(trials), min(1.0, attack.budget / horizon))
            self.total_means = horizon * self._means(self.pace)

    def draw(self, u: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Draw clean losses, move them, and add the cost to the corruption."""
        strength, clean = self._strength(), self.clean.quantile(u)
        losses: FloatArray = clean + strength[:, None] * self.aim.pull(clean)
        self.corruption = self.corruption + self._cost(losses, clean, strength)
        return losses, self._means(strength)

    def _cost(self, losses: FloatArray, clean: FloatArray, strength: FloatArray) -> FloatArray:
        """Return max_ij |L_ij - L'_ij|; among very many units some unit has the worst quantile."""
        if self.slots.every_unit:
            return largest_change(losses, clean)
        worst: FloatArray = strength * self.worst
        return worst

    def _strength(self) -> FloatArray:
        """Return s for each trial, from what was spent in earlier rounds."""
        if self.pace is not None:
            return self.pace
        left = self.budget - self.corruption
        strength: FloatArray = np.clip(left / np.maximum(self.worst, ROUNDING), 0, 1)
        return strength

    def _means(self, strength: FloatArray) -> FloatArray:
        means: FloatArray = self.clean_means + strength[:, None] * self.pull_means
        return means


def _check_choice(argument: str, choice: object, allowed: tuple[str, ...]) -> None:
    if not isinstance(choice, str) or choice not in allowed:
        raise InvalidInput(
            argument, " or ".join(map(repr, allowed)), repr(choice), "Leave it out for the default."
        )
