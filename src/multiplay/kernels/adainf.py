"""Weights, estimates and costs of GenAdaINF, arm by arm; its two steps are those of the hull."""

import math

from multiplay.kernels.jit import kernel, subroutine
from multiplay.types import FloatArray, IntArray


@kernel
def barrier(
    total: FloatArray,
    count: FloatArray,
    S: FloatArray,
    floor: FloatArray,
    gain: bool,
    q: FloatArray,
    w: FloatArray,
) -> None:
    """Fill q = (1/2 + total) / (1 + count) and w = sqrt((floor risk)^2 + S).

    risk = q, or 1 - q where units gain; ``floor`` is c r_i.
    """
    trials, d = q.shape
    for k in range(trials):
        for i in range(d):
            q[k, i] = (0.5 + total[k, i]) / (1.0 + count[k, i])
            least = floor[i] * (1.0 - q[k, i] if gain else q[k, i])
            w[k, i] = math.sqrt(least * least + S[k, i])


@kernel
def estimate(
    a: IntArray, total: FloatArray, q: FloatArray, x: FloatArray, g: FloatArray, e: FloatArray
) -> None:
    """Fill e_i = q_i + (a_i / x_i) g_i (k_i - q_i), with k_i = total_i / a_i."""
    trials, d = x.shape
    for k in range(trials):
        for i in range(d):
            e[k, i] = q[k, i]
            if a[k, i] >= 1:
                e[k, i] += g[k, i] * (total[k, i] - a[k, i] * q[k, i]) / x[k, i]


@kernel
def pay(
    n: IntArray,
    rounds: bool,
    losses: FloatArray,
    w: FloatArray,
    v: FloatArray,
    x: FloatArray,
    rest: FloatArray,
    y: FloatArray,
    rest_y: FloatArray,
    t: IntArray,
    half_M: float,
    S: FloatArray,
    new_v: FloatArray,
) -> None:
    """S_i += 2 w_i kappa_i D_i / (1 + log t) and v += (sum_i (1 - kappa_i) D_i + B) / (M / 2).

    kappa_i = max(0, 1 - x_i) where x is rounded, else 1 - x_i / n_i. B = <losses + Psi'(y), x - y>
    is not negative, for y is the minimiser; it is 0 where nothing but equations bind.
    """
    trials, d = x.shape
    for k in range(trials):
        g, common, bound = 1.0 + math.log(t[k]), 0.0, 0.0
        for i in range(d):
            if y[k, i] == 0.0 or rest_y[k, i] == 0.0:  # an arm without freedom
                continue
            D = divergence(w[k, i], v[k], x[k, i], rest[k, i], y[k, i], rest_y[k, i])
            kappa = max(0.0, 1.0 - (x[k, i] if rounds else x[k, i] / n[i]))
            S[k, i] += 2.0 * w[k, i] * kappa * D / g
            common += (1.0 - kappa) * D
            slope = w[k, i] * (1.0 / n[i] - 1.0 / y[k, i]) + v[k] * math.log(y[k, i] / rest_y[k, i])
            bound += (losses[k, i] + slope) * (x[k, i] - y[k, i])
        new_v[k] += (common + max(bound, 0.0)) / half_M


@subroutine
def divergence(w: float, v: float, x: float, rest: float, y: float, rest_y: float) -> float:
    """D_i = w (x/y - 1 - log(x/y)) + v [x log(x/y) - x + y + the same of the complements].

    The complement of x may be 0, where what is left is less than the digits of x: 0 log 0 = 0.
    """
    more, less = (x - y) / y, (rest - rest_y) / rest_y
    up, down = math.log1p(more), math.log1p(less) if rest > 0.0 else 0.0
    D = w * (more - up) + v * (x * up - (x - y) + rest * down - (rest - rest_y))
    return max(D, 0.0)
