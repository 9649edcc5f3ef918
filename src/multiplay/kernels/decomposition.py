"""The FTRL step over the hull of any finite set: simplicial decomposition with Newton steps.

Minimise ``<c, x> + sum beta phi(x)`` over the mixtures ``x = sum_k w_k a_k`` of known actions, the
*atoms*, where ``u = x / n`` and
``phi(x) = n [barrier (u - 1 - log u) + entropy (u + (1 - u) log(1 - u)) - root sqrt(u)]``. The
atoms of positive weight, the active ones, are affinely independent; an atom whose weight reaches
zero stays in its slot, where it is cheap to find again.

Three things keep every digit, however unequal the weights are:
x and ``rest = n - x`` are sums of non-negative terms, never differences;
a Newton step is a least-squares problem, solved by reflections that pivot rows and columns, so that
its heaviest rows, the arms nearest to 0 or n, do not drown the light ones (Powell and Reid 1969);
atoms are compared by their integer differences.

Forced arms, the same in every action, are left out: ``free`` lists the others.
"""

import math
from typing import Any

import numpy as np

from multiplay.kernels import regulariser
from multiplay.kernels.jit import kernel, subroutine
from multiplay.kernels.random import pick
from multiplay.types import FloatArray, IntArray

MAX_ITERATIONS = 100  # Newton steps between two questions to the oracle, for each slot
MAX_SHORTER = 60  # tries of one line search
LARGE_STEP = 0.1  # shorter steps, relative to x and rest, need no line search
SMALL_STEP = 1e-7  # Newton converges quadratically: after a step this small, errors are near 1e-14
GAP = 1e-14  # of an atom worth having, relative to the terms that it is the difference of
EAGER = 3.0  # times what active atoms differ by: descent that is worth an entry before they settle
INEXACT = 1e-9  # an oracle whose action is worse than a known one, by more than this, is wrong
DEPENDENT = 1e-10  # what elimination leaves of an atom that the others span, relative to n
FLOOR = 1e-15  # of rest / n: below it the entropy becomes a barrier
NONE, DONE = -1, -2


@kernel
def improve(
    free: IntArray,
    n: FloatArray,
    c: FloatArray,
    beta: FloatArray,
    phi: FloatArray,
    todo: IntArray,
    newcomer: IntArray,
    atoms: IntArray,
    weights: FloatArray,
    x: FloatArray,
    rest: FloatArray,
    gradient: FloatArray,
    terms: FloatArray,
) -> Any:
    """Move the trials ``todo`` to the minimiser over the atoms in their slots.

    ``c, beta, x, rest, gradient`` are (trials, d), ``atoms`` (trials, slots, d). ``newcomer`` is
    the slot of the oracle's last action, or NONE; it leaves as NONE where the oracle is to be
    asked again, with ``gradient``, and as DONE where its action turned out to be of no use.
    ``terms`` is the size of what gradients are made of. Returns whether all trials converged.
    """
    slots, arms = weights.shape[1], len(free)
    active, order = np.empty(slots, dtype=np.int64), np.empty(slots, dtype=np.int64)
    matrix, right, scale = np.empty((arms, slots)), np.empty(arms), np.empty(arms)
    old, dw, work, norms = np.empty(slots), np.empty(slots), np.empty(slots), np.empty(slots)
    bend, dx = np.empty(len(n)), np.empty(len(n))
    for k in todo:
        f, w, known = phi[k], weights[k], atoms[k]
        at, to, g = x[k], rest[k], gradient[k]
        entering, converged = newcomer[k], False
        settled, moved = entering != NONE, True
        for _ in range(MAX_ITERATIONS * slots):
            terms[k] = differentiate(free, n, c[k], beta[k], f, at, to, g, bend)
            if entering == NONE and moved:
                entering = best_known(free, known, w, g, GAP * terms[k], settled)
            converged = settled and entering == NONE
            if converged:
                newcomer[k] = NONE
                break
            size = list_active(w, entering, active, old)
            set_up(free, n, known, active, size, g, bend, matrix, right, scale)
            rank = triangulate(matrix, right, size - 1, scale, order, work, norms)
            if rank < size - 1:
                reach = exchange(matrix, right, rank, order, size, old, dw)
                slope, largest, room = 0.0, 0.0, np.inf
            else:
                newton_step(matrix, right, rank, order, dw)
                slope, largest, room = measure(free, known, active, size, dw, bend, at, to, dx)
                reach = first_to_vanish(old, dw, size)
                if not np.isfinite(slope):
                    return False
            # In exact arithmetic an atom that descends, added to atoms that are settled, is
            # independent of them and gains weight at once. Otherwise the descent was rounding.
            converged = settled and (rank < size - 1 or reach == 0.0)
            if converged:
                newcomer[k] = DONE if entering == newcomer[k] else NONE
                break
            length = reach if rank < size - 1 else min(1.0, 0.95 * room, reach)
            for _ in range(MAX_SHORTER):
                place(active, size, old, dw, length, w)
                mix(free, n, known, active, size, w, at, to)
                if largest < LARGE_STEP:
                    break
                # The slope along dx grows with the length: where it has become clearly positive the
                # step was too long, and the secant gives a better length.
                differentiate(free, n, c[k], beta[k], f, at, to, g, bend)
                new_slope = inner(free, g, dx)
                if not new_slope > 0.3 * slope:
                    break
                length *= slope / (slope + new_slope)
            entering = NONE
            moved = rank == size - 1 and length > 0.0
            settled = moved and largest < SMALL_STEP and length == 1.0
        if not converged:
            return False
    return True


