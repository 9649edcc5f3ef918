"""Change points of each arm: hypotheses "the mean has been the same since round s".

Each arm keeps up to 16 hypotheses, the oldest first, with moments of the reports since s and a
weight. A report weighs them by how well they foresaw it: a unit counts as 1 / phi coins, where phi
is the learned variance of a unit over m (1 - m). The oldest is dropped when its weight falls below
0.001, a confirmed change: only this arm forgets.
"""

import math

import numpy as np

from multiplay.kernels.jit import kernel, subroutine
from multiplay.kernels.moments import (
    A2,
    AVERAGE,
    DOF,
    FOURTH,
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
    add_report,
)
from multiplay.types import Arrays, FloatArray, IntArray

K = 16  # hypotheses of an arm
YOUNG = 4  # of them are never dropped for room
CAP = 5.0  # nats: one round costs a hypothesis at most this
CONFIRM = 0.001  # weight below which the oldest hypothesis is dropped
FIRST = 50_000.0  # arm-rounds in which one change is expected at first
OFTEN = 0.002  # largest hazard
FADE = 0.995  # of the noise, for each report
LEAST = 1e-4  # phi
KNOWN = 8.0  # looks that idle arms need, before they are taken to move as others do
OCTAVES = 14
MOVED = 5.0  # rounds: a split that moves by less is the same change

START, WEIGHT, H_N, H_MEAN, H_B, H_W, H_F = range(7)  # of a hypothesis
COLUMNS = 7
# Noise of an arm, each beside what coins would have: D, V between rounds, E, V' within a round.
D, V, E, V_WITHIN = range(4)
LAST_MEAN, LAST_UNITS, LAST_ROUND, CHANGES, LIVED, LENGTH = range(6)  # marks of an arm
MARKS = 6
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
    a, y, within, fourth = report[UNITS], report[AVERAGE], report[WITHIN], report[FOURTH]
    for k in range(length):
        n = H[k, H_N]
        share, d = a / (n + a), y - H[k, H_MEAN]
        step = n * share * d * d
        H[k, H_B] += step
        H[k, H_F] += fourth + step * step
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
    row[N], row[N2], row[MEAN] = h[H_N], h[H_N], h[H_MEAN]
    row[B], row[W], row[F] = h[H_B], h[H_W], h[H_F]


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
def confirm(hypotheses: FloatArray, marks: FloatArray) -> bool:
    """Drop the oldest hypotheses that no longer have weight; return whether there were any."""
    length, oldest = int(marks[LENGTH]), hypotheses[0, START]
    while length > 1 and hypotheses[0, WEIGHT] < CONFIRM:
        drop(hypotheses, length, 0)
        length -= 1
    if length == int(marks[LENGTH]):
        return False
    together = 0.0
    for k in range(length):
        together += hypotheses[k, WEIGHT]
    for k in range(length):
        hypotheses[k, WEIGHT] /= together
    if hypotheses[0, START] - oldest > MOVED:
        marks[CHANGES] += 1.0
    marks[LENGTH] = length
    return True


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
    fit = np.empty(K)
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
        surprises = 0
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
            if confirm(H, own):
                become(moments[k, i], H[0])
            own[LIVED] += 1.0
            own[LAST_MEAN], own[LAST_UNITS], own[LAST_ROUND] = y, a, now
        common[k, 0] += r * r - r2
        common[k, 1] += surprises * (surprises - 1) + s * s - s2
        look_back(hypotheses[k], noises[k], marks[k], snaps[k], now, together)


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
def growth(snaps: FloatArray, G: FloatArray) -> None:
    """G_j: how far, squared, arms move in 2^j rounds."""
    for j in range(OCTAVES):
        moved, looked = 0.0, KNOWN
        for i in range(len(snaps)):
            moved += snaps[i, j, MOVES]
            looked += snaps[i, j, LOOKS]
        G[j] = moved / looked
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
