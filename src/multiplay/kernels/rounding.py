"""Dependent rounding of a flow: an integer flow with the same margins and mean exactly ``x``.

While some arcs are fractional they contain a cycle or a leaf. A cycle is pushed one way by alpha
or the other way by beta, each push making an arc integral, with the probabilities that keep every
mean (Gandhi et al. 2006). A leaf arc is decided by conservation, in integers, so that rounding
errors of ``x`` never reach the margins.

A float near 10^9 has seven digits behind the point. Beside such a flow, an arc with a mean of 10^-8
would be decided by rounding errors. So fractions get digits of their own where it matters, and the
arcs with the most room carry what is missing to the balance of the nodes.
"""

from typing import Any

import numpy as np

from multiplay.kernels.conservation import NEGLIGIBLE, add, carry
from multiplay.kernels.cycles import cancel_short_cycles, push_cycle, settle
from multiplay.kernels.jit import borrowed, kernel, part, subroutine
from multiplay.kernels.random import Generators, fill_uniform
from multiplay.types import BoolArray, FloatArray, IntArray

SELDOM = 1e-9  # a mean that no run is long enough to see
BIAS = 1e-4  # of a mean, relative to itself, that no run is long enough to notice
MANY_NODES = 600  # from which a walk closes cycles that are long
ROUNDED, WITH_CARE, NO_FLOW = 1, 0, -1
LITTLE = 1e-3  # units, or parts of what BIAS allows: what an arc may have to carry


@kernel
def round_flows(
    tail: IntArray,
    head: IntArray,
    balance: IntArray,
    first: IntArray,
    incident: IntArray,
    x: FloatArray,
    rest: FloatArray,
    generators: Generators,
    coins: FloatArray,
    flows: IntArray,
) -> Any:
    """Round every row of ``x`` (trials, arcs) into ``flows``, with one coin for each push.

    The coins are drawn first, unless there are no generators. ``rest`` is n - x. The arcs at node v
    are ``incident[first[v]:first[v + 1]]``. Each arc is rounded down or up, and stays in [0, n].
    Returns how many rows are done: all of them; or those before one that needs
    ``round_with_care``, which most programs never compile; or NO_FLOW.
    """
    if len(generators) > 0:
        fill_uniform(generators, coins)
    fraction, need = np.empty(len(tail)), np.empty(len(balance), dtype=np.int64)
    missing, walk = np.empty((2, len(balance))), new_walk(len(balance))
    return round_within(
        tail, head, balance, first, incident, x, rest, coins, flows, fraction, need, missing, *walk
    )


@subroutine
def round_within(
    tail: IntArray,
    head: IntArray,
    balance: IntArray,
    first: IntArray,
    incident: IntArray,
    x: FloatArray,
    rest: FloatArray,
    coins: FloatArray,
    flows: IntArray,
    fraction: FloatArray,
    need: IntArray,
    missing: FloatArray,
    cursor: IntArray,
    path: IntArray,
    path_arc: IntArray,
    along: BoolArray,
    position: IntArray,
) -> Any:
    """The same, with room for the numbers of one row."""
    tail, head, balance = borrowed(tail), borrowed(head), borrowed(balance)
    first, incident, x, rest = borrowed(first), borrowed(incident), borrowed(x), borrowed(rest)
    coins, flows, fraction = borrowed(coins), borrowed(flows), borrowed(fraction)
    need, missing, cursor = borrowed(need), borrowed(missing), borrowed(cursor)
    walk = cursor, borrowed(path), borrowed(path_arc), borrowed(along), borrowed(position)
    two_columns = pairs_of_arcs(tail, head, len(balance) - 2)
    for k in range(len(x)):
        if two_columns:
            found = round_pairs(balance, x[k], rest[k], coins[k], flows[k], fraction)
            if found != ROUNDED:
                return NO_FLOW if found == NO_FLOW else k
            continue
        off = round_down(tail, head, balance, x[k], flows[k], fraction, need, missing)
        if matters(off, x[k], rest[k]):
            return k
        if not walk_cycles(
            tail, head, first, incident, coins[k], 0, fraction, flows[k], need, walk
        ):
            return NO_FLOW
    return len(x)


@kernel
def round_with_care(
    done: int,
    tail: IntArray,
    head: IntArray,
    balance: IntArray,
    first: IntArray,
    incident: IntArray,
    x: FloatArray,
    rest: FloatArray,
    coins: FloatArray,
    flows: IntArray,
) -> Any:
    """The same from row ``done`` on: for large graphs, and flows that rounding errors unbalance."""
    fraction, need = np.empty(len(tail)), np.empty(len(balance), dtype=np.int64)
    missing, walk = np.empty((2, len(balance))), new_walk(len(balance))
    for k in range(done, len(x)):
        flow, pushes = flows[k], 0
        off = round_down(tail, head, balance, x[k], flow, fraction, need, missing)
        if matters(off, x[k], rest[k]) and not conserve(
            tail, head, balance, x[k], rest[k], flow, fraction, need, missing
        ):
            return NO_FLOW
        if len(balance) >= MANY_NODES:
            pushes = cancel_short_cycles(
                tail, head, first, incident, coins[k], fraction, flow, need
            )
        if not walk_cycles(
            tail, head, first, incident, coins[k], pushes, fraction, flow, need, walk
        ):
            return NO_FLOW
    return len(x)


