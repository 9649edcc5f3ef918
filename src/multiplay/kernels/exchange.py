"""Local search among the integer points of a program: lo <= a <= hi, A a <= b."""

import numpy as np

from multiplay.kernels.jit import kernel, subroutine
from multiplay.types import FloatArray, IntArray

STAY = -1
MANY = 200  # changes: beyond them, all triples would take longer than branch and bound
MAX_EXCHANGES = 200  # an action that is further off is not near


@kernel
def descend(
    A: FloatArray,
    room: FloatArray,
    lo: IntArray,
    hi: IntArray,
    costs: FloatArray,
    least: float,
    action: IntArray,
) -> None:
    """Change up to three arms by one unit each, the best way, as long as that gains ``least``.

    ``room`` is b - A a, and follows ``action``. Three arms are tried only where two do not gain.
    """
    arm, sign = np.empty(2 * len(action), dtype=np.int64), np.empty(2 * len(action))
    for _ in range(MAX_EXCHANGES):
        size = list_changes(lo, hi, action, arm, sign)
        p, q, r = best_exchange(A, room, costs, least, arm[:size], sign[:size], False)
        if p == STAY and size <= MANY:
            p, q, r = best_exchange(A, room, costs, least, arm[:size], sign[:size], True)
        if p == STAY:
            return
        for change in (p, q, r):
            if change != STAY:
                action[arm[change]] += int(sign[change])
                for k in range(len(room)):
                    room[k] -= sign[change] * A[k, arm[change]]


@subroutine
def list_changes(
    lo: IntArray, hi: IntArray, action: IntArray, arm: IntArray, sign: FloatArray
) -> int:
    """List the arms that can take one unit more, sign 1, and one unit less, sign -1."""
    size = 0
    for i in range(len(action)):
        if action[i] < hi[i]:
            arm[size], sign[size] = i, 1.0
            size += 1
        if action[i] > lo[i]:
            arm[size], sign[size] = i, -1.0
            size += 1
    return size


@subroutine
def best_exchange(
    A: FloatArray,
    room: FloatArray,
    costs: FloatArray,
    least: float,
    arm: IntArray,
    sign: FloatArray,
    three: bool,
) -> tuple[int, int, int]:
    """Return the one or two changes, or ``three``, that fit and gain most; STAY for none."""
    best, found = -least, (STAY, STAY, STAY)
    for p in range(len(arm)):
        one = sign[p] * costs[arm[p]]
        if not three and one < best and fits(A, room, arm, sign, p, STAY, STAY):
            best, found = one, (p, STAY, STAY)
        for q in range(p + 1, len(arm)):
            if arm[q] == arm[p]:
                continue
            two = one + sign[q] * costs[arm[q]]
            if not three:
                if two < best and fits(A, room, arm, sign, p, q, STAY):
                    best, found = two, (p, q, STAY)
                continue
            for r in range(q + 1, len(arm)):
                gain = two + sign[r] * costs[arm[r]]
                if gain < best and arm[r] != arm[q] and fits(A, room, arm, sign, p, q, r):
                    best, found = gain, (p, q, r)
    return found


@subroutine
def fits(
    A: FloatArray, room: FloatArray, arm: IntArray, sign: FloatArray, p: int, q: int, r: int
) -> bool:
    """Say whether the changes together leave every constraint satisfied."""
    for k in range(len(room)):
        used = sign[p] * A[k, arm[p]]
        if q != STAY:
            used += sign[q] * A[k, arm[q]]
        if r != STAY:
            used += sign[r] * A[k, arm[r]]
        if used > room[k]:
            return False
    return True
