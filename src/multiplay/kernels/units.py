"""Losses of single units: those of arm i are ``units[first[i]:first[i + 1]]``, in order."""

import math

from multiplay.kernels.jit import kernel, subroutine
from multiplay.kernels.random import Generators, uniform
from multiplay.types import FloatArray, IntArray


@subroutine
def stretched(s: float, slots: int, units: int, mean: float) -> float:
    """Return the average loss of ``units`` units, from the sum s of the losses of all slots.

    An arm that has more units than slots draws the average of its slots towards the mean:
    mean + sqrt(slots / units) (average of the slots - mean). Its mean and its variance are exact,
    and it stays in [0, 1]. An arm without units gets 0.
    """
    average = s / max(slots, 1)
    if units <= slots:
        return average
    return mean + math.sqrt(slots / units) * (average - mean)


@kernel
def add_up(
    units: FloatArray, first: IntArray, action: IntArray, mean: FloatArray, total: FloatArray
) -> None:
    """total[k, i] = the losses of the first ``action[k, i]`` units of arm i."""
    for k in range(action.shape[0]):
        for i in range(action.shape[1]):
            a, slots = action[k, i], first[i + 1] - first[i]
            s = 0.0
            for j in range(first[i], first[i] + min(a, slots)):
                s += units[k, j]
            if a > slots:
                s = a * stretched(s, slots, a, mean[k, i])
            total[k, i] = s


@kernel
def all_finite(numbers: FloatArray) -> bool:
    """Say whether there is neither NaN nor an infinite number."""
    finite = True
    for number in numbers:
        finite &= math.isfinite(number)
    return finite


@kernel
def any_outside(numbers: FloatArray, low: float, high: float) -> bool:
    """Say whether a number is below or above an interval; NaN is neither."""
    outside = False
    for number in numbers:
        outside |= number < low or number > high
    return outside


@kernel
def split(units: FloatArray, count: IntArray, first: IntArray, total: FloatArray) -> None:
    """first[i] = where the units of arm i begin, ``count[i]`` of them; total[i] = their losses."""
    end = 0
    first[0] = 0
    for i in range(len(count)):
        s = 0.0
        for j in range(end, end + count[i]):
            s += units[j]
        end += count[i]
        first[i + 1], total[i] = end, s


@kernel
def average(
    units: FloatArray, first: IntArray, n: IntArray, mean: FloatArray, averages: FloatArray
) -> None:
    """averages[k, i] = the average loss of all n_i units of arm i, played or not."""
    for k in range(averages.shape[0]):
        for i in range(averages.shape[1]):
            s = 0.0
            for j in range(first[i], first[i + 1]):
                s += units[k, j]
            averages[k, i] = stretched(s, first[i + 1] - first[i], n[i], mean[k, i])


@kernel
def largest_change(units: FloatArray, clean: FloatArray, largest: FloatArray) -> None:
    """largest[k] = max_j of abs(units[k, j] - clean[k, j])."""
    for k in range(units.shape[0]):
        largest[k] = 0.0
        for j in range(units.shape[1]):
            largest[k] = max(largest[k], abs(units[k, j] - clean[k, j]))


@kernel
def count_heads(
    units: FloatArray, first: IntArray, action: IntArray, coins: FloatArray, heads: IntArray
) -> None:
    """heads[k, i] = how many of the played units of arm i lie above their coin."""
    for k in range(action.shape[0]):
        for i in range(action.shape[1]):
            count = 0
            for j in range(first[i], min(first[i] + action[k, i], first[i + 1])):
                if coins[k, j] < units[k, j]:
                    count += 1
            heads[k, i] = count


@kernel
def flip(
    generators: Generators, units: FloatArray, first: IntArray, action: IntArray, heads: IntArray
) -> None:
    """The same, with a coin for every slot in turn, played or not."""
    for k in range(action.shape[0]):
        for i in range(action.shape[1]):
            heads[k, i] = 0
        for i in range(action.shape[1]):
            for j in range(first[i], first[i + 1]):
                coin = uniform(generators[k])
                if j < first[i] + action[k, i] and coin < units[k, j]:
                    heads[k, i] += 1


@kernel
def collect(copies: IntArray, owner: IntArray, action: IntArray) -> None:
    """action[k, i] = how many of the copies of arm i are played."""
    action[:] = 0
    for k in range(copies.shape[0]):
        for c in range(copies.shape[1]):
            action[k, owner[c]] += copies[k, c]


@kernel
def hand_out(
    units: FloatArray, first: IntArray, owner: IntArray, copies: IntArray, losses: FloatArray
) -> None:
    """Give the units of every arm to its played copies, in order."""
    given = first.copy()
    for k in range(copies.shape[0]):
        for i in range(len(first)):
            given[i] = first[i]
        for c in range(copies.shape[1]):
            losses[k, c] = 0.0
            if copies[k, c] > 0:
                losses[k, c] = units[k, given[owner[c]]]
                given[owner[c]] += 1


@kernel
def shuffle(units: FloatArray, first: IntArray, coins: FloatArray) -> None:
    """Shuffle the units of every arm in place, each arm by itself (Fisher and Yates)."""
    for k in range(units.shape[0]):
        for i in range(len(first) - 1):
            for j in range(first[i + 1] - 1, first[i], -1):
                other = first[i] + int(coins[k, j] * (j - first[i] + 1))
                units[k, j], units[k, other] = units[k, other], units[k, j]


@kernel
def inside_box(action: IntArray, n: IntArray) -> bool:
    """Say whether 0 <= action[k, i] <= n[i] for every trial k and arm i."""
    inside = 0
    for k in range(action.shape[0]):
        for i in range(action.shape[1]):
            inside += (action[k, i] >= 0) & (action[k, i] <= n[i])
    return inside == action.size
