"""The FTRL step on a transport polytope: damped Newton with a Schur complement.

Minimise ``<c, x> + sum beta phi(x)`` over the plans ``x`` with given row and column sums; phi
stands in ``multiplay.kernels.regulariser``, and ``u = x / n``.

Three things keep every digit, however many rounds have passed:
the complement ``rest = n - x`` is a number of its own, exact when tiny;
the multipliers of the margins are carried, so that gradients are made of reduced costs;
the Schur complement is a graph Laplacian, eliminated without a single subtraction.

The arms of the plan are ``arm`` (rows, cols), indices into the flat arrays of all arms: forced arms
are left out, and a plan with more columns than rows is transposed. ``minimise`` copies what it is
given into matrices of this shape, one trial at a time.

Small plans spend their time on branches that cannot be predicted: whether x > n - x, say. So both
numbers are computed before one of them is chosen, which needs no branch.
"""

from typing import Any

import numpy as np

from multiplay.kernels import regulariser
from multiplay.kernels.jit import borrowed, kernel, part, subroutine
from multiplay.types import FloatArray, IntArray

MAX_ITERATIONS = 200
MAX_CUTS = 60  # of one step; more are rounding, at x so tiny that a step cannot be taken back
FEW = 4  # columns, up to which a plain elimination is faster than one in blocks, and the same
WIDE = 16  # columns from which the matrix product of a library is faster than a loop
SMALL_STEP = 1e-6  # Newton converges quadratically: after a step this small, errors are near 1e-12
STALLED_STEP = 1e-2  # steps this small shrink at once, unless they are rounding


@kernel
def minimise(
    arm: IntArray,
    sums: FloatArray,
    n: FloatArray,
    c: FloatArray,
    beta: FloatArray,
    phi: FloatArray,
    x: FloatArray,
    rest: FloatArray,
    dual: FloatArray,
) -> Any:
    """Move (x, rest, dual), given as a strictly interior start, to the minimiser in every trial.

    ``c, beta, x, rest`` are (trials, d), the weights ``phi`` of phi (trials, d or 1, 4);
    ``sums`` and ``dual`` hold the sums of the rows and then of the columns, and their multipliers.
    Returns whether all trials converged.
    """
    rows, cols = arm.shape
    matrices, vectors = np.empty((8, rows, cols)), np.empty((2, rows + cols))
    laplacian = np.empty((cols, cols))
    return minimise_within(arm, sums, n, c, beta, phi, x, rest, dual, matrices, vectors, laplacian)


@subroutine
def minimise_within(
    arm: IntArray,
    sums: FloatArray,
    n: FloatArray,
    c: FloatArray,
    beta: FloatArray,
    phi: FloatArray,
    x: FloatArray,
    rest: FloatArray,
    dual: FloatArray,
    matrices: FloatArray,
    vectors: FloatArray,
    laplacian: FloatArray,
) -> Any:
    """The same, with room for the matrices and vectors of one trial, which the caller owns."""
    arm, sums, n, c = borrowed(arm), borrowed(sums), borrowed(n), borrowed(c)
    beta, phi, x, rest = borrowed(beta), borrowed(phi), borrowed(x), borrowed(rest)
    dual, matrices = borrowed(dual), borrowed(matrices)
    vectors, laplacian = borrowed(vectors), borrowed(laplacian)
    _, rows, cols = matrices.shape
    most, costs, betas, at, to = matrices[0], matrices[1], matrices[2], matrices[3], matrices[4]
    gradient, weight, dx = matrices[5], matrices[6], matrices[7]
    step, whole = vectors[0], vectors[1]
    for k in range(len(x)):
        f, p = phi[k], dual[k]
        for i in range(rows):
            for j in range(cols):
                a = arm[i, j]
                most[i, j], costs[i, j], betas[i, j] = n[a], c[k, a], beta[k, a]
                at[i, j], to[i, j] = x[k, a], rest[k, a]
        differentiate(arm, most, costs, betas, f, at, to, p, gradient, weight)
        converged, before = False, np.inf
        for _ in range(MAX_ITERATIONS):
            margins_missing(most, sums, at, to, whole, step)
            solve_margins(weight, gradient, dx, laplacian, step)
            slope, largest, room = newton_step(weight, gradient, step, at, to, dx)
            if not np.isfinite(slope):
                return False
            for v in range(rows + cols):
                p[v] += step[v]
            length = min(1.0, 0.95 * room)
            move(most, at, to, dx, length)
            stalled = largest < STALLED_STEP and slope > 0.1 * before
            converged, before = largest < SMALL_STEP or stalled, slope
            if converged:
                break
            # The slope along dx grows with the length: where it has become clearly positive the
            # step was too long, and the secant gives a better length. No objective is evaluated.
            for cuts in range(MAX_CUTS + 1):
                differentiate(arm, most, costs, betas, f, at, to, p, gradient, weight)
                new_slope = inner(gradient, dx)
                if cuts == MAX_CUTS or not new_slope > 0.3 * slope:
                    break
                shorter = length * slope / (slope + new_slope)
                move(most, at, to, dx, shorter - length)
                length = shorter
        if not converged:
            return False
        for i in range(rows):
            for j in range(cols):
                x[k, arm[i, j]], rest[k, arm[i, j]] = at[i, j], to[i, j]
    return True


