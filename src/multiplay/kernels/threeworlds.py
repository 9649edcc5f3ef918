"""The steps of BestOfThreeWorlds, trial by trial: ``now`` says in which trials a step is due.

``X`` has a row for each action, S(p) = sum p x x', and what was lost, g, is in [-1, 1]. Names are
those of the state, which ``multiplay.policies.threeworlds`` explains.
"""

import math

import numpy as np

from multiplay.kernels.dense import dot, solve_cholesky
from multiplay.kernels.design import cheapest, factor, norm
from multiplay.kernels.jit import kernel, subroutine
from multiplay.kernels.random import pick
from multiplay.types import BoolArray, FloatArray, IntArray

ACCURACY = 1e-3  # how much more, relatively, the plan of phase 2 may cost than the cheapest
GROWTH_OF_PLAN, GROWTH_OF_TEST = 1.05, 1.02  # what is due again after the time has grown by this
LOW, HIGH = 0.39, 1.81  # where a gap, divided by that of phase 1, must stay


@kernel
def draw(p: FloatArray, u: FloatArray, a: IntArray) -> None:
    """Draw an action from p by a uniform number in each trial."""
    for k in range(len(a)):
        a[k] = pick(p[k], u[k, 0] * p[k].sum())


@kernel
def weigh(
    now: BoolArray,
    G: FloatArray,
    gamma: FloatArray,
    eta: FloatArray,
    B: FloatArray,
    p: FloatArray,
) -> None:
    """Fill p = (1 - gamma) w / |w| + gamma G, w = exp(-eta B)."""
    K = len(G)
    for k in range(len(p)):
        if not now[k]:
            continue
        least, total = B[k].min(), 0.0
        for x in range(K):
            p[k, x] = math.exp(eta[k] * (least - B[k, x]))
            total += p[k, x]
        for x in range(K):
            p[k, x] = (1.0 - gamma[k]) * p[k, x] / total + gamma[k] * G[x]


@kernel
def estimate(
    X: FloatArray,
    now: BoolArray,
    a: IntArray,
    p: FloatArray,
    g: FloatArray,
    bonus: FloatArray,
    E: FloatArray,
    B: FloatArray,
) -> None:
    """E += e and B += e - bonus x' S(p)^-1 x, where e = x' S(p)^-1 x_a g, for every action x."""
    K, r = X.shape
    L, v, work = np.empty((r, r)), np.empty(r), np.empty(r)
    for k in range(len(a)):
        if not now[k]:
            continue
        factor(X, p[k], L)
        v[:] = X[a[k]]
        solve_cholesky(L, v)
        for x in range(K):
            e = dot(X[x], v) * g[k]
            E[k, x] += e
            B[k, x] += e - bonus[k] * norm(L, X[x], work)


@kernel
def find_leader(
    now: BoolArray,
    lost: FloatArray,
    E: FloatArray,
    near: FloatArray,
    far: FloatArray,
    leader: IntArray,
    found: BoolArray,
) -> None:
    """Find a leader with lost - E_leader >= -near and E_x - E_leader >= far for every other x."""
    for k in range(len(leader)):
        found[k] = False
        if not now[k]:
            continue
        best = E[k].argmin()
        found[k] = lost[k] - E[k, best] >= -near[k]
        for x in range(E.shape[1]):
            if x != best and E[k, x] - E[k, best] < far[k]:
                found[k] = False
        if found[k]:
            leader[k] = best


