"""The base class of posteriors, by what memories and rules call; posteriors of sums that add up."""

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from multiplay._support.checks import check_instance
from multiplay._support.serialization import settings
from multiplay.actions import ActionSet
from multiplay.beliefs.restart import Restart
from multiplay.feedback import Feedback
from multiplay.kernels.moments import AVERAGE, MEAN, UNITS, N
from multiplay.posteriors.memories import COMMON, GAPS, Keep, Memory, picked, settled
from multiplay.random import Rng, standard_normal
from multiplay.types import Arrays, BoolArray, FloatArray


@dataclass(frozen=True, repr=False)
class Posterior(ABC):
    r"""What is believed of each arm, from the reports that its memory lets count.

    A subclass defines the methods that memories and rules call, as far as it has them. A policy
    with a memory or a rule that calls another one is refused when it is made.

    =================  ====================================================  =====================
    method             what it does                                          called by
    =================  ====================================================  =====================
    ``empty``          return the sums before the first round                all memories
    ``add``            add the losses of a round                             all memories
    ``reset``          set the sums of some arms                             ``restart``
    ``fade``           multiply the sums                                     ``Discount``
    ``room``           return room for what each of W rounds adds            ``Window``
    ``put``, ``drop``  add losses to a slot; subtract slots                  ``Window``
    ``counts``         return what units with a total loss add to each sum   ``Changes``
    ``draw``           return one draw of the mean loss of each arm          ``Draw()``
    ``draw_shared``    return it at one quantile for all arms                ``Draw(True)``
    ``mean``           return the mean loss of each arm                      ``Mean, Optimism``
    ``deviation``      return the standard deviation of what is believed     ``Optimism``
    ``bound``          return the best mean within a confidence bound        ``Bound``
    =================  ====================================================  =====================

    Parameters
    ----------
    memory
        Which reports count.

    Attributes
    ----------
    sees_first : bool
        Whether each arm must be seen once before its mean is known: ``unseen`` says which were not.
    by_unit : bool
        Whether each unit of an arm has a mean of its own: draws have shape (trials, d, K).
    restarts : bool
        Whether single arms can forget earlier reports, by ``reset``.
    shared : tuple of strings
        The arrays of the state that belong to all arms together.
    """

    sees_first: ClassVar[bool] = False
    by_unit: ClassVar[bool] = False
    restarts: ClassVar[bool] = True
    pools: ClassVar[bool] = False
    shared: ClassVar[tuple[str, ...]] = (COMMON, GAPS)

    memory: Memory = field(default_factory=Keep)

    def __post_init__(self) -> None:
        check_instance("memory", self.memory, Memory, "Discount(0.99)")

    def __repr__(self) -> str:
        given = [f"{k}={v!r}" for k, v in settings(self).items() if v != Keep()]
        return f"{type(self).__name__}({', '.join(given)})"

    def lacks(self, method: str) -> str | None:
        """Return why a method cannot be called, as the end of a sentence; None if it can."""
        return None if hasattr(self, method) else f"has no {method}()"

    def start(self, actions: ActionSet, trials: int) -> Arrays:
        """Return the state before the first round."""
        return self.memory.start(self, trials, actions.d)

    @abstractmethod
    def empty(self, trials: int, d: int) -> Arrays:
        """Return the sums of arms of which nothing is known."""

    @abstractmethod
    def add(self, state: Arrays, feedback: Feedback, rng: Rng) -> None:
        """Add the losses of a round, or of an external plan."""

    def reset(self, state: Arrays, restart: Restart) -> None:
        """Compute the sums of some arms again, from the reports of a restart."""
        raise NotImplementedError(f"{type(self).__name__} does not forget reports of single arms")

    def taught(self, state: Arrays, offset: FloatArray) -> Arrays:
        """Return what the state of arms that are absent from a round teaches of those in it."""
        return {}

    def unseen(self, actions: ActionSet, state: Arrays) -> BoolArray:
        """Return the arms that can be played and must be seen first, (trials, d)."""
        raise NotImplementedError(f"{type(self).__name__} has no arms that must be seen first")

    def optimistic(
        self, c: float, actions: ActionSet, state: Arrays, rng: Rng | None = None
    ) -> FloatArray:
        """Return the mean of each arm less (for rewards: plus) c standard deviations."""
        mean = self.mean(actions, state)  # type: ignore[attr-defined]
        deviation = self.deviation(actions, state)  # type: ignore[attr-defined]
        return as_means(actions, mean - actions.sign * c * deviation)

    def believed(self, state: Arrays) -> FloatArray | None:
        """Return the mean loss of each arm without a set; None if there is no such belief."""
        return None

    def interval(self, state: Arrays, level: float) -> tuple[FloatArray, FloatArray] | None:
        """Return the interval of the mean loss of each arm; None if there is none."""
        return None


