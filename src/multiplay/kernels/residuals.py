"""Errors of a regression on features that last for many rounds, and means without deviations.

The error of a report before it is learned, divided by its standard deviation, is r; S is the sum of
r phi over the arms of a round. If the model holds, r has mean 0 whatever was known before, and so
has <S, S of the last rounds>. Its sum over rounds is divided by the root of the sum of its squares.
Old rounds fade.
"""

import math

import numpy as np

from multiplay.kernels.features import COIN, ROUND, UNIT, best_size, coin, dot, length_in, shares
from multiplay.kernels.jit import kernel
from multiplay.kernels.regression import back_substitute
from multiplay.types import FloatArray, IntArray

ROUNDS, LASTS, LASTS2 = range(3)  # columns of ``sums``
SUMS = 3
FADE = 0.995  # of a round: the last 200 count
RECENT = 0.9  # of S in a round: the last 10 count


@kernel
def add_residuals(
    arms: IntArray,
    phi: FloatArray,
    units: FloatArray,
    mean: FloatArray,
    N: FloatArray,
    Z: FloatArray,
    X: FloatArray,
    R: FloatArray,
    z: FloatArray,
    ev: FloatArray,
    noise: FloatArray,
    sizes: FloatArray,
    sums: FloatArray,
    recent: FloatArray,
) -> None:
    """Add the errors of the reports of a round, before they are learned."""
    p, g0 = phi.shape[1], best_size(ev)
    theta, x, S = np.empty(p), np.empty(p), np.zeros(p)
    back_substitute(R[g0], z[g0], theta)
    for k in range(len(arms)):
        i = arms[k]
        c = sizes[g0] / (1.0 + sizes[g0] * N[i])
        for j in range(p):
            x[j] = phi[k, j] - c * X[i, j]
        found = c * Z[i] + dot(x, theta)
        nu = noise[ROUND] + (noise[UNIT] + noise[COIN] * coin(found)) / units[k]
        r = (mean[k] - found) / math.sqrt(nu + c + length_in(R[g0], x))
        for j in range(p):
            S[j] += r * phi[k, j]
    lasts = dot(S, recent)
    for k in range(SUMS):
        sums[k] *= FADE
    sums[ROUNDS] += 1.0
    sums[LASTS] += lasts
    sums[LASTS2] += lasts * lasts
    for j in range(p):
        recent[j] = RECENT * recent[j] + S[j]


@kernel
def means_of(
    arms: IntArray,
    phi: FloatArray,
    N: FloatArray,
    Z: FloatArray,
    X: FloatArray,
    R: FloatArray,
    z: FloatArray,
    ev: FloatArray,
    sizes: FloatArray,
    means: FloatArray,
) -> None:
    """Give the means of some arms, as ``believe`` does, without their deviations."""
    share, theta = np.empty(len(sizes)), np.empty(phi.shape[1])
    shares(ev, share)
    means[:] = 0.0
    for g in range(len(sizes)):
        back_substitute(R[g], z[g], theta)
        for k in range(len(arms)):
            i = arms[k]
            c = sizes[g] / (1.0 + sizes[g] * N[i])
            means[k] += share[g] * (dot(phi[k], theta) + c * (Z[i] - dot(X[i], theta)))
