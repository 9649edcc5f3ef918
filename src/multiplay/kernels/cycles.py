"""Cycles of fractional arcs: pushing round one, and finding short ones in large graphs.

A walk along fractional arcs closes a cycle after about as many steps as the root of the number of
nodes. Where nodes have many fractional arcs, there are cycles of two to four arcs, and these are
found after a few looks: all arcs at a node are its star, and two arcs from the ends of the star
soon reach the same node.
"""

import math
from typing import Any

import numpy as np

from multiplay.kernels.jit import kernel, part, subroutine
from multiplay.types import BoolArray, FloatArray, IntArray

FIRST_LOOKS = 8.0  # beyond as many as the star has arcs, times the root of the number of nodes
MORE_LOOKS = 64.0  # for each cycle that was found


@kernel
def cancel_short_cycles(
    tail: IntArray,
    head: IntArray,
    first: IntArray,
    incident: IntArray,
    coins: FloatArray,
    fraction: FloatArray,
    flow: IntArray,
    need: IntArray,
) -> Any:
    """Push round cycles through all nodes in turn, while they are easily found; count the pushes.

    ``near[x]`` is the arc of the star that leads to x, and ``far[y]`` an arc that leads to y from
    an end of the star. Both hold for the node ``near_of[x]``, ``far_of[y]`` only.
    """
    nodes, pushes = len(need), 0
    around, last = incident.copy(), first[1:].copy()
    near, far = np.empty(nodes, np.int64), np.empty(nodes, np.int64)
    near_of, far_of = np.full(nodes, -1), np.full(nodes, -1)
    path, path_arc = np.empty(4, np.int64), np.empty(4, np.int64)
    along = np.empty(4, np.bool_)
    for root in range(nodes):
        path[0] = root
        take_out(first[root], root, around, last, fraction)
        for i in range(first[root], last[root]):
            s = around[i]
            x = head[s] if tail[s] == root else tail[s]
            if x == root:
                continue
            if near_of[x] == root and fraction[near[x]] > 0.0:
                path[1], path_arc[0], path_arc[1] = x, near[x], s
                push_walk(path, path_arc, 1, tail, along, fraction, coins[pushes])
                settle_all(path_arc, 2, tail, head, fraction, flow, need)
                pushes += 1
            if fraction[s] > 0.0:
                near[x], near_of[x] = s, root
        looks = FIRST_LOOKS * math.sqrt(nodes) + (last[root] - first[root])
        for i in range(first[root], last[root]):
            s = around[i]
            x = head[s] if tail[s] == root else tail[s]
            if looks < 0.0:
                break
            if near[x] != s:
                continue
            path[1], path_arc[1], j = x, s, first[x]
            while j < last[x] and fraction[s] > 0.0 and looks >= 0.0:
                a = around[j]
                y = head[a] if tail[a] == x else tail[a]
                looks -= 1.0
                if fraction[a] == 0.0:
                    last[x] -= 1
                    around[j] = around[last[x]]
                    continue
                j += 1
                if y in (root, x):
                    continue
                path[2], path_arc[2], length = y, a, 0
                if near_of[y] == root and fraction[near[y]] > 0.0:
                    path_arc[0], length = near[y], 2
                elif far_of[y] == root and fraction[far[y]] > 0.0:
                    path_arc[3] = far[y]
                    z = head[far[y]] if tail[far[y]] == y else tail[far[y]]
                    if z != x and fraction[near[z]] > 0.0:
                        path[3], path_arc[0], length = z, near[z], 3
                if length > 0:
                    push_walk(path, path_arc, length, tail, along, fraction, coins[pushes])
                    settle_all(path_arc, length + 1, tail, head, fraction, flow, need)
                    pushes += 1
                    looks += MORE_LOOKS
                if length != 3 or fraction[path_arc[3]] == 0.0 or fraction[path_arc[0]] == 0.0:
                    far[y], far_of[y] = a, root
    return pushes


@subroutine
def take_out(start: int, v: int, around: IntArray, last: IntArray, fraction: FloatArray) -> None:
    """Take integral arcs out of those at node v, ``around[start:last[v]]``."""
    kept = start
    for i in range(start, last[v]):
        if fraction[around[i]] > 0.0:
            around[kept] = around[i]
            kept += 1
    last[v] = kept


@subroutine
def settle_all(
    arcs: IntArray,
    number: int,
    tail: IntArray,
    head: IntArray,
    fraction: FloatArray,
    flow: IntArray,
    need: IntArray,
) -> None:
    """Take out the first arcs of a list that have become integral."""
    for i in range(number):
        settle(arcs[i], tail, head, fraction, flow, need)


@subroutine
def push_walk(
    path: IntArray,
    path_arc: IntArray,
    length: int,
    tail: IntArray,
    along: BoolArray,
    fraction: FloatArray,
    coin: float,
) -> None:
    """Push round the cycle of the nodes path[0..length], closed by the arc in path_arc[0]."""
    came_from = path[length]
    for step in range(length + 1):
        along[step] = tail[path_arc[step]] == came_from
        came_from = path[step]
    push_cycle(path_arc, along, 0, length, fraction, coin)


@kernel
def push_cycle(
    path_arc: IntArray,
    along: BoolArray,
    start: int,
    length: int,
    fraction: FloatArray,
    coin: float,
) -> None:
    """Push round the cycle of the arcs path_arc[start..length], one way or the other."""
    alpha, beta = 1.0, 1.0
    for step in range(start, length + 1):
        down = fraction[path_arc[step]]
        up = 1.0 - down
        ahead, back = (up, down) if along[step] else (down, up)
        alpha = ahead if ahead < alpha else alpha
        beta = back if back < beta else beta
    forward = coin * (alpha + beta) < beta
    delta = alpha if forward else beta
    for step in range(start, length + 1):
        e = path_arc[step]
        fraction[e] = pushed(fraction[e], along[step] == forward, delta)


@part
def pushed(down: float, rises: bool, delta: float) -> Any:
    """Return a fraction after a push; the one that stops the push ends exactly at 0 or 1."""
    up = 1.0 - down
    room, end = (up, 1.0) if rises else (down, 0.0)
    moved = down + delta if rises else down - delta
    return end if room <= delta else min(max(moved, 0.0), 1.0)


@subroutine
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
