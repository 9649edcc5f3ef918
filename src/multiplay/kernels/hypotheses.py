"""Hypotheses of one arm: "the mean has been the same since round s".

An arm keeps up to 16 hypotheses, the oldest first, with moments of the reports since s and a
weight. A report weighs them by how well they foresaw it: a unit counts as 1 / phi coins, where phi
is the learned variance of a unit over m (1 - m). The oldest is dropped when its weight falls below
0.001, a confirmed change: only this arm forgets.
"""

import math
from typing import Any

import numpy as np

from multiplay.kernels.jit import subroutine
from multiplay.kernels.moments import (
    A2,
    AVERAGE,
    DOF,
    FREEDOM,
    MEAN,
    N2,
    UNITS,
    WITHIN,
    B,
    F,
    N,
    R,
    W,
)
from multiplay.types import Arrays, FloatArray

K = 16  # hypotheses of an arm
YOUNG = 4  # of them are never dropped for room
CAP = 5.0  # nats: one round costs a hypothesis at most this
CONFIRM = 0.001  # weight below which the oldest hypothesis is dropped
FIRST = 50_000.0  # arm-rounds in which one change is expected at first
OFTEN = 0.002  # largest hazard
FADE = 0.995  # of the noise, for each report
LEAST = 1e-4  # phi
OCTAVES = 12
SETTLED = 0.95  # weight of a change, from which what was before does not count in beliefs
MOVED = 5.0  # rounds: a split that moves by less is the same change
TREND = 100.0  # rounds: a change in the same direction after no more than these goes on

START, WEIGHT, H_N, H_MEAN, H_B, H_W = range(6)  # of a hypothesis
COLUMNS = 6
# Noise of an arm, each beside what coins would have: D, V between rounds, E, V' within a round.
D, V, E, V_WITHIN = range(4)
# Marks of an arm: its last report, the numbers of confirmed changes, of reports and of hypotheses.
LAST_MEAN, LAST_UNITS, LAST_ROUND, CHANGES, LIVED, LENGTH = range(6)
# Of the last changes in one direction: the first split, the mean before it, the round of the last
# confirmation, their number; and the split of the last change that most arms shared.
SINCE, FROM, CONFIRMED, STEPS, SHARED = range(6, 11)
MARKS = 11
LEVEL, MOVES, LOOKS = range(3)  # of an arm and octave: the last level, squared moves, how many
UNKNOWN = -1.0  # level of an arm that was not seen


HYPOTHESES = ("hypotheses", "noises", "marks", "snaps")  # arrays of the state, in this order


def new_hypotheses(trials: int, d: int) -> Arrays:
    """Return the arrays of arms of which nothing is known: no hypothesis."""
    snaps = np.zeros((trials, d, OCTAVES, 3))
    snaps[:, :, :, LEVEL] = UNKNOWN
    shapes = {"hypotheses": (K, COLUMNS), "noises": (4,), "marks": (MARKS,)}
    arrays: Arrays = {name: np.zeros((trials, d, *shape)) for name, shape in shapes.items()}
    return arrays | {"snaps": snaps}


@subroutine
def log_rise(x: float, d: float) -> float:
    """Logarithm of Gamma(x + d) / Gamma(x), for x >= 1/2 and d >= 0.

    In the middle w = x + (d - 1) / 2 the series has even powers of 1 / w only: with two terms it is
    exact to 1e-7, relative to d, where w is at least 8 and 4 d; else it is computed by ``lgamma``.
    """
    w = x + 0.5 * (d - 1.0)
    if w < 8.0 or w < 4.0 * d:
        return math.lgamma(x + d) - math.lgamma(x)
    r, d2 = 1.0 / (w * w), d * d
    second = (d2 - 1.0) / 24.0
    fourth = ((3.0 * d2 - 10.0) * d2 + 7.0) / 960.0
    return d * (math.log(w) - r * (second + r * fourth))


