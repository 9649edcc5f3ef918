"""The FTRL step on the flows of any graph: damped Newton with a sparse Schur complement.

Minimise ``<c, x> + sum beta phi(x)`` over the flows of a graph, where ``x`` are the flows of the
arms; phi stands in ``multiplay.kernels.regulariser``, and ``u = x / n``. The other arcs are *free*:
they cost nothing and are only bounded, ``0 <= f <= n``.

What keeps the digits is described in ``multiplay.kernels.newton``, whose general form this is:
complements as numbers of their own, reduced costs, and a Laplacian without subtractions.
Two things are new.

*Free arcs* have the barrier ``-mu (log f + log(n - f))``, and mu goes to nearly nothing. Their
Hessian is made of multipliers that are carried, ``low / f + high / (n - f)``, not of mu: these are
primal-dual interior points. The gradient is that of the barrier, so that every step descends on it.

*Arms that are nearly full* may have complements down to ``exp(-costs)``, since nothing else keeps
them from being full. They move on a logarithmic scale, where the entropy is nearly linear.

Where arcs of one unit meet arcs of 10^9, and free arcs have no curvature at all, a step can end
with flows that break the balance of nodes by whole units. What is missing then is carried by the
arcs that have room for it. If they do not, or if no minimiser was found, *careful* steps follow:
they see what is missing with twice the digits, let a spanning forest of the least curved arcs carry
all that dx leaves missing, and give free arcs a proximal term, which does not move the minimiser.

Arcs are numbered with the arms first, nodes in the order of their elimination. ``Pattern`` says
what is eliminated: the row of node p holds the weights between p and its later neighbours
``neighbour[first[p]:first[p + 1]]``, and eliminating p adds to the entries ``mesh`` of later rows.
The last nodes, all of them neighbours of each other, have a dense matrix.

Where the elimination would fill too much, nothing is eliminated: ``Pattern`` then says so, and the
steps come from ``multiplay.kernels.laplacian``.
"""

import heapq
import math
from collections.abc import Iterable, Sequence
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np

from multiplay.kernels import regulariser
from multiplay.kernels.conservation import (
    NEGLIGIBLE,
    add,
    carry,
    largest,
    measure_missing,
    spanning_forest,
)
from multiplay.kernels.jit import kernel, subroutine
from multiplay.kernels.laplacian import solve_laplacian
from multiplay.kernels.newton import eliminate_columns
from multiplay.types import FloatArray, IntArray

FAILED = -1
MAX_ITERATIONS = 200
MAX_CUTS = 60  # of one step
SMALL_STEP = 1e-6  # Newton converges quadratically: after a step this small, errors are near 1e-12
SMALL_FREE_STEP = 1e-3  # a free arc matters through its bounds only

NEARLY_FULL = 1e-2  # complements below this part of n move on a logarithmic scale
FULL = 1e-30  # complements never fall below this part of n
STEPS_BEFORE_DOUBT = 100  # then complements that are nothing may be wrong

# What is tried, one after the other: (careful, the last mu relative to beta n, nothing), where
# nothing is the part of a unit below which it does not matter which arc carries it
ATTEMPTS = (
    (False, 1e-14, 1e-15),
    (False, 1e-11, 1e-15),
    (True, 1e-14, 1e-15),
    (True, 1e-11, 1e-12),
    (True, 1e-8, 1e-9),
)
# ... and at last costs that grow up to the given ones, each step from the minimiser before
APPROACH = tuple(0.25**i for i in range(14, -1, -1))
FIRST_MU = 1e-2
INSIDE = 0.1  # a restart moves free arcs this far from their bounds, as a part of n
AGREEMENT = 1e10  # the multipliers of free arcs stay between mu / f divided and multiplied by this

ROUNDING = 4 * 2.0**-52
DOUBT = 100 * 2.0**-52  # slopes of free arcs of less than this times the costs are rounding
NOISE_FLOOR = 2.0**-52  # what a node lacks counts as nothing below this times its flow
UNHEARD = 4 * ROUNDING  # steps of less than this times the flow at a node may be rounding
BALANCED = 1e-6  # what a node may lack, relative to its flow, for the slopes to mean something

SOLVED = 1e-8  # the error of a step where nothing is eliminated, in the local norm

