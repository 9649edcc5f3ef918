"""Baseline of the paper's stochastic experiment: one special-purpose compiled loop per policy.

The loops support this experiment only. There are two demanders, so a plan is the vector y of the
units that each supplier sends to the first demander; the remaining units go to the second. In the
copied problem every truck is a supplier of one unit. All rounds of all trials run in one function:
losses are drawn where they are used, and only the pseudo-regret is kept.
"""

# ruff: noqa: NPY002 (the generator that compiled code supports)

import math
from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba
import numpy as np

from multiplay.types import FloatArray, IntArray

SUPPLY = np.array([1, 4, 5])
FIRST, SECOND = 4, 6  # the demands of the two demanders
HORIZON, EPSILON = 10_000, 0.2
SMALL_STEP, MOST_STEPS = 1e-6, 100

F = TypeVar("F", bound=Callable[..., Any])


def fused(function: F) -> F:
    """Compile a function with numba: cached, with IEEE division."""
    return cast(F, numba.njit(cache=True, error_model="numpy")(function))


def native_problem() -> tuple[IntArray, IntArray]:
    """Return the supplies, and the index of the original supplier of each."""
    return SUPPLY, np.arange(3)


def copied_problem() -> tuple[IntArray, IntArray]:
    """Return the supplies and the original suppliers of the copied problem."""
    return np.ones(10, dtype=np.int64), np.repeat(np.arange(3), SUPPLY)


def runs() -> dict[str, Callable[[FloatArray, int, int], FloatArray]]:
    """Return, by policy of the paper, a function of costs, rounds and seed: its pseudo-regret."""

    def run(loop: Any, problem: tuple[IntArray, IntArray]) -> Any:
        return lambda costs, rounds, seed: loop(*problem, costs, rounds, seed)

    return {
        "GenCTS": run(thompson, native_problem()),
        "CTS": run(thompson, copied_problem()),
        "GenLBINFV": run(lbinfv, native_problem()),
        "LBINFV": run(lbinfv, copied_problem()),
    }


@fused
def cheapest(supply: IntArray, gap: FloatArray, order: IntArray, y: IntArray) -> None:
    """Fill y in increasing order of the gaps; ``order`` holds the order of the previous call."""
    for place in range(1, len(order)):
        i, j = order[place], place
        while j > 0 and gap[order[j - 1]] > gap[i]:
            order[j] = order[j - 1]
            j -= 1
        order[j] = i
    left = FIRST
    for i in order:
        y[i] = min(supply[i], left)
        left -= y[i]


@fused
def best_value(cost: FloatArray) -> float:
    """Return the cost of the best plan."""
    gap, order, y = cost[:, 0] - cost[:, 1], np.arange(3), np.empty(3, np.int64)
    cheapest(SUPPLY, gap, order, y)
    return value(SUPPLY, np.arange(3), cost, y)


@fused
def value(supply: IntArray, owner: IntArray, cost: FloatArray, y: IntArray) -> float:
    """Return <a, cost> of the plan y."""
    total = 0.0
    for i in range(len(supply)):
        total += y[i] * cost[owner[i], 0] + (supply[i] - y[i]) * cost[owner[i], 1]
    return total


@fused
def thompson(
    supply: IntArray, owner: IntArray, costs: FloatArray, rounds: int, seed: int
) -> FloatArray:
    """Run GenCTS; on the copied problem, this is CTS."""
    np.random.seed(seed)
    m, regret = len(supply), np.zeros(len(costs))
    p, q = np.empty((m, 2)), np.empty((m, 2))
    gap, order, y = np.empty(m), np.arange(m), np.empty(m, np.int64)
    for trial in range(len(costs)):
        cost = costs[trial]
        least = best_value(cost)
        p[:] = 1.0
        q[:] = 1.0
        for _ in range(rounds):
            for i in range(m):
                gap[i] = np.random.beta(p[i, 0], q[i, 0]) - np.random.beta(p[i, 1], q[i, 1])
            cheapest(supply, gap, order, y)
            for i in range(m):
                for side in range(2):
                    units = y[i] if side == 0 else supply[i] - y[i]
                    for _ in range(units):
                        loss = 2.0 * cost[owner[i], side] * np.random.random()
                        if np.random.random() < loss:
                            p[i, side] += 1.0
                        else:
                            q[i, side] += 1.0
            regret[trial] += value(supply, owner, cost, y) - least
    return regret


