"""Averages and Normal: average losses of the arms, and normal draws around them."""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from multiplay._support.checks import is_number
from multiplay.actions import ActionSet
from multiplay.errors import InvalidInput
from multiplay.feedback import Feedback, arm_totals
from multiplay.kernels import averages as kernels
from multiplay.posteriors.base import Additive, as_means, seeds
from multiplay.random import Rng, standard_normal
from multiplay.types import Arrays, BoolArray, FloatArray

FADED = kernels.FADED


@dataclass(frozen=True, repr=False)
class Averages(Additive):
    r"""The average loss of each arm, :math:`S_i / N_i`, of the units that were seen.

    :math:`N_i` is the number of units seen and :math:`S_i` the sum of their losses. Units that were
    played and not seen count for nothing. Every arm must be seen once; an arm with
    :math:`N_i < 0.1` counts as unseen again.

    Parameters
    ----------
    memory
        Which reports count.

    Examples
    --------
    >>> import numpy as np
    >>> from multiplay import Averages, Budget
    >>> state = {"count": np.array([[4.0, 2.0]]), "sum": np.array([[1.0, 1.0]])}
    >>> Averages().mean(Budget(1, [1, 1]), state)
    array([[0.25, 0.5 ]])
    """

    names: ClassVar[tuple[str, ...]] = ("count", "sum")
    sees_first = True

    def empty(self, trials: int, d: int) -> Arrays:
        """Return :math:`N_i = S_i = 0`; t = 1 is the round to be played."""
        return {"t": np.ones(trials, dtype=np.int64), **super().empty(trials, d)}

    def gains(self, feedback: Feedback, rng: Rng) -> tuple[NDArray[Any], ...]:
        """Return the units seen, and the sum of their losses."""
        return feedback.seen, feedback.total

    def counts(self, units: FloatArray, total: FloatArray) -> tuple[FloatArray, ...]:
        """Return the same."""
        return units, total

    def add(self, state: Arrays, feedback: Feedback, rng: Rng) -> None:
        """Count every unit."""
        N = state["count"]
        kernels.count(feedback.seen, arm_totals(feedback, N), N, state["sum"])

    def drop(self, state: Arrays, slots: list[NDArray[np.int64]]) -> None:
        """Subtract what is in some slots; no rounding is left where nothing is."""
        super().drop(state, slots)
        state["sum"] *= state["count"] > 0

    def mean(self, actions: ActionSet, state: Arrays, rng: Rng | None = None) -> FloatArray:
        """Return S_i / N_i; 0 for an arm never seen."""
        if not self.memory.follows:
            return averages(state)
        N, S = self.sums(state)[:2]
        average: FloatArray = S / samples(N)
        return average

    def bound(
        self, alpha: float, actions: ActionSet, state: Arrays, rng: Rng | None = None
    ) -> FloatArray:
        """Return the lower confidence bounds of losses, or the upper ones of rewards."""
        t, (discount, window) = state["t"], self.memory.limits
        N, S = self.sums(state) if self.memory.follows else (state["count"], state["sum"])
        bound = np.empty(N.shape)
        confidence_bounds = kernels.confidence_bounds
        confidence_bounds(t, N, S, discount, window, float(alpha), actions.sign, bound)
        return bound

    def unseen(self, actions: ActionSet, state: Arrays) -> BoolArray:
        """Return the arms that can be played and were never seen, (trials, d)."""
        never: BoolArray = (self.units(state) < FADED) & (actions.n >= 1)
        return never

    def any_unseen(self, actions: ActionSet, state: Arrays) -> bool:
        """Return whether there is such an arm, in any trial."""
        N = self.units(state) if self.memory.follows else state["count"]
        return kernels.any_unseen(N, actions._n)

    def units(self, state: Arrays) -> FloatArray:
        """Return the number of units of each arm that were seen and count."""
        return self.sums(state)[0] if self.memory.follows else state["count"]

    def believed(self, state: Arrays) -> FloatArray:
        """Return :math:`(1/2 + S_i) / (1 + N_i)`, where :math:`N_i` losses sum to :math:`S_i`."""
        N, S = self.sums(state)[:2]
        prediction: FloatArray = (0.5 + S) / (1 + N)
        return prediction