@part
def differentiate(
    arm: IntArray,
    n: FloatArray,
    c: FloatArray,
    beta: FloatArray,
    phi: FloatArray,
    x: FloatArray,
    rest: FloatArray,
    dual: FloatArray,
    gradient: FloatArray,
    weight: FloatArray,
) -> None:
    """gradient = c - duals + beta phi'(x) and weight = 1 / (beta phi''(x))."""
    rows, cols = n.shape
    for i in range(rows):
        for j in range(cols):
            most, b = n[i, j], beta[i, j]
            u, v = x[i, j] / most, rest[i, j] / most
            barrier, entropy, root, shannon = regulariser.weights(phi, arm[i, j])
            logs = regulariser.logarithms(entropy, shannon, u, v)
            phi1 = regulariser.slope(barrier, root, u, logs)
            below = regulariser.curvature_below(barrier, root, shannon, u)
            gradient[i, j] = c[i, j] - dual[i] - dual[rows + j] + b * phi1
            weight[i, j] = most * u * u * v / (b * (below * v + entropy * u * u))


@part
def margins_missing(
    n: FloatArray,
    sums: FloatArray,
    x: FloatArray,
    rest: FloatArray,
    whole: FloatArray,
    missing: FloatArray,
) -> None:
    """What x lacks to its margins, (sums - whole) - parts.

    Arms near n count as n - rest: the n are added up in ``whole``, exactly, and tiny numbers
    survive among the parts.
    """
    rows, cols = n.shape
    for v in range(rows + cols):
        whole[v] = 0.0
        missing[v] = 0.0
    for i in range(rows):
        row_whole, row_parts = 0.0, 0.0
        for j in range(cols):
            most, part, other = n[i, j], x[i, j], -rest[i, j]
            full = part > -other
            part = other if full else part
            most = most if full else 0.0
            row_whole += most
            row_parts += part
            whole[rows + j] += most
            missing[rows + j] += part
        whole[i], missing[i] = row_whole, row_parts
    for v in range(rows + cols):
        missing[v] = (sums[v] - whole[v]) - missing[v]


@part
def solve_margins(
    weight: FloatArray,
    gradient: FloatArray,
    share: FloatArray,
    laplacian: FloatArray,
    step: FloatArray,
) -> None:
    """Find dual steps p, s such that weight (p_i + s_j - gradient) has the wanted margins.

    The wanted margins come in ``step``, rows first, and the answer leaves in it; ``share`` is a
    workspace. Rows are eliminated first; what is left is the Laplacian of a graph on the columns,
    whose last column is grounded (the duals are only determined up to a constant).
    """
    rows, cols = weight.shape
    for i in range(rows):
        total, average = 0.0, 0.0
        for j in range(cols):
            total += weight[i, j]
            average += weight[i, j] * gradient[i, j]
        average = (average + step[i]) / total
        step[i] = average
        for j in range(cols - 1):
            step[rows + j] += weight[i, j] * (gradient[i, j] - average)
            share[i, j] = weight[i, j] / total
    join_columns(weight, share, laplacian)
    if cols > FEW:
        eliminate_columns(laplacian, step[rows:])
    else:
        for j in range(cols - 1):
            degree = 0.0
            for h in range(j + 1, cols):
                degree += laplacian[j, h]
            laplacian[j, j] = degree
            for h in range(j + 1, cols):
                ratio = laplacian[j, h] / degree
                step[rows + h] += ratio * step[rows + j]
                for o in range(h + 1, cols):
                    laplacian[h, o] += ratio * laplacian[j, o]
    step[rows + cols - 1] = 0.0
    for j in range(cols - 2, -1, -1):
        for h in range(j + 1, cols):
            step[rows + j] += laplacian[j, h] * step[rows + h]
        step[rows + j] /= laplacian[j, j]
    for i in range(rows):
        for j in range(cols - 1):
            step[i] -= share[i, j] * step[rows + j]