# The largest elimination: beyond, conjugate gradients are several times as fast
MOST_MESH = 500_000  # entries that are added to
MOST_DENSE = 300  # nodes in the dense matrix

# What is missing at the end of a step
VISIBLE = 1e-6  # of a unit: less than that is left to the rounding of flows
ARM_CARRIES = 1e-10  # at most, as a part of min(x, rest): x stays a minimiser
TINY = 1e-11  # of a unit: up to here SMALL_STEP is the limit
FREE_CARRIES = 0.1  # the same for free arcs
PREFER_FREE = 1e3  # a free arc carries before an arm that has up to so many times its room


class Pattern(NamedTuple):
    """What the elimination of the nodes does to which entries, found once for a graph."""

    tail: IntArray
    head: IntArray
    entry: IntArray  # of each arc
    first: IntArray
    neighbour: IntArray
    mesh: IntArray
    too_large: bool  # to be eliminated at all


@kernel
def minimise(
    tail: IntArray,
    head: IntArray,
    entry: IntArray,
    first: IntArray,
    neighbour: IntArray,
    mesh: IntArray,
    too_large: bool,
    balance: FloatArray,
    n: FloatArray,
    centre: FloatArray,
    arm: IntArray,
    free: IntArray,
    c: FloatArray,
    beta: FloatArray,
    phi: FloatArray,
    x: FloatArray,
    rest: FloatArray,
    slack: FloatArray,
    dual: FloatArray,
) -> Any:
    """Move (x, rest, slack, dual), given as an interior start, to the minimiser in every trial.

    What a ``Pattern`` has comes one by one: a tuple takes longer to hand over than a small
    problem to solve. ``c, beta, x, rest`` are (trials, d), the weights ``phi`` of phi
    (trials, d or 1, 4), ``dual`` (trials, nodes), and ``slack`` (trials, 4, free arcs) holds flows,
    complements, and the multipliers of both bounds. ``arm`` and ``free`` are the places there of
    the arcs of the pattern. Returns the number of Newton steps of all trials, or ``FAILED``.
    """
    pattern = Pattern(tail, head, entry, first, neighbour, mesh, too_large)
    arms, arcs = len(arm), len(arm) + len(free)
    costs, weights, parts = np.zeros(arcs), np.zeros(arcs), np.zeros((arms, 4))
    state = np.ones((4, arcs))
    steps = 0
    for k in range(len(x)):
        for e in range(arms):
            a = arm[e]
            costs[e], weights[e] = c[k, a], beta[k, a]
            parts[e, 0], parts[e, 1], parts[e, 2], parts[e, 3] = regulariser.weights(phi[k], a)
            state[0, e], state[1, e] = x[k, a], rest[k, a]
        for e in range(arms, arcs):
            for i in range(4):
                state[i, e] = slack[k, i, free[e - arms]]
        to = dual[k]
        taken = attempt(pattern, balance, n, centre, arms, costs, weights, parts, state, to)
        if taken == FAILED:
            for scale in APPROACH:
                part = scale * costs
                taken = attempt(pattern, balance, n, centre, arms, part, weights, parts, state, to)
        if taken == FAILED:
            return FAILED
        steps += taken
        for e in range(arms):
            x[k, arm[e]], rest[k, arm[e]] = state[0, e], state[1, e]
        for e in range(arms, arcs):
            for i in range(4):
                slack[k, i, free[e - arms]] = state[i, e]
    return steps


@subroutine
def attempt(
    pattern: Pattern,
    balance: FloatArray,
    n: FloatArray,
    centre: FloatArray,
    arms: int,
    c: FloatArray,
    beta: FloatArray,
    phi: FloatArray,
    state: FloatArray,
    dual: FloatArray,
) -> Any:
    """Minimise in one trial, from ``state``, and from the centre again if that fails."""
    tail, head = pattern.tail, pattern.head
    for careful, mu, nothing in ATTEMPTS:
        taken = descend(
            pattern,
            balance,
            n,
            arms,
            c,
            beta,
            phi,
            mu,
            careful,
            nothing,
            state,
            dual,
        )
        if taken != FAILED and conserve(tail, head, balance, n, arms, nothing, state):
            return taken
        begin_again(n, centre, state, dual)
    return FAILED


