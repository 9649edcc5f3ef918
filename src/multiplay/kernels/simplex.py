"""The FTRL step over the hull of any finite set, in coordinates of a kept simplex of actions.

Minimise ``f(x) = <c, x> + sum beta phi(x)`` over the mixtures ``x = sum_k w_k a_k`` of the *atoms*,
affinely independent actions that span the set. Where a better action is known, it takes the place
of an atom. ``sides`` and ``offsets`` are the inverse of B, whose columns are ``(a_k, 1)`` for the
atoms, and fixed directions that are orthogonal to all actions for the other slots: the weights
``sides x + offsets`` are linear in x.

In x the Hessian is a diagonal h, and only the sides that hold the minimiser couple the arms. So
Newton's step is a projection to the simplex, with few multipliers; see ``projection``. Their *pull*
is what the gradient g is at the minimiser over the simplex. An action with
``<pull, a> < <pull, x>`` lies beyond a side that holds, and takes the place of the atom opposite.

The model, its gradient and its metric, stands at a *centre*. Atoms are exchanged for it until no
action in memory helps, then the centre moves to the model's minimiser. The first centre is where
the pull of the last round would hold the arms, whether or not it is in the simplex.

For every a, ``<g, x - a> <= <pull, x - a> + slack``, ``slack = sum |g - pull| max(x, n - x)``. So
the best action for the pull bounds the duality gap at x, even if Newton has not settled.

All arrays have only the arms with any freedom.
"""

import math
from typing import Any

import numpy as np

from multiplay.kernels import regulariser
from multiplay.kernels.jit import kernel, subroutine
from multiplay.kernels.projection import product, project, replace
from multiplay.types import BoolArray, FloatArray, IntArray

MAX_STEPS = 20  # projections between two questions to the oracle, for each slot
MAX_MOVES = 50  # of the centre, without a new atom
MAX_SHORTER = 60  # tries of one line search
MAX_SOLVE = 20  # Newton steps for one arm
NEAR = 0.3  # step relative to x and rest, up to which the quadratic model is trusted
WORTH = 0.3  # of the descent of the model: an action that promises less waits for a new model
FIRST_GAP = 1e4  # the last gap, in harmless ones, before there was one
KNOWN = 0.5  # of the last gap
SETTLED = 0.3  # of the last gap: slack with which the oracle is asked again
STALE = 1.1  # ratio of the metric to the Hessian, up to which it need not follow
ENOUGH = 0.25  # of the harmless gap: slack with which the oracle is asked for a certificate
FLAT = 1e-9  # u or 1 - u, below which logarithms go on as their tangents
SHARE_OF_FLAT = 0.1  # of the harmless gap, which tangents may cost
ROUNDING = 1e-13  # of the terms of a gap: no gap is known better
PIVOT = 1e-7  # least share of an entering action in the atom that it replaces
DRIFT = 1e-8  # of a weight, by which the inverse may be wrong
INEXACT = 1e-9  # an oracle whose action is worse than a known one, by more than this, is wrong

X, REST, METRIC, PULL, GRADIENT = range(5)  # rows of ``arms``
W, MU, BASE = range(3)  # rows of ``slots``
# entries of ``marks``
EPS, GAP, LAST, SLACK, TERMS, DESCENT, LEVEL = range(7)
CENTRED, NEXT, FORCE, CERTIFY, AGAIN, ERROR, FRESH, SIZE, EAGER = range(7, 16)
MARKS = 16
ASKING, DONE, FAILED, WRONG, DRIFTED, GO = range(6)  # the status of a trial


@subroutine
def differentiate(
    n: FloatArray,
    c: FloatArray,
    beta: FloatArray,
    phi: FloatArray,
    harmless: float,
    x: FloatArray,
    rest: FloatArray,
    g: FloatArray,
    h: FloatArray,
) -> float:
    """g = c + beta phi'(x) and h = beta phi''(x); return the size of the terms of <g, x>.

    Far below FLAT, log u is its tangent in u there, so that x may be 0 or n. That changes f
    by at most n beta FLAT times the weight of the logarithm: a small share of the harmless gap.
    """
    size = 1.0
    least = SHARE_OF_FLAT * harmless / len(x)
    for i in range(len(x)):
        u, v = x[i] / n[i], rest[i] / n[i]
        barrier, entropy, root, shannon = regulariser.weights(phi, i)
        logs, above, below = 0.0, 0.0, 0.0
        if entropy > 0.0:
            flat = max(v, min(FLAT, least / (n[i] * beta[i] * entropy)))
            logs = -entropy * (math.log(flat) + v / flat - 1.0)
            above = entropy / flat
        if shannon > 0.0:
            flat = max(u, min(FLAT, least / (n[i] * beta[i] * shannon)))
            logs += shannon * (math.log(flat) + u / flat - 1.0)
            above += shannon / flat
        if barrier > 0.0 or root > 0.0:
            below = regulariser.curvature_below(barrier, root, 0.0, u) / u / u
            logs = regulariser.slope(barrier, root, u, logs)
        pull = beta[i] * logs
        g[i] = c[i] + pull
        h[i] = beta[i] * (below + above) / n[i]
        size += n[i] * (abs(c[i]) + abs(pull))
    return size


