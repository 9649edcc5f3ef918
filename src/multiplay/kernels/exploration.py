"""Exploration by optimisation: the reference distribution, the distribution to play, the estimate.

Actions are the rows of Y (K, r), with mean 0. The reference q lives on a net: every point

    N = (1 - e) Y_v + e Y_u / 2,  e = 2^-k,  prior 2^(-r k),

for all actions v, u and levels k = 0, 1, ...; at level 0, where v does not matter, once for each u.
As <L, N> is a sum of a part of v and a part of u, these are independent under q, given the level:
its moments are those of 2 K weights for each level, not of K^2.
"""

import math
from typing import Any

import numpy as np

from multiplay.kernels.dense import cholesky, inner, solve_cholesky, solve_lower, solve_upper
from multiplay.kernels.design import factor
from multiplay.kernels.jit import kernel, subroutine
from multiplay.kernels.random import pick
from multiplay.types import FloatArray, IntArray

BARRIER = 0.02  # its weight, relative to z at the feasible start, is this for all actions together
FIRST_BARRIER, LESS_BARRIER = 0.1, 5.0  # where a cold start begins, and what divides it in turn
WARM_STEPS, COLD_STEPS = 12, 100
SMALL_STEP = 1e-6  # Newton converges quadratically: after a step this small, errors are near 1e-12
LONG_STEP = 0.3  # relative steps from here on are shortened
NOTHING = -745.0  # exp of less than this is 0


@kernel
def reference(Y: FloatArray, costs: FloatArray, levels: IntArray) -> Any:
    """Exponential weights q(N) ~ prior(N) exp(-<costs, N>) on the net, for each row of costs.

    Returns, one for each trial, W (K, r), all actions less the mean mu of q; the covariance Cq
    (r, r) of q; and p (K,), the net rounded at random to actions of the same mean: a point becomes
    v with probability 1 - e, and else, half each, u or any action.
    """
    trials, (K, r) = len(costs), Y.shape
    W, Cq, p = np.empty((trials, K, r)), np.zeros((trials, r, r)), np.empty((trials, K))
    most = levels.max() + 1
    e = 0.5 ** np.arange(most)
    loss, near, far = np.empty(K), np.empty((most, K)), np.empty((most, K))
    weight = np.empty(most)
    for t in range(trials):
        leader, m = 0, levels[t] + 1
        for a in range(K):
            loss[a] = inner(Y[a], costs[t], r)
            if loss[a] < loss[leader]:
                leader = a
        # offsets from the leader stay exact, however close to it q has come
        for a in range(K):
            for i in range(r):
                W[t, a, i] = Y[a, i] - Y[leader, i]
        weigh(e, loss, leader, r, near, far, weight[:m])
        centre(e, Y[leader], near, far, weight[:m], W[t], Cq[t])
        spread(e, near, far, weight[:m], p[t])
    return W, Cq, p


@subroutine
def weigh(
    e: FloatArray,
    loss: FloatArray,
    leader: int,
    r: int,
    near: FloatArray,
    far: FloatArray,
    weight: FloatArray,
) -> None:
    """Find the distribution of the level k, and those of v (near) and u (far) at each level."""
    K, levels, top = len(loss), len(weight), -np.inf
    for k in range(levels):
        # the log-weight of the leading point of the level, where u = v = leader, less its limit
        weight[k] = loss[leader] * e[k] / 2 - k * r * math.log(2.0)
        top = max(top, weight[k])
    for a in range(K):
        gap, of_v = loss[a] - loss[leader], 1.0
        for k in range(levels):
            far[k, a] = exp_or_zero(-gap * e[k] / 2)
            near[k, a] = of_v  # exp(-gap (1 - e)), a product: 1 - e = 1/2 + 1/4 + ...
            of_v *= far[k, a]
    for k in range(levels):
        weight[k] = exp_or_zero(weight[k] - top) * normalise(far[k])
        total = normalise(near[k])
        if k > 0:  # at level 0 each u counts once, whatever v is
            weight[k] *= total
    normalise(weight)