@dataclass(frozen=True, repr=False)
class Additive(Posterior):
    """A posterior of sums that only add up: all memories work with it.

    A subclass names its ``sums``, and defines ``gains``, ``counts`` and what rules call.

    Attributes
    ----------
    names : tuple of strings
        The names of the sums in the state, each of shape (trials, d).
    prior : float
        The value of each of them before the first round.

    Examples
    --------
    The share of units whose loss is above one half:

    >>> from dataclasses import dataclass
    >>> from multiplay import Changes, Composed, Draw, Learner, Transport
    >>> @dataclass(frozen=True, repr=False)
    ... class Coins(Additive):
    ...     names, prior = ("p", "q"), 1.0
    ...     def gains(self, feedback, rng):
    ...         heads = feedback.flip(rng)
    ...         return heads, feedback.seen - heads
    ...     def counts(self, units, total):
    ...         return total, units - total
    ...     def draw(self, actions, state, rng):
    ...         return rng.beta(*self.sums(state, rng))
    >>> learner = Learner(Transport([1, 4, 5], [4, 6]), Composed(Coins(Changes()), Draw()))
    >>> sum(learner.ask().plan.values())
    10
    """

    names: ClassVar[tuple[str, ...]] = ()
    prior: ClassVar[float] = 0.0

    def empty(self, trials: int, d: int) -> Arrays:
        """Return sums that have the value of the prior."""
        return {name: np.full((trials, d), self.prior) for name in self.names}

    @abstractmethod
    def gains(self, feedback: Feedback, rng: Rng) -> tuple[NDArray[Any], ...]:
        """Return what the losses of a round add to each sum."""

    @abstractmethod
    def counts(self, units: FloatArray, total: FloatArray) -> tuple[FloatArray, ...]:
        """Return what units with a total loss add to each sum, where there is no report of them."""

    def sums(
        self, state: Arrays, rng: Rng | None = None, shared: FloatArray | None = None
    ) -> tuple[FloatArray, ...]:
        """Return the sums.

        Where changes are followed, they are those of one hypothesis of each arm: picked by its
        weight with ``rng``, or with one normal number for all arms of a trial, ``shared``; the one
        that is settled if neither is given.
        """
        if not self.memory.follows:
            return tuple(state[name] for name in self.names)
        if shared is not None:
            from scipy.special import ndtr

            units, mean = picked(state, np.asarray(ndtr(shared), dtype=float), by_mean=True)
        elif rng is not None:
            units, mean = picked(state, rng.random(state["marks"].shape[:2]))
        else:
            units, mean = settled(state)
        return tuple(self.prior + gain for gain in self.counts(units, units * mean))

    def add(self, state: Arrays, feedback: Feedback, rng: Rng) -> None:
        """Add the gains to the sums."""
        for name, gain in zip(self.names, self.gains(feedback, rng), strict=True):
            state[name] += gain

    def fade(self, state: Arrays, weight: float) -> None:
        """Let what was added count ``weight`` times as much."""
        for name in self.names:
            state[name][...] = self.prior + weight * (state[name] - self.prior)

    def room(self, trials: int, d: int, window: int) -> Arrays:
        """Return room for what each round of a window adds to each sum."""
        return {f"recent_{name}": np.zeros((trials, d, window)) for name in self.names}

    def put(self, state: Arrays, slot: NDArray[np.int64], feedback: Feedback, rng: Rng) -> None:
        """Add the gains to the sums and to a slot."""
        trials = np.arange(len(slot))
        for name, gain in zip(self.names, self.gains(feedback, rng), strict=True):
            state[name] += gain
            state[f"recent_{name}"][trials, :, slot] += gain

    def drop(self, state: Arrays, slots: list[NDArray[np.int64]]) -> None:
        """Subtract what is in some slots, and empty them."""
        for slot in slots:
            trials = np.arange(len(slot))
            for name in self.names:
                state[name] -= state[f"recent_{name}"][trials, :, slot]
                state[f"recent_{name}"][trials, :, slot] = 0.0

    def reset(self, state: Arrays, restart: Restart) -> None:
        """Compute the sums of some arms again, and those of each round of a window."""
        n, mean = restart.sums[:, N], restart.sums[:, MEAN]
        for name, gain in zip(self.names, self.counts(n, n * mean), strict=True):
            state[name][:, restart.places] = self.prior + gain
        if restart.kept.shape[1] and f"recent_{self.names[0]}" in state:
            a, y = restart.kept[:, :, UNITS], restart.kept[:, :, AVERAGE]
            for name, gain in zip(self.names, self.counts(a, a * y), strict=True):
                state[f"recent_{name}"][:, restart.places] = gain


def seeds(trials: int, rng: Rng, numbers: int = 1) -> FloatArray:
    r"""Return z of each trial, shape (trials, numbers), which all its arms share.

    An arm draws the quantile :math:`F_i^{-1}(\Phi(z))` of its posterior :math:`F_i`, so that its
    draws are distributed as with a seed of its own. But all draws rise and fall together: they are
    all at most the means :math:`\ell_i`, which is optimism for losses, with probability
    :math:`\min_i F_i(\ell_i)`, where independent draws have :math:`\prod_i F_i(\ell_i)`, which
    falls exponentially in the number of arms. For rewards optimism is a high z. Since z and -z are
    as likely, both senses use the same numbers.
    """
    return standard_normal((trials, numbers), rng)


def as_means(actions: ActionSet, theta: FloatArray) -> FloatArray:
    """Return draws of the means, cut to [0, 1] where the value of an action is not affine."""
    return theta if actions.affine else np.clip(theta, 0.0, 1.0)