@subroutine
def new_walk(nodes: int) -> Any:
    """Return room for the cursors of all nodes, and for a walk: nodes, arcs, directions, places."""
    cursor, path = np.empty((nodes, 2), np.int64), np.empty(nodes + 1, np.int64)
    path_arc, along = np.empty(nodes + 1, np.int64), np.empty(nodes + 1, np.bool_)
    return cursor, path, path_arc, along, np.full(nodes, -1)


@part
def walk_cycles(
    tail: IntArray,
    head: IntArray,
    first: IntArray,
    incident: IntArray,
    coins: FloatArray,
    pushes: int,
    fraction: FloatArray,
    flow: IntArray,
    need: IntArray,
    walk: Any,
) -> Any:
    """Walk along fractional arcs, push round cycles, decide leaves; say if it was a flow."""
    cursor, path, path_arc, along, position = walk
    nodes = len(need)
    for v in range(nodes):
        cursor[v, 0] = first[v]
        cursor[v, 1] = first[v] + 1
    for root in range(nodes):
        length = 0  # the walk is path[0..length], entered through path_arc[1..length]
        path[0] = root
        path_arc[0] = -1
        position[root] = 0
        while length >= 0:
            v = path[length]
            e = fractional_arc(v, path_arc[length], first, incident, fraction, cursor)
            if e >= 0:
                w = head[e] if tail[e] == v else tail[e]
                if position[w] < 0:
                    length += 1
                    path[length] = w
                    path_arc[length] = e
                    along[length] = tail[e] == v  # whether it is passed from tail to head
                    position[w] = length
                    continue
                start = position[w]
                entered, entered_along = path_arc[start], along[start]
                path_arc[start], along[start] = e, tail[e] == v
                push_cycle(path_arc, along, start, length, fraction, coins[pushes])
                pushes += 1
                settle(e, tail, head, fraction, flow, need)
                path_arc[start], along[start] = entered, entered_along
                keep = length
                for step in range(length, start, -1):
                    if settle(path_arc[step], tail, head, fraction, flow, need):
                        keep = step - 1
                for step in range(keep + 1, length + 1):
                    position[path[step]] = -1
                length = keep
            else:
                position[v] = -1
                if length > 0:
                    leaf = path_arc[length]
                    value = need[v] if tail[leaf] == v else -need[v]
                    if value != 0 and value != 1:
                        return False
                    fraction[leaf] = 0.0
                    flow[leaf] += value
                    need[tail[leaf]] -= value
                    need[head[leaf]] += value
                length -= 1
    return balanced(need)


@part
def balanced(need: IntArray) -> Any:
    """Say whether no node lacks anything."""
    unbalanced = 0
    for v in range(len(need)):
        unbalanced += need[v] != 0
    return unbalanced == 0


@part
def pairs_of_arcs(tail: IntArray, head: IntArray, rows: int) -> Any:
    """Say whether node i < rows has the arcs 2i and 2i + 1, to the nodes rows and rows + 1."""
    same = len(tail) == 2 * rows
    for e in range(len(tail)):
        same &= tail[e] == e // 2 and head[e] == rows + e % 2
    return same


@part
def round_pairs(
    balance: IntArray,
    x: FloatArray,
    rest: FloatArray,
    coins: FloatArray,
    flow: IntArray,
    fraction: FloatArray,
) -> Any:
    """Round a row of ``x`` where arcs are ``pairs_of_arcs``; return ROUNDED, WITH_CARE or NO_FLOW.

    The cycles of ``walk_cycles`` join two nodes, the first that is fractional and the next: each
    push moves as much to one column as to the other, so the fractions of the arcs 2i tell it all.
    """
    rows, off = len(balance) - 2, 0.0
    need_0, need_1, parts_0, parts_1 = -balance[rows], -balance[rows + 1], 0.0, 0.0
    for i in range(rows):
        down_0, down_1 = np.int64(np.floor(x[2 * i])), np.int64(np.floor(x[2 * i + 1]))
        part_0, part_1 = x[2 * i] - down_0, x[2 * i + 1] - down_1
        off = max(off, abs((balance[i] - down_0 - down_1) - (part_0 + part_1)))
        flow[2 * i], flow[2 * i + 1], fraction[i] = down_0, down_1, part_0
        need_0 -= down_0
        need_1 -= down_1
        parts_0 += part_0
        parts_1 += part_1
    if matters(max(off, abs(need_0 - parts_0), abs(need_1 - parts_1)), x, rest):
        return WITH_CARE
    first, f, pushes = -1, 0.0, 0  # the first fractional node, and its fraction
    for j in range(rows):
        h = fraction[j]
        if h == 0.0:
            continue
        if first < 0:
            first, f = j, h
            continue
        alpha, beta = min(1.0 - f, h), min(f, 1.0 - h)
        ahead = coins[pushes] * (alpha + beta) < beta  # whether f rises by alpha, or falls by beta
        pushes += 1
        settled = (1.0 - f <= h) if ahead else (f <= 1.0 - h)  # whether f ends the push, or h
        full = settled == ahead  # whether it ends at 1, or at 0
        flow[2 * (first if settled else j)] += full
        need_0 -= full
        f += h - full
        first = j if settled else first
        first = first if f > 0.0 else -1
    if first >= 0:
        flow[2 * first] += need_0
        need_0 -= need_0 == 1
    if need_0 != 0:
        return NO_FLOW
    for i in range(rows):
        value = balance[i] - flow[2 * i] - flow[2 * i + 1]
        if value < 0 or value > 1:
            return NO_FLOW
        flow[2 * i + 1] += value
    return ROUNDED