@subroutine
def normalise(weight: FloatArray) -> float:
    """Divide by the sum, and return it."""
    total = 0.0
    for each in weight:
        total += each
    for k in range(len(weight)):
        weight[k] /= total
    return total


@subroutine
def exp_or_zero(x: float) -> float:
    """exp(x), without the time that it takes to find a 0."""
    return math.exp(x) if x > NOTHING else 0.0


@subroutine
def centre(
    e: FloatArray,
    leader: FloatArray,
    near: FloatArray,
    far: FloatArray,
    weight: FloatArray,
    W: FloatArray,
    Cq: FloatArray,
) -> None:
    """Turn W, the offsets of the actions from the leader, to offsets from mu; write Cq.

    The covariance is a sum of squares about means, within the levels and between them: nothing
    large is subtracted from it.
    """
    levels, (K, r) = len(weight), W.shape
    v, u, mu, mean = np.zeros(r), np.zeros(r), np.zeros(r), np.empty((levels, r))
    for k in range(levels):
        for i in range(r):
            v[i] = u[i] = 0.0
            for a in range(K):
                v[i] += near[k, a] * W[a, i]
                u[i] += far[k, a] * W[a, i]
            mean[k, i] = (1 - e[k]) * v[i] + e[k] / 2 * (u[i] - leader[i])
            mu[i] += weight[k] * mean[k, i]
        for i in range(r):
            for j in range(i + 1):
                of_v, of_u = 0.0, 0.0
                for a in range(K):
                    of_v += near[k, a] * (W[a, i] - v[i]) * (W[a, j] - v[j])
                    of_u += far[k, a] * (W[a, i] - u[i]) * (W[a, j] - u[j])
                Cq[i, j] += weight[k] * ((1 - e[k]) ** 2 * of_v + e[k] ** 2 / 4 * of_u)
    for i in range(r):
        for j in range(i + 1):
            for k in range(levels):
                Cq[i, j] += weight[k] * (mean[k, i] - mu[i]) * (mean[k, j] - mu[j])
            Cq[j, i] = Cq[i, j]
        for a in range(K):
            W[a, i] -= mu[i]


@subroutine
def spread(
    e: FloatArray, near: FloatArray, far: FloatArray, weight: FloatArray, p: FloatArray
) -> None:
    """Round the net to actions."""
    K = len(p)
    for a in range(K):
        p[a] = 0.0
        for k in range(len(weight)):
            p[a] += weight[k] * ((1 - e[k]) * near[k, a] + e[k] / 2 * (far[k, a] + 1 / K))


@kernel
def explore(W: FloatArray, Cq: FloatArray, feasible: FloatArray, p: FloatArray) -> None:
    """Move p, any positive weights, to the argmin of tr(Cq V(p)^-1) - nu sum_a log p_a.

    V(p) = sum_a p_a w_a w_a', over distributions p with mean 0: sum p_a w_a = 0. nu follows from
    ``feasible``, one of these distributions, so that the answer is the same from any p.
    """
    for t in range(len(p)):
        K = len(p[t])
        value = stability(W[t], Cq[t], feasible[t])
        nu = BARRIER * value / K
        if newton(W[t], Cq[t], nu, p[t], WARM_STEPS):
            continue
        p[t] = feasible[t]
        more = FIRST_BARRIER * value
        while more > nu:
            newton(W[t], Cq[t], more, p[t], WARM_STEPS)
            more /= LESS_BARRIER
        if not newton(W[t], Cq[t], nu, p[t], COLD_STEPS):
            p[t] = feasible[t]


@subroutine
def stability(W: FloatArray, Cq: FloatArray, p: FloatArray) -> float:
    """z = tr(Cq V(p)^-1)."""
    K, r = W.shape
    y, Q = np.empty((K, r)), np.empty((r, r))
    whiten(W, Cq, p, y, Q)
    z = 0.0
    for i in range(r):
        z += Q[i, i]
    return z


