"""Measurements of a simulated round: regret, losses and variation, in one pass over the trials."""

from multiplay.kernels.jit import kernel
from multiplay.types import FloatArray, IntArray

# Of every arm: the last average loss k_i of all units and of those played, sums of k_i and k_i^2 of
# both, and the sum of the means.
LAST, S1, S2, LAST_PLAYED, S1_PLAYED, S2_PLAYED, MEANS = range(7)
# Of every arm: the last action, (a - a*)^+ added up, and the rounds that played the arm.
ACTION, EXCESS, S0_PLAYED = range(3)
# Of every trial: two regrets, path lengths of both averages, and the actions that were new.
PSEUDO, PAID, V1, V1_PLAYED, SWITCHES = range(5)


@kernel
def book(
    t: int,
    linear: bool,
    action: IntArray,
    best: IntArray,
    means: FloatArray,
    total: FloatArray,
    averages: FloatArray,
    offset: FloatArray,
    arms: FloatArray,
    plays: IntArray,
    sums: FloatArray,
) -> None:
    """Book round t: a* is ``best``, k_i one of ``averages``, and offset_i is known of every loss.

    PSEUDO += <a - a*, means>, where that is what an action is worth, and PAID += (what was paid)
    - <a*, k>; EXCESS += (a - a*)^+; S1 += k, S2 += k^2, V1 += ||k - last k||_1. The same for the
    average of the units that were played: arms that were not played are left out, and the path goes
    from one round that plays an arm to the next.
    """
    for k in range(len(action)):
        expected, paid, new = 0.0, 0.0, False
        for i in range(action.shape[1]):
            a, b, average = action[k, i], best[k, i], averages[k, i]
            expected += (a - b) * (means[k, i] + offset[i])
            paid += (total[k, i] + a * offset[i]) - b * (average + offset[i])
            plays[EXCESS, k, i] += max(a - b, 0)
            arms[S1, k, i] += average
            arms[S2, k, i] += average * average
            arms[MEANS, k, i] += means[k, i]
            if t > 1:
                new |= a != plays[ACTION, k, i]
                sums[V1, k] += abs(average - arms[LAST, k, i])
            plays[ACTION, k, i] = a
            arms[LAST, k, i] = average
            if a > 0:
                average = total[k, i] / a
                if plays[S0_PLAYED, k, i] > 0:
                    sums[V1_PLAYED, k] += abs(average - arms[LAST_PLAYED, k, i])
                plays[S0_PLAYED, k, i] += 1
                arms[S1_PLAYED, k, i] += average
                arms[S2_PLAYED, k, i] += average * average
                arms[LAST_PLAYED, k, i] = average
        sums[SWITCHES, k] += new
        if linear:
            sums[PSEUDO, k] += expected
            sums[PAID, k] += paid


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
