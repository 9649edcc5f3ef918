"""Experimental design on a list of points: weights that estimate all points well.

``X`` has a point in each row, ``p`` a weight for each, and S(p) = sum p x x'. The variance of what
is estimated at x is in proportion to the norm x' S(p)^-1 x.
"""

import math

import numpy as np

from multiplay.kernels.dense import cholesky, dot, solve_cholesky, solve_lower
from multiplay.kernels.jit import kernel, subroutine
from multiplay.types import FloatArray

FASTER = 10.0  # how much the weight of the costs grows from one barrier problem to the next
CENTRED = 1e-3  # a Newton decrement below which the next barrier problem may start
MAX_STEPS = 200  # Newton steps of one barrier problem; about 6 are taken


@subroutine
def factor(X: FloatArray, p: FloatArray, L: FloatArray) -> bool:
    """Fill L, the lower factor of S(p); False if S(p) is singular."""
    L[:] = 0.0
    for x in range(len(X)):
        for i in range(X.shape[1]):
            for j in range(i + 1):
                L[i, j] += p[x] * X[x, i] * X[x, j]
    return cholesky(L)


@subroutine
def norm(L: FloatArray, x: FloatArray, work: FloatArray) -> float:
    """Return x' S^-1 x, where S = L L'."""
    work[:] = x
    solve_lower(L, work)
    return dot(work, work)


@kernel
def g_optimal(X: FloatArray, tolerance: float, most_steps: int) -> FloatArray:
    """Return the weights that make the largest norm least: it is then X.shape[1].

    Every step multiplies p by norm / X.shape[1], which keeps its sum, until no norm is larger than
    (1 + tolerance) X.shape[1] (Kiefer and Wolfowitz 1960; Silvey, Titterington and Torsney 1978).
    """
    K, r = X.shape
    p, L, work, norms = np.full(K, 1.0 / K), np.empty((r, r)), np.empty(r), np.empty(K)
    for _ in range(most_steps):
        factor(X, p, L)
        for x in range(K):
            norms[x] = norm(L, X[x], work)
        if norms.max() <= (1.0 + tolerance) * r:
            break
        p *= norms / r
    return p


@kernel
def cheapest(
    X: FloatArray,
    gap: FloatArray,
    bound: FloatArray,
    start: FloatArray,
    tolerance: float,
    p: FloatArray,
) -> None:
    """Fill p with the cheapest weights that are good enough for every point.

    Minimise <p, gap> over weights p >= 0, sum p = 1, with x' S(p)^-1 x <= bound_x for all x. The
    weights ``start`` must be strictly feasible. By a log barrier, whose answer costs at most
    2 K / tau more than the least: tau grows until this is a share ``tolerance`` of the costs.
    """
    K, r = X.shape
    L, W, norms = np.empty((r, r)), np.empty((K, r)), np.empty(K)
    H, slope, hessian = np.empty((K, K)), np.empty(K), np.empty((K, K))
    step, other, trial = np.empty(K), np.empty(K), np.empty(K)
    p[:] = start
    tau = 2 * K / dot(p, gap)
    while True:
        value = barrier(X, gap, bound, tau, p, L, W, norms)
        for _ in range(MAX_STEPS):
            expand(gap, bound, tau, p, W, norms, H, slope, hessian)
            decrement = newton_step(p, slope, hessian, step, other)
            if decrement < CENTRED:
                break
            length = min(1.0, -0.99 / min(step.min(), -0.99))
            while length > 1e-12:
                for x in range(K):
                    trial[x] = p[x] * (1.0 + length * step[x])
                ahead = barrier(X, gap, bound, tau, trial, L, W, norms)
                if ahead <= value - 0.1 * length * decrement**2:
                    break
                length *= 0.5
            if length <= 1e-12:  # rounding: nothing more is to be won
                break
            p[:] = trial
            value = ahead
        if 2 * K / tau <= tolerance * dot(p, gap):
            break
        tau *= FASTER
    p /= p.sum()


@subroutine
def barrier(
    X: FloatArray,
    gap: FloatArray,
    bound: FloatArray,
    tau: float,
    p: FloatArray,
    L: FloatArray,
    W: FloatArray,
    norms: FloatArray,
) -> float:
    """Return tau <p, gap> - sum log p - sum log(bound - norms); infinite outside.

    Fills L, the norms, and W with rows W_x = L^-1 x, so that x' S^-1 y = <W_x, W_y>.
    """
    if p.min() <= 0.0 or not factor(X, p, L):
        return np.inf
    value = tau * dot(p, gap)
    for x in range(len(X)):
        norms[x] = norm(L, X[x], W[x])
        if norms[x] >= bound[x]:
            return np.inf
        value -= math.log(p[x]) + math.log(bound[x] - norms[x])
    return value


@subroutine
def expand(
    gap: FloatArray,
    bound: FloatArray,
    tau: float,
    p: FloatArray,
    W: FloatArray,
    norms: FloatArray,
    H: FloatArray,
    slope: FloatArray,
    hessian: FloatArray,
) -> None:
    """Fill first and second derivatives of the barrier by log p; H has x' S^-1 y.

    The norm of x falls by H_xa^2 with p_a, and H_xa by H_xb H_ab with p_b. Relative changes of p
    are the variables, for the weights are of very different sizes.
    """
    K, weight = len(p), 1.0 / (bound - norms)
    for x in range(K):
        for y in range(x + 1):
            H[x, y] = H[y, x] = dot(W[x], W[y])
    for a in range(K):
        slope[a] = p[a] * tau * gap[a] - 1.0
        for x in range(K):
            slope[a] -= p[a] * H[a, x] ** 2 * weight[x]
        for b in range(a + 1):
            of_norms, of_slacks = 0.0, 0.0
            for x in range(K):
                both = H[a, x] * H[b, x] * weight[x]
                of_norms += both
                of_slacks += both * both
            hessian[a, b] = p[a] * p[b] * (2.0 * H[a, b] * of_norms + of_slacks)
        hessian[a, a] += 1.0


@subroutine
def newton_step(
    p: FloatArray, slope: FloatArray, hessian: FloatArray, step: FloatArray, other: FloatArray
) -> float:
    """Fill the step that keeps sum p, <p, step> = 0; return its decrement."""
    cholesky(hessian)
    step[:] = -slope
    solve_cholesky(hessian, step)
    other[:] = p
    solve_cholesky(hessian, other)
    step -= other * (dot(p, step) / dot(p, other))
    return math.sqrt(max(-dot(slope, step), 0.0))
