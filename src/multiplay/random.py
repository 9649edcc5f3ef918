"""Random streams: one for each trial and purpose, independent of the number of trials."""

from __future__ import annotations

import secrets
from collections.abc import Iterable
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from multiplay._support.checks import EXACT, is_integer
from multiplay.errors import InvalidInput
from multiplay.kernels import random as kernels
from multiplay.types import FloatArray, IntArray

# Purposes of streams: losses must not depend on the random numbers that a policy draws.
LOSSES, POLICY, INSTANCE, ASK, TELL, LEARN, CONTEXT, PRICE = range(8)

SMALLEST = 2.0**-54  # below all positive uniform numbers, which are multiples of 2^-53


def seed_sequence(seed: int, purpose: int, trial: int) -> np.random.SeedSequence:
    """Return the seed sequence of one trial for one purpose."""
    if not is_integer(seed) or seed < 0:
        raise InvalidInput(
            "seed", "a whole number of at least 0", repr(seed), "Give a whole number such as 0."
        )
    return np.random.SeedSequence(int(seed), spawn_key=(purpose, trial))


def seed_or_random(seed: int | None) -> int:
    """Return a seed after it was checked; a random one for None."""
    if seed is None:
        return secrets.randbelow(EXACT)
    seed_sequence(seed, 0, 0)
    return int(seed)


class Streams:
    """Independent random streams, one for each trial, with methods of a numpy ``Generator``.

    Row k of every array comes from stream k alone: ``random((trials, 3))`` gives row k the next
    three numbers of stream k. So a policy that draws from ``rng`` works the same with a
    ``Generator`` (one trial, by hand) and with ``Streams`` (a simulation), and trial k of a
    simulation does not depend on the other trials.

    Parameters
    ----------
    state
        Four numbers for each stream, shape (trials, 4); ``spawn`` makes them from a seed.

    Examples
    --------
    >>> from multiplay.random import POLICY
    >>> alone = Streams.spawn(seed=1, purpose=POLICY, trials=[7])
    >>> together = Streams.spawn(seed=1, purpose=POLICY, trials=range(10))
    >>> bool((alone.random((1, 3)) == together.random((10, 3))[7]).all())
    True
    """

    def __init__(self, state: Any) -> None:
        self.state = np.array(state, dtype=np.uint64)

    @classmethod
    def spawn(cls, seed: int, purpose: int, trials: Iterable[int]) -> Streams:
        """Return streams for these trials and this purpose, all from one seed."""
        states = [
            np.random.SFC64(seed_sequence(seed, purpose, trial)).state["state"]["state"]
            for trial in trials
        ]
        return cls(np.reshape(states, (-1, 4)))

    def random(self, size: tuple[int, ...]) -> FloatArray:
        """Return uniform numbers on [0, 1); the first axis is the trial."""
        out = np.empty(size)
        kernels.fill_uniform(self.state, out.reshape(len(self.state), -1))
        return out

    def beta(self, a: ArrayLike, b: ArrayLike) -> FloatArray:
        """Return Beta(a, b) numbers for parameters of shape (trials, d)."""
        a, b = _of_one_shape(np.asarray(a, float), np.asarray(b, float))
        out = np.empty(a.shape)
        kernels.fill_beta(self.state, a, b, out)
        return out

    def binomial(self, n: ArrayLike, p: ArrayLike) -> IntArray:
        """Return Binomial(n, p) numbers for parameters of shape (trials, d)."""
        n, p = _of_one_shape(np.asarray(n, dtype=np.int64), np.asarray(p, dtype=float))
        out = np.empty(n.shape, dtype=np.int64)
        kernels.fill_binomial(self.state, n, p, out)
        return out


Rng: TypeAlias = Streams | np.random.Generator


def stream_words(rng: Rng, trials: int) -> NDArray[np.uint64]:
    """Return the words of a stream for each trial, from which a kernel draws.

    Those of ``Streams`` change when the kernel draws; a ``Generator`` draws new ones for each call.

    Examples
    --------
    >>> streams = Streams.spawn(seed=1, purpose=POLICY, trials=range(3))
    >>> stream_words(streams, 3) is streams.state
    True
    >>> stream_words(np.random.default_rng(0), 3).shape
    (3, 4)
    """
    if isinstance(rng, Streams):
        return rng.state
    return rng.integers(0, 2**64, size=(trials, 4), dtype=np.uint64)


def words_and_uniforms(rng: Rng, shape: tuple[int, ...]) -> tuple[NDArray[np.uint64], FloatArray]:
    """Return the words of ``Streams`` and an empty array, into which a kernel draws from them.

    Of a ``Generator``: no words, and uniform numbers. Either way they are those of ``rng.random``.

    Examples
    --------
    >>> words, uniforms = words_and_uniforms(np.random.default_rng(0), (2, 3))
    >>> words.shape, bool((uniforms == np.random.default_rng(0).random((2, 3))).all())
    ((0, 4), True)
    """
    if isinstance(rng, Streams):
        return rng.state, np.empty(shape)
    return NO_WORDS, rng.random(shape)


def standard_normal(shape: tuple[int, ...], rng: Rng) -> FloatArray:
    """Return normal numbers, from the quantiles of uniform ones; the first axis is the trial."""
    return normal_quantiles(rng.random(shape))


def normal_quantiles(uniform: FloatArray) -> FloatArray:
    """Return the normal quantiles of uniform numbers on [0, 1); that of 0 is finite too.

    Examples
    --------
    >>> normal_quantiles(np.array([0.0, 0.5])).round(2)
    array([-8.29,  0.  ])
    """
    from scipy.special import ndtri  # here: importing multiplay should not wait for it

    normal: FloatArray = ndtri(np.maximum(uniform, SMALLEST))
    return normal


NO_WORDS = np.zeros((0, 4), dtype=np.uint64)
NOTHING_DRAWN = np.zeros((1, 4), dtype=np.uint64)


class Rounds:
    """Random streams for the rounds of one purpose: the stream of round t depends on (seed, t).

    Examples
    --------
    >>> rounds, again = Rounds(seed=7, purpose=ASK), Rounds(seed=7, purpose=ASK)
    >>> _ = rounds.at(1), rounds.at(2)
    >>> bool(rounds.at(365).random((1, 1)) == again.at(365).random((1, 1)))
    True
    """

    def __init__(self, seed: int, purpose: int) -> None:
        words = seed_sequence(seed, purpose, 0).generate_state(3, np.uint64)
        self._base: NDArray[np.uint64] = words.astype(np.uint64)

    def at(self, t: int) -> Streams:
        """Return the stream of round t, from its beginning."""
        streams = Streams(NOTHING_DRAWN)
        kernels.begin(self._base, t, streams.state[0])
        return streams


def _of_one_shape(a: NDArray[Any], b: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    if a.shape == b.shape:
        return a, b
    shape = np.broadcast_shapes(a.shape, b.shape)
    return np.broadcast_to(a, shape).copy(), np.broadcast_to(b, shape).copy()