@subroutine
def begin_again(n: FloatArray, centre: FloatArray, state: FloatArray, dual: FloatArray) -> None:
    """Forget the warm start."""
    for e in range(len(n)):
        state[0, e], state[1, e], state[2, e], state[3, e] = centre[e], n[e] - centre[e], 1.0, 1.0
    for v in range(len(dual)):
        dual[v] = 0.0


@subroutine
def descend(
    pattern: Pattern,
    balance: FloatArray,
    n: FloatArray,
    arms: int,
    c: FloatArray,
    beta: FloatArray,
    phi: FloatArray,
    relative_mu: float,
    careful: bool,
    nothing: float,
    state: FloatArray,
    dual: FloatArray,
) -> Any:
    """Minimise in one trial; ``state`` is (flow, complement, low, high) of every arc.

    Returns the number of steps, or ``FAILED``.
    """
    arcs, nodes, tail, head = len(n), len(dual), pattern.tail, pattern.head
    work, step, whole = np.empty((5, arcs)), np.empty(nodes), np.empty(nodes)
    gradient, weight, dx, old, old_rest = work[0], work[1], work[2], work[3], work[4]
    noise, laplacian = np.empty(nodes), np.empty(entries(pattern, nodes))
    missing, has_free = np.empty((2, nodes)), arms < arcs
    near = 0.99 if has_free else 0.95
    leaves, up = np.empty(0, np.int64), np.empty(0, np.int64)
    unit, dearest = np.inf, 0.0
    for e in range(arms):
        lowest = phi[e, 0] + phi[e, 2] + phi[e, 3]
        unit = min(unit, beta[e] * n[e] * lowest)
        dearest = max(dearest, abs(c[e]), beta[e] * lowest)
    last_mu = relative_mu * unit
    mu, restarted, doubt = last_mu, False, 0.0
    if careful and has_free:  # from far inside, with a mu that fits the largest free arc
        mu, restarted, doubt = FIRST_MU * dearest * n[arms:].max(), True, DOUBT * dearest
        restart(n, arms, mu, state)
    differentiate(
        tail,
        head,
        n,
        arms,
        c,
        beta,
        phi,
        mu,
        doubt,
        state,
        dual,
        gradient,
        weight,
    )
    if pattern.too_large:
        leaves, up = spanning_forest(tail, head, weight, nodes)
    for taken in range(1, MAX_ITERATIONS + 1):
        balanced = flow_missing(tail, head, n, balance, state, whole, noise, step)
        if careful:
            measure_missing(tail, head, balance, n, state[0], state[1], missing)
            balanced |= largest(missing) < nothing
            for v in range(nodes):
                step[v] = missing[0, v] + missing[1, v]
        leave_full(n, arms, gradient, state, dx)
        if pattern.too_large:
            pull_nodes(tail, head, weight, dx, step)
            solve_laplacian(tail, head, weight, leaves, up, SOLVED, step)
        else:
            solve(pattern, weight, dx, laplacian, step)
        for e in range(arcs):
            dx[e] = weight[e] * (step[tail[e]] - step[head[e]] - gradient[e])
        if careful:
            correct(tail, head, weight, missing, dx)
        unasked = nothing if careful and taken > STEPS_BEFORE_DOUBT else 0.0
        slope, longest, room = newton_step(
            tail, head, n, arms, mu, doubt, unasked, noise, weight, state, dx
        )
        if not np.isfinite(slope):
            return FAILED
        # far from a minimiser near a bound, x = beta n / c, the way to it ends at 1 - room
        length = min(1.0, room * max(near, min(1.0 - room, 1.0 - 1e-9)))
        if has_free and not restarted and length < 0.5:
            mu, restarted = FIRST_MU * unit, True
            restart(n, arms, mu, state)
        else:
            descending = balanced
            if careful:  # a dx that restores the balance may ascend, and must not be cut
                descending &= slope_along(tail, head, c, dual, gradient, dx)[0] < -0.5 * slope
            for v in range(nodes):
                dual[v] += step[v]
            for e in range(arcs):
                old[e], old_rest[e] = state[0, e], state[1, e]
            move(n, arms, careful, old, old_rest, dx, length, state)
            if mu == last_mu and balanced and longest < SMALL_STEP:
                follow(arms, mu, old, old_rest, dx, state)
                return taken
            # The slope along dx grows with the length: where it has become clearly positive the
            # step was too long, and the secant gives a better length. No objective is evaluated.
            for _ in range(MAX_CUTS):
                differentiate(
                    tail,
                    head,
                    n,
                    arms,
                    c,
                    beta,
                    phi,
                    mu,
                    doubt,
                    state,
                    dual,
                    gradient,
                    weight,
                )
                new_slope, unsure = slope_along(tail, head, c, dual, gradient, dx)
                if not descending or longest < SMALL_STEP or not new_slope > 0.3 * slope + unsure:
                    break
                length *= slope / (slope + new_slope)
                move(n, arms, careful, old, old_rest, dx, length, state)
            if not has_free:
                continue
            follow(arms, mu, old, old_rest, dx, state)
            if length > 0.5:
                mu *= 0.01 if length > 0.9 else 0.1
                if mu < 10.0 * last_mu:
                    mu = last_mu
        differentiate(
            tail,
            head,
            n,
            arms,
            c,
            beta,
            phi,
            mu,
            doubt,
            state,
            dual,
            gradient,
            weight,
        )
    return FAILED


