"""Arms that learn from each other: a prior over their means, pooled noise, optimistic quantiles.

The symbols are those of docs/pooling.md. Losses are k = MEAN + shift in [0, 1], one scale for all
arms; a unit counts as 1 / phi coins, and a day of an arm has the variance ``day`` k (1 - k). From
the moments of all arms (see ``kernels.moments``) come

    Beta(m c0, (1 - m) c0), the prior of the mean of an arm, and coins_i, what its reports add.
"""

import math
from typing import Any

import numpy as np

from multiplay.kernels import change
from multiplay.kernels.bootstrap import LONG
from multiplay.kernels.hypotheses import (
    CHANGES,
    H_MEAN,
    H_N,
    LAST_ROUND,
    LENGTH,
    OCTAVES,
    become,
    heaviest,
    pick,
)
from multiplay.kernels.jit import kernel, subroutine
from multiplay.kernels.moments import (
    A2,
    COLUMNS,
    DOF,
    KAPPA,
    MEAN,
    N2,
    RHO_0,
    ROUNDING,
    SEEN,
    B,
    F,
    N,
    R,
    W,
    fourths,
)
from multiplay.kernels.quantiles import below, beta_quantile
from multiplay.kernels.random import Generators, normal_pair, uniform
from multiplay.kernels.rows import copy_rows
from multiplay.types import FloatArray, IntArray

NORMAL = 3.0  # kurtosis of normal noise
ONE_ARM = 1.0  # h: the prior of the prior counts as one arm of mean 1/2
SPREAD = 1.0 / 3.0  # of its variance, relative to m (1 - m): uniform on [0, 1] for m = 1/2
WIDEST = 0.9  # the largest variance of the prior, relative to m (1 - m)
LEAST_NOISE = 1e-5  # of phi_i
ROUNDS = 3  # of the fixed point of the prior
SOONER = 10.0  # rounds by which the level of optimism is ahead
IDLE_SHARE = 0.25  # of the squared moves of idle arms: the rule is optimistic in every round
LEVELS = 64  # of quantiles between which those of arms never seen are, where these are more
COINS, MEAN_NOW, RARE, UNITS_NOW = range(4)  # columns of ``pool``
POOLED = 4


@subroutine
def coin_variance(row: FloatArray, k: float) -> float:
    """Return an estimate of m (1 - m) without bias: N / (N - 1) k (1 - k) for coins."""
    D = row[DOF] + max(row[R] - 1.0, 0.0)
    return k * (1.0 - k) + ((row[W] + row[B]) / (row[N] * D) if D > 0.0 else 0.0)


