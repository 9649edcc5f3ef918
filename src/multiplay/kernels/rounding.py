"""Dependent rounding of a flow: an integer flow with the same margins and mean exactly ``x``.

While some arcs are fractional they contain a cycle or a leaf. A cycle is pushed one way by alpha
or the other way by beta, each push making an arc integral, with the probabilities that keep every
mean (Gandhi et al. 2006). A leaf arc is decided by conservation, in integers, so that rounding
errors of ``x`` never reach the margins.
"""

from typing import Any

import numpy as np

from multiplay.kernels.jit import kernel
from multiplay.types import FloatArray, IntArray


@kernel
def round_flows(
    tail: IntArray,
    head: IntArray,
    balance: IntArray,
    first: IntArray,
    incident: IntArray,
    x: FloatArray,
    coins: FloatArray,
    flows: IntArray,
) -> None:
    """Round every row of ``x`` (trials, arcs) into ``flows``, with one coin for each push.

    The arcs at node v are ``incident[first[v]:first[v + 1]]``.
    """
    nodes, arcs = len(balance), len(tail)
    fraction = np.empty(arcs)
    need = np.empty(nodes, dtype=np.int64)
    cursor = np.empty((nodes, 2), dtype=np.int64)
    path = np.empty(nodes + 1, dtype=np.int64)
    path_arc = np.empty(nodes + 1, dtype=np.int64)
    position = np.full(nodes, -1)
    for k in range(len(x)):
        flow = flows[k]
        for v in range(nodes):
            need[v] = balance[v]
        for e in range(arcs):
            flow[e] = np.int64(np.floor(x[k, e]))
            fraction[e] = x[k, e] - flow[e]
            need[tail[e]] -= flow[e]
            need[head[e]] += flow[e]
        for v in range(nodes):
            cursor[v, 0] = first[v]
            cursor[v, 1] = first[v] + 1
        pushes = 0
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
                        position[w] = length
                        continue
                    start = position[w]
                    path_arc[start], entered = e, path_arc[start]
                    push_cycle(path, path_arc, start, length, tail, fraction, coins[k, pushes])
                    pushes += 1
                    settle(e, tail, head, fraction, flow, need)
                    path_arc[start] = entered
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
                        fraction[leaf] = 0.0
                        flow[leaf] += value
                        need[tail[leaf]] -= value
                        need[head[leaf]] += value
                    length -= 1


@kernel
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


@kernel
def push_cycle(
    path: IntArray,
    path_arc: IntArray,
    start: int,
    length: int,
    tail: IntArray,
    fraction: FloatArray,
    coin: float,
) -> None:
    """Push round the cycle path[start..length], closed by the arc in path_arc[start]."""
    alpha, beta = 1.0, 1.0
    for step in range(start, length + 1):
        f = fraction[path_arc[step]]
        if runs_forward(path, path_arc, step, start, length, tail):
            alpha, beta = min(alpha, 1.0 - f), min(beta, f)
        else:
            alpha, beta = min(alpha, f), min(beta, 1.0 - f)
    forward = coin * (alpha + beta) < beta
    delta = alpha if forward else -beta
    for step in range(start, length + 1):
        e = path_arc[step]
        if runs_forward(path, path_arc, step, start, length, tail):
            moved, limit = fraction[e] + delta, (1.0 - fraction[e] if forward else fraction[e])
        else:
            moved, limit = fraction[e] - delta, (fraction[e] if forward else 1.0 - fraction[e])
        if limit <= abs(delta):  # the arc that stopped the push ends exactly at 0 or 1
            moved = np.round(moved)
        fraction[e] = min(max(moved, 0.0), 1.0)


@kernel
def runs_forward(
    path: IntArray, path_arc: IntArray, step: int, start: int, length: int, tail: IntArray
) -> Any:
    """Whether the walk passes the arc of this step from its tail to its head."""
    came_from = path[length] if step == start else path[step - 1]
    return tail[path_arc[step]] == came_from


@kernel
def settle(
    e: int, tail: IntArray, head: IntArray, fraction: FloatArray, flow: IntArray, need: IntArray
) -> Any:
    """Take arc e out if it has become integral; say whether it has."""
    if fraction[e] == 1.0:
        fraction[e] = 0.0
        flow[e] += 1
        need[tail[e]] -= 1
        need[head[e]] += 1
        return True
    return fraction[e] == 0.0