@subroutine
def list_active(w: FloatArray, entering: int, active: IntArray, old: FloatArray) -> int:
    """List the slots of positive weight and the entering one, the heaviest first."""
    size = 0
    for s in range(len(w)):
        if w[s] > 0.0 or s == entering:
            active[size] = s
            if w[s] > w[active[0]]:
                active[size], active[0] = active[0], s
            size += 1
    for j in range(size):
        old[j] = w[active[j]]
    return size


@subroutine
def differentiate(
    free: IntArray,
    n: FloatArray,
    c: FloatArray,
    beta: FloatArray,
    phi: FloatArray,
    x: FloatArray,
    rest: FloatArray,
    gradient: FloatArray,
    bend: FloatArray,
) -> float:
    """gradient = c + beta phi'(x) and bend = sqrt(beta phi''(x)); return the size of the terms.

    An arm that may reach n freely has v = 1 - u = exp(-cost / beta entropy), which no float can
    hold: for v below FLOOR, log v gives way to its tangent in 1 / v, which keeps v above
    FLOOR / costs.
    """
    size = 1.0
    for a in free:
        u, v = x[a] / n[a], rest[a] / n[a]
        log, slope = math.log(v), 1.0 / v
        if v < FLOOR:
            log, slope = math.log(FLOOR) + 1.0 - FLOOR / v, FLOOR / v / v
        barrier, entropy, root, shannon = regulariser.weights(phi, a)
        logs = shannon * math.log(u) - entropy * log if shannon > 0.0 else -entropy * log
        phi1 = regulariser.slope(barrier, root, u, logs)
        below = regulariser.curvature_below(barrier, root, shannon, u)
        pull = beta[a] * phi1
        gradient[a] = c[a] + pull
        bend[a] = math.sqrt(beta[a] * (below / u / u + entropy * slope) / n[a])
        size += n[a] * (abs(c[a]) + abs(pull))
    return size


@subroutine
def set_up(
    free: IntArray,
    n: FloatArray,
    atoms: IntArray,
    active: IntArray,
    size: int,
    gradient: FloatArray,
    bend: FloatArray,
    matrix: FloatArray,
    right: FloatArray,
    scale: FloatArray,
) -> None:
    """Set up least squares for Newton's step: bend sum_k (a_k - a_0) dw_k = -gradient / bend."""
    for i in range(len(free)):
        a = free[i]
        right[i] = -gradient[a] / bend[a]
        scale[i] = bend[a] * n[a]
        base = atoms[active[0], a]
        for j in range(size - 1):
            matrix[i, j] = bend[a] * (atoms[active[j + 1], a] - base)


