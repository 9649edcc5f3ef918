"""Draws of BootstrapCTS: Dirichlet weights over the losses seen and both ends of the range."""

import math

import numpy as np

from multiplay.kernels import change
from multiplay.kernels.averages import FADED
from multiplay.kernels.hypotheses import (
    H_B,
    H_MEAN,
    H_N,
    H_W,
    LAST_ROUND,
    LENGTH,
    OCTAVES,
    pick,
    pick_by_mean,
)
from multiplay.kernels.jit import kernel, subroutine
from multiplay.kernels.moments import (
    A2,
    AVERAGE,
    DOF,
    FOURTH,
    FREEDOM,
    MEAN,
    UNITS,
    WITHIN,
    B,
    N,
    R,
    W,
    add_report,
    fade,
    keep,
    noise,
    of_units,
)
from multiplay.kernels.quantiles import below, beta_quantile
from multiplay.kernels.random import Generators, beta, gamma_above_one, normal_pair, uniform
from multiplay.types import FloatArray, IntArray

LONG = 1_000.0  # rounds in which an idle arm may move by the curiosity
NARROWEST = 1e-18  # variance of a core, relative to its range: less is a constant


@subroutine
def gamma(g: Generators, shape: float) -> float:
    """Gamma(shape, 1)."""
    if shape >= 1.0:
        return gamma_above_one(g, shape, normal_pair(g)[0])
    small = math.exp(math.log(1.0 - uniform(g)) / shape)
    return gamma_above_one(g, shape + 1.0, normal_pair(g)[0]) * small


@subroutine
def weights(g: Generators, w: float, n: float) -> tuple[float, float]:
    """Return V_1 and V_n of Dirichlet(w, w, n).

    For w = 1, V_n ~ Beta(n, 2) = Beta(n, 1) Beta(n + 1, 1), which are powers of uniform numbers.
    """
    if w == 1.0:
        u, v = math.log(1.0 - uniform(g)), math.log(1.0 - uniform(g))
        middle = math.exp(u / n + v / (n + 1.0))
        return uniform(g) * (1.0 - middle), middle
    low, high, middle = gamma(g, w), gamma(g, w), gamma(g, n)
    total = low + high + middle
    return high / total, middle / total


@subroutine
def core_counts(m: float, variance: float, least: float, upper: float) -> float:
    """Return the counts of a core on [0, upper] with mean m upper; infinite for a constant.

    It has the variance, but at least ``least``, which is cut at m (1 - m) / 3.
    """
    most = m * (1.0 - m)
    variance = min(variance / (upper * upper), 0.999 * most)
    variance = max(variance, min(least / (upper * upper), most / 3.0))
    return most / variance - 1.0 if variance > NARROWEST else math.inf


@subroutine
def core(g: Generators, mean: float, counts: float, upper: float) -> float:
    """Draw a beta number on [0, upper] with this mean and these counts."""
    m = mean / upper
    return upper * beta(g, m * counts, (1.0 - m) * counts) if counts < math.inf else mean


