"""Beliefs about mean losses: arms alike up to a learned spread s_b, from the moments of each arm.

Arm means ~ N(mu, s_b^2), mu ~ N(1/2, 1/4), s_b in {1/2 2^-k, k = 0, ..., 12} with a prior weight
proportional to s_b. All losses are in [0, 1], with one origin for all arms.
"""

import math
from typing import Any

import numpy as np

from multiplay.kernels.jit import kernel, subroutine
from multiplay.kernels.moments import (
    A2,
    DOF,
    KAPPA,
    MEAN,
    N2,
    ROUNDING,
    SEEN,
    W_END,
    B,
    F,
    N,
    R,
    W,
    fourths,
    noise,
)
from multiplay.types import FloatArray, IntArray

SIZES = 13  # values of s_b
POWERS, LARGEST_POWER = 9, 2.0
LEAST_MEAN = 1e-6
WEIGHT, MU, PRECISION, DAYS = range(4)  # columns of a size: pi, mu_g, P, sum h sqrt(A2)/n / P
S2, V, VP, NU, M, VARIANCE = range(6)  # columns of an arm
ENDS, S_G2 = range(2)


@subroutine
def scale_noise(rows: FloatArray, means: FloatArray, by_mean: FloatArray) -> None:
    """by_mean[i] = g_i = m_i^p over its average, and the squares of the arms in units of it.

    p is the mean of its posterior on POWERS, from how the squares of the arms follow their means; a
    square of a heavy tail counts for less.
    """
    d = len(rows)
    fourth = normal = d_all = units = squares = 0.0
    for i in range(d):
        row = rows[i]
        if row[N] > SEEN:
            fourth += row[F]
            normal += fourths(row)
            d_all += row[DOF] + max(row[R] - 1.0, 0.0)
            units += row[N]
            squares += row[W] + row[B]
    by_mean[:] = 1.0
    if squares <= ROUNDING * units:
        return
    tails = max(fourth / normal, 3.0)
    c = 2.0 / (tails - 1.0)
    evidence, most = np.zeros(POWERS), -math.inf
    for j in range(POWERS):
        p, logs, squares = LARGEST_POWER * j / (POWERS - 1), 0.0, 0.0
        for i in range(d):
            row = rows[i]
            D = row[DOF] + max(row[R] - 1.0, 0.0)
            if row[N] > SEEN and D > 0.0:
                g = max(means[i], LEAST_MEAN) ** p
                squares += (row[W] + row[B]) / g
                logs += D * math.log(g)
        evidence[j] = -0.5 * c * (logs + d_all * math.log(squares))
        most = max(most, evidence[j])
    total = power = 0.0
    for j in range(POWERS):
        weight = math.exp(evidence[j] - most)
        total += weight
        power += weight * LARGEST_POWER * j / (POWERS - 1)
    power /= total
    mean = 0.0
    for i in range(d):
        by_mean[i] = max(means[i], LEAST_MEAN) ** power
        if rows[i, N] > SEEN:
            mean += rows[i, N] * by_mean[i]
    for i in range(d):
        by_mean[i] *= units / mean
        rows[i, W] /= by_mean[i]
        rows[i, B] /= by_mean[i]
        rows[i, F] /= by_mean[i] * by_mean[i]