@kernel
def entries(pattern: Pattern, nodes: int) -> Any:
    """Return the size of the Laplacian: the sparse rows, then the dense matrix."""
    if pattern.too_large:
        return 0
    dense = nodes - (len(pattern.first) - 1)
    return pattern.first[-1] + dense * dense


@subroutine
def restart(n: FloatArray, arms: int, mu: float, state: FloatArray) -> None:
    """Move free arcs away from their bounds; Newton's step repairs the balance of the nodes."""
    for e in range(arms, len(n)):
        if state[0, e] < INSIDE * n[e]:
            state[0, e] = INSIDE * n[e]
        elif state[1, e] < INSIDE * n[e]:
            state[0, e] = n[e] - INSIDE * n[e]
        state[1, e] = n[e] - state[0, e]
        state[2, e], state[3, e] = mu / state[0, e], mu / state[1, e]


@subroutine
def differentiate(
    tail: IntArray,
    head: IntArray,
    n: FloatArray,
    arms: int,
    c: FloatArray,
    beta: FloatArray,
    phi: FloatArray,
    mu: float,
    doubt: float,
    state: FloatArray,
    dual: FloatArray,
    gradient: FloatArray,
    weight: FloatArray,
) -> None:
    """gradient = c - duals + beta phi'(x) and weight = 1 / (beta phi''(x)), or those of free arcs.

    Free arcs have the proximal term doubt / min(f, rest) in their curvature.
    """
    for e in range(arms):
        u, v = state[0, e] / n[e], state[1, e] / n[e]
        barrier, entropy, root, shannon = regulariser.weights(phi, e)
        logs = regulariser.logarithms(entropy, shannon, u, v)
        phi1 = regulariser.slope(barrier, root, u, logs)
        below = regulariser.curvature_below(barrier, root, shannon, u)
        gradient[e] = c[e] - (dual[tail[e]] - dual[head[e]]) + beta[e] * phi1
        weight[e] = n[e] * u * u * v / (beta[e] * (below * v + entropy * u * u))
    for e in range(arms, len(n)):
        f, rest = state[0, e], state[1, e]
        gradient[e] = mu / rest - mu / f - (dual[tail[e]] - dual[head[e]])
        weight[e] = 1.0 / (state[2, e] / f + state[3, e] / rest + doubt / min(f, rest))


@subroutine
def flow_missing(
    tail: IntArray,
    head: IntArray,
    n: FloatArray,
    balance: FloatArray,
    state: FloatArray,
    whole: FloatArray,
    noise: FloatArray,
    missing: FloatArray,
) -> Any:
    """What the nodes lack to their balance, (balance - whole) - parts.

    Arcs near n count as n - rest: the n are added up in ``whole``, exactly, and tiny numbers
    survive among the parts. What may be rounding counts as nothing, or else the tiny arcs between
    two large parts of a graph would have to carry it.
    """
    for v in range(len(balance)):
        whole[v] = 0.0
        noise[v] = 0.0
        missing[v] = 0.0
    for e in range(len(n)):
        part = state[0, e]
        if part > state[1, e]:
            whole[tail[e]] += n[e]
            whole[head[e]] -= n[e]
            part = -state[1, e]
        missing[tail[e]] += part
        missing[head[e]] -= part
        noise[tail[e]] += abs(part)
        noise[head[e]] += abs(part)
    balanced, negligible = True, 0.0
    for e in range(len(n)):
        negligible += ROUNDING * n[e]
    for v in range(len(balance)):
        missing[v] = (balance[v] - whole[v]) - missing[v]
        if abs(missing[v]) < NOISE_FLOOR * noise[v]:
            missing[v] = 0.0
        balanced &= abs(missing[v]) <= BALANCED * noise[v] + negligible
    return balanced


