"""The point of a simplex that is nearest to another point, in a diagonal metric.

The *sides* of the simplex are the rows of B^-1: row k and the point (x, 1) make the weight of
atom k in x, which is 0 on the side opposite to the atom. From a centre whose weights are ``base``
and whose gradient is g, the nearest point of ``x - g / h`` is ``x + dx`` with
``dx = (pull - g) / h`` and ``pull = sum mu_k side_k``. The *held* slots, those with
``w_k = base_k + side_k dx = 0``, have a multiplier ``mu_k >= 0``; the others have none. Slots from
``real`` on stand for equations: they are always held, and their multipliers have any sign.

Block pivoting (Kostreva 1978; Júdice and Pires 1994) flips all slots that are wrong at once, and
needs few rounds from a good guess. It may cycle. If the number of wrong slots does not fall for
some rounds, the method of Lawson and Hanson (1974) takes over: slower, and finite.

Multipliers come from the Cholesky factor of ``G = sides diag(1 / h) sides'`` over the held slots,
weights from the sides themselves. So what a thin simplex costs G in digits is won back: the
weights left in held slots are the residual, and the same factor takes them away.
"""

import math

import numpy as np

from multiplay.kernels.jit import subroutine
from multiplay.types import BoolArray, FloatArray, IntArray

MOST_STALLED = 8  # rounds of block pivoting in which the number of wrong slots need not fall
WORST = 0.2  # of the most negative weight: those beyond it are held at once
ROUNDING = 1e-14  # of a weight, which is a share of 1
SMALL = 1e-12  # of the largest multiplier
RESIDUAL = 1e-6  # of the largest change of a weight: what may be left in a held slot
REFINEMENTS = 4  # of the multipliers of the same held slots


@subroutine
def project(
    sides: FloatArray,
    g: FloatArray,
    h: FloatArray,
    base: FloatArray,
    real: int,
    held: BoolArray,
    mu: FloatArray,
    pull: FloatArray,
    dx: FloatArray,
    w: FloatArray,
    G: FloatArray,
    ready: BoolArray,
    factor: FloatArray,
    order: IntArray,
    size: int,
) -> int:
    """Fill ``held``, ``mu``, ``pull``, ``dx`` and ``w``, from a guess of the first two.

    ``G`` has entries between the slots that are ``ready``, and ``factor`` is that of the first
    ``size`` slots in the order: the held ones, or none at first. Returns the new
    ``size``, or -1 if it was not solved.
    """
    slots = len(base)
    right, lost = np.empty(slots), np.empty(slots)
    fewest, attempts, refinements = slots + 1, MOST_STALLED, REFINEMENTS
    if size == 0:
        size = list_held(real, held, mu, order)
        gram(sides, h, order, size, G, ready)
        if not factorise(G, order, 0, size, factor):
            attempts = 0
    settled = False  # the first multipliers are a guess, and prove nothing
    while attempts > 0:
        wrong, left, change = weigh(sides, g, h, base, real, held, mu, pull, dx, w)
        if wrong == 0 or not settled:
            settled = True
            if wrong == 0 and (left <= RESIDUAL * change + ROUNDING or refinements == 0):
                return size
            refinements -= 1
            for i in range(size):
                right[i] = w[order[i]]
        else:
            attempts = MOST_STALLED if wrong < fewest else attempts - 1
            fewest, refinements = min(wrong, fewest), REFINEMENTS
            first, size = flip(real, held, mu, w, order, size, lost, factor)
            gram(sides, h, order, size, G, ready)
            if not factorise(G, order, first, size, factor):
                break
            for i in range(size):
                right[i] = w[order[i]]
            for k in range(slots):
                if lost[k] != 0.0:
                    for i in range(size):
                        right[i] -= lost[k] * G[k, order[i]]
        solve(factor, size, right)
        for i in range(size):
            mu[order[i]] -= right[i]
    return lawson_hanson(
        sides, g, h, base, real, held, mu, pull, dx, w, G, ready, factor, order, right
    )


@subroutine
def list_held(real: int, held: BoolArray, mu: FloatArray, order: IntArray) -> int:
    """List the held slots, equations first; the others have no multiplier."""
    size = 0
    for k in range(real, len(held)):
        held[k] = True
        order[size] = k
        size += 1
    for k in range(real):
        if held[k]:
            order[size] = k
            size += 1
        else:
            mu[k] = 0.0
    return size


