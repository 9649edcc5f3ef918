"""The FTRL step on a transport polytope with two columns: one unknown for each row.

What row i does not send to the first column goes to the second, so its two arms, 0 and 1, have one
number between them. With ``low_0 = sum_i - n_1`` and ``low_1 = sum_i - n_0``,

    x_0 = low_0 + below,    rest_0 = above,    x_1 = low_1 + above,    rest_1 = below,

and ``below + above = n_0 + n_1 - sum_i`` never changes. All four are sums of numbers that are not
negative, so they are exact when tiny, as those of ``multiplay.kernels.newton`` are. One equation is
left, the sum of the first column. Its multiplier, which is carried, is the level of the gradients.

Near the minimiser a step has a term of second order too (Chebyshev's method): an error of r becomes
one of r^3, not r^2, and two steps do what Newton's method does in three.
"""

from typing import Any

import numpy as np

from multiplay.kernels import regulariser
from multiplay.kernels.jit import borrowed, kernel, part, subroutine
from multiplay.kernels.newton import MAX_CUTS, MAX_ITERATIONS, STALLED_STEP
from multiplay.types import FloatArray, IntArray

CLOSE = 0.3  # steps this small, relative to the room for them, get the term of second order
SMALL_STEP = 1e-4  # after a step this small with that term, errors are near 1e-12


@kernel
def minimise_pairs(
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
    """Do what ``newton.minimise`` does, where ``arm`` has two columns."""
    rows = len(arm)
    pairs, numbers = np.empty((rows, 5)), np.empty((12, rows))
    return minimise_within(arm, sums, n, c, beta, phi, x, rest, dual, pairs, numbers)


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
    pairs: FloatArray,
    numbers: FloatArray,
) -> Any:
    """The same, with room for what never changes of each row, and for the numbers of one trial."""
    arm, sums, n, c = borrowed(arm), borrowed(sums), borrowed(n), borrowed(c)
    beta, phi, x, rest = borrowed(beta), borrowed(phi), borrowed(x), borrowed(rest)
    dual, pairs, numbers = borrowed(dual), borrowed(pairs), borrowed(numbers)
    rows = len(arm)
    below, above, cost, beta_0, beta_1 = numbers[0], numbers[1], numbers[2], numbers[3], numbers[4]
    gradient, weight, third, dx = numbers[5], numbers[6], numbers[7], numbers[8]
    slope_1, curvature_1, third_1 = numbers[9], numbers[10], numbers[11]
    for i in range(rows):
        n_0, n_1 = n[arm[i, 0]], n[arm[i, 1]]
        pairs[i, 0], pairs[i, 1], pairs[i, 2] = sums[i] - n_1, n_0, 1.0 / n_0
        pairs[i, 3], pairs[i, 4] = sums[i] - n_0, 1.0 / n_1
    for k in range(len(x)):
        f, level = phi[k], dual[k, rows] - dual[k, rows + 1]
        for i in range(rows):
            first, second = arm[i, 0], arm[i, 1]
            below[i], above[i] = rest[k, second], rest[k, first]
            beta_0[i], beta_1[i] = beta[k, first], beta[k, second]
            cost[i], dx[i] = c[k, first] - c[k, second], 0.0
        iterations, cuts, length, slope = 0, 0, 0.0, np.inf
        while True:
            inner, pull, weights, whole, parts = 0.0, 0.0, 0.0, 0.0, 0.0
            for i in range(rows):
                low_0, n_0, share_0 = pairs[i, 0], pairs[i, 1], pairs[i, 2]
                low_1, share_1, down, up = pairs[i, 3], pairs[i, 4], below[i], above[i]
                g_0, h_0, t_0 = derivatives(f, arm[i, 0], beta_0[i], share_0, low_0 + down, up)
                g_1, h_1, t_1 = derivatives(f, arm[i, 1], beta_1[i], share_1, low_1 + up, down)
                g, w = (cost[i] - level) + (g_0 - g_1), 1.0 / (h_0 + h_1)
                gradient[i], weight[i], third[i] = g, w, t_0 - t_1
                slope_1[i], curvature_1[i], third_1[i] = g_1, h_1, t_1
                inner += g * dx[i]
                pull += w * g
                weights += w
                full = down > up  # as in newton.margins_missing
                whole += n_0 if full else low_0
                parts += -up if full else down
            # The slope along dx grows with the length: where it has become clearly positive the
            # step was too long, and the secant gives a better length. No objective is evaluated.
            if inner > 0.3 * slope and cuts < MAX_CUTS:
                shorter = length * slope / (slope + inner)
                move(pairs, below, above, dx, shorter - length)
                cuts, length = cuts + 1, shorter
                continue
            if iterations == MAX_ITERATIONS:
                return False
            iterations, cuts, before = iterations + 1, 0, slope
            step = (((sums[rows] - whole) - parts) + pull) / weights
            slope, largest = newton_step(weight, gradient, step, below, above, dx)
            level += step
            length, fits = 1.0, False
            if largest < CLOSE:
                bent, fits = bend(weight, weights, third, below, above, dx)
                level += bent
            if not fits:
                length = min(length, 0.95 * length_to_end(below, above, dx))
            move(pairs, below, above, dx, length)
            if not (np.isfinite(slope) and np.isfinite(level)):
                return False
            if largest < SMALL_STEP or (largest < STALLED_STEP and slope > 0.1 * before):
                break
        for i in range(rows):
            first, second = arm[i, 0], arm[i, 1]
            x[k, first], rest[k, first] = pairs[i, 0] + below[i], above[i]
            x[k, second], rest[k, second] = pairs[i, 3] + above[i], below[i]
            d = length * dx[i]  # the second arm has lost as much
            change = (curvature_1[i] - 0.5 * third_1[i] * d) * d
            dual[k, i] = c[k, second] + slope_1[i] - change
        dual[k, rows], dual[k, rows + 1] = level, 0.0
    return True


