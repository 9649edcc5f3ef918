"""Linear algebra for one small matrix, by hand.

A library would spend its time on being called, and might add in another order elsewhere.
"""

import math

from multiplay.kernels.jit import kernel, subroutine
from multiplay.types import FloatArray

MOST_SWEEPS = 30  # of Jacobi's method; about five are needed
ORTHOGONAL = 1e-14  # the cosine between two columns, where rounding leaves about 1e-15


@kernel
def cholesky(A: FloatArray) -> bool:
    """Write C over the lower triangle of A = C C'; what stands above is neither read nor changed.

    Returns whether A is positive definite; otherwise NaN or infinity is left behind.
    """
    for i in range(len(A)):
        for j in range(i):
            A[i, j] = (A[i, j] - inner(A[i], A[j], j)) / A[j, j]
        A[i, i] = math.sqrt(A[i, i] - inner(A[i], A[i], i))
    return bool(A[-1, -1] > 0.0)


@subroutine
def solve_lower(C: FloatArray, b: FloatArray) -> None:
    """Write C^-1 b over b."""
    for i in range(len(b)):
        b[i] = (b[i] - inner(C[i], b, i)) / C[i, i]


@subroutine
def solve_upper(C: FloatArray, b: FloatArray) -> None:
    """Write C'^-1 b over b."""
    for i in range(len(b) - 1, -1, -1):
        b[i] /= C[i, i]
        for j in range(i):
            b[j] -= C[i, j] * b[i]


@kernel
def solve_cholesky(C: FloatArray, b: FloatArray) -> None:
    """Write A^-1 b over b, for A = C C'."""
    solve_lower(C, b)
    solve_upper(C, b)


@subroutine
def inner(a: FloatArray, b: FloatArray, n: int) -> float:
    """Return the sum of a_i b_i over the first n entries."""
    total = 0.0
    for i in range(n):
        total += a[i] * b[i]
    return total


@subroutine
def dot(a: FloatArray, b: FloatArray) -> float:
    """Return <a, b>."""
    return inner(a, b, len(a))


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


@subroutine
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
