"""Draws of BootstrapCTS: Dirichlet weights over the losses seen and both ends of the range."""

import math

import numpy as np

from multiplay.kernels.averages import FADED
from multiplay.kernels.jit import kernel, subroutine
from multiplay.kernels.moments import (
    A2,
    DOF,
    MEAN,
    UNITS,
    B,
    N,
    R,
    W,
    add,
    add_kept,
    fade,
    keep,
    noise,
    of_units,
)
from multiplay.kernels.random import Generators, beta, gamma_above_one, normal_pair, uniform
from multiplay.types import FloatArray, IntArray

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
def seen_mean(g: Generators, row: FloatArray, s2: float, su: float, upper: float) -> float:
    """Draw the core of an arm: Beta with the average of its units, and the variance of that.

    The variance is deff (W + B) / (n (n + 1)), where deff = 1 + rho (A2 / n - 1) counts what units
    of one day share. Units known by totals only vary by s_i^2.
    """
    n, mean = row[N], row[MEAN] / upper
    within = row[W] + max(n - row[R] - row[DOF], 0.0) * s2
    rho = su / (su + s2) if su > 0.0 else 0.0
    deff = max(1.0, 1.0 + rho * (row[A2] / n - 1.0))
    variance = deff * (within + row[B]) / (n * (n + 1.0)) / (upper * upper)
    most = mean * (1.0 - mean)
    variance = min(variance, 0.999 * most)
    if variance <= NARROWEST:
        return float(row[MEAN])
    counts = most / variance - 1.0
    return upper * beta(g, mean * counts, (1.0 - mean) * counts)


@kernel
def draw(
    generators: Generators,
    moments: FloatArray,
    shift: FloatArray,
    upper: FloatArray,
    n: IntArray,
    w: float,
    sign: float,
    theta: FloatArray,
) -> None:
    """theta_i = upper_i V_1 + V_n core_i, (V_0, V_1, V_n) ~ Dirichlet(w, w, N_i).

    An arm never seen has upper_i Beta(w, n_i w), or 1 minus that for rewards (sign -1): for w = 1
    the best of one draw for each unit that it can play.
    """
    d = moments.shape[1]
    s2 = np.empty(d)
    for k in range(len(moments)):
        g = generators[k]
        su = noise(moments[k], shift, s2)[1]
        for i in range(d):
            row, top = moments[k, i], upper[i]
            if row[N] < FADED:
                best = beta(g, w, max(n[i], 1) * w)
                theta[k, i] = top * (best if sign > 0.0 else 1.0 - best)
                continue
            high, middle = weights(g, w, row[N])
            theta[k, i] = top * high + middle * seen_mean(g, row, s2[i], su, top)


@kernel
def learn(
    moments: FloatArray,
    kept: FloatArray,
    slot: IntArray,
    seen: IntArray,
    total: FloatArray,
    units: FloatArray,
    first: IntArray,
) -> None:
    """Add the report of a round, in every trial; ``units`` is empty if there are totals only.

    With a window, slot ``slot[k]`` of ``kept`` keeps the report instead, until ``rebuild``.
    """
    for k in range(len(moments)):
        for i in range(moments.shape[1]):
            a = seen[k, i]
            if a == 0:
                continue
            y, within, fourth, dof = total[k, i] / a, 0.0, 0.0, 0.0
            if units.shape[1] > 0 and first[i] + a <= first[i + 1]:
                _, y, within, fourth = of_units(units[k], first[i], first[i] + a, 0.0, 1.0)
                dof = a - 1.0
            if kept.shape[2] > 0:
                keep(kept[k, i, slot[k]], a, y, within, fourth, dof)
            else:
                add(moments[k, i], a, y, within, fourth, dof)


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
                    add_kept(moments[k, i], report)


@kernel
def fade_all(moments: FloatArray, weight: float) -> None:
    """Let all reports count ``weight`` times as much."""
    for k in range(len(moments)):
        fade(moments[k], weight)
