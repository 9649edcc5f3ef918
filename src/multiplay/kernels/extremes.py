"""The least and the greatest flow on every arc of a large network, without a search for each.

One flow goes through the network of all that can still be pushed. To raise arc e, flow is pushed
round a cycle: through e, and back from its head to its tail by a path that has room. When no such
path is left, what e carries is the most that it can (Ford and Fulkerson). To lower it, the other
way round. Most arcs are empty or full in some flow on the way: for them nothing is searched.

A path is looked for from both ends at once, on the side that has cost less so far. So it is found
after a few arcs where a graph has many of them.
"""

from typing import Any

import numpy as np

from multiplay.kernels.jit import kernel, subroutine
from multiplay.types import FloatArray, IntArray


@kernel
def widen(
    tail: IntArray,
    head: IntArray,
    first: IntArray,
    incident: IntArray,
    most: IntArray,
    flow: IntArray,
    low: IntArray,
    high: IntArray,
    mean: FloatArray,
) -> None:
    """Fill low and high, and the mean of all flows on the way, from any ``flow`` on.

    ``most`` are bounds on the flow, nearly those of ``high`` or else it takes long. The arcs at
    node v are ``incident[first[v]:first[v + 1]]``.
    """
    arcs, nodes = len(tail), len(first) - 1
    seen, since = np.zeros((2, nodes), np.int64), np.zeros(arcs, np.int64)
    by, queue = np.empty((2, nodes), np.int64), np.empty((2, nodes), np.int64)
    for e in range(arcs):
        low[e], high[e], mean[e] = flow[e], flow[e], 0.0
    search, pushes = 0, 1
    for e in range(arcs):
        for sign in (1, -1):
            bound = most[e] if sign > 0 else 0
            proven = high[e] if sign > 0 else low[e]
            source, target = (head[e], tail[e]) if sign > 0 else (tail[e], head[e])
            while proven != bound:
                search += 1
                meeting = find_path(
                    tail,
                    head,
                    first,
                    incident,
                    most,
                    flow,
                    e,
                    source,
                    target,
                    search,
                    seen,
                    by,
                    queue,
                )
                if meeting < 0:
                    break
                push = abs(bound - flow[e])
                for side in range(2):
                    push = room_on_path(tail, head, most, flow, meeting, by[side], side, push)
                for side in range(2):
                    v = meeting
                    while by[side, v] >= 0:
                        a = by[side, v]
                        forward = (head[a] == v) == (side == 0)
                        change(a, push if forward else -push, pushes, flow, low, high, since, mean)
                        v = tail[a] if head[a] == v else head[a]
                change(e, sign * push, pushes, flow, low, high, since, mean)
                pushes += 1
                proven = high[e] if sign > 0 else low[e]
    for e in range(arcs):
        mean[e] = (mean[e] + flow[e] * (pushes - since[e])) / pushes


@subroutine
def change(
    e: int,
    push: int,
    now: int,
    flow: IntArray,
    low: IntArray,
    high: IntArray,
    since: IntArray,
    mean: FloatArray,
) -> None:
    """Change the flow of an arc, and the sum of its flows so far."""
    mean[e] += flow[e] * (now - since[e])
    since[e] = now
    flow[e] += push
    low[e], high[e] = min(low[e], flow[e]), max(high[e], flow[e])


@subroutine
def find_path(
    tail: IntArray,
    head: IntArray,
    first: IntArray,
    incident: IntArray,
    most: IntArray,
    flow: IntArray,
    without: int,
    source: int,
    target: int,
    search: int,
    seen: IntArray,
    by: IntArray,
    queue: IntArray,
) -> Any:
    """Return a node on a path from source to target that has room, or -1.

    From there the arcs ``by[0]`` lead to the source, and ``by[1]`` to the target.
    """
    seen[0, source], by[0, source], queue[0, 0] = search, -1, source
    seen[1, target], by[1, target], queue[1, 0] = search, -1, target
    if source == target:
        return source
    done0, done1, waiting0, waiting1, cost0, cost1 = 0, 0, 1, 1, 0, 0
    while done0 < waiting0 and done1 < waiting1:
        side = 0 if cost0 <= cost1 else 1
        other = 1 - side
        waiting = waiting0 if side == 0 else waiting1
        v = queue[side, done0 if side == 0 else done1]
        for i in range(first[v], first[v + 1]):
            a = incident[i]
            leaves = tail[a] == v
            has_room = flow[a] < most[a] if leaves == (side == 0) else flow[a] > 0
            w = head[a] if leaves else tail[a]
            if not has_room or a == without or seen[side, w] == search:
                continue
            seen[side, w], by[side, w] = search, a
            if seen[other, w] == search:
                return w
            queue[side, waiting] = w
            waiting += 1
        if side == 0:
            done0, waiting0, cost0 = done0 + 1, waiting, cost0 + first[v + 1] - first[v]
        else:
            done1, waiting1, cost1 = done1 + 1, waiting, cost1 + first[v + 1] - first[v]
    return -1


@subroutine
def room_on_path(
    tail: IntArray,
    head: IntArray,
    most: IntArray,
    flow: IntArray,
    v: int,
    by: IntArray,
    side: int,
    push: int,
) -> Any:
    """Return how much can be pushed along one half of a path, at most ``push``."""
    while by[v] >= 0:
        a = by[v]
        forward = (head[a] == v) == (side == 0)
        push = min(push, most[a] - flow[a] if forward else flow[a])
        v = tail[a] if head[a] == v else head[a]
    return push