@subroutine
def add_to_all(H: FloatArray, length: int, report: FloatArray) -> None:
    """Add a report to the moments of all hypotheses of an arm."""
    a, y, within = report[UNITS], report[AVERAGE], report[WITHIN]
    for k in range(length):
        n = H[k, H_N]
        share, d = a / (n + a), y - H[k, H_MEAN]
        step = n * share * d * d
        H[k, H_B] += step
        H[k, H_MEAN] += share * d
        H[k, H_N] = n + a
        H[k, H_W] += within


@subroutine
def phi_of(noise: FloatArray, together: float) -> float:
    """Return phi: the variance of a unit over m (1 - m); 1 for coins."""
    between = (noise[D] + together) / (noise[V] + 1.0)
    return float(max(between, noise[E] / (noise[V_WITHIN] + 1.0), LEAST))


@subroutine
def drop(hypotheses: FloatArray, length: int, at: int) -> None:
    """Remove the hypothesis at a place."""
    for k in range(at, length - 1):
        for c in range(COLUMNS):
            hypotheses[k, c] = hypotheses[k + 1, c]
    for c in range(COLUMNS):
        hypotheses[length - 1, c] = 0.0


@subroutine
def begin(hypotheses: FloatArray, length: int, t: float, hazard: float) -> int:
    """Add the hypothesis of a change just now; return the number of hypotheses."""
    if length == K:
        lightest = 0
        for k in range(1, K - YOUNG):
            if hypotheses[k, WEIGHT] < hypotheses[lightest, WEIGHT]:
                lightest = k
        heir = max(lightest - 1, 1 if lightest == 0 else 0)
        hypotheses[heir, WEIGHT] += hypotheses[lightest, WEIGHT]
        drop(hypotheses, length, lightest)
        length -= 1
    for k in range(length):
        hypotheses[k, WEIGHT] *= 1.0 - hazard
    hypotheses[length, START] = t  # the rest of the row is 0
    hypotheses[length, WEIGHT] = hazard if length > 0 else 1.0
    return length + 1


@subroutine
def weigh(
    hypotheses: FloatArray, length: int, a: float, total: float, phi: float, fit: FloatArray
) -> None:
    """Weigh the hypotheses of an arm by how well they foresaw a report; ``fit`` is room for it."""
    most, coins = -math.inf, 1.0 / phi
    heads, tails = total * coins, max(a - total, 0.0) * coins
    for k in range(length):
        n, S = hypotheses[k, H_N], hypotheses[k, H_N] * hypotheses[k, H_MEAN]
        fit[k] = log_rise(0.5 + S * coins, heads) + log_rise(0.5 + max(n - S, 0.0) * coins, tails)
        fit[k] -= log_rise(1.0 + n * coins, heads + tails)
        most = max(most, fit[k])
    together = 0.0
    for k in range(length):
        hypotheses[k, WEIGHT] *= math.exp(max(fit[k] - most, -CAP))
        together += hypotheses[k, WEIGHT]
    for k in range(length):
        hypotheses[k, WEIGHT] /= together


@subroutine
def become(row: FloatArray, h: FloatArray) -> None:
    """Let the moments of an arm be those of a hypothesis; what it lacks is scaled by its units."""
    share = h[H_N] / row[N]
    row[A2] *= share
    row[R] = max(row[R] * share, 1.0)
    row[DOF] *= share
    row[F] *= share
    row[N], row[N2], row[MEAN] = h[H_N], h[H_N], h[H_MEAN]
    row[B], row[W] = h[H_B], h[H_W]


@subroutine
def learn_noise(own: FloatArray, marks: FloatArray, report: FloatArray) -> None:
    """Learn the noise from the difference of two successive reports, and from within this one."""
    a, y, b = report[UNITS], report[AVERAGE], marks[LAST_UNITS]
    if b > 0.0:
        p = (a * y + b * marks[LAST_MEAN]) / (a + b)
        own[D] = FADE * own[D] + a * b / (a + b) * (y - marks[LAST_MEAN]) ** 2
        own[V] = FADE * own[V] + p * (1.0 - p) * (a + b) / (a + b - 1.0)
    if report[FREEDOM] > 0.0:
        own[E] = FADE * own[E] + report[WITHIN]
        own[V_WITHIN] = FADE * own[V_WITHIN] + a * y * (1.0 - y)


