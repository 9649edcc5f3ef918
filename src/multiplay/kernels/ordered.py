"""Means by unit: the mean of the k-th unit of an arm follows that of the unit before it.

``sums[k, i, j]`` has N, the average and the sum of squared deviations of the losses of unit j + 1
of arm i, in trial k. All means here are multiplied by ``sign``: they increase in j for losses
(sign 1) as for rewards (sign -1).
"""

import math

import numpy as np

from multiplay.kernels.jit import kernel, subroutine
from multiplay.kernels.moments import AVERAGE, UNITS
from multiplay.kernels.persistence import (
    ENOUGH,
    FILTER,
    JUMPS,
    LATEST,
    M0,
    MODELS,
    P00,
    RARELY,
    REPORTS,
    ROWS,
    SOON,
    TRACE,
    ahead,
    coins_of,
    drawn,
    noise_of,
    noises_of,
    weights_of,
    widened,
)
from multiplay.kernels.persistence import (
    SQUARES as OF_ERRORS,
)
from multiplay.kernels.random import Generators, normal_pair, uniform
from multiplay.types import FloatArray, IntArray

N, MEAN, SQUARES = range(3)
COLUMNS = 3
OF_UNIT, SINGLE, TOGETHER = range(3)  # of what is believed of a unit
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
def averages_of(
    sums: FloatArray, w: float, coins: bool, sign: float, y: FloatArray, r: FloatArray
) -> None:
    """y[i, j] and r[i, j] = the average of unit j + 1 of arm i, times ``sign``, and its variance.

    Coins have m (1 - m) at m = (heads + 1) / (N + 2). A unit that was not seen has r = inf.
    """
    variance = np.empty(len(sums))
    if not coins:
        spreads(sums, w, variance)
    for i in range(len(sums)):
        for j in range(sums.shape[1]):
            row, own = sums[i, j], variance[i]
            if row[N] < FADED:
                y[i, j], r[i, j] = 0.0, np.inf
                continue
            if coins:
                m = (row[N] * row[MEAN] + 1.0) / (row[N] + 2.0)
                own = m * (1.0 - m)
            y[i, j], r[i, j] = sign * row[MEAN], own / row[N]


@subroutine
def steps(y: FloatArray, r: FloatArray) -> tuple[float, float]:
    """Return the mean of the steps from unit to unit, and their variance, over all arms.

    A pair of neighbours with averages of variance r counts USUAL / (USUAL + r).
    """
    total, weight = 0.0, FEW
    for i in range(len(y)):
        for j in range(1, y.shape[1]):
            both = r[i, j - 1] + r[i, j]
            if both < np.inf:
                share = USUAL / (USUAL + both)
                total += share * (y[i, j] - y[i, j - 1])
                weight += share
    step = max(total / weight, 0.0)
    total, weight = SOME * USUAL, SOME
    for i in range(len(y)):
        for j in range(1, y.shape[1]):
            both = r[i, j - 1] + r[i, j]
            if both < np.inf:
                share = USUAL / (USUAL + both)
                off = y[i, j] - y[i, j - 1] - step
                total += share * (off * off - both)
                weight += share
    least = max(0.5 * step, LEAST)
    return step, max(total / weight, least * least)


