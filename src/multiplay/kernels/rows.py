"""Products of rows, one row for each trial: sums have the same order for any number of rows."""

import math

import numpy as np

from multiplay.kernels.jit import kernel, subroutine
from multiplay.types import FloatArray


@subroutine
def copy_rows(source: FloatArray, target: FloatArray, first: int) -> None:
    """target[first + k] = source[k]; an assignment of slices takes seconds to compile."""
    for k in range(source.shape[0]):
        for i in range(source.shape[1]):
            target[first + k, i] = source[k, i]


@kernel
def finite(rows: FloatArray) -> bool:
    """Say whether there is neither NaN nor an infinite number."""
    count = 0
    for k in range(rows.shape[0]):
        for i in range(rows.shape[1]):
            count += abs(rows[k, i]) < math.inf
    return count == rows.size


@kernel
def transform(rows: FloatArray, matrix: FloatArray) -> FloatArray:
    """Return rows @ matrix."""
    out = np.zeros((len(rows), matrix.shape[1]))
    for k in range(len(rows)):
        for p in range(matrix.shape[0]):
            for i in range(matrix.shape[1]):
                out[k, i] += rows[k, p] * matrix[p, i]
    return out


@kernel
def inner(rows: FloatArray, others: FloatArray) -> FloatArray:
    """Return <rows[k], others[k]> for every k."""
    out = np.zeros(len(rows))
    for k in range(len(rows)):
        for p in range(rows.shape[1]):
            out[k] += rows[k, p] * others[k, p]
    return out


@kernel
def into_ball(rows: FloatArray, radius: float) -> None:
    """Shorten every row that is longer than the radius."""
    for k in range(len(rows)):
        square = 0.0
        for p in range(rows.shape[1]):
            square += rows[k, p] * rows[k, p]
        if square > radius * radius:
            for p in range(rows.shape[1]):
                rows[k, p] *= radius / math.sqrt(square)