@subroutine
def leave_full(
    n: FloatArray, arms: int, gradient: FloatArray, state: FloatArray, pull: FloatArray
) -> None:
    """Pull at all arcs by their gradient, but not at full arms that want to be fuller."""
    for e in range(len(n)):
        full = e < arms and state[1, e] <= FULL * n[e]
        pull[e] = 0.0 if full and gradient[e] < 0.0 else gradient[e]


@kernel
def solve(
    pattern: Pattern,
    weight: FloatArray,
    gradient: FloatArray,
    laplacian: FloatArray,
    step: FloatArray,
) -> None:
    """Find dual steps s such that weight (s_tail - s_head - gradient) has the wanted balance.

    The wanted balance comes in ``step`` and the answer leaves in it. A node without later
    neighbours is the last of its component, and grounded.
    """
    tail, head, entry = pattern.tail, pattern.head, pattern.entry
    first, neighbour, mesh = pattern.first, pattern.neighbour, pattern.mesh
    for i in range(len(laplacian)):
        laplacian[i] = 0.0
    pull_nodes(tail, head, weight, gradient, step)
    for e in range(len(weight)):
        laplacian[entry[e]] += weight[e]
    sparse, met = len(first) - 1, 0
    for p in range(sparse):
        degree = 0.0
        for i in range(first[p], first[p + 1]):
            degree += laplacian[i]
        for i in range(first[p], first[p + 1]):
            share = laplacian[i] / degree
            step[neighbour[i]] += share * step[p]
            for j in range(i + 1, first[p + 1]):
                laplacian[mesh[met]] += share * laplacian[j]
                met += 1
            laplacian[i] = share
        step[p] = step[p] / degree if degree > 0.0 else 0.0
    solve_dense(laplacian[first[sparse] :], step[sparse:])
    for p in range(sparse - 1, -1, -1):
        for i in range(first[p], first[p + 1]):
            step[p] += laplacian[i] * step[neighbour[i]]


@subroutine
def pull_nodes(
    tail: IntArray, head: IntArray, weight: FloatArray, gradient: FloatArray, step: FloatArray
) -> None:
    """Add to the wanted balance what the gradient of the arcs takes away."""
    for e in range(len(weight)):
        push = weight[e] * gradient[e]
        step[tail[e]] += push
        step[head[e]] -= push


@subroutine
def solve_dense(flat: FloatArray, step: FloatArray) -> None:
    """Solve for the last nodes; the very last one is grounded."""
    nodes = len(step)
    if nodes == 0:
        return
    laplacian = flat.reshape(nodes, nodes)
    eliminate_columns(laplacian, step)
    step[nodes - 1] = 0.0
    for p in range(nodes - 2, -1, -1):
        for q in range(p + 1, nodes):
            step[p] += laplacian[p, q] * step[q]
        step[p] /= laplacian[p, p]


@subroutine
def newton_step(
    tail: IntArray,
    head: IntArray,
    n: FloatArray,
    arms: int,
    mu: float,
    doubt: float,
    unasked: float,
    noise: FloatArray,
    weight: FloatArray,
    state: FloatArray,
    dx: FloatArray,
) -> tuple[float, float, float]:
    """Return sum dx^2 / weight, the largest |dx| / min(x, rest), the length to a bound."""
    slope, largest, room = 0.0, 0.0, np.inf
    for e in range(len(n)):
        f, rest, d = state[0, e], state[1, e], dx[e]
        ahead = f if d < 0.0 else rest
        size, smaller = abs(d), min(f, rest)
        loud = max(noise[tail[e]], noise[head[e]])
        quiet = size < 0.9 * smaller and size < UNHEARD * loud
        if e >= arms and size < 0.5 * smaller and doubt * weight[e] > 0.5 * smaller:
            slope += d * (d / weight[e])  # far from both bounds, where a free arc does not matter
            continue
        if e >= arms:
            size *= SMALL_STEP / SMALL_FREE_STEP
            off = max(abs(f * state[2, e] / mu - 1.0), abs(rest * state[3, e] / mu - 1.0))
            largest = max(largest, off * SMALL_STEP / (10.0 if quiet else SMALL_FREE_STEP))
        elif d > 0.0 and rest <= NEARLY_FULL * n[e]:
            ahead = NEARLY_FULL * n[e]
            if rest <= FULL * n[e]:
                d = 0.0
        quiet &= e >= arms
        quiet |= max(size, rest) < unasked
        dx[e] = d
        slope += d * (d / weight[e])
        if size > largest * smaller and not quiet and d != 0.0:
            largest = size / smaller
        if ahead < room * abs(d):
            room = ahead / abs(d)
    return slope, largest, room


