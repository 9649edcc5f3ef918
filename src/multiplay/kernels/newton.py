"""The FTRL step on a transport polytope: damped Newton with a Schur complement.

Minimise ``<c, x> + sum beta phi(x)`` over the plans ``x`` with given row and column sums, where
``phi(x) = n [barrier (u - 1 - log u) + entropy (u + (1 - u) log(1 - u))]`` and ``u = x / n``.

Three things keep every digit, however many rounds have passed:
the complement ``rest = n - x`` is a number of its own, exact when tiny;
the multipliers of the margins are carried, so that gradients are made of reduced costs;
the Schur complement is a graph Laplacian, eliminated without a single subtraction.
"""

import math
from typing import Any

import numpy as np

from multiplay.arrays import FloatArray
from multiplay.kernels.jit import kernel

MAX_ITERATIONS = 200
SMALL_STEP = 1e-6  # Newton converges quadratically: after a step this small, errors are near 1e-12


@kernel
def minimise(
    c: FloatArray,
    beta: FloatArray,
    n: FloatArray,
    row_sums: FloatArray,
    col_sums: FloatArray,
    barrier: FloatArray,
    entropy: FloatArray,
    x: FloatArray,
    rest: FloatArray,
    row_dual: FloatArray,
    col_dual: FloatArray,
) -> Any:
    """Move (x, rest, duals), given as a strictly interior start, to the minimiser in every trial.

    ``c, beta, x, rest`` are (trials, rows, cols); the weights ``barrier, entropy`` (trials,).
    Returns the largest number of iterations of any trial, or -1 if some trial did not converge.
    """
    trials, rows, cols = x.shape
    gradient, weight, dx = np.empty((rows, cols)), np.empty((rows, cols)), np.empty((rows, cols))
    row_step, col_step = np.empty(rows), np.empty(cols)
    laplacian = np.empty((cols, cols))
    most = 0
    for k in range(trials):
        b, e = barrier[k], entropy[k]
        fill_gradient(c[k], beta[k], n, b, e, x[k], rest[k], row_dual[k], col_dual[k], gradient)
        for iteration in range(1, MAX_ITERATIONS + 1):
            fill_weight(beta[k], n, b, e, x[k], rest[k], weight)
            margins_missing(n, row_sums, col_sums, x[k], rest[k], row_step, col_step)
            solve_margins(weight, gradient, laplacian, row_step, col_step)
            slope, largest, to_boundary = 0.0, 0.0, np.inf
            for i in range(rows):
                for j in range(cols):
                    step = weight[i, j] * (row_step[i] + col_step[j] - gradient[i, j])
                    dx[i, j] = step
                    slope += step * step / weight[i, j]
                    room = x[k, i, j] if step < 0.0 else rest[k, i, j]
                    size = abs(step)
                    if size > largest * min(x[k, i, j], rest[k, i, j]):
                        largest = size / min(x[k, i, j], rest[k, i, j])
                    if room < to_boundary * size:
                        to_boundary = room / size
            if not np.isfinite(slope):
                return -1
            row_dual[k] += row_step
            col_dual[k] += col_step
            length = min(1.0, 0.95 * to_boundary)
            move(x[k], rest[k], n, dx, length)
            if largest < SMALL_STEP:
                most = max(most, iteration)
                break
            # The slope along dx grows with the length: where it has become clearly positive the
            # step was too long, and the secant gives a better length. No objective is evaluated.
            while True:
                fill_gradient(
                    c[k], beta[k], n, b, e, x[k], rest[k], row_dual[k], col_dual[k], gradient
                )
                new_slope = (gradient * dx).sum()
                if not new_slope > 0.3 * slope:
                    break
                shorter = length * slope / (slope + new_slope)
                move(x[k], rest[k], n, dx, shorter - length)
                length = shorter
        else:
            return -1
    return most


