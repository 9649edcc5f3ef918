"""Base classes of environments, and the losses of single units in a round."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from functools import cached_property
from typing import NamedTuple, Self

import numpy as np

from multiplay.actions import ActionSet
from multiplay.environments.distributions import Law
from multiplay.errors import InvalidInput
from multiplay.features.rows import FeatureRows
from multiplay.feedback import Feedback, Units
from multiplay.kernels import losses
from multiplay.kernels import units as kernels
from multiplay.random import Streams
from multiplay.types import FloatArray, IntArray

EVERY_UNIT = 2048  # up to this many units in all, each has a loss of its own in every round
SLOTS = 4  # beyond, an arm draws this many losses, and spreads them over the units it plays
MANY = 32  # slots an arm: from here on their losses are not stored
LARGEST_DRAW = 1 - 2**-53  # uniform numbers are below 1
ROUNDING = 1e-9


def few_enough(n: IntArray) -> bool:
    """Return whether there are so few units that each has a loss of its own in every round."""
    return bool(n.sum() <= EVERY_UNIT)


class Observation(NamedTuple):
    r"""The outcome of one round. Policies get the feedback only.

    .. math::

        \text{means}_i = \mathbb{E}[L_{ij}], \qquad
        \text{averages}_i = \frac{1}{n_i} \sum_{j=1}^{n_i} L_{ij}

    Attributes
    ----------
    feedback : Feedback
        The losses of the units that were played.
    means : array of shape (trials, d)
        The expected loss of one unit of each arm.
    averages : array of shape (trials, d)
        The average loss of all :math:`n_i` units of each arm, played or not.

    Examples
    --------
    >>> from multiplay import Bernoulli, Budget, Stochastic
    >>> coins = Stochastic(Bernoulli([0.5, 0.25]))
    >>> world = coins.open(Budget(2, caps=[2, 2]), horizon=5, trials=[0], seed=6)
    >>> seen = world.observe(np.array([[2, 0]]))
    >>> seen.feedback.total  # arm 2 is not played
    array([[1., 0.]])
    >>> seen.means, seen.averages
    (array([[0.5 , 0.25]]), array([[0.5, 0.5]]))
    """

    feedback: Feedback
    means: FloatArray
    averages: FloatArray


class World(ABC):
    r"""The state of an environment for a block of trials: one ``observe`` is one round.

    .. math::

        C = \sum_s \max_{i, j} \lvert L_{ij}(s) - L'_{ij}(s) \rvert

    is the corruption so far: how far the losses :math:`L` of all units, played or not, are from the
    clean losses :math:`L'`.

    Attributes
    ----------
    total_means : array of shape (trials, d), or None
        The sum of the means over the whole horizon; None if it is only known at the end.
    corruption : array of shape (trials,), or None
        C over the rounds s observed so far; None where clean losses :math:`L'` are not defined.
    unit_means : array of shape (trials, d, K), or None
        The mean of the k-th unit of each arm, the same in every round, where means depend on k.
        The ``means`` of an arm are then the averages of those of its :math:`n_i` units.

    Examples
    --------
    >>> class Fading(World):
    ...     '''Every unit loses 1/2 in round 1, 1/4 in round 2, and so on.'''
    ...     loss = 1.0
    ...     def observe(self, action):
    ...         self.loss /= 2
    ...         means = np.full(action.shape, self.loss)
    ...         return Observation(Feedback(action, action * means), means, averages=means)
    >>> world = Fading()
    >>> for t in range(2):
    ...     print(world.observe(np.array([[2, 1]])).feedback.total)
    [[1.  0.5]]
    [[0.5  0.25]]
    """

    total_means: FloatArray | None = None
    corruption: FloatArray | None = None
    unit_means: FloatArray | None = None

    @abstractmethod
    def observe(self, action: IntArray) -> Observation:
        """Play ``action`` (trials, d) in the next round, and return its outcome."""

    def contexts(self, t: int) -> FeatureRows | None:
        """Return the features of all arms in round t; None, the default, if there are none.

        t is the next round, or the last one that was observed. The features do not depend on the
        actions.
        """
        return None


class Environment(ABC):
    r"""The source of losses: an immutable description, the same for every policy.

    In round t, unit j of arm i has the loss :math:`L_{ij}(t) \in [0, 1]`, and the action a costs

    .. math::

        \sum_{i=1}^d \sum_{j=1}^{a_i} L_{ij}(t).

    In one trial, all policies get the same losses whatever they play (unless an adversary is
    ``adaptive``), and trial k is the same for any number of trials.

    Losses may as well be rewards: the ``sense`` of the action set decides.

    Attributes
    ----------
    stationary : bool
        Whether the means are the same in every round.
    contextual : bool
        Whether the best action follows from the features of a round. Then regret is measured
        against the best action of each round by default.

    Examples
    --------
    >>> from multiplay import Bernoulli, Budget, Stochastic
    >>> class FairCoins(Environment):
    ...     '''Every unit loses 0 or 1, with even chances.'''
    ...     stationary = True
    ...     def check(self, actions, horizon, trials):
    ...         pass  # it fits all sets
    ...     def open(self, actions, horizon, trials, seed):
    ...         return Stochastic(Bernoulli(0.5)).open(actions, horizon, trials, seed)
    >>> world = FairCoins().open(Budget(3, caps=[3, 2]), horizon=10, trials=[0], seed=0)
    >>> world.observe(np.array([[2, 1]])).means
    array([[0.5, 0.5]])
    """

    stationary: bool = False
    contextual: bool = False

    @classmethod
    def example(cls) -> Self:
        """Return a small instance, for examples with ``Transport.example()``.

        Examples
        --------
        >>> from multiplay import GenCTS, Stochastic, Transport, simulate
        >>> result = simulate(Transport.example(), Stochastic.example(), {"GenCTS": GenCTS()},
        ...                   horizon=20, trials=2)
        """
        return cls()

    @property
    def adaptive(self) -> bool:
        """Whether losses depend on the actions played; otherwise all policies get the same."""
        return False

    def shows_units(self, actions: ActionSet) -> bool:
        """Return whether feedback has the loss of every single unit, not only totals."""
        return few_enough(actions.n)

    def marks(self, horizon: int) -> dict[int, str]:
        """Return texts that figures show at some rounds; empty by default."""
        return {}

    @abstractmethod
    def check(self, actions: ActionSet, horizon: int, trials: int) -> None:
        """Raise ``InvalidInput`` if this environment does not fit."""

    @abstractmethod
    def open(self, actions: ActionSet, horizon: int, trials: Sequence[int], seed: int) -> World:
        """Start these trials at round 1."""


class Slots:
    """The slots of the units' losses: those of arm i are first[i], ..., first[i + 1] - 1."""

    def __init__(self, n: IntArray, every_unit: bool | None = None) -> None:
        self.n = n.copy()  # kernels are compiled for writable arrays
        self.every_unit = few_enough(n) if every_unit is None else every_unit
        slots = n if self.every_unit else np.minimum(n, SLOTS)
        self.first = np.concatenate([[0], np.cumsum(slots)])
        self.size = int(self.first[-1])
        self.many = self.size > MANY * len(n)

    @cached_property
    def owner(self) -> IntArray:
        """The arm of every slot."""
        return np.repeat(np.arange(len(self.n)), np.diff(self.first))

    def uniforms(self, streams: Streams, t: int) -> FloatArray:
        """Return a uniform number for every slot in round t, (trials, slots)."""
        shape = len(streams.state), self.size
        if not self.many:
            return streams.random(shape)
        uniforms = np.empty(shape)
        losses.draw_again(streams.state, t, self.first, uniforms)
        return uniforms

    def drawn(
        self, streams: Streams, t: int, law: Law, action: IntArray, means: FloatArray
    ) -> Observation:
        """Return the outcome of round t: the law at the quantiles ``uniforms``, in one kernel."""
        kind, numbers = law
        first, n, shape = self.first, self.n, action.shape
        total, averages = np.empty(shape), np.empty(shape)
        units: FloatArray | Units
        if self.many:
            units = DrawnUnits(streams, t, law, self)
            losses.observe_many(streams.state, t, kind, numbers, first, n, action, total, averages)
        else:
            units = np.empty((shape[0], self.size))
            losses.observe(streams.state, kind, numbers, first, n, action, units, total, averages)
        return Observation(self._shown(action, total, units), means, averages)

    def _shown(self, action: IntArray, total: FloatArray, units: FloatArray | Units) -> Feedback:
        if self.every_unit:
            return Feedback(action, total, units, self.first)
        return Feedback(action, total)

    def observation(self, units: FloatArray, action: IntArray, means: FloatArray) -> Observation:
        """Return the outcome of a round, from the losses of all slots (trials, slots)."""
        averages = self.averages(units, means)
        return Observation(self.feedback(units, action, means), means, averages)

    def feedback(self, units: FloatArray, action: IntArray, means: FloatArray) -> Feedback:
        """Return the losses of the units that are played, from the losses of all slots."""
        total = np.empty(action.shape)
        kernels.add_up(units, self.first, action, means, total)
        return self._shown(action, total, units)

    def averages(self, units: FloatArray, means: FloatArray) -> FloatArray:
        """Return the average loss of all units of each arm, from the losses of all slots."""
        averages = np.empty(means.shape)
        kernels.average(units, self.first, self.n, means, averages)
        return averages


