"""Changes of all arms: reports, changes that most arms share, and how far idle arms may move.

A change is shared if, when one arm confirms it, the reports of at least two thirds of the others
that were seen since fit it better than their past. Then arms that were seen since forget with it,
and idle arms are taken to have moved by the same factor or the same difference; how sure that is
depends on how many of the arms seen did.
"""

import math
from typing import Any

import numpy as np

from multiplay.kernels.hypotheses import (
    CHANGES,
    CONFIRMED,
    FIRST,
    FROM,
    H_B,
    H_MEAN,
    H_N,
    H_W,
    LAST_MEAN,
    LAST_ROUND,
    LAST_UNITS,
    LEAST,
    LENGTH,
    LEVEL,
    LIVED,
    LOOKS,
    MOVES,
    OCTAVES,
    OFTEN,
    SETTLED,
    SHARED,
    START,
    STEPS,
    UNKNOWN,
    WEIGHT,
    D,
    K,
    V,
    add_to_all,
    become,
    begin,
    confirm,
    cut,
    heaviest,
    learn_noise,
    mean_before,
    note,
    phi_of,
    weigh,
    weight_since,
)
from multiplay.kernels.jit import kernel, subroutine
from multiplay.kernels.moments import AVERAGE, UNITS, add_report
from multiplay.types import FloatArray, IntArray

KNOWN = 8.0  # looks that idle arms need, before they are taken to move as others do
EVIDENCE = 3.0  # nats: the least for a shared change, and the most of one arm
OTHERS = 2  # arms besides the one that confirms a change, the fewest that can share it
ENOUGH = 8.0  # units since a change, from which an arm forgets its past with others
IDLE, NEVER = -2.0, -1.0  # an arm not seen since a change, and one never seen
M_B, N_B, M_A, N_A, FIT = range(5)  # means and units before and after a change; evidence, twice
SIDES = 6


@kernel
def learn(
    moments: FloatArray,
    common: FloatArray,
    hypotheses: FloatArray,
    noises: FloatArray,
    marks: FloatArray,
    snaps: FloatArray,
    t: IntArray,
    reports: FloatArray,
) -> None:
    """Add the reports of round t, one for each arm that has units, in every trial.

    ``moments`` are those of the oldest hypothesis of each arm; ``common`` is as in ``add_report``.
    """
    fit, sides = np.empty(K), np.empty((moments.shape[1], SIDES))
    for k in range(len(moments)):
        now = float(t[k])
        spread, coins, changes, lived = 0.5, 0.5, 1.0, FIRST
        for i in range(moments.shape[1]):
            spread += noises[k, i, D]
            coins += noises[k, i, V]
            changes += marks[k, i, CHANGES]
            lived += marks[k, i, LIVED]
        together, hazard = spread / coins, min(changes / lived, OFTEN)
        r = r2 = s = s2 = 0.0
        surprises, split, first = 0, 0.0, -1
        for i in range(moments.shape[1]):
            report = reports[k, i]
            a, y = report[UNITS], report[AVERAGE]
            if a == 0.0:
                continue
            own, H = marks[k, i], hypotheses[k, i]
            learn_noise(noises[k, i], own, report)
            length = begin(H, int(own[LENGTH]), now, hazard)
            own[LENGTH] = length
            weigh(H, length, a, a * y, phi_of(noises[k, i], together), fit)
            surprise, share = add_report(moments[k, i], report)
            if share > 0.0:
                surprises += 1
                r += surprise
                r2 += surprise * surprise
                s += share
                s2 += share * share
            add_to_all(H, length, report)
            dropped, new = confirm(H, own, now)
            if dropped:
                become(moments[k, i], H[0])
            if new > 0.0:
                split, first = new, i
            own[LIVED] += 1.0
            own[LAST_MEAN], own[LAST_UNITS], own[LAST_ROUND] = y, a, now
        common[k, 0] += r * r - r2
        common[k, 1] += surprises * (surprises - 1) + s * s - s2
        if first >= 0:
            arrays = moments[k], hypotheses[k], noises[k], marks[k], snaps[k]
            share_change(*arrays, now, split, first, together, sides)
        look_back(hypotheses[k], noises[k], marks[k], snaps[k], now, together)


