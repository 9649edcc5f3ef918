"""The stochastically constrained adversarial regime: fixed gaps, alternating means."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import ArrayLike

from multiplay._support.checks import integer_setting, is_number, numbers, unit_interval
from multiplay.actions import ActionSet
from multiplay.environments.base import Environment, World, swing
from multiplay.environments.distributions import Bernoulli
from multiplay.environments.stochastic import PhasedWorld
from multiplay.errors import InvalidInput

MOST_MARKS = 30


@dataclass(frozen=True, eq=False)
class Alternating(Environment):
    r"""Bernoulli losses whose means all jump up and down together, in longer and longer phases.

    In phase p = 1, 2, ... the mean of arm i is

    .. math::

        \ell_i = \text{means}_i - (-1)^p \, \text{shift}_i
        \qquad \text{for } \text{first} \cdot \text{growth}^{\,p - 1} \text{ rounds,}

    rounded to whole ones: ``means + shift`` in odd phases and ``means - shift`` in even ones.
    Gaps between arms stay the same, but estimates of one phase mislead in the next. With means
    (1 - g) / 2 on good arms, (1 + g) / 2 on bad ones and shift (1 - g) / 2, the gap is always g,
    good arms jump between 0 and 1 - g, and bad ones between g and 1: a stochastically constrained
    adversary, as in J. Zimmert, H. Luo, C.-Y. Wei, *Beating Stochastic and Adversarial Semi-bandits
    Optimally and Simultaneously* (2019).

    Parameters
    ----------
    means
        One number for each arm, or for each trial and arm.
    shift
        How far the means move from there: a number, or one for each arm.
    first
        Rounds in the first phase.
    growth
        How many times longer the next phase is.

    Examples
    --------
    >>> from multiplay import Budget
    >>> world = Alternating([0.25, 0.75], shift=0.25, first=2, growth=2).open(
    ...     Budget(1, caps=[1, 1]), horizon=7, trials=[0], seed=0)
    >>> for t in range(7):
    ...     print(world.observe(np.array([[1, 0]])).means)
    [[0.5 1. ]]
    [[0.5 1. ]]
    [[0.  0.5]]
    [[0.  0.5]]
    [[0.  0.5]]
    [[0.  0.5]]
    [[0.5 1. ]]
    """

    means: ArrayLike
    shift: ArrayLike
    first: int = 1
    growth: float = 1.6

    @classmethod
    def example(cls) -> Self:
        """Return a small instance, for examples with ``Transport.example()``."""
        return cls([0.3, 0.4, 0.5, 0.6, 0.7, 0.4], shift=0.3, first=2)

    def __post_init__(self) -> None:
        means, shift = unit_interval("means", self.means), numbers("shift", self.shift)
        if shift.ndim > 0 and shift.shape != means.shape[-1:]:
            raise InvalidInput(
                "shift",
                "a number, or one for each arm",
                f"shape {shift.shape} for means of shape {means.shape}",
                "Give one number for all arms, or one for each.",
            )
        swing("means, shift", means, shift)
        hint = "Give a positive integer, the number of rounds in the first phase."
        integer_setting(self, "first", hint)
        if not is_number(self.growth) or not 1 <= self.growth < np.inf:
            raise InvalidInput(
                "growth",
                "a finite number of at least 1",
                repr(self.growth),
                "Give a number of at least 1; with 1 all phases have the same length.",
            )
        object.__setattr__(self, "means", means.copy())
        object.__setattr__(self, "shift", shift.copy())

    def marks(self, horizon: int) -> dict[int, str]:
        """Mark the first round of every phase but the first, unless there are too many."""
        lengths = self.lengths(horizon)[:-1]
        starts = np.cumsum(lengths) + 1
        return {} if len(starts) > MOST_MARKS else {int(t): "all means jump" for t in starts}

    def check(self, actions: ActionSet, horizon: int, trials: int) -> None:
        """Raise ``InvalidInput`` unless there is a mean for each arm, or trial and arm."""
        Bernoulli(self.means).check("means", actions.d, trials)

    def open(self, actions: ActionSet, horizon: int, trials: Sequence[int], seed: int) -> World:
        """Start these trials at round 1."""
        low, high = swing("means, shift", np.asarray(self.means), np.asarray(self.shift))
        phases = [Bernoulli(high), Bernoulli(low)]
        return PhasedWorld(phases, self.lengths(horizon), actions, trials, seed)

    def lengths(self, horizon: int) -> list[int]:
        """Return the rounds in each phase; the last one ends with the horizon.

        Examples
        --------
        >>> Alternating([0.5], shift=0.5, first=4, growth=1.5).lengths(30)
        [4, 6, 9, 11]
        """
        lengths: list[int] = []
        length, left = float(self.first), horizon
        while left > 0:
            lengths.append(min(round(length), left))
            length, left = length * self.growth, left - lengths[-1]
        return lengths