@subroutine
def gram(
    sides: FloatArray, h: FloatArray, order: IntArray, size: int, G: FloatArray, ready: BoolArray
) -> None:
    """Make the slots in the order ready: fill in what G lacks between ready slots."""
    scaled = np.empty(len(h))
    for i in range(size):
        k = order[i]
        if ready[k]:
            continue
        ready[k] = True
        for a in range(len(h)):
            scaled[a] = sides[k, a] / h[a]
        for j in range(len(ready)):
            if ready[j]:
                G[k, j] = G[j, k] = product(scaled, sides[j], len(h))


@subroutine
def product(a: FloatArray, b: FloatArray, size: int) -> float:
    """Return the sum of a_i b_i, in four sums that a processor adds up side by side."""
    one, two, three, four = 0.0, 0.0, 0.0, 0.0
    whole = size - size % 4
    for i in range(0, whole, 4):
        one += a[i] * b[i]
        two += a[i + 1] * b[i + 1]
        three += a[i + 2] * b[i + 2]
        four += a[i + 3] * b[i + 3]
    for i in range(whole, size):
        one += a[i] * b[i]
    return (one + two) + (three + four)


@subroutine
def factorise(G: FloatArray, order: IntArray, first: int, size: int, factor: FloatArray) -> bool:
    """Write R with R'R = G over the held slots; columns before ``first`` are there already."""
    for i in range(size):
        row, source = factor[i], G[order[i]]
        for j in range(max(first, i), size):
            row[j] = source[order[j]]
    for i in range(size):
        row = factor[i]
        if i >= first:
            if not row[i] > 0.0:
                return False
            row[i] = math.sqrt(row[i])
        scale = 1.0 / row[i]
        for j in range(max(first, i + 1), size):
            row[j] *= scale
        for later in range(i + 1, size):
            share, below = row[later], factor[later]
            for j in range(max(first, later), size):
                below[j] -= share * row[j]
    return True


@subroutine
def solve(factor: FloatArray, size: int, right: FloatArray) -> None:
    """Write (R'R)^-1 right over right."""
    for i in range(size):
        row = factor[i]
        right[i] /= row[i]
        for j in range(i + 1, size):
            right[j] -= row[j] * right[i]
    for i in range(size - 1, -1, -1):
        row, value = factor[i], right[i]
        for j in range(i + 1, size):
            value -= row[j] * right[j]
        right[i] = value / row[i]


@subroutine
def weigh(
    sides: FloatArray,
    g: FloatArray,
    h: FloatArray,
    base: FloatArray,
    real: int,
    held: BoolArray,
    mu: FloatArray,
    pull: FloatArray,
    dx: FloatArray,
    w: FloatArray,
) -> tuple[int, float, float]:
    """Fill pull, dx and w; return the number of wrong slots, the residual, the largest change."""
    arms = len(h)
    for i in range(arms):
        pull[i] = 0.0
    for k in range(len(mu)):
        side, share = sides[k], mu[k]
        if held[k] and share != 0.0:
            for i in range(arms):
                pull[i] += share * side[i]
    for i in range(arms):
        dx[i] = (pull[i] - g[i]) / h[i]
    np.dot(sides, dx, w)
    wrong, left, change, largest = 0, 0.0, 0.0, 0.0
    for k in range(len(mu)):
        change = max(change, abs(w[k]))
        largest = max(largest, abs(mu[k]))
        w[k] += base[k]
        if held[k]:
            left = max(left, abs(w[k]))
    for k in range(real):
        if held[k]:
            wrong += mu[k] < -SMALL * largest
        else:
            wrong += w[k] < -ROUNDING
    return wrong, left, change


@subroutine
def flip(
    real: int,
    held: BoolArray,
    mu: FloatArray,
    w: FloatArray,
    order: IntArray,
    size: int,
    lost: FloatArray,
    factor: FloatArray,
) -> tuple[int, int]:
    """Release what has a negative multiplier, which is ``lost``; hold the most negative weights.

    Returns the first place of the order that is new, and the number of held slots.
    """
    least, largest = -ROUNDING, 0.0
    for k in range(len(mu)):
        lost[k] = 0.0
        largest = max(largest, abs(mu[k]))
        if not held[k]:
            least = min(least, w[k])
    for place in range(size - 1, -1, -1):
        k = order[place]
        if k < real and mu[k] < -SMALL * largest:
            lost[k] = mu[k]
            mu[k] = 0.0
            held[k] = False
            drop(factor, order, size, place)
            size -= 1
    first = size
    for k in range(real):
        if not held[k] and lost[k] == 0.0 and w[k] <= WORST * least:
            held[k] = True
            order[size] = k
            size += 1
    return first, size


