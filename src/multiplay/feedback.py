"""What comes back from a play: the loss of every unit, of every arm, or of the whole round."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from multiplay.errors import InvalidInput
from multiplay.kernels import units as kernels
from multiplay.streams import Rng
from multiplay.types import FloatArray, IntArray


@dataclass(frozen=True, init=False)
class Feedback:
    """The losses of one play in every trial.

    Attributes
    ----------
    count : array of shape (trials, d)
        How many units of each arm were played.
    total : array of shape (trials, d), or (trials, 1)
        The sum of the losses seen of each arm; or that of all arms, where nothing else is known.
    units, first
        Where every single loss is known: arm i keeps those seen at
        ``units[:, first[i] : first[i] + seen_i]``. Where there are too many, ``units`` is None.
    seen : array of shape (trials, d)
        How many units of each arm were seen, at most ``count``; all of them if not given.
    """

    count: IntArray
    total: FloatArray
    units: FloatArray | None
    first: IntArray | None
    seen: IntArray

    def __init__(  # of every round: faster than setting one frozen field after the other
        self,
        count: IntArray,
        total: FloatArray,
        units: FloatArray | None = None,
        first: IntArray | None = None,
        seen: IntArray | None = None,
    ) -> None:
        seen = count if seen is None else seen
        self.__dict__.update(count=count, total=total, units=units, first=first, seen=seen)

    @property
    def complete(self) -> bool:
        """Whether every unit was seen for certain: nobody said that some were not."""
        return self.seen is self.count

    def extrapolated(self) -> Feedback:
        """Return totals as if unseen units had lost what those seen of their arm lost on average.

        An arm of which nothing was seen counts as not played: nothing is known of it.

        Examples
        --------
        >>> some = Feedback(np.array([[4, 2]]), np.array([[0.5, 0.0]]), seen=np.array([[1, 0]]))
        >>> full = some.extrapolated()
        >>> full.count, full.total
        (array([[4, 0]]), array([[2., 0.]]))
        """
        if self.complete:
            return self
        count = np.where(self.seen >= 1, self.count, 0)
        return Feedback(count, self.mean * count)

    @property
    def round_total(self) -> FloatArray:
        """What all units of the round lost together, for each trial."""
        together: FloatArray = self.total.sum(axis=1)
        return together

    def round_only(self) -> Feedback:
        """Return what is known where only the total of the round is reported (full bandit).

        Examples
        --------
        >>> arms = Feedback(count=np.array([[2, 0, 1]]), total=np.array([[0.5, 0.0, 0.25]]))
        >>> arms.round_only().total
        array([[0.75]])
        """
        return Feedback(self.count, self.round_total[:, None])

    @property
    def mean(self) -> FloatArray:
        """k_i, the average of the losses seen of arm i; 0 where none was seen."""
        if self.total.shape != self.count.shape:
            raise InvalidInput(
                "feedback",
                "the total of each arm",
                "the total of the round only",
                "Use a policy that learns from the round, such as LinTS.",
            )
        average: FloatArray = self.total / np.maximum(self.seen, 1)
        return average

    def flip(self, rng: Rng) -> IntArray:
        """Sum over the units seen of Y_ij ~ Bernoulli(L_ij), for each arm.

        From totals, Binomial(seen, mean): the right mean, and at least the right variance.
        """
        if self.units is None or self.first is None:
            return rng.binomial(self.seen, np.minimum(self.mean, 1.0))
        heads = np.empty(self.seen.shape, dtype=np.int64)
        coins = rng.random(self.units.shape)
        kernels.count_heads(self.units, self.first, self.seen, coins, heads)
        return heads
