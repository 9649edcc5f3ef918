"""What is written down of every round, in one pass over the trials."""

from multiplay.kernels.jit import kernel
from multiplay.types import FloatArray, IntArray


@kernel
def compare(
    action: IntArray,
    best: IntArray,
    means: FloatArray,
    total: FloatArray,
    averages: FloatArray,
    pseudo: FloatArray,
    realised: FloatArray,
) -> None:
    """pseudo += <a - a*, means> and realised += (what was paid) - <a*, averages>, per trial."""
    for k in range(len(action)):
        expected, paid = 0.0, 0.0
        for i in range(action.shape[1]):
            expected += (action[k, i] - best[k, i]) * means[k, i]
            paid += total[k, i] - best[k, i] * averages[k, i]
        pseudo[k] += expected
        realised[k] += paid


@kernel
def count_plays(
    action: IntArray, best: IntArray, last: IntArray, excess: IntArray, switches: IntArray
) -> None:
    """excess += (a - a*)^+ per arm; switches counts the actions that differ from the last one."""
    for k in range(len(action)):
        same = True
        for i in range(action.shape[1]):
            excess[k, i] += max(action[k, i] - best[k, i], 0)
            same &= action[k, i] == last[k, i]
            last[k, i] = action[k, i]
        switches[k] += not same


@kernel
def follow(
    averages: FloatArray, last: FloatArray, S1: FloatArray, S2: FloatArray, V1: FloatArray
) -> None:
    """S1 += k and S2 += k^2 per arm, V1 += ||k - last k||_1, for the averages k of a round."""
    for k in range(len(averages)):
        for i in range(averages.shape[1]):
            average = averages[k, i]
            S1[k, i] += average
            S2[k, i] += average * average
            V1[k] += abs(average - last[k, i])
            last[k, i] = average


@kernel
def follow_played(
    action: IntArray,
    total: FloatArray,
    last: FloatArray,
    S0: IntArray,
    S1: FloatArray,
    S2: FloatArray,
    V1: FloatArray,
) -> None:
    """The same for the average k_i of the units played: arms that were not played are left out.

    S0 counts the rounds that play an arm; V1 goes from such a round to the next one.
    """
    for k in range(len(action)):
        for i in range(action.shape[1]):
            if action[k, i] > 0:
                average = total[k, i] / action[k, i]
                if S0[k, i] > 0:
                    V1[k] += abs(average - last[k, i])
                S0[k, i] += 1
                S1[k, i] += average
                S2[k, i] += average * average
                last[k, i] = average


@kernel
def same(one: FloatArray, other: FloatArray) -> bool:
    """Say whether two arrays have the same shape and numbers."""
    if one.shape != other.shape:
        return False
    for k in range(len(one)):
        for i in range(one.shape[1]):
            if one[k, i] != other[k, i]:
                return False
    return True


@kernel
def alike(rows: FloatArray) -> bool:
    """Say whether all rows have the same numbers."""
    for k in range(1, len(rows)):
        for i in range(rows.shape[1]):
            if rows[k, i] != rows[0, i]:
                return False
    return True
