"""What every environment has."""

from abc import ABC, abstractmethod
from collections.abc import Sequence

import numpy as np

from multiplay.actions import ActionSet
from multiplay.arrays import FloatArray, IntArray
from multiplay.feedback import Feedback
from multiplay.kernels import units as kernels

EVERY_UNIT = 2048  # up to so many units in all, each has a loss of its own in every round
SLOTS = 4  # beyond, each arm has this many, and stretches them over the units it plays


class World(ABC):
    """An environment in action, for a block of trials: one ``observe`` is one round.

    Attributes
    ----------
    means : array of shape (trials, d)
        The expected loss of one unit of each arm in the round observed last.
    total_means : array of shape (trials, d), or None
        The sum of the means over the whole horizon; None if it depends on what is played.
    """

    means: FloatArray
    total_means: FloatArray | None = None

    @abstractmethod
    def observe(self, action: IntArray) -> Feedback:
        """Play ``action`` (trials, d) in the next round, and see the losses of its units."""


class Environment(ABC):
    """A frozen description of where losses come from, the same for every policy.

    In one trial, all policies meet the same losses whatever they play, and trial k is the same
    whatever the number of trials.

    What comes may as well be rewards: the action set says which, by its ``sense``.

    Attributes
    ----------
    stationary : bool
        Whether the means are the same in every round.
    """

    stationary: bool = False

    @abstractmethod
    def check(self, actions: ActionSet, horizon: int, trials: int) -> None:
        """Raise ``InvalidInput`` if this environment does not fit."""

    @abstractmethod
    def open(self, actions: ActionSet, horizon: int, trials: Sequence[int], seed: int) -> World:
        """Start these trials at round 1."""

    def corruption(self, actions: ActionSet, horizon: int, trials: int) -> FloatArray | None:
        """Return C = E sum_t max |L_ij(t) - L'_ij(t)| for each trial, where it means something."""
        return None


class Slots:
    """Where the units of each arm have their losses: arm i at first[i], ..., first[i + 1] - 1."""

    def __init__(self, n: IntArray, every_unit: bool | None = None) -> None:
        self.every_unit = bool(n.sum() <= EVERY_UNIT) if every_unit is None else every_unit
        slots = n if self.every_unit else np.minimum(n, SLOTS)
        self.first = np.concatenate([[0], np.cumsum(slots)])
        self.owner = np.repeat(np.arange(len(n)), slots)

    def feedback(self, units: FloatArray, action: IntArray, means: FloatArray) -> Feedback:
        """Return the feedback of a play, from the losses of all slots (trials, slots)."""
        total = np.empty(action.shape)
        kernels.add_up(units, self.first, action, means, total)
        if self.every_unit:
            return Feedback(action, total, units, self.first)
        return Feedback(action, total)
