"""Checkpoints of the losses of every arm, and the split with the most evidence for a change.

Arm i has ``length[i]`` checkpoints: after round ``rounds[i, j]`` it had been seen ``seen[i, j]``
times, with losses of ``total[i, j]`` together. The last one is the present.
"""

import math

from multiplay.kernels.jit import kernel, subroutine
from multiplay.types import FloatArray, IntArray


@subroutine
def add(
    when: int,
    arms: IntArray,
    more: IntArray,
    losses: FloatArray,
    rounds: IntArray,
    seen: IntArray,
    total: FloatArray,
    length: IntArray,
) -> int:
    """Write a checkpoint for every arm with ``more`` units; return the largest length.

    There must be room for one more.
    """
    largest = 0
    for k in range(len(arms)):
        i = arms[k]
        if more[k] > 0:
            j = length[i]
            rounds[i, j] = when
            seen[i, j] = more[k] + (seen[i, j - 1] if j > 0 else 0)
            total[i, j] = losses[k] + (total[i, j - 1] if j > 0 else 0.0)
            length[i] = j + 1
        largest = max(largest, length[i])
    return largest


@kernel
def add_many(
    when: IntArray,
    arms: IntArray,
    more: IntArray,
    losses: FloatArray,
    rounds: IntArray,
    seen: IntArray,
    total: FloatArray,
    length: IntArray,
) -> int:
    """Add rounds, one in each row, until an arm has no room left; return how many were added."""
    for row in range(len(when)):
        checkpoints = rounds, seen, total, length
        if add(when[row], arms, more[row], losses[row], *checkpoints) == seen.shape[1]:
            return row + 1
    return len(when)


@kernel
def thin(
    most: int,
    step: float,
    rounds: IntArray,
    seen: IntArray,
    total: FloatArray,
    length: IntArray,
) -> None:
    """Drop checkpoints of every arm that has more than ``most``, until it has no more.

    One is dropped if the gap that it leaves is at most ``step`` times what lies before it, and what
    lies after it; where that is not enough, with steps that grow. So old and recent changes can
    be placed with about the same relative error, and the first and the last checkpoint stay.
    """
    for i in range(len(length)):
        allowed = step
        while length[i] > most:
            n = seen[i, length[i] - 1]
            kept = 0
            for j in range(1, length[i]):
                before, after = seen[i, kept], n - seen[i, min(j + 1, length[i] - 1)]
                gap = seen[i, min(j + 1, length[i] - 1)] - before
                if j == length[i] - 1 or gap > allowed * min(before, after):
                    kept += 1
                    rounds[i, kept] = rounds[i, j]
                    seen[i, kept] = seen[i, j]
                    total[i, kept] = total[i, j]
            length[i] = kept + 1
            allowed *= 1.5


@subroutine
def log_likelihood(total: float, n: float) -> float:
    """Return the largest log likelihood of n losses: total ln(mean) + (n - total) ln(1 - mean)."""
    if total <= 0.0 or total >= n:
        return 0.0
    return total * math.log(total / n) + (n - total) * math.log((n - total) / n)


@kernel
def clearest_split(
    delta: float,
    seen: IntArray,
    total: FloatArray,
    length: IntArray,
    split: IntArray,
    excess: FloatArray,
) -> None:
    """excess[i] = max over checkpoints j of arm i of GLR_j - ln(12 s^2 sqrt(n - s) / delta).

    s is seen[i, j] and n is the last of them; split[i] is the best j. An arm with fewer than two
    checkpoints has minus infinity, and -1.
    """
    for i in range(len(length)):
        split[i], excess[i] = -1, -math.inf
        if length[i] < 2:
            continue
        last = length[i] - 1
        n, everything = seen[i, last], total[i, last]
        together, price = log_likelihood(everything, n), math.log(12.0 / delta)
        for j in range(last):
            s = float(seen[i, j])
            glr = log_likelihood(total[i, j], s)
            glr += log_likelihood(everything - total[i, j], n - s) - together
            above = glr - price - 0.5 * math.log(s**4 * (n - s))
            if above > excess[i]:
                split[i], excess[i] = j, above
