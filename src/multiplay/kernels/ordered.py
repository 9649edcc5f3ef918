"""Means by unit: the mean of the k-th unit of an arm follows that of the unit before it.

``sums[k, i, j]`` has N, the average and the sum of squared deviations of the losses of unit j + 1
of arm i, in trial k. All means here are multiplied by ``sign``: they increase in j for losses
(sign 1) as for rewards (sign -1).
"""

import math

import numpy as np

from multiplay.kernels.jit import kernel, subroutine
from multiplay.kernels.random import Generators, normal_pair, uniform
from multiplay.types import FloatArray, IntArray

N, MEAN, SQUARES = range(3)
COLUMNS = 3
FADED = 0.1  # units: a position of which less is left counts as unseen
USUAL = 0.01  # variance of steps before any is seen: a step of 0.1 is usual
FEW = 0.05  # pairs of positions: the weight of a mean step of 0
SOME = 0.1  # pairs: the weight of USUAL
LEAST = 0.02  # of the range: steps vary by no less


@subroutine
def spreads(sums: FloatArray, w: float, variance: FloatArray) -> None:
    """Set variance_i of a unit of arm i: that of its own losses, with 2 w units of all arms.

    All arms together have 2 w units of variance 1/4, w at each end of the range.
    """
    squares, freedom = 0.5 * w, 2.0 * w
    for i in range(len(sums)):
        for j in range(sums.shape[1]):
            if sums[i, j, N] > 1.0:
                squares += sums[i, j, SQUARES]
                freedom += sums[i, j, N] - 1.0
    together = squares / freedom
    for i in range(len(sums)):
        squares, freedom = 2.0 * w * together, 2.0 * w
        for j in range(sums.shape[1]):
            if sums[i, j, N] > 1.0:
                squares += sums[i, j, SQUARES]
                freedom += sums[i, j, N] - 1.0
        variance[i] = squares / freedom


@subroutine
def doubt(row: FloatArray, variance: float, coins: bool) -> float:
    """Return the variance of the average of a position: that of its coins, or of the arm's units.

    Coins have m (1 - m) at m = (heads + 1) / (N + 2).
    """
    if coins:
        m = (row[N] * row[MEAN] + 1.0) / (row[N] + 2.0)
        variance = m * (1.0 - m)
    average: float = variance / row[N]
    return average


@subroutine
def steps(sums: FloatArray, variance: FloatArray, coins: bool, sign: float) -> tuple[float, float]:
    """Return the mean of the steps from unit to unit, and their variance, over all arms.

    A pair of neighbours with averages of variance r counts USUAL / (USUAL + r).
    """
    total, weight = 0.0, FEW
    for i in range(len(sums)):
        for j in range(1, sums.shape[1]):
            one, two = sums[i, j - 1], sums[i, j]
            if one[N] >= FADED and two[N] >= FADED:
                r = doubt(one, variance[i], coins) + doubt(two, variance[i], coins)
                share = USUAL / (USUAL + r)
                total += share * sign * (two[MEAN] - one[MEAN])
                weight += share
    step = max(total / weight, 0.0)
    total, weight = SOME * USUAL, SOME
    for i in range(len(sums)):
        for j in range(1, sums.shape[1]):
            one, two = sums[i, j - 1], sums[i, j]
            if one[N] >= FADED and two[N] >= FADED:
                r = doubt(one, variance[i], coins) + doubt(two, variance[i], coins)
                share = USUAL / (USUAL + r)
                off = sign * (two[MEAN] - one[MEAN]) - step
                total += share * (off * off - r)
                weight += share
    least = max(0.5 * step, LEAST)
    return step, max(total / weight, least * least)


@subroutine
def filtered(
    sums: FloatArray,
    variance: float,
    coins: bool,
    sign: float,
    top: float,
    step: float,
    tau2: float,
    f: FloatArray,
    P: FloatArray,
) -> None:
    """f_j and P_j: mean and variance of unit j + 1 of one arm, given the units up to it."""
    for j in range(len(f)):
        if j == 0:
            m, v = 0.5 * sign * top, top * top / 12.0
        else:
            m, v = f[j - 1] + step, P[j - 1] + tau2
        row = sums[j]
        if row[N] >= FADED:
            gain = v / (v + doubt(row, variance, coins))
            m += gain * (sign * row[MEAN] - m)
            v *= 1.0 - gain
        f[j], P[j] = m, v


