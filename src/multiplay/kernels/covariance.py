"""Covariances of the arms' round means, and the doubt about the totals of actions.

In a round that shows k_i units of arm i with the total T_i, pairs of arms add to three sums:

    products_ij = sum T_i T_j, pairs_ij = sum k_i k_j, squares_ij = sum (k_i k_j)^2,

and are no longer unseen.
"""

import math

from multiplay.kernels.averages import samples
from multiplay.kernels.jit import kernel, subroutine
from multiplay.types import FloatArray, IntArray

LARGEST = 0.25  # variance of a loss in [0, 1]


@kernel
def add(
    seen: IntArray,
    total: FloatArray,
    products: FloatArray,
    pairs: FloatArray,
    squares: FloatArray,
    unseen: FloatArray,
) -> None:
    """Add one round to the sums of all pairs of arms."""
    for k in range(seen.shape[0]):
        for i in range(seen.shape[1]):
            if seen[k, i] == 0:
                continue
            for j in range(seen.shape[1]):
                if seen[k, j] == 0:
                    continue
                both = float(seen[k, i]) * float(seen[k, j])
                unseen[k, i, j] = 0.0
                products[k, i, j] += total[k, i] * total[k, j]
                pairs[k, i, j] += both
                squares[k, i, j] += both * both


@subroutine
def upper_bound(product: float, pair: float, square: float, means: float, h: float) -> float:
    """Return the estimated covariance plus its width; ``means`` is the product of two averages."""
    if pair <= 0.0:
        return LARGEST
    n = pair * pair / square
    width = (5.0 * h / math.sqrt(n) + h * h / n + 1.0 / (n * n)) / 4.0
    return min(product / pair - means + width, LARGEST)


@kernel
def variances(
    h: FloatArray,
    N: FloatArray,
    S: FloatArray,
    products: FloatArray,
    pairs: FloatArray,
    squares: FloatArray,
    bound: FloatArray,
) -> None:
    """bound_i: the upper bound of the variance of arm i's round mean, at least 0."""
    for k in range(N.shape[0]):
        for i in range(N.shape[1]):
            mean = S[k, i] / samples(N[k, i])
            p, q, r = products[k, i], pairs[k, i], squares[k, i]
            bound[k, i] = max(upper_bound(p, q, r, mean * mean, h[k]), 0.0)


@kernel
def ellipsoids(
    h: FloatArray,
    N: FloatArray,
    S: FloatArray,
    products: FloatArray,
    pairs: FloatArray,
    squares: FloatArray,
    n: IntArray,
    weights: FloatArray,
) -> None:
    """weights_ij = G_ij / (N_i N_j), with G = pairs * bound + diag(pairs * bound) + diag(n^2)."""
    for k in range(N.shape[0]):
        for i in range(N.shape[1]):
            Ni = samples(N[k, i])
            for j in range(i + 1):
                Nj = samples(N[k, j])
                means = S[k, i] / Ni * (S[k, j] / Nj)
                p, q, r = products[k, i, j], pairs[k, i, j], squares[k, i, j]
                bound = upper_bound(p, q, r, means, h[k])
                if i == j:
                    weight = 2.0 * q * max(bound, 0.0) + float(n[i]) * float(n[i])
                else:
                    weight = q * bound
                weights[k, i, j] = weights[k, j, i] = weight / (Ni * Nj)


@kernel
def quadratic_forms(actions: IntArray, weights: FloatArray, value: FloatArray) -> None:
    """value_a = the sum of a_i a_j weights_ij, for every action and trial; weights symmetric."""
    for m in range(actions.shape[0]):
        for k in range(weights.shape[0]):
            total = 0.0
            for i in range(actions.shape[1]):
                if actions[m, i] == 0:
                    continue
                row = 0.5 * actions[m, i] * weights[k, i, i]
                for j in range(i):
                    row += actions[m, j] * weights[k, i, j]
                total += 2.0 * actions[m, i] * row
            value[k, m] = total
