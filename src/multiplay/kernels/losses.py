"""The losses of all slots of a round, drawn, added up and counted in one pass.

Arm i has its slots at ``first[i], ..., first[i + 1] - 1``. The law of its losses is a kind and the
numbers low, width and mean, ``law[:, k, i]`` in trial k. A loss is a function of a uniform u:

    STRAIGHT: low + width u;      COIN: 1 if u >= low, else 0.

There are two ways to draw. ``observe`` draws u for every slot from the generator of the trial, one
after the other. ``observe_many`` is for arms of many units: slot j of arm i in round t has the j-th
number of a generator that begins anew for every trial, round and arm. So nothing is stored: the
same losses can be drawn again.
"""

import math
from typing import Any

import numpy as np

from multiplay.kernels.jit import kernel, subroutine
from multiplay.kernels.random import Generators, advance, mixed, seeded, uniform
from multiplay.kernels.units import stretched
from multiplay.types import FloatArray, IntArray

STRAIGHT, COIN = 0, 1
WORD = 2.0**32  # a slot of many takes half of 64 random bits


@subroutine
def loss(kind: int, law: FloatArray, k: int, i: int, u: float) -> Any:
    """Return the loss at the quantile u."""
    if kind == STRAIGHT:
        return law[0, k, i] + law[1, k, i] * u
    return 1.0 if u >= law[0, k, i] else 0.0


@kernel
def observe(
    generators: Generators,
    kind: int,
    law: FloatArray,
    first: IntArray,
    n: IntArray,
    action: IntArray,
    units: FloatArray,
    total: FloatArray,
    averages: FloatArray,
) -> None:
    """Draw all units; total those that are played, and average those of each arm."""
    for k in range(action.shape[0]):
        g = generators[k]
        for i in range(action.shape[1]):
            start, slots, played = first[i], first[i + 1] - first[i], action[k, i]
            s = 0.0
            total[k, i] = 0.0
            for j in range(slots):
                units[k, start + j] = loss(kind, law, k, i, uniform(g))
                s += units[k, start + j]
                if j + 1 == played:
                    total[k, i] = s
            if played > slots:
                total[k, i] = played * stretched(s, slots, played, law[2, k, i])
            averages[k, i] = stretched(s, slots, n[i], law[2, k, i])


@kernel
def observe_many(
    base: Generators,
    t: int,
    kind: int,
    law: FloatArray,
    first: IntArray,
    n: IntArray,
    action: IntArray,
    total: FloatArray,
    averages: FloatArray,
) -> None:
    """The same for arms of many units, of which nothing is stored."""
    for k in range(action.shape[0]):
        for i in range(action.shape[1]):
            slots, played = first[i + 1] - first[i], action[k, i]
            count = min(played, slots)
            some, every = sums(base[k], t, i, kind, law[0, k, i], count, slots)
            if kind == STRAIGHT:
                some = count * law[0, k, i] + law[1, k, i] * (some / WORD)
                every = slots * law[0, k, i] + law[1, k, i] * (every / WORD)
            if played > slots:
                some = played * stretched(some, slots, played, law[2, k, i])
            total[k, i] = some
            averages[k, i] = stretched(every, slots, n[i], law[2, k, i])


@subroutine
def generator_of_arm(base: Generators, t: int, i: int) -> Any:
    """Return the words of the generator of arm i in round t, in the trial of ``base``."""
    return seeded(base, mixed(mixed(t) + np.uint64(i)))