@subroutine
def increase(x: FloatArray, sums: FloatArray, low: float, high: float) -> None:
    """Replace x by the nearest numbers in [low, high] that do not decrease, weighted by 1 + N.

    Neighbours that decrease are replaced by their average (pool adjacent violators).
    """
    L = len(x)
    weight, size, blocks = np.empty(L), np.empty(L, dtype=np.int64), 0
    for j in range(L):
        x[blocks], weight[blocks], size[blocks] = x[j], 1.0 + sums[j, N], 1
        blocks += 1
        while blocks > 1 and x[blocks - 2] > x[blocks - 1]:
            b = blocks - 2
            both = weight[b] + weight[b + 1]
            x[b] = (x[b] * weight[b] + x[b + 1] * weight[b + 1]) / both
            weight[b], size[b] = both, size[b] + size[b + 1]
            blocks -= 1
    j = L
    for b in range(blocks - 1, -1, -1):
        value = min(max(x[b], low), high)
        for _ in range(size[b]):
            j -= 1
            x[j] = value


@kernel
def draw(
    generators: Generators,
    sums: FloatArray,
    n: IntArray,
    upper: FloatArray,
    sign: float,
    coins: bool,
    w: float,
    theta: FloatArray,
) -> None:
    """theta[k, i] = one draw of the means of all units of arm i, which increase.

    Forwards the means are filtered, backwards they are drawn; then they are made to increase.
    Units that the set does not have repeat the last one.
    """
    K = sums.shape[2]
    variance, f, P, x = np.empty(sums.shape[1]), np.empty(K), np.empty(K), np.empty(K)
    for k in range(len(sums)):
        g = generators[k]
        if not coins:
            spreads(sums[k], w, variance)
        step, tau2 = steps(sums[k], variance, coins, sign)
        for i in range(sums.shape[1]):
            L = min(max(n[i], 1), K)
            filtered(sums[k, i], variance[i], coins, sign, upper[i], step, tau2, f[:L], P[:L])
            for j in range(L - 1, -1, -1):
                z = normal_pair(g)[0]
                if j == L - 1:
                    x[j] = f[j] + math.sqrt(P[j]) * z
                else:
                    J = P[j] / (P[j] + tau2)
                    x[j] = f[j] + J * (x[j + 1] - f[j] - step) + math.sqrt(P[j] * (1.0 - J)) * z
            low, high = min(0.0, sign * upper[i]), max(0.0, sign * upper[i])
            increase(x[:L], sums[k, i], low, high)
            for j in range(K):
                theta[k, i, j] = sign * x[min(j, L - 1)]


@kernel
def estimate(
    sums: FloatArray,
    upper: FloatArray,
    sign: float,
    coins: bool,
    w: float,
    mean: FloatArray,
    single: FloatArray,
    together: FloatArray,
) -> None:
    """Set the mean of each unit, its variance, and that of the sum of the units up to it.

    The mean is the smoothed one, made to increase. Given unit j + 1, the sum of the units before it
    is linear in it, with the slope b - 1 and the variance W.
    """
    K = sums.shape[2]
    variance, f, P, x = np.empty(sums.shape[1]), np.empty(K), np.empty(K), np.empty(K)
    for k in range(len(sums)):
        if not coins:
            spreads(sums[k], w, variance)
        step, tau2 = steps(sums[k], variance, coins, sign)
        for i in range(sums.shape[1]):
            filtered(sums[k, i], variance[i], coins, sign, upper[i], step, tau2, f, P)
            for j in range(K - 1, -1, -1):
                if j == K - 1:
                    x[j], single[k, i, j] = f[j], P[j]
                else:
                    J = P[j] / (P[j] + tau2)
                    x[j] = f[j] + J * (x[j + 1] - f[j] - step)
                    single[k, i, j] = P[j] * (1.0 - J) + J * J * single[k, i, j + 1]
            b, W = 1.0, 0.0
            for j in range(K):
                together[k, i, j] = b * b * single[k, i, j] + W
                J = P[j] / (P[j] + tau2)
                W += b * b * P[j] * (1.0 - J)
                b = 1.0 + b * J
            low, high = min(0.0, sign * upper[i]), max(0.0, sign * upper[i])
            increase(x, sums[k, i], low, high)
            for j in range(K):
                mean[k, i, j] = sign * x[j]


@kernel
def learn(
    generators: Generators,
    units: FloatArray,
    first: IntArray,
    number: IntArray,
    seen: IntArray,
    coins: bool,
    sums: FloatArray,
) -> None:
    """Add the losses of a round, or coins with these chances, each to the position of its unit.

    ``number`` has the number of each unit from 1; without columns, the units seen are the first.
    """
    K = sums.shape[2]
    for k in range(len(sums)):
        for i in range(sums.shape[1]):
            for s in range(seen[k, i]):
                place = first[i] + s
                j = number[k, place] - 1 if number.shape[1] > 0 else s
                row, loss = sums[k, i, min(j, K - 1)], units[k, place]
                if coins:
                    loss = 1.0 if uniform(generators[k]) < loss else 0.0
                row[N] += 1.0
                off = loss - row[MEAN]
                row[MEAN] += off / row[N]
                row[SQUARES] += off * (loss - row[MEAN])
