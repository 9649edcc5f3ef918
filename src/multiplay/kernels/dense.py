"""Small dense matrices, one at a time: by hand, so that every sum has the same order everywhere."""

import math

import numpy as np

from multiplay.kernels.jit import kernel
from multiplay.types import FloatArray

MOST_SWEEPS = 30  # Jacobi's method needs about ten for the worst matrices


@kernel
def cholesky(a: FloatArray) -> bool:
    """Write R over the lower triangle of ``a``, such that a = R R'; say whether a is positive."""
    n = len(a)
    for i in range(n):
        for j in range(i + 1):
            rest = a[i, j]
            for k in range(j):
                rest -= a[i, k] * a[j, k]
            if i > j:
                a[i, j] = rest / a[j, j]
            elif rest > 0.0:
                a[i, i] = math.sqrt(rest)
            else:
                return False
    return True


@kernel
def solve_cholesky(root: FloatArray, v: FloatArray) -> None:
    """Write the solution of R R' w = v over v, with R from ``cholesky``."""
    n = len(v)
    for i in range(n):
        for j in range(i):
            v[i] -= root[i, j] * v[j]
        v[i] /= root[i, i]
    for i in range(n - 1, -1, -1):
        for j in range(i + 1, n):
            v[i] -= root[j, i] * v[j]
        v[i] /= root[i, i]


@kernel
def jacobi(a: FloatArray, vectors: FloatArray) -> None:
    """Turn a symmetric ``a`` until its diagonal has the eigenvalues; row i has the eigenvector i.

    Cyclic rotations. An entry is done with when it is small beside its own two diagonal entries,
    not beside the largest: so small eigenvalues of positive matrices keep their digits.
    """
    n = len(a)
    for i in range(n):
        for j in range(n):
            vectors[i, j] = 1.0 if i == j else 0.0
    for _ in range(MOST_SWEEPS):
        turned = False
        for p in range(n):
            for q in range(p + 1, n):
                if abs(a[p, q]) > 1e-16 * math.sqrt(abs(a[p, p] * a[q, q])):
                    turned = True
                    rotate(a, vectors, p, q)
        if not turned:
            break


@kernel
def rotate(a: FloatArray, vectors: FloatArray, p: int, q: int) -> None:
    """Turn the coordinates p and q, by at most 45 degrees, such that a[p, q] becomes 0."""
    half = 0.5 * (a[q, q] - a[p, p]) / a[p, q]
    t = np.copysign(1.0, half) / (abs(half) + math.sqrt(1.0 + half * half))
    c = 1.0 / math.sqrt(1.0 + t * t)
    s = t * c
    shift = t * a[p, q]
    a[p, p] -= shift
    a[q, q] += shift
    a[p, q] = a[q, p] = 0.0
    for i in range(len(a)):
        if i not in (p, q):
            left, right = a[i, p], a[i, q]
            a[i, p] = a[p, i] = c * left - s * right
            a[i, q] = a[q, i] = s * left + c * right
        left, right = vectors[p, i], vectors[q, i]
        vectors[p, i] = c * left - s * right
        vectors[q, i] = s * left + c * right
