"""The cheapest selection of units, compiled.

Arms are filled in the order of their costs until the total is reached. So one number says all,
the *limit*, the largest cost that is paid:

    limit = max {c_i : (the caps of the arms that cost less than c_i) <= total}.

Arms below it are full, arms above it empty, and those at the limit share the room that is left, in
the order of their numbers. Few arms are compared each with each. Many are narrowed down as by
Floyd and Rivest (1975): a sample tells two costs between which the limit should lie, and the arms
outside are dropped.

A wrongly foreseen branch costs as much as dozens of additions. So there are hardly any branches
that depend on the costs, and almost all of the time goes into loops that run on vectors.
"""

import math

import numpy as np

from multiplay.kernels.jit import kernel, subroutine
from multiplay.types import FloatArray, IntArray

FEW = 64  # arms that are compared each with each
SAMPLE, MARGIN = 32, 4  # the limit is expected within so many places of the sorted sample
LANES = 16  # vectors are added up so many numbers at a time, and the rest slowly, one by one


@subroutine
def weigh_cheaper(
    value: FloatArray, weight: IntArray, n: int, low: float, high: float
) -> tuple[int, int]:
    """Return the caps of the first n arms that cost less than ``low``, and less than ``high``."""
    below_low, below_high = 0, 0
    for i in range(n):
        below_low += weight[i] if value[i] < low else 0
        below_high += weight[i] if value[i] < high else 0
    return below_low, below_high


@subroutine
def keep(
    value: FloatArray,
    weight: IntArray,
    n: int,
    low: float,
    high: float,
    kept_value: FloatArray,
    kept_weight: IntArray,
) -> int:
    """Keep the arms that cost at least ``low`` and less than ``high``; return their number.

    They may be written over the given ones. What is not kept is written over by the next arm:
    this takes less time than a branch.
    """
    kept = 0
    for i in range(n):
        v, w = value[i], weight[i]
        kept_value[kept], kept_weight[kept] = v, w
        kept += (v >= low) & (v < high)
    return kept


@subroutine
def limits_of_few(
    value: FloatArray, weight: IntArray, n: int, room: int, more_room: int
) -> tuple[float, float]:
    """Return the limits of the first n arms for two totals.

    The arrays must have space for the next multiple of ``LANES``: the vectors are filled up with
    arms that are infinitely expensive.
    """
    padded = -(-n // LANES) * LANES
    for i in range(n, padded):
        value[i], weight[i] = math.inf, 0
    limit, larger_limit = -math.inf, -math.inf
    for i in range(0, n, 2):  # two at a time take as long as one
        v, w = value[i], value[i + 1]
        below_v, below_w = weigh_cheaper(value, weight, padded, v, w)
        limit = v if (below_v <= room) & (v > limit) else limit
        limit = w if (below_w <= room) & (w > limit) else limit
        larger_limit = v if (below_v <= more_room) & (v > larger_limit) else larger_limit
        larger_limit = w if (below_w <= more_room) & (w > larger_limit) else larger_limit
    return limit, larger_limit


@kernel
def guess(
    value: FloatArray,
    weight: IntArray,
    n: int,
    room: int,
    sample_value: FloatArray,
    sample_weight: IntArray,
) -> tuple[float, float]:
    """Return two costs between which the limit should lie, judged by a sample.

    It is drawn by a congruential generator that starts at n, so it is the same every time.
    """
    draw, total = n, 0.0
    for j in range(SAMPLE):
        draw = (1103515245 * draw + 12345) & (2**31 - 1)
        i = (draw * n) >> 31
        sample_value[j], sample_weight[j] = value[i], weight[i]
        total += weight[i]
    share, margin = room * (SAMPLE / n), total * (MARGIN / SAMPLE)
    least, most = max(0, int(share - margin)), int(share + margin)
    return limits_of_few(sample_value, sample_weight, len(sample_value), least, most)


@kernel
def find_limit(
    value: FloatArray,
    weight: IntArray,
    room: int,
    worthless: float,
    kept_value: FloatArray,
    kept_weight: IntArray,
    sample_value: FloatArray,
    sample_weight: IntArray,
) -> float:
    """Return the limit of more than ``FEW`` arms; infinite, if every worthy arm is full."""
    n = len(value)
    if worthless < math.inf:
        n = keep(value, weight, n, -math.inf, worthless, kept_value, kept_weight)
        value, weight = kept_value, kept_weight
    while n > FEW:
        low, high = guess(value, weight, n, room, sample_value, sample_weight)
        tied = low == high
        if tied:  # then only the arms that cost just this lie between
            high = np.nextafter(low, math.inf)
        below_low, below_high = weigh_cheaper(value, weight, n, low, high)
        if below_low > room:
            low, high = -math.inf, low
        elif below_high <= room:
            low, high = high, math.inf
            room -= below_high
        elif tied:
            return low
        else:
            room -= below_low
        n = keep(value, weight, n, low, high, kept_value, kept_weight)
        value, weight = kept_value, kept_weight
    return limits_of_few(value, weight, n, room, room)[0] if n > 0 else math.inf


@subroutine
def fill(
    costs: FloatArray, weight: IntArray, limit: float, room: int, actions: IntArray, k: int
) -> None:
    """Fill the arms below the limit, and those at the limit as far as there is room."""
    for i in range(len(weight)):
        actions[k, i] = weight[i] if costs[k, i] < limit else 0
        room -= actions[k, i]
    for i in range(len(weight)):
        if room <= 0:
            break
        if costs[k, i] == limit:
            actions[k, i] = min(weight[i], room)
            room -= weight[i]


@kernel
def cheapest(
    costs: FloatArray, caps: IntArray, total: int, at_most: bool, actions: IntArray
) -> None:
    """Write the cheapest integers from 0 to ``caps`` with this total for each row of ``costs``.

    If ``at_most``, the sum may be smaller: no arm is taken that does not lower the cost.
    Otherwise the caps must suffice for the total. Of arms with equal costs the first is preferred.
    The sum of ``minimum(caps, total)`` must stay below 2^63.
    """
    d, worthless = len(caps), 0.0 if at_most else math.inf
    weight = np.empty(d, dtype=np.int64)
    for i in range(d):
        weight[i] = min(caps[i], total)
    kept_value, kept_weight = np.empty(d + LANES), np.empty(d + LANES, dtype=np.int64)
    sample_value, sample_weight = np.empty(SAMPLE), np.empty(SAMPLE, dtype=np.int64)
    for k in range(len(costs)):
        if d <= FEW:
            for i in range(d):
                kept_value[i] = costs[k, i] if costs[k, i] < worthless else math.inf
                kept_weight[i] = weight[i]
            limit = limits_of_few(kept_value, kept_weight, d, total, total)[0]
        else:
            limit = find_limit(
                costs[k],
                weight,
                total,
                worthless,
                kept_value,
                kept_weight,
                sample_value,
                sample_weight,
            )
        room = total if limit < worthless else 0  # then the arms below are all that is wanted
        fill(costs, weight, min(limit, worthless), room, actions, k)