@subroutine
def sums(base: Generators, t: int, i: int, kind: int, least: float, count: int, slots: int) -> Any:
    """Add up the first ``count`` and all numbers of an arm: words, or words of at least ``least``.

    A slot is half of the bits of a step: whole numbers are added, which is fast and exact.
    """
    limit = np.uint64(math.ceil(least * WORD)) if kind == COIN else np.uint64(0)
    a, b, c, w = generator_of_arm(base, t, i)
    some, others = np.uint64(0), np.uint64(0)
    for _ in range(count // 2):
        bits, a, b, c, w = advance(a, b, c, w)
        some += value(kind, limit, upper(bits)) + value(kind, limit, lower(bits))
    at = count - count % 2
    if at < count:
        bits, a, b, c, w = advance(a, b, c, w)
        some += value(kind, limit, upper(bits))
        if count < slots:
            others += value(kind, limit, lower(bits))
        at += 2
    for _ in range((slots - at) // 2):
        bits, a, b, c, w = advance(a, b, c, w)
        others += value(kind, limit, upper(bits)) + value(kind, limit, lower(bits))
    if at < slots and (slots - at) % 2 == 1:
        bits, a, b, c, w = advance(a, b, c, w)
        others += value(kind, limit, upper(bits))
    return float(some), float(some + others)


@subroutine
def upper(bits: Any) -> Any:
    """Return the first half of 64 bits."""
    return bits >> np.uint64(32)


@subroutine
def lower(bits: Any) -> Any:
    """Return the second half of 64 bits."""
    return bits & np.uint64(0xFFFFFFFF)


@subroutine
def value(kind: int, limit: Any, word: Any) -> Any:
    """Return what a word counts for."""
    return word if kind == STRAIGHT else np.uint64(word >= limit)


@kernel
def draw_again(base: Generators, t: int, first: IntArray, uniforms: FloatArray) -> None:
    """Fill in the uniform numbers of all slots of ``observe_many``."""
    for k in range(uniforms.shape[0]):
        for i in range(len(first) - 1):
            a, b, c, w = generator_of_arm(base[k], t, i)
            for j in range(first[i], first[i + 1], 2):
                bits, a, b, c, w = advance(a, b, c, w)
                uniforms[k, j] = unit(upper(bits))
                if j + 1 < first[i + 1]:
                    uniforms[k, j + 1] = unit(lower(bits))


@kernel
def apply(kind: int, law: FloatArray, first: IntArray, units: FloatArray) -> None:
    """Turn the uniform numbers of all slots into losses."""
    for k in range(units.shape[0]):
        for i in range(len(first) - 1):
            for j in range(first[i], first[i + 1]):
                units[k, j] = loss(kind, law, k, i, units[k, j])


@kernel
def flip_again(
    base: Generators,
    t: int,
    kind: int,
    law: FloatArray,
    seen: IntArray,
    generators: Generators,
    heads: IntArray,
) -> None:
    """heads[k, i] = sum over the units seen of Bernoulli(loss), of ``observe_many``.

    A coin is half of the bits of a step of ``generators``, as a unit is.
    """
    for k in range(seen.shape[0]):
        d, e, f, v = generators[k, 0], generators[k, 1], generators[k, 2], generators[k, 3]
        for i in range(seen.shape[1]):
            a, b, c, w = generator_of_arm(base[k], t, i)
            count, bits, coins = 0, np.uint64(0), np.uint64(0)
            for _ in range(seen[k, i] // 2):
                bits, a, b, c, w = advance(a, b, c, w)
                coins, d, e, f, v = advance(d, e, f, v)
                count += unit(upper(coins)) < loss(kind, law, k, i, unit(upper(bits)))
                count += unit(lower(coins)) < loss(kind, law, k, i, unit(lower(bits)))
            if seen[k, i] % 2 == 1:
                bits, a, b, c, w = advance(a, b, c, w)
                coins, d, e, f, v = advance(d, e, f, v)
                count += unit(upper(coins)) < loss(kind, law, k, i, unit(upper(bits)))
            heads[k, i] = count
        generators[k, 0], generators[k, 1], generators[k, 2], generators[k, 3] = d, e, f, v


@subroutine
def unit(word: Any) -> float:
    """Return a half of 64 bits as a number in [0, 1)."""
    return np.int64(word) / WORD
