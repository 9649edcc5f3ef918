"""What comes back from a play: the loss of every unit, or the totals of every arm."""

from dataclasses import dataclass

import numpy as np

from multiplay.kernels import units as kernels
from multiplay.streams import Rng
from multiplay.types import FloatArray, IntArray


@dataclass(frozen=True)
class Feedback:
    """The losses of one play in every trial.

    Attributes
    ----------
    count, total : arrays of shape (trials, d)
        How many units of each arm were played, and the sum of their losses.
    units, first
        Where every single loss is known: arm i keeps its units at
        ``units[:, first[i] : first[i] + count_i]``. Where there are too many, ``units`` is None.
    """

    count: IntArray
    total: FloatArray
    units: FloatArray | None = None
    first: IntArray | None = None

    @property
    def mean(self) -> FloatArray:
        """k_i, the average loss of arm i; 0 where it was not played."""
        average: FloatArray = self.total / np.maximum(self.count, 1)
        return average

    def flip(self, rng: Rng) -> IntArray:
        """Sum over the units of Y_ij ~ Bernoulli(L_ij), for each arm.

        From totals, Binomial(count, mean): the right mean, and at least the right variance.
        """
        if self.units is None or self.first is None:
            return rng.binomial(self.count, np.minimum(self.mean, 1.0))
        heads = np.empty(self.count.shape, dtype=np.int64)
        coins = rng.random(self.units.shape)
        kernels.count_heads(self.units, self.first, self.count, coins, heads)
        return heads
