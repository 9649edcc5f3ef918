"""The least and the greatest flow on every arc of a large network, without a search for each.

A walk along arcs that have room closes a cycle when it meets itself, and fills it. When no cycle
has room, nearly all arcs of most networks have been full. Of the others, a second walk fills many.

One flow goes on through the network of all that can still be pushed. To raise arc e, flow is pushed
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
    """Fill low and high, and a mean of all flows on the way, from any ``flow`` on.

    ``most`` are bounds on the flow, nearly those of ``high`` or else it takes long. The arcs at
    node v are ``incident[first[v]:first[v + 1]]``. The mean is that of the first flow, of the flows
    at the ends of walks, and of the flows of searches, each with a weight of one third.
    """
    arcs, nodes = len(tail), len(first) - 1
    before, filled = np.empty(arcs), np.zeros(arcs)
    for e in range(arcs):
        low[e], high[e], mean[e], before[e] = flow[e], flow[e], 0.0, flow[e]
    walks, never_full, earlier = 0, arcs, 2 * arcs
    while walks == 0 or 0 < 2 * never_full < earlier:
        fill_cycles(tail, head, nodes, most, flow, high, filled)
        walks, earlier, never_full = walks + 1, never_full, 0
        for e in range(arcs):
            never_full += high[e] < most[e]
    seen, since = np.zeros((2, nodes), np.int64), np.zeros(arcs, np.int64)
    by, queue = np.empty((2, nodes), np.int64), np.empty((2, nodes), np.int64)
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
        searched = (mean[e] + flow[e] * (pushes - since[e])) / pushes
        mean[e] = (before[e] + filled[e] / walks + searched) / 3


@subroutine
def fill_cycles(
    tail: IntArray,
    head: IntArray,
    nodes: int,
    most: IntArray,
    flow: IntArray,
    high: IntArray,
    total: FloatArray,
) -> None:
    """Fill cycles from ``flow`` on until none has room; raise high, and add the flow to total.

    Arcs that have never been full are walked first. A node is left out when all that leaves it is
    full or leads to such nodes: no cycle through it has room, nor will one have.
    """
    arcs = len(tail)
    start = np.zeros(nodes + 1, np.int64)  # the arcs out of v are start[v] to start[v + 1] - 1
    place, to, room = np.empty(arcs, np.int64), np.empty(arcs, np.int64), np.empty(arcs, np.int64)
    for e in range(arcs):
        start[tail[e] + 1] += 1
    for v in range(nodes):
        start[v + 1] += start[v]
    following = start[:-1].copy()
    for been_full in (False, True):
        for e in range(arcs):
            if (high[e] == most[e]) == been_full:
                i = following[tail[e]]
                place[e], to[i], room[i] = i, head[e], most[e] - flow[e]
                following[tail[e]] = i + 1
    next_arc, left_out = start[:-1].copy(), np.zeros(nodes, np.bool_)
    walk, step = np.empty(nodes, np.int64), np.full(nodes, -1)  # step[walk[k]] = k, else -1
    for source in range(nodes):
        length = 0
        if not left_out[source]:
            walk[0], step[source], length = source, 0, 1
        while length > 0:
            v = walk[length - 1]
            i = next_arc[v]
            while i < start[v + 1] and (room[i] == 0 or left_out[to[i]]):
                i += 1
            next_arc[v] = i
            if i == start[v + 1]:
                left_out[v], step[v] = True, -1
                length -= 1
            elif step[to[i]] < 0:
                walk[length], step[to[i]] = to[i], length
                length += 1
            else:
                end, length = length, fill_cycle(walk, step[to[i]], length, next_arc, room)
                for k in range(length, end):
                    step[walk[k]] = -1
    for e in range(arcs):
        filled = most[e] - room[place[e]]
        high[e] = max(high[e], filled)
        total[e] += filled


@subroutine
def fill_cycle(walk: IntArray, begin: int, end: int, next_arc: IntArray, room: IntArray) -> int:
    """Fill the cycle of the steps from begin on; return how many nodes precede a full arc."""
    least = room[next_arc[walk[begin]]]
    for k in range(begin + 1, end):
        least = min(least, room[next_arc[walk[k]]])
    full = end
    for k in range(end - 1, begin - 1, -1):
        room[next_arc[walk[k]]] -= least
        if room[next_arc[walk[k]]] == 0:
            full = k
    return full + 1


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
