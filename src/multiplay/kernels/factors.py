"""Features that multiply: where a regression with factors is made linear.

With factors the loss y of a unit has the mean

    y + zero = exp(<gamma, psi>) (<theta, phi> + b_i + zero),

where psi are the last columns of the features, and zero is the origin of the losses. With
base = <theta, phi> + b_i + zero and eta = <gamma, psi> as believed,

    (y + zero) exp(-eta) - zero + base eta  =  <theta, phi> + b_i + base <gamma, psi>

up to products of two errors: a regression on phi and base psi.
"""

import math

import numpy as np

from multiplay.kernels.features import NEGLIGIBLE, shares
from multiplay.kernels.jit import kernel
from multiplay.kernels.regression import back_substitute
from multiplay.types import FloatArray, IntArray

MOST = 3.0  # of eta: a factor is between 1/20 and 20, whatever is believed at first
LEAST = 1e-3  # of base, of which losses are shares


@kernel
def tangent(
    arms: IntArray,
    phi: FloatArray,
    N: FloatArray,
    Z: FloatArray,
    X: FloatArray,
    R: FloatArray,
    z: FloatArray,
    ev: FloatArray,
    sizes: FloatArray,
    factors: FloatArray,
    x: FloatArray,
    base: FloatArray,
    eta: FloatArray,
) -> None:
    """Give base and eta of some arms in every trial, means over the sizes; x = phi, base psi.

    ``factors`` has the number of the last columns that multiply, and zero. Arm -1 is no arm.
    """
    p, share = phi.shape[2], np.empty(len(sizes))
    theta = np.empty((len(sizes), p))
    for k in range(len(arms)):
        shares(ev[k], share)
        for g in range(len(sizes)):
            back_substitute(R[k, g], z[k, g], theta[g])
        first, zero = p - int(factors[k, 0]), factors[k, 1]
        for j in range(arms.shape[1]):
            i, level, log = arms[k, j], zero, 0.0
            for g in range(len(sizes)):
                if i >= 0 and share[g] > NEGLIGIBLE:
                    c = sizes[g] / (1.0 + sizes[g] * N[k, i])
                    level += share[g] * c * Z[k, i]
                    for f in range(p):
                        level -= share[g] * c * X[k, i, f] * theta[g, f]
                    for f in range(first):
                        level += share[g] * phi[k, j, f] * theta[g, f]
                    for f in range(first, p):
                        log += share[g] * phi[k, j, f] * theta[g, f]
            base[k, j] = max(level, LEAST)
            eta[k, j] = min(max(log, -MOST), MOST)
            for f in range(first):
                x[k, j, f] = phi[k, j, f]
            for f in range(first, p):
                x[k, j, f] = base[k, j] * phi[k, j, f]


@kernel
def made_linear(
    a: FloatArray,
    y: FloatArray,
    scatter: FloatArray,
    factors: FloatArray,
    base: FloatArray,
    eta: FloatArray,
    level: FloatArray,
    within: FloatArray,
    log: FloatArray,
) -> None:
    """Give averages and scatter of the linear regression, and the sum of eta of what was seen."""
    for k in range(len(y)):
        log[k], zero = 0.0, factors[k, 1]
        for j in range(y.shape[1]):
            m = math.exp(eta[k, j])
            level[k, j] = (y[k, j] + zero) / m - zero + base[k, j] * eta[k, j]
            within[k, j] = scatter[k, j] / (m * m)
            if a[k, j] > 0.0:
                log[k] += eta[k, j]
