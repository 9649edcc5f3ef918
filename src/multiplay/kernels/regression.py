"""Least squares, round after round: a linear loss fitted to the totals of the rounds.

The state of a trial is a triangle R and a vector z, with R'R = V = sum of x x' and R'z = b = sum of
x y over the rounds seen. So R theta = z solves the normal equations V theta = b, and V^-1 is the
covariance of R^-1 w for independent w of variance 1. R keeps half as many digits of trouble as V:
it is as well conditioned as the data are.
"""

import math

import numpy as np

from multiplay.kernels.jit import kernel, subroutine
from multiplay.types import FloatArray, IntArray


@kernel
def add_rounds(
    action: IntArray,
    total: FloatArray,
    J: IntArray,
    X: IntArray,
    seen: IntArray,
    R: FloatArray,
    z: FloatArray,
) -> None:
    """Append the row x = a_J to R, and y to z, by plane rotations (Givens).

    ``seen`` counts the spanning actions, the rows of X, that were played, in their order.
    """
    s = len(J)
    x = np.empty(s)
    for k in range(len(action)):
        awaited = seen[k] < s
        for i in range(s):
            x[i] = action[k, J[i]]
            awaited = awaited and action[k, J[i]] == X[seen[k], i]
        seen[k] += awaited
        y = total[k]
        for i in range(s):
            if x[i] != 0.0:
                length = math.hypot(R[k, i, i], x[i])
                cos, sin = R[k, i, i] / length, x[i] / length
                R[k, i, i] = length
                for j in range(i + 1, s):
                    R[k, i, j], x[j] = cos * R[k, i, j] + sin * x[j], cos * x[j] - sin * R[k, i, j]
                z[k, i], y = cos * z[k, i] + sin * y, cos * y - sin * z[k, i]


@subroutine
def back_substitute(R: FloatArray, z: FloatArray, theta: FloatArray) -> None:
    """Solve R theta = z, for one trial."""
    for i in range(len(z) - 1, -1, -1):
        rest = z[i]
        for j in range(i + 1, len(z)):
            rest -= R[i, j] * theta[j]
        theta[i] = rest / R[i, i]


@kernel
def estimate(
    seen: IntArray, R: FloatArray, z: FloatArray, noise: FloatArray, J: IntArray, losses: FloatArray
) -> None:
    """losses_J = R^-1 (z + noise), and 0 for the other arms; all 0 before all of J can be known."""
    s = len(J)
    target, theta = np.empty(s), np.empty(s)
    losses[:] = 0.0
    for k in range(len(R)):
        if seen[k] == s:
            for i in range(s):
                target[i] = z[k, i] + noise[k, i]
            back_substitute(R[k], target, theta)
            for i in range(s):
                losses[k, J[i]] = theta[i]


@kernel
def log_determinants(seen: IntArray, R: FloatArray, log_det: FloatArray) -> None:
    """log_det[k] = ln det V, and 0 before all of J can be known."""
    s = R.shape[1]
    for k in range(len(R)):
        log_det[k] = 0.0
        if seen[k] == s:
            for i in range(s):
                log_det[k] += 2 * math.log(abs(R[k, i, i]))


@kernel
def believe(
    seen: IntArray,
    R: FloatArray,
    z: FloatArray,
    radius: FloatArray,
    actions: FloatArray,
    index: FloatArray,
) -> None:
    """index[k, a] = <x, theta> + radius[k] sqrt(x' V^-1 x), for the coordinates x of all actions.

    The root is the length of R'^-1 x. All are 0 before all of J can be known.
    """
    K, s = actions.shape
    theta, w = np.empty(s), np.empty(s)
    index[:] = 0.0
    for k in range(len(R)):
        if seen[k] == s:
            back_substitute(R[k], z[k], theta)
            for a in range(K):
                value, doubt = 0.0, 0.0
                for i in range(s):
                    value += actions[a, i] * theta[i]
                    w[i] = actions[a, i]
                    for j in range(i):
                        w[i] -= R[k, j, i] * w[j]
                    w[i] /= R[k, i, i]
                    doubt += w[i] * w[i]
                index[k, a] = value + radius[k] * math.sqrt(doubt)