@part
def derivatives(
    phi: FloatArray, arm: int, beta: float, share: float, x: float, rest: float
) -> tuple[float, float, float]:
    """Return the first three derivatives of beta phi at x; share = 1 / n."""
    u, v = x * share, rest * share
    over_u, over_v, scale = 1.0 / u, 1.0 / v, beta * share
    barrier, entropy, root, shannon = regulariser.weights(phi, arm)
    logs = regulariser.logarithms(entropy, shannon, u, v)
    phi1 = regulariser.slope(barrier, root, u, logs)
    below2 = regulariser.curvature_below(barrier, root, shannon, u)
    below3 = regulariser.third_below(barrier, root, shannon, u)
    phi2 = below2 * (over_u * over_u) + entropy * over_v
    phi3 = entropy * (over_v * over_v) - below3 * (over_u * over_u * over_u)
    return beta * phi1, scale * phi2, scale * share * phi3


@part
def newton_step(
    weight: FloatArray,
    gradient: FloatArray,
    step: float,
    below: FloatArray,
    above: FloatArray,
    dx: FloatArray,
) -> tuple[float, float]:
    """Fill dx; return sum dx^2 / weight, and the largest |dx| / min(below, above).

    Fractions are compared without a division, here and in ``length_to_end``.
    """
    slope, size, room = 0.0, 0.0, 1.0
    for i in range(len(dx)):
        e, down, up = step - gradient[i], below[i], above[i]
        d = weight[i] * e
        dx[i] = d
        slope += d * e
        distance, smaller = abs(d), (down if down < up else up)
        larger = distance * room > size * smaller
        size, room = (distance if larger else size), (smaller if larger else room)
    return slope, size / room


@part
def length_to_end(below: FloatArray, above: FloatArray, dx: FloatArray) -> float:
    """Return the length at which the first ``below`` or ``above`` becomes 0."""
    ahead, pace = 1.0, 0.0
    for i in range(len(dx)):
        d = dx[i]
        distance, end = abs(d), (below[i] if d < 0.0 else above[i])
        sooner = end * pace < ahead * distance
        ahead, pace = (end if sooner else ahead), (distance if sooner else pace)
    return ahead / pace


@part
def bend(
    weight: FloatArray,
    weights: float,
    third: FloatArray,
    below: FloatArray,
    above: FloatArray,
    dx: FloatArray,
) -> tuple[float, bool]:
    """Add the term e of second order to dx; return the step of the level, and whether e is small.

    The gradient changes by h e + third dx^2 / 2 = level, where h = 1 / weight and sum e = 0.
    """
    level, small = 0.0, True
    for i in range(len(dx)):
        third[i] *= 0.5 * dx[i] * dx[i]
        level += weight[i] * third[i]
    level /= weights
    for i in range(len(dx)):
        e, down, up = weight[i] * (level - third[i]), below[i], above[i]
        small &= abs(e) < 0.5 * (down if down < up else up)
        dx[i] += e
    return level, small


@part
def move(
    pairs: FloatArray, below: FloatArray, above: FloatArray, dx: FloatArray, length: float
) -> None:
    """below += length dx, with below + above kept by the smaller of the two."""
    for i in range(len(dx)):
        d, width = length * dx[i], pairs[i, 1] - pairs[i, 0]
        down, up = below[i] + d, above[i] - d
        full = down > up
        most, least = width - up, width - down
        below[i] = most if full else down
        above[i] = up if full else least
