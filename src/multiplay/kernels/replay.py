"""Drawing units from logged outcomes."""

from multiplay.kernels.jit import kernel
from multiplay.types import FloatArray, IntArray


@kernel
def draw(
    outcomes: FloatArray,
    start: IntArray,
    count: IntArray,
    means: FloatArray,
    replayed: IntArray,
    first: IntArray,
    coins: FloatArray,
    place: IntArray,
    units: FloatArray,
) -> None:
    """units[k, first[i]:first[i + 1]] = outcomes of arm i, drawn without replacement.

    In trial k, where the logged round r = replayed[k] comes, those of arm i are at
    outcomes[start[r, i]], ..., count[r, i] of them. ``place`` is 0, 1, ... and long enough for
    every arm: Fisher and Yates shuffle it as far as there are units, then it is put back. Units for
    which there is no outcome, and which cannot be played in that round, have means[r, i].
    """
    for k in range(len(replayed)):
        for i in range(len(first) - 1):
            begin, many = start[replayed[k], i], count[replayed[k], i]
            drawn = min(first[i + 1] - first[i], many)
            for j in range(drawn):
                other = j + int(coins[k, first[i] + j] * (many - j))
                place[j], place[other] = place[other], place[j]
                units[k, first[i] + j] = outcomes[begin + place[j]]
            for j in range(drawn):
                other = j + int(coins[k, first[i] + j] * (many - j))
                place[j], place[other] = j, other
            for j in range(drawn, first[i + 1] - first[i]):
                units[k, first[i] + j] = means[replayed[k], i]