@subroutine
def whiten(W: FloatArray, Cq: FloatArray, p: FloatArray, y: FloatArray, Q: FloatArray) -> Any:
    """Take coordinates in which V(p) is the identity: actions y_a, and Q in the place of Cq.

    Returns the Cholesky factor of V(p).
    """
    K, r = W.shape
    C = np.empty((r, r))
    factor(W, p, C)
    y[:] = W
    for a in range(K):
        solve_lower(C, y[a])
    Q[:] = Cq
    for i in range(r):
        solve_lower(C, Q[i])
    for i in range(r):
        solve_lower(C, Q[:, i])
    return C


@subroutine
def newton(W: FloatArray, Cq: FloatArray, nu: float, p: FloatArray, steps: int) -> bool:
    """Newton's method in relative steps x = dp / p; says whether it has converged.

    With y and Q of ``whiten``, gradient and Hessian in x are

        -p_a h_a - nu,  h_a = y_a' Q y_a,   and   nu I + 2 p_a p_b (y_a' y_b) (y_a' Q y_b).

    The constraints are sum_a p_a = 1 and sum_a p_a y_a = 0. Their rows have very different lengths
    once p is skewed: they are normalised.
    """
    K, r = W.shape
    y, Q, H, S = np.empty((K, r)), np.empty((r, r)), np.empty((K, K)), np.empty((r + 1, r + 1))
    Qy, rows, x, dual = np.empty(r), np.empty((r + 1, K)), np.empty(K), np.empty(r + 1)
    for _ in range(steps):
        whiten(W, Cq, p, y, Q)
        for a in range(K):
            for i in range(r):
                Qy[i] = inner(Q[i], y[a], r)
            for b in range(a + 1):
                H[a, b] = 2 * p[a] * p[b] * inner(y[a], y[b], r) * inner(Qy, y[b], r)
            H[a, a] += nu
            x[a] = nu + p[a] * inner(Qy, y[a], r)
        cholesky(H)
        solve_lower(H, x)
        for i in range(r + 1):
            missing, squares = (1.0 if i == 0 else 0.0), 0.0
            for a in range(K):
                rows[i, a] = p[a] if i == 0 else p[a] * y[a, i - 1]
                missing -= rows[i, a]
                squares += rows[i, a] ** 2
            rows[i] /= math.sqrt(squares)
            solve_lower(H, rows[i])
            dual[i] = inner(rows[i], x, K) - missing / math.sqrt(squares)
            for j in range(i + 1):
                S[i, j] = inner(rows[i], rows[j], K)
        cholesky(S)
        solve_cholesky(S, dual)
        for i in range(r + 1):
            for a in range(K):
                x[a] -= dual[i] * rows[i, a]
        solve_upper(H, x)
        longest = 0.0
        for a in range(K):
            longest = max(longest, abs(x[a]))
        if not longest < np.inf:
            return False
        length = 1.0 if longest < LONG_STEP else 1 / (1 + longest)
        for a in range(K):
            p[a] += length * x[a] * p[a]
        if longest < SMALL_STEP:
            return True
    return False


@kernel
def draw(W: FloatArray, Cq: FloatArray, p: FloatArray, uniform: FloatArray) -> Any:
    """Draw an action a ~ p in each trial; return its number, V(p)^-1 w_a, and tr(Cq V(p)^-1)."""
    trials, K, r = W.shape
    action, direction, z = np.empty(trials, np.int64), np.empty((trials, r)), np.zeros(trials)
    y, Q = np.empty((K, r)), np.empty((r, r))
    for t in range(trials):
        a = pick(p[t], uniform[t] * p[t].sum())
        C = whiten(W[t], Cq[t], p[t], y, Q)
        action[t], direction[t] = a, y[a]
        solve_upper(C, direction[t])
        for i in range(r):
            z[t] += Q[i, i]
    return action, direction, z
