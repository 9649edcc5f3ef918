"""Oblivious losses: rules that fix the losses of all rounds in advance, without a table."""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count
from typing import Self

import numpy as np
from numpy.typing import ArrayLike

from multiplay._support.checks import numbers, unit_interval
from multiplay._support.serialization import settings
from multiplay.environments.base import swing
from multiplay.errors import InvalidInput
from multiplay.random import Streams
from multiplay.types import FloatArray


class Oblivious(ABC):
    """Losses that do not depend on the actions, for ``Adversarial``; all units lose the same.

    A subclass is a frozen dataclass whose fields are one number each, or one for each arm, and
    writes ``rounds``. Nothing is kept of past rounds: memory does not grow with the horizon.
    """

    @abstractmethod
    def rounds(self, d: int, streams: Streams) -> Iterator[FloatArray]:
        """Yield the losses of rounds 1, 2, ..., each (trials, d), or (1, d) if trials are equal."""

    def total(self, d: int, horizon: int) -> FloatArray | None:
        """Return the sum of the losses over the whole horizon, where there is a formula."""
        return None

    @classmethod
    def example(cls) -> Self:
        """Return the losses of six arms, those of ``Transport.example()``."""
        return cls()

    def __post_init__(self) -> None:
        for name, values in settings(self).items():
            array = numbers(name, values)
            if array.ndim > 1:
                expected = "one number, or one for each arm"
                raise InvalidInput(name, expected, f"shape {array.shape}", "Give a flat list.")
            object.__setattr__(self, name, tuple(array.tolist()) if array.ndim else array.item())
        if len({len(values) for values in settings(self).values() if np.ndim(values)}) > 1:
            lengths = ", ".join(f"{k} {np.size(v)}" for k, v in settings(self).items())
            raise InvalidInput(
                type(self).__name__, "lists of one length", lengths, "Give one number for each arm."
            )

    def check(self, d: int) -> None:
        """Raise ``InvalidInput`` unless there are d arms."""
        for name, values in settings(self).items():
            if np.shape(values) not in ((), (d,)):
                raise InvalidInput(
                    name, f"one number, or {d}", f"{np.size(values)}", "Give one for each arm."
                )


@dataclass(frozen=True)
class Sinusoids(Oblivious):
    r"""Sinusoidal losses, for ``Adversarial``; all units of an arm lose the same.

    .. math::

        \ell_i(t) = \text{centre}_i
            + \text{amplitude}_i \sin\Bigl(2 \pi
                \Bigl(\frac{t}{\text{period}_i} + \text{phase}_i\Bigr)\Bigr)

    in round t = 1, 2, ... Each parameter is one number, or one for each arm; the losses must stay
    in [0, 1].

    Parameters
    ----------
    centre, amplitude
        The mean of a wave, and its amplitude.
    period
        Rounds from one wave to the next.
    phase
        The phase of a wave, as a fraction of its period.

    See Also
    --------
    Adversarial : The environment that it is for.

    Examples
    --------
    >>> from multiplay import Adversarial, Budget
    >>> waves = Sinusoids(centre=0.5, amplitude=0.25, period=4, phase=[0.0, 0.5])
    >>> world = Adversarial(waves).open(Budget(1, caps=[1, 1]), horizon=2, trials=[0], seed=0)
    >>> seen = world.observe(np.array([[1, 0]]))
    >>> seen.feedback.total
    array([[0.75, 0.  ]])
    >>> seen.means
    array([[0.75, 0.25]])
    """

    centre: ArrayLike
    amplitude: ArrayLike
    period: ArrayLike
    phase: ArrayLike = 0.0

    @classmethod
    def example(cls) -> Self:
        """Return six waves, one for each arm of ``Transport.example()``."""
        return cls(centre=[0.3, 0.4, 0.5, 0.6, 0.7, 0.5], amplitude=0.3, period=5.5)

    def __post_init__(self) -> None:
        super().__post_init__()
        swing("centre, amplitude", np.asarray(self.centre), np.asarray(self.amplitude))
        shortest = np.min(self.period)
        if shortest <= 0:
            raise InvalidInput(
                "period",
                "positive numbers",
                f"{shortest:g}",
                "Give the number of rounds from one wave to the next.",
            )

    def rounds(self, d: int, streams: Streams) -> Iterator[FloatArray]:
        """Yield the same waves for every trial."""
        centre, amplitude, period, phase = self._arms(d)
        for t in count(1):
            losses = centre + amplitude * np.sin(2 * np.pi * (t / period + phase))
            yield np.clip(losses, 0, 1)  # rounding errors at the crests

    def total(self, d: int, horizon: int) -> FloatArray:
        """Return T centre + amplitude sin(pi T f) / sin(pi f) sin(pi (2 phase + (T + 1) f)).

        Only the fraction of f = 1 / period matters; where it is 0, the ratio of the sines is T.
        """
        centre, amplitude, period, phase = self._arms(d)
        f = 1 / period - np.rint(1 / period)
        ratio = horizon * np.sinc(horizon * f) / np.sinc(f)
        total: FloatArray = horizon * centre + amplitude * ratio * np.sin(
            np.pi * (2 * phase + (horizon + 1) * f)
        )
        return total

    def _arms(self, d: int) -> tuple[FloatArray, ...]:
        return tuple(np.broadcast_to(values, (1, d)) for values in settings(self).values())


@dataclass(frozen=True)
class RandomWalk(Oblivious):
    r"""Losses that take a step up or down in every round, for ``Adversarial``.

    With a fair coin for each arm and round, independent of all others,

    .. math::

        \ell_i(1) &= \text{start}_i, \\
        \ell_i(t + 1) &= \rho(\ell_i(t) \pm \text{step}_i), \\
        \rho(x) &= \min\{\lvert x \rvert, 2 - \lvert x \rvert\},

    where :math:`\rho` reflects the walk at 0 and 1. All units of an arm lose the same. Each trial
    has its own walk, from its own stream, the same for all policies.

    Parameters
    ----------
    step, start
        Each is one number in [0, 1], or one for each arm.

    See Also
    --------
    Adversarial : The environment that it is for.

    Examples
    --------
    >>> from multiplay import Adversarial, Budget
    >>> walk = Adversarial(RandomWalk(step=0.25, start=[0.0, 1.0]))
    >>> world = walk.open(Budget(1, caps=[1, 1]), horizon=2, trials=[0], seed=0)
    >>> for t in range(2):
    ...     seen = world.observe(np.array([[1, 0]]))
    >>> seen.means
    array([[0.25, 0.75]])
    """

    step: ArrayLike
    start: ArrayLike = 0.5

    @classmethod
    def example(cls) -> Self:
        """Return six walks, one for each arm of ``Transport.example()``."""
        return cls(step=0.15, start=[0.1, 0.3, 0.5, 0.7, 0.9, 1.0])

    def __post_init__(self) -> None:
        super().__post_init__()
        unit_interval("step", self.step)
        unit_interval("start", self.start)

    def rounds(self, d: int, streams: Streams) -> Iterator[FloatArray]:
        """Yield the steps of a different walk in every trial."""
        shape = len(streams.state), d
        losses = np.broadcast_to(np.asarray(self.start), shape)
        while True:
            yield losses
            up = streams.random(shape) < 0.5
            moved = np.abs(losses + np.where(up, self.step, np.negative(self.step)))
            losses = np.minimum(moved, 2 - moved)