@part
def join_columns(weight: FloatArray, share: FloatArray, laplacian: FloatArray) -> None:
    """laplacian[j, h] = sum_i share[i, j] weight[i, h] for h > j."""
    rows, cols = weight.shape
    if cols >= WIDE:
        np.dot(share.T, weight, laplacian)
    for j in range(cols if cols < WIDE else 0):
        for h in range(j + 1, cols):
            total = 0.0
            for i in range(rows):
                total += share[i, j] * weight[i, h]
            laplacian[j, h] = total


@subroutine
def eliminate_columns(laplacian: FloatArray, wanted: FloatArray) -> None:
    """Eliminate all columns but the last: a star of weights becomes a mesh, its centre vanishes.

    The degree of a column, the sum of its weights to the later ones, goes to the diagonal. Columns
    are eliminated four at a time, since a large matrix spends its time in memory.
    """
    cols = len(laplacian)
    for j in range(0, cols - 1, 4):
        stop = min(j + 4, cols - 1)
        for p in range(j, stop):
            for q in range(j, p):
                part = laplacian[q, p] / laplacian[q, q]
                wanted[p] += part * wanted[q]
                add_multiple(laplacian[p], part, laplacian[q], p + 1)
            degree = 0.0
            for h in range(p + 1, cols):
                degree += laplacian[p, h]
            laplacian[p, p] = degree
        if stop < j + 4:
            for p in range(j, stop):
                wanted[stop] += laplacian[p, stop] / laplacian[p, p] * wanted[p]
            return
        r0, r1, r2, r3 = laplacian[j], laplacian[j + 1], laplacian[j + 2], laplacian[j + 3]
        d0, d1, d2, d3 = r0[j], r1[j + 1], r2[j + 2], r3[j + 3]
        for h in range(stop, cols):
            p0, p1, p2, p3 = r0[h] / d0, r1[h] / d1, r2[h] / d2, r3[h] / d3
            wanted[h] += (
                p0 * wanted[j] + p1 * wanted[j + 1] + p2 * wanted[j + 2] + p3 * wanted[j + 3]
            )
            row = laplacian[h]
            for o in range(h + 1, cols):
                row[o] += p0 * r0[o] + p1 * r1[o] + p2 * r2[o] + p3 * r3[o]


@subroutine
def add_multiple(target: FloatArray, factor: float, source: FloatArray, start: int) -> None:
    """target[start:] += factor * source[start:]."""
    for h in range(start, len(target)):
        target[h] += factor * source[h]


@part
def newton_step(
    weight: FloatArray,
    gradient: FloatArray,
    step: FloatArray,
    x: FloatArray,
    rest: FloatArray,
    dx: FloatArray,
) -> tuple[float, float, float]:
    """Fill dx; return sum dx^2 / weight, the largest |dx| / min(x, rest), the length to 0 or n."""
    rows, cols = weight.shape
    slope, largest, room = 0.0, 0.0, np.inf
    for i in range(rows):
        for j in range(cols):
            below, above = x[i, j], rest[i, j]
            d = weight[i, j] * (step[i] + step[rows + j] - gradient[i, j])
            dx[i, j] = d
            slope += d * d / weight[i, j]
            size, smaller = abs(d), (below if below < above else above)
            ahead = below if d < 0.0 else above
            relative, length = size / smaller, ahead / size
            largest = relative if size > largest * smaller else largest
            room = length if ahead < room * size else room
    return slope, largest, room


@part
def move(n: FloatArray, x: FloatArray, rest: FloatArray, dx: FloatArray, length: float) -> None:
    """x += length dx, with x + rest = n kept by the smaller of the two."""
    rows, cols = n.shape
    for i in range(rows):
        for j in range(cols):
            most, d = n[i, j], length * dx[i, j]
            below, above = x[i, j] + d, rest[i, j] - d
            full = below > above
            full_below, empty_above = most - above, most - below
            x[i, j] = full_below if full else below
            rest[i, j] = above if full else empty_above


@part
def inner(a: FloatArray, b: FloatArray) -> float:
    """Return the sum of the products of two matrices."""
    total = 0.0
    for i in range(a.shape[0]):
        for j in range(a.shape[1]):
            total += a[i, j] * b[i, j]
    return total