@subroutine
def heaviest(hypotheses: FloatArray, length: int) -> int:
    """Return the hypothesis of the largest weight."""
    found = 0
    for k in range(1, length):
        if hypotheses[k, WEIGHT] > hypotheses[found, WEIGHT]:
            found = k
    return found


@subroutine
def weight_since(hypotheses: FloatArray, length: int, split: float) -> float:
    """Return the weight of the hypotheses that begin at a split or later."""
    together = 0.0
    for k in range(length):
        if hypotheses[k, START] >= split - MOVED:
            together += hypotheses[k, WEIGHT]
    return together


@subroutine
def mean_before(n: float, mean: float, h: FloatArray) -> float:
    """Return the mean of the units before a hypothesis begins, of n units with this mean."""
    before = n - h[H_N]
    return float((n * mean - h[H_N] * h[H_MEAN]) / before) if before > 0.5 else mean


@subroutine
def note(marks: FloatArray, split: float, before: float, after: float, t: float) -> None:
    """Write down a change of the mean that is confirmed in round t."""
    goes_on = t - marks[CONFIRMED] <= TREND and (after - before) * (before - marks[FROM]) > 0.0
    if marks[STEPS] == 0.0 or not goes_on:
        marks[SINCE], marks[FROM], marks[STEPS] = split, before, 0.0
    marks[STEPS] += 1.0
    marks[CONFIRMED], marks[SHARED] = t, 0.0


@subroutine
def cut(hypotheses: FloatArray, marks: FloatArray, first: int) -> None:
    """Drop the oldest hypotheses, up to the first that is left."""
    for _ in range(first):
        drop(hypotheses, int(marks[LENGTH]), 0)
        marks[LENGTH] -= 1.0
    length, together = int(marks[LENGTH]), 0.0
    for k in range(length):
        together += hypotheses[k, WEIGHT]
    for k in range(length):
        hypotheses[k, WEIGHT] = hypotheses[k, WEIGHT] / together if together > 0.0 else 1.0 / length


@subroutine
def confirm(hypotheses: FloatArray, marks: FloatArray, t: float) -> Any:
    """Drop the oldest hypotheses that no longer have weight; return whether any, and the split.

    The split is 0 unless it is a new one.
    """
    length, oldest = int(marks[LENGTH]), hypotheses[0, START]
    n, mean = hypotheses[0, H_N], hypotheses[0, H_MEAN]
    first = 0
    while first < length - 1 and hypotheses[first, WEIGHT] < CONFIRM:
        first += 1
    if first == 0:
        return False, 0.0
    cut(hypotheses, marks, first)
    if hypotheses[0, START] - oldest <= MOVED:
        return True, 0.0
    marks[CHANGES] += 1.0
    h = hypotheses[heaviest(hypotheses, int(marks[LENGTH]))]
    note(marks, h[START], mean_before(n, mean, h), h[H_MEAN], t)
    return True, h[START]


@subroutine
def pick(hypotheses: FloatArray, length: int, mass: float) -> int:
    """Return the hypothesis up to which the weights add up to more than ``mass``."""
    picked = 0
    for k in range(length):
        picked = k
        mass -= hypotheses[k, WEIGHT]
        if mass < 0.0:
            break
    return picked


@subroutine
def pick_by_mean(hypotheses: FloatArray, length: int, mass: float) -> int:
    """Return the hypothesis up to whose mean the weights add up to more than ``mass``."""
    picked, highest = 0, 0
    least, most = math.inf, -math.inf
    for k in range(length):
        mean, together = hypotheses[k, H_MEAN], 0.0
        for j in range(length):
            if hypotheses[j, H_MEAN] <= mean:
                together += hypotheses[j, WEIGHT]
        if together > mass and mean < least:
            picked, least = k, mean
        if mean > most:
            highest, most = k, mean
    return picked if least < math.inf else highest