@kernel
def fill_gradient(
    c: FloatArray,
    beta: FloatArray,
    n: FloatArray,
    barrier: float,
    entropy: float,
    x: FloatArray,
    rest: FloatArray,
    row_dual: FloatArray,
    col_dual: FloatArray,
    gradient: FloatArray,
) -> None:
    """c - duals + beta phi'(x), with phi' = barrier (1 - 1/u) - entropy log(1 - u)."""
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            slope = barrier * (1.0 - n[i, j] / x[i, j]) - entropy * math.log(rest[i, j] / n[i, j])
            gradient[i, j] = c[i, j] - row_dual[i] - col_dual[j] + beta[i, j] * slope


@kernel
def fill_weight(
    beta: FloatArray,
    n: FloatArray,
    barrier: float,
    entropy: float,
    x: FloatArray,
    rest: FloatArray,
    weight: FloatArray,
) -> None:
    """1 / (beta phi''(x)), with phi'' = (barrier / u^2 + entropy / (1 - u)) / n."""
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            u = x[i, j] / n[i, j]
            curvature = barrier / (u * u) + entropy * n[i, j] / rest[i, j]
            weight[i, j] = n[i, j] / (beta[i, j] * curvature)


@kernel
def margins_missing(
    n: FloatArray,
    row_sums: FloatArray,
    col_sums: FloatArray,
    x: FloatArray,
    rest: FloatArray,
    row_missing: FloatArray,
    col_missing: FloatArray,
) -> None:
    """What x lacks to its margins; arms near n count as n - rest, so that tiny numbers survive."""
    row_missing[:] = row_sums
    col_missing[:] = col_sums
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            if x[i, j] > rest[i, j]:
                row_missing[i] -= n[i, j]
                col_missing[j] -= n[i, j]
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            part = -rest[i, j] if x[i, j] > rest[i, j] else x[i, j]
            row_missing[i] -= part
            col_missing[j] -= part


@kernel
def solve_margins(
    weight: FloatArray,
    gradient: FloatArray,
    laplacian: FloatArray,
    row_step: FloatArray,
    col_step: FloatArray,
) -> None:
    """Find dual steps p, s such that weight (p_i + s_j - gradient) has the wanted margins.

    The wanted margins come in ``row_step, col_step``, the answer leaves in them. Rows are
    eliminated first; what is left is the Laplacian of a graph on the columns, whose last column is
    grounded (the duals are only determined up to a constant).
    """
    rows, cols = weight.shape
    laplacian[:] = 0.0
    for i in range(rows):
        total, average = 0.0, 0.0
        for j in range(cols):
            total += weight[i, j]
            average += weight[i, j] * gradient[i, j]
        average = (average + row_step[i]) / total
        row_step[i] = average
        for j in range(cols):
            col_step[j] += weight[i, j] * (gradient[i, j] - average)
            share = weight[i, j] / total
            for h in range(j + 1, cols):
                laplacian[j, h] += share * weight[i, h]
    for j in range(cols - 1):
        degree = 0.0
        for h in range(j + 1, cols):
            degree += laplacian[j, h]
        laplacian[j, j] = degree
        for h in range(j + 1, cols):
            share = laplacian[j, h] / degree
            col_step[h] += share * col_step[j]
            for o in range(h + 1, cols):
                laplacian[h, o] += share * laplacian[j, o]
    col_step[cols - 1] = 0.0
    for j in range(cols - 2, -1, -1):
        for h in range(j + 1, cols):
            col_step[j] += laplacian[j, h] * col_step[h]
        col_step[j] /= laplacian[j, j]
    for i in range(rows):
        total, pulled = 0.0, 0.0
        for j in range(cols):
            total += weight[i, j]
            pulled += weight[i, j] * col_step[j]
        row_step[i] -= pulled / total


@kernel
def move(x: FloatArray, rest: FloatArray, n: FloatArray, dx: FloatArray, length: float) -> None:
    """x += length dx, with x + rest = n kept by the smaller of the two."""
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            x[i, j] += length * dx[i, j]
            rest[i, j] -= length * dx[i, j]
            if x[i, j] > rest[i, j]:
                x[i, j] = n[i, j] - rest[i, j]
            else:
                rest[i, j] = n[i, j] - x[i, j]