class DrawnUnits(Units):
    """Losses of many units, which are drawn again when they are read."""

    def __init__(self, streams: Streams, t: int, law: Law, slots: Slots) -> None:
        self.streams, self.t, self.law, self.slots = streams, t, law, slots

    def losses(self) -> FloatArray:
        """Return the losses of all slots, played or not."""
        units = self.slots.uniforms(self.streams, self.t)
        losses.apply(*self.law, self.slots.first, units)
        return units

    def flip(self, seen: IntArray, rng: Streams) -> IntArray:
        """Draw every observed unit again, and flip its coin."""
        heads = np.empty(seen.shape, dtype=np.int64)
        losses.flip_again(self.streams.state, self.t, *self.law, seen, rng.state, heads)
        return heads


def largest_change(losses: FloatArray, clean: FloatArray) -> FloatArray:
    """Return max_j |losses_j - clean_j| for each trial, from arrays (trials, slots)."""
    largest = np.empty(len(losses))
    kernels.largest_change(losses, clean, largest)
    return largest


def swing(argument: str, centre: FloatArray, by: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return centre - by and centre + by, if losses that swing so far stay in [0, 1].

    Values outside by no more than rounding errors, as 0.7 + 0.2 + 0.1 may be, are clipped.

    Examples
    --------
    >>> low, high = swing("means, shift", np.array([0.5, 0.75]), np.array(0.25))
    >>> low, high
    (array([0.25, 0.5 ]), array([0.75, 1.  ]))
    """
    low, high = centre - abs(by), centre + abs(by)
    outside = np.maximum(-low, high - 1)
    if (outside > ROUNDING).any():
        worst = np.unravel_index(outside.argmax(), outside.shape)
        raise InvalidInput(
            argument,
            "losses in [0, 1]",
            f"losses from {low[worst]:g} to {high[worst]:g}",
            "Make the swing smaller, or move the centre towards 1/2.",
        )
    return np.clip(centre - by, 0, 1), np.clip(centre + by, 0, 1)
