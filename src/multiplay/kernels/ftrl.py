"""Updates of follow-the-regularised-leader after a round, arm by arm.

As in the policies: ``a`` units of an arm were played, ``seen`` of them were seen and lost ``total``
together, k = total / seen on average; ``x`` and ``rest`` = n - x are of the minimiser that the
action was drawn around, and u = x / n.
"""

import math

from multiplay.kernels.jit import kernel
from multiplay.types import FloatArray, IntArray

TINY = 1e-100  # an arm that is never played has n = x = a = 0, and a / x shall be 0
POOLED = 20.0  # units of all arms in the chance of a report of one arm
LEAST_CHANCE = 0.05  # of a report: no weight is above 20


@kernel
def weigh_reports(
    a: IntArray,
    seen: IntArray,
    played: FloatArray,
    known: FloatArray,
    g: FloatArray,
) -> None:
    """Fill g_i = seen_i / (p_i a_i), p_i being the chance of a report; then count this one.

    p_i = (20 pool + known_i) / (20 + played_i), at least 0.05, with
    pool = (1 + sum known) / (1 + sum played): exactly 1 while all units were seen.
    """
    for k in range(g.shape[0]):
        above, below, all_known = 1.0, 1.0, True
        for i in range(g.shape[1]):
            above += known[k, i]
            below += played[k, i]
            all_known &= known[k, i] == played[k, i]
        pool = above / below
        for i in range(g.shape[1]):
            g[k, i] = 1.0
            if not all_known or seen[k, i] != a[k, i]:
                p = (POOLED * pool + known[k, i]) / (POOLED + played[k, i])
                p = min(max(p, LEAST_CHANCE), 1.0)
                g[k, i] = seen[k, i] / (p * a[k, i]) if a[k, i] >= 1 else 1.0
            played[k, i] += a[k, i]
            known[k, i] += seen[k, i]


@kernel
def estimate(
    a: IntArray,
    seen: IntArray,
    total: FloatArray,
    x: FloatArray,
    q: FloatArray,
    g: FloatArray,
    L: FloatArray,
    error: FloatArray,
) -> bool:
    """Lhat_i += q_i + (a_i / x_i) error_i, error_i = g_i (k_i - q_i); 0 where nothing was seen.

    Returns whether a report has another weight g_i than 1.
    """
    weighted = False
    for k in range(L.shape[0]):
        for i in range(L.shape[1]):
            expected, miss = q[k, i], 0.0
            if seen[k, i] >= 1:
                miss = g[k, i] * (total[k, i] / seen[k, i] - expected)
                expected += a[k, i] / max(x[k, i], TINY) * miss
            L[k, i] += expected
            error[k, i] = miss
            weighted |= g[k, i] != 1.0
    return weighted


@kernel
def weigh_and_estimate(
    a: IntArray,
    seen: IntArray,
    total: FloatArray,
    x: FloatArray,
    q: FloatArray,
    played: FloatArray,
    known: FloatArray,
    g: FloatArray,
    L: FloatArray,
    error: FloatArray,
) -> bool:
    """Do both, in one call from Python: with few trials, a call takes as long as the work."""
    weigh_reports(a, seen, played, known, g)
    return estimate(a, seen, total, x, q, g, L, error)


@kernel
def strengthen(
    n: IntArray,
    g: FloatArray,
    a: IntArray,
    x: FloatArray,
    rest: FloatArray,
    error: FloatArray,
    beta2: FloatArray,
) -> None:
    """beta_i^2 += (a_i / n_i)^2 error_i^2 min{1, 2 (1 - u) / (u^2 g)} / g."""
    for k in range(beta2.shape[0]):
        for i in range(beta2.shape[1]):
            if error[k, i] == 0.0:
                continue
            units = max(n[i], 1)
            u, v = max(x[k, i], TINY) / units, rest[k, i] / units
            miss = a[k, i] / units * error[k, i]
            beta2[k, i] += miss**2 * min(1.0, 2.0 * v / (u**2 * g[k])) / g[k]


@kernel
def predict(
    seen: IntArray,
    total: FloatArray,
    eta: float,
    samples: FloatArray,
    sums: FloatArray,
    q: FloatArray,
) -> None:
    """Least squares: q_i = (1/2 + sum of all samples seen) / (1 + number of samples seen).

    Where samples are not counted, gradient descent: q_i += eta (k_i - q_i), where something was
    seen.
    """
    least_squares = len(samples) > 0
    for k in range(q.shape[0]):
        for i in range(q.shape[1]):
            if least_squares:
                samples[k, i] += seen[k, i]
                sums[k, i] += total[k, i]
                q[k, i] = (0.5 + sums[k, i]) / (1.0 + samples[k, i])
            elif seen[k, i] >= 1:
                q[k, i] += eta * (total[k, i] / seen[k, i] - q[k, i])


@kernel
def strengthen_and_predict(
    n: IntArray,
    g: FloatArray,
    a: IntArray,
    seen: IntArray,
    total: FloatArray,
    x: FloatArray,
    rest: FloatArray,
    error: FloatArray,
    eta: float,
    beta2: FloatArray,
    samples: FloatArray,
    sums: FloatArray,
    q: FloatArray,
) -> None:
    """Do both, in one call from Python."""
    strengthen(n, g, a, x, rest, error, beta2)
    predict(seen, total, eta, samples, sums, q)


@kernel
def slow_rate(t: FloatArray, beta: FloatArray) -> None:
    """beta_i = sqrt(t) / 2, for every arm."""
    for k in range(beta.shape[0]):
        half = math.sqrt(t[k]) / 2.0
        for i in range(beta.shape[1]):
            beta[k, i] = half