@subroutine
def filtered(
    y: FloatArray,
    r: FloatArray,
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
        if r[j] < np.inf:
            gain = v / (v + r[j])
            m += gain * (y[j] - m)
            v *= 1.0 - gain
        f[j], P[j] = m, v


@subroutine
def smoothed(
    f: FloatArray, P: FloatArray, step: float, tau2: float, x: FloatArray, variance: FloatArray
) -> None:
    """x_j and variance_j: mean and variance of unit j + 1 of one arm, given all of its units."""
    last = len(f) - 1
    x[last], variance[last] = f[last], P[last]
    for j in range(last - 1, -1, -1):
        J = P[j] / (P[j] + tau2)
        x[j] = f[j] + J * (x[j + 1] - f[j] - step)
        variance[j] = P[j] * (1.0 - J) + J * J * variance[j + 1]


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


@subroutine
def increased(x: FloatArray, sums: FloatArray, top: float, sign: float, theta: FloatArray) -> None:
    """theta = sign x, made to increase between 0 and the top; the last unit is repeated."""
    increase(x, sums, min(0.0, sign * top), max(0.0, sign * top))
    for j in range(len(theta)):
        theta[j] = sign * x[min(j, len(x) - 1)]


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
    d, K = sums.shape[1:3]
    y, r, f, P, x = np.empty((d, K)), np.empty((d, K)), np.empty(K), np.empty(K), np.empty(K)
    for k in range(len(sums)):
        g = generators[k]
        averages_of(sums[k], w, coins, sign, y, r)
        step, tau2 = steps(y, r)
        for i in range(d):
            L = min(max(n[i], 1), K)
            filtered(y[i], r[i], sign, upper[i], step, tau2, f[:L], P[:L])
            for j in range(L - 1, -1, -1):
                z = normal_pair(g)[0]
                if j == L - 1:
                    x[j] = f[j] + math.sqrt(P[j]) * z
                else:
                    J = P[j] / (P[j] + tau2)
                    x[j] = f[j] + J * (x[j + 1] - f[j] - step) + math.sqrt(P[j] * (1.0 - J)) * z
            increased(x[:L], sums[k, i], upper[i], sign, theta[k, i])


@subroutine
def believed(
    y: FloatArray,
    r: FloatArray,
    sums: FloatArray,
    upper: FloatArray,
    sign: float,
    found: FloatArray,
) -> None:
    """found[i, j] = the mean of unit j + 1 of arm i, its variance, and that of the sum up to it.

    The mean is the smoothed one, made to increase. Given unit j + 1, the sum of the units before it
    is linear in it, with the slope b - 1 and the variance W.
    """
    d, K = y.shape
    f, P, x, single, mean = np.empty(K), np.empty(K), np.empty(K), np.empty(K), np.empty(K)
    step, tau2 = steps(y, r)
    for i in range(d):
        filtered(y[i], r[i], sign, upper[i], step, tau2, f, P)
        smoothed(f, P, step, tau2, x, single)
        increased(x, sums[i], upper[i], sign, mean)
        b, W = 1.0, 0.0
        for j in range(K):
            found[i, j, OF_UNIT], found[i, j, SINGLE] = mean[j], single[j]
            found[i, j, TOGETHER] = b * b * single[j] + W
            J = P[j] / (P[j] + tau2)
            W += b * b * P[j] * (1.0 - J)
            b = 1.0 + b * J


@kernel
def estimate(
    sums: FloatArray, upper: FloatArray, sign: float, coins: bool, w: float, found: FloatArray
) -> None:
    """found[k, i, j] = what is believed of unit j + 1 of arm i, see ``believed``."""
    y, r = np.empty(sums.shape[1:3]), np.empty(sums.shape[1:3])
    for k in range(len(sums)):
        averages_of(sums[k], w, coins, sign, y, r)
        believed(y, r, sums[k], upper, sign, found[k])


# ---------------------------------------------------------------- losses that persist


@subroutine
def forecasts(
    filters: FloatArray,
    traces: FloatArray,
    gaps: FloatArray,
    now: float,
    g: int,
    share: float,
    phi: FloatArray,
    coins: FloatArray,
    sign: float,
    y: FloatArray,
    r: FloatArray,
) -> None:
    """y[j] and r[j] = what model g says of unit j + 1 of one arm in the next round, by itself.

    In the variance, x counts ``share``. Units of an arm deviate together: their errors count as the
    same, and variances are multiplied by the effective number of units, so that an average of all
    forecasts is as sure as the best one. A unit that was not seen has r = inf.
    """
    best, precision = np.inf, 0.0
    for j in range(len(y)):
        y[j], r[j] = 0.0, np.inf
        if traces[j, REPORTS] > 0.0:
            row, gap = filters[j, g], now - traces[j, LATEST]
            s2 = noise_of(row[OF_ERRORS], traces[j, REPORTS], phi[g], coins[j]) * widened(gaps, gap)
            m1, p01, p11 = ahead(row, g, gap)
            y[j] = sign * (row[M0] + m1)
            r[j] = s2 * (row[P00] + 2.0 * share * p01 + share * share * p11)
            best, precision = min(best, r[j]), precision + 1.0 / r[j]
    for j in range(len(y)):
        r[j] *= max(best * precision, 1.0)


@kernel
def overlay(
    generators: Generators,
    filters: FloatArray,
    traces: FloatArray,
    gaps: FloatArray,
    t: IntArray,
    sums: FloatArray,
    n: IntArray,
    upper: FloatArray,
    sign: float,
    theta: FloatArray,
) -> None:
    """Let theta be optimistic means of the next round, if models that persist weigh enough.

    Each arm draws a model that persists by its weight. Its units have the mean of the next round
    less a standard deviation, in which x counts as much as will be left of it soon; then they are
    made to increase.
    """
    d, K = sums.shape[1:3]
    cells = d * K
    one, phi, weights = np.empty(cells), np.empty(ROWS), np.empty(ROWS)
    y, r, soon = np.empty((d, K)), np.empty((d, K)), np.empty((d, K))
    f, P, x, variance = np.empty(K), np.empty(K), np.empty(K), np.empty(K)
    for k in range(len(sums)):
        own, trace = filters[k].reshape((cells, ROWS, FILTER)), traces[k].reshape((cells, TRACE))
        weights_of(own, weights)
        persists = 1.0 - weights[0] - weights[JUMPS]
        if persists < ENOUGH:
            continue
        coins_of(trace, one)
        noises_of(own, trace, one, phi)
        now = t[k] + 1.0
        for i in range(d):
            g = drawn(weights, uniform(generators[k]) * persists)
            left, c = MODELS[g, 0] ** SOON, one[i * K : (i + 1) * K]
            forecasts(filters[k, i], traces[k, i], gaps[k], now, g, 1.0, phi, c, sign, y[i], r[i])
            forecasts(filters[k, i], traces[k, i], gaps[k], now, g, left, phi, c, sign, x, soon[i])
        step, tau2 = steps(y, r)
        for i in range(d):
            L = min(max(n[i], 1), K)
            filtered(y[i], soon[i], sign, upper[i], step, tau2, f[:L], P[:L])
            smoothed(f[:L], P[:L], step, tau2, x[:L], variance[:L])
            filtered(y[i], r[i], sign, upper[i], step, tau2, f[:L], P[:L])
            smoothed(f[:L], P[:L], step, tau2, x[:L], soon[i, :L])
            for j in range(L):
                x[j] -= math.sqrt(variance[j])
            increased(x[:L], sums[k, i], upper[i], sign, theta[k, i])


@subroutine
def mix(weights: FloatArray, of: FloatArray, found: FloatArray) -> None:
    """found[i, j] = mean and variances of the mixture of models, by what each says, of[g, i, j]."""
    found[:] = 0.0
    for g in range(len(of)):
        found += weights[g] * of[g]
    for i in range(found.shape[0]):
        for g in range(len(of)):
            total = 0.0
            for j in range(found.shape[1]):
                apart = of[g, i, j, OF_UNIT] - found[i, j, OF_UNIT]
                total += apart
                found[i, j, SINGLE] += weights[g] * apart * apart
                found[i, j, TOGETHER] += weights[g] * total * total


@kernel
def believe(
    filters: FloatArray,
    traces: FloatArray,
    gaps: FloatArray,
    t: IntArray,
    sums: FloatArray,
    upper: FloatArray,
    sign: float,
    found: FloatArray,
) -> None:
    """Mix ``found``, by which nothing persists, with what models that persist say of a next round.

    Variances are those of the mixture.
    """
    d, K = sums.shape[1:3]
    cells = d * K
    one, phi, weights = np.empty(cells), np.empty(ROWS), np.empty(ROWS)
    y, r, of = np.empty((d, K)), np.empty((d, K)), np.zeros((JUMPS, d, K, 3))
    for k in range(len(sums)):
        own, trace = filters[k].reshape((cells, ROWS, FILTER)), traces[k].reshape((cells, TRACE))
        weights_of(own, weights)
        weights[0] += weights[JUMPS]
        coins_of(trace, one)
        noises_of(own, trace, one, phi)
        of[0] = found[k]
        for g in range(1, JUMPS):
            if weights[g] < RARELY:
                weights[g] = 0.0
                continue
            for i in range(d):
                c, now = one[i * K : (i + 1) * K], t[k] + 1.0
                given = filters[k, i], traces[k, i], gaps[k], now, g, 1.0
                forecasts(*given, phi, c, sign, y[i], r[i])
            believed(y, r, sums[k], upper, sign, of[g])
        mix(weights, of, found[k])


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


@kernel
def reports_of(
    units: FloatArray,
    first: IntArray,
    number: IntArray,
    seen: IntArray,
    reports: FloatArray,
) -> None:
    """reports[k, i, j] = the report of unit j + 1 alone, see ``multiplay.kernels.moments``."""
    K = reports.shape[2]
    reports[:] = 0.0
    for k in range(len(reports)):
        for i in range(reports.shape[1]):
            for s in range(seen[k, i]):
                place = first[i] + s
                j = number[k, place] - 1 if number.shape[1] > 0 else s
                row = reports[k, i, min(j, K - 1)]
                row[UNITS] += 1.0
                row[AVERAGE] += (units[k, place] - row[AVERAGE]) / row[UNITS]