@subroutine
def turn(one: FloatArray, two: FloatArray, place: int, first: int, size: int) -> None:
    """Rotate two rows from the column ``first`` on, so that two[place] becomes 0."""
    length = math.hypot(one[place], two[place])
    if length > 0.0:
        cosine, sine = one[place] / length, two[place] / length
        for j in range(first, size):
            old = one[j]
            one[j] = cosine * old + sine * two[j]
            two[j] = cosine * two[j] - sine * old


@subroutine
def drop(factor: FloatArray, order: IntArray, size: int, place: int) -> None:
    """Take one slot out of the order and of the factor."""
    for i in range(size):
        row = factor[i]
        for j in range(max(place, i - 1), size - 1):
            row[j] = row[j + 1]
    for i in range(place, size - 1):
        turn(factor[i], factor[i + 1], i, i, size - 1)
        order[i] = order[i + 1]


@subroutine
def replace(
    factor: FloatArray, order: IntArray, size: int, z: int, alpha: FloatArray, row: FloatArray
) -> None:
    """Take slot z out, and alpha_k / alpha_z times its side from that of every other slot k.

    Rotations make z the first slot. Then only the first row of the factor has its side, and that
    row without z is a rank-one update of the others.
    """
    place = 0
    while order[place] != z:
        place += 1
    for i in range(place, 0, -1):
        factor[i, i - 1] = 0.0
        turn(factor[i - 1], factor[i], place, i - 1, size)
    share = factor[0, place] / alpha[z]
    for j in range(place, size - 1):
        order[j] = order[j + 1]
    for j in range(size - 1):
        row[j] = factor[0, j if j < place else j + 1] - share * alpha[order[j]]
    for i in range(size - 1):
        target, source = factor[i], factor[i + 1]
        for j in range(i, place):
            target[j] = source[j]
        for j in range(max(i, place), size - 1):
            target[j] = source[j + 1]
        turn(target, row, i, i, size - 1)


@subroutine
def lawson_hanson(
    sides: FloatArray,
    g: FloatArray,
    h: FloatArray,
    base: FloatArray,
    real: int,
    held: BoolArray,
    mu: FloatArray,
    pull: FloatArray,
    dx: FloatArray,
    w: FloatArray,
    G: FloatArray,
    ready: BoolArray,
    factor: FloatArray,
    order: IntArray,
    right: FloatArray,
) -> int:
    """Hold one slot more each time, and go back to where no multiplier is negative."""
    slots = len(base)
    old = np.empty(slots)
    for k in range(slots):
        mu[k] = 0.0
        held[k] = False
    size, worst = list_held(real, held, mu, order), -1
    for _ in range(3 * slots):
        first = 0
        for k in range(slots):
            old[k] = mu[k]
        for _ in range(slots + REFINEMENTS):
            gram(sides, h, order, size, G, ready)
            if not factorise(G, order, first, size, factor):
                return -1
            weigh(sides, g, h, base, real, held, mu, pull, dx, w)
            for i in range(size):
                right[i] = w[order[i]]
            solve(factor, size, right)
            length = 1.0
            for i in range(size):
                k = order[i]
                if k < real and mu[k] - right[i] < 0.0:
                    length = min(length, mu[k] / right[i])
            kept, first = 0, size
            for i in range(size):
                k = order[i]
                mu[k] -= length * right[i]
                if length < 1.0 and k < real and mu[k] <= SMALL * abs(right[i]):
                    mu[k] = 0.0
                    held[k] = False
                    first = min(first, kept)
                else:
                    order[kept] = k
                    kept += 1
            first, size = min(first, kept), kept
            if length == 1.0:
                break
        weigh(sides, g, h, base, real, held, mu, pull, dx, w)
        worst = 0
        for k in range(real):
            if not held[k] and (held[worst] or w[k] < w[worst]):
                worst = k
        if held[worst] or w[worst] >= -ROUNDING:
            return size
        held[worst] = True
        order[size] = worst
        size += 1
    return -1