@kernel
def triangulate(
    matrix: FloatArray,
    right: FloatArray,
    cols: int,
    scale: FloatArray,
    order: IntArray,
    work: FloatArray,
    norms: FloatArray,
) -> int:
    """Reflect ``matrix`` to a triangle, columns in ``order``, and ``right`` with it.

    The column of the largest norm comes next, and its largest entry to the diagonal. Stops where
    all columns left are dependent on those before, and returns the rank.
    """
    rows = len(right)
    for h in range(cols):
        order[h] = h
        norms[h] = 0.0
    for i in range(rows):
        for h in range(cols):
            norms[h] += matrix[i, h] * matrix[i, h]
    for j in range(cols):
        if j == rows:
            return rows
        best = j
        for h in range(j + 1, cols):
            if norms[h] > norms[best]:
                best = h
        if best != j:
            order[j], order[best] = order[best], order[j]
            norms[best] = norms[j]
            for i in range(rows):
                matrix[i, j], matrix[i, best] = matrix[i, best], matrix[i, j]
        top, dependent, square = j, True, 0.0
        for i in range(j, rows):
            entry = abs(matrix[i, j])
            square += entry * entry
            if entry > abs(matrix[top, j]):
                top = i
            if entry > DEPENDENT * scale[i]:
                dependent = False
        if dependent:
            return j
        if top != j:
            right[j], right[top] = right[top], right[j]
            scale[j], scale[top] = scale[top], scale[j]
            for h in range(cols):
                matrix[j, h], matrix[top, h] = matrix[top, h], matrix[j, h]
        norm = math.copysign(math.sqrt(square), matrix[j, j])
        matrix[j, j] += norm
        reflect(matrix, right, cols, j, 1.0 / (norm * matrix[j, j]), work, norms)
        matrix[j, j] = -norm
    return cols


@subroutine
def reflect(
    matrix: FloatArray,
    right: FloatArray,
    cols: int,
    j: int,
    factor: float,
    work: FloatArray,
    norms: FloatArray,
) -> None:
    """Take factor v (v' column) from the columns after j, v column j from row j; renew norms."""
    rows = len(right)
    for h in range(j + 1, cols):
        work[h] = 0.0
        norms[h] = 0.0
    along = 0.0
    for i in range(j, rows):
        row, v = matrix[i], matrix[i, j]
        if v != 0.0:
            along += v * right[i]
            for h in range(j + 1, cols):
                work[h] += v * row[h]
    for i in range(j, rows):
        row, v = matrix[i], factor * matrix[i, j]
        if v != 0.0:
            right[i] -= v * along
            for h in range(j + 1, cols):
                row[h] -= v * work[h]
        if i > j:
            for h in range(j + 1, cols):
                norms[h] += row[h] * row[h]


@kernel
def newton_step(
    matrix: FloatArray, right: FloatArray, rank: int, order: IntArray, dw: FloatArray
) -> None:
    """Solve triangle * dw = right for all atoms but the first, which balances them."""
    total = 0.0
    for j in range(rank - 1, -1, -1):
        step = right[j]
        for h in range(j + 1, rank):
            step -= matrix[j, h] * dw[order[h] + 1]
        dw[order[j] + 1] = step / matrix[j, j]
        total += dw[order[j] + 1]
    dw[0] = -total


@subroutine
def exchange(
    matrix: FloatArray,
    right: FloatArray,
    rank: int,
    order: IntArray,
    size: int,
    old: FloatArray,
    dw: FloatArray,
) -> float:
    """Fill dw such that x stays and a dependent atom comes or goes; return the length of that."""
    for j in range(rank):
        right[j] = matrix[j, rank]
    for j in range(size):
        dw[j] = 0.0
    newton_step(matrix, right, rank, order, dw)
    dw[order[rank] + 1] = -1.0
    dw[0] += 1.0
    reach = first_to_vanish(old, dw, size)
    if reach == 0.0:
        for j in range(size):
            dw[j] = -dw[j]
        reach = first_to_vanish(old, dw, size)
    return reach


@subroutine
def measure(
    free: IntArray,
    atoms: IntArray,
    active: IntArray,
    size: int,
    dw: FloatArray,
    bend: FloatArray,
    x: FloatArray,
    rest: FloatArray,
    dx: FloatArray,
) -> tuple[float, float, float]:
    """Fill dx; return |bend dx|^2, the largest |dx| / min(x, rest), the length to 0 or n."""
    for a in free:
        dx[a] = 0.0
    for j in range(1, size):
        for a in free:
            dx[a] += dw[j] * (atoms[active[j], a] - atoms[active[0], a])
    slope, largest, room = 0.0, 0.0, np.inf
    for a in free:
        d = dx[a]
        slope += bend[a] * d * bend[a] * d
        far, smaller = abs(d), min(x[a], rest[a])
        if far > largest * smaller:
            largest = far / smaller
        ahead = x[a] if d < 0.0 else rest[a]
        if ahead < room * far:
            room = ahead / far
    return slope, largest, room


