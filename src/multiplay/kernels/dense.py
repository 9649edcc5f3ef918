"""Small dense matrices, one at a time: by hand, so that every sum has the same order everywhere."""

import math

from multiplay.kernels.jit import kernel
from multiplay.types import FloatArray

MOST_SWEEPS = 30  # about five are needed
ORTHOGONAL = 1e-14  # the cosine between two columns, where rounding leaves about 1e-15


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
def jacobi(a: FloatArray, values: FloatArray, vectors: FloatArray) -> None:
    """Eigenpairs of a' a, by turning the columns of ``a`` until they are orthogonal (Hestenes).

    Row i of ``vectors`` belongs to values[i]; they are in no order. Without a' a itself, which has
    the square of the condition of a, small eigenvalues keep their digits and their sign.
    """
    n = a.shape[1]
    for i in range(n):
        for j in range(n):
            vectors[i, j] = 1.0 if i == j else 0.0
    for _ in range(MOST_SWEEPS):
        turned = False
        for p in range(n):
            for q in range(p + 1, n):
                turned |= rotate(a, vectors, p, q)
        if not turned:
            break
    for i in range(n):
        values[i] = 0.0
        for j in range(len(a)):
            values[i] += a[j, i] * a[j, i]


@kernel
def rotate(a: FloatArray, vectors: FloatArray, p: int, q: int) -> bool:
    """Make columns p and q orthogonal, by at most 45 degrees; say whether they were not."""
    pp, qq, pq = 0.0, 0.0, 0.0
    for j in range(len(a)):
        pp += a[j, p] * a[j, p]
        qq += a[j, q] * a[j, q]
        pq += a[j, p] * a[j, q]
    if abs(pq) <= ORTHOGONAL * math.sqrt(pp) * math.sqrt(qq):
        return False
    half = 0.5 * (qq - pp) / pq
    t = math.copysign(1.0, half) / (abs(half) + math.hypot(1.0, half))
    c = 1.0 / math.sqrt(1.0 + t * t)
    s = t * c
    for j in range(len(a)):
        left, right = a[j, p], a[j, q]
        a[j, p], a[j, q] = c * left - s * right, s * left + c * right
    for i in range(a.shape[1]):
        left, right = vectors[p, i], vectors[q, i]
        vectors[p, i], vectors[q, i] = c * left - s * right, s * left + c * right
    return True
