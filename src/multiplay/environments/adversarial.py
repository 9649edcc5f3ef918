"""The adversarial regime: losses from a table, a rule, or a function of past actions."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np

from multiplay._support.checks import unit_interval
from multiplay.actions import ActionSet
from multiplay.environments.base import Environment, Observation, Slots, World
from multiplay.environments.oblivious import Oblivious, RandomWalk
from multiplay.errors import InvalidInput
from multiplay.kernels import units as kernels
from multiplay.random import LOSSES, Streams
from multiplay.types import FloatArray, IntArray


@dataclass(frozen=True, eq=False)
class Adversarial(Environment):
    r"""Arbitrary losses, fixed in advance or chosen from all past actions.

    .. math::

        L_{ij}(t) = x_{i, \pi_i(j)}(t),

    where :math:`x(t)` is given for round t, and :math:`\pi_i` is a random permutation of the slots
    :math:`1, \dots, n_i` of arm i, a new one in every round.

    Parameters
    ----------
    losses
        An array (T, d), where all units of an arm lose the same; or (T, d, slots), where unit j of
        arm i loses ``losses[t, i, j]`` for j < n_i; or a rule, ``Sinusoids(...)`` or
        ``RandomWalk(...)``, that needs no table; or a function ``losses(t, past)`` that returns
        the losses of round t = 1, 2, ... as (d,), (trials, d) or (trials, d, slots), from the
        actions played so far, ``past`` of shape (t - 1, trials, d).

    Notes
    -----
    The slots of every arm are shuffled in each round. Without that no policy is safe: if slot 1 is
    bad and slot 2 good on both of two arms, a sampler that plays one unit of each has regret T.

    For a function all past actions are kept: 8 bytes for each round, arm and trial of a block, 5 GB
    for a million rounds, 100 trials and 6 arms. Nothing else here grows with the horizon.

    Examples
    --------
    >>> from multiplay import Transport
    >>> pairs = Transport([1, 1], [1, 1])
    >>> table = Adversarial([[0.0, 1.0, 1.0, 0.0], [1.0, 0.0, 0.0, 1.0]])
    >>> world = table.open(pairs, horizon=2, trials=[0], seed=0)
    >>> for t in range(2):  # the best action of round 1 is the worst of round 2
    ...     print(world.observe(np.array([[1, 0, 0, 1]])).feedback.total)
    [[0. 0. 0. 0.]]
    [[1. 0. 0. 1.]]

    An adaptive adversary, which gives the arms of the last round the loss 1:

    >>> def punish(t, past):
    ...     return past[-1] if t > 1 else np.zeros(4)
    >>> world = Adversarial(punish).open(pairs, horizon=2, trials=[0], seed=0)
    >>> for t in range(2):
    ...     print(world.observe(np.array([[1, 0, 0, 1]])).feedback.total)
    [[0. 0. 0. 0.]]
    [[1. 0. 0. 1.]]
    """

    losses: Any

    @classmethod
    def example(cls) -> Self:
        """Return a small instance, for examples with ``Transport.example()``."""
        return cls(RandomWalk.example())

    def __post_init__(self) -> None:
        function = callable(self.losses) and not isinstance(self.losses, type)
        if not function and not isinstance(self.losses, Oblivious):
            array = unit_interval("losses", self.losses)
            if array.ndim not in (2, 3):
                raise InvalidInput(
                    "losses",
                    "an array (T, d) or (T, d, slots)",
                    f"shape {array.shape}",
                    "Give one row for each round.",
                )
            object.__setattr__(self, "losses", array.copy())

    @property
    def adaptive(self) -> bool:
        """Whether the losses are a function of past actions."""
        return callable(self.losses)

    def shows_units(self, actions: ActionSet) -> bool:
        """Return True where losses have slots, or may have them: a function may return slots."""
        slots = self.adaptive or np.ndim(self.losses) == 3
        return slots or super().shows_units(actions)

    def check(self, actions: ActionSet, horizon: int, trials: int) -> None:
        """Raise ``InvalidInput`` unless rounds, arms and slots suffice."""
        if isinstance(self.losses, Oblivious):
            self.losses.check(actions.d)
            return
        if self.adaptive:
            return
        if len(self.losses) < horizon:
            raise InvalidInput(
                "losses", f"{horizon} rounds", f"{len(self.losses)}", "Shorten the horizon."
            )
        _check_arms("losses", self.losses.shape[1:], actions)

    def open(self, actions: ActionSet, horizon: int, trials: Sequence[int], seed: int) -> World:
        """Start these trials at round 1."""
        return AdversarialWorld(self.losses, actions, horizon, trials, seed)


class AdversarialWorld(World):
    """Given losses, with the slots of every arm shuffled in each round."""

    def __init__(
        self, losses: Any, actions: ActionSet, horizon: int, trials: Sequence[int], seed: int
    ) -> None:
        self.actions, self.shape = actions, (len(trials), actions.d)
        self.streams = Streams.spawn(seed, LOSSES, trials)
        self.losses, self.round = losses, 0
        if isinstance(losses, Oblivious):
            self.rows = losses.rounds(actions.d, self.streams)
            total = losses.total(actions.d, horizon)
            self.total_means = None if total is None else np.broadcast_to(total, self.shape)
        elif callable(losses):
            self.past = np.empty((horizon, *self.shape), dtype=np.int64)
        else:
            self.rows = (row[None] for row in losses)
            total = _means(losses[:horizon], actions.n).sum(axis=0)
            self.total_means = np.broadcast_to(total, self.shape)

    def observe(self, action: IntArray) -> Observation:
        """Shuffle this round's losses over the slots, and return those that are played."""
        losses = self._adversary(action) if callable(self.losses) else next(self.rows)
        self.round += 1
        means = np.broadcast_to(_means(losses, self.actions.n), self.shape).copy()
        if losses.ndim == 2:
            feedback = self.alike.feedback(means.take(self.alike.owner, axis=1), action, means)
            return Observation(feedback, means, averages=means)
        slots, place = self.each, np.arange(len(self.each.owner)) - self.each.first[self.each.owner]
        every = np.broadcast_to(losses, (*self.shape, losses.shape[2]))
        units = np.ascontiguousarray(every[:, slots.owner, place])
        kernels.shuffle(units, slots.first, self.streams.random(units.shape))
        return Observation(slots.feedback(units, action, means), means, averages=means)

    @cached_property
    def alike(self) -> Slots:
        """The slots where all units of an arm lose the same."""
        return Slots(self.actions.n)

    @cached_property
    def each(self) -> Slots:
        """The slots where every unit has its own loss, for any number of units."""
        return Slots(self.actions.n, every_unit=True)

    def _adversary(self, action: IntArray) -> FloatArray:
        """Call the adversary for this round's losses, with the actions of earlier rounds only."""
        argument = f"losses of round {self.round + 1}"
        losses = unit_interval(argument, self.losses(self.round + 1, self.past[: self.round]))
        self.past[self.round] = action
        if losses.ndim == 1:
            losses = losses[None]
        if losses.ndim not in (2, 3) or len(losses) not in (1, self.shape[0]):
            trials, d = self.shape
            raise InvalidInput(
                argument,
                f"shape ({d},), ({trials}, {d}) or ({trials}, {d}, slots)",
                f"shape {losses.shape}",
                "Fix the function: it must return losses in one of these shapes.",
            )
        _check_arms(argument, losses.shape[1:], self.actions)
        return losses


def _means(losses: FloatArray, n: IntArray) -> FloatArray:
    """Average over the slots that units can occupy, where there are slots: (..., d[, slots])."""
    if losses.ndim == 2:
        return losses
    occupied = np.arange(losses.shape[2]) < n[:, None]
    means: FloatArray = np.where(occupied, losses, 0.0).sum(axis=2) / np.maximum(n, 1)
    return means


def _check_arms(argument: str, shape: tuple[int, ...], actions: ActionSet) -> None:
    if shape[0] != actions.d:
        raise InvalidInput(argument, f"{actions.d} arms", f"{shape[0]}", "Give one for each arm.")
    if len(shape) == 2 and shape[1] < actions.n.max():
        raise InvalidInput(
            argument,
            f"{actions.n.max()} slots, one for each unit that an arm can play",
            f"{shape[1]}",
            "Leave the slots out if all units of an arm lose the same.",
        )