@kernel
def believe(
    moments: FloatArray, common: FloatArray, sizes: FloatArray, arms: FloatArray, rest: FloatArray
) -> None:
    """Compute the posterior: a row of ``sizes`` for each s_b, a row of ``arms`` for each arm.

    v_i is the variance of the average of arm i, and v'_i that with the noise of all arms, which
    compares arms: its own noise goes with its own mean, and weighing by it would pull every level
    down. ``rest`` = (ends, s_g^2): what unseen rare events and common days leave open.
    """
    d = len(moments)
    s2 = np.empty(d)
    s_e2, su, su0, _, _, n_all, d_all, mean = noise(moments, np.zeros(d), s2)
    for i in range(d):
        row = moments[i]
        arms[i, VP] = -1.0
        if row[N] > SEEN:
            arms[i, VP] = (s_e2 * row[N2] + su0 * row[A2]) / (row[N] * row[N])
    most = -math.inf
    for g in range(SIZES):
        s = 0.5 * 0.5**g
        sb2 = s * s
        P, pull, logs, days = 4.0, 2.0, 0.0, 0.0
        for i in range(d):
            if arms[i, VP] >= 0.0:
                spread = arms[i, VP] + sb2
                h = 1.0 / spread
                P += h
                pull += h * moments[i, MEAN]
                logs += math.log(spread)
                days += h * math.sqrt(moments[i, A2]) / moments[i, N]
        mu = pull / P
        misfit = 4.0 * (mu - 0.5) ** 2
        for i in range(d):
            if arms[i, VP] >= 0.0:
                misfit += (moments[i, MEAN] - mu) ** 2 / (arms[i, VP] + sb2)
        sizes[g, WEIGHT] = math.log(s) - 0.5 * (logs + math.log(P) + misfit)
        sizes[g, MU], sizes[g, PRECISION], sizes[g, DAYS] = mu, P, days / P
        most = max(most, sizes[g, WEIGHT])
    total = 0.0
    for g in range(SIZES):
        sizes[g, WEIGHT] = math.exp(sizes[g, WEIGHT] - most)
        total += sizes[g, WEIGHT]
    for g in range(SIZES):
        sizes[g, WEIGHT] /= total
    for i in range(d):
        arms[i, M] = 0.0
        for g in range(SIZES):
            f = 1.0 if arms[i, VP] < 0.0 else arms[i, VP] / (arms[i, VP] + 0.25 * 0.25**g)
            arms[i, M] += sizes[g, WEIGHT] * ((1.0 - f) * moments[i, MEAN] + f * sizes[g, MU])
    scaled, by_mean = moments.copy(), np.empty(d)
    scale_noise(scaled, arms[:, M], by_mean)
    _, su, _, c, sure, _, d_all, _ = noise(scaled, np.zeros(d), s2)
    least = min(KAPPA, 2.0 + d_all)
    for i in range(d):
        row = moments[i]
        arms[i, S2], arms[i, V], arms[i, NU] = by_mean[i] * s2[i], 0.0, least
        if row[N] > SEEN:
            arms[i, V] = by_mean[i] * (s2[i] * row[N2] + su * row[A2]) / (row[N] * row[N])
            arms[i, NU] = least + c * c * (row[DOF] + max(row[R] - 1.0, 0.0))
    rest[ENDS] = W_END * (1.0 - sure) * (mean * mean + (1.0 - mean) ** 2) / (n_all + 1.0) ** 2
    rest[S_G2] = min(max(common[0], 0.0) / (common[1] + 2.0), su)
    for i in range(d):
        variance = 0.0
        for g in range(SIZES):
            sb2 = 0.25 * 0.25**g
            f = 1.0 if arms[i, VP] < 0.0 else arms[i, VP] / (arms[i, VP] + sb2)
            m_g = (1.0 - f) * moments[i, MEAN] + f * sizes[g, MU]
            C = (1.0 - f) ** 2 * arms[i, V] + f * f * sb2
            C += f * f * (1.0 / sizes[g, PRECISION] + rest[ENDS])
            variance += sizes[g, WEIGHT] * (C + (m_g - arms[i, M]) ** 2)
        arms[i, VARIANCE] = variance


@kernel
def plan(
    moments: FloatArray,
    sizes: FloatArray,
    arms: FloatArray,
    rest: FloatArray,
    places: IntArray,
    units: FloatArray,
) -> Any:
    """Return the variance of the mean cost of a plan, and its degrees of freedom.

    ``units[i]`` units are of the arm at ``places[i]``; -1 stands for an arm without a row.
    """
    unseen = np.zeros(9)
    of_unseen = np.array([0.0, 0.0, -1.0, 0.0, 0.0, 0.0])
    least = KAPPA
    for i in range(len(arms)):
        least = min(least, arms[i, NU])
    of_unseen[NU] = least
    u = np.zeros(len(units))
    total = np.zeros(SIZES)
    variance = mean = 0.0
    for g in range(SIZES):
        pi, mu, P = sizes[g, WEIGHT], sizes[g, MU], sizes[g, PRECISION]
        sb2 = 0.25 * 0.25**g
        own = of_mu = b = b2 = 0.0
        for j in range(len(units)):
            a = units[j]
            if a == 0.0:
                continue
            row, arm = unseen, of_unseen
            if places[j] >= 0:
                row, arm = moments[places[j]], arms[places[j]]
            seen = arm[VP] >= 0.0
            f = arm[VP] / (arm[VP] + sb2) if seen else 1.0
            C = (1.0 - f) ** 2 * arm[V] + f * f * sb2
            own += a * a * C
            u[j] += pi * a * a * C
            of_mu += a * f
            total[g] += a * ((1.0 - f) * row[MEAN] + f * mu)
            if seen:
                b_j = a * (1.0 - f) * math.sqrt(row[A2]) / row[N]
                b += b_j
                b2 += b_j * b_j
        K = b + of_mu * sizes[g, DAYS]
        variance += pi * (own + of_mu**2 * (1.0 / P + rest[ENDS]) + rest[S_G2] * (K * K - b2))
        mean += pi * total[g]
    for g in range(SIZES):
        variance += sizes[g, WEIGHT] * (total[g] - mean) ** 2
    u_all = fractions = 0.0
    for j in range(len(units)):
        u_all += u[j]
        nu = arms[places[j], NU] if places[j] >= 0 else least
        fractions += u[j] * u[j] / nu
    nu = u_all * u_all / fractions if fractions > 0.0 else KAPPA
    return max(variance, 0.0), max(nu, KAPPA)