@subroutine
def shared_draw(z: FloatArray, m: float, counts: float, n: float) -> float:
    """V_1 + V_n core on [0, 1], (V_0, V_1, V_n) ~ Dirichlet(1, 1, n), at the quantiles z.

    It increases in both. For a core c, with E_0, E_1 ~ Exp(1) and G ~ Gamma(n) in place of V: the
    draw is below x < c if x E_0 is above (1 - x) E_1 + (c - x) G, which has the probability
    E[exp(-(1 - x) E_1 / x)] E[exp(-(c - x) G / x)] = x (x / c)^n. Above c it is the same with
    1 - x and 1 - c.
    """
    c = m
    if counts < math.inf:
        c = beta_quantile(z[1], m * counts, (1.0 - m) * counts)
    u = below(z[0])
    if u <= c:
        return math.exp((math.log(u) + n * math.log(c)) / (n + 1.0))
    return -math.expm1((math.log(below(-z[0])) + n * math.log1p(-c)) / (n + 1.0))


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
    n: IntArray,
    w: float,
    curiosity: float,
    sign: float,
    z: FloatArray,
    theta: FloatArray,
) -> None:
    """theta_i = upper_i V_1 + V_n core_i, (V_0, V_1, V_n) ~ Dirichlet(w, w, N_i).

    The core has the average of the units of the arm, or of those since a change that a hypothesis
    states, picked by its weight; its variance is deff (W + B) / (N (N + 1)), where deff = 1 + rho
    (A2 / N - 1) counts what units of one day share. Units known by totals only vary by s_i^2. Arms
    that were not seen of late may have moved as far as those that were.

    An arm never seen has upper_i Beta(w, n_i w), or 1 minus that for rewards (sign -1): for w = 1
    the best of one draw for each unit that it can play.

    With one seed for all arms, z[k] has three normal numbers, and nothing is drawn: the weights are
    at the quantile z[k, 0], the core at z[k, 1] and the mean of the hypothesis at z[k, 2], for
    w = 1. Else z is empty.
    """
    d, follows, shared = moments.shape[1], hypotheses.shape[2] > 0, z.shape[1] > 0
    s2, G = np.empty(d), np.empty(OCTAVES)
    for k in range(len(moments)):
        g = generators[k]
        su = noise(moments[k], shift, s2)[1]
        if follows:
            change.growth(snaps[k], curiosity**2 / LONG, G)
        for i in range(d):
            row, top = moments[k, i], upper[i]
            if row[N] < FADED:
                many = max(n[i], 1) * w
                best = beta_quantile(sign * z[k, 0], w, many) if shared else beta(g, w, many)
                theta[k, i] = top * (best if sign > 0.0 else 1.0 - best)
                continue
            units, mean, squares, moved = row[N], row[MEAN], row[W] + row[B], 0.0
            if follows:
                own, length = hypotheses[k, i], int(marks[k, i, LENGTH])
                if shared:
                    since = own[pick_by_mean(own, length, below(z[k, 2]))]
                else:
                    since = own[pick(own, length, uniform(g))]
                units, mean = since[H_N], since[H_MEAN]
                squares = since[H_W] + since[H_B]
                moved = change.grown(G, t[k] - marks[k, i, LAST_ROUND])
            hidden = max(row[N] - row[R] - row[DOF], 0.0) * units / row[N]
            rho = su / (su + s2[i]) if su > 0.0 else 0.0
            deff = max(1.0, 1.0 + rho * (row[A2] / row[N] - 1.0))
            variance = deff * (squares + hidden * s2[i]) / (units * (units + 1.0))
            least = variance + moved if moved > 0.0 else 0.0
            counts = core_counts(mean / top, variance, least, top)
            if shared:
                theta[k, i] = top * shared_draw(z[k], mean / top, counts, units)
            else:
                high, middle = weights(g, w, units)
                theta[k, i] = top * high + middle * core(g, mean, counts, top)


@kernel
def summarise(
    seen: IntArray, total: FloatArray, units: FloatArray, first: IntArray, reports: FloatArray
) -> None:
    """reports[k, i] = the report of arm i; ``units`` is empty if there are totals only."""
    for k in range(len(reports)):
        for i in range(reports.shape[1]):
            a = seen[k, i]
            report = reports[k, i]
            report[:] = 0.0
            if a > 0:
                report[UNITS], report[AVERAGE] = a, total[k, i] / a
                if units.shape[1] > 0 and first[i] + a <= first[i + 1]:
                    _, y, within, fourth = of_units(units[k], first[i], first[i] + a, 0.0, 1.0)
                    report[AVERAGE], report[WITHIN], report[FOURTH] = y, within, fourth
                    report[FREEDOM] = a - 1.0


@kernel
def learn(moments: FloatArray, kept: FloatArray, slot: IntArray, reports: FloatArray) -> None:
    """Add the reports of a round, in every trial.

    With a window, slot ``slot[k]`` of ``kept`` keeps the report instead, until ``rebuild``.
    """
    for k in range(len(moments)):
        for i in range(moments.shape[1]):
            report = reports[k, i]
            if report[UNITS] == 0.0:
                continue
            if kept.shape[2] > 0:
                keep(kept[k, i, slot[k]], report)
            else:
                add_report(moments[k, i], report)


@kernel
def rebuild(moments: FloatArray, kept: FloatArray, oldest: IntArray) -> None:
    """Compute the moments of a window from its reports, the oldest round first."""
    window = kept.shape[2]
    for k in range(len(moments)):
        for i in range(moments.shape[1]):
            moments[k, i] = 0.0
            for j in range(window):
                report = kept[k, i, (oldest[k] + j) % window]
                if report[UNITS] > 0.0:
                    add_report(moments[k, i], report)


@kernel
def fade_all(moments: FloatArray, weight: float) -> None:
    """Let all reports count ``weight`` times as much."""
    for k in range(len(moments)):
        fade(moments[k], weight)