@subroutine
def pool(rows: FloatArray, shift: FloatArray, out: FloatArray) -> Any:
    """out[i] = (coins_i, k_i, e_i, N_i); return m and c0 of the prior that all arms share.

    ``rows`` are the moments of the arms. An arm never seen has no coins.
    """
    d = len(rows)
    n, sum_k, units, D_all, squares, F_all, normal = 0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
    a2, n2, om_most = 0.0, 0.0, 0.0
    for i in range(d):
        row = rows[i]
        out[i] = 0.0
        if row[N] <= SEEN:
            om_most = 1.0 / KAPPA
            continue
        k = min(max(row[MEAN] + shift[i], 0.0), 1.0)
        out[i, MEAN_NOW], out[i, UNITS_NOW] = k, row[N]
        D = row[DOF] + max(row[R] - 1.0, 0.0)
        om_most = max(om_most, 1.0 / (D + KAPPA))
        n += 1
        sum_k += k
        units += row[N]
        D_all += D
        squares += row[W] + row[B]
        F_all += row[F]
        normal += fourths(row)
        a2 += row[A2]
        n2 += row[N2]
    c = 0.0
    if squares > ROUNDING * units and normal > 0.0:
        kurtosis = F_all / normal
        c = 1.0 if kurtosis <= NORMAL else 2.0 / (kurtosis - 1.0)
    lam, c2 = c * D_all / (D_all + 2.0), c * c
    m1 = (sum_k + 0.5) / (n + 1.0)
    typ = m1 * (1.0 - m1)
    up = down = 2.0 * om_most * typ
    up *= 1.0 - lam
    for i in range(d):
        row = rows[i]
        if row[N] > SEEN:
            D = row[DOF] + max(row[R] - 1.0, 0.0)
            om = 1.0 / (D + KAPPA)
            up += (row[W] + row[B]) * om
            down += D * coin_variance(row, out[i, MEAN_NOW]) * om
    phi = up / down
    d0 = a2 / n2 if n2 > 0.0 else 0.0
    left, gains = 0.0, d0 * typ
    for i in range(d):
        row = rows[i]
        if row[N] > SEEN:
            coin, own = coin_variance(row, out[i, MEAN_NOW]), own_variance(row, out[i], m1)
            s1 = KAPPA * phi * own + c2 * row[W]
            s1 /= KAPPA * own + c2 * row[DOF] * coin
            left += row[B] - max(row[R] - 1.0, 0.0) * s1 * coin
            gains += max(row[N] - row[A2] / row[N2], 0.0) * coin
    day = day0 = 0.0
    if gains > 0.0:
        day0 = max(0.0, left / gains)
        day = max(0.0, (left + RHO_0 * d0 * phi * typ) / gains)
    for i in range(d):
        row = rows[i]
        if row[N] > SEEN:
            coin, own = coin_variance(row, out[i, MEAN_NOW]), own_variance(row, out[i], m1)
            free, between = max(row[R] - 1.0, 0.0), 0.0
            if free > 0.0:
                gain = max(row[N] - row[A2] / row[N2], 0.0)
                between = row[B] * phi / (phi + day * gain / free)
            phi_i = KAPPA * phi * own + c2 * (row[W] + between)
            phi_i /= KAPPA * own + c2 * (row[DOF] + free) * coin
            phi_i = max(phi_i, LEAST_NOISE)
            out[i, COINS] = row[N] ** 2 / (phi_i * row[N2] + day * row[A2])
            out[i, RARE] = max(0.0, 1.0 - phi_i) * (1.0 - lam * row[N] / (row[N] + 1.0))
    m, t2 = m1, typ * SPREAD
    for _ in range(ROUNDS):
        q_k, q_all = ONE_ARM / 2.0, ONE_ARM
        for i in range(d):
            if rows[i, N] > SEEN:
                q = t2 / (t2 + doubt(rows[i], typ, phi, day0))
                q_k += q * out[i, MEAN_NOW]
                q_all += q
        m = q_k / q_all
        apart, q2 = 0.0, ONE_ARM
        for i in range(d):
            if rows[i, N] > SEEN:
                v = doubt(rows[i], typ, phi, day0)
                q = t2 / (t2 + v)
                apart += q * q * ((out[i, MEAN_NOW] - m) ** 2 - v)
                q2 += q * q
        wide = m * (1.0 - m)
        t2 = min((max(0.0, apart) + ONE_ARM * wide * SPREAD) / q2, WIDEST * wide)
    return m, m * (1.0 - m) / t2 - 1.0


@subroutine
def own_variance(row: FloatArray, known: FloatArray, m1: float) -> float:
    """Return mid (1 - mid) of an arm that was seen, which is never 0."""
    mid = (row[N] * known[MEAN_NOW] + m1) / (row[N] + 1.0)
    return float(mid * (1.0 - mid))


@subroutine
def doubt(row: FloatArray, typ: float, phi: float, day0: float) -> float:
    """Return the variance of the average of an arm, by the noise of all arms."""
    return float(typ * (phi * row[N2] + day0 * row[A2]) / row[N] ** 2)


@subroutine
def tabulate(low: float, high: float, a: float, b: float, table: FloatArray) -> None:
    """table[k] = the quantile of Beta(a, b) at the k-th of some levels from low to high."""
    for k in range(LEVELS + 1):
        table[k] = beta_quantile(low + (high - low) * k / LEVELS, a, b)


@subroutine
def between(table: FloatArray, share: float) -> float:
    """Return the quantile at a share of the way from the lowest level to the highest."""
    k = min(int(share * LEVELS), LEVELS - 1)
    return float(table[k] + (share * LEVELS - k) * (table[k + 1] - table[k]))


@subroutine
def current(
    moments: FloatArray, hypotheses: FloatArray, marks: FloatArray, trial: int, rows: FloatArray
) -> None:
    """rows[i] = the moments of arm i in a trial since the beginning of its heaviest hypothesis."""
    d = moments.shape[1]
    copy_rows(moments[trial], rows, 0)
    if hypotheses.shape[2] == 0:
        return
    for i in range(d):
        length = int(marks[trial, i, LENGTH])
        if rows[i, N] > SEEN and length > 0:
            own = hypotheses[trial, i]
            become(rows[i], own[heaviest(own, length)])
            if marks[trial, i, CHANGES] > 0.0:
                rows[i, F] = min(rows[i, F], NORMAL * fourths(rows[i]))


