"""Sums of the losses of every arm, and the confidence bounds that follow from them."""

import math
from typing import Any

from multiplay.kernels.jit import kernel, subroutine
from multiplay.types import FloatArray, IntArray

FADED = 0.1  # units: an arm of which less is left counts as unseen


@kernel
def count(seen: IntArray, total: FloatArray, N: FloatArray, S: FloatArray) -> None:
    """N_i += the units seen, S_i += the sum of their losses."""
    for k in range(N.shape[0]):
        for i in range(N.shape[1]):
            N[k, i] += seen[k, i]
            S[k, i] += total[k, i]


@kernel
def pass_round(t: IntArray) -> None:
    """t += 1 in every trial."""
    for k in range(len(t)):
        t[k] += 1


@kernel
def count_coins(seen: IntArray, heads: IntArray, p: FloatArray, q: FloatArray) -> None:
    """p_i += heads, q_i += tails: one coin for each unit seen."""
    for k in range(p.shape[0]):
        for i in range(p.shape[1]):
            p[k, i] += heads[k, i]
            q[k, i] += seen[k, i] - heads[k, i]


@kernel
def any_unseen(N: FloatArray, n: IntArray) -> bool:
    """Say whether an arm that can be played counts as unseen, in any trial."""
    unseen = 0
    for k in range(N.shape[0]):
        for i in range(N.shape[1]):
            unseen += (N[k, i] < FADED) & (n[i] >= 1)
    return unseen > 0


@subroutine
def samples(N: float) -> float:
    """N_i; 1 for an arm that counts as unseen, so that one can divide by it."""
    return 1.0 if N < FADED else N


@subroutine
def remembered(rounds: float, discount: float, window: float) -> Any:
    """How many of so many rounds count: min(rounds, W), or the sum of gamma^k if gamma < 1."""
    if discount < 1.0:
        return (1.0 - discount**rounds) / (1.0 - discount)
    return min(rounds, window)


@kernel
def confidence_bounds(
    t: IntArray,
    N: FloatArray,
    S: FloatArray,
    discount: float,
    window: float,
    alpha: float,
    sign: float,
    bound: FloatArray,
) -> None:
    """bound_i = mean_i - sign sqrt(alpha ln t / N_i), clipped to [0, 1], with mean_i = S_i / N_i.

    ``t`` is the number of rounds that are remembered.
    """
    for k in range(N.shape[0]):
        doubt = alpha * math.log(remembered(float(t[k]), discount, window))
        for i in range(N.shape[1]):
            n = samples(N[k, i])
            bound[k, i] = min(max(S[k, i] / n - sign * math.sqrt(doubt / n), 0.0), 1.0)