@subroutine
def correct(
    tail: IntArray, head: IntArray, weight: FloatArray, missing: FloatArray, dx: FloatArray
) -> None:
    """Let the arcs of the largest weights carry what dx leaves missing."""
    for e in range(len(dx)):
        add(missing, tail[e], -dx[e])
        add(missing, head[e], dx[e])
    more = np.empty(len(dx))
    carry(tail, head, weight, missing, more)
    for e in range(len(dx)):
        dx[e] += more[e]


@subroutine
def conserve(
    tail: IntArray,
    head: IntArray,
    balance: FloatArray,
    n: FloatArray,
    arms: int,
    nothing: float,
    state: FloatArray,
) -> Any:
    """Let the arcs with the most room carry what is missing; say whether they can."""
    arcs, flow, rest = len(n), state[0], state[1]
    missing = np.empty((2, len(balance)))
    measure_missing(tail, head, balance, n, flow, rest, missing)
    most = largest(missing)
    if most <= NEGLIGIBLE:
        return True
    room, dx = np.minimum(flow, rest), np.empty(arcs)
    strength, more_than_rounding = room.copy(), False
    strength[arms:] *= PREFER_FREE
    carry(tail, head, strength, missing, dx)
    for e in range(arcs):
        if abs(dx[e]) < nothing:
            dx[e] = 0.0
        limit = FREE_CARRIES * room[e]
        if e < arms:
            limit = max(ARM_CARRIES * room[e], min(SMALL_STEP * room[e], TINY))
        if abs(dx[e]) > limit:
            return False
        more_than_rounding |= abs(dx[e]) > ROUNDING * room[e]
    if most > VISIBLE and more_than_rounding:
        for e in range(arcs):
            f, to = flow[e] + dx[e], rest[e] - dx[e]
            if f > to:
                flow[e], rest[e] = n[e] - to, to
            else:
                flow[e], rest[e] = f, n[e] - f
    return True


@subroutine
def move(
    n: FloatArray,
    arms: int,
    careful: bool,
    old: FloatArray,
    old_rest: FloatArray,
    dx: FloatArray,
    length: float,
    state: FloatArray,
) -> None:
    """x = old + length dx, with x + rest = n kept by the smaller of the two."""
    for e in range(len(n)):
        d = length * dx[e]
        if e < arms and old_rest[e] <= NEARLY_FULL * n[e]:
            rest = old_rest[e] * stretched(1.0 - d / old_rest[e])
            if careful and d < 0.0:  # the logarithmic scale would magnify what is rounding in d
                rest = old_rest[e] - d
            rest = max(FULL * n[e], min(rest, max(NEARLY_FULL * n[e], old_rest[e] - d)))
            state[0, e], state[1, e] = n[e] - rest, rest
            continue
        f, rest = old[e] + d, old_rest[e] - d
        if f > rest:
            state[0, e], state[1, e] = n[e] - rest, rest
        else:
            state[0, e], state[1, e] = f, n[e] - f


@subroutine
def stretched(factor: float) -> Any:
    """Return the factor by which a complement changes, linear near 1, on a log scale elsewhere."""
    if factor < 0.05:
        return 0.05 * math.exp(max(factor - 0.05, -10.0))
    if factor < 1.0:
        return factor
    return factor + 0.5 * (factor - 1.0) ** 2