@kernel
def plan(
    X: FloatArray,
    now: BoolArray,
    G: FloatArray,
    t: IntArray,
    beta: FloatArray,
    leader: IntArray,
    gap: FloatArray,
    planned: IntArray,
    number: IntArray,
    p: FloatArray,
    factors: FloatArray,
    norms: FloatArray,
) -> None:
    """Fill p with (e_leader + q) / 2, where q solves OP; where t has grown enough since the last.

    OP: minimise <q, gap> over weights q with x' S(q)^-1 x <= t gap_x^2 / beta + 4 r for all x.
    Keeps the factor of S(p) and the norms x' S(q)^-1 x of every plan by its number.
    """
    K, r = X.shape
    start, bound, q = np.empty(K), np.empty(K), np.empty(K)
    L, work = np.empty((r, r)), np.empty(r)
    for k in range(len(t)):
        if not now[k] or t[k] < GROWTH_OF_PLAN * planned[k]:
            continue
        for x in range(K):
            start[x] = 0.5 * G[x] + 0.05 / K
            bound[x] = t[k] * gap[k, x] ** 2 / beta[k] + 4.0 * r
        start[leader[k]] += 0.45
        cheapest(X, gap[k], bound, start, ACCURACY, q)
        planned[k] = t[k]
        number[k] += 1
        factor(X, q, L)
        for x in range(K):
            norms[k, number[k], x] = norm(L, X[x], work)
            p[k, x] = 0.5 * q[x]
        p[k, leader[k]] += 0.5
        factor(X, p[k], factors[k, number[k]])


@kernel
def doubt(
    X: FloatArray,
    now: BoolArray,
    t: IntArray,
    t0: IntArray,
    log: FloatArray,
    radius: FloatArray,
    doubted: BoolArray,
    leader: IntArray,
    gap: FloatArray,
    lost: FloatArray,
    of_leader: FloatArray,
    tested: IntArray,
    factors: FloatArray,
    norms: FloatArray,
    actions: IntArray,
    losses: FloatArray,
    plans: IntArray,
) -> None:
    """Say whether what was found in phase 1 is in doubt; where n = t - t0 has grown enough.

    It is if lost - of_leader >= radius, or if t0 gap + n (Rob - of_leader / n) is outside
    [0.39, 1.81] t gap for some action, Rob being a robust mean of its estimates.
    """
    K = len(X)
    for k in range(len(t)):
        doubted[k] = False
        n = t[k] - t0[k]
        if not now[k] or n < GROWTH_OF_TEST * tested[k]:
            continue
        tested[k] = n
        doubted[k] = lost[k] - of_leader[k] >= radius[k]
        e = np.empty(n)
        for x in range(K):
            if x == leader[k]:
                continue
            estimate_again(X, x, factors[k], actions[k], losses[k], plans[k], e)
            variance = float(n)
            for i in range(n):
                variance += 2.0 * norms[k, plans[k, i], x]
            alpha = math.sqrt(4.0 * log[k] / variance)
            low = (of_leader[k] + (LOW * t[k] - t0[k]) * gap[k, x]) / n
            high = (of_leader[k] + (HIGH * t[k] - t0[k]) * gap[k, x]) / n
            if not robust_mean_within(e, alpha, low, high):
                doubted[k] = True
                break


@kernel
def estimate_again(
    X: FloatArray,
    x: int,
    factors: FloatArray,
    actions: IntArray,
    losses: FloatArray,
    plans: IntArray,
    e: FloatArray,
) -> None:
    """Fill e = x' S(p)^-1 x_a g for the first plays of one trial, each with the p of its plan."""
    last = plans[: len(e)].max() + 1
    directions = np.empty((last, X.shape[1]))
    for j in range(last):
        directions[j] = X[x]
        solve_cholesky(factors[j], directions[j])
    for i in range(len(e)):
        e[i] = dot(directions[plans[i]], X[actions[i]]) * losses[i]


@kernel
def robust_mean_within(values: FloatArray, alpha: float, low: float, high: float) -> bool:
    """Say whether the estimate of Catoni, clipped to [-1, 1], is in [low, high].

    The estimate is the root z of ``influence``, which falls with z: so its sign at both ends tells,
    and no root has to be found.
    """
    above = low <= -1.0 or (low <= 1.0 and influence(values, alpha, low) >= 0.0)
    below = high >= 1.0 or (high >= -1.0 and influence(values, alpha, high) <= 0.0)
    return above and below


@subroutine
def influence(values: FloatArray, alpha: float, z: float) -> float:
    """Return sum psi(alpha (values - z)), psi(u) = sign(u) log(1 + |u| + u^2 / 2)."""
    total = 0.0
    for value in values:
        u = alpha * (value - z)
        total += math.copysign(math.log1p(abs(u) + 0.5 * u * u), u)
    return total