@fused
def lbinfv(
    supply: IntArray, owner: IntArray, costs: FloatArray, rounds: int, seed: int
) -> FloatArray:
    """Run GenLBINFV with least squares; on the copied problem, this is LBINFV."""
    np.random.seed(seed)
    g, m, regret = math.log(HORIZON), len(supply), np.zeros(len(costs))
    n, L, q, beta2 = np.empty((m, 2)), np.empty((m, 2)), np.empty((m, 2)), np.empty((m, 2))
    count, total, beta = np.empty((m, 2)), np.empty((m, 2)), np.empty((m, 2))
    x, rest = np.empty((m, 2)), np.empty((m, 2))
    c, dx, slope, weight, y = np.empty(m), np.empty(m), np.empty(m), np.empty(m), np.empty(m)
    a = np.empty(m, np.int64)
    for i in range(m):
        n[i, 0], n[i, 1] = min(supply[i], FIRST), min(supply[i], SECOND)
    for trial in range(len(costs)):
        cost = costs[trial]
        least = best_value(cost)
        L[:], q[:], beta2[:], count[:], total[:] = 0.0, 0.5, (1.0 + EPSILON) ** 2, 0.0, 0.0
        for i in range(m):
            x[i, 0] = supply[i] * FIRST / (FIRST + SECOND)
            rest[i, 0] = n[i, 0] - x[i, 0]
        for _ in range(rounds):
            for i in range(m):
                beta[i, 0], beta[i, 1] = math.sqrt(beta2[i, 0]), math.sqrt(beta2[i, 1])
                c[i] = q[i, 0] + L[i, 0] - q[i, 1] - L[i, 1]
            minimise(supply, n, c, beta, g, x, rest, dx, slope, weight)
            for i in range(m):
                y[i] = x[i, 0]
            round_pairs(y, a)
            for i in range(m):
                for side in range(2):
                    units = a[i] if side == 0 else supply[i] - a[i]
                    if units == 0:
                        L[i, side] += q[i, side]
                        continue
                    s = 0.0
                    for _ in range(units):
                        s += np.random.random()
                    s *= 2.0 * cost[owner[i], side]
                    error = s / units - q[i, side]
                    L[i, side] += q[i, side] + units / x[i, side] * error
                    u, v = x[i, side] / n[i, side], rest[i, side] / n[i, side]
                    miss = units / n[i, side] * error
                    beta2[i, side] += miss * miss * min(1.0, 2.0 * v / (u * u * g)) / g
                    count[i, side] += units
                    total[i, side] += s
                    q[i, side] = (0.5 + total[i, side]) / (1.0 + count[i, side])
            regret[trial] += value(supply, owner, cost, a) - least
    return regret


@fused
def minimise(
    supply: IntArray,
    n: FloatArray,
    c: FloatArray,
    beta: FloatArray,
    g: float,
    x: FloatArray,
    rest: FloatArray,
    dx: FloatArray,
    slope: FloatArray,
    weight: FloatArray,
) -> None:
    """Run Newton's method on x of the first demander, from the last round; its sum is FIRST."""
    m = len(supply)
    for _ in range(MOST_STEPS):
        weights, pull, missing = 0.0, 0.0, float(FIRST)
        for i in range(m):
            x[i, 1], rest[i, 1] = supply[i] - n[i, 0] + rest[i, 0], x[i, 0]
            u0, v0 = x[i, 0] / n[i, 0], rest[i, 0] / n[i, 0]
            u1, v1 = x[i, 1] / n[i, 1], rest[i, 1] / n[i, 1]
            slope[i] = c[i] + beta[i, 0] * (1.0 - 1.0 / u0 - g * math.log(v0))
            slope[i] -= beta[i, 1] * (1.0 - 1.0 / u1 - g * math.log(v1))
            curvature = beta[i, 0] / n[i, 0] * (1.0 / (u0 * u0) + g / v0)
            curvature += beta[i, 1] / n[i, 1] * (1.0 / (u1 * u1) + g / v1)
            weight[i] = 1.0 / curvature
            weights += weight[i]
            pull += weight[i] * slope[i]
            missing -= x[i, 0]
        level = (missing + pull) / weights
        largest, room = 0.0, np.inf
        for i in range(m):
            dx[i] = weight[i] * (level - slope[i])
            size = abs(dx[i])
            largest = max(largest, size / min(x[i, 0], rest[i, 0]))
            room = min(room, (x[i, 0] if dx[i] < 0.0 else rest[i, 0]) / size)
        length = min(1.0, 0.95 * room)
        for i in range(m):
            x[i, 0] += length * dx[i]
            rest[i, 0] -= length * dx[i]
            if x[i, 0] > rest[i, 0]:
                x[i, 0] = n[i, 0] - rest[i, 0]
            else:
                rest[i, 0] = n[i, 0] - x[i, 0]
            x[i, 1], rest[i, 1] = supply[i] - n[i, 0] + rest[i, 0], x[i, 0]
        if largest < SMALL_STEP:
            return
    raise ArithmeticError("Newton's method did not converge")


@fused
def round_pairs(y: FloatArray, a: IntArray) -> None:
    """Round every y_i down or up, with mean y and the same sum: two fractions at a time."""
    open_one, f = -1, 0.0
    for i in range(len(y)):
        a[i] = int(y[i])
        h = y[i] - a[i]
        if open_one < 0:
            open_one, f = i, h
            continue
        together, coin = f + h, np.random.random()
        if together < 1.0:  # one of them becomes 0
            if coin * together < f:
                f = together
            else:
                open_one, f = i, together
        elif coin * (2.0 - together) < 1.0 - h:  # one of them becomes 1
            a[open_one] += 1
            open_one, f = i, together - 1.0
        else:
            a[i] += 1
            f = together - 1.0
    if f > 0.5:
        a[open_one] += 1