@kernel
def absent(
    moments: FloatArray,
    hypotheses: FloatArray,
    marks: FloatArray,
    shift: FloatArray,
    rows: FloatArray,
) -> None:
    """rows = the ``others`` of ``draw``, from the state of arms that are absent from a round."""
    for trial in range(len(moments)):
        current(moments, hypotheses, marks, trial, rows[trial])
        for i in range(len(shift)):
            rows[trial, i, MEAN] += shift[i]


@kernel
def draw(
    generators: Generators,
    moments: FloatArray,
    hypotheses: FloatArray,
    marks: FloatArray,
    snaps: FloatArray,
    t: IntArray,
    shift: FloatArray,
    upper: FloatArray,
    others: FloatArray,
    curiosity: float,
    sign: float,
    theta: FloatArray,
) -> None:
    """theta_i = an optimistic quantile of the mean of arm i, less shift_i, in [0, upper_i].

    With xi ~ N(0, 1), one in a round, and u_i ~ U(0, 1), one for each arm, the quantile is at

        x_i = max(z_t (1 + u_i) / 2, xi),  z_t = sqrt(log(t + 10) / 2)

    deviations below the middle, or above it for rewards (sign -1). With hypotheses, the means of an
    arm are those since a change that one of them states, picked by its weight, and idle arms may
    have moved. ``others`` are moments of arms that are absent from the round, with their shift.
    """
    d, follows = moments.shape[1], hypotheses.shape[2] > 0
    every = d + others.shape[1]
    pooled, rows, shifts = np.empty((every, POOLED)), np.empty((every, COLUMNS)), np.zeros(every)
    for i in range(d):
        shifts[i] = shift[i]
    table, G = np.empty(LEVELS + 1), np.empty(OCTAVES)
    for trial in range(len(moments)):
        g = generators[trial]
        current(moments, hypotheses, marks, trial, rows)
        if every > d:
            copy_rows(others[trial], rows, d)
        if follows:
            change.growth(snaps[trial], curiosity**2 / LONG, G)
        m, c0 = pool(rows, shifts, pooled)
        z = math.sqrt(math.log(t[trial] + SOONER) / 2.0)
        xi = normal_pair(g)[0]
        low, high, unseen = max(z / 2.0, xi), max(z, xi), 0
        for i in range(d):
            unseen += 1 if pooled[i, UNITS_NOW] == 0.0 else 0
        if unseen > LEVELS:  # they have the same prior
            tabulate(-sign * low, -sign * high, m * c0, (1.0 - m) * c0, table)
        for i in range(d):
            x = max(z * (1.0 + uniform(g)) / 2.0, xi)
            if unseen > LEVELS and pooled[i, UNITS_NOW] == 0.0:
                q = between(table, (x - low) / (high - low) if high > low else 0.0)
                theta[trial, i] = min(max(q - shift[i], 0.0), upper[i])
                continue
            coins, k, units = pooled[i, COINS], pooled[i, MEAN_NOW], pooled[i, UNITS_NOW]
            moved = 0.0
            if follows and units > 0.0:
                own, length = hypotheses[trial, i], int(marks[trial, i, LENGTH])
                since = own[pick(own, length, uniform(g))]
                coins *= since[H_N] / units
                units = since[H_N]
                k = min(max(since[H_MEAN] + shift[i], 0.0), 1.0)
                moved = IDLE_SHARE * change.grown(G, t[trial] - marks[trial, i, LAST_ROUND])
            a, b = m * c0 + coins * k, (1.0 - m) * c0 + coins * (1.0 - k)
            if moved > 0.0:
                mean = a / (a + b)
                wide = mean * (1.0 - mean)
                known = wide / (a + b + 1.0)
                counts = wide / max(known, min(known + moved, wide / 3.0)) - 1.0
                a, b = mean * counts, (1.0 - mean) * counts
            q = beta_quantile(-sign * x, a, b)
            end = shift[i] if sign > 0.0 else shift[i] + upper[i]
            rare = pooled[i, RARE] * (1.0 - below(-x) ** (1.0 / (units + 1.0)))
            q += rare * (end - q) - shift[i]
            theta[trial, i] = min(max(q, 0.0), upper[i])
