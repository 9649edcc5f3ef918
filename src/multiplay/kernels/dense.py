"""Small symmetric matrices, one at a time: only the lower triangle is read or written."""

import math

from multiplay.kernels.jit import kernel
from multiplay.types import FloatArray


@kernel
def cholesky(A: FloatArray) -> bool:
    """Write the lower factor L, A = L L', over A; False if A is not positive definite."""
    for i in range(len(A)):
        for j in range(i + 1):
            rest = A[i, j]
            for h in range(j):
                rest -= A[i, h] * A[j, h]
            if i > j:
                A[i, j] = rest / A[j, j]
            elif rest > 0.0:
                A[i, i] = math.sqrt(rest)
            else:
                return False
    return True


@kernel
def solve_lower(L: FloatArray, b: FloatArray) -> None:
    """Write L^-1 b over b."""
    for i in range(len(b)):
        rest = b[i]
        for h in range(i):
            rest -= L[i, h] * b[h]
        b[i] = rest / L[i, i]


@kernel
def solve_cholesky(L: FloatArray, b: FloatArray) -> None:
    """Write (L L')^-1 b over b."""
    solve_lower(L, b)
    for i in range(len(b) - 1, -1, -1):
        rest = b[i]
        for h in range(i + 1, len(b)):
            rest -= L[h, i] * b[h]
        b[i] = rest / L[i, i]


@kernel
def dot(a: FloatArray, b: FloatArray) -> float:
    """Return <a, b>, summed in this order."""
    total = 0.0
    for i in range(len(a)):
        total += a[i] * b[i]
    return total