@subroutine
def first_to_vanish(w: FloatArray, dw: FloatArray, size: int) -> float:
    """Return the length at which the first weight is zero."""
    reach = np.inf
    for j in range(size):
        if dw[j] < 0.0 and w[j] < -reach * dw[j]:
            reach = -w[j] / dw[j]
    return reach


@subroutine
def place(
    active: IntArray, size: int, old: FloatArray, dw: FloatArray, length: float, w: FloatArray
) -> None:
    """w = old + length dw, zero for those that vanish at this length; the heaviest makes it 1."""
    heaviest, others = 0, 0.0
    for j in range(size):
        new = old[j] + length * dw[j]
        if new < 0.0 or (dw[j] < 0.0 and -old[j] / dw[j] <= length):
            new = 0.0
        w[active[j]] = new
        if new > w[active[heaviest]]:
            heaviest = j
    for j in range(size):
        if j != heaviest:
            others += w[active[j]]
    w[active[heaviest]] = 1.0 - others


@subroutine
def mix(
    free: IntArray,
    n: FloatArray,
    atoms: IntArray,
    active: IntArray,
    size: int,
    w: FloatArray,
    x: FloatArray,
    rest: FloatArray,
) -> None:
    """x = sum w_k a_k and rest = sum w_k (n - a_k)."""
    for a in free:
        x[a] = 0.0
        rest[a] = 0.0
    for j in range(size):
        part, atom = w[active[j]], atoms[active[j]]
        if part > 0.0:
            for a in free:
                x[a] += part * atom[a]
                rest[a] += part * (n[a] - atom[a])


@subroutine
def inner(free: IntArray, a: FloatArray, b: FloatArray) -> float:
    """Return the sum of the products over the free arms."""
    total = 0.0
    for i in free:
        total += a[i] * b[i]
    return total


@subroutine
def advantage(free: IntArray, gradient: FloatArray, atom: IntArray, other: IntArray) -> float:
    """Return <gradient, other - atom>."""
    total = 0.0
    for a in free:
        total += gradient[a] * (other[a] - atom[a])
    return total


@subroutine
def heaviest(w: FloatArray) -> int:
    """Return the slot of the largest weight."""
    top = 0
    for s in range(len(w)):
        if w[s] > w[top]:
            top = s
    return top


@subroutine
def best_known(
    free: IntArray,
    atoms: IntArray,
    w: FloatArray,
    gradient: FloatArray,
    tolerance: float,
    settled: bool,
) -> int:
    """Return the slot of the inactive atom that descends most, or NONE.

    Before the active ones have settled, it must descend far more than they differ.
    """
    top = heaviest(w)
    best, most = NONE, tolerance
    for s in range(len(w)):
        gain = advantage(free, gradient, atoms[s], atoms[top])
        if w[s] == 0.0:
            if gain > most:
                best, most = s, gain
        elif not settled:
            tolerance = max(tolerance, EAGER * abs(gain))
    return best if most > tolerance else NONE


@kernel
def admit(
    free: IntArray,
    todo: IntArray,
    found: IntArray,
    gradient: FloatArray,
    terms: FloatArray,
    atoms: IntArray,
    weights: FloatArray,
    newcomer: IntArray,
) -> Any:
    """Give the actions ``found`` by the oracle a slot, where they descend; say if all are best.

    The slot is that of the inactive atom that would descend least.
    """
    for row in range(len(todo)):
        k = todo[row]
        if newcomer[k] != NONE:
            continue
        w, g = weights[k], gradient[k]
        top = heaviest(w)
        gain = advantage(free, g, found[row], atoms[k, top])
        worst, least = NONE, np.inf
        for s in range(len(w)):
            known = advantage(free, g, atoms[k, s], atoms[k, top])
            if known - gain > INEXACT * terms[k]:
                return False
            if w[s] == 0.0 and known < least:
                worst, least = s, known
        if gain > GAP * terms[k]:
            newcomer[k] = worst
            for a in range(found.shape[1]):
                atoms[k, worst, a] = found[row, a]
    return True


@kernel
def draw(atoms: IntArray, weights: FloatArray, uniform: FloatArray, action: IntArray) -> None:
    """Choose atom k with probability weights[k], by one uniform number for each trial."""
    for k in range(len(action)):
        chosen = pick(weights[k], uniform[k])
        for a in range(action.shape[1]):
            action[k, a] = atoms[k, chosen, a]