@kernel
def settle(
    moments: FloatArray, hypotheses: FloatArray, marks: FloatArray, settled: FloatArray
) -> None:
    """settled[i] = the moments of arm i since its last change, if that is sure enough."""
    for i in range(len(moments)):
        length = int(marks[i, LENGTH])
        for column in range(moments.shape[1]):
            settled[i, column] = moments[i, column]
        k = heaviest(hypotheses[i], length)
        if k > 0 and weight_since(hypotheses[i], length, hypotheses[i, k, START]) >= SETTLED:
            become(settled[i], hypotheses[i, k])


@subroutine
def both_sides(hypotheses: FloatArray, marks: FloatArray, split: float, side: FloatArray) -> int:
    """Compute what an arm cost before and after a split; return the hypothesis that begins there.

    N_A is negative for an arm that tells nothing of it: it is idle since, or was never seen.
    """
    length = int(marks[LENGTH])
    side[N_A] = NEVER if length == 0 else IDLE
    if length == 0 or marks[LAST_ROUND] <= split:
        return 0
    oldest, n = hypotheses[0], hypotheses[0, H_N]
    if marks[CONFIRMED] > split and marks[STEPS] == 1.0:
        side[M_B], side[N_B], side[M_A], side[N_A] = marks[FROM], n, oldest[H_MEAN], n
        return 0
    for k in range(1, length):
        h = hypotheses[k]
        if h[START] >= split and h[H_N] > 0.0 and n - h[H_N] > 0.5:
            side[M_B], side[N_B] = mean_before(n, oldest[H_MEAN], h), n - h[H_N]
            side[M_A], side[N_A] = h[H_MEAN], h[H_N]
            return k
    return 0


@subroutine
def common_move(sides: FloatArray, first: int, noises: FloatArray, together: float) -> Any:
    """Return (kind, f, c, seen, moved): of ``seen`` other arms, ``moved`` went from m to f m + c.

    Either a factor f (kind 0) or a difference c (kind 1) is tried; kind -1: most arms have neither.
    """
    n = before = after = 0.0
    for i in range(len(sides)):
        if sides[i, N_A] > 0.0:
            n += sides[i, N_A]
            before += sides[i, N_A] * sides[i, M_B]
            after += sides[i, N_A] * sides[i, M_A]
    factor = after / before if before > 0.0 else 1.0
    found, largest = (-1, 1.0, 0.0, 0, 0), EVIDENCE
    for kind in range(2):
        f, c = (factor, 0.0) if kind == 0 else (1.0, (after - before) / n)
        evidence, seen, moved = 0.0, 0, 0
        for i in range(len(sides)):
            side = sides[i]
            if side[N_A] > 0.0 and i != first:
                m = side[M_B]
                noise = phi_of(noises[i], together) * max(m * (1.0 - m), LEAST)
                doubt = noise * (1.0 / side[N_A] + 1.0 / side[N_B])
                gain = (side[M_A] - m) ** 2 - (side[M_A] - f * m - c) ** 2
                side[FIT + kind] = min(max(gain / (2.0 * doubt), -EVIDENCE), EVIDENCE)
                evidence += side[FIT + kind]
                seen += 1
                moved += 1 if side[FIT + kind] > 0.0 else 0
        if seen >= OTHERS and 3 * moved >= 2 * seen and evidence > largest:
            found, largest = (kind, f, c, seen, moved), evidence
    return found


@subroutine
def move(hypotheses: FloatArray, f: float, c: float, n: float) -> None:
    """Let the past of an idle arm be that of means f m + c, which n units of other arms tell.

    N units and a move that n units tell are as good as N n / (N + n) units.
    """
    h = hypotheses[0]
    h[H_MEAN] = clipped(f * h[H_MEAN] + c)
    left = n / (h[H_N] + n)
    h[H_N] *= left
    h[H_B] *= left * f * f
    h[H_W] *= left * f * f


@subroutine
def clipped(loss: float) -> float:
    """Return the loss nearest to this in [0, 1]."""
    return min(max(loss, 0.0), 1.0)