@subroutine
def slope_along(
    tail: IntArray,
    head: IntArray,
    c: FloatArray,
    dual: FloatArray,
    gradient: FloatArray,
    dx: FloatArray,
) -> tuple[float, float]:
    """Return the sum of gradient dx, and how much of it may be rounding."""
    slope, noise = 0.0, 0.0
    for e in range(len(dx)):
        slope += gradient[e] * dx[e]
        noise += (abs(c[e]) + abs(dual[tail[e]]) + abs(dual[head[e]])) * abs(dx[e])
    return slope, ROUNDING * noise


@subroutine
def follow(
    arms: int,
    mu: float,
    old: FloatArray,
    old_rest: FloatArray,
    dx: FloatArray,
    state: FloatArray,
) -> None:
    """Take Newton's step in the multipliers of the bounds, low f = mu and high (n - f) = mu."""
    for e in range(arms, len(dx)):
        low, high = state[2, e], state[3, e]
        new_low = max(0.01 * low, (mu - low * dx[e]) / old[e])
        new_high = max(0.01 * high, (mu + high * dx[e]) / old_rest[e])
        middle_low, middle_high = mu / state[0, e], mu / state[1, e]
        state[2, e] = min(max(new_low, middle_low / AGREEMENT), middle_low * AGREEMENT)
        state[3, e] = min(max(new_high, middle_high / AGREEMENT), middle_high * AGREEMENT)


def eliminate(nodes: int, tail: IntArray, head: IntArray) -> tuple[IntArray, Pattern]:
    """Return the position of each node in an order of minimum degree, and the pattern.

    Nodes whose neighbours are few go first, since they join all pairs of them. When the nodes that
    are left have all been joined, they are the dense ones.
    """
    around: list[set[int]] = [set() for _ in range(nodes)]
    for t, h in zip(tail.tolist(), head.tolist(), strict=True):
        if t != h:
            around[t].add(h)
            around[h].add(t)
    order, rows = _order_of_minimum_degree(around)
    if len(order) < nodes:
        nothing = np.empty(0, dtype=np.int64)
        whole = np.ones(1, dtype=np.int64)
        return np.arange(nodes), Pattern(tail, head, nothing, whole, nothing, nothing, True)
    position = np.empty(nodes, dtype=np.int64)
    position[order] = np.arange(nodes)

    neighbours = [np.sort(position[row]) for row in rows]
    first = np.cumsum([1, *map(len, neighbours)])
    entry = {(p, p): 0 for p in range(nodes)}  # loops join nothing, and are collected at the front
    for p, row in enumerate(neighbours):
        entry.update({(p, int(q)): int(first[p]) + i for i, q in enumerate(row)})
    sparse, dense = len(rows), nodes - len(rows)

    def entries_of(pairs: Iterable[Sequence[int]]) -> IntArray:
        found = [
            entry[p, q] if (p, q) in entry else int(first[-1]) + (p - sparse) * dense + q - sparse
            for p, q in map(sorted, pairs)
        ]
        return np.array(found, dtype=np.int64)

    ends = np.column_stack([position[tail], position[head]])
    return position, Pattern(
        tail=position[tail],
        head=position[head],
        entry=entries_of(ends.tolist()),
        first=first,
        neighbour=np.concatenate([[0], *neighbours]).astype(np.int64),
        mesh=entries_of(pair for row in neighbours for pair in combinations(row.tolist(), 2)),
        too_large=False,
    )


def _order_of_minimum_degree(around: list[set[int]]) -> tuple[list[int], list[list[int]]]:
    """Return all nodes, and the later neighbours of those that are not in the dense end.

    Where that would be too much, the nodes so far are returned.
    """
    mesh = 0
    left, order, rows = set(range(len(around))), list[int](), list[list[int]]()
    queue = [(len(near), node) for node, near in enumerate(around)]
    heapq.heapify(queue)
    while left:
        degree, node = heapq.heappop(queue)
        if node not in left or degree != len(around[node]):
            continue  # its degree has changed since, and it is in the queue again
        if degree == len(left) - 1:
            break
        mesh += degree * (degree - 1) // 2
        if mesh > MOST_MESH:
            return order, rows
        left.remove(node)
        order.append(node)
        rows.append(sorted(around[node]))
        for near in around[node]:
            around[near] |= around[node]
            around[near] -= {near, node}
            heapq.heappush(queue, (len(around[near]), near))
    return order + sorted(left) * (len(left) <= MOST_DENSE), rows