@dataclass(frozen=True, repr=False)
class Normal(Averages):
    r"""A normal posterior of each arm around its average.

    .. math::

        \mu_i \sim \mathcal{N}\Bigl(\hat{\mu}_i, \frac{\beta}{4 N_i}\Bigr).

    1/4 is the largest variance of a loss in [0, 1]. An objective that is not linear takes draws cut
    to [0, 1], for its means are chances.

    Parameters
    ----------
    memory
        Which reports count.
    beta
        :math:`\beta`, how far to draw, positive.

    Examples
    --------
    >>> import numpy as np
    >>> from multiplay import Budget, Normal
    >>> state = {"count": np.array([[25.0, 2500.0]]), "sum": np.array([[5.0, 500.0]])}
    >>> Normal().deviation(Budget(1, [1, 1]), state)
    array([[0.1 , 0.01]])
    """

    beta: float = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        if not (is_number(self.beta) and 0 < self.beta < np.inf):
            raise InvalidInput("beta", "a positive number", repr(self.beta), "Leave it out for 1.")

    def draw(self, actions: ActionSet, state: Arrays, rng: Rng) -> FloatArray:
        """Return one draw of the mean loss of each arm."""
        if self.memory.follows:
            state = self._as_sums(state, *self.sums(state, rng))
        normal = standard_normal(state["count"].shape, rng)
        return self._at(normal, actions, state)

    def draw_shared(self, actions: ActionSet, state: Arrays, rng: Rng) -> FloatArray:
        """Return the draw of each arm at one quantile for all arms of a trial."""
        follows = self.memory.follows
        z = seeds(len(state["t"]), rng, numbers=2 if follows else 1)
        if follows:
            state = self._as_sums(state, *self.sums(state, shared=z[:, 1:]))
        return self._at(z[:, :1], actions, state)

    def _as_sums(self, state: Arrays, N: FloatArray, S: FloatArray) -> Arrays:
        """Return a state with the sums of a hypothesis."""
        return {**state, "count": N, "sum": S}

    def _at(self, normal: FloatArray, actions: ActionSet, state: Arrays) -> FloatArray:
        """Return the draws for normal numbers; the state has sums."""
        theta: FloatArray = averages(state) + self.spread(actions, state) * normal
        return as_means(actions, theta)

    def spread(self, actions: ActionSet, state: Arrays) -> FloatArray:
        r"""Return :math:`\sqrt{\beta / (4 N_i)}`; that of one sample for an arm unseen."""
        deviation: FloatArray = np.sqrt(self.beta / (4 * samples(state["count"])))
        return deviation

    def deviation(self, actions: ActionSet, state: Arrays) -> FloatArray:
        """Return the standard deviation of the posterior."""
        if self.memory.follows:
            state = self._as_sums(state, *self.sums(state))
        return self.spread(actions, state)

    def interval(self, state: Arrays, level: float) -> tuple[FloatArray, FloatArray] | None:
        """Return the part of the normal distribution in the middle, cut to [0, 1].

        An arm unseen has [0, 1].
        """
        from scipy.special import ndtri

        N, S = self.sums(state)[:2]
        mean = S / samples(N)
        width = ndtri((1 + level) / 2) * np.sqrt(self.beta / (4 * samples(N)))
        low = np.where(N < FADED, 0.0, np.clip(mean - width, 0.0, 1.0))
        high = np.where(N < FADED, 1.0, np.clip(mean + width, 0.0, 1.0))
        return low, high


def count(state: Arrays, feedback: Feedback) -> None:
    """Add the units seen to N_i, and the sum of their losses to S_i."""
    N = state["count"]
    kernels.count(feedback.seen, arm_totals(feedback, N), N, state["sum"])


def averages(state: Arrays) -> FloatArray:
    """Return S_i / N_i, the average loss of a unit so far; 0 for an arm never seen."""
    average: FloatArray = state["sum"] / samples(state["count"])
    return average


def samples(N: FloatArray) -> FloatArray:
    """Return N_i; 1 for an arm that counts as unseen, so that one can divide by it."""
    return np.where(N < FADED, 1.0, N)


def predicted(state: Arrays) -> FloatArray:
    """Return (1/2 + S_i) / (1 + N_i), by least squares; 1/2 for an arm never seen."""
    prediction: FloatArray = (0.5 + state["sum"]) / (1 + state["count"])
    return prediction