@subroutine
def mix(n: FloatArray, atoms: FloatArray, w: FloatArray, x: FloatArray, rest: FloatArray) -> None:
    """x = sum w_k a_k and rest = sum w_k (n - a_k): no term is negative."""
    for i in range(len(x)):
        x[i] = 0.0
        rest[i] = 0.0
    for k in range(len(atoms) // 2):
        share, atom = w[k], atoms[k]
        if share > 0.0:
            for i in range(len(x)):
                x[i] += share * atom[i]
                rest[i] += share * (n[i] - atom[i])


@subroutine
def place(w: FloatArray, new: FloatArray, held: BoolArray, real: int) -> None:
    """w = new, but exactly 0 in held slots and nowhere below; the heaviest makes it 1."""
    heaviest, others = 0, 0.0
    for k in range(real):
        w[k] = 0.0 if held[k] or new[k] < 0.0 else new[k]
        if w[k] > w[heaviest]:
            heaviest = k
    for k in range(real):
        if k != heaviest:
            others += w[k]
    w[heaviest] = 1.0 - others


@subroutine
def solve_arm(
    target: float,
    barrier: float,
    entropy: float,
    root: float,
    shannon: float,
    u: float,
) -> Any:
    """Return u with phi'(u) = target, roughly: Newton's method between two bounds."""
    low, high = 0.0, 1.0
    for _ in range(MAX_SOLVE):
        v = 1.0 - u
        logs = regulariser.logarithms(entropy, shannon, u, v)
        error = regulariser.slope(barrier, root, u, logs) - target
        if error > 0.0:
            high = u
        else:
            low = u
        bend = regulariser.curvature_below(barrier, root, shannon, u) / u / u + entropy / v
        step = -error / bend
        new = u + step
        if not low < new < high:
            new = 0.5 * (low + high)
        if abs(new - u) <= 0.01 * min(u, v):
            return new
        u = new
    return u


@subroutine
def foresee(
    n: FloatArray,
    c: FloatArray,
    beta: FloatArray,
    phi: FloatArray,
    pull: FloatArray,
    x: FloatArray,
    rest: FloatArray,
) -> None:
    """Move every arm to where the old pull holds it: g(x) = pull."""
    for i in range(len(n)):
        barrier, entropy, root, shannon = regulariser.weights(phi, i)
        u = min(max(x[i] / n[i], 1e-6), 1.0 - 1e-6)
        u = solve_arm((pull[i] - c[i]) / beta[i], barrier, entropy, root, shannon, u)
        u = min(max(u, 1e-9), 1.0 - 1e-9)
        x[i] = n[i] * u
        rest[i] = n[i] - x[i]


@kernel
def improve(
    n: FloatArray,
    c: FloatArray,
    beta: FloatArray,
    phi: FloatArray,
    todo: IntArray,
    atoms: FloatArray,
    sides: FloatArray,
    offsets: FloatArray,
    held: BoolArray,
    arms: FloatArray,
    slots: FloatArray,
    marks: FloatArray,
    G: FloatArray,
    factor: FloatArray,
    order: IntArray,
    ready: BoolArray,
    status: IntArray,
) -> None:
    """Move the trials ``todo`` towards their minimisers, until the oracle should be asked."""
    for t in todo:
        if status[t] == GO:
            status[t] = prepare(
                *(n, c[t], beta[t], phi[t], sides[t], offsets[t], atoms.shape[1] // 2),
                *(held[t], arms[t], slots[t], marks[t]),
            )
        if status[t] == ASKING:
            status[t] = approach(
                *(n, c[t], beta[t], phi[t], atoms[t], sides[t], offsets[t]),
                *(held[t], arms[t], slots[t], marks[t], G[t], factor[t], order[t], ready[t]),
            )


@subroutine
def prepare(
    n: FloatArray,
    c: FloatArray,
    beta: FloatArray,
    phi: FloatArray,
    sides: FloatArray,
    offsets: FloatArray,
    real: int,
    held: BoolArray,
    arms: FloatArray,
    slots: FloatArray,
    marks: FloatArray,
) -> Any:
    """Check the inverse, and put the first centre where the old pull holds the arms."""
    x, pull, w, base = arms[X], arms[PULL], slots[W], slots[BASE]
    np.dot(sides, x, base)
    for k in range(len(base)):
        if not abs(base[k] + offsets[k] - w[k]) <= DRIFT:
            return DRIFTED
        held[k] = k >= real or w[k] == 0.0
        slots[MU, k] = 0.0
    marks[NEXT], marks[GAP], marks[LAST] = 1.0, -1.0, FIRST_GAP * marks[EPS]
    if pull[0] != 0.0:  # there was a last round
        foresee(n, c, beta, phi, pull, x, arms[REST])
        marks[TERMS] = differentiate(
            n, c, beta, phi, marks[EPS], x, arms[REST], arms[GRADIENT], arms[METRIC]
        )
        np.dot(sides, x, base)
        for k in range(len(base)):
            base[k] += offsets[k]
        marks[NEXT] = 0.0
    return ASKING


@subroutine
def centre(
    n: FloatArray,
    c: FloatArray,
    beta: FloatArray,
    phi: FloatArray,
    atoms: FloatArray,
    arms: FloatArray,
    slots: FloatArray,
    marks: FloatArray,
    bend: FloatArray,
) -> Any:
    """Put the model at the mixture of the weights; say whether that is good enough.

    ``bend`` becomes the Hessian there.
    """
    x, rest, pull, g, w = arms[X], arms[REST], arms[PULL], arms[GRADIENT], slots[W]
    real, slack = len(atoms) // 2, 0.0
    marks[NEXT], marks[CENTRED] = 0.0, 1.0
    mix(n, atoms, w, x, rest)
    marks[TERMS] = differentiate(n, c, beta, phi, marks[EPS], x, rest, g, bend)
    if not np.isfinite(marks[TERMS]):  # at x = 0; an even mixture is in the interior
        for k in range(real):
            w[k] = 0.99 * w[k] + 0.01 / real
        marks[GAP] = -1.0
        mix(n, atoms, w, x, rest)
        marks[TERMS] = differentiate(n, c, beta, phi, marks[EPS], x, rest, g, bend)
    for k in range(len(w)):
        slots[BASE, k] = w[k]
    for i in range(len(n)):
        slack += abs(g[i] - pull[i]) * max(x[i], rest[i])
    return marks[GAP] >= 0.0 and slack + marks[GAP] <= marks[EPS]


@subroutine
def renewed(metric: FloatArray, bend: FloatArray) -> bool:
    """Make the Hessian the metric, unless the old one is near: G and its factor stay with it."""
    for i in range(len(metric)):
        if not metric[i] < STALE * bend[i] or not bend[i] < STALE * metric[i]:
            for j in range(len(metric)):
                metric[j] = bend[j]
            return True
    return False


@subroutine
def measure(n: FloatArray, arms: FloatArray, dx: FloatArray) -> tuple[float, float, float, float]:
    """Return the slack, |dx|^2 in the metric, the largest |dx| / min(x, rest), the room ahead."""
    slack, square, largest, room = 0.0, 0.0, 0.0, np.inf
    for i in range(len(n)):
        far, x, rest = abs(dx[i]), arms[X, i], arms[REST, i]
        force = far * arms[METRIC, i]
        slack += force * max(x, rest)
        square += force * far
        largest = max(largest, far / max(min(x, rest), FLAT * n[i]))
        ahead = x if dx[i] < 0.0 else rest
        if ahead < room * far and ahead > FLAT * n[i]:
            room = ahead / far
    return slack, square, largest, room


@subroutine
def descend(
    n: FloatArray,
    c: FloatArray,
    beta: FloatArray,
    phi: FloatArray,
    atoms: FloatArray,
    held: BoolArray,
    arms: FloatArray,
    slots: FloatArray,
    eps: float,
    dx: FloatArray,
    dw: FloatArray,
    room: float,
    bend: FloatArray,
) -> None:
    """Move the weights along dw, as far as f descends."""
    x, rest, g, w = arms[X], arms[REST], arms[GRADIENT], slots[W]
    slope, length = 0.0, min(1.0, 0.95 * room)
    nothing = np.zeros(len(dw), dtype=np.bool_)
    for i in range(len(n)):
        slope -= g[i] * dx[i]
    old, new = w.copy(), np.empty(len(dw))
    for _ in range(MAX_SHORTER):
        for k in range(len(w)):
            new[k] = old[k] + length * dw[k]
        place(w, new, held if length == 1.0 else nothing, len(atoms) // 2)
        mix(n, atoms, w, x, rest)
        # The slope along dx grows with the length: where it has become clearly positive the
        # step was too long, and the secant gives a better length.
        differentiate(n, c, beta, phi, eps, x, rest, g, bend)
        new_slope = 0.0
        for i in range(len(n)):
            new_slope += g[i] * dx[i]
        if not new_slope > 0.3 * slope:
            break
        length *= slope / (slope + new_slope)


@subroutine
def approach(
    n: FloatArray,
    c: FloatArray,
    beta: FloatArray,
    phi: FloatArray,
    atoms: FloatArray,
    sides: FloatArray,
    offsets: FloatArray,
    held: BoolArray,
    arms: FloatArray,
    slots: FloatArray,
    marks: FloatArray,
    G: FloatArray,
    factor: FloatArray,
    order: IntArray,
    ready: BoolArray,
) -> Any:
    """Exchange atoms and move, until no known action helps; return the status."""
    d, D, real, eps = len(n), len(sides), len(atoms) // 2, marks[EPS]
    pull, g, metric, w, mu, base = (
        arms[PULL],
        arms[GRADIENT],
        arms[METRIC],
        slots[W],
        slots[MU],
        slots[BASE],
    )
    dx, new, dw, costs = np.empty(d), np.empty(D), np.empty(D), np.empty(real)
    bend, memory, moves = np.empty(d), atoms[real:], 0
    for _ in range(MAX_STEPS * D):
        if marks[NEXT] == 1.0:
            marks[AGAIN] = 0.0
            moves += 1
            if moves > MAX_MOVES:
                return FAILED
            if centre(n, c, beta, phi, atoms, arms, slots, marks, bend):
                return DONE
            if renewed(metric, bend):
                marks[SIZE] = 0
                for k in range(D):
                    ready[k] = False
        if marks[AGAIN] == 0.0:
            size = project(
                *(sides, g, metric, base, real, held, mu, pull, dx, new),
                *(G, ready, factor, order, int(marks[SIZE])),
            )
            if size < 0:
                return FAILED
            marks[SIZE] = size
            slack, square, largest, room = measure(n, arms, dx)
            if not np.isfinite(square):
                return FAILED
            centred = marks[CENTRED] == 1.0
            if centred and largest >= NEAR:
                for k in range(D):
                    dw[k] = new[k] - base[k]
                descend(n, c, beta, phi, atoms, held, arms, slots, eps, dx, dw, room, bend)
                marks[NEXT], marks[GAP] = 1.0, -1.0
                continue
            certify = centred and slack <= ENOUGH * eps and marks[FORCE] == 0.0
            marks[SLACK], marks[DESCENT], marks[CERTIFY] = slack, square, certify
            marks[ERROR] = slack * min(1.0, largest)
            marks[LEVEL] = product(pull, arms[X], d)
            if not certify:
                place(w, new, held, real)
                marks[CENTRED] = 0.0
                marks[LEVEL] += product(pull, dx, d)
        marks[AGAIN] = 0.0
        certify = marks[CERTIFY] == 1.0
        eager = marks[EAGER] == 1.0
        if eager and marks[FRESH] == 0.0:  # nothing in memory would be taken
            return ASKING
        least = max(0.5 * eps, 0.0 if certify else WORTH * marks[DESCENT])
        np.dot(memory, pull, costs)
        best = int(costs.argmin())
        ask = eager or certify or marks[ERROR] <= SETTLED * marks[LAST]
        known = KNOWN * marks[LAST] if ask and marks[FRESH] == 0.0 else 0.0
        if marks[LEVEL] - costs[best] > max(least, known):
            marks[FRESH] = 0.0
            moves = 0
            marks[FORCE] = 1.0 if certify else 0.0
            if not certify and not enter(
                atoms, real + best, sides, offsets, held, slots, marks, G, factor, order, ready, dw
            ):
                return FAILED
        elif ask:
            return ASKING
        else:
            marks[NEXT], marks[GAP] = 1.0, -1.0
    return FAILED


@kernel
def admit(
    todo: IntArray,
    found: FloatArray,
    proved: float,
    atoms: FloatArray,
    arms: FloatArray,
    marks: FloatArray,
    status: IntArray,
) -> None:
    """Remember the actions ``found``, where the duality gap is not harmless yet.

    ``proved`` is the share of the harmless gap by which the best action may be missed, unless the
    action found descends by more.
    """
    real, d = atoms.shape[1] // 2, atoms.shape[2]
    costs = np.empty(real)
    for row in range(len(todo)):
        t = todo[row]
        if status[t] != ASKING:
            continue
        pull, mark = arms[t, PULL], marks[t]
        eps, gap = mark[EPS], mark[LEVEL] - product(pull, found[row], d)
        missed = max(gap, 0.0) + proved * eps
        mark[LAST] = max(gap, 0.0)
        np.dot(atoms[t, real:], pull, costs)
        slack = proved * eps + INEXACT * mark[TERMS] + mark[SLACK]
        descends = proved > 0.0 and gap > proved * eps  # then there may be better ones
        if not descends and min(mark[LEVEL], costs.min()) < mark[LEVEL] - gap - slack:
            status[t] = WRONG
        elif mark[CERTIFY] == 1.0 and missed + mark[SLACK] <= eps:
            status[t] = DONE
        else:
            worst = real + costs.argmax()
            mark[FRESH] = 1.0
            for i in range(d):
                atoms[t, worst, i] = found[row, i]
            if mark[CERTIFY] == 1.0:
                mark[FORCE] = 1.0
            elif gap <= max(WORTH * mark[DESCENT], 0.5 * eps):
                mark[NEXT], mark[GAP] = 1.0, missed
            else:
                mark[AGAIN] = 1.0


@subroutine
def enter(
    atoms: FloatArray,
    newcomer: int,
    sides: FloatArray,
    offsets: FloatArray,
    held: BoolArray,
    slots: FloatArray,
    marks: FloatArray,
    G: FloatArray,
    factor: FloatArray,
    order: IntArray,
    ready: BoolArray,
    alpha: FloatArray,
) -> bool:
    """Let an action in memory change places with the atom opposite to a side it is beyond.

    Of the sides that hold, it is the one with the largest share in what the action gains.
    """
    mu, base = slots[MU], slots[BASE]
    np.dot(sides, atoms[newcomer], alpha)
    z, most = -1, 0.0
    for k in range(len(alpha)):
        alpha[k] += offsets[k]
        if k < len(atoms) // 2 and held[k] and alpha[k] < -PIVOT and -mu[k] * alpha[k] > most:
            z, most = k, -mu[k] * alpha[k]
    if z < 0:
        return False
    for i in range(atoms.shape[1]):
        atoms[z, i], atoms[newcomer, i] = atoms[newcomer, i], atoms[z, i]
    held[z] = False
    mu[z] = 0.0
    replace(factor, order, int(marks[SIZE]), z, alpha, np.empty(len(alpha)))
    marks[SIZE] -= 1
    exchange(sides, offsets, base, G, ready, alpha, z)
    return True


@subroutine
def exchange(
    sides: FloatArray,
    offsets: FloatArray,
    base: FloatArray,
    G: FloatArray,
    ready: BoolArray,
    alpha: FloatArray,
    z: int,
) -> None:
    """Update all that is linear in the sides for a new atom in slot z, of weights alpha."""
    slots, pivot, side = len(alpha), 1.0 / alpha[z], sides[z]
    for i in range(len(side)):
        side[i] *= pivot
    offsets[z] *= pivot
    base[z] *= pivot
    for j in range(slots):
        if ready[z] and ready[j] and j != z:
            G[z, j] = G[j, z] = pivot * G[z, j]
    G[z, z] *= pivot * pivot
    for k in range(slots):
        share = alpha[k]
        if k == z or share == 0.0:
            continue
        row = sides[k]
        for i in range(len(side)):
            row[i] -= share * side[i]
        offsets[k] -= share * offsets[z]
        base[k] -= share * base[z]
    if not ready[z]:
        for k in range(slots):
            ready[k] = False
        return
    corner, across = G[z, z], G[z].copy()
    for k in range(slots):
        if ready[k] and k != z:
            # entries of slots that are not ready mean nothing, before and after
            share, row = alpha[k], G[k]
            mine = share * corner - across[k]
            for j in range(slots):
                row[j] += alpha[j] * mine - share * across[j]
    for k in range(slots):
        if ready[k] and k != z:
            G[z, k] = G[k, z] = across[k] - alpha[k] * corner