@part
def round_down(
    tail: IntArray,
    head: IntArray,
    balance: IntArray,
    x: FloatArray,
    flow: IntArray,
    fraction: FloatArray,
    need: IntArray,
    missing: FloatArray,
) -> Any:
    """Round all arcs down; need = what the nodes lack then. Return what fractions leave at most.

    Few digits are enough: callers only test whether it is 0.
    """
    for v in range(len(balance)):
        need[v], missing[0, v] = balance[v], 0.0
    for e in range(len(tail)):
        whole = np.int64(np.floor(x[e]))
        v, w, part = tail[e], head[e], x[e] - whole
        flow[e], fraction[e] = whole, part
        need[v] -= whole
        need[w] += whole
        missing[0, v] -= part
        missing[0, w] += part
    most = 0.0
    for v in range(len(balance)):
        most = max(most, abs(need[v] + missing[0, v]))
    return most


@subroutine
def leave_needed(
    tail: IntArray,
    head: IntArray,
    balance: IntArray,
    flow: IntArray,
    fraction: FloatArray,
    need: IntArray,
    missing: FloatArray,
) -> None:
    """need = what the nodes lack if all arcs are rounded down; missing = what fractions leave."""
    for v in range(len(balance)):
        need[v] = balance[v]
    for e in range(len(tail)):
        need[tail[e]] -= flow[e]
        need[head[e]] += flow[e]
    for v in range(len(balance)):
        missing[0, v], missing[1, v] = need[v], 0.0
    for e in range(len(tail)):
        add(missing, tail[e], -fraction[e])
        add(missing, head[e], fraction[e])


@part
def matters(missing: float, x: FloatArray, rest: FloatArray) -> Any:
    """Whether so much missing could be seen in the mean of any arc."""
    if missing <= NEGLIGIBLE:
        return False
    least = LITTLE
    for e in range(len(x)):
        room = min(x[e], rest[e])
        if room > SELDOM:
            least = min(least, BIAS * room)
    return missing > least


@subroutine
def conserve(
    tail: IntArray,
    head: IntArray,
    balance: IntArray,
    x: FloatArray,
    rest: FloatArray,
    flow: IntArray,
    fraction: FloatArray,
    need: IntArray,
    missing: FloatArray,
) -> Any:
    """Split x again, with all digits, and balance the nodes; say whether little was missing."""
    room, more = np.minimum(x, rest), np.empty(len(x))
    for e in range(len(x)):
        if x[e] > rest[e]:
            up = np.ceil(rest[e])
            flow[e] = np.int64(np.rint(x[e] + rest[e])) - np.int64(up)
            fraction[e] = up - rest[e]
    leave_needed(tail, head, balance, flow, fraction, need, missing)
    carry(tail, head, room, missing, more)
    for e in range(len(x)):
        if abs(more[e]) > LITTLE * max(1.0, BIAS * room[e]):
            return False
        moved = fraction[e] + more[e]
        down = np.int64(np.floor(moved))
        flow[e] += down
        fraction[e] = moved - down
        if fraction[e] == 1.0:
            flow[e], fraction[e] = flow[e] + 1, 0.0
        n = np.int64(np.rint(x[e] + rest[e]))
        if flow[e] < 0 or flow[e] >= n:
            flow[e], fraction[e] = min(max(flow[e], 0), n), 0.0
    leave_needed(tail, head, balance, flow, fraction, need, missing)
    return True


@subroutine
def fractional_arc(
    v: int,
    entered: int,
    first: IntArray,
    incident: IntArray,
    fraction: FloatArray,
    cursor: IntArray,
) -> Any:
    """Return a fractional arc at v other than the one the walk came by, or -1.

    The two cursors of a node stand at its first two fractional arcs and only move forward, since an
    arc once integral stays so.
    """
    end = first[v + 1]
    c, s = cursor[v, 0], cursor[v, 1]
    while c < end and fraction[incident[c]] == 0.0:
        c += 1
    s = max(s, c + 1)
    while s < end and fraction[incident[s]] == 0.0:
        s += 1
    cursor[v, 0], cursor[v, 1] = c, s
    if c < end and incident[c] != entered:
        return incident[c]
    if s < end:
        return incident[s]
    return -1
