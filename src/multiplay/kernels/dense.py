"""Linear algebra for one small matrix, by hand: a library would spend its time on being called."""

import math

from multiplay.kernels.jit import kernel
from multiplay.types import FloatArray


@kernel
def cholesky(A: FloatArray) -> None:
    """Write C over the lower triangle of A = C C'; what stands above is neither read nor changed.

    A matrix that is not positive definite leaves NaN or infinity behind.
    """
    for i in range(len(A)):
        for j in range(i):
            A[i, j] = (A[i, j] - inner(A[i], A[j], j)) / A[j, j]
        A[i, i] = math.sqrt(A[i, i] - inner(A[i], A[i], i))


@kernel
def solve_lower(C: FloatArray, b: FloatArray) -> None:
    """Write C^-1 b over b."""
    for i in range(len(b)):
        b[i] = (b[i] - inner(C[i], b, i)) / C[i, i]


@kernel
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


@kernel
def inner(a: FloatArray, b: FloatArray, n: int) -> float:
    """Return the sum of a_i b_i over the first n entries."""
    total = 0.0
    for i in range(n):
        total += a[i] * b[i]
    return total