@subroutine
def share_change(
    moments: FloatArray,
    hypotheses: FloatArray,
    noises: FloatArray,
    marks: FloatArray,
    snaps: FloatArray,
    t: float,
    split: float,
    first: int,
    together: float,
    sides: FloatArray,
) -> None:
    """Let all arms follow a change that arm ``first`` has confirmed, if most arms share it."""
    for i in range(len(marks)):
        both_sides(hypotheses[i], marks[i], split, sides[i])
    kind, f, c, seen, moved = common_move(sides, first, noises, together)
    if kind < 0:
        return
    units = 0.0
    for i in range(len(marks)):
        units += max(sides[i, N_A], 0.0)
    still = (seen - moved + 0.5) / (seen + 2.0)  # probability that an idle arm has not moved
    for i in range(len(marks)):
        own, H, side = marks[i], hypotheses[i], sides[i]
        if side[N_A] == NEVER or (side[N_A] > 0.0 and i != first and side[FIT + kind] <= 0.0):
            continue
        for j in range(OCTAVES):
            if snaps[i, j, LEVEL] != UNKNOWN:
                snaps[i, j, LEVEL] = clipped(f * snaps[i, j, LEVEL] + c)
        k = both_sides(H, own, split, side)
        if side[N_A] >= ENOUGH or own[CONFIRMED] > split:
            if k > 0:
                note(own, split, side[M_B], side[M_A], t)
                cut(H, own, k)
                become(moments[i], H[0])
            own[SHARED] = split
            continue
        for column in range(len(H[0])):
            H[1, column] = H[0, column]
        for k in range(2, len(H)):
            for column in range(len(H[0])):
                H[k, column] = 0.0
        move(H, f, c, units)
        become(moments[i], H[0])
        own[LAST_MEAN] = clipped(f * own[LAST_MEAN] + c)
        H[0, WEIGHT], H[1, WEIGHT], H[1, START] = 1.0 - still, still, split
        own[LENGTH] = 2.0
        note(own, split, H[1, H_MEAN], H[0, H_MEAN], t)
        own[SHARED] = split


@subroutine
def look_back(
    hypotheses: FloatArray,
    noises: FloatArray,
    marks: FloatArray,
    snaps: FloatArray,
    t: float,
    together: float,
) -> None:
    """Measure how far the arms that were seen of late moved in the last 2^j rounds."""
    for j in range(OCTAVES):
        size = 2.0**j
        if t % size != 0.0:
            break
        for i in range(len(marks)):
            snap = snaps[i, j]
            if marks[i, LENGTH] == 0.0 or t - marks[i, LAST_ROUND] > size / 2.0:
                snap[LEVEL] = UNKNOWN
                continue
            oldest = hypotheses[i, 0]
            m = oldest[H_MEAN]
            if snap[LEVEL] != UNKNOWN:
                snap[LOOKS] += 1.0
                if oldest[START] > t - size:
                    doubt = phi_of(noises[i], together) * m * (1.0 - m) / oldest[H_N]
                    snap[MOVES] += max((m - snap[LEVEL]) ** 2 - doubt, 0.0)
            snap[LEVEL] = m


@subroutine
def growth(snaps: FloatArray, least: float, G: FloatArray) -> None:
    """G_j: how far, squared, arms move in 2^j rounds; at least ``least`` in one."""
    for j in range(OCTAVES):
        moved, looked = 0.0, KNOWN
        for i in range(len(snaps)):
            moved += snaps[i, j, MOVES]
            looked += snaps[i, j, LOOKS]
        G[j] = max(moved / looked, least)
        if j > 0:
            G[j] = max(G[j], 2.0 * G[j - 1])


@subroutine
def grown(G: FloatArray, gap: float) -> float:
    """Return G after so many rounds, in proportion between octaves."""
    if gap < 1.0:
        return 0.0
    j = min(int(math.log2(gap)), OCTAVES - 1)
    if j == OCTAVES - 1:
        return float(G[j] * gap / 2.0**j)
    part = gap / 2.0**j - 1.0
    return float(G[j] + part * (G[j + 1] - G[j]))
